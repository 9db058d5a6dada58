// Stacks: sizes, reuse, finding whose an address is, failure.
#include "fiber/pages.hpp"
#include "fiber/test_fiber.hpp"

#include <mc/base.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <time.h>
#include <vector>

using namespace mc;
using namespace mc::fiber;
using mc::fiber::testing::death_of;
using mc::fiber::testing::Fiber;
using mc::fiber::testing::Here;

namespace {

Stack acquired(uint64_t size) {
    Stack stack;
    cr_assert_eq(stack_acquire(size, &stack), MC_OK);
    return stack;
}

bool same(const Stack &a, const Stack &b) { return a.slab == b.slab && a.index == b.index; }

} // namespace

// Goal: sizes from 4 KiB to 8 MiB, rounded up, writable from end to end; nothing else.
Test(Stack, sizes) {
    Stack untouched;
    for (uint64_t bad : {UINT64_C(0), UINT64_C(1), kStackMin - 1, kStackMax + 1, UINT64_MAX}) {
        cr_assert_eq(stack_acquire(bad, &untouched), MC_E_INVAL);
        cr_assert_null(untouched.slab);
    }
    for (uint64_t size = kStackMin; size <= kStackMax; size += size < 65536 ? 1000 : size / 3) {
        const Stack stack = acquired(size);
        cr_assert_geq(stack.size(), size);
        cr_assert_lt(stack.size(), std::max<uint64_t>(2 * size, kStackMin + 1));
        cr_assert_eq(reinterpret_cast<uintptr_t>(stack.top()) % 16, 0u);
        cr_assert_lt(stack.end() - stack.top(), 2048);
        std::memset(stack.low(), 0x55, stack.size());
        if (!stack.canary)
            cr_assert(stack_canary_ok(stack));
        stack_release(stack);
    }
}

// Goal: of the smallest, a fiber can use all, and call a libc function that is bound at its first call.
Test(Stack, smallest_runs_libc_calls) {
    if (mc::testing::under_asan || mc::testing::under_tsan || mc::testing::under_valgrind)
        cr_skip_test("checkers' frames are larger");
    Here here;
    Fiber fiber(
        [](Fiber &) {
            struct timespec now;
            cr_assert_eq(clock_getres(CLOCK_MONOTONIC, &now), 0); // not called anywhere else here
            cr_assert_gt(getppid(), 0);
        },
        nullptr, kStackMin);
    fiber.resume(here);
    cr_assert(fiber.finished);
}

// Goal: every byte of a stack of any size can be a fiber's.
Test(Stack, fibers_use_all_of_any_size) {
    static int depth;
    Here here;
    for (uint64_t size = 2 * kStackMin; size <= kStackMax; size *= 2) {
        Fiber fiber(
            [](Fiber &self) {
                depth = 0;
                struct Down {
                    __attribute__((noinline)) static int go(const char *until) {
                        volatile char frame[256];
                        frame[0] = static_cast<char>(++depth);
                        // Room is left for the checkers' frames.
                        if (reinterpret_cast<const char *>(__builtin_frame_address(0)) - until < 4096)
                            return frame[0];
                        const int below = go(until);
                        return below + frame[0];
                    }
                };
                volatile int keep = Down::go(self.stack.low());
                (void)keep;
            },
            nullptr, size);
        fiber.resume(here);
        cr_assert(fiber.finished);
        cr_assert_gt(depth, size == 2 * kStackMin ? 1 : static_cast<int>(size / 2048));
    }
}

// Goal: the stack released last is handed out first, by the pool and by a cache.
Test(Stack, reuse_is_last_in_first_out) {
    const Stack a = acquired(32768), b = acquired(32768), c = acquired(32768);
    for (const Stack &stack : {a, b, c})
        stack_release(stack);
    const Stack x = acquired(32768), y = acquired(32768), z = acquired(32768);
    cr_assert(same(x, c) && same(y, b) && same(z, a));
    StackCache cache;
    for (const Stack &stack : {x, y, z})
        cache.release(stack);
    Stack out;
    for (const Stack *expected : {&z, &y, &x}) {
        cr_assert_eq(cache.acquire(20000, &out), MC_OK);
        cr_assert(same(out, *expected));
    }
}

// Goal: no two stacks share a byte, guards included.
Test(Stack, do_not_overlap) {
    std::vector<Stack> stacks;
    for (int i = 0; i != 1000; ++i)
        stacks.push_back(acquired(i % 3 == 0 ? 4096 : i % 3 == 1 ? 32768 : 100'000));
    std::sort(stacks.begin(), stacks.end(), [](const Stack &l, const Stack &r) { return l.low() < r.low(); });
    for (std::size_t i = 1; i != stacks.size(); ++i)
        cr_assert_geq(stacks[i].low() - stacks[i - 1].end(), kPageBytes);
    for (const Stack &stack : stacks)
        stack_release(stack);
}

// Goal: a cache gives what is asked, of every size, keeps a bounded number, and gives all of it back.
Test(Stack, cache) {
    const uint64_t before = stack_counters().outside;
    {
        StackCache cache;
        Stack out;
        cr_assert_eq(cache.acquire(kStackMin - 1, &out), MC_E_INVAL);
        cr_assert_eq(cache.acquire(kStackMax + 1, &out), MC_E_INVAL);
        for (uint64_t size = kStackMin; size <= kStackMax; size *= 2) {
            std::vector<Stack> stacks;
            for (int i = 0; i != 100; ++i) {
                cr_assert_eq(cache.acquire(size, &out), MC_OK);
                cr_assert_eq(out.size(), size);
                stacks.push_back(out);
            }
            for (const Stack &stack : stacks)
                cache.release(stack);
            cr_assert_leq(cache.held() * size, uint64_t{4} << 20, "of %llu", static_cast<unsigned long long>(size));
            cache.flush();
            cr_assert_eq(cache.held(), 0u);
        }
        cr_assert_eq(cache.acquire(32768, &out), MC_OK);
        cache.release(out);
        cr_assert_gt(cache.held(), 0u);
        cr_assert_eq(stack_counters().outside, before + cache.held());
    }
    cr_assert_eq(stack_counters().outside, before);
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 0u);
}

// Goal: an address on a stack, or in the guard below it, finds the owner; others find nothing.
Test(Stack, find) {
    int owner_a, owner_b;
    const Stack a = acquired(32768), b = acquired(4096);
    StackInfo info;
    cr_assert(!stack_find(a.low(), &info), "nobody owns it yet");
    stack_set_owner(a, &owner_a);
    stack_set_owner(b, &owner_b);
    struct {
        const Stack &stack;
        const char *addr;
        bool in_guard;
    } const cases[] = {{a, a.low(), false},     {a, a.end() - 1, false},   {a, a.low() + 5000, false},
                       {a, a.low() - 1, true},  {a, a.low() - 4096, true}, {b, b.low(), false},
                       {b, b.end() - 1, false}, {b, b.low() - 1, true}};
    for (const auto &c : cases) {
        cr_assert(stack_find(c.addr, &info));
        cr_assert_eq(info.owner, &c.stack == &a ? &owner_a : &owner_b);
        cr_assert_eq(info.low, c.stack.low());
        cr_assert_eq(info.size, c.stack.size());
        cr_assert_eq(info.in_guard, c.in_guard);
    }
    for (const void *addr : {static_cast<const void *>(nullptr), static_cast<const void *>(&info),
                             static_cast<const void *>(a.low() - 4097), reinterpret_cast<const void *>(UINTPTR_MAX)})
        cr_assert(!stack_find(addr, &info) || (info.owner != &owner_a && info.owner != &owner_b));
    stack_release(a);
    cr_assert(!stack_find(a.low(), &info), "the owner is cleared");
    stack_release(b);
}

namespace {

struct Finder {
    sync::atomic<const char *> probe{nullptr};
    sync::atomic<void *> owner{nullptr};
    sync::atomic<uint32_t> stop{0};
    uint64_t hits = 0;
};

void find_forever(void *argument) {
    auto &finder = *static_cast<Finder *>(argument);
    StackInfo info;
    while (finder.stop.load(sync::acquire) == 0) {
        const char *probe = finder.probe.load(sync::acquire);
        if (!stack_find(probe, &info))
            continue;
        ++finder.hits;
        // Whatever it finds must be a whole truth: the one owner that there is, and a stack around the address.
        cr_assert_eq(info.owner, finder.owner.load(sync::acquire));
        cr_assert(probe >= static_cast<char *>(info.low) && probe < static_cast<char *>(info.low) + info.size);
        cr_assert(!info.in_guard);
    }
}

} // namespace

// Goal: finding needs no lock, while slabs of all sizes come and go under it.
Test(Stack, find_while_slabs_come_and_go) {
    if (mc::testing::systematic)
        cr_skip_test("real threads only");
    int owner;
    Finder finder;
    finder.owner.store(&owner, sync::release);
    sync::thread thread;
    cr_assert(thread.start(find_forever, &finder));
    const int rounds = mc::testing::under_valgrind ? 20 : 500;
    for (int round = 0; round != rounds; ++round) {
        std::vector<Stack> stacks;
        for (int i = 0; i != 20; ++i) {
            stacks.push_back(acquired(kStackMin << (static_cast<unsigned>(round + i) % kStackClasses)));
            stack_set_owner(stacks.back(), &owner);
            finder.probe.store(stacks.back().top() - 100, sync::release);
        }
        for (int i = 0; i != 100; ++i)
            sync::cpu_relax();
        finder.probe.store(nullptr, sync::release);
        for (const Stack &stack : stacks)
            stack_release(stack);
        if (round % 4 == 0)
            stack_trim();
    }
    finder.stop.store(1, sync::release);
    thread.join();
}

// Goal: high water tells how deep the stack was used.
Test(Stack, high_water) {
    const Stack stack = acquired(65536);
    cr_assert_leq(stack_high_water(stack), 0u);
    for (uint64_t depth :
         {UINT64_C(1), UINT64_C(100), UINT64_C(4096), UINT64_C(5000), UINT64_C(30000), UINT64_C(65536)}) {
        stack.end()[-static_cast<int64_t>(depth)] = 1;
        const uint64_t water = stack_high_water(stack);
        cr_assert_geq(water, depth);
        cr_assert_lt(water, depth + (mc::testing::under_valgrind ? 4096 : 8));
    }
    stack_release(stack);
}

// Goal: no memory is an error that leaves all as it was.
Test(Stack, failures_leak_nothing) {
    for (uint32_t nth = 1; nth != 8; ++nth) {
        stack_trim();
        cr_assert_eq(stack_counters().slabs, 0u);
        StackCache cache;
        std::vector<Stack> stacks;
        pages_fail(PageCall::map, nth);
        int failed = 0;
        for (int i = 0; i != 400; ++i) {
            Stack stack;
            const int32_t status = i % 2 == 0 ? stack_acquire(65536, &stack) : cache.acquire(65536, &stack);
            if (status == MC_OK) {
                stacks.push_back(stack);
                continue;
            }
            ++failed;
            cr_assert_eq(status, MC_E_NOMEM);
            cr_assert_null(stack.slab);
        }
        // One call failed; whether somebody had to be told depends on what was left in the pool.
        cr_assert_leq(failed, 1);
        cr_assert(nth != 1 || failed == 1);
        cr_assert_eq(stack_counters().outside, stacks.size() + cache.held());
        for (const Stack &stack : stacks)
            stack_release(stack);
        pages_fail(PageCall::map, 0);
    }
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 0u);
    cr_assert_eq(stack_counters().outside, 0u);
}

// Goal: a stack that was reserved, and for whose guard there is no memory when it is to be used, gets a canary; its neighbours
// get their guards when there is memory again.
Test(Stack, no_memory_for_a_guard) {
    Guard kind{};
    void *page = pages_map(kPageBytes);
    cr_assert(page != nullptr && pages_guard(page, kPageBytes, 1, &kind));
    if (kind != Guard::marker)
        cr_skip_test("only markers take page tables");
    Stack reserved[3];
    for (Stack &stack : reserved) {
        cr_assert_eq(stack_reserve(32768, &stack), MC_OK);
        cr_assert(stack.cold);
    }
    pages_fail(PageCall::guard, 1);
    stack_ready(reserved[1]);
    cr_assert(!reserved[1].cold && reserved[1].canary);
    cr_assert(stack_canary_ok(reserved[1]));
    stack_ready(reserved[0]);
    stack_ready(reserved[2]);
    cr_assert(!reserved[0].canary && !reserved[2].canary);
    for (const Stack &stack : reserved) {
        std::memset(stack.low() + 64, 0x55, stack.size() - 64);
        stack_release(stack);
    }
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 0u);
}

// Goal: a cold stack is exchanged for one that somebody has used, as long as the cache has one; what was given for it is handed
// out again, cold.
Test(Stack, cold_is_exchanged) {
    StackCache cache;
    Stack used[2], cold[3];
    for (Stack &stack : used)
        cr_assert_eq(cache.acquire(32768, &stack), MC_OK);
    for (Stack &stack : cold)
        cr_assert_eq(cache.reserve(32768, &stack), MC_OK);
    for (const Stack &stack : used)
        cache.release(stack);
    Stack mine[3] = {cold[0], cold[1], cold[2]};
    const uint64_t held = cache.held();
    for (Stack &stack : mine)
        cache.exchange_cold(stack);
    cr_assert_eq(cache.held(), held);
    cr_assert(same(mine[0], used[1]) && same(mine[1], used[0]));
    cr_assert(!mine[0].cold && !mine[1].cold);
    cr_assert(same(mine[2], cold[2]) && mine[2].cold, "there was no third one");
    cache.flush();
    for (Stack &stack : mine) {
        stack_ready(stack);
        stack_release(stack);
    }
    std::vector<Stack> all;
    uint32_t still_cold = 0;
    for (uint64_t i = 0; i != stack_counters().carved; ++i) {
        Stack stack;
        cr_assert_eq(stack_reserve(32768, &stack), MC_OK);
        still_cold += same(stack, cold[0]) || same(stack, cold[1]) ? stack.cold : 0;
        cr_assert(stack.cold || same(stack, used[0]) || same(stack, used[1]) || same(stack, cold[2]));
        all.push_back(stack);
    }
    cr_assert_eq(still_cold, 2u);
    for (Stack &stack : all) {
        stack_ready(stack);
        stack_release(stack);
    }
}

// Goal: a slab that cannot be unmapped (the limit of mappings) stays in the pool, without its memory, and is used
// again.
Test(Stack, unmap_refused) {
    const Stack first = acquired(32768);
    first.low()[100] = 1;
    stack_release(first);
    pages_fail(PageCall::unmap, 1);
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 1u);
    cr_assert_eq(stack_counters().pooled_warm, 0u);
    const Stack again = acquired(32768);
    cr_assert(same(first, again));
    if (!mc::testing::under_valgrind) // to which all of it is undefined
        cr_assert_eq(again.low()[100], 0);
    stack_release(again);
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 0u);
}

// Goal: in debug builds, one who reads a stack after its release is noticed.
Test(Stack, released_is_poisoned) {
#if defined(MC_DEBUG) && !defined(MC_VALGRIND)
    const Stack stack = acquired(32768);
    std::memset(stack.top() - 256, 1, 256);
    if (mc::testing::under_asan) {
        stack_release(stack);
        const auto death = death_of([] {
            const Stack dead = acquired(16384);
            stack_release(dead);
            *const_cast<volatile char *>(dead.top() - 8) = 1;
        });
        cr_assert(death.mentions("AddressSanitizer"), "%s", death.said.c_str());
    } else {
        stack_release(stack);
        cr_assert_eq(stack.top()[-1], static_cast<char>(0xdb));
        cr_assert_eq(stack.top()[-256], static_cast<char>(0xdb));
    }
#else
    cr_skip_test("a release build does not");
#endif
}

// Goal: in debug builds, a fiber that releases the stack it runs on is stopped.
Test(Stack, release_while_running_on_it) {
#ifdef MC_DEBUG
    const auto death = death_of([] {
        Here here;
        Fiber fiber([](Fiber &self) { stack_release(self.stack); });
        fiber.resume(here);
    });
    cr_assert(death.by(SIGABRT));
    cr_assert(death.mentions("invariant broken"), "%s", death.said.c_str());
#else
    cr_skip_test("a release build does not look");
#endif
}
