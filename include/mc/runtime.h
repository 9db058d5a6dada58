/* mc/runtime.h: microthreads with results, stack sizes and names; the runtime under every model.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 *
 * Where a call takes an mc_runtime_t, 0 means the runtime of the calling task, else the default one. The default
 * runtime is in single-processor mode: the thread whose call first needs it owns it, and its microthreads run whenever
 * that thread blocks, yields or runs them (mc/csp.h tells the order); until csp_init_runtime gives it executors, threads
 * of its own that run all microthreads in parallel.
 */
#ifndef MC_RUNTIME_H
#define MC_RUNTIME_H

#include "base.h"
#include "scope.h"
#include "sync.h"

MC_EXTERN_C_BEGIN

/* What a microthread runs. Its return value is the result that mc_join gives. A C++ exception that leaves it ends the
 * microthread with the result MC_E_CRASHED. */
typedef int32_t (*mc_task_fn)(void *user);

/* Bounds of a stack size, in bytes, and the size that is used when none is asked for. Sizes are rounded up to a power
 * of two; up to 1 KiB of it is kept by the library. */
#define MC_STACK_MIN UINT64_C(4096)
#define MC_STACK_DEFAULT UINT64_C(32768)
#define MC_STACK_MAX UINT64_C(8388608)

/* Flags of mc_spawn_options. PINNED: the microthread stays with the executor that it is given to: the caller's, or any
 * when the caller is no microthread. LOW and HIGH (one of them): a quarter of, or four times, the usual quantum. Alone
 * (single-processor mode) they change nothing. */
enum { MC_SPAWN_PINNED = 1, MC_SPAWN_LOW = 2, MC_SPAWN_HIGH = 4 };

typedef struct mc_spawn_options {
    uint32_t struct_size;
    uint32_t flags;      /* MC_SPAWN_* */
    uint64_t stack_size; /* bytes, MC_STACK_MIN to MC_STACK_MAX; 0 is MC_STACK_DEFAULT */
    const char *name;    /* copied, 31 bytes of it; may be NULL */
} mc_spawn_options;
#define MC_SPAWN_OPTIONS_INIT                                                                                          \
    { (uint32_t)sizeof(mc_spawn_options), 0, 0, 0 }

/* Starts a microthread. It joins the tail of its runtime's queue; the caller goes on. options may be NULL. out may be
 * NULL, which detaches the microthread: nobody can join it. A handle must be given to mc_join or mc_detach once.
 * MC_E_INVAL: NULL fn, a stack size out of range, unknown flags. MC_E_VERSION: options of a newer header with fields
 * set that this library does not know. MC_E_NOMEM: no memory, mappings or stacks. MC_E_STALE: no such runtime.
 * MC_E_FORKED. Blocks: never. Threads: any. Calls back: fn, on its own stack. */
MC_API int32_t mc_spawn(mc_runtime_t rt, mc_task_fn fn, void *user, const mc_spawn_options *options,
                        mc_task_t *out) MC_NOEXCEPT;

/* Waits until the microthread has ended; then stores its result (result may be NULL) and uses up the handle. Any task
 * or thread may wait, several at once too: the first to see the end uses up the handle, the others get MC_E_STALE.
 * MC_E_TIMEDOUT: the deadline passed (steady clock; MC_NOW only looks); the handle stays good. MC_E_DEADLOCK: the
 * caller is that microthread, or nothing is left that could end the wait. MC_E_STALE. MC_E_CANCELED. MC_E_CONTEXT.
 * MC_E_FORKED.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_join(mc_task_t task, int64_t deadline_ns, int32_t *result) MC_NOEXCEPT;

/* Gives up the handle: the microthread goes on, nobody can join it. MC_E_STALE, also for waiters in mc_join at that
 * time.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_detach(mc_task_t task) MC_NOEXCEPT;

/* For microthreads that compute for long between other calls: lets timers fire and other threads' tasks in now and then
 * (about every 200 microseconds), and gives up the turn when the quantum (1 ms, or 4,000 calls) is over; in
 * single-processor mode, whenever it has let others in. Elsewhere, and inside tx, it does nothing. MC_OK; MC_E_CANCELED: the
 * calling task's scope (mc/scope.h) is cancelled; MC_E_FORKED, MC_E_SHUTDOWN or MC_E_NOMEM as any first call.
 * Blocks: fiber. Threads: any. Calls back: no. */
MC_API int32_t mc_checkpoint(void) MC_NOEXCEPT;

/* Gives up the turn: other tasks of the runtime run first. A thread that owns no runtime lets other threads run. Does nothing
 * inside tx. MC_OK; MC_E_CANCELED: the calling task's scope is cancelled (it has given up its turn all the same); MC_E_FORKED,
 * MC_E_SHUTDOWN or MC_E_NOMEM as any first call. Blocks: fiber. Threads: any. Calls back: no. */
MC_API int32_t mc_yield(void) MC_NOEXCEPT;

/* Waits for ns nanoseconds, or until a time of the steady clock; what has passed already is a yield. MC_OK: the time has
 * come. MC_E_CANCELED, MC_E_SHUTDOWN: it has not. MC_E_CONTEXT; MC_E_FORKED or MC_E_NOMEM as any first call.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_sleep(int64_t ns) MC_NOEXCEPT;
MC_API int32_t mc_sleep_until(int64_t deadline_ns) MC_NOEXCEPT;

/* The handle of the calling microthread, the one that mc_spawn stored. 0 for a microthread that nobody can join
 * (spawned without a handle, or detached) and on a stack that is no microthread's. Blocks: never. Threads: any. Calls
 * back: no. */
MC_API mc_task_t mc_task_self(void) MC_NOEXCEPT;

/* Installs (on != 0) or removes (on == 0) a handler for SIGSEGV and SIGBUS that writes one line to standard error
 * naming the microthread whose stack overflowed, then hands the signal to the handler that was there before. It runs
 * on an alternate signal stack that threads running microthreads get. Off by default: the library installs no handler
 * unasked.
 * MC_E_NOMEM: no alternate stack. MC_E_BUSY: on removal, somebody else has replaced the handler since; it stays.
 * MC_E_FORKED.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_overflow_report(int32_t on) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_RUNTIME_H */
