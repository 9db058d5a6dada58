// The runtimes of a process, by handle: made, started, ended. Each is a pool; a pool and its executors are never freed, but used
// again by the next runtime that is made, so that a waker that comes late finds them.
//
//   created    start        running       (its executors' threads run; microthreads may have been spawned before)
//   running    shutdown     closing       (nothing new begins; all waits end with MC_E_SHUTDOWN)
//   closing    shutdown     stopping      (nothing is left; until then shutdown names what is left, and may be called again)
//   stopping   that one     stopped       (its threads have been joined; or closing again, when a blocking thread does not end)
//   created, stopped        destroy       its handle is stale
//
// The default runtime is one of them: made by the first call of any kind, not running while it is in single-processor mode,
// never destroyed, and back in that mode after a shutdown.
//
// Any thread; start, shutdown and destroy not on a microthread's stack. Locks: a runtime's state is guarded by the lifecycle
// mutex (runtime.cpp), which is not held while a shutdown waits for microthreads or blocking threads. Making one needs no lock:
// its slot is its maker's until the handle is issued.
#pragma once

#include "sched/pool.hpp"

#include <cstdint>

namespace mc::sched {

// The pool behind a handle: 0 is the calling task's, else the default one. Null: stale. It stays a pool, but may be another
// runtime's by the time that it is used: what begins something there asks again (runtime_is) after it was admitted.
Pool *find_pool(const ThreadContext &thread, uint64_t handle) noexcept;
bool runtime_is(const Pool &pool, uint64_t handle) noexcept; // 0 is always

// The pools that there are, in the order in which they were made; some may be null. Never freed.
uint32_t pool_count() noexcept;
Pool *pool_at(uint32_t index) noexcept;

// The default runtime's pool has been made: gives it a handle. False without memory. Under the registry's mutex.
bool adopt_default_pool(Pool &pool) noexcept;
// The handle of the default runtime. The thread has been attached. 0 without memory.
uint64_t default_runtime() noexcept;

// A runtime with options of its own, which are valid; it does not run yet. MC_E_NOMEM.
int32_t create_runtime(const PoolOptions &options, uint32_t executors, uint64_t *out) noexcept;
// The default one gets options and executors. As start_executors.
int32_t start_default(ThreadContext &thread, const PoolOptions &options, uint32_t executors, uint64_t *out) noexcept;

// MC_OK also when it runs already. MC_E_SHUTDOWN: it has been shut down. MC_E_STALE, MC_E_CONTEXT, MC_E_NOMEM.
int32_t start_runtime(const ThreadContext &thread, uint64_t handle) noexcept;
int32_t add_executor(const ThreadContext &thread, uint64_t handle) noexcept;
// MC_OK: nothing is left of it, its threads have ended. MC_E_TIMEDOUT: what would not stop has been named in the log.
int32_t shutdown_runtime(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept;
// MC_E_BUSY, and logged: it runs, or something is left in it.
int32_t destroy_runtime(const ThreadContext &thread, uint64_t handle) noexcept;

// See mc/runtime.h.
int32_t wait_quiescent(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept;

// Calls visit(pool) for every pool that there is, of runtimes that were destroyed too. Any thread.
template <class Visit> void for_each_pool(Visit visit) noexcept {
    for (uint32_t i = 0, count = pool_count(); i < count; ++i)
        if (Pool *pool = pool_at(i))
            visit(*pool);
}

// A timer was cancelled that no task of its executor's waited for: that executor may sleep on, and somebody wait until nothing
// moves there. Any thread.
void timer_was_cancelled() noexcept;

void leave_runtimes_behind() noexcept; // in a forked child

} // namespace mc::sched
