#include "compose/machine_host.hpp"

#include "compose/token.hpp"
#include "machine/engine.hpp"
#include "sched/primitive.hpp"
#include "sched/runtimes.hpp"
#include "sched/simulation.hpp"
#include "sched/spawn.hpp"
#include "sched/switch.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mc::compose {
namespace {

constexpr uint32_t most_dispatches_a_turn = 64;
constexpr uint32_t most_help_at = 64;
constexpr uint32_t most_stolen = 256;
constexpr int64_t watch_period_ns = MC_MS;
constexpr uint32_t most_tries = 1000; // to find that a call that is short has ended

base::Slab<MachineHost> &host_slab() noexcept {
    static constinit base::Slab<MachineHost> slab;
    return slab;
}

int32_t status_of(mc_mailbox_enqueue_result_t result) noexcept {
    switch (result) {
    case MC_MAILBOX_ENQUEUE_OK:
        return MC_OK;
    case MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN:
        return MC_E_NOENT;
    case MC_MAILBOX_ENQUEUE_FULL:
        return MC_E_FULL;
    default:
        return MC_E_CLOSED;
    }
}

// Where the caller may not wait, only other threads go on.
void let_others_run() noexcept {
    sched::ThreadContext *thread = sched::current();
    if (thread != nullptr && thread->executor != nullptr && sched::may_block(*thread) == MC_OK)
        thread->executor->yield();
    else
        sync::thread_yield();
}

// Until done(), or for so long, and so often: for those who are on their way out, and perhaps have no processor at the moment.
template <class Done> bool wait_briefly(int64_t most_ns, Done done, uint32_t least_tries = most_tries) noexcept {
    const int64_t until = sync::now_ns() + most_ns;
    for (uint32_t tries = 1; !done(); ++tries) {
        if (tries >= least_tries && sync::now_ns() >= until)
            return false;
        let_others_run();
        if (tries % 64 == 0) {
            sync::atomic<uint32_t> nobody{0};
            (void)sync::futex_wait(nobody, 0, sync::now_ns() + 50'000);
        }
    }
    return true;
}

} // namespace

// --- shards --------------------------------------------------------------------------------------------------------------

void MachineHost::Shard::append(Machine *from, Machine *to, uint32_t count) noexcept {
    if (first == nullptr)
        first = from;
    else
        last->next = from;
    to->next = nullptr;
    last = to;
    length += count;
}

// Linked through `next`, the last to null.
void MachineHost::Shard::append_all(Machine *chain) noexcept {
    uint32_t count = 1;
    Machine *to = chain;
    for (; to->next != nullptr; to = to->next)
        ++count;
    append(chain, to, count);
}

MachineHost::Machine *MachineHost::Shard::take() noexcept {
    Machine *machine = first;
    if (machine != nullptr) {
        first = machine->next;
        --length;
    }
    return machine;
}

// For simulation, in which any may be the next.
MachineHost::Machine *MachineHost::Shard::take_at(uint32_t position) noexcept {
    if (position == 0)
        return take();
    Machine *before = first;
    for (uint32_t i = 1; i < position; ++i)
        before = before->next;
    Machine *machine = before->next;
    before->next = machine->next;
    if (machine == last)
        last = before;
    --length;
    return machine;
}

// The caller's own, if it is a pump or runs on an executor of the pool; else one that depends on the thread.
MachineHost::Shard *MachineHost::shard_of_caller() noexcept {
    if (count_ == 1)
        return &shards_[0];
    const sched::ThreadContext *thread = sched::current();
    if (thread != nullptr && thread->executor != nullptr && &thread->executor->pool() == pool_) {
        const sched::Task *running = thread->running;
        if (running != nullptr && running->kind == sched::Kind::step && running->body.plain == pump) {
            auto *shard = static_cast<Shard *>(running->body.argument);
            if (shard->host == this)
                return shard;
        }
        return &shards_[thread->executor->index() % count_];
    }
    return &shards_[sync::thread_number() % count_];
}

void MachineHost::ready(Machine *first) noexcept {
    Shard &shard = *shard_of_caller();
    shard.lock.lock();
    shard.append_all(first);
    const uint32_t length = shard.length;
    const bool begins = begin_serving(shard);
    shard.lock.unlock();
    if (begins) [[unlikely]]
        serve(shard);
    else if (needs_help(length)) [[unlikely]]
        (void)look_for_help(shard);
}

// A shard that is so long.
bool MachineHost::needs_help(uint32_t length) const noexcept {
    return length >= help_at_.load(sync::relaxed) && idle_shards_.load(sync::relaxed) != 0;
}

// Under its lock, with the bit that says so. True: the caller calls serve when it has given that back.
bool MachineHost::begin_serving(Shard &shard) noexcept {
    if (shard.served) [[likely]]
        return false;
    shard.served = true;
    (void)idle_shards_.fetch_and(~(uint64_t{1} << (&shard - shards_)), sync::relaxed);
    return true;
}

// Likewise. False: there is something in it.
bool MachineHost::end_serving(Shard &shard) noexcept {
    if (shard.length != 0 && !is_closed())
        return false;
    shard.served = shard.turning = false;
    (void)idle_shards_.fetch_or(uint64_t{1} << (&shard - shards_), sync::relaxed);
    return true;
}

// The shard has just been marked as served, by the caller, who has a pin. Its pump has one from now on.
void MachineHost::serve(Shard &shard) noexcept {
    (void)uses_.fetch_add(1, sync::relaxed); // the caller's pin keeps it from ending
    one_more();
    sched::queue_step(*pool_, shard.step);
    if (count_ > 1 && watch_.set.load(sync::relaxed) == 0)
        set_alarm(watch_, later(now_ns(), watch_period_ns));
}

// Another shard's pump comes to help. False: all are at work.
bool MachineHost::look_for_help(const Shard &busy) noexcept {
    const uint64_t idle = idle_shards_.load(sync::relaxed);
    if (idle == 0)
        return false;
    Shard &helper = shards_[std::countr_zero(idle)];
    if (&helper == &busy)
        return false;
    helper.lock.lock();
    const bool begins = begin_serving(helper);
    helper.lock.unlock();
    if (begins)
        serve(helper);
    return begins;
}

void MachineHost::one_more() noexcept {
    const base::SpinGuard guard(idle_lock_);
    ++busy_;
}

bool MachineHost::busy() noexcept {
    const base::SpinGuard guard(idle_lock_);
    return busy_ != 0;
}

void MachineHost::one_less() noexcept {
    sched::WaitList::Taken taken;
    {
        const base::SpinGuard guard(idle_lock_);
        MC_INVARIANT(busy_ != 0, 0);
        if (--busy_ == 0 || is_closed())
            take_idle_waiters(&taken);
    }
    sched::WaitList::wake_all(taken);
}

void MachineHost::take_idle_waiters(sched::WaitList::Taken *taken) noexcept {
    while (sched::Waiting *waiting = idle_waiters_.take_first(MC_OK))
        taken->push_back(waiting);
}

// It is closed, and one handler less runs.
void MachineHost::tell_who_drops() noexcept {
    sched::WaitList::Taken taken;
    {
        const base::SpinGuard guard(idle_lock_);
        take_idle_waiters(&taken);
    }
    sched::WaitList::wake_all(taken);
}

// A handler runs, perhaps.
bool MachineHost::turns() noexcept {
    for (uint32_t i = 0; i < count_; ++i) {
        const base::SpinGuard guard(shards_[i].lock);
        if (shards_[i].turning)
            return true;
    }
    return false;
}

uint64_t MachineHost::ready_length() const noexcept {
    uint64_t length = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        const base::SpinGuard guard(shards_[i].lock);
        length += shards_[i].length;
    }
    return length;
}

// --- pumps ---------------------------------------------------------------------------------------------------------------

void MachineHost::pump(void *shard) noexcept {
    static_cast<Shard *>(shard)->host->serve_turn(*static_cast<Shard *>(shard));
}

// What is last here is the last that is touched: the pump may run elsewhere then, and the host be another runtime's.
void MachineHost::serve_turn(Shard &shard) noexcept {
    const uint32_t most = simulated_ ? 1 : most_dispatches_a_turn;
    void **const slot = &sched::current()->running->emits_to;
    Machine *made = nullptr; // ready by the last dispatch, and in no shard yet
    for (uint32_t i = 0; i < most; ++i) {
        Machine *machine = next(shard, std::exchange(made, nullptr));
        if (machine != nullptr) {
            (void)engine_->run(*shard.dispatch, machine, slot);
            made = std::exchange(shard.dispatch->ready, nullptr);
            continue;
        }
        shard.lock.lock();
        const bool ends = end_serving(shard);
        shard.lock.unlock();
        if (!ends)
            continue;
        one_less();
        return unpin();
    }
    {
        const base::SpinGuard guard(shard.lock);
        if (made != nullptr)
            shard.append_all(made);
        shard.turning = false;
    }
    if (is_closed()) [[unlikely]]
        tell_who_drops();
    sched::queue_step(*pool_, shard.step);
}

// made: put into the shard before that; or null. Null: there is nothing, or it is closed.
MachineHost::Machine *MachineHost::next(Shard &shard, Machine *made) noexcept {
    Machine *machine = nullptr;
    uint32_t length = 0;
    {
        const base::SpinGuard guard(shard.lock);
        if (made != nullptr)
            shard.append_all(made);
        if (is_closed())
            return nullptr;
        shard.turning = true;
        length = shard.length;
        machine = !simulated_ || length < 2 ? shard.take() : shard.take_at(sched::simulator()->pick(length));
    }
    if (machine != nullptr) {
        if (made != nullptr && needs_help(length)) [[unlikely]]
            (void)look_for_help(shard);
        return machine;
    }
    if (count_ == 1 || !steal_for(shard))
        return nullptr;
    const base::SpinGuard guard(shard.lock);
    return shard.take(); // unless another pump was quicker
}

// Half of what another one has, the older half, since it has waited longest; at most so many, which are counted under the lock.
bool MachineHost::steal_for(Shard &shard) noexcept {
    const auto self = static_cast<uint32_t>(&shard - shards_);
    for (uint32_t i = 1; i < count_; ++i) {
        Shard &victim = shards_[(self + i) % count_];
        Machine *first = nullptr, *last = nullptr;
        uint32_t taken = 0;
        {
            const base::SpinGuard guard(victim.lock);
            taken = std::min((victim.length + 1) / 2, most_stolen);
            if (taken == 0)
                continue;
            first = last = victim.first;
            for (uint32_t k = 1; k < taken; ++k)
                last = last->next;
            victim.first = last->next;
            victim.length -= taken;
        }
        help_at_.store(2, sync::relaxed);
        const base::SpinGuard guard(shard.lock);
        shard.append(first, last, taken);
        return true;
    }
    const uint32_t help_at = help_at_.load(sync::relaxed);
    if (help_at < most_help_at)
        help_at_.store(2 * help_at, sync::relaxed);
    return false;
}

// --- polling -------------------------------------------------------------------------------------------------------------

void MachineHost::PollList::append(Machine *machine) noexcept {
    machine->next = nullptr;
    (first == nullptr ? first : last->next) = machine;
    last = machine;
}

bool MachineHost::PollList::remove(const Machine *machine) noexcept {
    Machine *before = nullptr;
    for (Machine *at = first; at != nullptr; before = at, at = at->next)
        if (at == machine) {
            (before == nullptr ? first : before->next) = at->next;
            if (last == at)
                last = before;
            return true;
        }
    return false;
}

MachineHost::Machine *MachineHost::PollList::take() noexcept {
    Machine *machine = first;
    if (machine != nullptr)
        first = machine->next;
    return machine;
}

void MachineHost::polled(Machine *first) noexcept {
    while (first != nullptr) {
        Machine *machine = first;
        first = machine->next;
        one_more();
        queue_polled(machine);
    }
}

// It is counted as busy; and not any more, when nobody polls from now on: then it only waits for the end. A machine that is polled
// alone is for who polls that very one. Its lock is held until it is in the list: who stops it, or binds it otherwise, has done so
// before, and we see that; or looks for it in the list after that.
void MachineHost::queue_polled(Machine *machine) noexcept {
    sched::WaitList::Taken taken;
    bool waits = false;
    {
        const base::SpinGuard bound(machine->lock);
        const base::SpinGuard guard(polled_lock_);
        waits = machine->is_polled() && machine->takes_mail();
        if (waits || polling_ended_) {
            const bool alone = machine->binding == machine::Binding::poll_alone;
            const uint32_t id = alone ? machine->id : 0;
            poll_place(id).machines.append(machine);
            take_poller(id, &taken);
            waits = !polling_ended_;
            machine = nullptr;
        }
    }
    sched::WaitList::wake_all(taken);
    if (machine != nullptr)
        engine_->give_back(machine);
    if (!waits)
        one_less();
}

// Under the lock: who polls that machine, or any (0), and has waited longest.
void MachineHost::take_poller(uint32_t id, sched::WaitList::Taken *taken) noexcept {
    sched::WaitList &pollers = poll_place(id).pollers;
    if (sched::Waiting *waiting = pollers.take_first_if(MC_OK, [=](const sched::Waiting &w) { return w.asks == id; }))
        taken->push_back(waiting);
}

// Who was woken for that machine, perhaps, cannot take it: the next one may.
void MachineHost::pass_on(uint32_t id) noexcept {
    sched::WaitList::Taken taken;
    {
        const base::SpinGuard guard(polled_lock_);
        if (find_polled(id) != nullptr)
            take_poller(id, &taken);
    }
    sched::WaitList::wake_all(taken);
}

void MachineHost::stop_polled(Machine *machine, uint32_t alone) noexcept {
    {
        const base::SpinGuard guard(polled_lock_);
        if (polling_ended_ || !poll_place(alone).machines.remove(machine))
            return;
    }
    engine_->give_back(machine);
    one_less(); // not before: it may be ready now
}

// Under the lock: the machine that is to be polled next; null: none. Its id is written under its own lock, too, but not while it is
// in the list and lives.
MachineHost::Machine *MachineHost::find_polled(uint32_t id) noexcept {
    Machine *at = poll_place(id).machines.first;
    if (id == 0)
        return at;
    const Machine *machine = engine_->table().find(id);
    while (at != nullptr && at != machine)
        at = at->next;
    return at;
}

MachineHost::Machine *MachineHost::take_polled(uint32_t id) noexcept {
    const base::SpinGuard guard(polled_lock_);
    Machine *machine = polling_ended_ ? nullptr : find_polled(id);
    if (machine != nullptr)
        (void)poll_place(id).machines.remove(machine);
    return machine;
}

// True: look again.
bool MachineHost::wait_for_polled(sched::ThreadContext &thread, uint32_t id, int64_t deadline_ns,
                                  int32_t *status) noexcept {
    polled_lock_.lock();
    if (!polling_ended_ && find_polled(id) != nullptr) {
        polled_lock_.unlock();
        return true;
    }
    *status = polling_ended_ ? MC_E_SHUTDOWN : sched::refuse_to_wait(thread, deadline_ns);
    if (*status != MC_OK) {
        polled_lock_.unlock();
        return false;
    }
    sched::Waiting waiting;
    waiting.asks = id;
    sched::Parking parking(nullptr, deadline_ns, nullptr);
    parking.waits_for = sched::WaitsFor(sched::WaitKind::poll, uint64_t{id});
    const sched::WakeReason reason =
        poll_place(id).pollers.wait(thread, polled_lock_, waiting, sched::WaitList::At::back, parking);
    if (reason == sched::WakeReason::ready)
        return true;
    polled_lock_.unlock();
    *status = sched::status_of(reason);
    return false;
}

// It is closed: who polls finds that out, what waits to be polled waits for the end, and tokens expire.
void MachineHost::end_polling() noexcept {
    sched::WaitList::Taken taken;
    uint64_t waiting_machines = 0;
    {
        const base::SpinGuard guard(polled_lock_);
        polling_ended_ = true;
        for (PollPlace *place = polled_; place != polled_ + poll_places; ++place) {
            for (const Machine *machine = place->machines.first; machine != nullptr; machine = machine->next)
                ++waiting_machines;
            while (sched::Waiting *waiting = place->pollers.take_first(MC_OK))
                taken.push_back(waiting);
        }
    }
    sched::WaitList::wake_all(taken);
    for (; waiting_machines != 0; --waiting_machines)
        one_less();
    (void)expire_tokens(INT64_MAX);
}

int32_t MachineHost::poll(sched::ThreadContext &thread, uint32_t id, int64_t deadline_ns, mc_machine_polled *out,
                          uint32_t most, uint32_t *count) noexcept {
    uint32_t taken = 0;
    int32_t status = MC_OK;
    sched::ThreadContext *here = &thread;
    while (taken < most && !is_closed()) {
        Token *token = Token::make();
        if (token == nullptr) {
            status = MC_E_NOMEM;
            pass_on(id);
            break;
        }
        Machine *machine = take_polled(id);
        if (machine == nullptr) {
            Token::give_back(token);
            if (taken != 0 || !wait_for_polled(*here, id, deadline_ns, &status))
                break;
            here = &sched::here_now(); // another thread's, perhaps
            continue;
        }
        token->dispatch().engine = engine_;
        if (engine_->begin_polled(token->dispatch(), machine)) {
            token->open(*this, machine, &out[taken++]);
        } else { // it has stopped, say
            Token::give_back(token);
            one_less();
        }
    }
    if (taken == 0)
        return is_closed() ? MC_E_SHUTDOWN : status;
    *count = taken;
    return MC_OK;
}

void MachineHost::set_token_timeout(int64_t timeout_ns) noexcept {
    token_timeout_ns_.store(timeout_ns, sync::relaxed); // each look takes the one that it finds
    if (timeout_ns != 0)
        set_anew(expiry_);
}

// Those that are old enough; INT64_MAX: all. When the next one will be; INT64_MAX: none. One that is being used is looked at again
// soon.
int64_t MachineHost::expire_tokens(int64_t now) noexcept {
    constexpr int64_t soon_ns = MC_MS;
    int64_t next_ns = INT64_MAX;
    for (;;) {
        Token *expired = nullptr;
        {
            const base::SpinGuard guard(tokens_lock_);
            const int64_t timeout_ns = token_timeout_ns_.load(sync::relaxed);
            for (Token *token = tokens_.front(); token != nullptr && expired == nullptr; token = tokens_.after(token)) {
                const int64_t due_ns = timeout_ns == 0 ? INT64_MAX : later(token->opened_ns(), timeout_ns);
                if (now < due_ns && now != INT64_MAX) { // the oldest is first
                    next_ns = std::min(next_ns, due_ns);
                    break;
                }
                if (token->try_end())
                    expired = token;
                else
                    next_ns = std::min(next_ns, later(now, soon_ns));
            }
        }
        if (expired == nullptr)
            return next_ns;
        (void)expired->finish(MC_DISPATCH_FAULT, MC_FAULT_CODE_TOKEN_EXPIRED);
    }
}

int64_t MachineHost::next_expiry_ns() noexcept {
    const base::SpinGuard guard(tokens_lock_);
    const int64_t timeout_ns = token_timeout_ns_.load(sync::relaxed);
    const Token *oldest = tokens_.front();
    return timeout_ns == 0 || oldest == nullptr ? INT64_MAX : later(oldest->opened_ns(), timeout_ns);
}

// As look_at_clock, with tokens, and tokens_lock_.
void MachineHost::look_at_tokens(void *host) noexcept {
    auto &self = *static_cast<MachineHost *>(host);
    int64_t next = self.is_closed() ? INT64_MAX : self.expire_tokens(self.now_ns());
    if (next == INT64_MAX) {
        (void)self.expiry_.set.exchange(0, sync::acq_rel); // likewise
        next = self.is_closed() ? INT64_MAX : self.next_expiry_ns();
        if (next == INT64_MAX || self.expiry_.set.exchange(1, sync::acq_rel) != 0)
            return self.unpin();
    }
    self.arm_again(self.expiry_, next);
}

// --- time and waking -------------------------------------------------------------------------------------------------------

void MachineHost::wake(const machine::Waker &waker) noexcept {
    (void)sched::claim_and_wake(static_cast<sched::Task *>(waker.task), waker.epoch, sched::WakeReason::ready, MC_OK);
}

int64_t MachineHost::now_ns() const noexcept {
    const sched::ThreadContext *thread = sched::current();
    return thread != nullptr && thread->executor != nullptr ? thread->executor->driver().now() : sync::now_ns();
}

int64_t MachineHost::about_now_ns() const noexcept {
    const sched::ThreadContext *thread = sched::current();
    return thread != nullptr && thread->executor != nullptr ? thread->executor->clock_ns() : sync::now_ns();
}

const sched::Timer::Action MachineHost::alarm_action_ = {no_ticket, fire};

bool MachineHost::make_alarm(Alarm &alarm, void (*step)(void *), const char *name) noexcept {
    alarm.host = this;
    alarm.action = &alarm_action_;
    alarm.set.store(0, sync::relaxed);
    alarm.sooner.store(0, sync::relaxed);
    alarm.step = sched::make_step(step, this, name);
    return alarm.step != nullptr;
}

// By who has a pin.
void MachineHost::set_alarm(Alarm &alarm, int64_t deadline_ns) noexcept {
    if (alarm.set.exchange(1, sync::acq_rel) != 0)
        return;
    (void)uses_.fetch_add(1, sync::relaxed); // the alarm's pin
    arm_again(alarm, deadline_ns);
}

// By who has the alarm's pin; the last that it does.
void MachineHost::arm_again(Alarm &alarm, int64_t deadline_ns) noexcept {
    arm(alarm, deadline_ns);
    // Who wants it sooner says so before he looks into the heap for it: he has found it there, or we find what he has said.
    // Only who has it out of the heap may take that back: else it is armed anew already, by who looks at that next.
    if (alarm.sooner.load(sync::acquire) != 0 && sched::TimerHeap::cancel(alarm)) {
        (void)alarm.sooner.exchange(0, sync::acquire);
        arm(alarm, now_ns());
    }
    // acq_rel, as close: either we find it closed, or who closes finds the alarm armed.
    if ((uses_.fetch_add(0, sync::acq_rel) & closed) != 0)
        cancel(alarm);
}

void MachineHost::arm(Alarm &alarm, int64_t deadline_ns) noexcept {
    alarm.deadline_ns = deadline_ns;
    // Always in one heap: somebody may be about to cancel it meanwhile. In simulation there is one executor.
    const sched::ThreadContext *thread = simulated_ ? sched::current() : nullptr;
    (thread != nullptr && thread->executor != nullptr ? *thread->executor : pool_->first()).arm(alarm);
}

void MachineHost::cancel(Alarm &alarm) noexcept {
    if (alarm.set.load(sync::relaxed) == 0 || !sched::TimerHeap::cancel(alarm))
        return;
    (void)alarm.set.exchange(0, sync::acq_rel); // pairs with set_alarm's exchange; the timer is out of the heap
    unpin();
}

void MachineHost::cancel_alarms() noexcept {
    for (Alarm *alarm : {&clock_, &watch_, &expiry_})
        cancel(*alarm);
}

// On an executor, in the middle of its own business: what there is to do is done by a step.
void MachineHost::fire(sched::Timer &timer, uint64_t, int64_t) noexcept {
    auto &alarm = static_cast<Alarm &>(timer);
    sched::queue_step(*alarm.host->pool_, alarm.step);
}

// It was set for later, perhaps, or is just being set.
void MachineHost::set_anew(Alarm &alarm) noexcept {
    alarm.sooner.store(1, sync::release);
    cancel(alarm);
    set_alarm(alarm, now_ns());
}

// Those that a detachment which came to nothing has cancelled.
void MachineHost::restore_alarms() noexcept {
    if (engine_->timeout_ns.load(sync::relaxed) != 0)
        set_alarm(clock_, now_ns());
    if (token_timeout_ns_.load(sync::relaxed) != 0)
        set_alarm(expiry_, now_ns());
    if (count_ > 1 && busy())
        set_alarm(watch_, now_ns());
}

void MachineHost::set_request_timeout(int64_t timeout_ns) noexcept {
    engine_->timeout_ns.store(timeout_ns, sync::relaxed); // each look takes the one that it finds
    if (timeout_ns != 0)
        set_anew(clock_);
}

void MachineHost::watch_timeouts() noexcept {
    if (clock_.set.load(sync::relaxed) == 0)
        set_alarm(clock_, later(now_ns(), engine_->timeout_ns.load(sync::relaxed)));
}

// A request that is made while nothing is set sets the alarm itself: it looks after it has been put into its part, under the
// part's lock, and we look into the parts, likewise, after we have said that nothing is set. Nobody is called from then on, since
// the step may be queued once more.
void MachineHost::look_at_clock(void *host) noexcept {
    auto &self = *static_cast<MachineHost *>(host);
    int64_t next = self.is_closed() ? INT64_MAX : self.engine_->expire_by_clock(self.now_ns());
    if (next == INT64_MAX) {
        // A read-modify-write, as in set_alarm: who has found it set before that has changed what we look at from here on.
        (void)self.clock_.set.exchange(0, sync::acq_rel);
        next = self.is_closed() ? INT64_MAX : self.engine_->next_timeout_ns();
        if (next == INT64_MAX || self.clock_.set.exchange(1, sync::acq_rel) != 0)
            return self.unpin();
    }
    self.arm_again(self.clock_, next);
}

// As above, with who serves a shard, and idle_lock_.
void MachineHost::look_at_shards(void *host) noexcept {
    auto &self = *static_cast<MachineHost *>(host);
    for (uint32_t i = 0; i < self.count_ && !self.is_closed(); ++i) {
        Shard &shard = self.shards_[i];
        shard.lock.lock();
        const bool waits = shard.length != 0;
        shard.lock.unlock();
        if (waits && !self.look_for_help(shard))
            break;
    }
    if (self.is_closed() || !self.busy()) {
        (void)self.watch_.set.exchange(0, sync::acq_rel); // likewise
        if (self.is_closed() || !self.busy() || self.watch_.set.exchange(1, sync::acq_rel) != 0)
            return self.unpin();
    }
    self.arm_again(self.watch_, later(self.now_ns(), watch_period_ns));
}

// --- attaching -------------------------------------------------------------------------------------------------------------

bool MachineHost::make_shards(uint32_t count) noexcept {
    shards_ = base::allocate_array<Shard>(count);
    if (shards_ == nullptr)
        return false;
    count_ = count;
    polled_ = base::allocate_array<PollPlace>(poll_places);
    for (uint32_t i = 0; polled_ != nullptr && i < poll_places; ++i)
        new (&polled_[i]) PollPlace();
    bool good = polled_ != nullptr;
    for (uint32_t i = 0; i < count; ++i) {
        Shard &shard = *new (&shards_[i]) Shard();
        shard.host = this;
        shard.step = sched::make_step(pump, &shard, "machines");
        shard.dispatch = base::create<Engine::Dispatch>(nullptr);
        good = good && shard.step != nullptr && shard.dispatch != nullptr;
    }
    const bool clock = make_alarm(clock_, look_at_clock, "machines' timeouts");
    const bool watch = make_alarm(watch_, look_at_shards, "machines' watch");
    return make_alarm(expiry_, look_at_tokens, "machines' tokens") && watch && clock && good;
}

void MachineHost::release_shards() noexcept {
    for (uint32_t i = 0; i < count_; ++i) {
        base::destroy(shards_[i].dispatch);
        sched::drop_step(shards_[i].step);
        shards_[i].~Shard();
    }
    base::deallocate_array(shards_, count_);
    for (Alarm *alarm : {&clock_, &watch_, &expiry_}) {
        sched::drop_step(alarm->step);
        alarm->step = nullptr;
    }
    base::deallocate_array(polled_, poll_places);
    polled_ = nullptr;
    shards_ = nullptr;
    count_ = 0;
}

int32_t MachineHost::attach(uint64_t word, sched::Pool &pool, uint64_t handle) noexcept {
    const machine::Runtime runtime = machine::find_runtime(word);
    if (!runtime)
        return MC_E_STALE;
    if (runtime.is_attached() || !runtime.engine()->nothing_ready())
        return MC_E_BUSY;
    MachineHost *host = host_slab().acquire();
    if (host == nullptr)
        return MC_E_NOMEM;
    const bool attached = pool.attach_guest();
    // It may have been destroyed, and be nobody's or another runtime's, before it was told.
    const bool is_ours = attached && sched::runtime_is(pool, handle);
    const int32_t status = is_ours ? host->begin(word, pool, *runtime.engine()) : attached ? MC_E_STALE : MC_E_SHUTDOWN;
    if (status != MC_OK) {
        if (attached)
            pool.detach_guest();
        host_slab().release(host);
        return status;
    }
    machine::Engine<machine::Seq>::end(runtime.engine()); // it is empty
    return MC_OK;
}

int32_t MachineHost::begin(uint64_t word, sched::Pool &pool, machine::Engine<machine::Seq> &from) noexcept {
    simulated_ = sched::simulator() != nullptr;
    pool_ = &pool;
    pool_handle_ = pool.handle();
    const uint32_t executors = simulated_ || !pool.many() ? 1 : pool.live();
    Engine *engine = make_shards(std::min(executors, most_shards)) ? Engine::take_over(from, this) : nullptr;
    if (engine == nullptr) {
        release_shards();
        return MC_E_NOMEM;
    }
    for (uint32_t i = 0; i < count_; ++i)
        shards_[i].dispatch->engine = engine;
    help_at_.store(2, sync::relaxed);
    token_timeout_ns_.store(0, sync::relaxed);
    {
        const base::SpinGuard guard(polled_lock_);
        polling_ended_ = false;
    }
    idle_shards_.store(count_ == 64 ? UINT64_MAX : (uint64_t{1} << count_) - 1, sync::relaxed);
    open(word, engine);
    {
        const base::SpinGuard guard(idle_lock_); // not before: a late caller of another runtime's would end this one
        MC_INVARIANT(busy_ == 0, busy_);
        live_ = true;
    }
    (void)machine::replace_runtime(word, machine::Runtime(&from), machine::Runtime(static_cast<machine::Host *>(this)));
    if (Engine *pinned = pin(word); pinned != nullptr) {
        pinned->wake_polled();
        restore_alarms(); // for requests from before
        unpin();
    }
    return MC_OK;
}

// The caller has a pin, which it keeps when this fails. When machines are ready or a call is under way, the pin is not the only one.
int32_t MachineHost::detach(uint64_t word) noexcept {
    bool alone = false;
    (void)wait_briefly(100 * MC_MS, [&] { // a pump that is leaving, or a call that is short
        alone = close_alone();
        if (!alone)
            cancel_alarms();
        return alone || busy();
    });
    if (alone && busy()) { // what waits to be polled has no pin
        reopen();
        alone = false;
    }
    if (!alone) {
        restore_alarms();
        return MC_E_BUSY;
    }
    auto *engine = machine::Engine<machine::Seq>::take_over(*engine_, nullptr);
    if (engine == nullptr) {
        reopen();
        restore_alarms();
        return MC_E_NOMEM;
    }
    {
        const base::SpinGuard guard(idle_lock_);
        live_ = false;
    }
    (void)machine::replace_runtime(word, machine::Runtime(static_cast<machine::Host *>(this)),
                                   machine::Runtime(engine));
    for (uint32_t i = 0; i < count_; ++i)
        engine_->leave(*shards_[i].dispatch);
    Engine::end(engine_);
    release_shards();
    pool_->detach_guest();
    unpin(); // the caller's; it is closed, and has nothing to end
    host_slab().release(this);
    return MC_OK;
}

void MachineHost::drop() noexcept {
    (void)uses_.fetch_add(1, sync::acq_rel); // ours
    close();
    pool_->guest_leaves();
    engine_->be_quiet();
    engine_->end_askers();
    end_polling();
    engine_->release_all_short();
    cancel_alarms();
    int32_t status = MC_OK;
    sched::ThreadContext *thread = sched::attach(&status);
    // In the child of a fork nobody runs what is left of the pool.
    if (thread != nullptr && sched::may_block(*thread) == MC_OK && sched::runtime_is(*pool_, pool_handle_)) {
        wait_until_nothing_turns(*thread);
        // Those who are on their way out: then it ends here, and not a moment later with the last of them. But not who has called a
        // user, which may be what calls us; nor pumps that nobody runs, for long.
        const sched::ThreadContext &here = sched::here_now();
        const bool runs = pool_->many() || (here.executor != nullptr && &here.executor->pool() == pool_);
        (void)wait_briefly(
            runs ? MC_SEC : MC_MS,
            [this] {
                cancel_alarms();
                return is_last_out_but(engine_->in_users());
            },
            runs ? most_tries : 10);
    }
    unpin();
}

// By who has closed it.
void MachineHost::wait_until_nothing_turns(sched::ThreadContext &thread) noexcept {
    for (sched::ThreadContext *here = &thread;; here = &sched::here_now()) {
        idle_lock_.lock();
        if (busy_ == 0 || !turns() || sched::refuse_to_wait(*here, MC_FOREVER) != MC_OK)
            return idle_lock_.unlock();
        sched::Waiting waiting;
        sched::Parking parking(nullptr, MC_FOREVER, nullptr);
        parking.waits_for = sched::WaitsFor(sched::WaitKind::quiescence, uint64_t{0}); // of no pool
        parking.may_be_cancelled = false;
        if (idle_waiters_.wait(*here, idle_lock_, waiting, sched::WaitList::At::back, parking) ==
            sched::WakeReason::ready)
            continue;
        idle_lock_.unlock(); // the caller's own runtime is being shut down: that ends waits, and not handlers
        let_others_run();
    }
}

void MachineHost::unused() noexcept {
    {
        const base::SpinGuard guard(idle_lock_);
        // Somebody who looks in late calls this again when he leaves; one of before may find the host open for another runtime.
        if (uses_.load(sync::acquire) != closed || !std::exchange(live_, false))
            return;
    }
    for (uint32_t i = 0; i < count_; ++i)
        while (Machine *machine = shards_[i].take())
            engine_->forget(machine);
    for (PollPlace *place = polled_; place != polled_ + poll_places; ++place)
        while (Machine *machine = place->machines.take())
            engine_->forget(machine);
    Engine::end(engine_);
    release_shards();
    pool_->guest_left();
    host_slab().release(this);
}

void drop_attached(machine::Host &host) noexcept { static_cast<MachineHost &>(host).drop(); }

// --- waiting ---------------------------------------------------------------------------------------------------------------

int32_t MachineHost::wait_until_idle(sched::ThreadContext &thread, int64_t deadline_ns) noexcept {
    idle_lock_.lock();
    if (busy_ == 0) {
        idle_lock_.unlock();
        return MC_OK;
    }
    if (const int32_t refused = sched::refuse_to_wait(thread, deadline_ns); refused != MC_OK) {
        idle_lock_.unlock();
        return refused;
    }
    sched::Waiting waiting;
    sched::Parking parking(nullptr, deadline_ns, nullptr);
    // 0: of no pool. Who looks whether everybody waits for ever asks a pool that is named here.
    parking.waits_for = sched::WaitsFor(sched::WaitKind::quiescence, uint64_t{0});
    const sched::WakeReason reason =
        idle_waiters_.wait(thread, idle_lock_, waiting, sched::WaitList::At::back, parking);
    if (reason == sched::WakeReason::ready)
        return is_closed() && busy() ? MC_E_SHUTDOWN : MC_OK;
    idle_lock_.unlock();
    return sched::status_of(reason);
}

namespace {

// A wait that its place wakes, an asker or a guest, whose lock the caller holds, and the commit gives back.
template <class Place> struct PlaceParking : sched::Parking {
    PlaceParking(Place &at, const sched::WaitsFor &what, int64_t deadline) noexcept
        : Parking(commit, deadline, nullptr), place(&at) {
        one_lock = true;
        waits_for = what;
    }

    Place *place;

    static void commit(Parking &parking) noexcept {
        auto &self = static_cast<PlaceParking &>(parking);
        self.place->waker = {self.task, self.epoch};
        self.place->lock.unlock(); // nothing of the waiter's frame is touched from here on
    }
};

} // namespace

int32_t MachineHost::send(sched::ThreadContext &thread, Engine &engine, uint32_t dst,
                          const mc_machine_envelope_t &envelope, int64_t deadline_ns) noexcept {
    machine::Guest guest;
    sched::ThreadContext *here = &thread;
    bool has_turn = false;
    for (;;) {
        bool waits = false; // in the list of those who wait for room
        const mc_mailbox_enqueue_result_t result = engine.enqueue_or_wait(dst, envelope, guest, has_turn, &waits);
        if (has_turn)
            engine.pass_on_room(dst); // used or not
        if (result == MC_MAILBOX_ENQUEUE_OK)
            return MC_OK;
        int32_t status = result == MC_MAILBOX_ENQUEUE_FULL && !waits ? MC_E_NOMEM : status_of(result);
        if (waits && wait_in_list(&here, engine, dst, guest, deadline_ns, &status)) {
            if (guest.delivered)
                return MC_OK;
            has_turn = !is_closed();
            if (has_turn)
                continue;
            status = MC_E_SHUTDOWN;
        }
        engine.lose(dst, result, envelope);
        return status;
    }
}

// True: it was let go, perhaps after its wait's end. False: it has left, for that reason.
bool MachineHost::wait_in_list(sched::ThreadContext **here, Engine &engine, uint32_t dst, machine::Guest &guest,
                               int64_t deadline_ns, int32_t *status) noexcept {
    guest.lock.lock();
    if (guest.doing == machine::Doing::nothing) {
        guest.lock.unlock();
        return true;
    }
    *status = is_closed() ? MC_E_SHUTDOWN : sched::refuse_to_begin(**here, deadline_ns, nullptr);
    if (*status != MC_OK) {
        guest.lock.unlock();
    } else {
        PlaceParking parking(guest, sched::WaitsFor(sched::WaitKind::mailbox, uint64_t{dst}), deadline_ns);
        const sched::WakeReason reason = sched::park(**here, parking);
        *here = &sched::here_now(); // another thread's, perhaps
        if (reason == sched::WakeReason::ready)
            return true;
        *status = sched::status_of(reason);
    }
    return !engine.leave_list(dst, guest);
}

int32_t MachineHost::ask(sched::ThreadContext &thread, Engine &engine, uint32_t dst,
                         const mc_machine_envelope_t &request, int64_t deadline_ns,
                         mc_machine_envelope_t *answer) noexcept {
    int32_t refused = sched::refuse_to_begin(thread, deadline_ns, nullptr);
    machine::Asker *asker = refused != MC_OK ? nullptr : machine::asker_slab().acquire();
    if (asker == nullptr) {
        engine.refuse(request.payload0, request.payload1);
        return refused != MC_OK ? refused : MC_E_NOMEM;
    }
    int32_t status = status_of(engine.ask(dst, request, *asker));
    sched::ThreadContext *here = &thread;
    while (status == MC_OK) {
        asker->lock.lock();
        const machine::Asker::State state = asker->state;
        if (state != machine::Asker::State::waits) {
            asker->lock.unlock();
            if (state == machine::Asker::State::answered)
                engine.take_answer(*asker, answer);
            else
                status = is_closed() ? MC_E_SHUTDOWN : MC_E_TIMEDOUT;
            break;
        }
        // Who closes it looks for askers after that, with this lock: it has found us, or we find it closed.
        status = is_closed() ? MC_E_SHUTDOWN : sched::refuse_to_wait(*here, deadline_ns);
        if (status != MC_OK) {
            asker->lock.unlock();
        } else {
            PlaceParking parking(*asker, sched::WaitsFor(sched::WaitKind::request, asker->pending), deadline_ns);
            const sched::WakeReason reason = sched::park(*here, parking);
            here = &sched::here_now(); // another thread's, perhaps
            if (reason == sched::WakeReason::ready)
                continue;
            status = sched::status_of(reason);
        }
        // Whoever has answered has done so; else nobody will.
        if (engine.withdraw(*asker))
            break;
        status = MC_OK;
    }
    machine::asker_slab().release(asker);
    return status;
}

} // namespace mc::compose
