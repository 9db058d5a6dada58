#include "sched/scope.hpp"

#include "base/alloc.hpp"
#include "sched/park.hpp"

#include <algorithm>
#include <new>

namespace mc::sched {

ScopeSlab &scope_slab() noexcept {
    static constinit ScopeSlab slab;
    return slab;
}

// --- cancelling ---

int32_t Scope::cause_locked() const noexcept {
    if (cause_ == MC_OK && deadline_ns_ != INT64_MAX && deadline_ns_ <= sync::now_ns())
        return MC_E_TIMEDOUT;
    return cause_;
}

int32_t Scope::cause() noexcept {
    base::SpinGuard guard(lock_);
    return cause_locked();
}

// Under the lock. A granted wait is taken off the list, so that the waiter may find itself gone; it can not go on before it
// is woken, with all locks given back. The list of the granted lives in the waiters' own nodes. False: cancelled already,
// and so is all below.
bool Scope::mark(int32_t cause, base::List<ScopeWait> &granted) noexcept {
    if (cause_ != MC_OK)
        return false;
    cause_ = cause_locked(); // the deadline may have come first
    if (cause_ == MC_OK)
        cause_ = cause;
    for (ScopeWait *wait = waits_.front(); wait != nullptr;) {
        ScopeWait *following = waits_.after(wait);
        wait->claim = wait->task->word.try_claim(wait->epoch);
        if (wait->claim != TaskWord::Claim::lost) {
            waits_.remove(wait);
            granted.push_back(wait);
        }
        wait = following;
    }
    return true;
}

// Under this scope's lock, which it gives back. Depth first, with the locks of the path held; no recursion, since a tree may
// be deeper than a microthread's stack.
void Scope::cancel_locked(int32_t cause) noexcept {
    base::List<ScopeWait> granted;
    Scope *at = this;
    Scope *below = mark(cause, granted) ? children_.front() : nullptr;
    for (;;) {
        if (below != nullptr) {
            at = below;
            at->lock_.lock();
            below = at->mark(cause, granted) ? at->children_.front() : nullptr;
            continue;
        }
        if (at == this)
            break;
        Scope *done = at;
        at = done->parent_;
        below = at->children_.after(done);
        done->lock_.unlock();
    }
    lock_.unlock();
    while (ScopeWait *wait = granted.pop_front()) {
        Task *task = wait->task;
        task->reason = WakeReason::cancelled;
        task->wake_value = 0;
        wake(task, wait->claim);
    }
}

void Scope::cancel(int32_t cause) noexcept {
    lock_.lock();
    cancel_locked(cause);
}

void Scope::cancel_from(base::Spinlock &owner, int32_t cause) noexcept {
    lock_.lock();
    owner.unlock();
    cancel_locked(cause);
}

// --- waits ---

bool Scope::enter(ScopeWait &wait) noexcept {
    base::SpinGuard guard(lock_);
    if (cause_locked() != MC_OK)
        return false;
    waits_.push_back(&wait);
    return true;
}

void Scope::leave(ScopeWait &wait) noexcept {
    base::SpinGuard guard(lock_);
    if (wait.linked())
        waits_.remove(&wait);
}

// --- the tree ---

Scope *Scope::create(Scope *parent, int64_t deadline_ns) noexcept {
    Scope *scope = scope_slab().acquire();
    if (scope == nullptr)
        return nullptr;
    scope->cause_ = MC_OK;
    scope->inside_ = 0;
    scope->parent_ = parent;
    scope->deadline_ns_ = parent == nullptr ? deadline_ns : std::min(deadline_ns, parent->deadline_ns_);
    if (parent != nullptr) {
        base::SpinGuard guard(parent->lock_);
        scope->cause_ = parent->cause_; // before it is on the list: from then on cancel() sees to it
        parent->children_.push_back(scope);
    }
    return scope;
}

// What is left when nobody can find the scope any more but its parent. A cancellation that visits it holds the parent's
// lock all the while.
void Scope::end(Scope *scope, bool reusable) noexcept {
    if (scope->parent_ != nullptr) {
        base::SpinGuard guard(scope->parent_->lock_);
        base::List<Scope>::remove(scope);
    }
    if (reusable)
        scope_slab().release(scope);
}

bool Scope::destroy(Scope *scope) noexcept {
    {
        base::SpinGuard guard(scope->lock_);
        if (scope->inside_ != 0 || !scope->children_.empty())
            return false;
    }
    end(scope, true);
    return true;
}

void Scope::add_inside() noexcept {
    base::SpinGuard guard(lock_);
    ++inside_;
}

void Scope::remove_inside() noexcept {
    base::SpinGuard guard(lock_);
    --inside_;
}

// --- by handle ---

namespace {

Scope *resolve(uint64_t handle) noexcept { return base::resolve_handle(scope_slab(), base::HandleKind::scope, handle); }

void enter_resolved(Task &task, Scope &scope, ScopeEntry &entry, bool for_life) noexcept {
    entry = ScopeEntry{&scope, task.entries, for_life};
    task.entries = &entry;
    task.scope = &scope;
}

} // namespace

int32_t create_scope(Task &task, int64_t deadline_ns, uint64_t *out) noexcept {
    Scope *scope = Scope::create(task.scope, deadline_ns);
    if (scope == nullptr)
        return MC_E_NOMEM;
    *out = base::issue_handle(scope, base::HandleKind::scope);
    return MC_OK;
}

int32_t enter_scope(Task &task, uint64_t handle) noexcept {
    Scope *scope = resolve(handle);
    if (scope == nullptr)
        return MC_E_STALE;
    auto *entry = base::create<ScopeEntry>();
    if (entry == nullptr)
        return MC_E_NOMEM;
    {
        base::SpinGuard guard(scope->lock_);
        if (scope->generation.load(sync::relaxed) == base::handle_generation(handle)) {
            ++scope->inside_;
            enter_resolved(task, *scope, *entry, false);
            return MC_OK;
        }
    }
    base::destroy(entry);
    return MC_E_STALE;
}

bool begin_inside(Task &task, Scope &scope) noexcept {
    auto *entry = base::create<ScopeEntry>();
    if (entry == nullptr)
        return false;
    scope.add_inside();
    enter_resolved(task, scope, *entry, true);
    return true;
}

namespace {

void leave_innermost(Task &task) noexcept {
    ScopeEntry *entry = task.entries;
    task.entries = entry->outer;
    task.scope = entry->outer == nullptr ? nullptr : entry->outer->scope;
    entry->scope->remove_inside();
    base::destroy(entry);
}

} // namespace

int32_t leave_scope(Task &task) noexcept {
    if (task.entries == nullptr || task.entries->for_life)
        return MC_E_NOENT;
    leave_innermost(task);
    return MC_OK;
}

void leave_all_scopes(Task &task) noexcept {
    while (task.entries != nullptr)
        leave_innermost(task);
}

int32_t cancel_scope(uint64_t handle, int32_t cause) noexcept {
    if (cause > MC_OK)
        return MC_E_INVAL;
    Scope *scope = resolve(handle);
    if (scope == nullptr)
        return MC_E_STALE;
    scope->lock_.lock();
    if (scope->generation.load(sync::relaxed) != base::handle_generation(handle)) {
        scope->lock_.unlock();
        return MC_E_STALE;
    }
    scope->cancel_locked(cause == MC_OK ? MC_E_CANCELED : cause);
    return MC_OK;
}

int32_t scope_cause(uint64_t handle, int32_t *cause) noexcept {
    Scope *scope = resolve(handle);
    if (scope == nullptr)
        return MC_E_STALE;
    base::SpinGuard guard(scope->lock_);
    if (scope->generation.load(sync::relaxed) != base::handle_generation(handle))
        return MC_E_STALE;
    *cause = scope->cause_locked();
    return MC_OK;
}

int32_t destroy_scope(uint64_t handle) noexcept {
    Scope *scope = resolve(handle);
    if (scope == nullptr)
        return MC_E_STALE;
    bool reusable = false;
    {
        base::SpinGuard guard(scope->lock_);
        if (scope->generation.load(sync::relaxed) != base::handle_generation(handle))
            return MC_E_STALE;
        if (scope->inside_ != 0 || !scope->children_.empty())
            return MC_E_BUSY;
        reusable = base::retire_handle(scope);
    }
    Scope::end(scope, reusable);
    return MC_OK;
}

uint64_t current_scope(const Task &task) noexcept {
    const Scope *scope = task.scope;
    if (scope == nullptr || scope->generation.load(sync::relaxed) % 2 == 0)
        return 0;
    return base::make_handle(scope->generation.load(sync::relaxed), base::HandleKind::scope, scope->slab_index);
}

void Scope::forget() noexcept {
    new (&lock_) base::Spinlock();
    new (&waits_) base::List<ScopeWait>();
    new (&children_) base::List<Scope>();
    new (static_cast<base::ListNode<Scope> *>(this)) base::ListNode<Scope>();
    inside_ = 0;
}

} // namespace mc::sched
