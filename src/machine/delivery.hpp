// Of the engine: mail that is sent at once, by direct calls, and who owns its boxes. See engine.hpp.
//
// A direct call checks, allocates (the mailbox, the holders of boxes, a request's row), then sends; what cannot be sent is
// shown to the dead letter hook, and its box is dropped after that.
#pragma once

#include "base/guarded.hpp"
#include "machine/engine.hpp"

namespace mc::machine {

// --- boxes -------------------------------------------------------------------------------------------------------------

// Both words of an envelope that may name boxes. False: no memory, nothing is held that was not.
template <class Sync> bool Engine<Sync>::hold(const Envelope &envelope) noexcept {
    const bool payload = is_box(envelope.payload0, envelope.payload1);
    const bool origin = is_box(envelope.origin_payload0, envelope.origin_payload1);
    if (!payload && !origin) [[likely]]
        return true;
    if (payload && !boxes_.hold(envelope.payload0))
        return false;
    if (origin && !boxes_.hold(envelope.origin_payload0)) {
        if (payload)
            (void)boxes_.let_go(envelope.payload0); // not dropped
        return false;
    }
    return true;
}

// Of a payload, which nobody holds any more.
template <class Sync> void Engine<Sync>::drop(uint64_t word0, uint64_t word1) noexcept {
    for (Unheld *unheld = unheld_; unheld != nullptr; unheld = unheld->outer)
        unheld->forget(word0);
    drop_box(word0, word1 & MC_PAYLOAD_LAYOUT_ID_MASK);
}

template <class Sync> void Engine<Sync>::let_go(uint64_t word0, uint64_t word1) noexcept {
    if (is_box(word0, word1) && boxes_.let_go(word0))
        drop(word0, word1);
}

template <class Sync> void Engine<Sync>::let_go(const Envelope &envelope) noexcept {
    let_go(envelope.payload0, envelope.payload1);
    let_go(envelope.origin_payload0, envelope.origin_payload1);
}

// Of an envelope that there was no memory to hold: what nobody else holds is dropped.
template <class Sync> void Engine<Sync>::discard(const Envelope &envelope) noexcept {
    const uint64_t box = envelope.payload0, origin = envelope.origin_payload0;
    const bool has_origin = is_box(origin, envelope.origin_payload1);
    if (is_box(box, envelope.payload1) && !boxes_.held(box) && !(has_origin && origin == box))
        drop(box, envelope.payload1);
    if (has_origin && !boxes_.held(origin))
        drop(origin, envelope.origin_payload1);
}

// The hook first, then the boxes. They are held meanwhile, since the hook may send one on, and it may be dispatched. A copy
// says which: the caller's envelope is the program's, and the hook may fill it in anew.
template <class Sync>
void Engine<Sync>::undeliverable(uint32_t dst, mc_dead_letter_reason_t reason, const Envelope &given) noexcept {
    const Use use(*this);
    Envelope envelope = given;
    const bool held = hold(envelope);
    Unheld unheld{is_box(given.payload0, given.payload1) ? given.payload0 : 0,
                  is_box(given.origin_payload0, given.origin_payload1) ? given.origin_payload0 : 0, unheld_};
    if (!held)
        unheld_ = &unheld;
    if (hooks.dead_letter != nullptr)
        (void)base::call_guarded("a dead letter hook",
                                 [&] { hooks.dead_letter(hooks.context, dst, reason, &envelope); });
    if (held)
        return let_go(envelope);
    unheld_ = unheld.outer;
    if (unheld.payload == 0)
        envelope.payload1 = 0; // it has been dropped
    if (unheld.origin == 0)
        envelope.origin_payload1 = 0;
    discard(envelope);
}

// --- destinations --------------------------------------------------------------------------------------------------------

template <class Sync>
__attribute__((noinline)) mc_dead_letter_reason_t Engine<Sync>::why_refused(uint32_t dst,
                                                                            const Machine *machine) const noexcept {
    if (!table_.was_given_out(dst))
        return MC_DEAD_LETTER_UNKNOWN_MACHINE;
    return machine != nullptr && machine->lifecycle == MC_MACHINE_FAULTED ? MC_DEAD_LETTER_FAULTED_MACHINE
                                                                          : MC_DEAD_LETTER_STOPPED_MACHINE;
}

// 0 and the machine, which takes mail; else why not.
template <class Sync>
__attribute__((always_inline)) inline mc_dead_letter_reason_t Engine<Sync>::refusal(uint32_t dst,
                                                                                    Machine **found) const noexcept {
    Machine *machine = table_.find(dst);
    if (machine == nullptr || !machine->takes_mail()) [[unlikely]]
        return why_refused(dst, machine);
    *found = machine;
    return static_cast<mc_dead_letter_reason_t>(0);
}

// It has got mail, or has begun to run.
template <class Sync>
__attribute__((always_inline)) inline void Engine<Sync>::wake(ReadyQueue<Sync> &queue, Machine &machine) noexcept {
    if (!machine.queued && !machine.dispatching && machine.runs() && !machine.mail.empty())
        queue.push(table_, machine);
}

template <class Sync> void Engine<Sync>::link_request(Row *row, uint32_t requester) noexcept {
    row->requester = requester;
    pending_.activate(row, tick_);
    if (Machine *machine = table_.find(requester); machine != nullptr) {
        if (machine->takes_mail()) // one that is down would never end it
            machine->rows.push_back(row);
    } else if (requester != 0 && !table_.was_given_out(requester)) {
        unclaimed_.push_back(row);
    }
}

// --- direct calls --------------------------------------------------------------------------------------------------------

namespace delivery {

inline mc_mailbox_enqueue_result_t result_of(mc_dead_letter_reason_t refusal) noexcept {
    switch (refusal) {
    case MC_DEAD_LETTER_UNKNOWN_MACHINE:
        return MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN;
    case MC_DEAD_LETTER_MAILBOX_FULL:
        return MC_MAILBOX_ENQUEUE_FULL;
    default:
        return MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING;
    }
}

} // namespace delivery

template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::enqueue(uint32_t dst, const Envelope &envelope) noexcept {
    Machine *machine = nullptr;
    mc_dead_letter_reason_t why = refusal(dst, &machine);
    if (machine != nullptr) {
        if (machine->mail.fits(1) && machine->mail.reserve(1)) {
            if (hold(envelope)) {
                machine->mail.push(envelope);
                wake(ready_, *machine);
                return MC_MAILBOX_ENQUEUE_OK;
            }
            machine->mail.give_back_unused();
        }
        why = MC_DEAD_LETTER_MAILBOX_FULL;
    }
    undeliverable(dst, why, envelope);
    return delivery::result_of(why);
}

template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::request(uint32_t src, uint32_t dst, const Envelope &given,
                                                  uint64_t *out_pending) noexcept {
    Envelope envelope = plain_envelope(src, given.kind, given.payload0, given.payload1);
    Machine *machine = nullptr;
    mc_dead_letter_reason_t why = refusal(dst, &machine);
    if (machine != nullptr) {
        const bool boxed = is_box(given.payload0, given.payload1);
        Row *row = nullptr;
        if (machine->mail.fits(1) && machine->mail.reserve(1) && (!boxed || boxes_.reserve(1)))
            row = pending_.reserve(0);
        if (row != nullptr) {
            if (boxed)
                (void)(boxes_.hold(given.payload0) && boxes_.hold(given.payload0)); // the envelope, and the row
            row->dst = dst;
            row->site = given.origin_request_site_key;
            row->payload0 = given.payload0;
            row->payload1 = given.payload1;
            envelope.reply_cap_id = row->id;
            row->position = machine->mail.push(envelope);
            link_request(row, src);
            if (out_pending != nullptr)
                *out_pending = row->id;
            wake(ready_, *machine);
            return MC_MAILBOX_ENQUEUE_OK;
        }
        machine->mail.give_back_unused();
        why = MC_DEAD_LETTER_MAILBOX_FULL;
    }
    undeliverable(dst, why, envelope);
    return delivery::result_of(why);
}

// Success: enqueue, deactivate, count, hook. The request's box goes from the row to the envelope, as its origin.
template <class Sync>
mc_machine_reply_result_t Engine<Sync>::reply(uint32_t src, uint64_t cap, const Envelope &given) noexcept {
    Envelope envelope = plain_envelope(src, given.kind, given.payload0, given.payload1);
    Row *row = pending_.find_active(cap);
    if (row == nullptr) {
        undeliverable(0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN, envelope);
        return MC_REPLY_CAP_UNKNOWN;
    }
    envelope.pending_id = cap;
    envelope.origin_request_site_key = row->site;
    const Use use(*this);
    const uint32_t requester = row->requester;
    Machine *machine = nullptr;
    const mc_dead_letter_reason_t why = refusal(requester, &machine);
    if (why == MC_DEAD_LETTER_UNKNOWN_MACHINE) {
        undeliverable(requester, why, envelope);
        return MC_REPLY_DEST_UNKNOWN;
    }
    if (machine == nullptr) {             // it was down when it asked
        const bool held = hold(envelope); // the request's own box may come back
        end_row(row, why == MC_DEAD_LETTER_FAULTED_MACHINE ? MC_PENDING_CLEANUP_REQUESTER_FAULTED
                                                           : MC_PENDING_CLEANUP_REQUESTER_STOPPED);
        undeliverable(requester, why, envelope);
        if (held)
            let_go(envelope);
        return MC_REPLY_DEST_NOT_RUNNING;
    }
    const bool boxed = is_box(given.payload0, given.payload1);
    if (!machine->mail.fits(1) || !machine->mail.reserve(1) || (boxed && !boxes_.hold(given.payload0))) {
        machine->mail.give_back_unused();
        undeliverable(requester, MC_DEAD_LETTER_MAILBOX_FULL, envelope);
        return MC_REPLY_FULL;
    }
    envelope.origin_payload0 = row->payload0;
    envelope.origin_payload1 = row->payload1;
    machine->mail.push(envelope);
    wake(ready_, *machine);
    pending_.remove(row);
    ++cleanups_[MC_PENDING_CLEANUP_COMPLETED];
    const uint64_t site = row->site;
    pending_.recycle(row);
    if (hooks.pending != nullptr)
        (void)base::call_guarded("a hook of requests", [&] {
            hooks.pending(hooks.context, requester, cap, site, MC_PENDING_CLEANUP_COMPLETED);
        });
    return MC_REPLY_OK;
}

} // namespace mc::machine
