#include "fiber/stack.hpp"

#include "base/assert.hpp"
#include "fiber/overflow.hpp"
#include "fiber/stack_pool.hpp"

#include <mc/runtime.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace mc::fiber {

static_assert(stack_class(kStackMin) == 0 && stack_class(kStackMin + 1) == 1 && stack_class(32768) == 3);
static_assert(stack_class(kStackMax) == kStackClasses - 1);
static_assert(MC_STACK_MIN == kStackMin && MC_STACK_MAX == kStackMax);

namespace {

// The slow paths make system calls; their callers' errno is the user's.
class ErrnoKept {
public:
    ErrnoKept() : saved_(errno) {}
    ~ErrnoKept() { errno = saved_; }
    ErrnoKept(const ErrnoKept &) = delete;
    ErrnoKept &operator=(const ErrnoKept &) = delete;

private:
    int saved_;
};

bool size_ok(uint64_t size) { return size >= kStackMin && size <= kStackMax; }

// Different in each word and at each address, so that a copy of another stack does not pass.
uint64_t canary_word(const uint64_t *at) { return reinterpret_cast<uintptr_t>(at) ^ UINT64_C(0x9e3779b97f4a7c15); }

} // namespace

void canary_write(void *low) {
    auto *words = static_cast<uint64_t *>(low);
    for (uint32_t i = 0; i != detail::kCanaryBytes / sizeof *words; ++i)
        words[i] = canary_word(words + i);
}

bool canary_intact(const void *low) {
    const auto *words = static_cast<const uint64_t *>(low);
    for (uint32_t i = 0; i != detail::kCanaryBytes / sizeof *words; ++i)
        if (words[i] != canary_word(words + i))
            return false;
    return true;
}

int32_t stack_acquire(uint64_t size, Stack *out) {
    const int32_t status = stack_reserve(size, out);
    if (status == MC_OK)
        stack_ready(*out);
    return status;
}

void stack_ready_cold(Stack &stack) {
    const ErrnoKept kept;
    pool_guard(stack);
    stack.cold = false;
}

int32_t stack_reserve(uint64_t size, Stack *out) {
    if (!size_ok(size))
        return MC_E_INVAL;
    const ErrnoKept kept;
    Stack stack;
    if (pool_take(stack_class(size), 1, &stack) == 0)
        return MC_E_NOMEM;
    detail::issue(stack);
    *out = stack;
    return MC_OK;
}

void stack_release(const Stack &stack) {
    const ErrnoKept kept;
    detail::retire(stack);
    pool_give(stack.size_class, &stack, 1);
}

int64_t stack_trim_aged(int64_t now_ns) {
    const ErrnoKept kept;
    return pool_trim_aged(now_ns);
}

void stack_trim_excess() {
    const ErrnoKept kept;
    pool_trim_excess();
}

bool stack_canary_ok(const Stack &stack) { return !stack.canary || canary_intact(stack.low()); }

void detail::check_canary(const Stack &stack) {
    if (!canary_intact(stack.low()))
        overflow_abort(stack);
}

void detail::check_and_poison(const Stack &stack) {
    // A fiber that releases its own stack runs on memory that the next fiber is given.
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    const auto low = reinterpret_cast<uintptr_t>(stack.low());
    MC_INVARIANT(here < low || here >= low + stack.size(), here);
#ifndef MC_VALGRIND // which knows for every byte, and that those below the last frame are not to be written
    // The page of the top frames is in use anyway; more would make a debug build's fibers cost more memory.
    constexpr std::size_t poisoned = 512;
    memset(stack.top() - poisoned, 0xdb, poisoned);
#endif
}

void before_fork() {
    overflow_lock();
    pools_lock();
    slab_records_lock();
}

void after_fork() {
    slab_records_unlock();
    pools_unlock();
    overflow_unlock();
}

// Half a rack, so that a fiber that comes and one that goes do not each cross the border.
int32_t StackCache::reserve_slow(uint64_t size, Stack *out) {
    if (!size_ok(size))
        return MC_E_INVAL;
    const ErrnoKept kept;
    const uint32_t size_class = stack_class(size);
    Rack &rack = racks_[size_class];
    rack.count = pool_take(size_class, std::max<uint32_t>(1, kDepths[size_class] / 2), rack.slots);
    if (rack.count == 0)
        return MC_E_NOMEM;
    std::reverse(rack.slots, rack.slots + rack.count); // the hottest on top
    Stack *warm = std::partition(rack.slots, rack.slots + rack.count, [](const Stack &stack) { return stack.cold; });
    rack.cold = static_cast<uint32_t>(warm - rack.slots);
    *out = rack.pop();
    detail::issue(*out);
    return MC_OK;
}

// The lower half is the colder one.
void StackCache::release_slow(const Stack &stack) {
    const ErrnoKept kept;
    Rack &rack = racks_[stack.size_class];
    const uint32_t spilled = rack.count - rack.count / 2;
    if (spilled == 0)
        return pool_give(stack.size_class, &stack, 1);
    pool_give(stack.size_class, rack.slots, spilled);
    rack.count -= spilled;
    rack.cold -= std::min(rack.cold, spilled);
    std::copy_n(rack.slots + spilled, rack.count, rack.slots);
    rack.slots[rack.count++] = stack;
}

void StackCache::flush() {
    const ErrnoKept kept;
    for (uint32_t size_class = 0; size_class != kStackClasses; ++size_class) {
        Rack &rack = racks_[size_class];
        if (rack.count != 0)
            pool_give(size_class, rack.slots, rack.count);
        rack.count = rack.cold = 0;
    }
}

uint64_t StackCache::held() const {
    uint64_t sum = 0;
    for (const Rack &rack : racks_)
        sum += rack.count;
    return sum;
}

namespace {

// The lowest page of [low, end) that has memory, or end; null when it is not mapped.
const char *lowest_resident(char *low, char *end) {
    unsigned char resident[64];
    for (char *at = low; at < end; at += sizeof resident * kPageBytes) {
        const size_t pages = std::min(sizeof resident, static_cast<size_t>(end - at) / kPageBytes);
        if (mincore(at, pages * kPageBytes, resident) != 0)
            return nullptr;
        for (size_t i = 0; i < pages; ++i)
            if ((resident[i] & 1) != 0)
                return at + i * kPageBytes;
    }
    return end;
}

// The lowest byte of [at, end) that is not zero; `at` itself where the kernel does not read for us.
const char *lowest_used(const char *at, const char *end) {
    char copy[256];
    for (; at < end; at += sizeof copy) {
        iovec into{copy, std::min(sizeof copy, static_cast<size_t>(end - at))};
        iovec from{const_cast<char *>(at), into.iov_len};
        const ssize_t got = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
        if (got <= 0)
            return at;
        const char *used = std::find_if(copy, copy + got, [](char byte) { return byte != 0; });
        if (used != copy + got)
            return at + (used - copy);
    }
    return end;
}

} // namespace

// The memory may be unmapped at any time, so nothing here reads it: the kernel does, and says when it can not.
uint64_t stack_high_water(const Stack &stack) {
    const ErrnoKept kept;
    const char *page = lowest_resident(stack.low(), stack.end());
    if (page == nullptr || page == stack.end())
        return 0;
    const size_t skipped = page == stack.low() && stack.canary ? detail::kCanaryBytes : 0;
    return static_cast<uint64_t>(stack.end() - lowest_used(page + skipped, stack.end()));
}

} // namespace mc::fiber
