// Pools, on real threads: what they take over when they start. The races are in the *_sys tests, what programs see in
// those of the csp room.
#include "sched/test_pool.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

// Without a call to the library.
bool comes_true(const sync::atomic<uint32_t> &word, uint32_t value) {
    for (const int64_t end = in_ns(10'000 * MC_MS); word.load(sync::acquire) != value;)
        if (sync::now_ns() > end)
            return false;
    return true;
}

struct Beat : Timer {
    sync::atomic<uint32_t> fired{0};
    Beat() { action = &action_; }
    static void fire(Timer &timer, uint64_t, int64_t) { static_cast<Beat &>(timer).fired.store(1, sync::release); }
    static constexpr Action action_{nullptr, fire};
};

} // namespace

// Goal: steps that wait when the executors start are run by them, in order.
Test(Pool, steps_from_before_the_start_are_run) {
    static sync::atomic<uint32_t> ran{0};
    here();
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(spawn_step(
                         executor(), [](void *) { (void)ran.fetch_add(1, sync::release); }, nullptr),
                     MC_OK);
    cr_assert_eq(ran.load(sync::acquire), 0u);
    start_many(2);
    cr_assert(comes_true(ran, 3));
    stop_many();
}

// Goal: an executor that runs counts for one at least, one that sleeps for nothing.
Test(Pool, who_runs_is_a_load) {
    start_many(2);
    sync::atomic<uint32_t> state{0};
    Executor *runs = nullptr;
    const mc_task_t hog = spawn_one([&] {
        runs = here().executor;
        state.store(1, sync::release);
        cr_assert(comes_true(state, 2));
    });
    cr_assert(comes_true(state, 1));
    cr_assert_geq(runs->load(), Executor::load_of_one);
    state.store(2, sync::release);
    cr_assert_eq(result_of(hog), MC_OK);
    while (runs->load() != 0)
        sleep_ms(1);
    stop_many();
}

// Goal: timers armed before the start fire in the pool, and those armed in the pool fire after its stop.
Test(Pool, timers_cross_start_and_stop) {
    Beat before, within;
    here();
    before.deadline_ns = in_ms(5);
    executor().arm(before);
    start_many(3);
    cr_assert(comes_true(before.fired, 1));
    within.deadline_ns = in_ms(30);
    default_pool()->at(2).arm(within);
    stop_many();
    sleep_ms(60);
    cr_assert_eq(within.fired.load(sync::acquire), 1u);
}

// Goal: what is sent to an executor that an earlier stop left behind, and a timer that is armed there, are seen to by one
// that runs.
Test(Pool, a_stopped_executor_is_stood_in_for) {
    start_many(2);
    stop_many();
    start_many(1);
    Executor &stopped = default_pool()->at(1);
    ThreadContext &thread = here();
    for (int i = 0; i < 20; ++i) {
        sync::atomic<uint32_t> ran{0};
        SpawnRequest request;
        request.plain = [](void *word) { static_cast<sync::atomic<uint32_t> *>(word)->store(1, sync::release); };
        request.argument = &ran;
        request.stack_size = MC_STACK_DEFAULT;
        request.pinned = true;
        sleep_ms(1); // asleep again, most times
        cr_assert_eq(spawn(&thread, stopped, request), MC_OK);
        cr_assert(comes_true(ran, 1));
    }
    Beat beat;
    beat.deadline_ns = in_ms(2);
    stopped.arm(beat);
    cr_assert(comes_true(beat.fired, 1));
    stop_many();
}
