// The allocator of systematic tests whose library allocates: see Arena.
#pragma once

#include "base/alloc.hpp"
#include "base/sync.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

#include <mc/base.h>

#include <cstdlib>

namespace mc::testing {

// Memory that is given back at the end of each run, and lies at the same place in all of them.
class Arena {
public:
    static void install() {
        mc_allocator allocator = MC_ALLOCATOR_INIT;
        allocator.alloc = alloc;
        allocator.free = [](void *, void *, uint64_t, uint64_t) {};
        cr_assert_eq(base::set_allocator(allocator), MC_OK);
        bytes_ = static_cast<char *>(std::aligned_alloc(4096, size));
        base::deallocate(base::allocate(1, 1), 1, 1); // the first one settles which allocator it is
    }
    static void reset() { used_.store(0, sync::relaxed); }

private:
    static constexpr size_t size = 1 << 20;
    static void *alloc(void *, uint64_t bytes, uint64_t) {
        const uint64_t at = used_.fetch_add((bytes + 63) / 64 * 64, sync::relaxed);
        check(at + bytes <= size, "the arena is too small");
        return bytes_ + at;
    }
    static inline char *bytes_ = nullptr;
    static inline sync::atomic<uint64_t> used_{0};
};

} // namespace mc::testing
