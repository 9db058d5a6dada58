// A bounded mailbox: a ring of envelopes in one block of host memory, from the first envelope until the machine stops. Guarded
// by its machine's lock.
//
// A position counts envelopes from the mailbox's beginning and never repeats, so a pending request finds the envelope of
// its request, as long as it waits, by its position.
//
// The ring grows by doubling up to the bound: a bound of millions costs nothing until they come. Up to `at_once` envelopes
// get their room with the first, so an ordinary mailbox allocates once. Nothing fails but reserve.
//
// Who finds it empty begins at the ring's beginning: a machine that gets its mail one by one uses the same cache lines for all of it.
//
// incoming: scratch of a commit, which counts all its effects on one machine together; 0 between commits.
#pragma once

#include "base/assert.hpp"
#include "machine/host.hpp"

#include <mc/machine.h>

#include <bit>
#include <cstdint>
#include <cstring>

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
    ~Mailbox() { host_free(ring_); } // of an empty one

    uint32_t length() const noexcept { return length_; }
    bool empty() const noexcept { return length_ == 0; }
    uint32_t bound() const noexcept { return bound_; }
    // It is not empty.
    const Envelope &first() const noexcept { return ring_[index(taken_)]; }
    // There is room for so many more.
    bool fits(uint32_t more) const noexcept { return more <= bound_ - length_; }

    // Memory for so many more, which fit. False: there is none, nothing has changed.
    [[nodiscard]] bool reserve(uint32_t more) noexcept { return length_ + more <= room_ || grow(length_ + more); }
    // Gives back what reserve allocated for envelopes that did not come after all.
    void give_back_unused() noexcept {
        if (taken_ + length_ == 0)
            release();
    }

    // Where it lies from now on. There is memory.
    uint64_t push(const Envelope &envelope) noexcept {
        const uint64_t position = next_position();
        cell(position) = envelope;
        return position;
    }
    // The same of a plain envelope, which is written in its place.
    void push_plain(uint32_t src, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
        Envelope &envelope = cell(next_position());
        envelope.kind = kind;
        envelope.src = src;
        envelope.reply_cap_id = envelope.pending_id = 0;
        envelope.payload0 = payload0;
        envelope.payload1 = payload1;
        envelope.origin_payload0 = envelope.origin_payload1 = envelope.origin_request_site_key = 0;
    }
    // It is not empty.
    __attribute__((always_inline)) void pop(Envelope *out) noexcept {
        *out = cell(taken_++);
        --length_;
    }

    // The envelope at a position that was given out, while it waits here; else null.
    Envelope *waiting(uint64_t position) noexcept { return position - taken_ < length_ ? &cell(position) : nullptr; }

    // What was popped last is first again; nothing has been pushed since. It is written anew: the ring may have grown meanwhile.
    void unpop(const Envelope &envelope) noexcept {
        --taken_;
        ++length_;
        cell(taken_) = envelope;
    }

    void reset(uint32_t bound) noexcept {
        release();
        taken_ = 0;
        origin_ = 0;
        incoming = 0;
        bound_ = bound == 0 ? 1 : bound;
    }

    // What waits here is the other one's from now on, which is empty.
    void give_to(Mailbox *other) noexcept {
        other->ring_ = ring_;
        other->taken_ = taken_;
        other->origin_ = origin_;
        other->length_ = length_;
        other->room_ = room_;
        ring_ = nullptr;
        room_ = length_ = 0;
    }

    void release() noexcept {
        host_free(ring_);
        ring_ = nullptr;
        room_ = length_ = 0;
    }

    uint32_t incoming = 0;

private:
    static constexpr uint32_t at_once = 64;

    uint32_t index(uint64_t position) const noexcept {
        return (static_cast<uint32_t>(position) - origin_) & (room_ - 1);
    }
    Envelope &cell(uint64_t position) noexcept { return ring_[index(position)]; }

    uint64_t next_position() noexcept {
        MC_DEBUG_INVARIANT(length_ < room_, length_);
        if (length_ == 0)
            origin_ = static_cast<uint32_t>(taken_);
        return taken_ + length_++;
    }

    __attribute__((noinline)) bool grow(uint32_t needed) noexcept {
        const uint64_t least = bound_ < at_once ? bound_ : needed < at_once / 8 ? at_once / 8 : needed;
        const uint64_t room = std::bit_ceil(least);
        if (room > UINT32_MAX)
            return false;
        auto *ring = static_cast<Envelope *>(host_allocate(room * sizeof(Envelope), alignof(Envelope)));
        if (ring == nullptr)
            return false;
        for (uint64_t i = taken_; i < taken_ + length_; ++i)
            ring[(static_cast<uint32_t>(i) - origin_) & (room - 1)] = cell(i);
        host_free(ring_);
        ring_ = ring;
        room_ = static_cast<uint32_t>(room);
        return true;
    }

    Envelope *ring_ = nullptr;
    uint64_t taken_ = 0;
    uint32_t length_ = 0;
    uint32_t room_ = 0;   // a power of two, or 0
    uint32_t bound_;      // immutable while the machine lives
    uint32_t origin_ = 0; // the position that lies at the ring's beginning, its lower half
};

} // namespace mc::machine
