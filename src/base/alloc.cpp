#include "base/alloc.hpp"

#include "base/sync.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sys/mman.h>

namespace mc::base {
namespace {

// fresh -> plain (malloc, by the first allocation), or fresh -> setting -> custom (by set_allocator). Both ends are
// final, so that memory is always freed by the allocator that gave it.
enum State : uint32_t { fresh, setting, custom, plain };

sync::atomic<uint32_t> state{fresh};
constexpr size_t huge_page = size_t{2} << 20;
constexpr size_t huge_from = size_t{8} << 20; // four of them: what is unused of the last is little beside it

mc_allocator host; // written in state setting only; read in state custom

uint32_t settle() noexcept {
    for (;;) {
        // acquire: pairs with set_allocator's release; host is complete once custom is seen.
        uint32_t seen = state.load(sync::acquire);
        if (seen == custom || seen == plain)
            return seen;
        if (seen == fresh && state.compare_exchange_strong(seen, plain, sync::acquire, sync::relaxed))
            return plain;
        sync::cpu_relax(); // setting: a few instructions of another thread
    }
}

} // namespace

int32_t set_allocator(const mc_allocator &allocator) noexcept {
    uint32_t seen = fresh;
    if (!state.compare_exchange_strong(seen, setting, sync::acquire, sync::relaxed))
        return MC_E_BUSY;
    host = allocator;
    state.store(custom, sync::release); // release: pairs with settle()
    return MC_OK;
}

void *allocate(size_t size, size_t align) noexcept {
    if (settle() == custom)
        return host.alloc(host.user, size, align);
    if (align <= alignof(std::max_align_t))
        return std::malloc(size);
    void *ptr = nullptr;
    return posix_memalign(&ptr, std::max(align, sizeof(void *)), size) == 0 ? ptr : nullptr;
}

// A page that is touched for the first time costs a microsecond or more, and has room for a dozen tasks; a huge one, a hundred
// times as much, has room for thousands, and needs one entry of the processor's table of translations.
void *allocate_for_good(size_t size, size_t align) noexcept {
    if (size < huge_from || settle() == custom)
        return allocate(size, align);
    void *ptr = allocate(size, std::max(align, huge_page));
    if (ptr != nullptr) {
        const int kept = errno;
        if (madvise(ptr, size & ~(huge_page - 1), MADV_HUGEPAGE) != 0)
            errno = kept; // a kernel without them: it is memory like any other
    }
    return ptr;
}

void deallocate(void *ptr, size_t size, size_t align) noexcept {
    if (ptr == nullptr)
        return;
    if (settle() == custom)
        host.free(host.user, ptr, size, align);
    else
        std::free(ptr);
}

} // namespace mc::base
