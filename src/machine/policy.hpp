// How an engine synchronises: the parameter of its template. Seq is for runtimes that are stepped, by one thread at a time:
// nothing is locked and nothing is atomic. What a policy for executors supplies stands beside each member; the places where
// the engine uses it are the ones that architecture.md's "Machine commit" names.
#pragma once

#include <cstdint>

namespace mc::machine {

struct Seq {
    // Many threads at once: then a commit gathers its parties before it checks anything.
    static constexpr bool shared = false;

    // A word that others may read while it is written. Elsewhere: an atomic, release and acquire.
    template <class T> class Word {
    public:
        T get() const noexcept { return value_; }
        void set(T value) noexcept { value_ = value; }

    private:
        T value_{};
    };

    // Of one machine: mailbox, lifecycle, state, its pending rows. Elsewhere: a lock that spins, then sleeps.
    struct Lock {};

    // The machines that a commit touches, locked in ascending order, each once. Elsewhere: lock, unlock, and revalidate.
    class Parties {
    public:
        template <class Machine> void add(Machine &) noexcept {}
        void lock() noexcept {}
        void unlock() noexcept {}
    };
};

} // namespace mc::machine
