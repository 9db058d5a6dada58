// Descriptors: the blob of a typestate, made into what a machine's step needs of it, and their registry.
//
// Callers: any thread at any time. A descriptor never changes once it is registered, and is never freed or moved, so whoever
// has found one keeps it. Its id is its place in the order of registration, from 1; the same blob again gets another id.
//
// A descriptor is one block of memory: the rows, the states, and for each a hash table of their numbers, at most half full.
// That is less than one and a half times the blob and 200 bytes: a blob cannot ask for more than it has bytes for.
//
// Two rows of one key: the first counts, the others are never used. Two states of one tag, likewise. An implementation that
// looks through its rows from the first to the last does the same, and programs run on it; but no compiler means it, so
// registering one leaves a warning in the log. (`mcrt descriptor build` refuses them.) Events are not looked up: their
// kinds are the compiler's business, and repeated ones are no matter.
//
// Rejected: refusing repeated keys (a program that ran elsewhere would not start); a perfect hash (rows are found by one
// probe or two as it is); keys of state and event alone with a list of sites (a machine may have thousands of sites).
#pragma once

#include "machine/blob.hpp"
#include "machine/hash.hpp"

#include <cstddef>
#include <cstdint>

namespace mc::machine {

class Descriptor {
public:
    using Row = mc_machine_dispatch_row_t;

    // The first of those whose key other ones have, too.
    struct Repeats {
        uint64_t rows = 0;
        uint64_t states = 0;
        Row row{};
        uint64_t tag = 0;
    };

    static Descriptor *create(const Blob &blob, Repeats *repeats) noexcept; // null: no memory
    static void destroy(Descriptor *descriptor) noexcept;                   // of one that nobody has found

    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;

    // The row for an event in a state: of this request site, or else of site 0. Null: there is none.
    const Row *find_row(uint64_t state_tag, uint64_t event_kind, uint64_t site_key) const noexcept {
        if (site_key != 0 && has_sites_)
            if (const Row *row = rows_.find(Key{state_tag, event_kind, site_key}))
                return row;
        return rows_.find(Key{state_tag, event_kind, 0});
    }

    // What a state's token points to; 0 when the descriptor has no such state, or the program owns the tokens.
    uint64_t state_layout(uint64_t state_tag) const noexcept {
        const State *state = states_.find(Tag{state_tag});
        return state == nullptr ? 0 : state->layout;
    }

    bool has_state(uint64_t state_tag) const noexcept { return states_.find(Tag{state_tag}) != nullptr; }

    uint32_t row_count() const noexcept { return rows_.count; } // those that can be found
    uint32_t state_count() const noexcept { return states_.count; }

private:
    struct State {
        uint64_t tag;
        uint64_t layout;
    };
    struct Key {
        uint64_t state, event, site;
        // Small numbers, or hashes: multiplied apart, then mixed.
        uint64_t hash() const noexcept {
            return mixed(state + event * 0x9e3779b97f4a7c15u + site * 0xd1b54a32d192ed03u);
        }
        bool of(const Row &row) const noexcept {
            return row.state_tag == state && row.event_kind == event && row.request_site_key == site;
        }
    };
    struct Tag {
        uint64_t tag;
        uint64_t hash() const noexcept { return mixed(tag); }
        bool of(const State &state) const noexcept { return state.tag == tag; }
    };

    // Items in their order, and an open-addressed table of their numbers, from 1.
    template <class Item> struct Index {
        Item *items = nullptr;
        uint32_t *slots = nullptr;
        uint64_t mask = 0;
        uint32_t count = 0;

        template <class Wanted> const Item *find(const Wanted &wanted) const noexcept {
            for (uint64_t at = wanted.hash();; ++at) { // ends: half of the slots are free
                const uint32_t number = slots[at & mask];
                if (number == 0)
                    return nullptr;
                if (const Item &item = items[number - 1]; wanted.of(item))
                    return &item;
            }
        }
        template <class Wanted> bool add(const Wanted &wanted, const Item &item) noexcept; // false: it has one
    };

    explicit Descriptor(size_t bytes) noexcept : bytes_(bytes) {}
    void fill(const Blob &blob, Repeats *repeats) noexcept;

    // immutable once registered
    Index<Row> rows_;
    Index<State> states_;
    bool has_sites_ = false; // some row is for one request site alone
    const size_t bytes_;     // of all of it
};

// 0: the blob has a defect, which the log tells, or there is no memory; nothing has changed then.
uint64_t register_descriptor(const void *bytes, uint64_t len) noexcept;

// Null: no descriptor has that id.
const Descriptor *find_descriptor(uint64_t id) noexcept;

} // namespace mc::machine
