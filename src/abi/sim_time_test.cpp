// Virtual time, and when it jumps.
#include "sim/test_sim.hpp"

#include <mc/mc.h>

#include <sys/mman.h>

using namespace mc;
using namespace mc::sim;
using namespace mc::sim::testing;

namespace {

Settings slow_by_nothing() {
    Settings settings = with_seed(1);
    settings.delay_ns = 0;
    return settings;
}

} // namespace

// Goal: time that jumps past runnable tasks jumps to the deadline that was chosen, never to a later one that stands behind it.
Test(SimTime, a_jump_ends_at_its_deadline) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &said) {
            const mc_task_t far = go([] { cr_assert_eq(mc_sleep(3600 * MC_SEC), MC_OK); });
            const mc_task_t near = go([&] {
                const int64_t before = mc_now();
                cr_assert_eq(mc_sleep(100 * MC_MS), MC_OK);
                said.say(mc_now() - before);
            });
            const mc_task_t busy = go([] {
                for (const int64_t before = mc_now(); mc_now() - before < 200 * MC_MS;)
                    cr_assert_eq(mc_checkpoint(), MC_OK);
            });
            for (const mc_task_t task : {near, busy, far})
                cr_assert_eq(result_of(task), MC_OK);
        });
        cr_assert(outcome.fine());
        cr_assert_geq(outcome.said[0], 100 * MC_MS);
        cr_assert_lt(outcome.said[0], MC_SEC, "seed %d: %lld ms", static_cast<int>(seed),
                     static_cast<long long>(outcome.said[0] / MC_MS));
    }
}

// Goal: a sleep that is cancelled before it begins takes no time, whatever other deadlines there are.
Test(SimTime, a_wait_that_is_over_takes_no_time) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &) {
            (void)go([] { (void)mc_sleep(3600 * MC_SEC); });
            for (int i = 0; i < 3; ++i)
                cr_assert_eq(mc_yield(), MC_OK);
            const int64_t before = mc_now();
            mc_scope_t scope = 0;
            cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
            cr_assert_eq(mc_scope_enter(scope), MC_OK);
            cr_assert_eq(mc_scope_cancel(scope, MC_E_CANCELED), MC_OK);
            cr_assert_eq(mc_sleep(MC_SEC), MC_E_CANCELED);
            cr_assert_lt(mc_now() - before, MC_MS);
            cr_assert_eq(mc_scope_leave(), MC_OK);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

// Goal: what waits to be freed is freed before time jumps: it may wake somebody.
Test(SimTime, what_is_retired_is_freed_before_a_jump) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &said) {
            static mc_semaphore_t freed;
            static mc_epoch_node node;
            cr_assert_eq(mc_semaphore_create(0, &freed), MC_OK);
            const auto free = [](void *, mc_epoch_node *) { (void)mc_semaphore_release(freed, 1); };
            cr_assert_eq(mc_epoch_retire(0, &node, free, nullptr), MC_OK);
            const int64_t before = mc_now();
            cr_assert_eq(mc_semaphore_acquire(freed, 1, mc_now() + 3600 * MC_SEC), MC_OK);
            said.say(mc_now() - before);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
        cr_assert_lt(outcome.said[0], MC_SEC);
    }
}

// Goal: the library's own step that frees takes part in what bounded waits are about, and is not taken for a task that waits.
Test(SimTime, freeing_with_bounded_waits) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
        Settings settings = with_seed(seed);
        settings.oracles = MC_SIM_BOUNDED_WAIT;
        settings.bound = 200;
        const Outcome outcome = simulate(settings, [](Outcome &) {
            static mc_epoch_node nodes[100];
            std::vector<mc_task_t> others;
            for (int i = 0; i < 3; ++i)
                others.push_back(go([] {
                    for (int round = 0; round < 50; ++round)
                        cr_assert_eq(mc_yield(), MC_OK);
                }));
            for (int i = 0; i < 100; ++i) {
                cr_assert_eq(mc_epoch_retire(
                                 0, &nodes[i], [](void *, mc_epoch_node *) {}, nullptr),
                             MC_OK);
                for (int round = 0; round < 20; ++round)
                    cr_assert_eq(mc_checkpoint(), MC_OK);
                if (i % 10 == 0)
                    cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            }
            for (const mc_task_t other : others)
                cr_assert_eq(result_of(other), MC_OK);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

// Goal: deadlines come when they are, not in coarser steps; and also where bounded waits make many that only yield overdue.
Test(SimTime, deadlines_are_exact) {
    const Outcome outcome = simulate(slow_by_nothing(), [](Outcome &) {
        const int64_t before = mc_now();
        for (int i = 0; i < 100; ++i)
            cr_assert_eq(mc_sleep(10'000), MC_OK);
        cr_assert_lt(mc_now() - before, 100 * 15'000);
    });
    cr_assert(outcome.fine());
    Settings settings = with_seed(0);
    settings.oracles = MC_SIM_BOUNDED_WAIT;
    settings.bound = 16;
    cr_assert(simulate(settings, [](Outcome &) {
                  bool over = false;
                  std::vector<mc_task_t> tasks;
                  for (int i = 0; i < 5; ++i)
                      tasks.push_back(go([&] {
                          while (!over)
                              cr_assert_eq(mc_yield(), MC_OK);
                      }));
                  cr_assert_eq(mc_sleep(3600 * MC_SEC), MC_OK);
                  over = true;
                  for (const mc_task_t task : tasks)
                      cr_assert_eq(result_of(task), MC_OK);
              }).fine());
}

// Goal: at the end of time it stands still, and does not go back.
Test(SimTime, the_end_of_time) {
    const Outcome outcome = simulate(1, [](Outcome &) {
        cr_assert_eq(mc_sleep_until(MC_FOREVER - 500), MC_OK);
        const int64_t now = mc_now();
        cr_assert_geq(now, MC_FOREVER - 500);
        for (int i = 0; i < 20; ++i)
            cr_assert_eq(mc_yield(), MC_OK);
        cr_assert_geq(mc_now(), now);
    });
    cr_assert(outcome.fine());
}

// Goal: who asks again and again, and gets on with it, does not make time jump to a deadline far away.
Test(SimTime, yields_that_get_on_are_no_wait) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &) {
            const mc_chan_t to = channel(4);
            const mc_task_t sends = go([=] {
                for (int64_t i = 0; i < 1000; ++i) {
                    while (mc_send_until(to, &i, MC_NOW) != MC_OK)
                        cr_assert_eq(mc_yield(), MC_OK);
                    cr_assert_eq(mc_yield(), MC_OK);
                }
            });
            const mc_task_t receives = go([=] {
                int64_t value = 0;
                for (int i = 0; i < 1000; ++i)
                    while (mc_recv_until(to, &value, MC_NOW) != MC_OK)
                        cr_assert_eq(mc_yield(), MC_OK);
            });
            cr_assert_eq(mc_join(receives, mc_now() + 3600 * MC_SEC, nullptr), MC_OK);
            cr_assert_eq(result_of(sends), MC_OK);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

// Goal: a wait ends when it is served, not when its task has its turn, which in a crowd may be much later.
Test(SimTime, a_crowd_that_has_been_served_is_not_late) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &) {
            constexpr uint64_t crowd = 300;
            mc_semaphore_t units = 0;
            cr_assert_eq(mc_semaphore_create(0, &units), MC_OK);
            cr_assert_eq(mc_sim_oracles(MC_SIM_BOUNDED_WAIT, 1'000'000), MC_OK);
            mc_waitgroup_t gate = 0; // behind which they come to wait one right after the other
            cr_assert_eq(mc_waitgroup_create(1, &gate), MC_OK);
            uint64_t since = 0; // the first waits
            std::vector<mc_task_t> tasks;
            for (uint64_t i = 0; i < crowd; ++i)
                tasks.push_back(go([&] {
                    cr_assert_eq(mc_waitgroup_wait(gate, MC_FOREVER), MC_OK);
                    since = since == 0 ? mc_sim_steps() : since;
                    return mc_semaphore_acquire(units, 1, MC_FOREVER);
                }));
            cr_assert_eq(mc_sleep(MC_SEC), MC_OK);
            cr_assert_eq(mc_waitgroup_done(gate), MC_OK);
            cr_assert_eq(mc_sleep(MC_SEC), MC_OK);
            cr_assert_eq(mc_sim_oracles(MC_SIM_BOUNDED_WAIT, mc_sim_steps() - since + 20), MC_OK);
            cr_assert_eq(mc_semaphore_release(units, crowd), MC_OK);
            const uint64_t released = mc_sim_steps();
            for (const mc_task_t task : tasks)
                cr_assert_eq(result_of(task), MC_OK);
            cr_assert_gt(mc_sim_steps() - released, crowd - 10);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

// Goal: where the library's objects lie decides nothing, whatever is checked.
Test(SimTime, addresses_decide_nothing) {
    const auto run = [](size_t pages) {
        Settings settings = with_seed(4);
        settings.oracles = MC_SIM_LEDGER | MC_SIM_FIFO | MC_SIM_NO_TASK_LEFT | MC_SIM_BOUNDED_WAIT;
        settings.bound = 640; // tasks are overdue all the time
        return simulate(settings, [=](Outcome &said) {
            cr_assert_neq(mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                          MAP_FAILED);
            std::vector<std::unique_ptr<char[]>> moves;
            for (size_t i = 0; i < pages; ++i)
                moves.push_back(std::make_unique<char[]>(24 + 8 * i));
            mc_waitgroup_t gate = 0;
            cr_assert_eq(mc_waitgroup_create(1, &gate), MC_OK);
            std::vector<mc_task_t> tasks;
            for (int i = 0; i < 300; ++i)
                tasks.push_back(go([&, i] {
                    cr_assert_eq(mc_waitgroup_wait(gate, MC_FOREVER), MC_OK);
                    if (said.said_count < 60)
                        said.say(i);
                    for (int round = 0; round < 10; ++round)
                        cr_assert_eq(mc_checkpoint(), MC_OK);
                }));
            cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(mc_waitgroup_done(gate), MC_OK);
            for (const mc_task_t task : tasks)
                cr_assert_eq(result_of(task), MC_OK);
        });
    };
    const Outcome once = run(1);
    cr_assert(once.fine());
    for (const size_t pages : {7u, 100u, 1001u}) {
        const Outcome moved = run(pages);
        cr_assert_eq(moved.signature, once.signature);
        cr_assert(moved.all_said() == once.all_said());
    }
}
