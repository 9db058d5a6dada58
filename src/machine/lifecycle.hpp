// Of the engine: a machine's life, its state, and the ends of its requests. See engine.hpp.
#pragma once

#include "base/guarded.hpp"
#include "machine/engine.hpp"
#include "machine/registry.hpp"

#include <algorithm>

namespace mc::machine {

template <class Sync> void Engine<Sync>::end(Engine *engine) noexcept {
    engine->hooks = Hooks();
    engine->ended_ = true;
    if constexpr (Sync::shared) {
        base::destroy(engine);
    } else {
        const Use use(*engine);
    }
}

// What is left is dropped in the order of machines' ids: mail, state; then what requests hold.
template <class Sync> Engine<Sync>::~Engine() {
    users_ = 1; // drop functions may use machines of ours by words that are stale; they find nothing
    while (!ready_.empty())
        forget(ready_.pop());
    if constexpr (Sync::shared)
        forget_short();
    for (uint64_t id = 1; id <= table_.last(); ++id) {
        Machine *machine = table_.find(static_cast<uint32_t>(id));
        if (machine == nullptr)
            continue;
        Envelope envelope;
        while (!machine->mail.empty()) {
            (void)machine->mail.pop(&envelope);
            let_go(envelope);
        }
        if (const uint64_t layout = state_layout(*machine); layout != 0 && machine->state != 0)
            drop_token(machine->state, layout);
        while (Row *row = machine->rows.front()) {
            pending_.remove(row, 0);
            let_go(row->payload0, row->payload1);
            pending_.recycle(row);
        }
        while (Subscription *subscription = machine->subscriptions.front())
            subscriptions_.table(subscription->topic->kind, subscription->topic->routing).remove(subscription);
        machine->queued = false;
        machine->doing = Doing::nothing;
        table_.remove(machine);
    }
    pending_.for_each([&](Row *row) { // requesters that had stopped, or never were
        pending_.remove(row, 0);
        let_go(row->payload0, row->payload1);
        pending_.recycle(row);
    });
    while (spare_ != nullptr) {
        Dispatch *next = spare_->next;
        base::destroy(spare_);
        spare_ = next;
    }
}

template <class Sync>
template <class Other>
Engine<Sync> *Engine<Sync>::take_over(Engine<Other> &other, Host *host) noexcept {
    static_assert(Sync::shared != Other::shared);
    Engine *engine = base::create<Engine>(other.handle_);
    bool good = engine != nullptr;
    if (good && Sync::shared)
        good = engine->boxes_.make_many() && engine->pending_.make_many() && engine->subscriptions_.make_many();
    good = good && engine->boxes_.prepare_for(other.boxes_) && engine->pending_.prepare_for(other.pending_);
    if (!good) {
        base::destroy(engine);
        return nullptr;
    }
    engine->take(other);
    engine->host_ = host;
    engine->boxes_.take_from(other.boxes_);
    engine->pending_.take_from(other.pending_);
    if constexpr (Sync::shared)
        engine->pending_.for_each([now = host->now_ns()](Row *row) { row->created_ns = now; });
    engine->subscriptions_.take_from(other.subscriptions_);
    while (Row *row = other.unclaimed_.pop_front())
        engine->unclaimed_.push_back(row);
    other.table_.release_kept();
    engine->table_.take_from(other.table_);
    if constexpr (!Sync::shared) {
        engine->forget_short();
        for (uint64_t id = 1; id <= engine->table_.last(); ++id)
            if (Machine *machine = engine->table_.find(static_cast<uint32_t>(id)); machine != nullptr) {
                Woken woken;
                engine->wake(woken, *machine);
            }
    }
    engine->tick_.store(other.tick_.load(sync::relaxed), sync::relaxed);
    engine->stops_.store(other.stops_.load(sync::relaxed), sync::relaxed);
    return engine;
}

// Attached just now, and the host is open: polled machines that have mail.
template <class Sync> void Engine<Sync>::wake_polled() noexcept {
    for (uint64_t id = 1; id <= table_.last(); ++id) {
        Woken woken;
        Held held(*this, static_cast<uint32_t>(id));
        if (held.get() != nullptr && held.get()->is_polled())
            wake(woken, *held.get());
        held.release();
        tell(woken);
    }
}

// Requests that were made in its name before there was it are its own.
template <class Sync> uint32_t Engine<Sync>::spawn(uint32_t mailbox_bound) noexcept {
    Machine *machine = table_.make(mailbox_bound);
    if (machine == nullptr)
        return 0;
    uint32_t id = 0;
    {
        // Whoever finds it waits until its requests are its own.
        const typename Sync::Guard guard(machine->lock);
        const typename Sync::Guard orphans(orphans_);
        id = table_.add(machine);
        for (Row *row = id == 0 ? nullptr : unclaimed_.front(); row != nullptr;) {
            Row *next = unclaimed_.after(row);
            if (row->requester == id) {
                base::List<Row, OfMachine>::remove(row);
                machine->rows.push_back(row);
            }
            row = next;
        }
    }
    if (id == 0) {
        if constexpr (Sync::shared)
            table_.keep(machine);
        else
            table_.destroy(machine);
    }
    return id;
}

template <class Sync> bool Engine<Sync>::start(uint32_t id) noexcept {
    Woken woken;
    Held held(*this, id);
    Machine *machine = held.get();
    if (machine == nullptr || machine->lifecycle != MC_MACHINE_CREATED)
        return false;
    machine->lifecycle = MC_MACHINE_RUNNING;
    wake(woken, *machine);
    held.release();
    tell(woken);
    return true;
}

template <class Sync> bool Engine<Sync>::stop(uint32_t id) noexcept {
    if (!table_.was_given_out(id))
        return false;
    if constexpr (Sync::shared) {
        (void)end_machine(id);
    } else {
        const Use use(*this);
        if (Machine *machine = table_.find(id); machine != nullptr && machine->lifecycle != MC_MACHINE_STOPPED)
            stop_machine(*machine);
    }
    return true;
}

template <class Sync> bool Engine<Sync>::mark_faulted(uint32_t id) noexcept {
    if constexpr (Sync::shared)
        return mark_as_faulted(id);
    Machine *machine = table_.find(id);
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED)
        return false;
    const Use use(*this);
    if (machine->takes_mail()) {
        machine->lifecycle = MC_MACHINE_FAULTED;
        end_rows(*machine, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
    }
    return true;
}

// --- stepped: hooks are called as things happen ------------------------------------------------------------------------

// Hooks see the mailbox and the subscriptions; a stop inside them finds that there is nothing to do.
template <class Sync> void Engine<Sync>::stop_machine(Machine &machine) noexcept {
    machine.lifecycle = MC_MACHINE_STOPPED;
    end_rows(machine, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
    while (Subscription *subscription = machine.subscriptions.front())
        subscriptions_.table(subscription->topic->kind, subscription->topic->routing).remove(subscription);
    // Drop functions are users, too: one envelope is out of the mailbox before its boxes are dropped.
    Envelope envelope;
    while (!machine.mail.empty()) {
        (void)machine.mail.pop(&envelope);
        let_go(envelope);
    }
    const uint64_t state = machine.state, layout = retire_state(machine, state, state_layout(machine));
    machine.state = 0;
    if (layout != 0)
        drop_token(state, layout);
    stops_.store(stops() + 1, sync::relaxed);
    machine.mail.release();
    table_.remove(&machine);
}

// The machine is down: it gets no new rows meanwhile, and stays where it is, or is stopped by a hook (then its rows have
// all ended, and it is gone).
template <class Sync> void Engine<Sync>::end_rows(Machine &machine, mc_pending_cleanup_reason_t reason) noexcept {
    const uint32_t id = machine.id;
    const uint8_t lifecycle = machine.lifecycle;
    while (true) {
        Machine *still = table_.find(id);
        Row *row = still == nullptr || still->lifecycle != lifecycle ? nullptr : still->rows.front();
        if (row == nullptr)
            return;
        end_row(row, reason);
    }
}

// Without a reply.
template <class Sync> void Engine<Sync>::end_row(Row *row, mc_pending_cleanup_reason_t reason) noexcept {
    pending_.remove(row, reason);
    end_removed(row, reason);
}

// --- attached: what has ended is taken out under the lock, and hooks follow --------------------------------------------

// False: there is no machine of that id. One that is in a list still (ready, short of room), or whose handler runs, is kept by who
// has it there.
template <class Sync> bool Engine<Sync>::end_machine(uint32_t id) noexcept {
    Subscriptions::Set topics = 0;
    Machine *machine = nullptr;
    for (;;) {
        Held held(*this, id);
        machine = held.get();
        if (machine == nullptr) {
            subscriptions_.unlock(topics);
            return false;
        }
        if (topics != 0 || machine->subscriptions.empty()) {
            machine->lifecycle = MC_MACHINE_STOPPED;
            Row *const rows = remove_rows(*machine, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
            while (Subscription *subscription = machine->subscriptions.front())
                subscriptions_.table(subscription->topic->kind, subscription->topic->routing).remove(subscription);
            Mailbox mail(1);
            machine->mail.give_to(&mail);
            const uint64_t state = machine->state;
            const uint64_t layout = retire_state(*machine, state, state_layout(*machine));
            machine->state = 0;
            Machine *const short_of_us = take_all_short(*machine);
            table_.unlink(machine);
            const bool in_use = machine->queued || machine->doing != Doing::nothing;
            const bool waits_for_poll = machine->waits_for_poll();
            const uint32_t alone = machine->polled_alone() ? id : 0;
            held.release();
            subscriptions_.unlock(topics);
            if (!in_use)
                table_.keep(machine);
            else if (waits_for_poll)
                host_->stop_polled(machine, alone);
            stops_.fetch_add(1, sync::relaxed);
            let_them_go(short_of_us, 0);
            end_all_removed(rows, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
            Envelope envelope;
            while (!mail.empty()) {
                (void)mail.pop(&envelope);
                let_go(envelope);
            }
            if (layout != 0)
                drop_token(state, layout);
            return true;
        }
        held.release();
        topics =
            Subscriptions::all; // before the machine's; it stays subscribed to nothing else, whatever it does meanwhile
        subscriptions_.lock(topics);
    }
}

template <class Sync> bool Engine<Sync>::mark_as_faulted(uint32_t id) noexcept {
    Held held(*this, id);
    Machine *machine = held.get();
    if (machine == nullptr)
        return false;
    if (!machine->takes_mail())
        return true;
    machine->lifecycle = MC_MACHINE_FAULTED;
    Row *const rows = remove_rows(*machine, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
    Machine *const short_of_us = take_all_short(*machine);
    const bool waits_for_poll = machine->waits_for_poll();
    const uint32_t alone = machine->polled_alone() ? id : 0;
    held.release();
    if (waits_for_poll)
        host_->stop_polled(machine, alone);
    let_them_go(short_of_us, 0);
    end_all_removed(rows, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
    return true;
}

// With the machine's lock: its requests are nobody's from now on. The oldest first.
template <class Sync> Row *Engine<Sync>::remove_rows(Machine &machine, mc_pending_cleanup_reason_t reason) noexcept {
    Row *first = nullptr, **end = &first;
    while (Row *row = machine.rows.front()) {
        pending_.remove(row, reason);
        row->next = nullptr;
        *end = row;
        end = &row->next;
    }
    return first;
}

template <class Sync> void Engine<Sync>::end_all_removed(Row *rows, mc_pending_cleanup_reason_t reason) noexcept {
    while (rows != nullptr) {
        Row *next = rows->next;
        end_removed(rows, reason);
        rows = next;
    }
}

// --- both ----------------------------------------------------------------------------------------------------------------

// The policy decides: faulted, or stopped. The fault hook comes last.
template <class Sync> void Engine<Sync>::fault_machine(uint32_t id, uint64_t code) noexcept {
    bool down = false;
    if constexpr (Sync::shared) {
        down = fault_policy == MC_FAULT_POLICY_MARK_STOPPED ? end_machine(id) : mark_as_faulted(id);
    } else if (Machine *machine = table_.find(id); machine != nullptr && machine->lifecycle != MC_MACHINE_STOPPED) {
        down = true;
        if (fault_policy == MC_FAULT_POLICY_MARK_STOPPED) {
            stop_machine(*machine);
        } else {
            machine->lifecycle = MC_MACHINE_FAULTED;
            end_rows(*machine, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
        }
    }
    if (down && hooked(hooks.fault))
        call_user("a fault hook", [&] { hooks.fault(hooks.context, id, code); });
}

// Of a row that is out of the tables. Its request, where it still waits, is delivered without the box.
template <class Sync> void Engine<Sync>::end_removed(Row *row, mc_pending_cleanup_reason_t reason) noexcept {
    const uint64_t payload0 = row->payload0, payload1 = row->payload1;
    bool waits = false;
    if (is_box(payload0, payload1)) {
        const Held dst(*this, row->dst);
        if (dst.get() != nullptr)
            if (Envelope *waiting = dst.get()->mail.waiting(row->position); waiting != nullptr) {
                waiting->payload0 = waiting->payload1 = 0;
                waits = true;
            }
    }
    const uint32_t requester = row->requester;
    const uint64_t id = row->id, site = row->site;
    pending_.recycle(row);
    if (hooked(hooks.pending))
        call_user("a hook of requests", [&] { hooks.pending(hooks.context, requester, id, site, reason); });
    if (waits)
        let_go(payload0, payload1);
    let_go(payload0, payload1);
}

// --- timeouts ------------------------------------------------------------------------------------------------------------

// When a request is made. Where none times out for now it need not be exact.
template <class Sync> inline int64_t Engine<Sync>::now_ns() const noexcept {
    if constexpr (Sync::shared)
        return timeout_ns.load(sync::relaxed) == 0 ? host_->about_now_ns() : host_->now_ns();
    return 0;
}

template <class Sync> int64_t Engine<Sync>::next_timeout_ns() const noexcept {
    const int64_t ns = timeout_ns.load(sync::relaxed);
    int64_t next_ns = INT64_MAX;
    for (uint32_t part = 0; ns != 0 && part < pending_.parts(); ++part) {
        uint64_t created = 0;
        int64_t created_ns = 0;
        if (pending_.oldest_of(part, &created, &created_ns) != 0)
            next_ns = std::min(next_ns, created_ns > INT64_MAX - ns ? INT64_MAX : created_ns + ns);
    }
    return next_ns;
}

// After a step, where requests time out by steps. Attached: of one part, whose turn it is; a request may end some steps late.
template <class Sync> void Engine<Sync>::expire_rows([[maybe_unused]] uint32_t *part) noexcept {
    if constexpr (Sync::shared) {
        int64_t next_ns = INT64_MAX;
        *part = (*part + 1) % pending_.parts();
        while (expire_oldest(*part, now_tick(), INT64_MIN, &next_ns))
            continue;
    } else {
        while (timeout_steps.load(sync::relaxed) != 0) { // a hook may change it
            Row *row = pending_.oldest();
            if (row == nullptr || now_tick() - row->created < timeout_steps.load(sync::relaxed))
                return;
            end_row(row, MC_PENDING_CLEANUP_TIMEOUT);
        }
    }
}

template <class Sync> int64_t Engine<Sync>::expire_by_clock(int64_t now) noexcept {
    int64_t next_ns = INT64_MAX;
    for (uint32_t part = 0; part < pending_.parts(); ++part)
        while (expire_oldest(part, now_tick(), now, &next_ns))
            continue;
    return next_ns;
}

// True: it was old enough, and has ended (or was ended by somebody else); look again. *next_ns: lowered to when it will be.
template <class Sync>
bool Engine<Sync>::expire_oldest(uint32_t part, uint64_t tick, int64_t now, int64_t *next_ns) noexcept {
    const uint64_t steps = timeout_steps.load(sync::relaxed);
    const int64_t ns = timeout_ns.load(sync::relaxed);
    uint64_t created = 0;
    int64_t created_ns = 0;
    const uint64_t id = pending_.oldest_of(part, &created, &created_ns);
    if (id == 0)
        return false;
    // Ticks are written without order: the row's may be ahead of what we see.
    const bool by_steps = steps != 0 && tick >= created && tick - created >= steps;
    const bool by_clock = ns != 0 && now >= created_ns && now - created_ns >= ns;
    if (!by_steps && !by_clock) {
        if (ns != 0)
            *next_ns = std::min(*next_ns, created_ns > INT64_MAX - ns ? INT64_MAX : created_ns + ns);
        return false;
    }
    Pending::Owner owner;
    if (!pending_.owner_of(id, &owner, nullptr))
        return true; // it has just ended
    if (owner.asker != nullptr) {
        (void)end_asked(*owner.asker, id, MC_PENDING_CLEANUP_TIMEOUT);
        return true;
    }
    // A requester that is a machine, or an orphan. It may become one, or cease to be: then look again.
    Row *row = nullptr;
    {
        Held held(*this, owner.requester);
        if (held.get() != nullptr) {
            row = pending_.find_active(id);
            if (row != nullptr && row->asker == nullptr && row->requester == owner.requester)
                pending_.remove(row, MC_PENDING_CLEANUP_TIMEOUT);
            else
                row = nullptr;
        } else {
            const base::SpinGuard orphans(orphans_);
            row = table_.find(owner.requester) != nullptr ? nullptr : pending_.find_active(id);
            if (row != nullptr && row->asker == nullptr && row->requester == owner.requester)
                pending_.remove(row, MC_PENDING_CLEANUP_TIMEOUT);
            else
                row = nullptr;
        }
    }
    if (row != nullptr)
        end_removed(row, MC_PENDING_CLEANUP_TIMEOUT);
    return true;
}

// --- what is asked -----------------------------------------------------------------------------------------------------

template <class Sync> mc_machine_lifecycle_t Engine<Sync>::lifecycle(uint32_t id) const noexcept {
    const Held held(*this, id);
    return held.get() == nullptr ? MC_MACHINE_STOPPED : static_cast<mc_machine_lifecycle_t>(held.get()->lifecycle);
}

template <class Sync> uint32_t Engine<Sync>::mailbox_length(uint32_t id) const noexcept {
    const Held held(*this, id);
    return held.get() == nullptr ? 0 : held.get()->mail.length();
}

// --- the handler and the state ---------------------------------------------------------------------------------------

template <class Sync> uint64_t Engine<Sync>::state(uint32_t id) const noexcept {
    const Held held(*this, id);
    return held.get() == nullptr ? 0 : held.get()->state;
}

// What the state's token points to; 0: the program owns it.
template <class Sync> uint64_t Engine<Sync>::state_layout(const Machine &machine) noexcept {
    if (machine.binding != Binding::descriptor)
        return 0;
    return reinterpret_cast<const Descriptor *>(machine.target)->state_layout(machine.tag);
}

// Of its handler, while that runs; else null.
template <class Sync> InHand *Engine<Sync>::in_hand(const Machine &machine) const noexcept {
    if constexpr (Sync::shared)
        return machine.doing == Doing::handler ? machine.in_hand : nullptr;
    else
        return running_ != nullptr && running_->machine == machine.id ? running_ : nullptr;
}

// A token that the machine does not have any more is dropped: when its handler returns, if that has it in hand. Else by the
// caller, when nothing is locked: then this is its layout. 0: there is nothing to drop.
template <class Sync>
uint64_t Engine<Sync>::retire_state(const Machine &machine, uint64_t state, uint64_t layout) const noexcept {
    if (state == 0 || layout == 0)
        return 0;
    if (InHand *hand = in_hand(machine); hand != nullptr && hand->state == state) {
        hand->abandoned_layout = layout;
        return 0;
    }
    return layout;
}

template <class Sync> bool Engine<Sync>::set_state(uint32_t id, uint64_t state) noexcept {
    Held held(*this, id);
    Machine *machine = held.get();
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED)
        return false;
    if (machine->state == state)
        return true;
    const Use use(*this);
    const uint64_t before = machine->state;
    machine->state = state;
    const uint64_t layout = retire_state(*machine, before, state_layout(*machine));
    held.release();
    if (layout != 0)
        drop_token(before, layout);
    return true;
}

// A machine that was polled, or is from now on, and has mail, is ready where it was not.
template <class Sync> template <class Bind> bool Engine<Sync>::bind(uint32_t id, Bind set) noexcept {
    Woken woken;
    Held held(*this, id);
    Machine *machine = held.get();
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED)
        return false;
    const bool waits_for_poll = Sync::shared && machine->waits_for_poll();
    [[maybe_unused]] const uint32_t alone = machine->polled_alone() ? id : 0; // until now
    set(*machine);
    wake(woken, *machine);
    held.release();
    tell(woken);
    if constexpr (Sync::shared)
        if (waits_for_poll)
            host_->stop_polled(machine, alone);
    return true;
}

template <class Sync> void Engine<Sync>::give_back(Machine *machine) noexcept {
    Woken woken;
    bool gone = false;
    {
        const base::SpinGuard guard(machine->lock);
        machine->queued = false;
        gone = machine->id == 0;
        if (!gone)
            wake(woken, *machine);
    }
    if (gone)
        table_.keep(machine);
    tell(woken);
}

template <class Sync>
bool Engine<Sync>::bind_function(uint32_t id, mc_machine_dispatch_txn_fn fn, void *context) noexcept {
    return bind(id, [=](Machine &machine) {
        machine.binding = fn == nullptr ? Binding::none : Binding::function;
        machine.target = reinterpret_cast<uintptr_t>(fn);
        machine.context = context;
    });
}

template <class Sync> bool Engine<Sync>::bind_thunk(uint32_t id, uint64_t thunk, void *context) noexcept {
    return find_thunk(thunk).fn != nullptr && bind(id, [=](Machine &machine) {
               machine.binding = Binding::thunk;
               machine.target = thunk; // by number: it may be registered again
               machine.context = context;
           });
}

template <class Sync> bool Engine<Sync>::bind_descriptor(uint32_t id, uint64_t descriptor, uint64_t tag) noexcept {
    const Descriptor *found = find_descriptor(descriptor);
    return found != nullptr && bind(id, [=](Machine &machine) {
               machine.binding = Binding::descriptor;
               machine.target = reinterpret_cast<uintptr_t>(found);
               machine.context = nullptr;
               machine.tag = tag;
           });
}

template <class Sync> bool Engine<Sync>::bind_poll(uint32_t id, bool alone) noexcept {
    return bind(id, [=](Machine &machine) {
        machine.binding = alone ? Binding::poll_alone : Binding::poll;
        machine.target = 0;
        machine.context = nullptr;
    });
}

} // namespace mc::machine
