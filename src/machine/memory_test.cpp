// Allocations that fail, one after another; and what a machine costs.
#include "machine/test_machine.hpp"

#include <cinttypes>

using namespace mc::machine::test;

namespace {

Memory memory;

// A little of everything. Calls may fail at any place; what they say, they have done.
struct Everything {
    World world;
    uint32_t server = 0, client = 0, extra = 0;
    static inline mc_machine_outbox_effect_t outbox[4];
    static inline mc_machine_request_effect_t requests[2];
    static inline mc_subscription_update_t updates[3];

    void make() {
        mc_machine_id_t id = 0;
        for (uint32_t *which : {&server, &client, &extra})
            if (mc_machine_runtime_spawn(&world.rt, 20, &id) == 1)
                *which = id;
        for (const uint32_t one : {server, client, extra}) {
            world.bind(one, [this](Call call) { return handle(call); });
            (void)mc_machine_runtime_start(&world.rt, one);
        }
    }
    mc_dispatch_result_t handle(Call call) {
        if (call.id == server && call.env.reply_cap_id != 0)
            (void)staged(__mc_machine_emit_reply(call.env.reply_cap_id, 9, new_box(), box_layout()));
        if (call.id != client || call.env.kind != 1)
            return MC_DISPATCH_OK;
        for (int i = 0; i < 12; ++i) // more than lie inside
            (void)staged(__mc_machine_emit_send(extra, 2, new_box(), box_layout()));
        (void)staged(__mc_machine_emit_request(server, 3, new_box(), box_layout(), 5) != 0);
        (void)__mc_machine_emit_publish(7, 70, 0, 0);
        for (int i = 0; i < 3; ++i)
            outbox[i] = {server, boxed(4, new_box())};
        outbox[3] = outbox[2]; // one box twice
        for (mc_machine_request_effect_t &effect : requests)
            effect = {server, 0, 6, boxed(5, call.env.payload0)};
        updates[0] = {MC_SUBSCRIPTION_ADD, extra, 7, 70};
        updates[1] = {MC_SUBSCRIPTION_ADD, server, 7, 70};
        updates[2] = {MC_SUBSCRIPTION_ADD, client, 7, 71};
        call.txn.outbox = outbox;
        call.txn.outbox_len = 4;
        call.txn.requests = requests;
        call.txn.requests_len = 2;
        call.txn.subscriptions = updates;
        call.txn.subscriptions_len = 3;
        call.txn.has_next_state = 1;
        call.txn.next_state = 42;
        return MC_DISPATCH_OK;
    }
    // What was not staged is ours.
    uint64_t last = 0;
    uint64_t new_box() {
        void *block = __mc_alloc(8, 8);
        return last = reinterpret_cast<uintptr_t>(block);
    }
    static uint64_t box_layout() { return owned | Drops::layout; }
    bool staged(bool was) {
        if (!was)
            __mc_free(reinterpret_cast<void *>(static_cast<uintptr_t>(last)));
        return was;
    }
    void run() {
        make();
        (void)world.send(client, envelope(1, new_box(), box_layout()));
        for (int i = 0; i < 40 && world.step() != MC_STEP_IDLE; ++i)
            check();
        (void)world.ask(client, server, envelope(3, new_box(), box_layout()));
        (void)world.reply(server, 3, envelope(3, new_box(), box_layout()));
        (void)world.send(extra, envelope(3, new_box(), box_layout()));
        check();
        for (int i = 0; i < 40 && world.step() != MC_STEP_IDLE; ++i)
            check();
        (void)world.stop(extra);
        check();
    }
    // All or nothing.
    void check() const {
        const bool committed = world.state(client) == 42;
        const uint32_t subscriptions = mc_machine_runtime_subscription_len(&world.rt);
        const bool extra_is_there = world.lifecycle(extra) != MC_MACHINE_STOPPED;
        cr_assert_eq(subscriptions, committed ? (extra_is_there ? 3 : 2) : 0);
        if (!committed)
            cr_assert_eq(world.mail(extra) > 1, false);
    }
};

} // namespace

// Goal: each allocation in turn fails, and all after it, or it alone: nothing is half done, and no box is lost or dropped twice.
Test(MachineMemory, each_allocation_fails, .timeout = 120) {
    memory.install();
    Drops::begin();
    { // what the library makes once
        Everything first;
        first.run();
    }
    for (const bool alone : {false, true}) {
        uint64_t tries = 0;
        for (int64_t failing = 0;; ++failing) {
            Drops::seen.clear();
            const uint64_t before = live(), blocks_before = memory.blocks;
            bool all = false;
            {
                auto everything = std::make_unique<Everything>();
                memory.allowed = alone ? INT64_MAX : failing;
                int64_t seen = 0;
                if (alone) {
                    memory.fails_at = static_cast<int64_t>(memory.calls) + failing + 1;
                    seen = static_cast<int64_t>(memory.calls);
                }
                everything->run();
                all = alone ? static_cast<int64_t>(memory.calls) - seen <= failing : memory.allowed >= 0;
                memory.allowed = INT64_MAX;
                memory.fails_at = INT64_MAX;
            }
            ++tries;
            cr_assert_eq(live(), before, "allocation %" PRId64 ": %" PRIu64 " blocks", failing, live() - before);
            cr_assert_eq(memory.blocks, blocks_before, "allocation %" PRId64, failing);
            if (all)
                break;
        }
        cr_assert_gt(tries, 30);
    }
}

// Goal: without memory to hold what a handler has filled in, a box that it has emitted as well is dropped once; so is one
// that waits in the mailbox of the machine, which the fault stops.
Test(MachineMemory, emitted_and_filled_in) {
    memory.install();
    Drops::begin();
    World world;
    mc_machine_runtime_set_fault_policy(&world.rt, MC_FAULT_POLICY_MARK_STOPPED);
    static mc_machine_outbox_effect_t outbox[10];
    const uint32_t to = world.sink(20);
    const uint64_t before = live();
    const uint32_t id = world.machine([&](Call call) {
        for (int i = 0; i < 8; ++i)
            outbox[i] = {to, boxed(1, box())};
        outbox[8] = outbox[2];
        outbox[9] = {to, call.env};
        cr_assert_eq(__mc_machine_emit_send(to, 1, outbox[0].env.payload0, outbox[0].env.payload1), 1);
        cr_assert_eq(world.send(call.id, outbox[1].env), 0);
        call.txn.outbox = outbox;
        call.txn.outbox_len = 10;
        memory.allowed = 0;
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, boxed(1, box())), 0);
    cr_assert_eq(world.step(), MC_STEP_FAULTED);
    memory.allowed = INT64_MAX;
    expect_told(world, "fault 2 code 1");
    for (const mc_machine_outbox_effect_t &effect : outbox)
        cr_assert_eq(Drops::seen[effect.env.payload0], 1);
    cr_assert_eq(live(), before);
}

// Goal: a dead letter's box that there was no memory to hold is dropped once, also when its hook has it dispatched.
Test(MachineMemory, an_unheld_box_is_rescued) {
    memory.install();
    for (const bool as_origin : {false, true}) {
        for (const bool at_once : {false, true}) {
            Drops::begin();
            World world;
            const uint32_t id = world.sink();
            const uint64_t the_box = box();
            Envelope env = boxed(1, the_box);
            if (as_origin) {
                std::swap(env.payload0, env.origin_payload0);
                std::swap(env.payload1, env.origin_payload1);
            }
            world.in_hook = [&](const std::string &) {
                memory.allowed = INT64_MAX;
                cr_assert_eq(world.send(id, boxed(2, the_box)), 0);
                if (at_once)
                    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
                cr_assert_eq(Drops::seen[the_box], at_once ? 1 : 0);
            };
            memory.allowed = 0;
            cr_assert_eq(world.send(999, env), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
            cr_assert_eq(Drops::seen[the_box], at_once ? 1 : 0);
            (void)world.run();
            cr_assert_eq(Drops::seen[the_box], 1);
        }
    }
}

// Goal: likewise when its hook sends it on to nobody, as often as it likes.
Test(MachineMemory, an_unheld_box_is_lost_again) {
    memory.install();
    Drops::begin();
    World world;
    const uint64_t the_box = box();
    int letters = 0;
    world.in_hook = [&](const std::string &) {
        if (++letters < 4)
            cr_assert_eq(world.send(998, boxed(2, the_box)), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    };
    memory.allowed = 0;
    cr_assert_eq(world.send(999, boxed(1, the_box)), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    memory.allowed = INT64_MAX;
    cr_assert_eq(letters, 4);
    cr_assert_eq(Drops::seen[the_box], 1);
}

// Goal: a runtime without memory is none.
Test(MachineMemory, no_runtime) {
    memory.install();
    mc_machine_runtime_t rt;
    mc_machine_id_t id = 9;
    memory.allowed = 0;
    mc_machine_runtime_init(&rt);
    cr_assert_eq(mc_machine_runtime_spawn(&rt, 1, &id), 0);
    cr_assert_eq(id, 9);
    cr_assert_eq(__mc_machine_runtime_new(), 0);
    memory.allowed = INT64_MAX;
    mc_machine_runtime_init(&rt);
    cr_assert_eq(mc_machine_runtime_spawn(&rt, 1, &id), 1);
    mc_machine_runtime_drop(&rt);
}

// Goal: an idle machine costs at most 160 bytes, what an allocator adds included; a stopped one at most 8.
Test(MachineMemory, what_machines_cost) {
    memory.install();
    World world;
    const uint32_t many = 1 << 17; // a chunk of the table ends before the next power of two
    memory.bytes = 0;
    const uint64_t blocks = memory.blocks;
    for (uint32_t i = 0; i < many; ++i)
        (void)world.spawn(1000);
    const uint64_t each = (memory.bytes + 8 * (memory.blocks - blocks)) / many;
    cr_assert_leq(each, 160, "%" PRIu64, each);
    for (uint32_t i = 1; i <= many; ++i)
        cr_assert(world.stop(i));
    cr_assert_leq(memory.blocks - blocks, 20); // the table's chunks, whose words they are
}

// Goal: who is spawned lies where others have stopped; and what stops while it is ready is given back when its turn has come.
Test(MachineMemory, places_are_used_again) {
    memory.install();
    World world;
    cr_assert_eq(world.step(), MC_STEP_IDLE); // what a thread and a step need
    const uint64_t before = memory.blocks;
    for (uint32_t i = 0; i < 1000; ++i)
        (void)world.sink(1);
    const uint64_t blocks = memory.blocks;
    for (int round = 0; round < 3; ++round) { // 900 more ids, for which the table has words
        for (uint32_t i = 0; i < 300; ++i)
            cr_assert(world.stop(static_cast<uint32_t>(1 + 3 * i + round)));
        for (uint32_t i = 0; i < 300; ++i)
            cr_assert_neq(world.spawn(1), 0);
        cr_assert_eq(memory.blocks, blocks);
    }
    for (uint32_t id = 901; id <= 1000; ++id)
        cr_assert_eq(world.send(id, 1), 0);
    for (uint32_t id = 901; id <= 1900; ++id)
        cr_assert(world.stop(id));
    cr_assert_eq(world.ready(), 100);
    cr_assert_eq(world.run(), 0);
    cr_assert_leq(memory.blocks - before, 6); // the table's chunks, and a block of machines
}

// Goal: in the steady state a step allocates nothing: a send, a request and its reply, a state.
Test(MachineMemory, steps_do_not_allocate) {
    memory.install();
    World world;
    const uint32_t server = world.machine([](Call call) {
        cr_assert_eq(__mc_machine_emit_reply(call.env.reply_cap_id, 1, 0, 0), 1);
        return MC_DISPATCH_OK;
    });
    const uint32_t client = world.machine([&](Call call) {
        cr_assert_neq(__mc_machine_emit_request(server, 1, 0, 0, 3), 0);
        call.txn.has_next_state = 1;
        call.txn.next_state = call.state + 1;
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(client, 1), 0);
    mc_machine_runtime_set_pending_hook(&world.rt, nullptr);
    for (int i = 0; i < 200; ++i)
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    const uint64_t calls = memory.calls;
    for (int i = 0; i < 1000; ++i)
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(memory.calls, calls);
    cr_assert_eq(world.state(client), 600);
}
