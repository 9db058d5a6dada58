// Boxes: what payload words own. A payload is two words; with the owned bit in the second the first is the address of a box.
//
// Every place that mentions a box holds it: an envelope in a mailbox (its payload, and its origin), a pending request, an
// effect that is staged, the envelope that is being dispatched. Boxes counts the holders by address; who takes the last
// hold away drops the box. So a box that a handler passes on, or returns as a reply, or that a program sends twice by
// mistake, is one box and is freed once.
//
// A runtime's table; it takes the locks of its parts, which are innermost. drop_box calls users: with nothing locked.
//
// Rejected: counting only what is known to be held twice, a box that is sent twice from outside a handler would be freed
// twice; a count in the box, whose memory is the program's.
#pragma once

#include "machine/parts.hpp"
#include "machine/word_map.hpp"

#include <mc/machine.h>

namespace mc::machine {

// The words name a box.
inline bool is_box(uint64_t word0, uint64_t word1) noexcept {
    return (word1 & MC_PAYLOAD_LAYOUT_OWNED_MASK) != 0 && word0 != 0;
}

// The layout's drop function, then the block itself. Calls users.
void drop_box(uint64_t word0, uint64_t layout) noexcept;

class Boxes {
public:
    // For an attached runtime; then, of a new one: room for what `from` has, and the taking of it, while nobody else is about.
    // False: no memory.
    [[nodiscard]] bool make_many() noexcept { return parts_.make_many(); }
    [[nodiscard]] bool prepare_for(const Boxes &from) noexcept;
    void take_from(Boxes &from) noexcept;

    bool held(uint64_t box) const noexcept {
        const Part &part = part_of(box);
        const PartGuard guard(part.lock, parts_.shared());
        return part.counts.find(box) != nullptr;
    }
    uint64_t size() const noexcept {
        uint64_t total = 0;
        for (const Part &part : parts_) {
            const PartGuard guard(part.lock, parts_.shared());
            total += part.counts.size();
        }
        return total;
    }

    // One more holder. False: no memory, nothing has changed, and nobody held it. Does not fail for a box that is held.
    [[nodiscard]] bool hold(uint64_t box) noexcept {
        Part &part = part_of(box);
        const PartGuard guard(part.lock, parts_.shared());
        if (uint64_t *count = part.counts.find(box); count != nullptr) {
            ++*count;
            return true;
        }
        if (!part.counts.reserve(1))
            return false;
        part.counts.insert(box, 1);
        return true;
    }

    // One less. True: it was the last, the box is the caller's to drop.
    [[nodiscard]] bool let_go(uint64_t box) noexcept {
        Part &part = part_of(box);
        const PartGuard guard(part.lock, parts_.shared());
        uint64_t *count = part.counts.find(box);
        MC_INVARIANT(count != nullptr, box);
        if (--*count != 0)
            return false;
        part.counts.erase(count);
        return true;
    }

    // How many hold it.
    uint64_t holders(uint64_t box) const noexcept {
        const Part &part = part_of(box);
        const PartGuard guard(part.lock, parts_.shared());
        const uint64_t *count = part.counts.find(box);
        return count == nullptr ? 0 : *count;
    }

private:
    struct alignas(64) Part {
        mutable base::Spinlock lock;
        WordMap counts;
    };
    static uint64_t key_of(uint64_t box) noexcept { return (box >> 4) ^ (box >> 12); } // they are 16 bytes apart
    Part &part_of(uint64_t box) const noexcept { return parts_.of(key_of(box)); }

    Parts<Part> parts_;
};

} // namespace mc::machine
