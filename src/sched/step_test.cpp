// Steps: run to completion on the executor's own context, in their turn among the microthreads.
#include "sched/test_sched.hpp"

#include "fiber/stack.hpp"

#include <string>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

template <class Body> void run_step_body(void *argument) { (void)run_body<Body>(argument); }

template <class Body> void start_step(Body body) {
    here();
    cr_assert_eq(spawn_step(executor(), run_step_body<Body>, new Body(std::move(body))), MC_OK);
}

} // namespace

// Goal: a step takes its turn like any task, after those that came before and before those that come later.
Test(Step, takes_its_turn) {
    std::string order;
    run_now([&] {
        yield();
        order += 'a';
    });
    start_step([&] { order += 's'; });
    start_step([&] { order += 't'; });
    start([&] { order += 'b'; });
    cr_assert_str_eq(order.c_str(), "");
    yield();
    cr_assert_str_eq(order.c_str(), "astb");
}

// Goal: all steps run on one stack, the executor's, which is no microthread's and not the owner's; a step costs none
// of its own.
Test(Step, runs_on_the_executors_context) {
    here();
    const uint64_t before = fiber::stack_counters().outside;
    uintptr_t frames[3] = {};
    for (uintptr_t &frame : frames)
        start_step([&frame] {
            cr_assert_eq(executor().running()->kind, Kind::step);
            frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
        });
    yield();
    cr_assert_eq(executor().running()->kind, Kind::adopted);
    cr_assert_eq(fiber::stack_counters().outside, before);
    for (uintptr_t frame : frames) {
        cr_assert_eq(frame, frames[0]);
        cr_assert(!on_own_stack(&here(), reinterpret_cast<void *>(frame)));
    }
}

// Goal: whatever would block there says so and does not; what needs not wait, works.
Test(Step, blocking_calls_are_refused) {
    Gate gate;
    int steps = 0;
    const mc_task_t task = start([&] { return gate.acquire(); });
    start_step([&] {
        cr_assert_eq(may_block(here()), MC_E_CONTEXT);
        cr_assert_eq(sleep_until(here(), MC_FOREVER, nullptr), MC_E_CONTEXT);
        cr_assert_eq(join_until(task, MC_FOREVER), MC_E_CONTEXT);
        cr_assert_eq(join_until(task, MC_NOW), MC_E_TIMEDOUT);
        cr_assert_eq(mc_join(task, in_ms(1), nullptr), MC_E_CONTEXT);
        cr_assert_eq(mc_task_self(), 0u);
        ++steps;
    });
    yield();
    cr_assert_eq(steps, 1);
    cr_assert_eq(may_block(here()), MC_OK);
    gate.release();
    cr_assert_eq(result_of(task), MC_OK);
}

// Goal: what a step wakes or starts joins the tail; nothing switches inside a step.
Test(Step, what_it_wakes_joins_the_tail) {
    Gate gate;
    std::string order;
    run_now([&] {
        gate.acquire();
        order += 'w';
    });
    start_step([&] {
        order += '(';
        run_now([&] { order += 'n'; });
        cr_assert(gate.hand_over());
        start_step([&] { order += 's'; });
        order += ')';
    });
    yield();
    cr_assert_str_eq(order.c_str(), "()");
    yield();
    cr_assert_str_eq(order.c_str(), "()nws");
}

// Goal: steps from another thread run on the owner's thread.
Test(Step, may_come_from_another_thread) {
    ThreadContext *owner = &here();
    sync::atomic<int> ran{0};
    Other other([&] {
        start_step([&] {
            cr_assert_eq(current(), owner);
            ran.fetch_add(1, sync::relaxed);
        });
    });
    other.end();
    while (ran.load(sync::relaxed) == 0)
        yield();
}

namespace {

// Steps that start steps.
struct Chain {
    int left;
    Gate *done;
    void operator()() const {
        if (left == 0)
            done->release();
        else
            start_step(Chain{left - 1, done});
    }
};

} // namespace

// Goal: a hundred thousand steps use one slot again and again, and neither stacks nor slots leak.
Test(Step, steps_leak_nothing) {
    Gate done;
    start_step(Chain{200, &done});
    cr_assert_eq(done.acquire(), MC_OK);
    const uint32_t tasks = task_slab().carved();
    const uint64_t stacks = fiber::stack_counters().outside;
    start_step(Chain{100'000, &done});
    cr_assert_eq(done.acquire(), MC_OK);
    cr_assert_eq(task_slab().carved(), tasks);
    cr_assert_eq(fiber::stack_counters().outside, stacks);
}

// Goal: a chain of steps that never ends does not keep timers and other threads' work from being noticed.
Test(Step, an_endless_chain_starves_nobody) {
    static bool stop;
    struct Endless {
        void operator()() const {
            if (!stop)
                start_step(Endless{});
        }
    };
    Gate gate;
    here();
    start_step(Endless{});
    const int64_t deadline = in_ms(20);
    cr_assert_eq(sleep_until(here(), deadline, nullptr), MC_E_TIMEDOUT);
    cr_assert_lt(sync::now_ns() - deadline, 200 * MC_MS);
    Other other([&] { gate.release(); });
    cr_assert_eq(gate.acquire(in_ms(5'000)), MC_OK);
    stop = true;
    other.end();
}
