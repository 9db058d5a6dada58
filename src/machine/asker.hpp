// Who asks a machine and waits for the answer, and is none itself: a microthread, or another thread. It owns a pending request
// in place of a machine, as long as the request is active; whoever ends that (a reply, a timeout, the asker who gives up)
// does so under its lock, so exactly one does.
//
// Type-stable: who has found an asker through a row may lock it at any time, and then looks whether the row is still there.
// Attached runtimes only.
#pragma once

#include "base/slab.hpp"

#include <mc/machine.h>

#include <cstdint>

namespace mc::machine {

// Whom to wake, in the host's words.
struct Waker {
    void *task = nullptr;
    uint64_t epoch = 0;
};

struct Asker : base::SlabItem<Asker> {
    enum class State : uint8_t {
        waits,    // the row is active
        answered, // the answer is there, and holds its boxes
        ended,    // without one
    };

    base::Spinlock lock;
    // guarded by lock
    State state = State::ended;
    uint64_t pending = 0; // the row's id
    Waker waker;          // when the task waits
    mc_machine_envelope_t answer = {};
};

using AskerSlab = base::Slab<Asker>;
AskerSlab &asker_slab() noexcept;

} // namespace mc::machine
