/* Machines in plain C, for one thread: what libmcrt's stepping is measured against (../plain_machines.cpp).
 *
 * The same job as mc/machine.h, with the data structures that one reaches for first: machines in an array that grows, a ring of
 * envelopes allocated with each machine, a ring of ready machines, and arrays that are searched from their beginning for
 * everything else: pending requests, thunks, the rows of a descriptor. Left out, which only makes it faster: owned payloads,
 * subscriptions, hooks, dead letters, checks of a runtime's handle, and that a machine's effects may come from another thread. */
#ifndef BENCH_PLAIN_MACHINES_H
#define BENCH_PLAIN_MACHINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pm_envelope {
    uint64_t kind, src, reply_cap_id, pending_id, payload0, payload1, origin_payload0, origin_payload1, site;
} pm_envelope;

typedef enum pm_result { PM_OK, PM_FAULT } pm_result;

typedef struct pm_txn {
    uint64_t has_next_state, next_state, next_state_tag;
} pm_txn;

/* As in mc/machine.h. */
typedef pm_result (*pm_dispatch_fn)(void *ctx, uint32_t id, uint64_t state, const pm_envelope *env, pm_txn *txn,
                                    uint64_t *fault_code);

typedef struct pm_row {
    uint64_t state_tag, kind, site, local_thunk, fallback_thunk;
} pm_row;

typedef struct pm_runtime pm_runtime;

pm_runtime *pm_new(void);
void pm_free(pm_runtime *rt);

/* 0 without memory. A machine runs at once. */
uint32_t pm_spawn(pm_runtime *rt, uint32_t mailbox_cap);
void pm_bind(pm_runtime *rt, uint32_t id, pm_dispatch_fn fn, void *ctx);
/* rows must outlive the runtime. */
void pm_bind_rows(pm_runtime *rt, uint32_t id, const pm_row *rows, size_t count, uint64_t initial_tag);
bool pm_register_thunk(pm_runtime *rt, uint64_t thunk_id, pm_dispatch_fn fn, uint64_t next_tag);
uint64_t pm_state(const pm_runtime *rt, uint32_t id);

bool pm_send(pm_runtime *rt, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1);
uint64_t pm_request(pm_runtime *rt, uint32_t src, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1);
/* Whether an envelope was dispatched and its effects were committed. */
bool pm_step(pm_runtime *rt);

/* In a handler. */
bool pm_emit_send(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1);
uint64_t pm_emit_request(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1, uint64_t site);
bool pm_emit_reply(uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1);

#ifdef __cplusplus
}
#endif

#endif
