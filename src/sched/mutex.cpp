#include "sched/mutex.hpp"

#include "base/alloc.hpp"
#include "base/cpus.hpp"
#include "sched/runtime.hpp"
#include "sched/switch.hpp"

#include <algorithm>
#include <new>

namespace mc::sched {
namespace {

#if defined(MC_SYS) && MC_SYS
constexpr int64_t starved_after_ns = 300; // time goes slowly there
constexpr int first_pauses = 1, most_pauses = 1, pauses_in_all = 1;
#else
constexpr int64_t starved_after_ns = 1'000'000;
constexpr int first_pauses = 15, most_pauses = 120, pauses_in_all = 480; // in all they take what a wake-up costs
#endif

enum Grant : int32_t { try_again = 0, owned = 1 };

constexpr int64_t moment_ns = 1'000;

// Whether the owner could be running while we spin, and nobody waits for our processor.
bool may_spin(const ThreadContext &thread) noexcept {
    if (base::known_cpus() < 2)
        return false;
    return thread.executor == nullptr || (thread.executor->many() && !thread.executor->others_queued());
}

} // namespace

// --- what a task holds ---

void Mutex::forget_held_below(Task &task) noexcept {
    for (Mutex *above = task.held.load(sync::relaxed); above != nullptr; above = above->next_held_)
        if (above->next_held_ == this) {
            above->next_held_ = next_held_;
            return;
        }
    MC_INVARIANT(false, word_.load(sync::relaxed));
}

void Mutex::release_held(Task &task) noexcept {
    while (Mutex *mutex = task.held.load(sync::relaxed)) {
        task.held.store(mutex->next_held_, sync::relaxed);
        mutex->recursion_ = 0;
        tell_unlocked(task, *mutex);
        mutex->wait_lock_.lock();
        // relaxed: pass_on releases
        mutex->pass_on(mutex->word_.load(sync::relaxed) | dead);
    }
}

Task *Mutex::owner() const noexcept {
    const uint64_t bits = word_.load(sync::relaxed) & owner_mask;
    return bits == 0 ? nullptr : task_slab().at(static_cast<uint32_t>(bits >> owner_shift) - 1);
}

// --- locking ---

// Under wait_lock_. announced: it is owned, and its owner will look under the lock for whom to wake.
Mutex::Attempt Mutex::attempt(const Task &task, uint64_t handle, bool may_wait) noexcept {
    uint64_t word = word_.load(sync::relaxed);
    for (;;) {
        if (generation_bits(word) != generation_bits(handle))
            return Attempt::stale;
        if ((word & owner_mask) == owner_bits(task))
            return (policy_ & recursive) != 0 ? Attempt::recursed : Attempt::deadlock;
        const bool free = (word & owner_mask) == 0;
        if (!free && !may_wait)
            return Attempt::refused;
        // acquire: pairs with the release of whoever gave it back. Announcing needs none.
        const uint64_t wanted = free ? word | owner_bits(task) : word | waiters;
        if (word_.compare_exchange_weak(word, wanted, sync::acquire, sync::relaxed))
            return free ? Attempt::taken : Attempt::announced;
    }
}

// A short while, for an owner that is about to give it back on another processor, and to nobody in particular.
//
// Each look takes the line away from the owner, so that one who looks all the time makes both slow. A first meeting is chance, and
// the next look comes soon. But who meets somebody that had to wait himself a moment ago will meet him again at each turn: he keeps
// away long enough for the other to give it back and lock it a hundred times.
//
// True: it was worth trying.
bool Mutex::spin(const ThreadContext &thread) const noexcept {
    if (!may_spin(thread) || owned_by(*thread.running))
        return false;
    const bool again = sync::now_ns() - moment_ns < met_ns_.load(sync::relaxed);
    int pauses = again ? most_pauses : first_pauses;
    for (int paused = 0; paused < pauses_in_all && (word_.load(sync::relaxed) & owner_mask) != 0;
         paused += pauses, pauses = std::min(2 * pauses, most_pauses))
        for (int i = 0; i < pauses; ++i)
            sync::cpu_relax();
    return true;
}

// By the task that owns it from now on.
int32_t Mutex::taken(Task &task) noexcept {
    note_held(task);
    return in_doubt();
}

int32_t Mutex::taken_after(bool spun, Task &task) noexcept {
    if (spun)
        met_ns_.store(sync::now_ns(), sync::relaxed);
    return taken(task);
}

// By the owner.
int32_t Mutex::in_doubt() const noexcept { return (word_.load(sync::relaxed) & dead) != 0 ? MC_E_OWNERDEAD : MC_OK; }

int32_t Mutex::lock_slow(ThreadContext &thread, uint64_t handle, int64_t deadline_ns, bool may_be_cancelled) noexcept {
    Task &task = *thread.running;
    ThreadContext *here = &thread;
    int64_t began_ns = 0;
    Waiting waiting;
    const bool spun = deadline_ns != MC_NOW && spin(thread);
    for (WaitList::At at = WaitList::At::back;; at = WaitList::At::front) {
        const bool late = deadline_ns != MC_FOREVER && deadline_ns <= sync::now_ns();
        const int32_t refused = late ? MC_E_TIMEDOUT : may_block(*here);
        wait_lock_.lock();
        if (at == WaitList::At::front)
            --returning_;
        const Attempt outcome = attempt(task, handle, refused == MC_OK);
        if (outcome != Attempt::announced)
            wait_lock_.unlock();
        switch (outcome) {
        case Attempt::taken:
            return taken_after(spun, task);
        case Attempt::recursed:
            ++recursion_;
            return in_doubt();
        case Attempt::stale:
            return MC_E_STALE;
        case Attempt::deadlock:
            return MC_E_DEADLOCK;
        case Attempt::refused:
            return refused;
        case Attempt::announced:
            break;
        }
        const int64_t now = sync::now_ns();
        if (began_ns == 0)
            began_ns = now;
        waiting.asks = now - began_ns >= starved_after_ns;
        Parking parking(nullptr, deadline_ns, nullptr);
        parking.may_be_cancelled = may_be_cancelled;
        parking.waits_for = WaitsFor(WaitKind::mutex, this);
        const WakeReason reason = waiting_.wait(*here, wait_lock_, waiting, at, parking);
        here = &here_now();
        if (reason == WakeReason::shutdown && !may_be_cancelled) {
            ++returning_;
            wait_lock_.unlock();
        } else if (reason != WakeReason::ready) {
            wait_lock_.unlock();
            return status_of(reason);
        } else if (task.wake_value == owned) {
            return taken_after(spun, task);
        }
    }
}

void Mutex::announce_return() noexcept {
    base::SpinGuard guard(wait_lock_);
    ++returning_;
}

int32_t Mutex::lock_again(ThreadContext &thread, uint64_t handle) noexcept {
    const int32_t status = lock_slow(thread, handle, MC_FOREVER, false);
    base::SpinGuard guard(wait_lock_);
    --returning_;
    return status;
}

// --- giving back ---

int32_t Mutex::check_owner(const Task &task, uint64_t handle) const noexcept {
    const uint64_t word = word_.load(sync::relaxed);
    if (generation_bits(word) != generation_bits(handle))
        return MC_E_STALE;
    return (word & owner_mask) == owner_bits(task) ? MC_OK : MC_E_PERM;
}

int32_t Mutex::unlock_slow(Task &task, uint64_t handle) noexcept {
    const int32_t status = check_owner(task, handle);
    if (status != MC_OK)
        return status;
    if (recursion_ > 0) {
        --recursion_;
        return MC_OK;
    }
    forget_held(task);
    return give_back();
}

int32_t Mutex::give_back() noexcept {
    wait_lock_.lock();
    pass_on(word_.load(sync::relaxed));
    return MC_OK;
}

// Under wait_lock_, which it gives back; by the owner, whose word this is. Nobody else changes an owned word but waiters,
// which need the lock.
void Mutex::pass_on(uint64_t word) noexcept {
    const uint64_t kept = generation_bits(word) | (word & dead);
    Waiting *first = waiting_.first();
    const bool hand_over = first != nullptr && ((policy_ & fifo) != 0 || first->asks != 0);
    first = waiting_.take_first(hand_over ? owned : try_again);
    returning_ += first != nullptr && !hand_over;
    const uint64_t rest = waiting_.empty() ? 0 : waiters;
    const uint64_t owner = first != nullptr && hand_over ? owner_bits(*first->task) : 0;
    // release: pairs with the acquire of whoever takes it; one who was handed it is ordered by its wake.
    word_.store(kept | owner | rest, sync::release);
    wait_lock_.unlock();
    if (first != nullptr)
        wake(first->task, first->claim);
}

int32_t Mutex::consistent(ThreadContext &thread, uint64_t handle) noexcept {
    const int32_t status = check_owner(*thread.running, handle);
    if (status != MC_OK)
        return status;
    if ((word_.load(sync::relaxed) & dead) == 0)
        return MC_E_INVAL;
    (void)word_.fetch_and(~dead, sync::relaxed); // relaxed: the next owner gets it by the unlock
    return MC_OK;
}

// --- life ---

void Mutex::begin(uint32_t policy, uint64_t handle) noexcept {
    policy_ = policy;
    handle_ = handle;
    recursion_ = 0;
    word_.store(generation_bits(handle), sync::release); // release: pairs with the acquire of a lock's CAS
}

int32_t Mutex::end(uint64_t handle, bool *reusable) noexcept {
    base::SpinGuard guard(wait_lock_);
    uint64_t word = word_.load(sync::relaxed);
    if (generation_bits(word) != generation_bits(handle))
        return MC_E_STALE;
    // A word without generation: nobody's.
    if ((word & owner_mask) != 0 || !waiting_.empty() || returning_ != 0 ||
        !word_.compare_exchange_strong(word, 0, sync::acquire, sync::relaxed))
        return MC_E_BUSY;
    *reusable = base::retire_handle(this);
    return MC_OK;
}

void Mutex::forget() noexcept {
    word_.store(0, sync::relaxed);
    handle_ = 0;
    new (&wait_lock_) base::Spinlock();
    new (&waiting_) WaitList();
    returning_ = 0;
}

void tell_locked(const Task &task, const Mutex &mutex) noexcept {
    if (Simulator *simulation = simulator()) [[unlikely]]
        simulation->told(SimEvent::lock, &task, &mutex, nullptr, 0);
}

void tell_unlocked(const Task &task, const Mutex &mutex) noexcept {
    if (Simulator *simulation = simulator()) [[unlikely]]
        simulation->told(SimEvent::unlock, &task, &mutex, nullptr, 0);
}

int32_t create_mutex(uint32_t policy, uint64_t *out) noexcept {
    Mutex *mutex = mutex_slab().acquire();
    if (mutex == nullptr)
        return MC_E_NOMEM;
    const uint64_t handle = base::issue_handle(mutex, base::HandleKind::mutex);
    mutex->begin(policy, handle);
    *out = handle;
    return MC_OK;
}

int32_t destroy_mutex(uint64_t handle) noexcept {
    Mutex *mutex = mutex_at(handle);
    bool reusable = false;
    const int32_t status = mutex == nullptr ? MC_E_STALE : mutex->end(handle, &reusable);
    if (status == MC_OK)
        if (Simulator *simulation = simulator()) [[unlikely]]
            simulation->mutex_gone(mutex);
    if (status == MC_OK && reusable)
        mutex_slab().release(mutex);
    return status;
}

// --- several at once ---

namespace {

void unlock_first(ThreadContext &thread, const uint64_t *handles, uint32_t count) noexcept {
    while (count-- > 0) {
        Mutex &mutex = *mutex_at(handles[count]);
        (void)mutex.unlock(thread, handles[count]);
        tell_unlocked(*thread.running, mutex);
    }
}

// By index: that is the order in which everybody locks.
bool before(uint64_t a, uint64_t b) noexcept { return static_cast<uint32_t>(a) < static_cast<uint32_t>(b); }

int32_t lock_sorted(ThreadContext &thread, const uint64_t *handles, uint32_t count, int64_t deadline_ns) noexcept {
    int32_t result = MC_OK;
    ThreadContext *here = &thread;
    for (uint32_t i = 0; i < count; ++i, here = &here_now()) {
        Mutex *mutex = mutex_at(handles[i]);
        const int32_t status = mutex == nullptr ? MC_E_STALE : mutex->lock(*here, handles[i], deadline_ns);
        if (status != MC_OK && status != MC_E_OWNERDEAD) {
            unlock_first(here_now(), handles, i);
            return status;
        }
        tell_locked(*here_now().running, *mutex);
        result = result == MC_OK ? status : result;
    }
    return result;
}

} // namespace

int32_t lock_all(ThreadContext &thread, const uint64_t *handles, uint32_t count, int64_t deadline_ns) noexcept {
    constexpr uint32_t few = 16;
    uint64_t inline_copies[few];
    uint64_t *sorted = count <= few ? inline_copies : base::allocate_array<uint64_t>(count);
    if (sorted == nullptr)
        return MC_E_NOMEM;
    std::copy(handles, handles + count, sorted);
    std::sort(sorted, sorted + count, before);
    const bool twice = std::adjacent_find(sorted, sorted + count) != sorted + count;
    const int32_t status = twice ? MC_E_INVAL : lock_sorted(thread, sorted, count, deadline_ns);
    if (sorted != inline_copies)
        base::deallocate_array(sorted, count);
    return status;
}

} // namespace mc::sched
