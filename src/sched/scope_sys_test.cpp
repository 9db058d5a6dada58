// Cancellation under every interleaving: a waiter, a canceller, a releaser, a deadline. Threads without an executor, so
// that nothing survives a run; on real threads in other builds.
#include "sched/test_sched.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

// Goal: before, while parking, while parked or after: a cancellation always ends the wait, and leaves nothing registered
// (the scope dies first here).
Test(ScopeSys, a_cancellation_ends_the_wait) {
    expect_pass({.name = "ScopeSys/a_cancellation_ends_the_wait", .preemptions = 3, .stale = 1}, [] {
        Gate gate;
        Loner loner;
        {
            Scope scope;
            Thread waiter(
                [&] { check(gate.acquire_on(loner.thread, MC_FOREVER, &scope) == MC_E_CANCELED, "why else"); },
                "waiter");
            Thread canceller([&] { scope.cancel(); }, "canceller");
        }
        check(!gate.has_waiters(), "a waiter is left");
    });
}

// Goal: cancelled by two at once, it ends once.
Test(ScopeSys, two_cancel_at_once) {
    expect_pass({.name = "ScopeSys/two_cancel_at_once", .stale = 1, .spurious = 0}, [] {
        Gate gate;
        Loner loner;
        Scope scope;
        Thread waiter(
            [&] {
                check(gate.acquire_on(loner.thread, MC_FOREVER, &scope) == MC_E_CANCELED, "why else");
                gate.release();
                check(gate.acquire_on(loner.thread, MC_FOREVER, &scope) == MC_OK, "it need not wait");
            },
            "waiter");
        Thread one([&] { scope.cancel(); }, "one");
        Thread two([&] { scope.cancel(); }, "two");
    });
}

// Goal: cancellation, release and deadline race: exactly one ends the wait, and the release is had or kept.
Test(ScopeSys, cancel_release_and_deadline_race) {
    expect_pass({.name = "ScopeSys/cancel_release_and_deadline_race", .stale = 1, .spurious = 0}, [] {
        Gate gate;
        Loner loner;
        Scope scope;
        int32_t status = 1;
        {
            Thread waiter([&] { status = gate.acquire_on(loner.thread, sync::now_ns() + 1'000'000, &scope); },
                          "waiter");
            Thread canceller([&] { scope.cancel(); }, "canceller");
            Thread releaser([&] { gate.release(); }, "releaser");
        }
        check(status == MC_OK || status == MC_E_CANCELED || status == MC_E_TIMEDOUT, "status %d", status);
        check(gate.kept() == (status != MC_OK), "status %d, kept %d", status, gate.kept());
        check(!gate.has_waiters(), "a waiter is left");
    });
}

// Goal: a release goes to whoever still waits: when the first waiter was cancelled, the second has it; it is never left
// asleep with the release gone.
Test(ScopeSys, a_cancelled_waiter_swallows_no_wake) {
    const auto body = [] {
        Gate gate;
        Loner first, second;
        Scope scope;
        int32_t status = 1;
        {
            Thread patient([&] { check(gate.acquire_on(second.thread, MC_FOREVER, nullptr) == MC_OK, "not released"); },
                           "patient");
            {
                Thread cancelled([&] { status = gate.acquire_on(first.thread, MC_FOREVER, &scope); }, "cancelled");
                Thread canceller([&] { scope.cancel(); }, "canceller");
                Thread releaser([&] { gate.release(); }, "releaser");
            }
            if (status == MC_OK)
                gate.release(); // the first one has had it: another for the second
        }
        check(status == MC_OK || status == MC_E_CANCELED, "status %d", status);
        check(gate.kept() == 0 && !gate.has_waiters(), "kept %d", gate.kept());
    };
    expect_pass({.name = "ScopeSys/a_cancelled_waiter_swallows_no_wake", .preemptions = 1, .stale = 1, .spurious = 0},
                body);
    expect_pass({.name = "ScopeSys/a_cancelled_waiter_swallows_no_wake", .search = Search::seeds, .seeds = 10'000},
                body);
}

// Goal: a cancellation that comes late, for a wait that is over, ends no later wait of the same task.
Test(ScopeSys, a_late_cancellation_ends_nothing_else) {
    expect_pass({.name = "ScopeSys/a_late_cancellation_ends_nothing_else", .stale = 1, .spurious = 0}, [] {
        Gate gate;
        Loner loner;
        Scope scope;
        Thread waiter(
            [&] {
                const int32_t status = gate.acquire_on(loner.thread, MC_FOREVER, &scope);
                check(status == MC_OK || status == MC_E_CANCELED, "status %d", status);
                if (status == MC_OK)
                    check(gate.acquire_on(loner.thread, sync::now_ns() + 1'000'000, nullptr) == MC_E_TIMEDOUT,
                          "the old scope has ended a wait that is none of its own");
            },
            "waiter");
        Thread canceller([&] { scope.cancel(); }, "canceller");
        Thread releaser([&] { gate.release(); }, "releaser");
    });
}

// Goal: two waits under one scope, on threads of their own, both end; a third under another scope goes on.
Test(ScopeSys, two_waits_under_one_scope) {
    expect_pass({.name = "ScopeSys/two_waits_under_one_scope", .preemptions = 1, .stale = 1, .spurious = 0}, [] {
        Gate gate, other_gate;
        Loner first, second, third;
        Scope scope, other_scope;
        Thread one([&] { check(gate.acquire_on(first.thread, MC_FOREVER, &scope) == MC_E_CANCELED, "one"); }, "one");
        Thread two([&] { check(gate.acquire_on(second.thread, MC_FOREVER, &scope) == MC_E_CANCELED, "two"); }, "two");
        Thread three([&] { check(other_gate.acquire_on(third.thread, MC_FOREVER, &other_scope) == MC_OK, "three"); },
                     "three");
        Thread canceller(
            [&] {
                scope.cancel();
                other_gate.release();
            },
            "canceller");
    });
}

// Goal: with the owner, its microthread and a cancelling thread, through inbox and sleep; a process a run.
Test(ScopeSys, another_thread_cancels_a_microthread, .timeout = 60) {
    for (bool timed : {false, true})
        expect_pass({.name = "ScopeSys/another_thread_cancels_a_microthread",
                     .search = Search::seeds,
                     .seeds = 1'000,
                     .isolate = true},
                    [timed] {
                        here();
                        Known known;
                        Gate gate;
                        Scope scope;
                        int32_t status = 1;
                        const mc_task_t task = start([&] {
                            status = gate.acquire(timed ? in_ns(300 * (1 + choose(6))) : MC_FOREVER, &scope);
                            if (status == MC_OK)
                                check(gate.acquire(in_ns(300)) == MC_E_TIMEDOUT, "ended by something old");
                        });
                        {
                            Thread canceller(
                                [&] {
                                    known.arrive();
                                    scope.cancel();
                                },
                                "canceller");
                            Thread releaser(
                                [&] {
                                    known.arrive();
                                    gate.release();
                                },
                                "releaser");
                            known.wait_for(2);
                            check(join_until(task, MC_FOREVER) == MC_OK, "no end");
                        }
                        check(gate.kept() == (status != MC_OK), "status %d, kept %d", status, gate.kept());
                        check(executor().timers().empty(), "a timer is left");
                    });
}
