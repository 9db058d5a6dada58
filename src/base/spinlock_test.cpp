// The spinlock with real threads; its small cases, with every interleaving, are in spinlock_sys_test.cpp.
#include "base/spinlock.hpp"

#include "testing/test.hpp"

#include <cinttypes>
#include <ctime>
#include <unistd.h>

using namespace mc;
using base::SpinGuard;
using base::Spinlock;

// Goal: one at a time; try_lock does not wait.
Test(Spinlock, excludes) {
    Spinlock lock;
    cr_assert(lock.try_lock());
    cr_assert(!lock.try_lock());
    lock.unlock();
    {
        SpinGuard guard(lock);
        cr_assert(!lock.try_lock());
    }
    cr_assert(lock.try_lock());
    lock.unlock();
}

namespace {

struct Counter {
    Spinlock lock;
    uint64_t value = 0; // guarded by lock
    uint64_t rounds = 0;

    static void run(void *self) {
        auto &me = *static_cast<Counter *>(self);
        for (uint64_t i = 0; i < me.rounds; ++i) {
            if (i % 4 == 0)
                while (!me.lock.try_lock())
                    sync::thread_yield();
            else
                me.lock.lock();
            ++me.value;
            me.lock.unlock();
        }
    }
};

} // namespace

// Goal: more threads than processors, so that the holder is preempted: nothing is lost, and nobody starves to a hang.
Test(Spinlock, counts_right_under_contention) {
    Counter counter;
    counter.rounds = 50'000 * mc::testing::scale();
    sync::thread threads[6];
    for (sync::thread &thread : threads)
        cr_assert(thread.start(Counter::run, &counter));
    for (sync::thread &thread : threads)
        thread.join();
    cr_assert_eq(counter.value, 6 * counter.rounds);
}

// Goal: a lock may be given back by another thread than the one that took it, which a park does.
Test(Spinlock, may_be_given_back_elsewhere) {
    static Spinlock lock;
    lock.lock();
    sync::thread other;
    cr_assert(other.start([](void *) { lock.unlock(); }, nullptr));
    lock.lock();
    other.join();
    lock.unlock();
}

namespace {

// Two who wait while a third has the lock; the first of them keeps it for long. What the other one costs meanwhile, which finds a
// holder who had to wait himself.
struct Sleepers {
    Spinlock lock;
    sync::atomic<uint32_t> came{0};
    sync::atomic<uint32_t> had{0};
    sync::atomic<int64_t> waited_ns{0};
    sync::atomic<int64_t> cpu_ns{0};

    static int64_t cpu_now() {
        timespec now = {};
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * INT64_C(1'000'000'000) + now.tv_nsec;
    }
    static void run(void *self) {
        auto &me = *static_cast<Sleepers *>(self);
        const int64_t began = sync::now_ns(), cpu_began = cpu_now();
        (void)me.came.fetch_add(1, sync::relaxed);
        me.lock.lock();
        if (me.had.fetch_add(1, sync::relaxed) == 0) {
            (void)usleep(300'000);
        } else {
            me.cpu_ns.store(cpu_now() - cpu_began, sync::relaxed);
            me.waited_ns.store(sync::now_ns() - began, sync::relaxed);
        }
        me.lock.unlock();
    }
};

} // namespace

// Goal: who waits for long sleeps, whoever holds the lock: also one that had to wait for it.
Test(Spinlock, sleeps_behind_one_that_has_waited) {
    Sleepers sleepers;
    sync::thread one, other;
    sleepers.lock.lock();
    cr_assert(one.start(Sleepers::run, &sleepers) && other.start(Sleepers::run, &sleepers));
    while (sleepers.came.load(sync::relaxed) != 2)
        sync::thread_yield();
    (void)usleep(50'000); // until they wait; one that does not yet meets the other all the same, and the test is easier
    sleepers.lock.unlock();
    one.join();
    other.join();
    const int64_t waited = sleepers.waited_ns.load(sync::relaxed), cpu = sleepers.cpu_ns.load(sync::relaxed);
    cr_assert_geq(waited, 250'000'000);
    // A system call for each 50 microseconds; one that spins takes all of it, or half, when it has to share its processor.
    cr_assert(mc::testing::under_valgrind || mc::testing::under_tsan || cpu < waited * 2 / 5, "%" PRId64 " of %" PRId64,
              cpu, waited);
}
