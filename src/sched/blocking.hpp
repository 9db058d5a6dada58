// A bounded pool of OS threads for native calls that block, each made while the microthread that asked for it is parked.
//
//   call()    any thread, by a task that may block. Its job is a node on its own stack: nothing is allocated for a call.
//   counts(), for_each_job(), close(): any thread; close() blocks the OS thread that calls it.
//   The threads of the pool are no executors and run no microthreads. A job may call the library, as a foreign thread may.
//
// A job, guarded by the pool's lock:
//
//   queued    a thread takes it                   running
//             its wait ends (cancelled, too late) gone: the caller has taken it out
//             the pool closes, or has no thread   done
//   running   its function has returned           done
//
// A caller queues its job and sees that a thread comes for it before it parks: commit may wake nobody. So a job can be done
// before its caller has parked. The caller looks at the state under the lock with which it parks, and whoever ends the job
// claims the wait that is registered by then, if there is one, under that lock. Once a job runs its function may use the
// caller's memory, so a wait that ends then is begun anew, without scope and deadline.
//
// A thread is on the way for a job (`searching`: starting, woken, or just done with another), runs one, or sleeps. Whenever
// the lock is free: not more jobs are queued than threads are on the way, or nobody sleeps. A thread that is on the way
// looks at the queue under the lock before it lies down. So no job waits beside a sleeper, and one caller after another is
// served by one thread.
//
// An end of a thread has two halves: it has left, and its starter has come back from starting it, in either order; the
// second one hands it on to be joined. Threads that end join those that ended before them, close() joins the rest.
//
// close(), in this order:
//   1. closing is set: calls are refused from then on, and no thread takes a job.
//   2. queued jobs end with MC_E_SHUTDOWN.
//   3. sleeping threads are woken; each thread ends when it next looks for a job.
//   4. those that have ended are joined, until there are none or the deadline has come.
// Races: a caller that was before 1 is in the queue for 2, or its job runs; a thread that was before 1 sleeps for 3, or
// looks again; a thread that is being started counts as one from before its start.
//
// Rejected: a thread a call (30 µs each, and no bound); handing the executor on to a spare thread while its own blocks (then
// no thread-local of the executor's is its thread's); giving a job to one thread in particular (it is not queued any more
// and does not run yet, while that thread is woken: a state more for who cancels); libuv's pool (one for the process, with
// files and names).
#pragma once

#include "base/list.hpp"
#include "base/spinlock.hpp"
#include "sched/park.hpp"

#include <mc/base.h>

#include <cstdint>

namespace mc::sched {

// Blocking calls under way, of all pools: while there are any, no world is closed. Any thread.
uint32_t blocking_calls() noexcept;

class BlockingPool {
public:
    using Function = int32_t (*)(void *);

    // How long a thread sleeps before it ends. Starting one costs some 30 µs, so a thread that is needed once a second is
    // not worth its stack and its line in every debugger; and the world is not closed while it is there (runtime.hpp), so a
    // deadlock is reported later by this much.
    static constexpr int64_t default_idle_ns = 1'000'000'000;

    // Threads are started when there is work for them, up to max_threads (at least 1), and end when they have slept for
    // idle_ns (MC_FOREVER: they stay).
    explicit BlockingPool(uint32_t max_threads, int64_t idle_ns = default_idle_ns) noexcept;
    // All threads have been joined (close() said true, or none was ever started) and no call is under way.
    ~BlockingPool();
    BlockingPool(const BlockingPool &) = delete;
    BlockingPool &operator=(const BlockingPool &) = delete;

    // Runs fn(user) on a thread of the pool, first come, first served; the calling task is parked until it has returned. A
    // cancellation (by scope, or the task's own if that is null) or a deadline ends the call only while it is queued. fn has
    // run, once, with MC_OK (*result, which may be null, is what it returned) and MC_E_CRASHED (it threw, which was logged);
    // it never does with MC_E_CANCELED, MC_E_TIMEDOUT, MC_E_SHUTDOWN (the pool closes), MC_E_NOMEM (no thread could be
    // started and there is none) and MC_E_CONTEXT. What fn leaves behind of the library's (scopes entered, mutexes, epochs
    // pinned) ends with it, as at a microthread's end. errno is as before. Where a thread is started for it, a call takes 1 KB of
    // stack; 4 KB the first time, if the dynamic linker binds that late.
    int32_t call(ThreadContext &thread, Function fn, void *user, int64_t deadline_ns, Scope *scope,
                 int32_t *result) noexcept;

    struct Counts {
        uint32_t queued;
        uint32_t running;
        uint32_t threads; // that run a job, look for one, or sleep
    };
    Counts counts() noexcept;
    // Calls under way: 0 says that no task is parked for us. Counted by the caller, before it submits and after it goes on.
    uint32_t calls() const noexcept { return calls_.load(sync::relaxed); }

    // Any thread: how many jobs have begun to run, and have ended.
    uint64_t changes() const noexcept { return changes_.load(sync::relaxed); }

    struct JobSeen {
        const Task *task; // that waits for it
        Function fn;
        bool running;     // else it is queued
        int64_t since_ns; // steady
    };
    // Under the pool's lock: look must be short, and takes no lock that comes before it.
    template <class Look> void for_each_job(Look look) noexcept {
        base::SpinGuard guard(lock_);
        for (Job *job = running_.front(); job != nullptr; job = running_.after(job))
            look(JobSeen{job->task, job->fn, true, job->since_ns});
        for (Job *job = queue_.front(); job != nullptr; job = queue_.after(job))
            look(JobSeen{job->task, job->fn, false, job->since_ns});
    }

    // See above. False: some threads still run. May be called again, also by several at once; not by a job, which would
    // wait for itself. A job that needs the calling thread's executor can not end meanwhile: give a deadline and let others
    // run in between. The end of a thread runs the program's thread-local destructors, which may outlast the deadline; it
    // takes the registry's mutex, so that must not be held.
    bool close(int64_t deadline_ns) noexcept;
    // With no close() under way. After one it takes calls again; threads that had not ended in time go on, or end by
    // themselves.
    void reopen() noexcept;
    void set_max_threads(uint32_t max_threads) noexcept; // those that there are beyond it end when they idle

private:
    enum class State : uint8_t { queued, running, done };

    struct Job : base::ListNode<Job> {
        Job(Function call, void *argument, Task *caller) noexcept
            : fn(call), user(argument), task(caller), since_ns(sync::now_ns()) {}

        // immutable
        const Function fn;
        void *const user;
        Task *const task;
        // guarded by the pool's lock
        State state = State::queued;
        uint64_t epoch = 0; // of the caller's wait; 0, which no wait has: it has not parked
        int64_t since_ns;   // queued, or running
        // written under the lock with state done
        int32_t status = MC_OK;
        int32_t value = 0;
    };

    // Never freed before the pool: a waker may touch the word late.
    struct Worker : base::ListNode<Worker> {
        explicit Worker(BlockingPool &owner) noexcept : pool(owner) {}

        BlockingPool &pool;
        sync::thread thread;            // its starter, then who joins it
        bool half_over = false;         // guarded by the pool's lock: one half of its end has come
        sync::atomic<uint32_t> word{0}; // asleep or awake; changed under the pool's lock
    };

    struct JobParking;
    struct Waiter {
        Task *task;
        TaskWord::Claim claim;
    };

    int32_t submit(Job &job) noexcept;
    int32_t wait_for(ThreadContext &thread, Job &job, int64_t deadline_ns, Scope *scope) noexcept;
    bool withdraw(Job &job) noexcept;
    static void wake(const Waiter &waiter) noexcept;
    void end_orphans() noexcept;

    Worker *unused_worker() noexcept;
    void start_thread() noexcept;
    static void thread_entry(void *worker) noexcept;
    Job *take_job(Worker &self) noexcept;
    bool sleep(Worker &self) noexcept;
    void run(Job &job) noexcept;
    void leave(Worker &self) noexcept;
    void join_ended() noexcept;
    bool all_joined() noexcept;
    void tell_closer() noexcept;

    // Under the lock.
    static Waiter finish(Job &job, int32_t status) noexcept;
    Worker *call_sleeper() noexcept;
    Worker *call_sleeper_if_needed() noexcept { return queued_ > searching_ ? call_sleeper() : nullptr; }
    void half_of_end(Worker &worker) noexcept;

    // immutable
    const int64_t idle_ns_;

    base::Spinlock lock_;
    // guarded by lock_
    uint32_t max_threads_;
    base::List<Job> queue_;
    base::List<Job> running_;
    base::List<Worker> idle_;  // asleep, the last to lie down first
    base::List<Worker> ended_; // to be joined
    base::List<Worker> spare_; // no thread
    uint32_t queued_ = 0;
    uint32_t running_count_ = 0;
    uint32_t searching_ = 0;
    uint32_t threads_ = 0;  // that have not decided to end; being started is one
    uint32_t unjoined_ = 0; // those, and those that have ended and not been joined
    bool closing_ = false;

    sync::atomic<uint64_t> changes_{0}; // written under lock_
    sync::atomic<uint32_t> calls_{0};
    sync::atomic<uint32_t> ended_word_{0}; // any thread: changes with unjoined_ and ended_; close() sleeps on it
};

} // namespace mc::sched
