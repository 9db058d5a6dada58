// Timers: an intrusive pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986) an executor, under a lock that its
// owner takes without contention. Arming is two comparisons on average, cancelling needs no search, nothing allocates. Equal
// deadlines fire in the order in which they were armed.
//
// Arm and cancel: any thread; a timer knows its heap, since the task that it belongs to may have gone to another executor
// meanwhile. Whoever takes due timers runs them, with the lock given back. A timer belongs to the heap
// while it is armed; taking it gives it to the taker, which is why cancel() tells whether it came in time.
//
// Rejected: a binary heap in an array (arming may allocate, where no allocation may happen) and a hierarchical wheel
// (cheaper only far above 10^5 timers, and deadlines are rounded).
#pragma once

#include "base/spinlock.hpp"
#include "base/sync.hpp"

#include <cstdint>

namespace mc::sched {

class TimerHeap;

struct Timer {
    // What happens: ticket is what ticket(timer) returned under the heap's lock, when the timer was taken.
    struct Action {
        uint64_t (*ticket)(Timer &);
        void (*fire)(Timer &, uint64_t ticket, int64_t now_ns);
    };

    // immutable while armed
    const Action *action = nullptr;
    // any thread: the heap that it was armed in last; changes under the locks of the old heap and the new one
    sync::atomic<TimerHeap *> heap{nullptr};
    // guarded by the heap's lock
    uint64_t order = 0;
    // What a merge looks at, side by side. immutable while armed
    int64_t deadline_ns = INT64_MAX;
    // guarded by the heap's lock
    Timer *child = nullptr;   // the first of those that fire later
    Timer *sibling = nullptr; // the next one
    Timer *back = nullptr; // the sibling before, or the parent of a first child; the root's is itself; null: not armed
};

class TimerHeap {
public:
    // Any thread. A deadline before the last fire_due's time is raised to that. True: the timer is the earliest now,
    // so a sleeping owner must be woken.
    bool arm(Timer &timer) noexcept;

    // Any thread, whichever heap it is in. False: the timer is not armed (any more): it has been taken, and its action
    // runs or has run.
    static bool cancel(Timer &timer) noexcept;

    // Everything that is armed here is armed there from now on, as if it had been from the start. The heaps of executors
    // that have stopped end so. Not both ways at once.
    void move_all_to(TimerHeap &there) noexcept;

    // Fires everything due at now_ns, timers that these arm at or before now_ns excepted (they wait for the next call).
    // Returns how many fired. Any thread; actions run with no lock held.
    uint32_t fire_due(int64_t now_ns) noexcept;

    // The earliest deadline, INT64_MAX when nothing is armed. Any thread; a hint unless the owner asks.
    int64_t earliest() const noexcept { return earliest_.load(sync::relaxed); }
    uint64_t armed() const noexcept { return armed_.load(sync::relaxed); }
    bool empty() const noexcept { return armed() == 0; }

private:
    static bool before(const Timer &a, const Timer &b) noexcept {
        return a.deadline_ns != b.deadline_ns ? a.deadline_ns < b.deadline_ns : a.order < b.order;
    }
    static Timer *merge(Timer *a, Timer *b) noexcept;
    static Timer *merge_children(Timer *first) noexcept;
    void set_root(Timer *root) noexcept;
    bool insert(Timer &timer) noexcept;
    void pair_up(uint64_t armed) noexcept;
    void remove(Timer &timer) noexcept;

    base::Spinlock lock_;
    // guarded by lock_
    Timer *root_ = nullptr;
    uint64_t order_ = 0;
    uint64_t grown_ = 0;             // children that the root has been given since it is the root
    int64_t horizon_ns_ = INT64_MIN; // of the last fire_due
    // written under lock_, read by any thread
    sync::atomic<int64_t> earliest_{INT64_MAX};
    sync::atomic<uint64_t> armed_{0};
};

} // namespace mc::sched
