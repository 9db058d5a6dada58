// The thread that owns the runtime: who becomes it, what happens at its end, and what its sleep costs.
#include "sched/test_sched.hpp"

#include "fiber/stack.hpp"

#include <sys/resource.h>
#include <time.h>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

int64_t cpu_ns() {
    rusage usage;
    cr_assert_eq(getrusage(RUSAGE_SELF, &usage), 0);
    const auto ns = [](const timeval &t) { return t.tv_sec * MC_SEC + t.tv_usec * INT64_C(1000); };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Runs `body` on a thread and waits for its end.
template <class Body> void on_a_thread(Body body) { mc::testing::Thread thread(body); }

// What half a second's sleep may cost: 2%, more where every instruction costs more.
constexpr int64_t idle_budget_ns = (mc::testing::under_valgrind                          ? 300
                                    : mc::testing::under_tsan || mc::testing::under_asan ? 50
                                                                                         : 10) *
                                   MC_MS;

} // namespace

// Goal: asleep with a deadline, the process uses no processor.
Test(Owner, sleeping_costs_nothing) {
    sleep_ms(1);
    const int64_t before = cpu_ns();
    sleep_ms(500);
    cr_assert_lt(cpu_ns() - before, idle_budget_ns);
}

// Goal: the same while microthreads wait for each other for ever, and while the owner waits for one of them.
Test(Owner, waiting_costs_nothing) {
    Gate never;
    Gate gate;
    run_now([&] { never.acquire(); });
    const mc_task_t task = start([&] {
        sleep_ms(500);
        gate.release();
    });
    const int64_t before = cpu_ns();
    cr_assert_eq(gate.acquire(), MC_OK);
    cr_assert_lt(cpu_ns() - before, idle_budget_ns);
    cr_assert_eq(result_of(task), MC_OK);
}

// Goal: the same while the owner can not know whether the world is closed, since a thread that the runtime does not
// know is asleep somewhere: it looks again and again, but ever more seldom.
Test(Owner, watching_an_open_world_costs_little) {
    Gate gate;
    here();
    Other other([&] {
        const timespec half{0, 500'000'000};
        nanosleep(&half, nullptr);
        gate.release();
    });
    const int64_t before = cpu_ns();
    cr_assert_eq(gate.acquire(), MC_OK);
    cr_assert_lt(cpu_ns() - before, idle_budget_ns);
    other.end();
}

// Goal: the first thread that needs the runtime owns it; the others are known, and their context is their own.
Test(Owner, the_first_thread_owns) {
    ThreadContext &mine = here();
    cr_assert_eq(mine.executor, default_executor());
    cr_assert_eq(&here(), &mine);
    cr_assert_eq(mine.running->kind, Kind::adopted);
    Other other([&] {
        ThreadContext &theirs = here();
        cr_assert_neq(&theirs, &mine);
        cr_assert_null(theirs.executor);
        cr_assert_eq(theirs.running->kind, Kind::foreign);
        cr_assert_eq(&here(), &theirs);
    });
    other.end();
}

// Goal: when the owner ends, its microthreads stay, with their handles, timers and waits; the next thread that comes
// owns the runtime and runs them.
Test(Owner, the_next_thread_takes_over) {
    static Gate gate;
    static mc_task_t waits, sleeps, fresh;
    static int ran;
    on_a_thread([] {
        waits = start([] { return gate.acquire() == MC_OK ? 1 : 0; });
        sleeps = start([] {
            sleep_ms(20);
            return 2;
        });
        yield();
        fresh = start([] {
            ++ran;
            return 3;
        });
    });
    cr_assert_eq(ran, 0);
    cr_assert_null(default_executor()->owner());
    gate.release(); // nobody owns the runtime now: it is kept for the next owner
    on_a_thread([] {
        cr_assert_eq(here().executor, default_executor());
        cr_assert_eq(result_of(waits), 1);
        cr_assert_eq(result_of(fresh), 3);
        cr_assert_eq(result_of(sleeps), 2);
    });
    cr_assert_eq(ran, 1);
}

// Goal: a thread that was there as another stays another when the owner ends; the next new one takes over, and serves
// it.
Test(Owner, known_threads_stay_what_they_are) {
    Gate ready;
    Gate gate;
    Gate done;
    sync::atomic<uint32_t> owner_gone{0};
    sync::atomic<uint32_t> other_gone{0};
    mc::testing::Thread owner([&] {
        here();
        ready.release();
        while (!gate.has_waiters())
            sync::thread_yield();
    });
    while (ready.kept() == 0)
        sync::thread_yield();
    mc::testing::Thread other([&] {
        cr_assert_null(here().executor);
        const mc_task_t task = start([&] {
            done.release();
            return 5;
        });
        cr_assert_eq(gate.acquire(), MC_OK);
        cr_assert_null(here().executor);
        while (owner_gone.load(sync::acquire) == 0)
            sync::thread_yield();
        cr_assert_eq(result_of(task), 5);
        other_gone.store(1, sync::release);
    });
    owner.join();
    owner_gone.store(1, sync::release);
    cr_assert_not_null(here().executor);
    gate.release();
    cr_assert_eq(done.acquire(), MC_OK);
    while (other_gone.load(sync::acquire) == 0)
        yield();
}

// Goal: a thousand threads that come and go, owning or not, leave neither slots nor stacks behind.
Test(Owner, threads_leak_nothing) {
    const auto visit = [] { cr_assert_eq(result_of(start([] { return 1; })), 1); };
    for (int i = 0; i < 10; ++i)
        on_a_thread(visit);
    const uint32_t tasks = task_slab().carved();
    const uint64_t stacks = fiber::stack_counters().outside;
    for (int i = 0; i < 500; ++i)
        on_a_thread(visit);
    cr_assert_eq(task_slab().carved(), tasks);
    cr_assert_eq(fiber::stack_counters().outside, stacks);
    here();
    for (int i = 0; i < 500; ++i) {
        Other other(visit);
        other.end();
    }
    cr_assert_leq(task_slab().carved(), tasks + 64); // a cache's worth for the microthreads of others
    cr_assert_leq(fiber::stack_counters().outside, stacks + 32);
}

// Goal: a new owner starts with nothing of whoever had its slot before.
Test(Owner, a_new_owner_is_nobody_else) {
    on_a_thread([] {
        cr_assert_eq(result_of(start([] {}, "somebody")), MC_OK);
        cr_assert(set_name(*here().running, "first owner"));
    });
    on_a_thread([] { cr_assert_str_eq(name_of(*here().running), ""); });
}
