#include "sched/scope.hpp"

#include "sched/park.hpp"

namespace mc::sched {

void Scope::cancel() noexcept {
    // A granted wait is taken off the list under the lock, so that the waiter may find itself gone; it can not go on
    // before it is woken, which happens below. The list of the granted lives in the waiters' own nodes.
    base::List<ScopeWait> granted;
    lock_.lock();
    cancelled_ = true;
    for (ScopeWait *wait = waits_.front(); wait != nullptr;) {
        ScopeWait *next = waits_.after(wait);
        wait->claim = wait->task->word.try_claim(wait->epoch);
        if (wait->claim != TaskWord::Claim::lost) {
            waits_.remove(wait);
            granted.push_back(wait);
        }
        wait = next;
    }
    lock_.unlock();
    while (ScopeWait *wait = granted.pop_front()) {
        Task *task = wait->task;
        task->reason = WakeReason::cancelled;
        task->wake_value = 0;
        wake(task, wait->claim);
    }
}

bool Scope::cancelled() noexcept {
    base::SpinGuard guard(lock_);
    return cancelled_;
}

bool Scope::enter(ScopeWait &wait) noexcept {
    base::SpinGuard guard(lock_);
    if (cancelled_)
        return false;
    waits_.push_back(&wait);
    return true;
}

void Scope::leave(ScopeWait &wait) noexcept {
    base::SpinGuard guard(lock_);
    if (wait.linked())
        waits_.remove(&wait);
}

} // namespace mc::sched
