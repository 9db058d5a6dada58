// The timer heap against a sorted reference. Cancelling while firing is in timer_sys_test.cpp.
#include "sched/timer.hpp"

#include "base/prng.hpp"
#include "testing/test.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <vector>

using namespace mc;
using sched::Calendar;
using sched::Timer;
using sched::TimerHeap;

namespace {

// A timer that remembers when it fired.
struct Alarm : Timer {
    static inline std::vector<Alarm *> fired; // in order
    static inline std::function<void(Alarm &)> also;
    int number = 0;
    uint64_t ticket = 0;
    uint64_t fired_with = 0;
    int64_t fired_at = -1;
    uint64_t armed_as = 0; // in the reference

    Alarm() { action = &record; }
    static uint64_t ticket_of(Timer &timer) {
        cr_assert_not_null(timer.back, "a ticket that is taken later may be that of another wait");
        return static_cast<Alarm &>(timer).ticket;
    }
    static void fire(Timer &timer, uint64_t ticket, int64_t now_ns) {
        auto &self = static_cast<Alarm &>(timer);
        self.fired_with = ticket;
        self.fired_at = now_ns;
        fired.push_back(&self);
        if (also)
            also(self);
    }
    static constexpr Action record{ticket_of, fire};
};

bool arm_at(TimerHeap &heap, Alarm &alarm, int64_t deadline_ns) {
    alarm.deadline_ns = deadline_ns;
    return heap.arm(alarm);
}

// What should fire: by deadline, then in the order of arming.
struct Sooner {
    bool operator()(const Alarm *a, const Alarm *b) const {
        return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->armed_as < b->armed_as;
    }
};
using Reference = std::set<Alarm *, Sooner>;

int64_t earliest_of(const Reference &reference) {
    return reference.empty() ? INT64_MAX : (*reference.begin())->deadline_ns;
}

void check_fired(TimerHeap &heap, Reference &reference, int64_t now) {
    std::vector<Alarm *> expected;
    while (!reference.empty() && (*reference.begin())->deadline_ns <= now) {
        expected.push_back(*reference.begin());
        reference.erase(reference.begin());
    }
    Alarm::fired.clear();
    cr_assert_eq(heap.fire_due(now), expected.size());
    cr_assert(Alarm::fired == expected);
    for (const Alarm *alarm : expected)
        cr_assert_eq(alarm->fired_at, now);
    cr_assert_eq(heap.empty(), reference.empty());
    cr_assert_eq(heap.earliest(), earliest_of(reference));
}

// Random arming, cancelling and firing, with many equal deadlines.
void random_history(uint32_t timers, uint32_t steps, uint32_t spread, uint64_t seed) {
    base::Prng prng(seed);
    TimerHeap heap;
    Reference reference;
    std::vector<Alarm> alarms(timers);
    uint64_t armed = 0;
    int64_t now = 0;
    for (uint32_t step = 0; step < steps; ++step) {
        Alarm &alarm = alarms[prng.below(timers)];
        const bool is_armed = reference.count(&alarm) != 0;
        if (prng.below(64) == 0) {
            now += prng.below(spread / 4 + 2);
            check_fired(heap, reference, now);
        } else if (is_armed) {
            reference.erase(&alarm);
            cr_assert(heap.cancel(alarm));
            cr_assert(!heap.cancel(alarm), "a timer is cancelled once");
        } else {
            alarm.armed_as = armed++;
            const bool first = arm_at(heap, alarm, now + prng.below(spread));
            reference.insert(&alarm);
            cr_assert_eq(first, *reference.begin() == &alarm);
        }
        cr_assert_eq(heap.earliest(), earliest_of(reference));
    }
    check_fired(heap, reference, INT64_MAX);
}

constexpr int64_t day_ns = int64_t{1} << Calendar::day_bits;
constexpr int64_t year_ns = day_ns * Calendar::days;

// As far away as programs may ask for, and at the edges of days and years.
int64_t any_deadline(base::Prng &prng, int64_t now) {
    const auto some = [&](int64_t most) { return static_cast<int64_t>(prng.next() % static_cast<uint64_t>(most)); };
    switch (prng.below(10)) {
    case 0:
        return now + some(1'000);
    case 1:
        return now + some(4) * day_ns;
    case 2:
        return (now / day_ns + some(4)) * day_ns - some(2);
    case 3:
        return now + some(200) * day_ns / 8;
    case 4:
    case 5:
        return now + some(year_ns);
    case 6:
        return now + year_ns + (some(3) - 1) * day_ns - some(2);
    case 7:
        return now + some(20 * year_ns);
    case 8:
        return prng.below(4) == 0 ? INT64_MAX - some(2) : now + some(INT64_MAX / 4);
    default:
        return prng.below(8) == 0 ? INT64_MIN : now - some(year_ns);
    }
}

// What one heap should do. The others arm and cancel where they like.
struct Model {
    TimerHeap heap;
    Reference armed;
    int64_t horizon = INT64_MIN; // of the last firing

    void arm(Alarm &alarm, int64_t deadline_ns, uint64_t order) {
        alarm.armed_as = order;
        const int64_t earliest_before = heap.earliest();
        const bool first = arm_at(heap, alarm, deadline_ns);
        cr_assert_eq(alarm.deadline_ns, std::max(deadline_ns, horizon));
        armed.insert(&alarm);
        cr_assert_eq(first, *armed.begin() == &alarm, "%ld before, %ld now", earliest_before, alarm.deadline_ns);
    }
    bool cancel(Alarm &alarm) {
        if (armed.erase(&alarm) == 0)
            return false;
        cr_assert(TimerHeap::cancel(alarm));
        cr_assert_not(TimerHeap::cancel(alarm), "a timer is cancelled once");
        return true;
    }
    void fire(int64_t now) {
        if (earliest_of(armed) <= now)
            horizon = std::max(horizon, now);
        check_fired(heap, armed, now);
    }
    void move_all_to(Model &there, uint64_t &order) {
        for (Alarm *alarm : armed) { // by deadline and order, as they were: behind those of the same deadline there
            alarm->armed_as = order++;
            there.armed.insert(alarm);
        }
        armed.clear();
        heap.move_all_to(there.heap);
    }
    void check_earliest() const {
        cr_assert_eq(heap.earliest(), earliest_of(armed));
        cr_assert_eq(heap.armed(), armed.size());
    }
};

void history_of_two(uint32_t timers, uint32_t steps, uint64_t seed) {
    base::Prng prng(seed);
    Model models[2];
    std::vector<Alarm> alarms(timers);
    uint64_t order = 1; // that of one that has never been armed is 0
    int64_t now = prng.below(2) == 0 ? 0 : int64_t{1} << prng.below(60);
    for (uint32_t step = 0; step < steps; ++step) {
        Alarm &alarm = alarms[prng.below(timers)];
        Model &model = models[prng.below(2)];
        const uint32_t what = prng.below(256);
        if (what < 16) {
            now += what == 0 ? year_ns / 2 : prng.below(4) * day_ns / 2;
            model.fire(now);
        } else if (what == 16 && prng.below(8) == 0) {
            models[0].move_all_to(models[1], order);
        } else if (!models[0].cancel(alarm) && !models[1].cancel(alarm)) {
            model.arm(alarm, any_deadline(prng, now), order++);
        }
        models[0].check_earliest();
        models[1].check_earliest();
    }
    models[0].fire(INT64_MAX);
    models[1].fire(INT64_MAX);
}

} // namespace

// Goal: whatever is armed and cancelled, what is due fires once, by deadline, and of equal deadlines in the order of
// arming.
Test(TimerHeap, random_history_matches_a_sorted_reference) {
    for (uint64_t seed = 1; seed <= 20 * mc::testing::scale(); ++seed) {
        random_history(50, 3'000, 10, seed);
        random_history(500, 5'000, 1'000'000, seed);
    }
}

// Goal: likewise for deadlines of all sizes, near and far, past and at the end of time, in two heaps whose timers move from one
// to the other; the earliest is known after each step.
Test(TimerHeap, deadlines_of_all_sizes_match_a_sorted_reference, .timeout = 120) {
    for (uint64_t seed = 1; seed <= 30 * mc::testing::scale(); ++seed) {
        history_of_two(8, 2'000, seed);
        history_of_two(300, 6'000, seed);
    }
}

// Goal: of timers that are armed in any order of their days, all but those of the first days wait where they cost nothing:
// the earliest is known though the days between hold nothing, and the first day of each year is no further than the next.
Test(TimerHeap, days_far_apart_are_found) {
    TimerHeap heap;
    Reference reference;
    std::vector<Alarm> alarms(200);
    uint64_t armed = 0;
    for (Alarm &alarm : alarms) { // a year's days from the last to the first, then beyond
        const auto i = static_cast<int64_t>(armed);
        alarm.armed_as = armed++;
        arm_at(heap, alarm, i < 100 ? year_ns - 1 - i * year_ns / 100 : i * year_ns / 40);
        reference.insert(&alarm);
        cr_assert_eq(heap.earliest(), earliest_of(reference));
    }
    for (int64_t now = 0; !reference.empty(); now += year_ns / 64)
        check_fired(heap, reference, now);
}

// Goal: a hundred thousand timers, armed at random, half of them cancelled.
Test(TimerHeap, holds_a_hundred_thousand) {
    constexpr int count = 100'000;
    base::Prng prng(8);
    TimerHeap heap;
    Reference reference;
    std::vector<Alarm> alarms(count);
    for (int i = 0; i < count; ++i) {
        alarms[static_cast<size_t>(i)].armed_as = static_cast<uint64_t>(i);
        arm_at(heap, alarms[static_cast<size_t>(i)], prng.below(1'000'000'000));
        reference.insert(&alarms[static_cast<size_t>(i)]);
    }
    for (Alarm &alarm : alarms)
        if (prng.below(2) == 0) {
            cr_assert(heap.cancel(alarm));
            reference.erase(&alarm);
        }
    for (int64_t now = 0; now <= 1'000'000'000; now += 50'000'000)
        check_fired(heap, reference, now);
    cr_assert(heap.empty());
}

// Goal: equal deadlines fire in the order of arming, also after cancels between and re-arming.
Test(TimerHeap, equal_deadlines_fire_in_order) {
    TimerHeap heap;
    Alarm alarms[100];
    for (int i = 0; i < 100; ++i) {
        alarms[i].number = i;
        arm_at(heap, alarms[i], 5);
    }
    for (int i = 0; i < 100; i += 3)
        cr_assert(heap.cancel(alarms[i]));
    for (int i = 0; i < 100; i += 3)
        arm_at(heap, alarms[i], 5); // at the end now
    Alarm::fired.clear();
    cr_assert_eq(heap.fire_due(5), 100u);
    size_t at = 0;
    for (int i = 0; i < 100; ++i)
        if (i % 3 != 0)
            cr_assert_eq(Alarm::fired[at++]->number, i);
    for (int i = 0; i < 100; i += 3)
        cr_assert_eq(Alarm::fired[at++]->number, i);
}

// Goal: the far ends of time live beside the present: nothing overflows, nothing fires early.
Test(TimerHeap, far_end_of_time_beside_near) {
    TimerHeap heap;
    Alarm never, last, near, past;
    arm_at(heap, never, INT64_MAX);
    cr_assert_eq(heap.earliest(), INT64_MAX);
    cr_assert(!heap.empty(), "armed, though for ever");
    cr_assert(arm_at(heap, last, INT64_MAX - 1));
    cr_assert(arm_at(heap, near, 10));
    cr_assert(arm_at(heap, past, INT64_MIN));
    Alarm::fired.clear();
    cr_assert_eq(heap.fire_due(9), 1u);
    cr_assert_eq(Alarm::fired[0], &past);
    cr_assert_eq(heap.fire_due(INT64_MAX - 2), 1u);
    cr_assert_eq(Alarm::fired[1], &near);
    cr_assert_eq(heap.fire_due(INT64_MAX - 1), 1u);
    cr_assert_eq(Alarm::fired[2], &last);
    cr_assert(heap.cancel(never));
    cr_assert(heap.empty());
}

// Goal: heaps that are one long list (a million armed in order or in reverse, whose first is then taken) are dealt
// with on a small stack: nothing recurses.
Test(TimerHeap, long_lists_need_no_stack, .timeout = 60) {
    const int count = mc::testing::under_valgrind ? 100'000 : 1'000'000;
    for (int order : {1, -1}) {
        TimerHeap heap;
        std::vector<Alarm> alarms(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i)
            arm_at(heap, alarms[static_cast<size_t>(i)], order > 0 ? i : count - i);
        cr_assert(heap.cancel(alarms[order > 0 ? 0 : static_cast<size_t>(count) - 1])); // the root
        for (int i = 1; i < count - 1; i += 2)
            cr_assert(heap.cancel(alarms[static_cast<size_t>(i)]));
        Alarm::fired.clear();
        heap.fire_due(INT64_MAX);
        cr_assert(heap.empty());
        cr_assert_geq(Alarm::fired.size(), static_cast<size_t>(count) / 2 - 1);
        for (size_t i = 1; i < Alarm::fired.size(); ++i)
            cr_assert_lt(Alarm::fired[i - 1]->deadline_ns, Alarm::fired[i]->deadline_ns);
    }
}

// Goal: what is moved to another heap fires and is cancelled there as if it had been armed there.
Test(TimerHeap, moves_to_another_heap) {
    TimerHeap from;
    TimerHeap to;
    Alarm alarms[20];
    for (int i = 0; i < 20; ++i)
        arm_at(i < 15 ? from : to, alarms[i], 100 + i % 5);
    from.move_all_to(to);
    cr_assert(from.empty());
    cr_assert_eq(from.earliest(), INT64_MAX);
    cr_assert_eq(to.earliest(), 100);
    cr_assert(TimerHeap::cancel(alarms[7]));
    cr_assert_not(TimerHeap::cancel(alarms[7]));
    Alarm::fired.clear();
    cr_assert_eq(from.fire_due(1000), 0u);
    cr_assert_eq(to.fire_due(1000), 19u);
    for (size_t i = 1; i < Alarm::fired.size(); ++i)
        cr_assert_leq(Alarm::fired[i - 1]->deadline_ns, Alarm::fired[i]->deadline_ns);
    from.move_all_to(to); // nothing
    cr_assert(to.empty());
}

// Goal: an action gets the ticket that its timer had when it was taken, may arm its own timer again, and may cancel or
// arm others.
Test(TimerHeap, actions_may_use_the_heap) {
    static TimerHeap heap;
    static Alarm beat, victim, late;
    beat.ticket = 7;
    arm_at(heap, beat, 1);
    arm_at(heap, victim, 2);
    Alarm::also = [](Alarm &alarm) {
        if (&alarm != &beat)
            return;
        cr_assert(!heap.cancel(beat), "it is firing");
        if (victim.back != nullptr) {
            cr_assert(heap.cancel(victim));
            arm_at(heap, late, 100);
        }
        arm_at(heap, beat, beat.deadline_ns + 10);
    };
    Alarm::fired.clear();
    cr_assert_eq(heap.fire_due(1), 1u);
    cr_assert_eq(beat.fired_with, 7u);
    cr_assert_eq(heap.earliest(), 11);
    cr_assert_eq(heap.fire_due(11), 1u);
    cr_assert_eq(heap.earliest(), 21);
    Alarm::also = nullptr;
    cr_assert_eq(heap.fire_due(200), 2u);
    cr_assert_eq(Alarm::fired.back(), &late);
}

// Goal: an action that arms a timer which is due already does not keep the heap firing for ever, nor does it keep what
// was due before from firing now.
Test(TimerHeap, newly_armed_due_timers_wait_for_the_next_call) {
    static TimerHeap heap;
    static Alarm first, second, new_one;
    arm_at(heap, first, 1);
    arm_at(heap, second, 5);
    Alarm::also = [](Alarm &alarm) {
        if (&alarm == &first)
            arm_at(heap, new_one, 2);
    };
    Alarm::fired.clear();
    heap.fire_due(10);
    cr_assert_eq(Alarm::fired.size(), 2u);
    cr_assert_eq(Alarm::fired[0], &first);
    cr_assert_eq(Alarm::fired[1], &second);
    heap.fire_due(10);
    cr_assert_eq(Alarm::fired.size(), 3u);
    cr_assert_eq(Alarm::fired[2], &new_one);
}

// Goal: a deadline before the last look counts as that look's time: of timers armed too late, the first armed is first.
Test(TimerHeap, deadlines_in_the_past_fire_in_the_order_of_arming) {
    TimerHeap heap;
    Alarm first, second, third;
    heap.fire_due(100);
    arm_at(heap, third, 101);
    cr_assert(heap.cancel(third));
    arm_at(heap, first, 101);
    Alarm::fired.clear();
    heap.fire_due(200);
    arm_at(heap, second, 50);
    arm_at(heap, third, 20);
    heap.fire_due(200);
    cr_assert(Alarm::fired == (std::vector<Alarm *>{&first, &second, &third}));
}

// Goal: a timer that is due again and again does not keep a later one from firing.
Test(TimerHeap, an_overdue_beat_starves_nobody) {
    static TimerHeap heap;
    static Alarm beat, waiting;
    arm_at(heap, beat, 1);
    arm_at(heap, waiting, 2);
    Alarm::also = [](Alarm &alarm) {
        if (&alarm == &beat)
            arm_at(heap, beat, 1);
    };
    for (int round = 0; round < 3; ++round)
        heap.fire_due(10);
    Alarm::also = nullptr;
    cr_assert_eq(waiting.fired_at, 10);
}
