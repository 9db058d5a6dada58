// The spinlock under every interleaving of a few operations; on real threads in other builds.
#include "base/spinlock.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using base::SpinGuard;
using base::Spinlock;
using testing::check;
using testing::Data;
using testing::Thread;

// Goal: what one holder wrote, the next one sees, and nobody is inside with another.
Test(SpinlockSys, orders_its_holders) {
    testing::expect_pass({.name = "SpinlockSys/orders_its_holders", .preemptions = 4}, [] {
        Spinlock lock;
        Data<int> inside(0);
        const auto enter = [&] {
            for (int i = 0; i < 2; ++i) {
                SpinGuard guard(lock);
                inside.set(inside.get() + 1);
            }
        };
        {
            Thread one(enter, "one");
            Thread other(enter, "other");
        }
        check(inside.get() == 4, "an increment was lost");
    });
}

// Goal: the same with three, one of whom only tries.
Test(SpinlockSys, three_and_a_try) {
    testing::expect_pass({.name = "SpinlockSys/three_and_a_try", .preemptions = 3}, [] {
        Spinlock lock;
        Data<int> inside(0);
        int tried = 0;
        {
            Thread first(
                [&] {
                    SpinGuard guard(lock);
                    inside.set(inside.get() + 1);
                },
                "first");
            Thread second(
                [&] {
                    if (lock.try_lock()) {
                        inside.set(inside.get() + 1);
                        lock.unlock();
                        tried = 1;
                    }
                },
                "second");
            Thread third(
                [&] {
                    SpinGuard guard(lock);
                    inside.set(inside.get() + 1);
                },
                "third");
        }
        check(inside.get() == 2 + tried, "an increment was lost");
    });
}

// Goal: one thread takes the lock, another gives it back (a park does that across a switch), a third one waits for it.
Test(SpinlockSys, crosses_from_one_to_another) {
    testing::expect_pass({.name = "SpinlockSys/crosses_from_one_to_another", .preemptions = 4}, [] {
        Spinlock lock;
        Data<int> inside(0);
        lock.lock();
        inside.set(1);
        Thread giver(
            [&] {
                inside.set(inside.get() + 1);
                lock.unlock();
            },
            "giver");
        Thread waiter(
            [&] {
                SpinGuard guard(lock);
                check(inside.get() == 2, "the lock was open too early");
            },
            "waiter");
    });
}
