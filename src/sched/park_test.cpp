// Parking and waking on real stacks: microthreads, the owner, other threads; deadlines. Every interleaving of the small
// cases is in park_sys_test.cpp.
#include "sched/test_sched.hpp"

#include "base/prng.hpp"

#include <string>
#include <vector>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

// Goal: a task that waits goes on when it is released, with the releaser's value; what is released before is kept.
Test(Park, a_release_ends_a_wait) {
    Gate gate;
    int32_t got = 0;
    run_now([&] { cr_assert_eq(gate.acquire(MC_FOREVER, nullptr, &got), MC_OK); });
    cr_assert(gate.has_waiters());
    gate.release(42);
    cr_assert_eq(got, 0, "a release does not switch");
    yield();
    cr_assert_eq(got, 42);
    cr_assert(!gate.has_waiters());
    gate.release();
    cr_assert_eq(gate.acquire(), MC_OK);
    cr_assert_eq(gate.kept(), 0);
}

// Goal: waiters go on in the order in which they came.
Test(Park, waiters_are_first_in_first_out) {
    Gate gate;
    std::string order;
    for (char name = 'a'; name <= 'e'; ++name)
        run_now([&gate, &order, name] {
            gate.acquire();
            order += name;
        });
    for (int i = 0; i < 5; ++i)
        gate.release();
    yield();
    cr_assert_str_eq(order.c_str(), "abcde");
}

// Goal: handing over runs the waiter at once, out of turn; who handed over keeps its place before those that came
// later.
Test(Park, handing_over_runs_the_waiter_at_once) {
    Gate gate;
    std::string order;
    run_now([&] {
        gate.acquire();
        order += 'w';
        yield();
        order += 'W';
    });
    run_now([&] {
        yield();
        order += 'b';
    });
    order += '1';
    cr_assert(gate.hand_over());
    order += '2';
    yield();
    cr_assert_str_eq(order.c_str(), "1w2bW");
    cr_assert(!gate.hand_over());
}

// Goal: the owner's own stack waits like any task, while microthreads run; it goes on in its turn.
Test(Park, the_owner_waits_like_any_task) {
    Gate gate;
    Gate back;
    const mc_task_t task = start([&] {
        gate.release(1);
        return back.acquire();
    });
    int32_t value = 0;
    cr_assert_eq(gate.acquire(MC_FOREVER, nullptr, &value), MC_OK);
    cr_assert_eq(value, 1);
    back.release();
    cr_assert_eq(result_of(task), MC_OK);
}

// Goal: a deadline ends a wait, not before its time; the waiter is gone, and a later release is not lost on it.
Test(Park, deadlines_end_waits) {
    Gate gate;
    for (int64_t wait_ns : {int64_t{0}, int64_t{-1}, int64_t{50'000}, int64_t{3'000'000}}) {
        const int64_t deadline = in_ns(wait_ns);
        cr_assert_eq(gate.acquire(deadline), MC_E_TIMEDOUT);
        cr_assert_geq(sync::now_ns(), deadline);
        cr_assert(!gate.has_waiters());
    }
    cr_assert_eq(gate.acquire(INT64_MIN), MC_E_TIMEDOUT);
    const mc_task_t task = start([&] { return gate.acquire(in_ms(2)); });
    cr_assert_eq(result_of(task), MC_E_TIMEDOUT);
    gate.release();
    cr_assert_eq(gate.kept(), 1);
    cr_assert(executor().timers().empty());
}

// Goal: a wait that ends otherwise takes its timer with it, so that the timer does not end the task's next wait.
Test(Park, a_woken_wait_leaves_no_timer) {
    Gate gate;
    Gate next;
    const mc_task_t task = start([&] {
        cr_assert_eq(gate.acquire(in_ms(5)), MC_OK);
        cr_assert(executor().timers().empty());
        return next.acquire(in_ms(100));
    });
    yield();
    gate.release();
    yield();
    sleep_ms(15);
    cr_assert(next.has_waiters(), "the first wait's timer has ended the second wait");
    next.release();
    cr_assert_eq(result_of(task), MC_OK);
    cr_assert(executor().timers().empty());
}

// Goal: sleepers wake in the order of their deadlines, and equal deadlines in the order of falling asleep.
Test(Park, sleepers_wake_by_deadline) {
    std::string order;
    const int64_t wait_ms = mc::testing::under_tsan ? 1000 : mc::testing::under_valgrind ? 50 : 5; // all sleep by then
    const int64_t base_ns = in_ms(wait_ms);
    const auto sleeper = [&](char name, int64_t at) {
        run_now([&order, name, at] {
            cr_assert_eq(sleep_until(here(), at, nullptr), MC_E_TIMEDOUT);
            order += name;
        });
    };
    sleeper('c', base_ns + 2);
    sleeper('a', base_ns);
    sleeper('d', base_ns + 2);
    sleeper('b', base_ns + 1);
    sleeper('e', base_ns + 2);
    sleep_ms(wait_ms + 5);
    cr_assert_str_eq(order.c_str(), "abcde");
}

// Goal: another thread waits, and is woken by a microthread, by its deadline, and by a release that came before.
Test(Park, other_threads_wait_as_well) {
    Gate gate;
    Gate back;
    here();
    Other other([&] {
        int32_t value = 0;
        cr_assert_eq(gate.acquire(MC_FOREVER, nullptr, &value), MC_OK);
        cr_assert_eq(value, 7);
        const int64_t deadline = in_ms(3);
        cr_assert_eq(gate.acquire(deadline), MC_E_TIMEDOUT);
        cr_assert_geq(sync::now_ns(), deadline);
        back.release(9);
        cr_assert_eq(gate.acquire(), MC_OK);
    });
    const mc_task_t task = start([&] {
        while (!gate.has_waiters())
            yield();
        gate.release(7);
    });
    cr_assert_eq(result_of(task), MC_OK);
    int32_t value = 0;
    cr_assert_eq(back.acquire(MC_FOREVER, nullptr, &value), MC_OK);
    cr_assert_eq(value, 9);
    gate.release();
    other.end();
    cr_assert_eq(gate.kept(), 0);
}

namespace {

// Microthreads and threads acquire with random patience; others release. In the end, what was released has been
// acquired or is kept: no release went to a waiter that had timed out, none was counted twice.
struct Ledger {
    Gate gate;
    sync::atomic<uint64_t> acquired{0};
    sync::atomic<uint64_t> released{0};
    sync::atomic<uint64_t> timed_out{0};

    void acquire(base::Prng &prng) {
        const int64_t deadline = in_ns(prng.below(30'000));
        if (gate.acquire(prng.below(8) == 0 ? INT64_MIN : deadline) == MC_OK)
            acquired.fetch_add(1, sync::relaxed);
        else
            timed_out.fetch_add(1, sync::relaxed);
    }
    void release() {
        gate.release();
        released.fetch_add(1, sync::relaxed);
    }
    void work(uint64_t seed, int rounds) {
        base::Prng prng(seed);
        for (int i = 0; i < rounds; ++i) {
            if (prng.below(2) == 0)
                release();
            else
                acquire(prng);
            if (prng.below(4) == 0)
                yield();
        }
    }
};

} // namespace

// Goal: timeouts race releases, on microthreads and on threads: no release is lost, none is had twice.
Test(Park, releases_are_neither_lost_nor_doubled, .timeout = 60) {
    Ledger ledger;
    const int rounds = 2'000 * static_cast<int>(mc::testing::scale());
    here();
    Other others[] = {Other([&] { ledger.work(1, rounds); }), Other([&] { ledger.work(2, rounds); })};
    std::vector<mc_task_t> tasks;
    for (uint64_t seed = 3; seed < 9; ++seed)
        tasks.push_back(start([&ledger, seed, rounds] { ledger.work(seed, rounds); }));
    for (mc_task_t task : tasks)
        cr_assert_eq(result_of(task), MC_OK);
    for (Other &other : others)
        other.end();
    cr_assert_eq(ledger.acquired.load(sync::relaxed) + static_cast<uint64_t>(ledger.gate.kept()),
                 ledger.released.load(sync::relaxed));
    cr_assert_gt(ledger.timed_out.load(sync::relaxed), 0u);
    cr_assert(!ledger.gate.has_waiters());
    cr_assert(executor().timers().empty());
}

// Goal: a wait of each kind says why it ended.
Test(Park, every_reason_has_a_code) {
    cr_assert_eq(status_of(WakeReason::ready), MC_OK);
    cr_assert_eq(status_of(WakeReason::closed), MC_E_CLOSED);
    cr_assert_eq(status_of(WakeReason::timed_out), MC_E_TIMEDOUT);
    cr_assert_eq(status_of(WakeReason::cancelled), MC_E_CANCELED);
    cr_assert_eq(status_of(WakeReason::deadlock), MC_E_DEADLOCK);
    cr_assert_eq(status_of(WakeReason::shutdown), MC_E_SHUTDOWN);
}
