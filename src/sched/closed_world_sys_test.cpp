// Whether the world is closed, while other threads attach, block, wake each other and leave: never told when somebody
// could still wake the owner, always told when nobody can. A process a run; the first claim on real threads too.
#include "sched/runtimes.hpp"
#include "sched/test_sched.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

namespace {

void explore(const char *name, uint64_t seeds, const std::function<void()> &body) {
    expect_pass({.name = name, .search = Search::seeds, .seeds = seeds, .isolate = true}, body);
}

} // namespace

// Goal: one thread wakes the owner in the end, after waiting itself in between: with a deadline, or for the other one.
Test(ClosedWorldSys, no_false_deadlock, .timeout = 60) {
    explore("ClosedWorldSys/no_false_deadlock", 1'500, [] {
        here();
        Gate owner, between;
        Known known;
        Thread first(
            [&] {
                known.arrive();
                known.wait_for(2);
                check(between.acquire() == MC_OK, "not released");
                owner.release();
            },
            "first");
        Thread second(
            [&] {
                known.arrive();
                known.wait_for(2);
                between.release();
            },
            "second");
        known.wait_for(2);
        check(owner.acquire() == MC_OK, "a false deadlock");
    });
}

// Goal: a thread that the runtime never knows wakes, as its last act, the microthread that will wake the owner: whenever
// the owner looks, the stranger is there or what it did is.
Test(ClosedWorldSys, a_stranger_wakes_and_ends, .timeout = 60) {
    const auto body = [] {
        here();
        Gate gate, owner;
        run_now([&] {
            check(gate.acquire() == MC_OK, "not released");
            owner.release();
        });
        Thread stranger([&] { gate.release(); }, "stranger");
        check(owner.acquire() == MC_OK, "a false deadlock");
    };
    expect_pass(
        {.name = "ClosedWorldSys/a_stranger_wakes_and_ends", .preemptions = 2, .max_runs = 1'000, .isolate = true},
        body);
    explore("ClosedWorldSys/a_stranger_wakes_and_ends", 1'500, body);
}

// Goal: two that wake each other for a while, so that at any look one of them may be parked and the other about to
// park: they are never both blocked, though no look at one moment shows it.
Test(ClosedWorldSys, threads_that_take_turns, .timeout = 60) {
    explore("ClosedWorldSys/threads_that_take_turns", 1'500, [] {
        here();
        Gate owner, ping, pong;
        Known known;
        Thread first(
            [&] {
                known.arrive();
                known.wait_for(2);
                for (int i = 0; i < 2; ++i) {
                    ping.release();
                    check(pong.acquire() == MC_OK, "not released");
                }
                owner.release();
            },
            "first");
        Thread second(
            [&] {
                known.arrive();
                known.wait_for(2);
                for (int i = 0; i < 2; ++i) {
                    check(ping.acquire() == MC_OK, "not released");
                    pong.release();
                }
            },
            "second");
        known.wait_for(2);
        check(owner.acquire() == MC_OK, "a false deadlock");
    });
}

// Goal: the same seen from close by, by many looks while they go on: one of the two has the turn at any moment, or it is on its
// way, so none of the looks may find the world closed, though each of its halves sees both blocked now and then.
Test(ClosedWorldSys, looks_at_threads_that_take_turns, .timeout = 60) {
    explore("ClosedWorldSys/looks_at_threads_that_take_turns", 6'000, [] {
        here();
        Gate ping, pong;
        Known known;
        sync::atomic<uint32_t> looked{0};
        const auto take_turns = [&](Gate &mine, Gate &other) {
            known.arrive();
            known.wait_for(2);
            bool last = false;
            for (int turns = 1; !last; ++turns) {
                check(mine.acquire() == MC_OK, "not released");
                while (looked.load(sync::acquire) == 0 && turns == 60) // or who looks might never have his turn
                    sync::thread_yield();
                last = looked.load(sync::acquire) != 0; // before the turn is passed on: the other one sees it, too
                other.release();
            }
        };
        Thread first([&] { take_turns(ping, pong); }, "first");
        Thread second([&] { take_turns(pong, ping); }, "second");
        ping.release();
        known.wait_for(2);
        for (int look = 0; look < 50; ++look)
            check(!world_is_closed(executor()), "closed, though one of them runs");
        looked.store(1, sync::release); // release: pairs with the acquire in take_turns
    });
}

// Goal: a thread hands its task to a new one and leaves; the new one attaches, waits with a deadline, wakes the owner.
Test(ClosedWorldSys, threads_that_come_and_go, .timeout = 60) {
    explore("ClosedWorldSys/threads_that_come_and_go", 1'500, [] {
        here();
        Gate owner, relay;
        Known known;
        Thread first(
            [&] {
                known.arrive();
                known.wait_for(2);
                relay.release();
            },
            "first");
        Thread second(
            [&] {
                known.arrive();
                check(relay.acquire() == MC_OK, "not released");
                check(sleep_until(here(), in_ns(1'500), nullptr) == MC_E_TIMEDOUT, "no sleep");
                owner.release();
            },
            "second");
        known.wait_for(2);
        check(owner.acquire() == MC_OK, "a false deadlock");
    });
}

// Goal: a microthread that is woken from outside, and another with a deadline, keep the world open for the owner.
Test(ClosedWorldSys, microthreads_on_their_way_keep_it_open, .timeout = 60) {
    explore("ClosedWorldSys/microthreads_on_their_way_keep_it_open", 1'500, [] {
        here();
        Gate owner, relay;
        Known known;
        run_now([&] {
            check(relay.acquire() == MC_OK, "not released");
            check(sleep_until(here(), in_ns(1'000), nullptr) == MC_E_TIMEDOUT, "no sleep");
            owner.release();
        });
        Thread other(
            [&] {
                known.arrive();
                relay.release();
            },
            "other");
        known.wait_for(1);
        check(owner.acquire() == MC_OK, "a false deadlock");
    });
}

// Goal: a thread wakes the owner, or one of its microthreads, and then waits for ever itself: that it is seen blocked
// means that what it did before is seen as well.
Test(ClosedWorldSys, a_thread_that_wakes_and_then_blocks, .timeout = 60) {
    for (bool by_microthread : {false, true})
        explore("ClosedWorldSys/a_thread_that_wakes_and_then_blocks", 1'500, [by_microthread] {
            here();
            Gate owner, relay, end;
            Known known;
            if (by_microthread)
                run_now([&] {
                    check(relay.acquire() == MC_OK, "not released");
                    owner.release();
                });
            Thread other(
                [&] {
                    known.arrive();
                    (by_microthread ? relay : owner).release();
                    check(end.acquire() == MC_OK, "not released");
                },
                "other");
            known.wait_for(1);
            check(owner.acquire() == MC_OK, "a false deadlock");
            end.release();
        });
}

// Goal: when all that is left waits for ever, the owner is told, and nobody else; the thread goes on once it is
// released.
Test(ClosedWorldSys, a_true_deadlock_is_told, .timeout = 60) {
    if (!mc::testing::systematic)
        return; // a test process has threads of its own; closed_world_test.cpp has the real one
    explore("ClosedWorldSys/a_true_deadlock_is_told", 1'500, [] {
        here();
        Gate owner, gate;
        Known known;
        Thread other(
            [&] {
                known.arrive();
                check(gate.acquire() == MC_OK, "not released");
            },
            "other");
        run_now([&] { check(gate.acquire() == MC_OK, "a microthread was told"); });
        known.wait_for(1);
        check(owner.acquire() == MC_E_DEADLOCK, "not told");
        gate.release();
        gate.release();
        yield();
        check(!gate.has_waiters(), "somebody is left");
    });
}

namespace {

// A runtime with one executor while it lives.
struct OneExecutor {
    uint64_t handle = 0;
    OneExecutor() {
        check(create_runtime(PoolOptions{}, 1, &handle) == MC_OK && start_runtime(here(), handle) == MC_OK,
              "no runtime");
    }
    OneExecutor(const OneExecutor &) = delete;
    OneExecutor &operator=(const OneExecutor &) = delete;
    ~OneExecutor() { check(shutdown_runtime(here(), handle, MC_FOREVER) == MC_OK, "it does not end"); }

    template <class Body> mc_task_t run(Body body) {
        mc_task_t task = 0;
        SpawnRequest request;
        request.handle = &task;
        request.returning = run_body<Body>;
        request.argument = new Body(std::move(body));
        request.stack_size = MC_STACK_DEFAULT;
        request.runtime = handle;
        ThreadContext &thread = here();
        check(spawn(&thread, executor_in(*find_pool(thread, handle), thread), request) == MC_OK, "not spawned");
        return task;
    }
};

} // namespace

// Goal: two runtimes whose executors wake each other: each sleeps at times, but never both at one moment.
Test(ClosedWorldSys, runtimes_that_take_turns, .timeout = 120) {
    expect_pass({.name = "ClosedWorldSys/runtimes_that_take_turns",
                 .search = Search::seeds,
                 .timeouts = 0,
                 .max_steps = 60'000,
                 .seeds = 1'500,
                 .isolate = true,
                 .real_runs = 50},
                [] {
                    here();
                    Gate ping, pong;
                    sync::atomic<uint32_t> looked{0};
                    OneExecutor first, second;
                    const auto take_turns = [&](Gate &mine, Gate &other) {
                        for (int i = 0; i < 3; ++i) {
                            other.release();
                            check(mine.acquire() == MC_OK, "not released");
                        }
                        while (looked.load(sync::acquire) == 0)
                            sync::thread_yield();
                        other.release();
                    };
                    const mc_task_t one = first.run([&] { take_turns(ping, pong); });
                    const mc_task_t two = second.run([&] { take_turns(pong, ping); });
                    check(!world_is_closed(executor()), "closed, though one of them runs");
                    looked.store(1, sync::release); // release: pairs with the acquire in take_turns
                    for (const mc_task_t task : {one, two})
                        check(join_until(task, MC_FOREVER) == MC_OK, "a false deadlock");
                });
}

// Goal: another runtime wakes a microthread of the owner's, and sleeps: the owner is not told of a deadlock.
Test(ClosedWorldSys, a_runtime_wakes_and_sleeps, .timeout = 120) {
    expect_pass({.name = "ClosedWorldSys/a_runtime_wakes_and_sleeps",
                 .search = Search::seeds,
                 .timeouts = 0,
                 .max_steps = 60'000,
                 .seeds = 1'000 * mc::testing::scale(),
                 .isolate = true,
                 .real_runs = 50},
                [] {
                    here();
                    Gate relay, owner;
                    OneExecutor other;
                    run_now([&] {
                        check(relay.acquire() == MC_OK, "not released");
                        owner.release();
                    });
                    const mc_task_t task = other.run([&] { relay.release(); });
                    check(owner.acquire() == MC_OK, "a false deadlock");
                    check(join_until(task, MC_FOREVER) == MC_OK, "no end");
                });
}
