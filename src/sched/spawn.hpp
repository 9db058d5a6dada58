// Microthreads from birth to end, and who waits for the end.
#pragma once

#include "sched/runtime.hpp"

#include <mc/base.h>

#include <cstdint>

namespace mc::sched {

struct SpawnRequest {
    int32_t (*returning)(void *) = nullptr; // one of the two
    void (*plain)(void *) = nullptr;
    void *argument = nullptr;
    uint64_t stack_size = 0;    // 0: the runtime's
    const char *name = nullptr; // may be null
    bool run_at_once = false;   // out of turn, where the caller can switch
    bool pinned = false;        // stays with the executor that it is given to
    Priority priority = Priority::normal;
    Group *group = nullptr;      // of which it is a child, and counted already
    Pool *pool = nullptr;        // null: the executor's
    uint64_t runtime = 0;        // that the caller named; 0: none
    bool native = false;         // see Task; begins also while the pool closes: the caller is one of it, and waits
    mc_task_t *handle = nullptr; // null: detached
};

// thread may be null (a thread that we do not know spawns into the default executor). MC_OK, MC_E_INVAL, MC_E_NOMEM.
int32_t spawn(ThreadContext *thread, Executor &executor, const SpawnRequest &request) noexcept;

// A step: runs to completion on the executor's own context when its turn comes. MC_OK or MC_E_NOMEM.
int32_t spawn_step(Executor &executor, void (*run)(void *), void *argument, bool pinned = false) noexcept;

// A step that is queued again and again, so that queuing it needs no memory. It is the caller's: queued once at a time, by
// anybody; from the moment on at which `run` says so, by queuing it as the last thing that it does, or by letting others do
// so, it may run elsewhere. Null: no memory. name: a literal of at most 31 characters.
Task *make_step(void (*run)(void *), void *argument, const char *name) noexcept;
void queue_step(Pool &pool, Task *step) noexcept;
void drop_step(Task *step) noexcept; // it is not queued, and will not be

// For a thread that has been attached; as mc_join.
int32_t join(mc_task_t handle, int64_t deadline_ns, int32_t *result, Scope *scope) noexcept;
int32_t detach(mc_task_t handle) noexcept;
// A blocking call in simulation: of a task of the simulated thread.
int32_t call_in_simulation(ThreadContext &thread, int32_t (*fn)(void *), void *user, int32_t *result) noexcept;
mc_task_t handle_of(const Task &task) noexcept; // 0 when it has none

// Cut to 31 bytes; null clears. False: no memory, the first time that this task's slot gets one.
[[nodiscard]] bool set_name(Task &task, const char *name) noexcept;
void clear_name(Task &task) noexcept;

// A microthread's context, on its stack, so that it begins when it is switched to.
void make_context(Task &task) noexcept;

} // namespace mc::sched
