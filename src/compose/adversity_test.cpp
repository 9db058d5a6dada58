// Attached machines where calls come at a bad moment: each of these was wrong once.
#include "compose/test_attached.hpp"
#include "machine/test_blob.hpp"

#include <vector>

namespace mc::compose::test {
namespace {

// In which a handler has certainly run.
constexpr int64_t a_while = (mc::testing::under_valgrind ? 1'000 : 50) * MC_MS;

uint64_t box() { return reinterpret_cast<uintptr_t>(__mc_alloc(8, 8)); }

void sleep_until(const std::function<bool()> &holds) {
    while (!holds())
        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
}

// Two executors, and a runtime on them; the executors stop before its handlers go.
struct Two {
    Two() { cr_assert_eq(csp_init_runtime(2), 1); }
    ~Two() {
        mc_machine_runtime_drop(&world.rt);
        csp_shutdown_runtime();
    }
    World world;
};

// Goal: a detachment that is refused leaves the timeouts as they were.
Test(Adversity, a_refused_detachment_keeps_timeouts, .timeout = 60) {
    Two two;
    World &world = two.world;
    const uint32_t deaf = world.machine(take);
    world.attach();
    cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 50 * MC_MS), MC_OK);
    const mc_task_t task = csp::testing::start([&] {
        Envelope reply;
        cr_assert_eq(world.ask(deaf, 1, 1, &reply), MC_E_TIMEDOUT);
    });
    sleep_until([&] { return mc_machine_runtime_pending_len(&world.rt) == 1; });
    world.idle();
    cr_assert_eq(mc_machine_detach(&world.rt), MC_E_BUSY);
    csp::testing::join(task);
}

// Goal: a timeout counts for requests from before it, and these hold up no younger ones; nor do those from before attaching.
Test(Adversity, requests_from_before_the_timeout, .timeout = 60) {
    Two two;
    World &world = two.world;
    const uint32_t deaf = world.machine(take);
    cr_assert_neq(mc_machine_runtime_request_u64(world.word(), 77, deaf, 1, 0, 0), 0);
    world.idle();
    world.attach();
    cr_assert_neq(mc_machine_runtime_request_u64(world.word(), 77, deaf, 1, 0, 0), 0);
    cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 10 * MC_MS), MC_OK);
    Envelope reply;
    cr_assert_eq(world.ask(deaf, 1, 1, &reply), MC_E_TIMEDOUT);
    sleep_until([&] { return mc_machine_runtime_pending_len(&world.rt) == 0; });
    cr_assert_eq(mc_machine_set_request_timeout(&world.rt, INT64_MAX), MC_OK);
    cr_assert_neq(mc_machine_runtime_request_u64(world.word(), 77, deaf, 1, 0, 0), 0);
    world.idle();
}

// Goal: a shorter timeout of tokens counts for those that are open.
Test(Adversity, a_shorter_timeout_of_tokens, .timeout = 60) {
    Two two;
    World &world = two.world;
    const uint32_t id = world.machine(take);
    cr_assert_eq(mc_machine_bind_poll(&world.rt, id, 0), MC_OK);
    world.attach();
    cr_assert_eq(mc_machine_set_token_timeout(&world.rt, 3'000 * MC_SEC), MC_OK);
    (void)world.send(id, 1);
    mc_machine_polled polled;
    cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &polled), MC_OK);
    cr_assert_eq(mc_machine_set_token_timeout(&world.rt, 5 * MC_MS), MC_OK);
    sleep_until([&] { return world.lifecycle(id) == MC_MACHINE_FAULTED; });
}

// Goal: a box in a request that is not made is dropped.
Test(Adversity, a_request_that_is_refused) {
    World world;
    const uint32_t deaf = world.machine(take);
    world.attach();
    Envelope reply;
    cr_assert_eq(mc_machine_ask(&world.rt, deaf, 1, box(), MC_PAYLOAD_LAYOUT_OWNED_MASK, MC_NOW, &reply),
                 MC_E_TIMEDOUT);
    cr_assert_eq(__mc_alloc_live_blocks(), 0);
}

// Goal: a box that is the answer to an asker is nobody else's: a transaction that sends it elsewhere, too, is rejected. By a direct reply
// one that is somebody's is not passed on.
Test(Adversity, an_answer_that_is_sent_elsewhere, .timeout = 60) {
    for (const uint32_t policy : {MC_MACHINE_ON_FULL_FAULT, MC_MACHINE_ON_FULL_RETRY}) {
        Two two;
        World &world = two.world;
        cr_assert_eq(mc_machine_set_on_full(&world.rt, policy), MC_OK);
        constexpr uint64_t owned = MC_PAYLOAD_LAYOUT_OWNED_MASK;
        const uint32_t sink = world.machine(take);
        const uint32_t twice = world.machine([=](Call call) {
            (void)__mc_machine_emit_send(sink, 1, call.env.payload0, call.env.payload1);
            (void)__mc_machine_emit_reply(call.env.reply_cap_id, 2, call.env.payload0, call.env.payload1);
            return MC_DISPATCH_OK;
        });
        const uint32_t directly = world.machine([&](Call call) {
            Envelope reply{};
            reply.payload0 = call.env.payload0;
            reply.payload1 = call.env.payload1;
            cr_assert_eq(mc_machine_runtime_reply(&world.rt, call.id, call.env.reply_cap_id, &reply), MC_REPLY_FULL);
            return MC_DISPATCH_OK;
        });
        const uint32_t once = world.machine([](Call call) {
            (void)__mc_machine_emit_reply(call.env.reply_cap_id, 2, call.env.payload0, call.env.payload1);
            return MC_DISPATCH_OK;
        });
        world.attach();
        Envelope reply{};
        for (const uint32_t id : {twice, directly})
            cr_assert_eq(mc_machine_ask(&world.rt, id, 1, box(), owned, mc_after(a_while), &reply), MC_E_TIMEDOUT);
        sleep_until([&] { return world.lifecycle(twice) == MC_MACHINE_FAULTED; });
        for (int i = scaled(2'000); i != 0; --i) {
            const uint64_t mine = box();
            cr_assert_eq(mc_machine_ask(&world.rt, once, 1, mine, owned, MC_FOREVER, &reply), MC_OK);
            cr_assert_eq(reply.payload0, mine);
            __mc_free(reinterpret_cast<void *>(mine)); // the replier may not be through with its dispatch yet
        }
        mc_machine_runtime_drop(&world.rt);
        cr_assert_eq(__mc_alloc_live_blocks(), 0);
    }
}

// Goal: who drops a runtime in a scope that is cancelled waits for its handlers all the same.
Test(Adversity, dropped_in_a_cancelled_scope, .timeout = 60) {
    Two two;
    World &world = two.world;
    sync::atomic<uint64_t> inside{0}, outside{0};
    const uint32_t slow = world.machine([&](Call) {
        inside.store(1, sync::release);
        const int64_t end = mc_now() + 100 * MC_MS;
        (void)csp::testing::hog_until([&] { return mc_now() >= end; });
        outside.store(1, sync::release);
        return MC_DISPATCH_OK;
    });
    world.attach();
    (void)world.send(slow, 1);
    sleep_until([&] { return get(inside) == 1; });
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
    csp::testing::join(csp::testing::start([&] {
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
        mc_machine_runtime_drop(&world.rt);
        cr_assert_eq(get(outside), 1, "the handler runs still");
        cr_assert_eq(mc_scope_leave(), MC_OK);
    }));
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
}

// Goal: dropping calls no hook: not for those who ask, nor for tokens that are open.
Test(Adversity, dropping_calls_no_hook, .timeout = 60) {
    Two two;
    World &world = two.world;
    const uint32_t deaf = world.machine(take);
    const uint32_t id = world.machine(take);
    cr_assert_eq(mc_machine_bind_poll(&world.rt, id, 0), MC_OK);
    world.attach();
    const mc_task_t task = csp::testing::start([&] {
        Envelope reply;
        cr_assert_eq(world.ask(deaf, 1, 1, &reply), MC_E_SHUTDOWN);
    });
    sleep_until([&] { return mc_machine_runtime_pending_len(&world.rt) == 1; });
    (void)world.send(id, 1);
    mc_machine_polled polled;
    cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &polled), MC_OK);
    mc_machine_runtime_drop(&world.rt);
    csp::testing::join(task);
    cr_assert_eq(get(world.faults) + get(world.ends[MC_PENDING_CLEANUP_REQUESTER_STOPPED]), 0);
}

// Goal: a drop meets those who poll, ask, send and commit, at any moment: it comes to an end, and so do they.
Test(Adversity, dropped_while_others_call, .timeout = 120) {
    const int rounds = scaled(400);
    cr_assert_eq(csp_init_runtime(2), 1);
    for (int i = 0; i < rounds; ++i) {
        World world;
        uint32_t ids[4];
        for (uint32_t &id : ids) {
            id = world.machine(take, 2);
            cr_assert_eq(mc_machine_bind_poll(&world.rt, id, 0), MC_OK);
        }
        world.attach();
        sync::atomic<uint64_t> begun{0};
        std::vector<mc_task_t> tasks;
        for (int k = 0; k < 3; ++k)
            tasks.push_back(csp::testing::start([&] {
                mc_machine_polled polled;
                (void)begun.fetch_add(1, sync::acq_rel);
                while (mc_machine_poll(&world.rt, MC_FOREVER, &polled) == MC_OK) {
                    (void)mc_txn_set_state(polled.token, 1);
                    (void)mc_txn_commit(polled.token);
                }
            }));
        for (int k = 0; k < 2; ++k)
            tasks.push_back(csp::testing::start([&, k] {
                Envelope reply;
                (void)begun.fetch_add(1, sync::acq_rel);
                if (k == 0)
                    while (mc_machine_send_until(&world.rt, ids[1], 1, 0, 0, MC_FOREVER) == MC_OK)
                        continue;
                else
                    (void)world.ask(ids[2], 1, 1, &reply);
            }));
        while (get(begun) != 5)
            cr_assert_eq(mc_yield(), MC_OK);
        for (int k = 0; k < i % 7; ++k)
            (void)world.send(ids[k % 4], 1);
        mc_machine_runtime_drop(&world.rt);
        for (const mc_task_t task : tasks)
            csp::testing::join(task);
    }
    csp_shutdown_runtime();
}

// --- patience, and channels ------------------------------------------------------------------------------------------------

// Goal: who sends with patience gets in when there is room, in order; or ends otherwise, for each reason.
Test(SendUntil, waits_for_room, .timeout = 60) {
    Two two;
    World &world = two.world;
    const uint64_t messages = static_cast<uint64_t>(scaled(2'000));
    uint64_t next[3] = {};
    const uint32_t sink = world.machine(
        [&](Call call) {
            cr_assert_eq(call.env.payload0, next[call.env.payload1]++);
            return MC_DISPATCH_OK;
        },
        2);
    const uint32_t full = world.machine(take, 1, false);
    cr_assert_eq(mc_machine_send_until(&world.rt, sink, 1, 0, 0, MC_FOREVER), MC_E_NOTSUP);
    world.attach();
    std::vector<mc_task_t> tasks;
    for (uint64_t sender = 0; sender < 3; ++sender)
        tasks.push_back(csp::testing::start([&, sender] {
            for (uint64_t i = 0; i < messages; ++i)
                cr_assert_eq(mc_machine_send_until(&world.rt, sink, 1, i, sender, MC_FOREVER), MC_OK);
        }));
    for (const mc_task_t task : tasks)
        csp::testing::join(task);
    world.idle();
    for (const uint64_t count : next)
        cr_assert_eq(count, messages);

    cr_assert_eq(mc_machine_send_until(&world.rt, 77, 1, 0, 0, MC_FOREVER), MC_E_NOENT);
    cr_assert_eq(mc_machine_send_until_u64(12345, 77, 1, 0, 0, MC_FOREVER), MC_E_STALE);
    (void)world.send(full, 1);
    cr_assert_eq(mc_machine_send_until(&world.rt, full, 1, box(), MC_PAYLOAD_LAYOUT_OWNED_MASK, mc_after(5 * MC_MS)),
                 MC_E_TIMEDOUT);
    cr_assert_eq(get(world.dead[MC_DEAD_LETTER_MAILBOX_FULL]), 1);
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
    const mc_task_t cancelled = csp::testing::start([&] {
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        cr_assert_eq(mc_machine_send_until(&world.rt, full, 1, 0, 0, MC_FOREVER), MC_E_CANCELED);
        cr_assert_eq(mc_scope_leave(), MC_OK);
    });
    const mc_task_t stopped = csp::testing::start(
        [&] { cr_assert_eq(mc_machine_send_until(&world.rt, full, 1, 0, 0, MC_FOREVER), MC_E_CLOSED); });
    cr_assert_eq(mc_sleep(5 * MC_MS), MC_OK);
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp::testing::join(cancelled);
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
    cr_assert_eq(mc_machine_runtime_stop(&world.rt, full), 1);
    csp::testing::join(stopped);
}

// Goal: a channel feeds a machine, whose outbox feeds another channel through a machine that stands for it; each is full now and then, and
// holds up who is before it; nothing is lost, and the order holds.
Test(Channels, feed_machines_and_are_fed, .timeout = 60) {
    for (const int executors : {0, 1, 2}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
            const uint64_t messages = static_cast<uint64_t>(scaled(1'000));
            mc_chan_t in = 0, out = 0;
            cr_assert_eq(mc_chan_create(0, sizeof(uint64_t), 4, nullptr, nullptr, &in), MC_OK);
            cr_assert_eq(mc_chan_create(0, sizeof(uint64_t), 2, nullptr, nullptr, &out), MC_OK);
            const uint32_t proxy = world.machine(take, 2);
            cr_assert_eq(mc_machine_bind_poll(&world.rt, proxy, 1), MC_OK);
            const uint32_t doubles = world.machine(
                [=](Call call) {
                    (void)__mc_machine_emit_send(proxy, 1, 2 * call.env.payload0, 0);
                    return MC_DISPATCH_OK;
                },
                2);
            world.attach();
            const mc_task_t feeder = csp::testing::start([&] {
                uint64_t element = 0;
                while (mc_recv(in, &element) == MC_OK)
                    cr_assert_eq(mc_machine_send_until(&world.rt, doubles, 1, element, 0, MC_FOREVER), MC_OK);
            });
            const mc_task_t drain = csp::testing::start([&] {
                mc_machine_polled polled;
                for (uint64_t i = 0; i < messages; ++i) {
                    cr_assert_eq(mc_machine_poll_one(&world.rt, proxy, MC_FOREVER, &polled), MC_OK);
                    cr_assert_eq(mc_send(out, &polled.envelope.payload0), MC_OK);
                    cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
                }
            });
            const mc_task_t source = csp::testing::start([&] {
                for (uint64_t i = 0; i < messages; ++i)
                    cr_assert_eq(mc_send(in, &i), MC_OK);
                cr_assert_eq(mc_chan_close(in), MC_OK);
            });
            for (uint64_t i = 0; i < messages; ++i) {
                uint64_t element = 0;
                cr_assert_eq(mc_recv(out, &element), MC_OK);
                cr_assert_eq(element, 2 * i);
            }
            for (const mc_task_t task : {source, feeder, drain})
                csp::testing::join(task);
            mc_machine_polled none;
            (void)world.send(proxy, 1);
            cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &none), MC_E_TIMEDOUT, "it is polled alone");
            cr_assert_eq(mc_machine_poll_one(&world.rt, 0, MC_NOW, &none), MC_E_INVAL);
            cr_assert_eq(mc_machine_poll_one(&world.rt, proxy, MC_NOW, &none), MC_OK);
            cr_assert_eq(mc_txn_commit(none.token), MC_OK);
            cr_assert_eq(mc_chan_destroy(in), MC_OK);
            cr_assert_eq(mc_chan_destroy(out), MC_OK);
        }
        if (executors != 0)
            csp_shutdown_runtime();
    }
}

// Goal: who waits for room waits for that, and not for memory; and a mailbox that was full once is no other.
Test(Adversity, no_memory_to_send, .timeout = 60) {
    machine::test::Memory memory;
    memory.install();
    {
        World world;
        const uint32_t id = world.machine(take, 1'000'000, false);
        world.attach();
        memory.allowed = 0;
        uint64_t sent = 0;
        int32_t status = MC_OK;
        while ((status = mc_machine_send_until(&world.rt, id, 1, 0, 0, MC_FOREVER)) == MC_OK)
            ++sent;
        cr_assert_eq(status, MC_E_NOMEM);
        cr_assert_eq(get(world.dead[MC_DEAD_LETTER_MAILBOX_FULL]), 1);
        memory.allowed = INT64_MAX;
        cr_assert_eq(mc_machine_send_until(&world.rt, id, 1, 0, 0, MC_FOREVER), MC_OK);
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, id), sent + 1);
    }
    cr_assert_eq(__mc_alloc_live_blocks(), 0);
}

// Goal: one that was woken to poll and has no memory for that takes nobody else's turn.
Test(Adversity, no_memory_to_poll, .timeout = 60) {
    machine::test::Memory memory;
    memory.install();
    {
        World world;
        const uint32_t any = world.machine(take), alone = world.machine(take);
        cr_assert_eq(mc_machine_bind_poll(&world.rt, any, 0), MC_OK);
        cr_assert_eq(mc_machine_bind_poll(&world.rt, alone, 1), MC_OK);
        world.attach();
        mc_machine_polled polled;
        (void)world.send(any, 1); // its mailbox has its memory from then on
        cr_assert_eq(mc_machine_poll(&world.rt, MC_NOW, &polled), MC_OK);
        cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
        int32_t statuses[2] = {1, 1};
        std::vector<mc_task_t> tasks;
        for (int32_t &status : statuses)
            tasks.push_back(csp::testing::start([&world, &status] {
                mc_machine_polled mine;
                status = mc_machine_poll(&world.rt, MC_FOREVER, &mine);
                if (status == MC_OK)
                    cr_assert_eq(mc_txn_commit(mine.token), MC_OK);
            }));
        cr_assert_eq(mc_sleep(a_while), MC_OK); // both wait
        (void)world.send(alone, 1);
        cr_assert_eq(mc_machine_poll_one(&world.rt, alone, MC_NOW, &polled), MC_OK); // the token that was spare
        memory.fails_at = static_cast<int64_t>(memory.calls) + 1;
        (void)world.send(any, 1);
        for (const mc_task_t task : tasks)
            csp::testing::join(task);
        cr_assert_eq(memory.failures, 1);
        cr_assert_eq(statuses[0], MC_E_NOMEM);
        cr_assert_eq(statuses[1], MC_OK);
        cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
    }
    cr_assert_eq(__mc_alloc_live_blocks(), 0);
}

} // namespace
} // namespace mc::compose::test
