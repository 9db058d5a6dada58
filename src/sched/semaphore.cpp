#include "sched/semaphore.hpp"

#include "base/guarded.hpp"

namespace mc::sched {
namespace {

constexpr uint64_t most_units = INT64_MAX;

void nobody_else(auto &, WaitList::Taken &) noexcept {}

// --- semaphore ---

// Under the lock: those at the front that can be served now.
void serve(Semaphore &semaphore, WaitList::Taken &taken) noexcept {
    while (Waiting *first = semaphore.waiting.first()) {
        const uint64_t asks = first->asks;
        if (asks > semaphore.units)
            return;
        if (semaphore.waiting.try_take(*first, MC_OK)) {
            semaphore.units -= asks;
            taken.push_back(first);
        }
    }
}

} // namespace

int32_t create_semaphore(uint64_t units, uint64_t *out) noexcept {
    if (units > most_units)
        return MC_E_INVAL;
    return create_primitive<Semaphore>(out, [=](Semaphore &semaphore) { semaphore.units = units; });
}

int32_t acquire_units(ThreadContext &thread, uint64_t handle, uint32_t count, int64_t deadline_ns) noexcept {
    Semaphore *semaphore = lock_primitive<Semaphore>(handle);
    if (semaphore == nullptr)
        return MC_E_STALE;
    // Past nobody who waits, or one that asks for many would starve.
    if (semaphore->units >= count && semaphore->waiting.first() == nullptr) {
        semaphore->units -= count;
        semaphore->lock.unlock();
        return MC_OK;
    }
    Waiting waiting;
    waiting.asks = count;
    // Those behind us may ask for less.
    return wait_for(thread, *semaphore, waiting, deadline_ns, serve);
}

int32_t release_units(uint64_t handle, uint32_t count) noexcept {
    Semaphore *semaphore = lock_primitive<Semaphore>(handle);
    if (semaphore == nullptr)
        return MC_E_STALE;
    const bool fits = count <= most_units - semaphore->units;
    WaitList::Taken taken;
    if (fits) {
        semaphore->units += count;
        serve(*semaphore, taken);
    }
    semaphore->lock.unlock();
    WaitList::wake_all(taken);
    return fits ? MC_OK : MC_E_LIMIT;
}

// --- wait group ---

int32_t create_wait_group(int64_t open, uint64_t *out) noexcept {
    if (open < 0)
        return MC_E_INVAL;
    return create_primitive<WaitGroup>(out, [=](WaitGroup &group) { group.open = open; });
}

int32_t add_to_wait_group(uint64_t handle, int64_t delta) noexcept {
    WaitGroup *group = lock_primitive<WaitGroup>(handle);
    if (group == nullptr)
        return MC_E_STALE;
    int64_t open = 0;
    const bool fits = !__builtin_add_overflow(group->open, delta, &open) && open >= 0;
    WaitList::Taken taken;
    if (fits) {
        group->open = open;
        while (open == 0) {
            Waiting *waiting = group->waiting.take_first(MC_OK);
            if (waiting == nullptr)
                break;
            taken.push_back(waiting);
        }
    }
    group->lock.unlock();
    WaitList::wake_all(taken);
    return fits ? MC_OK : MC_E_INVAL;
}

int32_t wait_for_group(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    WaitGroup *group = lock_primitive<WaitGroup>(handle);
    if (group == nullptr)
        return MC_E_STALE;
    if (group->open == 0) {
        group->lock.unlock();
        return MC_OK;
    }
    Waiting waiting;
    return wait_for(thread, *group, waiting, deadline_ns, nobody_else<WaitGroup>);
}

// --- once ---

int32_t create_once(uint64_t *out) noexcept {
    return create_primitive<Once>(out, [](Once &once) {
        once.state = Once::State::open;
        once.runner = nullptr;
        once.returning = 0;
    });
}

namespace {

// By the one who ran it. When it failed the first that waits is woken to try; should another have begun by then, it waits
// again, and that one's end sees to it.
void settle(Once &once, bool done) noexcept {
    WaitList::Taken taken;
    once.lock.lock();
    once.runner = nullptr;
    once.state = done ? Once::State::done : Once::State::open;
    do {
        Waiting *waiting = once.waiting.take_first(done ? MC_OK : MC_E_AGAIN);
        if (waiting == nullptr)
            break;
        taken.push_back(waiting);
        once.returning += !done;
    } while (done);
    once.lock.unlock();
    WaitList::wake_all(taken);
}

// The result is fn's, or MC_E_CRASHED; what is not below MC_OK counts as done.
int32_t run_it(Once &once, int32_t (*fn)(void *), void *user) noexcept {
    int32_t status = MC_E_CRASHED;
    (void)base::call_guarded("a once", [&] { status = fn(user); });
    settle(once, status >= MC_OK);
    return status >= MC_OK ? MC_OK : status;
}

} // namespace

int32_t run_once(ThreadContext &thread, uint64_t handle, int32_t (*fn)(void *), void *user,
                 int64_t deadline_ns) noexcept {
    WaitList::At at = WaitList::At::back;
    for (ThreadContext *here = &thread;; here = &here_now()) {
        Once *once = lock_primitive<Once>(handle);
        if (once == nullptr)
            return MC_E_STALE;
        once->returning -= at == WaitList::At::front;
        if (once->state == Once::State::open) {
            once->state = Once::State::running;
            once->runner = here->running;
            once->lock.unlock();
            return run_it(*once, fn, user);
        }
        if (once->state == Once::State::done || once->runner == here->running) {
            const bool done = once->state == Once::State::done;
            once->lock.unlock();
            return done ? MC_OK : MC_E_DEADLOCK;
        }
        Waiting waiting;
        const int32_t status = wait_for(*here, *once, waiting, deadline_ns, nobody_else<Once>, Once::wait_kind, at);
        if (status != MC_E_AGAIN)
            return status;
        at = WaitList::At::front; // it has waited longest
    }
}

} // namespace mc::sched
