// Machines' lives: ids, start, stop, faults and their policies, states, bindings.
#include "machine/runtimes.hpp"
#include "machine/test_machine.hpp"

#include <stdexcept>

using namespace mc::machine::test;

namespace {

Handler answers(mc_dispatch_result_t result, uint64_t code = 0) {
    return [=](Call call) {
        call.code = code;
        return result;
    };
}

} // namespace

// Goal: ids count from 1, and are not used again after a stop.
Test(MachineLife, ids_are_never_used_again) {
    World world;
    for (uint32_t id = 1; id <= 300; ++id) {
        cr_assert_eq(world.spawn(), id);
        if (id % 3 == 0)
            cr_assert(world.stop(id));
    }
    cr_assert_eq(world.lifecycle(3), MC_MACHINE_STOPPED);
    cr_assert_eq(world.send(3, 1), MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING);
    cr_assert_eq(world.send(301, 1), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), 100);
}

// Goal: the last id is 2^32 - 1; then there is none.
Test(MachineLife, ids_run_out) {
    World world;
    mc::machine::find_runtime(world.word()).engine()->table().skip_to(UINT32_MAX);
    mc_machine_id_t id = 7;
    cr_assert_eq(mc_machine_runtime_spawn(&world.rt, 1, &id), 0);
    cr_assert_eq(id, 7);
    mc::machine::find_runtime(world.word()).engine()->table().skip_to(0);
}

// Goal: CREATED takes mail and runs nothing; start runs what has come, once; a second start is refused.
Test(MachineLife, created_takes_mail_and_waits) {
    World world;
    int calls = 0;
    const uint32_t id = world.machine(
        [&](Call) {
            ++calls;
            return MC_DISPATCH_OK;
        },
        4, false);
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_CREATED);
    cr_assert_eq(world.send(id, 1), MC_MAILBOX_ENQUEUE_OK);
    cr_assert_eq(world.ready(), 0);
    cr_assert_eq(world.run(), 0);
    cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 1);
    cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 0);
    cr_assert_eq(world.ready(), 1);
    cr_assert_eq(world.run(), 1);
    cr_assert_eq(calls, 1);
}

// Goal: what a stop does, in its order, as hooks see it.
Test(MachineLife, stop_cleans_up_after_its_hooks) {
    World world;
    const uint32_t other = world.sink();
    const uint32_t id = world.machine([](Call call) {
        static mc_subscription_update_t update;
        update = {MC_SUBSCRIPTION_ADD, call.id, 7, 1};
        call.txn.subscriptions = &update;
        call.txn.subscriptions_len = 1;
        call.txn.has_next_state = 1;
        call.txn.next_state = 99;
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.run(), 1);
    cr_assert_eq(mc_machine_runtime_subscription_contains(&world.rt, id, 7, 1), 1);
    (void)world.ask(id, other, envelope(5));
    (void)world.ask(id, other, envelope(6));
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.send(id, 1), 0);
    int looks = 0;
    world.in_hook = [&](const std::string &) {
        ++looks;
        cr_assert_eq(world.lifecycle(id), MC_MACHINE_STOPPED);
        cr_assert_eq(world.mail(id), 2);
        cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 1);
        cr_assert_eq(world.state(id), 99);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, id), 1); // a second one, in the midst of the first
        cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), 0);
    };
    cr_assert(world.stop(id));
    world.in_hook = nullptr;
    cr_assert_eq(looks, 2);
    expect_told(world, "request 1 of 2 at 0 stopped; request 2 of 2 at 0 stopped");
    cr_assert_eq(world.mail(id), 0);
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 0);
    cr_assert_eq(world.state(id), 0);
    cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), 1);
    cr_assert(world.stop(id));
    cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), 1);
    cr_assert_not(world.stop(77));
    cr_assert_not(world.stop(0));
}

// Goal: what a handler answers, under either policy.
Test(MachineLife, answers_and_policies) {
    struct Row {
        mc_dispatch_result_t answer;
        mc_machine_fault_policy_t policy;
        uint64_t status;
        int lifecycle;
        const char *told;
    };
    static const Row rows[] = {
        {MC_DISPATCH_OK, MC_FAULT_POLICY_MARK_FAULTED, MC_STEP_DID_WORK, MC_MACHINE_RUNNING, ""},
        {MC_DISPATCH_STOP, MC_FAULT_POLICY_MARK_FAULTED, MC_STEP_DID_WORK, MC_MACHINE_STOPPED,
         "request 1 of 2 at 0 stopped"},
        {MC_DISPATCH_FAULT, MC_FAULT_POLICY_MARK_FAULTED, MC_STEP_FAULTED, MC_MACHINE_FAULTED,
         "request 1 of 2 at 0 faulted; fault 2 code 44"},
        {MC_DISPATCH_FAULT, MC_FAULT_POLICY_MARK_STOPPED, MC_STEP_FAULTED, MC_MACHINE_STOPPED,
         "request 1 of 2 at 0 stopped; fault 2 code 44"},
        {static_cast<mc_dispatch_result_t>(3), MC_FAULT_POLICY_MARK_FAULTED, MC_STEP_FAULTED, MC_MACHINE_FAULTED,
         "request 1 of 2 at 0 faulted; fault 2 code 44"},
    };
    for (const Row &row : rows) {
        World world;
        mc_machine_runtime_set_fault_policy(&world.rt, row.policy);
        cr_assert_eq(mc_machine_runtime_fault_policy(&world.rt), row.policy);
        mc_machine_runtime_set_fault_policy(&world.rt, static_cast<mc_machine_fault_policy_t>(9));
        cr_assert_eq(mc_machine_runtime_fault_policy(&world.rt), row.policy);
        const uint32_t other = world.spawn();
        const uint32_t id = world.machine(answers(row.answer, 44));
        (void)world.ask(id, other, envelope(1));
        cr_assert_eq(world.send(id, 1), 0);
        cr_assert_eq(world.send(id, 2), 0);
        cr_assert_eq(world.step(), row.status);
        cr_assert_eq(world.lifecycle(id), row.lifecycle);
        expect_told(world, row.told);
        cr_assert_eq(world.mail(id), row.lifecycle == MC_MACHINE_STOPPED ? 0 : 1);
    }
}

// Goal: a handler that throws is a fault, and nothing comes through.
Test(MachineLife, an_exception_is_a_fault) {
    World world;
    Log log;
    const uint32_t id = world.machine([](Call) -> mc_dispatch_result_t { throw std::runtime_error("no"); });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_FAULTED);
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_FAULTED);
    expect_told(world, "fault 1 code 0");
    cr_assert_eq(log.code, MC_E_CRASHED);
}

// Goal: a hook or a drop function that throws is logged, and nothing comes through.
Test(MachineLife, hooks_may_throw) {
    World world;
    Log log;
    Drops::begin();
    world.in_hook = [](const std::string &) { throw std::runtime_error("no"); };
    Drops::then = [](uint64_t) { throw std::runtime_error("no"); };
    const uint64_t before = live();
    cr_assert_eq(world.send(9, boxed(1, box())), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    cr_assert_eq(log.lines, 2);
    cr_assert_eq(live(), before);
}

// Goal: FAULTED keeps mailbox, subscriptions and state, takes no mail, is never revived; it can be stopped.
Test(MachineLife, faulted_keeps_what_it_has) {
    World world;
    const uint32_t id = world.machine([](Call call) {
        static mc_subscription_update_t update;
        update = {MC_SUBSCRIPTION_ADD, call.id, 7, 1};
        call.txn.subscriptions = &update;
        call.txn.subscriptions_len = 1;
        return MC_DISPATCH_OK;
    });
    mc_machine_runtime_set_state(&world.rt, id, 5);
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.run(), 1);
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, id), 1);
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, id), 1);
    expect_told(world, ""); // no fault hook
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_FAULTED);
    cr_assert_eq(world.mail(id), 1);
    cr_assert_eq(world.state(id), 5);
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 1);
    cr_assert_eq(world.send(id, 2), MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING);
    expect_told(world, "dead 1 faulted kind 2");
    cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 0);
    cr_assert_eq(world.run(), 0);
    cr_assert(world.stop(id));
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_STOPPED);
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, id), 0);
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_STOPPED);
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, 99), 0);
}

// Goal: a machine that its own handler stops stays stopped, whatever the handler answers, and its effects are dropped.
Test(MachineLife, stopped_by_its_own_handler) {
    for (const mc_dispatch_result_t answer : {MC_DISPATCH_OK, MC_DISPATCH_FAULT, MC_DISPATCH_STOP}) {
        World world;
        const uint32_t other = world.sink();
        const uint32_t id = world.machine([&](Call call) {
            cr_assert_eq(__mc_machine_emit_send(other, 1, 0, 0), 1);
            cr_assert_eq(mc_machine_runtime_stop(&world.rt, call.id), 1);
            return answer;
        });
        cr_assert_eq(world.send(id, 1), 0);
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        cr_assert_eq(world.lifecycle(id), MC_MACHINE_STOPPED);
        cr_assert_eq(world.mail(other), 0);
        cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), 1);
        expect_told(world, "");
    }
}

// Goal: a machine that is spawned by the handler of one that has stopped itself there has nothing of that one's: no state, no effects,
// no turn.
Test(MachineLife, spawned_where_another_has_stopped) {
    World world;
    const uint32_t to = world.sink();
    uint32_t next = 0;
    int turns = 0;
    const uint32_t id = world.machine([&](Call call) {
        cr_assert(world.stop(call.id));
        next = world.machine([&](Call) {
            ++turns;
            return MC_DISPATCH_OK;
        });
        cr_assert_eq(__mc_machine_emit_send(to, 1, 0, 0), 1);
        call.txn.has_next_state = 1;
        call.txn.next_state = 77;
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.send(id, 2), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_STOPPED);
    cr_assert_eq(world.lifecycle(next), MC_MACHINE_RUNNING);
    cr_assert_eq(world.state(next), 0);
    cr_assert_eq(world.mail(to), 0);
    cr_assert_eq(world.ready(), 0);
    cr_assert_eq(world.send(next, 1), 0);
    cr_assert_eq(world.run(), 1);
    cr_assert_eq(turns, 1);
}

// Goal: one that is marked faulted in its own handler stays so, and its effects are dropped.
Test(MachineLife, marked_faulted_in_its_own_handler) {
    World world;
    const uint32_t other = world.sink();
    const uint32_t id = world.machine([&](Call call) {
        cr_assert_eq(__mc_machine_emit_send(other, 1, 0, 0), 1);
        cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, call.id), 1);
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(world.lifecycle(id), MC_MACHINE_FAULTED);
    cr_assert_eq(world.mail(other), 0);
    cr_assert_eq(world.step(), MC_STEP_IDLE);
}

// Goal: an explicit function wins over the bound one; a machine with neither consumes its envelope.
Test(MachineLife, who_handles) {
    World world;
    int bound = 0;
    const uint32_t id = world.machine([&](Call) {
        ++bound;
        return MC_DISPATCH_OK;
    });
    Handler mine = [](Call call) {
        call.txn.has_next_state = 1;
        call.txn.next_state = 17;
        return MC_DISPATCH_OK;
    };
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &mine), 1);
    cr_assert_eq(bound, 0);
    cr_assert_eq(world.state(id), 17);
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, nullptr, nullptr), 1);
    cr_assert_eq(bound, 1);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, call_handler, &mine), 0);
    mc_machine_runtime_bind_dispatch(&world.rt, id, nullptr, nullptr);
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    cr_assert_eq(bound, 1);
    cr_assert_eq(world.mail(id), 0);
}

// Goal: a handler of thunks: unknown ones cannot be bound; registering again replaces, also for those that are bound.
Test(MachineLife, thunks) {
    World world;
    static int calls[2];
    const uint32_t id = world.spawn();
    cr_assert_eq(mc_machine_runtime_bind_dispatch_thunk(&world.rt, id, 8801, nullptr), 0);
    mc_machine_runtime_register_thunk(8801, [](void *, mc_machine_id_t, uint64_t, const Envelope *, Txn *, uint64_t *) {
        ++calls[0];
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(mc_machine_runtime_bind_dispatch_thunk(&world.rt, id, 8801, nullptr), 1);
    cr_assert_eq(mc_machine_runtime_bind_dispatch_thunk(&world.rt, id, 8802, nullptr), 0);
    cr_assert_eq(mc_machine_runtime_bind_dispatch_thunk(&world.rt, 99, 8801, nullptr), 0);
    cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 1);
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.run(), 1);
    mc_machine_runtime_register_thunk(8801, [](void *, mc_machine_id_t, uint64_t, const Envelope *, Txn *, uint64_t *) {
        ++calls[1];
        return MC_DISPATCH_OK;
    });
    cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.run(), 1);
    cr_assert_eq(calls[0], 1);
    cr_assert_eq(calls[1], 1);
}

namespace {

struct Seen {
    void *context;
    uint64_t state;
};
std::vector<std::pair<int, Seen>> thunk_calls;
template <int which>
mc_dispatch_result_t thunk(void *ctx, mc_machine_id_t, uint64_t state, const Envelope *, Txn *txn, uint64_t *) {
    thunk_calls.push_back({which, {ctx, state}});
    txn->has_next_state = 1;
    txn->next_state = state + 1;
    return MC_DISPATCH_OK;
}

} // namespace

// Goal: rows: the local thunk, else the fallback; a site's own row before that of site 0; the runtime is the context; the
// next tag is the handler's, else the thunk's.
Test(MachineLife, descriptors_dispatch_by_rows) {
    World world;
    Bytes blob;
    blob.head("T", 2, 1, 6, 0).state(1, 0).state(2, 0).event(10);
    blob.row(1, 10, 0, 9001, 9002).row(1, 10, 55, 9003, 0).row(1, 11, 0, 0, 9002).row(2, 10, 0, 9004, 0);
    blob.row(1, 12, 0, 9999, 9002).row(1, 13, 0, 0, 0);
    const uint64_t descriptor = mc_machine_runtime_register_descriptor(blob.data(), blob.size());
    cr_assert_neq(descriptor, 0);
    mc_machine_runtime_register_thunk(9001, thunk<1>);
    mc_machine_runtime_register_thunk(9002, thunk<2>);
    mc_machine_runtime_register_thunk(9003, thunk<3>);
    mc_machine_runtime_register_thunk_meta(9004, thunk<4>, 1);
    const uint32_t id = world.spawn();
    cr_assert_eq(mc_machine_runtime_bind_descriptor(&world.rt, id, descriptor + 100, 1), 0);
    cr_assert_eq(mc_machine_runtime_bind_descriptor(&world.rt, 99, descriptor, 1), 0);
    cr_assert_eq(mc_machine_runtime_bind_descriptor(&world.rt, id, descriptor, 2), 1);
    cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 1);
    auto deliver = [&](uint64_t kind, uint64_t site) {
        Envelope env = envelope(kind);
        env.origin_request_site_key = site;
        cr_assert_eq(world.send(id, env), 0);
        const uint64_t status = world.step();
        return status;
    };
    thunk_calls.clear();
    cr_assert_eq(deliver(10, 0), MC_STEP_DID_WORK);  // state 2: thunk 4 leads to 1
    cr_assert_eq(deliver(10, 0), MC_STEP_DID_WORK);  // thunk 1 leads nowhere: the tag stays
    cr_assert_eq(deliver(10, 55), MC_STEP_DID_WORK); // thunk 3
    cr_assert_eq(deliver(10, 56), MC_STEP_DID_WORK); // no row of its own: thunk 1
    cr_assert_eq(deliver(11, 0), MC_STEP_DID_WORK);  // the fallback
    const int expected[] = {4, 1, 3, 1, 2};
    cr_assert_eq(thunk_calls.size(), 5);
    for (size_t i = 0; i < 5; ++i) {
        cr_assert_eq(thunk_calls[i].first, expected[i]);
        cr_assert(thunk_calls[i].second.context == &world.rt);
        cr_assert_eq(thunk_calls[i].second.state, i);
    }
    cr_assert_eq(world.state(id), 5);
    cr_assert_eq(deliver(12, 0), MC_STEP_FAULTED); // a local thunk that is not registered: not the fallback
    expect_told(world, "fault 1 code 3");
    for (const uint64_t kind : {13u, 77u}) {
        const uint32_t next = world.spawn();
        cr_assert_eq(mc_machine_runtime_bind_descriptor(&world.rt, next, descriptor, 1), 1);
        cr_assert_eq(mc_machine_runtime_start(&world.rt, next), 1);
        cr_assert_eq(world.send(next, kind), 0);
        cr_assert_eq(world.step(), MC_STEP_FAULTED);
        expect_told(world, "fault " + std::to_string(next) + " code 2");
    }
}
