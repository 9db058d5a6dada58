// The spinlock with real threads; its small cases, with every interleaving, are in spinlock_sys_test.cpp.
#include "base/spinlock.hpp"

#include "testing/test.hpp"

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
