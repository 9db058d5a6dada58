// A hash map from a word other than 0 to a word: open addressing, linear probing, at most three quarters full, and an erased
// entry leaves no mark, since those behind it move up. So it costs the same after a billion entries as after ten.
//
// Not synchronised: the owner says what guards it. Nothing fails but reserve, which allocates: reserve(n), then n inserts.
//
// Rejected: std::unordered_map (a block an entry); base's intrusive lists in buckets (a box has no room for links).
#pragma once

#include "base/alloc.hpp"
#include "base/assert.hpp"

#include <bit>
#include <cstdint>

namespace mc::machine {

class WordMap {
public:
    WordMap() noexcept = default;
    ~WordMap() { base::deallocate_array(entries_, slots_); }
    WordMap(const WordMap &) = delete;
    WordMap &operator=(const WordMap &) = delete;

    uint64_t size() const noexcept { return size_; }

    // The value, to read or to change, until the next insert or erase. Null: there is none.
    uint64_t *find(uint64_t key) const noexcept {
        if (size_ == 0)
            return nullptr;
        for (uint64_t at = home(key);; ++at) { // ends: a quarter of the slots is empty
            Entry &entry = entries_[at & mask()];
            if (entry.key == key)
                return &entry.value;
            if (entry.key == 0)
                return nullptr;
        }
    }

    // Room for `more` entries. False: no memory, nothing has changed.
    [[nodiscard]] bool reserve(uint64_t more) noexcept {
        return (size_ + more) * 4 <= slots_ * uint64_t{3} || grow(size_ + more);
    }

    // The key is not there, and there is room.
    void insert(uint64_t key, uint64_t value) noexcept {
        MC_DEBUG_INVARIANT(key != 0 && (size_ + 1) * 4 <= slots_ * uint64_t{3}, key);
        uint64_t at = home(key);
        while (entries_[at & mask()].key != 0)
            ++at;
        entries_[at & mask()] = {key, value};
        ++size_;
    }

    // `value` is what find returned.
    void erase(const uint64_t *value) noexcept {
        uint64_t hole = static_cast<uint64_t>(reinterpret_cast<const Entry *>(value - 1) - entries_);
        --size_;
        for (uint64_t at = hole + 1; entries_[at & mask()].key != 0; ++at) {
            // An entry whose home lies after the hole stays: moved, it would not be found from there.
            const uint64_t from_home = (at - home(entries_[at & mask()].key)) & mask();
            if (from_home >= ((at - hole) & mask())) {
                entries_[hole & mask()] = entries_[at & mask()];
                hole = at;
            }
        }
        entries_[hole & mask()] = {};
    }

    void clear() noexcept {
        base::deallocate_array(entries_, slots_);
        entries_ = nullptr;
        slots_ = size_ = 0;
        shift_ = 0;
    }

    template <class Visit> void for_each(Visit visit) const noexcept {
        for (uint64_t i = 0; i < slots_; ++i)
            if (entries_[i].key != 0)
                visit(entries_[i].key, entries_[i].value);
    }

private:
    struct Entry {
        uint64_t key = 0;
        uint64_t value = 0;
    };

    uint64_t mask() const noexcept { return slots_ - 1; }
    // Multiplicative hashing by 2^64 divided by the golden ratio, upper bits (Knuth).
    uint64_t home(uint64_t key) const noexcept { return (key * 0x9e3779b97f4a7c15u) >> shift_; }

    bool grow(uint64_t entries) noexcept {
        const uint64_t wanted = std::bit_ceil(entries * 4 / 3 + 1);
        const uint64_t slots = wanted < 16 ? 16 : wanted;
        if (slots > SIZE_MAX / sizeof(Entry))
            return false;
        Entry *fresh = base::allocate_array<Entry>(slots);
        if (fresh == nullptr)
            return false;
        for (uint64_t i = 0; i < slots; ++i)
            new (&fresh[i]) Entry();
        Entry *old = entries_;
        const uint64_t old_slots = slots_;
        entries_ = fresh;
        slots_ = slots;
        shift_ = 64 - static_cast<uint32_t>(std::countr_zero(slots));
        size_ = 0;
        for (uint64_t i = 0; i < old_slots; ++i)
            if (old[i].key != 0)
                insert(old[i].key, old[i].value);
        base::deallocate_array(old, old_slots);
        return true;
    }

    Entry *entries_ = nullptr;
    uint64_t slots_ = 0; // a power of two, or none
    uint64_t size_ = 0;
    uint32_t shift_ = 0;
};

} // namespace mc::machine
