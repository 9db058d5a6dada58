// A cancellation scope: cancelling it ends the waits that were begun under it, and refuses later ones. A wait registers
// after it has published its epoch and looks at the flag under the same lock, so a cancellation is seen by one or the
// other. A wait that was granted before stays granted: the claim decides.
//
// Any thread. Waiters are woken with the lock given back. Lock rank: inside the locks that a parking task carries.
#pragma once

#include "base/list.hpp"
#include "base/spinlock.hpp"
#include "sched/task_word.hpp"

#include <cstdint>

namespace mc::sched {

struct Task;

struct ScopeWait : base::ListNode<ScopeWait> {
    Task *task = nullptr;
    uint64_t epoch = 0;
    TaskWord::Claim claim = TaskWord::Claim::lost; // while cancel() has it
};

class Scope {
public:
    // Ends all waits with WakeReason::cancelled. May be called again.
    void cancel() noexcept;
    bool cancelled() noexcept;

    // False: cancelled already, and nothing is registered.
    [[nodiscard]] bool enter(ScopeWait &wait) noexcept;
    // After the wait, whoever ended it.
    void leave(ScopeWait &wait) noexcept;

private:
    base::Spinlock lock_;
    // guarded by lock_
    base::List<ScopeWait> waits_;
    bool cancelled_ = false;
};

} // namespace mc::sched
