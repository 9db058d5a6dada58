// The owner's own stack as one more task: it blocks on channels like the others, and hears of a closed world. And what
// csp_descr and csp_off_stack tell.
#include "csp/test_csp.hpp"

using namespace mc::csp::testing;

// Goal: main blocks on channels, in both directions, while the others run.
Test(Main, blocks_on_channels) {
    World world;
    Chan numbers, squares;
    spawn([&] {
        for (int value; (value = numbers.receive()) > 0;)
            cr_assert_eq(squares.send(value * value), 1);
        squares.release_writer();
    });
    for (int i = 1; i <= 100; ++i) {
        cr_assert_eq(numbers.send(i), 1);
        cr_assert_eq(squares.receive(), i * i);
    }
    numbers.release_writer();
    cr_assert_eq(squares.receive(), -1);
}

// Goal: with nothing left to run, every kind of wait of main's ends with MC_E_DEADLOCK, and then all works again.
Test(Main, closed_world_is_a_deadlock, .timeout = 20) {
    in_process_with_one_thread([] {
        World world;
        Chan chan;
        mc_chan_t elements = 0;
        mc_task_t task = 0;
        cr_assert_eq(mc_chan_create(0, sizeof(int), 1, nullptr, nullptr, &elements), MC_OK);
        const auto blocks = [](void *user) -> int32_t { return static_cast<Chan *>(user)->receive(); };
        cr_assert_eq(mc_spawn(0, blocks, &chan, nullptr, &task), MC_OK);
        csp_yield();
        for (int round = 0; round < 3; ++round) {
            int value = -5;
            uint32_t done = 99;
            const csp_chanop ops[] = {disabled(), receives(chan.r, &value), dies(chan.w)};
            cr_assert_eq(csp_recv(chan.r, &value), MC_E_DEADLOCK);
            cr_assert_eq(csp_recv_until(chan.r, &value, MC_FOREVER), MC_E_DEADLOCK);
            cr_assert_eq(alt(ops), MC_E_DEADLOCK);
            cr_assert_eq(prialt(ops), MC_E_DEADLOCK);
            cr_assert_eq(mc_recv(elements, &value), MC_E_DEADLOCK);
            cr_assert_eq(mc_recv_n(elements, &value, 1, &done), MC_E_DEADLOCK);
            cr_assert_eq(mc_join(task, MC_FOREVER, &value), MC_E_DEADLOCK);
            cr_assert(value == -5 && done == 99);
            const int before = world.log.count(MC_E_DEADLOCK); // the first one had its report
            cr_assert_gt(before, 0);
            csp_sleep_until(MC_FOREVER);
            cr_assert_gt(world.log.count(MC_E_DEADLOCK), before);
            int message = 3;
            cr_assert_eq(mc_send(elements, &message), MC_OK);
            cr_assert_eq(mc_send(elements, &message), MC_E_DEADLOCK);
            cr_assert_eq(mc_recv(elements, &value), MC_OK);
            // The world goes on: others can be spawned and met, and nobody is left waiting in main's place.
            spawn([&] { cr_assert_eq(chan.receive(), 4); });
            cr_assert_eq(chan.send(4), 1); // to the task, which waited first
            cr_assert_eq(mc_join(task, MC_FOREVER, &value), MC_OK);
            cr_assert_eq(value, 4);
            cr_assert_eq(chan.send(4), 1);
            cr_assert_eq(csp_try_send(chan.w, &message), 0);
            cr_assert_eq(mc_spawn(0, blocks, &chan, nullptr, &task), MC_OK);
            csp_yield();
        }
        cr_assert_eq(chan.send(4), 1);
        cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
        cr_assert_eq(mc_chan_destroy(elements), MC_OK);
    });
}

// Goal: a deadline of main's, a sleeper, an armed timer: each is something that will happen, so it is no deadlock.
Test(Main, a_pending_timer_is_no_deadlock, .timeout = 20) {
    in_process_with_one_thread([] {
        World world;
        Chan chan;
        int value = -5;
        cr_assert_eq(csp_recv_until(chan.r, &value, mc_after(10 * MC_MS)), MC_E_TIMEDOUT);
        spawn([&] {
            csp_sleep_until(mc_after(20 * MC_MS));
            cr_assert_eq(chan.send(1), 1);
        });
        cr_assert_eq(csp_recv(chan.r, &value), 1);
        csp_reader timer = csp_after(20 * MC_MS);
        cr_assert_eq(csp_recv(chan.r, &value), MC_E_DEADLOCK); // once it has fired, and nobody was there to take it
        csp_reader_release(timer);
        Chan other;
        spawn([&] {
            cr_assert_eq(csp_recv_until(other.r, nullptr, mc_after(20 * MC_MS)), MC_E_TIMEDOUT);
            cr_assert_eq(chan.send(2), 1);
        });
        cr_assert_eq(chan.receive(), 2);
        csp_schedule();
    });
}

// Goal: a thread that the library knows and that runs, or one that waits with a deadline, is no closed world.
Test(Main, a_running_thread_is_no_deadlock, .timeout = 20) {
    World world;
    Chan chan, other;
    PosixThread thread([&] {
        csp_sleep_until(mc_after(30 * MC_MS)); // known, waiting with a deadline
        cr_assert_eq(chan.send(1), 1);
        for (const int64_t until = mc_after(30 * MC_MS); mc_now() < until;) { // known, running
        }
        cr_assert_eq(chan.send(2), 1);
        cr_assert_eq(csp_recv_until(other.r, nullptr, mc_after(30 * MC_MS)), MC_E_TIMEDOUT);
        cr_assert_eq(chan.send(3), 1);
    });
    for (int i = 1; i <= 3; ++i)
        cr_assert_eq(chan.receive(), i);
    thread.join();
}

// Goal: a thread that has not called the library yet may still do so: no closed world while it lives.
Test(Main, an_unknown_thread_is_no_deadlock, .timeout = 20) {
    World world;
    Chan chan;
    PosixThread thread([&] {
        const timespec time{0, 50'000'000};
        nanosleep(&time, nullptr);
        cr_assert_eq(chan.send(1), 1);
    });
    cr_assert_eq(chan.receive(), 1);
    thread.join();
}

// Goal: when the last thread that could have helped ends, or blocks for ever itself, main hears of it.
Test(Main, the_last_thread_ends_or_blocks, .timeout = 20) {
    in_process_with_one_thread([] {
        World world;
        Chan chan, other;
        PosixThread ends([&] { csp_sleep_until(mc_after(20 * MC_MS)); });
        cr_assert_eq(chan.receive(), MC_E_DEADLOCK);
        ends.join();
        PosixThread blocks([&] {
            csp_sleep_until(mc_after(20 * MC_MS));
            cr_assert_eq(other.receive(), -1);
        });
        cr_assert_eq(chan.receive(), MC_E_DEADLOCK);
        other.release_writer();
        blocks.join();
        cr_assert_eq(chan.receive(), MC_E_DEADLOCK);
    });
}

// Goal: main in a wait that a microthread ends by csp_schedule's return, by an end, by a death.
Test(Main, is_woken_by_death_and_end) {
    World world;
    Chan chan;
    spawn_at_tail([&] { chan.release_writer(); });
    cr_assert_eq(chan.receive(), -1);
    mc_task_t task = 0;
    int32_t result = 0;
    cr_assert_eq(mc_spawn(
                     0, [](void *) -> int32_t { return 12; }, nullptr, nullptr, &task),
                 MC_OK);
    cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
    cr_assert_eq(result, 12);
}

// Goal: csp_descr takes a format of any length on any stack, and NULL.
Test(Main, descriptions) {
    World world;
    csp_descr("main %d", 1);
    csp_descr("%s", "a description that is much longer than thirty-one bytes");
    csp_descr(nullptr);
    spawn([] {
        csp_descr("microthread %s", "x");
        csp_descr(nullptr);
        csp_descr("%100d", 5);
    });
    PosixThread thread([] { csp_descr("thread"); });
    thread.join();
}

// Goal: csp_off_stack tells the calling stack's addresses from all others, for main, microthreads and threads.
Test(Main, off_stack) {
    World world;
    static int in_data;
    auto *in_heap = new int;
    int on_main = 0;
    cr_assert_eq(csp_off_stack(&in_data), &in_data);
    cr_assert_eq(csp_off_stack(in_heap), in_heap);
    cr_assert_null(csp_off_stack(nullptr));
    cr_assert_null(csp_off_stack(&on_main));
    world.expected_lines = 1;
    spawn([&] {
        int on_fiber = 0;
        bool looked = false;
        cr_assert_eq(csp_off_stack(&on_main), &on_main);
        cr_assert_eq(csp_off_stack(in_heap), in_heap);
        cr_assert_null(csp_off_stack(&on_fiber));
        spawn([&] {
            int mine = 0;
            cr_assert_eq(csp_off_stack(&on_fiber), &on_fiber); // another microthread's
            cr_assert_null(csp_off_stack(&mine));
            looked = true;
        });
        while (!looked) // in simulation it may come later, and once we have ended, on this stack
            csp_yield();
        world.expected_lines += 2;
    });
    csp_schedule();
    PosixThread thread([&] {
        int on_thread = 0;
        cr_assert_eq(csp_off_stack(&on_main), &on_main);
        cr_assert_null(csp_off_stack(&on_thread));
        ++world.expected_lines;
    });
    thread.join();
    cr_assert_eq(world.log.count(MC_E_INVAL), world.expected_lines);
    delete in_heap;
}
