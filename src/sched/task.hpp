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
class Pool;
class Scope;
class Mutex;
class Group;
struct ScopeEntry;
struct Locals;
struct Task;

enum class Kind : uint8_t { fiber, adopted, step, idle, foreign };

// The weight of a quantum: a quarter, one, four.
enum class Priority : uint8_t { low, normal, high };

// What a task waits for: the kind, and the address (or handle) of the thing. One word, so that a report reads both at
// once; it says something only while the task's word reads parked, before and after.
enum class WaitKind : uint8_t {
    none,
    sleep,
    send,
    receive,
    choice,
    join,
    operation,
    mutex,
    request,
    semaphore,
    wait_group,
    once,
    condition,
    read_lock,
    write_lock,
    group,
    quiescence,
    blocking_call,
    mailbox,
    poll,
};
struct WaitsFor {
    uint64_t bits = 0;

    constexpr WaitsFor() noexcept = default;
    WaitsFor(WaitKind kind, const void *object) noexcept : WaitsFor(kind, reinterpret_cast<uintptr_t>(object)) {}
    constexpr WaitsFor(WaitKind kind, uint64_t object) noexcept
        : bits(object << kind_bits | static_cast<uint64_t>(kind)) {}
    WaitKind kind() const noexcept { return static_cast<WaitKind>(bits & 0xff); }
    uint64_t object() const noexcept { return bits >> kind_bits; } // 56 bits: user addresses have at most 57, signed

private:
    static constexpr uint32_t kind_bits = 8;
};
static_assert(sizeof(WaitsFor) == 8);

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

// A task's name, apart from it, since few have one. It stays with the task's slot once there is one, so that a report always
// finds it. Written by the task or at spawn; read by reports, which may see a torn one.
struct TaskName : base::SlabItem<TaskName> {
    char text[32] = {};
};
using TaskNameSlab = base::Slab<TaskName>;
TaskNameSlab &task_name_slab() noexcept;

// What a task runs; one of the two functions, as Task::returns says: a returning one's result is the task's.
struct TaskBody {
    union {
        int32_t (*returning)(void *);
        void (*plain)(void *);
        // A microthread's, from its first turn on: where its quantum began, once it has had one on a wheel. Likewise as executor.
        Executor *quantum_of;
    };
    void *argument; // until the end, though only its stack needs it then: a leak checker finds here what it points at
};

// What a blocked microthread costs beside its stack; so words that are never needed at the same time share their place.
struct Task : base::SlabItem<Task>, base::HandleItem, fiber::Context, Timer {
    // any thread: see task_word.hpp
    TaskWord word;

    union {
        // The holder of the claim writes them before it wakes; the task reads them when it runs again.
        int32_t wake_value = 0;
        int32_t result; // from its end on, when it does not wait any more; guarded by join_lock
    };
    WakeReason reason = WakeReason::none;

    // any thread: the current wait has a deadline. Written before the wait is published.
    sync::atomic<uint8_t> timed{0};
    // any thread: one of the library's own threads, with nothing to do
    sync::atomic<uint8_t> idle_service{0};
    // It was part of a world that was found closed. Guarded by the registry's mutex.
    bool deadlocked = false;

    // immutable from spawn to end
    Kind kind = Kind::fiber;
    bool ever_joinable = false; // a handle was given out at spawn
    bool pinned = false;        // stays with its executor; immutable from spawn to end
    Priority priority = Priority::normal;
    bool in_schedule = false; // owner executor only: inside csp_schedule
    bool native : 1 = false;  // in simulation: runs what a blocking call is to run; immutable from spawn to end
    bool kept : 1 = false;    // a step that is its maker's, and queued again and again; likewise
    bool returns : 1 = false; // which of body's it is; as body
    uint8_t ended = end_none; // guarded by join_lock, when ever joinable

    // any thread: it waits until nothing moves there, and does nothing else until it knows. Cleared, with the verdict, under
    // the registry's mutex.
    sync::atomic<Pool *> quiescence_of{nullptr};
    // any thread: what the current wait is for. Written before the wait is published.
    sync::atomic<WaitsFor> waits_for{WaitsFor{}};
    // any thread: when the current wait began, in steady nanoseconds; late by what the executor's clock is. Written
    // before the wait is published.
    sync::atomic<int64_t> waits_since_ns{0};

    // Where it runs, or ran last; null for a foreign thread. Written by set_executor, by the one that begins its turn; read by
    // whoever holds the claim on it, or has it from a queue. Others: seen_executor.
    Executor *executor = nullptr;
    uint32_t reductions = 0; // left of its quantum while it does not run; likewise
    // any thread: a foreign thread sleeps on it
    sync::atomic<uint32_t> parker{0};
    Scope *scope = nullptr; // the task only: cancels its waits; null for none
    // Whose microthread it is; immutable from spawn to end. In simulation one executor runs those of all runtimes. Null: of who owns
    // a thread.
    Pool *home = nullptr;

    // Alone: the executor that it is queued on. `next` also links it in an inbox or a shared queue.
    Task *next = nullptr;
    Task *prev = nullptr;

    // owner executor only; the context is a base
    fiber::Stack stack;

    TaskBody body{}; // immutable from spawn to end, but for quantum_of
    union {
        // of a microthread whose stack is cold, until that is made: its spawner's, see Executor::begin
        fiber::FloatingControl control;
        // From then on, and of all others always. The task only: where the machine's handler that it runs emits to; null: it
        // runs none. It goes where the task goes.
        void *emits_to = nullptr;
    };

    uint64_t id = 0; // creation ordinal; immutable from spawn to end
    union {
        uint64_t for_simulator = 0; // its own, in simulation; 0 at spawn
        uint64_t quantum_from;      // elsewhere: the position of the wheel of quantum_of
    };

    // the task only, and whoever makes or ends it; seen to by end_task_state (task_state.hpp)
    ScopeEntry *entries = nullptr; // the scopes that it has entered, innermost first
    Group *group = nullptr;        // of which it is a child
    Locals *locals = nullptr;

    // written by the task, read by reports
    sync::atomic<Mutex *> held{nullptr}; // the mutexes that it holds, the latest first

    base::Spinlock join_lock;
    // any thread: index of its name in task_name_slab, plus 1; 0: it never had one. Set once for a slot, see set_name.
    sync::atomic<uint32_t> name_slot{0};

    base::SlimList<JoinWait> joiners; // guarded by join_lock

    fiber::Context &context() noexcept { return *this; }
    Timer &timer() noexcept { return *this; } // of the current wait

    // What executor was a moment ago, for who holds no claim. Any thread.
    Executor *seen_executor() const noexcept { return sync::look_at(executor); }
    void set_executor(Executor *to) noexcept { sync::show_at(executor, to); }
};

static_assert(sizeof(Task) <= 280 || sizeof(fiber::Context) > sizeof(void *),
              "beside a page of stack, what was meant to be at most");

// Never null. Any thread; a signal handler too.
inline const char *name_of(const Task &task) noexcept {
    // acquire: pairs with set_name's release: the name is complete.
    const uint32_t slot = task.name_slot.load(sync::acquire);
    return slot == 0 ? "" : task_name_slab().at(slot - 1)->text;
}

// The registry of all tasks: those of every runtime, and of the foreign threads.
using TaskSlab = base::Slab<Task>;
TaskSlab &task_slab() noexcept;

// Calls look(task) for every slot, free ones too (phase idle). Any thread; the tasks go on meanwhile.
template <class Look> void for_each_task(Look look) noexcept {
    const uint32_t carved = task_slab().carved();
    for (uint32_t i = 0; i < carved; ++i)
        if (Task *task = task_slab().at(i))
            look(*task);
}

} // namespace mc::sched
