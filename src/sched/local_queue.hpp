// The bounded queue of runnable tasks that an executor fills and empties and from which others steal half: a ring of
// pointers between two counters. The owner pushes at the tail and takes from the head; a thief copies the older half
// and then moves the head past it with one CAS, so either it has all of them or none.
//
//   head  moved by the owner (one) and by thieves (half), always by CAS, never back
//   tail  moved by the owner alone
//
// A thief may read a slot that the owner is writing anew: then the head has moved since, and its CAS fails. Counters of
// 64 bits do not come round, so an old head never matches again.
//
// The push is a sequentially consistent exchange: it is the owner's half of the Dekker with an executor that goes to
// sleep (see thread_bed.hpp), which announces itself and then looks at this tail.
//
// Rejected: the deque of Chase and Lev (its owner takes the newest, which is unfair among microthreads; it needs a fence
// a take); a lock (the owner would pay for thieves that rarely come). The scheme is that of Go's scheduler (proc.go,
// runqgrab).
#pragma once

#include "base/assert.hpp"
#include "sched/task.hpp"

namespace mc::sched {

class LocalQueue {
public:
#if defined(MC_SYS) && MC_SYS
    static constexpr uint32_t capacity = 4;
#else
    static constexpr uint32_t capacity = 256;
#endif

    // Owner. False: full.
    [[nodiscard]] bool push(Task *task) noexcept {
        const uint64_t tail = tail_.load(sync::relaxed);
        // acquire: pairs with the CAS of steal and pop; a slot is written anew only after those who read it are through.
        if (tail - head_.load(sync::acquire) == capacity) [[unlikely]]
            return false;
        slots_[tail % capacity].store(task, sync::relaxed);
        // seq_cst: releases the task to pop and steal, and see above.
        (void)sync::dekker_publish(tail_, tail + 1);
        return true;
    }

    // Owner: the oldest, or null.
    [[nodiscard]] Task *pop() noexcept {
        const uint64_t tail = tail_.load(sync::relaxed);
        uint64_t head = head_.load(sync::relaxed);
        while (head != tail) {
            Task *task = slots_[head % capacity].load(sync::relaxed);
            // release: pairs with push's acquire. (The owner wrote the slot itself.)
            if (head_.compare_exchange_weak(head, head + 1, sync::release, sync::relaxed))
                return task;
        }
        return nullptr;
    }

    // Another queue's owner, whose own is empty: takes the older half. Returns the oldest; the others are put into
    // `mine`. Null: nothing is there.
    [[nodiscard]] Task *steal_into(LocalQueue &mine) noexcept {
        uint64_t head = head_.load(sync::acquire);
        for (;;) {
            const uint64_t tail = tail_.load(sync::acquire); // acquire: pairs with push; the tasks are ours to read
            const uint64_t there = tail - head;
            if (there == 0)
                return nullptr;
            const uint64_t half = there - there / 2;
            Task *first = nullptr;
            if (half <= capacity / 2) { // else the head is an old one, and the CAS below would fail
                first = copy_to(mine, head, half);
                // acq_rel: release pairs with push's acquire (our reads of the slots come before), acquire with another
                // thief's or the owner's.
                if (head_.compare_exchange_strong(head, head + half, sync::acq_rel, sync::acquire)) {
                    mine.publish(half - 1);
                    return first;
                }
            } else {
                head = head_.load(sync::acquire);
            }
        }
    }

    // Owner, when full: takes the older half out, linked through Task::next. Returns how many (0: a thief was faster).
    uint32_t take_half(Task **first, Task **last) noexcept {
        uint64_t head = head_.load(sync::acquire);
        if (tail_.load(sync::relaxed) - head < capacity)
            return 0;
        if (!head_.compare_exchange_strong(head, head + capacity / 2, sync::acq_rel, sync::relaxed))
            return 0;
        *first = *last = slots_[head % capacity].load(sync::relaxed);
        for (uint64_t i = 1; i < capacity / 2; ++i) {
            Task *task = slots_[(head + i) % capacity].load(sync::relaxed);
            (*last)->next = task;
            *last = task;
        }
        (*last)->next = nullptr;
        return capacity / 2;
    }

    // Owner: exact but for thieves. Others: a hint.
    uint32_t size() const noexcept {
        const uint64_t tail = tail_.load(sync::relaxed);
        const uint64_t head = head_.load(sync::relaxed);
        return head < tail ? static_cast<uint32_t>(tail - head) : 0;
    }

    // Somebody who has announced that it goes to sleep: seq_cst, the other half of the Dekker with push.
    bool seen_nonempty() const noexcept {
        const uint64_t tail = tail_.load(sync::seq_cst);
        return head_.load(sync::relaxed) < tail;
    }

private:
    Task *copy_to(LocalQueue &mine, uint64_t head, uint64_t count) noexcept {
        const uint64_t to = mine.tail_.load(sync::relaxed);
        for (uint64_t i = 1; i < count; ++i)
            mine.slots_[(to + i - 1) % capacity].store(slots_[(head + i) % capacity].load(sync::relaxed),
                                                       sync::relaxed);
        return slots_[head % capacity].load(sync::relaxed);
    }

    void publish(uint64_t count) noexcept {
        if (count > 0)
            (void)sync::dekker_publish(tail_, tail_.load(sync::relaxed) + count);
    }

    // any thread (atomic)
    alignas(64) sync::atomic<uint64_t> head_{0};
    // written by the owner, read by any thread
    alignas(64) sync::atomic<uint64_t> tail_{0};
    sync::atomic<Task *> slots_[capacity] = {};
};

} // namespace mc::sched
