// The pool under many threads.
#include "fiber/pages.hpp"
#include "fiber/test_fiber.hpp"

#include <mc/base.h>

#include <cstring>
#include <vector>

using namespace mc;
using namespace mc::fiber;

namespace {

struct Worker {
    sync::thread thread;
    uint64_t seed = 0;
    int rounds = 0;
};

uint64_t next(uint64_t &state) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return state >> 33;
}

// Each stack in hand carries its holder's mark at both ends: a stack in two hands shows.
void mark(const Stack &stack, uint64_t value) {
    std::memcpy(stack.low() + 64, &value, sizeof value);
    std::memcpy(stack.end() - 64, &value, sizeof value);
    stack_set_owner(stack, stack.low());
}

void check_mark(const Stack &stack, uint64_t value) {
    uint64_t low, high;
    std::memcpy(&low, stack.low() + 64, sizeof low);
    std::memcpy(&high, stack.end() - 64, sizeof high);
    cr_assert_eq(low, value);
    cr_assert_eq(high, value);
    StackInfo info;
    cr_assert(stack_find(stack.low() + 64, &info));
    cr_assert_eq(info.owner, stack.low());
}

// Takes and returns stacks in random order, now through its own cache, now through the pool.
void churn(void *argument) {
    auto &self = *static_cast<Worker *>(argument);
    StackCache cache;
    struct Held {
        Stack stack;
        uint64_t value;
    };
    std::vector<Held> held;
    for (int round = 0; round != self.rounds; ++round) {
        const uint64_t dice = next(self.seed) % 1000;
        if (dice == 0)
            stack_trim();
        if (dice == 1)
            cache.flush();
        if (dice % 2 == 0 && held.size() < 300) {
            Held h;
            h.value = next(self.seed);
            const uint64_t size = kStackMin << (dice % 5 == 0 ? next(self.seed) % kStackClasses : 3);
            cr_assert_eq(dice % 3 == 0 ? stack_acquire(size, &h.stack) : cache.acquire(size, &h.stack), MC_OK);
            mark(h.stack, h.value);
            held.push_back(h);
        } else if (!held.empty()) {
            const std::size_t at = next(self.seed) % held.size();
            check_mark(held[at].stack, held[at].value);
            if (dice % 3 == 0)
                stack_release(held[at].stack);
            else
                cache.release(held[at].stack);
            held[at] = held.back();
            held.pop_back();
        }
    }
    for (const Held &h : held) {
        check_mark(h.stack, h.value);
        cache.release(h.stack);
    }
}

void churn_on_threads(int rounds) {
    constexpr uint32_t threads = 4;
    Worker workers[threads];
    for (uint32_t i = 0; i != threads; ++i) {
        workers[i].seed = i + 1;
        workers[i].rounds = rounds;
        cr_assert(workers[i].thread.start(churn, &workers[i]));
    }
    for (Worker &worker : workers)
        worker.thread.join();
    cr_assert_eq(stack_counters().outside, 0u);
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 0u);
    cr_assert_eq(stack_counters().carved, 0u);
}

} // namespace

// Goal: no stack is ever in two hands, and none is lost, while threads take, return and trim.
Test(StackPool, threads_share_it) {
    churn_on_threads((mc::testing::under_valgrind ? 500
                      : mc::testing::under_tsan   ? 5'000
                                                  : 20'000) *
                     static_cast<int>(mc::testing::scale()));
}

// Goal: the same where some guards are canaries and some cost mappings.
Test(StackPool, threads_share_it_with_mixed_guards) {
    pages_force_guard(Guard::protect, 500);
    churn_on_threads(mc::testing::under_valgrind ? 500 : 5'000);
}

// Goal: a stack released on another thread than the one that took it is as good.
Test(StackPool, released_elsewhere) {
    static Stack stacks[200];
    for (int round = 0; round != 20; ++round) {
        sync::thread taker, giver;
        cr_assert(taker.start(
            [](void *) {
                StackCache cache;
                for (Stack &stack : stacks) {
                    cr_assert_eq(cache.acquire(32768, &stack), MC_OK);
                    mark(stack, 1);
                }
            },
            nullptr));
        taker.join();
        cr_assert(giver.start(
            [](void *) {
                StackCache cache;
                for (Stack &stack : stacks) {
                    check_mark(stack, 1);
                    cache.release(stack);
                }
            },
            nullptr));
        giver.join();
    }
    cr_assert_eq(stack_counters().outside, 0u);
}
