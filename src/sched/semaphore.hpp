// Counting semaphore, wait group and once. Each does everything under its lock; see primitive.hpp. Any thread.
#pragma once

#include "sched/primitive.hpp"

namespace mc::sched {

// Units, given out first come, first served: one who asks for more than there are holds up those behind it, so that it
// comes to its turn.
struct Semaphore : Primitive<Semaphore> {
    static constexpr base::HandleKind kind = base::HandleKind::semaphore;
    static constexpr WaitKind wait_kind = WaitKind::semaphore;

    // guarded by lock
    uint64_t units = 0;

    bool busy() const noexcept { return false; }
};

int32_t create_semaphore(uint64_t units, uint64_t *out) noexcept;
int32_t acquire_units(ThreadContext &thread, uint64_t handle, uint32_t count, int64_t deadline_ns) noexcept;
int32_t release_units(uint64_t handle, uint32_t count) noexcept; // MC_E_LIMIT: more than 2^63 - 1 in all

// A number of things that are not done; who waits goes on when there are none.
struct WaitGroup : Primitive<WaitGroup> {
    static constexpr base::HandleKind kind = base::HandleKind::wait_group;
    static constexpr WaitKind wait_kind = WaitKind::wait_group;

    // guarded by lock
    int64_t open = 0;

    bool busy() const noexcept { return open != 0; }
};

int32_t create_wait_group(int64_t open, uint64_t *out) noexcept;
int32_t add_to_wait_group(uint64_t handle, int64_t delta) noexcept;
int32_t wait_for_group(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept;

// Something that is to be done once: who comes first does it, the others wait for that; when it fails, the next one tries.
struct Once : Primitive<Once> {
    static constexpr base::HandleKind kind = base::HandleKind::once;
    static constexpr WaitKind wait_kind = WaitKind::once;
    enum class State : uint32_t { open, running, done };

    // guarded by lock
    State state = State::open;
    const Task *runner = nullptr;
    uint32_t returning = 0; // woken to try, and not yet there

    bool busy() const noexcept { return state == State::running || returning != 0; }
};

int32_t create_once(uint64_t *out) noexcept;
int32_t run_once(ThreadContext &thread, uint64_t handle, int32_t (*fn)(void *), void *user,
                 int64_t deadline_ns) noexcept;

} // namespace mc::sched
