// An executor as one of many: what it runs next, where it looks for work, how it sleeps, and how it watches over others.
// See executor.hpp, thread_bed.hpp and pool.hpp.
#include "base/cpus.hpp"
#include "base/guarded.hpp"
#include "sched/pool.hpp"
#include "sched/runtime.hpp"
#include "sched/switch.hpp"
#include "sched/task_state.hpp"

#include <algorithm>

namespace mc::sched {
namespace {

constexpr int64_t linger_max_ns = 25'000; // what a wake-up costs
constexpr int64_t linger_min_ns = 1'000;
constexpr int brief_looks = 32;             // a microsecond or so
constexpr int64_t short_sleep_ns = 100'000; // after which lingering would have paid
constexpr uint32_t deep_queue = 64;         // from here on a woken task may go to a less loaded executor
constexpr int search_rounds = 2;

template <class T> T weigh(T amount, Priority priority) noexcept {
    return priority == Priority::normal ? amount : priority == Priority::high ? 4 * amount : amount / 4;
}

} // namespace

// --- the thread ---

bool Executor::start_thread() noexcept {
    if (!prepare_owner(nullptr))
        return false;
    many_ = true;
    alone_ = false;
    to_idle_ = false;
    measured_ns_ = 0;
    got_up_ = true; // what it runs first was seen to by nobody
    if (own_thread_.start(thread_main, this))
        return true;
    many_ = false;
    alone_ = true;
    owner_->word.retire();
    task_slab().release(owner_);
    owner_ = nullptr;
    return false;
}

void Executor::thread_main(void *self) noexcept {
    auto &executor = *static_cast<Executor *>(self);
    executor.bind_thread();
    executor.awake_.stays_awake();
    sync::set_thread_slot(&executor.thread_);
    executor.pool_.count_live(executor.index_);
    if (const int cpu = executor.pool_.cpu_of(executor.index_); cpu >= 0)
        executor.cpu_.store(base::pin_this_thread(cpu) ? cpu : -1, sync::relaxed);
    executor.call_thread_hook("a hook of a thread's start", executor.pool_.options().thread_started);
    while (Task *step = executor.queue_.head()) { // from before it had this thread
        executor.queue_.remove(step);
        executor.accept(step);
    }
    executor.jump(executor.idle_); // until the pool stops
    executor.call_thread_hook("a hook of a thread's end", executor.pool_.options().thread_stops);
    executor.cpu_.store(-1, sync::relaxed);
    executor.end_state_of_own_task(); // of what the hooks have left
    sync::set_thread_slot(nullptr);
    executor.release_thread();
    executor.awake_.may_sleep(); // what comes from now on is taken, and waited for, by others
    executor.many_ = false;
    executor.alone_ = true;
}

// On the thread's own stack, where nothing may wait.
void Executor::call_thread_hook(const char *what, void (*hook)(void *, uint32_t)) noexcept {
    if (hook == nullptr)
        return;
    ++thread_.no_switch;
    (void)base::call_guarded(what, [&] { hook(pool_.options().user, index_); });
    --thread_.no_switch;
}

// A task of the executor's own has no end: what callbacks on it leave behind ends with them. Nothing may wait there.
void Executor::end_state_of_own_task() noexcept {
    if (!has_state(*thread_.running))
        return;
    ++thread_.no_switch;
    end_task_state(*thread_.running);
    --thread_.no_switch;
}

// --- runnable tasks ---

void Executor::push_pinned(Task *task) noexcept {
    task->next = nullptr;
    (pinned_head_ == nullptr ? pinned_head_ : pinned_tail_->next) = task;
    pinned_tail_ = task;
}

void Executor::push_tail_of_many(Task *task) noexcept {
    Executor *lighter = ring_.size() >= deep_queue ? pool_.lighter_than(*this) : nullptr;
    if (lighter != nullptr)
        return lighter->send(task);
    while (!ring_.push(task)) {
        Task *first = nullptr;
        Task *last = nullptr;
        if (const uint32_t taken = ring_.take_half(&first, &last)) {
            last->next = task;
            return pool_.inject_list(first, task, taken + 1);
        }
    }
    if (!tells_later_)
        pool_.notify();
}

// Fires what is due, in this executor's heap or another's. Timers often make a few tasks runnable that run for a microsecond
// each: an executor that had nothing else to do is through with them before another one, woken for them, has got up. So
// then nobody is woken, yet. Should they take longer after all, others are told after the turn that did (tell_late), or the
// sentry comes.
uint32_t Executor::fire(TimerHeap &timers, int64_t now) noexcept {
    tells_later_ = many_ && thread_.running == idle_ && step_ == nullptr && !to_idle_ && !others_queued();
    const uint32_t fired = timers.fire_due(now);
    if (tells_later_ && ring_.size() != 0) {
        if (is_worth_a_wake(ring_.size(), now))
            pool_.notify();
        else
            untold_ns_ = now;
    }
    tells_later_ = false;
    return fired;
}

int64_t Executor::told_after_ns(int64_t now) const noexcept {
    return timers_are_dense(now) ? gather_ns_ : linger_max_ns;
}

// At a poll. As long as somebody waits of whom nobody was told, each switch polls.
void Executor::tell_late(int64_t now) noexcept {
    if (untold_ns_ == 0)
        return;
    if (ring_.size() == 0) {
        untold_ns_ = 0;
    } else if (now - untold_ns_ >= told_after_ns(now)) {
        untold_ns_ = 0;
        pool_.notify();
    } else {
        switches_left_ = 1;
    }
}

// Would they take us longer than another executor's waking up, or, where timers are dense, than they have gathered for anyway?
// There it would be woken for each batch.
bool Executor::is_worth_a_wake(uint64_t tasks, int64_t now) const noexcept {
    const int64_t turn = turn_ns_.load(sync::relaxed);
    return turn == 0 || static_cast<int64_t>(tasks) * turn >= told_after_ns(now);
}

bool Executor::others_queued() const noexcept {
    return next_.load(sync::relaxed) != nullptr || pinned_head_ != nullptr || ring_.size() != 0 || wheel_.size() != 0;
}

uint64_t Executor::queued() const noexcept {
    return (next_.load(sync::relaxed) != nullptr) + ring_.size() + wheel_.size();
}

uint32_t Executor::quantum_of(const Task &task) const noexcept {
    return weigh(pool_.options().quantum_reductions, task.priority);
}

// The running task leaves, runnable; the marker says where it goes, once it is off its stack.
void Executor::leave_for(Parking &marker) noexcept {
    Task *self = thread_.running;
    self->word.make_runnable();
    self->reductions = thread_.reductions;
    parking_ = &marker;
    jump(next_of_many());
}

// False: it was a parking.
bool Executor::complete_marker(const Parking &marker, Task *left) noexcept {
    if (&marker == &task_yielded_) {
        accept(left);
    } else if (&marker == &task_used_quantum_ && left->pinned) {
        wheel_.push(left); // nobody may steal it
    } else if (&marker == &task_used_quantum_) {
        wheel_.push(left);
        pool_.notify();
    } else if (&marker == &task_moves_) {
        move_to_->wheel_.push(left); // there too it waits for a turn
        pool_.notify();              // should that executor sleep, or hog
    } else {
        return false;
    }
    return true;
}

ThreadContext *quantum_over(ThreadContext *thread) noexcept {
    if (thread->executor != nullptr && thread->executor->many())
        return thread->executor->end_quantum();
    if (thread->executor != nullptr && !thread->executor->alone())
        thread->executor->simulate_call();
    else
        thread->reductions = UINT32_MAX;
    return thread;
}

void Executor::begin_quantum(Task &task) noexcept {
    task.body.quantum_of = this;
    task.quantum_from = wheel_.position();
}

// Positions of other wheels say nothing: who has come from elsewhere waits a turn at most once for nothing.
bool Executor::wheel_came_round(const Task &task) const noexcept {
    return task.body.quantum_of == this && wheel_.position() - task.quantum_from >= wheel_.segments();
}

// What is used up may be left over from an earlier turn of the wheel, in which it waited for somebody. Then its quantum of
// this turn is still to come, and it goes on with that: else two that wake each other would be on the wheel by turns, each
// waiting for the other, and have half of what the rest have.
ThreadContext *Executor::end_quantum() noexcept {
    Task *self = thread_.running;
    thread_.reductions = quantum_of(*self);
    if (self->kind != Kind::fiber || thread_.no_switch != 0)
        return &thread_;
    if (!others_queued())
        poll();
    if (!others_queued() && !to_idle_)
        return &thread_;
    if (wheel_came_round(*self)) {
        begin_quantum(*self);
        leave_for(task_yielded_);
    } else {
        move_to_ = self->pinned ? nullptr : pool_.lighter_than(*this);
        leave_for(move_to_ != nullptr ? task_moves_ : task_used_quantum_);
        self->executor->begin_quantum(*self);
    }
    return &self->executor->thread_; // where we go on
}

void Executor::checkpoint() noexcept {
    if (simulated())
        return simulate_call();
    const bool polls = --switches_left_ == 0 || inbox_.maybe_nonempty();
    if (polls)
        poll();
    if (many_)
        (void)spend(&thread_);
    else if (polls)
        yield();
}

// --- the idle context ---

// The ladder: own work, the inbox and timers, others' work, a short wait, sleep.
void Executor::idle_of_many() noexcept {
    if (pool_.stopping()) {
        if (sleeper_.searching)
            (void)pool_.bed().leave_search(sleeper_);
        return jump(owner_);
    }
    if (Task *task = choose_of_many())
        return run(task);
    if (wait_briefly())
        return reclaim_in_turn();
    poll();
    if (others_queued() || to_idle_)
        return reclaim_in_turn();
    if (search()) {
        if (waited_in_vain_)
            linger_ns_ /= 2; // there is more to find than to wait for
        return reclaim_in_turn();
    }
    if (linger())
        return reclaim_in_turn();
    if (reclaim_before_sleep() || trim_before_sleep())
        return;
    rest();
}

Task *Executor::choose() noexcept {
    if (Task *task = step_) {
        step_ = nullptr;
        return task;
    }
    if (to_idle_) { // the wheel's turn
        to_idle_ = false;
        wheel_turned_ns_ = last_poll_ns_;
        if (Task *task = wheel_.take_from_next())
            return task;
    }
    return take_next_or_queued();
}

// Before the wheel: what has overflowed from a ring into the injection queue, or come from a foreign thread, is ring work too. Else
// who spawns more than a ring holds would have quantum after quantum, with those that it spawned waiting.
Task *Executor::choose_of_many() noexcept {
    if (Task *task = choose())
        return task;
    if (wheel_.size() != 0 && pool_.injection().size() != 0 && take_injected())
        return take_next_or_queued();
    return take_from_wheel();
}

Task *Executor::take_from_wheel() noexcept {
    wheel_turned_ns_ = last_poll_ns_;
    return wheel_.take();
}

void Executor::run(Task *task) noexcept {
    sleeper_.period_ns = sentry_period_ns;
    if (sleeper_.searching) {
        if (pool_.bed().leave_search(sleeper_))
            pool_.notify();
    }
    if (got_up_) {
        got_up_ = false;
        // Asleep it counted for nothing; should it hog now, nobody measures it for long.
        load_.store(std::max(load_.load(sync::relaxed), load_of_one), sync::relaxed);
        if (Executor *sentry = pool_.bed().missing_sentry(driver_->now()))
            Pool::wake_up(*sentry);
    }
    if (task->kind == Kind::step)
        return run_step(task);
    begin_turn(task);
    jump(task);
}

// A fair share of what foreign threads handed in; at most what fits.
bool Executor::take_injected() noexcept {
    const uint64_t share = pool_.injection().size() / pool_.live() + 1;
    Task *first = pool_.injection().take(static_cast<uint32_t>(std::min<uint64_t>(share, LocalQueue::capacity / 2)));
    accept_all(first);
    return first != nullptr;
}

// True: there is work in our own queue now.
bool Executor::steal_from(Executor &victim, bool everything) noexcept {
    Task *task = victim.ring_.steal_into(ring_);
    if (task == nullptr && everything)
        task = victim.wheel_.steal();
    if (task == nullptr)
        return false;
    return ring_.push(task); // half of a queue fits into an empty one
}

bool Executor::search() noexcept {
    const uint32_t live = pool_.live();
    if (!pool_.bed().try_search(sleeper_, live))
        return false;
    if (take_injected())
        return true;
    for (int round = 0; round < search_rounds; ++round) {
        const uint32_t start = thread_.prng.below(live);
        for (uint32_t i = 0; i < live; ++i) {
            Executor &victim = pool_.at((start + i) % live);
            if (&victim != this && steal_from(victim, round > 0))
                return true;
        }
    }
    return false;
}

// Does it pay to wait without sleeping: has it lately, and does somebody run who could send us something?
bool Executor::waits_pay() const noexcept {
    const uint32_t awake = pool_.live() - pool_.bed().counts().sleeping;
    return linger_ns_ >= linger_min_ns && awake >= 2 && awake <= base::usable_cpus();
}

// Two that send each other messages across executors: the answer comes in less time than a look around takes, at the clock,
// at what others have queued, at the counts that all share. True: it has come. It is no search either.
bool Executor::wait_briefly() noexcept {
    waited_in_vain_ = false;
    if (linger_ns_ != linger_max_ns || sleeper_.searching || pool_.stopping() || !waits_pay())
        return false;
    for (int i = 0; i < brief_looks; ++i) {
        if (inbox_.maybe_nonempty()) {
            accept_all(inbox_.take_all());
            return true;
        }
        sync::cpu_relax();
    }
    waited_in_vain_ = true;
    return false;
}

// Not a search: nobody counts on us. What others send to this executor, and what foreign threads hand in, comes within a
// message's time here, instead of a wake-up's.
bool Executor::linger() noexcept {
    if (sleeper_.searching) {
        (void)pool_.bed().leave_search(sleeper_);
        got_up_ = true;              // who was told that we search has woken nobody: a sentry may be missing
        if (pool_.work_to_be_seen()) // who published it may have counted on us
            return true;
    }
    if (!waits_pay())
        return false;
    const int64_t until = std::min(driver_->now() + linger_ns_, timer_deadline());
    do {
        for (int i = 0; i < 32; ++i) {
            if (inbox_.maybe_nonempty() || pool_.injection().size() != 0 || pool_.stopping()) {
                linger_ns_ = linger_max_ns;
                return true;
            }
            sync::cpu_relax();
        }
    } while (driver_->now() < until);
    linger_ns_ /= 2;
    return timer_deadline() <= driver_->now();
}

// Announce, then look once more, then sleep: see thread_bed.hpp.
void Executor::rest() noexcept {
    load_.store(0, sync::relaxed);
    measured_ns_ = 0;
    resting_.store(1, sync::relaxed);
    reader_.offline();
    pool_.bed().lie_down(sleeper_, pool_.timers_armed());
    pool_.tell_quiet();
    const int64_t began = driver_->now();
    awake_.may_sleep();
    if (!pool_.work_to_be_seen() && !inbox_.seen_nonempty()) {
        const int64_t until = std::min(rest_until(), housekeeping_at());
        ThreadBed::note_sleep(sleeper_, until);
        driver_->park(until);
    }
    awake_.stays_awake();
    const bool was_sentry = pool_.bed().get_up(sleeper_, driver_->now());
    reader_.online();
    resting_.store(0, sync::relaxed);
    got_up_ = true;
    if (inbox_.maybe_nonempty() && driver_->now() - began < short_sleep_ns)
        linger_ns_ = linger_max_ns;
    // One that was woken to search is needed for that first, but a stream of small work must not keep it from looking.
    if (was_sentry && (!sleeper_.searching || driver_->now() - pool_.coarse_now() >= sentry_period_ns))
        look_after_others();
}

// When others' timers are fired for them at the earliest.
int64_t Executor::gathered(int64_t deadline_ns) noexcept {
    return std::min(deadline_ns, INT64_MAX - gather_max_ns) + gather_max_ns;
}

int64_t Executor::rest_until() noexcept {
    if (!sleeper_.sentry)
        return timer_deadline();
    const uint32_t live = pool_.live();
    const bool others_awake = pool_.bed().counts().sleeping < live;
    int64_t earliest = INT64_MAX;
    for (uint32_t i = 0; i < live; ++i) {
        Executor &other = pool_.at(i);
        if (&other != this && (!others_awake || other.resting_.load(sync::relaxed) == 0))
            earliest = std::min(earliest, gathered(other.timers_.earliest()));
    }
    const int64_t now = driver_->now();
    const int64_t soon = now + sleeper_.period_ns;
    int64_t until = earliest;
    if (others_awake)
        until = std::min(std::max(earliest, now), soon);
    else if (earliest != INT64_MAX)
        until = std::max(earliest, now) + sleeper_.period_ns;
    if (pool_.bed().announce_sentry_sleep(until))
        until = std::min(until, soon);
    return std::min(until, timer_deadline());
}

// --- the sentry ---

void Executor::look_after_others() noexcept {
    const int64_t now = driver_->now();
    pool_.set_coarse_now(now);
    bool took = false;
    const uint32_t live = pool_.live();
    for (uint32_t i = 0; i < live; ++i)
        if (&pool_.at(i) != this)
            took |= take_what_is_late(pool_.at(i), now);
    sleeper_.period_ns = took ? sentry_period_ns : std::min(2 * sleeper_.period_ns, sentry_period_max_ns);
}

// Its due timers; and, when the same task as at the last look still runs, its next task and what was sent to it.
bool Executor::take_what_is_late(Executor &other, int64_t now) noexcept {
    bool took = false;
    // It may be waking up for it; or it is awake, and lets them gather.
    const int64_t grace = other.resting_.load(sync::relaxed) != 0 ? sentry_period_ns : gather_max_ns;
    if (other.timers_.earliest() <= now - grace)
        took = fire(other.timers_, now) != 0;
    const uint64_t turns = other.turns();
    const bool stuck = other.seen_turns_.exchange(turns, sync::relaxed) == turns;
    Task *next = other.next_.load(sync::relaxed);
    // acquire: pairs with push_next's release
    if (stuck && next != nullptr && other.next_.compare_exchange_strong(next, nullptr, sync::acquire, sync::relaxed)) {
        push_tail_of_many(next);
        took = true;
    }
    return stuck && other.inbox_.maybe_nonempty() ? take_inbox_of(other) || took : took;
}

// What was sent to one that computes, but need not run there.
bool Executor::take_inbox_of(Executor &other) noexcept {
    bool took = false;
    for (Task *task = other.inbox_.take_all(); task != nullptr;) {
        Task *next = task->next;
        if (task->pinned) {
            other.send(task);
        } else {
            push_tail_of_many(task);
            took = true;
        }
        task = next;
    }
    return took;
}

// --- now and then ---

void Executor::poll_of_many(int64_t now) noexcept {
    if (pool_.stopping())
        to_idle_ = true;
    if (pool_.injection().size() != 0)
        if (Task *task = pool_.injection().take(1))
            push_tail_of_many(task);
    if (wheel_.size() == 0)
        wheel_turned_ns_ = now;
    else if (now - wheel_turned_ns_ >= pool_.options().quantum_ns)
        to_idle_ = true;
    tell_late(now);
    watch_quantum(now);
    measure_load();
    measure_turns(now);
}

// From poll to poll, as long as it did not sleep in between.
void Executor::measure_turns(int64_t now) noexcept {
    const uint64_t turns_now = turns();
    if (measured_ns_ != 0 && turns_now == measured_turns_)
        return;
    if (measured_ns_ != 0) {
        const int64_t sample = (now - measured_ns_) / static_cast<int64_t>(turns_now - measured_turns_);
        const int64_t before = turn_ns_.load(sync::relaxed);
        turn_ns_.store(before == 0 ? sample : before + (sample - before) / 8, sync::relaxed);
    }
    measured_turns_ = turns_now;
    measured_ns_ = now;
}

// A task that has been running for a quantum's time gives up at its next call.
void Executor::watch_quantum(int64_t now) noexcept {
    const uint64_t turn = turns();
    if (turn != watched_turn_) {
        watched_turn_ = turn;
        watched_since_ns_ = now;
    } else if (thread_.running != idle_ &&
               now - watched_since_ns_ >= weigh(pool_.options().quantum_ns, thread_.running->priority)) {
        watched_since_ns_ = now;
        thread_.reductions = 1;
    }
}

void Executor::measure_load() noexcept {
    const uint64_t tasks = (thread_.running != idle_) + (next_.load(sync::relaxed) != nullptr) + ring_.size() +
                           wheel_.size() + (pinned_head_ != nullptr);
    const auto sample = static_cast<uint32_t>(std::min<uint64_t>(tasks, 1u << 20) * load_of_one);
    const uint32_t before = load_.load(sync::relaxed);
    load_.store(before - before / 8 + sample / 8, sync::relaxed);
}

// --- after the thread has ended ---

void Executor::give_inbox_to(Executor &other) noexcept { other.accept_all(inbox_.withdraw_all()); }

void Executor::give_tasks_to(Executor &other) noexcept {
    for (;;) {
        Task *task = choose();
        if (task == nullptr)
            task = take_from_wheel();
        if (task == nullptr)
            break;
        if (task != reclaim_task_)
            other.accept(task);
    }
    reclaim_queued_ = false;
    load_.store(0, sync::relaxed);
    seen_turns_.store(0, sync::relaxed);
}

} // namespace mc::sched
