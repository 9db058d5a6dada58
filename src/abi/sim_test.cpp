// Simulation through the C interface: what include/mc/sim.h promises, clause by clause. Each run is a process (sim/test_sim.hpp).
#include "csp/channel.hpp"
#include "sched/runtime.hpp"
#include "sched/spawn.hpp"
#include "sim/test_sim.hpp"

#include <mc/mc.h>

#include <pthread.h>
#include <set>
#include <stdexcept>

using namespace mc;
using namespace mc::sim;
using namespace mc::sim::testing;

namespace {

// Three that send, with sleeps and random numbers; the owner says what came, and when.
void busy_program(Outcome &outcome) {
    cr_assert_eq(csp_init_runtime(0), 1);
    const mc_chan_t to = channel();
    std::vector<mc_task_t> senders;
    for (int i = 0; i < 3; ++i)
        senders.push_back(go([to, i] {
            for (int round = 0; round < 3; ++round) {
                cr_assert_eq(send(to, i * 1000 + static_cast<int64_t>(mc_random() % 1000)), MC_OK);
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            }
        }));
    for (int i = 0; i < 9; ++i)
        outcome.say(receive(to));
    for (const mc_task_t sender : senders)
        cr_assert_eq(result_of(sender), MC_OK);
    csp_shutdown_runtime();
    outcome.say(mc_now());
    cr_assert_eq(mc_chan_destroy(to), MC_OK);
}

// A thread of the system's.
template <class Body> void on_thread(Body body) {
    pthread_t thread;
    const auto run = [](void *argument) -> void * {
        (*static_cast<Body *>(argument))();
        return nullptr;
    };
    cr_assert_eq(pthread_create(&thread, nullptr, run, &body), 0);
    cr_assert_eq(pthread_join(thread, nullptr), 0);
}

} // namespace

// --- one seed, one run ---

// Goal: the same seed is the same run, to the last message and nanosecond; a hundred seeds are many. The signature is of what happens,
// and says nothing of the seed: where nothing can differ, all seeds share it.
Test(Simulation, a_seed_is_a_run) {
    std::set<uint64_t> signatures;
    std::set<std::vector<int64_t>> runs;
    for (uint64_t seed = 0; seed < 100; ++seed) {
        const Outcome once = simulate(seed, busy_program);
        const Outcome again = simulate(seed, busy_program);
        cr_assert(once.fine() && again.fine());
        cr_assert_eq(once.signature, again.signature);
        cr_assert_eq(once.steps, again.steps);
        cr_assert(once.all_said() == again.all_said());
        signatures.insert(once.signature);
        runs.insert(once.all_said());
    }
    cr_assert_gt(signatures.size(), 90u);
    cr_assert_eq(runs.size(), 100u); // random numbers differ, at least
    const auto straight = [](Outcome &) { cr_assert_eq(mc_sleep(MC_MS), MC_OK); };
    cr_assert_eq(simulate(1, straight).signature, simulate(2, straight).signature);
}

// Goal: each policy is a run of its own, and the same one again.
Test(Simulation, policies_differ) {
    std::set<uint64_t> signatures;
    for (const char *policy : {"random", "pct:1", "pct:3"}) {
        const Outcome once = simulate(with_seed(5, policy), busy_program);
        cr_assert_eq(once.signature, simulate(with_seed(5, policy), busy_program).signature);
        signatures.insert(once.signature);
    }
    cr_assert_eq(signatures.size(), 3u);
}

// Goal: a run is its choices: the schedule that was recorded, without the policy that made it, is the same run.
Test(Simulation, a_schedule_is_the_run) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Recorded run = simulate_recorded(with_seed(seed), busy_program);
        cr_assert_eq(memcmp(run.header.magic, MC_SIM_MAGIC, 8), 0);
        cr_assert_eq(run.header.version, mc_abi_version());
        cr_assert_eq(run.header.seed, seed);
        cr_assert_eq(run.header.state, uint32_t{MC_SIM_ENDED});
        cr_assert_eq(run.header.failure, uint32_t{MC_SIM_FINE});
        cr_assert_eq(run.header.signature, run.outcome.signature);
        cr_assert_eq(run.header.steps, run.outcome.steps);
        cr_assert_eq(run.header.now_ns, run.outcome.now_ns);
        Schedule schedule;
        for (size_t i = 0; i < run.choices.size(); ++i) {
            cr_assert_geq(run.choices[i].candidates, 2);
            cr_assert_lt(run.choices[i].taken, run.choices[i].candidates);
            if (run.choices[i].taken != 0)
                schedule.push_back({i, run.choices[i].taken});
        }
        const Outcome replayed = simulate(with_schedule(schedule, seed), busy_program);
        cr_assert_eq(replayed.signature, run.outcome.signature);
        cr_assert(replayed.all_said() == run.outcome.all_said());
    }
}

// Goal: nothing of this is there outside simulation.
Test(Simulation, is_off_by_itself) {
    cr_assert_eq(mc_sim_active(), 0);
    cr_assert_eq(mc_sim_seed(), 0u);
    cr_assert_eq(mc_sim_steps(), 0u);
    cr_assert_eq(mc_sim_signature(), 0u);
    cr_assert_eq(mc_sim_oracles(MC_SIM_LEDGER, 0), MC_OK);
    cr_assert_eq(mc_sim_oracles(16, 0), MC_E_INVAL);
    mc_sim_note("nothing");
    cr_assert_eq(mc_sim_choose(0), 0u);
    cr_assert_eq(mc_sim_choose(1), 0u);
    bool seen[3] = {};
    for (int i = 0; i < 1000; ++i)
        seen[mc_sim_choose(3)] = true;
    for (int i = 0; i < 1000; ++i)
        cr_assert_lt(mc_sim_choose(1'000'000'000), 65'535u);
    cr_assert(seen[0] && seen[1] && seen[2]);
}

Test(Simulation, fails_outside_too, .signal = SIGABRT) { mc_sim_fail("as it should"); }

// --- who and where ---

// Goal: other threads get MC_E_SIM, also when the first one has ended, and change nothing.
Test(Simulation, one_thread) {
    const Outcome outcome = simulate(1, [](Outcome &said) {
        on_thread([&] { // it is the first that calls
            const mc_chan_t to = channel(1);
            const int64_t before = mc_now();
            on_thread([&] {
                int64_t value = 1;
                mc_chan_t other = 0;
                csp_writer writer = nullptr;
                csp_reader reader = nullptr;
                cr_assert_eq(mc_send(to, &value), MC_E_SIM);
                cr_assert_eq(mc_yield(), MC_E_SIM);
                cr_assert_eq(mc_chan_create(0, 8, 0, nullptr, nullptr, &other), MC_E_SIM);
                cr_assert_eq(mc_spawn(
                                 0, [](void *) { return 0; }, nullptr, nullptr, nullptr),
                             MC_E_SIM);
                cr_assert_eq(csp_chan(&writer, &reader, nullptr), 0);
                cr_assert_eq(mc_sim_active(), 1);
                const uint64_t signature = mc_sim_signature();
                bool seen[4] = {};
                for (int i = 0; i < 1000; ++i) // by chance, and no part of the run
                    seen[mc_sim_choose(4)] = true;
                cr_assert(seen[0] && seen[1] && seen[2] && seen[3]);
                mc_sim_note("elsewhere");
                cr_assert_eq(mc_sim_oracles(MC_SIM_NO_TASK_LEFT, 0), MC_E_SIM);
                cr_assert_eq(mc_sim_signature(), signature);
                cr_assert_eq(mc_now(), before); // and does not go on
                cr_assert_eq(mc_now(), before);
            });
            cr_assert_eq(send(to, 7), MC_OK);
            cr_assert_eq(receive(to), 7);
            said.say(mc_now());
        });
        cr_assert_eq(mc_yield(), MC_E_SIM); // the owner has ended
    });
    cr_assert(outcome.fine());
}

// Goal: MC_MODE_SIMULATION begins it as the first call of all, and not later; more runtimes may say so too.
Test(Simulation, begins_with_the_first_call) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_t rt = 0;
    mc_runtime_t other = 0;
    options.mode = 2;
    cr_assert_eq(mc_runtime_create(&options, &rt), MC_E_INVAL);
    options.mode = MC_MODE_SIMULATION;
    options.seed = 42;
    cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
    cr_assert_eq(mc_sim_active(), 1);
    cr_assert_eq(mc_sim_seed(), 42u);
    options.seed = 43;
    cr_assert_eq(mc_runtime_create(&options, &other), MC_OK);
    cr_assert_eq(mc_sim_seed(), 42u);
    cr_assert_eq(mc_runtime_destroy(other), MC_OK);
    cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
}

Test(Simulation, does_not_begin_later) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_t rt = 77;
    options.mode = MC_MODE_SIMULATION;
    cr_assert_eq(mc_yield(), MC_OK);
    cr_assert_eq(mc_runtime_create(&options, &rt), MC_E_BUSY);
    cr_assert_eq(rt, 77u);
    cr_assert_eq(mc_sim_active(), 0);
    const int64_t before = mc_now(); // and leaves the clock alone
    cr_assert_eq(mc_sleep(MC_MS), MC_OK);
    cr_assert_geq(mc_now(), before + MC_MS);
}

// Goal: csp_init_runtime works as among many, without threads: bounds, twice, on a microthread, with microthreads left.
Test(Simulation, executors_are_asked_for) {
    const Outcome outcome = simulate(
        3,
        [](Outcome &) {
            const mc_chan_t to = channel();
            cr_assert_eq(csp_init_runtime(-1), 0);
            cr_assert_eq(csp_init_runtime(4), 1);
            cr_assert_eq(csp_init_runtime(4), 0); // twice
            const mc_task_t task = go([to] {
                csp_shutdown_runtime();               // not from here
                cr_assert_eq(csp_init_runtime(2), 0); // nor that
                cr_assert_eq(receive(to), 5);
            });
            cr_assert_eq(send(to, 5), MC_OK);
            cr_assert_eq(result_of(task), MC_OK);
            csp_shutdown_runtime();
            cr_assert_eq(csp_init_runtime(1), 1);
            csp_shutdown_runtime();
            const mc_task_t left = go([to] { (void)receive(to); });
            cr_assert_eq(csp_init_runtime(2), 0); // one lives
            cr_assert_eq(send(to, 1), MC_OK);
            cr_assert_eq(result_of(left), MC_OK);
            cr_assert_eq(sync::thread_count(), 1u);
        },
        true);
    cr_assert(outcome.fine());
}

// --- time ---

// Goal: time is virtual: it begins at a second, an hour's sleep takes none of ours, deadlines come exactly, and reading it moves it.
Test(Simulation, time_is_virtual) {
    const Outcome outcome = simulate(with_schedule({}), [](Outcome &said) {
        timespec before;
        timespec after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        cr_assert_eq(mc_yield(), MC_OK);
        const int64_t start = mc_now();
        cr_assert_geq(start, MC_SEC);
        cr_assert_lt(start, MC_SEC + MC_MS);
        cr_assert_eq(mc_now(), start + 100);
        cr_assert_eq(mc_sleep_until(start + 3600 * MC_SEC), MC_OK);
        said.say(mc_now() - start - 3600 * MC_SEC);
        int64_t value = 0;
        const int64_t deadline = mc_now() + MC_SEC;
        cr_assert_eq(mc_recv_until(channel(), &value, deadline), MC_E_TIMEDOUT);
        said.say(mc_now() - deadline);
        clock_gettime(CLOCK_MONOTONIC, &after);
        cr_assert_lt(after.tv_sec - before.tv_sec, 60);
    });
    cr_assert(outcome.fine());
    for (int i = 0; i < 2; ++i) {
        cr_assert_geq(outcome.said[i], 0);
        cr_assert_lt(outcome.said[i], 200'000, "%lld ns late", static_cast<long long>(outcome.said[i]));
    }
}

// Goal: what asks again and again for a time to come sees it come, however it asks.
Test(Simulation, who_waits_by_asking_sees_time_go_by) {
    const Outcome outcome = simulate(2, [](Outcome &) {
        const int64_t until = mc_now() + 50 * MC_MS;
        while (mc_now() < until) {
        }
        const int64_t later = mc_now() + 5 * MC_MS;
        while (mc_now() < later)
            cr_assert_eq(mc_yield(), MC_OK);
        const int64_t at_last = mc_now() + 5 * MC_MS;
        while (mc_now() < at_last)
            cr_assert_eq(mc_checkpoint(), MC_OK);
        bool done = false; // a year away: time jumps for those who do nothing but yield
        const mc_task_t sleeper = go([&] {
            cr_assert_eq(mc_sleep(365 * 24 * 3600 * MC_SEC), MC_OK);
            done = true;
        });
        while (!done)
            cr_assert_eq(mc_yield(), MC_OK);
        cr_assert_eq(result_of(sleeper), MC_OK);
    });
    cr_assert(outcome.fine());
}

namespace {

Settings slow_by(int64_t delay_ns, uint64_t seed) {
    Settings settings = with_seed(seed);
    settings.delay_ns = delay_ns;
    return settings;
}

} // namespace

// Goal: steps take time too, so that a chain of them that never ends keeps no deadline away.
Test(Simulation, a_chain_of_steps_takes_time) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(slow_by(0, seed), [](Outcome &) {
            static bool stop;
            static int steps;
            struct Chain {
                static void run(void *) {
                    ++steps;
                    if (!stop)
                        cr_assert_eq(sched::spawn_step(*sched::current()->executor, run, nullptr), MC_OK);
                }
            };
            cr_assert_eq(mc_yield(), MC_OK);
            cr_assert_eq(sched::spawn_step(*sched::current()->executor, Chain::run, nullptr), MC_OK);
            cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            stop = true;
            cr_assert_gt(steps, 100);
            cr_assert_lt(steps, 110'000); // a policy may pass us over, but not for ever
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

namespace {

// A microthread computes for a hundred calls; another one sleeps: which is first?
void race_with_time(Outcome &said) {
    bool computed = false;
    const mc_task_t sleeper = go([&] {
        cr_assert_eq(mc_sleep(10 * MC_MS), MC_OK);
        said.say(computed ? 1 : 0);
    });
    const mc_task_t computes = go([&] {
        for (int i = 0; i < 100; ++i)
            cr_assert_eq(mc_checkpoint(), MC_OK);
        computed = true;
    });
    cr_assert_eq(result_of(computes), MC_OK);
    cr_assert_eq(result_of(sleeper), MC_OK);
}

} // namespace

// Goal: a runnable task may be slow, so that a deadline comes before it; but by no more than the delay that is allowed.
Test(Simulation, tasks_may_be_slow) {
    int late = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        late += simulate(slow_by(100 * MC_MS, seed), race_with_time).said[0] == 0 ? 1 : 0;
        cr_assert_eq(simulate(slow_by(9 * MC_MS, seed), race_with_time).said[0], 1, "seed %d", static_cast<int>(seed));
    }
    cr_assert_gt(late, 5);
    cr_assert_lt(late, 60);
}

// --- what can come between two calls ---

namespace {

// Looks whether something is there, then takes it: two do so at once. Says how many found it gone.
void look_then_take(Outcome &said, int executors, bool waits) {
    if (executors != 0)
        cr_assert_eq(csp_init_runtime(executors), 1);
    const mc_chan_t credits = channel(4);
    cr_assert_eq(send(credits, 1), MC_OK);
    int there = 1;
    int gone = 0;
    const auto take = [&] {
        if (there == 0)
            return;
        if (waits) {
            (void)mc_yield();
        } else {
            int64_t other = 0;
            cr_assert_eq(mc_recv_try(channel(1), &other), MC_E_AGAIN); // a call that never waits
        }
        int64_t credit = 0;
        there = 0;
        gone += mc_recv_try(credits, &credit) == MC_OK ? 0 : 1;
    };
    const mc_task_t first = go(take);
    const mc_task_t second = go(take);
    cr_assert_eq(result_of(first), MC_OK);
    cr_assert_eq(result_of(second), MC_OK);
    said.say(gone);
}

int how_many_lose(int executors, bool waits) {
    int lost = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        const Outcome outcome = simulate(seed, [=](Outcome &said) { look_then_take(said, executors, waits); });
        cr_assert(outcome.fine());
        lost += static_cast<int>(outcome.said[0]);
    }
    return lost;
}

} // namespace

// Goal: with one executor nothing comes between two calls that never wait, as in truth; with several, everything may. Calls that
// may wait let others in with any number.
Test(Simulation, what_never_waits_is_apart_only_among_many) {
    cr_assert_eq(how_many_lose(0, false), 0);
    cr_assert_eq(how_many_lose(1, false), 0);
    cr_assert_gt(how_many_lose(2, false), 3);
    cr_assert_gt(how_many_lose(0, true), 3);
}

// Goal: a spawned microthread may run before its spawner goes on, and after.
Test(Simulation, a_child_may_be_first) {
    int first = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &said) {
            bool ran = false;
            const mc_task_t child = go([&] { ran = true; });
            said.say(ran ? 1 : 0);
            cr_assert_eq(result_of(child), MC_OK);
        });
        first += static_cast<int>(outcome.said[0]);
    }
    cr_assert_gt(first, 5);
    cr_assert_lt(first, 55);
}

// Goal: where a mutex is unlocked another may go on, before the caller does anything else.
Test(Simulation, an_unlock_lets_others_go_on) {
    int seen = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &said) {
            mc_mutex_t mutex = 0;
            int plain = 0; // used without the mutex, by mistake
            cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
            const mc_task_t other = go([&] {
                cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
                plain = 1;
                cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
            });
            cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
            const int inside = plain;
            cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
            said.say(plain != inside ? 1 : 0);
            cr_assert_eq(result_of(other), MC_OK);
            cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
        });
        cr_assert(outcome.fine());
        seen += static_cast<int>(outcome.said[0]);
    }
    cr_assert_gt(seen, 0);
}

// Goal: the arm from which an alt looks is drawn, all of them; of a schedule it is the first.
Test(Simulation, arms_are_drawn) {
    const auto choose = [](Outcome &said) {
        csp_writer writers[3];
        csp_reader readers[3];
        csp_chanop ops[3];
        for (int i = 0; i < 3; ++i) {
            cr_assert_eq(csp_chan(&writers[i], &readers[i], nullptr), 1);
            ops[i] = {csp_wait(readers[i]), nullptr};
            (void)go([writer = writers[i]] { (void)csp_send(writer, nullptr); });
        }
        cr_assert_eq(mc_sleep(MC_SEC), MC_OK); // all of them wait
        said.say(csp_alt(ops, 3, 0));
    };
    std::set<int64_t> taken;
    for (uint64_t seed = 0; seed < 40; ++seed)
        taken.insert(simulate(seed, choose).said[0]);
    cr_assert(taken == (std::set<int64_t>{1, 2, 3}));
    cr_assert_eq(simulate(with_schedule({}), choose).said[0], 1);
}

// Goal: a quantum is so many calls: one that waits by asking lets others run although nothing is explored.
Test(Simulation, a_quantum_is_so_many_calls) {
    const Outcome outcome = simulate(with_schedule({}), [](Outcome &said) {
        bool told = false;
        int asked = 0;
        const mc_task_t asks = go([&] {
            while (!told) {
                ++asked;
                cr_assert_eq(mc_checkpoint(), MC_OK);
            }
        });
        const mc_task_t tells = go([&] { told = true; });
        cr_assert_eq(result_of(asks), MC_OK);
        cr_assert_eq(result_of(tells), MC_OK);
        said.say(asked);
    });
    cr_assert(outcome.fine());
    cr_assert_geq(outcome.said[0], 3'900);
    cr_assert_leq(outcome.said[0], 4'100);
}

// --- the other calls ---

// Goal: a blocking call is made there and then, on a stack for native code; its result and its exceptions come back, and the
// caller's cancellation does not end it.
Test(Simulation, blocking_calls_are_made_at_once) {
    const Outcome outcome = simulate(
        4,
        [](Outcome &) {
            const auto deep = [](void *argument) -> int32_t {
                volatile char frame[512 * 1024]; // no microthread of the usual size has room for that
                frame[0] = 1;
                frame[sizeof frame - 1] = 2;
                *static_cast<int *>(argument) += frame[0] + frame[sizeof frame - 1];
                return 12;
            };
            const mc_task_t task = go([&] {
                int sum = 0;
                int32_t result = 0;
                cr_assert_eq(mc_blocking_call(deep, &sum, &result), MC_OK);
                cr_assert_eq(sum, 3);
                cr_assert_eq(result, 12);
                cr_assert_eq(
                    mc_blocking_call([](void *) -> int32_t { throw std::runtime_error("x"); }, nullptr, &result),
                    MC_E_CRASHED);
                mc_scope_t scope = 0;
                cr_assert_eq(mc_scope_create(mc_now() + MC_MS, &scope), MC_OK);
                cr_assert_eq(mc_scope_enter(scope), MC_OK);
                const auto slow = [](void *) -> int32_t { return mc_sleep(MC_SEC); };
                cr_assert_eq(mc_blocking_call(slow, nullptr, &result), MC_OK);
                cr_assert_eq(result, MC_OK);
                const auto fails = [](void *) -> int32_t { return MC_E_CRASHED; };
                cr_assert_eq(mc_blocking_call(fails, nullptr, &result), MC_E_CANCELED); // before it has begun
                cr_assert_eq(mc_scope_leave(), MC_OK);
                cr_assert_eq(mc_blocking_call(fails, nullptr, &result), MC_OK); // a result as good as any
                cr_assert_eq(result, MC_E_CRASHED);
                cr_assert_eq(mc_scope_destroy(scope), MC_OK);
            });
            cr_assert_eq(result_of(task), MC_OK);
            cr_assert_eq(sync::thread_count(), 1u);
        },
        true);
    cr_assert(outcome.fine());
}

// Goal: what a shutdown has woken can still call what blocks, and is waited for, as outside; but it can spawn no more.
Test(Simulation, blocking_calls_of_a_runtime_that_shuts_down) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &said) {
            mc_runtime_t rt = 0;
            mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
            cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
            cr_assert_eq(mc_runtime_start(rt), MC_OK);
            const mc_task_t task = go(
                [&] {
                    cr_assert_eq(mc_sleep(1000 * MC_SEC), MC_E_SHUTDOWN);
                    int32_t result = 0;
                    const auto call = [](void *) -> int32_t { return 3; };
                    cr_assert_eq(mc_blocking_call(call, nullptr, &result), MC_OK);
                    cr_assert_eq(mc_spawn(
                                     0, [](void *) { return 0; }, nullptr, nullptr, nullptr),
                                 MC_E_SHUTDOWN);
                    said.say(result);
                },
                "late", rt);
            cr_assert_eq(mc_sleep(10 * MC_MS), MC_OK);
            cr_assert_eq(mc_runtime_shutdown(rt, 2 * MC_SEC), MC_OK);
            cr_assert_eq(result_of(task), MC_OK);
            cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
        cr_assert_eq(outcome.said_count, 1u);
        cr_assert_eq(outcome.said[0], 3);
    }
}

// Goal: of a blocking call that nothing ends the owner is told, as of any wait; what it was called with stays until it has ended.
Test(Simulation, a_blocking_call_that_nothing_ends) {
    const Outcome outcome = simulate(
        2,
        [](Outcome &said) {
            static mc_chan_t never;
            never = channel();
            const auto waits = [](void *) -> int32_t { return static_cast<int32_t>(receive(never)); };
            int32_t result = 77;
            cr_assert_eq(mc_blocking_call(waits, nullptr, &result), MC_E_DEADLOCK);
            cr_assert_eq(send(never, 5), MC_OK);
            cr_assert_eq(mc_sleep(MC_SEC), MC_OK);
            cr_assert_eq(result, 77);
            mc_runtime_counters counters = MC_RUNTIME_COUNTERS_INIT;
            cr_assert_eq(mc_runtime_stats(0, &counters), MC_OK);
            said.say(static_cast<int64_t>(counters.microthreads));
        },
        true);
    cr_assert(outcome.fine());
    cr_assert_eq(outcome.said[0], 0);
}

// Goal: several runtimes on the one thread: what is spawned before the start begins with it, each counts its own, they wait for each
// other's channels, and a shutdown ends the waits of its own alone.
Test(Simulation, several_runtimes) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(
            seed,
            [](Outcome &) {
                mc_runtime_t rt = 0;
                mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
                int hooks = 0;
                options.executors = 3;
                options.user = &hooks;
                options.thread_start = [](void *user, uint32_t) { *static_cast<int *>(user) += 1; };
                options.thread_stop = [](void *user, uint32_t) { *static_cast<int *>(user) += 10; };
                cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
                const mc_chan_t to = channel();
                bool began = false;
                const mc_task_t there = go(
                    [&] {
                        began = true;
                        cr_assert_eq(mc_runtime_self(), rt);
                        cr_assert_eq(receive(to), 8);
                        cr_assert_eq(send(to, 9), MC_OK);
                        return static_cast<int32_t>(receive(to)); // until the shutdown
                    },
                    "there", rt);
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
                cr_assert_not(began);
                cr_assert_eq(mc_runtime_add_executor(rt), MC_E_CONTEXT);
                cr_assert_eq(mc_runtime_start(rt), MC_OK);
                cr_assert_eq(mc_runtime_start(rt), MC_OK);
                cr_assert_eq(mc_runtime_add_executor(rt), MC_OK);
                cr_assert_eq(hooks, 1);
                cr_assert_eq(send(to, 8), MC_OK);
                cr_assert_eq(receive(to), 9);
                mc_runtime_counters counters = MC_RUNTIME_COUNTERS_INIT;
                cr_assert_eq(mc_runtime_stats(rt, &counters), MC_OK);
                cr_assert_eq(counters.microthreads, 1u);
                const mc_chan_t mine = channel();
                const mc_task_t here = go([&] { cr_assert_eq(receive(mine), 1); });
                cr_assert_eq(mc_runtime_destroy(rt), MC_E_BUSY);
                cr_assert_eq(mc_runtime_shutdown(rt, MC_SEC), MC_OK);
                cr_assert_eq(result_of(there), MC_E_SHUTDOWN);
                cr_assert_eq(hooks, 11);
                mc_task_t late = 0;
                cr_assert_eq(mc_spawn(
                                 rt, [](void *) { return 0; }, nullptr, nullptr, &late),
                             MC_E_SHUTDOWN);
                cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
                cr_assert_eq(mc_runtime_stats(rt, &counters), MC_E_STALE);
                cr_assert_eq(send(mine, 1), MC_OK); // the default one's waits went on
                cr_assert_eq(result_of(here), MC_OK);
            },
            true);
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

// Goal: quiescence: told when nothing moves, in time, and a deadlock as such.
Test(Simulation, quiescence) {
    const Outcome outcome = simulate(
        6,
        [](Outcome &) {
            mc_runtime_t rt = 0;
            mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
            cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
            cr_assert_eq(mc_runtime_start(rt), MC_OK);
            int rounds = 0;
            cr_assert_eq(mc_runtime_wait_quiescent(rt, MC_FOREVER), MC_OK);
            mc_runtime_t idle = 0; // nothing of it moves before it is started, however long one waits
            cr_assert_eq(mc_runtime_create(&options, &idle), MC_OK);
            cr_assert_eq(mc_runtime_wait_quiescent(idle, MC_FOREVER), MC_OK);
            const mc_task_t waiting = go([] {}, "waiting", idle);
            cr_assert_eq(mc_runtime_wait_quiescent(idle, MC_FOREVER), MC_E_CONTEXT);
            cr_assert_eq(mc_runtime_shutdown(idle, MC_SEC), MC_OK);
            cr_assert_eq(result_of(waiting), MC_OK);
            cr_assert_eq(mc_runtime_destroy(idle), MC_OK);
            const mc_task_t works = go(
                [&] {
                    for (; rounds < 5; ++rounds)
                        cr_assert_eq(mc_sleep(MC_SEC), MC_OK);
                },
                "works", rt);
            cr_assert_eq(mc_runtime_wait_quiescent(rt, mc_now() + MC_SEC / 2), MC_E_TIMEDOUT);
            const mc_task_t asks = go([&] { return mc_runtime_wait_quiescent(rt, MC_FOREVER); });
            cr_assert_eq(mc_runtime_wait_quiescent(rt, MC_FOREVER), MC_OK);
            cr_assert_eq(rounds, 5);
            cr_assert_eq(result_of(asks), MC_OK);
            cr_assert_eq(result_of(works), MC_OK);
            const mc_chan_t never = channel();
            const mc_task_t waits = go(
                [&] {
                    cr_assert_eq(mc_runtime_wait_quiescent(rt, MC_FOREVER), MC_E_CONTEXT);
                    (void)receive(never);
                },
                "waits", rt);
            cr_assert_eq(mc_runtime_wait_quiescent(rt, MC_FOREVER), MC_E_DEADLOCK);
            cr_assert_eq(mc_chan_close(never), MC_OK);
            cr_assert_eq(result_of(waits), MC_OK);
            cr_assert_eq(mc_runtime_shutdown(rt, MC_SEC), MC_OK);
            cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
        },
        true);
    cr_assert(outcome.fine());
}

// Goal: a scope ends the wait for quiescence, and so does the end of the waiter's own runtime; timers apart, what waits to be freed
// is no quiet.
Test(Simulation, quiescence_is_a_wait) {
    const Outcome outcome = simulate(3, [](Outcome &said) {
        mc_runtime_t first = 0;
        mc_runtime_t second = 0;
        mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
        for (mc_runtime_t *rt : {&first, &second}) {
            cr_assert_eq(mc_runtime_create(&options, rt), MC_OK);
            cr_assert_eq(mc_runtime_start(*rt), MC_OK);
        }
        const mc_task_t sleeps = go([] { return mc_sleep(10 * MC_SEC); }, "sleeps", second);
        const mc_task_t asks = go([&] { return mc_runtime_wait_quiescent(second, MC_FOREVER); }, "asks", first);
        const mc_task_t elsewhere = go([] { return mc_sleep(1000 * MC_SEC); }, "elsewhere"); // keeps nobody
        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
        const int64_t before = mc_now();
        mc_scope_t scope = 0;
        cr_assert_eq(mc_scope_create(mc_now() + 20 * MC_MS, &scope), MC_OK);
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        cr_assert_eq(mc_runtime_wait_quiescent(second, MC_FOREVER), MC_E_CANCELED);
        cr_assert_lt(mc_now() - before, 25 * MC_MS); // though another one waits without a deadline
        cr_assert_eq(mc_scope_leave(), MC_OK);
        cr_assert_eq(mc_scope_destroy(scope), MC_OK);
        cr_assert_eq(mc_runtime_shutdown(first, MC_SEC), MC_OK);
        cr_assert_eq(result_of(asks), MC_E_SHUTDOWN);
        cr_assert_eq(result_of(sleeps), MC_OK);
        static mc_chan_t to;
        static mc_epoch_node node;
        to = channel();
        const mc_task_t receives = go([&] { said.say(receive(to)); }, "receives", second);
        const mc_task_t retires = go(
            [] {
                const auto free = [](void *, mc_epoch_node *) {
                    const int64_t value = 7;
                    (void)mc_send_try(to, &value);
                };
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
                return mc_epoch_retire(0, &node, free, nullptr);
            },
            "retires", second);
        cr_assert_eq(mc_runtime_wait_quiescent(second, MC_FOREVER), MC_OK);
        cr_assert_eq(said.said_count, 1u);
        cr_assert_eq(result_of(receives), MC_OK);
        cr_assert_eq(result_of(retires), MC_OK);
        cr_assert_lt(mc_now(), 100 * MC_SEC);
        cr_assert_eq(result_of(elsewhere), MC_OK);
        cr_assert_eq(mc_runtime_shutdown(second, MC_SEC), MC_OK);
    });
    cr_assert(outcome.fine());
}

// Goal: what a blocking call runs is no microthread of the runtime's, in that no shutdown ends its waits, and nothing is quiet while it
// is under way.
Test(Simulation, a_blocking_call_is_native) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &said) {
            mc_runtime_t rt = 0;
            mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
            cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
            cr_assert_eq(mc_runtime_start(rt), MC_OK);
            static mc_chan_t never;
            never = channel();
            const mc_task_t waits = go(
                [&] {
                    int32_t result = 0;
                    const auto call = [](void *) -> int32_t {
                        const int32_t slept = mc_sleep(50 * MC_MS);
                        return slept == MC_OK ? static_cast<int32_t>(receive(never)) : slept;
                    };
                    cr_assert_eq(mc_blocking_call(call, nullptr, &result), MC_OK);
                    said.say(result);
                },
                "calls", rt);
            cr_assert_eq(mc_runtime_wait_quiescent(rt, mc_now() + 200 * MC_MS), MC_E_TIMEDOUT);
            const mc_task_t sends = go([] { return send(never, 7); });
            cr_assert_eq(mc_runtime_shutdown(rt, MC_SEC), MC_OK);
            cr_assert_eq(result_of(waits), MC_OK);
            cr_assert_eq(result_of(sends), MC_OK);
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
        cr_assert_eq(outcome.said[0], 7);
    }
}

// Goal: a hook of a thread's start may not wait, and lets nobody else in.
Test(Simulation, hooks_let_nobody_in) {
    const Outcome outcome = simulate(1, [](Outcome &said) {
        mc_runtime_t rt = 0;
        mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
        options.user = &said;
        options.thread_start = [](void *user, uint32_t) { static_cast<Outcome *>(user)->say(mc_sleep(MC_MS)); };
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        cr_assert_eq(mc_runtime_start(rt), MC_OK);
        cr_assert_eq(mc_runtime_shutdown(rt, MC_SEC), MC_OK);
    });
    cr_assert(outcome.fine());
    cr_assert_eq(outcome.said[0], MC_E_CONTEXT);
}

// Goal: of two that wait for each other's runtimes neither moves: both are told.
Test(Simulation, quiescence_of_each_other) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Outcome outcome = simulate(seed, [](Outcome &) {
            mc_runtime_t runtimes[2] = {};
            mc_task_t tasks[2] = {};
            mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
            for (mc_runtime_t &rt : runtimes) {
                cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
                cr_assert_eq(mc_runtime_start(rt), MC_OK);
            }
            for (int i = 0; i < 2; ++i)
                tasks[i] =
                    go([&, i] { return mc_runtime_wait_quiescent(runtimes[1 - i], MC_FOREVER); }, "asks", runtimes[i]);
            for (const mc_task_t task : tasks)
                cr_assert_eq(result_of(task), MC_OK);
            for (const mc_runtime_t rt : runtimes) {
                cr_assert_eq(mc_runtime_shutdown(rt, MC_SEC), MC_OK);
                cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
            }
        });
        cr_assert(outcome.fine(), "seed %d", static_cast<int>(seed));
    }
}

// Goal: the default runtime's shutdown ends waits, and it can be used again.
Test(Simulation, shutdown_of_the_default_runtime) {
    for (int executors : {0, 2}) {
        const Outcome outcome = simulate(9, [=](Outcome &) {
            if (executors != 0)
                cr_assert_eq(csp_init_runtime(executors), 1);
            const mc_chan_t never = channel();
            const mc_task_t waits = go([=] { return static_cast<int32_t>(receive(never)); });
            cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(mc_runtime_shutdown(0, MC_SEC), MC_OK);
            cr_assert_eq(result_of(waits), MC_E_SHUTDOWN);
            cr_assert_eq(csp_init_runtime(2), 1);
            cr_assert_eq(result_of(go([] {})), MC_OK);
        });
        cr_assert(outcome.fine());
    }
}

// --- deadlocks ---

// Goal: the owner's blocking call learns of a deadlock at once, whatever time timers would take; the record has the report.
Test(Simulation, deadlock_of_the_owner) {
    const Recorded run = simulate_recorded(
        with_seed(1),
        [](Outcome &) {
            const mc_chan_t never = channel();
            (void)go([&] { (void)receive(never); }, "forgotten");
            int64_t value = 0;
            cr_assert_eq(mc_recv(never, &value), MC_E_DEADLOCK);
        },
        true);
    cr_assert(run.outcome.fine());
    cr_assert_eq(run.header.failure, uint32_t{MC_SIM_DEADLOCK});
    cr_assert_neq(strstr(run.header.message, "\"forgotten\" waits to receive from channel"), nullptr);
}

// Goal: csp_schedule, which among many would wait for ever, says so; alone it returns, as it should.
Test(Simulation, deadlock_of_a_schedule) {
    for (int executors : {0, 2}) {
        const Recorded run = simulate_recorded(
            with_seed(1),
            [=](Outcome &) {
                if (executors != 0)
                    cr_assert_eq(csp_init_runtime(executors), 1);
                (void)go([] { (void)receive(channel()); }, "forgotten");
                csp_schedule();
            },
            true);
        cr_assert(run.outcome.fine());
        cr_assert_eq(run.header.failure, executors == 0 ? uint32_t{MC_SIM_FINE} : uint32_t{MC_SIM_DEADLOCK});
    }
}

// --- what is checked ---

namespace {

Settings checked(uint32_t oracles, uint64_t bound = 100'000) {
    Settings settings = with_seed(1);
    settings.oracles = oracles;
    settings.bound = bound;
    return settings;
}

} // namespace

// Goal: a message that nobody took is noticed when its channel goes, and at exit; one that was dropped as it should be is not.
Test(Oracles, ledger) {
    const auto destroys = [](Outcome &) {
        const mc_chan_t to = channel(2);
        cr_assert_eq(send(to, 1), MC_OK);
        cr_assert_eq(mc_chan_destroy(to), MC_OK);
    };
    const auto forgets = [](Outcome &) { cr_assert_eq(send(channel(2), 1), MC_OK); };
    const auto drops = [](Outcome &) {
        mc_chan_t to = 0;
        int64_t value = 1;
        cr_assert_eq(mc_chan_create(
                         0, 8, 2, [](void *, void *, uint64_t) {}, nullptr, &to),
                     MC_OK);
        cr_assert_eq(mc_send(to, &value), MC_OK);
        cr_assert_eq(mc_chan_destroy(to), MC_OK);
    };
    const auto takes = [](Outcome &) {
        const mc_chan_t to = channel(1);
        const mc_task_t sends = go([=] {
            for (int i = 0; i < 9; ++i)
                cr_assert_eq(send(to, i), MC_OK);
        });
        for (int i = 0; i < 9; ++i)
            cr_assert_eq(receive(to), i);
        cr_assert_eq(result_of(sends), MC_OK);
        cr_assert_neq(csp_after(MC_MS), nullptr); // a time that nobody takes is no loss
        cr_assert_eq(mc_sleep(MC_SEC), MC_OK);
        cr_assert_eq(mc_chan_destroy(to), MC_OK);
    };
    cr_assert(simulate(checked(MC_SIM_LEDGER), destroys, true).aborted());
    cr_assert(simulate(checked(MC_SIM_LEDGER), forgets, true).aborted());
    cr_assert(simulate(checked(MC_SIM_LEDGER), drops, true).fine());
    cr_assert(simulate(checked(MC_SIM_LEDGER | MC_SIM_FIFO), takes, true).fine());
    cr_assert(simulate(checked(0), destroys, true).fine());
}

// Goal: what somebody writes over in a buffer is noticed when it comes out. (That messages overtake each other or come twice is for
// the ledger's own test: the library does not do that.)
Test(Oracles, fifo) {
    const auto spoils = [](Outcome &) {
        const mc_chan_t to = channel(2);
        csp_writer writer = nullptr;
        cr_assert_eq(send(to, 1), MC_OK);
        cr_assert_eq(mc_chan_writer(to, &writer), MC_OK);
        csp::Channel &internal = *csp::channel_of(writer);
        std::memset(internal.elements()->slot(internal.elements()->head), 0xff, sizeof(int64_t));
        (void)receive(to);
        csp_writer_release(writer);
    };
    cr_assert(simulate(checked(MC_SIM_FIFO), spoils, true).aborted());
    cr_assert(simulate(checked(0), spoils).fine());
}

// Goal: a microthread that is left at exit is named.
Test(Oracles, no_task_left) {
    const auto leaves = [](Outcome &) {
        (void)go([] { (void)receive(channel()); });
        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
    };
    cr_assert(simulate(checked(MC_SIM_NO_TASK_LEFT), leaves, true).aborted());
    cr_assert(simulate(checked(MC_SIM_NO_TASK_LEFT), busy_program, true).fine());
}

// Goal: a sender whom a choice by priority passes over is noticed, within the bound and not before it.
Test(Oracles, bounded_wait) {
    const auto starves = [](Outcome &) {
        csp_writer writers[2];
        csp_reader readers[2];
        csp_chanop ops[2];
        for (int i = 0; i < 2; ++i) {
            cr_assert_eq(csp_chan(&writers[i], &readers[i], nullptr), 1);
            ops[i] = {csp_wait(readers[i]), nullptr};
        }
        for (int urgent = 0; urgent < 2; ++urgent) // one of them is always there
            (void)go([writer = writers[0]] {
                while (csp_send(writer, nullptr) == 1) {
                }
            });
        (void)go([writer = writers[1]] { (void)csp_send(writer, nullptr); });
        for (int i = 0; i < 2'000; ++i)
            if (csp_prialt(ops, 2, 0) == 2)
                return;
    };
    int starved = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        Settings settings = checked(MC_SIM_BOUNDED_WAIT, 500);
        settings.seed = seed;
        starved += simulate(settings, starves, true).aborted() ? 1 : 0;
        settings.bound = 1'000'000;
        cr_assert(simulate(settings, starves, true).fine());
        const auto asks_for_another = [&](Outcome &said) {
            cr_assert_eq(mc_sim_oracles(MC_SIM_LEDGER, 1), MC_OK); // says nothing of waits
            starves(said);
        };
        cr_assert(simulate(settings, asks_for_another, true).fine());
    }
    cr_assert_gt(starved, 3);
}

// --- finding ---

// Goal: the usual policies find a bug that needs two tasks in an order that seldom comes: an event that is looked at, then waited for.
Test(Explore, finds_a_lost_wake_up) {
    const auto program = [](Outcome &) {
        cr_assert_eq(csp_init_runtime(0), 1);
        const mc_chan_t bell = channel();
        bool happened = false;
        const mc_task_t waits = go([&] {
            if (!happened) {
                (void)mc_checkpoint(); // between the look and the wait
                (void)receive(bell);
            }
        });
        const mc_task_t tells = go([&] {
            happened = true;
            int64_t one = 1;
            (void)mc_send_try(bell, &one); // lost when nobody waits yet
        });
        cr_assert_eq(result_of(tells), MC_OK);
        if (result_of(waits) != MC_OK)
            _exit(1);
    };
    for (const char *policy : {"random", "pct:2", "pct:3", "mix"})
        cr_assert_lt(first_failing(300, program, policy), 300u, "%s", policy);
}

// Goal: the program's own choices are explored and recorded like all others.
Test(Explore, the_programs_own_choices) {
    const auto program = [](Outcome &said) { said.say(mc_sim_choose(4)); };
    std::set<int64_t> taken;
    for (uint64_t seed = 0; seed < 60; ++seed)
        taken.insert(simulate(seed, program).said[0]);
    cr_assert_eq(taken.size(), 4u);
    cr_assert_eq(simulate(with_schedule({{0, 3}}), program).said[0], 3);
    cr_assert_eq(simulate(with_schedule({}), program).said[0], 0);
}

// --- fork ---

// Goal: a forked child has no part in the record, and gets what forked children get.
Test(Simulation, a_forked_child_is_apart) {
    const Outcome outcome = simulate(checked(MC_SIM_BOUNDED_WAIT), [](Outcome &) {
        const mc_chan_t to = channel(1);
        bool forks = false;
        const pid_t parent = getpid();
        for (int i = 0; i < 4; ++i)
            (void)go([&] {
                for (int round = 0; !forks; ++round) {
                    (void)mc_yield();
                    if (getpid() != parent)
                        _exit(3);
                }
            });
        for (int i = 0; i < 5; ++i)
            (void)mc_yield();
        const uint64_t signature = mc_sim_signature();
        const pid_t child = fork();
        if (child == 0) { // what it begins anew knows nothing of the parent's tasks
            if (mc_yield() != MC_E_FORKED)
                _exit(1);
            if (mc::testing::under_valgrind) // to which what is left behind is a leak
                _exit(0);
            if (csp_init_runtime(1) != 1)
                _exit(1);
            const auto yields = [] {
                for (int i = 0; i < 100; ++i)
                    (void)mc_yield();
            };
            const mc_task_t first = go(yields);
            const mc_task_t second = go(yields);
            _exit(result_of(first) == MC_OK && result_of(second) == MC_OK ? 0 : 2);
        }
        int status = 0;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert_eq(status, 0);
        cr_assert_eq(mc_sim_signature(), signature);
        forks = true;
        cr_assert_eq(send(to, 1), MC_OK);
        cr_assert_eq(receive(to), 1);
    });
    cr_assert(outcome.fine());
}
