// Cancellation scopes, one event at a time. The races are in scope_sys_test.cpp.
#include "sched/test_sched.hpp"

#include "base/prng.hpp"

#include <vector>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

// Goal: under a scope that is cancelled already a wait ends at once, and leaves nothing behind.
Test(Scope, cancelled_before_the_wait) {
    Gate gate;
    Scope scope;
    cr_assert(!scope.cancelled());
    scope.cancel();
    cr_assert(scope.cancelled());
    cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_E_CANCELED);
    cr_assert_eq(result_of(start([&] { return gate.acquire(in_ms(1000), &scope); })), MC_E_CANCELED);
    cr_assert(!gate.has_waiters());
    cr_assert(executor().timers().empty());
    cr_assert_eq(sleep_until(here(), MC_FOREVER, &scope), MC_E_CANCELED);
    gate.release();
    cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_OK, "what need not wait can not be cancelled");
}

namespace {

// A wait that is cancelled while it registers: its word is in parking.
struct CancelledOnTheWay : Parking {
    using Parking::Parking;
    static void commit_and_cancel(Parking &parking) noexcept { parking.scope->cancel(); }
};

} // namespace

// Goal: a cancellation that finds the task still parking makes its parker requeue it; it goes on once.
Test(Scope, cancelled_while_parking) {
    const auto wait = [] {
        Scope scope;
        CancelledOnTheWay parking(CancelledOnTheWay::commit_and_cancel, MC_FOREVER, &scope);
        return status_of(park(here(), parking));
    };
    int rounds = 0;
    const mc_task_t task = start([&] {
        for (; rounds < 3; ++rounds)
            cr_assert_eq(wait(), MC_E_CANCELED);
    });
    cr_assert_eq(result_of(task), MC_OK);
    cr_assert_eq(rounds, 3);
    cr_assert_eq(wait(), MC_E_CANCELED); // the owner
    Other other([&] { cr_assert_eq(wait(), MC_E_CANCELED); });
    other.end();
}

// Goal: a cancellation ends all waits under the scope, in the order in which they began, and no other's.
Test(Scope, cancelled_while_parked) {
    Gate gate;
    Scope ours;
    Scope theirs;
    std::vector<int> ended;
    for (int i = 0; i < 4; ++i)
        run_now([&, i] {
            const int32_t status = gate.acquire(i % 2 == 0 ? MC_FOREVER : in_ms(1000), i == 2 ? &theirs : &ours);
            cr_assert_eq(status, i == 2 ? MC_OK : MC_E_CANCELED);
            ended.push_back(i);
        });
    ours.cancel();
    cr_assert(ended.empty(), "a cancellation does not switch");
    yield();
    cr_assert(ended == (std::vector<int>{0, 1, 3}));
    cr_assert(gate.has_waiters());
    gate.release();
    yield();
    cr_assert_eq(ended.size(), 4u);
    cr_assert(executor().timers().empty());
}

// Goal: a wait that was granted stays granted, though the scope is cancelled before the waiter runs.
Test(Scope, a_grant_before_the_cancellation_wins) {
    Gate gate;
    Scope scope;
    const mc_task_t task = start([&] {
        cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_OK);
        return gate.acquire(MC_FOREVER, &scope);
    });
    yield();
    gate.release();
    scope.cancel();
    cr_assert_eq(result_of(task), MC_E_CANCELED); // its second wait
    cr_assert_eq(gate.kept(), 0);
}

// Goal: a cancelled waiter swallows no wake that is meant for another: the release goes to the next, or is kept.
Test(Scope, a_cancelled_waiter_swallows_no_wake) {
    Gate gate;
    Scope scope;
    const mc_task_t cancelled = start([&] { return gate.acquire(MC_FOREVER, &scope); });
    const mc_task_t other = start([&] { return gate.acquire(); });
    yield();
    scope.cancel();
    gate.release(); // the first waiter is still linked, but claimed
    cr_assert_eq(result_of(cancelled), MC_E_CANCELED);
    cr_assert_eq(result_of(other), MC_OK);

    const mc_task_t alone = start([&] { return gate.acquire(MC_FOREVER, &scope); });
    gate.release();
    cr_assert_eq(result_of(alone), MC_OK, "it need not wait");
}

// Goal: cancelling again does nothing more, with waiters or without.
Test(Scope, cancelling_twice_is_once) {
    Gate gate;
    Scope scope;
    int ended = 0;
    run_now([&] {
        cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_E_CANCELED);
        ++ended;
        cr_assert_eq(gate.acquire(in_ms(1)), MC_E_TIMEDOUT); // no scope: the second cancellation must not end this
        ++ended;
    });
    scope.cancel();
    scope.cancel();
    yield();
    scope.cancel();
    yield();
    cr_assert_eq(ended, 1);
    sleep_ms(5);
    cr_assert_eq(ended, 2);
}

// Goal: a wait that is over has left its scope, so a later cancellation ends neither the task's next wait nor touches
// the old frame.
Test(Scope, a_wait_that_is_over_has_left) {
    Gate gate;
    const mc_task_t task = start([&] {
        {
            Scope scope; // ends with nobody registered
            cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_OK);
            cr_assert_eq(gate.acquire(in_ms(1), &scope), MC_E_TIMEDOUT);
            scope.cancel();
        }
        return gate.acquire();
    });
    yield();
    gate.release();
    sleep_ms(5);
    gate.release();
    cr_assert_eq(result_of(task), MC_OK);
}

// Goal: sleeping, joining and other threads' waits are cancelled alike.
Test(Scope, every_kind_of_wait_can_be_cancelled) {
    Gate gate;
    Scope scope;
    const mc_task_t waits = start([&] { return gate.acquire(); });
    const mc_task_t sleeps = start([&] { return sleep_until(here(), in_ms(10'000), &scope); });
    const mc_task_t joins = start([&] { return join_until(waits, MC_FOREVER, nullptr, &scope); });
    Other other([&] { cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_E_CANCELED); });
    sleep_ms(5);
    scope.cancel();
    cr_assert_eq(result_of(sleeps), MC_E_CANCELED);
    cr_assert_eq(result_of(joins), MC_E_CANCELED);
    other.end();
    gate.release();
    cr_assert_eq(result_of(waits), MC_OK, "the handle stayed good");
}

// Goal: another thread's cancellation ends a wait of the owner itself.
Test(Scope, another_thread_cancels_the_owner) {
    Gate gate;
    Scope scope;
    here();
    Other other([&] {
        while (!gate.has_waiters())
            sync::thread_yield();
        scope.cancel();
    });
    cr_assert_eq(gate.acquire(MC_FOREVER, &scope), MC_E_CANCELED);
    other.end();
}

// Goal: cancellations, releases and deadlines race on microthreads and threads: every release is had once or kept.
Test(Scope, cancellations_lose_no_release, .timeout = 60) {
    (void)here(); // the owner, whoever of the threads calls first
    Gate gate;
    sync::atomic<int> acquired{0};
    sync::atomic<int> cancelled{0};
    int released = 0;
    base::Prng prng(4);
    const int rounds = 500 * static_cast<int>(mc::testing::scale());
    for (int round = 0; round < rounds; ++round) {
        Scope scope;
        const auto wait = [&, timed = prng.below(2) == 0] {
            const int32_t status = gate.acquire(timed ? in_ns(20'000) : MC_FOREVER, &scope);
            acquired.fetch_add(status == MC_OK, sync::relaxed);
            cancelled.fetch_add(status == MC_E_CANCELED, sync::relaxed);
        };
        Other other(wait);
        mc_task_t tasks[3];
        for (mc_task_t &task : tasks)
            task = start(wait);
        for (uint32_t turns = prng.below(6); turns > 0; --turns)
            yield();
        for (uint32_t i = prng.below(3); i > 0; --i, ++released)
            gate.release();
        Other canceller([&] { scope.cancel(); });
        for (mc_task_t task : tasks)
            cr_assert_eq(result_of(task), MC_OK);
        other.end();
        canceller.end();
        cr_assert(!gate.has_waiters());
    }
    cr_assert_eq(acquired.load(sync::relaxed) + gate.kept(), released);
    cr_assert_gt(cancelled.load(sync::relaxed), 0);
}
