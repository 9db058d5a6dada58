// Of the engine: a machine's life, its state, and the ends of its requests. See engine.hpp.
#pragma once

#include "base/guarded.hpp"
#include "machine/engine.hpp"
#include "machine/registry.hpp"

namespace mc::machine {

template <class Sync> void Engine<Sync>::end(Engine *engine) noexcept {
    engine->hooks = Hooks();
    engine->ended_ = true;
    const Use use(*engine);
}

// What is left is dropped in the order of machines' ids: mail, state; then what requests hold.
template <class Sync> Engine<Sync>::~Engine() {
    users_ = 1; // drop functions may use machines of ours by words that are stale; they find nothing
    for (uint64_t id = 1; id <= table_.last(); ++id) {
        Machine *machine = table_.find(static_cast<uint32_t>(id));
        if (machine == nullptr)
            continue;
        Envelope envelope;
        while (!machine->mail.empty()) {
            machine->mail.pop(&envelope);
            let_go(envelope);
        }
        if (const uint64_t layout = state_layout(*machine); layout != 0 && machine->state != 0)
            drop_box(machine->state, layout);
        while (Row *row = machine->rows.front()) {
            pending_.remove(row);
            let_go(row->payload0, row->payload1);
            pending_.recycle(row);
        }
        while (Subscription *subscription = machine->subscriptions.front())
            subscriptions_.remove(subscription);
        table_.remove(machine);
    }
    while (Row *row = pending_.oldest()) { // requesters that had stopped, or never were
        pending_.remove(row);
        let_go(row->payload0, row->payload1);
        pending_.recycle(row);
    }
    while (spare_ != nullptr) {
        Dispatch *next = spare_->next;
        base::destroy(spare_);
        spare_ = next;
    }
}

// Requests that were made in its name before there was it are its own.
template <class Sync> uint32_t Engine<Sync>::spawn(uint32_t mailbox_bound) noexcept {
    const uint32_t id = table_.add(mailbox_bound);
    for (Row *row = id == 0 ? nullptr : unclaimed_.front(); row != nullptr;) {
        Row *next = unclaimed_.after(row);
        if (row->requester == id) {
            base::List<Row, OfMachine>::remove(row);
            table_.find(id)->rows.push_back(row);
        }
        row = next;
    }
    return id;
}

template <class Sync> bool Engine<Sync>::start(uint32_t id) noexcept {
    Machine *machine = table_.find(id);
    if (machine == nullptr || machine->lifecycle != MC_MACHINE_CREATED)
        return false;
    machine->lifecycle = MC_MACHINE_RUNNING;
    wake(ready_, *machine);
    return true;
}

template <class Sync> bool Engine<Sync>::stop(uint32_t id) noexcept {
    if (!table_.was_given_out(id))
        return false;
    const Use use(*this);
    if (Machine *machine = table_.find(id); machine != nullptr && machine->lifecycle != MC_MACHINE_STOPPED)
        stop_machine(*machine);
    return true;
}

template <class Sync> bool Engine<Sync>::mark_faulted(uint32_t id) noexcept {
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

// Hooks see the mailbox and the subscriptions; a stop inside them finds that there is nothing to do.
template <class Sync> void Engine<Sync>::stop_machine(Machine &machine) noexcept {
    machine.lifecycle = MC_MACHINE_STOPPED;
    end_rows(machine, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
    while (Subscription *subscription = machine.subscriptions.front())
        subscriptions_.remove(subscription);
    // Drop functions are users, too: one envelope is out of the mailbox before its boxes are dropped.
    Envelope envelope;
    while (!machine.mail.empty()) {
        machine.mail.pop(&envelope);
        let_go(envelope);
    }
    const uint64_t state = machine.state, layout = state_layout(machine);
    machine.state = 0;
    retire_state(machine, state, layout);
    ++stops_;
    table_.remove(&machine);
}

// The policy decides: faulted, or stopped. The fault hook comes last.
template <class Sync> void Engine<Sync>::fault_machine(uint32_t id, uint64_t code) noexcept {
    Machine *machine = table_.find(id);
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED)
        return;
    if (fault_policy == MC_FAULT_POLICY_MARK_STOPPED) {
        stop_machine(*machine);
    } else {
        machine->lifecycle = MC_MACHINE_FAULTED;
        end_rows(*machine, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
    }
    if (hooks.fault != nullptr)
        (void)base::call_guarded("a fault hook", [&] { hooks.fault(hooks.context, id, code); });
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

// Without a reply. Its request, where it still waits, is delivered without the box.
template <class Sync> void Engine<Sync>::end_row(Row *row, mc_pending_cleanup_reason_t reason) noexcept {
    pending_.remove(row);
    ++cleanups_[reason];
    const uint64_t payload0 = row->payload0, payload1 = row->payload1;
    bool waits = false;
    if (is_box(payload0, payload1))
        if (Machine *dst = table_.find(row->dst); dst != nullptr)
            if (Envelope *waiting = dst->mail.waiting(row->position); waiting != nullptr) {
                waiting->payload0 = waiting->payload1 = 0;
                waits = true;
            }
    const uint32_t requester = row->requester;
    const uint64_t id = row->id, site = row->site;
    pending_.recycle(row);
    if (hooks.pending != nullptr)
        (void)base::call_guarded("a hook of requests",
                                 [&] { hooks.pending(hooks.context, requester, id, site, reason); });
    if (waits)
        let_go(payload0, payload1);
    let_go(payload0, payload1);
}

template <class Sync> void Engine<Sync>::expire_rows() noexcept {
    while (timeout_steps != 0) {
        Row *row = pending_.oldest();
        if (row == nullptr || tick_ - row->created < timeout_steps)
            return;
        end_row(row, MC_PENDING_CLEANUP_TIMEOUT);
    }
}

template <class Sync> mc_machine_lifecycle_t Engine<Sync>::lifecycle(uint32_t id) const noexcept {
    const Machine *machine = table_.find(id);
    return machine == nullptr ? MC_MACHINE_STOPPED : static_cast<mc_machine_lifecycle_t>(machine->lifecycle);
}

template <class Sync> uint32_t Engine<Sync>::mailbox_length(uint32_t id) const noexcept {
    const Machine *machine = table_.find(id);
    return machine == nullptr ? 0 : machine->mail.length();
}

// --- the handler and the state ---------------------------------------------------------------------------------------

template <class Sync> uint64_t Engine<Sync>::state(uint32_t id) const noexcept {
    const Machine *machine = table_.find(id);
    return machine == nullptr ? 0 : machine->state;
}

// What the state's token points to; 0: the program owns it.
template <class Sync> uint64_t Engine<Sync>::state_layout(const Machine &machine) noexcept {
    if (machine.binding != Binding::descriptor)
        return 0;
    return reinterpret_cast<const Descriptor *>(machine.target)->state_layout(machine.tag);
}

// A token that the machine does not have any more is dropped: when its handler returns, if that has it in hand.
template <class Sync> void Engine<Sync>::retire_state(Machine &machine, uint64_t state, uint64_t layout) noexcept {
    if (state == 0 || layout == 0)
        return;
    if (running_ != nullptr && running_->machine == machine.id && running_->state == state)
        running_->abandoned_layout = layout;
    else
        drop_box(state, layout);
}

template <class Sync> bool Engine<Sync>::set_state(uint32_t id, uint64_t state) noexcept {
    Machine *machine = table_.find(id);
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED)
        return false;
    if (machine->state == state)
        return true;
    const Use use(*this);
    const uint64_t before = machine->state;
    machine->state = state;
    retire_state(*machine, before, state_layout(*machine));
    return true;
}

template <class Sync>
bool Engine<Sync>::bind_function(uint32_t id, mc_machine_dispatch_txn_fn fn, void *context) noexcept {
    Machine *machine = table_.find(id);
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED)
        return false;
    machine->binding = fn == nullptr ? Binding::none : Binding::function;
    machine->target = reinterpret_cast<uintptr_t>(fn);
    machine->context = context;
    return true;
}

template <class Sync> bool Engine<Sync>::bind_thunk(uint32_t id, uint64_t thunk, void *context) noexcept {
    Machine *machine = table_.find(id);
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED || find_thunk(thunk).fn == nullptr)
        return false;
    machine->binding = Binding::thunk;
    machine->target = thunk; // by number: it may be registered again
    machine->context = context;
    return true;
}

template <class Sync> bool Engine<Sync>::bind_descriptor(uint32_t id, uint64_t descriptor, uint64_t tag) noexcept {
    Machine *machine = table_.find(id);
    const Descriptor *found = find_descriptor(descriptor);
    if (machine == nullptr || machine->lifecycle == MC_MACHINE_STOPPED || found == nullptr)
        return false;
    machine->binding = Binding::descriptor;
    machine->target = reinterpret_cast<uintptr_t>(found);
    machine->context = nullptr;
    machine->tag = tag;
    return true;
}

} // namespace mc::machine
