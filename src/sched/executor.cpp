#include "sched/executor.hpp"

#include "base/alloc.hpp"
#include "base/assert.hpp"
#include "sched/pool.hpp"
#include "sched/report.hpp"
#include "sched/runtime.hpp"
#include "sched/spawn.hpp"
#include "sched/switch.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>

namespace mc::sched {
namespace {

constexpr uint32_t max_poll_interval = 61;  // switches
constexpr int64_t poll_period_ns = 200'000; // what the interval aims at
constexpr int64_t first_closed_check_ns = 1'000'000;
constexpr int64_t last_closed_check_ns = 1'000'000'000;
#if defined(__SANITIZE_THREAD__)
// Its own threads look like new ones of the program's: wait until those have come.
constexpr uint32_t closed_looks_needed = 8;
#else
constexpr uint32_t closed_looks_needed = 1;
#endif
constexpr int64_t dense_ns = 50'000; // from timer to timer, on average over rate_ns: then it pays to let them gather
constexpr uint64_t idle_stack_bytes = 65'536; // steps run there

} // namespace

Parking Executor::task_ended_, Executor::task_yielded_, Executor::task_used_quantum_, Executor::task_moves_;

TaskSlab &task_slab() noexcept {
    static constinit TaskSlab slab;
    return slab;
}

// The two tasks that an executor has for itself: its own context, and the step that frees what was retired.
bool Executor::make_own_tasks() noexcept {
    idle_ = task_slab().acquire();
    reclaim_task_ = task_slab().acquire();
    if (idle_ == nullptr || reclaim_task_ == nullptr || !set_name(*idle_, "steps") ||
        !set_name(*reclaim_task_, "reclaim") || fiber::stack_acquire(idle_stack_bytes, &idle_->stack) != MC_OK) {
        for (Task *task : {idle_, reclaim_task_})
            if (task != nullptr)
                task_slab().release(task);
        return false;
    }
    idle_->kind = Kind::idle;
    idle_->emits_to = nullptr; // whoever had the slot may have been left behind in a handler
    idle_->set_executor(this);
    idle_->home = nullptr;
    fiber::context_make<idle_entry>(idle_->context(), idle_->stack);
    fiber::stack_set_owner(idle_->stack, idle_);
    idle_->id = 0;
    reclaim_task_->kind = Kind::step;
    reclaim_task_->emits_to = nullptr; // likewise
    reclaim_task_->kept = false;
    reclaim_task_->set_executor(this);
    reclaim_task_->home = nullptr;
    reclaim_task_->pinned = true;
    reclaim_task_->body.plain = reclaim_step;
    reclaim_task_->body.argument = this;
    reclaim_task_->id = 0;
    return true;
}

Executor *Executor::create(Pool &pool, uint32_t index) noexcept {
    void *memory = base::allocate(sizeof(Executor), alignof(Executor));
    Driver *driver = memory == nullptr ? nullptr : pool.make_driver(index);
    if (driver != nullptr) {
        auto *executor = new (memory) Executor(pool, index, driver);
        if (executor->wheel_.set_segments(pool.options().wheel_segments) && executor->make_own_tasks()) {
            std::snprintf(executor->reader_name_, sizeof executor->reader_name_, "executor %" PRIu32, index);
            pool.reclaimer().domain().add(executor->reader_, executor->reader_name_);
            executor->sleeper_.executor = executor;
            return executor;
        }
        executor->~Executor();
        pool.destroy_driver(driver);
    }
    base::deallocate(memory, sizeof(Executor), alignof(Executor));
    return nullptr;
}

// known: the thread's task while it was a foreign one; it stays the same, with all that hangs off it.
bool Executor::prepare_owner(Task *known) noexcept {
    Task *task = known == nullptr ? task_slab().acquire() : known;
    if (task == nullptr)
        return false;
    task->kind = Kind::adopted;
    task->home = nullptr;
    task->set_executor(this);
    task->pinned = true;
    task->id = 0;
    if (known == nullptr) {
        clear_name(*task);
        task->emits_to = nullptr;
    }
    task->in_schedule = false;
    task->idle_service.store(0, sync::relaxed);
    task->quiescence_of.store(nullptr, sync::relaxed);
    task->word.make_runnable();
    owner_ = task;
    return true;
}

void Executor::bind_thread() noexcept {
    owner_->word.start();
    fiber::context_adopt(owner_->context());
    thread_ = ThreadContext{this, owner_, 0, UINT32_MAX, base::Prng(pool_.seed_of(index_, driver_->random()))};
    fiber::overflow_thread_begin(alt_stack_);
    last_poll_ns_ = driver_->now();
    if (many_)
        reader_.online();
    if (simulated()) {
        thread_.reductions = 1; // every call is looked at
        owner_->reductions = quantum_of(*owner_);
    }
}

bool Executor::adopt_thread(Task *known) noexcept {
    if (!prepare_owner(known))
        return false;
    bind_thread();
    queue_.push_tail(owner_);
    return true;
}

Task *Executor::give_up_thread() noexcept {
    Task *task = owner_;
    if (many_)
        reader_.offline();
    else
        queue_.remove(task);
    task_slab().flush(task_cache_);
    stack_cache_.flush();
    fiber::overflow_thread_end(alt_stack_);
    owner_ = nullptr;
    thread_ = ThreadContext{};
    return task;
}

void Executor::release_thread() noexcept {
    Task *task = give_up_thread();
    task->word.retire();
    task_slab().release(task);
}

// --- switches ---

// A microthread whose stack nobody has touched yet, before its first turn: it gets one that somebody has, if there is one, so that a
// million that are spawned before any of them begins do not pay a page fault each.
void Executor::begin(Task *task) noexcept {
    stack_cache_.exchange_cold(task->stack);
    fiber::stack_ready(task->stack);
    fiber::stack_set_owner(task->stack, task);
    const fiber::FloatingControl theirs = task->control;
    task->emits_to = nullptr; // in the same place; from here on it may be running
    const fiber::FloatingControl ours = fiber::FloatingControl::now();
    if (ours == theirs)
        return make_context(*task);
    theirs.set();
    make_context(*task);
    ours.set();
}

void Executor::jump_to_new(Task *to) noexcept {
    begin(to);
    switch_to(to);
}

void Executor::arrive_new(fiber::Context *previous) noexcept { (void)arrive(previous); }

void Executor::complete_parking(Parking &parking) noexcept {
    Task *task = parking.task;
    if (parking.deadline_ns != INT64_MAX)
        timers_.arm(task->timer());
    enter_scope(parking); // cancelled already: we are still parking, and requeued below
    if (parking.commit != nullptr)
        parking.commit(parking);
    // After this the task may run elsewhere: nothing of it is touched any more.
    if (task->word.publish_parked() == TaskWord::Publish::requeue)
        accept(task);
}

void Executor::accept_all(Task *first) noexcept {
    while (first != nullptr) {
        Task *next = first->next;
        accept(first);
        first = next;
    }
}

void Executor::accept(Task *task) noexcept {
    if (!many_) {
        task->set_executor(this); // a stray's was another one
        queue_.push_tail(task);
    } else if (task->pinned) {
        push_pinned(task);
    } else {
        push_tail_of_many(task);
    }
}

void Executor::run_new(Task *task) noexcept {
    if (many_) {
        task->word.make_runnable();
        return task->pinned ? push_pinned(task) : push_next(task);
    }
    if (!alone_) {
        task->word.make_runnable();
        return queue_.push_tail(task); // whether it runs at once is a choice that its spawner comes to
    }
    task->word.start();
    queue_.push_tail(task);
    run_out_of_turn(task);
}

void Executor::yield() noexcept {
    Task *self = thread_.running;
    if (many_) {
        if (!others_queued())
            poll();
        return others_queued() || to_idle_ ? leave_for(task_yielded_) : void();
    }
    if (!alone_)
        return yield_simulated();
    if (queue_.holds_only(self))
        poll();
    queue_.give_up_turn(self);
    if (queue_.head() == self)
        return;
    self->word.make_runnable();
    jump(next_task());
}

void Executor::finish_running() noexcept {
    Task *self = thread_.running;
    if (!many_)
        queue_.remove(self);
    parking_ = &task_ended_;
    Task *to = next_task();
    if (to->sp == nullptr) [[unlikely]]
        begin(to);
    thread_.running = to;
    note_leaving(self);
    fiber::context_exit(self->context(), to->context());
}

// On another stack than the ended task's, after the switch away from it.
void Executor::reap(Task *ended) noexcept {
    fiber::context_destroy(ended->context());
    stack_cache_.release(ended->stack);
    ended->word.retire();
    Pool *home = ended->home;
    task_left(*ended, &task_cache_);
    if (simulated()) [[unlikely]]
        return home->count_end_in_simulation();
    // release: pairs with ended(); what the microthread did is seen by whoever finds that none is left.
    ended_.store(ended_.load(sync::relaxed) + 1, sync::release);
}

// --- parking and waking ---

WakeReason park(ThreadContext &thread, Parking &parking) noexcept {
    Task *task = thread.running;
    if (parking.scope == nullptr && parking.may_be_cancelled)
        parking.scope = task->scope;
    const int64_t own_deadline_ns = parking.deadline_ns;
    if (parking.scope != nullptr)
        parking.deadline_ns = std::min(own_deadline_ns, parking.scope->deadline_ns());
    const bool timed = parking.deadline_ns != INT64_MAX;
    if (timed) {
        task->action = &park_timeout;
        task->deadline_ns = parking.deadline_ns;
    }
    if (parking.scope != nullptr)
        new (&parking.scope_wait) ScopeWait{{}, task, 0};
    WakeReason reason = leave(thread, parking);
    // `thread` may be another thread's by now.
    if (timed && reason != WakeReason::timed_out && task->executor != nullptr)
        TimerHeap::cancel(task->timer());
    if (parking.scope != nullptr) {
        parking.scope->leave(parking.scope_wait);
        if (reason == WakeReason::timed_out && parking.deadline_ns < own_deadline_ns) { // the scope's was earlier
            parking.scope->cancel(MC_E_TIMEDOUT);
            reason = WakeReason::cancelled;
        }
    }
    return reason;
}

// --- queue, inbox, timers ---

void Executor::send(Task *task) noexcept {
    inbox_.push(task);
    if (awake_.must_wake()) // after the push
        driver_->wake();    // likewise: see wake_word.hpp
}

void Executor::enqueue(Task *task) noexcept {
    if (current() == &thread_)
        accept(task);
    else
        pool_.wake_from_outside(*this, task);
}

// Ids are creation ordinals where one thread creates; among many each executor draws from a block of its own.
uint64_t Executor::take_id() noexcept {
    if (ids_left_ == 0) {
        ids_left_ = many_ ? 256 : 1;
        next_id_ = take_task_ids(ids_left_);
    }
    --ids_left_;
    return next_id_++;
}

// Timers that follow closely on those fired last fire together. Waking up costs more than firing some: where timers are dense
// a longer time gathers, so that each wake-up is for many; where they are not, none waits longer than the least. An executor
// that is awake keeps to it too: one that fired each as it became due would never come to sleep where timers are dense.
int64_t Executor::timer_deadline() const noexcept {
    const int64_t earliest = timers_.earliest();
    return earliest == INT64_MAX || simulated() ? earliest : std::max(earliest, last_fire_ns_ + gather_ns_);
}

void Executor::note_fired(uint32_t timers, int64_t now) noexcept {
    if (timers == 0)
        return;
    last_fire_ns_ = now;
    rated_timers_ += timers;
    if (const int64_t elapsed = now - rated_since_ns_; elapsed >= rate_ns) {
        gather_ns_ = rated_timers_ * dense_ns >= elapsed ? gather_max_ns : gather_min_ns;
        rated_timers_ = 0;
        rated_since_ns_ = now;
    }
}

void Executor::poll() noexcept {
    const int64_t now = driver_->now();
    const int64_t elapsed = now - last_poll_ns_;
    last_poll_ns_ = now;
    if (elapsed > poll_period_ns)
        poll_interval_ = std::max<uint32_t>(1, static_cast<uint32_t>(poll_interval_ * poll_period_ns / elapsed));
    else
        poll_interval_ = std::min(max_poll_interval, 2 * poll_interval_ + 1);
    if (!alone_ && !many_)
        poll_interval_ = 1; // virtual time says nothing of what a switch costs
    switches_left_ = poll_interval_;
    fiber::overflow_thread_poll(alt_stack_);
    driver_->poll();
    accept_all(inbox_.take_all());
    // Alone there may be no poll for long: the owner's host has things to do.
    if ((alone_ ? timers_.earliest() : timer_deadline()) <= now)
        note_fired(fire(timers_, now), now);
    if (strays_) [[unlikely]]
        pool_.drain_strays();
    look_for_garbage(now);
    if (many_)
        poll_of_many(now);
}

void Executor::arm(Timer &timer) noexcept {
    const bool earliest = timers_.arm(timer);
    if (current() == &thread_)
        return;
    if (earliest)
        driver_->wake();
    pool_.armed_from_outside(*this);
}

bool Executor::run_once(int64_t deadline_ns) noexcept {
    Task *self = thread_.running;
    poll();
    const bool frees = simulated() && pool_.reclaimer().pending(); // nobody else is there to do it
    if (!queue_.others_to_run(self) && (!timers_.empty() || frees)) {
        if (reclaim_is_due()) {
            queue_reclaim_step(); // not on a task's stack
        } else {
            if (!trim_before_sleep())
                driver_->park(std::min({timer_deadline(), housekeeping_at(), deadline_ns}));
            poll();
        }
    }
    if (!queue_.holds_only(self)) // also to those in csp_schedule: they may find that they are done
        yield();
    const bool more = queue_.others_to_run(self) || !timers_.empty() || frees;
    if (!more)
        fiber::stack_trim_excess(); // the owner may not come back for long
    return more;
}

bool Executor::run_until_idle(int64_t deadline_ns) noexcept {
    Task &self = *thread_.running;
    self.in_schedule = true;
    bool idle = false;
    do
        idle = !run_once(deadline_ns);
    while (!idle && (deadline_ns == INT64_MAX || driver_->now() < deadline_ns));
    self.in_schedule = false;
    return idle;
}

// --- the idle context ---

__attribute__((noinline)) void Executor::idle_entry(fiber::Context &, fiber::Context *previous) noexcept {
    Executor &here = arrive(previous);
    for (;;)
        here.many_ ? here.idle_of_many() : here.alone_ ? here.idle_alone() : here.idle_simulated();
}

void Executor::idle_alone() noexcept {
    Task *head = queue_.head();
    if (head == nullptr) {
        poll();
        if (queue_.empty())
            sleep_alone();
    } else if (head->kind == Kind::step) {
        queue_.remove(head);
        run_step(head);
    } else {
        closed_check_ns_ = 0;
        closed_looks_ = 0;
        jump(next_task());
    }
}

void Executor::run_step(Task *task) noexcept {
    task->set_executor(this);
    task->word.start();
    thread_.running = task;
    ++thread_.no_switch;
    const bool kept = task->kept;
    task->body.plain(task->body.argument);
    --thread_.no_switch;
    thread_.running = idle_;
    if (!kept) { // else it may be queued again, and running elsewhere
        task->word.retire();
        if (task != reclaim_task_)
            task_slab().release(task_cache_, task);
    }
    if (--switches_left_ == 0 || inbox_.maybe_nonempty())
        poll();
}

bool Executor::no_strays() const noexcept { return pool_.no_strays(); }

// What waits to be freed counts: its free may wake somebody.
bool Executor::nothing_arrived() const noexcept {
    return nothing_came() && (!strays_ || no_strays()) && !pool_.reclaimer().pending();
}

bool Executor::owner_waits_for_ever() const noexcept {
    return owner_ != nullptr && TaskWord::is_parked_unclaimed(owner_->word.look()) &&
           owner_->timed.load(sync::relaxed) == 0;
}

// In simulation nobody else is there.
bool Executor::world_looks_closed() noexcept {
    if (!simulated())
        return world_is_closed(*this);
    closed_looks_ = closed_looks_needed;
    return true;
}

void Executor::sleep_alone() noexcept {
    if (reclaim_before_sleep() || trim_before_sleep())
        return;
    int64_t until = timer_deadline();
    if (until == INT64_MAX && owner_waits_for_ever()) {
        closed_looks_ = world_looks_closed() ? closed_looks_ + 1 : 0;
        if (closed_looks_ >= closed_looks_needed) {
            ++thread_.no_switch; // the log's hook may not wait here
            report_deadlock_now_and_then();
            --thread_.no_switch;
            (void)claim_and_wake(owner_, TaskWord::epoch_of(owner_->word.look()), WakeReason::deadlock, 0);
            return;
        }
        // A thread that we do not know may end, or one that we know may block, without a word to us: look again, soon
        // when it has just looked closed.
        closed_check_ns_ = closed_looks_ != 0
                               ? first_closed_check_ns
                               : std::clamp(2 * closed_check_ns_, first_closed_check_ns, last_closed_check_ns);
        until = driver_->now() + closed_check_ns_;
    }
    driver_->park(std::min(until, housekeeping_at()));
}

} // namespace mc::sched
