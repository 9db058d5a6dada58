#include "sched/reclaim.hpp"

#include "base/alloc.hpp"
#include "base/log.hpp"
#include "sched/pool.hpp"
#include "sched/runtime.hpp"

#include <algorithm>
#include <cinttypes>

namespace mc::sched {

namespace {
sync::atomic<Reclaimer *> the_reclaimer{nullptr};
Reclaimer *left_behind_reclaimer = nullptr; // so that a leak checker sees what it holds
} // namespace

Reclaimer *process_reclaimer() noexcept {
    Reclaimer *known = the_reclaimer.load(sync::acquire); // acquire: pairs with the release below
    if (known != nullptr)
        return known;
    auto *made = base::create<Reclaimer>();
    if (made == nullptr)
        return nullptr;
    if (the_reclaimer.compare_exchange_strong(known, made, sync::acq_rel, sync::acquire))
        return made;
    base::destroy(made);
    return known;
}

void leave_reclaimer_behind() noexcept {
    left_behind_reclaimer = the_reclaimer.load(sync::relaxed);
    the_reclaimer.store(nullptr, sync::relaxed);
}

bool Reclaimer::claim_turn(int64_t now) noexcept {
    int64_t next = next_turn_ns_.load(sync::relaxed);
    // relaxed: it decides who tries alone; what is freed is the domain's business.
    return now >= next && next_turn_ns_.compare_exchange_strong(next, now + period_ns, sync::relaxed, sync::relaxed);
}

bool Reclaimer::advance() noexcept {
    if (domain_.advance())
        return true;
    report_stall();
    return false;
}

// Once in a while, by one thread.
void Reclaimer::report_stall() noexcept {
    const int64_t now = sync::now_ns();
    int64_t last = reported_ns_.load(sync::relaxed);
    base::EpochStall stall;
    if (now - last < report_after_ns || domain_.stalled(report_after_ns, &stall, 1) == 0 ||
        !reported_ns_.compare_exchange_strong(last, now, sync::relaxed, sync::relaxed))
        return;
    base::log(MC_LOG_WARNING, MC_E_BUSY, "what was retired has waited %" PRId64 " ms for %s", stall.age_ns / 1'000'000,
              stall.name);
}

// --- readers ---

Reclaimer &reclaimer_for(ThreadContext &thread) noexcept {
    return thread.executor != nullptr ? thread.executor->pool().reclaimer() : default_pool()->reclaimer();
}

void begin_reading(ThreadContext &thread) noexcept {
    ++thread.no_switch;
    if (thread.reading++ != 0)
        return;
    if (ForeignReader *foreign = thread.foreign_reader)
        reclaimer_for(thread).domain().pin(foreign->pin, foreign->name);
    else if (!thread.executor->many())
        thread.executor->reader().online();
}

bool end_reading(ThreadContext &thread) noexcept {
    if (thread.reading == 0)
        return false;
    --thread.no_switch;
    if (--thread.reading != 0)
        return true;
    if (ForeignReader *foreign = thread.foreign_reader)
        reclaimer_for(thread).domain().unpin(foreign->pin);
    else if (!thread.executor->many())
        thread.executor->reader().offline();
    return true;
}

void end_all_readings(ThreadContext &thread) noexcept {
    while (end_reading(thread)) {
    }
}

// --- retiring ---

void retire(ThreadContext &thread, base::EpochNode *node, void (*free)(base::EpochNode *)) noexcept {
    Reclaimer &reclaimer = reclaimer_for(thread);
    reclaimer.domain().retire(node, free);
    if (thread.executor == nullptr && reclaimer.ring())
        default_executor()->driver().wake();
}

namespace {

// Where nothing may switch, something may still be read that was found without a pin.
int32_t may_free(ThreadContext &thread) noexcept {
    if (thread.no_switch != 0)
        return MC_E_CONTEXT;
    if (thread.executor != nullptr && thread.executor->many())
        thread.executor->reader().quiescent();
    return MC_OK;
}

// What is freed meanwhile may neither switch nor leave something pinned.
template <class Attempt> bool call_frees(ThreadContext &thread, Attempt attempt) noexcept {
    ++thread.no_switch;
    const bool done = attempt();
    if (thread.reading != 0) {
        base::log(MC_LOG_ERROR, MC_E_CONTEXT,
                  "what frees an epoch's node, or an epoch's hook, has left an epoch pinned");
        end_all_readings(thread);
    }
    --thread.no_switch;
    return done;
}

} // namespace

int32_t advance_epoch(ThreadContext &thread) noexcept {
    const int32_t refused = may_free(thread);
    if (refused != MC_OK)
        return refused;
    const bool advanced = call_frees(thread, [&] { return reclaimer_for(thread).domain().advance(); });
    return advanced ? MC_OK : MC_E_AGAIN;
}

int32_t epoch_barrier(ThreadContext &thread, int64_t deadline_ns) noexcept {
    uint32_t advances = 0;
    for (ThreadContext *here = &thread;; here = &here_now()) {
        const int32_t refused = may_free(*here);
        if (refused != MC_OK)
            return refused;
        if (call_frees(*here, [&] { return reclaimer_for(*here).domain().try_drain(&advances); }))
            return MC_OK;
        const int64_t now = sync::now_ns();
        if (deadline_ns != MC_FOREVER && now >= deadline_ns)
            return MC_E_TIMEDOUT;
        const int32_t status = sleep_until(*here, std::min(deadline_ns, now + Reclaimer::period_ns), nullptr);
        if (status != MC_E_TIMEDOUT)
            return status;
    }
}

// --- an executor's part ---

// On its own stack. True: something was freed, which may have made work.
bool Executor::reclaim() noexcept {
    Reclaimer &reclaimer = pool_.reclaimer();
    if (many_)
        reader_.quiescent();
    const bool advanced = call_frees(thread_, [&] { return reclaimer.advance(); });
    end_state_of_own_task();
    return advanced;
}

// The same; when it was held up, the next sleep ends in time for another try.
bool Executor::reclaim_or_pause() noexcept {
    if (reclaim()) {
        reclaim_pause_ns_ = 0;
        reclaim_at_ns_ = INT64_MAX;
        return true;
    }
    reclaim_pause_ns_ = std::clamp(2 * reclaim_pause_ns_, Reclaimer::first_pause_ns, Reclaimer::last_pause_ns);
    reclaim_at_ns_ = driver_->now() + reclaim_pause_ns_;
    return false;
}

void Executor::reclaim_step(void *executor) noexcept {
    auto &self = *static_cast<Executor *>(executor);
    self.reclaim_queued_ = false;
    (void)(self.many_ ? self.reclaim() : self.reclaim_or_pause());
}

void Executor::queue_reclaim_step() noexcept {
    reclaim_queued_ = true;
    reclaim_task_->word.make_runnable();
    accept(reclaim_task_);
}

// At a poll. The step is pinned: it is this executor's own, and is used again. With nothing to run it is not needed: then
// reclaim_before_sleep has its pauses, while a step would count as work, which others wake up for.
void Executor::look_for_garbage(int64_t now) noexcept {
    Reclaimer &reclaimer = pool_.reclaimer();
    if (many_)
        reader_.quiescent();
    if (thread_.running == idle_ || !reclaimer.pending() || reclaim_queued_ || !reclaimer.claim_turn(now))
        return;
    queue_reclaim_step();
}

// Among many, on its own stack, about to run something: its polls may all come there, when what it runs is short.
void Executor::reclaim_in_turn() noexcept {
    Reclaimer &reclaimer = pool_.reclaimer();
    if (!reclaim_queued_ && reclaimer.pending() && reclaimer.claim_turn(last_poll_ns_))
        (void)reclaim();
}

// Is it time to try, for one that is about to sleep?
bool Executor::reclaim_is_due() noexcept {
    Reclaimer &reclaimer = pool_.reclaimer();
    if (!reclaimer.pending()) {
        reclaim_pause_ns_ = 0;
        reclaim_at_ns_ = INT64_MAX;
        return index_ == 0 && reclaimer.silence() && reclaimer.pending();
    }
    return reclaim_at_ns_ == INT64_MAX || driver_->now() >= reclaim_at_ns_;
}

// With nothing else to do, on its own stack. True: look again. False: sleep until reclaim_at_ns_ at most.
bool Executor::reclaim_before_sleep() noexcept {
    if (!reclaim_is_due())
        return false;
    // Held up, the log is told now and then, and its hook may have made work.
    return reclaim_or_pause() || (many_ ? others_queued() : !queue_.empty());
}

// With nothing else to do: the memory of stacks that have long been unused goes back, a little at a time. True: look again.
// False: sleep until trim_at_ns_ at most.
bool Executor::trim_before_sleep() noexcept {
    if (simulated()) // its time is not the memory's
        return false;
    const int64_t now = driver_->now();
    trim_at_ns_ = fiber::stack_trim_aged(now);
    return trim_at_ns_ <= now;
}

} // namespace mc::sched
