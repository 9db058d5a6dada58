// Timers of an executor, under a lock that its owner takes without contention: those that are next to fire in an intrusive
// pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986), most of the others in a calendar, whose days are poured into
// the heap one by one. So the heap is small and its merges find their timers in the cache, as long as most are due within a year. Arming
// is a comparison or two, cancelling needs no search, nothing allocates. Deadlines are exact, and equal ones fire in the
// order in which they were armed: the calendar does not care, the heap compares.
//
// Which is where: `far_from_` is a day. What is due before that is in the heap; from then on a timer is in the calendar, or
// in the heap too, if it was there when far_from_ went back, or did not fit into the calendar's year. The heap's root is
// due before far_from_, so it is the earliest of all: arming an earlier one lowers far_from_ to the day after its day; when a
// root goes, and the next is not before far_from_, that is raised, and the calendar's first day poured if it comes no
// later (settle).
//
// A day is poured at once, under the lock, in some hundred nanoseconds a timer: 10^5 that are due within two milliseconds hold up
// for ten whoever takes the last one before them.
//
// Arm and cancel: any thread; a timer knows its heap, since the task that it belongs to may have gone to another executor
// meanwhile. Whoever takes due timers runs them, with the lock given back. A timer belongs to the heap
// while it is armed; taking it gives it to the taker, which is why cancel() tells whether it came in time.
//
// Rejected: the heap alone (with 10^5 timers each merge waits for lines that nobody has touched since they were armed: twice
// the time of all else that a sleeper costs); a binary heap in an array (arming may allocate, where no allocation may
// happen); a wheel alone (it rounds deadlines, or has to be sorted in the end).
#pragma once

#include "base/spinlock.hpp"
#include "sched/calendar.hpp"

#include <cstdint>

namespace mc::sched {

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
    bool put(Timer &timer) noexcept;
    void take(Timer &timer) noexcept;
    void set_root(Timer *root) noexcept;
    bool insert(Timer &timer) noexcept;
    void pair_up(uint64_t armed) noexcept;
    void remove(Timer &timer) noexcept;
    void settle() noexcept;
    void pour_first_day() noexcept;
    void publish_earliest() noexcept;

    base::Spinlock lock_;
    // guarded by lock_
    Timer *root_ = nullptr;
    int64_t far_from_ = INT64_MIN; // a day; see above
    uint64_t order_ = 0;
    uint64_t grown_ = 0;             // children that the root has been given since it is the root
    int64_t horizon_ns_ = INT64_MIN; // of the last fire_due
    // written under lock_, read by any thread
    sync::atomic<int64_t> earliest_{INT64_MAX};
    sync::atomic<uint64_t> armed_{0};
    // guarded by lock_
    Calendar later_;
};

} // namespace mc::sched
