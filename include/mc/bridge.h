/* mc/bridge.h: machines, for compiled code that has 64-bit words alone: runtimes and pointers as words, effects that a
 * handler emits without knowing its runtime, one runtime for the whole process, and the allocator of boxes.
 *
 * Success: functions return 1 on success and 0 otherwise, or a value of the enum of mc/machine.h that says how it went.
 *
 * A runtime's word is the address of an mc_machine_runtime_t, one of __mc_machine_runtime_new's or of the caller's own. It is
 * looked up before it is used: with a stale or random word, and with a machine's id above 2^32 - 1, a call does nothing.
 * Then _send_u64 is 1 (MACHINE_UNKNOWN), _reply_u64 is 1 (CAP_UNKNOWN), _step_u64 is 0 (IDLE), all else is 0.
 *
 * A program may define
 *     MC_API void __mc_machine_bootstrap(void);
 * which registers its thunks, payload layouts and descriptors. It is called once, by the first __mc_machine_runtime_new (or
 * _managed_bootstrap_u64), which it may call itself; others that come meanwhile wait for it, so it must not wait for them.
 */
#ifndef MC_BRIDGE_H
#define MC_BRIDGE_H

#include "base.h"
#include "machine.h"

#include <stddef.h>

MC_EXTERN_C_BEGIN

/* --- Runtimes and machines ---------------------------------------------------------------------------------------- */

/* A runtime; 0 without memory, or when the wait for another's bootstrap was ended (a scope's end, shutdown). free ends one of
 * these (the managed one too, then there is none), or drops one that the caller has initialised. A word is never used again.
 * Blocks: new: fiber | thread, while another runs __mc_machine_bootstrap; free: never. Threads: any; free: owner. Calls
 * back: new: __mc_machine_bootstrap; free: drop functions; on the caller's stack. */
MC_MACHINE_DECLARE_(uint64_t, new, (void));
MC_MACHINE_DECLARE_(void, free, (uint64_t rt));

/* The managed runtime, one for the process: makes it, unless it is there (0: as new); says which (0: none); ends it
 * (1, or 0 when there was none).
 * Blocks: bootstrap: as new; the others: never. Threads: any; shutdown: owner. Calls back: as new and free. */
MC_MACHINE_DECLARE_(uint64_t, managed_bootstrap_u64, (void));
MC_MACHINE_DECLARE_(uint64_t, managed_current_u64, (void));
MC_MACHINE_DECLARE_(uint64_t, managed_shutdown_u64, (void));

/* As the functions of mc/machine.h. spawn: the machine's id, or 0. request: the pending id, or 0. send, reply and step: values of
 * mc_mailbox_enqueue_result_t, mc_machine_reply_result_t and mc_machine_step_status_t. The rest: 1 or 0.
 * Blocks: never. Threads: owner. Calls back: as those. */
MC_MACHINE_DECLARE_(uint64_t, spawn_u64, (uint64_t rt, uint64_t mailbox_cap));
MC_MACHINE_DECLARE_(uint64_t, start_u64, (uint64_t rt, uint64_t machine_id));
MC_MACHINE_DECLARE_(uint64_t, set_state_u64, (uint64_t rt, uint64_t machine_id, uint64_t state));
MC_MACHINE_DECLARE_(uint64_t, send_u64,
                    (uint64_t rt, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1));
MC_MACHINE_DECLARE_(uint64_t, request_u64,
                    (uint64_t rt, uint64_t src, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1));
MC_MACHINE_DECLARE_(uint64_t, reply_u64,
                    (uint64_t rt, uint64_t src, uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1));
MC_MACHINE_DECLARE_(uint64_t, bind_dispatch_u64, (uint64_t rt, uint64_t machine_id, uint64_t fn, uint64_t ctx));
MC_MACHINE_DECLARE_(uint64_t, bind_dispatch_thunk_u64,
                    (uint64_t rt, uint64_t machine_id, uint64_t thunk_id, uint64_t ctx));
MC_MACHINE_DECLARE_(uint64_t, bind_descriptor_u64,
                    (uint64_t rt, uint64_t machine_id, uint64_t descriptor_id, uint64_t initial_tag));
MC_MACHINE_DECLARE_(uint64_t, step_u64, (uint64_t rt));

/* As the registries of mc/machine.h. Blocks: never. Threads: any. Calls back: no. */
MC_MACHINE_DECLARE_(void, register_thunk_u64, (uint64_t thunk_id, uint64_t fn));
MC_MACHINE_DECLARE_(void, register_thunk_meta_u64, (uint64_t thunk_id, uint64_t fn, uint64_t next_tag));
MC_MACHINE_DECLARE_(void, register_payload_drop_u64, (uint64_t layout, uint64_t drop));
MC_MACHINE_DECLARE_(uint64_t, register_descriptor_u64, (uint64_t bytes, uint64_t len));

/* --- What a handler emits ----------------------------------------------------------------------------------------- */

/* Stages an effect of the handler that the calling task runs; it happens if the handler's transaction commits. Outside a
 * handler, without memory, or with a dst above 2^32 - 1: 0, and nothing is staged; the payload's box is the caller's still. A
 * box that was staged belongs to the runtime, whatever becomes of the transaction.
 * send and reply: 1. request: the pending id. publish: 1; a copy of the event for each machine that subscribes to this kind
 * and routing when the transaction commits; one whose mailbox is full misses it (a dead letter). An owned box cannot be
 * published: 0.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API uint8_t __mc_machine_emit_send(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) MC_NOEXCEPT;
MC_API uint64_t __mc_machine_emit_request(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                                          uint64_t request_site_key) MC_NOEXCEPT;
MC_API uint8_t __mc_machine_emit_reply(uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1) MC_NOEXCEPT;
MC_API uint8_t __mc_machine_emit_publish(uint64_t kind, uint64_t routing, uint64_t payload0,
                                         uint64_t payload1) MC_NOEXCEPT;

/* --- Boxes -------------------------------------------------------------------------------------------------------- */

/* The allocator of payload and state boxes, and of mailboxes. Size 0 is NULL. align is a power of two. A program may
 * define __mc_alloc, __mc_realloc and __mc_free itself, all three: the library then calls the program's, in __rt_alloc and
 * its siblings too, which a program may define likewise.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void *__mc_alloc(size_t size, size_t align) MC_NOEXCEPT;
MC_API void *__mc_realloc(void *ptr, size_t size, size_t align) MC_NOEXCEPT;
MC_API void __mc_free(void *ptr) MC_NOEXCEPT;
MC_API void *__rt_alloc(uint64_t size, uint64_t align) MC_NOEXCEPT;
MC_API void *__rt_realloc(void *ptr, uint64_t size, uint64_t align) MC_NOEXCEPT;
MC_API void __rt_free(void *ptr) MC_NOEXCEPT;

/* Blocks that live, and how many were ever allocated and freed, by the library's own definitions. With trace on, each
 * allocation and each free is a line on standard error.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API uint64_t __mc_alloc_live_blocks(void) MC_NOEXCEPT;
MC_API uint64_t __mc_alloc_total_allocs(void) MC_NOEXCEPT;
MC_API uint64_t __mc_alloc_total_frees(void) MC_NOEXCEPT;
MC_API void __mc_set_alloc_trace(uint8_t on) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_BRIDGE_H */
