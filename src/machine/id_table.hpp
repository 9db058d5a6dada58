// Values under 64-bit ids, for registries that are read at every step of every machine and written while a program starts.
//
// Callers: find, any thread at any time, also while others write; put, one thread at a time (the registry's mutex says
// so). An id is never taken out, only its value replaced; id 0 is nobody's.
//
// A value is two words that belong together: a reader gets both of one put, never a mixture. Each slot has room for two
// values; its version's last bit says which is the current one. A put writes the other one, then the version:
//
//   version v      reads values[v % 2], and keeps what it read if the version is still v
//   v -> v + 1     written by put after values[(v + 1) % 2], which nobody reads who sees v
//
// so a reader waits for nobody, whatever the writer is in the middle of; it begins again only when a put has been completed
// meanwhile. To put a value under an id that is there allocates nothing, so it cannot fail.
//
// Slots lie in an open-addressed array, at most half of it used. When it is full, a copy of twice the size takes its place
// by one store. Readers may still be in the old one, which stays as it is until the table goes: all old ones together are
// smaller than the current one.
//
// Invariants: a slot's id is written once, after its value. The slots of a published array are in the order in which
// their ids probe for them, without gaps.
//
// Rejected: a pointer to an immutable value in each slot (one more line of memory a lookup, an allocation a put, and
// replaced values that nobody may free); a version that is odd while a put is under way (a reader would wait for a writer
// who lost the processor); epochs, to free the old arrays (a pin a lookup, for memory that is bounded anyway).
#pragma once

#include "base/alloc.hpp"
#include "base/assert.hpp"
#include "base/sync.hpp"
#include "machine/hash.hpp"

#include <bit>
#include <cstdint>

namespace mc::machine {

// first_slots: of the first array, a power of two; small in tests.
template <uint32_t first_slots = 64> class IdTable {
    static_assert(std::has_single_bit(first_slots) && first_slots >= 2);

public:
    struct Value {
        uint64_t first = 0;
        uint64_t second = 0;
    };

    constexpr IdTable() noexcept = default;
    IdTable(const IdTable &) = delete;
    IdTable &operator=(const IdTable &) = delete;

    // What was put under the id; zeros when nothing was.
    Value find(uint64_t id) const noexcept {
        // acquire: pairs with grow's release; the array is complete.
        const Array *array = current_.load(sync::acquire);
        if (array == nullptr || id == 0)
            return {};
        const Slot *slot = probe(*array, id);
        return slot == nullptr ? Value{} : slot->read();
    }

    // False: no memory for a new id. Nothing has changed then.
    [[nodiscard]] bool put(uint64_t id, Value value) noexcept {
        MC_DEBUG_INVARIANT(id != 0, id);
        Array *array = current_.load(sync::relaxed); // the writers' mutex orders them
        if (array != nullptr)
            if (Slot *slot = probe(*array, id); slot != nullptr) {
                slot->replace(value);
                return true;
            }
        if (array == nullptr || 2 * (used_ + 1) > array->slots()) {
            array = grow(array);
            if (array == nullptr)
                return false;
        }
        insert(*array, id, value);
        ++used_;
        return true;
    }

private:
    // A line of its own, so that a lookup reads one, and two others at most: the table's and the array's first.
    struct alignas(64) Slot {
        struct Words {
            sync::atomic<uint64_t> first{0};
            sync::atomic<uint64_t> second{0};
        };

        // any thread (atomic); written by put alone
        sync::atomic<uint64_t> id{0};
        sync::atomic<uint64_t> version{0};
        Words values[2];

        Value read() const noexcept {
            for (;;) {
                // acquire: pairs with replace's last store; the value of this version is written.
                const uint64_t seen = version.load(sync::acquire);
                const Words &words = values[seen % 2];
                // acquire, both: pair with the releases in replace. Who reads a word of a later version sees, below, that
                // this version has passed: its store came before that word's.
                const Value value{words.first.load(sync::acquire), words.second.load(sync::acquire)};
                if (version.load(sync::relaxed) == seen)
                    return value;
            }
        }

        void replace(Value value) noexcept {
            const uint64_t next = version.load(sync::relaxed) + 1; // own last store
            Words &words = values[next % 2];
            // release, both: pair with the acquires in read; they publish the version that is current, so that who still
            // reads the one before it in these words finds out.
            words.first.store(value.first, sync::release);
            words.second.store(value.second, sync::release);
            version.store(next, sync::release); // release: pairs with read's acquire; publishes the words
        }
    };

    // Its slots lie behind it.
    struct alignas(64) Array {
        uint64_t mask;
        Array *smaller; // the one before it

        uint64_t slots() const noexcept { return mask + 1; }
        Slot &slot(uint64_t at) const noexcept {
            return reinterpret_cast<Slot *>(const_cast<Array *>(this) + 1)[at & mask];
        }
    };

    static Slot *probe(const Array &array, uint64_t id) noexcept {
        for (uint64_t at = mixed(id);; ++at) { // ends: half of the slots are free
            Slot &slot = array.slot(at);
            // acquire: pairs with insert's release; the id's first value is written.
            const uint64_t found = slot.id.load(sync::acquire);
            if (found == id)
                return &slot;
            if (found == 0)
                return nullptr;
        }
    }

    static void insert(Array &array, uint64_t id, Value value) noexcept {
        uint64_t at = mixed(id);
        while (array.slot(at).id.load(sync::relaxed) != 0)
            ++at;
        Slot &slot = array.slot(at);
        slot.values[0].first.store(value.first, sync::relaxed);
        slot.values[0].second.store(value.second, sync::relaxed);
        slot.id.store(id, sync::release); // release: pairs with probe's acquire; publishes the value
    }

    Array *grow(Array *from) noexcept {
        const uint64_t slots = from == nullptr ? first_slots : 2 * from->slots();
        if (slots > SIZE_MAX / 2 / sizeof(Slot))
            return nullptr;
        void *memory = base::allocate(sizeof(Array) + slots * sizeof(Slot), alignof(Array));
        if (memory == nullptr)
            return nullptr;
        auto *to = new (memory) Array{slots - 1, from};
        for (uint64_t i = 0; i < slots; ++i)
            new (&to->slot(i)) Slot();
        if (from != nullptr)
            for (uint64_t i = 0; i < from->slots(); ++i)
                if (const uint64_t id = from->slot(i).id.load(sync::relaxed); id != 0)
                    insert(*to, id, from->slot(i).read());
        current_.store(to, sync::release); // release: pairs with find's acquire; publishes the array and all in it
        return to;
    }

    // any thread (atomic); written by put alone
    sync::atomic<Array *> current_{nullptr};
    // writers only
    uint64_t used_ = 0;
};

} // namespace mc::machine
