#include "sched/park.hpp"

#include "base/assert.hpp"
#include "sched/executor.hpp"
#include "sched/runtime.hpp"

namespace mc::sched {
namespace {

uint64_t wait_ticket(Timer &timer) noexcept;
void wait_timed_out(Timer &timer, uint64_t epoch, int64_t now_ns) noexcept;
constexpr Timer::Action timeout_action{wait_ticket, wait_timed_out};

// While the timer is armed the task can not have left its wait (it cancels first), so the word still has the wait's epoch.
uint64_t wait_ticket(Timer &timer) noexcept { return TaskWord::epoch_of(static_cast<Task &>(timer).word.look()); }

void wait_timed_out(Timer &timer, uint64_t epoch, int64_t) noexcept {
    (void)claim_and_wake(&static_cast<Task &>(timer), epoch, WakeReason::timed_out, 0);
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

void wait_foreign(Task &task, Parking &parking) noexcept {
    if (parking.scope != nullptr && !parking.scope->enter(parking.scope_wait))
        (void)claim_and_wake(&task, parking.epoch, WakeReason::cancelled, 0);
    if (parking.commit != nullptr)
        parking.commit(parking);
    if (task.word.publish_parked() == TaskWord::Publish::parked)
        sleep_until_woken(task, parking);
    task.word.start();
}

// The store to the word was the last access to the waiter's memory but for its parker, which is type-stable.
void unpark(Task *task) noexcept {
    task->parker.fetch_add(1, sync::release); // release: pairs with the acquire in sleep_until_woken; after the word
    sync::futex_wake(task->parker, 1);
}

} // namespace

WakeReason park(ThreadContext &thread, Parking &parking) noexcept {
    Task *task = thread.running;
    MC_DEBUG_INVARIANT(thread.no_switch == 0, thread.no_switch);
    parking.task = task;
    parking.epoch = task->word.begin_park();
    parking.scope_wait.task = task;
    parking.scope_wait.epoch = parking.epoch;
    task->action = &timeout_action;
    task->deadline_ns = parking.deadline_ns;
    if (thread.executor != nullptr)
        thread.executor->switch_away(parking);
    else
        wait_foreign(*task, parking);
    // `thread` may be another thread's by now.
    const WakeReason reason = task->reason;
    if (parking.deadline_ns != INT64_MAX && reason != WakeReason::timed_out && task->executor != nullptr)
        task->executor->timers().cancel(task->timer());
    if (parking.scope != nullptr)
        parking.scope->leave(parking.scope_wait);
    return reason;
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
    Executor *executor = task->executor; // before the word is stored: then the task is not ours any more
    if (task->word.wake(claim) == TaskWord::Wake::parker_requeues)
        return;
    if (executor != nullptr)
        executor->enqueue(task);
    else
        unpark(task);
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

void wake_handing_over(ThreadContext &thread, Task *task, TaskWord::Claim claim) noexcept {
    Executor *executor = thread.executor;
    if (executor == nullptr || task->executor != executor || thread.no_switch != 0 || claim != TaskWord::Claim::parked)
        return wake(task, claim);
    task->word.hand_over();
    executor->queue().push_tail(task);
    executor->run_out_of_turn(task);
}

} // namespace mc::sched
