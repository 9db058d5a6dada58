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

inline void Executor::jump(Task *to) noexcept {
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
    if (!parking->quiet()) [[unlikely]]
        return complete_parking(*parking);
    left->word.park_quietly(parking->epoch); // nobody can find the task before commit gives the locks back
    parking->commit(*parking);
}

// A step's turn is the idle context's: that is the stack it runs on.
inline Task *Executor::next_task() noexcept {
    Task *head = queue_.head();
    if (head == nullptr || head->kind == Kind::step) [[unlikely]]
        return idle_;
    head->word.start();
    return head;
}

__attribute__((always_inline)) inline void Executor::switch_away(Parking &parking) noexcept {
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
    if (thread.executor != nullptr) [[likely]]
        thread.executor->switch_away(parking);
    else
        park_foreign(*task, parking);
    return task->reason;
}

// Wakes, from the calling thread (null: one that we do not know).
inline void wake_from(ThreadContext *thread, Task *task, TaskWord::Claim claim) noexcept {
    // Before the word is stored: then a foreign thread's task is not ours any more (its slot stays, being type-stable).
    Executor *executor = task->executor;
    if (task->word.wake(claim) == TaskWord::Wake::parker_requeues) [[unlikely]]
        return;
    if (executor != nullptr && thread != nullptr && thread->executor == executor) [[likely]]
        executor->queue().push_tail(task);
    else
        wake_elsewhere(executor, task);
}

// Wakes by running the task at once, out of turn, where that is possible (its executor is ours, nothing forbids a
// switch); else as wake_from.
__attribute__((always_inline)) inline void wake_handing_over(ThreadContext &thread, Task *task,
                                                             TaskWord::Claim claim) noexcept {
    Executor *executor = thread.executor;
    if (executor == nullptr || task->executor != executor || thread.no_switch != 0 || claim != TaskWord::Claim::parked)
        [[unlikely]]
        return wake(task, claim);
    task->word.hand_over();
    executor->queue().push_tail(task);
    executor->run_out_of_turn(task);
}

} // namespace mc::sched
