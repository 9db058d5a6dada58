// What comes from outside the queue, timers and other threads' wakes, is noticed while tasks keep the executor busy: by
// yielding, by handing over, by ending and starting.
#include "sched/test_sched.hpp"

#include <algorithm>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

// How late something may be noticed: the machine may be busy with other things, so this says "not starved", no more.
constexpr int64_t late_ns = 200 * MC_MS;

// Keeps `busy` going in two microthreads until something has been noticed from them; fails if that takes for ever.
template <class Busy> void notices_timers(Busy busy) {
    bool stop = false;
    int64_t woken_at = 0;
    const int64_t deadline = in_ms(10);
    run_now([&] {
        cr_assert_eq(sleep_until(here(), deadline, nullptr), MC_E_TIMEDOUT);
        woken_at = sync::now_ns();
        stop = true;
    });
    busy(stop);
    cr_assert_geq(woken_at, deadline);
    cr_assert_lt(woken_at - deadline, late_ns);
}

template <class Busy> void notices_threads(Busy busy) {
    bool stop = false;
    sync::atomic<int64_t> sent_at{0};
    Gate gate;
    run_now([&] {
        cr_assert_eq(gate.acquire(), MC_OK);
        cr_assert_lt(sync::now_ns() - sent_at.load(sync::relaxed), late_ns);
        stop = true;
    });
    Other other([&] {
        sleep_ms(5);
        sent_at.store(sync::now_ns(), sync::relaxed);
        gate.release();
    });
    busy(stop);
    other.end();
}

template <class Busy> void notices(Busy busy) {
    here();
    notices_timers(busy);
    notices_threads(busy);
}

} // namespace

// Goal: while one task yields to nobody.
Test(Cadence, a_lone_yielder) {
    notices([](const bool &stop) {
        while (!stop)
            yield();
    });
}

// Goal: while several yield to each other.
Test(Cadence, several_yielders) {
    notices([](const bool &stop) {
        mc_task_t tasks[5];
        for (mc_task_t &task : tasks)
            task = start([&stop] {
                while (!stop)
                    yield();
            });
        for (mc_task_t task : tasks)
            cr_assert_eq(result_of(task), MC_OK);
    });
}

// Goal: while one hands the processor to the other, out of turn, and gets it back as the other waits; it keeps its
// turn all the while, so what was noticed only runs when it yields now and then.
Test(Cadence, two_that_hand_over) {
    notices([](const bool &stop) {
        Gate ball;
        const mc_task_t other = start([&] {
            while (!stop)
                cr_assert_eq(ball.acquire(), MC_OK);
        });
        yield();
        for (int turn = 0; !stop; ++turn)
            if (!ball.hand_over() || turn % 100 == 0)
                yield();
        ball.release();
        cr_assert_eq(result_of(other), MC_OK);
    });
}

// Goal: while microthreads start others, out of turn and at the tail, and end.
Test(Cadence, endless_beginnings) {
    notices([](const bool &stop) {
        while (!stop) {
            run_now([] {});
            (void)result_of(start([] {}));
        }
    });
}

namespace {

struct Opener : Timer {
    Gate *gate = nullptr;
    static void fire(Timer &timer, uint64_t, int64_t) { static_cast<Opener &>(timer).gate->release(); }
    static constexpr Action open{nullptr, fire};
};

} // namespace

// Goal: a timer that another thread arms, earlier than what the owner sleeps for, wakes the owner in time.
Test(Cadence, timers_armed_by_another_thread) {
    Gate gate;
    Opener opener;
    here();
    opener.gate = &gate;
    opener.action = &Opener::open;
    Other other([&] {
        sleep_ms(10); // the owner is asleep by now
        opener.deadline_ns = in_ms(5);
        executor().arm(opener);
    });
    const int64_t start_ns = sync::now_ns();
    cr_assert_eq(gate.acquire(in_ms(5'000)), MC_OK);
    cr_assert_lt(sync::now_ns() - start_ns, 2 * MC_SEC);
    other.end();
}

// Goal: after a time of short turns, in which the queue is looked at seldom, long turns do not make it look more seldom
// still: a timer is late by a few turns, not by all that were planned.
Test(Cadence, long_turns_after_short_ones) {
    bool stop = false;
    const auto busy = [&stop](int64_t turn_ns) {
        while (!stop) {
            const int64_t until = in_ns(turn_ns);
            while (sync::now_ns() < until)
                sync::cpu_relax();
            yield();
        }
    };
    for (int i = 0; i < 1'000; ++i) // the interval is at its longest now
        yield();
    const mc_task_t tasks[] = {start([&] { busy(MC_MS); }), start([&] { busy(MC_MS); })};
    sleep_ms(100); // it has adapted
    int64_t worst = 0;
    for (int i = 0; i < 10; ++i) {
        const int64_t deadline = in_ms(5);
        cr_assert_eq(sleep_until(here(), deadline, nullptr), MC_E_TIMEDOUT);
        worst = std::max(worst, sync::now_ns() - deadline);
    }
    stop = true;
    for (mc_task_t task : tasks)
        cr_assert_eq(result_of(task), MC_OK);
    cr_assert_lt(worst, 50 * MC_MS);
}
