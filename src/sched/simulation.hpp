// What a simulated process changes here: one executor runs the tasks of all runtimes, on one thread, and asks the simulator whose
// turn it is. The simulator itself, its policies and its records are the room above (src/sim); here is what it is asked and told.
//
// Set once, before the first task is made, by the thread that then owns everything. Where simulator() is null, nothing here costs
// more than a look at it on paths that are cold, or at a byte that is looked at anyway (Executor's mode).
#pragma once

#include "base/sync.hpp"

#include <mc/base.h>

#include <cstdint>

namespace mc::sched {

class RunQueue;
struct DriverSource;
struct Task;

// What happens, for the record. The numbers are those of mc/sim.h.
enum class SimEvent : uint32_t {
    spawn = 1,
    name = 2,
    end = 3,
    run = 4,
    wait = 5,
    channel = 6,
    name_channel = 7,
    message = 8,
    put = 9,
    take = 10,
    close = 11,
    lock = 12,
    unlock = 13,
    time = 14,
};

// Where a choice of the next task is made.
enum class Turn : uint8_t {
    call,   // the running task calls the library, and may go on
    yields, // it gives way to others, if there are any
    leaves, // it waits, or has ended; or nobody runs
};

class Simulator {
public:
    virtual ~Simulator() = default;

    // The next to run: one that is queued. Null: let time jump to next_timer_ns (INT64_MAX: no timer is armed). running is queued, but
    // for Turn::leaves, when it is the task that left, or null. The queue is not empty, or there is a timer. Locks may be held.
    virtual Task *choose(const RunQueue &queue, Task *running, Turn turn, int64_t next_timer_ns) noexcept = 0;

    // One of n, n above 0: the arm from which an alt looks.
    virtual uint32_t pick(uint32_t n) noexcept = 0;

    // A call of the running task has begun: time goes on, as it does with each choice for Turn::leaves. The new time.
    virtual int64_t step() noexcept = 0;
    // choose() has let time jump to here; and the executor has nothing to do until then.
    virtual void jump_to(int64_t deadline_ns) noexcept = 0;
    virtual void sleep_until(int64_t deadline_ns) noexcept = 0;

    // Calls that never wait may be followed by others too: more than one executor has been asked for.
    virtual void note_executors(uint32_t n) noexcept = 0;
    virtual bool parallel() const noexcept = 0;

    // What happens. task: null is the clock. element: the bytes of a message that a buffer takes or gives, or null.
    virtual void told(SimEvent event, const Task *task, const void *object, const Task *peer,
                      int64_t value) noexcept = 0;
    virtual void told_spawn(const Task *parent, Task &child) noexcept = 0;
    virtual void told_text(SimEvent event, const Task *task, const void *object, const char *text) noexcept = 0;
    virtual void buffered(SimEvent event, const Task *task, const void *channel, const void *element,
                          uint32_t bytes) noexcept = 0;
    // Objects by the order in which they were first told of, from 1; 0 for null.
    virtual uint64_t number_of(const void *object) noexcept = 0;
    // A mutex is gone: what has its place later is another one.
    virtual void mutex_gone(const void *mutex) noexcept = 0;
    // A channel is gone; what it held was given to its drop function, or to nobody.
    virtual void channel_gone(const void *channel, uint32_t held, bool dropped) noexcept = 0;

    // Nothing is left that could end the owner's wait, or a wait for the microthreads' end: a line of the report.
    virtual void deadlocked(bool first, const char *line) noexcept = 0;

    virtual const DriverSource &drivers() noexcept = 0;
};

#if defined(MC_SYS) && MC_SYS
// The twin explores this room by itself, and a look at this pointer is none of its choices.
inline constinit Simulator *the_simulator = nullptr;
inline Simulator *simulator() noexcept { return the_simulator; }
inline void set_simulator(Simulator *simulator) noexcept { the_simulator = simulator; }
#else
inline constinit sync::atomic<Simulator *> the_simulator{nullptr};
inline Simulator *simulator() noexcept {
    return the_simulator.load(sync::acquire);
} // acquire: pairs with set_simulator
inline void set_simulator(Simulator *simulator) noexcept { the_simulator.store(simulator, sync::release); }
#endif

} // namespace mc::sched
