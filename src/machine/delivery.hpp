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
    drop_box(word0, word1 & MC_PAYLOAD_LAYOUT_ID_MASK);
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
        (void)base::call_guarded("a dead letter hook",
                                 [&] { hooks.dead_letter(hooks.context, dst, reason, &envelope); });
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
    if (machine.queued || machine.dispatching || !machine.runs() || machine.mail.empty())
        return;
    if constexpr (Sync::shared) {
        if (machine.short_of != 0)
            return;
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
// Who may not go on before there is room in a mailbox is in a list of that machine's, a ring of which it has the last, and takes
// its mail up again when one envelope has left the mailbox. Everybody does when the mailbox is empty, or takes no mail any more.
// Nobody joins who is waited for by those that he would wait for, since none of them would ever go on.

// With the machine's lock: the first of those that wait, or all of them, as a ring by its last.
template <class Sync> Machine *Engine<Sync>::take_short(Machine &machine, bool all) noexcept {
    Machine *const last = machine.short_of_us;
    if (last == nullptr) [[likely]]
        return nullptr;
    Machine *const first = last->next;
    if (all || first == last) {
        machine.short_of_us = nullptr;
        return last;
    }
    last->next = first->next;
    first->next = first;
    return first;
}

// Nothing is locked: they are ready. One that has stopped meanwhile is kept.
template <class Sync> void Engine<Sync>::release_short(Machine *last, Woken &woken) noexcept {
    for (Machine *machine = last == nullptr ? nullptr : last->next; machine != nullptr;) {
        Machine *const next = machine == last ? nullptr : machine->next;
        bool gone = false;
        Waker waker;
        {
            const base::SpinGuard guard(machine->lock);
            {
                const base::SpinGuard waits(short_lock_);
                machine->short_of = 0;
            }
            gone = machine->id == 0;
            if (machine->binding == Binding::guest)
                waker = static_cast<Guest *>(machine)->waker; // it may be gone as soon as we have given back its lock
            else if (!gone)
                wake(woken, *machine);
        }
        if (gone)
            table_.keep(machine);
        if (waker.task != nullptr)
            host_->wake(waker);
        machine = next;
    }
}

// With both locks. False: it would wait for ever.
template <class Sync> bool Engine<Sync>::wait_for_room(Machine &self, Machine &full) noexcept {
    const base::SpinGuard guard(short_lock_);
    for (const Machine *at = &full; at != nullptr; at = at->short_of == 0 ? nullptr : table_.find(at->short_of))
        if (at == &self)
            return false;
    self.short_of = full.id;
    join_short(self, full);
    return true;
}

template <class Sync> void Engine<Sync>::join_short(Machine &self, Machine &full) noexcept {
    if (full.short_of_us == nullptr) {
        self.next = &self;
    } else {
        self.next = full.short_of_us->next;
        full.short_of_us->next = &self;
    }
    full.short_of_us = &self;
}

template <class Sync>
mc_mailbox_enqueue_result_t Engine<Sync>::enqueue_or_wait(uint32_t dst, const Envelope &envelope, Guest &guest,
                                                          bool *waits) noexcept {
    Woken woken;
    Held held(*this, dst);
    Machine *machine = held.get();
    if (machine == nullptr || !machine->takes_mail())
        return delivery::result_of(why_refused(dst, machine));
    if (!machine->mail.fits(1)) {
        const base::SpinGuard guard(guest.lock);
        {
            const base::SpinGuard edge(short_lock_);
            guest.short_of = dst;
        }
        guest.waker = {};
        join_short(guest, *machine);
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
                if (before == &guest)
                    machine->short_of_us = nullptr;
                else if (machine->short_of_us == &guest)
                    machine->short_of_us = before;
                before->next = guest.next;
                const base::SpinGuard guard(guest.lock);
                const base::SpinGuard waits(short_lock_);
                guest.short_of = 0;
                return true;
            }
            more = before->next != machine->short_of_us;
        }
    }
    // Somebody has taken it out, and is about to let it go: not before may the caller leave.
    for (;;) {
        {
            const base::SpinGuard guard(guest.lock);
            if (guest.short_of == 0)
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
                last = take_short(*held.get(), true);
        }
        Woken woken;
        release_short(last, woken);
        tell(woken);
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
    Envelope envelope = plain_envelope(src, given.kind, given.payload0, given.payload1);
    const Use use(*this);
    for (;;) {
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
            (void)base::call_guarded("a hook of requests", [&] {
                hooks.pending(hooks.context, requester, cap, site, MC_PENDING_CLEANUP_COMPLETED);
            });
        return MC_REPLY_OK;
    }
}

} // namespace mc::machine
