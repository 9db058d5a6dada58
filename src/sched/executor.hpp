// An executor: one thread's queue, timers, inbox and driver, and the switches between the tasks on it. Its own context
// is the idle fiber, which runs when the queue is empty: it drains the inbox, fires timers, runs steps, decides
// whether the world is closed, and sleeps.
//
// Every switch goes through jump(): the side that arrives first completes what the side that left had begun (a
// parking, or the end of a task), see park.hpp. Owner thread only, but for enqueue().
#pragma once

#include "base/inbox.hpp"
#include "base/prng.hpp"
#include "fiber/overflow.hpp"
#include "fiber/stack.hpp"
#include "sched/driver.hpp"
#include "sched/park.hpp"
#include "sched/run_queue.hpp"
#include "sched/timer.hpp"

#include <cstdint>

namespace mc::sched {

class Executor;

// The ended task's stack is gone. Frees its slot when nobody can join it any more; defined in spawn.cpp.
void task_left(Task &task, TaskSlab::Cache *cache) noexcept;

// park.cpp: registering with a scope, or being cancelled by it at once.
void enter_scope(Parking &parking) noexcept;

// park.cpp: parking's half for threads that own no executor, and waking what does not run here.
void park_foreign(Task &task, Parking &parking) noexcept;
void wake_elsewhere(Executor *executor, Task *task) noexcept; // executor: read before the task's word was stored
extern const Timer::Action park_timeout;

// What the thread slot points to: who runs on this thread. Of an executor's owner it is part of the executor.
struct ThreadContext {
    Executor *executor = nullptr; // null: a foreign thread
    Task *running = nullptr;
    uint32_t no_switch = 0; // depth of callbacks (tx, steps) in which nothing may block or switch
    base::Prng prng{0};
};

class Executor {
public:
    // Null without memory. The caller then adopts a thread.
    static Executor *create() noexcept;

    // The calling thread becomes the owner; its stack is the task `owner()`.
    bool adopt_thread() noexcept;
    // The owner ends. Its microthreads stay, for the next owner.
    void release_thread() noexcept;

    ThreadContext &thread() noexcept { return thread_; }
    Task *running() const noexcept { return thread_.running; }
    Task *owner() const noexcept { return owner_; }
    RunQueue &queue() noexcept { return queue_; }
    TimerHeap &timers() noexcept { return timers_; }
    Driver &driver() noexcept { return driver_; }
    TaskSlab::Cache &task_cache() noexcept { return task_cache_; }
    fiber::StackCache &stack_cache() noexcept { return stack_cache_; }
    fiber::AltStack &alt_stack() noexcept { return alt_stack_; }

    // Makes a runnable task join the tail. Any thread; the second form when it is known not to be the owner's.
    void enqueue(Task *task) noexcept;
    void enqueue_from_outside(Task *task) noexcept;

    // The running task gives up the turn.
    void yield() noexcept;
    // Gives up the turn, or sleeps when only sleepers are left. True while there is something to run or to wait for.
    bool run_once() noexcept;
    // The running task, its word in parking, leaves.
    void switch_away(Parking &parking) noexcept;
    // A queued task runs at once, out of turn.
    void run_out_of_turn(Task *task) noexcept;
    // A new task joins the tail and runs at once.
    void run_new(Task *task) noexcept;
    // The running task has ended.
    [[noreturn]] void finish_running() noexcept;
    // What a new fiber does first: the executor that it runs on.
    static Executor &arrive_new(fiber::Context *previous) noexcept;

    // Owner thread: nobody has sent us a task or armed a timer.
    bool nothing_arrived() const noexcept { return !inbox_.maybe_nonempty() && timers_.empty(); }
    // Drains the inbox and fires due timers.
    void poll() noexcept;
    // Arms a timer from any thread.
    void arm(Timer &timer) noexcept;

private:
    explicit Executor(uint64_t seed) noexcept : driver_(seed) {}
    ~Executor() = default;

    void note_leaving(Task *self) noexcept;
    void jump(Task *to) noexcept;
    static Executor &arrive(fiber::Context *previous) noexcept;
    void complete(Task *left) noexcept;
    void complete_parking(Parking &parking) noexcept;
    void reap(Task *ended) noexcept;
    Task *next_task() noexcept;
    void drain_inbox() noexcept;
    static void idle_entry(fiber::Context *previous) noexcept;
    void idle_loop() noexcept;
    void run_step(Task *task) noexcept;
    void sleep() noexcept;
    bool owner_waits_for_ever() const noexcept;

    // owner thread only
    ThreadContext thread_;
    RunQueue queue_;
    static Parking task_ended_;  // its address alone, in parking_: the task that was left has ended
    Parking *parking_ = nullptr; // of the task that was left last; completed by the side that arrives
    uint32_t switches_left_ = 1; // until the next poll
    uint32_t poll_interval_ = 1; // in switches; adapts to what a switch costs here
    int64_t last_poll_ns_ = 0;
    uint32_t closed_looks_ = 0;   // how often in a row the world was found closed
    int64_t closed_check_ns_ = 0; // how long to sleep before asking again whether the world is closed
    Task *owner_ = nullptr;
    Task *idle_ = nullptr;
    TaskSlab::Cache task_cache_;
    fiber::StackCache stack_cache_;
    fiber::AltStack alt_stack_;

    // any thread
    TimerHeap timers_;
    base::Inbox<Task, &Task::next> inbox_;
    FutexDriver driver_;
};

} // namespace mc::sched
