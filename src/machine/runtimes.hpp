// The runtimes of a process, by the words that name them: addresses of mc_machine_runtime_t. Every call looks its word up
// here before anything else is done with it, so a stale or random word finds nothing.
//
// Callers: find, any thread at any time, also while others add and remove; it takes no lock. add and remove take the registries'
// mutex (registry.hpp).
//
// The table is open-addressed, at most half full, and changes under a count that is odd meanwhile: a reader that saw it
// change looks again. A larger table replaces it when it is full; the old ones stay, for readers, and are together
// smaller. The memory behind a word is never looked at: the library's own lie in pages that nobody writes, so they cost
// addresses, not memory, and can be given out once only.
//
// Rejected: a mark in the 192 bytes, reading a random address crashes; a lock around find, every call would pay for it.
#pragma once

#include "base/sync.hpp"
#include "machine/engine.hpp"

#include <cstdint>

namespace mc::machine {

// What a word names: a runtime that is stepped, one that is attached, which is behind its host, or none.
class Runtime {
public:
    Runtime() noexcept = default;
    explicit Runtime(Engine<Seq> *engine) noexcept : bits_(reinterpret_cast<uintptr_t>(engine)) {}
    explicit Runtime(Host *host) noexcept : bits_(reinterpret_cast<uintptr_t>(host) | attached) {}

    explicit operator bool() const noexcept { return bits_ != 0; }
    bool is_attached() const noexcept { return (bits_ & attached) != 0; }
    Engine<Seq> *engine() const noexcept { return reinterpret_cast<Engine<Seq> *>(bits_); } // null for none
    Host *host() const noexcept { return reinterpret_cast<Host *>(bits_ & ~attached); }
    bool operator==(const Runtime &) const noexcept = default;

private:
    static constexpr uintptr_t attached = 1;
    uintptr_t bits_ = 0;
};

namespace runtimes {

struct Entry {
    sync::atomic<uint64_t> word{0}; // 0: none
    sync::atomic<Runtime> runtime{Runtime()};
};

struct Array {
    uint64_t mask = 0;
    Array *smaller = nullptr; // so that a leak checker sees it
    Entry *entries = nullptr;
};

// any thread (atomic); written under the registries' mutex
extern sync::atomic<uint64_t> changes; // odd while the table changes
extern sync::atomic<Array *> current;

inline uint64_t home(uint64_t word) noexcept { return (word * 0x9e3779b97f4a7c15u) >> 32; }
Runtime look_further(uint64_t word) noexcept;

} // namespace runtimes

// Most words are where they belong, while nothing changes: a call of the library begins with this.
inline Runtime find_runtime(uint64_t word) noexcept {
    const uint64_t before = runtimes::changes.load(sync::acquire);        // acquire: pairs with ~Change
    const runtimes::Array *array = runtimes::current.load(sync::acquire); // acquire: pairs with grow
    if (array == nullptr || before % 2 != 0) [[unlikely]]
        return runtimes::look_further(word);
    const runtimes::Entry &entry = array->entries[runtimes::home(word) & array->mask];
    const uint64_t seen = entry.word.load(sync::acquire);      // acquire, both: pair with put's releases; see Change
    const Runtime runtime = entry.runtime.load(sync::acquire); // of no word: none
    if (seen == word && runtimes::changes.load(sync::relaxed) == before) [[likely]] // after those acquires
        return runtime;
    return runtimes::look_further(word);
}

// False: no memory. There is none of that name.
[[nodiscard]] bool add_runtime(uint64_t word, Runtime runtime) noexcept;
// The one of that name, which has none from now on.
Runtime remove_runtime(uint64_t word) noexcept;
// The name is another one's, if it was that one's. False: it was not.
[[nodiscard]] bool replace_runtime(uint64_t word, Runtime from, Runtime to) noexcept;

// A name that was never given out. 0: no addresses are left.
uint64_t new_runtime_word() noexcept;

} // namespace mc::machine
