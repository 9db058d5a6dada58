// Parking under every interleaving: threads that wait without an executor, exhaustively; and microthreads on an owner
// that other threads wake, the whole path through inbox and sleep, a process a run. On real threads in other builds.
#include "sched/test_sched.hpp"

#include <optional>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::Data;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

// --- without an executor ---

// Goal: a thread that waits without a deadline is released, whatever comes first, and sees what the releaser did
// before.
Test(ParkSys, a_release_is_never_missed) {
    expect_pass({.name = "ParkSys/a_release_is_never_missed", .preemptions = 3}, [] {
        Gate gate;
        Loner loner;
        Data<int> message(0);
        Thread waiter(
            [&] {
                check(gate.acquire_on(loner.thread, MC_FOREVER, nullptr) == MC_OK, "not released");
                check(message.get() == 1, "released before the message was there");
            },
            "waiter");
        Thread releaser(
            [&] {
                message.set(1);
                gate.release();
            },
            "releaser");
    });
}

// Goal: a deadline races the release: the release is had or kept, never both, never lost.
Test(ParkSys, a_deadline_races_a_release) {
    expect_pass({.name = "ParkSys/a_deadline_races_a_release", .preemptions = 3}, [] {
        Gate gate;
        Loner loner;
        int32_t status = 1;
        int32_t value = 0;
        {
            Thread waiter(
                [&] {
                    const int64_t deadline = sync::now_ns() + 1'000'000;
                    status = gate.acquire_on(loner.thread, deadline, nullptr, &value);
                    check(status != MC_E_TIMEDOUT || sync::now_ns() >= deadline, "too early");
                },
                "waiter");
            Thread releaser([&] { gate.release(7); }, "releaser");
        }
        check(status == MC_OK || status == MC_E_TIMEDOUT, "status %d", status);
        check(gate.kept() == (status == MC_E_TIMEDOUT), "status %d, kept %d", status, gate.kept());
        check(status != MC_OK || value == 7 || value == 0, "another value");
        check(!gate.has_waiters(), "a waiter is left");
    });
}

// Goal: two waiters, one of whom may time out, and two releases: each release is had once or kept, and the one without
// a deadline is never left asleep.
Test(ParkSys, two_waiters_two_releases) {
    expect_pass({.name = "ParkSys/two_waiters_two_releases", .preemptions = 1, .stale = 1, .spurious = 0}, [] {
        Gate gate;
        Loner patient, hasty;
        int32_t status = 1;
        {
            Thread first([&] { status = gate.acquire_on(hasty.thread, sync::now_ns() + 1'000'000, nullptr); }, "hasty");
            Thread second([&] { check(gate.acquire_on(patient.thread, MC_FOREVER, nullptr) == MC_OK, "not released"); },
                          "patient");
            Thread releaser(
                [&] {
                    gate.release();
                    gate.release();
                },
                "releaser");
        }
        check(gate.kept() == (status == MC_E_TIMEDOUT), "status %d, kept %d", status, gate.kept());
    });
}

// Goal: a thread waits again and again: a waker of one wait never ends the next, and none is missed.
Test(ParkSys, waits_follow_each_other) {
    expect_pass({.name = "ParkSys/waits_follow_each_other", .stale = 1, .spurious = 0}, [] {
        Gate first, second;
        Loner loner;
        Data<int> message(0);
        Thread waiter(
            [&] {
                const int32_t early = first.acquire_on(loner.thread, sync::now_ns() + 1'000'000, nullptr);
                check(second.acquire_on(loner.thread, MC_FOREVER, nullptr) == MC_OK, "not released");
                check(message.get() == 1, "the first gate's waker has ended the wait at the second");
                check(early == MC_OK || first.kept() <= 1, "kept");
            },
            "waiter");
        Thread one([&] { first.release(); }, "first");
        Thread two(
            [&] {
                message.set(1);
                second.release();
            },
            "second");
    });
}

// --- the whole path ---

namespace {

// A microthread on the owner, which is the body's thread; other threads release it while the owner sleeps, falls
// asleep, or has yet to begin.
void owner_and_releasers(int releasers, bool timed) {
    here();
    Known known;
    Gate gate(choose(2) == 1);
    Data<int> message(0);
    sync::atomic<uint32_t> ended{0};
    int32_t status = 1;
    const mc_task_t task = start([&] {
        status = gate.acquire(timed ? in_ns(300 * (1 + choose(6))) : MC_FOREVER);
        ended.store(1, sync::relaxed);
        if (status == MC_OK)
            check(message.get() > 0, "woken before the message was there");
    });
    const auto release = [&] {
        known.arrive();
        if (choose(2) == 1)
            while (!gate.has_waiters() && ended.load(sync::relaxed) == 0)
                sync::thread_yield();
        if (releasers == 1)
            message.set(1);
        gate.release();
    };
    if (releasers == 2)
        message.set(2);
    {
        Thread first(release, "first");
        std::optional<Thread> second;
        if (releasers == 2)
            second.emplace(release, "second");
        known.wait_for(static_cast<uint32_t>(releasers));
        check(join_until(task, MC_FOREVER) == MC_OK, "no end");
    }
    check(status == MC_OK || (timed && status == MC_E_TIMEDOUT), "status %d", status);
    check(gate.kept() == releasers - (status == MC_OK), "kept %d", gate.kept());
    check(!gate.has_waiters() && executor().timers().empty(), "something is left");
}

} // namespace

// Goal: a microthread waits, its owner sleeps, another thread wakes it: through claim, inbox and wake word, nothing is
// missed and nothing comes too early. A few preemptions exhaustively, more by seeds.
Test(ParkSys, another_thread_wakes_a_microthread, .timeout = 60) {
    expect_pass({.name = "ParkSys/another_thread_wakes_a_microthread",
                 .preemptions = 1,
                 .stale = 1,
                 .timeouts = 0,
                 .spurious = 0,
                 .isolate = true},
                [] { owner_and_releasers(1, false); });
    expect_pass({.name = "ParkSys/another_thread_wakes_a_microthread",
                 .search = Search::seeds,
                 .seeds = 1'500,
                 .isolate = true},
                [] { owner_and_releasers(1, false); });
}

// Goal: the same with two threads, and with a deadline on the owner's heap that races them.
Test(ParkSys, threads_and_a_deadline_race, .timeout = 60) {
    for (bool timed : {false, true})
        expect_pass(
            {.name = "ParkSys/threads_and_a_deadline_race", .search = Search::seeds, .seeds = 1'500, .isolate = true},
            [timed] { owner_and_releasers(2, timed); });
}

// Goal: the owner's own stack waits and is woken by a thread, and a thread by the owner, in turn.
Test(ParkSys, owner_and_thread_wake_each_other, .timeout = 60) {
    expect_pass(
        {.name = "ParkSys/owner_and_thread_wake_each_other", .search = Search::seeds, .seeds = 1'500, .isolate = true},
        [] {
            here();
            Known known;
            Gate there, back;
            Data<int> ball(0);
            Thread other(
                [&] {
                    known.arrive();
                    for (int i = 0; i < 2; ++i) {
                        check(there.acquire() == MC_OK, "not released");
                        check(ball.get() == 2 * i + 1, "the ball is not there");
                        ball.set(2 * i + 2);
                        back.release();
                    }
                },
                "other");
            known.wait_for(1);
            for (int i = 0; i < 2; ++i) {
                ball.set(2 * i + 1);
                there.release();
                check(back.acquire() == MC_OK, "a false deadlock");
                check(ball.get() == 2 * i + 2, "the ball is not back");
            }
        });
}

// Goal: a waker touches nothing of a thread that it has woken but the parker: the thread may be gone at once, and its
// slot a microthread's, which must not be enqueued a second time.
Test(ParkSys, a_woken_thread_may_be_gone_at_once, .timeout = 60) {
    const auto body = [] {
        here();
        Gate gate;
        int ran = 0;
        Thread waiter([&] { check(gate.acquire() == MC_OK, "not released"); }, "waiter");
        Thread waker(
            [&] {
                while (!gate.has_waiters())
                    sync::thread_yield();
                gate.release();
            },
            "waker");
        waiter.join();
        for (int i = 0; i < 2; ++i)
            check(result_of(start([&] { return ++ran; })) == i + 1, "it did not run");
        waker.join();
        yield();
        check(ran == 2, "%d of 2 ran", ran);
        check(executor().queue().holds_only(here().running), "somebody is left in the queue");
    };
    expect_pass(
        {.name = "ParkSys/a_woken_thread_may_be_gone_at_once", .preemptions = 2, .max_runs = 3'000, .isolate = true},
        body);
    expect_pass({.name = "ParkSys/a_woken_thread_may_be_gone_at_once",
                 .search = Search::seeds,
                 .seeds = 1'500,
                 .isolate = true},
                body);
}

namespace {

struct Opener : Timer {
    Gate &gate;
    Opener(Gate &opens, int64_t at) : gate(opens) {
        action = &open;
        deadline_ns = at;
    }
    static void fire(Timer &timer, uint64_t, int64_t) { static_cast<Opener &>(timer).gate.release(); }
    static constexpr Action open{nullptr, fire};
};

} // namespace

// Goal: a timer that another thread arms, earlier than what the owner sleeps for, wakes the owner in time.
Test(ParkSys, another_thread_arms_a_timer, .timeout = 60) {
    expect_pass({.name = "ParkSys/another_thread_arms_a_timer",
                 .search = Search::seeds,
                 .stale = 0, // a thread that spins on old values lets the far deadline pass
                 .timeouts = 0,
                 .seeds = 1'000,
                 .isolate = true,
                 .real_runs = 20},
                [] {
                    here();
                    Gate gate;
                    Opener opener(gate, in_ns(3'000));
                    Thread armer(
                        [&] {
                            here();
                            executor().arm(opener);
                        },
                        "armer");
                    const int64_t start_ns = sync::now_ns();
                    check(gate.acquire(in_ms(1'000)) == MC_OK, "not released");
                    check(sync::now_ns() - start_ns < 500 * MC_MS, "the owner overslept");
                });
}
