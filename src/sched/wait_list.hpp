// Tasks that wait for a primitive, first in, first out, under the primitive's own lock: what mutex, semaphore, condition
// and their like are made of, on top of park. Any thread.
//
//   A waiter   finds under the lock that it must wait, and calls wait(), which parks with the lock held.
//   A waker    claims under the lock (take_first), takes the claimed off the list, gives the lock back, then wakes them.
//   A waiter whose wait has ended otherwise (deadline, cancellation) still stands in the list until it has the lock again;
//   it can not be claimed, so it takes nothing from those behind it. What it kept them from (asking for more than there
//   is), its primitive gives out anew after it has unlinked it.
#pragma once

#include "base/list.hpp"
#include "base/spinlock.hpp"
#include "sched/park.hpp"

#include <cstdint>

namespace mc::sched {

struct Waiting : base::ListNode<Waiting> {
    uint64_t asks = 0; // the primitive's business
    Task *task = nullptr;
    uint64_t epoch = 0;
    TaskWord::Claim claim = TaskWord::Claim::lost; // of who has it
};

class WaitList {
public:
    enum class At : uint8_t { back, front };

    // Under the lock, by a task that may block. ready: the waker has unlinked us, and the lock is not held. Else it is, and
    // we are unlinked. The waker's value is in task->wake_value.
    WakeReason wait(ThreadContext &thread, base::Spinlock &lock, Waiting &waiting, At at,
                    const Parking &parking) noexcept;

    // --- under the lock

    bool empty() const noexcept { return list_.empty(); }
    // The first whose wait has not ended, or null; it may end at any time unless it is claimed.
    Waiting *first() const noexcept {
        Waiting *waiting = list_.front();
        while (waiting != nullptr && !still_waits(*waiting))
            waiting = list_.after(waiting);
        return waiting;
    }
    // Claims it; then it is off the list, and the caller must wake it. False: its wait has just ended.
    bool try_take(Waiting &waiting, int32_t value) noexcept;
    // Claims the first that can be claimed, or null.
    Waiting *take_first(int32_t value) noexcept;
    // The same among those for which suits(waiting).
    template <class Suits> Waiting *take_first_if(int32_t value, Suits suits) noexcept {
        for (Waiting *waiting = list_.front(); waiting != nullptr;) {
            Waiting *next = list_.after(waiting);
            if (suits(*waiting) && try_take(*waiting, value))
                return waiting;
            waiting = next;
        }
        return nullptr;
    }

    // Claimed ones, to be woken with the lock given back. Their nodes are gone once they are woken.
    using Taken = base::List<Waiting>;
    static void wake_all(Taken &taken) noexcept {
        while (Waiting *waiting = taken.pop_front())
            wake(waiting->task, waiting->claim);
    }

private:
    static bool still_waits(const Waiting &waiting) noexcept {
        return TaskWord::waits_unclaimed(waiting.task->word.look(), waiting.epoch);
    }

    base::List<Waiting> list_;
};

} // namespace mc::sched
