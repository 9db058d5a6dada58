// For serial_test.cpp: random programs of attached machines that write down what happens.
#pragma once

#include "base/prng.hpp"
#include "base/spinlock.hpp"
#include "compose/test_attached.hpp"
#include "compose/test_serial_search.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace mc::compose::test {

inline constexpr uint64_t asked_bit = uint64_t{1} << 62; // in the number of a request from an asker

struct Shape {
    const char *name;
    Rules rules = {};
    uint32_t machines, room;      // the mailboxes hold about so many
    uint32_t generations, starts; // of each chain of messages; from outside, by each of two
    bool stops = false, shares = false, topics = false, asks = false;
    int64_t timeout_ns = 0;
    uint64_t timeout_steps = 0;
};

// What this thread is at. Looked at anew each time: a microthread may go on on another thread.
struct Here {
    uint64_t history = 0;
    Actor *executor = nullptr; // what handlers and hooks on this thread are
    Actor *caller = nullptr;   // whose call is under way
    Event *call = nullptr;
};
__attribute__((noinline)) inline Here &here() {
    static thread_local Here place;
    asm volatile("" : : : "memory");
    return place;
}

class History {
public:
    History(const Shape &shape, uint64_t seed) : shape_(shape), seed_(seed), serial_(++serials_) {
        mc_machine_runtime_init(&rt_);
        mc_machine_runtime_set_hooks(&rt_, dead_letter, fault, this);
        mc_machine_runtime_set_pending_hook(&rt_, pending);
        mc_machine_runtime_set_fault_policy(&rt_, shape.rules.fault_stops ? MC_FAULT_POLICY_MARK_STOPPED
                                                                          : MC_FAULT_POLICY_MARK_FAULTED);
        if (shape.rules.retry)
            cr_assert_eq(mc_machine_set_on_full(&rt_, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        if (shape.rules.discard)
            cr_assert_eq(mc_machine_set_on_late_reply(&rt_, MC_MACHINE_ON_LATE_REPLY_DISCARD), MC_OK);
        cr_assert_eq(mc_machine_set_request_timeout(&rt_, shape.timeout_ns), MC_OK);
        mc_machine_runtime_set_pending_timeout_steps(&rt_, shape.timeout_steps);
        known_.rules = shape.rules;
        model_.known = &known_;
        for (uint32_t i = 0; i < shape.machines; ++i) {
            mc_machine_id_t id = 0;
            const auto room = static_cast<uint32_t>(1 + (shape.room + i) % (2 * shape.room));
            cr_assert_eq(mc_machine_runtime_spawn(&rt_, room, &id), 1);
            bind(id);
            if (shape.asks && i % 3 == 1)
                cr_assert_eq(mc_machine_bind_poll(&rt_, id, 0), MC_OK);
            const bool runs = !shape.stops || i + 1 != shape.machines;
            if (runs)
                cr_assert_eq(mc_machine_runtime_start(&rt_, id), 1);
            model_.machines.push_back({});
            model_.machines.back().life = runs ? MC_MACHINE_RUNNING : MC_MACHINE_CREATED;
            model_.machines.back().bound = room;
        }
        last_.store(shape.machines, sync::relaxed);
        cr_assert_eq(mc_machine_attach(&rt_, 0), MC_OK);
    }
    ~History() { mc_machine_runtime_drop(&rt_); }
    History(const History &) = delete;
    History &operator=(const History &) = delete;

    void play() {
        const bool threads = mc_sim_active() == 0;
        std::deque<csp::testing::PosixThread> posix;
        std::vector<mc_task_t> tasks;
        auto begin = [&](bool on_thread, std::function<void()> body) {
            if (on_thread)
                posix.emplace_back(std::move(body));
            else
                tasks.push_back(csp::testing::start(std::move(body)));
        };
        for (uint64_t i = 0; i < 2; ++i)
            begin(threads && i == 0, [this, i, actor = new_actor()] { call_from_outside(*actor, i); });
        if (shape_.asks) {
            begin(threads, [this, actor = new_actor()] { ask_from_outside(*actor); });
            begin(threads, [this, actor = new_actor()] { poll(*actor); });
        }
        auto join = [&](size_t leave) {
            while (tasks.size() > (threads ? 0 : leave)) {
                const mc_task_t task = tasks.front();
                tasks.erase(tasks.begin());
                csp::testing::join(task);
            }
            while (posix.size() > (threads ? leave : 0))
                posix.pop_front();
        };
        gate_.store(1, sync::release);
        join(shape_.asks ? 1 : 0);
        cr_assert_eq(mc_machine_run_until_idle(&rt_, MC_FOREVER), MC_OK);
        over_.store(1, sync::release);
        join(0);
        while (shape_.timeout_ns != 0 && mc_machine_runtime_pending_len(&rt_) != 0)
            (void)mc_sleep(MC_MS / 20);
        int32_t detached = MC_E_BUSY; // while a hook is called, say
        while (detached == MC_E_BUSY)
            detached = mc_machine_detach(&rt_);
        cr_assert_eq(detached, MC_OK);
    }

    // How many events there were; 0: the search was given up.
    uint64_t check() {
        prepare();
        uint64_t events = 0;
        for (const Actor &actor : actors_)
            events += actor.events.size();
        model_.places.resize(actors_.size());
        Search search(actors_, 300'000);
        std::string end = "";
        if (search.run(model_, [&](const Model &model) { return agrees(model, &end); }))
            return events;
        if (search.gave_up())
            return 0;
        std::fprintf(stderr, "There is no serial order of %llu events. Where it came furthest:\n%s%s",
                     static_cast<unsigned long long>(events), search.stuck().c_str(), end.c_str());
        const char *simulated = std::getenv("MCRT_SEED");
        cr_assert(false, "%s%s MC_TEST_SEED=%llu build/dev/mc_test_compose --filter Serial/%s",
                  simulated != nullptr ? "MCRT_SEED=" : "", simulated != nullptr ? simulated : "",
                  static_cast<unsigned long long>(seed_), shape_.name);
    }

private:
    struct Plan {
        std::vector<Effect> effects;
        std::vector<std::function<void(Actor &)>> calls;
        mc_dispatch_result_t result = MC_DISPATCH_OK;
        bool before_staging = false; // it faults
        uint64_t code = 0, next = 0;
        bool has_next = false;
    };
    struct Filled {
        std::vector<mc_machine_outbox_effect_t> outbox;
        std::vector<mc_machine_reply_effect_t> replies;
        std::vector<mc_subscription_update_t> updates;
    };

    uint64_t now() { return clock_.fetch_add(1, sync::seq_cst) + 1; }
    uint64_t number() { return numbers_.fetch_add(1, sync::relaxed) + 1; }
    Actor *new_actor() {
        const base::SpinGuard guard(lock_);
        return &actors_.emplace_back();
    }
    Actor &executor() {
        Here &at = here();
        if (at.history != serial_)
            at = {serial_, new_actor(), nullptr, nullptr};
        return *at.executor;
    }
    void bind(uint32_t id) { mc_machine_runtime_bind_dispatch(&rt_, id, handle, this); }
    uint32_t last() const { return static_cast<uint32_t>(last_.load(sync::acquire)); }
    // Caps that are known everywhere.
    void share(uint64_t cap) {
        const base::SpinGuard guard(lock_);
        caps_.push_back(cap);
    }
    uint64_t shared(uint64_t random) {
        const base::SpinGuard guard(lock_);
        return caps_.empty() ? 0 : caps_[caps_.size() - 1 - random % std::min<size_t>(caps_.size(), 3)];
    }

    // --- calls, of the program's or a handler's

    template <class Call> uint64_t call(Actor &actor, Event event, Call body) {
        Event &e = actor.events.emplace_back(std::move(event));
        e.start = now();
        (void)executor();
        set_call(&actor, &e);
        const uint64_t result = body(e);
        set_call(nullptr, nullptr);
        e.end = now();
        e.result = result;
        return result;
    }
    static void set_call(Actor *actor, Event *event) {
        here().caller = actor;
        here().call = event;
    }
    static Event event(What what, uint32_t machine, uint64_t number = 0, uint64_t site = 0) {
        Event e;
        e.what = what;
        e.machine = machine;
        e.number = number;
        e.site = site;
        return e;
    }
    static Envelope envelope(uint64_t kind, uint64_t payload0, uint64_t payload1) {
        return {kind, 0, 0, 0, payload0, payload1, 0, 0, 0};
    }
    uint64_t send(Actor &actor, uint32_t dst, uint64_t payload1) {
        Event e = event(What::send, dst);
        e.envelope = envelope(1, number(), payload1);
        return call(actor, e, [&](Event &to) { return mc_machine_runtime_enqueue(&rt_, dst, &to.envelope); });
    }
    void request(Actor &actor, uint32_t src, uint32_t dst, uint64_t payload1, uint64_t site) {
        Event e = event(What::request, dst, 0, site);
        e.other = src;
        e.envelope = envelope(2, number(), payload1);
        e.envelope.origin_request_site_key = site;
        (void)call(actor, e,
                   [&](Event &to) { return mc_machine_runtime_request(&rt_, src, dst, &to.envelope, &to.number); });
    }
    void reply(Actor &actor, uint32_t src, uint64_t cap, uint64_t payload1) {
        Event e = event(What::reply, 0, cap);
        e.other = src;
        e.envelope = envelope(3, number(), payload1);
        (void)call(actor, e, [&](Event &to) { return mc_machine_runtime_reply(&rt_, src, cap, &to.envelope); });
    }
    void stop(Actor &actor, uint32_t id) {
        (void)call(actor, event(What::stop, id), [&](Event &) { return mc_machine_runtime_stop(&rt_, id); });
    }
    void mark_faulted(Actor &actor, uint32_t id) {
        (void)call(actor, event(What::mark_faulted, id),
                   [&](Event &) { return mc_machine_runtime_mark_faulted(&rt_, id); });
    }
    void set_state(Actor &actor, uint32_t id, uint64_t state) {
        (void)call(actor, event(What::set_state, id, state), [&](Event &) {
            mc_machine_runtime_set_state(&rt_, id, state);
            return 0;
        });
    }
    void start(Actor &actor, uint32_t id) {
        (void)call(actor, event(What::start, id), [&](Event &) { return mc_machine_runtime_start(&rt_, id); });
    }
    void spawn(Actor &actor, uint32_t room) {
        mc_machine_id_t id = 0;
        (void)call(actor, event(What::spawn, 0, room), [&](Event &) {
            cr_assert_eq(mc_machine_runtime_spawn(&rt_, room, &id), 1);
            return id;
        });
        bind(id);
        for (uint64_t known = last_.load(sync::relaxed);
             known < id && !last_.compare_exchange_strong(known, id, sync::acq_rel, sync::relaxed);)
            continue;
        start(actor, id);
    }
    void read(Actor &actor, uint32_t id, uint64_t random) {
        switch (random % 4) {
        case 0:
            (void)call(actor, event(What::read_life, id),
                       [&](Event &) { return mc_machine_runtime_lifecycle(&rt_, id); });
            break;
        case 1:
            (void)call(actor, event(What::read_state, id), [&](Event &) { return mc_machine_runtime_state(&rt_, id); });
            break;
        case 2:
            (void)call(actor, event(What::read_mail, id),
                       [&](Event &) { return mc_machine_runtime_mailbox_len(&rt_, id); });
            break;
        default:
            const uint64_t routing = random / 4 % 2;
            (void)call(actor, event(What::read_subscribed, id, 7, routing),
                       [&](Event &) { return mc_machine_runtime_subscription_contains(&rt_, id, 7, routing); });
        }
    }
    void read_pending(Actor &actor, uint64_t cap) {
        (void)call(actor, event(What::read_pending, 0, cap),
                   [&](Event &) { return mc_machine_runtime_pending_contains(&rt_, cap); });
    }

    // --- from outside

    void wait_for_the_gate() {
        while (gate_.load(sync::acquire) == 0)
            (void)mc_yield();
    }
    void call_from_outside(Actor &actor, uint64_t which) {
        base::Prng random(seed_ * 4 + which);
        auto somebody = [&] { return static_cast<uint32_t>(1 + random.next() % last()); };
        wait_for_the_gate();
        for (uint32_t i = 0; i < shape_.starts; ++i) {
            const uint64_t chance = random.next() % 64, left = shape_.generations;
            const uint32_t id = somebody();
            if (shape_.stops && chance < 12) {
                if (chance < 2)
                    stop(actor, id);
                else if (chance < 3)
                    mark_faulted(actor, id);
                else if (chance < 5)
                    set_state(actor, id, random.next() | 1);
                else if (chance < 7)
                    start(actor, id);
                else if (chance < 11)
                    spawn(actor, static_cast<uint32_t>(1 + random.next() % (2 * shape_.room)));
                else
                    (void)send(actor, last() + 2, left);
            } else if (shape_.shares && chance < 28) {
                if (const uint64_t cap = shared(random.next()); cap != 0) {
                    if (chance < 24)
                        reply(actor, id, cap, left);
                    else
                        read_pending(actor, cap);
                }
            } else if (chance < 33) {
                read(actor, id, random.next());
            } else if (chance < 38) {
                request(actor, somebody(), id, left, random.next() % 3);
            } else {
                (void)send(actor, id, left);
            }
            if (random.next() % 4 == 0)
                (void)mc_yield();
        }
    }
    void ask_from_outside(Actor &actor) {
        base::Prng random(seed_ * 4 + 2);
        wait_for_the_gate();
        for (uint32_t i = 0; i < shape_.starts; ++i) {
            const auto dst = static_cast<uint32_t>(1 + random.next() % last());
            Event &ask = actor.events.emplace_back(event(What::ask, dst));
            ask.envelope = envelope(2, number() | asked_bit, shape_.generations);
            ask.start = now();
            Envelope answer{};
            const bool patient = shape_.timeout_ns != 0; // then requests end by themselves
            const auto longest =
                static_cast<int64_t>(random.next() % (MC_MS / 10)); // about when there is an answer, or later
            const uint64_t ends = asks_ended_.load(sync::relaxed);
            const int32_t result = mc_machine_ask(&rt_, dst, 2, ask.envelope.payload0, ask.envelope.payload1,
                                                  patient ? MC_FOREVER : mc_after(longest), &answer);
            if (result == MC_E_TIMEDOUT && !patient && asks_ended_.load(sync::relaxed) == ends) {
                actor.events.pop_back(); // too late from the beginning: nothing was sent
                continue;
            }
            const uint64_t end = now();
            ask.end = end;
            if (result == MC_E_NOENT || result == MC_E_CLOSED || result == MC_E_FULL) {
                ask.result = result == MC_E_NOENT ? 1 : result == MC_E_CLOSED ? 2 : 3;
                ++asks_refused_;
                continue;
            }
            cr_assert(result == MC_OK || result == MC_E_TIMEDOUT, "%d", result);
            asks_ended_expected_ += result != MC_OK;
            Event &answered = actor.events.emplace_back(event(What::answered, dst, answer.pending_id));
            answered.start = ask.start;
            answered.end = end;
            answered.result = static_cast<uint32_t>(result);
            answered.envelope = answer;
        }
    }
    void poll(Actor &actor) {
        wait_for_the_gate();
        while (over_.load(sync::acquire) == 0) {
            mc_machine_polled polled;
            const uint64_t start = now();
            const int32_t status = mc_machine_poll(&rt_, mc_after(MC_MS / 10), &polled);
            if (status == MC_E_TIMEDOUT)
                continue;
            cr_assert_eq(status, MC_OK);
            Event &take = actor.events.emplace_back(event(What::take, polled.machine));
            take.start = start;
            take.end = now();
            take.result = polled.state;
            take.envelope = polled.envelope;
            Plan plan = decide(polled.machine, polled.state, polled.envelope);
            Event e = event(What::conclude, polled.machine);
            e.polled = true;
            for (Effect &effect : plan.effects) {
                effect.filled = effect.what == What::subscribe || effect.what == What::unsubscribe;
                if (effect.filled)
                    effect.machine = polled.machine;
                cr_assert_eq(stage(polled.token, &effect), MC_OK);
            }
            if (plan.has_next)
                cr_assert_eq(mc_txn_set_state(polled.token, plan.next), MC_OK);
            const bool aborts = plan.result != MC_DISPATCH_OK;
            e.effects = std::move(plan.effects);
            e.handler = aborts ? MC_DISPATCH_FAULT : MC_DISPATCH_OK;
            e.code = plan.code;
            e.has_next = plan.has_next;
            e.next_state = plan.next;
            (void)call(actor, std::move(e), [&](Event &) {
                return static_cast<uint32_t>(aborts ? mc_txn_abort(polled.token, plan.code)
                                                    : mc_txn_commit(polled.token));
            });
            (void)mc_yield();
        }
    }
    static int32_t stage(mc_txn_t token, Effect *e) {
        switch (e->what) {
        case What::send:
            return mc_txn_send(token, e->machine, e->kind, e->payload0, e->payload1);
        case What::request:
            return mc_txn_request(token, e->machine, e->kind, e->payload0, e->payload1, e->site, &e->number);
        case What::reply:
            return mc_txn_reply(token, e->number, e->kind, e->payload0, e->payload1);
        case What::publish:
            return mc_txn_publish(token, e->kind, e->number, e->payload0, e->payload1);
        case What::subscribe:
            return mc_txn_subscribe(token, e->kind, e->number);
        default:
            return mc_txn_unsubscribe(token, e->kind, e->number);
        }
    }

    // --- handlers

    static uint64_t mix(uint64_t a, uint64_t b) {
        uint64_t sum = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));
        return base::Prng::splitmix(sum);
    }
    Plan decide(uint32_t id, uint64_t state, const Envelope &env) {
        base::Prng random(mix(mix(seed_ * 64 + id, state), mix(env.payload0, env.kind)));
        auto once_in = [&](uint64_t n) { return random.next() % n == 0; };
        auto somebody = [&] { return static_cast<uint32_t>(1 + random.next() % last()); };
        Plan plan;
        const uint64_t left = env.payload1 & 255, passed = env.payload1 >> 8;
        const uint64_t next_left = left == 0 ? 0 : left - 1;
        uint64_t cap = shape_.shares && once_in(3) ? env.reply_cap_id : 0; // to be passed on
        auto add = [&](What what, uint32_t machine, uint64_t key, uint64_t kind) {
            const bool names = what == What::subscribe || what == What::unsubscribe;
            plan.effects.push_back({what, names || ((what == What::send) && once_in(4)), machine, key, kind,
                                    names ? 0 : number(), names ? 0 : next_left | cap << 8, random.next() % 3});
        };
        if (env.reply_cap_id != 0 && (cap == 0 || once_in(4)) && !once_in(5)) {
            add(What::reply, 0, env.reply_cap_id, 3);
            plan.effects.back().filled = once_in(4);
        }
        if (passed != 0 && once_in(2))
            add(What::reply, 0, passed, 3);
        if (cap != 0)
            share(cap);
        if (left != 0)
            for (uint64_t n = random.next() % 3 + (shape_.rules.retry ? 0 : random.next() % 2); n > 0; --n)
                add(once_in(4) ? What::request : What::send, once_in(8) ? id : somebody(), 0, 1);
        if (shape_.topics) {
            if (once_in(3))
                add(once_in(3) ? What::unsubscribe : What::subscribe, once_in(2) ? id : somebody(), random.next() % 2,
                    7);
            if (left != 0 && once_in(3))
                add(What::publish, 0, random.next() % 2, 7);
        }
        if (shape_.stops) {
            if (once_in(12))
                plan.calls.push_back([this, to = somebody(), next_left](Actor &a) { (void)send(a, to, next_left); });
            if (once_in(24))
                plan.calls.push_back(
                    [this, id, to = somebody(), next_left](Actor &a) { request(a, id, to, next_left, 4); });
            if (once_in(64))
                plan.calls.push_back([this, to = somebody()](Actor &a) { stop(a, to); });
            if (once_in(96))
                plan.calls.push_back([this, to = somebody()](Actor &a) { mark_faulted(a, to); });
            if (once_in(32))
                plan.calls.push_back(
                    [this, to = somebody(), next = random.next()](Actor &a) { set_state(a, to, next); });
            if (once_in(40)) {
                plan.result = once_in(3) ? MC_DISPATCH_STOP : MC_DISPATCH_FAULT;
                plan.before_staging = once_in(2);
                plan.code = 100 + random.next() % 9;
            }
        }
        plan.has_next = !once_in(8);
        plan.next = mix(state, env.payload0) | 1;
        return plan;
    }

    static mc_dispatch_result_t handle(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                       uint64_t *code) {
        return static_cast<History *>(context)->handle(id, state, *env, *txn, code);
    }
    mc_dispatch_result_t handle(uint32_t id, uint64_t state, const Envelope &env, Txn &txn, uint64_t *code) {
        Actor &actor = executor();
        const uint64_t start = close(actor), entered = now();
        Event &take = actor.events.emplace_back(event(What::take, id));
        take.start = start;
        take.end = entered;
        take.result = state;
        take.envelope = env;
        Plan plan = decide(id, state, env);
        if (plan.before_staging)
            plan.effects.clear();
        Filled &filled = *filled_of(actor);
        for (Effect &effect : plan.effects)
            effect.filled ? fill(filled, effect) : emit(&effect);
        for (const auto &direct : plan.calls)
            direct(actor);
        txn.outbox = filled.outbox.data();
        txn.outbox_len = static_cast<uint32_t>(filled.outbox.size());
        txn.replies = filled.replies.data();
        txn.replies_len = static_cast<uint32_t>(filled.replies.size());
        txn.subscriptions = filled.updates.data();
        txn.subscriptions_len = static_cast<uint32_t>(filled.updates.size());
        txn.has_next_state = plan.has_next;
        txn.next_state = plan.next;
        *code = plan.code;
        Event &e = actor.events.emplace_back(event(What::conclude, id));
        e.effects = std::move(plan.effects);
        e.handler = plan.result;
        e.code = plan.code;
        e.has_next = plan.has_next;
        e.next_state = plan.next;
        e.start = now();
        return plan.result;
    }
    // The last conclude is over, at the latest now. Its beginning is the earliest for what follows.
    uint64_t close(Actor &actor) {
        if (actor.events.empty())
            return 0;
        Event &e = actor.events.back();
        if (e.end == UINT64_MAX)
            e.end = now();
        return e.start;
    }
    Filled *filled_of(const Actor &actor) {
        const base::SpinGuard guard(lock_);
        std::unique_ptr<Filled> &of = filled_[&actor];
        of = std::make_unique<Filled>();
        return of.get();
    }
    static void fill(Filled &filled, const Effect &e) {
        Envelope env = envelope(e.kind, e.payload0, e.payload1);
        if (e.what == What::send) {
            filled.outbox.push_back({e.machine, env});
            filled.outbox.back().env.src = e.site; // as it is; the model is told
        } else if (e.what == What::reply) {
            filled.replies.push_back({e.number, env});
        } else {
            filled.updates.push_back({e.what == What::subscribe ? MC_SUBSCRIPTION_ADD : MC_SUBSCRIPTION_REMOVE,
                                      e.machine, e.kind, e.number});
        }
    }
    static void emit(Effect *e) {
        uint64_t staged = 0;
        if (e->what == What::send)
            staged = __mc_machine_emit_send(e->machine, e->kind, e->payload0, e->payload1);
        else if (e->what == What::request)
            staged = e->number = __mc_machine_emit_request(e->machine, e->kind, e->payload0, e->payload1, e->site);
        else if (e->what == What::reply)
            staged = __mc_machine_emit_reply(e->number, e->kind, e->payload0, e->payload1);
        else
            staged = __mc_machine_emit_publish(e->kind, e->number, e->payload0, e->payload1);
        cr_assert_neq(staged, 0);
    }

    // --- hooks

    void hook(Hook h) {
        if (Event *of = here().call; of != nullptr && here().history == serial_)
            return of->hooks.push_back(h);
        Actor &actor = executor();
        cr_assert(!actor.events.empty() && actor.events.back().what == What::conclude);
        actor.events.back().hooks.push_back(h);
    }
    static void dead_letter(void *self, mc_machine_id_t dst, mc_dead_letter_reason_t reason, const Envelope *env) {
        auto &history = *static_cast<History *>(self);
        if ((env->payload0 & asked_bit) != 0)
            (void)history.asks_dead_.fetch_add(1, sync::relaxed);
        else
            history.hook({Hook::dead, dst, reason, 0, 0, *env});
    }
    static void fault(void *self, mc_machine_id_t id, uint64_t code) {
        static_cast<History *>(self)->hook({Hook::fault, id, code, 0, 0, {}});
    }
    static void pending(void *self, mc_machine_id_t requester, uint64_t id, uint64_t site,
                        mc_pending_cleanup_reason_t reason) {
        auto &history = *static_cast<History *>(self);
        if (reason != MC_PENDING_CLEANUP_TIMEOUT)
            return history.hook({Hook::ended, requester, id, site, static_cast<uint64_t>(reason), {}});
        if (requester == 0) {
            (void)history.asks_ended_.fetch_add(1, sync::relaxed);
            return;
        }
        Actor *actor = &history.executor();
        if (here().caller != nullptr)
            actor = here().caller;
        const uint64_t start = here().caller == nullptr ? history.close(*actor) : actor->events.back().start;
        Event &e = actor->events.emplace_back(event(What::timeout, requester, id, site));
        e.hooks.push_back({Hook::ended, requester, id, site, static_cast<uint64_t>(reason), {}});
        e.start = start;
        e.end = history.now();
    }

    // --- afterwards

    // The order in which each machine got its mail, and the ids of what was asked in vain.
    void prepare() {
        std::vector<const Event *> takes;
        for (const Actor &actor : actors_)
            for (const Event &e : actor.events)
                if (e.what == What::take)
                    takes.push_back(&e);
        std::sort(takes.begin(), takes.end(), [](const Event *a, const Event *b) { return a->end < b->end; });
        std::map<uint64_t, uint64_t> ids; // of what was asked
        for (const Event *e : takes) {
            std::vector<uint64_t> &all = known_.taken[e->machine];
            if (!shape_.rules.retry || all.empty() || all.back() != e->envelope.payload0)
                all.push_back(e->envelope.payload0);
            known_.taken_at_all.insert(e->envelope.payload0);
            if ((e->envelope.payload0 & asked_bit) != 0)
                ids[e->envelope.payload0] = e->envelope.reply_cap_id;
        }
        uint64_t nobodys = asked_bit; // never given out
        for (Actor &actor : actors_)
            for (size_t i = 0; i + 1 < actor.events.size(); ++i) {
                Event &ask = actor.events[i];
                if (ask.what != What::ask || ask.result != 0)
                    continue;
                const auto found = ids.find(ask.envelope.payload0);
                ask.number = found != ids.end() ? found->second : ++nobodys;
                Event &answered = actor.events[i + 1];
                if (answered.number == 0)
                    answered.number = ask.number;
            }
        cr_assert_eq(asks_dead_.load(sync::relaxed), asks_refused_);
        cr_assert_eq(asks_ended_.load(sync::relaxed), asks_ended_expected_);
    }
    bool agrees(const Model &model, std::string *end) const {
        auto equal = [&](const char *what, uint64_t id, uint64_t is, uint64_t expected) {
            if (is != expected)
                *end = std::string("  ") + what + " " + std::to_string(id) + " is " + std::to_string(is) + ", not " +
                       std::to_string(expected) + "\n";
            return is == expected;
        };
        bool good = true;
        for (uint32_t id = 1; id < model.machines.size(); ++id) {
            const Model::Machine &m = model.machines[id];
            good = good &&
                   equal("lifecycle", id, mc_machine_runtime_lifecycle(&rt_, id), static_cast<uint64_t>(m.life)) &&
                   equal("state", id, mc_machine_runtime_state(&rt_, id), m.state) &&
                   equal("mailbox", id, mc_machine_runtime_mailbox_len(&rt_, id), m.mail.size());
            if (good && m.life == MC_MACHINE_RUNNING && !m.mail.empty()) { // then it waits for room
                const Model::Machine &of = model.machines[m.short_of];
                good = equal("forgotten mail of", id,
                             m.short_of == 0 || (of.life != MC_MACHINE_CREATED && of.short_of == 0), 0);
            }
        }
        good = good && equal("pending", 0, mc_machine_runtime_pending_len(&rt_), model.requests.size()) &&
               equal("subscriptions", 0, mc_machine_runtime_subscription_len(&rt_), model.subscriptions.size()) &&
               equal("created", 0, mc_machine_runtime_pending_created_count(&rt_), model.created) &&
               equal("stops", 0, mc_machine_runtime_stopped_cleanup_count(&rt_), model.stops);
        for (uint32_t reason = 1; good && reason < 5; ++reason)
            good =
                equal("ends", reason,
                      mc_machine_runtime_pending_cleanup_count(&rt_, static_cast<mc_pending_cleanup_reason_t>(reason)),
                      model.ended[reason]);
        return good;
    }

    static inline uint64_t serials_ = 0;

    mc_machine_runtime_t rt_;
    const Shape shape_;
    const uint64_t seed_;
    const uint64_t serial_;
    Known known_;
    Model model_;
    base::Spinlock lock_;
    std::deque<Actor> actors_;                                // guarded by lock_, each event its actor's
    std::map<const Actor *, std::unique_ptr<Filled>> filled_; // guarded by lock_
    std::vector<uint64_t> caps_;                              // guarded by lock_
    uint64_t asks_refused_ = 0, asks_ended_expected_ = 0;     // the asker's
    // any thread (atomic)
    sync::atomic<uint64_t> clock_{0}, numbers_{0}, last_{0}, gate_{0}, over_{0}, asks_dead_{0}, asks_ended_{0};
};

} // namespace mc::compose::test
