// For tests of blocking calls: calls from lambdas, and native code that blocks until it is told.
#pragma once

#include "sched/blocking.hpp"
#include "sched/test_pool.hpp"

namespace mc::sched::testing {

// Blocks its OS thread, as native code does.
class Flag {
public:
    void raise() {
        raised_.store(1, sync::release); // release: pairs with up()
        sync::futex_wake(raised_, INT32_MAX);
    }
    bool up() const { return raised_.load(sync::acquire) != 0; }
    void wait() {
        while (!up())
            (void)sync::futex_wait(raised_, 0, sync::no_deadline);
    }

private:
    sync::atomic<uint32_t> raised_{0};
};

template <class Body> int32_t run_native(void *body) { return (*static_cast<Body *>(body))(); }

// The body returns an int32_t.
template <class Body>
int32_t call_on(ThreadContext &thread, BlockingPool &pool, Body body, int32_t *result = nullptr, Scope *scope = nullptr,
                int64_t deadline_ns = MC_FOREVER) {
    return pool.call(thread, run_native<Body>, &body, deadline_ns, scope, result);
}

template <class Body>
int32_t call(BlockingPool &pool, Body body, int32_t *result = nullptr, Scope *scope = nullptr,
             int64_t deadline_ns = MC_FOREVER) {
    return call_on(here(), pool, body, result, scope, deadline_ns);
}

} // namespace mc::sched::testing
