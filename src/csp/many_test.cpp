// Many executors, through the C functions: starting and stopping, who runs where, and what holds up whom.
#include "base/cpus.hpp"
#include "csp/test_many.hpp"

#include <ctime>
#include <unistd.h>
#include <vector>

using namespace mc::csp::testing;
using mc::sync::acquire;
using mc::sync::atomic;
using mc::sync::relaxed;
using mc::sync::release;

namespace {

// Sums 0 to 10^depth - 1 in a tree of microthreads, ten below each.
void tree(csp_writer parent, int first, int size) {
    if (size == 1) {
        cr_assert_eq(csp_send(parent, &first), 1);
    } else {
        Chan below;
        for (int i = 0; i < 10; ++i) {
            csp_writer w = csp_writer_addref(below.w);
            spawn([=] { tree(w, first + i * (size / 10), size / 10); });
        }
        below.release_writer();
        int sum = 0;
        for (int i = 0; i < 10; ++i)
            sum += below.receive();
        cr_assert_eq(csp_send(parent, &sum), 1);
    }
    csp_writer_release(parent);
}

atomic<int> sync_flag{0};

int64_t cpu_ns() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * MC_SEC + used.tv_nsec;
}

} // namespace

// Goal: a tree of microthreads gives its sum on any number of executors; csp_schedule returns when none is left.
Test(Many, run_a_tree_of_microthreads, .timeout = 120) {
    World world;
    for (int n : executor_counts) {
        const Many many(n);
        Chan top;
        csp_writer w = csp_writer_addref(top.w);
        const int size = mc::testing::under_valgrind || mc::testing::under_tsan ? 100 : 1000;
        spawn([=] { tree(w, 0, size); });
        cr_assert_eq(top.receive(), size * (size - 1) / 2);
        csp_schedule();
        cr_assert_eq(bodies.load(acquire), 0);
        cr_assert_eq(csp_run(), 0);
    }
}

// Goal: two microthreads that each wait, computing, for the other both end: they run at the same time.
Test(Many, run_at_the_same_time) {
    World world;
    const Many many(2);
    atomic<int> here{0};
    for (int i = 0; i < 2; ++i)
        spawn([&] {
            here.fetch_add(1, relaxed);
            cr_assert(hog_until([&] { return here.load(relaxed) == 2; }));
        });
    csp_schedule();
}

// Goal: what may not be started is refused, with the code logged and nothing changed.
Test(Many, refusals_to_start) {
    World world;
    cr_assert_eq(csp_init_runtime(-1), 0);
    cr_assert_eq(csp_init_runtime(1025), 0);
    Chan hold;
    spawn([&] { cr_assert_eq(hold.receive(), 1); });
    cr_assert_eq(csp_init_runtime(1), 0); // a microthread lives
    cr_assert_eq(hold.send(1), 1);
    cr_assert_eq(csp_run(), 0);
    spawn([] { cr_assert_eq(csp_init_runtime(1), 0); });             // on a microthread
    PosixThread other([] { cr_assert_eq(csp_init_runtime(1), 0); }); // of a runtime that we own
    other.join();
    cr_assert_eq(world.log.count(MC_E_INVAL), 1);
    cr_assert_eq(world.log.count(MC_E_LIMIT), 1);
    cr_assert_eq(world.log.count(MC_E_BUSY), 2);
    cr_assert_eq(world.log.count(MC_E_CONTEXT), 1);
    {
        const Many many(2);
        cr_assert_eq(csp_init_runtime(2), 0); // there are some
        cr_assert_eq(world.log.count(MC_E_BUSY), 3);
        spawn([] {
            cr_assert_eq(csp_init_runtime(2), 0);
            csp_shutdown_runtime();
            csp_schedule();
            cr_assert_eq(csp_run(), 1); // the caller is left
        });
    }
    cr_assert_eq(world.log.count(MC_E_CONTEXT), 4);
    csp_shutdown_runtime(); // nothing to do
    world.expected_lines = 9;
}

// Goal: n = 0 takes as many executors as there are processors.
Test(Many, as_many_as_processors) {
    World world;
    const Many many(0);
    atomic<int> here{0};
    const int n = static_cast<int>(mc::base::usable_cpus());
    for (int i = 0; i < n; ++i)
        spawn([&] {
            here.fetch_add(1, relaxed);
            cr_assert(hog_until([&] { return here.load(relaxed) == n; }));
        });
    csp_schedule();
}

// Goal: a runtime that is stopped goes on in single-processor mode with what was left: blocked and runnable microthreads,
// pinned ones, timers.
Test(Many, what_is_left_goes_on_alone) {
    World world;
    Chan go;
    csp_reader timer = nullptr;
    atomic<int> yields{0};
    atomic<bool> stop{false};
    atomic<int> got{0};
    cr_assert_eq(csp_init_runtime(3), 1);
    for (int i = 0; i < 6; ++i)
        start([&] { got.fetch_add(go.receive(), relaxed); }, i % 2 == 0 ? MC_SPAWN_PINNED : 0);
    for (int i = 0; i < 6; ++i)
        start(
            [&] {
                while (!stop.load(relaxed)) {
                    yields.fetch_add(1, relaxed);
                    csp_yield();
                }
            },
            i % 2 == 0 ? MC_SPAWN_PINNED : 0);
    spawn([&] {
        timer = csp_after(20 * MC_MS);
        csp_sleep_until(mc_after(30 * MC_MS));
        got.fetch_add(100, relaxed);
    });
    cr_assert(hog_until([&] { return yields.load(relaxed) > 100; }));
    csp_shutdown_runtime();
    const int before = yields.load(relaxed);
    csp_yield();
    csp_yield();
    cr_assert_geq(yields.load(relaxed), before + 6); // every yielder has its turn here
    stop.store(true, relaxed);
    for (int i = 0; i < 6; ++i)
        cr_assert_eq(go.send(1), 1);
    int64_t time = 0;
    cr_assert_eq(csp_recv(timer, &time), 1);
    csp_reader_release(timer);
    csp_schedule();
    cr_assert_eq(got.load(relaxed), 106);
}

// Goal: what slept on any of the executors when they stopped has run when csp_schedule returns.
Test(Many, what_slept_anywhere_wakes_alone) {
    World world;
    atomic<int> woken{0};
    atomic<int> asleep{0};
    cr_assert_eq(csp_init_runtime(4), 1);
    constexpr int sleepers = 40;
    for (int i = 0; i < sleepers; ++i)
        start(
            [&] {
                const int64_t until = mc_after(20 * MC_MS);
                asleep.fetch_add(1, relaxed);
                csp_sleep_until(until);
                woken.fetch_add(1, relaxed);
            },
            MC_SPAWN_PINNED);
    cr_assert(hog_until([&] { return asleep.load(relaxed) == sleepers; }));
    csp_shutdown_runtime();
    csp_schedule();
    cr_assert_eq(woken.load(relaxed), sleepers);
}

// Goal: starting and stopping may be repeated; each time the work is done and nothing is left.
Test(Many, three_thousand_cycles, .timeout = 300) {
    World world;
    const int cycles = scaled(mc::testing::scale() == 1 ? 3000 : 200'000); // a soak's scale begins at 5: a million
    for (int i = 0; i < cycles; ++i) {
        cr_assert_eq(csp_init_runtime(i % 4 + 1), 1);
        Chan chan;
        int sum = 0;
        if (i % 3 != 0) { // else: idle at once
            spawn([&] { cr_assert_eq(chan.send(i), 1); });
            sum = chan.receive();
            cr_assert_eq(sum, i);
        }
        if (i % 5 == 0)
            csp_sleep_until(mc_after(50'000)); // they go to sleep
        if (i % 2 == 0)
            csp_schedule();
        csp_shutdown_runtime();
        csp_schedule();
    }
}

// Goal: csp_run answers 1 while a microthread is left, after at most a millisecond or so; 0 when none is.
Test(Many, run_says_whether_one_is_left) {
    World world;
    const Many many(2);
    Chan chan;
    cr_assert_eq(csp_run(), 0);
    spawn([&] { cr_assert_eq(chan.receive(), 5); });
    cr_assert_eq(csp_run(), 1);
    cr_assert_eq(chan.send(5), 1);
    csp_schedule();
    cr_assert_eq(csp_run(), 0);
}

// Goal: a pinned microthread runs on one thread for all its life; others are found on several.
Test(Many, pinned_stay_and_others_move) {
    World world;
    const Many many(3);
    Chan chan;
    atomic<int> moved{0};
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 6; ++i)
        tasks.push_back(start(
            [&] {
                const pid_t home = gettid();
                for (int k = 0; k < scaled(2000); ++k) {
                    if (k % 50 == 0)
                        csp_sleep_until(mc_after(1000));
                    else
                        csp_yield();
                    cr_assert(home == gettid());
                }
            },
            MC_SPAWN_PINNED));
    tasks.push_back(start([&] {
        const pid_t home = gettid();
        for (int i = 0; i < 8; ++i)
            spawn([&, home] {
                if (gettid() != home)
                    moved.fetch_add(1, relaxed);
            });
        cr_assert(hog_until([&] { return moved.load(relaxed) > 0; })); // somebody takes them from us
    }));
    for (mc_task_t task : tasks)
        join(task);
    cr_assert_gt(moved.load(relaxed), 0);
}

// Goal: pinned microthreads of different executors that wake each other, and are woken by threads, stay where they are.
Test(Many, pinned_stay_when_woken_from_elsewhere) {
    World world;
    const Many many(3);
    Chan ping, pong;
    std::vector<mc_task_t> tasks;
    const int rounds = scaled(2000);
    constexpr int pairs = 4;
    for (int i = 0; i < pairs; ++i) {
        tasks.push_back(start(
            [&] {
                const pid_t home = gettid();
                for (int k = 0; k < rounds; ++k) {
                    cr_assert_eq(ping.send(k), 1);
                    cr_assert_geq(pong.receive(), 0);
                    cr_assert(home == gettid());
                }
            },
            MC_SPAWN_PINNED));
        tasks.push_back(start(
            [&] {
                const pid_t home = gettid();
                for (int k = 0; k < rounds; ++k) {
                    cr_assert_geq(ping.receive(), 0);
                    cr_assert_eq(pong.send(k), 1);
                    cr_assert(home == gettid());
                }
            },
            MC_SPAWN_PINNED));
    }
    for (mc_task_t task : tasks)
        join(task);
}

// Goal: a microthread whose calls never block gives up its turn when its quantum is over, on one executor.
Test(Many, quantum_ends_a_turn) {
    World world;
    const Many many(1);
    mc_chan_t chan = 0;
    cr_assert_eq(mc_chan_create(0, 4, 2, nullptr, nullptr, &chan), MC_OK);
    atomic<int> state{0};
    mc_task_t task = start([&] {
        state.store(1, relaxed);
        while (state.load(relaxed) != 2) { // these never block
            int value = 7;
            cr_assert_eq(mc_send(chan, &value), MC_OK);
            cr_assert_eq(mc_recv(chan, &value), MC_OK);
        }
    });
    cr_assert(hog_until([&] { return state.load(relaxed) == 1; }));
    spawn([&] { state.store(2, relaxed); });
    join(task);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: mc_checkpoint gives up the turn after a millisecond, however few the calls.
Test(Many, checkpoint_ends_a_turn_by_time) {
    World world;
    const Many many(1);
    atomic<int> state{0};
    mc_task_t task = start([&] {
        state.store(1, relaxed);
        while (state.load(relaxed) != 2) {
            const int64_t until = mc_after(50'000);
            while (mc_now() < until) {
            }
            cr_assert_eq(mc_checkpoint(), MC_OK);
        }
    });
    cr_assert(hog_until([&] { return state.load(relaxed) == 1; }));
    spawn([&] { state.store(2, relaxed); });
    join(task);
}

// Goal: of three that compute on one executor, the one of high priority gets the most, the one of low the least.
Test(Many, priority_is_a_weight) {
    World world;
    const Many many(1);
    atomic<bool> stop{false};
    atomic<int64_t> turns[3] = {};
    const uint32_t flags[] = {MC_SPAWN_LOW, 0, MC_SPAWN_HIGH};
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 3; ++i)
        tasks.push_back(start(
            [&, i] {
                while (!stop.load(relaxed)) {
                    turns[i].fetch_add(1, relaxed);
                    (void)mc_checkpoint();
                }
            },
            flags[i]));
    csp_sleep_until(mc_after(400 * MC_MS));
    stop.store(true, relaxed);
    for (mc_task_t task : tasks)
        join(task);
    cr_assert_gt(turns[2].load(relaxed), turns[1].load(relaxed));
    cr_assert_gt(turns[1].load(relaxed), turns[0].load(relaxed));
}

// Goal: while one executor computes without a call, others' timers, its own timers, and the microthread that it has just
// spawned go on: the sentry takes them.
Test(Many, a_hog_holds_up_nobody) {
    World world;
    for (int n : {2, 3, 8}) {
        const Many many(n);
        atomic<int> done{0};
        start([&] {
            spawn([&] { // armed on the hog's executor
                csp_sleep_until(mc_after(5 * MC_MS));
                done.fetch_add(1, relaxed);
            });
            csp_yield();
            spawn([&] { done.fetch_add(1, relaxed); }); // next in line here
            cr_assert(hog_until([&] { return done.load(relaxed) == 3; }));
        });
        csp_sleep_until(mc_after(2 * MC_MS));
        spawn([&] { // from outside
            csp_sleep_until(mc_after(MC_MS));
            done.fetch_add(1, relaxed);
        });
    }
}

// Goal: an executor that is woken while all sleep, the one that watches over others for long since only a far timer is
// armed, does not hog unseen.
Test(Many, a_hog_after_all_slept_holds_up_nobody) {
    World world;
    const Many many(2);
    for (int round = 0; round < 4; ++round) {
        csp_reader far = csp_after(3600 * MC_SEC);
        csp_sleep_until(mc_after(40 * MC_MS)); // all sleep
        sync_flag.store(0, relaxed);
        start(
            [&] {
                spawn([&] {
                    csp_sleep_until(mc_after(3 * MC_MS));
                    sync_flag.store(1, relaxed);
                });
                csp_yield();
                cr_assert(hog_until([&] { return sync_flag.load(relaxed) == 1; }));
            },
            round % 2 == 0 ? 0 : MC_SPAWN_PINNED);
        csp_schedule();
        csp_reader_release(far);
    }
}

// Goal: nor does a stream of small work from elsewhere keep the sentry from looking after a hog.
Test(Many, a_hog_beside_a_stream_of_work_holds_up_nobody) {
    World world;
    const Many many(2);
    atomic<int> done{0};
    start([&] {
        spawn([&] { done.store(1, relaxed); }); // next in line here
        cr_assert(hog_until([&] { return done.load(relaxed) == 1; }));
    });
    // TSan takes some hundred microseconds for a microthread's first turn: as often as elsewhere it would be no small work.
    const int64_t pause = mc::testing::under_tsan ? 4 * MC_MS : 200'000;
    for (const int64_t end = mc_after(10 * MC_SEC); done.load(relaxed) == 0 && mc_now() < end;) {
        spawn([] {});
        csp_sleep_until(mc_after(pause));
    }
}

// Goal: executors without work use no processor time, also with a timer armed far away and a microthread blocked.
Test(Many, idle_costs_nothing) {
    if (mc::testing::under_valgrind)
        cr_skip_test("Valgrind itself uses some");
    World world;
    const Many many(8);
    Chan chan;
    csp_reader far = csp_after(3600 * MC_SEC);
    for (int i = 0; i < 100; ++i)
        spawn([&] { cr_assert_eq(chan.receive(), 1); });
    csp_sleep_until(mc_after(200 * MC_MS)); // all have gone to sleep
    const int64_t before = cpu_ns();
    csp_sleep_until(mc_after(5 * MC_SEC));
    const int64_t used = cpu_ns() - before;
    cr_assert_lt(used, 10 * MC_MS, "%g ms of processor time in 5 s", static_cast<double>(used) / MC_MS);
    for (int i = 0; i < 100; ++i)
        cr_assert_eq(chan.send(1), 1);
    csp_reader_release(far);
}

// Goal: exception state belongs to the microthread: one that yields in a catch block, and while it unwinds, rethrows its
// own exception on whatever thread it goes on.
Test(Many, exceptions_travel) {
    World world;
    const Many many(3);
    struct YieldsInDestructor {
        ~YieldsInDestructor() { csp_yield(); }
    };
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 16; ++i)
        tasks.push_back(start([i] {
            for (int k = 0; k < scaled(300); ++k) {
                int caught = -1;
                try {
                    try {
                        const YieldsInDestructor guard;
                        throw i * 1000 + k;
                    } catch (int) {
                        for (int y = 0; y < 3; ++y)
                            csp_yield();
                        throw;
                    }
                } catch (int value) {
                    csp_sleep_until(mc_after(1));
                    caught = value;
                }
                cr_assert_eq(caught, i * 1000 + k);
                cr_assert_eq(std::uncaught_exceptions(), 0);
            }
        }));
    for (mc_task_t task : tasks)
        join(task);
}
