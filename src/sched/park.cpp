#include "sched/park.hpp"

#include "base/assert.hpp"
#include "sched/executor.hpp"
#include "sched/pool.hpp"
#include "sched/runtime.hpp"
#include "sched/switch.hpp"

namespace mc::sched {
namespace {

// While the timer is armed the task can not have left its wait (it cancels first), so the word still has the wait's
// epoch.
uint64_t wait_ticket(Timer &timer) noexcept { return TaskWord::epoch_of(static_cast<Task &>(timer).word.look()); }

// A stack that nobody has touched since its task began to wait is not in the cache. The task runs when all that is due has
// fired: until then the frames that it goes on with are fetched.
void fetch_stack(const Task &task) noexcept {
    constexpr int line = 64;
    const char *at = static_cast<const char *>(task.sp);
    for (int offset = 0; offset < 6 * line; offset += line)
        __builtin_prefetch(at + offset, 1);
}

void wait_timed_out(Timer &timer, uint64_t epoch, int64_t) noexcept {
    Task &task = static_cast<Task &>(timer);
    const TaskWord::Claim claim = task.word.try_claim(epoch);
    if (claim == TaskWord::Claim::lost)
        return;
    if (claim == TaskWord::Claim::parked) // else its registers may not be saved yet
        fetch_stack(task);
    task.reason = WakeReason::timed_out;
    task.wake_value = 0;
    wake(&task, claim);
}

// The thread sleeps until its waker is through with it; at the deadline it tries to be the waker itself.
void sleep_until_woken(Task &task, const Parking &parking) noexcept {
    int64_t deadline_ns = parking.deadline_ns;
    for (;;) {
        // acquire: pairs with unpark's release. Read before the word: a waker that comes after this look changes it.
        const uint32_t seen = task.parker.load(sync::acquire);
        if (task.word.finished())
            return;
        if (sync::futex_wait(task.parker, seen, deadline_ns))
            continue;
        const TaskWord::Claim claim = task.word.try_claim(parking.epoch);
        if (claim != TaskWord::Claim::lost) {
            task.reason = WakeReason::timed_out;
            return;
        }
        deadline_ns = INT64_MAX; // somebody was faster and is about to wake us
    }
}

// The store to the word was the last access to the waiter's memory but for its parker, which is type-stable.
void unpark(Task *task) noexcept {
    task->parker.fetch_add(1, sync::release); // release: pairs with the acquire in sleep_until_woken; after the word
    sync::futex_wake(task->parker, 1);
}

} // namespace

const Timer::Action park_timeout{wait_ticket, wait_timed_out};

void enter_scope(Parking &parking) noexcept {
    if (parking.scope == nullptr)
        return;
    parking.scope_wait.epoch = parking.epoch;
    if (!parking.scope->enter(parking.scope_wait))
        (void)claim_and_wake(parking.task, parking.epoch, WakeReason::cancelled, 0);
}

void park_foreign(Task &task, Parking &parking) noexcept {
    task.waits_since_ns.store(sync::now_ns(), sync::relaxed);
    enter_scope(parking);
    if (parking.commit != nullptr)
        parking.commit(parking);
    if (task.word.publish_parked() == TaskWord::Publish::parked)
        sleep_until_woken(task, parking);
    task.word.start();
}

int32_t status_of(WakeReason reason) noexcept {
    switch (reason) {
    case WakeReason::ready:
        return MC_OK;
    case WakeReason::closed:
        return MC_E_CLOSED;
    case WakeReason::timed_out:
        return MC_E_TIMEDOUT;
    case WakeReason::cancelled:
        return MC_E_CANCELED;
    case WakeReason::deadlock:
        return MC_E_DEADLOCK;
    case WakeReason::shutdown:
        return MC_E_SHUTDOWN;
    case WakeReason::none:
        break;
    }
    MC_INVARIANT(false, reason);
}

void wake(Task *task, TaskWord::Claim claim) noexcept {
    Executor *home = task->executor; // before the word is stored, see wake_from
    if (task->word.wake(claim) == TaskWord::Wake::parker_requeues)
        return;
    const ThreadContext *thread = current();
    wake_elsewhere(thread == nullptr ? nullptr : thread->executor, home, task);
}

void wake_elsewhere(Executor *here, Executor *home, Task *task) noexcept {
    if (home == nullptr)
        return unpark(task);
    if (here == nullptr || &here->pool() != &home->pool())
        return home->pool().wake_from_outside(*home, task);
    // A pinned one goes home. Alone all is ours, whose ever it was while there were others.
    if (here == home || !here->many() || !task->pinned)
        here->enqueue(task);
    else
        home->send(task);
}

bool claim_and_wake(Task *task, uint64_t epoch, WakeReason reason, int32_t value) noexcept {
    const TaskWord::Claim claim = task->word.try_claim(epoch);
    if (claim == TaskWord::Claim::lost)
        return false;
    task->reason = reason;
    task->wake_value = value;
    wake(task, claim);
    return true;
}

} // namespace mc::sched
