// Of the engine, while it is attached: requests of askers, which are no machines. See engine.hpp and asker.hpp.
//
// An asker belongs to one call at a time, its task's. That makes the request, waits until the state says that it is over, and
// takes the answer, or withdraws. Who answers does so under the asker's lock, and wakes the task afterwards, by what it has
// copied; a wake that comes late finds another epoch.
//
// A box in an answer is the asker's from then on, and nobody of ours counts it any more. So nobody else may hold it: a
// transaction that replies with a box which it mentions elsewhere, too, is rejected.
#pragma once

#include "base/guarded.hpp"
#include "machine/delivery.hpp"

namespace mc::machine {

// On OK the asker's request is under way, or over already. What fails is a dead letter.
template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::ask(uint32_t dst, const Envelope &given, Asker &asker) noexcept {
    Envelope envelope = plain_envelope(0, given.kind, given.payload0, given.payload1);
    Held held(*this, dst);
    Machine *machine = held.get();
    mc_dead_letter_reason_t why = MC_DEAD_LETTER_MAILBOX_FULL;
    if (machine == nullptr || !machine->takes_mail()) {
        why = why_refused(dst, machine);
    } else if (Row *row = prepare_request(*machine, given, &envelope); row != nullptr) {
        row->asker = &asker;
        {
            const base::SpinGuard guard(asker.lock);
            asker.state = Asker::State::waits;
            asker.pending = row->id;
            asker.waker = {};
            row->position = machine->mail.push(envelope);
            pending_.activate(row, now_tick(), now_ns());
        }
        Woken woken;
        woken.requests = true;
        wake(woken, *machine);
        held.release();
        tell(woken);
        return MC_MAILBOX_ENQUEUE_OK;
    }
    held.release();
    undeliverable(dst, why, envelope);
    return delivery::result_of(why);
}

// Ends the asker's request, unless it has ended: null. The caller ends the row, and wakes row->waker.
template <class Sync>
Row *Engine<Sync>::take_asked(Asker &asker, uint64_t id, mc_pending_cleanup_reason_t reason) noexcept {
    const base::SpinGuard guard(asker.lock);
    Row *row = pending_.find_active(id);
    if (row == nullptr || row->asker != &asker)
        return nullptr;
    pending_.remove(row, reason);
    asker.state = Asker::State::ended;
    row->waker = asker.waker;
    return row;
}

// False: somebody else has ended it.
template <class Sync>
bool Engine<Sync>::end_asked(Asker &asker, uint64_t id, mc_pending_cleanup_reason_t reason) noexcept {
    Row *row = take_asked(asker, id, reason);
    if (row == nullptr)
        return false;
    const Waker waker = row->waker;
    end_removed(row, reason);
    if (waker.task != nullptr)
        host_->wake(waker);
    return true;
}

// The words are that box's.
inline bool is_this_box(uint64_t word0, uint64_t word1, uint64_t box) noexcept {
    return is_box(word0, word1) && word0 == box;
}

// With the asker's lock. False: somebody else holds the box that is to be the asker's.
template <class Sync>
bool Engine<Sync>::may_answer(const Dispatch &dispatch, const Row &row, uint64_t word0, uint64_t word1) const noexcept {
    if (!is_box(word0, word1))
        return true;
    uint64_t ours = 1 + is_this_box(row.payload0, row.payload1, word0);
    for (const Envelope *envelope : {&dispatch.envelope, &dispatch.consumed})
        ours += is_this_box(envelope->payload0, envelope->payload1, word0) +
                is_this_box(envelope->origin_payload0, envelope->origin_payload1, word0);
    return boxes_.holders(word0) == ours;
}

// The same lock: what the dispatch, and the row, have of that box is let go of, and then what the reply has.
template <class Sync>
void Engine<Sync>::give_box_away(Dispatch &dispatch, Row &row, uint64_t word0, uint64_t word1) noexcept {
    if (!is_box(word0, word1))
        return;
    auto leave = [&](uint64_t &mine0, uint64_t &mine1) {
        if (!is_this_box(mine0, mine1, word0))
            return;
        mine1 = 0;
        (void)boxes_.let_go(word0); // not dropped
    };
    for (Envelope *envelope : {&dispatch.envelope, &dispatch.consumed}) {
        leave(envelope->payload0, envelope->payload1);
        leave(envelope->origin_payload0, envelope->origin_payload1);
    }
    leave(row.payload0, row.payload1);
    (void)boxes_.let_go(word0);
}

// With the asker's lock; the row is about to be removed. Its request's box is the answer's origin.
template <class Sync> void Engine<Sync>::give_answer(Row &row, const Envelope &envelope) noexcept {
    row.asker->answer = envelope;
    row.asker->state = Asker::State::answered;
    row.waker = row.asker->waker;
}

// A direct reply. False: the request has ended meanwhile.
template <class Sync>
bool Engine<Sync>::answer(Asker &asker, uint64_t cap, Envelope &envelope, mc_machine_reply_result_t *result) noexcept {
    Row *row = nullptr;
    {
        const base::SpinGuard guard(asker.lock);
        row = pending_.find_active(cap);
        if (row == nullptr || row->asker != &asker)
            return false;
        const bool boxed = is_box(envelope.payload0, envelope.payload1);
        const bool returns = boxed && is_this_box(row->payload0, row->payload1, envelope.payload0);
        if (boxed && boxes_.holders(envelope.payload0) != returns) { // the handler that runs, say
            row = nullptr;
        } else {
            if (returns) {
                (void)boxes_.let_go(row->payload0); // not dropped
                row->payload1 = 0;
            }
            envelope.pending_id = cap;
            envelope.origin_request_site_key = row->site;
            envelope.origin_payload0 = row->payload0;
            envelope.origin_payload1 = row->payload1;
            give_answer(*row, envelope);
            pending_.remove(row, MC_PENDING_CLEANUP_COMPLETED);
        }
    }
    if (row == nullptr) {
        undeliverable(0, MC_DEAD_LETTER_MAILBOX_FULL, envelope);
        *result = MC_REPLY_FULL;
        return true;
    }
    if (row->waker.task != nullptr)
        host_->wake(row->waker);
    const uint64_t site = row->site;
    pending_.recycle(row);
    if (hooked(hooks.pending))
        call_user("a hook of requests",
                  [&] { hooks.pending(hooks.context, 0, cap, site, MC_PENDING_CLEANUP_COMPLETED); });
    *result = MC_REPLY_OK;
    return true;
}

// The asker's task gives up. False: it is too late for that, and there is an answer, or it has ended otherwise.
template <class Sync> bool Engine<Sync>::withdraw(Asker &asker) noexcept {
    Row *row = take_asked(asker, asker.pending, MC_PENDING_CLEANUP_TIMEOUT);
    if (row != nullptr)
        end_removed(row, MC_PENDING_CLEANUP_TIMEOUT); // nobody is woken: it is us
    return row != nullptr;
}

// By the asker's task, of one that is answered. A box in the answer is the program's; the request's own goes. out: null drops both.
template <class Sync> void Engine<Sync>::take_answer(Asker &asker, Envelope *out) noexcept {
    Envelope answer = asker.answer; // nobody else touches it any more
    let_go(answer.origin_payload0, answer.origin_payload1);
    answer.origin_payload0 = answer.origin_payload1 = 0;
    if (out != nullptr)
        *out = answer;
    else if (is_box(answer.payload0, answer.payload1))
        drop(answer.payload0, answer.payload1);
}

// Of a request that is not made.
template <class Sync> void Engine<Sync>::refuse(uint64_t word0, uint64_t word1) noexcept {
    if (is_box(word0, word1))
        drop_unheld(word0, word1);
}

// Everybody who waits for an answer gets none.
template <class Sync> void Engine<Sync>::end_askers() noexcept {
    for (uint32_t part = 0; part < pending_.parts(); ++part) {
        Asker *asker = nullptr;
        while (const uint64_t id = pending_.asked_in(part, &asker))
            (void)end_asked(*asker, id, MC_PENDING_CLEANUP_REQUESTER_STOPPED); // or it has just ended
    }
}

} // namespace mc::machine
