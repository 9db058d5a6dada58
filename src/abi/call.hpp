// What every exported function starts with: the calling thread's context, made at its first call.
#pragma once

#include "sched/runtime.hpp"
#include "sched/runtimes.hpp"
#include "sched/switch.hpp"

#include <mc/base.h>

namespace mc::abi {

// A pointer of mc/csp.h: 0 in the bits that must be clear, `side` in bit 0.
template <class Handle> bool is_handle(Handle handle, uintptr_t side) noexcept {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    return word > 15 && (word & 15) == side;
}

// As sched::attach. Here, so that whatever is linked with an archive has what reads the environment, too (sim.cpp).
sched::ThreadContext *attach(int32_t *status) noexcept;

// The context, or null with the code in *status. A thread that was one of many owns the runtime from here on when its
// owner has ended, or what it waits for might never run; inside tx it stays what it is, since its call is under way.
inline sched::ThreadContext *enter(int32_t *status) noexcept {
    sched::ThreadContext *thread = sched::current();
    if (thread == nullptr)
        return attach(status); // cold and out of line
    return thread->executor != nullptr || thread->no_switch != 0 ? thread : sched::take_over(thread, status);
}

// A call that does not wait, for the calling task.
template <class Act> int32_t with_task(Act act) noexcept {
    int32_t status = MC_OK;
    sched::ThreadContext *thread = enter(&status);
    return thread == nullptr ? status : act(*sched::begin_call(thread, false)->running);
}

// A call that may wait: it counts as a reduction, unless it is not to wait.
template <class Act> int32_t with_waiting_thread(int64_t deadline_ns, Act act) noexcept {
    int32_t status = MC_OK;
    sched::ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    return act(*sched::begin_call(thread, deadline_ns != MC_NOW));
}

// A call on a runtime, by handle (0: the calling task's, else the default one): act(thread, pool).
template <class Act> int32_t with_runtime(mc_runtime_t rt, Act act) noexcept {
    int32_t status = MC_OK;
    sched::ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    sched::Pool *pool = sched::find_pool(*thread, rt);
    return pool == nullptr ? MC_E_STALE : act(*thread, *pool);
}

} // namespace mc::abi
