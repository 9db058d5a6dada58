// The records of slabs, and the registry that keeps them findable. Internal to the stack pool.
//
// A record is type-stable: it lives in a chunk that is never freed, and is used again for another slab. Its fields have
// two sorts of readers: the pool, under its class's lock, and stack_find, from anywhere and from signal handlers,
// without any. For the latter, `version` is odd while the record changes its slab:
//
//   unused ──slab_publish──▶ mapped (base != 0) ──slab_withdraw──▶ unused (base == 0)
//
// Rejected: a tree or hash from addresses to slabs. Only a fault looks, and looking at all 16,000 records of a million
// stacks takes some tens of microseconds.
#pragma once

#include "fiber/pages.hpp"
#include "fiber/stack.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mc::fiber {

constexpr std::size_t stack_bytes(uint32_t size_class) { return std::size_t{kStackMin} << size_class; }
constexpr std::size_t stack_stride(uint32_t size_class) { return stack_bytes(size_class) + kPageBytes; }

// 64 stacks, or as many as fit 64 default ones' room, or one.
constexpr uint32_t slab_capacity(uint32_t size_class) {
    constexpr std::size_t room = kStacksPerSlab * (std::size_t{36} << 10);
    const std::size_t fits = room / stack_stride(size_class);
    return fits >= kStacksPerSlab ? kStacksPerSlab : fits <= 1 ? 1 : static_cast<uint32_t>(fits);
}
constexpr std::size_t slab_bytes(uint32_t size_class) { return slab_capacity(size_class) * stack_stride(size_class); }

struct Slab : SlabOwners {
    // Any thread, by version.
    sync::atomic<uint32_t> version{0};
    sync::atomic<uint32_t> size_class{0};
    sync::atomic<uintptr_t> base{0};

    // Guarded by the class's lock.
    Slab *hotter = nullptr; // in the class's list of slabs that have a stack to hand out
    Slab *colder = nullptr;
    int64_t released_ns = 0; // when a stack was released into it last
    char *memory = nullptr;  // base
    uint64_t canaries = 0;   // bit i: stack i has no guard but a canary
    uint64_t guarded = 0;    // bit i: stack i has its guard, of whatever kind; until it is used it needs none
    uint64_t untouched = 0;  // bit i: stack i is free, and nobody has touched it since it was fresh
    uint8_t capacity = 0;
    uint8_t carved = 0; // stacks [0, carved) have been listed
    uint8_t free = 0;   // how many of those are in `order`
    uint8_t cold = 0;   // of which the bottom ones hold no memory
    uint8_t protects = 0;
    bool listed = false;
    bool trimming = false; // its cold stacks are being given back, with the lock released: hand nothing out
    uint8_t order[kStacksPerSlab] = {}; // free stacks, the one released last on top
#ifdef MC_VALGRIND
    unsigned valgrind_numbers[kStacksPerSlab] = {};
#endif

    char *low(uint32_t index) const { return memory + index * stack_stride(own_class()) + kPageBytes; }
    // relaxed: for the pool, which wrote it under its lock.
    uint32_t own_class() const { return size_class.load(sync::relaxed); }
    bool has_free() const { return free != 0 || carved != capacity; }
    bool wholly_free() const { return free == carved; }
};

// A record that nobody uses, or null: no memory. Any thread.
Slab *slab_record_take();
void slab_record_give(Slab &slab);

// Around a fork, see fiber::before_fork.
void slab_records_lock();
void slab_records_unlock();

// From now on stack_find looks into it; from now on it does not.
void slab_publish(Slab &slab, char *memory, uint32_t size_class);
void slab_withdraw(Slab &slab);

// Is addr in this slab, in a stack that somebody owns? Any thread, also while the record is published or withdrawn:
// one that changes meanwhile holds no such stack, since all of a slab's stacks are free then.
bool slab_look(const Slab &slab, uintptr_t addr, StackInfo *out);

} // namespace mc::fiber
