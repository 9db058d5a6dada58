// The user-level mutex, for microthreads and threads alike. One word says who owns it and whether somebody waits:
//
//   63            32 31           4  3        1      0
//   | generation    | owner        |        DEAD   WAITERS
//
//   generation  of the handle: a late call with a stale handle finds another word and can not take a successor's mutex,
//               so the fast path needs no check of its own
//   owner       the index of the owning task in its slab, plus 1; 0: free
//   DEAD        an owner ended without giving it back, and nobody has called consistent since
//   WAITERS     look under the lock when giving it back
//
//   free             owned            the one who locks, when nobody waits (fast); also past waiters when it barges
//   owned            free             the owner, when nobody waits (fast)
//   owned            owned|WAITERS    a waiter, under the lock; it puts itself on the list before it gives the lock back, so
//                                     before the owner can look
//   owned|WAITERS    free|WAITERS     barging: the first waiter is woken to try again
//   owned|WAITERS    owned'|WAITERS   hand-over to the first waiter: it owns the mutex before it runs
//
// No wake-up is lost: a waiter sets WAITERS by a compare-and-swap that fails when the owner has just left, with the lock held
// until it is on the list; the owner's fast unlock expects a word without WAITERS, and its slow one takes the lock.
// (Locking first and enqueueing later loses the unlock that comes in between.)
//
// Two policies. FIFO: always hand-over; a lock costs a switch when it is contended. Barging (the default): who runs may take
// the free mutex before the one that was woken, which then waits at the front; one who has waited for a millisecond when it
// loses again is handed the mutex (the starvation rule of Go's sync.Mutex).
//
// A hand-over is a claim: a waiter that was cancelled or timed out can not be claimed, and one that was claimed owns the
// mutex, whatever its scope or deadline say afterwards.
//
// Any thread. Lock rank: wait_lock_ is one that a parking task carries.
// Rejected: an owner field beside the word (two words, and a death between them); FIFO by waking the first waiter to try
// again (whoever runs is faster, so that the order is not kept).
#pragma once

#include "base/handle.hpp"
#include "base/slab.hpp"
#include "sched/executor.hpp"
#include "sched/wait_list.hpp"

#include <mc/base.h>

#include <cstdint>
#include <utility>

namespace mc::sched {

class Mutex : public base::SlabItem<Mutex>, public base::HandleItem {
public:
    static constexpr uint32_t barging = 0, fifo = 1, recursive = 2; // flags

    int32_t lock(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
        uint64_t free = generation_bits(handle);
        Task &task = *thread.running;
        // acquire: pairs with the release of whoever gave it back.
        if (word_.compare_exchange_strong(free, free | owner_bits(task), sync::acquire, sync::relaxed)) [[likely]] {
            note_held(task);
            return MC_OK;
        }
        return lock_slow(thread, handle, deadline_ns, true);
    }
    // A condition's wait: announced while the mutex is owned, so that it stays; then as if by lock, but no cancellation, no
    // deadline and no shutdown ends it (a shutdown ends the waits of whoever owns it, too). Only MC_E_DEADLOCK does.
    void announce_return() noexcept;
    int32_t lock_again(ThreadContext &thread, uint64_t handle) noexcept;
    // The mutex that the task locked last, when that is this handle's and it locked it once: nearly every unlock. It is on
    // the task's list, so the task owns it, and nobody can make the handle stale: neither slab nor word need be looked at.
    static Mutex *locked_last(const Task &task, uint64_t handle) noexcept {
        Mutex *mutex = task.held.load(sync::relaxed);
        return mutex != nullptr && mutex->handle_ == handle && mutex->recursion_ == 0 ? mutex : nullptr;
    }
    int32_t unlock_locked_last(Task &task) noexcept {
        task.held.store(next_held_, sync::relaxed);
        uint64_t mine = generation_bits(handle_) | owner_bits(task);
        // release: pairs with the acquire of whoever takes it next. Not mine: somebody waits, or an owner died.
        if (word_.compare_exchange_strong(mine, generation_bits(handle_), sync::release, sync::relaxed)) [[likely]]
            return MC_OK;
        return give_back();
    }
    int32_t unlock(ThreadContext &thread, uint64_t handle) noexcept {
        Task &task = *thread.running;
        return locked_last(task, handle) == this ? unlock_locked_last(task) : unlock_slow(task, handle);
    }
    int32_t consistent(ThreadContext &thread, uint64_t handle) noexcept;

    // For a condition: MC_OK, MC_E_STALE or MC_E_PERM; and, for the owner, how often it has locked beyond the first time.
    int32_t check_owner(const Task &task, uint64_t handle) const noexcept;
    uint32_t leave_recursion() noexcept { return std::exchange(recursion_, 0); }
    void enter_recursion(uint32_t depth) noexcept { recursion_ = depth; }

    // Sets it up in a slot of its slab; the handle is issued by the caller.
    void begin(uint32_t policy, uint64_t handle) noexcept;
    // MC_OK: it is locked by nobody and its handle is stale now. MC_E_BUSY, MC_E_STALE.
    int32_t end(uint64_t handle, bool *reusable) noexcept;
    void forget() noexcept; // see leave_behind

    // The task has ended: whoever gets what it held learns of it.
    static void release_held(Task &task) noexcept;

    // For reports: the owner, which may have given it back meanwhile, or null.
    Task *owner() const noexcept;
    bool owned_by(const Task &task) const noexcept {
        return (word_.load(sync::relaxed) & owner_mask) == owner_bits(task);
    }

private:
    static constexpr uint64_t waiters = 1;
    static constexpr uint64_t dead = 2;
    static constexpr uint32_t owner_shift = 4;
    static constexpr uint64_t owner_mask = UINT64_C(0xfffffff0);

    static uint64_t generation_bits(uint64_t handle) noexcept { return handle & ~UINT64_C(0xffffffff); }
    static uint64_t owner_bits(const Task &task) noexcept { return uint64_t{task.slab_index + 1} << owner_shift; }

    void note_held(Task &task) noexcept {
        next_held_ = task.held.load(sync::relaxed);
        task.held.store(this, sync::relaxed);
    }
    void forget_held(Task &task) noexcept {
        if (task.held.load(sync::relaxed) == this) [[likely]]
            task.held.store(next_held_, sync::relaxed);
        else
            forget_held_below(task);
    }
    void forget_held_below(Task &task) noexcept;

    int32_t lock_slow(ThreadContext &thread, uint64_t handle, int64_t deadline_ns, bool may_be_cancelled) noexcept;
    int32_t unlock_slow(Task &task, uint64_t handle) noexcept;
    enum class Attempt { taken, recursed, stale, deadlock, refused, announced };
    Attempt attempt(const Task &task, uint64_t handle, bool may_wait) noexcept;
    bool spin(const ThreadContext &thread) const noexcept;
    int32_t taken(Task &task) noexcept;
    int32_t taken_after(bool spun, Task &task) noexcept;
    int32_t in_doubt() const noexcept;
    int32_t give_back() noexcept;
    void pass_on(uint64_t word) noexcept;

    // any thread; see above
    sync::atomic<uint64_t> word_{0};
    // the owner only
    uint32_t recursion_ = 0;
    Mutex *next_held_ = nullptr; // of the same owner
    // any thread: when somebody took it last who had found it taken, and spun, in steady nanoseconds. A hint.
    sync::atomic<int64_t> met_ns_{INT64_MIN};
    // immutable while it is in use
    uint32_t policy_ = barging;
    uint64_t handle_ = 0;
    base::Spinlock wait_lock_;
    // guarded by wait_lock_
    WaitList waiting_; // asks: 1 when it must be handed the mutex
    // Who was woken to try again and has not yet, or waits for a condition: the mutex must stay.
    uint32_t returning_ = 0;
};

using MutexSlab = base::Slab<Mutex>;
inline constinit MutexSlab all_mutexes; // a variable, not a function's: lock and unlock reach it without a call
inline MutexSlab &mutex_slab() noexcept { return all_mutexes; }

inline Mutex *mutex_at(uint64_t handle) noexcept {
    const auto low = static_cast<uint32_t>(handle);
    if (low >> 28 != static_cast<uint32_t>(base::HandleKind::mutex) || base::handle_generation(handle) % 2 == 0)
        return nullptr;
    return mutex_slab().at(low & (MutexSlab::max_items - 1));
}

// For the record of a simulated run: the task has the mutex from here on; it has given it back.
void tell_locked(const Task &task, const Mutex &mutex) noexcept;
void tell_unlocked(const Task &task, const Mutex &mutex) noexcept;

int32_t create_mutex(uint32_t policy, uint64_t *out) noexcept;
int32_t destroy_mutex(uint64_t handle) noexcept;

// All of them or none, in the order of their handles, whatever order they are given in; unlocked in reverse when one of
// them can not be locked.
// MC_E_INVAL: one of them twice. MC_E_OWNERDEAD: all are locked, and one of them at least is not consistent.
int32_t lock_all(ThreadContext &thread, const uint64_t *handles, uint32_t count, int64_t deadline_ns) noexcept;

} // namespace mc::sched
