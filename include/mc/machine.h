/* mc/machine.h: machines: state machines that exchange messages, one envelope at a time, each dispatch a transaction.
 *
 * Success: functions return 1 on success and 0 otherwise, or the enum that says how it went. Out-parameters are written
 * on success only.
 *
 * A runtime is a table of machines, a queue of those that have mail, and the requests that wait for their replies. It is
 * stepped: each step takes one envelope from the machine that is first in the queue, calls the machine's handler, and
 * either commits everything that the handler asked for, with its new state, or nothing of it.
 *
 * Every function here has two names, mc_machine_runtime_X, and __mc_machine_runtime_X for compiled code; they are one
 * function. mc/bridge.h has the same for code that has u64 words alone, and what handlers emit effects with.
 *
 * Threads: a runtime is used by one thread (or microthread) at a time, "owner" below, unless it is attached to executors (see
 * "On executors"): then any thread is. The registries (thunks,
 * payload layouts, descriptors) are the process's, and any thread may use them. A runtime that is not initialised, dropped
 * or freed is unknown: functions that get it do nothing and say so (MACHINE_UNKNOWN, CAP_UNKNOWN, STOPPED, 0).
 *
 * Callbacks (handlers, hooks, drop functions) run on the caller's stack with nothing locked. They may call every function
 * here, on the same runtime too; only a step inside a handler of the same runtime is refused. A C++ exception that leaves a
 * handler is a fault of that machine; one that leaves a hook or a drop function is logged.
 *
 * Payloads
 * --------
 * Two words, payload0 and payload1. With MC_PAYLOAD_LAYOUT_OWNED_MASK set in payload1, payload0 is the address of a box
 * from __mc_alloc that the runtime owns from then on: from a call that gets the envelope, whatever the call returns. A runtime that
 * is unknown owns nothing, so its caller has the box still (as after MC_E_STALE and MC_E_NOTSUP). The runtime
 * frees the box once, when it has been dispatched, or discarded: first the drop function of the layout (the rest of payload1), if
 * one is registered, then __mc_free. A handler that passes a box on that it has received, or returns it as a reply, need
 * do nothing about it: the last envelope that holds it frees it. A request's box is kept until the request has ended, and
 * comes back with the reply, as its origin.
 *
 * States
 * ------
 * A machine's state is a word that belongs to the program. When the machine is bound to a descriptor and the layout of
 * its state is not 0, the word is the address of a box that the runtime drops when the machine has another one, and
 * when a handler's next state is rejected.
 */
#ifndef MC_MACHINE_H
#define MC_MACHINE_H

#include "base.h"

MC_EXTERN_C_BEGIN

/* --- Types ------------------------------------------------------------------------------------------------------- */

typedef uint64_t mc_machine_event_kind_t;
typedef uint64_t mc_machine_state_token_t;
typedef uint64_t mc_payload_layout_id_t;
typedef uint32_t mc_machine_id_t; /* from 1, never used again within a runtime; 0 is none */

/* CREATED: takes mail, runs nothing. RUNNING. FAULTED: keeps its mail, subscriptions and state, takes no mail, can only be
 * stopped. STOPPED: for good, everything given back; also what an id that was never given out reads. */
typedef enum mc_machine_lifecycle {
    MC_MACHINE_CREATED = 0,
    MC_MACHINE_RUNNING = 1,
    MC_MACHINE_FAULTED = 2,
    MC_MACHINE_STOPPED = 3
} mc_machine_lifecycle_t;

/* What a machine is after a fault. */
typedef enum mc_machine_fault_policy {
    MC_FAULT_POLICY_MARK_FAULTED = 0,
    MC_FAULT_POLICY_MARK_STOPPED = 1
} mc_machine_fault_policy_t;

typedef enum mc_mailbox_enqueue_result {
    MC_MAILBOX_ENQUEUE_OK = 0,
    MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN = 1,
    MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING = 2, /* faulted or stopped */
    MC_MAILBOX_ENQUEUE_FULL = 3                 /* or no memory for the mailbox */
} mc_mailbox_enqueue_result_t;

typedef enum mc_dead_letter_reason {
    MC_DEAD_LETTER_UNKNOWN_MACHINE = 1,
    MC_DEAD_LETTER_STOPPED_MACHINE = 2,
    MC_DEAD_LETTER_FAULTED_MACHINE = 3,
    MC_DEAD_LETTER_MAILBOX_FULL = 4,
    MC_DEAD_LETTER_REPLY_CAP_UNKNOWN = 5
} mc_dead_letter_reason_t;

/* What a handler answers. */
typedef enum mc_dispatch_result {
    MC_DISPATCH_OK = 0,    /* commit the effects */
    MC_DISPATCH_FAULT = 1, /* discard them; *fault_code says why */
    MC_DISPATCH_STOP = 2   /* discard them; the machine stops */
} mc_dispatch_result_t;

typedef enum mc_machine_reply_result {
    MC_REPLY_OK = 0,
    MC_REPLY_CAP_UNKNOWN = 1, /* never minted, or used up: replied to, timed out, its requester stopped or faulted */
    MC_REPLY_DEST_UNKNOWN = 2,
    MC_REPLY_DEST_NOT_RUNNING = 3,
    MC_REPLY_FULL = 4 /* try again: the capability is still good */
} mc_machine_reply_result_t;

typedef enum mc_machine_step_status {
    MC_STEP_IDLE = 0,
    MC_STEP_DID_WORK = 1,
    MC_STEP_FAULTED = 2
} mc_machine_step_status_t;

typedef enum mc_subscription_op { MC_SUBSCRIPTION_ADD = 0, MC_SUBSCRIPTION_REMOVE = 1 } mc_subscription_op_t;

/* How a request ended. */
typedef enum mc_pending_cleanup_reason {
    MC_PENDING_CLEANUP_COMPLETED = 1,
    MC_PENDING_CLEANUP_REQUESTER_STOPPED = 2,
    MC_PENDING_CLEANUP_REQUESTER_FAULTED = 3,
    MC_PENDING_CLEANUP_TIMEOUT = 4
} mc_pending_cleanup_reason_t;

/* Fault codes of the runtime's own; others are the handlers'. */
enum {
    MC_FAULT_CODE_TXN_COMMIT_REJECTED = 1,    /* an effect cannot be carried out, so none was */
    MC_FAULT_CODE_DESCRIPTOR_ROW_MISSING = 2, /* no row for this state and event, or a row without a thunk */
    MC_FAULT_CODE_DESCRIPTOR_THUNK_MISSING = 3,
    MC_FAULT_CODE_TOKEN_EXPIRED = 4 /* who polled the envelope did not commit in time */
};

/* payload1 of an owned box: its layout's number with this bit set. */
#define MC_PAYLOAD_LAYOUT_OWNED_MASK UINT64_C(0x8000000000000000)
#define MC_PAYLOAD_LAYOUT_ID_MASK UINT64_C(0x7fffffffffffffff)

static inline uint8_t mc_payload_layout_is_owned(uint64_t payload1) {
    return (uint8_t)((payload1 & MC_PAYLOAD_LAYOUT_OWNED_MASK) != 0);
}
static inline uint64_t mc_payload_layout_id(uint64_t payload1) { return payload1 & MC_PAYLOAD_LAYOUT_ID_MASK; }

/* --- Structs ----------------------------------------------------------------------------------------------------- */

/* A message. Of a request reply_cap_id is what its reply is sent with; of a reply pending_id says to which request, and
 * the origin_* fields are that request's payload and site. The runtime sets all of these. */
typedef struct mc_machine_envelope {
    uint64_t kind;
    uint64_t src; /* the machine that sent it, 0 for none */
    uint64_t reply_cap_id;
    uint64_t pending_id;
    uint64_t payload0;
    uint64_t payload1;
    uint64_t origin_payload0;
    uint64_t origin_payload1;
    uint64_t origin_request_site_key;
} mc_machine_envelope_t;

typedef struct mc_machine_outbox_effect {
    uint32_t dst;
    mc_machine_envelope_t env; /* delivered as it is */
} mc_machine_outbox_effect_t;

typedef struct mc_machine_request_effect {
    uint32_t dst;
    uint64_t pending_id;       /* 0: the runtime mints one; else it must not be pending */
    uint64_t request_site_key; /* where in the program it is asked; comes back with the reply */
    mc_machine_envelope_t env; /* kind and payload count */
} mc_machine_request_effect_t;

typedef struct mc_machine_reply_effect {
    uint64_t reply_cap_id;
    mc_machine_envelope_t env; /* kind and payload count */
} mc_machine_reply_effect_t;

typedef struct mc_subscription_update {
    mc_subscription_op_t op;
    uint32_t machine_id;
    uint64_t kind;
    uint64_t routing;
} mc_subscription_update_t;

/* What a handler asks for. It comes zeroed; the arrays are the handler's and are read once it has returned. */
typedef struct mc_machine_dispatch_txn {
    uint64_t has_next_state;
    uint64_t next_state;
    uint64_t next_state_tag; /* 0: the thunk's, if it has one, else unchanged */
    const mc_machine_outbox_effect_t *outbox;
    uint32_t outbox_len;
    const mc_subscription_update_t *subscriptions;
    uint32_t subscriptions_len;
    const mc_machine_request_effect_t *requests;
    uint32_t requests_len;
    const mc_machine_reply_effect_t *replies;
    uint32_t replies_len;
} mc_machine_dispatch_txn_t;

/* A row of a descriptor: which thunk handles an event in a state. */
typedef struct mc_machine_dispatch_row {
    uint64_t state_tag;
    uint64_t event_kind;
    uint64_t request_site_key; /* 0: any site that has no row of its own */
    uint64_t state_local_thunk_id;
    uint64_t fallback_thunk_id; /* when there is no state-local one */
} mc_machine_dispatch_row_t;

/* A runtime, where the caller wants it. Its insides are the library's. Do not copy or move it between init and drop. */
typedef struct mc_machine_runtime {
    uint64_t reserved[24];
} mc_machine_runtime_t;

/* --- Callbacks --------------------------------------------------------------------------------------------------- */

/* A handler. env dies with the call; *txn and *fault_code come zeroed. */
typedef mc_dispatch_result_t (*mc_machine_dispatch_txn_fn)(void *ctx, mc_machine_id_t machine_id, uint64_t state,
                                                           const mc_machine_envelope_t *env,
                                                           mc_machine_dispatch_txn_t *txn, uint64_t *fault_code);

/* An envelope could not be delivered; its box is freed after the hook. dst is 0 for a reply with an unknown capability. */
typedef void (*mc_dead_letter_hook_t)(void *ctx, mc_machine_id_t dst, mc_dead_letter_reason_t reason,
                                      const mc_machine_envelope_t *env);
typedef void (*mc_fault_hook_t)(void *ctx, mc_machine_id_t machine_id, uint64_t fault_code);
typedef void (*mc_pending_lifecycle_hook_t)(void *ctx, mc_machine_id_t requester, uint64_t pending_id,
                                            uint64_t request_site_key, mc_pending_cleanup_reason_t reason);

/* Drops what a box of a layout holds. The box itself is freed by the runtime. */
typedef void (*mc_payload_drop_fn)(void *box);

/* --- Functions --------------------------------------------------------------------------------------------------- */

/* One function, two names. */
#define MC_MACHINE_DECLARE_(result, name, parameters)                                                                  \
    MC_API result mc_machine_runtime_##name parameters MC_NOEXCEPT;                                                    \
    MC_API result __mc_machine_runtime_##name parameters MC_NOEXCEPT

/* Makes a runtime of memory that may hold anything. Of a live one: drops it first. Without memory it is no runtime.
 * Blocks: never. Threads: owner. Calls back: drop functions, on the caller's stack. */
MC_MACHINE_DECLARE_(void, init, (mc_machine_runtime_t * rt));

/* Ends a runtime: all machines, mail, pending requests and states, with no hook called. The memory is the caller's again. May
 * be repeated. Inside a handler of the same runtime, the runtime ends when the handler returns; it is unknown at once.
 * Attached, it waits for the handlers that run, which may call hooks still; but where the caller may not wait, such as in a handler,
 * the runtime ends after the last of them. No handler begins from then on, and no hook is called. Tokens expire; who asks, polls, sends
 * with patience or waits until it is idle gets MC_E_SHUTDOWN, and may have been in the call since before.
 * Blocks: never; attached: fiber | thread. Threads: owner; attached: any. Calls back: drop functions, on the caller's stack. */
MC_MACHINE_DECLARE_(void, drop, (mc_machine_runtime_t * rt));

/* Hooks; NULL for none. One ctx for all three.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(void, set_hooks,
                    (mc_machine_runtime_t * rt, mc_dead_letter_hook_t dead_letter, mc_fault_hook_t fault, void *ctx));
MC_MACHINE_DECLARE_(void, set_pending_hook, (mc_machine_runtime_t * rt, mc_pending_lifecycle_hook_t hook));

/* What becomes of machines that fault from now on; another value than the two is ignored.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(void, set_fault_policy, (mc_machine_runtime_t * rt, mc_machine_fault_policy_t policy));
MC_MACHINE_DECLARE_(mc_machine_fault_policy_t, fault_policy, (const mc_machine_runtime_t *rt));

/* A request that is this many steps old ends (TIMEOUT), at the end of a step. 0: never.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(void, set_pending_timeout_steps, (mc_machine_runtime_t * rt, uint64_t steps));
MC_MACHINE_DECLARE_(uint64_t, pending_timeout_steps, (const mc_machine_runtime_t *rt));

/* A machine, CREATED, whose mailbox holds mailbox_cap envelopes (0 means 1). 0: no memory, all ids used up, NULL out_id.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(uint8_t, spawn, (mc_machine_runtime_t * rt, uint32_t mailbox_cap, mc_machine_id_t *out_id));

/* CREATED to RUNNING, with the mail that has come. 0 for a machine that is not CREATED.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(uint8_t, start, (mc_machine_runtime_t * rt, mc_machine_id_t machine_id));

/* Stops a machine and frees all it has: its pending requests end (REQUESTER_STOPPED), its mail is freed without dead
 * letters. 1 also for one that was stopped before; 0 for an unknown one.
 * Blocks: never. Threads: owner. Calls back: the pending hook, drop functions, on the caller's stack. */
MC_MACHINE_DECLARE_(uint8_t, stop, (mc_machine_runtime_t * rt, mc_machine_id_t machine_id));

/* CREATED or RUNNING to FAULTED: its pending requests end (REQUESTER_FAULTED); no fault hook. 1 also for one that is
 * FAULTED; 0 for a stopped or unknown one.
 * Blocks: never. Threads: owner. Calls back: the pending hook, on the caller's stack. */
MC_MACHINE_DECLARE_(uint8_t, mark_faulted, (mc_machine_runtime_t * rt, mc_machine_id_t machine_id));

MC_MACHINE_DECLARE_(mc_machine_lifecycle_t, lifecycle, (const mc_machine_runtime_t *rt, mc_machine_id_t machine_id));

/* The state word. set_state replaces it (the one before is dropped, see above) and does nothing for a stopped machine.
 * Blocks: never. Threads: owner. Calls back: a drop function, on the caller's stack. */
MC_MACHINE_DECLARE_(void, set_state, (mc_machine_runtime_t * rt, mc_machine_id_t machine_id, uint64_t state));
MC_MACHINE_DECLARE_(uint64_t, state, (const mc_machine_runtime_t *rt, mc_machine_id_t machine_id));

/* The machine's handler: a function, a registered thunk (0: there is none, then nothing changes), or the rows of a registered
 * descriptor, whose thunks get rt as ctx, from the state initial_tag on (0: no such descriptor). The last binding counts. A
 * NULL fn unbinds. A machine without a handler consumes its envelopes.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(void, bind_dispatch,
                    (mc_machine_runtime_t * rt, mc_machine_id_t machine_id, mc_machine_dispatch_txn_fn fn, void *ctx));
MC_MACHINE_DECLARE_(uint8_t, bind_dispatch_thunk,
                    (mc_machine_runtime_t * rt, mc_machine_id_t machine_id, uint64_t thunk_id, void *ctx));
MC_MACHINE_DECLARE_(uint8_t, bind_descriptor,
                    (mc_machine_runtime_t * rt, mc_machine_id_t machine_id, uint64_t descriptor_id,
                     uint64_t initial_tag));

/* Sends an envelope as it is. What fails is a dead letter.
 * Blocks: never. Threads: owner. Calls back: the dead letter hook, a drop function, on the caller's stack. */
MC_MACHINE_DECLARE_(mc_mailbox_enqueue_result_t, enqueue,
                    (mc_machine_runtime_t * rt, mc_machine_id_t dst, const mc_machine_envelope_t *env));

/* Sends a request on behalf of src, to which the reply goes; the request's site is env's origin_request_site_key. *out_pending
 * (may be NULL) is the pending id, which is the reply capability too.
 * Blocks: never. Threads: owner. Calls back: as enqueue. */
MC_MACHINE_DECLARE_(mc_mailbox_enqueue_result_t, request,
                    (mc_machine_runtime_t * rt, mc_machine_id_t src, mc_machine_id_t dst,
                     const mc_machine_envelope_t *env, uint64_t *out_pending));

/* Replies to a request, from src, once.
 * Blocks: never. Threads: owner. Calls back: the pending hook, the dead letter hook, a drop function, on the caller's stack. */
MC_MACHINE_DECLARE_(mc_machine_reply_result_t, reply,
                    (mc_machine_runtime_t * rt, mc_machine_id_t src, uint64_t reply_cap_id,
                     const mc_machine_envelope_t *env));

/* One step: 1 when an envelope was consumed, whatever came of it; 0 when no machine is ready, or inside a handler of the
 * same runtime. fn (may be NULL) is called instead of the machine's own handler.
 * Blocks: never, unless the handler does. Threads: owner. Calls back: the handler, hooks, drop functions, on the caller's
 * stack. */
MC_MACHINE_DECLARE_(uint8_t, dispatch_one_txn, (mc_machine_runtime_t * rt, mc_machine_dispatch_txn_fn fn, void *ctx));

/* Numbers: entries of the ready queue (stale ones too), envelopes in a mailbox, subscriptions and pending requests of the
 * whole runtime; how many requests were made, how many ended for a reason, how many machines were stopped.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(uint32_t, ready_len, (const mc_machine_runtime_t *rt));
MC_MACHINE_DECLARE_(uint32_t, mailbox_len, (const mc_machine_runtime_t *rt, mc_machine_id_t machine_id));
MC_MACHINE_DECLARE_(uint32_t, subscription_len, (const mc_machine_runtime_t *rt));
MC_MACHINE_DECLARE_(uint32_t, pending_len, (const mc_machine_runtime_t *rt));
MC_MACHINE_DECLARE_(uint64_t, pending_created_count, (const mc_machine_runtime_t *rt));
MC_MACHINE_DECLARE_(uint64_t, pending_cleanup_count,
                    (const mc_machine_runtime_t *rt, mc_pending_cleanup_reason_t reason));
MC_MACHINE_DECLARE_(uint64_t, stopped_cleanup_count, (const mc_machine_runtime_t *rt));

/* Whether there is such a subscription, or such a pending request; and its site, 0 for none.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_MACHINE_DECLARE_(uint8_t, subscription_contains,
                    (const mc_machine_runtime_t *rt, mc_machine_id_t machine_id, mc_machine_event_kind_t kind,
                     uint64_t routing));
MC_MACHINE_DECLARE_(uint8_t, pending_contains, (const mc_machine_runtime_t *rt, uint64_t pending_id));
MC_MACHINE_DECLARE_(uint8_t, pending_contains_identity,
                    (const mc_machine_runtime_t *rt, uint64_t pending_id, uint64_t request_site_key));
MC_MACHINE_DECLARE_(uint64_t, pending_request_site, (const mc_machine_runtime_t *rt, uint64_t pending_id));

/* --- On executors ------------------------------------------------------------------------------------------------
 *
 * A runtime that is attached to executors is not stepped any more: whatever is ready runs, one envelope of a machine at a time,
 * different machines in parallel, each dispatch a transaction still. All transactions, and all direct calls, are as if one
 * after another: none sees half of another's effects, and no effect comes before its cause. What one machine sends to
 * another arrives in the order in which it was sent.
 *
 * Functions of this section return MC_OK or a negative code.
 *
 * What is different while a runtime is attached:
 *   Threads      any thread may call any function, and several at once; handlers, hooks and drop functions are called on executors'
 *                threads, several at once, but only one handler of a machine at a time. Hooks, the fault policy, and the choices
 *                below are set before attaching: they cannot be changed, which is logged.
 *   Handlers     run on the executor's own stack: a blocking call in one returns MC_E_CONTEXT.
 *   Stepping     is refused: IDLE, 0.
 *   Stop, fault  hooks of a machine's requests are called when it has ended already, and before anything else.
 *   Timeouts     by steps count all machines' dispatches, and end a request some steps late at most.
 *   Pending ids  are given to executors in blocks, so they are not in the order of the requests.
 *   Callers      who sends from outside sends at once, whatever handlers run.
 *   Allocation   __mc_alloc and __mc_free may be called with machines locked: a program's own must not call a function of this header.
 *   Fork         in the child, what waits or needs executors returns MC_E_FORKED.
 *   Simulation   threads of the program's own get MC_E_SIM from what waits.
 *
 * A runtime may be dropped while others are in calls with it, or make new ones, as long as its mc_machine_runtime_t stays where it is and
 * is not initialised anew: those of __mc_machine_runtime_new can always be, since their numbers are never used again. It must
 * not be detached while another thread may call a function with it that is the owner's when it is stepped.
 *
 * Deadlines are in nanoseconds of the steady clock (mc_after, mc_now); MC_FOREVER is none, MC_NOW has passed. Timeouts are in
 * nanoseconds. */

/* What becomes of a dispatch when a machine that it sends to has no room. */
enum {
    MC_MACHINE_ON_FULL_FAULT = 0, /* it is rejected: the machine faults, as when stepping */
    MC_MACHINE_ON_FULL_RETRY =
        1 /* nothing happens; the same envelope is dispatched again when there is room. So a handler may
                                   * run several times for one envelope. Rejected all the same: what could never fit, and what
                                   * would wait for a machine that waits, in the end, for this one. Until it is done with, the
                                   * envelope counts in its mailbox. */
};

/* What becomes of a dispatch that replies to a request which has ended. */
enum {
    MC_MACHINE_ON_LATE_REPLY_FAULT = 0, /* it is rejected: the machine faults, as when stepping */
    MC_MACHINE_ON_LATE_REPLY_DISCARD =
        1 /* nothing of it happens, the envelope is consumed; the reply is a dead letter */
};

/* For when the runtime is attached; both are FAULT to begin with. MC_E_STALE: no such runtime. MC_E_INVAL: another value.
 * MC_E_BUSY: it is attached.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_API int32_t mc_machine_set_on_full(mc_machine_runtime_t *rt, uint32_t what) MC_NOEXCEPT;
MC_API int32_t mc_machine_set_on_late_reply(mc_machine_runtime_t *rt, uint32_t what) MC_NOEXCEPT;

/* A request that is this old, in nanoseconds, ends (TIMEOUT), while the runtime is attached; 0: never, as to begin with. It counts
 * from when the request is sent. Beside the timeout by steps; whichever is first ends it. A change counts for requests that
 * are pending, too, but an earlier end may be noticed only when the former one would have been.
 * MC_E_STALE, MC_E_INVAL: below 0.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_machine_set_request_timeout(mc_machine_runtime_t *rt, int64_t timeout_ns) MC_NOEXCEPT;

/* Attaches a runtime that is idle to the executors of `runtime` (0: the calling task's, else the default one), to as many as run
 * now, 64 at most; in single-processor mode, and in simulation, to the one. It must be detached, or dropped, before `runtime` is
 * shut down, which is refused before (MC_E_BUSY), but for the default one. Requests from before time out from then on, too.
 * MC_E_STALE: no such runtime, of either kind. MC_E_BUSY: it is attached already, or a machine is ready, or the call comes
 * from inside one of its callbacks. MC_E_SHUTDOWN: `runtime` is being shut down. MC_E_FORKED. MC_E_NOMEM: nothing has changed.
 * Blocks: never. Threads: owner. Calls back: no. */
MC_API int32_t mc_machine_attach(mc_machine_runtime_t *rt, mc_runtime_t runtime) MC_NOEXCEPT;

/* Makes an attached runtime one that is stepped again; the caller is its owner.
 * MC_E_STALE: no such runtime. MC_E_INVAL: it is not attached. MC_E_BUSY: a machine is ready, or its mail waits to be polled, a
 * handler runs, somebody asks, or another call is under way and does not end within a tenth of a second. MC_E_NOMEM: nothing has
 * changed.
 * Blocks: fiber | thread, that long. Threads: any. Calls back: no. */
MC_API int32_t mc_machine_detach(mc_machine_runtime_t *rt) MC_NOEXCEPT;

/* Until no machine is ready and no handler runs: attached, waits for that; else steps, as often as it takes. Machines that wait
 * for room, and requests that wait for replies, do not count; attached, those that have mail to be polled, or a token, do.
 * MC_E_STALE: no such runtime. MC_E_TIMEDOUT, MC_E_CANCELED, MC_E_DEADLOCK, MC_E_SHUTDOWN: the wait's end, or the runtime's.
 * MC_E_CONTEXT: inside a handler, or wherever the caller may not wait. MC_E_NOMEM: of a thread's first call.
 * Blocks: fiber | thread. Threads: any; not attached: owner. Calls back: not attached: as a step. */
MC_API int32_t mc_machine_run_until_idle(mc_machine_runtime_t *rt, int64_t deadline_ns) MC_NOEXCEPT;

/* Sends to a machine of an attached runtime, as mc_machine_runtime_enqueue, but waits while its mailbox is full, behind those that wait
 * there already, machines (RETRY) among them: first come, first served. But a machine that needs more room than there is lets those
 * pass that need less; and who does not wait, by mc_machine_runtime_enqueue or a transaction, takes what room there is when he comes.
 * What is not sent in the end is a dead letter.
 * MC_E_STALE: no such runtime. MC_E_NOTSUP: it is not attached. MC_E_NOENT, MC_E_CLOSED: dst is unknown, does not take mail.
 * MC_E_NOMEM. MC_E_TIMEDOUT, MC_E_CANCELED, MC_E_DEADLOCK, MC_E_SHUTDOWN, MC_E_CONTEXT: the wait's end.
 * Blocks: fiber | thread. Threads: any. Calls back: as enqueue. */
MC_API int32_t mc_machine_send_until(mc_machine_runtime_t *rt, mc_machine_id_t dst, uint64_t kind, uint64_t payload0,
                                     uint64_t payload1, int64_t deadline_ns) MC_NOEXCEPT;

/* Sends a request from outside all machines, to an attached runtime, and waits for its reply, which is written to *reply (may be
 * NULL). A box in the reply is the caller's from then on, to be freed with __mc_free (unless reply is NULL: then it is dropped): so
 * a handler that replies with a box must not send that elsewhere, too, or its transaction is rejected. One in the request is the
 * runtime's, whatever the call returns but for MC_E_STALE and MC_E_NOTSUP, and is dropped at the latest when the reply has come.
 * MC_E_STALE: no such runtime. MC_E_NOTSUP: it is not attached. MC_E_NOENT, MC_E_CLOSED, MC_E_FULL: dst is unknown, does not take
 * mail, has no room (it is a dead letter then). MC_E_NOMEM. MC_E_CONTEXT: the caller may not wait; nothing was sent.
 * MC_E_TIMEDOUT: no reply by the deadline, or within the runtime's request timeout. MC_E_CANCELED, MC_E_DEADLOCK, MC_E_SHUTDOWN: the
 * wait's end, or the runtime's. After any of these four the request has ended (TIMEOUT, for the hook), and a reply to it comes too
 * late: with FAULT, as to begin with, that faults the machine that replies, so who asks with deadlines wants DISCARD. When the
 * deadline has passed already nothing is sent. A machine that faults or stops answers nothing: only the deadline ends the wait then.
 * Blocks: fiber | thread. Threads: any. Calls back: the pending hook (with requester 0), drop functions, on the caller's stack. */
MC_API int32_t mc_machine_ask(mc_machine_runtime_t *rt, mc_machine_id_t dst, uint64_t kind, uint64_t payload0,
                              uint64_t payload1, int64_t deadline_ns, mc_machine_envelope_t *reply) MC_NOEXCEPT;

/* --- Polling: transactions by hand -------------------------------------------------------------------------------
 *
 * A machine that is bound to be polled has no handler: while its runtime is attached, threads and microthreads take its envelopes,
 * each with a token, say what is to happen, and commit it. Until then the machine is as one whose handler runs. While the
 * runtime is stepped, it only takes mail. A token is used by one thread at a time. */

typedef uint64_t mc_txn_t; /* a token; 0 is none, and one that has ended gets MC_E_STALE */

/* An envelope in the hands of who polled it. Its boxes are the runtime's, and stay until the token has ended. */
typedef struct mc_machine_polled {
    mc_txn_t token;
    uint64_t state; /* the machine's */
    mc_machine_id_t machine;
    uint32_t reserved;
    mc_machine_envelope_t envelope;
} mc_machine_polled;

/* The machine is polled from now on, until it is bound otherwise; with `alone` not 0 only by mc_machine_poll_one, for a microthread that
 * serves this machine and no other: one that passes its envelopes on into a channel, say. MC_E_STALE: no such runtime.
 * MC_E_NOENT: no such machine.
 * Blocks: never. Threads: any; not attached: owner. Calls back: no. */
MC_API int32_t mc_machine_bind_poll(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, uint32_t alone) MC_NOEXCEPT;

/* The first envelope of the polled machine that has waited longest; waits until there is one. *out is written on success only.
 * MC_E_STALE: no such runtime. MC_E_INVAL: NULL, or room for none. MC_E_NOTSUP: it is not attached. MC_E_SHUTDOWN: it has been
 * dropped. MC_E_NOMEM. MC_E_TIMEDOUT (MC_NOW: there is none), MC_E_CANCELED, MC_E_DEADLOCK, MC_E_CONTEXT: the wait's end.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_machine_poll(mc_machine_runtime_t *rt, int64_t deadline_ns, mc_machine_polled *out) MC_NOEXCEPT;
/* The same for a machine that is polled alone. MC_E_INVAL: machine_id 0. A machine that has stopped, or is bound otherwise, is waited
 * for. */
MC_API int32_t mc_machine_poll_one(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, int64_t deadline_ns,
                                   mc_machine_polled *out) MC_NOEXCEPT;
/* As mc_machine_poll for up to `most` at once: waits for the first, then takes what is there. *count says how many. */
MC_API int32_t mc_machine_poll_batch(mc_machine_runtime_t *rt, int64_t deadline_ns, mc_machine_polled *out,
                                     uint32_t most, uint32_t *count) MC_NOEXCEPT;

/* A token that is this old, in nanoseconds, ends: its machine faults with MC_FAULT_CODE_TOKEN_EXPIRED. 0: never, as after attaching.
 * Counts for those that are open, too. MC_E_STALE, MC_E_INVAL: below 0. MC_E_NOTSUP: it is not attached.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_machine_set_token_timeout(mc_machine_runtime_t *rt, int64_t timeout_ns) MC_NOEXCEPT;

/* What is to happen when the token is committed, as the functions __mc_machine_emit_X of mc/bridge.h; subscribe is for the machine
 * itself; of several states the last counts. MC_E_STALE: the token has ended, or another thread is using it. MC_E_INVAL: an id
 * above 2^32 - 1, a box to publish. MC_E_NOMEM. After a failure a box is the caller's still.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_txn_send(mc_txn_t txn, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) MC_NOEXCEPT;
MC_API int32_t mc_txn_request(mc_txn_t txn, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                              uint64_t request_site_key, uint64_t *pending) MC_NOEXCEPT;
MC_API int32_t mc_txn_reply(mc_txn_t txn, uint64_t reply_cap_id, uint64_t kind, uint64_t payload0,
                            uint64_t payload1) MC_NOEXCEPT;
MC_API int32_t mc_txn_publish(mc_txn_t txn, uint64_t kind, uint64_t routing, uint64_t payload0,
                              uint64_t payload1) MC_NOEXCEPT;
MC_API int32_t mc_txn_subscribe(mc_txn_t txn, uint64_t kind, uint64_t routing) MC_NOEXCEPT;
MC_API int32_t mc_txn_unsubscribe(mc_txn_t txn, uint64_t kind, uint64_t routing) MC_NOEXCEPT;
MC_API int32_t mc_txn_set_state(mc_txn_t txn, uint64_t state) MC_NOEXCEPT;

/* Ends the token: everything happens, or nothing. MC_OK: it has happened. Else nothing of it: MC_E_CRASHED: it was rejected, and the
 * machine faults (TXN_COMMIT_REJECTED); MC_E_AGAIN: a receiver has no room (RETRY), so the envelope will be polled once more;
 * MC_E_NOENT: a reply came too late (DISCARD), the envelope is consumed; MC_E_CLOSED: the machine has stopped or faulted
 * meanwhile. MC_E_STALE: the token had ended.
 * Blocks: never. Threads: any. Calls back: hooks, drop functions, on the caller's stack. */
MC_API int32_t mc_txn_commit(mc_txn_t txn) MC_NOEXCEPT;
/* Ends the token: nothing happens, and the machine faults with this code. MC_E_STALE: the token had ended.
 * Blocks: never. Threads: any. Calls back: as mc_txn_commit. */
MC_API int32_t mc_txn_abort(mc_txn_t txn, uint64_t fault_code) MC_NOEXCEPT;

/* The same by a runtime's word (mc/bridge.h), in every respect; an id above 2^32 - 1 is no machine's. */
MC_API int32_t mc_machine_set_on_full_u64(uint64_t rt, uint32_t what) MC_NOEXCEPT;
MC_API int32_t mc_machine_set_on_late_reply_u64(uint64_t rt, uint32_t what) MC_NOEXCEPT;
MC_API int32_t mc_machine_set_request_timeout_u64(uint64_t rt, int64_t timeout_ns) MC_NOEXCEPT;
MC_API int32_t mc_machine_attach_u64(uint64_t rt, mc_runtime_t runtime) MC_NOEXCEPT;
MC_API int32_t mc_machine_detach_u64(uint64_t rt) MC_NOEXCEPT;
MC_API int32_t mc_machine_run_until_idle_u64(uint64_t rt, int64_t deadline_ns) MC_NOEXCEPT;
MC_API int32_t mc_machine_send_until_u64(uint64_t rt, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                                         int64_t deadline_ns) MC_NOEXCEPT;
MC_API int32_t mc_machine_bind_poll_u64(uint64_t rt, uint64_t machine, uint32_t alone) MC_NOEXCEPT;
MC_API int32_t mc_machine_poll_one_u64(uint64_t rt, uint64_t machine, int64_t deadline_ns,
                                       mc_machine_polled *out) MC_NOEXCEPT;
MC_API int32_t mc_machine_poll_u64(uint64_t rt, int64_t deadline_ns, mc_machine_polled *out) MC_NOEXCEPT;
MC_API int32_t mc_machine_poll_batch_u64(uint64_t rt, int64_t deadline_ns, mc_machine_polled *out, uint32_t most,
                                         uint32_t *count) MC_NOEXCEPT;
MC_API int32_t mc_machine_set_token_timeout_u64(uint64_t rt, int64_t timeout_ns) MC_NOEXCEPT;
MC_API int32_t mc_machine_ask_u64(uint64_t rt, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                                  int64_t deadline_ns, mc_machine_envelope_t *reply) MC_NOEXCEPT;

/* --- Registries -------------------------------------------------------------------------------------------------- */

/* A thunk: a handler by number. next_tag, when it is not 0, is the tag of the state that the handler leads to. Registering
 * a number again replaces function and tag. Number 0 and a NULL fn are ignored. lookup: NULL for none.
 * Blocks: never. Threads: any. Calls back: no. */
MC_MACHINE_DECLARE_(void, register_thunk, (uint64_t thunk_id, mc_machine_dispatch_txn_fn fn));
MC_MACHINE_DECLARE_(void, register_thunk_meta, (uint64_t thunk_id, mc_machine_dispatch_txn_fn fn, uint64_t next_tag));
MC_MACHINE_DECLARE_(mc_machine_dispatch_txn_fn, lookup_thunk, (uint64_t thunk_id));

/* What drops the boxes of a layout. Registering a layout again replaces it. Layout 0 and a NULL drop are ignored.
 * Blocks: never. Threads: any. Calls back: no. */
MC_MACHINE_DECLARE_(void, register_payload_drop, (mc_payload_layout_id_t layout, mc_payload_drop_fn drop));
MC_MACHINE_DECLARE_(mc_payload_drop_fn, lookup_payload_drop, (mc_payload_layout_id_t layout));

/* A descriptor: what a compiler makes of a type of machine, as bytes (docs/machines.md has the format). It is copied.
 * Its number, from 1; 0 when the bytes are not a descriptor, or there is no memory. The same bytes get a new number each
 * time. Blocks: never. Threads: any. Calls back: no. */
MC_MACHINE_DECLARE_(uint64_t, register_descriptor, (const uint8_t *bytes, uint64_t len));

/* --- Descriptors, read ------------------------------------------------------------------------------------------- */

/* What a descriptor says, entry by entry in the order of its bytes, which schema 1 fixes. Strings are bytes of the
 * descriptor, any bytes, with no 0 behind them. */
typedef struct mc_machine_descriptor_head {
    const char *name; /* of the type of machine */
    uint64_t name_len;
    uint32_t states; /* how many there are of each */
    uint32_t events;
    uint32_t rows;
    uint32_t roles;
} mc_machine_descriptor_head;

typedef struct mc_machine_descriptor_state {
    uint64_t tag;
    uint64_t type_def; /* the compiler's number of the type */
    uint64_t layout;   /* of the boxes that its tokens point to; 0: the program owns them */
    const char *name;
    uint64_t name_len;
} mc_machine_descriptor_state;

typedef struct mc_machine_descriptor_event {
    uint64_t kind;
    uint64_t layout;
    uint32_t key_kind; /* 0: a name; 1: two */
    uint32_t reserved;
    const char *name;
    uint64_t name_len;
    const char *second_name; /* with key_kind 0 empty */
    uint64_t second_name_len;
} mc_machine_descriptor_event;

typedef struct mc_machine_descriptor_role {
    const char *path;
    uint64_t path_len;
    uint64_t def; /* the compiler's number of the role */
} mc_machine_descriptor_role;

/* Who is told: each may be NULL. An entry dies with the call, its strings with the bytes. */
typedef struct mc_machine_descriptor_visitor {
    uint32_t struct_size;
    uint32_t reserved; /* 0 */
    void (*head)(void *user, const mc_machine_descriptor_head *head);
    void (*state)(void *user, const mc_machine_descriptor_state *state);
    void (*event)(void *user, const mc_machine_descriptor_event *event);
    void (*row)(void *user, const mc_machine_dispatch_row_t *row);
    void (*role)(void *user, const mc_machine_descriptor_role *role);
} mc_machine_descriptor_visitor;
#define MC_MACHINE_DESCRIPTOR_VISITOR_INIT                                                                             \
    { (uint32_t)sizeof(mc_machine_descriptor_visitor), 0, 0, 0, 0, 0, 0 }

/* Room for the longest text of mc_machine_descriptor_parse. */
#define MC_MACHINE_DESCRIPTOR_ERROR_BYTES 200

/* Reads a descriptor without registering it; unlike its neighbours it returns MC_OK or a negative code. It accepts what
 * register_descriptor accepts. The visitor (NULL: check only) is told of nothing before all bytes have been checked; they
 * must not change meanwhile.
 * MC_E_INVAL: the bytes are not a descriptor, and *error (when it is not NULL) says where and why, such as
 * "offset 61: event 3: key kind 7 is neither 0 nor 1", cut to error_size bytes with its 0; or the visitor is not valid, and
 * then error is untouched, as after every other code. MC_E_VERSION: a visitor of a newer kind than this library knows.
 * MC_E_CRASHED: a C++ exception left the visitor, which was told no more.
 * Blocks: never. Threads: any. Calls back: the visitor, on the caller's stack. */
MC_API int32_t mc_machine_descriptor_parse(const void *bytes, uint64_t len,
                                           const mc_machine_descriptor_visitor *visitor, void *user, char *error,
                                           uint64_t error_size) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_MACHINE_H */
