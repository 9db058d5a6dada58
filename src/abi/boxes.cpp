// mc/bridge.h: the allocator of boxes, and what src/machine calls it by. Any thread.
//
// A program may define each of these functions itself. So they are weak (a definition in a program that is linked with the
// archive wins) and exported with default visibility (one in a program, or in a library before this one, wins over the
// shared library's), and every call of ours goes through the symbol: the compiler must not look into a weak function.
//
// A block lies behind a header that says its size and alignment, which free does not get.
#include <mc/bridge.h>

#include "base/alloc.hpp"
#include "base/sync.hpp"
#include "machine/host.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#define MC_REPLACEABLE __attribute__((weak))

namespace {

struct Header {
    uint64_t size;
    uint64_t align; // of the whole block, and how far behind its beginning the memory lies
};
static_assert(sizeof(Header) == 16 && sizeof(Header) % alignof(std::max_align_t) == 0);

// relaxed, all: they count, and publish nothing
mc::sync::atomic<uint64_t> allocs{0};
mc::sync::atomic<uint64_t> frees{0};
mc::sync::atomic<uint32_t> traced{0};

Header *header_of(void *block) noexcept { return static_cast<Header *>(block) - 1; }

void trace(const char *what, const void *block, uint64_t size) noexcept {
    if (traced.load(mc::sync::relaxed) != 0) [[unlikely]]
        std::fprintf(stderr, "libmcrt: %s %p, %" PRIu64 " bytes\n", what, block, size);
}

} // namespace

MC_REPLACEABLE void *__mc_alloc(size_t size, size_t align) noexcept {
    const size_t whole = std::max(align, sizeof(Header));
    if (size == 0 || !std::has_single_bit(whole) || size > SIZE_MAX - whole)
        return nullptr;
    auto *memory = static_cast<std::byte *>(mc::base::allocate(size + whole, whole));
    if (memory == nullptr)
        return nullptr;
    void *block = memory + whole;
    *header_of(block) = {size, whole};
    allocs.fetch_add(1, mc::sync::relaxed);
    trace("alloc", block, size);
    return block;
}

MC_REPLACEABLE void __mc_free(void *ptr) noexcept {
    if (ptr == nullptr)
        return;
    const Header header = *header_of(ptr);
    frees.fetch_add(1, mc::sync::relaxed);
    trace("free", ptr, header.size);
    mc::base::deallocate(static_cast<std::byte *>(ptr) - header.align, header.size + header.align, header.align);
}

// Another block, or, without memory, NULL and the one it was. Size 0 frees.
MC_REPLACEABLE void *__mc_realloc(void *ptr, size_t size, size_t align) noexcept {
    void *block = __mc_alloc(size, align);
    if (ptr != nullptr && block != nullptr)
        std::memcpy(block, ptr, std::min<size_t>(header_of(ptr)->size, size));
    if (block != nullptr || size == 0)
        __mc_free(ptr);
    return block;
}

MC_REPLACEABLE void *__rt_alloc(uint64_t size, uint64_t align) noexcept { return __mc_alloc(size, align); }
MC_REPLACEABLE void *__rt_realloc(void *ptr, uint64_t size, uint64_t align) noexcept {
    return __mc_realloc(ptr, size, align);
}
MC_REPLACEABLE void __rt_free(void *ptr) noexcept { __mc_free(ptr); }

MC_REPLACEABLE uint64_t __mc_alloc_live_blocks(void) noexcept {
    const uint64_t freed = frees.load(mc::sync::relaxed); // first: never more than were allocated
    return allocs.load(mc::sync::relaxed) - freed;
}
MC_REPLACEABLE uint64_t __mc_alloc_total_allocs(void) noexcept { return allocs.load(mc::sync::relaxed); }
MC_REPLACEABLE uint64_t __mc_alloc_total_frees(void) noexcept { return frees.load(mc::sync::relaxed); }
MC_REPLACEABLE void __mc_set_alloc_trace(uint8_t on) noexcept { traced.store(on != 0, mc::sync::relaxed); }

void *mc::machine::host_allocate(size_t size, size_t align) noexcept { return __mc_alloc(size, align); }
void mc::machine::host_free(void *block) noexcept {
    if (block != nullptr)
        __mc_free(block);
}
