// Random histories of calls, handlers and steps, side by side with a sequential reference (test_model.hpp): the same answers,
// the same envelopes, the same hooks in the same order, the same state afterwards; and a ledger of boxes, payloads and
// tokens of states: after each call those live that the reference says, and each is dropped once, by its layout.
#include "machine/test_machine.hpp"
#include "machine/test_model.hpp"

#include <cinttypes>
#include <cstdlib>

using namespace mc::machine::test;

namespace {

constexpr uint64_t payload_layout = 4002;

Memory memory;
std::map<uint64_t, uint64_t> live_boxes; // with their layouts

uint64_t new_box(uint64_t layout) {
    const int64_t allowed = std::exchange(memory.allowed, INT64_MAX),
                  fails_at = std::exchange(memory.fails_at, INT64_MAX);
    const uint64_t calls = memory.calls, made = box();
    memory.allowed = allowed; // this one is not the library's
    memory.fails_at = fails_at;
    memory.calls = calls;
    live_boxes[made] = layout;
    return made;
}
void give_back(uint64_t the_box) {
    live_boxes.erase(the_box);
    __mc_free(reinterpret_cast<void *>(static_cast<uintptr_t>(the_box)));
}
template <uint64_t layout> void drop_of_history(void *block) {
    const auto found = live_boxes.find(reinterpret_cast<uintptr_t>(block));
    cr_assert(found != live_boxes.end(), "a box was dropped that does not live");
    cr_assert_eq(found->second, layout); // by its own
    live_boxes.erase(found);
}

// The library's side. What an action leaves open, it finds, and writes down there.
class Library {
public:
    Library(const Model &model, bool with_boxes) : model_(model), with_boxes_(with_boxes) {
        mc_machine_runtime_init(&rt);
        mc_machine_runtime_set_hooks(&rt, dead_letter, fault, this);
        mc_machine_runtime_set_pending_hook(&rt, pending);
        current = this;
    }
    ~Library() { mc_machine_runtime_drop(&rt); }
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    void act(Action &a) {
        find_words(a);
        say("result", {result_of(a)});
    }
    uint64_t step(Plan &plan) {
        plan_ = &plan;
        return mc_machine_runtime_step_u64(word());
    }
    uint64_t word() const { return reinterpret_cast<uintptr_t>(&rt); }

    mc_machine_runtime_t rt;
    std::vector<std::string> log;
    bool handled = false;
    uint64_t descriptor = 0;
    static inline Library *current = nullptr;

    template <uint64_t next_tag>
    static mc_dispatch_result_t thunk(void *runtime, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                      uint64_t *code) {
        cr_assert(runtime == &current->rt);
        return handle(current, id, state, env, txn, code);
    }

private:
    void say(const char *what, std::initializer_list<uint64_t> all) { log.push_back(text(what, all)); }
    // What kind of token a machine's state is, as of the call before; 0: the program owns it.
    uint64_t tag_of(uint32_t id) const {
        return id < model_.now.machines.size() ? model_.now.machines[id].tag : first_tag(id);
    }
    // A state of this layout: as the number says, one that the machine has or had, none, or a new one.
    uint64_t choose_state(uint64_t number, uint64_t layout, std::initializer_list<uint64_t> had) {
        if (layout == 0 || !with_boxes_)
            return layout == 0 ? number : 0;
        for (const uint64_t token : had)
            if (number-- % 4 == 0 && live_boxes.count(token) != 0)
                return token;
        return number % 4 == 0 ? 0 : new_box(layout);
    }
    void find_words(Action &a) {
        if (a.what < What::send || a.what > What::publish)
            return;
        if (a.words == Words::fresh && with_boxes_) {
            a.payload0 = new_box(payload_layout);
            a.payload1 = owned | payload_layout;
        } else if (a.words == Words::received && got_ != nullptr) {
            a.payload0 = got_->payload0;
            a.payload1 = got_->payload1;
        } else if (a.words == Words::again && a.way != Way::direct) {
            a.payload0 = last0_;
            a.payload1 = last1_;
        }
    }
    uint64_t result_of(Action &a) {
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
            if (mc_machine_runtime_spawn(&rt, static_cast<uint32_t>(a.number), &id) != 1)
                return 0;
            if (first_tag(id) == 0)
                mc_machine_runtime_bind_dispatch(&rt, id, handle, this);
            else
                cr_assert_eq(mc_machine_runtime_bind_descriptor(&rt, id, descriptor, first_tag(id)), 1);
            return id;
        case What::state: {
            if (running_ != 0 && a.other % 2 == 0)
                a.machine = running_; // its own
            const uint64_t layout = layout_of_state(tag_of(a.machine)), has = mc_machine_runtime_state(&rt, a.machine);
            a.number = choose_state(a.number, layout, {has, a.machine == running_ ? in_hand_ : 0});
            const uint64_t set = mc_machine_runtime_set_state_u64(word(), a.machine, a.number);
            if (set == 0 && layout != 0 && a.number != 0 && a.number != in_hand_)
                give_back(a.number); // a new one, since who is stopped has none
            return set;
        }
        default:
            return 0;
        }
    }

    static mc_dispatch_result_t handle(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                       uint64_t *code) {
        auto *self = static_cast<Library *>(context);
        self->handled = true;
        self->log.push_back(text("handle", {id, state}, *env));
        self->outbox_.clear();
        self->requests_.clear();
        self->replies_.clear();
        self->updates_.clear();
        self->got_ = env;
        self->in_hand_ = state;
        self->running_ = id;
        self->last0_ = self->last1_ = 0;
        Plan &plan = *self->plan_;
        for (Action &a : plan.actions)
            if (a.way == Way::direct)
                self->act(a);
            else
                self->stage(a);
        self->choose_next(plan, id, *env);
        self->got_ = nullptr;
        self->in_hand_ = self->running_ = 0;
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
        txn->next_state_tag = plan.next_tag;
        *code = plan.code;
        return plan.result;
    }
    void choose_next(Plan &plan, uint32_t id, const Envelope &env) {
        if (plan.has_next == 0)
            return;
        const uint64_t tag = tag_of(id);
        const uint64_t then = Model::tag_after(tag, row_of(tag, env.kind), plan.next_tag);
        plan.next = choose_state(plan.next, layout_of_state(then), {in_hand_, mc_machine_runtime_state(&rt, id)});
    }
    void stage(Action &a) {
        find_words(a);
        const bool emitted = a.way == Way::emitted;
        Envelope e = envelope(a.kind, a.payload0, a.payload1);
        uint64_t staged = 1;
        switch (a.what) {
        case What::send:
            e.src = a.other;
            if (emitted)
                staged = __mc_machine_emit_send(a.machine, a.kind, a.payload0, a.payload1);
            else
                outbox_.push_back({a.machine, e});
            break;
        case What::ask:
            if (emitted)
                staged = __mc_machine_emit_request(a.machine, a.kind, a.payload0, a.payload1, a.site);
            else
                requests_.push_back({a.machine, a.number, a.site, e});
            break;
        case What::reply:
            if (emitted)
                staged = __mc_machine_emit_reply(a.number, a.kind, a.payload0, a.payload1);
            else
                replies_.push_back({a.number, e});
            break;
        case What::publish:
            staged = __mc_machine_emit_publish(a.kind, a.number, a.payload0, a.payload1);
            break;
        default:
            updates_.push_back({a.what == What::subscribe ? MC_SUBSCRIPTION_ADD : MC_SUBSCRIPTION_REMOVE, a.machine,
                                a.kind, a.number});
            return;
        }
        if (emitted)
            say("emit", {staged});
        if (staged != 0) {
            last0_ = a.payload0;
            last1_ = a.payload1;
        } else if (a.words == Words::fresh && mc::machine::is_box(a.payload0, a.payload1)) {
            give_back(a.payload0); // it is ours still
        }
    }
    static void dead_letter(void *self, mc_machine_id_t dst, mc_dead_letter_reason_t reason, const Envelope *env) {
        static_cast<Library *>(self)->log.push_back(text("dead", {dst, static_cast<uint64_t>(reason)}, *env));
    }
    static void fault(void *self, mc_machine_id_t id, uint64_t code) {
        static_cast<Library *>(self)->say("fault", {id, code});
    }
    static void pending(void *self, mc_machine_id_t requester, uint64_t id, uint64_t site,
                        mc_pending_cleanup_reason_t reason) {
        static_cast<Library *>(self)->say("request", {requester, id, site, static_cast<uint64_t>(reason)});
    }

    const Model &model_; // as of the call before
    const bool with_boxes_;
    Plan *plan_ = nullptr;
    const Envelope *got_ = nullptr;
    uint64_t in_hand_ = 0, last0_ = 0, last1_ = 0;
    uint32_t running_ = 0;
    std::vector<mc_machine_outbox_effect_t> outbox_;
    std::vector<mc_machine_request_effect_t> requests_;
    std::vector<mc_machine_reply_effect_t> replies_;
    std::vector<mc_subscription_update_t> updates_;
};

void begin_histories() {
    memory.install();
    mc_machine_runtime_register_payload_drop(payload_layout, drop_of_history<payload_layout>);
    mc_machine_runtime_register_payload_drop(token_layout, drop_of_history<token_layout>);
    mc_machine_runtime_register_thunk_meta(7200, Library::thunk<0>, 0);
    mc_machine_runtime_register_thunk_meta(7201, Library::thunk<1>, 1);
    mc_machine_runtime_register_thunk_meta(7202, Library::thunk<2>, 2);
    mc_machine_runtime_register_thunk_meta(7203, Library::thunk<3>, 3);
}
uint64_t descriptor_of_histories() {
    static const uint64_t id = [] {
        Bytes blob;
        blob.head("History", last_tag, 0, std::size(rows), 0);
        for (uint64_t tag = 1; tag <= last_tag; ++tag)
            blob.state(tag, layout_of_state(tag));
        for (const Row &row : rows)
            blob.row(row.tag, row.kind, 0, row.thunk, 0);
        return mc_machine_runtime_register_descriptor(blob.data(), blob.size());
    }();
    cr_assert_neq(id, 0);
    return id;
}

enum class Scarce { no, yes }; // memory

class History {
public:
    History(uint64_t seed, Scarce scarce, bool with_boxes = true)
        : seed_(seed), scarce_(scarce), prng_(seed), library_(model_, with_boxes) {
        live_boxes.clear();
        library_.descriptor = descriptor_of_histories();
        model_.policy = below(2) == 0 ? MC_FAULT_POLICY_MARK_FAULTED : MC_FAULT_POLICY_MARK_STOPPED;
        mc_machine_runtime_set_fault_policy(&library_.rt, model_.policy);
        model_.timeout = below(3) == 0 ? 1 + below(20) : 0;
        mc_machine_runtime_set_pending_timeout_steps(&library_.rt, model_.timeout);
    }
    History(const History &) = delete;
    History &operator=(const History &) = delete;

    void run(int calls) {
        for (int i = 0; i < 4; ++i)
            both(with(What::spawn, 0, 1 + below(6)));
        for (uint32_t id = 1; id <= 4; ++id)
            both(with(What::start, id, 0));
        make_plan();
        for (at_ = 0; at_ < calls; ++at_) {
            if (below(2) == 0)
                step();
            else
                both(call(false));
            compare();
        }
        mc_machine_runtime_drop(&library_.rt);
        cr_assert(live_boxes.empty(), "seed %" PRIu64 ": %zu boxes outlive their runtime", seed_, live_boxes.size());
    }

    uint64_t signature = 0;
    uint64_t failures = 0; // of allocations

private:
    uint64_t below(uint64_t n) { return prng_.next() % n; }
    uint32_t some_machine() { return static_cast<uint32_t>(below(model_.now.machines.size() + 1)); }
    uint64_t some_cap() {
        return below(4) == 0 ? below(40) : model_.now.next_id - std::min(model_.now.next_id, below(6));
    }
    static Action with(What what, uint32_t machine, uint64_t number) {
        Action a;
        a.what = what;
        a.machine = machine;
        a.number = number;
        return a;
    }

    // Plain words, a new box, one that lives somewhere, or, in a handler, the received one.
    void choose_words(Action *a, bool in_handler) {
        static constexpr Words choices[] = {Words::plain, Words::fresh, Words::fresh, Words::received, Words::again};
        a->words = choices[below(5)];
        a->payload0 = below(100);
        a->payload1 = below(100);
        const std::map<uint64_t, uint64_t> all = in_handler || below(3) != 0 ? decltype(all)() : model_.boxes();
        if (all.empty())
            return;
        const auto one = std::next(all.begin(), static_cast<std::ptrdiff_t>(below(all.size())));
        if (one->second != payload_layout)
            return;
        a->words = Words::plain;
        a->payload0 = one->first;
        a->payload1 = owned | payload_layout;
    }
    Action call(bool in_handler) {
        static constexpr What calls[] = {What::send, What::send,  What::send,  What::send,  What::ask,
                                         What::ask,  What::reply, What::reply, What::start, What::state};
        static constexpr What rare[] = {What::stop, What::fault, What::spawn, What::spawn};
        Action a = with(below(12) == 0 ? rare[below(4)] : calls[below(10)], some_machine(), some_cap());
        if (in_handler && below(4) == 0)
            a.what = What::state;
        a.other = some_machine();
        a.kind = below(last_kind + 1);
        a.site = below(3);
        if (a.what == What::spawn || a.what == What::state)
            a.number = below(64);
        if (a.what == What::spawn)
            a.number %= 6;
        choose_words(&a, in_handler);
        return a;
    }
    Action effect() {
        static constexpr What effects[] = {What::send,  What::send,    What::send,      What::ask,        What::ask,
                                           What::reply, What::publish, What::subscribe, What::unsubscribe};
        Action a = call(true);
        a.what = effects[below(9)];
        a.way = below(2) == 0 ? Way::emitted : Way::filled;
        a.number = some_cap();
        if (a.what == What::publish)
            a.way = Way::emitted;
        if (a.what == What::subscribe || a.what == What::unsubscribe)
            a.way = Way::filled;
        if (a.what == What::publish || a.way == Way::filled)
            a.kind = below(2);
        if (a.what == What::publish || a.what == What::subscribe || a.what == What::unsubscribe)
            a.number = below(2);
        if (a.what == What::ask)
            a.number = below(3) == 0 ? 1 + below(60) : 0; // of the handler's choice, or of the library's
        return a;
    }
    void make_plan() {
        plan_ = Plan();
        for (uint64_t n = below(10) == 0 ? below(16) : below(5); n > 0; --n)
            plan_.actions.push_back(below(4) == 0 ? call(true) : effect());
        if (below(8) == 0) { // its own state away, and perhaps back
            plan_.actions.push_back(with(What::state, 0, 3));
            plan_.actions.push_back(with(What::state, 0, 1));
        }
        plan_.result = below(8) == 0 ? MC_DISPATCH_FAULT : below(16) == 0 ? MC_DISPATCH_STOP : MC_DISPATCH_OK;
        plan_.code = below(9);
        plan_.has_next = below(2);
        plan_.next = below(64);
        plan_.next_tag = below(2) * below(last_tag + 1);
    }

    // The library's call, in which some allocation may fail. If one did, the reference may read how that ended.
    template <class Call> void of_library(Call call) {
        const uint64_t before = memory.failures;
        if (scarce_ == Scarce::yes && below(3) == 0) {
            if (below(2) == 0)
                memory.allowed = static_cast<int64_t>(below(4));
            else
                memory.fails_at = static_cast<int64_t>(memory.calls + 1 + below(4));
        }
        call();
        memory.allowed = memory.fails_at = INT64_MAX;
        failures += memory.failures - before;
        model_.told = memory.failures != before ? &library_.log : nullptr;
    }
    void both(Action a) {
        of_library([&] { library_.act(a); });
        model_.act(a);
    }
    void step() {
        uint64_t got = 0;
        library_.handled = false;
        of_library([&] { got = library_.step(plan_); });
        cr_assert_eq(got, model_.step(plan_, got), "seed %" PRIu64 ", call %d: a step", seed_, at_);
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
        for (const auto &s : now.subscriptions)
            same = same && mc_machine_runtime_subscription_contains(rt, static_cast<uint32_t>(s[0]), s[1], s[2]) == 1;
        cr_assert(same, "seed %" PRIu64 ", call %d: numbers", seed_, at_);
        for (const std::string &line : library_.log)
            for (const char c : line)
                signature = (signature ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        model_.log.clear();
        library_.log.clear();
        const std::map<uint64_t, uint64_t> expected = model_.boxes(); // the ledger
        cr_assert(live_boxes == expected, "seed %" PRIu64 ", call %d: %zu boxes live, not %zu", seed_, at_,
                  live_boxes.size(), expected.size());
        uint64_t blocks = expected.size();
        for (const Model::Machine &machine : now.machines)
            blocks += machine.has_mailbox;
        cr_assert_eq(live() - live_before_, blocks, "seed %" PRIu64 ", call %d: %" PRIu64 " mailboxes too many", seed_,
                     at_, live() - live_before_ - blocks);
    }

    const uint64_t seed_;
    const uint64_t live_before_ = live();
    const Scarce scarce_;
    mc::base::Prng prng_;
    Model model_;
    Library library_;
    Plan plan_;
    int at_ = 0;
};

// Histories that were wrong once, and histories from seed 1 on; or the one of MC_TEST_SEED. How many allocations failed in them; with many seeds some must.
uint64_t play(Scarce scarce) {
    begin_histories();
    const char *given = std::getenv("MC_TEST_SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
    const uint64_t all = (mc::testing::under_valgrind ? 333 : 20000) * uint64_t{mc::testing::scale()};
    const uint64_t many = given != nullptr ? 1 : all;
    uint64_t failures = 0;
    if (given == nullptr && scarce == Scarce::yes)
        History(230'061, scarce).run(60); // an id was passed over by a request that there was no memory for
    for (uint64_t seed = first; seed < first + many; ++seed) {
        const uint64_t before = live();
        uint64_t blocks = memory.blocks;
        {
            History history(seed, scarce);
            history.run(60);
            failures += history.failures;
        }
        cr_assert_eq(live(), before, "seed %" PRIu64 ": boxes or mailboxes are left", seed);
        if (seed != first) // the first makes what is made once
            cr_assert_eq(memory.blocks, blocks, "seed %" PRIu64 ": blocks are left", seed);
    }
    if (given == nullptr && scarce == Scarce::yes)
        cr_assert_gt(failures, many / 20); // else it tests nothing
    return failures;
}

} // namespace

// Goal: every history ends as the reference says, call by call; a box lives as long as somebody mentions it.
Test(MachineHistory, like_the_reference, .timeout = 600) { cr_assert_eq(play(Scarce::no), 0); }

// Goal: likewise while any allocation may fail: what a call could not do for want of memory it has not done at all, or it
// ended as if there were no room; a step that cannot commit is a fault, and nothing of it has happened.
Test(MachineHistory, without_memory, .timeout = 600) { (void)play(Scarce::yes); }

// Goal: stepping is deterministic: a seed gives the same history again.
Test(MachineHistory, the_same_again) {
    begin_histories();
    uint64_t last = 0;
    for (uint64_t seed = 1; seed < 50; ++seed) {
        uint64_t signatures[2];
        for (uint64_t &signature : signatures) {
            History history(seed, Scarce::no, false); // a box's address is another one each time
            history.run(200);
            signature = history.signature;
        }
        cr_assert_eq(signatures[0], signatures[1]);
        cr_assert_neq(signatures[0], last);
        last = signatures[0];
    }
}
