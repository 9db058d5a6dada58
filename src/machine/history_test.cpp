// Random histories of calls, handlers and steps, side by side with a sequential reference (test_model.hpp): the same answers,
// the same envelopes, the same hooks in the same order, the same state afterwards; and a ledger of boxes: after each call
// those live that the reference says, and each is dropped once.
#include "machine/test_machine.hpp"
#include "machine/test_model.hpp"

#include <cinttypes>
#include <cstdlib>

using namespace mc::machine::test;

namespace {

// The library's side.
class Library {
public:
    Library() {
        mc_machine_runtime_init(&rt);
        mc_machine_runtime_set_hooks(&rt, dead_letter, fault, this);
        mc_machine_runtime_set_pending_hook(&rt, pending);
    }
    ~Library() { mc_machine_runtime_drop(&rt); }
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    uint64_t act(const Action &a) {
        Envelope e = envelope(a.kind, a.payload0, a.payload1);
        uint64_t pending_id = 0;
        mc_machine_id_t id = 0;
        switch (a.what) {
        case What::send:
            return mc_machine_runtime_enqueue(&rt, a.machine, &e);
        case What::ask:
            e.origin_request_site_key = a.site;
            (void)mc_machine_runtime_request(&rt, a.other, a.machine, &e, &pending_id);
            return pending_id;
        case What::reply:
            return mc_machine_runtime_reply(&rt, a.other, a.number, &e);
        case What::stop:
            return mc_machine_runtime_stop(&rt, a.machine);
        case What::start:
            return mc_machine_runtime_start(&rt, a.machine);
        case What::fault:
            return mc_machine_runtime_mark_faulted(&rt, a.machine);
        case What::spawn:
            if (mc_machine_runtime_spawn(&rt, static_cast<uint32_t>(a.number), &id) == 1)
                mc_machine_runtime_bind_dispatch(&rt, id, handle, this);
            return id;
        case What::state:
            return mc_machine_runtime_set_state_u64(reinterpret_cast<uintptr_t>(&rt), a.machine, a.number);
        default:
            return 0;
        }
    }
    uint64_t step(const Plan &plan) {
        plan_ = &plan;
        return mc_machine_runtime_step_u64(reinterpret_cast<uintptr_t>(&rt));
    }

    mc_machine_runtime_t rt;
    std::vector<std::string> log;
    bool handled = false;

private:
    static mc_dispatch_result_t handle(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                       uint64_t *code) {
        auto *self = static_cast<Library *>(context);
        self->handled = true;
        self->log.push_back("handle" + numbers({id, state}) + text_of(*env));
        self->outbox_.clear();
        self->requests_.clear();
        self->replies_.clear();
        self->updates_.clear();
        for (Action a : self->plan_->actions) {
            if (a.received)
                a.payload0 = env->payload0, a.payload1 = env->payload1;
            self->carry_out(a);
        }
        const Plan &plan = *self->plan_;
        txn->outbox = self->outbox_.data();
        txn->outbox_len = static_cast<uint32_t>(self->outbox_.size());
        txn->requests = self->requests_.data();
        txn->requests_len = static_cast<uint32_t>(self->requests_.size());
        txn->replies = self->replies_.data();
        txn->replies_len = static_cast<uint32_t>(self->replies_.size());
        txn->subscriptions = self->updates_.data();
        txn->subscriptions_len = static_cast<uint32_t>(self->updates_.size());
        txn->has_next_state = plan.has_next;
        txn->next_state = plan.next;
        *code = plan.code;
        return plan.result;
    }
    void carry_out(const Action &a) {
        Envelope e = envelope(a.kind, a.payload0, a.payload1);
        auto emitted = [&](uint64_t result) { log.push_back("emit" + numbers({result})); };
        switch (a.what) {
        case What::emit_send:
            return emitted(__mc_machine_emit_send(a.machine, a.kind, a.payload0, a.payload1));
        case What::emit_ask:
            return emitted(__mc_machine_emit_request(a.machine, a.kind, a.payload0, a.payload1, a.site));
        case What::emit_reply:
            return emitted(__mc_machine_emit_reply(a.number, a.kind, a.payload0, a.payload1));
        case What::publish:
            return emitted(__mc_machine_emit_publish(a.kind, a.number, a.payload0, a.payload1));
        case What::fill_send:
            e.src = a.other;
            return outbox_.push_back({a.machine, e});
        case What::fill_ask:
            return requests_.push_back({a.machine, a.number, a.site, e});
        case What::fill_reply:
            return replies_.push_back({a.number, e});
        case What::subscribe:
            return updates_.push_back({MC_SUBSCRIPTION_ADD, a.machine, a.kind, a.number});
        case What::unsubscribe:
            return updates_.push_back({MC_SUBSCRIPTION_REMOVE, a.machine, a.kind, a.number});
        default:
            log.push_back("result" + numbers({act(a)}));
        }
    }
    static void dead_letter(void *self, mc_machine_id_t dst, mc_dead_letter_reason_t reason, const Envelope *env) {
        static_cast<Library *>(self)->log.push_back("dead" + numbers({dst, static_cast<uint64_t>(reason)}) +
                                                    text_of(*env));
    }
    static void fault(void *self, mc_machine_id_t id, uint64_t code) {
        static_cast<Library *>(self)->log.push_back("fault" + numbers({id, code}));
    }
    static void pending(void *self, mc_machine_id_t requester, uint64_t id, uint64_t site,
                        mc_pending_cleanup_reason_t reason) {
        static_cast<Library *>(self)->log.push_back("request" +
                                                    numbers({requester, id, site, static_cast<uint64_t>(reason)}));
    }

    const Plan *plan_ = nullptr;
    std::vector<mc_machine_outbox_effect_t> outbox_;
    std::vector<mc_machine_request_effect_t> requests_;
    std::vector<mc_machine_reply_effect_t> replies_;
    std::vector<mc_subscription_update_t> updates_;
};

std::set<uint64_t> live_boxes;
void drop_of_history(void *block) {
    cr_assert_eq(live_boxes.erase(reinterpret_cast<uintptr_t>(block)), 1, "a box was dropped that does not live");
}

class History {
public:
    explicit History(uint64_t seed, bool with_boxes = true) : seed_(seed), with_boxes_(with_boxes), prng_(seed) {
        live_boxes.clear();
        library_.log.clear();
        policy_ = prng_.next() % 2 == 0 ? MC_FAULT_POLICY_MARK_FAULTED : MC_FAULT_POLICY_MARK_STOPPED;
        model_.policy = policy_;
        mc_machine_runtime_set_fault_policy(&library_.rt, policy_);
        model_.timeout = prng_.next() % 3 == 0 ? 1 + prng_.next() % 20 : 0;
        mc_machine_runtime_set_pending_timeout_steps(&library_.rt, model_.timeout);
    }
    History(const History &) = delete;
    History &operator=(const History &) = delete;
    ~History() {
        for (const Action &a : plan_.actions) // made, and never handed over
            if (mc::machine::is_box(a.payload0, a.payload1) && model_boxes().count(a.payload0) == 0)
                give_back(a.payload0);
    }

    void run(int calls) {
        for (int i = 0; i < 3; ++i)
            both({What::spawn, 0, 0, 1 + prng_.next() % 6, 0, 0, 0, 0, false});
        make_plan();
        for (uint32_t id = 1; id <= 3; ++id)
            both({What::start, id, 0, 0, 0, 0, 0, 0, false});
        for (at_ = 0; at_ < calls; ++at_) {
            if (prng_.next() % 2 == 0)
                step();
            else
                both(call());
            compare();
        }
        mc_machine_runtime_drop(&library_.rt);
        std::set<uint64_t> kept;
        for (const Action &a : plan_.actions)
            kept.insert(a.payload0);
        for (const uint64_t left : live_boxes)
            cr_assert_eq(kept.count(left), 1, "seed %" PRIu64 ": a box outlives its runtime", seed_);
        model_ = Model();
    }

    uint64_t signature = 0;

private:
    uint64_t below(uint64_t n) { return prng_.next() % n; }
    uint32_t some_machine() { return static_cast<uint32_t>(below(model_.now.machines.size() + 1)); }
    uint64_t some_cap() {
        return below(4) == 0 ? below(40) : model_.now.next_id - std::min(model_.now.next_id, below(6));
    }
    static void give_back(uint64_t the_box) {
        live_boxes.erase(the_box);
        __mc_free(reinterpret_cast<void *>(static_cast<uintptr_t>(the_box)));
    }
    std::set<uint64_t> model_boxes() const { return model_.boxes(); }

    // A plain word, a new box, or one that lives somewhere.
    void payload(Action *a, bool in_handler) {
        const uint64_t choice = below(in_handler ? 5 : 4);
        if ((choice == 1 || choice == 2) && with_boxes_) {
            a->payload0 = box();
            live_boxes.insert(a->payload0);
            a->payload1 = owned | layout;
        } else if (choice == 3 && !in_handler && !model_boxes().empty()) {
            const std::set<uint64_t> all = model_boxes();
            a->payload0 = *std::next(all.begin(), static_cast<std::ptrdiff_t>(below(all.size())));
            a->payload1 = owned | layout;
        } else if (choice == 4) {
            a->received = true;
        } else {
            a->payload0 = below(100);
            a->payload1 = below(100);
        }
    }
    Action call(bool in_handler = false) {
        static constexpr What calls[] = {What::send, What::send,  What::send,  What::send,  What::ask,
                                         What::ask,  What::reply, What::reply, What::start, What::state};
        Action a;
        a.what = calls[below(10)];
        if (below(12) == 0)
            a.what = below(3) == 0 ? What::stop : below(3) == 0 ? What::fault : What::spawn;
        a.machine = some_machine();
        a.other = some_machine();
        a.number = a.what == What::spawn ? below(6) : a.what == What::state ? below(100) : some_cap();
        a.kind = below(4);
        a.site = below(3);
        if (a.what <= What::reply)
            payload(&a, in_handler);
        return a;
    }
    void make_plan() {
        plan_ = Plan();
        bool named = below(2) == 0; // requests with ids of the handler's choice, or of the library's
        for (uint64_t n = below(5); n > 0; --n) {
            Action a = call(true);
            if (below(4) != 0) {
                static constexpr What effects[] = {What::emit_send, What::emit_send,  What::emit_ask, What::emit_reply,
                                                   What::publish,   What::fill_send,  What::fill_ask, What::fill_reply,
                                                   What::subscribe, What::unsubscribe};
                const bool had_payload = a.what <= What::reply;
                a.what = effects[below(10)];
                a.number = a.what == What::fill_ask ? (named ? 1 + below(60) : 0)
                           : a.what == What::publish || a.what == What::subscribe || a.what == What::unsubscribe
                               ? below(2)
                               : some_cap();
                a.kind = a.what >= What::publish ? below(2) : a.kind;
                const bool takes = a.what != What::subscribe && a.what != What::unsubscribe && a.what != What::publish;
                if (!takes && had_payload && mc::machine::is_box(a.payload0, a.payload1))
                    give_back(a.payload0);
                if (!takes)
                    a.payload0 = a.payload1 = a.received = 0;
            }
            plan_.actions.push_back(a);
        }
        plan_.result = below(8) == 0 ? MC_DISPATCH_FAULT : below(16) == 0 ? MC_DISPATCH_STOP : MC_DISPATCH_OK;
        plan_.code = below(9);
        plan_.has_next = below(2);
        plan_.next = below(100);
    }
    void both(const Action &a) {
        const uint64_t expected = model_.act(a), got = library_.act(a);
        cr_assert_eq(got, expected, "seed %" PRIu64 ", call %d, action %d", seed_, at_, static_cast<int>(a.what));
    }
    void step() {
        library_.handled = false;
        const uint64_t expected = model_.step(plan_), got = library_.step(plan_);
        cr_assert_eq(got, expected, "seed %" PRIu64 ", call %d: a step", seed_, at_);
        if (library_.handled)
            make_plan();
    }
    void compare() {
        for (size_t i = 0; i < std::max(model_.log.size(), library_.log.size()); ++i) {
            const std::string expected = i < model_.log.size() ? model_.log[i] : "nothing";
            const std::string got = i < library_.log.size() ? library_.log[i] : "nothing";
            cr_assert(got == expected, "seed %" PRIu64 ", call %d: \"%s\", not \"%s\"", seed_, at_, got.c_str(),
                      expected.c_str());
        }
        const mc_machine_runtime_t *rt = &library_.rt;
        for (uint32_t id = 1; id < model_.now.machines.size(); ++id) {
            const Model::Machine &machine = model_.now.machines[id];
            const bool same = mc_machine_runtime_lifecycle(rt, id) == static_cast<unsigned>(machine.life) &&
                              mc_machine_runtime_mailbox_len(rt, id) == machine.mail.size() &&
                              mc_machine_runtime_state(rt, id) == machine.state;
            cr_assert(same, "seed %" PRIu64 ", call %d: machine %u", seed_, at_, id);
        }
        const Model::State &now = model_.now;
        bool same = mc_machine_runtime_ready_len(rt) == now.ready.size() &&
                    mc_machine_runtime_pending_len(rt) == now.requests.size() &&
                    mc_machine_runtime_subscription_len(rt) == now.subscriptions.size() &&
                    mc_machine_runtime_pending_created_count(rt) == now.created &&
                    mc_machine_runtime_stopped_cleanup_count(rt) == now.stops;
        for (uint32_t reason = 0; reason < 5; ++reason)
            same = same && mc_machine_runtime_pending_cleanup_count(
                               rt, static_cast<mc_pending_cleanup_reason_t>(reason)) == now.ended[reason];
        for (const Model::Request &request : now.requests)
            same = same && mc_machine_runtime_pending_contains_identity(rt, request.id, request.site) == 1;
        for (const Model::Subscription &s : now.subscriptions)
            same = same && mc_machine_runtime_subscription_contains(rt, s.machine, s.kind, s.routing) == 1;
        cr_assert(same, "seed %" PRIu64 ", call %d: numbers", seed_, at_);
        for (const std::string &line : library_.log)
            for (const char c : line)
                signature = (signature ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        model_.log.clear();
        library_.log.clear();
        // The ledger. Boxes of the next plan are nobody's yet.
        std::set<uint64_t> expected = model_boxes();
        for (const Action &a : plan_.actions)
            if (mc::machine::is_box(a.payload0, a.payload1))
                expected.insert(a.payload0);
        cr_assert(live_boxes == expected, "seed %" PRIu64 ", call %d: %zu boxes live, not %zu", seed_, at_,
                  live_boxes.size(), expected.size());
    }

    static constexpr uint64_t layout = 4002;
    uint64_t seed_;
    bool with_boxes_;
    mc::base::Prng prng_;
    mc_machine_fault_policy_t policy_;
    Model model_;
    Library library_;
    Plan plan_;
    int at_ = 0;
};

} // namespace

// Goal: every history ends as the reference says, call by call; a box lives as long as somebody mentions it.
Test(MachineHistory, like_the_reference, .timeout = 600) {
    mc_machine_runtime_register_payload_drop(4002, drop_of_history);
    const char *given = std::getenv("MC_TEST_SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
    const uint64_t many =
        given != nullptr ? 1 : (mc::testing::under_valgrind ? 300 : 20000) * uint64_t{mc::testing::scale()};
    for (uint64_t seed = first; seed < first + many; ++seed) {
        const uint64_t before = live();
        {
            History history(seed);
            history.run(60);
        }
        cr_assert_eq(live(), before, "seed %" PRIu64 ": blocks are left", seed);
    }
}

// Goal: stepping is deterministic: a seed gives the same history again.
Test(MachineHistory, the_same_again) {
    mc_machine_runtime_register_payload_drop(4002, drop_of_history);
    uint64_t last = 0;
    for (uint64_t seed = 1; seed < 50; ++seed) {
        uint64_t signatures[2];
        for (uint64_t &signature : signatures) {
            History history(seed, false); // a box's address is another one each time
            history.run(200);
            signature = history.signature;
        }
        cr_assert_eq(signatures[0], signatures[1]);
        cr_assert_neq(signatures[0], last);
        last = signatures[0];
    }
}
