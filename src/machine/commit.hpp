// Of the engine: a transaction's effects, all or none. See engine.hpp.
//
// The order, which is the protocol:
//   1  hold the boxes of effects that the handler has filled in (those that it emitted are held)
//   2  lock the parties: self, destinations, reply requesters, subscribers; revalidate   (nothing to do in Seq)
//   3  check everything, all effects on one machine together, with room for them in its mailbox; who gets each is noted
//   4  allocate the rest: rows, subscriptions, room for what publications miss
//   5  apply: subscriptions, outbox, requests, replies, publications; within a kind, the handler's before the emitted ones;
//      then the state
//   6  unlock
//   7  link the destinations into the ready queue, then self; hooks; drops                (step.hpp)
// Up to 4 anything can fail, and leaves everything as it was; from 5 on nothing fails.
//
// dispatch.receivers has who gets each effect: of the outbox, the requests and the replies that the handler has filled in, then
// of what it has emitted, null for a publication. So that a machine is looked up once.
#pragma once

#include "base/guarded.hpp"
#include "machine/engine.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace mc::machine {

// What a commit leaves to be done when nothing is locked any more.
template <class Sync> struct Engine<Sync>::Outcome {
    ReadyQueue<Sync> woken;   // shared: who is to go into the ready queue
    Row *completed = nullptr; // by replies, in their order
    Row **completed_end = &completed;
    uint64_t replaced = 0; // a state's token, with its layout
    uint64_t replaced_layout = 0;

    bool empty() const noexcept { return completed == nullptr && replaced_layout == 0; }
};

namespace effects {

// An array that is said to have elements and has none is a mistake that `whole` finds; here it is empty.
template <class T> std::span<const T> of(const T *items, uint32_t count) noexcept {
    return items == nullptr ? std::span<const T>() : std::span<const T>(items, count);
}
inline auto outbox(const mc_machine_dispatch_txn_t &txn) noexcept { return of(txn.outbox, txn.outbox_len); }
inline auto requests(const mc_machine_dispatch_txn_t &txn) noexcept { return of(txn.requests, txn.requests_len); }
inline auto replies(const mc_machine_dispatch_txn_t &txn) noexcept { return of(txn.replies, txn.replies_len); }
inline auto subscriptions(const mc_machine_dispatch_txn_t &txn) noexcept {
    return of(txn.subscriptions, txn.subscriptions_len);
}
// The handler's word, which need be none of the enum's values: read as one, it would be undefined.
inline uint32_t operation(const mc_subscription_update_t &update) noexcept {
    uint32_t word = 0;
    static_assert(sizeof word == sizeof update.op);
    std::memcpy(&word, &update.op, sizeof word);
    return word;
}
inline bool whole(const mc_machine_dispatch_txn_t &txn) noexcept {
    return (txn.outbox != nullptr || txn.outbox_len == 0) && (txn.requests != nullptr || txn.requests_len == 0) &&
           (txn.replies != nullptr || txn.replies_len == 0) &&
           (txn.subscriptions != nullptr || txn.subscriptions_len == 0);
}
inline bool none(const mc_machine_dispatch_txn_t &txn) noexcept {
    return (txn.outbox_len | txn.requests_len | txn.replies_len | txn.subscriptions_len) == 0;
}

// Every pair of words by which the handler's own effects may name a box.
template <class Visit> void for_each_payload(const mc_machine_dispatch_txn_t &txn, Visit visit) noexcept {
    for (const mc_machine_outbox_effect_t &effect : outbox(txn)) {
        visit(effect.env.payload0, effect.env.payload1);
        visit(effect.env.origin_payload0, effect.env.origin_payload1);
    }
    for (const mc_machine_request_effect_t &effect : requests(txn))
        visit(effect.env.payload0, effect.env.payload1);
    for (const mc_machine_reply_effect_t &effect : replies(txn))
        visit(effect.env.payload0, effect.env.payload1);
}

} // namespace effects

// --- 1, and its reverse ----------------------------------------------------------------------------------------------

// The dispatch knows the boxes from then on: the arrays are the handler's, which may run again before they are dropped.
// False: no memory, and none is held.
template <class Sync> bool Engine<Sync>::hold_effects(Dispatch &dispatch, const Txn &txn) noexcept {
    if (effects::none(txn)) [[likely]]
        return true;
    uint64_t boxes = 0;
    effects::for_each_payload(txn, [&](uint64_t word0, uint64_t word1) { boxes += is_box(word0, word1); });
    if (boxes == 0)
        return true;
    if (!boxes_.reserve(boxes) || !dispatch.filled.reserve(boxes))
        return false;
    effects::for_each_payload(txn, [&](uint64_t word0, uint64_t word1) {
        if (!is_box(word0, word1))
            return;
        (void)boxes_.hold(word0);
        dispatch.filled.push({word0, word1});
    });
    return true;
}

// Of effects that do not happen. Calls users: the dispatch is out of their reach.
template <class Sync> void Engine<Sync>::drop_effects(Dispatch &dispatch) noexcept {
    for (uint32_t i = 0; i < dispatch.filled.size(); ++i)
        let_go(dispatch.filled[i].word0, dispatch.filled[i].word1);
    for (uint32_t i = 0; i < dispatch.staged.size(); ++i)
        let_go(dispatch.staged[i].payload0, dispatch.staged[i].payload1);
}

// The handler's own effects, when there was no memory to hold their boxes: each that nobody holds is dropped by the last
// effect that names it. Steps are refused meanwhile, since the arrays are read.
template <class Sync> void Engine<Sync>::drop_unheld_effects(const Txn &txn) noexcept {
    uint64_t at = 0;
    effects::for_each_payload(txn, [&](uint64_t word0, uint64_t word1) {
        const uint64_t here = at++;
        if (!is_box(word0, word1) || boxes_.held(word0))
            return;
        uint64_t other = 0;
        bool again = false;
        effects::for_each_payload(txn, [&](uint64_t later0, uint64_t later1) {
            again |= other++ > here && later0 == word0 && is_box(later0, later1);
        });
        if (!again)
            drop(word0, word1);
    });
}

// --- 2: the parties ------------------------------------------------------------------------------------------------------

// Calls visit(machine's id) for each envelope that the effects send, publications aside, until it returns false.
template <class Sync>
template <class Visit>
bool Engine<Sync>::for_each_destination(Dispatch &dispatch, const Txn &txn, Visit visit) noexcept {
    for (const mc_machine_outbox_effect_t &effect : effects::outbox(txn))
        if (!visit(effect.dst))
            return false;
    for (const mc_machine_request_effect_t &effect : effects::requests(txn))
        if (!visit(effect.dst))
            return false;
    for (const mc_machine_reply_effect_t &effect : effects::replies(txn)) {
        const Row *row = pending_.find_active(effect.reply_cap_id);
        if (row != nullptr && !visit(row->requester))
            return false;
    }
    for (const Staged &effect : dispatch.staged) {
        uint32_t dst = effect.dst;
        if (effect.effect == Effect::publish)
            continue;
        if (effect.effect == Effect::reply) {
            const Row *row = pending_.find_active(effect.key);
            if (row == nullptr)
                continue;
            dst = row->requester;
        }
        if (!visit(dst))
            return false;
    }
    return true;
}

// --- 3: check --------------------------------------------------------------------------------------------------------

template <class Sync> bool Engine<Sync>::check_subscriptions(const Txn &txn) noexcept {
    for (const mc_subscription_update_t &update : effects::subscriptions(txn)) {
        if (effects::operation(update) == MC_SUBSCRIPTION_REMOVE)
            continue;
        const Machine *machine =
            effects::operation(update) == MC_SUBSCRIPTION_ADD ? table_.find(update.machine_id) : nullptr;
        if (machine == nullptr || !machine->takes_mail())
            return false;
    }
    return true;
}

// The machine takes mail, and has room for this with what it is sent besides.
template <class Sync> inline bool Engine<Sync>::check_receiver(Dispatch &dispatch, uint32_t dst) noexcept {
    Machine *machine = nullptr;
    if (refusal(dst, &machine) != 0)
        return false;
    const uint32_t incoming = machine->mail.incoming + 1;
    if (!machine->mail.fits(incoming) || !machine->mail.reserve(incoming))
        return false;
    machine->mail.incoming = incoming;
    dispatch.receivers.push(machine);
    return true;
}

// The capability is active, and used once. Null: it is not.
template <class Sync> Row *Engine<Sync>::claim(uint64_t cap) noexcept {
    Row *row = pending_.find_active(cap);
    if (row == nullptr || row->claimed)
        return nullptr;
    row->claimed = true;
    return row;
}

// What the handler has filled in.
template <class Sync> bool Engine<Sync>::check_filled(Dispatch &dispatch, const Txn &txn) noexcept {
    if (!effects::whole(txn) || !check_subscriptions(txn))
        return false;
    for (const mc_machine_outbox_effect_t &effect : effects::outbox(txn))
        if (!check_receiver(dispatch, effect.dst))
            return false;
    for (const mc_machine_request_effect_t &effect : effects::requests(txn))
        if (!check_receiver(dispatch, effect.dst))
            return false;
    for (const mc_machine_reply_effect_t &effect : effects::replies(txn)) {
        const Row *row = claim(effect.reply_cap_id);
        if (row == nullptr || !check_receiver(dispatch, row->requester))
            return false;
    }
    return true;
}

template <class Sync> bool Engine<Sync>::check_staged(Dispatch &dispatch) noexcept {
    for (Staged &effect : dispatch.staged) {
        uint32_t dst = effect.dst;
        if (effect.effect == Effect::publish) [[unlikely]] {
            dispatch.receivers.push(nullptr);
            continue;
        }
        if (effect.effect == Effect::reply) {
            effect.row = claim(effect.key);
            if (effect.row == nullptr)
                return false;
            dst = effect.row->requester;
        }
        if (!check_receiver(dispatch, dst))
            return false;
    }
    return true;
}

template <class Sync> bool Engine<Sync>::check(Dispatch &dispatch, const Txn &txn) noexcept {
    if (effects::none(txn)) [[likely]]
        return dispatch.receivers.reserve(dispatch.staged.size()) && check_staged(dispatch);
    const uint64_t filled = effects::outbox(txn).size() + effects::requests(txn).size() + effects::replies(txn).size();
    return dispatch.receivers.reserve(filled + dispatch.staged.size()) && check_filled(dispatch, txn) &&
           check_staged(dispatch);
}

// What check has noted, as far as it came.
template <class Sync> void Engine<Sync>::forget_check(Dispatch &dispatch, const Txn &txn) noexcept {
    for (Machine *machine : dispatch.receivers)
        if (machine != nullptr) {
            machine->mail.incoming = 0;
            machine->mail.give_back_unused();
        }
    auto unclaim = [&](uint64_t cap) {
        if (Row *row = pending_.find_active(cap); row != nullptr)
            row->claimed = false;
    };
    for (const mc_machine_reply_effect_t &effect : effects::replies(txn))
        unclaim(effect.reply_cap_id);
    for (Staged &effect : dispatch.staged)
        if (effect.effect == Effect::reply) {
            unclaim(effect.key);
            effect.row = nullptr;
        }
}

// --- 4: allocate -------------------------------------------------------------------------------------------------------

template <class Sync> bool Engine<Sync>::allocate(Dispatch &dispatch, const Txn &txn) noexcept {
    const auto requests = effects::requests(txn);
    if (!requests.empty()) {
        if (!dispatch.rows.reserve(requests.size()))
            return false;
        for (const mc_machine_request_effect_t &effect : requests) {
            Row *row = pending_.reserve(effect.pending_id); // null, too, when the id is taken
            if (row == nullptr)
                return false;
            dispatch.rows.push(row);
        }
    }
    uint64_t adds = 0;
    for (const mc_subscription_update_t &update : effects::subscriptions(txn))
        adds += effects::operation(update) == MC_SUBSCRIPTION_ADD;
    if (dispatch.has(Effect::publish)) {
        uint64_t most = 0; // receivers
        for (const Staged &effect : dispatch.staged)
            if (effect.effect == Effect::publish) {
                const Topic *topic = subscriptions_.topic(effect.kind, effect.key);
                most += adds + (topic == nullptr ? 0 : topic->count);
            }
        if (!dispatch.missed.reserve(most))
            return false;
    }
    return adds == 0 || subscriptions_.prepare(adds); // last: what it allocates is given back by apply alone
}

// --- 5: apply ----------------------------------------------------------------------------------------------------------

template <class Sync>
uint64_t Engine<Sync>::deliver(Machine &machine, const Envelope &envelope, Outcome *outcome) noexcept {
    machine.mail.incoming = 0;
    const uint64_t position = machine.mail.push(envelope);
    wake(Sync::shared ? outcome->woken : ready_, machine);
    return position;
}

// The envelope holds the box, the row does from now on.
template <class Sync>
void Engine<Sync>::deliver_request(Row *row, uint32_t src, Machine &machine, uint64_t kind, uint64_t payload0,
                                   uint64_t payload1, Outcome *outcome) noexcept {
    Envelope envelope = plain_envelope(src, kind, payload0, payload1);
    envelope.reply_cap_id = row->id;
    if (is_box(payload0, payload1))
        (void)boxes_.hold(payload0); // cannot fail: it is held
    row->dst = machine.id;
    row->payload0 = payload0;
    row->payload1 = payload1;
    row->position = deliver(machine, envelope, outcome);
    link_request(row, src);
}

template <class Sync>
void Engine<Sync>::deliver_reply(Row *row, uint32_t src, Machine &machine, uint64_t kind, uint64_t payload0,
                                 uint64_t payload1, Outcome *outcome) noexcept {
    Envelope envelope = plain_envelope(src, kind, payload0, payload1);
    envelope.pending_id = row->id;
    envelope.origin_payload0 = row->payload0;
    envelope.origin_payload1 = row->payload1;
    envelope.origin_request_site_key = row->site;
    (void)deliver(machine, envelope, outcome);
    pending_.remove(row);
    ++cleanups_[MC_PENDING_CLEANUP_COMPLETED];
    row->next = nullptr;
    *outcome->completed_end = row;
    outcome->completed_end = &row->next;
}

// Who has no room misses it.
template <class Sync>
void Engine<Sync>::deliver_publication(Dispatch &dispatch, uint32_t staged, Outcome *outcome) noexcept {
    const Staged &effect = dispatch.staged[staged];
    const Topic *topic = subscriptions_.topic(effect.kind, effect.key);
    if (topic == nullptr)
        return;
    const Envelope envelope = plain_envelope(dispatch.machine, effect.kind, effect.payload0, effect.payload1);
    for (const Subscription *to = topic->subscribers.front(); to != nullptr;
         to = topic->subscribers.after(const_cast<Subscription *>(to))) {
        Machine *machine = nullptr;
        mc_dead_letter_reason_t why = refusal(to->machine, &machine);
        if (machine != nullptr) {
            if (machine->mail.fits(1) && machine->mail.reserve(1)) {
                (void)deliver(*machine, envelope, outcome);
                continue;
            }
            why = MC_DEAD_LETTER_MAILBOX_FULL;
        }
        dispatch.missed.push({to->machine, why, staged});
    }
}

template <class Sync>
void Engine<Sync>::apply(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    const auto updates = effects::subscriptions(txn);
    for (const mc_subscription_update_t &update : updates) {
        if (effects::operation(update) == MC_SUBSCRIPTION_ADD)
            subscriptions_.add(update.machine_id, update.kind, update.routing,
                               table_.find(update.machine_id)->subscriptions);
        else
            subscriptions_.remove(update.machine_id, update.kind, update.routing);
    }
    if (!updates.empty())
        subscriptions_.drop_prepared();

    Machine **receiver = dispatch.receivers.begin(); // of the next that the handler has filled in
    Machine **const of_staged = dispatch.receivers.end() - dispatch.staged.size();
    auto each_staged = [&](Effect effect, auto carry_out) {
        if (dispatch.has(effect))
            for (uint32_t i = 0; i < dispatch.staged.size(); ++i)
                if (dispatch.staged[i].effect == effect)
                    carry_out(dispatch.staged[i], *of_staged[i]);
    };

    for (const mc_machine_outbox_effect_t &effect : effects::outbox(txn))
        (void)deliver(**receiver++, effect.env, outcome);
    each_staged(Effect::send, [&](const Staged &effect, Machine &to) {
        (void)deliver(to, plain_envelope(self.id, effect.kind, effect.payload0, effect.payload1), outcome);
    });

    uint32_t next_row = 0;
    for (const mc_machine_request_effect_t &effect : effects::requests(txn)) {
        Row *row = dispatch.rows[next_row++];
        row->site = effect.request_site_key;
        deliver_request(row, self.id, **receiver++, effect.env.kind, effect.env.payload0, effect.env.payload1, outcome);
    }
    dispatch.rows.clear();
    each_staged(Effect::request, [&](Staged &effect, Machine &to) {
        deliver_request(std::exchange(effect.row, nullptr), self.id, to, effect.kind, effect.payload0, effect.payload1,
                        outcome);
    });

    for (const mc_machine_reply_effect_t &effect : effects::replies(txn))
        deliver_reply(pending_.find(effect.reply_cap_id), self.id, **receiver++, effect.env.kind, effect.env.payload0,
                      effect.env.payload1, outcome);
    each_staged(Effect::reply, [&](Staged &effect, Machine &to) {
        deliver_reply(std::exchange(effect.row, nullptr), self.id, to, effect.kind, effect.payload0, effect.payload1,
                      outcome);
    });

    if (dispatch.has(Effect::publish))
        for (uint32_t i = 0; i < dispatch.staged.size(); ++i)
            if (dispatch.staged[i].effect == Effect::publish)
                deliver_publication(dispatch, i, outcome);

    apply_state(dispatch, self, txn, outcome);
}

template <class Sync>
void Engine<Sync>::apply_state(const Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    if (txn.has_next_state == 0)
        return;
    if (txn.next_state != self.state) {
        outcome->replaced = std::exchange(self.state, txn.next_state);
        outcome->replaced_layout = state_layout(self); // of the old tag
    }
    if (txn.next_state_tag != 0)
        self.tag = txn.next_state_tag;
    else if (dispatch.next_tag != 0)
        self.tag = dispatch.next_tag;
}

// What apply does for the transaction that most are: nothing but emitted sends, and a state.
template <class Sync>
void Engine<Sync>::apply_sends(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    for (uint32_t i = 0; i < dispatch.staged.size(); ++i) {
        const Staged &effect = dispatch.staged[i];
        (void)deliver(*dispatch.receivers[i], plain_envelope(self.id, effect.kind, effect.payload0, effect.payload1),
                      outcome);
    }
    apply_state(dispatch, self, txn, outcome);
}

// --- all of it -----------------------------------------------------------------------------------------------------------

// Rows that nobody has been told of, but perhaps the handler.
template <class Sync> void Engine<Sync>::roll_back_rows(Dispatch &dispatch) noexcept {
    auto forget = [&](Row *row) {
        pending_.remove(row);
        pending_.recycle(row);
    };
    for (Row *row : dispatch.rows)
        forget(row);
    dispatch.rows.clear();
    if (dispatch.has(Effect::request))
        for (Staged &effect : dispatch.staged)
            if (effect.effect == Effect::request && effect.row != nullptr)
                forget(std::exchange(effect.row, nullptr));
}

// 2 to 6. False: rejected, and nothing has changed.
template <class Sync>
bool Engine<Sync>::commit(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    typename Sync::Parties parties;
    if constexpr (Sync::shared) {
        parties.add(self);
        (void)for_each_destination(dispatch, txn, [&](uint32_t dst) {
            if (Machine *machine = table_.find(dst); machine != nullptr)
                parties.add(*machine);
            return true;
        });
    }
    parties.lock();
    const uint64_t next_id = pending_.next_id();
    const bool only_sends = effects::none(txn) && dispatch.count(Effect::send) == dispatch.staged.size();
    const bool good = check(dispatch, txn) && (only_sends || allocate(dispatch, txn));
    if (!good) [[unlikely]] {
        pending_.mint_from(next_id); // nobody has been told of the ids since
        forget_check(dispatch, txn);
    } else if (only_sends) {
        apply_sends(dispatch, self, txn, outcome);
    } else {
        apply(dispatch, self, txn, outcome);
    }
    parties.unlock();
    return good;
}

} // namespace mc::machine
