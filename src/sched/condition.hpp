// Condition variable and read-write lock; see primitive.hpp. Any thread.
#pragma once

#include "sched/primitive.hpp"

namespace mc::sched {

// Waiting gives a mutex back and takes it again. A waiter registers before it gives the mutex back, so whoever changes what it
// waits for, with the mutex, and signals, finds it. It may be signalled before it has parked: then it does not.
struct Condition : Primitive<Condition> {
    static constexpr base::HandleKind kind = base::HandleKind::condition;
    static constexpr WaitKind wait_kind = WaitKind::condition;

    // On the waiter's stack, first in, first out, from before it parks until it was signalled or has given up.
    struct Waiter : base::ListNode<Waiter> {
        Waiting parked; // linked in `waiting` while it is parked
        bool signalled = false;
    };

    // guarded by lock
    base::List<Waiter> waiters;

    bool busy() const noexcept { return !waiters.empty(); }
    void forget() noexcept {
        Primitive::forget();
        new (&waiters) base::List<Waiter>();
    }
};

int32_t create_condition(uint64_t *out) noexcept;
// MC_OK: signalled. The mutex is owned again then, as it is with MC_E_TIMEDOUT, MC_E_CANCELED, MC_E_SHUTDOWN and
// MC_E_OWNERDEAD (which hides any of these), and with MC_E_DEADLOCK, unless it is the mutex that nobody would give back. With
// MC_E_STALE, MC_E_PERM and MC_E_CONTEXT nothing has happened.
int32_t wait_for_condition(ThreadContext &thread, uint64_t handle, uint64_t mutex_handle, int64_t deadline_ns) noexcept;
int32_t signal_condition(uint64_t handle, bool all) noexcept;

// Many readers or one writer. First come, first served: a reader that comes while a writer waits stands behind it, so
// neither side starves.
struct RwLock : Primitive<RwLock> {
    static constexpr base::HandleKind kind = base::HandleKind::rwlock;
    static constexpr WaitKind wait_kind = WaitKind::read_lock; // or write_lock

    // guarded by lock
    uint32_t readers = 0;
    const Task *writer = nullptr;
    uint64_t writer_id = 0; // another task may have its slot by now
    // written under lock, read by reports
    sync::atomic<const Task *> seen_writer{nullptr};

    void set_writer(const Task *task) noexcept {
        writer = task;
        writer_id = task == nullptr ? 0 : task->id;
        seen_writer.store(task, sync::relaxed);
    }

    bool written_by(const Task &task) const noexcept { return writer == &task && writer_id == task.id; }
    bool busy() const noexcept { return readers != 0 || writer != nullptr; }
};

int32_t create_rwlock(uint64_t *out) noexcept;
int32_t lock_shared(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept;
int32_t lock_exclusive(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept;
int32_t unlock_shared(uint64_t handle) noexcept;
int32_t unlock_exclusive(ThreadContext &thread, uint64_t handle) noexcept;

} // namespace mc::sched
