// csp_run and csp_schedule: what they run, what they return, when they sleep.
#include "csp/test_csp.hpp"

using namespace mc::csp::testing;

// Goal: csp_run gives up the turn once and returns 1 while another task is runnable, then 0.
Test(Run, gives_up_the_turn_and_says_whether_others_are_runnable) {
    World world;
    cr_assert_eq(csp_run(), 0);
    spawn_at_tail([] {
        mark("a1");
        csp_yield();
        mark("a2");
    });
    cr_assert_eq(csp_run(), 1);
    expect_trace("a1 ");
    cr_assert_eq(csp_run(), 0);
    expect_trace("a1 a2 ");
}

// Goal: a microthread's csp_run gives up the turn like its csp_yield.
Test(Run, gives_up_the_turn_from_a_microthread) {
    World world;
    spawn_at_tail([] {
        mark("a1");
        cr_assert_eq(csp_run(), 1); // b and main are runnable
        mark("a2");
    });
    spawn_at_tail([] {
        mark("b1");
        cr_assert_eq(csp_run(), 1);
        mark("b2");
    });
    mark("m1");
    csp_yield();
    mark("m2");
    csp_yield();
    expect_trace("m1 a1 b1 m2 a2 b2 ");
}

// Goal: blocked tasks do not keep csp_run at 1.
Test(Run, blocked_tasks_do_not_count) {
    World world;
    Chan chan;
    spawn([&] { cr_assert_eq(chan.receive(), 1); });
    cr_assert_eq(csp_run(), 0);
    cr_assert_eq(chan.send(1), 1);
}

// Goal: due timers fire before the turn is given up: the one woken runs in the same call.
Test(Run, fires_due_timers_first) {
    World world;
    spawn([] {
        csp_sleep_until(mc_after(MC_MS));
        mark("s");
    });
    for (const int64_t until = mc_after(2 * MC_MS); mc_now() < until;) {
    }
    cr_assert_eq(csp_run(), 0);
    expect_trace("s ");
}

// Goal: a pending timer keeps it at 1; with only sleepers left it sleeps until the first of them.
Test(Run, sleeps_until_the_first_sleeper) {
    World world;
    const int64_t start = mc_now();
    for (int units : {60, 20})
        spawn([=] {
            csp_sleep_until(start + units * unit);
            mark(units == 20 ? "20" : "60");
        });
    int runs = 0;
    while (trace.empty()) {
        cr_assert_eq(csp_run(), 1);
        cr_assert_lt(++runs, 10, "it spins instead of sleeping");
    }
    cr_assert_geq(mc_now(), start + 20 * unit);
    cr_assert_lt(mc_now(), start + 60 * unit);
    while (csp_run() != 0)
        cr_assert_lt(++runs, 20, "it spins instead of sleeping");
    cr_assert_geq(mc_now(), start + 60 * unit);
    expect_trace("20 60 ");
}

// Goal: an armed csp_after is a pending timer, whether or not anybody waits for it.
Test(Run, a_timer_channel_is_a_pending_timer) {
    World world;
    csp_reader timer = csp_after(20 * MC_MS);
    const int64_t start = mc_now();
    csp_schedule();
    cr_assert_geq(mc_now(), start + 15 * MC_MS);
    cr_assert_eq(csp_run(), 0);
    csp_reader_release(timer);
    timer = csp_after(3600 * MC_SEC);
    csp_reader_release(timer);
    cr_assert_eq(csp_run(), 0); // cancelled
}

// Goal: another thread's wake ends csp_run's sleep.
Test(Run, another_threads_wake_ends_its_sleep, .timeout = 20) {
    World world;
    Chan chan;
    csp_reader timer = csp_after(3600 * MC_SEC);
    spawn([&] {
        cr_assert_eq(chan.receive(), 3);
        mark("woken");
    });
    const int64_t start = mc_now();
    PosixThread thread([&] {
        csp_sleep_until(mc_after(30 * MC_MS));
        cr_assert_eq(chan.send(3), 1);
    });
    while (trace.empty())
        cr_assert_eq(csp_run(), 1);
    cr_assert_lt(mc_now(), start + 10 * MC_SEC);
    csp_reader_release(timer);
}

// Goal: csp_schedule runs everything that can run, sleepers too, and returns while blocked tasks remain.
Test(Schedule, returns_with_blocked_tasks_left) {
    World world;
    Chan chan;
    spawn([&] {
        mark("b1");
        cr_assert_eq(chan.receive(), 9);
        mark("b2");
    });
    spawn_at_tail([] {
        csp_sleep_until(mc_after(10 * MC_MS));
        mark("slept");
        spawn_at_tail([] { mark("late"); });
    });
    csp_schedule();
    expect_trace("b1 slept late ");
    cr_assert_eq(chan.send(9), 1);
    expect_trace("b1 slept late b2 ");
}

// Goal: tasks in csp_schedule do not wait for each other; each returns once the rest is done.
Test(Schedule, in_main_and_in_microthreads_at_once) {
    World world;
    Chan chan;
    int ended = 0;
    spawn_at_tail([&] {
        csp_schedule();
        cr_assert_eq(ended, 1);
        mark("a");
    });
    spawn_at_tail([&] {
        csp_schedule();
        cr_assert_eq(ended, 1);
        mark("b");
    });
    spawn_at_tail([&] { (void)chan.receive(); }); // stays blocked
    spawn_at_tail([&] {
        for (int i = 0; i < 5; ++i)
            csp_yield();
        csp_sleep_until(mc_after(5 * MC_MS));
        ++ended;
    });
    csp_schedule();
    cr_assert_eq(ended, 1);
    csp_schedule();
    cr_assert(trace == "a b " || trace == "b a ", "%s", trace.c_str());
    chan.release_writer();
}

// Goal: csp_schedule called by a microthread alone, while main is blocked, comes back.
Test(Schedule, in_a_microthread_while_main_is_blocked) {
    World world;
    Chan chan;
    spawn_at_tail([&] {
        csp_schedule();
        cr_assert_eq(chan.send(4), 1);
    });
    cr_assert_eq(chan.receive(), 4);
}

// Goal: from a second thread, csp_run and csp_schedule say MC_E_CONTEXT in the log and do nothing.
Test(Run, second_thread_is_refused) {
    World world;
    spawn_at_tail([] { mark("x"); });
    PosixThread thread([&] {
        cr_assert_eq(csp_run(), 0);
        cr_assert_eq(world.log.count(MC_E_CONTEXT), 1);
        csp_schedule();
        cr_assert_eq(world.log.count(MC_E_CONTEXT), 2);
    });
    thread.join();
    expect_trace("");
    world.expected_lines = 2;
}

// Goal: csp_yield from a second thread gives up that thread's processor and runs nobody.
Test(Run, second_thread_may_yield) {
    World world;
    spawn_at_tail([] { mark("x"); });
    PosixThread thread([] { csp_yield(); });
    thread.join();
    expect_trace("");
}

// Goal: csp_spawn from a second thread joins the tail and is run by the owner; the thread does not run it.
Test(Run, second_thread_spawns_to_the_tail) {
    World world;
    spawn_at_tail([] { mark("x"); });
    const pthread_t owner = pthread_self();
    PosixThread thread([&] {
        spawn([=] {
            cr_assert(pthread_equal(pthread_self(), owner));
            mark("s");
        });
        spawn_at_tail([] { mark("t"); });
    });
    thread.join();
    expect_trace("");
    csp_schedule();
    expect_trace("x s t ");
}
