// A runtime's engine: machines, mail, requests, subscriptions, and the step that dispatches one envelope as a transaction.
//
// Callers: src/abi, for a runtime that it has found live; one thread at a time while it is stepped (Sync = Seq), any thread at any
// time while it is attached (Par), and then src/compose, whose host runs what is ready. Every function may be called from
// handlers, hooks and drop functions of the same engine, but for step inside a handler, which is refused.
//
// Users are called with nothing locked and everything consistent, and may have changed anything when they return: after
// such a call a machine is looked up anew by its id. But for the one whose handler runs: that stays where it is until the handler has
// returned, without an id when it has stopped.
//
// The definitions are templates over the policy (policy.hpp), in headers by subject: lifecycle.hpp (start, stop, faults,
// states, the ends of requests), delivery.hpp (direct calls), commit.hpp (a transaction's effects), step.hpp, and asking.hpp,
// which is for attached runtimes alone. engine.cpp makes the two engines of them. What is attached follows parties.hpp's rules
// for locks; where stepping and attached differ by more than locks, they are two branches of one function.
#pragma once

#include "base/guarded.hpp"
#include "machine/attached.hpp"
#include "machine/boxes.hpp"
#include "machine/emit.hpp"
#include "machine/parties.hpp"
#include "machine/policy.hpp"
#include "machine/table.hpp"

#include <mc/machine.h>

#include <type_traits>

namespace mc::machine {

struct Hooks {
    mc_dead_letter_hook_t dead_letter = nullptr;
    mc_fault_hook_t fault = nullptr;
    mc_pending_lifecycle_hook_t pending = nullptr;
    void *context = nullptr;
};

// What a program has chosen. Attached: immutable, but for what is atomic.
struct Choices {
    Hooks hooks;
    mc_machine_fault_policy_t fault_policy = MC_FAULT_POLICY_MARK_FAULTED;
    OnFull on_full = OnFull::fault;                 // attached alone
    OnLateReply on_late_reply = OnLateReply::fault; // likewise
    sync::atomic<uint64_t> timeout_steps{0};        // 0: none
    sync::atomic<int64_t> timeout_ns{0};            // likewise; attached alone

    void take(const Choices &from) noexcept {
        hooks = from.hooks;
        fault_policy = from.fault_policy;
        on_full = from.on_full;
        on_late_reply = from.on_late_reply;
        timeout_steps.store(from.timeout_steps.load(sync::relaxed), sync::relaxed);
        timeout_ns.store(from.timeout_ns.load(sync::relaxed), sync::relaxed);
    }
};

// What a runtime has, whatever it is driven by.
class Core : public Choices {
protected:
    explicit Core(void *handle) noexcept : handle_(handle) {}

    void *const handle_;
    Table table_;
    Boxes boxes_;
    Pending pending_;
    Subscriptions subscriptions_;
    base::List<Row, OfMachine> unclaimed_; // of requesters that no machine has been yet; attached: guarded by orphans_
    // any thread (atomic)
    sync::atomic<uint64_t> tick_{0}; // steps, where requests time out by them
    sync::atomic<uint64_t> stops_{0};

    template <class Policy> friend class Engine;
};

template <class Sync> class Engine : public Core {
public:
    using Dispatch = machine::Dispatch<Sync>;
    using Envelope = mc_machine_envelope_t;
    using Txn = mc_machine_dispatch_txn_t;

    // handle: what descriptors' thunks get as their context. Null without memory.
    static Engine *create(void *handle) noexcept { return base::create<Engine>(handle); }
    // Everything ends, no hook is called. Inside a call that has called users it ends with that call; until then the
    // engine goes on, unknown to all. Attached: nobody uses it any more.
    static void end(Engine *engine) noexcept;

    // An engine of the other kind that has all that `other` had, which is empty then, and ended by the caller. Nobody else is
    // about, and no handler runs; nothing is ready in one that is stepped. Null without memory: nothing has changed.
    template <class Other> static Engine *take_over(Engine<Other> &other, Host *host) noexcept;
    // A machine that was in a list; it may have stopped. Attached, that is of a runtime that is about to end.
    void forget(Machine *machine) noexcept {
        if (machine->id == 0)
            table_.destroy(machine);
    }

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
    bool bind_poll(uint32_t id, bool alone) noexcept;

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

    uint64_t ready_length() const noexcept {
        if constexpr (Sync::shared)
            return host_->ready_length();
        return ready_.length();
    }
    uint32_t mailbox_length(uint32_t id) const noexcept;
    const Subscriptions &subscriptions() const noexcept { return subscriptions_; }
    const Pending &pending() const noexcept { return pending_; }
    uint64_t cleanups(uint32_t reason) const noexcept { return pending_.ended(reason); }
    uint64_t stops() const noexcept { return stops_.load(sync::relaxed); }
    uint64_t boxes() const noexcept { return boxes_.size(); }

    Table &table() noexcept { return table_; } // for tests

    // --- attached: by the host

    void wake_polled() noexcept;

    // What one thread at a time runs machines with is not used any more.
    void leave(Dispatch &dispatch) noexcept { pending_.leave(&dispatch.ids); }
    // A machine that is ready: dispatches its first envelope, if it still can be. IDLE: it could not. Afterwards the caller takes
    // dispatch.ready, which are machines that are ready now; others the host has been told of.
    mc_machine_step_status_t run(Dispatch &dispatch, Machine *machine, void **slot) noexcept;
    // The same in two, for a machine that is polled: its first envelope is in the dispatch, and what is emitted to that is carried out
    // by the second, with dispatch.committed, and dispatch.refusal where it is not. False: there was none.
    bool begin_polled(Dispatch &dispatch, Machine *machine) noexcept;
    void finish_polled(Dispatch &dispatch, Machine &machine, mc_dispatch_result_t result, uint64_t code,
                       const Txn &txn) noexcept;
    // Or given back, since it is not to be polled any more: it is ready, kept, or waits for mail, whatever has become of it.
    void give_back(Machine *machine) noexcept;
    // Ends the requests that have timed out. When the next one will, in steady nanoseconds; INT64_MAX: none.
    int64_t expire_by_clock(int64_t now_ns) noexcept;
    // Stepped: it is inside a call that has called users.
    bool is_busy() const noexcept { return running_ != nullptr || reading_effects_ || users_ != 0; }
    // Stepped: nothing is ready; drops what is stale.
    bool nothing_ready() noexcept { return !is_busy() && skip_stale(); }

    // --- attached: sending with patience, see delivery.hpp

    // FULL: the guest waits in the machine's list, with the envelope, and is out of it again (doing nothing) when that has been
    // delivered, or it is its turn to try again; or it does not wait, since there is no memory. Nothing is a dead letter.
    mc_mailbox_enqueue_result_t enqueue_or_wait(uint32_t dst, const Envelope &envelope, Guest &guest, bool has_turn,
                                                bool *waits) noexcept;
    // True: it is out of the list, and was not let go.
    bool leave_list(uint32_t dst, Guest &guest) noexcept;
    // Whose turn it was does not use it. Or nobody's: whoever there is room for goes on.
    void pass_on_room(uint32_t id) noexcept;
    void lose(uint32_t dst, mc_mailbox_enqueue_result_t why, const Envelope &envelope) noexcept;
    // Nobody dispatches any more: everybody who waits for room tries again.
    void release_all_short() noexcept;

    // --- attached: asking, see asking.hpp

    mc_mailbox_enqueue_result_t ask(uint32_t dst, const Envelope &given, Asker &asker) noexcept;
    bool withdraw(Asker &asker) noexcept;
    void take_answer(Asker &asker, Envelope *out) noexcept;
    void end_askers() noexcept;
    void refuse(uint64_t word0, uint64_t word1) noexcept;
    // Calls of users' functions, but for handlers, that are under way.
    uint32_t in_users() const noexcept { return in_users_.load(sync::relaxed); }
    // No hook is called from now on.
    void be_quiet() noexcept { quiet_.store(1, sync::relaxed); }
    // When the next request will time out by the clock; INT64_MAX: none. Calls nobody.
    int64_t next_timeout_ns() const noexcept;

private:
    template <class Policy> friend class machine::Dispatch;
    template <class Policy> friend class Engine;
    template <class T, class... Args> friend T *base::create(Args &&...) noexcept;
    template <class T> friend void base::destroy(T *) noexcept;

    explicit Engine(void *handle) noexcept : Core(handle) {}
    ~Engine();

    // Stepped: a call that may call users; the engine stays until it has returned. Attached, the caller sees to that.
    class Use {
    public:
        explicit Use(Engine &engine) noexcept : engine_(engine) {
            if constexpr (!Sync::shared)
                ++engine_.users_;
        }
        ~Use() {
            if constexpr (!Sync::shared)
                if (--engine_.users_ == 0 && engine_.ended_)
                    base::destroy(&engine_);
        }
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;

    private:
        Engine &engine_;
    };

    // A machine by its id, locked where that is called for. Null: there is none of that id.
    class Held {
    public:
        Held(const Engine &engine, uint32_t id) noexcept : machine_(engine.table_.find(id)) {
            if constexpr (Sync::shared) {
                if (machine_ == nullptr)
                    return;
                machine_->lock.lock();
                if (machine_->id == id) [[likely]]
                    return;
                machine_->lock.unlock(); // it has stopped meanwhile
                machine_ = nullptr;
            }
        }
        ~Held() { release(); }
        Held(const Held &) = delete;
        Held &operator=(const Held &) = delete;

        Machine *get() const noexcept { return machine_; }
        void release() noexcept {
            if constexpr (Sync::shared)
                if (machine_ != nullptr)
                    machine_->lock.unlock();
            machine_ = nullptr;
        }

    private:
        Machine *machine_;
    };

    // Machines that an operation has made ready. Stepped, they are in the queue at once; attached, with tell, when nothing is
    // locked any more.
    struct Nothing {};
    using Chain = std::conditional_t<Sync::shared, ReadyChain, Nothing>;
    struct Woken : Chain {
        [[no_unique_address]] Chain polled;
        bool requests = false; // requests were made
    };
    void tell(Woken &woken) noexcept {
        if constexpr (Sync::shared) {
            if (!woken.empty())
                host_->ready(woken.first);
            if (!woken.polled.empty()) [[unlikely]]
                host_->polled(woken.polled.first);
            if (woken.requests && timeout_ns.load(sync::relaxed) != 0) [[unlikely]]
                host_->watch_timeouts();
        }
    }

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
    bool end_machine(uint32_t id) noexcept;
    void fault_machine(uint32_t id, uint64_t code) noexcept;
    bool mark_as_faulted(uint32_t id) noexcept;
    void end_rows(Machine &machine, mc_pending_cleanup_reason_t reason) noexcept;
    void end_row(Row *row, mc_pending_cleanup_reason_t reason) noexcept;
    void end_removed(Row *row, mc_pending_cleanup_reason_t reason) noexcept;
    void end_all_removed(Row *rows, mc_pending_cleanup_reason_t reason) noexcept;
    Row *remove_rows(Machine &machine, mc_pending_cleanup_reason_t reason) noexcept;
    void expire_rows(uint32_t *part) noexcept;
    bool expire_oldest(uint32_t part, uint64_t tick, int64_t now_ns, int64_t *next_ns) noexcept;
    static uint64_t state_layout(const Machine &machine) noexcept;
    InHand *in_hand(const Machine &machine) const noexcept;
    uint64_t retire_state(const Machine &machine, uint64_t state, uint64_t layout) const noexcept;
    template <class Bind> bool bind(uint32_t id, Bind set) noexcept;
    uint64_t now_tick() const noexcept { return tick_.load(sync::relaxed); }
    __attribute__((always_inline)) inline int64_t now_ns() const noexcept;

    // delivery.hpp
    class Pair;
    bool hold(const Envelope &envelope) noexcept;
    void drop(uint64_t word0, uint64_t word1) noexcept;
    void let_go(uint64_t word0, uint64_t word1) noexcept;
    __attribute__((always_inline)) inline void let_go(const Envelope &envelope) noexcept;
    void let_go_boxes(const Envelope &envelope) noexcept;
    void drop_unheld(uint64_t word0, uint64_t word1) noexcept;
    void discard(const Envelope &envelope) noexcept;
    void undeliverable(uint32_t dst, mc_dead_letter_reason_t reason, const Envelope &given) noexcept;
    __attribute__((always_inline)) inline mc_dead_letter_reason_t refusal(uint32_t dst, Machine **found) const noexcept;
    mc_dead_letter_reason_t why_refused(uint32_t dst, const Machine *machine) const noexcept;
    __attribute__((always_inline)) inline void link_request(Row *row, uint32_t requester, Machine *machine) noexcept;
    __attribute__((always_inline)) inline void wake(Woken &woken, Machine &machine) noexcept;
    Row *reserve_row() noexcept;
    __attribute__((always_inline)) inline Row *prepare_request(Machine &machine, const Envelope &given,
                                                               Envelope *envelope) noexcept;
    __attribute__((always_inline)) inline Machine *take_short(Machine &machine) noexcept;
    Machine *take_who_fit(Machine &machine, bool all_who_fit) noexcept;
    Machine *take_all_short(Machine &machine) noexcept;
    void take_out(Machine &machine, Machine &before, Machine **taken) noexcept;
    bool deliver_for(Guest &guest, Machine &machine) noexcept;
    bool release_short(Machine *last, uint32_t room_of, Woken &woken) noexcept;
    void let_go_on(Machine *last, uint32_t room_of, Woken &woken) noexcept;
    void let_them_go(Machine *last, uint32_t room_of) noexcept;
    static bool somebody_fits(const Machine &machine) noexcept;
    bool wait_for_room(Machine &self, Machine &full, uint32_t needs, bool first) noexcept;
    static void join_short(Machine &self, Machine &full, bool first) noexcept;
    void forget_short() noexcept;

    // asking.hpp
    Row *take_asked(Asker &asker, uint64_t id, mc_pending_cleanup_reason_t reason) noexcept;
    bool end_asked(Asker &asker, uint64_t id, mc_pending_cleanup_reason_t reason) noexcept;
    bool answer(Asker &asker, uint64_t cap, Envelope &envelope, mc_machine_reply_result_t *result) noexcept;
    static void give_answer(Row &row, const Envelope &envelope) noexcept;
    bool may_answer(const Dispatch &dispatch, const Row &row, uint64_t word0, uint64_t word1) const noexcept;
    void give_box_away(Dispatch &dispatch, Row &row, uint64_t word0, uint64_t word1) noexcept;

    // commit.hpp
    struct Outcome;
    bool hold_effects(Dispatch &dispatch, const Txn &txn) noexcept;
    __attribute__((always_inline)) static inline bool is_one_effect(Dispatch &dispatch, const Txn &txn) noexcept;
    __attribute__((always_inline)) inline bool commit_one(Dispatch &dispatch, Machine &self, const Txn &txn,
                                                          Outcome *outcome) noexcept;
    bool commit_any(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    bool carry_out(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    bool gather(Parties &parties, Dispatch &dispatch, Machine &self, const Txn &txn,
                Subscriptions::Set *topics) noexcept;
    bool check(Dispatch &dispatch, const Txn &txn) noexcept;
    bool check_subscriptions(Dispatch &dispatch, const Txn &txn) noexcept;
    __attribute__((always_inline)) inline bool check_receiver(Dispatch &dispatch, uint32_t dst) noexcept;
    bool check_owner(Dispatch &dispatch, const Row &row, uint64_t word0, uint64_t word1) noexcept;
    static bool is_party(Dispatch &dispatch, uint32_t id, const Machine &machine) noexcept;
    Row *claim(Dispatch &dispatch, uint64_t cap) noexcept;
    bool check_filled(Dispatch &dispatch, const Txn &txn) noexcept;
    bool check_staged(Dispatch &dispatch) noexcept;
    void forget_check(Dispatch &dispatch, const Txn &txn) noexcept;
    bool allocate(Dispatch &dispatch, const Txn &txn) noexcept;
    void apply(Dispatch &dispatch, Machine &self, const Txn &txn, Outcome *outcome) noexcept;
    __attribute__((always_inline)) inline void apply_state(const Dispatch &dispatch, Machine &self, const Txn &txn,
                                                           Outcome *outcome) noexcept;
    __attribute__((always_inline)) inline void deliver(Machine &machine, const Envelope &envelope,
                                                       Outcome *outcome) noexcept;
    __attribute__((always_inline)) inline void deliver_request(Row *row, Machine &self, Machine &machine, uint64_t kind,
                                                               uint64_t payload0, uint64_t payload1,
                                                               Outcome *outcome) noexcept;
    __attribute__((always_inline)) inline void deliver_reply(Dispatch &dispatch, Row *row, Machine *machine,
                                                             uint64_t kind, uint64_t payload0, uint64_t payload1,
                                                             Outcome *outcome) noexcept;
    void deliver_publication(Dispatch &dispatch, uint32_t staged, Outcome *outcome) noexcept;
    void roll_back_rows(Dispatch &dispatch) noexcept;
    void drop_effects(Dispatch &dispatch) noexcept;
    void drop_unheld_effects(const Txn &txn) noexcept;

    // step.hpp
    struct Handler;
    bool skip_stale() noexcept;
    __attribute__((always_inline)) inline Machine *next_ready() noexcept;
    Dispatch *take_dispatch() noexcept;
    __attribute__((always_inline)) static inline void clear(Dispatch &dispatch) noexcept;
    __attribute__((always_inline)) static inline void zero(Txn *txn) noexcept;
    __attribute__((always_inline)) inline void give_back(Dispatch *dispatch) noexcept;
    __attribute__((always_inline)) inline Handler resolve(const Machine &machine,
                                                          const Envelope &envelope) const noexcept;
    __attribute__((always_inline)) inline Handler begin(Dispatch &dispatch, Machine &machine) noexcept;
    __attribute__((always_inline)) inline bool take_first(Dispatch &dispatch, Machine *machine, bool polled,
                                                          Handler *handler) noexcept;
    __attribute__((always_inline)) inline void after_dispatch(Dispatch &dispatch) noexcept;
    __attribute__((always_inline)) inline mc_dispatch_result_t call(Dispatch &dispatch, const Handler &handler,
                                                                    Txn *txn, uint64_t *code, void **slot) noexcept;
    __attribute__((always_inline)) inline mc_machine_step_status_t
    conclude(Dispatch &dispatch, Machine &machine, mc_dispatch_result_t result, uint64_t code, const Txn &txn) noexcept;
    mc_machine_step_status_t conclude_any(Dispatch &dispatch, Machine &self, mc_dispatch_result_t result, uint64_t code,
                                          const Txn &txn) noexcept;
    mc_machine_step_status_t conclude_shared(Dispatch &dispatch, Machine &machine, mc_dispatch_result_t result,
                                             uint64_t code, const Txn &txn) noexcept;
    __attribute__((always_inline)) inline void conclude_commit(Dispatch &dispatch, Machine &machine,
                                                               Outcome &outcome) noexcept;
    __attribute__((always_inline)) inline bool calls_later(const Dispatch &dispatch) const noexcept;
    static void leave_handler(Machine &machine) noexcept;
    void end_dispatch(Dispatch &dispatch, Machine &machine) noexcept;
    __attribute__((always_inline)) inline void conclude_effects(Outcome &outcome, Dispatch &dispatch) noexcept;
    void tell_completed(uint32_t requester, uint64_t id, uint64_t site) noexcept;
    void miss(Dispatch &dispatch) noexcept;
    void drop_next_state(const Dispatch &dispatch, const Txn &txn, uint64_t current) noexcept;
    __attribute__((always_inline)) inline void settle_state(Dispatch &dispatch) noexcept;
    static void settle_state(Dispatch &dispatch, const Machine &machine) noexcept;
    void drop_abandoned_state(Dispatch &dispatch) noexcept;

    // stepped
    ReadyQueue ready_;
    Dispatch *running_ = nullptr;  // whose handler runs
    bool reading_effects_ = false; // the arrays of a handler that has returned
    Dispatch *spare_ = nullptr;
    uint32_t users_ = 0;
    bool ended_ = false;

    // attached
    Host *host_ = nullptr;
    base::Spinlock orphans_;         // see parties.hpp; requests of requesters that are no machines, and new ids
    base::Spinlock short_lock_;      // who waits for room where
    base::Spinlock shared_ids_lock_; // before that of a part
    Pending::Block shared_ids_;      // of direct calls

    template <class Hook> bool hooked(Hook hook) const noexcept {
        return hook != nullptr && (!Sync::shared || quiet_.load(sync::relaxed) == 0);
    }
    sync::atomic<uint32_t> quiet_{0}; // attached; any thread
    // A hook, or a drop function; nothing is locked. What it throws is reported.
    template <class Call> void call_user(const char *what, Call call) noexcept {
        count_user(1);
        (void)base::call_guarded(what, call);
        count_user(~uint32_t{0});
    }
    void drop_token(uint64_t word0, uint64_t layout) noexcept {
        count_user(1);
        drop_box(word0, layout);
        count_user(~uint32_t{0});
    }
    void count_user(uint32_t change) noexcept {
        if constexpr (Sync::shared)
            (void)in_users_.fetch_add(change, sync::relaxed); // a hint
    }
    sync::atomic<uint32_t> in_users_{0}; // attached; any thread

    base::Spinlock unheld_lock_; // attached
    Unheld *unheld_ = nullptr;   // stepped: the innermost is first
};

extern template class Engine<Seq>;
extern template class Engine<Par>;

} // namespace mc::machine
