// Machines of an attached runtime under every interleaving of a few dispatches and calls; on real threads in other builds. The
// pumps are the test's: threads that take what is ready from one list.
#include "machine/test_parallel.hpp"

using namespace mc;
using namespace mc::machine;
using namespace mc::machine::testing;
using mc::testing::check;
using mc::testing::Thread;

// Goal: no message is lost between a machine that has just become empty and one that sends to it.
Test(ParallelSys, every_message_is_dispatched) {
    mc::testing::expect_pass(exploration("ParallelSys/every_message_is_dispatched"), [] {
        World world;
        const uint32_t id = world.machine(8, [](const Call &call) {
            call.set(call.state + 1);
            return MC_DISPATCH_OK;
        });
        world.attach();
        {
            const Thread other([&] {
                world.send(id);
                world.pump();
            });
            world.send(id);
            world.pump();
        }
        world.pump();
        check(world.engine->state(id) == 2, "a message was not dispatched");
        check(world.engine->mailbox_length(id) == 0, "a message waits");
    });
}

// Goal: two transactions that send to the same two machines, in opposite orders, do so one after the other.
Test(ParallelSys, transactions_are_atomic) {
    mc::testing::expect_pass(exploration("ParallelSys/transactions_are_atomic"), [] {
        World world;
        uint32_t sinks[2];
        for (uint32_t &sink : sinks)
            sink = world.machine(
                8, [](const Call &) { return MC_DISPATCH_OK; }, false);
        uint32_t senders[2];
        for (uint32_t i = 0; i < 2; ++i)
            senders[i] = world.machine(8, [=](const Call &call) {
                check(call.emit.send(sinks[i], 1 + i, 0, 0), "not staged");
                check(call.emit.send(sinks[1 - i], 1 + i, 0, 0), "not staged");
                return MC_DISPATCH_OK;
            });
        world.attach();
        {
            const Thread other([&] {
                world.send(senders[1]);
                world.pump();
            });
            world.send(senders[0]);
            world.pump();
        }
        world.pump();
        const uint64_t first = mail_of(world, sinks[0]), second = mail_of(world, sinks[1]);
        check(first == second && (first == 12 || first == 21), "%llu and %llu", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(second));
    });
}

// Goal: a machine that stops in the middle of a transaction gets all of it, or the transaction does not happen.
Test(ParallelSys, a_stop_is_before_or_after) {
    mc::testing::expect_pass(exploration("ParallelSys/a_stop_is_before_or_after"), [] {
        World world;
        const uint32_t stops = world.machine(
            8, [](const Call &) { return MC_DISPATCH_OK; }, false);
        const uint32_t stays = world.machine(
            8, [](const Call &) { return MC_DISPATCH_OK; }, false);
        const uint32_t sender = world.machine(8, [=](const Call &call) {
            check(call.emit.send(stays, 1, 0, 0), "not staged");
            check(call.emit.send(stops, 1, 0, 0), "not staged");
            check(call.emit.send(call.id, 2, 0, 0), "not staged");
            call.set(call.state + 1);
            return call.env.kind == 1 ? MC_DISPATCH_OK : MC_DISPATCH_STOP;
        });
        world.attach();
        {
            const Thread other([&] { check(world.engine->stop(stops), "not stopped"); });
            world.send(sender);
            world.pump();
        }
        const bool happened = world.engine->lifecycle(sender) == MC_MACHINE_STOPPED;
        check(happened || world.engine->lifecycle(sender) == MC_MACHINE_FAULTED, "neither");
        check(mail_of(world, stays) == (happened ? 1 : 0), "half of it");
        check(world.engine->lifecycle(stops) == MC_MACHINE_STOPPED, "it did not stop");
    });
}

// Goal: a machine is stopped while its handler runs, and while it commits; its memory is used again by another.
Test(ParallelSys, a_stop_meets_its_dispatch) {
    mc::testing::expect_pass(exploration("ParallelSys/a_stop_meets_its_dispatch"), [] {
        World world;
        const uint32_t sink = world.machine(
            8, [](const Call &) { return MC_DISPATCH_OK; }, false);
        const uint32_t id = world.machine(8, [=](const Call &call) {
            check(call.emit.send(sink, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach();
        uint32_t next = 0;
        world.send(id);
        {
            const Thread other([&] {
                check(world.engine->stop(id), "not stopped");
                next = world.engine->spawn(8);
            });
            world.pump();
        }
        check(next == id + 1 && world.engine->lifecycle(next) == MC_MACHINE_CREATED, "not a new one");
        check(world.engine->mailbox_length(next) == 0, "it has another one's mail");
        check(mail_of(world, sink) <= 1, "twice");
    });
}

// Goal: of reply, stop of the requester and timeout exactly one ends a request.
Test(ParallelSys, one_end_of_a_request) {
    mc::testing::expect_pass(exploration("ParallelSys/one_end_of_a_request"), [] {
        World world;
        const uint32_t requester = world.machine(
            8, [](const Call &) { return MC_DISPATCH_OK; }, false);
        const uint32_t replier = world.machine(8, [](const Call &call) {
            check(call.emit.reply(call.env.reply_cap_id, 3, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::fault, OnLateReply::discard);
        uint64_t pending = 0;
        check(world.engine->request(requester, replier, plain_envelope(0, 2, 0, 0), &pending) == MC_MAILBOX_ENQUEUE_OK,
              "not sent");
        {
            const Thread other([&] { check(world.engine->stop(requester), "not stopped"); });
            world.pump();
        }
        uint32_t ends = 0;
        for (const sync::atomic<uint32_t> &count : world.ended)
            ends += count.load(sync::relaxed);
        check(ends == 1, "%u ends", ends);
        check(world.engine->pending().active() == 0, "it is pending still");
        check(world.engine->lifecycle(replier) == MC_MACHINE_RUNNING, "a late reply is discarded");
    });
}

// Goal: an asker that gives up gets the answer or withdraws, and a replier that is too late finds that out.
Test(ParallelSys, an_asker_withdraws_or_is_answered) {
    mc::testing::expect_pass(exploration("ParallelSys/an_asker_withdraws_or_is_answered"), [] {
        World world;
        const uint32_t replier = world.machine(8, [](const Call &call) {
            check(call.emit.reply(call.env.reply_cap_id, 3, 0, 0), "not staged");
            call.set(1);
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::fault, OnLateReply::discard);
        Asker *asker = asker_slab().acquire();
        check(world.engine->ask(replier, plain_envelope(0, 2, 0, 0), *asker) == MC_MAILBOX_ENQUEUE_OK, "not sent");
        {
            const Thread other([&] { world.pump(); });
            const bool withdrawn = world.engine->withdraw(*asker);
            check(withdrawn == (asker->state == Asker::State::ended), "it does not know");
        }
        const bool answered = asker->state == Asker::State::answered;
        check(world.engine->state(replier) == (answered ? 1 : 0), "the replier thinks otherwise");
        check(world.engine->pending().active() == 0, "it is pending still");
        asker_slab().release(asker);
    });
}

// Goal: who waits for room is told when there is some, whenever that is, and when there never will be.
Test(ParallelSys, room_is_not_missed) {
    for (const bool stops : {false, true})
        mc::testing::expect_pass(
            exploration(stops ? "ParallelSys/room_is_not_missed/stops" : "ParallelSys/room_is_not_missed"), [=] {
                World world;
                const uint32_t full = world.machine(1, [](const Call &call) {
                    call.set(call.state + 1);
                    return MC_DISPATCH_OK;
                });
                const uint32_t sender = world.machine(8, [=](const Call &call) {
                    check(call.emit.send(full, 1, 0, 0), "not staged");
                    return MC_DISPATCH_OK;
                });
                world.attach(OnFull::retry);
                world.send(full);
                {
                    const Thread other([&] {
                        if (stops)
                            check(world.engine->stop(full), "not stopped");
                        world.pump();
                    });
                    world.send(sender);
                    world.pump();
                }
                world.pump();
                check(world.engine->mailbox_length(sender) == 0, "it waits still");
                check(stops || world.engine->state(full) == 2, "a message is missing");
            });
}

// Goal: two that wait for each other's room are found out: not both wait.
Test(ParallelSys, two_do_not_wait_for_each_other) {
    mc::testing::expect_pass(exploration("ParallelSys/two_do_not_wait_for_each_other"), [] {
        World world;
        for (uint32_t i = 0; i < 2; ++i)
            (void)world.machine(2, [=](const Call &call) {
                check(call.emit.send(2 - i, 1, 0, 0), "not staged");
                return MC_DISPATCH_OK;
            });
        world.attach(OnFull::retry);
        for (uint32_t id = 1; id <= 2; ++id) {
            world.send(id);
            world.send(id);
        }
        {
            const Thread other([&] { world.pump(); });
            world.pump();
        }
        world.pump();
        check(world.engine->lifecycle(1) == MC_MACHINE_FAULTED || world.engine->lifecycle(2) == MC_MACHINE_FAULTED,
              "both wait");
    });
}

// Goal: a machine that is spawned while a request in its name is sent has the request, and a reply finds it.
Test(ParallelSys, requests_before_their_requester) {
    mc::testing::expect_pass(exploration("ParallelSys/requests_before_their_requester"), [] {
        World world;
        const uint32_t replier = world.machine(
            8, [](const Call &) { return MC_DISPATCH_OK; }, false);
        world.attach();
        uint64_t pending = 0;
        {
            const Thread other([&] { check(world.engine->spawn(8) == replier + 1, "another id"); });
            check(world.engine->request(replier + 1, replier, plain_envelope(0, 2, 0, 0), &pending) ==
                      MC_MAILBOX_ENQUEUE_OK,
                  "not sent");
        }
        check(world.engine->reply(replier, pending, plain_envelope(0, 3, 0, 0)) == MC_REPLY_OK, "not replied");
        check(world.engine->mailbox_length(replier + 1) == 1, "it has no mail");
        check(world.engine->stop(replier + 1), "not stopped");
        check(world.engine->pending().active() == 0, "a request is left");
    });
}
