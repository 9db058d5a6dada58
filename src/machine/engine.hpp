// A runtime's engine: machines, mail, requests, subscriptions, and the step that dispatches one envelope as a transaction.
//
// Callers: src/abi, for a runtime that it has found live; one thread at a time (Sync = Seq). Every function may be called
// from handlers, hooks and drop functions of the same engine, but for step inside a handler, which is refused.
//
// Users are called with nothing locked and everything consistent, and may have changed anything when they return: after
// such a call a machine is looked up anew by its id.
//
// The definitions are templates over the policy (policy.hpp), in headers by subject: lifecycle.hpp (start, stop, faults,
// states, the ends of requests), delivery.hpp (direct calls), commit.hpp (a transaction's effects), step.hpp. engine.cpp
// makes the engine for stepping of them.
#pragma once

#include "machine/boxes.hpp"
#include "machine/emit.hpp"
#include "machine/policy.hpp"
#include "machine/table.hpp"

#include <mc/machine.h>

namespace mc::machine {

struct Hooks {
    mc_dead_letter_hook_t dead_letter = nullptr;
    mc_fault_hook_t fault = nullptr;
    mc_pending_lifecycle_hook_t pending = nullptr;
    void *context = nullptr;
};

template <class Sync> class Engine {
public:
    using Machine = machine::Machine<Sync>;
    using Dispatch = machine::Dispatch<Sync>;
    using Envelope = mc_machine_envelope_t;
    using Txn = mc_machine_dispatch_txn_t;

    // handle: what descriptors' thunks get as their context. Null without memory.
    static Engine *create(void *handle) noexcept { return base::create<Engine>(handle); }
    // Everything ends, no hook is called. Inside a call that has called users it ends with that call; until then the
    // engine goes on, unknown to all.
    static void end(Engine *engine) noexcept;

    Hooks hooks;
    mc_machine_fault_policy_t fault_policy = MC_FAULT_POLICY_MARK_FAULTED;
    uint64_t timeout_steps = 0;

    // --- machines; false, or 0: unknown, or not in a state for it

    uint32_t spawn(uint32_t mailbox_bound) noexcept;
    bool start(uint32_t id) noexcept;
    bool stop(uint32_t id) noexcept;
    bool mark_faulted(uint32_t id) noexcept;
    mc_machine_lifecycle_t lifecycle(uint32_t id) const noexcept;
    bool set_state(uint32_t id, uint64_t state) noexcept;
    uint64_t state(uint32_t id) const noexcept;
    bool bind_function(uint32_t id, mc_machine_dispatch_txn_fn fn, void *context) noexcept;
    bool bind_thunk(uint32_t id, uint64_t thunk, void *context) noexcept;
    bool bind_descriptor(uint32_t id, uint64_t descriptor, uint64_t tag) noexcept;

    // --- mail, at once; the engine owns the envelope's boxes, whatever comes of it

    mc_mailbox_enqueue_result_t enqueue(uint32_t dst, const Envelope &envelope) noexcept;
    mc_mailbox_enqueue_result_t request(uint32_t src, uint32_t dst, const Envelope &given,
                                        uint64_t *out_pending) noexcept;
    mc_machine_reply_result_t reply(uint32_t src, uint64_t cap, const Envelope &given) noexcept;

    // --- stepping

    // fn, when it is not null, instead of the machine's own handler. slot: the calling task's; it is the same task's when
    // the handler returns.
    mc_machine_step_status_t step(mc_machine_dispatch_txn_fn fn, void *context, void **slot) noexcept;

    // --- numbers

    uint64_t ready_length() const noexcept { return ready_.length(); }
    uint32_t mailbox_length(uint32_t id) const noexcept;
    const Subscriptions &subscriptions() const noexcept { return subscriptions_; }
    const Pending &pending() const noexcept { return pending_; }
    uint64_t cleanups(uint32_t reason) const noexcept { return reason < 5 ? cleanups_[reason] : 0; }
    uint64_t stops() const noexcept { return stops_; }
    uint64_t boxes() const noexcept { return boxes_.size(); }

    Table<Sync> &table() noexcept { return table_; } // for tests

private:
    template <class Policy> friend class machine::Dispatch;
    template <class T, class... Args> friend T *base::create(Args &&...) noexcept;
    template <class T> friend void base::destroy(T *) noexcept;

    explicit Engine(void *handle) noexcept : handle_(handle) {}
    ~Engine();

    // A call that may call users: the engine stays until it has returned.
    class Use {
    public:
        explicit Use(Engine &engine) noexcept : engine_(engine) { ++engine_.users_; }
        ~Use() {
            if (--engine_.users_ == 0 && engine_.ended_)
                base::destroy(&engine_);
        }
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;

    private:
        Engine &engine_;
    };

    // The boxes of a dead letter that there was no memory to hold, while its hook runs. The hook may send one on, and have it
    // dispatched or lost once more, which drops it: then it is not dropped again. 0: none, or dropped.
    struct Unheld {
        void forget(uint64_t box) noexcept {
            payload = payload == box ? 0 : payload;
            origin = origin == box ? 0 : origin;
        }

        uint64_t payload;
        uint64_t origin;
        Unheld *outer;
    };

    // lifecycle.hpp
    void stop_machine(Machine &machine) noexcept;
    void fault_machine(uint32_t id, uint64_t code) noexcept;
    void end_rows(Machine &machine, mc_pending_cleanup_reason_t reason) noexcept;
    void end_row(Row *row, mc_pending_cleanup_reason_t reason) noexcept;
    void expire_rows() noexcept;
    void retire_state(Machine &machine, uint64_t state, uint64_t layout) noexcept;
    static uint64_t state_layout(const Machine &machine) noexcept;

    // delivery.hpp
    bool hold(const Envelope &envelope) noexcept;
    void drop(uint64_t word0, uint64_t word1) noexcept;
    void let_go(uint64_t word0, uint64_t word1) noexcept;
    void let_go(const Envelope &envelope) noexcept;
    void discard(const Envelope &envelope) noexcept;
    void undeliverable(uint32_t dst, mc_dead_letter_reason_t reason, const Envelope &given) noexcept;
    mc_dead_letter_reason_t refusal(uint32_t dst, Machine **found) const noexcept;
    mc_dead_letter_reason_t why_refused(uint32_t dst, const Machine *machine) const noexcept;
    void link_request(Row *row, uint32_t requester) noexcept;
    void wake(ReadyQueue<Sync> &queue, Machine &machine) noexcept;

    // commit.hpp
    struct Outcome;
    bool hold_effects(Dispatch &dispatch, const Txn &txn) noexcept;
    bool commit(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    bool check(Dispatch &dispatch, const Txn &txn) noexcept;
    bool check_subscriptions(const Txn &txn) noexcept;
    bool check_receiver(Dispatch &dispatch, uint32_t dst) noexcept;
    Row *claim(uint64_t cap) noexcept;
    bool check_filled(Dispatch &dispatch, const Txn &txn) noexcept;
    bool check_staged(Dispatch &dispatch) noexcept;
    void forget_check(Dispatch &dispatch, const Txn &txn) noexcept;
    bool allocate(Dispatch &dispatch, const Txn &txn) noexcept;
    void apply(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    void apply_state(const Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    void apply_sends(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    uint64_t deliver(Machine &machine, const Envelope &envelope, Outcome *outcome) noexcept;
    void deliver_request(Row *row, uint32_t src, Machine &machine, uint64_t kind, uint64_t payload0, uint64_t payload1,
                         Outcome *outcome) noexcept;
    void deliver_reply(Row *row, uint32_t src, Machine &machine, uint64_t kind, uint64_t payload0, uint64_t payload1,
                       Outcome *outcome) noexcept;
    void deliver_publication(Dispatch &dispatch, uint32_t staged, Outcome *outcome) noexcept;
    void roll_back_rows(Dispatch &dispatch) noexcept;
    void drop_effects(Dispatch &dispatch) noexcept;
    void drop_unheld_effects(const Txn &txn) noexcept;
    template <class Visit> bool for_each_destination(Dispatch &dispatch, const Txn &txn, Visit visit) noexcept;

    // step.hpp
    struct Handler;
    Machine *next_ready() noexcept;
    Dispatch *take_dispatch() noexcept;
    void give_back(Dispatch *dispatch) noexcept;
    Handler resolve(const Machine &machine, const Envelope &envelope) const noexcept;
    mc_machine_step_status_t conclude(Dispatch &dispatch, mc_dispatch_result_t result, uint64_t code,
                                      const Txn &txn) noexcept;
    void conclude_effects(Outcome &outcome, Dispatch &dispatch) noexcept;
    void drop_next_state(const Dispatch &dispatch, const Txn &txn, uint64_t current) noexcept;
    void settle_state(Dispatch &dispatch) noexcept;
    void drop_abandoned_state(Dispatch &dispatch) noexcept;

    void *const handle_;
    Table<Sync> table_;
    ReadyQueue<Sync> ready_;
    Boxes boxes_;
    Pending pending_;
    Subscriptions subscriptions_;
    base::List<Row, OfMachine> unclaimed_; // of requesters that no machine has been yet
    uint64_t tick_ = 0;
    uint64_t cleanups_[5] = {};
    uint64_t stops_ = 0;
    Dispatch *running_ = nullptr;  // whose handler runs
    bool reading_effects_ = false; // the arrays of a handler that has returned
    Dispatch *spare_ = nullptr;
    Unheld *unheld_ = nullptr; // the innermost
    uint32_t users_ = 0;
    bool ended_ = false;
};

extern template class Engine<Seq>;

} // namespace mc::machine
