// park: the one way to block. Whoever waits for anything, on whatever kind of stack, does it here.
//
//   1. The task takes the locks of what it waits for and finds that it must wait.
//   2. park() moves its word to parking and jumps to the next task with the locks held (a lock crosses one switch).
//   3. The first thing that the next task does, still inside its own call, is to complete the parking: arm the timer, enter
//      the scope, then `commit`, which registers with what is waited for and gives the locks back, last.
//   4. It publishes parked; or, when a waker came meanwhile, requeues the task. Only now may the stack be resumed.
// A foreign thread does 3 and 4 itself, then sleeps on its parker.
//
// commit never allocates, wakes another task or calls a user.
#pragma once

#include "sched/scope.hpp"
#include "sched/task.hpp"

#include <cstdint>

namespace mc::sched {

struct ThreadContext;

struct Parking {
    // Registers the task (with `epoch`) and gives the locks back; may be null. Runs on another stack than the waiter's.
    void (*commit)(Parking &) = nullptr;
    int64_t deadline_ns = INT64_MAX;
    Scope *scope = nullptr;

    // set by park()
    Task *task = nullptr;
    uint64_t epoch = 0;
    ScopeWait scope_wait;
};

// Blocks the calling task until a claim on (task, epoch) has been woken. Returns why; the waker's value is in
// parking.task->wake_value. The caller then unlinks whatever commit registered that the waker did not.
// May only be called where may_block() says so.
WakeReason park(ThreadContext &thread, Parking &parking) noexcept;

// The status code that a blocking call returns for a reason other than ready.
int32_t status_of(WakeReason reason) noexcept;

// Wakes the task on which the caller holds the claim: it joins the tail of its queue. Any thread, no locks held.
void wake(Task *task, TaskWord::Claim claim) noexcept;

// The same for a claim by one waker that needs nothing in between: claims, and if it wins, says why and wakes.
bool claim_and_wake(Task *task, uint64_t epoch, WakeReason reason, int32_t value) noexcept;

// Wakes the task by running it at once, out of turn, when that is possible here (its executor is the caller's, nothing
// forbids a switch); else as wake().
void wake_handing_over(ThreadContext &thread, Task *task, TaskWord::Claim claim) noexcept;

} // namespace mc::sched
