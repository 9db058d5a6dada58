// Runtimes on executors: what mc/machine.h, "On executors", says, sentence by sentence.
#include "compose/test_attached.hpp"
#include "testing/one_thread.hpp"

#include <mc/inspect.h>

#include <algorithm>
#include <vector>

namespace mc::compose::test {
namespace {

mc_dispatch_result_t answer(Call call) {
    if (call.env.reply_cap_id != 0)
        (void)__mc_machine_emit_reply(call.env.reply_cap_id, call.env.kind, call.env.payload0 + 1, 0);
    return MC_DISPATCH_OK;
}

// --- attaching and detaching -----------------------------------------------------------------------------------------

// Goal: who may attach and detach what, and when.
Test(Attach, is_refused) {
    cr_assert_eq(mc_machine_attach_u64(12345, 0), MC_E_STALE);
    cr_assert_eq(mc_machine_detach_u64(12345), MC_E_STALE);
    cr_assert_eq(mc_machine_run_until_idle_u64(12345, MC_FOREVER), MC_E_STALE);
    World world;
    cr_assert_eq(mc_machine_attach(&world.rt, 99), MC_E_STALE, "no such executors");
    cr_assert_eq(mc_machine_detach(&world.rt), MC_E_INVAL);
    const uint32_t id = world.machine(take);
    cr_assert_eq(world.send(id, 1), MC_MAILBOX_ENQUEUE_OK);
    cr_assert_eq(mc_machine_attach(&world.rt, 0), MC_E_BUSY, "a machine is ready");
    world.idle();
    world.attach();
    cr_assert_eq(mc_machine_attach(&world.rt, 0), MC_E_BUSY, "it is attached");
    cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_E_BUSY);
    cr_assert_eq(mc_machine_set_on_late_reply(&world.rt, 0), MC_E_BUSY);
    cr_assert_eq(mc_machine_set_request_timeout(&world.rt, -1), MC_E_INVAL);
    cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
    cr_assert_eq(mc_machine_set_on_full(&world.rt, 2), MC_E_INVAL);
    cr_assert_eq(mc_machine_set_on_late_reply(&world.rt, 2), MC_E_INVAL);
}

// Goal: a handler, and a hook, cannot attach its runtime, nor run it until it is idle; a stepped run is what it says.
Test(Attach, is_refused_inside) {
    World world;
    int32_t inside[3] = {};
    const uint32_t id = world.machine([&](Call) {
        inside[0] = mc_machine_attach(&world.rt, 0);
        inside[1] = mc_machine_run_until_idle(&world.rt, MC_FOREVER);
        inside[2] = mc_machine_detach(&world.rt);
        return MC_DISPATCH_OK;
    });
    for (int i = 0; i < 5; ++i)
        (void)world.send(id, 1);
    cr_assert_eq(mc_machine_run_until_idle(&world.rt, MC_NOW), MC_E_TIMEDOUT);
    world.idle();
    cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, id), 0);
    cr_assert_eq(mc_machine_run_until_idle(&world.rt, MC_NOW), MC_OK);
    cr_assert_eq(inside[0], MC_E_BUSY);
    cr_assert_eq(inside[1], MC_E_CONTEXT);
    cr_assert_eq(inside[2], MC_E_INVAL);
}

// Goal: what a runtime has, it has when it is attached, and again when it is stepped: machines, states, mail of those that do not run,
// pending requests with their ids, subscriptions, counts.
Test(Attach, moves_everything) {
    on_each([](World &world) {
        const uint32_t sleeper = world.machine(take, 8, false);
        const uint32_t asker = world.machine([](Call call) {
            if (call.env.kind == 1)
                (void)__mc_machine_emit_request(static_cast<uint32_t>(call.env.payload0), 9, 0, 0, 77);
            call.set(call.state + call.env.kind);
            return MC_DISPATCH_OK;
        });
        const uint32_t subscriber = world.machine([](Call call) {
            call.set(call.state + 1);
            static const mc_subscription_update_t add = {MC_SUBSCRIPTION_ADD, 3, 5, 6};
            call.txn.subscriptions = &add;
            call.txn.subscriptions_len = call.env.kind == 1;
            return MC_DISPATCH_OK;
        });
        cr_assert_eq(subscriber, 3);
        (void)world.send(sleeper, 4);
        (void)world.send(asker, 1, sleeper);
        (void)world.send(subscriber, 1);
        world.idle();
        cr_assert_eq(mc_machine_runtime_pending_len(&world.rt), 1);
        for (int round = 0; round < 3; ++round) {
            world.attach();
            cr_assert_eq(mc_machine_runtime_pending_len(&world.rt), 1);
            cr_assert_eq(mc_machine_runtime_pending_request_site(&world.rt, 1), 77);
            cr_assert_eq(mc_machine_runtime_subscription_contains(&world.rt, subscriber, 5, 6), 1);
            cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, sleeper), 2);
            cr_assert_eq(world.state(asker), 1);
            cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
        }
        world.attach();
        Envelope reply{};
        reply.kind = 10;
        cr_assert_eq(mc_machine_runtime_reply(&world.rt, sleeper, 1, &reply), MC_REPLY_OK);
        world.idle();
        cr_assert_eq(world.state(asker), 11);
        cr_assert_eq(world.ended(MC_PENDING_CLEANUP_COMPLETED), 1);
        cr_assert_eq(mc_machine_runtime_pending_created_count(&world.rt), 1);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, subscriber), 1);
        cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 0);
        cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
        cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), 1);
        cr_assert_eq(mc_machine_runtime_start(&world.rt, sleeper), 1);
        world.idle();
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, sleeper), 0);
    });
}

// Goal: steps are refused while the runtime is attached, and hooks stay what they are.
Test(Attach, nobody_steps) {
    World world;
    const uint32_t id = world.machine(take);
    world.attach();
    (void)world.send(id, 1);
    cr_assert_eq(mc_machine_runtime_step_u64(world.word()), MC_STEP_IDLE);
    cr_assert_eq(mc_machine_runtime_dispatch_one_txn(&world.rt, nullptr, nullptr), 0);
    mc_machine_runtime_set_hooks(&world.rt, nullptr, nullptr, nullptr);
    (void)world.send(77, 1);
    cr_assert_eq(get(world.dead[MC_DEAD_LETTER_UNKNOWN_MACHINE]), 1);
    world.idle();
}

// --- dispatching -------------------------------------------------------------------------------------------------------

// Goal: everything that is sent is dispatched, once, and the runtime is idle after that and not before.
Test(Attached, dispatches_what_is_sent) {
    on_each([](World &world) {
        const uint64_t hops = static_cast<uint64_t>(scaled(2'000));
        std::vector<uint32_t> ids;
        for (int i = 0; i < 20; ++i)
            ids.push_back(world.machine([](Call call) {
                call.set(call.state + 1);
                if (call.env.payload0 != 0)
                    (void)__mc_machine_emit_send(call.env.payload1, 1, call.env.payload0 - 1, call.id);
                return MC_DISPATCH_OK;
            }));
        world.attach();
        for (uint32_t i = 0; i < 20; i += 2)
            cr_assert_eq(world.send(ids[i], 1, hops, ids[i + 1]), MC_MAILBOX_ENQUEUE_OK);
        world.idle();
        uint64_t total = 0;
        for (const uint32_t id : ids)
            total += world.state(id);
        cr_assert_eq(total, 10 * (hops + 1));
        cr_assert_eq(mc_machine_runtime_ready_len(&world.rt), 0);
    });
}

// Goal: what one machine sends to another arrives in the order in which it was sent, while others send to it, too.
Test(Attached, order_per_sender) {
    on_each([](World &world) {
        const uint64_t messages = static_cast<uint64_t>(scaled(2'000));
        uint64_t next[3] = {};
        std::vector<uint32_t> senders;
        const uint32_t sink = world.machine(
            [&](Call call) {
                cr_assert_eq(call.env.payload0, next[call.env.payload1]++, "of sender %u",
                             static_cast<unsigned>(call.env.payload1));
                return MC_DISPATCH_OK;
            },
            1'000'000);
        for (uint64_t sender = 0; sender < 3; ++sender) {
            const uint32_t id = world.machine([=](Call call) {
                for (uint64_t i = 0; i < 3 && call.state + i < messages; ++i)
                    (void)__mc_machine_emit_send(sink, 1, call.state + i, sender);
                call.set(call.state + 3);
                if (call.state + 3 < messages)
                    (void)__mc_machine_emit_send(call.id, 1, 0, 0);
                return MC_DISPATCH_OK;
            });
            senders.push_back(id);
        }
        world.attach();
        for (const uint32_t id : senders)
            (void)world.send(id, 1);
        world.idle();
        for (const uint64_t count : next)
            cr_assert_eq(count, messages);
    });
}

// Goal: a transaction that one receiver has no room for does not happen at all; its machine faults.
Test(Attached, all_or_nothing) {
    on_each([](World &world) {
        const uint32_t small = world.machine(take, 1, false);
        const uint32_t large = world.machine(take, 8, false);
        const uint32_t id = world.machine([=](Call call) {
            call.set(7);
            (void)__mc_machine_emit_send(large, 1, 0, 0);
            (void)__mc_machine_emit_request(large, 1, 0, 0, 0);
            (void)__mc_machine_emit_send(small, 1, 0, 0);
            (void)__mc_machine_emit_send(small, 1, 0, 0);
            return MC_DISPATCH_OK;
        });
        world.attach();
        (void)world.send(id, 1);
        world.idle();
        cr_assert_eq(world.lifecycle(id), MC_MACHINE_FAULTED);
        cr_assert_eq(get(world.last_fault), MC_FAULT_CODE_TXN_COMMIT_REJECTED);
        cr_assert_eq(world.state(id), 0);
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, small), 0);
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, large), 0);
        cr_assert_eq(mc_machine_runtime_pending_len(&world.rt), 0);
    });
}

// Goal: machines run beside each other: two handlers wait for one another.
Test(Attached, runs_machines_beside_each_other, .timeout = 60) {
    cr_assert_eq(csp_init_runtime(2), 1);
    {
        World world;
        sync::atomic<uint64_t> here{0};
        std::vector<uint32_t> ids;
        for (int i = 0; i < 2; ++i)
            ids.push_back(world.machine([&](Call) {
                (void)here.fetch_add(1, sync::acq_rel);
                cr_assert(csp::testing::hog_until([&] { return get(here) == 2; }));
                return MC_DISPATCH_OK;
            }));
        world.attach();
        for (const uint32_t id : ids)
            (void)world.send(id, 1);
        world.idle();
    }
    csp_shutdown_runtime();
}

// Goal: a machine's handler is never in two places, however many send to it.
Test(Attached, one_envelope_at_a_time) {
    on_each([](World &world) {
        const int messages = scaled(3'000);
        sync::atomic<uint64_t> inside{0};
        const uint32_t id = world.machine(
            [&](Call call) {
                cr_assert_eq(inside.fetch_add(1, sync::acq_rel), 0);
                call.set(call.state + 1);
                (void)inside.fetch_sub(1, sync::acq_rel);
                return MC_DISPATCH_OK;
            },
            1'000'000);
        world.attach();
        std::vector<mc_task_t> tasks;
        for (int i = 0; i < 3; ++i)
            tasks.push_back(csp::testing::start([&] {
                for (int k = 0; k < messages; ++k)
                    cr_assert_eq(world.send(id, 1), MC_MAILBOX_ENQUEUE_OK);
            }));
        for (const mc_task_t task : tasks)
            csp::testing::join(task);
        world.idle();
        cr_assert_eq(world.state(id), 3 * static_cast<uint64_t>(messages));
    });
}

// Goal: a blocking call in a handler is refused.
Test(Attached, handlers_do_not_block) {
    on_each([](World &world) {
        sync::atomic<uint64_t> status{0};
        Envelope reply;
        const uint32_t id = world.machine([&](Call call) {
            status.store(static_cast<uint64_t>(-mc_sleep(MC_SEC)), sync::relaxed);
            cr_assert_eq(world.ask(call.id, 1, 0, &reply), MC_E_CONTEXT);
            cr_assert_eq(mc_machine_run_until_idle(&world.rt, MC_FOREVER), MC_E_CONTEXT);
            cr_assert_eq(mc_machine_detach(&world.rt), MC_E_BUSY);
            return MC_DISPATCH_OK;
        });
        world.attach();
        (void)world.send(id, 1);
        world.idle();
        cr_assert_eq(get(status), static_cast<uint64_t>(-MC_E_CONTEXT));
    });
}

// Goal: handlers may spawn, start, send directly, and stop others and themselves.
Test(Attached, handlers_call_back) {
    on_each([](World &world) {
        const uint64_t deep = static_cast<uint64_t>(scaled(300));
        sync::atomic<uint64_t> made{0};
        Handler make = [&](Call call) {
            (void)made.fetch_add(1, sync::relaxed);
            if (call.env.payload0 != 0) {
                const uint32_t child = world.machine(make);
                cr_assert_eq(world.send(child, 1, call.env.payload0 - 1), MC_MAILBOX_ENQUEUE_OK);
            }
            cr_assert_eq(mc_machine_runtime_stop(&world.rt, call.id), 1);
            cr_assert_eq(__mc_machine_emit_send(1, 1, 0, 0), 1, "staged, and dropped");
            return MC_DISPATCH_OK;
        };
        const uint32_t first = world.machine(make);
        world.attach();
        (void)world.send(first, 1, deep);
        world.idle();
        cr_assert_eq(get(made), deep + 1);
        cr_assert_eq(mc_machine_runtime_stopped_cleanup_count(&world.rt), deep + 1);
        cr_assert_eq(get(world.faults), 0);
    });
}

// Goal: exceptions, faults and stops as when stepping.
Test(Attached, faults) {
    on_each([](World &world) {
        const uint32_t throws = world.machine([](Call) -> mc_dispatch_result_t { throw 1; });
        const uint32_t faults = world.machine([](Call call) {
            call.code = 42;
            return MC_DISPATCH_FAULT;
        });
        const uint32_t stops = world.machine([](Call) { return MC_DISPATCH_STOP; });
        world.attach();
        (void)world.send(throws, 1);
        world.idle();
        cr_assert_eq(get(world.faults), 1);
        (void)world.send(faults, 1);
        world.idle();
        cr_assert_eq(get(world.last_fault), 42);
        (void)world.send(stops, 1);
        (void)world.send(stops, 1);
        world.idle();
        cr_assert_eq(world.lifecycle(throws), MC_MACHINE_FAULTED);
        cr_assert_eq(world.lifecycle(faults), MC_MACHINE_FAULTED);
        cr_assert_eq(world.lifecycle(stops), MC_MACHINE_STOPPED);
        cr_assert_eq(get(world.faults), 2);
        cr_assert_eq(world.send(faults, 1), MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING);
        cr_assert_eq(get(world.dead[MC_DEAD_LETTER_FAULTED_MACHINE]), 1);
    });
}

// Goal: a publication reaches who subscribes, and who has no room misses it.
Test(Attached, publications) {
    on_each([](World &world) {
        std::vector<uint32_t> ids;
        for (int i = 0; i < 10; ++i)
            ids.push_back(world.machine(
                [](Call call) {
                    const mc_subscription_update_t add = {MC_SUBSCRIPTION_ADD, call.id, 5, 6};
                    thread_local mc_subscription_update_t kept; // read after the return
                    kept = add;
                    call.set(call.state + (call.env.kind == 5));
                    call.txn.subscriptions = &kept;
                    call.txn.subscriptions_len = call.env.kind == 1;
                    return MC_DISPATCH_OK;
                },
                2));
        const uint32_t loud = world.machine([](Call call) {
            (void)__mc_machine_emit_publish(5, 6, call.env.payload0, 0);
            return MC_DISPATCH_OK;
        });
        world.attach();
        for (const uint32_t id : ids)
            (void)world.send(id, 1);
        world.idle();
        cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 10);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, ids[3]), 1);
        cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 9);
        (void)world.send(loud, 1);
        world.idle();
        for (const uint32_t id : ids)
            cr_assert_eq(world.state(id), id == ids[3] ? 0 : 1);
    });
}

// --- room ----------------------------------------------------------------------------------------------------------------

// Goal: with RETRY a machine waits for room, nothing is lost, nothing comes twice, and the order holds.
Test(OnFull, retry_waits_for_room) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const uint64_t messages = static_cast<uint64_t>(scaled(1'000));
        uint64_t next[4] = {};
        std::vector<uint32_t> senders;
        const uint32_t sink = world.machine(
            [&](Call call) {
                cr_assert_eq(call.env.payload0, next[call.env.payload1]++);
                return MC_DISPATCH_OK;
            },
            2);
        for (uint64_t sender = 0; sender < 4; ++sender)
            senders.push_back(world.machine([=](Call call) {
                (void)__mc_machine_emit_send(sink, 1, call.state, sender);
                if (call.state % 2 == 0)
                    (void)__mc_machine_emit_send(sink, 1, call.state + 1, sender);
                const uint64_t after = call.state + (call.state % 2 == 0 ? 2 : 1);
                call.set(after);
                if (after < messages)
                    (void)__mc_machine_emit_send(call.id, 1, 0, 0);
                return MC_DISPATCH_OK;
            }));
        world.attach();
        for (const uint32_t id : senders)
            (void)world.send(id, 1);
        world.idle();
        for (const uint64_t count : next)
            cr_assert_eq(count, messages + messages % 2);
        cr_assert_eq(get(world.faults), 0);
    });
}

// Goal: who waits for room keeps its envelope, also when its own mailbox has grown for what it sends to itself.
Test(OnFull, retry_keeps_the_envelope) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const uint32_t sink = world.machine(take, 1, false);
        std::vector<uint64_t> seen;
        const uint32_t id = world.machine(
            [&](Call call) {
                seen.push_back(call.env.payload0);
                if (call.env.payload0 != 50)
                    return MC_DISPATCH_OK;
                (void)__mc_machine_emit_send(call.id, 1, 100, 0);
                (void)__mc_machine_emit_send(call.id, 1, 101, 0);
                (void)__mc_machine_emit_send(sink, 1, 0, 0);
                return MC_DISPATCH_OK;
            },
            64, false);
        for (uint64_t i = 50; i < 58; ++i) // as many as a mailbox has room for at first
            (void)world.send(id, 1, i);
        (void)world.send(sink, 1);
        world.attach();
        cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 1);
        world.idle();
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, id), 8);
        cr_assert_eq(mc_machine_runtime_start(&world.rt, sink), 1);
        world.idle();
        cr_assert(seen == std::vector<uint64_t>({50, 50, 51, 52, 53, 54, 55, 56, 57, 100, 101}));
    });
}

// Goal: what can never fit, and what would wait in a circle, is rejected.
Test(OnFull, retry_does_not_wait_for_ever) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const uint32_t sink = world.machine(take, 2);
        const uint32_t greedy = world.machine([=](Call) {
            for (int i = 0; i < 3; ++i)
                (void)__mc_machine_emit_send(sink, 1, 0, 0);
            return MC_DISPATCH_OK;
        });
        const uint32_t selfish = world.machine(
            [](Call call) {
                (void)__mc_machine_emit_send(call.id, 1, 0, 0);
                (void)__mc_machine_emit_send(call.id, 1, 0, 0);
                return MC_DISPATCH_OK;
            },
            2);
        world.attach();
        (void)world.send(greedy, 1);
        world.idle();
        cr_assert_eq(world.lifecycle(greedy), MC_MACHINE_FAULTED);
        (void)world.send(selfish, 1);
        world.idle(); // one becomes two, which become three
        cr_assert_eq(world.lifecycle(selfish), MC_MACHINE_FAULTED);
        cr_assert_eq(get(world.faults), 2);
    });
}

// Two that fill each other's mailboxes: one of them must fault, and then the other goes on.
Test(OnFull, a_circle_is_found) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        uint32_t ids[2] = {};
        for (uint32_t i = 0; i < 2; ++i)
            ids[i] = world.machine(
                [=](Call call) {
                    (void)__mc_machine_emit_send(2 - i, 1, 0, 0);
                    (void)__mc_machine_emit_send(2 - i, 1, 0, 0);
                    (void)call;
                    return MC_DISPATCH_OK;
                },
                3, false);
        world.attach();
        for (const uint32_t id : ids)
            for (int i = 0; i < 3; ++i)
                (void)world.send(id, 1);
        for (const uint32_t id : ids)
            cr_assert_eq(mc_machine_runtime_start(&world.rt, id), 1);
        world.idle();
        cr_assert_geq(get(world.faults), 1);
        cr_assert_eq(mc_machine_runtime_ready_len(&world.rt), 0);
    });
}

// Goal: who waits for room is let go when the other one stops, and may stop itself while it waits.
Test(OnFull, waiting_and_stopping) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const uint32_t full = world.machine(take, 1, false);
        uint32_t waiting[3] = {};
        for (uint32_t &id : waiting)
            id = world.machine(sends_to(full));
        world.attach();
        (void)world.send(full, 1);
        for (const uint32_t id : waiting)
            (void)world.send(id, 1);
        world.idle();
        for (const uint32_t id : waiting)
            cr_assert_eq(world.state(id), 0);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, waiting[1]), 1);
        cr_assert_eq(mc_machine_runtime_start(&world.rt, full), 1);
        world.idle();
        cr_assert_eq(world.state(waiting[0]), 1);
        cr_assert_eq(world.state(waiting[2]), 1);
        cr_assert_eq(get(world.faults), 0);
    });
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const uint32_t full = world.machine(take, 1, false);
        const uint32_t id = world.machine([=](Call) {
            (void)__mc_machine_emit_send(full, 1, 0, 0);
            return MC_DISPATCH_OK;
        });
        world.attach();
        (void)world.send(full, 1);
        (void)world.send(id, 1);
        world.idle();
        cr_assert_eq(get(world.faults), 0);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, full), 1);
        world.idle();
        cr_assert_eq(get(world.faults), 1, "nobody is there to send to");
    });
    on_each([](World &world) { // it is detached, and dropped, while one waits
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const uint32_t full = world.machine(take, 1, false);
        const uint32_t id = world.machine([=](Call call) {
            (void)__mc_machine_emit_send(full, 1, 0, 0);
            call.set(call.state + 1);
            return MC_DISPATCH_OK;
        });
        for (int round = 0; round < 2; ++round) {
            world.attach();
            if (round == 0)
                (void)world.send(full, 1);
            (void)world.send(id, 1);
            world.idle();
            if (round == 0) {
                cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
                cr_assert_eq(mc_machine_runtime_ready_len(&world.rt), 1);
                cr_assert_eq(mc_machine_runtime_start(&world.rt, full), 1);
                world.idle();
            }
        }
        cr_assert_eq(get(world.faults), 1, "stepping does not wait");
    });
}

// --- requests ------------------------------------------------------------------------------------------------------------

// Goal: a reply to a request that has ended is a fault, or is discarded, as was chosen.
Test(LateReply, fault_or_discard) {
    for (uint32_t what = 0; what < 2; ++what)
        on_each([=](World &world) {
            cr_assert_eq(mc_machine_set_on_late_reply(&world.rt, what), MC_OK);
            const uint32_t requester = world.machine(take);
            const uint32_t sink = world.machine([](Call call) {
                call.set(call.state + 1);
                return MC_DISPATCH_OK;
            });
            const uint32_t late = world.machine([=](Call call) {
                if (call.env.kind == 1) {
                    call.set(call.env.reply_cap_id);
                } else {
                    (void)__mc_machine_emit_send(sink, 1, 0, 0);
                    (void)__mc_machine_emit_reply(call.state, 9, 0, 0);
                    call.set(5);
                }
                return MC_DISPATCH_OK;
            });
            world.attach();
            cr_assert_neq(mc_machine_runtime_request_u64(world.word(), requester, late, 1, 0, 0), 0);
            world.idle();
            cr_assert_eq(mc_machine_runtime_stop(&world.rt, requester), 1);
            const uint64_t cap = world.state(late);
            (void)world.send(late, 2);
            world.idle();
            cr_assert_eq(world.state(sink), 0, "all or nothing");
            cr_assert_eq(world.state(late), cap);
            cr_assert_eq(world.lifecycle(late),
                         what == MC_MACHINE_ON_LATE_REPLY_FAULT ? MC_MACHINE_FAULTED : MC_MACHINE_RUNNING);
            cr_assert_eq(get(world.dead[MC_DEAD_LETTER_REPLY_CAP_UNKNOWN]), what);
            cr_assert_eq(get(world.faults), 1 - what);
        });
}

// Goal: requests end by their age, in nanoseconds, and by steps; nobody need call anything for the former.
Test(Timeouts, by_the_clock_and_by_steps, .timeout = 60) {
    on_each([](World &world) {
        const uint32_t deaf = world.machine(take);
        const uint32_t requester = world.machine([=](Call call) {
            (void)__mc_machine_emit_request(deaf, 1, 0, 0, call.env.payload0);
            return MC_DISPATCH_OK;
        });
        world.attach();
        cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 5 * MC_MS), MC_OK);
        for (int round = 0; round < 3; ++round) {
            const uint64_t before = world.ended(MC_PENDING_CLEANUP_TIMEOUT);
            const int64_t begun = mc_now();
            for (int i = 0; i < 5; ++i)
                (void)world.send(requester, 1);
            world.idle();
            while (world.ended(MC_PENDING_CLEANUP_TIMEOUT) != before + 5)
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_geq(mc_now() - begun, 5 * MC_MS);
            cr_assert_eq(mc_machine_runtime_pending_len(&world.rt), 0);
        }
        while (get(world.ends[MC_PENDING_CLEANUP_TIMEOUT]) != 15) // the last hook is under way
            cr_assert_eq(mc_sleep(MC_MS), MC_OK);
        cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 0), MC_OK);
        mc_machine_runtime_set_pending_timeout_steps(&world.rt, 3);
        (void)world.send(requester, 1);
        world.idle();
        for (int i = 0; i < 60; ++i) { // it may take sixteen dispatches an executor more
            (void)world.send(deaf, 1);
            world.idle();
        }
        cr_assert_eq(world.ended(MC_PENDING_CLEANUP_TIMEOUT), 16);
    });
}

// --- asking --------------------------------------------------------------------------------------------------------------

// Goal: microthreads and other threads ask machines, and get their own answers.
Test(Ask, answers) {
    on_each([](World &world) {
        const uint32_t id = world.machine(answer, 1'000);
        world.attach();
        const int rounds = scaled(300);
        std::vector<mc_task_t> tasks;
        for (uint64_t i = 0; i < 5; ++i)
            tasks.push_back(csp::testing::start([&, i] {
                Envelope reply{};
                for (int k = 0; k < rounds; ++k) {
                    const uint64_t word = i << 32 | static_cast<uint64_t>(k);
                    cr_assert_eq(world.ask(id, i + 1, word, &reply), MC_OK);
                    cr_assert_eq(reply.payload0, word + 1);
                    cr_assert_eq(reply.kind, i + 1);
                    cr_assert_eq(reply.src, id);
                }
            }));
        Envelope reply{};
        for (int k = 0; k < rounds; ++k) {
            cr_assert_eq(world.ask(id, 9, 70, &reply), MC_OK);
            cr_assert_eq(reply.payload0, 71);
        }
        for (const mc_task_t task : tasks)
            csp::testing::join(task);
        cr_assert_eq(world.ask(id, 9, 70, nullptr), MC_OK, "who does not want to know");
        cr_assert_eq(mc_machine_runtime_pending_len(&world.rt), 0);
        cr_assert_eq(mc_machine_runtime_pending_created_count(&world.rt), static_cast<uint64_t>(6 * rounds + 1));
    });
}

// Goal: the hook is told of an asker's request as of nobody's, also where its row was a machine's before.
Test(Ask, is_nobodys) {
    on_each([](World &world) {
        const uint32_t id = world.machine(answer, 100), requester = world.machine(take, 100);
        world.attach();
        for (uint64_t round = 1; round <= 50; ++round) {
            cr_assert_neq(mc_machine_runtime_request_u64(world.word(), requester, id, 1, 0, 0), 0);
            world.idle();
            cr_assert_eq(get(world.of_askers), round - 1);
            cr_assert_eq(world.ask(id, 1, 0, nullptr), MC_OK);
            world.idle(); // who answers tells the hook, perhaps after the asker has gone on
            cr_assert_eq(get(world.of_askers), round);
        }
    });
}

// Goal: asking ends without an answer for each reason that the header names.
Test(Ask, ends_otherwise, .timeout = 60) {
    on_each([](World &world) {
        Envelope reply{};
        reply.kind = 1234;
        const uint32_t id = world.machine(answer);
        cr_assert_eq(world.ask(id, 1, 1, &reply), MC_E_NOTSUP);
        const uint32_t down = world.machine(take);
        const uint32_t full = world.machine(take, 1, false);
        const uint32_t deaf = world.machine(take);
        world.attach();
        cr_assert_eq(mc_machine_ask_u64(12345, id, 1, 1, 1, MC_FOREVER, &reply), MC_E_STALE);
        cr_assert_eq(mc_machine_ask_u64(world.word(), uint64_t{1} << 40 | id, 1, 1, 1, MC_FOREVER, &reply), MC_E_NOENT);
        cr_assert_eq(world.ask(77, 1, 1, &reply), MC_E_NOENT);
        cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, down), 1);
        cr_assert_eq(world.ask(down, 1, 1, &reply), MC_E_CLOSED);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, down), 1);
        cr_assert_eq(world.ask(down, 1, 1, &reply), MC_E_CLOSED);
        (void)world.send(full, 1);
        cr_assert_eq(world.ask(full, 1, 1, &reply), MC_E_FULL);
        cr_assert_eq(world.ask(deaf, 1, 1, &reply, mc_after((mc::testing::under_valgrind ? 500 : 5) * MC_MS)),
                     MC_E_TIMEDOUT);
        cr_assert_eq(world.ask(deaf, 1, 1, &reply, MC_NOW), MC_E_TIMEDOUT);
        cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 5 * MC_MS), MC_OK);
        cr_assert_eq(world.ask(deaf, 1, 1, &reply), MC_E_TIMEDOUT);
        cr_assert_eq(reply.kind, 1234, "untouched on failure");
        world.idle();
        cr_assert_eq(mc_machine_runtime_pending_len(&world.rt), 0);
        cr_assert_eq(world.ended(MC_PENDING_CLEANUP_TIMEOUT), 2);
        cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 0), MC_OK);
        cr_assert_eq(world.ask(id, 1, 1, &reply), MC_OK);
    });
}

// Goal: a cancelled scope ends asking, and dropping the runtime does.
Test(Ask, ends_with_scope_and_runtime, .timeout = 60) {
    for (const int executors : {0, 2}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            auto world = std::make_unique<World>();
            const uint32_t deaf = world->machine(take);
            world->attach();
            mc_scope_t scope = 0;
            cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
            const mc_task_t task = csp::testing::start([&] {
                Envelope reply;
                cr_assert_eq(mc_scope_enter(scope), MC_OK);
                cr_assert_eq(world->ask(deaf, 1, 1, &reply), MC_E_CANCELED);
                cr_assert_eq(mc_scope_leave(), MC_OK);
            });
            while (mc_machine_runtime_pending_len(&world->rt) != 1)
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
            csp::testing::join(task);
            cr_assert_eq(mc_scope_destroy(scope), MC_OK);
            const uint64_t word = world->word();
            const mc_task_t other = csp::testing::start([=] {
                Envelope reply;
                cr_assert_eq(mc_machine_ask_u64(word, deaf, 1, 1, 1, MC_FOREVER, &reply), MC_E_SHUTDOWN);
            });
            while (mc_machine_runtime_pending_len(&world->rt) != 1)
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(mc_machine_detach(&world->rt), MC_E_BUSY, "somebody asks");
            mc_machine_runtime_drop(&world->rt);
            csp::testing::join(other);
        }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: boxes: one in the request is dropped when the answer has come, one in the answer is the caller's; also when it is the same
// box; a reply that nobody wants is dropped.
Test(Ask, boxes) {
    static sync::atomic<uint64_t> drops{0};
    constexpr uint64_t layout = 5001, owned = MC_PAYLOAD_LAYOUT_OWNED_MASK | layout;
    mc_machine_runtime_register_payload_drop(layout, [](void *) { (void)drops.fetch_add(1, sync::relaxed); });
    auto box = [] { return reinterpret_cast<uintptr_t>(__mc_alloc(16, 16)); };
    on_each([&](World &world) {
        drops.store(0, sync::relaxed);
        const uint32_t returns = world.machine([](Call call) {
            (void)__mc_machine_emit_reply(call.env.reply_cap_id, 2, call.env.payload0, call.env.payload1);
            return MC_DISPATCH_OK;
        });
        const uint32_t another = world.machine([=](Call call) {
            (void)__mc_machine_emit_reply(call.env.reply_cap_id, 2, box(), owned);
            return MC_DISPATCH_OK;
        });
        const uint32_t deaf = world.machine(take, 8, false);
        world.attach();
        Envelope reply{};
        const uint64_t mine = box();
        cr_assert_eq(mc_machine_ask(&world.rt, returns, 1, mine, owned, MC_FOREVER, &reply), MC_OK);
        cr_assert_eq(reply.payload0, mine);
        world.idle();
        cr_assert_eq(get(drops), 0);
        __mc_free(reinterpret_cast<void *>(reply.payload0));
        cr_assert_eq(mc_machine_ask(&world.rt, another, 1, box(), owned, MC_FOREVER, &reply), MC_OK);
        world.idle();
        cr_assert_eq(get(drops), 1, "the request's");
        __mc_free(reinterpret_cast<void *>(reply.payload0));
        cr_assert_eq(mc_machine_ask(&world.rt, another, 1, box(), owned, MC_FOREVER, nullptr), MC_OK);
        world.idle();
        cr_assert_eq(get(drops), 3);
        cr_assert_eq(mc_machine_ask(&world.rt, deaf, 1, box(), owned, mc_after(MC_MS), &reply), MC_E_TIMEDOUT);
        cr_assert_eq(get(drops), 4);
        cr_assert_eq(mc_machine_ask(&world.rt, 99, 1, box(), owned, MC_FOREVER, &reply), MC_E_NOENT);
        cr_assert_eq(get(drops), 5);
    });
}

// --- ends ----------------------------------------------------------------------------------------------------------------

// Goal: a snapshot says what those wait for who poll, send with patience, or wait until the runtime is idle; none of it has a name.
Test(Attached, waits_are_reported, .timeout = 60) {
    on_each([](World &world) {
        const uint32_t deaf = world.machine(take, 1, false), polled = world.machine(take);
        cr_assert_eq(mc_machine_bind_poll(&world.rt, polled, 1), MC_OK); // for who polls that very one
        world.attach();
        (void)world.send(deaf, 1);
        (void)world.send(polled, 1);
        const mc_task_t waiters[] = {
            csp::testing::start([&] {
                mc_machine_polled none;
                cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &none), MC_E_SHUTDOWN);
            }),
            csp::testing::start(
                [&] { cr_assert_eq(mc_machine_send_until(&world.rt, deaf, 1, 0, 0, MC_FOREVER), MC_E_SHUTDOWN); }),
            csp::testing::start([&] { (void)mc_machine_run_until_idle(&world.rt, MC_FOREVER); }),
        };
        struct Seen {
            uint32_t poll = 0, mailbox = 0, quiescence = 0;
        } seen;
        auto visit = [](void *to, const mc_task_info *info) {
            auto &counts = *static_cast<Seen *>(to);
            if (info->state != MC_TASK_WAITING)
                return;
            counts.poll += info->waits_for == MC_WAIT_POLL;
            counts.mailbox += info->waits_for == MC_WAIT_MAILBOX;
            counts.quiescence += info->waits_for == MC_WAIT_QUIESCENCE;
            cr_assert_eq(info->object_name[0], '\0');
        };
        while (seen.poll != 1 || seen.mailbox != 1 || seen.quiescence != 1) {
            cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            seen = {};
            cr_assert_eq(mc_inspect_tasks(0, 0, visit, &seen), MC_OK);
        }
        mc_machine_runtime_drop(&world.rt);
        for (const mc_task_t waiter : waiters)
            csp::testing::join(waiter);
    });
}

// Goal: who waits until the runtime is idle, and nobody is left who could make it so, is told; that is no end of the runtime.
Test(Attached, never_idle) {
    mc::testing::in_process_with_one_thread([] {
        World world;
        const uint32_t id = world.machine(take);
        cr_assert_eq(mc_machine_bind_poll(&world.rt, id, 0), MC_OK);
        world.attach();
        (void)world.send(id, 1);
        mc_machine_polled polled;
        cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &polled), MC_OK);
        cr_assert_eq(mc_machine_run_until_idle(&world.rt, MC_FOREVER), MC_E_DEADLOCK);
        // Likewise when it is another thread that waits, and the owner cannot go on: both wait for ever.
        int32_t status = MC_OK;
        sync::thread other;
        struct Wait {
            World &world;
            int32_t &status;
        } wait{world, status};
        auto run = [](void *at) {
            const Wait &its = *static_cast<Wait *>(at);
            its.status = mc_machine_run_until_idle(&its.world.rt, MC_FOREVER);
        };
        cr_assert(other.start(run, &wait));
        cr_assert_eq(mc_sleep_until(MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
        other.join();
        cr_assert_eq(status, MC_OK);
        world.idle();
    });
}

// Goal: a runtime is dropped while its machines are busy: inside a handler, and by others; boxes in its mail are freed.
Test(Attached, dropped_while_busy, .timeout = 60) {
    for (const int executors : {0, 1, 2, 3})
        for (int how = 0; how < 2; ++how) {
            if (executors != 0)
                cr_assert_eq(csp_init_runtime(executors), 1);
            sync::atomic<uint64_t> dispatched{0};
            auto owned = std::make_unique<World>(); // its handlers are there until the executors have stopped
            {
                World &world = *owned;
                std::vector<uint32_t> ids;
                for (int i = 0; i < 8; ++i)
                    ids.push_back(world.machine(
                        [&, how](Call call) {
                            const uint64_t before = dispatched.fetch_add(1, sync::acq_rel);
                            if (how == 0 && before == 100)
                                mc_machine_runtime_drop(&world.rt);
                            (void)__mc_machine_emit_send(1 + (call.id * 7 + before) % 8, 1,
                                                         reinterpret_cast<uintptr_t>(__mc_alloc(8, 8)),
                                                         MC_PAYLOAD_LAYOUT_OWNED_MASK);
                            (void)__mc_machine_emit_request(1 + before % 8, 1, 0, 0, 0);
                            return MC_DISPATCH_OK;
                        },
                        1'000'000));
                world.attach();
                for (const uint32_t id : ids)
                    (void)world.send(id, 1);
                if (how == 1)
                    while (get(dispatched) < 100)
                        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
                else
                    while (mc_machine_run_until_idle(&world.rt, MC_FOREVER) == MC_OK)
                        continue;
                mc_machine_runtime_drop(&world.rt);
                cr_assert_eq(world.send(ids[0], 1), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
                const int64_t end = mc_now() + 10 * MC_SEC;
                while (__mc_alloc_live_blocks() != 0 && mc_now() < end) // how == 0: it ends with its last handler
                    cr_assert_eq(mc_sleep(MC_MS), MC_OK);
                cr_assert_eq(__mc_alloc_live_blocks(), 0);
            }
            if (executors != 0) {
                csp_schedule();
                csp_shutdown_runtime();
            }
        }
}

// Goal: hosts are used again: attached, detached and dropped many times, with work in between.
Test(Attached, again_and_again) {
    on_each([](World &world) {
        const uint32_t id = world.machine([](Call call) {
            call.set(call.state + 1);
            return MC_DISPATCH_OK;
        });
        const int rounds = scaled(100);
        for (int i = 0; i < rounds; ++i) {
            world.attach();
            for (int k = 0; k < 5; ++k)
                cr_assert_eq(world.send(id, 1), MC_MAILBOX_ENQUEUE_OK);
            world.idle();
            cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
        }
        cr_assert_eq(world.state(id), 5 * static_cast<uint64_t>(rounds));
    });
}

} // namespace
} // namespace mc::compose::test
