// MC_E_DEADLOCK: told to the owner alone, and only when nothing in the process could still end its wait. Threads that
// attach, block and leave meanwhile are in closed_world_sys_test.cpp.
#include "sched/test_sched.hpp"

#include <time.h>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

void nap_ms(long ms) {
    const timespec time{ms / 1000, ms % 1000 * 1'000'000};
    nanosleep(&time, nullptr);
}

} // namespace

// Goal: alone, the owner is told at once; so it is when only microthreads are left that wait for ever themselves. They
// are not told, and go on when the owner does something about it.
Test(ClosedWorld, the_owner_is_told) {
    in_process_with_one_thread([] {
        Gate gate;
        Gate other_gate;
        const int64_t start_ns = sync::now_ns();
        cr_assert_eq(gate.acquire(), MC_E_DEADLOCK);
        const mc_task_t task = start([&] { return other_gate.acquire(); });
        cr_assert_eq(gate.acquire(), MC_E_DEADLOCK);
        cr_assert_eq(join_until(task, MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_lt(sync::now_ns() - start_ns, MC_SEC);
        cr_assert(other_gate.has_waiters());
        cr_assert(!gate.has_waiters());
        other_gate.release();
        cr_assert_eq(result_of(task), MC_OK, "the handle stayed good");
        cr_assert_eq(sleep_until(here(), MC_FOREVER, nullptr), MC_E_DEADLOCK);
    });
}

// Goal: a deadline is an end: nobody is told of a deadlock while the owner, or anybody, has one.
Test(ClosedWorld, a_deadline_keeps_it_open) {
    in_process_with_one_thread([] {
        Gate gate;
        cr_assert_eq(gate.acquire(in_ms(20)), MC_E_TIMEDOUT);
        run_now([&] {
            sleep_ms(20);
            gate.release();
        });
        cr_assert_eq(gate.acquire(), MC_OK);
        run_now([&] { cr_assert_eq(gate.acquire(in_ms(20)), MC_E_TIMEDOUT); });
        const int64_t before = sync::now_ns();
        Gate never;
        cr_assert_eq(never.acquire(), MC_E_DEADLOCK);
        cr_assert_geq(sync::now_ns() - before, 15 * MC_MS, "told before the microthread's deadline");
    });
}

// Goal: a known thread that is blocked in us for ever closes the world with the owner; it is not told, and goes on
// when the owner wakes it.
Test(ClosedWorld, blocked_threads_do_not_keep_it_open) {
    in_process_with_one_thread([] {
        Gate gate;
        Gate owners;
        here();
        Other other([&] { cr_assert_eq(gate.acquire(), MC_OK); });
        cr_assert_eq(owners.acquire(), MC_E_DEADLOCK);
        cr_assert(gate.has_waiters());
        gate.release();
        other.end();
        cr_assert_eq(owners.acquire(), MC_E_DEADLOCK);
    });
}

// Goal: a thread that runs keeps the world open, known to us or not, and one that waits with a deadline: until it has
// ended, or waits for ever.
Test(ClosedWorld, running_threads_keep_it_open) {
    in_process_with_one_thread([] {
        Gate gate;
        here();
        int64_t before = sync::now_ns();
        Other unknown([&] { nap_ms(50); });
        cr_assert_eq(gate.acquire(), MC_E_DEADLOCK);
        cr_assert_geq(sync::now_ns() - before, 45 * MC_MS, "told while a thread was running");
        unknown.end();

        before = sync::now_ns();
        Other timed([&] { cr_assert_eq(sleep_until(here(), in_ms(50), nullptr), MC_E_TIMEDOUT); });
        cr_assert_eq(gate.acquire(), MC_E_DEADLOCK);
        cr_assert_geq(sync::now_ns() - before, 45 * MC_MS, "told while a thread waited with a deadline");
        timed.end();

        Other releases([&] {
            nap_ms(30);
            gate.release();
        });
        cr_assert_eq(gate.acquire(), MC_OK);
        releases.end();
    });
}

// Goal: hundreds of rounds in which another thread blocks, wakes and leaves at any moment, and always releases the
// owner in the end: never a false deadlock.
Test(ClosedWorld, no_false_deadlock, .timeout = 60) {
    in_process_with_one_thread([] {
        Gate gate;
        Gate back;
        here();
        for (int round = 0; round < 300 * static_cast<int>(mc::testing::scale()); ++round) {
            Other other([&, round] {
                if (round % 3 == 1)
                    back.release();
                if (round % 3 == 2)
                    cr_assert_eq(back.acquire(in_ns(20'000)), MC_E_TIMEDOUT);
                gate.release();
            });
            if (round % 3 == 1)
                cr_assert_eq(back.acquire(), MC_OK);
            cr_assert_eq(gate.acquire(), MC_OK, "a false deadlock in round %d", round);
            other.end();
        }
    });
}

// Goal: while somebody holds it, it is open, however often it was taken and given back.
Test(ClosedWorld, a_hold_keeps_it_open) {
    in_process_with_one_thread([] {
        const auto until_closed = [] {
            while (!world_is_closed(executor())) // a sanitizer's own threads may come late
                sync::thread_yield();
        };
        here();
        until_closed();
        hold_world();
        hold_world();
        cr_assert(!world_is_closed(executor()));
        cr_assert(release_world());
        cr_assert(!world_is_closed(executor()));
        cr_assert(release_world());
        until_closed();
        cr_assert(!release_world(), "nobody holds it");
    });
}
