// park: the one way to block. Whoever waits for anything, on whatever kind of stack, does it here.
//
//   1. The task takes the locks of what it waits for and finds that it must wait.
//   2. park() moves its word to parking and jumps to the next task with the locks held (a lock crosses one switch).
//   3. The first thing that the next task does, still inside its own call, is to complete the parking: arm the timer,
//      enter the scope, then `commit`, which registers with what is waited for and gives the locks back, last.
//   4. It publishes parked (a wait without timer and scope does that just before 3's last unlock: nobody else knows of
//      it); or, when a waker came meanwhile, requeues the task. Only now may the stack be resumed.
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
    using Commit = void (*)(Parking &);

    Parking() noexcept {}
    Parking(Commit c, int64_t deadline, Scope *s) noexcept : commit(c), deadline_ns(deadline), scope(s) {}

    // Nothing but what commit registers can end the wait, and commit registers under one lock and touches nothing of
    // this after it has given that back: then the wait is published before commit (TaskWord::park_quietly). With
    // several locks a waker that came through the first could resume the frame while commit still reads it.
    bool quiet() const noexcept { return one_lock && deadline_ns == INT64_MAX && scope == nullptr; }

    // Registers the task (with `epoch`) and gives the locks back; may be null. Runs on another stack than the waiter's.
    Commit commit = nullptr;
    bool one_lock = false;
    bool may_be_cancelled = true; // false: the task's own scope does not end this wait
    int64_t deadline_ns = INT64_MAX;
    Scope *scope = nullptr;
    WaitsFor waits_for; // for reports

    // set by park()
    Task *task;
    uint64_t epoch;
    union { // constructed when there is a scope
        ScopeWait scope_wait;
    };
};

// Blocks the calling task until a claim on (task, epoch) has been woken. Returns why; the waker's value is in
// parking.task->wake_value. The caller then unlinks whatever commit registered that the waker did not.
// May only be called where may_block() says so.
WakeReason park(ThreadContext &thread, Parking &parking) noexcept;

// The status code that a blocking call returns for a reason other than ready.
int32_t status_of(WakeReason reason) noexcept;

// Wakes the task on which the caller holds the claim: it joins the tail of its queue. Any thread, no locks held.
// (switch.hpp has forms that save the look at which thread this is, or that hand the processor over.)
void wake(Task *task, TaskWord::Claim claim) noexcept;

// The same for a claim by one waker that needs nothing in between: claims, and if it wins, says why and wakes.
bool claim_and_wake(Task *task, uint64_t epoch, WakeReason reason, int32_t value) noexcept;

} // namespace mc::sched
