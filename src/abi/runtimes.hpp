// What the functions of mc/machine.h and mc/bridge.h start with: a runtime by its word or pointer, and the slot of the
// calling task that emitted effects go to.
#pragma once

#include "abi/call.hpp"
#include "machine/runtimes.hpp"

#include <mc/machine.h>

namespace mc::abi {

inline machine::Runtime *machine_runtime(uint64_t word) noexcept { return machine::find_runtime(word); }
inline machine::Runtime *machine_runtime(const mc_machine_runtime_t *rt) noexcept {
    return machine::find_runtime(reinterpret_cast<uintptr_t>(rt));
}

// A machine's id; 0, which is nobody's, for one that is none.
inline uint32_t machine_id(uint64_t word) noexcept { return word > UINT32_MAX ? 0 : static_cast<uint32_t>(word); }

// Of the calling task: a microthread's, or the one that a thread's own stack is. Null: the thread is unknown and cannot
// be made known (no memory, a forked child).
inline void **emit_slot() noexcept {
    sched::ThreadContext *thread = sched::current();
    if (thread == nullptr) [[unlikely]] {
        int32_t status = MC_OK;
        thread = attach(&status);
    }
    return thread == nullptr ? nullptr : &thread->running->emits_to;
}

// Makes a runtime of that name; false: no memory.
bool begin_machine_runtime(uint64_t word) noexcept;
// Ends the one of that name, if there is one.
void end_machine_runtime(uint64_t word) noexcept;
// bridge.cpp: should it be the managed one, there is none from now on.
void forget_managed(uint64_t word) noexcept;

} // namespace mc::abi
