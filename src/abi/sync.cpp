// mc/sync.h
#include <mc/sync.h>

#include "abi/call.hpp"
#include "sched/condition.hpp"
#include "sched/mutex.hpp"
#include "sched/semaphore.hpp"
#include "sched/switch.hpp"

namespace {

using mc::abi::with_task;
using mc::abi::with_waiting_thread;
using mc::sched::Mutex;
using mc::sched::Task;
using mc::sched::ThreadContext;

// Calls that need nothing of the calling task, but a library that may be used.
template <class Act> int32_t with_library(Act act) noexcept {
    return with_task([&](Task &) { return act(); });
}

// Lock and unlock are hot: a thread's first call, and one of a thread that owns no executor, take the long way round.
template <class Act> __attribute__((noinline)) int32_t with_mutex_first(Mutex &mutex, Act act) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = mc::abi::enter(&status);
    return thread == nullptr ? status : act(*thread, mutex);
}

template <class Act> inline int32_t with_mutex(mc_mutex_t handle, bool may_switch, Act act) noexcept {
    Mutex *mutex = mc::sched::mutex_at(handle);
    if (mutex == nullptr) [[unlikely]]
        return MC_E_STALE;
    ThreadContext *thread = mc::sched::current();
    if (thread == nullptr || thread->executor == nullptr) [[unlikely]]
        return with_mutex_first(*mutex, act);
    return act(*mc::sched::begin_call(thread, may_switch), *mutex);
}

// For the record of a simulated run, where a context always has one reduction left; elsewhere seldom, and then no harm is done.
__attribute__((noinline)) int32_t lock_recorded(ThreadContext &thread, Mutex &mutex, mc_mutex_t handle,
                                                int64_t deadline_ns) noexcept {
    const Task *task = thread.running; // the thread may be another one afterwards
    const bool again = mutex.owned_by(*task);
    const int32_t status = mutex.lock(thread, handle, deadline_ns);
    if (!again && (status == MC_OK || status == MC_E_OWNERDEAD))
        mc::sched::tell_locked(*task, mutex);
    return status;
}

inline int32_t lock(ThreadContext &thread, Mutex &mutex, mc_mutex_t handle, int64_t deadline_ns) noexcept {
    return thread.reductions == 1 ? lock_recorded(thread, mutex, handle, deadline_ns)
                                  : mutex.lock(thread, handle, deadline_ns);
}

// And has given it back: others may go on, at once.
void note_unlock(ThreadContext &thread, const Mutex &mutex) noexcept {
    if (mc::sched::simulator() == nullptr || mutex.owned_by(*thread.running)) [[likely]]
        return; // or it is locked still, as often as it was before
    mc::sched::tell_unlocked(*thread.running, mutex);
    mc::sched::let_others(thread);
}

} // namespace

// --- mutex ---

int32_t mc_mutex_create(uint32_t flags, mc_mutex_t *out) noexcept {
    if (out == nullptr || (flags & ~uint32_t{MC_MUTEX_FIFO | MC_MUTEX_RECURSIVE}) != 0)
        return MC_E_INVAL;
    static_assert(uint32_t{MC_MUTEX_FIFO} == Mutex::fifo && uint32_t{MC_MUTEX_RECURSIVE} == Mutex::recursive);
    return with_library([=] { return mc::sched::create_mutex(flags, out); });
}

int32_t mc_mutex_destroy(mc_mutex_t mutex) noexcept {
    return with_library([=] { return mc::sched::destroy_mutex(mutex); });
}

int32_t mc_mutex_lock(mc_mutex_t handle) noexcept {
    return with_mutex(handle, true,
                      [=](ThreadContext &thread, Mutex &mutex) { return lock(thread, mutex, handle, MC_FOREVER); });
}

int32_t mc_mutex_lock_until(mc_mutex_t handle, int64_t deadline_ns) noexcept {
    return with_mutex(handle, deadline_ns != MC_NOW,
                      [=](ThreadContext &thread, Mutex &mutex) { return lock(thread, mutex, handle, deadline_ns); });
}

int32_t mc_mutex_try_lock(mc_mutex_t handle) noexcept {
    const int32_t status = mc_mutex_lock_until(handle, MC_NOW);
    return status == MC_E_TIMEDOUT ? MC_E_AGAIN : status;
}

int32_t mc_mutex_unlock(mc_mutex_t handle) noexcept {
    const ThreadContext *here = mc::sched::current();
    if (here != nullptr && here->executor != nullptr && here->reductions != 1) [[likely]]
        if (Mutex *mutex = Mutex::locked_last(*here->running, handle)) [[likely]]
            return mutex->unlock_locked_last(*here->running);
    return with_mutex(handle, false, [=](ThreadContext &thread, Mutex &mutex) {
        const int32_t status = mutex.unlock(thread, handle);
        if (status == MC_OK)
            note_unlock(thread, mutex);
        return status;
    });
}

int32_t mc_mutex_lock_all(const mc_mutex_t *mutexes, uint32_t count, int64_t deadline_ns) noexcept {
    if (mutexes == nullptr && count != 0)
        return MC_E_INVAL;
    return with_waiting_thread(
        deadline_ns, [=](ThreadContext &thread) { return mc::sched::lock_all(thread, mutexes, count, deadline_ns); });
}

int32_t mc_mutex_unlock_all(const mc_mutex_t *mutexes, uint32_t count) noexcept {
    if (mutexes == nullptr && count != 0)
        return MC_E_INVAL;
    int32_t result = MC_OK;
    for (uint32_t i = count; i-- > 0;) {
        const int32_t status = mc_mutex_unlock(mutexes[i]);
        result = result == MC_OK ? status : result;
    }
    return result;
}

int32_t mc_mutex_consistent(mc_mutex_t handle) noexcept {
    return with_mutex(handle, false,
                      [=](ThreadContext &thread, Mutex &mutex) { return mutex.consistent(thread, handle); });
}

// --- semaphore ---

int32_t mc_semaphore_create(uint64_t units, mc_semaphore_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_library([=] { return mc::sched::create_semaphore(units, out); });
}

int32_t mc_semaphore_destroy(mc_semaphore_t semaphore) noexcept {
    return with_library([=] { return mc::sched::destroy_primitive<mc::sched::Semaphore>(semaphore); });
}

int32_t mc_semaphore_acquire(mc_semaphore_t semaphore, uint32_t count, int64_t deadline_ns) noexcept {
    if (count == 0)
        return MC_E_INVAL;
    return with_waiting_thread(deadline_ns, [=](ThreadContext &thread) {
        return mc::sched::acquire_units(thread, semaphore, count, deadline_ns);
    });
}

int32_t mc_semaphore_release(mc_semaphore_t semaphore, uint32_t count) noexcept {
    if (count == 0)
        return MC_E_INVAL;
    return with_library([=] { return mc::sched::release_units(semaphore, count); });
}

// --- wait group ---

int32_t mc_waitgroup_create(int64_t open, mc_waitgroup_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_library([=] { return mc::sched::create_wait_group(open, out); });
}

int32_t mc_waitgroup_destroy(mc_waitgroup_t group) noexcept {
    return with_library([=] { return mc::sched::destroy_primitive<mc::sched::WaitGroup>(group); });
}

int32_t mc_waitgroup_add(mc_waitgroup_t group, int64_t delta) noexcept {
    return with_library([=] { return mc::sched::add_to_wait_group(group, delta); });
}

int32_t mc_waitgroup_done(mc_waitgroup_t group) noexcept { return mc_waitgroup_add(group, -1); }

int32_t mc_waitgroup_wait(mc_waitgroup_t group, int64_t deadline_ns) noexcept {
    return with_waiting_thread(
        deadline_ns, [=](ThreadContext &thread) { return mc::sched::wait_for_group(thread, group, deadline_ns); });
}

// --- once ---

int32_t mc_once_create(mc_once_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_library([=] { return mc::sched::create_once(out); });
}

int32_t mc_once_destroy(mc_once_t once) noexcept {
    return with_library([=] { return mc::sched::destroy_primitive<mc::sched::Once>(once); });
}

int32_t mc_once_call(mc_once_t once, int32_t (*fn)(void *user), void *user, int64_t deadline_ns) noexcept {
    if (fn == nullptr)
        return MC_E_INVAL;
    return with_waiting_thread(
        deadline_ns, [=](ThreadContext &thread) { return mc::sched::run_once(thread, once, fn, user, deadline_ns); });
}

// --- condition ---

int32_t mc_cond_create(mc_cond_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_library([=] { return mc::sched::create_condition(out); });
}

int32_t mc_cond_destroy(mc_cond_t cond) noexcept {
    return with_library([=] { return mc::sched::destroy_primitive<mc::sched::Condition>(cond); });
}

int32_t mc_cond_wait(mc_cond_t cond, mc_mutex_t mutex, int64_t deadline_ns) noexcept {
    return with_waiting_thread(MC_NOW, [=](ThreadContext &thread) { // no turn is given up with the mutex locked
        return mc::sched::wait_for_condition(thread, cond, mutex, deadline_ns);
    });
}

int32_t mc_cond_signal(mc_cond_t cond) noexcept {
    return with_library([=] { return mc::sched::signal_condition(cond, false); });
}

int32_t mc_cond_broadcast(mc_cond_t cond) noexcept {
    return with_library([=] { return mc::sched::signal_condition(cond, true); });
}

// --- read-write lock ---

int32_t mc_rwlock_create(mc_rwlock_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_library([=] { return mc::sched::create_rwlock(out); });
}

int32_t mc_rwlock_destroy(mc_rwlock_t lock) noexcept {
    return with_library([=] { return mc::sched::destroy_primitive<mc::sched::RwLock>(lock); });
}

int32_t mc_rwlock_read_lock(mc_rwlock_t lock, int64_t deadline_ns) noexcept {
    return with_waiting_thread(
        deadline_ns, [=](ThreadContext &thread) { return mc::sched::lock_shared(thread, lock, deadline_ns); });
}

int32_t mc_rwlock_write_lock(mc_rwlock_t lock, int64_t deadline_ns) noexcept {
    return with_waiting_thread(
        deadline_ns, [=](ThreadContext &thread) { return mc::sched::lock_exclusive(thread, lock, deadline_ns); });
}

int32_t mc_rwlock_read_unlock(mc_rwlock_t lock) noexcept {
    return with_library([=] { return mc::sched::unlock_shared(lock); });
}

int32_t mc_rwlock_write_unlock(mc_rwlock_t lock) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = mc::abi::enter(&status);
    return thread == nullptr ? status : mc::sched::unlock_exclusive(*thread, lock);
}
