// Of the engine: one step. See engine.hpp, and commit.hpp for the transaction.
//
//   take the first machine that is ready (attached: the one that the host gives), and its first envelope; the tick rises
//   call the handler: nothing is locked, what it emits is staged in a Dispatch
//   OK      commit, or, rejected, a fault
//   FAULT   the policy's
//   STOP    the machine stops
//   hooks, then drops: the envelope's boxes, what was discarded, the state that was replaced
//   requests that are old enough end
#pragma once

#include "base/guarded.hpp"
#include "machine/asking.hpp"
#include "machine/commit.hpp"
#include "machine/delivery.hpp"
#include "machine/engine.hpp"
#include "machine/lifecycle.hpp"

#include <cstring>
#include <utility>

namespace mc::machine {

// What an envelope goes to. Neither fn nor fault: to nobody, which is fine.
template <class Sync> struct Engine<Sync>::Handler {
    mc_machine_dispatch_txn_fn fn = nullptr;
    void *context = nullptr;
    uint64_t next_tag = 0;
    uint64_t fault = 0; // a MC_FAULT_CODE_*, instead of a call
};

// --- emitting ----------------------------------------------------------------------------------------------------------

template <class Sync> bool Dispatch<Sync>::prepare(uint64_t payload0, uint64_t payload1) noexcept {
    return staged.reserve(1) && (!is_box(payload0, payload1) || engine->boxes_.hold(payload0));
}

template <class Sync>
uint64_t Dispatch<Sync>::request(uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                                 uint64_t site) noexcept {
    if ((staged.full() || is_box(payload0, payload1)) && !prepare(payload0, payload1)) [[unlikely]]
        return 0;
    // Last: an id is used up by a request that is staged, and by no other.
    Row *row = Sync::shared ? engine->pending_.reserve(0, &ids) : engine->pending_.reserve_next();
    if (row == nullptr) [[unlikely]] {
        if (is_box(payload0, payload1))
            (void)engine->boxes_.let_go(payload0); // not dropped
        return 0;
    }
    row->site = site;
    write(Effect::request, dst, kind, payload0, payload1, 0, row);
    return row->id;
}

// --- before the handler ------------------------------------------------------------------------------------------------

template <class Sync> inline Machine *Engine<Sync>::next_ready() noexcept {
    while (!ready_.empty()) {
        Machine *machine = ready_.pop();
        if (machine->runs() && !machine->mail.empty() && !machine->is_polled()) [[likely]]
            return machine;
        forget(machine); // a stale entry
    }
    return nullptr;
}

// Nothing is ready. What is stale is dropped.
template <class Sync> bool Engine<Sync>::skip_stale() noexcept {
    Machine *machine = next_ready();
    if (machine == nullptr)
        return true;
    ready_.push_front(*machine);
    return false;
}

template <class Sync> auto Engine<Sync>::take_dispatch() noexcept -> Dispatch * {
    if (Dispatch *dispatch = std::exchange(spare_, nullptr); dispatch != nullptr) [[likely]]
        return dispatch;
    return base::create<Dispatch>(this); // the first step, or one inside a hook of another
}

template <class Sync> inline void Engine<Sync>::clear(Dispatch &dispatch) noexcept {
    dispatch.staged.clear();
    if ((dispatch.missed.size() | dispatch.filled.size() | dispatch.receivers.size()) != 0) [[unlikely]] {
        dispatch.missed.clear();
        dispatch.filled.clear();
        dispatch.receivers.clear();
    }
}

template <class Sync> inline void Engine<Sync>::give_back(Dispatch *dispatch) noexcept {
    clear(*dispatch);
    if (spare_ == nullptr)
        spare_ = dispatch;
    else
        base::destroy(dispatch);
}

template <class Sync>
inline auto Engine<Sync>::resolve(const Machine &machine, const Envelope &envelope) const noexcept -> Handler {
    uint64_t id = machine.target;
    void *context = machine.context;
    if (machine.binding == Binding::function) [[likely]]
        return {reinterpret_cast<mc_machine_dispatch_txn_fn>(static_cast<uintptr_t>(id)), context, 0, 0};
    switch (machine.binding) {
    case Binding::none:
    case Binding::poll:
    case Binding::poll_alone:
    case Binding::function:
        return {};
    case Binding::thunk:
        break;
    case Binding::descriptor: {
        const auto *descriptor = reinterpret_cast<const Descriptor *>(static_cast<uintptr_t>(machine.target));
        const mc_machine_dispatch_row_t *row =
            descriptor->find_row(machine.tag, envelope.kind, envelope.origin_request_site_key);
        if (row != nullptr)
            id = row->state_local_thunk_id != 0 ? row->state_local_thunk_id : row->fallback_thunk_id;
        if (row == nullptr || id == 0)
            return {nullptr, nullptr, 0, MC_FAULT_CODE_DESCRIPTOR_ROW_MISSING};
        context = handle_;
        break;
    }
    }
    const Thunk thunk = find_thunk(id);
    if (thunk.fn == nullptr)
        return {nullptr, nullptr, 0, MC_FAULT_CODE_DESCRIPTOR_THUNK_MISSING};
    return {thunk.fn, context, thunk.next_tag, 0};
}

// --- the step ------------------------------------------------------------------------------------------------------------

// The machine's first envelope is in the dispatch. Attached: with its lock.
template <class Sync> inline auto Engine<Sync>::begin(Dispatch &dispatch, Machine &machine) noexcept -> Handler {
    machine.doing = Doing::handler;
    dispatch.machine = machine.id;
    dispatch.state = machine.state;
    dispatch.abandoned_layout = 0;
    dispatch.next_tag = 0;
    dispatch.descriptor = nullptr;
    if (machine.binding == Binding::descriptor) {
        dispatch.descriptor = reinterpret_cast<const Descriptor *>(static_cast<uintptr_t>(machine.target));
        dispatch.tag = machine.tag;
    }
    const Handler handler = resolve(machine, dispatch.envelope);
    if (handler.next_tag != 0) [[unlikely]]
        dispatch.next_tag = handler.next_tag;
    return handler;
}

// By pairs of words, which are fewer stores than fields, and take fewer cycles than a string instruction.
template <class Sync> inline void Engine<Sync>::zero(Txn *txn) noexcept {
    using Words = uint64_t __attribute__((vector_size(16), aligned(8), may_alias));
    static_assert(sizeof *txn == 5 * sizeof(Words) + sizeof(uint64_t));
    auto *const at = reinterpret_cast<Words *>(txn);
    at[0] = at[1] = at[2] = at[3] = at[4] = Words{};
    std::memset(at + 5, 0, sizeof(uint64_t));
}

template <class Sync>
inline mc_dispatch_result_t Engine<Sync>::call(Dispatch &dispatch, const Handler &handler, Txn *txn, uint64_t *code,
                                               void **slot) noexcept {
    zero(txn);
    *code = handler.fault;
    mc_dispatch_result_t result = *code != 0 ? MC_DISPATCH_FAULT : MC_DISPATCH_OK;
    if (handler.fn == nullptr)
        return result;
    if constexpr (!Sync::shared)
        running_ = &dispatch;
    void *const before = std::exchange(*slot, static_cast<EmitContext *>(&dispatch));
    const bool returned = base::call_guarded("a machine's handler", [&] {
        result = handler.fn(handler.context, dispatch.machine, dispatch.state, &dispatch.envelope, txn, code);
    });
    *slot = before;
    if constexpr (!Sync::shared)
        running_ = nullptr;
    if (returned) [[likely]]
        return result;
    zero(txn); // handed over by returning: what unwinding has freed is not read
    return MC_DISPATCH_FAULT;
}

template <class Sync>
mc_machine_step_status_t Engine<Sync>::step(mc_machine_dispatch_txn_fn fn, void *context, void **slot) noexcept {
    if (running_ != nullptr || reading_effects_)
        return MC_STEP_IDLE;
    Dispatch *const dispatch = take_dispatch();
    Machine *const machine = dispatch == nullptr ? nullptr : next_ready();
    if (machine == nullptr) {
        if (dispatch != nullptr)
            give_back(dispatch);
        return MC_STEP_IDLE;
    }
    const Use use(*this);
    tick_.store(now_tick() + 1, sync::relaxed);
    (void)machine->mail.pop(&dispatch->envelope);
    Handler handler = begin(*dispatch, *machine);
    if (fn != nullptr) [[unlikely]] {
        handler = {fn, context, 0, 0};
        dispatch->next_tag = 0;
    }

    Txn txn;
    uint64_t code = 0;
    const mc_dispatch_result_t result = call(*dispatch, handler, &txn, &code, slot);
    const mc_machine_step_status_t status = conclude(*dispatch, *machine, result, code, txn);
    drop_abandoned_state(*dispatch);
    let_go(dispatch->envelope);
    give_back(dispatch);
    if (timeout_steps.load(sync::relaxed) != 0) [[unlikely]]
        expire_rows(nullptr);
    return status;
}

// What becomes of the effects. Most are carried out, and few: the general way is another function.
template <class Sync>
inline mc_machine_step_status_t Engine<Sync>::conclude(Dispatch &dispatch, Machine &machine,
                                                       mc_dispatch_result_t result, uint64_t code,
                                                       const Txn &txn) noexcept {
    if (result == MC_DISPATCH_OK && is_one_effect(dispatch, txn)) [[likely]] {
        Outcome outcome;
        if (commit_one(dispatch, machine, txn, &outcome)) [[likely]] {
            conclude_commit(dispatch, machine, outcome);
            return MC_STEP_DID_WORK;
        }
    }
    return conclude_any(dispatch, machine, result, code, txn);
}

// The transaction is carried out.
template <class Sync>
inline void Engine<Sync>::conclude_commit(Dispatch &dispatch, Machine &machine, Outcome &outcome) noexcept {
    if constexpr (!Sync::shared) {
        machine.doing = Doing::nothing; // not before: it would queue before those that it sent to after itself
        wake(outcome.woken, machine);   // behind those that it sent to
        if (!outcome.empty() || dispatch.missed.size() != 0)
            conclude_effects(outcome, dispatch);
    } else {
        dispatch.committed = true;
        if (dispatch.short_of_us != nullptr) [[unlikely]]
            let_go_on(std::exchange(dispatch.short_of_us, nullptr), dispatch.machine, outcome.woken);
        const bool rest = !outcome.empty() || dispatch.missed.size() != 0;
        // The host queues what is ready with the lock that it takes for the next dispatch: soon enough, unless a hook or a drop
        // function takes its time first.
        if (!rest && !calls_later(dispatch)) [[likely]]
            dispatch.ready = std::exchange(outcome.woken.first, nullptr);
        tell(outcome.woken);
        if (rest)
            conclude_effects(outcome, dispatch);
    }
}

// The machine may have been stopped or marked faulted meanwhile: then the effects are dropped.
template <class Sync>
__attribute__((noinline)) mc_machine_step_status_t Engine<Sync>::conclude_any(Dispatch &dispatch, Machine &self,
                                                                              mc_dispatch_result_t result,
                                                                              uint64_t code, const Txn &txn) noexcept {
    if constexpr (Sync::shared)
        return conclude_shared(dispatch, self, result, code, txn);
    settle_state(dispatch);
    const bool held = hold_effects(dispatch, txn);
    if (!held) {
        // First: what is dropped from here on nobody holds either, and it may be named there, too.
        reading_effects_ = true;
        drop_unheld_effects(txn);
        reading_effects_ = false;
    }
    Machine *const machine = self.id == 0 ? nullptr : &self;
    const uint64_t current = machine == nullptr ? 0 : machine->state;
    forget(&self); // it has stopped, and stayed for us
    if (result == MC_DISPATCH_OK && machine != nullptr && machine->runs()) [[likely]] {
        Outcome outcome;
        if (held && commit_any(dispatch, *machine, txn, &outcome)) [[likely]] {
            settle_state(dispatch); // the transaction may have given it back
            conclude_commit(dispatch, *machine, outcome);
            return MC_STEP_DID_WORK;
        }
        result = MC_DISPATCH_FAULT;
        code = MC_FAULT_CODE_TXN_COMMIT_REJECTED;
    }
    if (machine != nullptr)
        machine->doing = Doing::nothing;
    roll_back_rows(dispatch);
    mc_machine_step_status_t status = MC_STEP_DID_WORK;
    if (machine != nullptr && result == MC_DISPATCH_STOP) {
        stop_machine(*machine);
    } else if (machine != nullptr && result != MC_DISPATCH_OK) {
        fault_machine(dispatch.machine, code);
        status = MC_STEP_FAULTED;
    }
    drop_effects(dispatch);
    drop_next_state(dispatch, txn, current);
    return status;
}

// 7, after the ready queue: hooks, drops.
template <class Sync> inline void Engine<Sync>::conclude_effects(Outcome &outcome, Dispatch &dispatch) noexcept {
    while (Row *row = outcome.completed) {
        outcome.completed = row->next;
        if constexpr (Sync::shared)
            if (row->waker.task != nullptr)
                host_->wake(row->waker);
        const uint32_t requester = row->requester;
        const uint64_t id = row->id, site = row->site;
        pending_.template recycle_by<Sync>(row);
        if (hooked(hooks.pending)) [[unlikely]]
            tell_completed(requester, id, site);
    }
    if (dispatch.missed.size() != 0) [[unlikely]]
        miss(dispatch);
    if (outcome.replaced == 0 || outcome.replaced_layout == 0) [[likely]]
        return;
    if (outcome.replaced == dispatch.state)
        dispatch.abandoned_layout = outcome.replaced_layout;
    else
        drop_token(outcome.replaced, outcome.replaced_layout);
}

template <class Sync>
__attribute__((noinline)) void Engine<Sync>::tell_completed(uint32_t requester, uint64_t id, uint64_t site) noexcept {
    call_user("a hook of requests",
              [&] { hooks.pending(hooks.context, requester, id, site, MC_PENDING_CLEANUP_COMPLETED); });
}

// What publications did not reach.
template <class Sync> __attribute__((noinline)) void Engine<Sync>::miss(Dispatch &dispatch) noexcept {
    for (const Missed &missed : dispatch.missed) {
        const Staged &effect = dispatch.staged[missed.staged];
        undeliverable(missed.dst, missed.reason,
                      plain_envelope(dispatch.machine, effect.kind, effect.payload0, effect.payload1));
    }
}

// The state that the handler meant its machine to have, if it is another one than it has, or had.
template <class Sync>
void Engine<Sync>::drop_next_state(const Dispatch &dispatch, const Txn &txn, uint64_t current) noexcept {
    const uint64_t next = txn.next_state;
    if (txn.has_next_state == 0 || next == 0 || next == dispatch.state || next == current ||
        next == state(dispatch.machine) || dispatch.descriptor == nullptr)
        return;
    uint64_t tag = txn.next_state_tag != 0 ? txn.next_state_tag : dispatch.next_tag;
    if (tag == 0)
        tag = dispatch.tag;
    if (const uint64_t layout = dispatch.descriptor->state_layout(tag); layout != 0)
        drop_token(next, layout);
}

// The handler has returned: a state that was taken away from its machine meanwhile, and given back, is like any other again.
// Before anybody is called, who may take it away once more, to be dropped at once. Attached: with the machine's lock.
template <class Sync> void Engine<Sync>::settle_state(Dispatch &dispatch, const Machine &machine) noexcept {
    if (dispatch.abandoned_layout != 0 && machine.state == dispatch.state)
        dispatch.abandoned_layout = 0;
}
template <class Sync> inline void Engine<Sync>::settle_state(Dispatch &dispatch) noexcept {
    if (dispatch.abandoned_layout != 0)
        if (const Machine *machine = table_.find(dispatch.machine); machine != nullptr)
            settle_state(dispatch, *machine);
}

// The state that the handler had in hand, if its machine did not have it any more.
template <class Sync> void Engine<Sync>::drop_abandoned_state(Dispatch &dispatch) noexcept {
    if (dispatch.abandoned_layout != 0)
        drop_token(dispatch.state, dispatch.abandoned_layout);
}

// --- the step of an attached runtime ---------------------------------------------------------------------------------------

// With the machine's lock: from here on others drop its state at once, and make it ready.
template <class Sync> void Engine<Sync>::leave_handler(Machine &machine) noexcept { machine.doing = Doing::nothing; }

// Users are called, perhaps, between the commit and the end of the dispatch.
template <class Sync> inline bool Engine<Sync>::calls_later(const Dispatch &dispatch) const noexcept {
    const uint64_t boxes =
        (dispatch.envelope.payload1 | dispatch.envelope.origin_payload1) & MC_PAYLOAD_LAYOUT_OWNED_MASK;
    return (boxes | dispatch.abandoned_layout | timeout_steps.load(sync::relaxed)) != 0;
}

// The dispatch ends without a commit; whatever was to become of the machine has become of it.
template <class Sync> void Engine<Sync>::end_dispatch(Dispatch &dispatch, Machine &machine) noexcept {
    Woken woken;
    Machine *short_of_us = nullptr;
    bool gone = false;
    {
        const base::SpinGuard guard(machine.lock);
        gone = machine.id != dispatch.machine;
        if (!gone) {
            settle_state(dispatch, machine);
            if (on_full == OnFull::retry) {
                (void)machine.mail.pop(&dispatch.consumed);
                short_of_us = take_short(machine);
            }
        }
        leave_handler(machine);
        if (!gone)
            wake(woken, machine);
    }
    if (gone)
        table_.keep(&machine);
    let_go_on(short_of_us, dispatch.machine, woken);
    tell(woken);
}

// False: it cannot be dispatched so, for now or for ever.
template <class Sync>
inline bool Engine<Sync>::take_first(Dispatch &dispatch, Machine *machine, bool polled, Handler *handler) noexcept {
    machine->lock.lock();
    machine->queued = false;
    if (machine->id == 0 || !machine->runs() || machine->mail.empty() || machine->is_polled() != polled) [[unlikely]] {
        const bool gone = machine->id == 0;
        const uint32_t turn_of = std::exchange(machine->turn_of, 0);
        Woken woken;
        if (!gone)
            wake(woken, *machine); // it has been bound anew
        machine->lock.unlock();
        if (gone)
            table_.keep(machine);
        tell(woken);
        if (turn_of != 0)
            pass_on_room(turn_of);
        return false;
    }
    if (machine->turn_of != 0) [[unlikely]]
        dispatch.turn_of = std::exchange(machine->turn_of, 0);
    Machine *short_of_us = nullptr;
    if (on_full == OnFull::retry) { // it stays in the mailbox until it is done with, and the copy holds its boxes, too
        machine->mail.copy_first(&dispatch.envelope);
        (void)hold(dispatch.envelope); // cannot fail: they are held
    } else {
        (void)machine->mail.pop(&dispatch.envelope);
        short_of_us = take_short(*machine);
    }
    *handler = begin(dispatch, *machine);
    machine->in_hand = &dispatch;
    machine->lock.unlock(); // the machine is ours until leave_handler, and stays a machine until then
    if (short_of_us != nullptr) [[unlikely]]
        let_them_go(short_of_us, dispatch.machine);
    if (timeout_steps.load(sync::relaxed) != 0)
        (void)tick_.fetch_add(1, sync::relaxed); // a count, which orders nothing
    return true;
}

template <class Sync> inline void Engine<Sync>::after_dispatch(Dispatch &dispatch) noexcept {
    if (dispatch.turn_of != 0) [[unlikely]]
        pass_on_room(std::exchange(dispatch.turn_of, 0));
    drop_abandoned_state(dispatch);
    let_go(dispatch.envelope);
    if (on_full == OnFull::retry) {
        let_go(dispatch.consumed);
        dispatch.consumed = {};
    }
    clear(dispatch);
    if (timeout_steps.load(sync::relaxed) != 0) [[unlikely]]
        expire_rows(&dispatch.part);
}

template <class Sync>
mc_machine_step_status_t Engine<Sync>::run(Dispatch &dispatch, Machine *machine, void **slot) noexcept {
    Handler handler;
    if (!take_first(dispatch, machine, false, &handler))
        return MC_STEP_IDLE;
    Txn txn;
    uint64_t code = 0;
    const mc_dispatch_result_t result = call(dispatch, handler, &txn, &code, slot);
    const mc_machine_step_status_t status = conclude(dispatch, *machine, result, code, txn);
    after_dispatch(dispatch);
    return status;
}

template <class Sync> bool Engine<Sync>::begin_polled(Dispatch &dispatch, Machine *machine) noexcept {
    Handler none;
    return take_first(dispatch, machine, true, &none);
}

template <class Sync>
void Engine<Sync>::finish_polled(Dispatch &dispatch, Machine &machine, mc_dispatch_result_t result, uint64_t code,
                                 const Txn &txn) noexcept {
    (void)conclude(dispatch, machine, result, code, txn);
    if (Machine *made = std::exchange(dispatch.ready, nullptr); made != nullptr)
        host_->ready(made);
    after_dispatch(dispatch);
}

// The general way of conclude.
template <class Sync>
mc_machine_step_status_t Engine<Sync>::conclude_shared(Dispatch &dispatch, Machine &machine,
                                                       mc_dispatch_result_t result, uint64_t code,
                                                       const Txn &txn) noexcept {
    const bool held = hold_effects(dispatch, txn);
    if (!held)
        drop_unheld_effects(txn);
    bool late = false;
    dispatch.committed = false;
    // For drop_next_state, which only looks at a descriptor's.
    const uint64_t current = txn.has_next_state == 0 || dispatch.descriptor == nullptr ? 0 : state(dispatch.machine);
    if (result == MC_DISPATCH_OK) [[likely]] {
        Outcome outcome;
        dispatch.refusal = Refusal::other;
        if (held && commit_any(dispatch, machine, txn, &outcome)) [[likely]] {
            conclude_commit(dispatch, machine, outcome);
            return MC_STEP_DID_WORK;
        }
        if (dispatch.short_of_us != nullptr)
            let_them_go(std::exchange(dispatch.short_of_us, nullptr), dispatch.machine);
        if (dispatch.refusal == Refusal::full) { // it waits for room, or goes on elsewhere already
            roll_back_rows(dispatch);
            drop_effects(dispatch);
            drop_next_state(dispatch, txn, current);
            return MC_STEP_DID_WORK;
        }
        late = dispatch.refusal == Refusal::late && on_late_reply == OnLateReply::discard;
        if (!late && dispatch.refusal != Refusal::gone) {
            dispatch.refusal = Refusal::other;
            result = MC_DISPATCH_FAULT;
            code = MC_FAULT_CODE_TXN_COMMIT_REJECTED;
        }
    }
    roll_back_rows(dispatch);
    mc_machine_step_status_t status = MC_STEP_DID_WORK;
    if (result == MC_DISPATCH_STOP) {
        (void)end_machine(dispatch.machine);
    } else if (result != MC_DISPATCH_OK) {
        fault_machine(dispatch.machine, code);
        status = MC_STEP_FAULTED;
    }
    end_dispatch(dispatch, machine);
    if (late)
        undeliverable(0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN, dispatch.late);
    drop_effects(dispatch);
    drop_next_state(dispatch, txn, current);
    return status;
}

} // namespace mc::machine
