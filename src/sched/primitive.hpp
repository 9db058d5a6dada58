// What the blocking primitives share: a slot in a type-stable slab, a handle, a lock that a parking task carries, and a list
// of waiters. Everything but the mutex's fast path is done under the lock, with the handle's generation checked there. Any
// thread.
#pragma once

#include "base/handle.hpp"
#include "base/slab.hpp"
#include "sched/runtime.hpp"
#include "sched/scope.hpp"
#include "sched/wait_list.hpp"

#include <mc/base.h>

#include <cstdint>
#include <new>

namespace mc::sched {

template <class T> struct Primitive : base::SlabItem<T>, base::HandleItem {
    base::Spinlock lock;
    WaitList waiting; // guarded by lock

    void forget() noexcept { // see leave_behind
        new (&lock) base::Spinlock();
        new (&waiting) WaitList();
    }
};

// T::kind is its handle kind, T::wait_kind what a report says of those that wait for it.
template <class T> base::Slab<T> &slab_of() noexcept {
    static constinit base::Slab<T> slab;
    return slab;
}

// Sets a fresh one up by begin(T &), before anybody can know its handle.
template <class T, class Begin> int32_t create_primitive(uint64_t *out, Begin begin) noexcept {
    T *item = slab_of<T>().acquire();
    if (item == nullptr)
        return MC_E_NOMEM;
    begin(*item);
    *out = base::issue_handle(item, T::kind);
    return MC_OK;
}

// The item behind the handle with its lock held, or null when the handle is stale.
template <class T> T *lock_primitive(uint64_t handle) noexcept {
    T *item = base::resolve_handle(slab_of<T>(), T::kind, handle);
    if (item == nullptr)
        return nullptr;
    item->lock.lock();
    if (item->generation.load(sync::relaxed) == base::handle_generation(handle))
        return item;
    item->lock.unlock();
    return nullptr;
}

// MC_E_BUSY while somebody waits for it, or T::busy().
template <class T> int32_t destroy_primitive(uint64_t handle) noexcept {
    T *item = lock_primitive<T>(handle);
    if (item == nullptr)
        return MC_E_STALE;
    if (!item->waiting.empty() || item->busy()) {
        item->lock.unlock();
        return MC_E_BUSY;
    }
    const bool reusable = base::retire_handle(item);
    item->lock.unlock();
    if (reusable)
        slab_of<T>().release(item);
    return MC_OK;
}

// MC_OK, or why the calling task can not wait now: its deadline has passed, or where it stands.
inline int32_t refuse_to_wait(const ThreadContext &thread, int64_t deadline_ns) noexcept {
    if (deadline_ns != MC_FOREVER && deadline_ns <= sync::now_ns())
        return MC_E_TIMEDOUT;
    return may_block(thread);
}

// The same for what is done without a lock: also when a scope, or else the task's own, is cancelled.
inline int32_t refuse_to_begin(const ThreadContext &thread, int64_t deadline_ns, Scope *scope) noexcept {
    const int32_t refused = refuse_to_wait(thread, deadline_ns);
    if (refused != MC_OK)
        return refused;
    Scope *cancels = scope != nullptr ? scope : thread.running->scope;
    return cancels != nullptr && cancels->cancelled() ? MC_E_CANCELED : MC_OK;
}

// Under the lock, which it gives back. When the wait has not been granted, ended(T &) is called under the lock, with the
// waiter off the list, and fills `taken` with whom that lets go on.
template <class T, class Ended>
int32_t wait_for(ThreadContext &thread, T &item, Waiting &waiting, int64_t deadline_ns, Ended ended,
                 WaitKind kind = T::wait_kind, WaitList::At at = WaitList::At::back) noexcept {
    const int32_t refused = refuse_to_wait(thread, deadline_ns);
    if (refused != MC_OK) {
        item.lock.unlock();
        return refused;
    }
    Parking parking(nullptr, deadline_ns, nullptr);
    parking.waits_for = WaitsFor(kind, &item);
    const WakeReason reason = item.waiting.wait(thread, item.lock, waiting, at, parking);
    if (reason == WakeReason::ready)
        return waiting.task->wake_value;
    WaitList::Taken taken;
    ended(item, taken);
    item.lock.unlock();
    WaitList::wake_all(taken);
    return status_of(reason);
}

// In a forked child that begins anew: the handles of before are stale, and nobody waits.
template <class T> void leave_behind(base::Slab<T> &slab = slab_of<T>()) noexcept {
    slab.after_fork();
    for (uint32_t i = 0; i < slab.carved(); ++i) {
        T *item = slab.at(i);
        if (item->generation.load(sync::relaxed) % 2 == 1)
            (void)base::retire_handle(item);
        item->forget();
    }
}

} // namespace mc::sched
