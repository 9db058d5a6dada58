// Type-stable slabs: objects that are constructed once, when first carved, and never destroyed, so that a stale
// pointer or handle always meets a live object of its type, whose own words then say that it has moved on. Any thread.
//
// An object's index gives its address in constant time: chunks of 64, 128, ... 32,768 objects, then of 65,536 each, are
// never moved or freed. Free objects are reused last in, first out (warm caches); with Quarantine > 0 oldest first and
// only while more than that many are free, so that a use after the end is likely to meet a dead object.
//
// Rejected: lock-free free lists (a CAS-pop needs a tag against ABA; one uncontended lock costs the same, and executors
// use a Cache in front of it).
#pragma once

#include "base/alloc.hpp"
#include "base/assert.hpp"
#include "base/spinlock.hpp"

#include <bit>
#include <cstdint>
#include <new>

namespace mc::base {

// What T derives from.
template <class T> struct SlabItem {
    T *slab_next = nullptr;  // while free: guarded by the slab's lock or owned by a cache
    uint32_t slab_index = 0; // immutable once carved
};

template <class T, uint32_t Quarantine = 0> class Slab {
public:
    static constexpr uint32_t max_items = 1u << 28;

    // A few free objects that one thread at a time owns: no lock on the way in or out.
    class Cache {
        friend class Slab;
        T *head = nullptr;
        uint32_t count = 0;
    };

    // An object in the state in which release() got it, or newly constructed; null without memory.
    [[nodiscard]] T *acquire() noexcept {
        SpinGuard guard(lock_);
        return take();
    }

    void release(T *item) noexcept {
        SpinGuard guard(lock_);
        give(item);
    }

    [[nodiscard]] T *acquire(Cache &cache) noexcept {
        static_assert(Quarantine == 0, "a cache would shorten the quarantine");
        if (cache.head == nullptr && !refill(cache))
            return nullptr;
        T *item = cache.head;
        cache.head = item->slab_next;
        --cache.count;
        return item;
    }

    void release(Cache &cache, T *item) noexcept {
        item->slab_next = cache.head;
        cache.head = item;
        if (++cache.count >= 2 * batch)
            spill(cache, batch);
    }

    void flush(Cache &cache) noexcept { spill(cache, cache.count); }

    // The object with this index, free or not; null when there never was one. The object's words say whether it is
    // live.
    T *at(uint32_t index) const noexcept {
        // acquire: pairs with carve's release; the chunk pointer and the object are complete.
        if (index >= carved_.load(sync::acquire))
            return nullptr;
        const Place place = place_of(index);
        return reinterpret_cast<T *>(chunks_[place.chunk]) + place.offset;
    }

    // In the child of a fork, while it has one thread: the lock is free again. What was free is left behind if somebody
    // was in the middle of it.
    void after_fork() noexcept {
        if (!lock_.try_lock()) {
            free_head_ = free_tail_ = nullptr;
            free_count_ = 0;
        }
        lock_.unlock();
    }

    uint32_t carved() const noexcept { return carved_.load(sync::acquire); }

private:
    static constexpr uint32_t batch = 32;
    static constexpr uint32_t first_bits = 6; // 64 objects in chunk 0
    static constexpr uint32_t last_bits = 16; // 65,536 in the largest
    static constexpr uint32_t growing = last_bits - first_bits;
    static constexpr uint32_t max_chunks = growing + (max_items >> last_bits);

    struct Place {
        uint32_t chunk;
        uint32_t offset;
    };

    // Chunk k < growing holds the indices [64 * (2^k - 1), 64 * (2^(k+1) - 1)): shifted by 64, [2^(k+6), 2^(k+7)).
    static Place place_of(uint32_t index) noexcept {
        const uint32_t shifted = index + (1u << first_bits);
        if (shifted < (1u << last_bits)) {
            const uint32_t bits = 31u ^ static_cast<uint32_t>(__builtin_clz(shifted)); // the highest
            return {bits - first_bits, shifted & ~(1u << bits)};
        }
        return {growing - 1 + (shifted >> last_bits), shifted & ((1u << last_bits) - 1)};
    }
    static size_t chunk_items(uint32_t chunk) noexcept {
        return size_t{1} << (chunk < growing ? chunk + first_bits : last_bits);
    }

    T *take() noexcept {
        if (free_count_ <= Quarantine) {
            T *fresh = carve();
            if (fresh != nullptr || Quarantine == 0 || free_count_ == 0)
                return fresh;
        } // without memory, a quarantined object is better than none
        return pop();
    }

    T *pop() noexcept {
        T *item = free_head_;
        free_head_ = item->slab_next;
        if (free_head_ == nullptr)
            free_tail_ = nullptr;
        --free_count_;
        return item;
    }

    void give(T *item) noexcept {
        ++free_count_;
        if constexpr (Quarantine > 0) {
            item->slab_next = nullptr;
            (free_tail_ == nullptr ? free_head_ : free_tail_->slab_next) = item;
            free_tail_ = item;
        } else {
            item->slab_next = free_head_;
            free_head_ = item;
        }
    }

    T *carve() noexcept {
        const uint32_t index = carved_.load(sync::relaxed); // guarded by lock_
        if (index == max_items - 1) // one less than there are: index + 1 has as many bits (a mutex's owner)
            return nullptr;
        const Place place = place_of(index);
        MC_INVARIANT(place.chunk < max_chunks, index);
        if (chunks_[place.chunk] == nullptr) {
            void *memory = allocate(chunk_items(place.chunk) * sizeof(T), alignof(T));
            if (memory == nullptr)
                return nullptr;
            chunks_[place.chunk] = static_cast<std::byte *>(memory);
        }
        T *item = new (chunks_[place.chunk] + place.offset * sizeof(T)) T();
        item->slab_index = index;
        carved_.store(index + 1, sync::release); // release: pairs with at(); after the object is complete
        return item;
    }

    bool refill(Cache &cache) noexcept {
        SpinGuard guard(lock_);
        for (uint32_t i = 0; i < batch; ++i) {
            if (i > 0 && free_count_ == 0)
                break; // carve one at a time: an untouched object costs no memory
            T *item = take();
            if (item == nullptr)
                break;
            item->slab_next = cache.head;
            cache.head = item;
            ++cache.count;
        }
        return cache.head != nullptr;
    }

    void spill(Cache &cache, uint32_t count) noexcept {
        SpinGuard guard(lock_);
        for (uint32_t i = 0; i < count; ++i) {
            T *item = cache.head;
            cache.head = item->slab_next;
            --cache.count;
            give(item);
        }
    }

    // guarded by lock_
    Spinlock lock_;
    T *free_head_ = nullptr;
    T *free_tail_ = nullptr;
    uint32_t free_count_ = 0;
    // written under lock_, read by any thread below carved_
    std::byte *chunks_[max_chunks] = {};
    // any thread (atomic); written under lock_
    sync::atomic<uint32_t> carved_{0};
};

} // namespace mc::base
