// Many executors in the twin: starting, waking, sleeping, stopping under random interleavings. A lost wake-up shows as a
// deadlock of the whole program. On real threads in other builds.
#include "sched/test_pool.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::Thread;

// Goal: microthreads that a foreign thread spawns and joins all run, wherever the executors are in going to sleep.
Test(PoolSys, foreign_spawns_are_run, .timeout = 120) {
    explore_pool("PoolSys/foreign_spawns_are_run", 800, [] {
        start_many(1 + mc::testing::choose(2));
        int ran[3] = {};
        mc_task_t tasks[3];
        for (int i = 0; i < 3; ++i)
            tasks[i] = spawn_one([&ran, i] { return ++ran[i]; }, i == 2);
        for (const mc_task_t task : tasks)
            check(result_of(task) == 1, "it did not run once");
        check(wait_quiet(), "not quiet");
        stop_many();
    });
}

// Goal: microthreads that wake each other, pinned and not, and a foreign thread that wakes one of them: nobody waits for
// ever, whichever executor sleeps.
Test(PoolSys, wakes_across_executors, .timeout = 120) {
    explore_pool("PoolSys/wakes_across_executors", 400, [] {
        start_many(2);
        Gate there, back, outside;
        const mc_task_t a = spawn_one(
            [&] {
                there.release();
                return back.acquire();
            },
            true);
        const mc_task_t b = spawn_one(
            [&] {
                const int32_t status = there.acquire();
                back.release();
                return status != MC_OK ? status : outside.acquire();
            },
            mc::testing::choose(2) == 0);
        outside.release();
        check(result_of(a) == MC_OK && result_of(b) == MC_OK, "not released");
        stop_many();
    });
}

// Goal: the end of the last microthread and the wait for it: the waiter is told.
Test(PoolSys, quiet_is_told, .timeout = 120) {
    explore_pool("PoolSys/quiet_is_told", 1'500, [] {
        start_many(1 + mc::testing::choose(2));
        int ran = 0;
        spawn_one([&] {
            spawn_one([&] { return ++ran; });
            return MC_OK;
        });
        check(wait_quiet(), "not quiet");
        check(ran == 1, "quiet before the end");
        stop_many();
    });
}

// Goal: the same, for a waiter that stands still at any one place while the executors go on until they sleep.
Test(PoolSys, quiet_is_told_to_who_stands_still, .timeout = 120) {
    explore_pool_with_one_preemption("PoolSys/quiet_is_told_to_who_stands_still", [] {
        start_many(1);
        spawn_one([] { return MC_OK; });
        check(wait_quiet(), "not quiet");
        stop_many();
    });
}

namespace {

void wait_until_nothing_moves() {
    check(default_pool()->wait_quiet(here(), Pool::Quiet::nothing_moves, MC_FOREVER) == MC_OK, "it moves for ever");
}

} // namespace

// Goal: what was sent to an executor that sleeps moves, though the executor has not yet seen it.
Test(PoolSys, what_was_sent_moves, .timeout = 120) {
    explore_pool("PoolSys/what_was_sent_moves", 600, [] {
        start_many(1 + mc::testing::choose(2));
        Gate gate;
        sync::atomic<int> ran{0};
        const mc_task_t task = spawn_one(
            [&] {
                const int32_t status = gate.acquire();
                ran.store(1, sync::release);
                return status;
            },
            true);
        wait_until_nothing_moves();
        check(ran.load(sync::acquire) == 0, "it went on by itself");
        gate.release();
        wait_until_nothing_moves();
        check(ran.load(sync::acquire) == 1, "quiet, and it has not run");
        check(result_of(task) == MC_OK, "not released");
        stop_many();
    });
}

// Goal: executors that wake each other, one of them awake at any moment: nobody takes looks at different moments for quiet.
Test(PoolSys, nothing_moves_at_one_moment, .timeout = 120) {
    explore_pool("PoolSys/nothing_moves_at_one_moment", 1'500, [] {
        start_many(2);
        Gate there, back;
        sync::atomic<int> ran{0};
        const mc_task_t a = spawn_one(
            [&] {
                there.release();
                return back.acquire();
            },
            true);
        const mc_task_t b = spawn_one(
            [&] {
                const int32_t status = there.acquire();
                back.release();
                ran.store(1, sync::release);
                return status;
            },
            true);
        wait_until_nothing_moves();
        check(ran.load(sync::acquire) == 1, "quiet, and one has not run");
        check(result_of(a) == MC_OK && result_of(b) == MC_OK, "not released");
        stop_many();
    });
}

// Goal: a foreign thread wakes a microthread while the executors stop: it goes on, in the pool or alone.
Test(PoolSys, a_wake_while_they_stop, .timeout = 120) {
    const auto body = [](uint32_t executors) {
        start_many(executors);
        Gate gate;
        const mc_task_t task = spawn_one([&] { return gate.acquire(); }, mc::testing::choose(2) == 0);
        while (executors == 1 && !gate.has_waiters())
            sync::thread_yield();
        Thread waker([&] { gate.release(); }, "waker");
        stop_many();
        const int64_t stopped = sync::now_ns();
        check(result_of(task) == MC_OK, "not woken");
        // Time passes in the twin when all wait: a stray would be found when the owner looks whether its world is closed.
        if (mc::testing::systematic)
            check(sync::now_ns() - stopped < MC_MS, "found by chance");
        waker.join();
    };
    explore_pool("PoolSys/a_wake_while_they_stop", 600, [&] { body(2); });
    explore_pool_with_one_preemption("PoolSys/a_wake_while_they_stop", [&] { body(1); });
}

// Goal: what is handed to an executor that has stopped, by who took it for a running one and came late, is run by the first one.
Test(PoolSys, what_is_sent_to_who_has_stopped_is_run, .timeout = 120) {
    explore_pool("PoolSys/what_is_sent_to_who_has_stopped_is_run", 200, [] {
        start_many(2);
        Executor &second = default_pool()->at(1);
        Held held;
        Executor *ran_on = nullptr;
        const mc_task_t task = spawn_one(
            [&] {
                const int32_t status = held.wait();
                ran_on = here().executor;
                return status;
            },
            true, &second);
        while (!held.waits())
            sync::thread_yield();
        stop_many();
        second.send(held.claim());
        check(result_of(task) == MC_OK, "not run");
        check(ran_on == &default_pool()->at(0), "run by who has stopped");
    });
}

// Goal: a timed wait on an executor races its wake from elsewhere and the stop that moves its timer.
Test(PoolSys, a_timer_races_wake_and_stop, .timeout = 120) {
    explore_pool("PoolSys/a_timer_races_wake_and_stop", 400, [] {
        start_many(2);
        Gate gate;
        const mc_task_t task = spawn_one([&] {
            const int32_t status = gate.acquire(in_ns(2'000));
            return status == MC_OK || status == MC_E_TIMEDOUT ? MC_OK : status;
        });
        if (mc::testing::choose(2) == 0)
            gate.release();
        stop_many();
        check(result_of(task) == MC_OK, "neither woken nor late");
    });
}

// Goal: an executor that is added while others run takes its part.
Test(PoolSys, one_more_executor, .timeout = 120) {
    explore_pool("PoolSys/one_more_executor", 300, [] {
        start_many(1);
        int ran[2] = {};
        const mc_task_t a = spawn_one([&] { return ++ran[0]; });
        check(default_pool()->add_executor() == MC_OK, "not added");
        const mc_task_t b = spawn_one([&] { return ++ran[1]; });
        check(result_of(a) == 1 && result_of(b) == 1, "not run");
        check(default_pool()->live() == 2, "not there");
        stop_many();
    });
}

// Goal: one executor, asleep but for what a foreign thread hands in, again and again: nothing is handed in unseen.
Test(PoolSys, one_executor_is_not_missed, .timeout = 120) {
    explore_pool("PoolSys/one_executor_is_not_missed", 2'000, [] {
        start_many(1);
        for (int i = 0; i < 3; ++i)
            check(result_of(spawn_one([] { return 7; }, i == 2)) == 7, "not run");
        stop_many();
    });
}

// Goal: executors that were stopped in the midst of anything run what comes after the next start.
Test(PoolSys, another_start, .timeout = 120) {
    explore_pool("PoolSys/another_start", 800, [] {
        for (uint32_t round = 0; round < 2; ++round) {
            start_many(2 - round);
            const mc_task_t task = spawn_one([] { return 7; });
            if (round == 0)
                stop_many();
            check(result_of(task) == 7, "not run");
        }
        stop_many();
    });
}
