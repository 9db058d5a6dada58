// A first-in, first-out queue of tasks under a lock, linked through Task::next: what foreign threads hand in and what
// does not fit into an executor's own queue (injection). Any thread.
//
// The count is published by a sequentially consistent exchange: the pusher's half of the Dekker with an executor that
// goes to sleep, see thread_bed.hpp.
#pragma once

#include "base/spinlock.hpp"
#include "sched/task.hpp"

namespace mc::sched {

class SharedQueue {
public:
    void push(Task *task) noexcept { push_list(task, task, 1); }

    // first to last are linked through next.
    void push_list(Task *first, Task *last, uint32_t count) noexcept {
        last->next = nullptr;
        base::SpinGuard guard(lock_);
        (tail_ == nullptr ? head_ : tail_->next) = first;
        tail_ = last;
        (void)sync::dekker_publish(count_, count_.load(sync::relaxed) + count);
    }

    // The oldest, up to max of them, linked through next; null when there are none.
    [[nodiscard]] Task *take(uint32_t max) noexcept {
        if (!seen_nonempty()) // seq_cst: whoever withdraws something and then takes what is left must not miss a push
            return nullptr;
        base::SpinGuard guard(lock_);
        Task *first = head_;
        Task *last = nullptr;
        uint64_t taken = 0;
        for (; taken < max && head_ != nullptr; ++taken) {
            last = head_;
            head_ = head_->next;
        }
        if (last == nullptr)
            return nullptr;
        last->next = nullptr;
        if (head_ == nullptr)
            tail_ = nullptr;
        count_.store(count_.load(sync::relaxed) - taken, sync::relaxed); // less is no news to a sleeper
        return first;
    }

    // A hint, cheap enough for every look.
    uint64_t size() const noexcept { return count_.load(sync::relaxed); }
    // Somebody who has announced that it goes to sleep: the other half of the Dekker with push.
    bool seen_nonempty() const noexcept { return count_.load(sync::seq_cst) != 0; }

private:
    base::Spinlock lock_;
    // guarded by lock_
    Task *head_ = nullptr;
    Task *tail_ = nullptr;
    // written under lock_, read by any thread
    sync::atomic<uint64_t> count_{0};
};

} // namespace mc::sched
