// An executor in simulation: as alone (executor.cpp), but each turn is the simulator's choice. What runs is queued, as there; what
// the simulator picks is marked as running and jumped to. Time jumps and steps are for the idle context, since locks may be held
// where a choice is made.
#include "base/guarded.hpp"
#include "sched/pool.hpp"
#include "sched/report.hpp"
#include "sched/runtime.hpp"
#include "sched/switch.hpp"

namespace mc::sched {

// Where to jump to: the task, or the idle context for what only that can do.
Task *Executor::begin_simulated(Task *chosen) noexcept {
    lets_time_jump_ = chosen == nullptr && !queue_.empty(); // else what is left to be done comes before any deadline
    jump_to_ns_ = timers_.earliest();
    if (chosen == nullptr)
        return idle_;
    if (chosen->kind == Kind::step) {
        step_ = chosen;
        return idle_;
    }
    chosen->word.start();
    chosen->reductions = quantum_of(*chosen);
    return chosen;
}

// The running task has left its queue.
Task *Executor::next_simulated() noexcept {
    return begin_simulated(simulator()->choose(queue_, thread_.running, Turn::leaves, timers_.earliest()));
}

// The running task goes on later: it is the last in line.
void Executor::leave_simulated(Task *chosen) noexcept {
    Task *self = thread_.running;
    if (chosen == self)
        return;
    self->word.make_runnable();
    queue_.remove(self);
    queue_.push_tail(self);
    jump(begin_simulated(chosen));
}

// Nothing else is under way: no lock, no wait of the running task's.
void Executor::choose_simulated(Turn turn) noexcept {
    const int64_t now = simulator()->step();
    if (timers_.earliest() <= now || inbox_.maybe_nonempty())
        poll();
    leave_simulated(simulator()->choose(queue_, thread_.running, turn, timers_.earliest()));
}

// Where a quantum is used up the caller gives way, or one that waits for others by asking again and again would go on for ever.
void Executor::simulate_call() noexcept {
    thread_.reductions = 1; // the next call is looked at too
    Task &self = *thread_.running;
    if (thread_.no_switch != 0 || &self == idle_)
        return;
    const bool used_up = self.reductions <= 1;
    if (used_up)
        self.reductions = quantum_of(self);
    else
        --self.reductions;
    choose_simulated(used_up ? Turn::yields : Turn::call);
}

void Executor::yield_simulated() noexcept { choose_simulated(Turn::yields); }

void Executor::idle_simulated() noexcept {
    if (Task *step = step_) {
        step_ = nullptr;
        queue_.remove(step);
        return run_step(step);
    }
    if (lets_time_jump_) {
        lets_time_jump_ = false;
        simulator()->jump_to(jump_to_ns_); // what was chosen, whatever has been armed or has come since
        poll();
    }
    if (queue_.empty()) {
        poll();
        if (queue_.empty())
            return sleep_alone();
    }
    closed_looks_ = 0;
    if (Task *to = begin_simulated(simulator()->choose(queue_, nullptr, Turn::leaves, timers_.earliest())); to != idle_)
        jump(to);
}

// --- runtimes ---

namespace {

// As on an executor's own thread, where nobody else could go on; and the caller holds a lock.
template <class Call> void call_without_switch(const char *what, Call call) noexcept {
    ThreadContext &thread = here_now();
    ++thread.no_switch;
    (void)base::call_guarded(what, call);
    --thread.no_switch;
}

} // namespace

void Pool::start_simulated() noexcept {
    runs_simulated_ = true;
    if (options_.thread_started != nullptr)
        call_without_switch("a hook of a thread's start", [&] { options_.thread_started(options_.user, 0); });
    here_now().executor->take_over_inbox(first()); // the only one that runs
}

void Pool::stop_simulated() noexcept {
    runs_simulated_ = false;
    if (options_.thread_stops != nullptr)
        call_without_switch("a hook of a thread's end", [&] { options_.thread_stops(options_.user, 0); });
}

namespace {

// Waits until the others have ended, or do not move, and does not move itself.
bool waits_for_others(const Task &task) noexcept {
    return task.in_schedule || task.quiescence_of.load(sync::relaxed) != nullptr;
}

} // namespace

// A timer that is no task's (csp_after) counts for all: whom it wakes is not known.
bool Pool::moves_in_simulation() noexcept {
    bool moves = reclaimer().pending();
    uint64_t timed_waits = 0;
    for_each_task([&](const Task &task) {
        const Phase phase = TaskWord::phase_of(task.word.look());
        const bool timed = phase == Phase::parked && task.timed.load(sync::relaxed) != 0;
        timed_waits += timed ? 1 : 0;
        if (task.kind == Kind::fiber && task.home == this && phase != Phase::idle)
            moves |= task.native || (!waits_for_others(task) && (timed || phase != Phase::parked));
    });
    return moves || here_now().executor->timers().armed() > timed_waits;
}

bool Executor::others_move() const noexcept {
    const Task *task = queue_.head();
    if (task == nullptr)
        return false;
    do {
        if (task != thread_.running && !waits_for_others(*task))
            return true;
        task = task->next;
    } while (task != queue_.head());
    return false;
}

int32_t Executor::wait_for_others(WaitsFor waits_for, int64_t deadline_ns) noexcept {
    poll();
    if (pool_.reclaimer().pending() && !reclaim_queued_)
        queue_reclaim_step(); // nobody else is there to do it
    if (others_move()) {
        yield();
        return MC_OK;
    }
    Parking parking(nullptr, std::min(deadline_ns, timers_.earliest()), nullptr);
    parking.waits_for = waits_for;
    const WakeReason reason = park(thread_, parking);
    return reason == WakeReason::timed_out ? MC_OK : status_of(reason);
}

// Among many, csp_schedule waits until no microthread is left: it would wait for ever.
void simulated_schedule_ended(Pool &pool) noexcept {
    if (simulates_many() && pool.microthreads() != 0)
        report_deadlock();
}

// --- calls ---

void simulate_call(ThreadContext &thread) noexcept {
    if (thread.executor != nullptr && thread.executor->simulated())
        thread.executor->simulate_call();
}

void simulate_call_that_never_waits(ThreadContext &thread) noexcept {
    if (thread.executor != nullptr && thread.executor->simulated() && simulator()->parallel())
        thread.executor->simulate_call();
}

} // namespace mc::sched
