// The thread bed: which executors of a pool sleep, which search for work, and who must be woken. Any thread.
//
// One word counts them; a list under a lock says who the sleepers are.
//
//   63            32 31           0
//   | sleeping      | searching    |
//
//   an executor    from        to          by
//   finds nothing  awake       searching   try_search   (at most half of those awake search at once)
//   finds work     searching   awake       leave_search (the last to leave must have a successor woken)
//   gives up       searching   sleeping    lie_down     (then looks at every source once more)
//   lingers        awake       sleeping    lie_down     (likewise)
//   is needed      sleeping    searching   wake_one     (by whoever made work available)
//   gets up        sleeping    awake       get_up       (its own deadline, its inbox, or that last look)
//
// Dekker: whoever makes work available publishes it (a seq_cst read-modify-write), then reads the word; whoever lies
// down changes the word (likewise), then reads all sources. One of the two sees the other. A waker that sees a searcher
// wakes nobody: the searcher, still to leave, either finds the work or, lying down, looks again. That is why the last
// searcher that finds something must wake a successor: what it left behind was announced while it counted.
//
// Sentry. Executors that run are not interrupted, so one sleeper looks after them: it sleeps no longer than a period
// and, on waking, takes what they are late with (see Executor::look_after_others). The decisions:
//
//   who lies down        others awake   timers armed   sleeps
//   nobody is sentry     yes            any            as sentry: to the earliest deadline of all, at most one period
//   nobody is sentry     no             yes            as sentry: to the earliest deadline of all and a period more,
//                                                      since their owners sleep to their own
//   nobody is sentry     no             no             to its own deadline: idle costs nothing
//   there is a sentry    any            any            to its own deadline
//
// The period is 1 ms and doubles up to 10 ms while the sentry finds nothing to take. An executor that slept and has found
// work would be seen hogging by nobody when there is no sentry, or one that sleeps for longer than a period since all
// slept: it wakes a sleeper, which becomes sentry, or that sentry. (Dekker: the executor leaves the bed, then reads until
// when the sentry sleeps; the sentry publishes that, then looks again whether somebody is awake.)
//
// A sentry that gets up leaves the watch to the sleeper that lay down last, if that one gets up by itself within a period: it
// looks after the others then. So nobody is woken only to watch while all get up again and again for their own timers.
//
// A new executor is one that gets up: it counts itself in `live`, then looks for a sentry. Who lies down counts himself
// asleep, then reads live.
//
// Rejected: waking a sleeper for each piece of work (a wake costs 20 to 35 microseconds); searching until work comes
// (burns a core); a monitor thread beside the executors (one more thread to wake, and it can run nothing).
#pragma once

#include "base/list.hpp"
#include "base/spinlock.hpp"
#include "base/sync.hpp"

#include <cstdint>

namespace mc::sched {

class Executor;

constexpr int64_t sentry_period_ns = 1'000'000;
constexpr int64_t sentry_period_max_ns = 10'000'000;

// One executor's place in the bed.
struct Sleeper : base::ListNode<Sleeper> {
    Executor *executor = nullptr; // immutable
    // guarded by the bed's lock
    bool asleep = false;
    // Written by the owner executor, under the lock too, and by who leaves it the watch, under the lock, when until_ns is known.
    bool sentry = false;
    // Until when it sleeps at most; INT64_MAX: not known (yet). Written by the owner executor, read under the lock.
    sync::atomic<int64_t> until_ns{INT64_MAX};
    // owner executor only
    bool searching = false;
    int64_t period_ns = sentry_period_ns;
};

class ThreadBed {
public:
    struct Counts {
        uint32_t sleeping;
        uint32_t searching;
    };

    // live: how many executors there are; grows by a seq_cst read-modify-write of each one's own, before it runs anything.
    explicit ThreadBed(const sync::atomic<uint32_t> &live) noexcept : live_(live) {}

    // Whoever has just published work by a seq_cst read-modify-write. The sleeper to wake, or null: the caller ends its
    // sleep (Driver::wake), and it wakes up searching.
    [[nodiscard]] Executor *work_is_available() noexcept {
        const Counts now = unpack(word_.load(sync::seq_cst)); // Dekker, with lie_down
        if (now.searching != 0 || now.sleeping == 0) [[likely]]
            return nullptr;
        return wake_one();
    }

    // Calls then() under the bed's lock, with every executor asleep and kept so, and returns its answer; false when one is
    // awake. What executors alone write stands still meanwhile. then() takes no lock but another bed's, in one order.
    template <class Then> bool while_all_sleep(Then then) noexcept {
        base::SpinGuard guard(lock_);
        // seq_cst: a new executor has counted itself before it runs anything
        return unpack(word_.load(sync::seq_cst)).sleeping == live_.load(sync::seq_cst) && then();
    }

    // --- the executor whose place it is

    // False: enough others search.
    [[nodiscard]] bool try_search(Sleeper &me, uint32_t live) noexcept;
    // True: it was the last, and a successor must be woken: see work_is_available.
    [[nodiscard]] bool leave_search(Sleeper &me) noexcept;
    // Announces the sleep. Afterwards the caller looks at every source, then sleeps or gets up.
    void lie_down(Sleeper &me, bool timers_armed) noexcept;
    // Between the two, when nothing was found: it gets up by itself at that time, or before. Who it is was decided.
    static void note_sleep(Sleeper &me, int64_t until) noexcept {
        me.until_ns.store(until, sync::release); // release: pairs with bequeath; before it, the owner has read `sentry`
    }
    // True: it was sentry.
    bool get_up(Sleeper &me, int64_t now) noexcept;

    // For an executor that slept, or is new, and has found work: whom to wake so that somebody watches over it, or null.
    [[nodiscard]] Executor *missing_sentry(int64_t now) noexcept {
        if (Executor *sentry = sentry_.load(sync::relaxed))
            return sentry_until_.load(sync::seq_cst) > now + sentry_period_max_ns ? sentry : nullptr;
        // seq_cst: Dekker, between a new executor's count in live and lie_down
        return unpack(word_.load(sync::seq_cst)).sleeping == 0 ? nullptr : wake_one();
    }
    // The sentry, before it sleeps. True: somebody is awake, whom it must not leave alone for so long.
    [[nodiscard]] bool announce_sentry_sleep(int64_t until) noexcept {
        (void)sync::dekker_publish(sentry_until_, until);
        // Dekker, with get_up, or a new executor's count in live, and missing_sentry
        return unpack(word_.load(sync::seq_cst)).sleeping < live_.load(sync::seq_cst);
    }

    Counts counts() const noexcept { return unpack(word_.load(sync::relaxed)); }

private:
    static constexpr uint64_t one_sleeper = uint64_t{1} << 32;
    static Counts unpack(uint64_t word) noexcept {
        return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
    }
    Executor *wake_one() noexcept;
    void bequeath(int64_t now) noexcept;

    const sync::atomic<uint32_t> &live_;
    base::Spinlock lock_;
    // guarded by lock_
    base::List<Sleeper> sleepers_; // the one that lay down last is woken first
    // any thread (atomic)
    sync::atomic<uint64_t> word_{0};
    sync::atomic<Executor *> sentry_{nullptr};      // written under lock_
    sync::atomic<int64_t> sentry_until_{INT64_MIN}; // until when it sleeps
};

} // namespace mc::sched
