// A runtime's machines by id: a machine is where it is until it stops, whatever is spawned meanwhile, and an id is never used
// again. What is left of a stopped machine is its word here, 8 bytes.
//
//   word     machine's address | stopped: bit 0, and while it is in the ready queue still: bit 1, the next id in bits 32 to 63
//
// Words lie in chunks that double (64, 128, ...) and never move, so a directory of 27 pointers is enough for all ids, and
// growing copies nothing.
//
// The ready queue is a list of ids through machines, or through the words of those that stopped while they were in it: an
// entry may be stale, and is skipped when its turn comes.
#pragma once

#include "base/alloc.hpp"
#include "base/list.hpp"
#include "machine/mailbox.hpp"
#include "machine/pending.hpp"
#include "machine/subscriptions.hpp"

#include <mc/machine.h>

#include <bit>
#include <cstdint>

namespace mc::machine {

// What a machine's envelopes go to.
enum class Binding : uint8_t { none, function, thunk, descriptor };

// A machine that has not stopped. Guarded by its lock but for what says otherwise.
template <class Sync> struct Machine {
    Machine(uint32_t number, uint32_t mailbox_bound) noexcept : id(number), mail(mailbox_bound) {}

    const uint32_t id;
    uint32_t next_ready = 0; // in the ready queue; guarded by that
    uint8_t lifecycle = MC_MACHINE_CREATED;
    Binding binding = Binding::none;
    bool queued = false;      // in the ready queue; guarded by that
    bool dispatching = false; // its handler runs: queued when that is over, behind those that it sent to
    [[no_unique_address]] typename Sync::Lock lock;
    uint64_t state = 0;
    uint64_t tag = 0;    // of the state, for a descriptor's rows
    uint64_t target = 0; // function, thunk's id, or descriptor's address
    void *context = nullptr;
    Mailbox mail;
    base::List<Row, OfMachine> rows; // its pending requests, the oldest first
    base::List<Subscription, OfMachine> subscriptions;

    bool takes_mail() const noexcept { return lifecycle <= MC_MACHINE_RUNNING; }
    bool runs() const noexcept { return lifecycle == MC_MACHINE_RUNNING; }
};

template <class Sync> class Table {
public:
    using Machine = machine::Machine<Sync>;

    Table() noexcept = default;
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;
    ~Table() {
        for (uint32_t chunk = 0; chunk < chunks; ++chunk)
            base::deallocate_array(chunks_[chunk], chunk_words(chunk));
    }

    bool was_given_out(uint32_t id) const noexcept { return id != 0 && id <= last_; }
    uint32_t last() const noexcept { return last_; }

    // Null: there never was one, or it has stopped.
    Machine *find(uint32_t id) const noexcept {
        if (!was_given_out(id))
            return nullptr;
        const uint64_t word = at(id).get();
        return (word & stopped) != 0 ? nullptr : reinterpret_cast<Machine *>(word);
    }

    // 0: no memory, or all ids are used up.
    uint32_t add(uint32_t mailbox_bound) noexcept {
        if (last_ == UINT32_MAX)
            return 0;
        const Place place = place_of(last_ + 1);
        if (chunks_[place.chunk] == nullptr) {
            chunks_[place.chunk] =
                base::allocate_array<Word>(chunk_words(place.chunk)); // written when its id is given out
            if (chunks_[place.chunk] == nullptr)
                return 0;
        }
        Machine *machine = base::create<Machine>(last_ + 1, mailbox_bound);
        if (machine == nullptr)
            return 0;
        Word *word = new (&chunks_[place.chunk][place.offset]) Word();
        word->set(reinterpret_cast<uintptr_t>(machine));
        return ++last_;
    }

    // Its id says from now on that it has stopped.
    void remove(Machine *machine) noexcept {
        at(machine->id).set(stopped | (machine->queued ? still_queued | uint64_t{machine->next_ready} << 32 : 0));
        base::destroy(machine);
    }

    // --- the ready queue's links

    void set_next_ready(uint32_t id, uint32_t next) noexcept {
        if (Machine *machine = find(id); machine != nullptr)
            machine->next_ready = next;
        else
            at(id).set(stopped | still_queued | uint64_t{next} << 32);
    }
    // Of one that was queued when it stopped, and no longer is.
    uint32_t take_next_of_stopped(uint32_t id) noexcept {
        const uint64_t word = at(id).get();
        at(id).set(stopped);
        return static_cast<uint32_t>(word >> 32);
    }

    // For tests of the last ids.
    void skip_to(uint32_t id) noexcept { last_ = id; }

private:
    using Word = typename Sync::template Word<uint64_t>;
    static constexpr uint64_t stopped = 1;
    static constexpr uint64_t still_queued = 2;
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
        const uint32_t bits = 63u - static_cast<uint32_t>(std::countl_zero(shifted));
        return {bits - first_bits, static_cast<uint32_t>(shifted - (uint64_t{1} << bits))};
    }
    static size_t chunk_words(uint32_t chunk) noexcept { return size_t{1} << (chunk + first_bits); }
    Word &at(uint32_t id) const noexcept {
        const Place place = place_of(id);
        return chunks_[place.chunk][place.offset];
    }

    Word *chunks_[chunks] = {};
    uint32_t last_ = 0;
};

// First in, first out; a machine is in it once.
template <class Sync> class ReadyQueue {
public:
    uint32_t length() const noexcept { return length_; }

    void push(Table<Sync> &table, Machine<Sync> &machine) noexcept {
        machine.queued = true;
        machine.next_ready = 0;
        if (tail_ != 0)
            table.set_next_ready(tail_, machine.id);
        else
            head_ = machine.id;
        tail_ = machine.id;
        ++length_;
    }

    bool empty() const noexcept { return head_ == 0; }

    // The machine that is first; null: it has stopped. The queue is not empty.
    Machine<Sync> *pop(Table<Sync> &table) noexcept {
        const uint32_t id = head_;
        Machine<Sync> *machine = table.find(id);
        if (machine != nullptr) [[likely]] {
            head_ = machine->next_ready;
            machine->queued = false;
        } else {
            head_ = table.take_next_of_stopped(id);
        }
        if (head_ == 0)
            tail_ = 0;
        --length_;
        return machine;
    }

    // All of another one, behind this one's; that one is empty then.
    void append(Table<Sync> &table, ReadyQueue &other) noexcept {
        if (other.head_ == 0)
            return;
        if (tail_ != 0)
            table.set_next_ready(tail_, other.head_);
        else
            head_ = other.head_;
        tail_ = other.tail_;
        length_ += other.length_;
        other = ReadyQueue();
    }

private:
    uint32_t head_ = 0;
    uint32_t tail_ = 0;
    uint32_t length_ = 0;
};

} // namespace mc::machine
