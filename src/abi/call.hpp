// What every exported function starts with: the calling thread's context, made at its first call.
#pragma once

#include "sched/runtime.hpp"

#include <mc/base.h>

namespace mc::abi {

// A pointer of mc/csp.h: 0 in the bits that must be clear, `side` in bit 0.
template <class Handle> bool is_handle(Handle handle, uintptr_t side) noexcept {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    return word > 15 && (word & 15) == side;
}

// The context, or null with the code in *status.
inline sched::ThreadContext *enter(int32_t *status) noexcept {
    sched::ThreadContext *thread = sched::current();
    return thread != nullptr ? thread : sched::attach(status); // attach is cold and out of line
}

// MC_OK for the runtimes that a call may name: 0, which is the default one.
inline int32_t check_runtime(mc_runtime_t rt) noexcept { return rt == 0 ? MC_OK : MC_E_STALE; }

} // namespace mc::abi
