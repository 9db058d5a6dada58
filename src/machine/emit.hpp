// What a handler emits, until its transaction commits or rolls back.
//
// A Dispatch is one call of a handler: its envelope, its machine's state as it was, and the effects that it has staged. It
// hangs off the task that runs the handler (an EmitContext, in a slot that src/abi finds), not off the thread: a handler may
// wait and go on elsewhere. An engine keeps its last one for the next step, so staging allocates nothing once it has grown.
//
// Whoever stages holds: the effect's box is held from then on, and a request has its row, reserved.
#pragma once

#include "base/alloc.hpp"
#include "machine/boxes.hpp"
#include "machine/descriptor.hpp"
#include "machine/pending.hpp"

#include <mc/machine.h>

#include <cstdint>
#include <cstring>

namespace mc::machine {

// A vector of plain things whose first few lie inside it, and which never shrinks.
template <class T, uint32_t inside> class Staging {
public:
    Staging() noexcept = default;
    Staging(const Staging &) = delete;
    Staging &operator=(const Staging &) = delete;
    ~Staging() {
        if (items_ != first_)
            base::deallocate_array(items_, room_);
    }
    uint32_t size() const noexcept { return size_; }
    bool full() const noexcept { return size_ == room_; }
    T &operator[](uint32_t i) noexcept { return items_[i]; }
    T *begin() noexcept { return items_; }
    T *end() noexcept { return items_ + size_; }
    const T *begin() const noexcept { return items_; }
    const T *end() const noexcept { return items_ + size_; }
    void clear() noexcept { size_ = 0; }
    void pop() noexcept { --size_; }
    [[nodiscard]] bool reserve(uint64_t more) noexcept { return size_ + more <= room_ || grow(size_ + more); }
    void push(const T &item) noexcept { items_[size_++] = item; } // there is room
    T &add() noexcept { return items_[size_++]; }                 // likewise; it is the caller's to fill in

private:
    bool grow(uint64_t needed) noexcept {
        const uint64_t room = needed > 2 * uint64_t{room_} ? needed : 2 * uint64_t{room_};
        T *items = room > UINT32_MAX ? nullptr : base::allocate_array<T>(room);
        if (items == nullptr)
            return false;
        std::memcpy(static_cast<void *>(items), items_, size_ * sizeof(T));
        if (items_ != first_)
            base::deallocate_array(items_, room_);
        items_ = items;
        room_ = static_cast<uint32_t>(room);
        return true;
    }

    T *items_ = first_;
    uint32_t size_ = 0;
    uint32_t room_ = inside;
    T first_[inside]; // behind what is looked at first
};

enum class Effect : uint32_t { send, request, reply, publish };

struct Staged {
    Effect effect;
    uint32_t dst; // send, request
    uint64_t kind;
    uint64_t payload0;
    uint64_t payload1;
    uint64_t key; // reply: capability; publish: routing
    Row *row;     // request; reply, while it commits
};

// What a task's handler emits to, as the functions __mc_machine_emit_X; dst fits a machine's id. Most effects name no box, and have
// room: these are only written down, without a call.
class EmitContext {
public:
    EmitContext(const EmitContext &) = delete;
    EmitContext &operator=(const EmitContext &) = delete;

    bool send(uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
        return stage(Effect::send, dst, kind, payload0, payload1, 0);
    }
    virtual uint64_t request(uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                             uint64_t site) noexcept = 0;
    bool reply(uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
        return stage(Effect::reply, 0, kind, payload0, payload1, cap);
    }
    bool publish(uint64_t kind, uint64_t routing, uint64_t payload0, uint64_t payload1) noexcept {
        if ((payload1 & MC_PAYLOAD_LAYOUT_OWNED_MASK) != 0) // a box has one receiver
            return false;
        return stage(Effect::publish, 0, kind, payload0, payload1, routing);
    }

    // One of that kind is staged.
    bool has(Effect effect) const noexcept {
        for (const Staged &one : staged)
            if (one.effect == effect)
                return true;
        return false;
    }

    Staging<Staged, 8> staged;

protected:
    EmitContext() noexcept = default;
    ~EmitContext() = default;

    __attribute__((always_inline)) bool stage(Effect effect, uint32_t dst, uint64_t kind, uint64_t payload0,
                                              uint64_t payload1, uint64_t key) noexcept {
        if (staged.full() || is_box(payload0, payload1)) [[unlikely]]
            return prepare_and_write(effect, dst, kind, payload0, payload1, key);
        write(effect, dst, kind, payload0, payload1, key, nullptr);
        return true;
    }

    // There is room, and its box is held. Where it stays, and word by word: the commit reads it so soon that it would wait for what was copied as a whole.
    __attribute__((always_inline)) void write(Effect effect, uint32_t dst, uint64_t kind, uint64_t payload0,
                                              uint64_t payload1, uint64_t key, Row *row) noexcept {
        Staged &to = staged.add();
        to.effect = effect;
        to.dst = dst;
        to.kind = kind;
        to.payload0 = payload0;
        to.payload1 = payload1;
        to.key = key;
        to.row = row;
    }

private:
    // By itself, so that other effects need save no registers for its call.
    __attribute__((noinline)) bool prepare_and_write(Effect effect, uint32_t dst, uint64_t kind, uint64_t payload0,
                                                     uint64_t payload1, uint64_t key) noexcept {
        if (!prepare(payload0, payload1))
            return false;
        write(effect, dst, kind, payload0, payload1, key, nullptr);
        return true;
    }

    // Room for an effect, and a hold on its box. False: no memory; the box is the caller's still.
    virtual bool prepare(uint64_t payload0, uint64_t payload1) noexcept = 0;
};

// A payload that the handler has filled in, and that is a box.
struct Filled {
    uint64_t word0;
    uint64_t word1;
};

// A subscriber that a publication did not reach.
struct Missed {
    uint32_t dst;
    mc_dead_letter_reason_t reason;
    uint32_t staged; // which publication
};

// Why a transaction is not carried out.
enum class Refusal : uint8_t {
    other,
    full,  // a receiver has no room
    late,  // a reply's request is not pending any more
    moved, // whom it concerns has changed meanwhile: gather them anew
    gone,  // its own machine has stopped, or does not run any more
};

// What a handler that runs has in hand of its machine. Attached: guarded by the machine's lock.
struct InHand {
    uint64_t state = 0; // as the handler got it
    // Not 0: `state`, of this layout, was replaced, or its machine stopped, while the handler ran: it is dropped when the
    // handler has done with it.
    uint64_t abandoned_layout = 0;
};

template <class Sync> class Engine;
class Parties;
struct Machine;

template <class Sync> class Dispatch final : public EmitContext, public InHand {
public:
    explicit Dispatch(Engine<Sync> *owner) noexcept : engine(owner) {}

    uint64_t request(uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                     uint64_t site) noexcept override;

    Engine<Sync> *engine;
    Dispatch *next = nullptr; // of those that the engine keeps

    // The task that runs the handler; then the engine.
    uint32_t machine = 0;
    uint64_t tag = 0;
    uint64_t next_tag = 0; // the thunk's
    const Descriptor *descriptor = nullptr;
    mc_machine_envelope_t envelope;
    Staging<Filled, 4> filled;
    Staging<Row *, 4> rows; // reserved for the handler's own requests, in their order
    Staging<Missed, 4> missed;
    Staging<Machine *, 8> receivers; // of the commit, see commit.hpp
    // Attached: what it mints ids from; whose turn it is to be looked at for timeouts; and of the commit, why it is refused.
    Pending::Block ids;
    uint32_t part = 0;
    Parties *parties = nullptr; // while they are locked
    Refusal refusal = Refusal::other;
    bool committed = false;
    Machine *full = nullptr; // with how much it would have to take
    uint32_t full_of = 0;
    Machine *short_of_us = nullptr;      // who goes on, since there is room in its machine's mailbox
    uint32_t turn_of = 0;                // Machine::turn_of, of its machine
    Machine *ready = nullptr;            // for the host, when the dispatch is over; linked through `next`
    mc_machine_envelope_t late;          // the reply that comes too late
    mc_machine_envelope_t consumed = {}; // what has left the mailbox with the commit, where it stays there until then

private:
    bool prepare(uint64_t payload0, uint64_t payload1) noexcept override;
};

} // namespace mc::machine
