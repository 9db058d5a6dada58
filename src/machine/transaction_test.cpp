// Transactions: all or nothing, the order of effects, direct calls in handlers, steps within steps.
#include "machine/test_machine.hpp"

using namespace mc::machine::test;

namespace {

// Arrays that a handler fills in; they outlive the call.
struct Effects {
    std::vector<mc_machine_outbox_effect_t> outbox;
    std::vector<mc_subscription_update_t> subscriptions;
    std::vector<mc_machine_request_effect_t> requests;
    std::vector<mc_machine_reply_effect_t> replies;

    void fill(Txn &txn) const {
        txn.outbox = outbox.data();
        txn.outbox_len = static_cast<uint32_t>(outbox.size());
        txn.subscriptions = subscriptions.data();
        txn.subscriptions_len = static_cast<uint32_t>(subscriptions.size());
        txn.requests = requests.data();
        txn.requests_len = static_cast<uint32_t>(requests.size());
        txn.replies = replies.data();
        txn.replies_len = static_cast<uint32_t>(replies.size());
    }
};

} // namespace

// Goal: within a kind what the handler filled in comes before what it emitted; kinds come in their order.
Test(MachineTxn, effects_in_order) {
    World world;
    std::vector<std::pair<uint64_t, uint64_t>> got; // kind, src
    const uint32_t to = world.machine(
        [&](Call call) {
            got.push_back({call.env.kind, call.env.src});
            return MC_DISPATCH_OK;
        },
        32);
    const uint64_t cap1 = world.ask(to, to, envelope(1)), cap2 = world.ask(to, to, envelope(2));
    Effects effects;
    const uint32_t from = world.machine([&](Call) { return MC_DISPATCH_OK; });
    world.bind(from, [&](Call call) {
        cr_assert_eq(__mc_machine_emit_publish(70, 5, 0, 0), 1);
        cr_assert_eq(__mc_machine_emit_reply(cap2, 60, 0, 0), 1);
        cr_assert_neq(__mc_machine_emit_request(to, 40, 0, 0, 0), 0);
        cr_assert_eq(__mc_machine_emit_send(to, 20, 0, 0), 1);
        effects.replies.push_back({cap1, envelope(50)});
        effects.requests.push_back({to, 0, 0, envelope(30)});
        effects.outbox.push_back({to, envelope(10)});
        effects.outbox.back().env.src = 1234; // unmodified
        effects.subscriptions.push_back({MC_SUBSCRIPTION_ADD, to, 70, 5});
        effects.fill(call.txn);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(from, 1), 0);
    cr_assert_eq(world.run(), 10);
    const std::vector<std::pair<uint64_t, uint64_t>> expected = {
        {1, to}, {2, to}, {10, 1234}, {20, from}, {30, from}, {40, from}, {50, from}, {60, from}, {70, from}};
    cr_assert(got == expected);
}

// Goal: everything is checked together: two effects that fit one by one do not fit both, so neither happens, nor does
// anything else of the transaction.
Test(MachineTxn, all_effects_are_checked_together) {
    World world;
    const uint32_t to = world.sink(2), other = world.sink();
    const uint64_t cap = world.ask(to, other, envelope(1));
    cr_assert_eq(world.run(), 1);
    Effects effects;
    const uint32_t from = world.machine([&](Call call) {
        effects.outbox.push_back({to, envelope(10)});
        effects.outbox.push_back({other, envelope(10)});
        effects.subscriptions.push_back({MC_SUBSCRIPTION_ADD, call.id, 7, 7});
        effects.fill(call.txn);
        call.txn.has_next_state = 1;
        call.txn.next_state = 5;
        cr_assert_eq(__mc_machine_emit_send(to, 11, 0, 0), 1);
        cr_assert_eq(__mc_machine_emit_reply(cap, 12, 0, 0), 1); // the third to the same machine
        cr_assert_neq(__mc_machine_emit_request(other, 13, 0, 0, 0), 0);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(from, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_FAULTED);
    expect_told(world, "fault 3 code 1"); // no dead letter
    cr_assert_eq(world.mail(to), 0);
    cr_assert_eq(world.mail(other), 0);
    cr_assert_eq(world.state(from), 0);
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 0);
    cr_assert_eq(world.requests(), 1);
    cr_assert_eq(mc_machine_runtime_pending_contains(&world.rt, cap), 1);
    cr_assert_eq(mc_machine_runtime_pending_created_count(&world.rt), 1);
    cr_assert_eq(world.ended(MC_PENDING_CLEANUP_COMPLETED), 0);
}

// Goal: each effect that cannot be carried out rejects its transaction.
Test(MachineTxn, what_is_rejected) {
    using Fill = std::function<void(Effects &, Txn &, uint32_t self, uint64_t cap)>;
    const Fill rows[] = {
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.outbox.push_back({99, envelope(1)});
        }, // unknown
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.outbox.push_back({0, envelope(1)});
        }, // nobody
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.outbox.push_back({2, envelope(1)});
        }, // stopped
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.outbox.push_back({3, envelope(1)});
        }, // faulted
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.outbox.assign(2, {4, envelope(1)});
        }, // room for one
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.requests.push_back({99, 0, 0, envelope(1)});
        },
        [](Effects &e, Txn &, uint32_t, uint64_t cap) {
            e.requests.push_back({1, cap, 0, envelope(1)});
        }, // pending
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.requests.assign(2, {1, 500, 0, envelope(1)});
        }, // twice
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.replies.push_back({99, envelope(1)});
        },
        [](Effects &e, Txn &, uint32_t, uint64_t cap) {
            e.replies.assign(2, {cap, envelope(1)});
        }, // twice
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.replies.push_back({2, envelope(1)});
        }, // requester unknown
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.subscriptions.push_back({MC_SUBSCRIPTION_ADD, 99, 1, 1});
        },
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.subscriptions.push_back({MC_SUBSCRIPTION_ADD, 2, 1, 1});
        },
        [](Effects &e, Txn &, uint32_t, uint64_t) {
            e.subscriptions.push_back({static_cast<mc_subscription_op_t>(2), 1, 1, 1});
        },
        [](Effects &, Txn &txn, uint32_t, uint64_t) { txn.outbox_len = 1; }, // and no array
        [](Effects &, Txn &txn, uint32_t, uint64_t) { txn.requests_len = 1; },
        [](Effects &, Txn &txn, uint32_t, uint64_t) { txn.replies_len = 1; },
        [](Effects &, Txn &txn, uint32_t, uint64_t) { txn.subscriptions_len = 1; },
        [](Effects &, Txn &, uint32_t, uint64_t) { __mc_machine_emit_send(99, 1, 0, 0); },
        [](Effects &, Txn &, uint32_t, uint64_t) { __mc_machine_emit_request(99, 1, 0, 0, 0); },
        [](Effects &, Txn &, uint32_t, uint64_t) { __mc_machine_emit_reply(99, 1, 0, 0); },
        [](Effects &e, Txn &, uint32_t, uint64_t cap) { // one of each: the capability is used twice
            e.replies.push_back({cap, envelope(1)});
            __mc_machine_emit_reply(cap, 1, 0, 0);
        },
        [](Effects &, Txn &, uint32_t, uint64_t) { // a request of this transaction cannot be answered in it
            __mc_machine_emit_reply(__mc_machine_emit_request(1, 1, 0, 0, 0), 1, 0, 0);
        },
    };
    for (const Fill &fill : rows) {
        World world;
        const uint32_t good = world.sink(8), stopped = world.sink(), faulted = world.sink(), narrow = world.sink(1);
        cr_assert(good == 1 && stopped == 2 && faulted == 3 && narrow == 4);
        cr_assert(world.stop(stopped));
        cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, faulted), 1);
        const uint64_t cap = world.ask(good, narrow, envelope(1));
        (void)world.ask(77, narrow, envelope(1));
        cr_assert_eq(world.run(), 1);
        const uint64_t orphan = world.ask(77, narrow, envelope(1)); // of a requester that is unknown
        cr_assert_eq(orphan, 2);
        cr_assert_eq(world.run(), 1);
        (void)world.told();
        Effects effects;
        const uint32_t from = world.machine([&](Call call) {
            effects.outbox.push_back({good, envelope(1)});
            fill(effects, call.txn, call.id, cap);
            const Txn lengths = call.txn;
            effects.fill(call.txn);
            if (lengths.outbox_len + lengths.requests_len + lengths.replies_len + lengths.subscriptions_len != 0)
                call.txn = lengths;
            return MC_DISPATCH_OK;
        });
        cr_assert_eq(world.send(from, 1), 0);
        cr_assert_eq(world.step(), MC_STEP_FAULTED, "row %d", static_cast<int>(&fill - rows));
        expect_told(world, "fault 5 code 1");
        cr_assert_eq(world.mail(good), 0);
        cr_assert_eq(world.requests(), 2);
        cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 0);
        cr_assert_eq(world.ready(), 0);
        // What the check wrote down is gone: the same effects one by one do fit.
        cr_assert_eq(world.send(narrow, 1), 0);
        cr_assert_eq(world.reply(0, cap, envelope(1)), MC_REPLY_OK);
    }
}

// Goal: direct calls inside a handler act at once, and stay when it is rolled back; the machine's slot may move or go.
Test(MachineTxn, direct_calls_survive_rollback) {
    World world;
    const uint32_t to = world.sink(8);
    uint64_t asked = 0;
    const uint32_t victim = world.sink();
    const uint32_t from = world.machine([&](Call call) {
        for (int i = 0; i < 1000; ++i)
            (void)world.spawn();
        cr_assert_eq(world.send(to, 5), 0);
        cr_assert_eq(world.mail(to), 1);
        asked = world.ask(call.id, to, envelope(6));
        cr_assert(world.stop(victim));
        cr_assert_eq(world.lifecycle(victim), MC_MACHINE_STOPPED);
        return MC_DISPATCH_FAULT;
    });
    cr_assert_eq(world.send(from, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_FAULTED);
    cr_assert_eq(world.mail(to), 2);
    cr_assert_eq(world.lifecycle(1003), MC_MACHINE_CREATED);
    expect_told(world, "request 1 of 3 at 0 faulted; fault 3 code 0");
}

// Goal: a step inside a handler of the same runtime is refused; of another runtime it is made, and each handler emits
// to its own.
Test(MachineTxn, steps_within_steps) {
    World world, other;
    const uint32_t there = other.machine([&](Call call) {
        if (call.env.kind == 1)
            cr_assert_eq(__mc_machine_emit_send(call.id, 2, 0, 0), 1);
        return MC_DISPATCH_OK;
    });
    const uint32_t sink = world.sink();
    const uint32_t here = world.machine([&](Call) {
        cr_assert_eq(world.step(), MC_STEP_IDLE);
        cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, nullptr, nullptr), 0);
        cr_assert_eq(other.send(there, 1), 0);
        cr_assert_eq(other.step(), MC_STEP_DID_WORK);
        cr_assert_eq(other.mail(there), 1);
        cr_assert_eq(__mc_machine_emit_send(sink, 3, 0, 0), 1);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(here, 1), 0);
    cr_assert_eq(world.send(here, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(world.mail(sink), 1);
    cr_assert_eq(__mc_machine_emit_send(sink, 3, 0, 0), 0); // outside
    cr_assert_eq(__mc_machine_emit_request(sink, 3, 0, 0, 0), 0);
    cr_assert_eq(__mc_machine_emit_reply(1, 3, 0, 0), 0);
    cr_assert_eq(__mc_machine_emit_publish(1, 3, 0, 0), 0);
}

// Goal: emit refuses what no machine's id is, and stages nothing.
Test(MachineTxn, emit_refuses_large_ids) {
    World world;
    const uint32_t id = world.machine([&](Call) {
        cr_assert_eq(__mc_machine_emit_send((uint64_t{1} << 32) + 1, 1, 0, 0), 0);
        cr_assert_eq(__mc_machine_emit_request((uint64_t{1} << 32) + 1, 1, 0, 0, 0), 0);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
}

// Goal: hooks and drop functions may call everything, a step too.
Test(MachineTxn, hooks_call_back) {
    World world;
    Drops::begin();
    const uint32_t to = world.sink(1);
    int hooks = 0;
    world.in_hook = [&](const std::string &) {
        if (++hooks > 50)
            return;
        const uint32_t id = world.sink();
        cr_assert_eq(world.send(id, boxed(1, box())), 0);
        cr_assert_eq(world.send(99999, 4), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN); // another hook
        (void)world.step();
        (void)world.stop(id);
    };
    Drops::then = [&](uint64_t) {
        const uint32_t id = world.sink();
        cr_assert_eq(world.send(id, 1), 0);
        (void)world.ask(id, to, envelope(2));
        (void)world.step();
        (void)world.stop(id);
    };
    const uint64_t before = live();
    const uint32_t from = world.machine([&](Call call) {
        cr_assert_eq(__mc_machine_emit_send(to, 1, box(), owned | Drops::layout), 1);
        cr_assert_eq(__mc_machine_emit_send(call.id, 1, box(), owned | Drops::layout), 1);
        cr_assert_eq(__mc_machine_emit_send(99, 1, 0, 0), 1);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(from, boxed(1, box())), 0);
    cr_assert_eq(world.step(), MC_STEP_FAULTED);
    cr_assert(world.stop(from));
    world.in_hook = nullptr;
    (void)world.run();
    Drops::then = nullptr;
    mc_machine_runtime_drop(&world.rt);
    cr_assert_eq(live(), before);
    for (const auto &[dropped, times] : Drops::seen)
        cr_assert_geq(times, 1, "%llx", static_cast<unsigned long long>(dropped));
}

// Goal: a runtime that is dropped inside its own handler is unknown at once, and ends with the step.
Test(MachineTxn, dropped_inside_a_handler) {
    Drops::begin();
    World world;
    const uint64_t before = live();
    const uint32_t to = world.sink();
    const uint32_t from = world.machine([&](Call) {
        cr_assert_eq(__mc_machine_emit_send(to, 1, box(), owned | Drops::layout), 1);
        mc_machine_runtime_drop(&world.rt);
        cr_assert_eq(world.lifecycle(to), MC_MACHINE_STOPPED);
        cr_assert_eq(world.send(to, 1), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
        cr_assert_eq(__mc_machine_emit_send(to, 1, 0, 0), 1); // what it emits goes where it went
        mc_machine_runtime_init(&world.rt);                   // the storage serves another one already
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(from, boxed(1, box())), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    expect_told(world, "");
    cr_assert_eq(live(), before);
    cr_assert_eq(Drops::seen.size(), 2);
    cr_assert_eq(world.spawn(), 1);
}
