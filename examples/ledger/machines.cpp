// The machines: what accounts, tellers and relays do with a message, and what the hooks do about what is lost. ledger.hpp says
// why it is right.
#include "ledger.hpp"

#include <mc/bridge.h>

#include <algorithm>
#include <utility>

namespace ledger {
namespace {

constexpr uint64_t injected_fault = 100;

// What is staged happens with the transaction; only for want of memory is it not.
void staged(uint64_t taken) {
    if (taken == 0)
        give_up("no memory for a message");
}

void becomes(mc_machine_dispatch_txn_t *txn, uint64_t state) {
    txn->has_next_state = 1;
    txn->next_state = state;
}

} // namespace

// --- accounts --------------------------------------------------------------------------------------------------------------

mc_dispatch_result_t Bank::account_handler(void *bank, Id self, uint64_t balance, const Envelope *message, Txn *txn,
                                           uint64_t *) {
    Bank &here = *static_cast<Bank *>(bank);
    const uint64_t line = message->payload0;
    switch (message->kind) {
    case transfer: // from a relay it has the teller's capability with it
        here.debit(balance, line, message->reply_cap_id != 0 ? message->reply_cap_id : message->payload1, txn);
        break;
    case credit:
        if (here.fault_of(line) == Fault::answer_delayed)
            here.delay(self, line, message->payload1);
        else
            here.add(balance, line, message->payload1, txn);
        break;
    case late_credit:
        here.add(balance, line, message->payload1, txn);
        break;
    case refund:
        here.tallies_.mine().refunds.add();
        becomes(txn, balance + here.lines_[line].amount);
        break;
    default:
        break;
    }
    return MC_DISPATCH_OK;
}

// Of two kinds of answers that are dropped this is the one before anything has moved.
void Bank::debit(uint64_t balance, uint64_t line, uint64_t capability, Txn *txn) {
    const Line &what = lines_[line];
    if (fault_of(line) == Fault::answer_dropped && !faults_.second_kind(line))
        return tallies_.mine().count(Fault::answer_dropped);
    if (what.amount > balance) {
        note(line, said_refused);
        return staged(__mc_machine_emit_reply(capability, refused, line, 0));
    }
    becomes(txn, balance - what.amount);
    staged(__mc_machine_emit_send(accounts_[what.to], credit, line, capability));
}

// Who does not say that it has the money must not have it: an answer that is dropped sends the money back.
void Bank::add(uint64_t balance, uint64_t line, uint64_t capability, Txn *txn) {
    const Line &what = lines_[line];
    if (fault_of(line) == Fault::answer_dropped) {
        tallies_.mine().count(Fault::answer_dropped);
        return staged(__mc_machine_emit_send(accounts_[what.from], refund, line, 0));
    }
    note(line, said_done);
    becomes(txn, balance + what.amount);
    staged(__mc_machine_emit_reply(capability, done, line, 0));
}

// The transaction has no effects, so it is never rejected, and this is done once.
void Bank::delay(Id self, uint64_t line, uint64_t capability) {
    tallies_.mine().count(Fault::answer_delayed);
    const int64_t due = mc_after(2 * timeout_ns * faults_.of_256(line) / 256);
    const std::lock_guard guard(delayed_mutex_);
    delayed_.push_back({due, self, line, capability});
}

void Bank::note(uint64_t line, Fate said) {
    // relaxed: whoever reads it has seen the end of the request, which request_ended publishes.
    if (faults_.on)
        fates_[line].fetch_or(said, std::memory_order_relaxed);
}

// --- tellers ---------------------------------------------------------------------------------------------------------------

mc_dispatch_result_t Bank::teller_handler(void *teller, Id, uint64_t, const Envelope *message, Txn *, uint64_t *) {
    Teller &here = *static_cast<Teller *>(teller);
    Bank &bank = *here.bank;
    const uint64_t line = message->payload0;
    if (message->kind == stop_now) {
        if (here.line != line) // it is over already
            return MC_DISPATCH_OK;
        bank.end_in_the_middle(here);
        return MC_DISPATCH_STOP;
    }
    // Another line: this one was settled the first time, and there was no room for what asks for the next one.
    if (message->kind != start && here.line == line)
        bank.settle(here, message->kind == done      ? Outcome::done
                          : message->kind == refused ? Outcome::refused
                                                     : bank.outcome_of(line));
    if (here.line != no_line)
        bank.ask(here);
    return MC_DISPATCH_OK;
}

void Bank::settle(Teller &teller, Outcome outcome) {
    if (std::exchange(outcomes_[teller.line], outcome) != Outcome::none)
        give_up("a transfer has two outcomes");
    const int64_t now = mc_now();
    Tally &tally = tallies_.mine();
    tally.count(outcome);
    tally.count_latency(static_cast<uint64_t>(now - teller.began_ns));
    teller.began_ns = now;
    take_next(teller);
}

void Bank::take_next(Teller &teller) {
    if (teller.line != no_line && teller.line + 1 < teller.end) {
        ++teller.line;
        return;
    }
    const uint64_t first = next_line_.fetch_add(lines_at_once_, std::memory_order_relaxed);
    if (first < lines_.size()) {
        teller.line = first;
        teller.end = std::min<uint64_t>(first + lines_at_once_, lines_.size());
        return;
    }
    teller.line = no_line;
    // release: the clerk, who sees it, sees what was done before.
    open_tellers_.fetch_sub(1, std::memory_order_release);
}

void Bank::ask(Teller &teller) {
    const uint64_t line = teller.line, site = line + 1;
    if (!faults_.on)
        return staged(__mc_machine_emit_request(accounts_[lines_[line].from], transfer, line, 0, site));
    const Id relay = relays_[line % relays].machine.load(std::memory_order_acquire);
    const Fault fault = faults_.of(line);
    const bool again = std::exchange(teller.asked, line) == line;
    if (again)
        tallies_.mine().waits_for_room.add();
    if (fault == Fault::mailbox_full && !again)
        fill_up(relay);
    if (fault == Fault::teller_stops)
        staged(__mc_machine_emit_send(teller.machine.load(std::memory_order_relaxed), stop_now, line, 0));
    staged(__mc_machine_emit_request(relay, transfer, line, 0, site));
}

// By direct calls, which happen at once: until one is rejected. The relay may run meanwhile, and be as fast.
void Bank::fill_up(Id relay) {
    const Envelope nothing = {noise, 0, 0, 0, no_line, 0, 0, 0, 0};
    for (uint32_t i = 0; i < 100 * relay_room; ++i)
        switch (mc_machine_runtime_enqueue(&machines_, relay, &nothing)) {
        case MC_MAILBOX_ENQUEUE_OK:
            break;
        case MC_MAILBOX_ENQUEUE_FULL:
            return tallies_.mine().count(Fault::mailbox_full);
        default: // it has ended
            return;
        }
}

// Its request is under way, or has just ended, and the answer is in the mailbox that is about to go. The successor is told what
// has become of it by whoever is second, we here or request_ended, which is called once for each request.
void Bank::end_in_the_middle(Teller &teller) {
    tallies_.mine().count(Fault::teller_stops);
    const uint64_t line = teller.line;
    const Id successor = new_teller(teller);
    const uint32_t ours = teller_ended | teller.number << teller_shift;
    // acq_rel: the second one sees what the first one has done.
    if ((fates_[line].fetch_or(ours, std::memory_order_acq_rel) & (was_answered | was_lost)) != 0)
        send(successor, over, line);
}

void Bank::request_ended(Id teller, uint64_t line, mc_pending_cleanup_reason_t reason) {
    if (reason == MC_PENDING_CLEANUP_TIMEOUT)
        tallies_.mine().timeouts.add();
    const uint32_t ours = reason == MC_PENDING_CLEANUP_COMPLETED ? was_answered : was_lost;
    const uint32_t before = fates_[line].fetch_or(ours, std::memory_order_acq_rel); // as in end_in_the_middle
    if ((before & teller_ended) != 0)
        send(tellers_[before >> teller_shift].machine.load(std::memory_order_acquire), over, line);
    else if (reason == MC_PENDING_CLEANUP_TIMEOUT)
        send(teller, over, line); // if it ends meanwhile, it sees that we were here, and this is a dead letter
}

// Of a line whose request has ended.
Outcome Bank::outcome_of(uint64_t line) const {
    const uint32_t fate = fates_[line].load(std::memory_order_acquire);
    if ((fate & was_answered) == 0)
        return Outcome::undone;
    return (fate & said_done) != 0 ? Outcome::done : Outcome::refused;
}

// --- relays ----------------------------------------------------------------------------------------------------------------

mc_dispatch_result_t Bank::relay_handler(void *relay, Id, uint64_t, const Envelope *message, Txn *, uint64_t *code) {
    Relay &here = *static_cast<Relay *>(relay);
    Bank &bank = *here.bank;
    if (message->kind != transfer)
        return MC_DISPATCH_OK;
    const uint64_t line = message->payload0;
    const Fault fault = bank.fault_of(line);
    *code = injected_fault;
    if (fault == Fault::relay_faults_before) {
        bank.tallies_.mine().count(fault);
        return MC_DISPATCH_FAULT; // the hook replaces it
    }
    if (fault == Fault::relay_stops) {
        bank.tallies_.mine().count(fault);
        bank.new_relay(here); // no hook is called for a machine that stops
        return MC_DISPATCH_STOP;
    }
    staged(__mc_machine_emit_send(bank.accounts_[bank.lines_[line].from], transfer, line, message->reply_cap_id));
    if (fault != Fault::relay_faults_after)
        return MC_DISPATCH_OK;
    bank.tallies_.mine().count(fault);
    return MC_DISPATCH_FAULT;
}

// --- what is lost ------------------------------------------------------------------------------------------------------------

void Bank::dead_letter_hook(void *bank, Id, mc_dead_letter_reason_t reason, const Envelope *message) {
    Bank &here = *static_cast<Bank *>(bank);
    here.tallies_.mine().dead_letters[reason].add();
    // A credit came too late, and has been discarded. The amount goes back to where it came from.
    if (reason == MC_DEAD_LETTER_REPLY_CAP_UNKNOWN && message->kind == done) {
        const uint64_t line = message->payload0;
        here.send(here.accounts_[here.lines_[line].from], refund, line);
    }
}

void Bank::fault_hook(void *bank, Id machine, uint64_t) {
    Bank &here = *static_cast<Bank *>(bank);
    for (Relay &relay : here.relays_)
        if (relay.machine.load(std::memory_order_acquire) == machine)
            return here.new_relay(relay);
    for (Teller &teller : here.tellers_)
        if (teller.machine.load(std::memory_order_acquire) == machine) {
            // It asked a relay that had just ended, so nothing was sent. The next one asks anew.
            here.tallies_.mine().tellers_lost.add();
            teller.asked = no_line;
            return here.send(here.new_teller(teller), start, 0);
        }
    give_up("an account has faulted");
}

void Bank::request_hook(void *bank, Id teller, uint64_t, uint64_t site, mc_pending_cleanup_reason_t reason) {
    static_cast<Bank *>(bank)->request_ended(teller, site - 1, reason);
}

// --- making machines, and sending from outside their transactions --------------------------------------------------------------

Bank::Id Bank::spawn(uint32_t room, mc_machine_dispatch_txn_fn handler, void *context) {
    Id machine = 0;
    if (mc_machine_runtime_spawn(&machines_, room, &machine) == 0)
        give_up("no memory for a machine");
    mc_machine_runtime_bind_dispatch(&machines_, machine, handler, context);
    mc_machine_runtime_start(&machines_, machine);
    return machine;
}

Bank::Id Bank::new_teller(Teller &teller) {
    const Id machine = spawn(teller_room, teller_handler, &teller);
    teller.machine.store(machine, std::memory_order_release); // for request_ended, which sends there
    return machine;
}

void Bank::new_relay(Relay &relay) {
    relay.machine.store(spawn(relay_room, relay_handler, &relay), std::memory_order_release); // for tellers, likewise
}

void Bank::send(Id to, Kind kind, uint64_t line, uint64_t capability) {
    const Envelope message = {kind, 0, 0, 0, line, capability, 0, 0, 0};
    if (mc_machine_runtime_enqueue(&machines_, to, &message) == MC_MAILBOX_ENQUEUE_FULL)
        give_up("a mailbox is full that never should be");
}

} // namespace ledger
