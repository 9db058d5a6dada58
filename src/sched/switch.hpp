// The hot half of the executor, inline: leaving a task, arriving at another, waking. What is promised stands in
// park.hpp and executor.hpp; the cold half is executor.cpp.
//
// What leads from a send or a receive to a jump is forced inline: each return between a jump and the caller of the library
// is mispredicted when the task that goes on was suspended by another function (a receiver that a sender wakes).
#pragma once

#include "sched/executor.hpp"
#include "sched/runtime.hpp"

namespace mc::sched {

// The executor orders its tasks, one after another on one thread; TSan, told of fibers, can not see that by itself.
inline void Executor::note_leaving(Task *self) noexcept {
    sync::handoff_release(self);
    sync::handoff_release(this);
}

__attribute__((always_inline)) inline void Executor::jump(Task *to) noexcept {
    if (to->sp == nullptr) [[unlikely]]
        return jump_to_new(to); // a call with nothing after it: who jumps to others saves no registers for it
    switch_to(to);
}

__attribute__((always_inline)) inline void Executor::switch_to(Task *to) noexcept {
    Task *self = thread_.running;
    thread_.running = to;
    note_leaving(self);
    arrive(fiber::context_switch(self->context(), to->context()));
}

inline Executor &Executor::arrive(fiber::Context *previous) noexcept {
    Task *left = static_cast<Task *>(previous);
    sync::handoff_acquire(left);
    Executor &here = *left->executor; // it ran here until now: no thread-local is read across a switch
    sync::handoff_acquire(&here);
    if (here.parking_ != nullptr)
        here.complete(left);
    // Only now, with no lock held any more, may others be woken.
    if (--here.switches_left_ == 0 || here.inbox_.maybe_nonempty())
        here.poll();
    return here;
}

inline void Executor::complete(Task *left) noexcept {
    Parking *parking = parking_;
    parking_ = nullptr;
    if (parking == &task_ended_)
        return reap(left);
    if (!parking->quiet()) [[unlikely]] {
        if (!complete_marker(*parking, left))
            complete_parking(*parking);
        return;
    }
    left->word.park_quietly(parking->epoch); // nobody can find the task before commit gives the locks back
    parking->commit(*parking);
}

// The running task gets the executor, and the rest of its quantum.
inline void Executor::begin_turn(Task *task) noexcept {
    if (task->executor != this)
        task->set_executor(this);
    task->word.start();
    thread_.reductions = task->reductions;
    turns_.store(turns_.load(sync::relaxed) + 1, sync::relaxed);
}

inline Task *Executor::take_pinned() noexcept {
    Task *task = pinned_head_;
    if (task != nullptr)
        pinned_head_ = task->next;
    return task;
}

// At most so many of `next` in a row, while others wait: two tasks that wake each other would keep the executor.
inline Task *Executor::take_next_or_queued() noexcept {
    if (next_in_a_row_ < most_next_in_a_row && next_.load(sync::relaxed) != nullptr)
        // relaxed: we stored it ourselves. Null: the sentry has taken it.
        if (Task *task = next_.exchange(nullptr, sync::relaxed)) {
            ++next_in_a_row_;
            return task;
        }
    next_in_a_row_ = 0;
    pinned_turn_ = !pinned_turn_; // by turns, or pinned ones that yield would keep the others away
    if (pinned_turn_)
        if (Task *task = take_pinned())
            return task;
    if (Task *task = ring_.pop())
        return task;
    if (Task *task = take_pinned())
        return task;
    return next_.load(sync::relaxed) == nullptr ? nullptr : next_.exchange(nullptr, sync::relaxed);
}

// Our own alone: locks may be held.
inline Task *Executor::next_of_many() noexcept {
    Task *task = to_idle_ ? nullptr : take_next_or_queued();
    if (task == nullptr)
        return idle_;
    if (task->kind == Kind::step) [[unlikely]] {
        step_ = task;
        return idle_;
    }
    begin_turn(task);
    return task;
}

inline void Executor::push_next(Task *task) noexcept {
    if (next_.load(sync::relaxed) == nullptr) { // others only empty it
        next_.store(task, sync::release);       // release: pairs with the sentry's acquire
        return;
    }
    if (Task *before = next_.exchange(task, sync::release)) // likewise
        push_tail_of_many(before);
}

// A step's turn is the idle context's: that is the stack it runs on.
inline Task *Executor::next_task() noexcept {
    if (!alone_)
        return many_ ? next_of_many() : next_simulated();
    Task *head = queue_.head();
    if (head == nullptr || head->kind == Kind::step) [[unlikely]]
        return idle_;
    head->word.start();
    return head;
}

__attribute__((always_inline)) inline void Executor::switch_away(Parking &parking) noexcept {
    if (many_)
        thread_.running->reductions = thread_.reductions;
    else
        queue_.remove(thread_.running);
    parking_ = &parking;
    jump(next_task());
}

__attribute__((always_inline)) inline void Executor::run_out_of_turn(Task *task) noexcept {
    thread_.running->word.make_runnable();
    jump(task);
}

// The task leaves and has come back: why. Neither timer nor scope is seen to here.
__attribute__((always_inline)) inline WakeReason leave(ThreadContext &thread, Parking &parking) noexcept {
    Task *task = thread.running;
    MC_DEBUG_INVARIANT(thread.no_switch == 0, thread.no_switch);
    parking.task = task;
    parking.epoch = task->word.begin_park();
    task->timed.store(parking.deadline_ns != INT64_MAX, sync::relaxed); // published with the word
    task->waits_for.store(parking.waits_for, sync::relaxed);
    if (thread.executor != nullptr) [[likely]] {
        task->waits_since_ns.store(thread.executor->clock_ns(), sync::relaxed);
        thread.executor->switch_away(parking);
    } else {
        park_foreign(*task, parking);
    }
    return task->reason;
}

// Wakes, from the calling thread (null: one that we do not know): alone it joins the tail, among many it is the next to
// run here.
inline void wake_from(ThreadContext *thread, Task *task, TaskWord::Claim claim) noexcept {
    // Before the word is stored: then a foreign thread's task is not ours any more (its slot stays, being type-stable).
    Executor *home = task->executor;
    if (task->word.wake(claim) == TaskWord::Wake::parker_requeues) [[unlikely]]
        return;
    Executor *here = thread == nullptr ? nullptr : thread->executor;
    if (here != nullptr && here == home && !here->many()) [[likely]]
        here->queue().push_tail(task);
    else if (here != nullptr && home != nullptr && here->many() && &here->pool() == &home->pool() && !task->pinned)
        here->push_next(task);
    else
        wake_elsewhere(here, home, task);
}

// Wakes by running the task at once, out of turn, where that is possible (its executor is ours and alone, nothing forbids
// a switch); else as wake_from.
__attribute__((always_inline)) inline void wake_handing_over(ThreadContext &thread, Task *task,
                                                             TaskWord::Claim claim) noexcept {
    Executor *executor = thread.executor;
    if (executor == nullptr || !executor->alone() || task->executor != executor || thread.no_switch != 0 ||
        claim != TaskWord::Claim::parked) [[unlikely]]
        return wake_from(&thread, task, claim);
    task->word.hand_over();
    executor->queue().push_tail(task);
    executor->run_out_of_turn(task);
}

// The calling task gives up its turn, where that is possible; a foreign thread lets others run.
inline void yield(ThreadContext &thread) noexcept {
    if (thread.no_switch != 0)
        return;
    if (thread.executor != nullptr)
        thread.executor->yield();
    else
        sync::thread_yield();
}

// Every runtime call that may switch counts a reduction; the last of a quantum gives the turn up. Returns the context of
// the thread that the caller runs on afterwards.
ThreadContext *quantum_over(ThreadContext *thread) noexcept;
inline ThreadContext *spend(ThreadContext *thread) noexcept {
    return --thread->reductions == 0 ? quantum_over(thread) : thread;
}

// In simulation another task may go on: after a call that let others go on, and, where several executors are simulated, before
// one that never waits. There every context has one reduction left; elsewhere one that has looks once more, and goes on.
void simulate_call(ThreadContext &thread) noexcept;
void simulate_call_that_never_waits(ThreadContext &thread) noexcept;
inline void let_others(ThreadContext &thread) noexcept {
    if (thread.reductions == 1) [[unlikely]]
        simulate_call(thread);
}
// What a call of the library begins with. Returns the context of the thread that the caller runs on afterwards.
inline ThreadContext *begin_call(ThreadContext *thread, bool may_wait) noexcept {
    if (may_wait)
        return spend(thread);
    if (thread->reductions == 1) [[unlikely]]
        simulate_call_that_never_waits(*thread);
    return thread;
}

} // namespace mc::sched
