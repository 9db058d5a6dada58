// ledger: 1,000 accounts are machines, and a file of transfers between them is run by tellers, which are machines, too. Under
// injected faults no money is made or lost, and every transfer has one outcome, which is known.
//
//   teller ──transfer──> from ──credit──> to       a request, which the first account passes on, and the second one answers
//     ^                   │               │
//     ╰──────refused──────┴─────done──────╯
//
//   teller ──transfer──> relay ──transfer──> from  with --faults: what can break stands in between
//
// Why no money is made or lost, and no outcome is in doubt
//
// A dispatch is a transaction: what it does to its machine's state, and the messages that it sends, happen together or not at
// all.
//
//   1  `from` takes the amount off its balance and sends the credit in one transaction. So an amount is in a balance, or in
//      one message.
//   2  `to` adds the amount to its balance and answers the teller's request in one transaction. A request ends once: by an
//      answer, by its timeout, or with its teller. When it has ended, an answer comes too late, and its transaction is
//      discarded (MC_MACHINE_ON_LATE_REPLY_DISCARD), the credit with it. So the teller is told "done" exactly if the amount
//      was added, and a transfer whose request ended without an answer never will be done. Nobody has to ask twice.
//   3  A credit that was discarded is a dead letter. The hook that is told of it sends the amount back to `from`.
//   4  "Refused" is an answer, and nothing else: when it comes too late, there is nothing to be given back.
//
// Credits and refunds always arrive. They go to accounts, which never end, since an account's handler never faults or stops,
// and its transaction is never rejected:
//
//   - It sends to accounts only. A transfer is in one message to an account at a time, so mailboxes with room for a message of
//     each transfer are never full. (That is a bound: there are about as many as tellers.)
//   - It answers by a capability. One that has been used up is the case of 2.
//   - What it does beside its transaction are notes that say what is so, or else make no difference (Fate); and it hands a
//     credit to the clerk, to be delayed, in a transaction without effects, which cannot be rejected.
//
// What can end is a relay or a teller, and with it go messages that carry no money: transfers that have not reached `from`, and
// answers. A relay that is lost costs its transfers a timeout. With a teller its request ends; its successor and the hook that
// is told of each request's end settle between them what has become of the transfer: see Bank::end_in_the_middle.
//
// A handler runs again for the same message when a mailbox was full (MC_MACHINE_ON_FULL_RETRY). Of ours only tellers' do, since
// only they send to what may be full, a relay. So they count an outcome once, by the line that they are at.
//
// Files
//   ledger.hpp, machines.cpp   accounts, tellers, relays, and what becomes of them
//   bank.cpp                   the runtime around them: from the first transfer to the last balance
//   faults.hpp, tally.hpp      which faults, by a seed; counters and latencies, a set for each thread
//   file.cpp                   reading and making files
//   main.cpp, report.cpp       the command line; what is said
#pragma once

#include "faults.hpp"
#include "tally.hpp"

#include <mc/machine.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ledger {

constexpr uint32_t accounts = 1000;
constexpr uint64_t opening_balance = 10000;

// What a line of the file says. A message has the line's number, and whoever gets it looks here.
struct Line {
    uint32_t amount; // at most most_amount, which nobody has
    uint16_t from;
    uint16_t to;
};
constexpr uint32_t most_amount = UINT32_MAX;
static_assert(most_amount > accounts * opening_balance);

// --- file.cpp ---

constexpr uint64_t most_lines = uint64_t{1} << 31;

// The lines of a file; none: it could not be read, or is wrong, and *error says where and how.
std::optional<std::vector<Line>> read_file(const char *path, std::string *error);
// A file of so many transfers, some of which will be refused. False: errno says why not.
bool write_file(const char *path, uint64_t lines, uint64_t seed);

// --- machines.cpp, bank.cpp ---

class Bank {
public:
    Bank(const std::vector<Line> &lines, Faults faults);
    Bank(const Bank &) = delete;
    Bank &operator=(const Bank &) = delete;
    ~Bank();

    // On the default runtime's executors, until every transfer is over. progress(user) is called every `every_ns`; null: never.
    void run(void (*progress)(void *user), void *user, int64_t every_ns);

    // When nothing runs: all balances together; and whether each transfer has an outcome, and each account the balance that these
    // outcomes make. Null, or what is wrong.
    uint64_t balances() const;
    const char *audit() const;

    const Tallies &tallies() const { return tallies_; }
    int64_t started_ns() const { return started_ns_; }

private:
    using Envelope = mc_machine_envelope_t;
    using Txn = mc_machine_dispatch_txn_t;
    using Id = mc_machine_id_t;

    static constexpr uint32_t most_tellers = 256; // so many transfers are under way
    static constexpr uint32_t relays = 8;
    static constexpr uint32_t relay_room = 8; // less than tellers may send at once
    static constexpr uint32_t teller_room = 8;
    static constexpr uint64_t most_lines_at_once = 32; // that a teller takes for itself
    static constexpr uint64_t no_line = UINT64_MAX;
    static constexpr int64_t timeout_ns = 10 * MC_MS;

    enum Kind : uint64_t {
        transfer = 1, // payload0: the line; from a relay, payload1: the capability of the teller's request
        credit,       // payload1: the capability
        late_credit,  // likewise, when it has been delayed
        refund,
        done, // answers
        refused,
        start,    // a teller goes on with its line
        over,     // to a teller: its request has ended without an answer to it; payload0: the line
        stop_now, // to a teller: that is its fault; payload0: the line
        noise,    // fills a relay's mailbox
    };

    // Of a teller's place, which its machine has until it ends, and then the next one. By the machine's handler.
    struct alignas(64) Teller {
        Bank *bank = nullptr;
        std::atomic<Id> machine{0};
        uint32_t number = 0;
        uint64_t line = no_line; // that is under way
        uint64_t end = 0;        // of the lines that it has taken
        uint64_t asked = no_line;
        int64_t began_ns = 0;
    };
    struct Relay {
        Bank *bank = nullptr;
        std::atomic<Id> machine{0};
    };
    struct Delayed {
        int64_t due_ns;
        Id account;
        uint64_t line, capability;
    };
    // A word for each line, when there are faults: what is known of its request. The number of a teller that has ended is above.
    enum Fate : uint32_t {
        said_done = 1, // by the answer, which counts if the request was answered
        said_refused = 2,
        was_answered = 4,
        was_lost = 8,
        teller_ended = 16,
        teller_shift = 8
    };

    // --- machines.cpp; handlers and hooks, on executors
    static mc_dispatch_result_t account_handler(void *bank, Id self, uint64_t balance, const Envelope *message,
                                                Txn *txn, uint64_t *code);
    static mc_dispatch_result_t teller_handler(void *teller, Id self, uint64_t state, const Envelope *message, Txn *txn,
                                               uint64_t *code);
    static mc_dispatch_result_t relay_handler(void *relay, Id self, uint64_t state, const Envelope *message, Txn *txn,
                                              uint64_t *code);
    static void dead_letter_hook(void *bank, Id to, mc_dead_letter_reason_t reason, const Envelope *message);
    static void fault_hook(void *bank, Id machine, uint64_t code);
    static void request_hook(void *bank, Id teller, uint64_t request, uint64_t site,
                             mc_pending_cleanup_reason_t reason);

    void debit(uint64_t balance, uint64_t line, uint64_t capability, Txn *txn);
    void add(uint64_t balance, uint64_t line, uint64_t capability, Txn *txn);
    void delay(Id self, uint64_t line, uint64_t capability);
    void note(uint64_t line, Fate said);

    void settle(Teller &teller, Outcome outcome);
    void take_next(Teller &teller);
    void ask(Teller &teller);
    void fill_up(Id relay);
    void end_in_the_middle(Teller &teller);
    void request_ended(Id teller, uint64_t line, mc_pending_cleanup_reason_t reason);
    Outcome outcome_of(uint64_t line) const;

    void send(Id to, Kind kind, uint64_t line, uint64_t capability = 0);
    Id spawn(uint32_t room, mc_machine_dispatch_txn_fn handler, void *context);
    Id new_teller(Teller &teller);
    void new_relay(Relay &relay);
    Fault fault_of(uint64_t line) const { return faults_.on ? faults_.of(line) : Fault::none; }

    // --- bank.cpp; by the clerk, who runs the bank
    bool deliver_delayed(int64_t *next_ns);

    const std::vector<Line> &lines_;
    const Faults faults_;
    mutable mc_machine_runtime_t machines_; // its functions that only look say so

    std::array<Id, accounts> accounts_{};
    std::vector<Teller> tellers_;
    std::array<Relay, relays> relays_{};
    std::vector<std::atomic<uint32_t>> fates_;
    std::vector<Outcome> outcomes_; // of each line, written once, by its teller
    uint64_t lines_at_once_ = 1;
    int64_t started_ns_ = 0;

    alignas(64) std::atomic<uint64_t> next_line_{0};
    alignas(64) std::atomic<uint32_t> open_tellers_{0}; // that are not done

    std::mutex delayed_mutex_; // held for a moment only, as an executor's thread must
    std::vector<Delayed> delayed_;

    Tallies tallies_;
};

[[noreturn]] void give_up(const char *why);

} // namespace ledger
