// The default runtime: a pool, whose first executor is owned by the thread that first needs it until the pool is started;
// and the threads that we know.
//
// Which runtime a call means: that of the calling task's executor, else the default one.
//
// Locks: the lifecycle mutex is held while executors start and stop. The registry's mutex, which may be taken under it,
// guards ownership and the list of foreign threads; what is called under that is the slab, the list of pins, the allocator
// and the system.
#pragma once

#include "sched/executor.hpp"

#include <cstdint>

namespace mc::sched {

struct PoolOptions; // pool.hpp

// The calling thread's context, or null when it has none (yet, or any more).
inline ThreadContext *current() noexcept { return static_cast<ThreadContext *>(sync::thread_slot()); }

// The context of the thread that a task runs on now: one that has waited may go on elsewhere. For callers that have one.
inline ThreadContext &here_now() noexcept { return *current(); }

// The same, made if need be: the thread becomes the owner of a runtime without one, else it is registered as foreign.
// Null on failure, with the code in *status: MC_E_FORKED, MC_E_SHUTDOWN or MC_E_NOMEM.
ThreadContext *attach(int32_t *status) noexcept;

// A thread of the library's own, which acts for nobody but while it is busy: known from its start, never the owner. Without
// memory, or a runtime, it stays unknown.
void attach_service() noexcept;
void note_service(bool busy) noexcept;

// A known thread that needs the runtime: when the thread that owned it has ended, this one owns it from now on. Returns
// the thread's context, which is another one then (the old one is gone: no call under way may use it any more); its own
// when somebody else is the owner. Null, with the code in *status, when there is no owner and this thread can not be it:
// MC_E_SHUTDOWN or MC_E_NOMEM; nobody would end its waits.
ThreadContext *take_over(ThreadContext *thread, int32_t *status) noexcept;

// MC_OK, or MC_E_CONTEXT where a blocking call is not allowed (inside tx, on a step's stack).
inline int32_t may_block(const ThreadContext &thread) noexcept { return thread.no_switch == 0 ? MC_OK : MC_E_CONTEXT; }

// True in a forked child of a process that used the library, until it has begun anew: claim_new_beginning is MC_OK once,
// the caller leaves behind what the rooms above have, then begin_anew does the rest. MC_E_CONTEXT: on a microthread's
// stack, or within a callback: that belongs to what is left behind. MC_E_FORKED: another thread is at it.
bool forked() noexcept;
int32_t claim_new_beginning() noexcept;
void begin_anew() noexcept;

// True for a microthread of before the fork, in a child that has begun anew.
bool left_behind(const Task &task) noexcept;

// Sleeps; MC_E_TIMEDOUT when the deadline has come, else why not.
int32_t sleep_until(ThreadContext &thread, int64_t deadline_ns, Scope *scope) noexcept;

// True when the pointer points into the stack that the calling thread runs on. thread may be null.
bool on_own_stack(const ThreadContext *thread, const void *pointer) noexcept;

// Executors of the default runtime get their drivers from there, which must stay; before its first use, else MC_E_BUSY. Any
// thread.
int32_t set_driver_source(const DriverSource &drivers) noexcept;

// How its executors share their time; likewise.
int32_t set_pool_options(const PoolOptions &options) noexcept;

// The default runtime, or null when nobody has needed it yet.
Pool *default_pool() noexcept;
// Its first executor, or null likewise.
Executor *default_executor() noexcept;
// The calling task's runtime, else the default one. The thread has been attached.
Pool &pool_of(const ThreadContext &thread) noexcept;
// Where what this thread starts goes: its own executor, else one of the default runtime's. Likewise.
Executor &executor_for(ThreadContext &thread) noexcept;
// In a runtime that is named: its own executor if it is that one's, else any of that one's.
Executor &executor_in(Pool &pool, ThreadContext &thread) noexcept;

// Gives the default runtime n executors (0: one for each processor that the process may use) with threads of their own.
// The caller, if it owned the runtime, is a foreign thread afterwards. MC_E_BUSY: it has executors already, microthreads
// live, or another thread owns it. options: null keeps those it has. MC_E_CONTEXT: on a microthread. MC_E_LIMIT: n.
// MC_E_NOMEM, MC_E_SHUTDOWN.
int32_t start_executors(ThreadContext &thread, uint32_t n, const PoolOptions *options = nullptr) noexcept;
// Stops them; the caller owns the runtime from then on, with all microthreads that were left. MC_OK also when there were
// none. MC_E_CONTEXT: on a microthread.
int32_t stop_executors(ThreadContext &thread) noexcept;

// In simulation: executors have been asked for, so csp_schedule waits for the microthreads' end.
bool simulates_many() noexcept;
// Another thread owns what is simulated, and may be in the middle of anything.
bool owner_is_elsewhere() noexcept;
// There: csp_schedule is about to return; reports the microthreads that would have kept it.
void simulated_schedule_ended(Pool &pool) noexcept;

// Held while executors of any runtime start or stop.
sync::mutex &lifecycle_mutex() noexcept;
// An executor's thread ended on a microthread's stack: the process is exiting.
bool is_exiting() noexcept;

// Somebody whom we do not see will act: while this is above 0, no world is closed.
void hold_world() noexcept;
bool release_world() noexcept; // false: nobody holds it

// The calling task waits until nothing moves in the pool, and does nothing else; then it goes on. decides: nothing moved, and
// microthreads were left. True: nobody could have woken anybody: every runtime's executors slept with nothing to do, and every
// thread of the process was known and blocked in us without a deadline, or waited for the same, or is the caller. All who
// waited for the same are told the same.
void begin_quiescence(Task &caller, Pool &pool) noexcept;
bool end_quiescence(Task &caller, bool decides) noexcept;

// True when nobody outside the executor could wake one of its tasks: every thread of the process is its owner or is
// known and blocked in us without a deadline. Called by the owner with its queue, inbox and timers empty.
bool world_is_closed(Executor &executor) noexcept;

} // namespace mc::sched
