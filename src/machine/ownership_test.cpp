// Who frees what: boxes on every path by name, and state tokens. (history_test.cpp has them in all mixtures.)
#include "machine/test_machine.hpp"

using namespace mc::machine::test;

namespace {

constexpr uint64_t box_layout = owned | Drops::layout;

// The box has been dropped so many times.
void expect_dropped(uint64_t the_box, int times) {
    const auto found = Drops::seen.find(the_box);
    cr_assert_eq(found == Drops::seen.end() ? 0 : found->second, times);
}

} // namespace

// Goal: a box that is dispatched lives while the handler runs, and is dropped then: by its layout, by none, without one.
Test(MachineBoxes, dispatched) {
    Drops::begin();
    World world;
    uint64_t read = 0;
    const uint32_t id = world.machine([&](Call call) {
        std::memcpy(&read, reinterpret_cast<void *>(static_cast<uintptr_t>(call.env.payload0)), sizeof read);
        expect_dropped(call.env.payload0, 0);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, boxed(1, box(5))), 0);
    const uint64_t before = live();
    const uint64_t known = box(77), nobody_drops = box(78), without = box(79);
    cr_assert_eq(world.run(), 1);
    for (const auto &[the_box, layout] :
         {std::pair(known, box_layout), std::pair(nobody_drops, owned | 999), std::pair(without, owned)}) {
        cr_assert_eq(world.send(id, envelope(1, the_box, layout)), 0);
        cr_assert_eq(world.run(), 1);
        cr_assert_geq(read, 77);
    }
    expect_dropped(known, 1);
    cr_assert_eq(live(), before - 1);
}

// Goal: words that are not owned, and a null box, are left alone.
Test(MachineBoxes, not_owned) {
    World world;
    const uint32_t id = world.sink();
    uint64_t mine = 5;
    cr_assert_eq(world.send(id, envelope(1, reinterpret_cast<uintptr_t>(&mine), 1)), 0);
    cr_assert_eq(world.send(id, envelope(1, 0, owned | 1)), 0);
    cr_assert_eq(world.run(), 2);
    cr_assert_eq(mc_payload_layout_is_owned(owned | 7), 1);
    cr_assert_eq(mc_payload_layout_id(owned | 7), 7);
    cr_assert_eq(mc_payload_layout_is_owned(7), 0);
}

// Goal: what fails is dropped after its dead letter hook has seen it.
Test(MachineBoxes, undeliverable) {
    Drops::begin();
    World world;
    const uint64_t before = live();
    int hooks = 0;
    world.in_hook = [&](const std::string &) {
        ++hooks;
        cr_assert_eq(Drops::seen.size(), static_cast<size_t>(hooks - 1));
    };
    std::vector<uint64_t> kept; // so that no address comes twice
    const Envelope envs[] = {boxed(1, box()), boxed(1, box()), boxed(1, box())};
    cr_assert_eq(world.send(9, envs[0]), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    cr_assert_eq(world.ask(0, 9, envs[1]), 0);
    cr_assert_eq(world.reply(0, 9, envs[2]), MC_REPLY_CAP_UNKNOWN);
    cr_assert_eq(hooks, 3);
    for (const Envelope &env : envs)
        expect_dropped(env.payload0, 1);
    cr_assert_eq(live(), before);
}

// Goal: rolled back: what the handler filled in and what it emitted, a box twice named once; what it received lives until
// it has returned.
Test(MachineBoxes, rolled_back) {
    Drops::begin();
    World world;
    const uint32_t to = world.sink();
    const uint64_t before = live();
    static mc_machine_outbox_effect_t outbox[3];
    static mc_machine_request_effect_t requests[1];
    static mc_machine_reply_effect_t replies[1];
    uint64_t boxes[5];
    for (const mc_dispatch_result_t result : {MC_DISPATCH_FAULT, MC_DISPATCH_STOP, MC_DISPATCH_OK}) {
        Drops::begin();
        const uint32_t from = world.machine([&](Call call) {
            for (uint64_t &the_box : boxes)
                the_box = box();
            outbox[0] = {to, boxed(1, boxes[0])};
            outbox[1] = {to, boxed(1, boxes[0])};
            outbox[2] = {result == MC_DISPATCH_OK ? 999 : to, boxed(1, call.env.payload0)};
            requests[0] = {to, 0, 0, boxed(1, boxes[1])};
            replies[0] = {4, boxed(1, boxes[2])};
            call.txn.outbox = outbox;
            call.txn.outbox_len = 3;
            call.txn.requests = requests;
            call.txn.requests_len = 1;
            call.txn.replies = replies;
            call.txn.replies_len = 1;
            cr_assert_eq(__mc_machine_emit_send(to, 1, boxes[3], box_layout), 1);
            cr_assert_eq(__mc_machine_emit_send(to, 1, call.env.payload0, call.env.payload1), 1);
            cr_assert_neq(__mc_machine_emit_request(to, 1, boxes[4], box_layout, 0), 0);
            return result;
        });
        const uint64_t received = box();
        cr_assert_eq(world.send(from, boxed(1, received)), 0);
        cr_assert_neq(world.step(), MC_STEP_IDLE);
        cr_assert_eq(world.mail(to), 0);
        cr_assert_eq(Drops::seen.size(), 6);
        for (const uint64_t the_box : boxes)
            expect_dropped(the_box, 1);
        expect_dropped(received, 1);
        cr_assert(world.stop(from));
        cr_assert_eq(live(), before);
    }
}

// Goal: a box that a handler sends on lives until it is dispatched there.
Test(MachineBoxes, forwarded) {
    Drops::begin();
    World world;
    const uint64_t the_box = box();
    const uint32_t last = world.machine([&](Call call) {
        cr_assert_eq(call.env.payload0, the_box);
        expect_dropped(the_box, 0);
        return MC_DISPATCH_OK;
    });
    const uint32_t first = world.machine([&](Call call) {
        cr_assert_eq(__mc_machine_emit_send(last, 1, call.env.payload0, call.env.payload1), 1);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(first, boxed(1, the_box)), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    expect_dropped(the_box, 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    expect_dropped(the_box, 1);
}

// Goal: a request's box stays with the request and comes back as the reply's origin; the reply may be the same box. A
// request, its dispatch, its reply and its dispatch leave the live blocks where they were.
Test(MachineBoxes, asked_and_answered) {
    for (const bool echo : {false, true}) {
        Drops::begin();
        World world;
        uint64_t request = 0, answer = 0;
        const uint32_t client = world.machine([&](Call call) {
            cr_assert_eq(call.env.origin_payload0, request);
            cr_assert_eq(call.env.payload0, answer);
            expect_dropped(request, 0);
            return MC_DISPATCH_OK;
        });
        const uint32_t server = world.machine([&](Call call) {
            answer = echo ? call.env.payload0 : box();
            cr_assert_eq(__mc_machine_emit_reply(call.env.reply_cap_id, 2, answer, box_layout), 1);
            return MC_DISPATCH_OK;
        });
        cr_assert_eq(world.send(client, 0) + world.send(server, 0), 0);
        World warm; // the mailboxes' blocks are there before the count
        (void)mc_machine_runtime_dispatch_one_txn(
            &world.rt,
            [](void *, mc_machine_id_t, uint64_t, const Envelope *, Txn *, uint64_t *) { return MC_DISPATCH_OK; },
            nullptr);
        (void)mc_machine_runtime_dispatch_one_txn(
            &world.rt,
            [](void *, mc_machine_id_t, uint64_t, const Envelope *, Txn *, uint64_t *) { return MC_DISPATCH_OK; },
            nullptr);
        const uint64_t before = live();
        request = box();
        cr_assert_neq(world.ask(client, server, boxed(1, request)), 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        expect_dropped(request, 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        expect_dropped(request, 1);
        expect_dropped(answer, 1);
        cr_assert_eq(live(), before);
    }
}

// Goal: so does the box of a request that a handler makes, emitted or filled in, though its own envelope has been dispatched.
Test(MachineBoxes, asked_by_a_handler) {
    for (const bool emitted : {false, true}) {
        Drops::begin();
        World world;
        const uint64_t request = box();
        uint64_t cap = 0;
        const uint32_t server = world.machine([&](Call call) {
            cap = call.env.reply_cap_id;
            return MC_DISPATCH_OK;
        });
        static mc_machine_request_effect_t requests[1];
        const uint32_t client = world.machine([&](Call call) {
            if (call.env.kind == 2) {
                cr_assert_eq(call.env.origin_payload0, request);
                expect_dropped(request, 0);
            } else if (emitted) {
                cr_assert_neq(__mc_machine_emit_request(server, 1, request, box_layout, 0), 0);
            } else {
                requests[0] = {server, 0, 0, boxed(1, request)};
                call.txn.requests = requests;
                call.txn.requests_len = 1;
            }
            return MC_DISPATCH_OK;
        });
        cr_assert_eq(world.send(client, 1), 0);
        cr_assert_eq(world.run(), 2);
        expect_dropped(request, 0);
        cr_assert_eq(world.reply(server, cap, envelope(2)), MC_REPLY_OK);
        cr_assert_eq(world.run(), 1);
        expect_dropped(request, 1);
    }
}

// Goal: a request that ends while it waits is delivered without its box; a box that is not owned stays.
Test(MachineBoxes, ended_while_it_waits) {
    Drops::begin();
    World world;
    mc_machine_runtime_set_pending_timeout_steps(&world.rt, 1);
    Envelope last{};
    const uint32_t server = world.machine(
        [&](Call call) {
            last = call.env;
            return MC_DISPATCH_OK;
        },
        8, false);
    const uint32_t client = world.sink();
    const uint64_t the_box = box();
    const uint64_t cap = world.ask(client, server, boxed(1, the_box));
    (void)world.ask(client, server, envelope(2, 5, 6));
    cr_assert_eq(world.send(client, 1), 0);
    world.in_hook = [&](const std::string &) {
        expect_dropped(the_box, 0); // hook first
        world.in_hook = nullptr;
    };
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    world.in_hook = nullptr;
    expect_dropped(the_box, 1);
    expect_told(world, "request 1 of 2 at 0 timeout; request 2 of 2 at 0 timeout");
    cr_assert_eq(mc_machine_runtime_start(&world.rt, server), 1);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(last.payload0, 0);
    cr_assert_eq(last.payload1, 0);
    cr_assert_eq(last.reply_cap_id, cap);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(last.payload0, 5);
    cr_assert_eq(last.payload1, 6);
}

// Goal: a request that ends while its handler runs keeps its box until the handler has returned.
Test(MachineBoxes, ended_while_it_is_handled) {
    Drops::begin();
    World world;
    const uint64_t the_box = box();
    const uint32_t client = world.sink();
    const uint32_t server = world.machine([&](Call) {
        cr_assert(world.stop(client));
        expect_dropped(the_box, 0);
        return MC_DISPATCH_OK;
    });
    (void)world.ask(client, server, boxed(1, the_box));
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    expect_dropped(the_box, 1);
}

// Goal: a reply that overtakes its request leaves the box alive until both have been dispatched, in either order.
Test(MachineBoxes, reply_overtakes) {
    for (const bool reply_first : {true, false}) {
        Drops::begin();
        World world;
        const uint64_t the_box = box();
        const auto alive = [&](Call) {
            expect_dropped(the_box, 0);
            return MC_DISPATCH_OK;
        };
        const uint32_t server = world.machine(alive, 8, !reply_first), client = world.machine(alive);
        const uint64_t cap = world.ask(client, server, boxed(1, the_box));
        cr_assert_eq(world.reply(0, cap, envelope(2)), MC_REPLY_OK);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        expect_dropped(the_box, 0);
        if (reply_first)
            cr_assert_eq(mc_machine_runtime_start(&world.rt, server), 1);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        expect_dropped(the_box, 1);
    }
}

// Goal: a stop and a drop free what is in mailboxes and requests, without dead letters; a drop fires no hooks.
Test(MachineBoxes, stop_and_drop) {
    for (const bool by_stop : {true, false}) {
        Drops::begin();
        const uint64_t before = live();
        World world;
        const uint32_t server = world.spawn(), client = world.spawn();
        cr_assert_eq(world.send(client, boxed(1, box())), 0);
        (void)world.ask(client, server, boxed(1, box()));
        (void)world.ask(77, server, boxed(1, box()));
        if (by_stop) {
            cr_assert(world.stop(server)); // the requests stay
            cr_assert(world.stop(client));
            expect_told(world, "request 1 of 2 at 0 stopped");
            cr_assert_eq(Drops::seen.size(), 2);
        }
        mc_machine_runtime_drop(&world.rt);
        mc_machine_runtime_drop(&world.rt);
        expect_told(world, "");
        cr_assert_eq(Drops::seen.size(), 3);
        cr_assert_eq(live(), before);
    }
}

// Goal: the dead letter hook may send the box on, and have it dispatched at once.
Test(MachineBoxes, rescued_by_the_hook) {
    for (const bool at_once : {false, true}) {
        Drops::begin();
        World world;
        const uint64_t the_box = box();
        const uint32_t id = world.sink();
        world.in_hook = [&](const std::string &) {
            cr_assert_eq(world.send(id, boxed(2, the_box)), 0);
            if (at_once)
                cr_assert_eq(world.step(), MC_STEP_DID_WORK);
            expect_dropped(the_box, 0);
        };
        cr_assert_eq(world.send(999, boxed(1, the_box)), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
        expect_dropped(the_box, at_once ? 1 : 0);
        (void)world.run();
        expect_dropped(the_box, 1);
    }
}

// Goal: a dead letter hook may use the caller's own envelope for something else: what was sent is what it was.
Test(MachineBoxes, the_hook_reuses_the_envelope) {
    Drops::begin();
    World world;
    const uint64_t before = live();
    const uint32_t id = world.sink();
    const uint64_t first = box(), second = box();
    Envelope env = boxed(1, first);
    world.in_hook = [&](const std::string &) {
        env = boxed(2, second);
        cr_assert_eq(world.send(id, env), 0);
    };
    cr_assert_eq(world.send(999, env), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    expect_dropped(first, 1);
    expect_dropped(second, 0);
    cr_assert_eq(world.run(), 1);
    expect_dropped(second, 1);
    cr_assert(world.stop(id));
    cr_assert_eq(live(), before);
}

// Goal: what a handler has filled in before it throws is its own still, boxes and state: it has handed nothing over.
Test(MachineBoxes, filled_in_and_thrown) {
    Drops::begin();
    World world;
    Log log;
    const uint32_t to = world.sink();
    const uint64_t mine = box(), emitted = box();
    const uint32_t id = world.machine([&](Call call) -> mc_dispatch_result_t {
        cr_assert_eq(__mc_machine_emit_send(to, 1, emitted, box_layout), 1);
        const std::vector<mc_machine_outbox_effect_t> outbox{{to, boxed(1, mine)}}; // gone when it throws
        call.txn.outbox = outbox.data();
        call.txn.outbox_len = 1;
        throw 7;
    });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_FAULTED);
    expect_dropped(mine, 0);
    expect_dropped(emitted, 1);
    __mc_free(reinterpret_cast<void *>(static_cast<uintptr_t>(mine)));
}

// --- state tokens --------------------------------------------------------------------------------------------------------

namespace {

// State 1 has a layout, state 2 has none (the program owns it), state 3 has it, too. Every event leads to thunk 7001.
uint64_t token_descriptor() {
    Bytes blob;
    blob.head("Tokens", 3, 1, 3, 0).state(1, Drops::layout).state(2, 0).state(3, Drops::layout).event(1);
    for (uint64_t state = 1; state <= 3; ++state)
        blob.row(state, 1, 0, 7001, 0);
    const uint64_t id = mc_machine_runtime_register_descriptor(blob.data(), blob.size());
    cr_assert_neq(id, 0);
    return id;
}

Handler token_handler;
mc_dispatch_result_t token_thunk(void *, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                 uint64_t *code) {
    return token_handler({id, state, *env, *txn, *code});
}

struct Tokens {
    explicit Tokens(uint64_t tag = 1) {
        Drops::begin();
        mc_machine_runtime_register_thunk(7001, token_thunk);
        id = world.spawn();
        cr_assert_eq(mc_machine_runtime_bind_descriptor(&world.rt, id, token_descriptor(), tag), 1);
        mc_machine_runtime_set_state(&world.rt, id, first);
        cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 1);
    }
    void handle(Handler handler) {
        token_handler = std::move(handler);
        cr_assert_eq(world.send(id, 1), 0);
        cr_assert_neq(world.step(), MC_STEP_IDLE);
    }
    // A handler that goes to a state and answers.
    void go(uint64_t next, uint64_t tag, mc_dispatch_result_t result = MC_DISPATCH_OK) {
        handle([=](Call call) {
            call.txn.has_next_state = 1;
            call.txn.next_state = next;
            call.txn.next_state_tag = tag;
            return result;
        });
    }
    // Where the runtime never had it, or the program owns it.
    void free_second() const { __mc_free(reinterpret_cast<void *>(static_cast<uintptr_t>(second))); }

    World world;
    uint32_t id = 0;
    uint64_t first = box(), second = box();
};

} // namespace

// Goal: a token that is replaced is dropped once, if its state has a layout; the same token replaces nothing.
Test(MachineTokens, replaced) {
    Tokens t;
    const uint64_t third = box(); // before the first is freed: it is told by its address
    t.go(t.first, 0);
    expect_dropped(t.first, 0);
    t.go(t.second, 2);
    expect_dropped(t.first, 1);
    cr_assert_eq(t.world.state(t.id), t.second);
    t.go(third, 3); // from state 2: the program owns the second
    expect_dropped(t.second, 0);
    t.go(0, 1);
    expect_dropped(third, 1);
    cr_assert_eq(Drops::seen.size(), 2);
    t.free_second();
}

// Goal: a token that is rejected is dropped once by the layout of the state that it was meant for.
Test(MachineTokens, rejected) {
    for (const uint64_t tag : {uint64_t{0}, uint64_t{2}, uint64_t{3}}) {
        for (const mc_dispatch_result_t result : {MC_DISPATCH_FAULT, MC_DISPATCH_STOP, MC_DISPATCH_OK}) {
            Tokens t;
            t.handle([&](Call call) {
                call.txn.has_next_state = 1;
                call.txn.next_state = t.second;
                call.txn.next_state_tag = tag;
                if (result == MC_DISPATCH_OK)
                    cr_assert_eq(__mc_machine_emit_send(999, 1, 0, 0), 1);
                return result;
            });
            expect_dropped(t.second, tag == 2 ? 0 : 1);
            expect_dropped(t.first, result == MC_DISPATCH_STOP ? 1 : 0);
            if (tag == 2)
                t.free_second();
        }
    }
}

// Goal: the current token that a handler hands in again with a fault is not dropped, and a stop drops it once.
Test(MachineTokens, the_same_rejected) {
    for (const mc_dispatch_result_t result : {MC_DISPATCH_FAULT, MC_DISPATCH_STOP}) {
        Tokens t;
        t.go(t.first, 0, result);
        expect_dropped(t.first, result == MC_DISPATCH_STOP ? 1 : 0);
        (void)t.world.stop(t.id);
        expect_dropped(t.first, 1);
        mc_machine_runtime_drop(&t.world.rt);
        expect_dropped(t.first, 1);
        t.free_second();
    }
}

// Goal: stop, drop and set_state drop the token; one that is set again stays.
Test(MachineTokens, abandoned) {
    {
        Tokens t;
        mc_machine_runtime_set_state(&t.world.rt, t.id, t.first);
        expect_dropped(t.first, 0);
        mc_machine_runtime_set_state(&t.world.rt, t.id, t.second);
        expect_dropped(t.first, 1);
        cr_assert(t.world.stop(t.id));
        expect_dropped(t.second, 1);
    }
    {
        Tokens t;
        mc_machine_runtime_drop(&t.world.rt);
        expect_dropped(t.first, 1);
        t.free_second();
    }
}

// Goal: a handler that loses its own state (it stops its machine, or sets another state) has it until it returns.
Test(MachineTokens, lost_in_its_handler) {
    {
        Tokens t;
        t.handle([&](Call call) {
            cr_assert(t.world.stop(call.id));
            expect_dropped(t.first, 0);
            return MC_DISPATCH_OK;
        });
        expect_dropped(t.first, 1);
        t.free_second();
    }
    {
        Tokens t;
        t.handle([&](Call call) {
            mc_machine_runtime_set_state(&t.world.rt, call.id, t.second);
            expect_dropped(t.first, 0);
            return MC_DISPATCH_OK;
        });
        expect_dropped(t.first, 1);
        cr_assert_eq(t.world.state(t.id), t.second);
    }
    {
        Tokens t; // away, and back
        t.handle([&](Call call) {
            mc_machine_runtime_set_state(&t.world.rt, call.id, t.second);
            call.txn.has_next_state = 1;
            call.txn.next_state = t.first;
            return MC_DISPATCH_OK;
        });
        expect_dropped(t.first, 0);
        expect_dropped(t.second, 1);
        cr_assert_eq(t.world.state(t.id), t.first);
    }
}

// Goal: a handler that loses its state and gets it again has it as before: whoever takes it away then drops it, once.
Test(MachineTokens, lost_and_had_again) {
    for (const mc_dispatch_result_t result : {MC_DISPATCH_OK, MC_DISPATCH_FAULT, MC_DISPATCH_STOP}) {
        Tokens t;
        mc_machine_runtime_set_fault_policy(&t.world.rt, MC_FAULT_POLICY_MARK_STOPPED);
        t.handle([&](Call call) {
            mc_machine_runtime_set_state(&t.world.rt, call.id, t.second);
            mc_machine_runtime_set_state(&t.world.rt, call.id, t.first);
            expect_dropped(t.first, 0);
            expect_dropped(t.second, 1);
            return result;
        });
        expect_dropped(t.first, result == MC_DISPATCH_OK ? 0 : 1);
        (void)t.world.stop(t.id);
        expect_dropped(t.first, 1);
    }
    // By its transaction; a hook of that stops the machine.
    Tokens t;
    const uint64_t cap = t.world.ask(t.id, t.id, envelope(1));
    t.world.in_hook = [&](const std::string &) { cr_assert(t.world.stop(t.id)); };
    token_handler = [&](Call call) {
        mc_machine_runtime_set_state(&t.world.rt, call.id, t.second);
        call.txn.has_next_state = 1;
        call.txn.next_state = t.first;
        cr_assert_eq(__mc_machine_emit_reply(cap, 1, 0, 0), 1);
        return MC_DISPATCH_OK;
    };
    cr_assert_eq(t.world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(t.world.lifecycle(t.id), MC_MACHINE_STOPPED);
    expect_dropped(t.first, 1);
    expect_dropped(t.second, 1);
}

// Goal: a hook that steps the same machine meets the state that its transaction has made; each token is dropped once.
Test(MachineTokens, stepped_within_a_hook) {
    Tokens t;
    const uint64_t third = box();
    const uint64_t cap = t.world.ask(t.id, t.id, envelope(1));
    cr_assert_eq(t.world.send(t.id, 1), 0);
    t.world.in_hook = [&](const std::string &) {
        token_handler = [&](Call call) {
            cr_assert_eq(call.state, t.second);
            call.txn.has_next_state = 1;
            call.txn.next_state = third;
            return MC_DISPATCH_OK;
        };
        cr_assert_eq(t.world.step(), MC_STEP_DID_WORK);
        expect_dropped(t.second, 1);
    };
    token_handler = [&](Call call) {
        call.txn.has_next_state = 1;
        call.txn.next_state = t.second;
        cr_assert_eq(__mc_machine_emit_reply(cap, 1, 0, 0), 1);
        return MC_DISPATCH_OK;
    };
    cr_assert_eq(t.world.step(), MC_STEP_DID_WORK);
    t.world.in_hook = nullptr;
    cr_assert_eq(t.world.state(t.id), third);
    expect_dropped(t.first, 1);
    expect_dropped(t.second, 1);
    expect_dropped(third, 0);
    mc_machine_runtime_drop(&t.world.rt);
    expect_dropped(third, 1);
}

// Goal: a thunk's next tag applies when the handler has set a state and no tag.
Test(MachineTokens, next_tag_of_the_thunk) {
    Tokens t;
    const uint64_t third = box(); // before the first is freed: it is told by its address
    mc_machine_runtime_register_thunk_meta(7001, token_thunk, 2);
    t.handle([&](Call) { return MC_DISPATCH_OK; }); // no state: the tag stays 1
    t.go(t.second, 0);                              // to state 2
    expect_dropped(t.first, 1);
    t.go(third, 3); // the handler's own; from state 2, which the program owns
    expect_dropped(t.second, 0);
    t.go(0, 1);
    expect_dropped(third, 1);
    t.free_second();
}
