// What is known of tasks, for reports: deadlocks, what a shutdown could not end, snapshots. Tasks go on meanwhile and nobody is
// disturbed: everything is read from their own words, twice, so that what is said of a wait belongs to one wait. Any thread.
#pragma once

#include "sched/pool.hpp"

#include <cstdint>

namespace mc::sched {

enum class TaskState : uint32_t { running, runnable, waiting };

struct TaskReport {
    uint64_t id = 0;     // 0: a thread
    uint64_t handle = 0; // 0: nobody can join it
    uint64_t runtime = 0;
    char name[32] = {};
    Kind kind = Kind::fiber;
    TaskState state = TaskState::running;
    uint32_t executor = UINT32_MAX; // where it runs or ran last
    // Of one that waits.
    WaitKind waits_for = WaitKind::none;
    uint64_t object = 0; // address or handle
    char object_name[32] = {};
    int64_t waited_ns = 0;
    bool timed = false; // it will not wait for ever
    // Who holds what it waits for: the owner of a mutex, the writer of a lock, the microthread that it joins.
    const Task *holder = nullptr;
    Kind holder_kind = Kind::fiber;
    uint64_t holder_id = 0;
    char holder_name[32] = {};
    // Of a microthread.
    uint64_t stack_bytes = 0;
    uint64_t stack_used = 0; // of one that does not run
    uint64_t stack_high = 0; // most that was ever used, at most: see fiber::stack_high_water
};

// False: the slot is free, or belongs to the library itself. with_stack: looks at its stack too, which costs system calls.
bool report_task(const Task &task, TaskReport *report, bool with_stack) noexcept;

// For a host's collector, which sees to it that tasks do not move meanwhile: the part of a microthread's stack that is in use,
// registers included; all of it of one that runs. False: not a microthread of this pool.
struct StackInUse {
    const void *low = nullptr;
    const void *high = nullptr;
};
bool stack_in_use(const Task &task, const Pool &pool, StackInUse *stack) noexcept;

const char *wait_text(WaitKind kind) noexcept; // "to receive from channel"

// Names what a wait is for, where a room above knows the objects; buf has 32 bytes. Set once by that room.
using NameObject = void (*)(uint64_t object, char *buf);
void set_channel_namer(NameObject name) noexcept;

// To the log: every task that waits, what for, since when, who holds it, and the cycle if there is one.
void report_deadlock() noexcept;
// The same, at most once a second: for a program to which deadlocks are an answer like any other.
void report_deadlock_now_and_then() noexcept;
// To the log, as a warning: what runs in the pool, and the blocking calls under way; nothing has begun or ended for a while.
void report_what_runs(Pool &pool) noexcept;
// To the log: every microthread of the pool, those in blocking calls with the function that they wait for.
void report_what_is_left(Pool &pool) noexcept;

} // namespace mc::sched
