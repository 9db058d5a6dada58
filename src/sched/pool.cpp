#include "sched/pool.hpp"

#include "base/alloc.hpp"
#include "base/assert.hpp"
#include "base/cpus.hpp"
#include "sched/report.hpp"
#include "sched/runtime.hpp"
#include "sched/spawn.hpp"
#include "sched/switch.hpp"

#include <algorithm>
#include <mc/base.h>
#include <utility>

namespace mc::sched {

namespace {

constexpr int64_t stuck_after_ns = 1'000'000'000; // what waits for quiet asks then whether anything moves

// A quantum is weighed by priority: a quarter of it, or four times as much, must still be one.
bool valid(const PoolOptions &options) noexcept {
    return options.wheel_segments >= 1 && options.wheel_segments <= Wheel::max_segments &&
           options.quantum_reductions >= 4 && options.quantum_reductions <= UINT32_MAX / 4 && options.quantum_ns >= 4 &&
           options.quantum_ns <= INT64_MAX / 4;
}

} // namespace

Pool *Pool::create(const DriverSource &drivers, const PoolOptions &options) noexcept {
    MC_INVARIANT(valid(options), options.wheel_segments);
    Reclaimer *reclaimer = process_reclaimer();
    Pool *pool = reclaimer == nullptr ? nullptr : base::create<Pool>(drivers, options, *reclaimer);
    if (pool == nullptr)
        return nullptr;
    if (!pool->make_executors(1)) {
        base::destroy(pool);
        return nullptr;
    }
    pool->live_.store(1, sync::release);
    return pool;
}

int32_t Pool::configure(const PoolOptions &options) noexcept {
    MC_INVARIANT(valid(options), options.wheel_segments);
    for (uint32_t i = 0, made = made_.load(sync::relaxed); i < made; ++i)
        if (!at(i).set_wheel_segments(options.wheel_segments))
            return MC_E_NOMEM; // those before it have theirs already, which does no harm: each wheel knows its own number
    if (BlockingPool *blocking = blocking_if_used()) {
        open_blocking();
        blocking->set_max_threads(options.blocking_threads);
    }
    begun_before_ = begun();
    turns_before_ = turns();
    options_ = options;
    return MC_OK;
}

// Without memory, or knowledge of the machine, nobody is pinned.
void Pool::plan_placement() noexcept {
    base::Topology topology;
    if (options_.placement == base::PlacementPolicy::none || !topology.read_machine())
        (void)placement_.plan(topology, base::PlacementPolicy::none, base::CoreKind::any, -1, 0);
    else
        (void)placement_.plan(topology, options_.placement, options_.cores, base::current_cpu(),
                              options_.seed != 0 ? options_.seed : static_cast<uint64_t>(sync::now_ns()));
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
    plan_placement();
    (void)base::usable_cpus(); // here there is stack enough to find out
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
    wake_quiet_waiters();            // who registers after this reads many
    for (uint32_t i = 0; i < n; ++i) // 4
        at(i).give_tasks_to(first());
    first().expect_strays();
    drain_strays();
    if (Pool *heir = default_pool(); heir != nullptr && heir != this && !first().timers().empty()) {
        first().timers().move_all_to(heir->first().timers()); // of channels that outlive us
        wake_up(heir->first());
    }
    stopping_.store(0, sync::relaxed); // no executor is there to read it
    fiber::stack_trim_excess();        // no executor of ours will be there to do so later
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

uint64_t Pool::turns() noexcept {
    uint64_t turns = 0;
    for (uint32_t i = 0, made = made_.load(sync::acquire); i < made; ++i)
        turns += at(i).turns();
    return turns;
}

uint64_t Pool::ended() noexcept {
    uint64_t ended = simulated_ended_.load(sync::acquire); // acquire: pairs with count_end_in_simulation
    for (uint32_t i = 0, made = made_.load(sync::acquire); i < made; ++i)
        ended += at(i).ended();
    return ended;
}

uint64_t Pool::begun() noexcept {
    uint64_t begun = foreign_spawned_.load(sync::seq_cst); // seq_cst: Dekker, with admit_from_outside
    for (uint32_t i = 0, made = made_.load(sync::acquire); i < made; ++i)
        begun += at(i).begun();
    return begun;
}

// Ends are read before beginnings: had a microthread begun before the last end that was read, it is counted. Equal sums
// mean that at the moment between the two nothing lived. (The executors are counted anew for the second sum: on one added
// since, a microthread may have begun whose end was counted.)
uint64_t Pool::microthreads() noexcept {
    const uint64_t before = ended();
    return begun() - before;
}

void Pool::withdraw_from_outside() noexcept {
    (void)foreign_spawned_.fetch_sub(1, sync::seq_cst);
    tell_quiet(); // one may have looked meanwhile, and counted it
}

// All executors are held asleep. What foreign threads hand in stays where it is then, and what they take away is nothing.
bool Pool::nothing_queued() noexcept {
    if (calls_blocking() || injection_.seen_nonempty())
        return false;
    for (uint32_t i = 0, n = live(); i < n; ++i)
        if (at(i).work_to_be_seen() || !at(i).nothing_came() || !at(i).next_is_empty())
            return false;
    return true;
}

// Dekker: a waiter announces itself, then looks; an executor that lies down has written the counters, and is counted
// asleep, then looks for waiters. Both by a seq_cst read-modify-write of quiet_waiters_. A waiter that was announced when an
// executor looked has registered, or looks after that, since both take the lock.
int32_t Pool::wait_quiet(ThreadContext &thread, Quiet quiet, int64_t deadline_ns) noexcept {
    auto &announced = quiet_waiters_[static_cast<uint64_t>(quiet)];
    const uint32_t task = quiet == Quiet::nothing_moves && thread.running->kind == Kind::fiber ? 1 : 0;
    (void)quiet_tasks_.fetch_add(task, sync::relaxed);
    (void)announced.fetch_add(1, sync::seq_cst);
    const int32_t status = quiet == Quiet::nothing_moves ? wait_and_watch(thread, deadline_ns)
                                                         : wait_until_quiet(thread, quiet, deadline_ns);
    (void)announced.fetch_sub(1, sync::relaxed);
    (void)quiet_tasks_.fetch_sub(task, sync::relaxed);
    return status;
}

int32_t Pool::wait_until_quiet(ThreadContext &thread, Quiet quiet, int64_t deadline_ns) noexcept {
    for (ThreadContext *here = &thread;; here = &here_now()) {
        quiet_lock_.lock();
        const bool stopped = !many();
        if (stopped || is_quiet(quiet)) {
            quiet_lock_.unlock();
            return stopped && microthreads() != 0 ? MC_E_CONTEXT : MC_OK;
        }
        const int32_t refused =
            deadline_ns != MC_FOREVER && deadline_ns <= sync::now_ns() ? MC_E_TIMEDOUT : may_block(*here);
        if (refused != MC_OK) {
            quiet_lock_.unlock();
            return refused;
        }
        Waiting waiting;
        waiting.asks = static_cast<uint64_t>(quiet);
        Parking parking(nullptr, deadline_ns, nullptr);
        parking.waits_for = WaitsFor(WaitKind::quiescence, this);
        const WakeReason reason = quiet_list_.wait(*here, quiet_lock_, waiting, WaitList::At::back, parking);
        if (reason == WakeReason::ready)
            continue;
        quiet_lock_.unlock();
        return status_of(reason);
    }
}

// Nobody else can say so when every executor is in native code: the waiter looks now and then whether anything has begun or
// ended, and if not names what runs, once.
int32_t Pool::wait_and_watch(ThreadContext &thread, int64_t deadline_ns) noexcept {
    uint64_t seen = progress();
    bool reported = false;
    for (ThreadContext *here = &thread;; here = &here_now()) {
        const int64_t look_ns = reported ? MC_FOREVER : sync::now_ns() + stuck_after_ns;
        const int32_t status = wait_until_quiet(*here, Quiet::nothing_moves, std::min(deadline_ns, look_ns));
        if (status != MC_E_TIMEDOUT || deadline_ns <= look_ns)
            return status;
        const uint64_t now = progress();
        reported = now == seen && (bed_.counts().sleeping != live() || calls_blocking());
        if (reported)
            report_what_runs(*this);
        seen = now;
    }
}

// Changes with every turn that begins and with every blocking call that begins to run or ends.
uint64_t Pool::progress() noexcept {
    BlockingPool *blocking = blocking_if_used();
    return turns() + (blocking == nullptr ? 0 : blocking->changes());
}

void Pool::tell_quiet() noexcept {
    const auto waits = [&](Quiet quiet) {
        return sync::dekker_observe(quiet_waiters_[static_cast<uint64_t>(quiet)]) != 0;
    };
    if ((waits(Quiet::no_microthread) && microthreads() == 0) ||
        (waits(Quiet::nothing_moves) && bed_.counts().sleeping == live()))
        wake_quiet_waiters();
}

// All of them: each looks for itself.
void Pool::wake_quiet_waiters() noexcept {
    WaitList::Taken taken;
    quiet_lock_.lock();
    while (Waiting *waiting = quiet_list_.take_first(MC_OK))
        taken.push_back(waiting);
    quiet_lock_.unlock();
    WaitList::wake_all(taken);
}

// --- blocking calls ---

BlockingPool *Pool::blocking() noexcept {
    BlockingPool *known = blocking_.load(sync::acquire); // acquire: pairs with the release below
    if (known != nullptr)
        return known;
    auto *made = base::create<BlockingPool>(options_.blocking_threads);
    if (made == nullptr)
        return nullptr;
    if (blocking_.compare_exchange_strong(known, made, sync::acq_rel, sync::acquire))
        return made;
    base::destroy(made);
    return known;
}

void Pool::open_blocking() noexcept {
    if (BlockingPool *blocking = blocking_if_used())
        blocking->reopen();
}

bool Pool::close_blocking(int64_t deadline_ns) noexcept {
    BlockingPool *blocking = blocking_if_used(); // it stays, for whoever looks at it
    return blocking == nullptr || blocking->close(deadline_ns);
}

// --- ending ---

namespace {

// Nobody is parking: we run.
void end_waits_simulated(const Pool &pool) noexcept {
    for_each_task([&](Task &task) {
        const uint64_t word = task.word.look();
        if (task.home == &pool && task.kind == Kind::fiber && !task.native && TaskWord::is_parked_unclaimed(word))
            (void)claim_and_wake(&task, TaskWord::epoch_of(word), WakeReason::shutdown, 0);
    });
}

// A pinned step, so on the context of the executor where they ran last: no parking of that executor's is half way then (a wait
// that is published before it is registered must not be ended from elsewhere). Of executors that have stopped: on any. One that
// comes late, when the pool is another runtime's, does nothing.
void end_waits_here(void *argument) noexcept {
    auto &asked = *static_cast<Executor *>(argument);
    const Executor *here = here_now().executor;
    Pool &pool = asked.pool();
    (void)asked.note_ending_waits(false);
    if (!pool.closing())
        return;
    for_each_task([&](Task &task) {
        const uint64_t word = task.word.look();
        const Executor *last = task.seen_executor();
        if (!TaskWord::is_parked_unclaimed(word) || last == nullptr || &last->pool() != &pool)
            return;
        if (last != here && last->index() < pool.live())
            return;
        // If the claim succeeds, what was read belongs to this wait. An owner's waits are not ended: it may be parked for the
        // very call that ends those of the others.
        if (task.kind == Kind::fiber)
            (void)claim_and_wake(&task, TaskWord::epoch_of(word), WakeReason::shutdown, 0);
    });
}

} // namespace

void Pool::end_all_waits() noexcept {
    if (simulator() != nullptr)
        return end_waits_simulated(*this);
    for (uint32_t i = 0, n = live(); i < n; ++i)
        if (at(i).note_ending_waits(true) && spawn_step(at(i), end_waits_here, &at(i), true) != MC_OK)
            (void)at(i).note_ending_waits(false); // without memory: next time
}

} // namespace mc::sched
