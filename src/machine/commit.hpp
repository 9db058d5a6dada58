// Of the engine: a transaction's effects, all or none. See engine.hpp.
//
// The order, which is the protocol:
//   1  hold the boxes of effects that the handler has filled in (those that it emitted are held)
//   2  attached: gather the parties (self, destinations, requesters of replies, subscribers), lock them all, and see that they are
//      still the ones meant, else gather them anew; see parties.hpp
//   3  check everything, all effects on one machine together, with room for them in its mailbox; who gets each is noted
//   4  allocate the rest: rows, subscriptions, room for what publications miss
//   5  apply: subscriptions, outbox, requests, replies, publications; within a kind, the handler's before the emitted ones;
//      then the state
//   6  unlock
//   7  the destinations are ready, in this order, then self; hooks; drops                  (step.hpp)
// Up to 4 anything can fail, and leaves everything as it was; from 5 on nothing fails.
//
// dispatch.receivers has who gets each effect: of the outbox, the requests and the replies that the handler has filled in, then
// of what it has emitted, null for a publication, or for a reply to an asker. So that a machine is looked up once.
#pragma once

#include "base/guarded.hpp"
#include "machine/engine.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace mc::machine {

// What a commit leaves to be done when nothing is locked any more.
template <class Sync> struct Engine<Sync>::Outcome {
    Woken woken;
    Row *completed = nullptr;      // by replies, in their order
    Row *last_completed = nullptr; // of those, if there is one
    uint64_t replaced = 0;         // a state's token, with its layout
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
    if (!dispatch.filled.reserve(boxes))
        return false;
    bool good = true;
    effects::for_each_payload(txn, [&](uint64_t word0, uint64_t word1) {
        if (!good || !is_box(word0, word1))
            return;
        good = boxes_.hold(word0);
        if (good)
            dispatch.filled.push({word0, word1});
    });
    if (good)
        return true;
    for (const Filled &box : dispatch.filled)
        (void)boxes_.let_go(box.word0); // not dropped
    dispatch.filled.clear();
    return false;
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
        if (!is_box(word0, word1))
            return;
        uint64_t other = 0;
        bool again = false;
        effects::for_each_payload(txn, [&](uint64_t later0, uint64_t later1) {
            again |= other++ > here && later0 == word0 && is_box(later0, later1);
        });
        if (!again)
            drop_unheld(word0, word1);
    });
}

// --- 2: the parties ------------------------------------------------------------------------------------------------------

// Attached. Locks the topics that are concerned, and gathers everybody else. False: no memory; the topics are locked all the same.
template <class Sync>
bool Engine<Sync>::gather(Parties &parties, Dispatch &dispatch, Machine &self, const Txn &txn,
                          Subscriptions::Set *topics) noexcept {
    Subscriptions::Set set = 0;
    for (const mc_subscription_update_t &update : effects::subscriptions(txn))
        set |= subscriptions_.set_of(update.kind, update.routing);
    if (dispatch.has(Effect::publish))
        for (const Staged &effect : dispatch.staged)
            if (effect.effect == Effect::publish)
                set |= subscriptions_.set_of(effect.kind, effect.key);
    subscriptions_.lock(set);
    *topics = set;

    parties.clear();
    uint64_t most = 1 + effects::subscriptions(txn).size() + effects::outbox(txn).size() +
                    effects::requests(txn).size() + effects::replies(txn).size() + dispatch.staged.size();
    if (dispatch.has(Effect::publish))
        for (const Staged &effect : dispatch.staged)
            if (effect.effect == Effect::publish)
                if (const Topic *topic = subscriptions_.table(effect.kind, effect.key).topic(effect.kind, effect.key);
                    topic != nullptr)
                    most += topic->count;
    if (!parties.reserve(most))
        return false;
    auto machine = [&](uint32_t id) { parties.add(id, table_.find(id)); };
    auto requester_of = [&](uint64_t cap) {
        Pending::Owner owner;
        if (!pending_.owner_of(cap, &owner, nullptr))
            return;
        if (owner.asker != nullptr)
            parties.add(*owner.asker);
        else
            machine(owner.requester);
    };
    parties.add(dispatch.machine, &self);
    for (const mc_subscription_update_t &update : effects::subscriptions(txn))
        machine(update.machine_id);
    for (const mc_machine_outbox_effect_t &effect : effects::outbox(txn))
        machine(effect.dst);
    for (const mc_machine_request_effect_t &effect : effects::requests(txn))
        machine(effect.dst);
    for (const mc_machine_reply_effect_t &effect : effects::replies(txn))
        requester_of(effect.reply_cap_id);
    for (const Staged &effect : dispatch.staged) {
        if (effect.effect == Effect::reply) {
            requester_of(effect.key);
        } else if (effect.effect == Effect::publish) {
            const Topic *topic = subscriptions_.table(effect.kind, effect.key).topic(effect.kind, effect.key);
            for (Subscription *to = topic == nullptr ? nullptr : topic->subscribers.front(); to != nullptr;
                 to = topic->subscribers.after(to))
                machine(to->machine);
        } else {
            machine(effect.dst);
        }
    }
    return true;
}

// --- 3: check --------------------------------------------------------------------------------------------------------

template <class Sync> bool Engine<Sync>::check_subscriptions(Dispatch &dispatch, const Txn &txn) noexcept {
    for (const mc_subscription_update_t &update : effects::subscriptions(txn)) {
        const uint32_t operation = effects::operation(update);
        if (operation != MC_SUBSCRIPTION_ADD && operation != MC_SUBSCRIPTION_REMOVE)
            return false;
        const Machine *machine = table_.find(update.machine_id);
        if (machine != nullptr && !is_party(dispatch, update.machine_id, *machine))
            return false;
        if (operation == MC_SUBSCRIPTION_ADD && (machine == nullptr || !machine->takes_mail()))
            return false;
    }
    return true;
}

// Attached: a machine that an id finds now may be none of those that are locked, since it has just been spawned.
template <class Sync>
inline bool Engine<Sync>::is_party(Dispatch &dispatch, uint32_t id, const Machine &machine) noexcept {
    if constexpr (Sync::shared)
        if (!dispatch.parties->hold(id, machine)) [[unlikely]] {
            dispatch.refusal = Refusal::moved;
            return false;
        }
    return true;
}

// The machine takes mail, and has room for this with what it is sent besides.
template <class Sync> inline bool Engine<Sync>::check_receiver(Dispatch &dispatch, uint32_t dst) noexcept {
    Machine *machine = table_.find(dst);
    if (machine == nullptr || !is_party(dispatch, dst, *machine) || !machine->takes_mail())
        return false;
    const uint32_t incoming = machine->incoming + 1;
    if (!machine->mail.fits(incoming)) {
        dispatch.refusal = Refusal::full;
        dispatch.full = machine;
        dispatch.full_of = incoming;
        return false;
    }
    if (!machine->mail.reserve(incoming))
        return false;
    machine->incoming = incoming;
    dispatch.receivers.push(machine);
    return true;
}

// As check_receiver, for who waits for a reply.
template <class Sync>
inline bool Engine<Sync>::check_owner(Dispatch &dispatch, const Row &row, uint64_t word0, uint64_t word1) noexcept {
    if constexpr (Sync::shared)
        if (row.asker != nullptr) {
            dispatch.receivers.push(nullptr);
            return may_answer(dispatch, row, word0, word1);
        }
    return check_receiver(dispatch, row.requester);
}

// The capability is active, and used once. Null: it is not.
template <class Sync> Row *Engine<Sync>::claim(Dispatch &dispatch, uint64_t cap) noexcept {
    if constexpr (Sync::shared) { // the row is only looked at by who has its owner's lock
        Pending::Owner owner;
        if (!pending_.owner_of(cap, &owner, nullptr)) {
            dispatch.refusal = Refusal::late;
            return nullptr;
        }
        const Machine *machine = owner.asker != nullptr ? nullptr : table_.find(owner.requester);
        if (owner.asker != nullptr ? !dispatch.parties->hold(*owner.asker)
                                   : machine != nullptr && !dispatch.parties->hold(owner.requester, *machine)) {
            dispatch.refusal = Refusal::moved;
            return nullptr;
        }
        if (owner.asker == nullptr && machine == nullptr) {
            if (!pending_.owner_of(cap, &owner, nullptr)) // it has stopped since; its requests end before its id does
                dispatch.refusal = Refusal::late;
            return nullptr; // nobody could get it
        }
    }
    Row *row = pending_.find_active(cap);
    if (row == nullptr || row->claimed)
        return nullptr;
    row->claimed = true;
    return row;
}

// What the handler has filled in.
template <class Sync> bool Engine<Sync>::check_filled(Dispatch &dispatch, const Txn &txn) noexcept {
    if (!check_subscriptions(dispatch, txn))
        return false;
    for (const mc_machine_outbox_effect_t &effect : effects::outbox(txn))
        if (!check_receiver(dispatch, effect.dst))
            return false;
    for (const mc_machine_request_effect_t &effect : effects::requests(txn))
        if (!check_receiver(dispatch, effect.dst))
            return false;
    for (const mc_machine_reply_effect_t &effect : effects::replies(txn)) {
        const Row *row = claim(dispatch, effect.reply_cap_id);
        if (row == nullptr || !check_owner(dispatch, *row, effect.env.payload0, effect.env.payload1)) {
            if (row == nullptr)
                dispatch.late =
                    plain_envelope(dispatch.machine, effect.env.kind, effect.env.payload0, effect.env.payload1);
            return false;
        }
    }
    return true;
}

template <class Sync> bool Engine<Sync>::check_staged(Dispatch &dispatch) noexcept {
    for (Staged &effect : dispatch.staged) {
        if (effect.effect == Effect::publish) [[unlikely]] {
            dispatch.receivers.push(nullptr);
            continue;
        }
        if (effect.effect == Effect::reply) {
            effect.row = claim(dispatch, effect.key);
            if (effect.row == nullptr)
                dispatch.late = plain_envelope(dispatch.machine, effect.kind, effect.payload0, effect.payload1);
            if (effect.row == nullptr || !check_owner(dispatch, *effect.row, effect.payload0, effect.payload1))
                return false;
        } else if (!check_receiver(dispatch, effect.dst)) {
            return false;
        }
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
            machine->incoming = 0;
            machine->mail.give_back_unused();
        }
    auto unclaim = [&](uint64_t cap) {
        if constexpr (Sync::shared) {
            Pending::Owner owner;
            if (!pending_.owner_of(cap, &owner, nullptr))
                return;
            const Machine *machine = owner.asker != nullptr ? nullptr : table_.find(owner.requester);
            if (owner.asker != nullptr ? !dispatch.parties->hold(*owner.asker)
                                       : machine == nullptr || !dispatch.parties->hold(owner.requester, *machine))
                return; // never ours
        }
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
    dispatch.receivers.clear();
}

// --- 4: allocate -------------------------------------------------------------------------------------------------------

template <class Sync> bool Engine<Sync>::allocate(Dispatch &dispatch, const Txn &txn) noexcept {
    const auto requests = effects::requests(txn);
    if (!requests.empty()) {
        if (!dispatch.rows.reserve(requests.size()))
            return false;
        for (const mc_machine_request_effect_t &effect : requests) {
            // Null, too, when the id is taken.
            Row *row = pending_.reserve(effect.pending_id, Sync::shared ? &dispatch.ids : nullptr);
            if (row == nullptr)
                return false;
            dispatch.rows.push(row);
        }
    }
    const auto updates = effects::subscriptions(txn);
    uint64_t adds = 0;
    for (const mc_subscription_update_t &update : updates)
        adds += effects::operation(update) == MC_SUBSCRIPTION_ADD;
    if (dispatch.has(Effect::publish)) {
        uint64_t most = 0; // receivers
        for (const Staged &effect : dispatch.staged)
            if (effect.effect == Effect::publish) {
                const Topic *topic = subscriptions_.table(effect.kind, effect.key).topic(effect.kind, effect.key);
                most += adds + (topic == nullptr ? 0 : topic->count);
            }
        if (!dispatch.missed.reserve(most))
            return false;
    }
    // Last: what this allocates is given back by apply alone, or here.
    for (uint32_t i = 0; i < updates.size(); ++i)
        if (effects::operation(updates[i]) == MC_SUBSCRIPTION_ADD &&
            !subscriptions_.table(updates[i].kind, updates[i].routing).prepare(1)) {
            for (uint32_t back = 0; back < i; ++back)
                subscriptions_.table(updates[back].kind, updates[back].routing).drop_prepared();
            return false;
        }
    return true;
}

// --- 5: apply ----------------------------------------------------------------------------------------------------------

template <class Sync>
inline void Engine<Sync>::deliver(Machine &machine, const Envelope &envelope, Outcome *outcome) noexcept {
    (void)machine.mail.push(envelope);
    wake(outcome->woken, machine);
}

// The envelope holds the box, the row does from now on.
template <class Sync>
inline void Engine<Sync>::deliver_request(Row *row, Machine &self, Machine &machine, uint64_t kind, uint64_t payload0,
                                          uint64_t payload1, Outcome *outcome) noexcept {
    if (is_box(payload0, payload1))
        (void)boxes_.hold(payload0); // cannot fail: it is held
    row->dst = machine.id;
    row->payload0 = payload0;
    row->payload1 = payload1;
    row->position = machine.mail.push_message(self.id, kind, row->id, payload0, payload1);
    wake(outcome->woken, machine);
    link_request(row, self.id, &self);
    outcome->woken.requests = true;
}

template <class Sync>
inline void Engine<Sync>::deliver_reply(Dispatch &dispatch, Row *row, Machine *machine, uint64_t kind,
                                        uint64_t payload0, uint64_t payload1, Outcome *outcome) noexcept {
    if constexpr (Sync::shared)
        if (machine == nullptr)
            give_box_away(dispatch, *row, payload0, payload1);
    if (machine != nullptr) {
        machine->mail.push_reply(dispatch.machine, kind, row->id, payload0, payload1, row->payload0, row->payload1,
                                 row->site);
        wake(outcome->woken, *machine);
    } else {
        Envelope envelope = plain_envelope(dispatch.machine, kind, payload0, payload1);
        envelope.pending_id = row->id;
        envelope.origin_payload0 = row->payload0;
        envelope.origin_payload1 = row->payload1;
        envelope.origin_request_site_key = row->site;
        give_answer(*row, envelope);
    }
    pending_.template remove_by<Sync>(row, MC_PENDING_CLEANUP_COMPLETED);
    row->next = nullptr;
    (outcome->completed == nullptr ? outcome->completed : outcome->last_completed->next) = row;
    outcome->last_completed = row;
}

// Who has no room misses it.
template <class Sync>
void Engine<Sync>::deliver_publication(Dispatch &dispatch, uint32_t staged, Outcome *outcome) noexcept {
    const Staged &effect = dispatch.staged[staged];
    const Topic *topic = subscriptions_.table(effect.kind, effect.key).topic(effect.kind, effect.key);
    if (topic == nullptr)
        return;
    const Envelope envelope = plain_envelope(dispatch.machine, effect.kind, effect.payload0, effect.payload1);
    for (const Subscription *to = topic->subscribers.front(); to != nullptr;
         to = topic->subscribers.after(const_cast<Subscription *>(to))) {
        Machine *machine = nullptr;
        mc_dead_letter_reason_t why = refusal(to->machine, &machine);
        if (machine != nullptr) {
            if (machine->mail.fits(1) && machine->mail.reserve(1)) {
                deliver(*machine, envelope, outcome);
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
        SubscriptionTable &table = subscriptions_.table(update.kind, update.routing);
        if (effects::operation(update) == MC_SUBSCRIPTION_ADD)
            table.add(update.machine_id, update.kind, update.routing, table_.find(update.machine_id)->subscriptions);
        else
            table.remove(update.machine_id, update.kind, update.routing);
    }
    for (const mc_subscription_update_t &update : updates)
        subscriptions_.table(update.kind, update.routing).drop_prepared();
    for (Machine *machine : dispatch.receivers)
        if (machine != nullptr)
            machine->incoming = 0;

    Machine **receiver = dispatch.receivers.begin(); // of the next that the handler has filled in
    Machine **const of_staged = dispatch.receivers.end() - dispatch.staged.size();
    auto each_staged = [&](Effect effect, auto perform) {
        if (dispatch.has(effect))
            for (uint32_t i = 0; i < dispatch.staged.size(); ++i)
                if (dispatch.staged[i].effect == effect)
                    perform(dispatch.staged[i], of_staged[i]);
    };

    for (const mc_machine_outbox_effect_t &effect : effects::outbox(txn))
        deliver(**receiver++, effect.env, outcome);
    each_staged(Effect::send, [&](const Staged &effect, Machine *to) {
        deliver(*to, plain_envelope(self.id, effect.kind, effect.payload0, effect.payload1), outcome);
    });

    uint32_t next_row = 0;
    for (const mc_machine_request_effect_t &effect : effects::requests(txn)) {
        Row *row = dispatch.rows[next_row++];
        row->site = effect.request_site_key;
        deliver_request(row, self, **receiver++, effect.env.kind, effect.env.payload0, effect.env.payload1, outcome);
    }
    dispatch.rows.clear();
    each_staged(Effect::request, [&](Staged &effect, Machine *to) {
        deliver_request(std::exchange(effect.row, nullptr), self, *to, effect.kind, effect.payload0, effect.payload1,
                        outcome);
    });

    for (const mc_machine_reply_effect_t &effect : effects::replies(txn))
        deliver_reply(dispatch, pending_.find(effect.reply_cap_id), *receiver++, effect.env.kind, effect.env.payload0,
                      effect.env.payload1, outcome);
    each_staged(Effect::reply, [&](Staged &effect, Machine *to) {
        deliver_reply(dispatch, std::exchange(effect.row, nullptr), to, effect.kind, effect.payload0, effect.payload1,
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

// --- all of it -----------------------------------------------------------------------------------------------------------

// Rows that nobody has been told of, but perhaps the handler.
template <class Sync> void Engine<Sync>::roll_back_rows(Dispatch &dispatch) noexcept {
    auto forget = [&](Row *row) {
        pending_.remove(row, 0);
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

// 3 to 5. False: refused, and nothing has changed.
template <class Sync>
bool Engine<Sync>::carry_out(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    const uint64_t next_id = pending_.next_id();
    dispatch.refusal = Refusal::other;
    const bool good = check(dispatch, txn) && allocate(dispatch, txn);
    if (!good) [[unlikely]] {
        if constexpr (!Sync::shared)
            pending_.mint_from(next_id); // nobody has been told of the ids since
        forget_check(dispatch, txn);
    } else {
        apply(dispatch, self, txn, outcome);
    }
    return good;
}

// --- one effect -----------------------------------------------------------------------------------------------------------
//
// Most transactions are a state, and one send, request or reply that was emitted, or none: then they concern two at most, who are
// looked up once, and locked and checked without a list of them.

template <class Sync> inline bool Engine<Sync>::is_one_effect(Dispatch &dispatch, const Txn &txn) noexcept {
    return effects::none(txn) && dispatch.staged.size() <= 1 && !dispatch.has(Effect::publish);
}

// 2 to 6, of a transaction that is_one_effect. False: nothing has happened, and the general way finds out why, if it does
// not carry it out.
template <class Sync>
inline bool Engine<Sync>::commit_one(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    if constexpr (!Sync::shared)
        if (!self.runs() || dispatch.abandoned_layout != 0) [[unlikely]] // it may have stopped
            return false;
    Staged *const effect = dispatch.staged.size() == 0 ? nullptr : dispatch.staged.begin();
    const bool replies = effect != nullptr && effect->effect == Effect::reply;
    uint32_t dst = effect == nullptr ? 0 : effect->dst;
    Row *row = nullptr; // the reply's
    if (replies) {
        if constexpr (Sync::shared) {
            Pending::Owner owner;
            if (!pending_.owner_of(effect->key, &owner, nullptr) || owner.asker != nullptr)
                return false;
            dst = owner.requester;
        } else {
            row = pending_.template find_active_by<Sync>(effect->key);
            if (row == nullptr)
                return false;
            dst = row->requester;
        }
    }
    Machine *const to = effect == nullptr ? nullptr : table_.find(dst);
    if (effect != nullptr && to == nullptr)
        return false;
    auto receives = [&]() __attribute__((always_inline)) {
        return to == nullptr || (to->takes_mail() && to->mail.fits(1) && to->mail.reserve(1));
    };
    auto perform = [&]() __attribute__((always_inline)) {
        if (effect != nullptr) {
            if (replies) {
                deliver_reply(dispatch, row, to, effect->kind, effect->payload0, effect->payload1, outcome);
            } else if (effect->effect == Effect::request) {
                deliver_request(std::exchange(effect->row, nullptr), self, *to, effect->kind, effect->payload0,
                                effect->payload1, outcome);
            } else {
                (void)to->mail.push_message(self.id, effect->kind, 0, effect->payload0, effect->payload1);
                wake(outcome->woken, *to);
            }
        }
        apply_state(dispatch, self, txn, outcome);
    };
    if constexpr (!Sync::shared) {
        const bool good = receives();
        if (good)
            perform();
        return good;
    } else {
        TwoParties two(dispatch.machine, self, dst, to);
        if (!two.lock())
            return false;
        uint64_t position = 0;
        bool good = self.runs();
        if (good && replies) {
            row = pending_.template find_active_by<Sync>(effect->key);
            good = row != nullptr && row->asker == nullptr && row->requester == dst;
        }
        if (good) {
            if (on_full == OnFull::retry)
                position = self.mail.pop(&dispatch.consumed); // its envelope has stayed there
            good = receives();
            if (!good && on_full == OnFull::retry) {
                self.mail.unpop(dispatch.consumed, position);
                dispatch.consumed = {};
            }
        }
        if (good) {
            settle_state(dispatch, self);
            perform();
            settle_state(dispatch, self); // the transaction may have given it back
            leave_handler(self);
            if (on_full == OnFull::retry)
                dispatch.short_of_us = take_short(self);
            wake(outcome->woken, self); // behind the one that it sent to
        }
        two.unlock();
        return good;
    }
}

// --- every one --------------------------------------------------------------------------------------------------------------

// 2 to 6. False: refused, and nothing has changed. Attached: dispatch.refusal says why; when it is full, and is to wait, it waits;
// what is carried out, or waits, has ended its dispatch.
template <class Sync>
bool Engine<Sync>::commit_any(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept {
    if (!effects::whole(txn)) {
        dispatch.refusal = Refusal::other;
        return false;
    }
    if constexpr (!Sync::shared) {
        return carry_out(dispatch, self, txn, outcome);
    } else {
        for (;;) {
            Parties parties;
            Subscriptions::Set topics = 0;
            bool good = gather(parties, dispatch, self, txn, &topics);
            dispatch.refusal = good ? Refusal::moved : Refusal::other;
            dispatch.parties = &parties;
            if (good && parties.lock()) {
                if (self.runs()) [[likely]] {
                    uint64_t position = 0;
                    settle_state(dispatch, self);
                    if (on_full == OnFull::retry)
                        position = self.mail.pop(&dispatch.consumed); // its envelope has stayed there
                    good = carry_out(dispatch, self, txn, outcome);
                    if (good) {
                        settle_state(dispatch, self); // the transaction may have given it back
                        leave_handler(self);
                        if (on_full == OnFull::retry)
                            dispatch.short_of_us = take_short(self);
                        wake(outcome->woken, self); // behind those that it sent to
                    } else {
                        if (on_full == OnFull::retry) {
                            self.mail.unpop(dispatch.consumed, position);
                            dispatch.consumed = {};
                        }
                        if (dispatch.refusal == Refusal::full) {
                            // Nobody for whom there is room here keeps us from waiting.
                            if (on_full == OnFull::retry && self.short_of_us != nullptr)
                                dispatch.short_of_us = take_who_fit(self, true);
                            if (on_full != OnFull::retry || dispatch.full_of > dispatch.full->mail.bound() ||
                                !wait_for_room(self, *dispatch.full, dispatch.full_of,
                                               dispatch.turn_of == dispatch.full->id))
                                dispatch.refusal = Refusal::other; // there never will be room, or nobody waits
                        }
                    }
                } else {
                    good = false;
                    dispatch.refusal = Refusal::gone;
                }
                parties.unlock();
            } else if (good) { // self has stopped, or somebody else
                good = false;
                const base::SpinGuard guard(self.lock);
                if (self.id != dispatch.machine)
                    dispatch.refusal = Refusal::gone;
            }
            subscriptions_.unlock(topics);
            dispatch.parties = nullptr;
            if (good || dispatch.refusal != Refusal::moved)
                return good;
        }
    }
}

} // namespace mc::machine
