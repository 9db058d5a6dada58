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

MC_EXTERN_C_BEGIN

/* --- runtimes ---
 *
 * A process may have several: each has executors (threads) of its own, and its microthreads stay with them; they use each
 * other's channels, mutexes and so on freely. The default one is there from the first call on. */

/* Flags of mc_runtime_options. DEFAULT: give these options and executors to the default runtime, in place of making another one.
 * OVERFLOW_REPORT: as mc_overflow_report(1). */
enum { MC_RUNTIME_DEFAULT = 1, MC_RUNTIME_OVERFLOW_REPORT = 2 };

/* How a runtime runs: THREADS, executors with threads of their own. SIMULATION: the whole process is simulated with the options' seed
 * from here on (mc/sim.h), if this is its first call that needs the library. */
enum { MC_MODE_THREADS = 0, MC_MODE_SIMULATION = 1 };

/* Which processor the thread of each executor is pinned to. NONE: the system decides. DEPTH_FIRST: one NUMA node is filled before
 * the next is begun. BREADTH_FIRST: nodes in turn. RANDOM: in any order. In a node, processors of different cores come before
 * siblings. Executors beyond the processors that the process may use are not pinned. */
enum { MC_AFFINITY_NONE = 0, MC_AFFINITY_DEPTH_FIRST = 1, MC_AFFINITY_BREADTH_FIRST = 2, MC_AFFINITY_RANDOM = 3 };

/* The processors that affinity chooses from, by the kernel's capacity values: all; those of the greatest capacity; the others.
 * Where all are alike, all. */
enum { MC_CORES_ANY = 0, MC_CORES_BIG = 1, MC_CORES_LITTLE = 2 };

#define MC_EXECUTORS_MAX 1024
#define MC_WHEEL_SEGMENTS_MAX 64
#define MC_BLOCKING_THREADS_MAX 4096

/* Everything may be 0. */
typedef struct mc_runtime_options {
    uint32_t struct_size;
    uint32_t flags;     /* MC_RUNTIME_* */
    uint32_t executors; /* 1 to MC_EXECUTORS_MAX; 0: one for each processor that the process may use */
    uint32_t
        wheel_segments; /* 1 to MC_WHEEL_SEGMENTS_MAX; 0: 1. With more, what has used up its quantum waits longer for
                                    the next one while there is other work */
    int64_t quantum_ns; /* 10 microseconds to 1 second; 0: 1 ms */
    uint32_t quantum_reductions; /* calls to the library, 16 to 10^8; 0: 4,000 */
    uint32_t blocking_threads;   /* of mc_blocking_call, 1 to MC_BLOCKING_THREADS_MAX; 0: 64 */
    uint64_t stack_size;         /* of microthreads that ask for none; 0: MC_STACK_DEFAULT */
    uint64_t seed;               /* of the runtime's random choices; 0: another one each time */
    uint32_t affinity;           /* MC_AFFINITY_* */
    uint32_t cores;              /* MC_CORES_* */
    void (*thread_start)(void *user,
                         uint32_t executor); /* on each executor's thread, before it runs anything; may be NULL */
    void (*thread_stop)(void *user, uint32_t executor); /* and after the last; neither may wait */
    void *user;
    uint32_t mode;     /* MC_MODE_* */
    uint32_t reserved; /* 0 */
} mc_runtime_options;
#define MC_RUNTIME_OPTIONS_INIT                                                                                        \
    { (uint32_t)sizeof(mc_runtime_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Makes a runtime that does not run yet: microthreads may be spawned into it, and begin when it is started. options may be NULL.
 * With MC_RUNTIME_DEFAULT: the default runtime, which runs at once, as by csp_init_runtime (and with its errors: MC_E_BUSY while
 * it has microthreads or executors, MC_E_CONTEXT on a microthread).
 * With MC_MODE_SIMULATION: MC_E_BUSY when the library has been used and the process is not simulated; when it is, seed says nothing.
 * MC_E_INVAL: NULL out, a value out of range, unknown flags. MC_E_VERSION. MC_E_LIMIT: too many executors. MC_E_NOMEM, MC_E_FORKED,
 * MC_E_SHUTDOWN. Blocks: never. Threads: any. Calls back: the hooks, on executors' threads. */
MC_API int32_t mc_runtime_create(const mc_runtime_options *options, mc_runtime_t *out) MC_NOEXCEPT;

/* Starts its executors. MC_OK also when they run already. MC_E_SHUTDOWN: it has been shut down. MC_E_PERM: the default runtime,
 * which mc_runtime_create or csp_init_runtime starts. MC_E_CONTEXT: on a microthread. MC_E_STALE, MC_E_NOMEM.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_start(mc_runtime_t rt) MC_NOEXCEPT;

/* Ends a runtime: nothing new begins in it (MC_E_SHUTDOWN), and every wait of its microthreads ends with MC_E_SHUTDOWN, the one
 * under way and each later one, until they have ended; then its executors stop. rt 0 is the default runtime, which is in
 * single-processor mode afterwards, and can be used again.
 * MC_E_TIMEDOUT: microthreads are left when the timeout (nanoseconds; MC_FOREVER) is over: native code that does not come back
 * can not be ended. Each has been named in the log, with what it waits for. The runtime stays as it is; this may be called again.
 * MC_E_BUSY: a runtime of machines is attached to it (not the default one); it goes on as before, and the log says so.
 * MC_E_CONTEXT: on a microthread; for the default runtime in single-processor mode also on a thread that does not own it.
 * MC_E_STALE, MC_E_CANCELED, MC_E_NOMEM. Blocks: thread. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_shutdown(mc_runtime_t rt, int64_t timeout_ns) MC_NOEXCEPT;

/* Gives up a runtime that has been shut down, or was never used. MC_E_BUSY: it runs, or something is left in it; it stays, with
 * all that is in it, and the log says so. MC_E_PERM: the default runtime. MC_E_CONTEXT: on a microthread. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_destroy(mc_runtime_t rt) MC_NOEXCEPT;

/* The default runtime's handle, and that of the calling task: a microthread's own, else the default one. 0: no memory, or after
 * a fork. Blocks: never. Threads: any. Calls back: no. */
MC_API mc_runtime_t mc_runtime_default(void) MC_NOEXCEPT;
MC_API mc_runtime_t mc_runtime_self(void) MC_NOEXCEPT;

/* One more executor for a runtime that runs. MC_E_LIMIT: MC_EXECUTORS_MAX. MC_E_CONTEXT: it does not run, or on a microthread.
 * MC_E_SHUTDOWN, MC_E_STALE, MC_E_NOMEM. Blocks: never. Threads: any. Calls back: thread_start, on its thread. */
MC_API int32_t mc_runtime_add_executor(mc_runtime_t rt) MC_NOEXCEPT;

/* Waits until nothing moves in the runtime: every microthread has ended or waits, nothing is queued, no timer is armed, no
 * blocking call is under way. MC_OK: so it was, at one moment during the call.
 * MC_E_DEADLOCK: so it was, microthreads are left, and nothing is left that could end their waits: every thread of the process is
 * the library's own or known to it and blocked in it without a deadline (or in this call), in no runtime does anything move, and
 * there is no mc_runtime_hold. The log has each task with what it waits for, how long, who holds it, and the cycle.
 * MC_E_TIMEDOUT: the deadline passed. MC_E_CONTEXT: on a microthread of the runtime itself; single-processor mode, where the
 * owner's call runs what there is to run, on any other thread; a runtime with microthreads that has not been started, or stops
 * meanwhile. A microthread of another runtime may wait, and learns of no deadlock. MC_E_STALE, MC_E_CANCELED, MC_E_SHUTDOWN.
 * When no turn and no blocking call has begun or ended for a second while it waits, what runs is named in the log, once.
 * Several may wait. Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_wait_quiescent(mc_runtime_t rt, int64_t deadline_ns) MC_NOEXCEPT;

/* hold: somebody whom the library does not see will act (another process, a signal handler through a descriptor, a thread
 * that has not called it yet): no deadlock is reported until as many release. MC_E_PERM: release without a hold. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_hold(mc_runtime_t rt) MC_NOEXCEPT;
MC_API int32_t mc_runtime_release(mc_runtime_t rt) MC_NOEXCEPT;

/* Counters of a runtime; each exact by itself, all of them never of one moment. The caller sets struct_size. */
typedef struct mc_runtime_counters {
    uint32_t struct_size;
    uint32_t executors;        /* that run; 1 in single-processor mode */
    uint32_t sleeping;         /* of those */
    uint32_t searching;        /* of those: look for work */
    uint64_t microthreads;     /* that have begun and not ended */
    uint64_t spawned;          /* since the runtime was made */
    uint64_t turns;            /* how often a task was begun or resumed by executors with threads */
    uint64_t queued;           /* runnable and not running; without pinned ones in their first quantum */
    uint32_t blocking_threads; /* that there are now */
    uint32_t blocking_running; /* blocking calls whose function runs */
    uint32_t blocking_queued;  /* those that wait for a thread */
    uint32_t reserved;
    int64_t blocking_oldest_ns; /* how long the oldest of both has been so; 0: there is none */
} mc_runtime_counters;
#define MC_RUNTIME_COUNTERS_INIT                                                                                       \
    { (uint32_t)sizeof(mc_runtime_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* MC_E_INVAL: NULL, or a size that is none. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_stats(mc_runtime_t rt, mc_runtime_counters *stats) MC_NOEXCEPT;

typedef struct mc_executor_counters {
    uint32_t struct_size;
    uint32_t load; /* moving average of the tasks that run or are runnable there; 1024 is one; 0 while it sleeps */
    int32_t cpu;   /* that its thread is pinned to, or -1 */
    uint32_t reserved;
    uint64_t begun; /* microthreads */
    uint64_t ended;
    uint64_t turns;
    uint64_t queued; /* runnable and not running */
    int64_t turn_ns; /* moving average of how long a turn takes while it works */
} mc_executor_counters;
#define MC_EXECUTOR_COUNTERS_INIT                                                                                      \
    { (uint32_t)sizeof(mc_executor_counters), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Of executor 0, 1, ... MC_E_NOENT: there is none of that number. Else as above.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_runtime_executor_stats(mc_runtime_t rt, uint32_t executor, mc_executor_counters *stats) MC_NOEXCEPT;

/* --- microthreads --- */

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

/* Runs fn(user), native code that may block, on a thread of its own (one of the runtime's blocking_threads) while the calling
 * microthread waits and its executor goes on; then stores what it returned (result may be NULL). While all of those threads are
 * busy, calls wait in the order of coming. On a thread that is no microthread and owns no runtime, fn runs there and then.
 * The caller's scope ends the wait only before fn has begun (MC_E_CANCELED, MC_E_SHUTDOWN: it never does), since fn may use what
 * is the caller's; what never ends is named by mc_runtime_shutdown, and seen in mc_runtime_counters.
 * MC_E_INVAL: NULL fn. MC_E_CRASHED: fn threw an exception, which is logged. MC_E_NOMEM: no thread. MC_E_CONTEXT, MC_E_FORKED.
 * Blocks: fiber | thread. Threads: any. Calls back: fn, on a thread that is no executor's. */
MC_API int32_t mc_blocking_call(int32_t (*fn)(void *user), void *user, int32_t *result) MC_NOEXCEPT;

/* For a host's garbage collector: calls visit for the stack of every microthread of the runtime that is suspended, with the part
 * that is in use, [low, high), registers saved there included; and for those that run, with all of their stack. The caller sees
 * to it that none begins, goes on or ends meanwhile (they wait at a safepoint of the host's, or the caller owns the
 * single-processor runtime). visit must not call the library; an exception of its is logged. MC_E_INVAL: NULL visit. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: visit, on the caller's stack. */
typedef void (*mc_stack_fn)(void *user, mc_task_t task, const void *low, const void *high);
MC_API int32_t mc_task_each_stack(mc_runtime_t rt, mc_stack_fn visit, void *user) MC_NOEXCEPT;

/* Installs (on != 0) or removes (on == 0) a handler for SIGSEGV and SIGBUS that writes one line to standard error
 * naming the microthread whose stack overflowed, then hands the signal to the handler that was there before. It runs
 * on an alternate signal stack that threads running microthreads get. Off by default: the library installs no handler
 * unasked.
 * MC_E_NOMEM: no alternate stack. MC_E_BUSY: on removal, somebody else has replaced the handler since; it stays.
 * MC_E_FORKED.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_overflow_report(int32_t on) MC_NOEXCEPT;

MC_EXTERN_C_END

/* The rest of what belongs to the runtime, in headers of their own; the first needs what is above. */
#include "scope.h"
#include "sync.h"

#endif /* MC_RUNTIME_H */
