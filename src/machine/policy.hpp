// How an engine synchronises: the parameter of its template. Seq is for runtimes that are stepped, by one thread at a time:
// nothing is locked. Par is for runtimes that are attached to executors, where any thread may call at any time: what an
// operation touches is locked, by the rules in parties.hpp.
#pragma once

#include "base/spinlock.hpp"

namespace mc::machine {

struct Seq {
    static constexpr bool shared = false;

    class Guard {
    public:
        explicit Guard(base::Spinlock &) noexcept {}
    };
};

struct Par {
    static constexpr bool shared = true;

    using Guard = base::SpinGuard;
};

} // namespace mc::machine
