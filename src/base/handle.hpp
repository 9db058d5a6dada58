// Handles: what the C ABI gives out for objects in type-stable slabs. A handle holds a generation, a kind and an index:
//
//   63            32 31   28 27                  0
//   | generation    | kind  | index in the slab  |
//
// Resolving checks all three, so a stale, foreign or random word finds nothing. The object found may end at any time:
// its owner checks the generation again under the object's own lock. A slot whose generations are used up is never
// reused, so that a handle can not come back to life, however long it is kept.
#pragma once

#include "base/slab.hpp"
#include "base/sync.hpp"

#include <cstdint>

namespace mc::base {

constexpr uint32_t last_generation = UINT32_MAX - 1;

enum class HandleKind : uint32_t {
    task = 1,
    chan = 2,
    runtime = 3,
    scope = 4,
    group = 5,
    mutex = 6,
    semaphore = 7,
    wait_group = 8,
    once = 9,
    condition = 10,
    rwlock = 11,
    local = 12,
    txn = 13,
};

// What T derives from, beside SlabItem.
struct HandleItem {
    // any thread (atomic): odd while a handle is out, even while none is. 32 bits, never wraps: see retire().
    sync::atomic<uint32_t> generation{0};
};

inline uint64_t make_handle(uint32_t generation, HandleKind kind, uint32_t index) noexcept {
    return (uint64_t{generation} << 32) | (uint64_t{static_cast<uint32_t>(kind)} << 28) | index;
}
inline uint32_t handle_generation(uint64_t handle) noexcept { return static_cast<uint32_t>(handle >> 32); }

// Issues a handle for an object that has none.
template <class T> uint64_t issue_handle(T *item, HandleKind kind) noexcept {
    const uint32_t generation = item->generation.load(sync::relaxed) + 1;
    MC_DEBUG_INVARIANT(generation % 2 == 1, generation);
    item->generation.store(generation, sync::release); // release: pairs with resolve's acquire
    return make_handle(generation, kind, item->slab_index);
}

// Makes the handle stale. False: the object's generations are used up, it must not go back to its slab.
template <class T> [[nodiscard]] bool retire_handle(T *item) noexcept {
    const uint32_t generation = item->generation.load(sync::relaxed) + 1;
    MC_DEBUG_INVARIANT(generation % 2 == 0, generation);
    item->generation.store(generation, sync::release); // release: pairs with resolve's acquire
    return generation != last_generation;
}

// The object that has the handle's index, whatever its generation; null when the word can be no handle of this kind, ever. Its
// lock works, so one who takes that need look at the generation only then.
// Forced inline: it is a good part of a call on a buffered channel.
template <class T, uint32_t Quarantine>
__attribute__((always_inline)) inline T *locate_handle(const Slab<T, Quarantine> &slab, HandleKind kind,
                                                       uint64_t handle) noexcept {
    constexpr uint32_t odd = 16; // the generation's lowest bit is above the kind's four
    if ((handle >> 28 & 31) != (static_cast<uint32_t>(kind) | odd))
        return nullptr;
    return slab.at(static_cast<uint32_t>(handle) & (slab.max_items - 1));
}

// The object behind a handle, or null. The answer may be out of date at once: check again under the object's lock.
template <class T, uint32_t Quarantine>
__attribute__((always_inline)) inline T *resolve_handle(const Slab<T, Quarantine> &slab, HandleKind kind,
                                                        uint64_t handle) noexcept {
    T *item = locate_handle(slab, kind, handle);
    if (item == nullptr || item->generation.load(sync::acquire) != handle_generation(handle))
        return nullptr;
    return item;
}

} // namespace mc::base
