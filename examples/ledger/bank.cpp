// The runtime around the machines, and the clerk: the thread that runs the bank, and delivers what was delayed.
#include "ledger.hpp"

#include <mc/runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ledger {

// On any thread, in the middle of anything: nothing is tidied up.
void give_up(const char *why) {
    std::fprintf(stderr, "ledger: %s\n", why);
    std::_Exit(1);
}

Bank::Bank(const std::vector<Line> &lines, Faults faults) : lines_(lines), faults_(faults), outcomes_(lines.size()) {
    mc_machine_runtime_init(&machines_);
    // Before there is a fault of what nobody knows of.
    mc_machine_runtime_set_hooks(&machines_, dead_letter_hook, fault_hook, this);
    if (faults_.on) {
        fates_ = std::vector<std::atomic<uint32_t>>(lines.size());
        mc_machine_runtime_set_pending_hook(&machines_, request_hook);
        mc_machine_runtime_set_fault_policy(&machines_, MC_FAULT_POLICY_MARK_STOPPED);
        mc_machine_set_on_full(&machines_, MC_MACHINE_ON_FULL_RETRY);
        mc_machine_set_on_late_reply(&machines_, MC_MACHINE_ON_LATE_REPLY_DISCARD);
        mc_machine_set_request_timeout(&machines_, timeout_ns);
    }
    const auto room = static_cast<uint32_t>(std::max<uint64_t>(lines.size(), 1)); // a message of each transfer
    for (Id &account : accounts_) {
        account = spawn(room, account_handler, this);
        mc_machine_runtime_set_state(&machines_, account, opening_balance);
    }
    if (faults_.on)
        for (Relay &relay : relays_) {
            relay.bank = this;
            new_relay(relay);
        }
    tellers_ = std::vector<Teller>(std::min<uint64_t>(lines.size(), most_tellers));
    // No teller takes so many that another one has none.
    lines_at_once_ = std::clamp<uint64_t>(lines.size() / (8 * most_tellers), 1, most_lines_at_once);
    for (uint32_t i = 0; i < tellers_.size(); ++i) {
        tellers_[i].bank = this;
        tellers_[i].number = i;
        new_teller(tellers_[i]);
    }
}

Bank::~Bank() { mc_machine_runtime_drop(&machines_); }

uint64_t Bank::balances() const {
    uint64_t sum = 0;
    for (const Id account : accounts_)
        sum += mc_machine_runtime_state(&machines_, account);
    return sum;
}

const char *Bank::audit() const {
    std::array<int64_t, accounts> expected;
    expected.fill(opening_balance);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        if (outcomes_[i] == Outcome::none)
            return "a transfer has no outcome";
        if (outcomes_[i] == Outcome::done) {
            expected[lines_[i].from] -= lines_[i].amount;
            expected[lines_[i].to] += lines_[i].amount;
        }
    }
    for (std::size_t i = 0; i < accounts; ++i)
        if (mc_machine_runtime_state(&machines_, accounts_[i]) != static_cast<uint64_t>(expected[i]))
            return "an account has another balance than its transfers make";
    return nullptr;
}

void Bank::run(void (*progress)(void *user), void *user, int64_t every_ns) {
    if (const int32_t status = mc_machine_attach(&machines_, 0); status != MC_OK)
        give_up(mc_strerror(status));
    started_ns_ = mc_now();
    open_tellers_.store(static_cast<uint32_t>(tellers_.size()), std::memory_order_relaxed);
    for (Teller &teller : tellers_) {
        teller.began_ns = mc_now();
        take_next(teller);
        send(teller.machine.load(std::memory_order_relaxed), start, 0);
    }
    int64_t next_progress = progress == nullptr ? MC_FOREVER : mc_after(every_ns);
    for (;;) {
        int64_t next_delayed = MC_FOREVER;
        (void)deliver_delayed(&next_delayed);
        // Without faults, nothing moves only when all is over. With them, tellers wait for timeouts, and credits for the clerk,
        // who looks every now and then, since one may be handed to him while he waits.
        const int64_t look = faults_.on ? mc_after(timeout_ns / 20) : MC_FOREVER;
        const int32_t status = mc_machine_run_until_idle(&machines_, std::min(look, next_progress));
        if (status != MC_OK && status != MC_E_TIMEDOUT)
            give_up(mc_strerror(status));
        if (status == MC_OK) {
            // acquire: pairs with the release in take_next. With no teller left and nothing delayed, nothing moves again.
            const bool open = open_tellers_.load(std::memory_order_acquire) != 0;
            if (!open && !deliver_delayed(&next_delayed) && next_delayed == MC_FOREVER)
                break;
            if (open && !faults_.on)
                give_up("nothing moves, and transfers are left");
            (void)mc_sleep_until(std::min({look, next_progress, next_delayed}));
        }
        if (mc_now() >= next_progress) {
            progress(user);
            next_progress = mc_after(every_ns);
        }
    }
    if (const int32_t status = mc_machine_detach(&machines_); status != MC_OK)
        give_up(mc_strerror(status));
}

// Whether there was something; *next_ns: when there will be.
bool Bank::deliver_delayed(int64_t *next_ns) {
    if (!faults_.on)
        return false;
    std::vector<Delayed> due;
    {
        const std::lock_guard guard(delayed_mutex_);
        const int64_t now = mc_now();
        const auto first =
            std::partition(delayed_.begin(), delayed_.end(), [&](const Delayed &one) { return one.due_ns > now; });
        due.assign(first, delayed_.end());
        delayed_.erase(first, delayed_.end());
        for (const Delayed &one : delayed_)
            *next_ns = std::min(*next_ns, one.due_ns);
    }
    for (const Delayed &one : due)
        send(one.account, late_credit, one.line, one.capability);
    return !due.empty();
}

} // namespace ledger
