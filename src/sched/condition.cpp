#include "sched/condition.hpp"

#include "sched/mutex.hpp"

namespace mc::sched {

// --- condition ---

int32_t create_condition(uint64_t *out) noexcept {
    return create_primitive<Condition>(out, [](Condition &) {});
}

namespace {

// Under the lock: takes the first waiter that will learn of it. One that has parked and can not be claimed has given up.
Condition::Waiter *signal_first(Condition &condition, WaitList::Taken &taken) noexcept {
    for (Condition::Waiter *waiter = condition.waiters.front(); waiter != nullptr;) {
        Condition::Waiter *next = condition.waiters.after(waiter);
        const bool parked = waiter->parked.linked();
        if (!parked || condition.waiting.try_take(waiter->parked, MC_OK)) {
            base::List<Condition::Waiter>::remove(waiter);
            waiter->signalled = true;
            if (parked)
                taken.push_back(&waiter->parked);
            return waiter;
        }
        waiter = next;
    }
    return nullptr;
}

// The mutex has been given back. MC_OK: signalled.
int32_t wait_for_signal(ThreadContext &thread, Condition &condition, Condition::Waiter &waiter,
                        int64_t deadline_ns) noexcept {
    condition.lock.lock();
    int32_t status = MC_OK;
    if (!waiter.signalled) {
        status = refuse_to_wait(thread, deadline_ns);
        if (status == MC_OK) {
            Parking parking(nullptr, deadline_ns, nullptr);
            parking.waits_for = WaitsFor(WaitKind::condition, &condition);
            const WakeReason reason =
                condition.waiting.wait(thread, condition.lock, waiter.parked, WaitList::At::back, parking);
            if (reason == WakeReason::ready)
                return MC_OK; // the lock is not held
            status = status_of(reason);
        }
        base::List<Condition::Waiter>::remove(&waiter);
    }
    condition.lock.unlock();
    return status;
}

} // namespace

int32_t wait_for_condition(ThreadContext &thread, uint64_t handle, uint64_t mutex_handle,
                           int64_t deadline_ns) noexcept {
    const int32_t refused = may_block(thread);
    if (refused != MC_OK)
        return refused;
    Mutex *mutex = mutex_at(mutex_handle);
    const int32_t owned = mutex == nullptr ? MC_E_STALE : mutex->check_owner(*thread.running, mutex_handle);
    if (owned != MC_OK)
        return owned;
    Condition *condition = lock_primitive<Condition>(handle);
    if (condition == nullptr)
        return MC_E_STALE;
    Condition::Waiter waiter;
    condition->waiters.push_back(&waiter); // before the mutex is free: see the class
    condition->lock.unlock();
    const uint32_t depth = mutex->leave_recursion();
    mutex->announce_return();
    (void)mutex->unlock(thread, mutex_handle);
    tell_unlocked(*thread.running, *mutex);
    const int32_t status = wait_for_signal(thread, *condition, waiter, deadline_ns);
    const int32_t locked = mutex->lock_again(here_now(), mutex_handle);
    if (locked == MC_OK || locked == MC_E_OWNERDEAD) {
        tell_locked(*here_now().running, *mutex);
        mutex->enter_recursion(depth);
    }
    return locked == MC_OK ? status : locked;
}

int32_t signal_condition(uint64_t handle, bool all) noexcept {
    Condition *condition = lock_primitive<Condition>(handle);
    if (condition == nullptr)
        return MC_E_STALE;
    WaitList::Taken taken;
    while (signal_first(*condition, taken) != nullptr && all) {
    }
    condition->lock.unlock();
    WaitList::wake_all(taken);
    return MC_OK;
}

// --- read-write lock ---

namespace {

enum Asks : uint64_t { to_read, to_write };

// Under the lock: those at the front that can go now: a writer, or readers up to the next writer.
void admit(RwLock &rwlock, WaitList::Taken &taken) noexcept {
    while (Waiting *first = rwlock.waiting.first()) {
        const uint64_t asks = first->asks;
        const Task *task = first->task; // of the waiter, before it is woken
        if (rwlock.writer != nullptr || (asks == to_write && rwlock.readers != 0))
            return;
        if (!rwlock.waiting.try_take(*first, MC_OK))
            continue;
        taken.push_back(first);
        if (asks == to_read)
            ++rwlock.readers;
        else
            rwlock.set_writer(task);
    }
}

int32_t lock_as(ThreadContext &thread, uint64_t handle, int64_t deadline_ns, Asks asks) noexcept {
    RwLock *rwlock = lock_primitive<RwLock>(handle);
    if (rwlock == nullptr)
        return MC_E_STALE;
    if (rwlock->written_by(*thread.running)) {
        rwlock->lock.unlock();
        return MC_E_DEADLOCK;
    }
    const bool free = rwlock->writer == nullptr && (asks == to_read || rwlock->readers == 0);
    if (free && rwlock->waiting.first() == nullptr) {
        if (asks == to_read)
            ++rwlock->readers;
        else
            rwlock->set_writer(thread.running);
        rwlock->lock.unlock();
        return MC_OK;
    }
    Waiting waiting;
    waiting.asks = asks;
    const WaitKind kind = asks == to_read ? WaitKind::read_lock : WaitKind::write_lock;
    return wait_for(thread, *rwlock, waiting, deadline_ns, admit,
                    kind); // readers may stand behind a writer that gives up
}

int32_t unlock_and_admit(RwLock &rwlock) noexcept {
    WaitList::Taken taken;
    admit(rwlock, taken);
    rwlock.lock.unlock();
    WaitList::wake_all(taken);
    return MC_OK;
}

} // namespace

int32_t create_rwlock(uint64_t *out) noexcept {
    return create_primitive<RwLock>(out, [](RwLock &rwlock) {
        rwlock.readers = 0;
        rwlock.set_writer(nullptr);
    });
}

int32_t lock_shared(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    return lock_as(thread, handle, deadline_ns, to_read);
}

int32_t lock_exclusive(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    return lock_as(thread, handle, deadline_ns, to_write);
}

int32_t unlock_shared(uint64_t handle) noexcept {
    RwLock *rwlock = lock_primitive<RwLock>(handle);
    if (rwlock == nullptr)
        return MC_E_STALE;
    if (rwlock->readers == 0) {
        rwlock->lock.unlock();
        return MC_E_PERM;
    }
    --rwlock->readers;
    return unlock_and_admit(*rwlock);
}

int32_t unlock_exclusive(ThreadContext &thread, uint64_t handle) noexcept {
    RwLock *rwlock = lock_primitive<RwLock>(handle);
    if (rwlock == nullptr)
        return MC_E_STALE;
    if (!rwlock->written_by(*thread.running)) {
        rwlock->lock.unlock();
        return MC_E_PERM;
    }
    rwlock->set_writer(nullptr);
    return unlock_and_admit(*rwlock);
}

} // namespace mc::sched
