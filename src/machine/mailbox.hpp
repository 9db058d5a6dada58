// A bounded mailbox: a ring of envelopes in one block of host memory, from the first envelope until the machine stops. Guarded
// by its machine's lock.
//
// A position rises with each envelope and never repeats, so a pending request finds the envelope of its request, as long as it
// waits, by its position. Its lower bits are the cell.
//
// The ring grows by doubling up to the bound: a bound of millions costs nothing until they come. `at_first` envelopes get their room
// with the first, so the mailbox of a machine that is not behind allocates once. Nothing fails but reserve.
//
// Whose last envelope is taken passes positions over, so that the next lies at the ring's beginning (of a large one: at one of few
// places): a machine that gets its mail one by one uses the same cache lines for all of it. What is no reply has no origin, and while nothing that waits has
// one, these words of the cells are neither written nor read: a machine that gets messages one by one uses one line, in which the
// ring's head is, too.
#pragma once

#include "base/assert.hpp"
#include "machine/host.hpp"

#include <mc/machine.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

namespace mc::machine {

// A message, neither a request nor a reply to one.
inline mc_machine_envelope_t plain_envelope(uint32_t src, uint64_t kind, uint64_t payload0,
                                            uint64_t payload1) noexcept {
    return {kind, src, 0, 0, payload0, payload1, 0, 0, 0};
}

class Mailbox {
public:
    using Envelope = mc_machine_envelope_t;

    explicit Mailbox(uint32_t bound) noexcept : bound_(bound == 0 ? 1 : bound) {}
    Mailbox(const Mailbox &) = delete;
    Mailbox &operator=(const Mailbox &) = delete;
    ~Mailbox() { release(); } // of an empty one

    uint32_t length() const noexcept { return length_; }
    bool empty() const noexcept { return length_ == 0; }
    uint32_t bound() const noexcept { return bound_; }
    // There is room for so many more.
    bool fits(uint32_t more) const noexcept { return more <= bound_ - length_; }

    // Memory for so many more, which fit. False: there is none, nothing has changed.
    [[nodiscard]] __attribute__((always_inline)) bool reserve(uint32_t more) noexcept {
        return (ring_ != nullptr && length_ + more <= ring_->mask + 1) || grow(length_ + more);
    }
    // Gives back what reserve allocated for envelopes that did not come after all.
    void give_back_unused() noexcept {
        if (ring_ != nullptr && ring_->taken + length_ == 0)
            release();
    }

    // Where it lies from now on. There is memory.
    uint64_t push(const Envelope &envelope) noexcept {
        write(next_cell(has_origin(envelope)), envelope);
        return ring_->taken + length_++;
    }
    // The same of a message or a request, and of a reply, which are written where they lie.
    __attribute__((always_inline)) uint64_t push_message(uint32_t src, uint64_t kind, uint64_t reply_cap,
                                                         uint64_t payload0, uint64_t payload1) noexcept {
        Envelope &to = next_cell(false);
        to.kind = kind;
        to.src = src;
        to.reply_cap_id = reply_cap;
        to.pending_id = 0;
        to.payload0 = payload0;
        to.payload1 = payload1;
        if (ring_->origins) [[unlikely]]
            clear_origin(to);
        return ring_->taken + length_++;
    }
    __attribute__((always_inline)) void push_reply(uint32_t src, uint64_t kind, uint64_t pending, uint64_t payload0,
                                                   uint64_t payload1, uint64_t origin0, uint64_t origin1,
                                                   uint64_t site) noexcept {
        Envelope &to = next_cell(true);
        to.kind = kind;
        to.src = src;
        to.reply_cap_id = 0;
        to.pending_id = pending;
        to.payload0 = payload0;
        to.payload1 = payload1;
        to.origin_payload0 = origin0;
        to.origin_payload1 = origin1;
        to.origin_request_site_key = site;
        ++length_;
    }
    // A copy of the first. It is not empty.
    __attribute__((always_inline)) void copy_first(Envelope *out) const noexcept {
        const Envelope &first = cell(0);
        copy_message(*out, first);
        if (!ring_->origins) [[likely]]
            clear_origin(*out);
        else
            copy_origin(*out, first);
    }
    // It is not empty. Where the envelope lay.
    __attribute__((always_inline)) uint64_t pop(Envelope *out) noexcept {
        copy_first(out);
        const uint64_t position = ring_->taken, over = ring_->mask & most_passed_over;
        ring_->taken = --length_ != 0 ? position + 1 : (position + 1 + over) & ~over;
        return position;
    }

    // The envelope at a position that was given out, while it waits here; else null.
    Envelope *waiting(uint64_t position) noexcept {
        return ring_ != nullptr && position - ring_->taken < length_ ? &cell(position - ring_->taken) : nullptr;
    }

    // What was popped last is first again, where it lay; nothing has been pushed since. It is written anew: the ring may have grown
    // meanwhile.
    void unpop(const Envelope &envelope, uint64_t position) noexcept {
        ring_->taken = position;
        if (has_origin(envelope) && !ring_->origins)
            begin_origins();
        write(cell(0), envelope);
        ++length_;
    }

    void reset(uint32_t bound) noexcept {
        release();
        bound_ = bound == 0 ? 1 : bound;
    }

    // What waits here is the other one's from now on, which is empty.
    void give_to(Mailbox *other) noexcept {
        other->ring_ = ring_;
        other->length_ = length_;
        ring_ = nullptr;
        length_ = 0;
    }

    void release() noexcept {
        if (ring_ != nullptr)
            host_free(ring_->block());
        ring_ = nullptr;
        length_ = 0;
    }

private:
    static constexpr uint32_t at_first = 4;
    static constexpr size_t line = 64;
    // No more than an envelope's: more makes blocks lie at uneven distances, which a processor foresees badly (README.md).
    static constexpr size_t block_align = alignof(Envelope);

    static constexpr uint64_t most_passed_over = 1023; // so that positions last for ever

    // The head of the ring, at the beginning of a line; the cells follow it.
    struct Ring {
        uint64_t taken; // the position of the first
        uint32_t mask;  // one less than there are cells, a power of two
        bool origins;   // false: no envelope that waits has an origin, and these words of the cells are not written
        uint8_t slack;  // so far behind the block's beginning it lies

        Envelope *cells() noexcept { return reinterpret_cast<Envelope *>(this + 1); }
        std::byte *block() noexcept { return reinterpret_cast<std::byte *>(this) - slack; }
    };
    static_assert(sizeof(Ring) == 16 && offsetof(Envelope, origin_payload0) + sizeof(Ring) == line);

    static void copy_message(Envelope &to, const Envelope &from) noexcept {
        to.kind = from.kind;
        to.src = from.src;
        to.reply_cap_id = from.reply_cap_id;
        to.pending_id = from.pending_id;
        to.payload0 = from.payload0;
        to.payload1 = from.payload1;
    }
    static void copy_origin(Envelope &to, const Envelope &from) noexcept {
        to.origin_payload0 = from.origin_payload0;
        to.origin_payload1 = from.origin_payload1;
        to.origin_request_site_key = from.origin_request_site_key;
    }
    static void clear_origin(Envelope &to) noexcept {
        to.origin_payload0 = to.origin_payload1 = to.origin_request_site_key = 0;
    }

    // Of those that wait, the one behind so many.
    Envelope &cell(uint64_t behind) const noexcept { return ring_->cells()[(ring_->taken + behind) & ring_->mask]; }
    // For an envelope with an origin, or without.
    __attribute__((always_inline)) Envelope &next_cell(bool origin) noexcept {
        MC_DEBUG_INVARIANT(length_ <= ring_->mask, length_);
        if (ring_->origins != origin) {
            if (length_ == 0)
                ring_->origins = origin;
            else if (origin)
                begin_origins();
        }
        return cell(length_);
    }
    static bool has_origin(const Envelope &envelope) noexcept {
        return (envelope.origin_payload0 | envelope.origin_payload1 | envelope.origin_request_site_key) != 0;
    }
    // From now on all cells have them; the one that is about to be written, at either end, gets its own.
    __attribute__((noinline)) void begin_origins() noexcept {
        ring_->origins = true;
        for (uint32_t i = 0; i <= length_; ++i)
            clear_origin(cell(i));
    }
    // A cell that is none of those that wait.
    void write(Envelope &to, const Envelope &envelope) noexcept {
        copy_message(to, envelope);
        if (ring_->origins)
            copy_origin(to, envelope);
    }

    __attribute__((noinline)) bool grow(uint32_t needed) noexcept {
        const uint64_t room = std::bit_ceil(uint64_t{std::max(needed, std::min(bound_, at_first))});
        if (room > UINT32_MAX)
            return false;
        void *block = host_allocate(sizeof(Ring) + room * sizeof(Envelope) + line - block_align, block_align);
        if (block == nullptr)
            return false;
        const auto slack = static_cast<uint8_t>(-reinterpret_cast<uintptr_t>(block) & (line - 1));
        auto *ring =
            new (static_cast<std::byte *>(block) + slack) Ring{0, static_cast<uint32_t>(room - 1), false, slack};
        if (ring_ != nullptr) {
            ring->taken = ring_->taken;
            ring->origins = ring_->origins;
            for (uint32_t i = 0; i < length_; ++i) {
                Envelope &to = ring->cells()[(ring->taken + i) & ring->mask];
                copy_message(to, cell(i));
                if (ring->origins)
                    copy_origin(to, cell(i));
            }
            host_free(ring_->block());
        }
        ring_ = ring;
        return true;
    }

    Ring *ring_ = nullptr;
    uint32_t length_ = 0;
    uint32_t bound_; // immutable while the machine lives
};

} // namespace mc::machine
