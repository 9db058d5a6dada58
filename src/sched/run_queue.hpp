// The queue of single-processor mode: a ring of runnable tasks in which the running one stays linked. The head is in
// turn; a task that was handed the processor out of turn runs from its place in the ring. Owner executor only.
//
// That the running task stays linked makes a yield one pointer's step, and "who handed over keeps his place" nothing
// to do.
#pragma once

#include "base/assert.hpp"
#include "sched/task.hpp"

namespace mc::sched {

class RunQueue {
public:
    bool empty() const noexcept { return head_ == nullptr; }
    Task *head() const noexcept { return head_; }
    bool holds_only(const Task *task) const noexcept { return task->next == task && head_ == task; }

    void push_tail(Task *task) noexcept {
        if (head_ == nullptr) {
            head_ = task->next = task->prev = task;
            return;
        }
        task->next = head_;
        task->prev = head_->prev;
        head_->prev->next = task;
        head_->prev = task;
    }

    // The next task is in turn when this one is the head.
    void remove(Task *task) noexcept {
        MC_DEBUG_INVARIANT(task->next != nullptr && head_ != nullptr, reinterpret_cast<uintptr_t>(task));
        if (task->next == task) {
            head_ = nullptr;
        } else {
            task->prev->next = task->next;
            task->next->prev = task->prev;
            if (head_ == task)
                head_ = task->next;
        }
        task->next = task->prev = nullptr;
    }

    // The running task gives up its turn, if it is its turn: it becomes the tail.
    void give_up_turn(const Task *running) noexcept {
        if (head_ == running)
            head_ = head_->next;
    }

    // True when one of the queued tasks, other than self, is not in csp_schedule.
    bool others_to_run(const Task *self) const noexcept {
        if (head_ == nullptr)
            return false;
        const Task *task = head_;
        do {
            if (task != self && !task->in_schedule)
                return true;
            task = task->next;
        } while (task != head_);
        return false;
    }

private:
    Task *head_ = nullptr;
};

} // namespace mc::sched
