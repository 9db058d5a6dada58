// The systematic twin's memory: what an atomic load may return. A model of C++20's orders by views, without threads,
// choices or clocks.
//
// Callers: the engine, on the exploring OS thread.
//
// A location keeps its last stores, each with a stamp (its place in the location's modification order). A thread has
// a view: for each location the oldest stamp that it may still read. So
//  - a load may return any kept store that is not older than the thread's view: one mechanism for store buffers and
//    stale loads;
//  - a release store carries the writer's view; an acquire load that reads it joins that view into its own;
//  - a read-modify-write reads the newest store, and its message includes that of the store that it replaces (release
//    sequences);
//  - a seq_cst load reads nothing older than what a seq_cst operation on the same location has written or read before.
//    That is all that seq_cst adds: it orders seq_cst operations among themselves, and does not flush what else a
//    thread has stored. (Joining whole views at each seq_cst operation would be simpler, and would hide the bug of a
//    relaxed store that is followed by a seq_cst load.)
//  - a relaxed store carries nothing. There are no fences in sync.hpp, so there are none here.
//
// Not modelled, so mutants that only these would catch survive: stores that take a place in the modification order
// before stores that exist already (two threads that each write both of two words), and loads of values that are
// stored later (load buffering, reordered relaxed read-modify-writes).
//
// Views also say what has happened before what (each thread has a component of its own), which serves the race check
// of plain data.
#pragma once

#include "base/sync.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace mc::testing::sys {

using Stamp = std::uint32_t;
using LocationId = std::uint32_t;

inline constexpr unsigned max_threads = 16;
inline constexpr unsigned kept_stores = 8; // how far back a load can see

// Adds a value to a hash.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

inline bool acquires(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst || order == std::memory_order_consume;
}
inline bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}
inline bool sequential(std::memory_order order) { return order == std::memory_order_seq_cst; }

// Component -> stamp; absent is 0. The first max_threads components are the threads' own, then come the locations.
class View {
public:
    Stamp at(std::uint32_t component) const { return component < seen_.size() ? seen_[component] : 0; }
    void raise(std::uint32_t component, Stamp stamp) {
        if (component >= seen_.size())
            seen_.resize(component + 1);
        seen_[component] = std::max(seen_[component], stamp);
    }
    void join(const View &other) {
        if (seen_.size() < other.seen_.size())
            seen_.resize(other.seen_.size());
        for (std::size_t i = 0; i < other.seen_.size(); ++i)
            seen_[i] = std::max(seen_[i], other.seen_[i]);
    }
    void clear() { seen_.clear(); } // keeps the capacity

private:
    std::vector<Stamp> seen_;
};

// A point in a thread's life, by its component of views; whoever's view has it has seen what came before.
struct Moment {
    int thread = -1; // nobody's
    Stamp stamp = 0;

    bool seen_in(const View &view) const { return thread < 0 || view.at(static_cast<unsigned>(thread)) >= stamp; }
};

struct Store {
    std::uint64_t value = 0;
    std::uint64_t id = 0; // which operation of which thread wrote it
    View message;         // what an acquire load of this store learns
};

struct Location {
    // Immutable during the word's life.
    const void *address = nullptr;
    unsigned size = 0;
    LocationId id = 0;         // its component of views; the same for all words that live at this address
    std::uint32_t ordinal = 0; // numbers the words of a run in the order of first use; never depends on an address
    const char *label = nullptr;

    // A word's life begins at stamp `born`, so that nothing is seen of the words that lived here before.
    Stamp born = 0;
    Stamp newest = 0;
    Stamp sequential_floor = 0;
    Store kept[kept_stores]; // by stamp modulo kept_stores
    bool fresh = true;       // a new life begins at the next use
    bool dead = false;       // destroyed, and not constructed again
    Moment made;             // by its constructor; nobody: static, or memory that was zeroed
    Stamp used[max_threads]; // when each thread used it last, by that thread's component

    std::uint64_t history = 0; // the ids of its stores, in order
    std::uint64_t share = 0;   // its part of Memory::state()

    // When it is a mutex, or a futex.
    int owner = -1;
    View message; // of the last unlock

    Store &store(Stamp stamp) { return kept[stamp % kept_stores]; }
    std::uint64_t value() { return store(newest).value; }
};

class Memory {
public:
    Memory();
    void reset();

    // The location of a word, brought up to date with the memory: a word that was constructed, zeroed or written as
    // plain memory since its last use begins a new life with what stands there. The reference is good until the next
    // call.
    Location &word(const void *at, unsigned size);
    // The same for a mutex, whose bytes mean nothing.
    Location &mutex(const void *at);
    // A word's constructor and destructor. The next use of the address begins a new life; with nothing constructed or
    // written there since the destructor, the location comes back dead.
    void construct(const void *at, Moment when);
    void destroy(void *at, unsigned size);
    // Null when there was never an operation on it.
    Location *known(const void *at);
    void set_label(const void *at, const char *label) { find_or_create(at).label = label; }

    // How many stores a load may choose from; 1: the newest alone.
    unsigned visible(const Location &, const View &, std::memory_order) const;
    // The load; steps_back < visible().
    std::uint64_t read(Location &, View &, unsigned steps_back, std::memory_order);
    void write(Location &, View &, std::uint64_t value, std::memory_order);
    // A read-modify-write that replaces the newest store; returns what it read.
    std::uint64_t update(Location &, View &, std::uint64_t value, std::memory_order);

    // A hash of all words' modification orders, whatever the order of operations on different words was. Who has
    // written, locked or read in sequential order says so by wrote() or settle().
    std::uint64_t state() const { return state_; }
    void wrote(Location &, std::uint64_t id);
    void settle(Location &);

    // Bits as they stand in memory.
    static std::uint64_t peek(const void *at, unsigned size);
    static std::uint64_t poison(unsigned size) { return 0xDEADDEADDEADDEADu >> (64 - 8 * size); }
    static void poke(void *at, unsigned size, std::uint64_t value);

private:
    struct Slot {
        const void *address = nullptr;
        std::uint32_t run = 0; // of another run: empty
        std::uint32_t index = 0;
    };

    Location &find_or_create(const void *at);
    Slot &slot_of(const void *at);
    void grow_table();
    void begin_life(Location &, unsigned size);
    Store &append(Location &, View &, std::uint64_t value, std::memory_order);

    std::unordered_map<const void *, Moment> constructed_; // and not used yet
    std::vector<Slot> table_;                              // open addressing, a power of two
    std::vector<Location> locations_;
    std::uint32_t used_ = 0; // locations of this run; those beyond keep their capacity for later ones
    std::uint32_t run_ = 0;
    std::uint32_t words_ = 0; // ordinals given out
    std::uint64_t state_ = 0;
};

} // namespace mc::testing::sys
