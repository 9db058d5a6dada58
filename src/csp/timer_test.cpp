// Timers: csp_after, csp_tick, csp_sleep_until. Real time: bounds from below are exact, those from above generous.
#include "csp/channel.hpp"
#include "csp/test_csp.hpp"

#include <algorithm>
#include <vector>

using namespace mc::csp::testing;

namespace {

constexpr int64_t HOUR = 3600 * MC_SEC;

void spin(int64_t ns) {
    for (const int64_t until = mc_after(ns); mc_now() < until;) {
    }
}

} // namespace

// Goal: csp_after delivers the time at which it fired, once, not early; then it is dead.
Test(Timer, after_delivers_once) {
    World world;
    const int64_t start = mc_now();
    int64_t time = 0;
    csp_reader timer = csp_after(10 * MC_MS);
    cr_assert_not_null(timer);
    cr_assert_eq(csp_try_recv(timer, &time), 0);
    cr_assert_eq(csp_recv(timer, &time), 1);
    cr_assert_geq(time, start + 10 * MC_MS);
    cr_assert_leq(time, mc_now());
    cr_assert_eq(csp_recv(timer, &time), -1);
    cr_assert_eq(csp_try_recv(timer, &time), -1);
    csp_reader_release(timer);
}

// Goal: it keeps the time for a reader who comes late.
Test(Timer, after_waits_for_a_late_reader) {
    World world;
    const int64_t start = mc_now();
    csp_reader timer = csp_after(MC_MS);
    csp_schedule();
    const int64_t fired_by = mc_now();
    spin(5 * MC_MS);
    int64_t time = 0;
    const csp_chanop dead = dies(timer);
    cr_assert_eq(csp_prialt(&dead, 1, 1), 0); // not dead before it has been read
    cr_assert_eq(csp_try_recv(timer, &time), 1);
    cr_assert_geq(time, start + MC_MS);
    cr_assert_leq(time, fired_by);
    cr_assert_eq(csp_prialt(&dead, 1, 1), -1);
    csp_reader_release(timer);
}

// Goal: zero and less count as zero; a timer that far away never fires does not matter to one that is near.
Test(Timer, after_at_both_ends_of_time) {
    World world;
    std::vector<csp_reader> far;
    for (const int64_t ns : {MC_FOREVER, MC_FOREVER - 1, INT64_C(100) * 365 * 86400 * MC_SEC})
        far.push_back(csp_after(ns));
    for (const int64_t ns : {INT64_C(0), INT64_C(-1), INT64_MIN, 3 * MC_MS}) {
        const int64_t start = mc_now();
        int64_t time = 0;
        csp_reader timer = csp_after(ns);
        cr_assert_eq(csp_recv(timer, &time), 1);
        cr_assert_geq(time, start + (ns > 0 ? ns : 0));
        cr_assert_lt(time, start + 2 * MC_SEC);
        csp_reader_release(timer);
    }
    for (csp_reader timer : far) {
        cr_assert_eq(csp_try_recv(timer, nullptr), 0);
        csp_reader_release(timer);
    }
}

// Goal: it counts as a channel, on the reader's side only, until it is released, fired or not.
Test(Timer, counts_on_the_readers_side) {
    World world;
    csp_reader first = csp_after(MC_MS), second = csp_tick(3600 * MC_SEC);
    cr_assert_eq(csp__internal__channel_count(0), 0);
    cr_assert_eq(csp__internal__channel_count(1), 2);
    cr_assert_eq(csp_recv(first, nullptr), 1);
    cr_assert_eq(csp__internal__channel_count(0), 0);
    cr_assert_eq(csp__internal__channel_count(1), 2);
    csp_reader_release(first);
    csp_reader_release(second);
    cr_assert_eq(csp__internal__channel_count(1), 0);
}

// Goal: releasing cancels, before it fires, after it has fired unread, after it was read; other memory may be in its
// place.
Test(Timer, release_cancels) {
    World world;
    for (int i = 0; i < 300; ++i) {
        csp_reader timer = csp_after(i % 3 == 0 ? 3600 * MC_SEC : 1000);
        if (i % 3 != 0)
            for (spin(2000); csp_run() != 0;) {
            }
        if (i % 3 == 2)
            cr_assert_eq(csp_recv(timer, nullptr), 1);
        std::vector<std::vector<char>> others;
        for (size_t size = 32; size < 400; size += 8)
            others.emplace_back(size, 'A');
        csp_reader_release(timer);
        cr_assert_eq(csp_run(), 0, "something is pending");
    }
}

// Goal: the channel of a timer that has been stopped, has fired, or never would is used again, as those of no timers are.
Test(Timer, channels_go_back) {
    World world;
    const uint32_t before = mc::csp::channel_slab().carved();
    for (int i = 0; i < 10'000; ++i) {
        csp_reader_release(csp_after(HOUR));
        csp_reader_release(csp_after(INT64_MAX));
        csp_reader_release(csp_tick(HOUR));
        if (i % 1'000 == 0) {
            csp_reader fires = csp_after(1);
            int64_t time = 0;
            cr_assert_eq(csp_recv(fires, &time), 1);
            csp_reader_release(fires);
        }
    }
    cr_assert_lt(mc::csp::channel_slab().carved() - before, 2u * 4096); // a debug build's quarantine
    cr_assert_eq(csp_run(), 0);                                         // nothing is armed
}

// Goal: several references are one timer: it goes with the last.
Test(Timer, has_references) {
    World world;
    csp_reader timer = csp_after(2 * MC_MS);
    csp_reader other = csp_reader_addref(timer);
    csp_reader_release(timer);
    cr_assert_eq(csp_recv(other, nullptr), 1);
    csp_reader_release(other);
}

// Goal: csp_after as the timeout of an alt, beside a channel that comes in time and one that does not.
Test(Timer, after_is_an_alts_timeout) {
    World world;
    Chan chan;
    int got = 0, message = 5;
    int64_t time = 0;
    for (int round = 0; round < 3; ++round) {
        csp_reader timer = csp_after(round == 1 ? 60 * MC_SEC : 5 * MC_MS);
        const csp_chanop ops[] = {receives(chan.r, &got), receives(timer, &time)};
        if (round == 1)
            spawn_at_tail([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
        cr_assert_eq(alt(ops), round == 1 ? 1 : 2);
        cr_assert_eq(std::exchange(time, 0) != 0, round != 1);
        csp_reader_release(timer);
        csp_schedule();
    }
    cr_assert_eq(got, 5);
}

// Goal: a dead-mode arm on a timer fires once its time has been taken.
Test(Timer, dead_mode_fires_when_it_is_over) {
    World world;
    csp_reader timer = csp_after(3 * MC_MS);
    spawn([&] {
        const csp_chanop op = dies(timer);
        cr_assert_eq(csp_prialt(&op, 1, 0), -1);
        mark("over");
    });
    csp_schedule();
    expect_trace("");
    cr_assert_eq(csp_recv(timer, nullptr), 1);
    csp_yield();
    expect_trace("over ");
    csp_reader_release(timer);
}

// Goal: csp_tick keeps the beat of its start: tick n comes at start + n periods, not before, and does not drift.
Test(Timer, tick_does_not_drift) {
    World world;
    constexpr int64_t period = 4 * MC_MS;
    const int64_t before = mc_now();
    csp_reader tick = csp_tick(period);
    const int64_t after = mc_now();
    for (int n = 1; n <= 20; ++n) {
        int64_t time = 0;
        cr_assert_eq(csp_recv(tick, &time), 1);
        cr_assert_geq(time, before + n * period); // n is what it is at least: late ticks are dropped, none comes early
        // The start lies between before and after, so the beat that this tick belongs to is known from below only.
        n = std::max(n, static_cast<int>((time - after) / period));
        spin(n % 3 * MC_MS); // the reader's own delay does not add up
    }
    // Three quarters of the ticks that follow are within half a period of their beat.
    int close = 0;
    for (int n = 0; n < 20; ++n) {
        int64_t time = 0;
        cr_assert_eq(csp_recv(tick, &time), 1);
        close += (time - after) % period < period / 2 || (time - before) % period < period / 2;
    }
    cr_assert_geq(close, 15);
    csp_reader_release(tick);
    cr_assert_eq(csp_run(), 0);
}

// Goal: a reader who is late gets the oldest tick that he has not taken; those between are dropped.
Test(Timer, tick_drops_what_is_not_taken) {
    World world;
    const int64_t start = mc_now();
    csp_reader tick = csp_tick(5 * unit);
    int64_t first = 0, second = 0;
    while (mc_now() < start + 42 * unit) {
        spin(MC_MS);
        cr_assert_eq(csp_run(), 1);
    }
    const int64_t late = mc_now();
    cr_assert_eq(csp_recv(tick, &first), 1);
    cr_assert_geq(first, start + 5 * unit);
    cr_assert_lt(first, start + 30 * unit, "not the oldest");
    cr_assert_eq(csp_recv(tick, &second), 1);
    cr_assert_geq(second, late, "a tick between was kept");
    csp_reader_release(tick);
}

// Goal: the shortest and the longest periods: ticks of a nanosecond do not stop the world; one of for ever does
// nothing.
Test(Timer, tick_at_both_ends) {
    World world;
    int64_t time = 0, last = 0;
    for (const int64_t period : {INT64_MIN, INT64_C(0), INT64_C(1)}) {
        csp_reader tick = csp_tick(period);
        int yields = 0;
        spawn([&] {
            for (; yields < 100; ++yields)
                csp_yield();
        });
        for (int i = 0; i < 100; ++i) {
            cr_assert_eq(csp_recv(tick, &time), 1);
            cr_assert_gt(time, std::exchange(last, time));
        }
        csp_reader_release(tick);
        csp_schedule();
        cr_assert_eq(yields, 100);
    }
    csp_reader never = csp_tick(MC_FOREVER);
    cr_assert_eq(csp_recv_until(never, &time, mc_after(2 * MC_MS)), MC_E_TIMEDOUT);
    csp_reader_release(never);
}

// Goal: sleepers wake in the order of their deadlines; equal ones in the order in which they went to sleep.
Test(Timer, sleepers_wake_in_order) {
    World world;
    constexpr int count = mc::testing::under_tsan ? 500 : 3000;
    std::vector<std::pair<int64_t, int>> expected, woken;
    for (int64_t lead = 50 * MC_MS;; lead *= 2) { // all must be asleep before the first is to wake
        const int64_t start = mc_after(lead);
        expected.clear();
        woken.clear();
        for (int i = 0; i < count; ++i) {
            const int64_t deadline = start + static_cast<int64_t>(mc_random() % 50) * 200'000;
            expected.emplace_back(deadline, i);
            spawn([&woken, deadline, i] {
                csp_sleep_until(deadline);
                cr_assert_geq(mc_now(), deadline);
                woken.emplace_back(deadline, i);
            });
        }
        const bool in_time = mc_now() < start;
        csp_schedule();
        if (in_time)
            break;
    }
    std::sort(expected.begin(), expected.end());
    cr_assert_eq(woken.size(), expected.size());
    cr_assert(woken == expected, "out of order");
}

// Goal: a sleep until a time that has passed yields; the others get their turn, timers or not.
Test(Timer, a_sleep_into_the_past_yields) {
    World world;
    spawn_at_tail([] { mark("x"); });
    mark("m1");
    csp_sleep_until(mc_now() - 1);
    mark("m2");
    csp_sleep_until(INT64_MIN);
    expect_trace("m1 x m2 ");
}

// Goal: a sleep for ever is a block: csp_schedule returns, another thread's death cannot end it, the process can end.
Test(Timer, a_sleep_for_ever_is_a_block) {
    World world;
    static bool woke = false;
    cr_assert_eq(csp_spawn(
                     [](void *) {
                         csp_sleep_until(MC_FOREVER);
                         woke = true;
                     },
                     nullptr),
                 1);
    csp_schedule();
    cr_assert_eq(csp_run(), 0);
    cr_assert_not(woke);
}

// Goal: a timer that never fires is no pending timer: nothing waits for it, and a closed world is closed.
Test(Timer, one_that_never_fires_is_not_pending, .timeout = 10) {
    in_process_with_one_thread([] {
        alarm(8); // a hang is a failure, and leaves nobody behind
        World world;
        csp_reader after = csp_after(MC_FOREVER), tick = csp_tick(MC_FOREVER);
        cr_assert_eq(csp_run(), 0);
        csp_schedule();
        Chan chan;
        const csp_chanop ops[] = {receives(chan.r), receives(after)};
        cr_assert_eq(alt(ops), MC_E_DEADLOCK);
        cr_assert_eq(csp_recv(tick, nullptr), MC_E_DEADLOCK);
        cr_assert_eq(csp_recv_until(after, nullptr, mc_after(MC_MS)), MC_E_TIMEDOUT);
        csp_reader_release(after);
        csp_reader_release(tick);
    });
}

// Goal: timers fire within a few milliseconds while the queue is kept busy: by yields, and by hand-overs alone.
Test(Timer, fire_while_the_queue_is_busy) {
    World world;
    for (bool hand_over : {false, true}) {
        Chan ping, pong;
        bool stop = false;
        for (int i = 0; i < 3 && !hand_over; ++i)
            spawn([&] {
                while (!stop)
                    csp_yield();
            });
        if (hand_over) {
            spawn([&] {
                while (ping.receive() > 0)
                    (void)pong.send(1);
            });
            spawn_at_tail([&] {
                while (!stop && ping.send(1) == 1)
                    (void)pong.receive();
                ping.release_writer();
            });
        }
        int64_t worst = 0;
        for (int i = 0; i < 20; ++i) {
            const int64_t deadline = mc_after(2 * MC_MS);
            csp_sleep_until(deadline);
            cr_assert_geq(mc_now(), deadline);
            worst = std::max(worst, mc_now() - deadline);
        }
        stop = true;
        csp_schedule();
        if (!mc::testing::under_valgrind)
            cr_assert_lt(worst, 100 * MC_MS, "late by %lld us", static_cast<long long>(worst / 1000));
    }
}

// Goal: timers may be made, awaited and released by any thread; threads have timeouts of their own.
Test(Timer, other_threads_use_timers, .timeout = 20) {
    World world;
    Chan done;
    PosixThread thread([&] {
        const int64_t start = mc_now();
        csp_reader timer = csp_after(10 * MC_MS);
        int64_t time = 0;
        cr_assert_eq(csp_recv(timer, &time), 1);
        cr_assert_geq(time, start + 10 * MC_MS);
        csp_reader_release(timer);
        csp_reader_release(csp_after(3600 * MC_SEC));
        csp_sleep_until(mc_after(5 * MC_MS));
        cr_assert_geq(mc_now(), start + 15 * MC_MS);
        csp_reader tick = csp_tick(MC_MS);
        for (int i = 0; i < 5; ++i)
            cr_assert_eq(csp_recv(tick, nullptr), 1);
        csp_reader_release(tick);
        cr_assert_eq(done.send(1), 1);
    });
    cr_assert_eq(done.receive(), 1);
    thread.join();
}

// Goal: a thread that releases a timer while it fires, over and over: no crash, no timer left.
Test(Timer, released_by_a_thread_while_it_fires, .timeout = 30) {
    World world;
    Chan done;
    PosixThread thread([&] {
        for (int i = 0; i < 3000 * static_cast<int>(mc::testing::scale()); ++i) {
            csp_reader timer = i % 2 == 0 ? csp_after(i % 50 * 100) : csp_tick(1 + i % 50 * 100);
            for (const int64_t until = mc_now() + i % 97 * 100; mc_now() < until;) {
            }
            csp_reader_release(timer);
        }
        cr_assert_eq(done.send(1), 1);
    });
    while (csp_try_recv(done.r, nullptr) == 0)
        csp_yield();
    thread.join();
}
