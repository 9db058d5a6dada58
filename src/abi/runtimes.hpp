// What the functions of mc/machine.h and mc/bridge.h start with: a runtime by its word or pointer, and the slot of the
// calling task that emitted effects go to.
#pragma once

#include "abi/call.hpp"
#include "machine/runtimes.hpp"

#include <mc/machine.h>

namespace mc::abi {

inline uint64_t word_of(uint64_t word) noexcept { return word; }
inline uint64_t word_of(const mc_machine_runtime_t *rt) noexcept { return reinterpret_cast<uintptr_t>(rt); }

template <class Result, class Act>
Result with_attached(machine::Host &host, uint64_t word, Result otherwise, Act act) noexcept {
    machine::Engine<machine::Par> *engine = host.pin(word);
    if (engine == nullptr)
        return otherwise;
    const Result result = static_cast<Result>(act(*engine));
    host.unpin();
    return result;
}

// act(engine), whichever kind it is, or `otherwise` when no runtime has the name.
template <class Handle, class Result, class Act>
__attribute__((always_inline)) inline Result with_machines(Handle rt, Result otherwise, Act act) noexcept {
    const machine::Runtime runtime = machine::find_runtime(word_of(rt));
    if (!runtime) [[unlikely]]
        return otherwise;
    if (runtime.is_attached()) [[unlikely]]
        return with_attached(*runtime.host(), word_of(rt), otherwise, act);
    return static_cast<Result>(act(*runtime.engine()));
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

// One step of one that is stepped; IDLE otherwise.
template <class Handle>
mc_machine_step_status_t step_machines(Handle rt, mc_machine_dispatch_txn_fn fn, void *context) noexcept {
    const machine::Runtime runtime = machine::find_runtime(word_of(rt));
    if (!runtime || runtime.is_attached())
        return MC_STEP_IDLE;
    void **slot = emit_slot();
    return slot == nullptr ? MC_STEP_IDLE : runtime.engine()->step(fn, context, slot);
}

// Makes a runtime of that name; false: no memory.
bool begin_machine_runtime(uint64_t word) noexcept;
// Ends the one of that name, if there is one.
void end_machine_runtime(uint64_t word) noexcept;
// bridge.cpp: should it be the managed one, there is none from now on.
void forget_managed(uint64_t word) noexcept;

} // namespace mc::abi
