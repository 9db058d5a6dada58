// For tests with many executors: they run while it lives; at its end no microthread is left, then they stop.
#pragma once

#include "csp/test_csp.hpp"

namespace mc::csp::testing {

constexpr int executor_counts[] = {1, 2, 3, 8, 32};

class Many {
public:
    explicit Many(int n) { cr_assert_eq(csp_init_runtime(n), 1); }
    Many(const Many &) = delete;
    Many &operator=(const Many &) = delete;
    ~Many() {
        csp_schedule();
        csp_shutdown_runtime();
    }
};

// A joinable microthread.
template <class Body> mc_task_t start(Body body, uint32_t flags = 0) {
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.flags = flags;
    mc_task_t task = 0;
    const mc_task_fn run = [](void *argument) -> int32_t {
        run_body<Body>(argument);
        return 0;
    };
    cr_assert_eq(mc_spawn(0, run, new_body(std::move(body)), &options, &task), MC_OK);
    return task;
}
inline void join(mc_task_t task) { cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK); }

// Computes until the condition holds, without a call to the library. False: it did not within ten seconds.
template <class Condition> bool hog_until(Condition condition) {
    const int64_t end = sync::now_ns() + 10 * MC_SEC;
    while (!condition()) {
        if (sync::now_ns() > end)
            return false;
        if (mc::testing::under_valgrind)
            sync::thread_yield(); // it runs one thread at a time, and would let this one compute for seconds
    }
    return true;
}

// How much a test does: checkers are slow, and a soak does more. Under a seed of simulation a tenth: the next seed tells more than
// another round does.
inline int scaled(int count) {
    if (mc_sim_active() != 0)
        return count / 10 + 1;
    const int most = count * static_cast<int>(mc::testing::scale());
    return mc::testing::under_valgrind ? most / 50 + 1 : mc::testing::under_tsan ? most / 8 + 1 : most;
}

} // namespace mc::csp::testing
