// A task: what an executor runs. It lives in a type-stable slab apart from its stack, so that a late waker or a stale
// handle always finds its words.
//
// Kinds: fiber (a microthread with a stack of its own), adopted (the stack of the thread that owns the executor), step
// (runs to completion on the executor's own context), idle (that context), foreign (a thread that owns no executor; it
// waits on a parker of its own).
#pragma once

#include "base/handle.hpp"
#include "base/list.hpp"
#include "base/slab.hpp"
#include "fiber/context.hpp"
#include "fiber/stack.hpp"
#include "sched/task_word.hpp"
#include "sched/timer.hpp"

#include <mc/base.h>

#include <cstdint>

namespace mc::sched {

class Executor;
struct Task;

enum class Kind : uint8_t { fiber, adopted, step, idle, foreign };

// Why a park ended.
enum class WakeReason : uint8_t { none, ready, closed, timed_out, cancelled, deadlock, shutdown };

// What has happened to a task at its end; the slot is free once it has left and nobody owns the handle.
//   result   its result is there          left     its stack is given back; nobody runs on it any more
//   unowned  nobody can join it: detached, or joined
enum Ended : uint8_t { end_none = 0, end_result = 1, end_left = 2, end_unowned = 4 };

struct JoinWait : base::ListNode<JoinWait> {
    Task *task = nullptr;
    uint64_t epoch = 0;
    TaskWord::Claim claim = TaskWord::Claim::lost; // while the end, or a detach, has it
};

struct Task : base::SlabItem<Task>, base::HandleItem, fiber::Context, Timer {
    // any thread: see task_word.hpp
    TaskWord word;

    // The holder of the claim writes them before it wakes; the task reads them when it runs again.
    int32_t wake_value = 0;
    WakeReason reason = WakeReason::none;

    // any thread: the current wait has a deadline. Written before the wait is published.
    sync::atomic<uint8_t> timed{0};

    // immutable from spawn to end
    Kind kind = Kind::fiber;
    bool ever_joinable = false;   // a handle was given out at spawn
    bool in_schedule = false;     // owner executor only: inside csp_schedule
    uint8_t ended = end_none;     // guarded by join_lock, when ever joinable
    Executor *executor = nullptr; // where it runs and is enqueued; null for a foreign thread

    // The executor that it is queued on; `next` also links it in an inbox, when it is in no queue.
    Task *next = nullptr;
    Task *prev = nullptr;

    // owner executor only; the context is a base
    fiber::Stack stack;

    // immutable from spawn to end: returning takes the result, plain does not
    int32_t (*returning)(void *) = nullptr;
    void (*plain)(void *) = nullptr;
    void *argument = nullptr;

    uint64_t id = 0; // creation ordinal; immutable from spawn to end

    // guarded by join_lock
    base::Spinlock join_lock;
    int32_t result = 0;

    // any thread: a foreign thread sleeps on it
    sync::atomic<uint32_t> parker{0};

    char name[32] = {}; // written by the task or at spawn; read by reports, which may see a torn one

    base::List<JoinWait> joiners; // guarded by join_lock

    fiber::Context &context() noexcept { return *this; }
    Timer &timer() noexcept { return *this; } // of the current wait
};

using TaskSlab = base::Slab<Task>;
TaskSlab &task_slab() noexcept;

} // namespace mc::sched
