// Boxes: what payload words own. A payload is two words; with the owned bit in the second the first is the address of a box.
//
// Every place that mentions a box holds it: an envelope in a mailbox (its payload, and its origin), a pending request, an
// effect that is staged, the envelope that is being dispatched. Boxes counts the holders by address; who takes the last
// hold away drops the box. So a box that a handler passes on, or returns as a reply, or that a program sends twice by
// mistake, is one box and is freed once.
//
// A runtime's table; guarded as the runtime is. drop_box calls users: with nothing locked.
//
// Rejected: counting only what is known to be held twice, a box that is sent twice from outside a handler would be freed
// twice; a count in the box, whose memory is the program's.
#pragma once

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
    bool held(uint64_t box) const noexcept { return counts_.find(box) != nullptr; }
    uint64_t size() const noexcept { return counts_.size(); }

    [[nodiscard]] bool reserve(uint64_t boxes) noexcept { return counts_.reserve(boxes); }

    // One more holder. False: no memory, nothing has changed. Does not fail for a box that is held, nor after reserve.
    [[nodiscard]] bool hold(uint64_t box) noexcept {
        if (uint64_t *count = counts_.find(box); count != nullptr) {
            ++*count;
            return true;
        }
        if (!counts_.reserve(1))
            return false;
        counts_.insert(box, 1);
        return true;
    }

    // One less. True: it was the last, the box is the caller's to drop.
    [[nodiscard]] bool let_go(uint64_t box) noexcept {
        uint64_t *count = counts_.find(box);
        MC_INVARIANT(count != nullptr, box);
        if (--*count != 0)
            return false;
        counts_.erase(count);
        return true;
    }

private:
    WordMap counts_;
};

} // namespace mc::machine
