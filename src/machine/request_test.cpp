// Requests and replies: correlation, the ends of requests, timeouts, ids, and what each costs.
#include "machine/test_machine.hpp"

using namespace mc::machine::test;

namespace {

// A machine that keeps the last envelope it got.
uint32_t keeper(World &world, Envelope *last, uint32_t cap = 8) {
    return world.machine(
        [=](Call call) {
            *last = call.env;
            return MC_DISPATCH_OK;
        },
        cap);
}

} // namespace

// Goal: every field of a request and of its reply, sent directly, filled in and emitted: the runtime sets all but kind and
// payload, whatever the caller has put there.
Test(MachineRequest, correlation_fields) {
    enum Way { direct, filled, emitted };
    for (const Way way : {direct, filled, emitted}) {
        World world;
        Envelope request{}, reply{};
        const uint32_t server = keeper(world, &request), client = keeper(world, &reply), other = world.spawn();
        Envelope given{};
        std::memset(static_cast<void *>(&given), 0x77, sizeof given); // nonsense, to be replaced
        given.kind = 5;
        given.payload0 = 11;
        given.payload1 = 12;
        given.origin_request_site_key = 99;
        static mc_machine_request_effect_t requests[1];
        static mc_machine_reply_effect_t replies[1];
        Handler ask = [&](Call call) {
            requests[0] = {server, 0, 99, given};
            if (way == filled) {
                call.txn.requests = requests;
                call.txn.requests_len = 1;
            } else {
                cr_assert_eq(__mc_machine_emit_request(server, 5, 11, 12, 99), 1);
            }
            return MC_DISPATCH_OK;
        };
        if (way == direct) {
            cr_assert_eq(world.ask(client, server, given), 1);
        } else {
            cr_assert_eq(world.send(client, 1), 0);
            cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &ask), 1);
        }
        cr_assert_eq(mc_machine_runtime_pending_contains_identity(&world.rt, 1, 99), 1);
        cr_assert_eq(mc_machine_runtime_pending_contains_identity(&world.rt, 1, 98), 0);
        cr_assert_eq(mc_machine_runtime_pending_request_site(&world.rt, 1), 99);
        cr_assert_eq(mc_machine_runtime_pending_request_site(&world.rt, 2), 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        const Envelope expected_request = {5, client, 1, 0, 11, 12, 0, 0, 0};
        cr_assert_eq(std::memcmp(&request, &expected_request, sizeof request), 0, "way %d", way);
        given.kind = 6;
        given.payload0 = 21;
        given.payload1 = 22;
        Handler answer = [&](Call call) {
            replies[0] = {1, given};
            if (way == filled) {
                call.txn.replies = replies;
                call.txn.replies_len = 1;
            } else {
                cr_assert_eq(__mc_machine_emit_reply(1, 6, 21, 22), 1);
            }
            return MC_DISPATCH_OK;
        };
        if (way == direct) {
            cr_assert_eq(world.reply(server, 1, given), MC_REPLY_OK);
        } else {
            cr_assert_eq(world.send(server, 1), 0);
            cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &answer), 1);
        }
        expect_told(world, "request 1 of 2 at 99 completed");
        cr_assert_eq(world.run(), 1);
        const Envelope expected_reply = {6, server, 0, 1, 21, 22, 11, 12, 99};
        cr_assert_eq(std::memcmp(&reply, &expected_reply, sizeof reply), 0, "way %d", way);
        cr_assert_eq(world.requests(), 0);
        cr_assert_eq(mc_machine_runtime_pending_created_count(&world.rt), 1);
        cr_assert_eq(world.ended(MC_PENDING_CLEANUP_COMPLETED), 1);
        (void)other;
    }
}

// Goal: every result of a direct reply, what becomes of the capability, and the hooks.
Test(MachineRequest, results_of_replies) {
    World world;
    const uint32_t server = world.sink(32), client = world.spawn(1), faulted = world.sink(), stopped = world.sink();
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, faulted), 1);
    cr_assert(world.stop(stopped));
    const Envelope env = envelope(5);
    const uint64_t good = world.ask(client, server, env), second = world.ask(client, server, env),
                   of_faulted = world.ask(faulted, server, env), of_stopped = world.ask(stopped, server, env),
                   of_unknown = world.ask(77, server, env), of_nobody = world.ask(0, server, env);
    struct Row {
        uint64_t cap;
        int result;
        int kept;
        const char *told;
    };
    const Row rows[] = {
        {good, MC_REPLY_OK, 0, "request 1 of 2 at 0 completed"},
        {good, MC_REPLY_CAP_UNKNOWN, 0, "dead 0 capability kind 5"}, // once
        {second, MC_REPLY_FULL, 1, "dead 2 full kind 5"},
        {of_faulted, MC_REPLY_DEST_NOT_RUNNING, 0, "request 3 of 3 at 0 faulted; dead 3 faulted kind 5"},
        {of_faulted, MC_REPLY_CAP_UNKNOWN, 0, "dead 0 capability kind 5"},
        {of_stopped, MC_REPLY_DEST_NOT_RUNNING, 0, "request 4 of 4 at 0 stopped; dead 4 stopped kind 5"},
        {of_unknown, MC_REPLY_DEST_UNKNOWN, 1, "dead 77 unknown kind 5"},
        {of_nobody, MC_REPLY_DEST_UNKNOWN, 1, "dead 0 unknown kind 5"},
        {0, MC_REPLY_CAP_UNKNOWN, 0, "dead 0 capability kind 5"},
        {12345, MC_REPLY_CAP_UNKNOWN, 0, "dead 0 capability kind 5"},
    };
    for (const Row &row : rows) {
        cr_assert_eq(world.reply(server, row.cap, env), row.result);
        cr_assert_eq(mc_machine_runtime_pending_contains(&world.rt, row.cap), row.kept);
        expect_told(world, row.told);
    }
    // Requesters that go down later take their requests with them.
    cr_assert_eq(mc_machine_runtime_start(&world.rt, client), 1);
    cr_assert(world.stop(client));
    expect_told(world, "request 2 of 2 at 0 stopped");
    cr_assert_eq(world.reply(server, second, env), MC_REPLY_CAP_UNKNOWN);
    cr_assert_eq(world.requests(), 2);
    cr_assert_eq(mc_machine_runtime_reply(&world.rt, server, second, nullptr), MC_REPLY_CAP_UNKNOWN);
    cr_assert_eq(mc_machine_runtime_request(&world.rt, server, server, nullptr, nullptr),
                 MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
}

// Goal: stopping a request's destination leaves it pending; anybody may answer it then.
Test(MachineRequest, destination_stops) {
    World world;
    Envelope last{};
    const uint32_t server = world.sink(), client = keeper(world, &last), other = world.sink();
    const uint64_t cap = world.ask(client, server, envelope(5, 3, 4));
    cr_assert(world.stop(server));
    cr_assert_eq(mc_machine_runtime_pending_contains(&world.rt, cap), 1);
    cr_assert_eq(world.reply(other, cap, envelope(6)), MC_REPLY_OK);
    cr_assert_eq(world.run(), 1);
    cr_assert_eq(last.origin_payload0, 3);
}

// Goal: a request in the name of a machine that comes later is that machine's.
Test(MachineRequest, requester_comes_later) {
    World world;
    const uint32_t server = world.sink();
    (void)world.ask(3, server, envelope(1));
    (void)world.ask(2, server, envelope(1));
    const uint32_t client = world.sink();
    cr_assert(world.stop(client));
    expect_told(world, "request 2 of 2 at 0 stopped");
    cr_assert_eq(world.requests(), 1);
}

// Goal: a request ends by timeout after the step in which it is as old as that, not before; a reply that is committed in that
// step wins; 0 steps is never.
Test(MachineRequest, timeouts) {
    for (uint64_t steps = 0; steps <= 4; ++steps) {
        World world;
        mc_machine_runtime_set_pending_timeout_steps(&world.rt, steps);
        cr_assert_eq(mc_machine_runtime_pending_timeout_steps(&world.rt), steps);
        const uint32_t server = world.spawn(), client = world.sink();
        (void)world.ask(client, server, envelope(1));
        for (uint64_t step = 1; step <= 6; ++step) {
            cr_assert_eq(world.step(), MC_STEP_IDLE); // not a step
            cr_assert_eq(world.send(client, 1), 0);
            cr_assert_eq(world.step(), MC_STEP_DID_WORK);
            cr_assert_eq(world.requests(), steps == 0 || step < steps ? 1 : 0, "%d of %d", static_cast<int>(step),
                         static_cast<int>(steps));
        }
        expect_told(world, steps == 0 ? "" : "request 1 of 2 at 0 timeout");
    }
    World world;
    mc_machine_runtime_set_pending_timeout_steps(&world.rt, 1);
    const uint32_t client = world.sink();
    const uint32_t server = world.machine([](Call call) {
        cr_assert_eq(__mc_machine_emit_reply(call.env.reply_cap_id, 6, 0, 0), 1);
        return MC_DISPATCH_OK;
    });
    (void)world.ask(client, server, envelope(1));
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    expect_told(world, "request 1 of 1 at 0 completed");
    // A request that a handler makes is born in that step.
    const uint32_t asker = world.machine([&](Call call) {
        if (call.env.kind == 1)
            cr_assert_neq(__mc_machine_emit_request(client, 1, 0, 0, 7), 0);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(asker, 1), 0);
    (void)world.run();
    (void)world.told();
    cr_assert_eq(world.requests(), 0); // the client's own turn was the step
}

// Goal: ids are minted from 1, skip those that are pending, and are the handler's to choose.
Test(MachineRequest, ids) {
    World world;
    const uint32_t server = world.sink(64), client = world.spawn();
    static mc_machine_request_effect_t requests[3];
    Handler ask = [&](Call call) {
        requests[0] = {server, 2, 0, envelope(1)};
        requests[1] = {server, 4, 0, envelope(1)};
        requests[2] = {server, UINT64_MAX, 0, envelope(1)};
        call.txn.requests = requests;
        call.txn.requests_len = 3;
        return MC_DISPATCH_OK;
    };
    cr_assert_eq(world.send(client, 1), 0);
    cr_assert_eq(mc_machine_runtime_start(&world.rt, client), 1);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &ask), 1);
    cr_assert_eq(world.ask(client, server, envelope(1)), 1);
    cr_assert_eq(world.ask(client, server, envelope(1)), 3);
    cr_assert_eq(world.ask(client, server, envelope(1)), 5);
    cr_assert_eq(mc_machine_runtime_pending_contains(&world.rt, UINT64_MAX), 1);
    cr_assert_eq(world.reply(server, UINT64_MAX, envelope(1)), MC_REPLY_OK);
    uint64_t emitted = 0;
    Handler emit = [&](Call) {
        emitted = __mc_machine_emit_request(server, 1, 0, 0, 0);
        cr_assert_eq(mc_machine_runtime_pending_contains(&world.rt, emitted), 0); // not yet
        cr_assert_eq(world.reply(server, emitted, envelope(1)), MC_REPLY_CAP_UNKNOWN);
        cr_assert_eq(world.ask(client, server, envelope(1)), emitted + 1);
        return MC_DISPATCH_OK;
    };
    (void)world.run();
    cr_assert_eq(world.send(client, 1), 0);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &emit), 1);
    cr_assert_eq(emitted, 6);
    cr_assert_eq(mc_machine_runtime_pending_contains(&world.rt, emitted), 1);
}

// Goal: a million requests that time out leave nothing pending, each at the same cost.
Test(MachineRequest, a_million_time_out) {
    World world;
    mc_machine_runtime_set_pending_timeout_steps(&world.rt, 100);
    const uint64_t many = mc::testing::under_valgrind ? 20000 : 1000000;
    const uint32_t server = world.sink(1), client = world.sink();
    mc_machine_runtime_set_pending_hook(&world.rt, nullptr);
    uint64_t most = 0;
    for (uint64_t i = 0; i < many; ++i) {
        cr_assert_neq(world.ask(client, server, envelope(1)), 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        most = std::max<uint64_t>(most, world.requests());
    }
    cr_assert_leq(most, 100);
    for (int i = 0; i < 100; ++i) {
        cr_assert_eq(world.send(client, 1), 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    }
    cr_assert_eq(world.requests(), 0);
    cr_assert_eq(world.ended(MC_PENDING_CLEANUP_TIMEOUT), many);
}

// Goal: a million requests at once are found, each at the same cost, and end with their requester.
Test(MachineRequest, a_million_pending) {
    World world;
    const uint64_t many = mc::testing::under_valgrind ? 20000 : 1000000;
    const uint32_t server = world.sink(UINT32_MAX), client = world.sink(UINT32_MAX);
    mc_machine_runtime_set_pending_hook(&world.rt, nullptr);
    for (uint64_t i = 1; i <= many; ++i)
        cr_assert_eq(world.ask(client, server, envelope(1)), i);
    for (uint64_t i = 1; i <= many; i += 3)
        cr_assert_eq(world.reply(server, i, envelope(1)), MC_REPLY_OK);
    cr_assert_eq(world.requests(), many - (many + 2) / 3);
    cr_assert(world.stop(client));
    cr_assert_eq(world.requests(), 0);
}

// Goal: what a publication reaches: each subscriber once, in the order in which they subscribed; one without room misses it.
Test(MachineRequest, publications) {
    World world;
    std::vector<uint32_t> got;
    const auto note = [&](Call call) {
        got.push_back(call.id);
        return MC_DISPATCH_OK;
    };
    const uint32_t c = world.machine(note), a = world.machine(note), full = world.machine(note, 1),
                   faulted = world.sink();
    static mc_subscription_update_t updates[8];
    uint32_t count = 0;
    const uint32_t from = world.machine([&](Call call) {
        if (call.env.kind == 1) {
            for (const uint32_t id : {a, full, c, a, faulted}) // one of them twice: a set
                updates[count++] = {MC_SUBSCRIPTION_ADD, id, 7, 70};
            updates[count++] = {MC_SUBSCRIPTION_ADD, a, 7, 71}; // another routing
            updates[count++] = {MC_SUBSCRIPTION_REMOVE, 999, 7, 70};
            call.txn.subscriptions = updates;
            call.txn.subscriptions_len = count;
        } else if (call.env.kind == 2) {
            cr_assert_eq(__mc_machine_emit_publish(7, 70, 1, 2), 1);
            cr_assert_eq(__mc_machine_emit_publish(8, 70, 1, 2), 1); // nobody
            const uint64_t refused = box();                          // it stays ours
            cr_assert_eq(__mc_machine_emit_publish(7, 70, refused, owned | 1), 0);
            __mc_free(reinterpret_cast<void *>(static_cast<uintptr_t>(refused)));
        } else {
            updates[0] = {MC_SUBSCRIPTION_REMOVE, a, 7, 70};
            updates[1] = {MC_SUBSCRIPTION_ADD, call.id, 7, 70}; // itself, before it publishes
            call.txn.subscriptions = updates;
            call.txn.subscriptions_len = call.env.kind == 3 ? 2 : 0;
            cr_assert_eq(__mc_machine_emit_publish(7, 70, 1, 2), call.env.kind == 3 || call.env.kind == 7 ? 1 : 0);
        }
        return call.env.kind == 7 && call.env.src == call.id ? MC_DISPATCH_STOP : MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(from, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 5);
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, faulted), 1);
    cr_assert_eq(world.send(from, 2), 0);
    cr_assert_eq(world.send(full, 5), 0);
    got.clear();
    (void)world.step();
    (void)world.step();
    expect_told(world, "dead 3 full kind 7; dead 4 faulted kind 7");
    (void)world.run();
    const std::vector<uint32_t> expected = {full, a, c};
    cr_assert(got == expected);
    got.clear();
    cr_assert_eq(world.send(from, 3), 0);
    (void)world.run();
    expect_told(world, "dead 4 faulted kind 7");
    const std::vector<uint32_t> now = {full, c};
    cr_assert(got == now);
    cr_assert_eq(world.lifecycle(from), MC_MACHINE_STOPPED); // it got its own
    cr_assert(world.stop(a));
    cr_assert(world.stop(full));
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 2);
}

// Goal: the set of subscriptions is hashed: a hundred thousand of one topic are found, and leave one by one.
Test(MachineRequest, many_subscriptions) {
    World world;
    const uint32_t many = mc::testing::under_valgrind ? 2000 : 100000;
    std::vector<mc_subscription_update_t> updates(many);
    for (uint32_t i = 0; i < many; ++i)
        updates[i] = {MC_SUBSCRIPTION_ADD, world.spawn(1), 7, 70};
    const uint32_t from = world.machine([&](Call call) {
        call.txn.subscriptions = updates.data();
        call.txn.subscriptions_len = many;
        return MC_DISPATCH_OK;
    });
    for (int round = 0; round < 2; ++round) {
        cr_assert_eq(world.send(from, 1), 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), many);
    }
    for (uint32_t i = 0; i < many; ++i)
        cr_assert_eq(mc_machine_runtime_subscription_contains(&world.rt, i + 1, 7, 70), 1);
    for (mc_subscription_update_t &update : updates)
        update.op = MC_SUBSCRIPTION_REMOVE;
    cr_assert_eq(world.send(from, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 0);
}

// Goal: an id that a program chooses itself may be one of long ago, whose neighbours have all ended: it is found, and nobody else's id
// is passed over for it.
Test(MachineRequest, an_id_of_long_ago) {
    World world;
    mc_machine_runtime_set_pending_hook(&world.rt, nullptr);
    const uint32_t server = world.sink(1000), client = world.sink(1000);
    for (uint64_t id = 1; id <= 70; ++id)
        cr_assert_eq(world.ask(client, server, envelope(1)), id);
    for (uint64_t id = 1; id <= 63; ++id)
        cr_assert_eq(world.reply(server, id, envelope(2)), MC_REPLY_OK);
    static mc_machine_request_effect_t requests[1];
    requests[0] = {server, 5, 9, envelope(1)};
    Handler ask = [&](Call call) {
        call.txn.requests = requests;
        call.txn.requests_len = 1;
        return MC_DISPATCH_OK;
    };
    (void)world.run();
    cr_assert_eq(world.send(client, 1), 0);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &ask), 1);
    for (uint64_t id = 71; id <= 140; ++id)
        cr_assert_eq(world.ask(client, server, envelope(1)), id);
    cr_assert_eq(mc_machine_runtime_pending_contains_identity(&world.rt, 5, 9), 1);
    cr_assert_eq(world.reply(server, 5, envelope(2)), MC_REPLY_OK);
    cr_assert_eq(world.reply(server, 5, envelope(2)), MC_REPLY_CAP_UNKNOWN);
    cr_assert_eq(world.reply(server, 133, envelope(2)), MC_REPLY_OK);
    cr_assert_eq(world.requests(), 7 + 70 - 1);
}
