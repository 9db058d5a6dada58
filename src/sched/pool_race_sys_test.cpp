// Many executors in the twin: stopping and growing against those who wait for quiet and those who wake from outside. See
// pool_sys_test.cpp.
#include "sched/test_pool.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::Thread;

namespace {

// As Pool::wake_from_outside, from where it has seen that the pool runs.
void hand_in(Pool &pool, Task *task) {
    pool.injection().push(task);
    pool.notify();
    if (!pool.many())
        Pool::wake_up(pool.first());
}

} // namespace

// Goal: a thread waits for quiet while the executors stop: it is told when the last microthread ends, in the pool or
// after it.
Test(PoolRaceSys, quiet_is_told_across_a_stop, .timeout = 120) {
    explore_pool("PoolRaceSys/quiet_is_told_across_a_stop", 600, [] {
        start_many(2);
        const mc_task_t task = spawn_one([] { return 1; });
        Thread waiter([] { (void)wait_quiet(); }, "waiter");
        stop_many();
        check(result_of(task) == 1, "not run");
        while (default_pool()->microthreads() != 0)
            yield();
        waiter.join();
    });
}

// Goal: a microthread begins on an executor that has just been added and ends on another one: nobody who began to count
// before takes that for quiet.
Test(PoolRaceSys, quiet_counts_a_new_executor, .timeout = 120) {
    explore_pool("PoolRaceSys/quiet_counts_a_new_executor", 1'500, [] {
        start_many(1);
        sync::atomic<uint32_t> child_ended{0};
        sync::atomic<uint32_t> ended{0};
        const auto until_child_ended = [&] {
            while (child_ended.load(sync::acquire) == 0)
                sync::cpu_relax();
        };
        const mc_task_t parent = spawn_one([&] {
            while (here().executor->index() == 0) { // until the new one has stolen us
                const auto last = [](void *) {
                    for (int i = 0; i < 20; ++i)
                        sync::thread_yield();
                };
                (void)spawn_step(*here().executor, last, nullptr);
                yield();
            }
            spawn_one([&] { child_ended.store(1, sync::release); });
            until_child_ended(); // on the first one, which steals it
            for (int i = 0; i < 5; ++i)
                sync::thread_yield();
            ended.store(1, sync::release);
        });
        Thread counter(
            [&] {
                while (ended.load(sync::acquire) == 0) {
                    check(default_pool()->microthreads() != 0 || ended.load(sync::acquire) != 0, "none, and one lives");
                    sync::thread_yield();
                }
            },
            "counter");
        check(default_pool()->add_executor() == MC_OK, "not added");
        check(result_of(parent) == MC_OK, "not run");
        counter.join();
        stop_many();
    });
}

// Goal: a thread that the runtime does not know wakes a microthread while the executors stop, and is gone when the owner
// waits: nobody takes that for a deadlock.
Test(PoolRaceSys, a_stray_is_no_deadlock, .timeout = 120) {
    explore_pool("PoolRaceSys/a_stray_is_no_deadlock", 1'500, [] {
        start_many(1);
        Gate gate;
        const mc_task_t task = spawn_one([&] { return gate.acquire(); });
        Thread waker([&] { gate.release(); }, "waker");
        stop_many();
        int32_t result = -1;
        const int32_t status = join_until(task, MC_FOREVER, &result);
        check(status == MC_OK && result == MC_OK, "status %d, result %d", status, result);
        waker.join();
    });
}

// Goal: the same, for a waker that looked at the mode before the stop and hands in when it is over.
Test(PoolRaceSys, a_late_stray_is_no_deadlock, .timeout = 120) {
    explore_pool("PoolRaceSys/a_late_stray_is_no_deadlock", 1'500, [] {
        start_many(1);
        Held held;
        const mc_task_t task = spawn_one([&] { return held.wait(); });
        stop_many();
        while (!held.waits())
            yield();
        Thread waker([&] { hand_in(*default_pool(), held.claim()); }, "waker");
        int32_t result = -1;
        const int32_t status = join_until(task, MC_FOREVER, &result);
        check(status == MC_OK && result == MC_OK, "status %d, result %d", status, result);
        waker.join();
    });
}

// Goal: a thread is about to begin a microthread while the runtime ends: it is refused, or whoever ends it counts it.
Test(PoolRaceSys, who_is_admitted_is_counted, .timeout = 120) {
    mc::testing::expect_pass({.name = "PoolRaceSys/who_is_admitted_is_counted",
                              .search = mc::testing::Search::seeds,
                              .stale = 1,
                              .seeds = uint64_t{1'500} * mc::testing::scale(),
                              .isolate = true,
                              .real_runs = 50},
                             [] {
                                 Pool *pool = Pool::create();
                                 check(pool != nullptr, "not made");
                                 bool admitted = false;
                                 Thread spawner([&] { admitted = pool->admit_from_outside(); }, "spawner");
                                 pool->close();
                                 const bool none = pool->microthreads() == 0;
                                 spawner.join();
                                 check(!admitted || !none, "admitted, and not counted");
                             });
}

// Goal: a thread waits for quiet while another one is counted and refused: the waiter is told, though no executor moves.
Test(PoolRaceSys, who_is_refused_is_told_of, .timeout = 120) {
    explore_pool("PoolRaceSys/who_is_refused_is_told_of", 1'500, [] {
        start_many(1);
        Pool &pool = *default_pool();
        (void)sleep_until(here(), in_ns(200'000), nullptr); // the executor sleeps
        pool.close();
        Thread spawner([&] { check(!pool.admit_from_outside(), "admitted"); }, "spawner");
        check(wait_quiet(), "not quiet");
        spawner.join();
        pool.reopen();
        stop_many();
    });
}

// Goal: all waits are ended, again and again, while they begin: each ends once, and registered where it ends.
Test(PoolRaceSys, waits_are_ended_as_they_begin, .timeout = 120) {
    explore_pool("PoolRaceSys/waits_are_ended_as_they_begin", 600, [] {
        start_many(2);
        Gate gate;
        mc_task_t tasks[2];
        for (mc_task_t &task : tasks)
            task = spawn_one([&] { return gate.acquire(); }, true);
        default_pool()->close();
        do
            default_pool()->end_all_waits();
        while (!wait_quiet(in_ns(20'000)));
        for (const mc_task_t task : tasks)
            check(result_of(task) == MC_E_SHUTDOWN, "why else");
        check(!gate.has_waiters(), "a waiter is left");
        stop_many();
    });
}
