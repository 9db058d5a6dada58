#include "sched/pool.hpp"

#include "base/alloc.hpp"
#include "base/assert.hpp"
#include "sched/switch.hpp"

#include <mc/base.h>

namespace mc::sched {

namespace {

// A quantum is weighed by priority: a quarter of it, or four times as much, must still be one.
bool valid(const PoolOptions &options) noexcept {
    return options.wheel_segments >= 1 && options.wheel_segments <= Wheel::max_segments &&
           options.quantum_reductions >= 4 && options.quantum_reductions <= UINT32_MAX / 4 && options.quantum_ns >= 4 &&
           options.quantum_ns <= INT64_MAX / 4;
}

} // namespace

Pool *Pool::create(const DriverSource &drivers, const PoolOptions &options) noexcept {
    MC_INVARIANT(valid(options), options.wheel_segments);
    Pool *pool = base::create<Pool>(drivers, options);
    if (pool == nullptr)
        return nullptr;
    if (!pool->make_executors(1)) {
        base::destroy(pool);
        return nullptr;
    }
    pool->live_.store(1, sync::release);
    return pool;
}

// --- start and stop ---

bool Pool::make_executors(uint32_t n) noexcept {
    for (uint32_t made = made_.load(sync::relaxed); made < n; ++made) {
        Executor *executor = Executor::create(*this, made);
        if (executor == nullptr)
            return false;
        executors_[made].store(executor, sync::release); // release: pairs with live()'s acquire, through publish
        made_.store(made + 1, sync::release);
    }
    return true;
}

// The executor's words are ready before its thread is; it counts as live once it is sure to run: its thread and its
// starter, who goes on to send it tasks, both say so. They are started in order, so the number only grows.
bool Pool::start_thread(Executor &executor) noexcept {
    if (!executor.start_thread())
        return false;
    count_live(executor.index());
    return true;
}

// seq_cst: releases the executor to live(), and is the new executor's half of the thread bed's Dekker.
void Pool::count_live(uint32_t index) noexcept {
    uint32_t live = live_.load(sync::relaxed);
    do {
        if (live > index) {
            (void)sync::dekker_observe(live_);
            return;
        }
    } while (!live_.compare_exchange_weak(live, index + 1, sync::seq_cst, sync::relaxed));
}

int32_t Pool::start(uint32_t n) noexcept {
    MC_INVARIANT(!many() && n >= 1 && n <= max_executors, n);
    if (!make_executors(n))
        return MC_E_NOMEM;
    many_.store(1, sync::seq_cst);
    for (uint32_t i = 0; i < n; ++i) {
        if (start_thread(at(i)))
            continue;
        if (i > 0)
            stop();
        else
            many_.store(0, sync::seq_cst);
        first().expect_strays(); // what was handed in meanwhile
        return MC_E_NOMEM;
    }
    return MC_OK;
}

int32_t Pool::add_executor() noexcept {
    const uint32_t n = live();
    if (!many() || n == max_executors)
        return MC_E_LIMIT;
    if (!make_executors(n + 1) || !start_thread(at(n)))
        return MC_E_NOMEM;
    notify(); // what waits may go there
    return MC_OK;
}

// The numbers are those of the list at the head of pool.hpp.
void Pool::stop() noexcept {
    const uint32_t n = live();
    (void)sync::dekker_publish(stopping_, uint32_t{1}); // 1
    for (uint32_t i = 0; i < n; ++i)
        wake_up(at(i));
    for (uint32_t i = 0; i < n; ++i) // 2
        at(i).join_thread();
    (void)sync::dekker_publish(many_, uint32_t{0}); // 3: Dekker, with wake_from_outside
    (void)sync::dekker_publish(live_, uint32_t{1});
    (void)quiet_word_.fetch_add(1, sync::release); // release: pairs with wait_quiet, which reads many after it
    sync::futex_wake(quiet_word_, INT32_MAX);
    for (uint32_t i = 0; i < n; ++i) // 4
        at(i).give_tasks_to(first());
    first().expect_strays();
    drain_strays();
    stopping_.store(0, sync::relaxed); // no executor is there to read it
}

bool Pool::no_strays() const noexcept {
    const uint32_t made = made_.load(sync::acquire);
    for (uint32_t i = live(); i < made; ++i)
        if (!executors_[i].load(sync::relaxed)->nothing_came())
            return false;
    return !injection_.seen_nonempty();
}

void Pool::drain_strays() noexcept {
    Executor &into = first();
    const uint32_t made = made_.load(sync::acquire);
    for (uint32_t i = live(); i < made; ++i) {
        if (!at(i).timers().empty())
            at(i).timers().move_all_to(into.timers());
        at(i).give_inbox_to(into);
    }
    if (!many())
        into.accept_all(injection_.take(UINT32_MAX));
}

// --- work from elsewhere ---

void Pool::wake_from_outside(Executor &home, Task *task) noexcept {
    if (!many()) {
        first().send(task);
    } else if (task->pinned) {
        home.send(task);
        tell_first_if_stopped(home);
    } else {
        injection_.push(task);
        notify();
        // seq_cst: Dekker, with stop, after which nobody but the first executor looks there.
        if (many_.load(sync::seq_cst) == 0)
            wake_up(first());
    }
}

void Pool::inject_list(Task *first, Task *last, uint32_t count) noexcept {
    injection_.push_list(first, last, count);
    notify();
}

bool Pool::work_to_be_seen() noexcept {
    if (injection_.seen_nonempty())
        return true;
    const uint32_t n = live();
    for (uint32_t i = 0; i < n; ++i)
        if (at(i).work_to_be_seen())
            return true;
    return false;
}

bool Pool::timers_armed() noexcept {
    const uint32_t n = live();
    for (uint32_t i = 0; i < n; ++i)
        if (!at(i).timers().empty())
            return true;
    return false;
}

// Two choices are enough to keep queues short (Mitzenmacher, The Power of Two Choices, 2001).
Executor *Pool::lighter_than(Executor &from) noexcept {
    const uint32_t n = live();
    Executor *best = nullptr;
    uint32_t least = from.load();
    for (int i = 0; i < 2 && n > 1; ++i) {
        Executor &other = at(from.thread().prng.below(n));
        const uint32_t load = other.load() + Executor::load_of_one;
        if (&other != &from && load < least) {
            least = load;
            best = &other;
        }
    }
    return best;
}

// --- quiet ---

// Ends are read before beginnings: had a microthread begun before the last end that was read, it is counted. Equal sums
// mean that at the moment between the two nothing lived.
uint64_t Pool::microthreads() noexcept {
    uint64_t ended = 0;
    for (uint32_t i = 0, made = made_.load(sync::acquire); i < made; ++i)
        ended += at(i).ended();
    uint64_t begun = foreign_spawned_.load(sync::relaxed);
    // Read anew: on an executor added since, one may have begun whose end was counted.
    for (uint32_t i = 0, made = made_.load(sync::acquire); i < made; ++i)
        begun += at(i).begun();
    return begun - ended;
}

// Dekker: a waiter announces itself, then looks at the counters; an executor that runs out of work has written the
// counters, then looks for waiters. Both by a seq_cst read-modify-write of quiet_waiters_.
bool Pool::wait_quiet(int64_t deadline_ns) noexcept {
    (void)quiet_waiters_.fetch_add(1, sync::seq_cst);
    bool quiet = false;
    for (;;) {
        const uint32_t seen = quiet_word_.load(sync::acquire); // acquire: pairs with tell_quiet; before the look
        quiet = microthreads() == 0;
        // Without executors nobody would tell: stop() ends the wait.
        if (quiet || !many() || !sync::futex_wait(quiet_word_, seen, deadline_ns))
            break;
    }
    (void)quiet_waiters_.fetch_sub(1, sync::relaxed);
    return quiet || microthreads() == 0;
}

void Pool::tell_quiet() noexcept {
    if (sync::dekker_observe(quiet_waiters_) == 0 || microthreads() != 0)
        return;
    (void)quiet_word_.fetch_add(1, sync::release); // release: pairs with wait_quiet
    sync::futex_wake(quiet_word_, INT32_MAX);
}

} // namespace mc::sched
