// What hangs off a task beside its wait: its values (task-local storage), the mutexes that it holds, the scopes that it is
// inside. The calling task's own business, on its own stack or thread; whoever ends a task sees to it all by end_task_state.
#pragma once

#include "sched/primitive.hpp"

namespace mc::sched {

// A key of task-local storage.
struct LocalKey : base::SlabItem<LocalKey>, base::HandleItem {
    static constexpr base::HandleKind kind = base::HandleKind::local;
    base::Spinlock lock;
    void (*drop)(void *) = nullptr; // guarded by lock; may be null

    void forget() noexcept { new (&lock) base::Spinlock(); } // see leave_behind
};

int32_t create_local(void (*drop)(void *), uint64_t *out) noexcept;
int32_t delete_local(uint64_t handle) noexcept; // values stay with their tasks and are dropped by nobody
int32_t set_local(Task &task, uint64_t handle, void *value) noexcept;
void *get_local(const Task &task, uint64_t handle) noexcept; // null: none, or no such key

inline bool has_state(const Task &task) noexcept {
    return task.entries != nullptr || task.locals != nullptr || task.held.load(sync::relaxed) != nullptr;
}
// Drops the values, which calls users, with no lock held; gives back the mutexes, whose next owners learn of it; leaves the
// scopes.
void end_task_state(Task &task) noexcept;

// In a forked child that begins anew: what tasks had is left behind, and every handle of a scope, a group, a key or a
// primitive is stale.
void leave_states_behind() noexcept;

} // namespace mc::sched
