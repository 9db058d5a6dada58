// Machines that are polled, and tokens: what mc/machine.h, "Polling", says.
#include "compose/test_attached.hpp"

#include <vector>

namespace mc::compose::test {
namespace {

uint32_t polled_machine(World &world, uint32_t cap = 8) {
    const uint32_t id = world.machine([](Call) { return MC_DISPATCH_FAULT; }, cap); // never called
    cr_assert_eq(mc_machine_bind_poll(&world.rt, id, 0), MC_OK);
    return id;
}

mc_machine_polled poll(World &world, int64_t deadline_ns = MC_FOREVER) {
    mc_machine_polled polled;
    cr_assert_eq(mc_machine_poll(&world.rt, deadline_ns, &polled), MC_OK);
    return polled;
}

// Goal: an envelope is taken, what is said happens with the commit and not before, and the token has ended then.
Test(Token, commits) {
    World world;
    const uint32_t sink = world.machine([](Call call) {
        call.set(call.state + call.env.payload0);
        if (call.env.reply_cap_id != 0)
            (void)__mc_machine_emit_reply(call.env.reply_cap_id, 8, 0, 0);
        return MC_DISPATCH_OK;
    });
    const uint32_t id = polled_machine(world);
    world.attach();
    Envelope reply{};
    const mc_task_t asker = csp::testing::start([&] { cr_assert_eq(world.ask(id, 5, 6, &reply), MC_OK); });
    const mc_machine_polled first = poll(world);
    cr_assert_eq(first.machine, id);
    cr_assert_eq(first.envelope.kind, 5);
    cr_assert_eq(first.envelope.payload0, 6);
    cr_assert_eq(first.state, 0);
    uint64_t pending = 0;
    cr_assert_eq(mc_txn_send(first.token, sink, 1, 10, 0), MC_OK);
    cr_assert_eq(mc_txn_request(first.token, sink, 1, 100, 0, 7, &pending), MC_OK);
    cr_assert_neq(pending, 0);
    cr_assert_eq(mc_txn_reply(first.token, first.envelope.reply_cap_id, 9, 99, 0), MC_OK);
    cr_assert_eq(mc_txn_subscribe(first.token, 11, 12), MC_OK);
    cr_assert_eq(mc_txn_publish(first.token, 11, 12, 13, 0), MC_OK);
    cr_assert_eq(mc_txn_set_state(first.token, 1), MC_OK);
    cr_assert_eq(mc_txn_set_state(first.token, 77), MC_OK);
    cr_assert_eq(mc_txn_send(first.token, uint64_t{1} << 32, 1, 0, 0), MC_E_INVAL);
    cr_assert_eq(mc_txn_publish(first.token, 1, 1, 0, MC_PAYLOAD_LAYOUT_OWNED_MASK), MC_E_INVAL);
    cr_assert_eq(world.state(sink), 0, "not yet");
    cr_assert_eq(mc_machine_detach(&world.rt), MC_E_BUSY);
    cr_assert_eq(mc_txn_commit(first.token), MC_OK);
    cr_assert_eq(mc_txn_commit(first.token), MC_E_STALE);
    cr_assert_eq(mc_txn_send(first.token, sink, 1, 10, 0), MC_E_STALE);
    cr_assert_eq(mc_txn_abort(first.token, 1), MC_E_STALE);
    csp::testing::join(asker);
    cr_assert_eq(reply.payload0, 99);
    cr_assert_eq(world.state(id), 77);
    // Its own publication, and the reply to its request.
    const mc_machine_polled second = poll(world);
    cr_assert_eq(second.envelope.kind, 11);
    cr_assert_eq(second.state, 77);
    cr_assert_eq(mc_txn_unsubscribe(second.token, 11, 12), MC_OK);
    cr_assert_eq(mc_txn_commit(second.token), MC_OK);
    const mc_machine_polled third = poll(world);
    cr_assert_eq(third.envelope.kind, 8);
    cr_assert_eq(third.envelope.pending_id, pending);
    cr_assert_eq(third.envelope.origin_request_site_key, 7);
    cr_assert_eq(mc_txn_commit(third.token), MC_OK);
    world.idle();
    cr_assert_eq(world.state(sink), 110);
    cr_assert_eq(mc_machine_runtime_subscription_len(&world.rt), 0);
    mc_machine_polled none;
    cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &none), MC_E_TIMEDOUT);
}

// Goal: who may not poll, and what is no token.
Test(Token, refuses) {
    World world;
    mc_machine_polled polled;
    uint32_t count = 0;
    cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &polled), MC_E_NOTSUP);
    cr_assert_eq(mc_machine_poll_u64(12345, MC_NOW, &polled), MC_E_STALE);
    cr_assert_eq(mc_machine_bind_poll(&world.rt, 9, 0), MC_E_NOENT);
    cr_assert_eq(mc_machine_bind_poll_u64(12345, 9, 0), MC_E_STALE);
    world.attach();
    cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_machine_poll_batch(&world.rt, MC_NOW, &polled, 0, &count), MC_E_INVAL);
    cr_assert_eq(mc_machine_set_token_timeout(&world.rt, -1), MC_E_INVAL);
    cr_assert_eq(mc_machine_poll(&world.rt, mc_after(MC_MS), &polled), MC_E_TIMEDOUT);
    for (const uint64_t token : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{13} << 28 | uint64_t{1} << 32})
        cr_assert_eq(mc_txn_commit(token), MC_E_STALE);
}

// Goal: what becomes of a commit that cannot be carried out, for each reason.
Test(Token, is_refused) {
    for (const bool gentle : {false, true}) {
        World world;
        if (gentle) {
            cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
            cr_assert_eq(mc_machine_set_on_late_reply(&world.rt, MC_MACHINE_ON_LATE_REPLY_DISCARD), MC_OK);
        }
        const uint32_t full = world.machine([](Call) { return MC_DISPATCH_OK; }, 1, false);
        const uint32_t id = polled_machine(world), other = polled_machine(world), third = polled_machine(world);
        world.attach();
        (void)world.send(full, 1);
        (void)world.send(id, 1);
        mc_machine_polled polled = poll(world);
        cr_assert_eq(mc_txn_send(polled.token, full, 1, 0, 0), MC_OK);
        cr_assert_eq(mc_txn_commit(polled.token), gentle ? MC_E_AGAIN : MC_E_CRASHED);
        cr_assert_eq(world.lifecycle(id), gentle ? MC_MACHINE_RUNNING : MC_MACHINE_FAULTED);
        cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &polled), MC_E_TIMEDOUT, "it waits for room");
        if (gentle) {
            cr_assert_eq(mc_machine_runtime_start(&world.rt, full), 1);
            polled = poll(world);
            cr_assert_eq(polled.machine, id);
            cr_assert_eq(mc_txn_send(polled.token, full, 1, 0, 0), MC_OK);
            cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
        }
        (void)world.send(other, 1);
        polled = poll(world);
        cr_assert_eq(mc_txn_reply(polled.token, 4711, 1, 0, 0), MC_OK);
        cr_assert_eq(mc_txn_commit(polled.token), gentle ? MC_E_NOENT : MC_E_CRASHED);
        (void)world.send(third, 1);
        polled = poll(world);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, third), 1);
        cr_assert_eq(mc_txn_commit(polled.token), MC_E_CLOSED);
        world.idle();
        cr_assert_eq(get(world.faults), gentle ? 0 : 2);
    }
}

// Goal: an aborted token faults its machine with the code; one that is too old, with its own; boxes are freed.
Test(Token, ends_badly, .timeout = 60) {
    for (const int executors : {0, 2}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            const uint32_t id = polled_machine(world), other = polled_machine(world);
            world.attach();
            auto box = [] { return reinterpret_cast<uintptr_t>(__mc_alloc(8, 8)); };
            (void)world.send(id, 1, box(), MC_PAYLOAD_LAYOUT_OWNED_MASK);
            mc_machine_polled polled = poll(world);
            cr_assert_eq(mc_txn_send(polled.token, other, 1, box(), MC_PAYLOAD_LAYOUT_OWNED_MASK), MC_OK);
            cr_assert_eq(mc_txn_abort(polled.token, 42), MC_OK);
            cr_assert_eq(get(world.last_fault), 42);
            cr_assert_eq(world.lifecycle(id), MC_MACHINE_FAULTED);
            cr_assert_eq(mc_machine_set_token_timeout(&world.rt, 5 * MC_MS), MC_OK);
            (void)world.send(other, 1, box(), MC_PAYLOAD_LAYOUT_OWNED_MASK);
            polled = poll(world);
            cr_assert_eq(mc_txn_send(polled.token, other, 1, box(), MC_PAYLOAD_LAYOUT_OWNED_MASK), MC_OK);
            while (get(world.faults) != 2)
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(get(world.last_fault), MC_FAULT_CODE_TOKEN_EXPIRED);
            cr_assert_eq(mc_txn_commit(polled.token), MC_E_STALE);
            world.idle();
        }
        cr_assert_eq(__mc_alloc_live_blocks(), 0);
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: a token expires although the runtime was to be detached meanwhile, which takes its alarms away and puts them back.
Test(Token, expires_after_a_refused_detach, .timeout = 60) {
    for (const int executors : {0, 2}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            const uint32_t id = polled_machine(world);
            world.attach();
            (void)world.send(id, 1);
            const mc_machine_polled polled = poll(world);
            cr_assert_eq(mc_machine_set_token_timeout(&world.rt, 300 * MC_MS), MC_OK);
            cr_assert_eq(mc_machine_detach(&world.rt), MC_E_BUSY);
            cr_assert_eq(mc_machine_run_until_idle(&world.rt, mc_after(10 * MC_SEC)), MC_OK);
            cr_assert_eq(get(world.last_fault), MC_FAULT_CODE_TOKEN_EXPIRED);
            cr_assert_eq(mc_txn_commit(polled.token), MC_E_STALE);
        }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: mail from before the runtime was attached is polled, none is lost when it is stepped or bound otherwise.
Test(Token, drivers_change) {
    World world;
    const uint32_t id = polled_machine(world);
    (void)world.send(id, 1);
    cr_assert_eq(mc_machine_runtime_step_u64(world.word()), MC_STEP_IDLE);
    world.attach();
    mc_machine_polled polled = poll(world);
    (void)world.send(id, 2);
    cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
    mc_machine_runtime_bind_dispatch(&world.rt, id, nullptr, nullptr); // while it waits to be polled
    cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &polled), MC_E_TIMEDOUT);
    world.idle();
    cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, id), 0);
    cr_assert_eq(mc_machine_bind_poll(&world.rt, id, 0), MC_OK);
    (void)world.send(id, 3);
    polled = poll(world);
    cr_assert_eq(polled.envelope.kind, 3);
    cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
    world.idle();
    (void)world.send(id, 4);
    cr_assert_eq(mc_machine_detach(&world.rt), MC_E_BUSY); // it waits to be polled
    polled = poll(world);
    cr_assert_eq(polled.envelope.kind, 4);
    cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
    world.idle();
    cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
    (void)world.send(id, 5);
    world.idle();
    cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, id), 1);
    world.attach();
    polled = poll(world);
    cr_assert_eq(polled.envelope.kind, 5);
    cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
    world.idle();
    cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
}

// Goal: a machine that waits to be polled, by anybody or by who polls that one, and goes down meanwhile, keeps nobody waiting.
Test(Token, goes_down_unpolled, .timeout = 60) {
    for (const int executors : {0, 2}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        for (const uint32_t alone : {0u, 1u})
            for (const bool stops : {false, true}) {
                World world;
                const uint32_t id = polled_machine(world);
                cr_assert_eq(mc_machine_bind_poll(&world.rt, id, alone), MC_OK);
                world.attach();
                cr_assert_eq(
                    world.send(id, 1, reinterpret_cast<uintptr_t>(__mc_alloc(8, 8)), MC_PAYLOAD_LAYOUT_OWNED_MASK),
                    MC_MAILBOX_ENQUEUE_OK);
                cr_assert_eq(mc_machine_run_until_idle(&world.rt, mc_after(MC_MS)), MC_E_TIMEDOUT);
                cr_assert_eq((stops ? mc_machine_runtime_stop : mc_machine_runtime_mark_faulted)(&world.rt, id), 1);
                cr_assert_eq(mc_machine_run_until_idle(&world.rt, mc_after(10 * MC_SEC)), MC_OK);
                cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
                cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, id), stops ? 0 : 1);
                mc_machine_runtime_drop(&world.rt);
                cr_assert_eq(__mc_alloc_live_blocks(), 0);
            }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: it is bound, stopped, spawned and polled by several at once, and everybody gets what is theirs in the end.
Test(Token, changes_hands, .timeout = 120) {
    for (const int executors : {0, 2, 3}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            world.attach();
            sync::atomic<uint64_t> done{0}, id{polled_machine(world, 64)};
            const mc_task_t poller = csp::testing::start([&] {
                mc_machine_polled polled;
                while (get(done) == 0) {
                    const bool one = (get(id) & 1) != 0;
                    const int32_t status =
                        one ? mc_machine_poll_one(&world.rt, static_cast<uint32_t>(get(id)), mc_after(MC_MS), &polled)
                            : mc_machine_poll(&world.rt, mc_after(MC_MS), &polled);
                    if (status == MC_OK)
                        (void)mc_txn_commit(polled.token); // it may have been stopped
                    else
                        cr_assert(status == MC_E_TIMEDOUT || status == MC_E_NOENT || status == MC_E_INVAL, "%d",
                                  status);
                }
            });
            const mc_task_t sender = csp::testing::start([&] {
                while (get(done) == 0) {
                    (void)world.send(static_cast<uint32_t>(get(id)), 1);
                    cr_assert_eq(mc_sleep(0), MC_OK);
                }
            });
            for (int i = 0; i < scaled(300); ++i) {
                const auto now = static_cast<uint32_t>(get(id));
                (void)mc_machine_bind_poll(&world.rt, now, i % 3 == 0 ? 0 : 1);
                if (i % 4 == 0)
                    mc_machine_runtime_bind_dispatch(&world.rt, now, nullptr, nullptr);
                cr_assert_eq(mc_sleep(0), MC_OK);
                if (i % 5 == 0) {
                    cr_assert_eq(
                        (i % 2 == 0 ? mc_machine_runtime_stop : mc_machine_runtime_mark_faulted)(&world.rt, now), 1);
                    id.store(polled_machine(world, 64), sync::release);
                }
            }
            done.store(1, sync::release);
            csp::testing::join(poller);
            csp::testing::join(sender);
            (void)mc_machine_runtime_stop(&world.rt, static_cast<uint32_t>(get(id)));
            cr_assert_eq(mc_machine_run_until_idle(&world.rt, mc_after(10 * MC_SEC)), MC_OK);
            cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
        }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: several poll, in batches and one by one, while tokens expire now and then: each envelope is given out once, in order.
Test(Token, many_pollers, .timeout = 120) {
    for (const int executors : {0, 1, 2, 3}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            constexpr uint64_t machines = 5;
            const uint64_t messages = static_cast<uint64_t>(scaled(500));
            for (uint64_t i = 0; i < machines; ++i)
                (void)polled_machine(world, 1'000'000);
            world.attach();
            uint64_t next[machines + 1] = {}; // of the token's holder
            sync::atomic<uint64_t> done{0};
            std::vector<mc_task_t> tasks;
            auto serve = [&](uint32_t most) {
                mc_machine_polled polled[8];
                uint32_t count = 0;
                while (get(done) != machines * messages) {
                    const int32_t status = mc_machine_poll_batch(&world.rt, mc_after(5 * MC_MS), polled, most, &count);
                    if (status == MC_E_TIMEDOUT)
                        continue;
                    cr_assert_eq(status, MC_OK);
                    for (uint32_t i = 0; i < count; ++i) {
                        cr_assert_eq(polled[i].envelope.payload0, next[polled[i].machine]++);
                        cr_assert_eq(mc_txn_set_state(polled[i].token, polled[i].state + 1), MC_OK);
                        (void)done.fetch_add(1, sync::acq_rel);
                        cr_assert_eq(mc_txn_commit(polled[i].token), MC_OK);
                    }
                }
            };
            for (const uint32_t most : {1u, 3u, 8u})
                tasks.push_back(csp::testing::start([&, most] { serve(most); }));
            for (uint64_t i = 0; i < messages; ++i)
                for (uint32_t id = 1; id <= machines; ++id)
                    cr_assert_eq(world.send(id, 1, i), MC_MAILBOX_ENQUEUE_OK);
            for (const mc_task_t task : tasks)
                csp::testing::join(task);
            world.idle();
            for (uint32_t id = 1; id <= machines; ++id)
                cr_assert_eq(world.state(id), messages);
        }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: dropping a runtime ends its tokens and who polls.
Test(Token, dropped, .timeout = 60) {
    for (const int executors : {0, 2}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            const uint32_t id = polled_machine(world), waits = polled_machine(world);
            world.attach();
            (void)world.send(id, 1, reinterpret_cast<uintptr_t>(__mc_alloc(8, 8)), MC_PAYLOAD_LAYOUT_OWNED_MASK);
            const mc_machine_polled polled = poll(world);
            sync::atomic<uint64_t> polls{0};
            const mc_task_t task = csp::testing::start([&] {
                mc_machine_polled none;
                polls.store(1, sync::release);
                cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &none), MC_E_SHUTDOWN);
            });
            while (get(polls) == 0)
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(mc_sleep(5 * MC_MS), MC_OK);
            (void)waits;
            mc_machine_runtime_drop(&world.rt);
            csp::testing::join(task);
            cr_assert_eq(mc_txn_commit(polled.token), MC_E_STALE);
            const int64_t end = mc_now() + 10 * MC_SEC;
            while (__mc_alloc_live_blocks() != 0 && mc_now() < end)
                cr_assert_eq(mc_sleep(MC_MS), MC_OK);
            cr_assert_eq(__mc_alloc_live_blocks(), 0);
        }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

} // namespace
} // namespace mc::compose::test
