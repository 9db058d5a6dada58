// Stacks for fibers: sizes in powers of two from 4 KiB to 8 MiB, a guard below each, pooled.
//
// Who calls: stack_acquire and stack_release, any thread; a StackCache, the one thread that owns it; stack_find and
// stack_owner, any thread and any signal handler.
//
// Layout: stacks of one size lie side by side in a slab (one mapping):
//
//     base                                                                                end
//     | guard page | stack 0 ........ top | guard page | stack 1 ........ top | ... |
//
// Invariants
//  - A stack is live (somebody has a Stack for it), in a StackCache, or free in its slab.
//  - Slabs' records are type-stable: never freed, so stack_find may read one that is being unmapped and notices it.
//  - A stack that is handed out may hold anything, except that a fresh one is zero and costs no memory until it is
//    touched.
//
// A stack gets its guard before its first use, not when it is reserved: one that is exchanged for another before that needs none.
// Guards, best first: MADV_GUARD_INSTALL (Linux 6.13: no mapping is split), mprotect within a budget of mappings, and
// beyond that a canary, a pattern in the stack's lowest words that is checked when the stack is released.
//
// Rejected: growing stacks (a pointer into a moved frame); one mapping a stack (65,530 is the default limit of
// mappings); links in the free stacks themselves (a free stack could not be given back to the system); MAP_GROWSDOWN
// (no bound).
#pragma once

#include "base/assert.hpp"
#include "base/sync.hpp"
#include "fiber/sanitizer.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mc::fiber {

constexpr uint32_t kPageBytes = 4096;
constexpr uint64_t kStackMin = 4096;
constexpr uint64_t kStackMax = 8u << 20;
constexpr uint32_t kStackClasses = 12;  // 4 KiB << class
constexpr uint32_t kStacksPerSlab = 64; // at most

// The part of a slab's record that the hot path writes.
struct SlabOwners {
    sync::atomic<void *> owner[kStacksPerSlab];
};

// A stack in somebody's hands. Copy it freely, but release it once. Two words: each task has one.
struct Stack {
    SlabOwners *slab = nullptr; // null: no stack
    // top(), in units of its alignment: addresses of programs have 56 bits at most
    uint64_t top_16 : 52 = 0;
    uint64_t index : 6 = 0;
    uint64_t size_class : 4 = 0;
    // its guard is only a canary
    bool canary : 1 = false;
    // nobody has touched it since it was fresh, and it need not have a guard yet: see stack_ready
    bool cold : 1 = false;

    // 16-byte aligned; the first frame goes below. A little under the end: see stack_pool.cpp. Null: no stack.
    char *top() const { return reinterpret_cast<char *>(static_cast<uintptr_t>(top_16) * 16); }
    void set_top(char *to) {
        top_16 = reinterpret_cast<uintptr_t>(to) / 16;
        MC_DEBUG_INVARIANT(top() == to, reinterpret_cast<uintptr_t>(to));
    }
    uint32_t size() const { return static_cast<uint32_t>(kStackMin) << size_class; } // at least what was asked for
    char *end() const {                                                              // top is in the last page
        return top() + (-reinterpret_cast<uintptr_t>(top()) & (kPageBytes - 1));
    }
    char *low() const { return end() - size(); } // the lowest usable byte
};
static_assert(sizeof(Stack) == 16 && kStacksPerSlab <= 64 && kStackClasses <= 16);

// MC_OK; MC_E_INVAL: size is out of [4 KiB, 8 MiB]; MC_E_NOMEM. `out` is written on success only. It has no owner yet.
int32_t stack_acquire(uint64_t size, Stack *out);

// The same in two steps, for one that is not used at once. Reserved, it may be cold. Before its first use stack_ready gives it
// its guard, which can not fail; where the system has no memory for another, it gets a canary.
int32_t stack_reserve(uint64_t size, Stack *out);
void stack_ready_cold(Stack &stack);
inline void stack_ready(Stack &stack) {
    if (stack.cold)
        stack_ready_cold(stack);
}

// The caller must not be running on it. Aborts, naming the owner, when the canary is gone. Clears the owner.
void stack_release(const Stack &stack);

// Whose it is, for stack_find and the overflow report: memory that stays readable (type-stable), or null.
inline void stack_set_owner(const Stack &stack, void *owner) {
    // release: pairs with the acquire in stack_find; publishes what the owner says about itself.
    stack.slab->owner[stack.index].store(owner, sync::release);
}

struct StackInfo {
    void *owner = nullptr;
    void *low = nullptr;
    uint32_t size = 0;
    bool in_guard = false; // the address is in the page below the stack
};

// Finds the stack, or the guard of the stack, that addr lies in. False: none of ours, or one that nobody owns.
// Async-signal-safe; takes no lock; looks at every slab.
bool stack_find(const void *addr, StackInfo *out);

// False: the stack has a canary and something wrote over it. For checks while the stack is in use.
bool stack_canary_ok(const Stack &stack);

// How many bytes, from the end down, have been written since the stack's memory was last fresh. An estimate for tuning:
// what an earlier user of the stack touched counts too, as long as its memory was not given back. Whoever runs on it may go
// on meanwhile, and the stack may be gone: then 0. Some system calls; allocates nothing.
uint64_t stack_high_water(const Stack &stack);

// Gives back to the system all that is free in the pool (not what StackCaches hold).
void stack_trim();

// How long memory past what the pool keeps for good stays with stacks that nobody uses.
constexpr int64_t kStackDecayNs = 1'000'000'000;

// Gives back some of what has been unused for so long. Returns when there is more to do, at now_ns or later (INT64_MAX: not
// before further stacks are released). Any thread that has nothing better to do; a slab of each size at a time, which takes
// some hundred microseconds.
int64_t stack_trim_aged(int64_t now_ns);
// Gives back all past what the pool keeps for good, at once: for when nobody may be there to do so later. Any thread.
void stack_trim_excess();

// Around a fork: takes this room's locks, so that the child finds whole what they guard; gives them back, in both
// processes.
void before_fork();
void after_fork();

struct StackCounters {
    uint64_t slabs = 0;        // mapped now
    uint64_t bytes_mapped = 0; // address space of those
    uint64_t carved = 0;       // stacks in them that were ever to be handed out
    uint64_t pooled = 0;       // of those: free in the pool
    uint64_t pooled_warm = 0;  // of those: memory not yet given back
    uint64_t outside = 0;      // carved - pooled: live, or in a StackCache
};
StackCounters stack_counters();

// The class of the smallest stacks that hold size bytes; size in [kStackMin, kStackMax].
constexpr uint32_t stack_class(uint64_t size) { return static_cast<uint32_t>(std::bit_width((size - 1) / kPageBytes)); }

namespace detail {

constexpr uint32_t kCanaryBytes = 64; // of the stack's lowest, when it has no other guard

void check_canary(const Stack &stack);     // aborts, naming the owner
void check_and_poison(const Stack &stack); // MC_DEBUG: that nobody runs on it, and that a later reader notices

// What is done to every stack that is handed out or released, whoever keeps it.
inline void issue(const Stack &stack) {
    const std::size_t kept = stack.canary ? kCanaryBytes : 0;
    note_stack_fresh(stack.low() + kept, stack.size() - kept);
}
inline void put_aside(const Stack &stack) {
    const std::size_t kept = stack.canary ? kCanaryBytes : 0;
    note_stack_dead(stack.low() + kept, stack.size() - kept);
}
inline void retire(const Stack &stack) {
    if (stack.canary) [[unlikely]]
        check_canary(stack);
    stack_set_owner(stack, nullptr);
#ifdef MC_DEBUG
    check_and_poison(stack);
#endif
    put_aside(stack);
}

} // namespace detail

// A few stacks of each size that one thread takes and gives back without a lock: last in, first out, since the one
// released last is the one whose lines are in this core's cache. Refilled from and spilled to the pool by halves.
class StackCache {
public:
    StackCache() = default;
    StackCache(const StackCache &) = delete;
    StackCache &operator=(const StackCache &) = delete;
    ~StackCache() { flush(); }

    // As stack_acquire, stack_reserve and stack_release.
    int32_t acquire(uint64_t size, Stack *out) {
        const int32_t status = reserve(size, out);
        if (status == 0)
            stack_ready(*out);
        return status;
    }
    int32_t reserve(uint64_t size, Stack *out) {
        if (size - kStackMin > kStackMax - kStackMin || racks_[stack_class(size)].count == 0) [[unlikely]]
            return reserve_slow(size, out);
        Rack &rack = racks_[stack_class(size)];
        *out = rack.pop();
        detail::issue(*out);
        return 0;
    }
    void release(const Stack &stack) {
        detail::retire(stack);
        Rack &rack = racks_[stack.size_class];
        if (rack.count == kDepths[stack.size_class]) [[unlikely]]
            return release_slow(stack);
        rack.slots[rack.count++] = stack;
    }

    // Exchanges a cold stack for one of its size that is not, if one is here.
    void exchange_cold(Stack &stack) {
        Rack &rack = racks_[stack.size_class];
        if (rack.cold == rack.count)
            return;
        const Stack warm = rack.slots[--rack.count];
        rack.slots[rack.count++] = rack.slots[rack.cold];
        rack.slots[rack.cold++] = stack;
        detail::put_aside(stack);
        detail::issue(warm);
        stack = warm;
    }

    void flush();          // gives all to the pool: before a long sleep, and at the end
    uint64_t held() const; // how many it holds

private:
    // How many it keeps of each size: at most 1 MiB of them; none of 2 MiB and above.
    static constexpr uint8_t kDepths[kStackClasses] = {32, 32, 32, 32, 16, 8, 4, 2, 1, 0, 0, 0};
    struct Rack {
        uint32_t count = 0;
        uint32_t cold = 0; // so many of them, the bottom ones
        Stack slots[kDepths[0]];

        Stack pop() {
            if (cold == count)
                --cold;
            return slots[--count];
        }
    };

    int32_t reserve_slow(uint64_t size, Stack *out);
    void release_slow(const Stack &stack);

    Rack racks_[kStackClasses]; // owner thread only
};

} // namespace mc::fiber
