#include "base/alloc.hpp"

#include "base/sync.hpp"

#include <algorithm>
#include <cstdlib>

namespace mc::base {
namespace {

// fresh -> plain (malloc, by the first allocation), or fresh -> setting -> custom (by set_allocator). Both ends are
// final, so that memory is always freed by the allocator that gave it.
enum State : uint32_t { fresh, setting, custom, plain };

sync::atomic<uint32_t> state{fresh};
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

void deallocate(void *ptr, size_t size, size_t align) noexcept {
    if (ptr == nullptr)
        return;
    if (settle() == custom)
        host.free(host.user, ptr, size, align);
    else
        std::free(ptr);
}

} // namespace mc::base
