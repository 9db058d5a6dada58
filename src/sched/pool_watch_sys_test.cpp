// The sentry in the twin: what an executor is late with is done by another one. A microthread that keeps its executor
// waits, without giving it up, for what only a sentry can bring about; if nobody watches, all is blocked. See
// pool_sys_test.cpp.
#include "sched/test_pool.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;

namespace {

// A microthread's wait that keeps the executor.
void keep_until(sync::atomic<uint32_t> &word) {
    for (uint32_t seen = 0; (seen = word.load(sync::acquire)) == 0;)
        (void)sync::futex_wait(word, seen, sync::no_deadline);
}
void tell(sync::atomic<uint32_t> &word) {
    word.store(1, sync::release);
    sync::futex_wake(word, 1);
}

// A microthread arms a timer and sleeps; another one, which calls this and says that it begins to hog, on the same executor,
// keeps that until the timer has fired, which only somebody else can see to.
int32_t hog_beside_a_timer(sync::atomic<uint32_t> &hogs) {
    sync::atomic<uint32_t> ran{0};
    const mc_task_t late = spawn_one([&] {
        const int32_t status = sleep_until(here(), in_ns(3'000), nullptr);
        tell(ran);
        return status;
    });
    yield();
    tell(hogs);
    keep_until(ran);
    return result_of(late);
}

} // namespace

// Goal: the next task of an executor whose running task does not leave is run by another one.
Test(PoolWatchSys, the_next_of_who_hogs_is_run, .timeout = 120) {
    explore_pool("PoolWatchSys/the_next_of_who_hogs_is_run", 400, [] {
        start_many(2);
        Gate gate;
        sync::atomic<uint32_t> ran{0};
        mc::testing::Data<int> told;
        const mc_task_t waiter = spawn_one([&] {
            const int32_t status = gate.acquire();
            check(status != MC_OK || told.get() == 1, "woken before it was told");
            tell(ran);
            return status;
        });
        const mc_task_t hog = spawn_one([&] {
            told.set(1);
            gate.release();
            keep_until(ran);
        });
        check(result_of(waiter) == MC_OK && result_of(hog) == MC_OK, "not run");
        stop_many();
    });
}

// Goal: a timer of an executor whose running task does not leave is fired by another one, and the wait says why it ended.
Test(PoolWatchSys, the_timer_of_who_hogs_fires, .timeout = 120) {
    explore_pool("PoolWatchSys/the_timer_of_who_hogs_fires", 400, [] {
        start_many(2);
        sync::atomic<uint32_t> hogs{0};
        check(result_of(spawn_one([&] { return hog_beside_a_timer(hogs); })) == MC_E_TIMEDOUT, "not late");
        stop_many();
    });
}

// Goal: a timed wait whose timer a sentry fires against a wake from elsewhere, again and again: each wait ends once, for
// one reason, and the next is not ended by what was meant for the one before.
Test(PoolWatchSys, a_timer_fired_elsewhere_ends_one_wait, .timeout = 120) {
    explore_pool("PoolWatchSys/a_timer_fired_elsewhere_ends_one_wait", 400, [] {
        start_many(2);
        Gate gate;
        int released = 0;
        const mc_task_t waiter = spawn_one(
            [&] {
                int taken = 0;
                for (int i = 0; i < 2; ++i) {
                    const int64_t deadline = in_ns(2'000);
                    const int32_t status = gate.acquire(deadline);
                    check(status == MC_OK || (status == MC_E_TIMEDOUT && sync::now_ns() >= deadline), "%d", status);
                    taken += status == MC_OK;
                }
                return taken;
            },
            mc::testing::choose(2) == 0);
        gate.release();
        ++released;
        const int32_t taken = result_of(waiter);
        check(taken + gate.kept() == released, "a release was lost");
        stop_many();
    });
}

// Goal: what was sent to an executor whose running task does not leave, and need not run there, is run by another one;
// what is pinned there is not.
Test(PoolWatchSys, what_was_sent_to_who_hogs_is_run, .timeout = 120) {
    explore_pool("PoolWatchSys/what_was_sent_to_who_hogs_is_run", 400, [] {
        start_many(2);
        Held held;
        sync::atomic<uint32_t> ran{0};
        sync::atomic<uint32_t> hogs{0};
        Executor *hogged = nullptr;
        Executor *pinned_to = nullptr;
        const mc_task_t waiter = spawn_one([&] {
            const int32_t status = held.wait();
            tell(ran);
            return status;
        });
        while (!held.waits())
            sync::thread_yield();
        const mc_task_t hog = spawn_one([&] {
            hogged = here().executor;
            tell(hogs);
            keep_until(ran);
        });
        keep_until(hogs);
        const mc_task_t pinned = spawn_one([&] { pinned_to = here().executor; }, true);
        hogged->send(held.claim());
        check(result_of(waiter) == MC_OK && result_of(hog) == MC_OK && result_of(pinned) == MC_OK, "not run");
        check(pinned_to != nullptr, "nowhere");
        stop_many();
    });
}

// Goal: who hogs an executor that has only just come into being is watched too, also while whoever started it has not gone on: the
// other one lies down when all that is left is a timer of the new one's.
Test(PoolWatchSys, who_is_new_and_hogs_is_watched, .timeout = 120) {
    explore_pool("PoolWatchSys/who_is_new_and_hogs_is_watched", 2'000, [] {
        (void)here(); // owner
        mc::testing::Thread other(
            [] {
                (void)here();
                while (!default_pool()->many())
                    sync::thread_yield();
                const mc_task_t first = spawn_one([] {
                    sync::atomic<uint32_t> hogs{0};
                    const mc_task_t hog = spawn_one([&] { return hog_beside_a_timer(hogs); });
                    keep_until(hogs); // so another executor runs it
                    return result_of(hog);
                });
                check(result_of(first) == MC_E_TIMEDOUT, "not late");
            },
            "other");
        start_many(2);
        other.join();
        stop_many();
    });
}
