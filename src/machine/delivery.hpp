// Of the engine: mail that is sent at once, by direct calls, and who owns its boxes. See engine.hpp.
//
// A direct call locks whom it concerns, checks, allocates (the mailbox, the holders of boxes, a request's row), then sends; what
// cannot be sent is shown to the dead letter hook, with nothing locked, and its box is dropped after that.
#pragma once

#include "base/guarded.hpp"
#include "machine/engine.hpp"

#include <type_traits>
#include <utility>

namespace mc::machine {

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
    {
        const typename Sync::Guard guard(unheld_lock_);
        for (Unheld *unheld = unheld_; unheld != nullptr; unheld = unheld->outer)
            unheld->forget(word0);
    }
    drop_token(word0, word1 & MC_PAYLOAD_LAYOUT_ID_MASK);
}

template <class Sync> void Engine<Sync>::let_go(uint64_t word0, uint64_t word1) noexcept {
    if (is_box(word0, word1) && boxes_.let_go(word0))
        drop(word0, word1);
}

template <class Sync> inline void Engine<Sync>::let_go(const Envelope &envelope) noexcept {
    if (((envelope.payload1 | envelope.origin_payload1) & MC_PAYLOAD_LAYOUT_OWNED_MASK) != 0) [[unlikely]]
        let_go_boxes(envelope);
}
template <class Sync> void Engine<Sync>::let_go_boxes(const Envelope &envelope) noexcept {
    let_go(envelope.payload0, envelope.payload1);
    let_go(envelope.origin_payload0, envelope.origin_payload1);
}

// A box that there was no memory to hold. Holding it succeeds when others do, who have it then, or when there is memory again.
template <class Sync> void Engine<Sync>::drop_unheld(uint64_t word0, uint64_t word1) noexcept {
    if (boxes_.hold(word0))
        let_go(word0, word1);
    else
        drop(word0, word1);
}

// Of an envelope that there was no memory to hold: what nobody else holds is dropped.
template <class Sync> void Engine<Sync>::discard(const Envelope &envelope) noexcept {
    const uint64_t box = envelope.payload0, origin = envelope.origin_payload0;
    const bool has_origin = is_box(origin, envelope.origin_payload1);
    if (is_box(box, envelope.payload1) && !(has_origin && origin == box))
        drop_unheld(box, envelope.payload1);
    if (has_origin)
        drop_unheld(origin, envelope.origin_payload1);
}

// The hook first, then the boxes. They are held meanwhile, since the hook may send one on, and it may be dispatched. A copy
// says which: the caller's envelope is the program's, and the hook may fill it in anew.
template <class Sync>
void Engine<Sync>::undeliverable(uint32_t dst, mc_dead_letter_reason_t reason, const Envelope &given) noexcept {
    const Use use(*this);
    Envelope envelope = given;
    const bool held = hold(envelope);
    Unheld unheld{is_box(given.payload0, given.payload1) ? given.payload0 : 0,
                  is_box(given.origin_payload0, given.origin_payload1) ? given.origin_payload0 : 0, nullptr};
    if (!held) {
        const typename Sync::Guard guard(unheld_lock_);
        unheld.outer = unheld_;
        unheld_ = &unheld;
    }
    if (hooked(hooks.dead_letter))
        call_user("a dead letter hook", [&] { hooks.dead_letter(hooks.context, dst, reason, &envelope); });
    if (held)
        return let_go(envelope);
    {
        const typename Sync::Guard guard(unheld_lock_);
        Unheld **place = &unheld_;
        while (*place != &unheld) // attached: others' may have come since
            place = &(*place)->outer;
        *place = unheld.outer;
    }
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
    if constexpr (Sync::shared)
        if (machine == nullptr && table_.find(dst) != nullptr)
            return MC_DEAD_LETTER_UNKNOWN_MACHINE; // spawned since it was looked for, and not stopped
    return machine != nullptr && machine->lifecycle == MC_MACHINE_FAULTED ? MC_DEAD_LETTER_FAULTED_MACHINE
                                                                          : MC_DEAD_LETTER_STOPPED_MACHINE;
}

// 0 and the machine, which takes mail; else why not. Attached: with its lock held, if there is such a machine.
template <class Sync>
inline mc_dead_letter_reason_t Engine<Sync>::refusal(uint32_t dst, Machine **found) const noexcept {
    Machine *machine = table_.find(dst);
    if (machine == nullptr || !machine->takes_mail()) [[unlikely]]
        return why_refused(dst, machine);
    *found = machine;
    return static_cast<mc_dead_letter_reason_t>(0);
}

// It has got mail, or has begun to run.
template <class Sync> inline void Engine<Sync>::wake(Woken &woken, Machine &machine) noexcept {
    if (machine.queued || machine.doing != Doing::nothing || !machine.runs() || machine.mail.empty())
        return;
    if constexpr (Sync::shared) {
        machine.queued = true;
        (machine.is_polled() ? woken.polled : woken).push(machine);
    } else if (!machine.is_polled()) [[likely]] {
        ready_.push(machine);
    }
}

// machine: the requester's, or null. Attached: with its lock, or that of orphans.
template <class Sync> inline void Engine<Sync>::link_request(Row *row, uint32_t requester, Machine *machine) noexcept {
    row->requester = requester;
    pending_.template activate_by<Sync>(row, now_tick(), now_ns());
    if (machine != nullptr) {
        if (machine->takes_mail()) // one that is down would never end it
            machine->rows.push_back(row);
    } else if (requester != 0 && !table_.was_given_out(requester)) {
        unclaimed_.push_back(row);
    }
}

// For a direct call.
template <class Sync> Row *Engine<Sync>::reserve_row() noexcept {
    if constexpr (Sync::shared) {
        const base::SpinGuard guard(shared_ids_lock_);
        return pending_.reserve(0, &shared_ids_);
    }
    return pending_.reserve(0, nullptr);
}

// --- attached: room --------------------------------------------------------------------------------------------------------
//
// Who may not go on before there is room in a mailbox is in a list of that machine's, in the order in which they came: a ring, of
// which the machine has the last. When there is room,
//   a guest     has its envelope put into the mailbox, by whoever has made the room
//   a machine   is let go, to run its envelope again; it has the machine's turn until that dispatch is over
// As long as somebody in the list would fit, somebody else has a turn. Whoever had one, used or not (its handler has decided
// otherwise, it waits elsewhere, it has stopped), lets the next go on for whom there is room by then. So one goes on at a time, and one more
// for each envelope that leaves the mailbox, and nobody's place is lost.
//   Who needs more room than there is lets others pass who need less.
//   Who finds no room although it was its turn is first in the list again.
//   Machines that are polled have no turns, which they might keep for long.
//   Who sends without waiting takes what room there is, and may so be faster than a machine whose turn it is.
// When the machine takes no mail any more, all are let go.
//
// Nobody joins who is waited for by those that he would wait for, since none of them would ever go on.

// With the machine's lock: a guest's envelope comes into the mailbox, which has room. False: no memory; it is to find that out itself.
template <class Sync> bool Engine<Sync>::deliver_for(Guest &guest, Machine &machine) noexcept {
    if (!machine.mail.reserve(1) || !hold(*guest.envelope)) {
        machine.mail.give_back_unused();
        return false;
    }
    (void)machine.mail.push(*guest.envelope);
    return guest.delivered = true;
}

// The one behind `before` leaves the machine's list, and is last in the ring `taken`.
template <class Sync> void Engine<Sync>::take_out(Machine &machine, Machine &before, Machine **taken) noexcept {
    Machine &waiter = *before.next;
    if (&before == &waiter)
        machine.short_of_us = nullptr;
    else if (machine.short_of_us == &waiter)
        machine.short_of_us = &before;
    before.next = waiter.next;
    {
        const base::SpinGuard waits(short_lock_);
        waiter.short_of = 0; // not later: it is waited for by nobody's circle any more
    }
    if (*taken == nullptr) {
        waiter.next = &waiter;
    } else {
        waiter.next = (*taken)->next;
        (*taken)->next = &waiter;
    }
    *taken = &waiter;
}

// With the machine's lock, when an envelope has left its mailbox, and before it is made ready. Who is let go, as a ring by its last, for
// let_go_on.
template <class Sync> inline Machine *Engine<Sync>::take_short(Machine &machine) noexcept {
    return machine.short_of_us == nullptr ? nullptr : take_who_fit(machine, false);
}

template <class Sync>
__attribute__((noinline)) Machine *Engine<Sync>::take_who_fit(Machine &machine, bool all_who_fit) noexcept {
    Machine *taken = nullptr;
    for (Machine *before = machine.short_of_us; before != nullptr && machine.mail.fits(1);) {
        Machine &waiter = *before->next;
        if (!machine.mail.fits(waiter.needs)) {
            before = &waiter == machine.short_of_us ? nullptr : &waiter;
            continue;
        }
        const bool was_last = &waiter == machine.short_of_us;
        const bool delivered = waiter.is_guest() && deliver_for(static_cast<Guest &>(waiter), machine);
        take_out(machine, *before, &taken);
        if (was_last || machine.short_of_us == nullptr || (!delivered && !all_who_fit))
            break;
    }
    return taken;
}

template <class Sync> Machine *Engine<Sync>::take_all_short(Machine &machine) noexcept {
    Machine *taken = nullptr;
    while (machine.short_of_us != nullptr)
        take_out(machine, *machine.short_of_us, &taken);
    return taken;
}

// Nothing is locked: they are ready. One that has stopped meanwhile is kept. True: there is a turn that nobody has taken.
template <class Sync> bool Engine<Sync>::release_short(Machine *last, uint32_t room_of, Woken &woken) noexcept {
    bool left = false;
    for (Machine *machine = last->next; machine != nullptr;) {
        Machine *const next = machine == last ? nullptr : machine->next;
        bool gone = false;
        Waker waker;
        {
            const base::SpinGuard guard(machine->lock);
            machine->doing = Doing::nothing;
            if (machine->is_guest()) {
                waker = static_cast<Guest *>(machine)->waker; // it may be gone as soon as we have given back its lock
            } else {
                gone = machine->id == 0;
                if (!gone)
                    wake(woken, *machine);
                const bool takes_turn = machine->queued && !machine->is_polled();
                machine->turn_of = takes_turn ? room_of : 0;
                left |= !takes_turn;
            }
        }
        if (gone)
            table_.keep(machine);
        if (waker.task != nullptr)
            host_->wake(waker);
        machine = next;
    }
    return left;
}

// Those that were taken, and then whoever can have the turns that they leave. room_of 0: there is no room any more.
template <class Sync> void Engine<Sync>::let_go_on(Machine *last, uint32_t room_of, Woken &woken) noexcept {
    while (last != nullptr && release_short(last, room_of, woken) && room_of != 0) {
        const Held held(*this, room_of);
        last = held.get() == nullptr || !held.get()->takes_mail() ? nullptr : take_short(*held.get());
        if (last != nullptr)
            wake(woken, *held.get());
    }
}

template <class Sync>
__attribute__((noinline)) void Engine<Sync>::let_them_go(Machine *last, uint32_t room_of) noexcept {
    Woken woken;
    let_go_on(last, room_of, woken);
    tell(woken);
}

template <class Sync> __attribute__((noinline)) void Engine<Sync>::pass_on_room(uint32_t id) noexcept {
    Woken woken;
    Machine *last = nullptr;
    {
        const Held held(*this, id);
        if (held.get() != nullptr && held.get()->takes_mail())
            last = take_short(*held.get());
        if (last != nullptr)
            wake(woken, *held.get()); // guests' envelopes may have come
    }
    let_go_on(last, id, woken);
    tell(woken);
}

// With both locks. False: it would wait for ever.
template <class Sync>
bool Engine<Sync>::wait_for_room(Machine &self, Machine &full, uint32_t needs, bool first) noexcept {
    const base::SpinGuard guard(short_lock_);
    for (const Machine *at = &full; at != nullptr; at = at->short_of == 0 ? nullptr : table_.find(at->short_of))
        if (at == &self)
            return false;
    self.short_of = full.id;
    self.needs = needs;
    self.doing = Doing::room;
    join_short(self, full, first);
    return true;
}

template <class Sync> void Engine<Sync>::join_short(Machine &self, Machine &full, bool first) noexcept {
    if (full.short_of_us == nullptr) {
        self.next = &self;
        first = false;
    } else {
        self.next = full.short_of_us->next;
        full.short_of_us->next = &self;
    }
    if (!first)
        full.short_of_us = &self;
}

// With the machine's lock: somebody who waits could go on, and another one has a turn.
template <class Sync> bool Engine<Sync>::somebody_fits(const Machine &machine) noexcept {
    const Machine *const last = machine.short_of_us;
    const Machine *waiter = last;
    while (waiter != nullptr && !machine.mail.fits(waiter->needs))
        waiter = waiter->next == last ? nullptr : waiter->next;
    return waiter != nullptr;
}

// Behind those that wait, also where there is room, unless it has the turn.
template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::enqueue_or_wait(uint32_t dst, const Envelope &envelope, Guest &guest,
                                                          bool has_turn, bool *waits) noexcept {
    Woken woken;
    Held held(*this, dst);
    Machine *machine = held.get();
    if (machine == nullptr || !machine->takes_mail())
        return delivery::result_of(why_refused(dst, machine));
    if (!machine->mail.fits(1) || (!has_turn && somebody_fits(*machine))) {
        const base::SpinGuard guard(guest.lock);
        guest.doing = Doing::room;
        guest.waker = {};
        guest.envelope = &envelope;
        join_short(guest, *machine, has_turn);
        *waits = true;
        return MC_MAILBOX_ENQUEUE_FULL;
    }
    if (!machine->mail.reserve(1) || !hold(envelope)) {
        machine->mail.give_back_unused();
        return MC_MAILBOX_ENQUEUE_FULL;
    }
    machine->mail.push(envelope);
    wake(woken, *machine);
    held.release();
    tell(woken);
    return MC_MAILBOX_ENQUEUE_OK;
}

template <class Sync> bool Engine<Sync>::leave_list(uint32_t dst, Guest &guest) noexcept {
    {
        Held held(*this, dst);
        Machine *machine = held.get();
        Machine *before = machine == nullptr ? nullptr : machine->short_of_us; // the last, whose next is the first
        for (bool more = before != nullptr; more; before = before->next) {
            if (before->next == &guest) {
                Machine *taken = nullptr;
                take_out(*machine, *before, &taken);
                const base::SpinGuard guard(guest.lock);
                guest.doing = Doing::nothing;
                return true;
            }
            more = before->next != machine->short_of_us;
        }
    }
    // Somebody has taken it out, and is about to let it go: not before may the caller leave.
    for (;;) {
        {
            const base::SpinGuard guard(guest.lock);
            if (guest.doing == Doing::nothing)
                return false;
        }
        sync::cpu_relax();
    }
}

template <class Sync>
void Engine<Sync>::lose(uint32_t dst, mc_mailbox_enqueue_result_t why, const Envelope &envelope) noexcept {
    mc_dead_letter_reason_t reason = MC_DEAD_LETTER_MAILBOX_FULL;
    if (why != MC_MAILBOX_ENQUEUE_FULL) {
        const Held held(*this, dst);
        reason = why_refused(dst, held.get());
    }
    undeliverable(dst, reason, envelope);
}

template <class Sync> void Engine<Sync>::release_all_short() noexcept {
    for (uint64_t id = 1; id <= table_.last(); ++id) {
        Machine *last = nullptr;
        {
            const Held held(*this, static_cast<uint32_t>(id));
            if (held.get() != nullptr)
                last = take_all_short(*held.get());
        }
        let_them_go(last, 0);
    }
}

// Nobody else is about: nobody waits for room any more, and who has stopped meanwhile is gone.
template <class Sync> void Engine<Sync>::forget_short() noexcept {
    for (uint64_t id = 1; id <= table_.last(); ++id) {
        Machine *machine = table_.find(static_cast<uint32_t>(id));
        Machine *last = machine == nullptr ? nullptr : std::exchange(machine->short_of_us, nullptr);
        for (Machine *at = last == nullptr ? nullptr : last->next; at != nullptr;) {
            Machine *next = at == last ? nullptr : at->next;
            at->short_of = 0;
            at->doing = Doing::nothing;
            forget(at);
            at = next;
        }
    }
}

// --- direct calls --------------------------------------------------------------------------------------------------------

template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::enqueue(uint32_t dst, const Envelope &envelope) noexcept {
    Woken woken;
    Held held(*this, dst);
    Machine *machine = held.get();
    mc_dead_letter_reason_t why = static_cast<mc_dead_letter_reason_t>(0);
    if (machine == nullptr || !machine->takes_mail()) [[unlikely]] {
        why = why_refused(dst, machine);
    } else {
        if (machine->mail.fits(1) && machine->mail.reserve(1)) {
            if (hold(envelope)) {
                machine->mail.push(envelope);
                wake(woken, *machine);
                held.release();
                tell(woken);
                return MC_MAILBOX_ENQUEUE_OK;
            }
            machine->mail.give_back_unused();
        }
        why = MC_DEAD_LETTER_MAILBOX_FULL;
    }
    held.release();
    undeliverable(dst, why, envelope);
    return delivery::result_of(why);
}

// The requester and the destination, together; a requester that is no machine, by the lock of orphans.
template <class Sync> class Engine<Sync>::Pair {
public:
    Pair(Engine &engine, uint32_t src, uint32_t dst) noexcept : engine_(engine) {
        do {
            source_ = engine.table_.find(src);
            destination_ = engine.table_.find(dst);
        } while (!lock(src, dst));
    }
    ~Pair() { release(); }
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;

    Machine *source() const noexcept { return source_; }
    Machine *destination() const noexcept { return destination_; }
    void release() noexcept {
        if constexpr (Sync::shared) {
            if (!locked_)
                return;
            locked_ = false;
            if (source_ == nullptr)
                engine_.orphans_.unlock();
            parties_.unlock();
        }
    }

private:
    bool lock(uint32_t src, uint32_t dst) noexcept {
        if constexpr (Sync::shared) {
            parties_.clear();
            parties_.add(src, source_);
            parties_.add(dst, destination_);
            if (!parties_.lock())
                return false;
            if (source_ == nullptr) {
                engine_.orphans_.lock();
                if (engine_.table_.find(src) != nullptr) { // just spawned
                    engine_.orphans_.unlock();
                    parties_.unlock();
                    return false;
                }
            }
            locked_ = true;
        }
        return true;
    }

    Engine &engine_;
    Machine *source_;
    Machine *destination_;
    [[no_unique_address]] std::conditional_t<Sync::shared, Parties, Nothing> parties_;
    bool locked_ = false;
};

// With the machine's lock: all that a direct request takes there. The row, which the caller gives a requester, and whose id the
// envelope has; both hold the payload's box, and the mailbox has room. Null: nothing has changed.
template <class Sync>
inline Row *Engine<Sync>::prepare_request(Machine &machine, const Envelope &given, Envelope *envelope) noexcept {
    const bool boxed = is_box(given.payload0, given.payload1);
    if (machine.mail.fits(1) && machine.mail.reserve(1) && (!boxed || boxes_.hold(given.payload0))) { // the envelope
        if (Row *row = reserve_row(); row != nullptr) {
            if (boxed)
                (void)boxes_.hold(given.payload0); // the row; it is held
            row->dst = machine.id;
            row->site = given.origin_request_site_key;
            row->payload0 = given.payload0;
            row->payload1 = given.payload1;
            envelope->reply_cap_id = row->id;
            return row;
        }
        if (boxed)
            (void)boxes_.let_go(given.payload0); // not dropped
    }
    machine.mail.give_back_unused();
    return nullptr;
}

template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::request(uint32_t src, uint32_t dst, const Envelope &given,
                                                  uint64_t *out_pending) noexcept {
    Envelope envelope = plain_envelope(src, given.kind, given.payload0, given.payload1);
    Woken woken;
    Pair pair(*this, src, dst);
    Machine *machine = pair.destination();
    mc_dead_letter_reason_t why = MC_DEAD_LETTER_MAILBOX_FULL;
    if (machine == nullptr || !machine->takes_mail()) {
        why = why_refused(dst, machine);
    } else if (Row *row = prepare_request(*machine, given, &envelope); row != nullptr) {
        row->position = machine->mail.push(envelope);
        const uint64_t id = row->id; // attached, it may be over as soon as nothing is locked
        link_request(row, src, pair.source());
        woken.requests = true;
        wake(woken, *machine);
        pair.release();
        if (out_pending != nullptr)
            *out_pending = id;
        tell(woken);
        return MC_MAILBOX_ENQUEUE_OK;
    }
    pair.release();
    undeliverable(dst, why, envelope);
    return delivery::result_of(why);
}

// Success: enqueue, deactivate, count, hook. The request's box goes from the row to the envelope, as its origin.
template <class Sync>
mc_machine_reply_result_t Engine<Sync>::reply(uint32_t src, uint64_t cap, const Envelope &given) noexcept {
    const Use use(*this);
    for (;;) {
        Envelope envelope = plain_envelope(src, given.kind, given.payload0, given.payload1);
        Pending::Owner owner;
        uint64_t site = 0;
        if (!pending_.owner_of(cap, &owner, &site)) {
            undeliverable(0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN, envelope);
            return MC_REPLY_CAP_UNKNOWN;
        }
        if constexpr (Sync::shared)
            if (owner.asker != nullptr) {
                mc_machine_reply_result_t result = MC_REPLY_OK;
                if (answer(*owner.asker, cap, envelope, &result))
                    return result;
                continue; // it has ended
            }
        const uint32_t requester = owner.requester;
        envelope.pending_id = cap;
        envelope.origin_request_site_key = site;
        Pair pair(*this, requester, requester);
        Row *row = pending_.find_active(cap);
        if (row == nullptr || row->requester != requester || row->asker != nullptr)
            continue; // attached: it has ended
        Machine *machine = pair.source();
        if (machine == nullptr || !machine->takes_mail()) { // it was down when it asked, or is no machine
            const mc_dead_letter_reason_t why = why_refused(requester, machine);
            if (why == MC_DEAD_LETTER_UNKNOWN_MACHINE) {
                pair.release();
                undeliverable(requester, why, envelope);
                return MC_REPLY_DEST_UNKNOWN;
            }
            const bool held = hold(envelope); // the request's own box may come back
            const mc_pending_cleanup_reason_t reason = why == MC_DEAD_LETTER_FAULTED_MACHINE
                                                           ? MC_PENDING_CLEANUP_REQUESTER_FAULTED
                                                           : MC_PENDING_CLEANUP_REQUESTER_STOPPED;
            pending_.remove(row, reason);
            pair.release();
            end_removed(row, reason);
            undeliverable(requester, why, envelope);
            if (held)
                let_go(envelope);
            return MC_REPLY_DEST_NOT_RUNNING;
        }
        const bool boxed = is_box(given.payload0, given.payload1);
        if (!machine->mail.fits(1) || !machine->mail.reserve(1) || (boxed && !boxes_.hold(given.payload0))) {
            machine->mail.give_back_unused();
            pair.release();
            undeliverable(requester, MC_DEAD_LETTER_MAILBOX_FULL, envelope);
            return MC_REPLY_FULL;
        }
        envelope.origin_payload0 = row->payload0;
        envelope.origin_payload1 = row->payload1;
        machine->mail.push(envelope);
        Woken woken;
        wake(woken, *machine);
        pending_.remove(row, MC_PENDING_CLEANUP_COMPLETED);
        pair.release();
        tell(woken);
        pending_.recycle(row);
        if (hooked(hooks.pending))
            call_user("a hook of requests",
                      [&] { hooks.pending(hooks.context, requester, cap, site, MC_PENDING_CLEANUP_COMPLETED); });
        return MC_REPLY_OK;
    }
}

} // namespace mc::machine
