// What stacks cost: memory that is touched, mappings, and what goes back to the system.
#include "fiber/pages.hpp"
#include "fiber/test_fiber.hpp"

#include <mc/base.h>

#include <cstdio>
#include <memory>
#include <sys/mman.h>
#include <vector>

using namespace mc;
using namespace mc::fiber;
using mc::fiber::testing::Fiber;
using mc::fiber::testing::Here;

namespace {

constexpr bool kPlain = !mc::testing::under_asan && !mc::testing::under_tsan && !mc::testing::under_valgrind;

// Resident pages of this process that are its own.
uint64_t resident_pages() {
    unsigned long long all = 0, resident = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%llu %llu %llu", &all, &resident, &shared), 3);
    fclose(file);
    return resident - shared;
}

uint64_t mappings() {
    FILE *file = fopen("/proc/self/maps", "r");
    cr_assert_not_null(file);
    uint64_t lines = 0;
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

std::vector<Stack> acquire_many(std::size_t count, uint64_t size) {
    std::vector<Stack> stacks(count);
    for (Stack &stack : stacks)
        cr_assert_eq(stack_acquire(size, &stack), MC_OK);
    return stacks;
}

void touch(const Stack &stack, uint64_t bytes) {
    for (uint64_t at = 64; at < bytes; at += kPageBytes)
        const_cast<volatile char *>(stack.end())[-static_cast<int64_t>(at)] = 1;
}

// As if the decay had passed, for one that has time.
void let_decay() {
    const int64_t later = sync::now_ns() + kStackDecayNs;
    while (stack_trim_aged(later) <= later) {
    }
}

// The same order on every run.
void shuffle(std::vector<Stack> &stacks) {
    uint64_t state = 1;
    for (std::size_t i = stacks.size(); i > 1; --i) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        std::swap(stacks[i - 1], stacks[(state >> 33) % i]);
    }
}

} // namespace

// Goal: a parked fiber of the default size costs one page of its stack.
Test(StackMemory, one_page_for_a_parked_fiber) {
    if (!kPlain)
        cr_skip_test("checkers' frames are larger");
    constexpr std::size_t fibers = 2000;
    Here here;
    std::vector<std::unique_ptr<Fiber>> all(fibers);
    for (auto &fiber : all) {
        fiber = std::make_unique<Fiber>([](Fiber &self) { self.suspend(); }, nullptr, 32768);
        fiber->resume(here);
    }
    for (const auto &fiber : all) {
        const uint64_t used = stack_high_water(fiber->stack);
        cr_assert_leq(used, kPageBytes, "%llu bytes", static_cast<unsigned long long>(used));
        unsigned char resident[8];
        cr_assert_eq(mincore(fiber->stack.low(), 32768, resident), 0);
        for (int page = 0; page != 7; ++page)
            cr_assert_eq(resident[page] & 1, 0);
    }
    for (auto &fiber : all)
        fiber->resume(here);
}

// Goal: after many stacks were used and released, their memory stays for the decay, then goes back: most by itself, the rest
// on request.
Test(StackMemory, given_back) {
    if (!kPlain)
        cr_skip_test("checkers keep memory of their own");
    for (bool in_order : {true, false}) {
        const uint64_t before = resident_pages();
        std::vector<Stack> stacks = acquire_many(20'000, 32768);
        for (const Stack &stack : stacks)
            touch(stack, 3 * kPageBytes);
        cr_assert_geq(resident_pages(), before + 60'000);
        if (!in_order)
            shuffle(stacks);
        for (const Stack &stack : stacks)
            stack_release(stack);
        cr_assert_eq(stack_counters().pooled_warm, 20'000u);
        cr_assert_gt(stack_trim_aged(sync::now_ns()), sync::now_ns());
        cr_assert_eq(stack_counters().pooled_warm, 20'000u);
        let_decay();
        cr_assert_eq(stack_trim_aged(sync::now_ns() + 2 * kStackDecayNs), INT64_MAX);
        // 256 default stacks may stay warm, and the slab that would leave fewer; records, page tables.
        cr_assert_lt(resident_pages(), before + 320 * 3 + 500);
        cr_assert_leq(stack_counters().pooled_warm, 256u + 64);
        cr_assert_leq(stack_counters().slabs, 6u);
        stack_trim();
        cr_assert_lt(resident_pages(), before + 500);
        cr_assert_eq(stack_counters().slabs, 0u);
    }
}

// Goal: the free stacks of slabs that are still in use give their memory back, and only they.
Test(StackMemory, given_back_between_live_ones) {
    if (!kPlain)
        cr_skip_test("checkers keep memory of their own");
    const uint64_t before = resident_pages();
    std::vector<Stack> stacks = acquire_many(4'000, 32768);
    for (const Stack &stack : stacks)
        touch(stack, 4 * kPageBytes);
    for (std::size_t i = 0; i != stacks.size(); ++i)
        if (i % 4 != 0)
            stack_release(stacks[i]);
    stack_trim();
    cr_assert_eq(stack_counters().pooled_warm, 0u);
    cr_assert_lt(resident_pages(), before + 1'000 * 4 + 300);
    for (std::size_t i = 0; i < stacks.size(); i += 4) {
        for (uint64_t page = 0; page != 4; ++page)
            cr_assert_eq(stacks[i].end()[-64 - static_cast<int64_t>(page * kPageBytes)], 1);
        stack_release(stacks[i]);
    }
    stack_trim();
    cr_assert_eq(stack_counters().slabs, 0u);
}

// Goal: memory is given back again and again, also from slabs that had given theirs back before, in whatever order they
// were used since.
Test(StackMemory, given_back_every_time) {
    constexpr std::size_t many = 4096;
    std::vector<Stack> stacks = acquire_many(many, 8192);
    std::vector<Stack> live;
    for (std::size_t i = 0; i < many; i += 64) // so that no slab is wholly free
        live.push_back(stacks[i]);
    for (std::size_t i = many; i-- > 0;)
        if (i % 64 == 0)
            stacks.erase(stacks.begin() + static_cast<std::ptrdiff_t>(i));
    for (int round = 0; round < 4; ++round) {
        shuffle(stacks);
        for (const Stack &stack : stacks) {
            touch(stack, 4096);
            stack_release(stack);
        }
        let_decay();
        cr_assert_leq(stack_counters().pooled_warm, 256u, "round %d", round);
        if (round == 1)
            stack_trim(); // now no slab has warm ones
        stacks = acquire_many(stacks.size() - static_cast<std::size_t>(round) * 500, 8192);
    }
    for (const Stack &stack : stacks)
        stack_release(stack);
    for (const Stack &stack : live)
        stack_release(stack);
}

// Goal: what is past what the pool keeps goes without the delay when that is asked for.
Test(StackMemory, excess_goes_at_once) {
    std::vector<Stack> stacks = acquire_many(2'000, 32768);
    for (const Stack &stack : stacks) {
        touch(stack, kPageBytes);
        stack_release(stack);
    }
    cr_assert_eq(stack_counters().pooled_warm, 2'000u);
    stack_trim_excess();
    cr_assert_leq(stack_counters().pooled_warm, 256u + 64);
    cr_assert_eq(stack_trim_aged(sync::now_ns() + 2 * kStackDecayNs), INT64_MAX);
}

// Goal: slabs that one stack each kept after the others had lost their memory go with it.
Test(StackMemory, last_stack_of_a_slab) {
    std::vector<Stack> stacks = acquire_many(64 * 100, 8192);
    for (std::size_t i = 0; i != stacks.size(); ++i)
        if (i % 64 != 0)
            stack_release(stacks[i]);
    let_decay();
    cr_assert_geq(stack_counters().slabs, 100u);
    for (std::size_t i = 0; i < stacks.size(); i += 64)
        stack_release(stacks[i]);
    cr_assert_leq(stack_counters().slabs, 10u);
}

// Goal: a guard outlives the giving back of the memory above it.
Test(StackMemory, guards_survive_giving_back) {
    using mc::fiber::testing::death_of;
    static Stack reused;
    std::vector<Stack> stacks = acquire_many(200, 32768);
    for (const Stack &stack : stacks)
        touch(stack, 32768);
    for (std::size_t i = 1; i != stacks.size(); ++i)
        stack_release(stacks[i]);
    stack_trim();
    cr_assert_eq(stack_acquire(32768, &reused), MC_OK);
    if (reused.canary)
        cr_skip_test("this system has no guards to offer");
    const auto death = death_of([] { *const_cast<volatile char *>(reused.low() - 1) = 1; });
    cr_assert(death.by_fault(SIGSEGV));
}

// Goal: 200,000 stacks with real guards fit under the default limit of 65,530 mappings.
Test(StackMemory, two_hundred_thousand_guarded, .timeout = 120) {
    if (!kPlain)
        cr_skip_test("checkers need more memory than there is");
    const uint64_t before = mappings();
    std::vector<Stack> stacks = acquire_many(200'000, 32768);
    for (const Stack &stack : stacks) {
        touch(stack, 64);
        if (stack.canary)
            cr_skip_test("this kernel has no MADV_GUARD_INSTALL");
    }
    cr_assert_lt(mappings(), before + 10'000);
    for (const Stack &stack : stacks)
        stack_release(stack);
    stack_trim();
    cr_assert_lt(mappings(), before + 100); // the slabs' records stay
}

// Goal: where guards cost mappings, they are taken within a budget, and the budget comes back.
Test(StackMemory, protect_budget) {
    pages_force_guard(Guard::protect, 200);
    for (int round = 0; round != 3; ++round) {
        std::vector<Stack> stacks = acquire_many(300, 32768);
        std::size_t canaries = 0;
        for (const Stack &stack : stacks) {
            canaries += stack.canary;
            cr_assert(stack_canary_ok(stack));
        }
        cr_assert_eq(canaries, 200u); // each guard is two mappings: 100 have one
        for (const Stack &stack : stacks)
            stack_release(stack);
        stack_trim();
    }
}

// Goal: at the limit of mappings, stacks go on with canaries.
Test(StackMemory, protect_refused) {
    pages_force_guard(Guard::protect);
    pages_fail(PageCall::protect, 1);
    std::vector<Stack> stacks = acquire_many(16, 32768);
    std::size_t canaries = 0;
    for (const Stack &stack : stacks)
        canaries += stack.canary;
    cr_assert_eq(canaries, 1u);
    for (const Stack &stack : stacks)
        stack_release(stack);
}
