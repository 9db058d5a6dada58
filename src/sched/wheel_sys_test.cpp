// The wheel under every interleaving: its owner, thieves, pushers, and those who look at it before they sleep. On real
// threads in other builds.
#include "sched/wheel.hpp"

#include "sched/test_ledger.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::Task;
using sched::Wheel;
using sched::testing::Ledger;
using sched::testing::publish_beside_a_sleeper;
using testing::check;
using testing::Thread;

namespace {

int have(Ledger &ledger, const Task *task) { return task == nullptr ? 0 : ledger.have(task); }

} // namespace

// Goal: the owner turns the wheel while a thief steals and another executor puts something on it: each task comes out once,
// complete, and the count is right in the end.
Test(WheelSys, owner_thief_and_pusher, .timeout = 120) {
    for (const uint32_t segments : {1u, 2u})
        testing::expect_pass(
            {.name = segments == 1 ? "WheelSys/owner_thief_and_pusher (1)" : "WheelSys/owner_thief_and_pusher (2)",
             .search = testing::Search::seeds,
             .seeds = 5'000},
            [segments] {
                Ledger ledger;
                Wheel wheel;
                check(wheel.set_segments(segments), "no memory");
                wheel.push(ledger.fresh(0));
                wheel.push(ledger.fresh(1), 1);
                int stolen = 0;
                Thread thief([&] { stolen = have(ledger, wheel.steal()) + have(ledger, wheel.steal()); }, "thief");
                Thread pusher(
                    [&] {
                        wheel.push(ledger.fresh(2));
                        wheel.push(ledger.fresh(3), 1);
                    },
                    "pusher");
                int taken = have(ledger, wheel.take());
                wheel.push(ledger.fresh(4));
                taken += have(ledger, wheel.take());
                thief.join();
                pusher.join();
                while (const Task *task = wheel.take())
                    taken += have(ledger, task);
                check(taken + stolen == 5, "%d and %d", taken, stolen);
                ledger.all_were_had(5);
                check(wheel.size() == 0 && !wheel.seen_nonempty(), "the count is wrong");
            });
}

// Goal: the last one, and both want it: one has it.
Test(WheelSys, the_last_one_once) {
    testing::expect_pass({.name = "WheelSys/the_last_one_once"}, [] {
        Ledger ledger;
        Wheel wheel;
        wheel.push(ledger.fresh(0));
        int stolen = 0;
        Thread thief([&] { stolen = have(ledger, wheel.steal()); }, "thief");
        const int taken = have(ledger, wheel.take());
        thief.join();
        check(taken + stolen == 1, "%d and %d", taken, stolen);
    });
}

// Goal: a push, and somebody who announces that it goes to sleep, then looks: one of the two sees the other, also while the
// owner turns the wheel.
Test(WheelSys, a_sleeper_sees_it_or_is_seen) {
    testing::expect_pass({.name = "WheelSys/a_sleeper_sees_it_or_is_seen"}, [] {
        Ledger ledger;
        Wheel wheel;
        check(wheel.set_segments(2), "no memory");
        publish_beside_a_sleeper(wheel, [&] { wheel.push(ledger.fresh(0)); });
    });
}

// Goal: what waits on the wheel is seen by a sleeper at every moment, also when the wheel is turned to its segment.
Test(WheelSys, a_turn_hides_nothing) {
    testing::expect_pass({.name = "WheelSys/a_turn_hides_nothing"}, [] {
        Ledger ledger;
        Wheel wheel;
        check(wheel.set_segments(2), "no memory");
        wheel.push(ledger.fresh(0));
        wheel.push(ledger.fresh(1));
        bool seen = false;
        Thread sleeper([&] { seen = wheel.seen_nonempty(); }, "sleeper");
        check(have(ledger, wheel.take()) == 1, "nothing there");
        sleeper.join();
        check(seen, "not seen");
    });
}
