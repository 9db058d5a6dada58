// A cancellation scope: cancelling it ends the waits that were begun under it, and refuses later ones; so does its
// deadline. A wait registers after it has published its epoch and looks at the flag under the same lock, so a
// cancellation is seen by one or the other. A wait that was granted before stays granted: the claim decides.
//
// Scopes form a tree: what cancels a scope cancels those below it, and the deadline of one bounds theirs. A wait registers
// with the innermost scope of its task alone. The deadline needs no timer of the scope's: each wait is over by then (park
// sees to it), and between waits nobody asks.
//
// Any thread. Waiters are woken with the lock given back. Lock rank: inside the locks that a parking task carries; a scope's
// before those below it. cancel() holds the locks of all scopes on the path from its own to the one that it visits, so that
// no scope below comes or goes unseen: who makes one looks at the flag under its parent's lock, who ends one takes it off
// the list under that.
//
// Rejected: a timer for each scope with a deadline (a race between its firing and the scope's end, and 10^5 requests are
// 10^5 timers beside those of their waits); registering with every scope on the path (a lock for each on every wait).
#pragma once

#include "base/handle.hpp"
#include "base/list.hpp"
#include "base/slab.hpp"
#include "base/spinlock.hpp"
#include "sched/task_word.hpp"

#include <mc/base.h>

#include <cstdint>

namespace mc::sched {

struct Task;

struct ScopeWait : base::ListNode<ScopeWait> {
    Task *task = nullptr;
    uint64_t epoch = 0;
    TaskWord::Claim claim = TaskWord::Claim::lost; // while cancel() has it
};

class Scope : public base::SlabItem<Scope>, public base::HandleItem, public base::ListNode<Scope> {
public:
    // Ends all waits with WakeReason::cancelled. The first cause stays.
    void cancel(int32_t cause = MC_E_CANCELED) noexcept;
    // The same, by one who holds the lock under which the scope's end is decided, and gives it back once the scope's own is
    // taken: then it stays until it is cancelled.
    void cancel_from(base::Spinlock &owner, int32_t cause) noexcept;
    // Also when the deadline has passed.
    bool cancelled() noexcept { return cause() != MC_OK; }
    int32_t cause() noexcept; // MC_OK: not cancelled

    // The earliest of its own and those above it. Immutable.
    int64_t deadline_ns() const noexcept { return deadline_ns_; }

    // False: cancelled already, and nothing is registered.
    [[nodiscard]] bool enter(ScopeWait &wait) noexcept;
    // After the wait, whoever ended it.
    void leave(ScopeWait &wait) noexcept;

    // Below another one (null: none), which can not end before; null without memory.
    static Scope *create(Scope *parent, int64_t deadline_ns) noexcept;
    // False: a task is inside it, or a scope is below it. With a handle the caller has locked the scope (below).
    [[nodiscard]] static bool destroy(Scope *scope) noexcept;

    // Tasks inside, each counted as often as it has entered.
    void add_inside() noexcept;
    void remove_inside() noexcept;

    void forget() noexcept; // see leave_behind: nobody waits, and no scope is below it

private:
    friend int32_t enter_scope(Task &, uint64_t) noexcept;
    friend int32_t destroy_scope(uint64_t) noexcept;
    friend int32_t cancel_scope(uint64_t, int32_t) noexcept;
    friend int32_t scope_cause(uint64_t, int32_t *) noexcept;

    static void end(Scope *scope, bool reusable) noexcept;
    void cancel_locked(int32_t cause) noexcept;
    bool mark(int32_t cause, base::List<ScopeWait> &granted) noexcept;
    int32_t cause_locked() const noexcept;

    base::Spinlock lock_;
    // guarded by lock_
    base::List<ScopeWait> waits_;
    int32_t cause_ = MC_OK;
    uint32_t inside_ = 0;
    base::List<Scope> children_;
    // immutable while it is in use
    Scope *parent_ = nullptr;
    int64_t deadline_ns_ = INT64_MAX;
};

using ScopeSlab = base::Slab<Scope>;
ScopeSlab &scope_slab() noexcept;

// One entry of a task's into a scope; a task's are linked, innermost first.
struct ScopeEntry {
    Scope *scope;
    ScopeEntry *outer;
    bool for_life; // from its start to its end: a group's child
};

// By handle, for the calling task. As mc/scope.h.
int32_t create_scope(Task &task, int64_t deadline_ns, uint64_t *out) noexcept;
int32_t enter_scope(Task &task, uint64_t handle) noexcept;
int32_t leave_scope(Task &task) noexcept;
int32_t cancel_scope(uint64_t handle, int32_t cause) noexcept;
int32_t scope_cause(uint64_t handle, int32_t *cause) noexcept;
int32_t destroy_scope(uint64_t handle) noexcept;
uint64_t current_scope(const Task &task) noexcept; // 0: none with a handle

// A task that nobody runs yet is inside the scope from its start. False without memory.
[[nodiscard]] bool begin_inside(Task &task, Scope &scope) noexcept;
void leave_all_scopes(Task &task) noexcept;

} // namespace mc::sched
