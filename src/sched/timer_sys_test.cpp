// The timer heap under every interleaving of arming, cancelling and firing; on real threads in other builds.
#include "sched/timer.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::Timer;
using sched::TimerHeap;
using testing::check;
using testing::Data;
using testing::expect_pass;
using testing::Thread;

namespace {

// Belongs to the heap while armed, then to whoever took it: plain data shows when two have it at once.
struct Alarm : Timer {
    Data<int> content{0};
    sync::atomic<uint32_t> fired{0};
    TimerHeap *again = nullptr; // armed once more from its action

    explicit Alarm(int64_t deadline) {
        deadline_ns = deadline;
        action = &on_fire;
    }
    static void fire(Timer &timer, uint64_t, int64_t) {
        auto &self = static_cast<Alarm &>(timer);
        check(self.content.get() == 1, "fired before it was complete");
        self.fired.fetch_add(1, sync::relaxed);
        if (TimerHeap *heap = self.again) {
            self.again = nullptr;
            self.deadline_ns += 10;
            heap->arm(self);
        }
    }
    static constexpr Action on_fire{nullptr, fire};
};

} // namespace

// Goal: cancelled or fired: of two threads that fire and one that cancels, exactly one has the timer.
Test(TimerSys, cancel_races_fire) {
    expect_pass({.name = "TimerSys/cancel_races_fire", .preemptions = 3, .stale = 1}, [] {
        TimerHeap heap;
        Alarm alarm(5), other(6);
        bool cancelled = false;
        alarm.content.set(1);
        other.content.set(1);
        heap.arm(alarm);
        heap.arm(other);
        {
            Thread one([&] { heap.fire_due(10); }, "one");
            Thread two([&] { heap.fire_due(10); }, "two");
            Thread canceller(
                [&] {
                    cancelled = heap.cancel(alarm);
                    if (cancelled)
                        alarm.content.set(2); // it is ours again
                },
                "canceller");
        }
        heap.fire_due(10);
        check(alarm.fired.load(sync::relaxed) == !cancelled, "fired %u times, cancelled %d",
              alarm.fired.load(sync::relaxed), cancelled);
        check(other.fired.load(sync::relaxed) == 1, "the other timer was lost or doubled");
        check(heap.empty() && heap.earliest() == INT64_MAX, "not empty");
    });
}

// Goal: a timer that is armed by one thread and fired by another is complete when it fires, and none is lost.
Test(TimerSys, arm_races_fire) {
    expect_pass({.name = "TimerSys/arm_races_fire", .preemptions = 3, .stale = 1}, [] {
        TimerHeap heap;
        Alarm first(5), second(3);
        uint32_t early = 0;
        {
            Thread arms(
                [&] {
                    first.content.set(1);
                    heap.arm(first);
                    second.content.set(1);
                    heap.arm(second);
                },
                "arms");
            Thread fires(
                [&] {
                    early += heap.fire_due(10);
                    early += heap.fire_due(10);
                },
                "fires");
        }
        early += heap.fire_due(10);
        check(early == 2, "%u of 2 fired", early);
        check(first.fired.load(sync::relaxed) == 1 && second.fired.load(sync::relaxed) == 1, "lost or doubled");
    });
}

// Goal: a timer that arms itself again from its action races a cancel: in the end it is armed once or not at all.
Test(TimerSys, rearming_races_cancel) {
    expect_pass({.name = "TimerSys/rearming_races_cancel", .preemptions = 3, .stale = 1}, [] {
        TimerHeap heap;
        Alarm beat(5);
        bool cancelled = false;
        beat.content.set(1);
        beat.again = &heap;
        heap.arm(beat);
        {
            Thread fires([&] { heap.fire_due(10); }, "fires");
            Thread canceller([&] { cancelled = heap.cancel(beat); }, "canceller");
        }
        const uint32_t fired = beat.fired.load(sync::relaxed);
        check(fired <= 1, "fired %u times", fired);
        check(heap.empty() == cancelled, "armed and cancelled, or lost");
        check(heap.cancel(beat) == !cancelled, "armed and cancelled, or lost");
    });
}

// Goal: a new earliest deadline is reported to exactly those who must wake the owner: with the owner asleep until what
// it saw, it never oversleeps.
Test(TimerSys, the_owner_does_not_oversleep) {
    expect_pass({.name = "TimerSys/the_owner_does_not_oversleep", .preemptions = 3, .stale = 1, .timeouts = 0}, [] {
        TimerHeap heap;
        Alarm far(INT64_MAX / 2), near(20);
        sync::atomic<uint32_t> woken{0};
        far.content.set(1);
        near.content.set(1);
        heap.arm(far);
        Thread armer(
            [&] {
                if (heap.arm(near)) {
                    woken.fetch_add(1, sync::release); // as a wake word
                    sync::futex_wake(woken, 1);
                }
            },
            "armer");
        Thread owner(
            [&] {
                while (near.fired.load(sync::relaxed) == 0) {
                    const uint32_t seen = woken.load(sync::acquire);
                    if (heap.fire_due(100) != 0)
                        continue;
                    const int64_t until = heap.earliest();
                    check(sync::futex_wait(woken, seen, until) || until <= 100, "overslept until the far deadline");
                }
            },
            "owner");
    });
}
