// Whom an operation on an attached runtime touches, locked together.
//
// The rules, for every operation, transactions and direct calls alike:
//   1  parts of the subscriptions, ascending, when topics are concerned
//   2  machines, by ascending id, each once; after them askers, likewise
//   3  the lock of orphans: requests whose requester is no machine any more, or not yet; and of new ids
//   4  one at a time, and nothing else under it: parts of pending and boxes, a host's queue, what is kept, what waits for room
// Who has locked a machine that he has found by its id looks at the id again; it may have stopped, and be another one. When it is,
// he gives everything back and looks anew, without waiting for a further lock while he holds one that is not what he meant:
// so a machine that is kept for reuse is never part of a cycle of waits.
//
// Nothing locked is ever given up for a while and taken again within an operation, so every operation is two-phase, and all of
// them are serialisable in the order in which they held all their locks.
#pragma once

#include "machine/asker.hpp"
#include "machine/emit.hpp"
#include "machine/table.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mc::machine {

// Two machines, or one, or the second is nobody: what most transactions touch. By the same rules, without a list of them.
class TwoParties {
public:
    TwoParties(uint32_t id, Machine &machine, uint32_t other_id, Machine *other) noexcept
        : first_(&machine), second_(other == &machine ? nullptr : other), first_id_(id), second_id_(other_id) {
        if (second_ != nullptr && second_id_ < first_id_) {
            std::swap(first_, second_);
            std::swap(first_id_, second_id_);
        }
    }
    TwoParties(const TwoParties &) = delete;
    TwoParties &operator=(const TwoParties &) = delete;

    // As Parties'.
    [[nodiscard]] bool lock() noexcept {
        first_->lock.lock();
        if (first_->id != first_id_) [[unlikely]] {
            first_->lock.unlock();
            return false;
        }
        if (second_ == nullptr)
            return true;
        second_->lock.lock();
        if (second_->id == second_id_) [[likely]]
            return true;
        unlock();
        return false;
    }
    void unlock() noexcept {
        first_->lock.unlock();
        if (second_ != nullptr)
            second_->lock.unlock();
    }

private:
    Machine *first_;
    Machine *second_;
    uint32_t first_id_;
    uint32_t second_id_;
};

class Parties {
public:
    Parties() noexcept = default;
    Parties(const Parties &) = delete;
    Parties &operator=(const Parties &) = delete;

    void clear() noexcept { parties_.clear(); }
    // Room for so many more calls of add. False: no memory.
    [[nodiscard]] bool reserve(uint64_t more) noexcept { return parties_.reserve(more); }
    // Null is nobody. `id` is what the machine was found by.
    void add(uint32_t id, Machine *machine) noexcept {
        if (machine != nullptr)
            parties_.push({id, &machine->lock, machine});
    }
    void add(Asker &asker) noexcept { parties_.push({first_asker + asker.slab_index, &asker.lock, nullptr}); }

    // Locks them all. False: a machine is not the one that was meant any more, and nothing is locked.
    [[nodiscard]] bool lock() noexcept {
        if (parties_.size() > 1)
            sort();
        for (uint32_t i = 0; i < parties_.size(); ++i) {
            const Party &party = parties_[i];
            party.lock->lock();
            if (party.machine == nullptr || party.machine->id == party.key) [[likely]]
                continue;
            for (uint32_t back = i + 1; back != 0; --back)
                parties_[back - 1].lock->unlock();
            return false;
        }
        return true;
    }
    void unlock() noexcept {
        for (const Party &party : parties_)
            party.lock->unlock();
    }

    // Is it locked? The machine is what the id finds now.
    bool hold(uint32_t id, const Machine &machine) noexcept { return holds(id, &machine.lock); }
    bool hold(const Asker &asker) noexcept { return holds(first_asker + asker.slab_index, &asker.lock); }

private:
    static constexpr uint64_t first_asker = uint64_t{1} << 33; // behind all machines

    struct Party {
        uint64_t key;
        base::Spinlock *lock;
        Machine *machine; // null: an asker
    };

    bool holds(uint64_t key, const base::Spinlock *lock) noexcept {
        Party *at = parties_.begin();
        if (parties_.size() > 8)
            at =
                std::lower_bound(at, parties_.end(), key, [](const Party &party, uint64_t k) { return party.key < k; });
        for (; at != parties_.end() && at->key <= key; ++at)
            if (at->key == key)
                return at->lock == lock;
        return false;
    }

    // Ascending, each once.
    void sort() noexcept {
        auto before = [](const Party &a, const Party &b) { return a.key < b.key; };
        if (parties_.size() == 2) {
            if (parties_[1].key < parties_[0].key)
                std::swap(parties_[0], parties_[1]);
        } else {
            std::sort(parties_.begin(), parties_.end(), before);
        }
        uint32_t kept = 1;
        for (uint32_t i = 1; i < parties_.size(); ++i)
            if (parties_[i].key != parties_[kept - 1].key)
                parties_[kept++] = parties_[i];
        while (parties_.size() > kept)
            parties_.pop();
    }

    Staging<Party, 8> parties_;
};

} // namespace mc::machine
