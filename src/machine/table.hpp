// A runtime's machines by id: a machine is where it is until it stops, whatever is spawned meanwhile, and an id is never used
// again. What is left of a stopped machine is its word here, 8 bytes.
//
//   word     machine's address | stopped: bit 0
//
// Words lie in chunks that double (64, 128, ...) and never move, so a directory of 27 pointers is enough for all ids, and
// growing copies nothing. Any thread finds a machine without a lock. Attached, whoever has found one locks it and then looks
// at its id again: it may have stopped meanwhile, and its memory, which stays a machine's as long as the runtime is attached,
// may be another's.
//
// A machine that stops while it is in the ready queue, or while its handler runs, stays where it is, without an id and empty, until its
// turn has come, or the handler has returned. So an entry of the queue may be stale, and is skipped.
#pragma once

#include "base/alloc.hpp"
#include "base/list.hpp"
#include "base/spinlock.hpp"
#include "base/sync.hpp"
#include "machine/mailbox.hpp"
#include "machine/pending.hpp"
#include "machine/subscriptions.hpp"

#include <mc/machine.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mc::machine {

// What a machine's envelopes go to.
// poll, poll_alone: it has no handler, see Host::polled.
enum class Binding : uint8_t { none, function, thunk, descriptor, poll, poll_alone };

// What keeps a machine that has mail out of the ready queue until it is over.
// handler: its own runs, and it is to queue behind those that it sent to; room: it waits for that, in another one's list.
enum class Doing : uint8_t { nothing, handler, room };

struct InHand; // emit.hpp

// Guarded by its lock but for what says otherwise. Two cache lines, of which most dispatches, and sends, touch the first.
struct alignas(128) Machine {
    explicit Machine(uint32_t mailbox_bound) noexcept : mail(mailbox_bound) {}

    base::Spinlock lock;
    uint32_t id = 0; // 0: not spawned yet, or stopped, and kept for those who may still look at it
    uint8_t lifecycle = MC_MACHINE_CREATED;
    Binding binding = Binding::none;
    bool queued = false; // ready; stepped: guarded by the ready queue
    Doing doing = Doing::nothing;
    uint32_t short_of = 0; // attached: it waits for room in that machine's mailbox; guarded by the lock of waits
    union {
        // Of those that are ready, wait for room, or are free; guarded by who has it there.
        Machine *next = nullptr;
        InHand *in_hand; // attached, while its handler runs: then it is in no list
    };
    uint64_t state = 0;
    uint64_t target = 0; // function, thunk's id, or descriptor's address
    void *context = nullptr;
    Mailbox mail;

    uint64_t tag = 0;                // of the state, for a descriptor's rows
    Machine *short_of_us = nullptr;  // attached: those that wait for room here
    base::List<Row, OfMachine> rows; // its pending requests, the oldest first
    base::List<Subscription, OfMachine> subscriptions;
    uint32_t incoming = 0; // of a commit, which counts all its effects on one machine together; 0 between commits
    uint32_t place = 0;    // immutable: where in its block it is, see Places; of a guest no_place
    uint32_t needs = 1;    // attached: so much room, while it waits for that
    uint32_t turn_of = 0;  // attached: it was let go, since there is room in that machine's mailbox; see delivery.hpp

    static constexpr uint32_t no_place = UINT32_MAX;
    bool is_guest() const noexcept { return place == no_place; }
    bool takes_mail() const noexcept { return lifecycle <= MC_MACHINE_RUNNING; }
    bool runs() const noexcept { return lifecycle == MC_MACHINE_RUNNING; }
    bool is_polled() const noexcept { return binding == Binding::poll || binding == Binding::poll_alone; }
    bool polled_alone() const noexcept { return binding == Binding::poll_alone; }
    bool waits_for_poll() const noexcept { return queued && is_polled(); }

    // As a new one. Its mail, rows and subscriptions are gone.
    void reset(uint32_t mailbox_bound) noexcept {
        lifecycle = MC_MACHINE_CREATED;
        binding = Binding::none;
        queued = false;
        doing = Doing::nothing;
        turn_of = 0;
        state = tag = target = 0;
        context = nullptr;
        incoming = 0;
        mail.reset(mailbox_bound);
    }
};
static_assert(sizeof(Machine) == 128);

// Who sends from outside and waits for room: in the list of a machine that is full it stands in for a machine. Its call's, which
// outlives its stay there.
struct Guest : Machine {
    Guest() noexcept : Machine(1) {
        id = UINT32_MAX; // not 0: it has not stopped
        place = no_place;
    }

    Waker waker; // guarded by lock: once the task waits
    // Guarded by the lock of the machine in whose list it is; its caller's before and after that.
    const mc_machine_envelope_t *envelope = nullptr;
    bool delivered = false; // it is in the mailbox
};

// Where machines lie: blocks of them, so that each is in two cache lines of its own, and an allocator adds little. A block goes back
// when nothing is left in it, but for the last that has room: one machine that lives keeps its block. Blocks double, up to `most`: a
// runtime of two machines is small.
//
// Not synchronised.
class Places {
public:
    Places() noexcept = default;
    Places(const Places &) = delete;
    Places &operator=(const Places &) = delete;
    ~Places() { // nobody has a machine
        while (Block *block = with_room_.pop_front())
            release(block);
    }

    // Null: no memory.
    [[nodiscard]] Machine *make(uint32_t mailbox_bound) noexcept;
    void destroy(Machine *machine) noexcept;

    // This one is empty.
    void take_from(Places &from) noexcept {
        while (Block *block = from.with_room_.pop_front())
            with_room_.push_back(block);
        while (Block *block = from.full_.pop_front())
            full_.push_back(block);
        next_size_ = from.next_size_;
    }

private:
    static constexpr uint32_t least = 3;
    static constexpr uint32_t most = 63;

    // The machines follow it.
    struct alignas(Machine) Block : base::ListNode<Block> {
        uint32_t size = 0;
        uint64_t free = 0; // a bit for each place that has no machine

        std::byte *at(uint32_t place) noexcept {
            return reinterpret_cast<std::byte *>(this + 1) + place * sizeof(Machine);
        }
    };
    static_assert(most < 64);

    static size_t bytes(uint32_t size) noexcept { return sizeof(Block) + size * sizeof(Machine); }
    static Block *block_of(Machine *machine) noexcept {
        return reinterpret_cast<Block *>(reinterpret_cast<std::byte *>(machine) - machine->place * sizeof(Machine)) - 1;
    }
    Block *add_block() noexcept;
    static void release(Block *block) noexcept {
        const uint32_t size = block->size;
        block->~Block();
        base::deallocate(block, bytes(size), alignof(Block));
    }

    static uint64_t all_of(uint32_t size) noexcept { return (uint64_t{1} << size) - 1; }

    base::List<Block> with_room_;
    base::List<Block> full_;
    uint32_t next_size_ = least;
};

class Table {
public:
    Table() noexcept = default;
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;
    ~Table() {
        release_kept();
        for (uint32_t chunk = 0; chunk < chunks; ++chunk)
            base::deallocate_array(chunks_[chunk].load(sync::relaxed), chunk_words(chunk));
    }

    bool was_given_out(uint32_t id) const noexcept { return id != 0 && id <= last_.load(sync::acquire); }
    uint32_t last() const noexcept { return last_.load(sync::acquire); }

    // Null: there never was one, or it has stopped.
    __attribute__((always_inline)) Machine *find(uint32_t id) const noexcept {
        // acquire: pairs with add; word and machine are there.
        if (id == 0 || id > last_.load(sync::acquire))
            return nullptr;
        const uint64_t word = at(id).load(sync::relaxed); // written before that; or it has stopped since
        return (word & stopped) != 0 ? nullptr : reinterpret_cast<Machine *>(word);
    }

    // A machine without an id; null: no memory. Attached: of those that were kept, where there is one.
    Machine *make(uint32_t mailbox_bound) noexcept {
        if (Machine *machine = take_kept(); machine != nullptr) [[unlikely]] {
            const base::SpinGuard guard(machine->lock); // somebody may be about to find that it is not the one he wants
            machine->reset(mailbox_bound);
            return machine;
        }
        const base::SpinGuard guard(places_lock_);
        return places_.make(mailbox_bound);
    }
    // Attached: nobody else is about, or nobody has seen it.
    void destroy(Machine *machine) noexcept {
        const base::SpinGuard guard(places_lock_);
        places_.destroy(machine);
    }
    // Gives it the next id, by which it can be found from then on. 0: no memory, or all ids are used up. One at a time.
    uint32_t add(Machine *machine) noexcept {
        const uint32_t last = last_.load(sync::relaxed);
        if (last == UINT32_MAX)
            return 0;
        const Place place = place_of(last + 1);
        Word *chunk = chunks_[place.chunk].load(sync::relaxed);
        if (chunk == nullptr) {
            chunk = base::allocate_array<Word>(chunk_words(place.chunk)); // written when its id is given out
            if (chunk == nullptr)
                return 0;
            chunks_[place.chunk].store(chunk, sync::relaxed); // published with last_
        }
        machine->id = last + 1;
        new (&chunk[place.offset]) Word(reinterpret_cast<uintptr_t>(machine));
        last_.store(last + 1, sync::release); // release: pairs with find; chunk, word and machine are there
        return last + 1;
    }

    // With the machine's lock: its id says from now on that it has stopped. Who has found it before looks at its id.
    void unlink(Machine *machine) noexcept {
        at(machine->id).store(stopped, sync::relaxed);
        machine->id = 0;
    }
    // Stepped: likewise, of one that is empty. Who has it in the ready queue, or runs its handler, destroys it.
    void remove(Machine *machine) noexcept {
        unlink(machine);
        if (!machine->queued && machine->doing == Doing::nothing)
            destroy(machine);
    }
    // Attached: nobody has it in a list.
    void keep(Machine *machine) noexcept {
        const base::SpinGuard guard(kept_lock_);
        machine->next = kept_;
        kept_ = machine;
        maybe_kept_.store(1, sync::relaxed);
    }
    // Nobody else is about: what was kept is given back.
    void release_kept() noexcept {
        while (kept_ != nullptr) {
            Machine *machine = kept_;
            kept_ = machine->next;
            destroy(machine);
        }
    }

    // Nobody else is about: all that the other one has.
    void take_from(Table &from) noexcept {
        for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
            chunks_[chunk].store(from.chunks_[chunk].load(sync::relaxed), sync::relaxed);
            from.chunks_[chunk].store(nullptr, sync::relaxed);
        }
        last_.store(from.last_.load(sync::relaxed), sync::relaxed);
        from.last_.store(0, sync::relaxed);
        places_.take_from(from.places_);
    }

    // For tests of the last ids.
    void skip_to(uint32_t id) noexcept { last_.store(id, sync::relaxed); }

private:
    using Word = sync::atomic<uint64_t>;
    static constexpr uint64_t stopped = 1;
    static constexpr uint32_t first_bits = 6;
    static constexpr uint32_t chunks = 33 - first_bits;
    static_assert(sizeof(Word) == 8);

    struct Place {
        uint32_t chunk;
        uint32_t offset;
    };
    // Chunk k holds the ids from 64 * (2^k - 1) + 1 on: shifted by 63, those of k + 7 bits.
    static Place place_of(uint32_t id) noexcept {
        const uint64_t shifted = uint64_t{id} + (1u << first_bits) - 1;
        const auto bits = 63u ^ static_cast<uint32_t>(std::countl_zero(shifted)); // the highest
        return {bits - first_bits, static_cast<uint32_t>(shifted ^ (uint64_t{1} << bits))};
    }
    static size_t chunk_words(uint32_t chunk) noexcept { return size_t{1} << (chunk + first_bits); }
    __attribute__((always_inline)) Word &at(uint32_t id) const noexcept {
        const Place place = place_of(id);
        return chunks_[place.chunk].load(sync::relaxed)[place.offset];
    }

    Machine *take_kept() noexcept {
        if (maybe_kept_.load(sync::relaxed) == 0) [[likely]] // a hint
            return nullptr;
        const base::SpinGuard guard(kept_lock_);
        Machine *machine = kept_;
        if (machine != nullptr)
            kept_ = machine->next;
        if (kept_ == nullptr)
            maybe_kept_.store(0, sync::relaxed);
        return machine;
    }

    // any thread (atomic)
    sync::atomic<Word *> chunks_[chunks] = {};
    sync::atomic<uint32_t> last_{0};
    sync::atomic<uint32_t> maybe_kept_{0};
    base::Spinlock places_lock_; // innermost: nobody is called but the allocator, which calls nothing of this runtime's
    Places places_;              // guarded by places_lock_
    base::Spinlock kept_lock_;   // innermost
    Machine *kept_ = nullptr;    // guarded by kept_lock_
};

// First in, first out; a machine is in it once. Stepped.
class ReadyQueue {
public:
    uint32_t length() const noexcept { return length_; }
    bool empty() const noexcept { return first_ == nullptr; }

    void push(Machine &machine) noexcept {
        machine.queued = true;
        machine.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &machine;
        last_ = &machine;
        ++length_;
    }

    // What pop has returned is first again.
    void push_front(Machine &machine) noexcept {
        machine.queued = true;
        machine.next = first_;
        if (first_ == nullptr)
            last_ = &machine;
        first_ = &machine;
        ++length_;
    }

    // The machine that is first; it may have stopped. The queue is not empty.
    Machine *pop() noexcept {
        Machine *machine = first_;
        first_ = machine->next;
        machine->queued = false;
        --length_;
        return machine;
    }

private:
    Machine *first_ = nullptr;
    Machine *last_ = nullptr; // of a queue that is not empty
    uint32_t length_ = 0;
};

// Machines that have become ready, or polled ones that have mail, in their order, linked through `next`; on their way to the host. Attached.
struct ReadyChain {
    void push(Machine &machine) noexcept {
        machine.next = nullptr;
        (first == nullptr ? first : last->next) = &machine;
        last = &machine;
    }
    bool empty() const noexcept { return first == nullptr; }

    Machine *first = nullptr;
    Machine *last = nullptr; // of one that is not empty
};

} // namespace mc::machine
