// The second looks and the locks of an attached runtime, one by one: what each is there for. As parallel_sys_test.cpp.
#include "machine/test_parallel.hpp"

#include <mc/bridge.h>

using namespace mc;
using namespace mc::machine;
using namespace mc::machine::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::Thread;

namespace {

void explore(const char *name, const std::function<void()> &body, int preemptions = 2) {
    mc::testing::expect_pass(exploration(name, preemptions), body);
}

mc_dispatch_result_t take(const Call &) { return MC_DISPATCH_OK; }

mc_dispatch_result_t count(const Call &call) {
    call.set(call.state + 1);
    return MC_DISPATCH_OK;
}

Envelope a_box(uint64_t kind) {
    return plain_envelope(0, kind, reinterpret_cast<uintptr_t>(__mc_alloc(16, 16)), MC_PAYLOAD_LAYOUT_OWNED_MASK);
}

} // namespace

// --- machines that stop, and whose memory is another's ------------------------------------------------------------------

// Goal: what is sent to a machine that stops does not come to the next machine, which has its memory.
Test(ParallelRaces, mail_of_the_stopped) {
    explore("ParallelRaces/mail_of_the_stopped", [] {
        World world;
        const uint32_t id = world.machine(8, take, false);
        world.attach();
        uint32_t next = 0;
        const bool asks = choose(2) == 1;
        {
            const Thread other([&] {
                check(world.engine->stop(id), "not stopped");
                next = world.engine->spawn(8);
            });
            const mc_mailbox_enqueue_result_t result =
                asks ? world.engine->request(0, id, plain_envelope(0, 1, 0, 0), nullptr)
                     : world.engine->enqueue(id, plain_envelope(0, 1, 0, 0));
            check(result == MC_MAILBOX_ENQUEUE_OK || result == MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING, "neither");
        }
        check(world.engine->mailbox_length(next) == 0, "it has another one's mail");
    });
}

// Goal: a transaction that sends to a machine that stops, and to the one that gets its memory, is over some time.
Test(ParallelRaces, two_names_of_one_memory) {
    explore("ParallelRaces/two_names_of_one_memory", [] {
        World world;
        const uint32_t stops = world.machine(8, take, false);
        const uint32_t sender = world.machine(8, [=](const Call &call) {
            check(call.emit.send(stops, 1, 0, 0), "not staged");
            check(call.emit.send(call.id + 1, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach();
        {
            const Thread other([&] {
                check(world.engine->stop(stops), "not stopped");
                check(world.engine->spawn(8) == sender + 1, "another id");
            });
            world.send(sender);
            world.pump();
        }
        check(world.engine->lifecycle(sender) == MC_MACHINE_FAULTED, "they never were there together");
        check(world.engine->mailbox_length(sender + 1) == 0, "half of it");
    });
}

// Goal: the memory of a machine that has stopped is used again when nobody has it in a list any more, and not before: one that is
// ready, one whose handler runs, one that waits for room.
Test(ParallelRaces, memory_is_used_again) {
    explore("ParallelRaces/memory_is_used_again", [] {
        World world;
        const uint32_t ready = world.machine(8, take);
        const uint32_t runs = world.machine(8, [](const Call &) { return MC_DISPATCH_STOP; });
        const uint32_t full = world.machine(1, take, false);
        const uint32_t is_short = world.machine(8, [=](const Call &call) {
            check(call.emit.send(full, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::retry);
        auto at = [&](uint32_t id) { return world.engine->table().find(id); };
        const Machine *memory = at(ready);
        world.send(ready);
        check(world.engine->stop(ready), "not stopped");
        check(at(world.engine->spawn(8)) != memory, "it is in a list");
        world.pump();
        check(at(world.engine->spawn(8)) == memory, "it is in no list");

        memory = at(runs);
        world.send(runs);
        world.pump();
        check(at(world.engine->spawn(8)) == memory, "its handler has returned");

        memory = at(is_short);
        world.send(full);
        world.send(is_short);
        world.pump();
        check(world.engine->mailbox_length(is_short) == 1, "it does not wait");
        check(world.engine->stop(is_short), "not stopped");
        check(at(world.engine->spawn(8)) != memory, "it is in a list");
        const Machine *const other = at(full);
        check(world.engine->stop(full), "not stopped");
        const Machine *const next[] = {at(world.engine->spawn(8)), at(world.engine->spawn(8))};
        check((next[0] == memory && next[1] == other) || (next[1] == memory && next[0] == other), "in no list");
    });
}

// Goal: a machine that is marked faulted while its handler runs, or while it commits, has done everything by then, or does nothing.
Test(ParallelRaces, a_fault_is_before_or_after) {
    explore("ParallelRaces/a_fault_is_before_or_after", [] {
        World world;
        const uint32_t sink = world.machine(8, take, false);
        const uint32_t id = world.machine(8, [=](const Call &call) {
            check(call.emit.send(sink, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach();
        world.send(id);
        uint32_t sent = 0;
        {
            const Thread other([&] {
                check(world.engine->mark_faulted(id), "not marked");
                sent = world.engine->mailbox_length(sink);
            });
            world.pump();
        }
        check(world.engine->lifecycle(id) == MC_MACHINE_FAULTED, "it is not");
        check(world.engine->mailbox_length(sink) == sent, "it sends still");
    });
}

// Goal: a machine that is marked faulted while it is ready is not dispatched.
Test(ParallelRaces, who_is_faulted_is_not_dispatched) {
    explore("ParallelRaces/who_is_faulted_is_not_dispatched", [] {
        World world;
        const uint32_t id = world.machine(8, [](const Call &) {
            check(false, "it is dispatched");
            return MC_DISPATCH_OK;
        });
        world.attach();
        world.send(id);
        check(world.engine->mark_faulted(id), "not marked");
        world.pump();
        check(world.engine->mailbox_length(id) == 1, "it keeps its mail");
    });
}

// --- machines that have just been spawned ------------------------------------------------------------------------------

// Goal: who sends to a machine that is just being spawned locks it: another one sends to it, too, and it has room for one.
Test(ParallelRaces, mail_of_the_newcomer) {
    explore("ParallelRaces/mail_of_the_newcomer", [] {
        World world;
        const uint32_t sender = world.machine(8, [](const Call &call) {
            check(call.emit.send(call.id + 1, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach();
        {
            const Thread other([&] {
                check(world.engine->spawn(1) == sender + 1, "another id");
                (void)world.engine->enqueue(sender + 1, a_box(2));
            });
            world.send(sender);
            world.pump();
        }
        check(world.engine->mailbox_length(sender + 1) == 1, "more than it has room for");
    });
}

// Goal: a machine that is subscribed by another one, while it is just being spawned, and stops: no subscription is left.
Test(ParallelRaces, subscriptions_of_the_newcomer) {
    const auto body = [] {
        World world;
        static mc_subscription_update_t add = {MC_SUBSCRIPTION_ADD, 0, 5, 6};
        const uint32_t id = world.machine(8, [](const Call &call) {
            call.txn.subscriptions = &add;
            call.txn.subscriptions_len = 1;
            return MC_DISPATCH_OK;
        });
        add.machine_id = id + 1;
        world.attach();
        {
            const Thread other([&] {
                check(world.engine->spawn(1) == id + 1, "another id");
                check(world.engine->stop(id + 1), "not stopped");
            });
            world.send(id);
            world.pump();
        }
        check(world.engine->subscriptions().size() == 0, "a subscription is left");
    };
    explore("ParallelRaces/subscriptions_of_the_newcomer", body, 3); // spawned behind one look, stopped behind another
}

// Goal: two transactions that reply to a request whose requester is just being spawned: one of them is carried out, though the other
// one had looked for the requester before it was there.
Test(ParallelRaces, a_reply_to_the_newcomer) {
    explore("ParallelRaces/a_reply_to_the_newcomer", [] {
        World world;
        static uint64_t cap;
        const bool by_itself = choose(2) == 1; // a transaction of one effect goes another way
        auto reply = [=](const Call &call) {
            check(call.emit.reply(cap, 3, 0, 0), "not staged");
            check(by_itself || call.emit.send(3, 4, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        };
        const uint32_t first = world.machine(8, reply);
        const uint32_t second = world.machine(8, reply);
        const uint32_t sink = world.machine(8, take, false);
        world.attach(OnFull::fault, OnLateReply::discard);
        check(world.engine->request(sink + 1, sink, plain_envelope(0, 2, 0, 0), &cap) == MC_MAILBOX_ENQUEUE_OK,
              "not sent");
        {
            const Thread other([&] {
                check(world.engine->spawn(8) == sink + 1, "another id");
                world.send(second);
                world.pump();
            });
            world.send(first);
            world.pump();
        }
        check(world.engine->lifecycle(second) == MC_MACHINE_RUNNING, "its reply is carried out, or too late");
        check(world.engine->mailbox_length(sink + 1) == 1, "no reply");
        check(world.engine->pending().active() == 0, "it is pending still");
    });
}

// Goal: a request that is made in the name of a machine, while that is just being spawned, ends with it.
Test(ParallelRaces, requests_of_the_newcomer) {
    explore("ParallelRaces/requests_of_the_newcomer", [] {
        World world;
        const uint32_t replier = world.machine(8, take, false);
        world.attach();
        const bool stops_at_once = choose(2) == 1;
        {
            const Thread other([&] {
                check(world.engine->spawn(8) == replier + 1, "another id");
                if (stops_at_once)
                    check(world.engine->stop(replier + 1), "not stopped");
            });
            (void)world.engine->request(replier + 1, replier, plain_envelope(0, 2, 0, 0), nullptr);
            if (!stops_at_once)
                (void)world.engine->request(replier + 1, replier, plain_envelope(0, 2, 0, 0), nullptr);
        }
        if (stops_at_once) // what is asked in its name since then waits for a reply
            return;
        check(world.engine->pending().active() == 2, "a request has ended");
        check(world.engine->stop(replier + 1), "not stopped");
        check(world.engine->pending().active() == 0 && world.all_ended() == 2, "a request is left");
    });
}

// Goal: requests that were made in the name of a machine before there was it end with it, also when it stops as soon as it can be
// found.
Test(ParallelRaces, a_stop_of_the_newcomer) {
    explore("ParallelRaces/a_stop_of_the_newcomer", [] {
        World world;
        const uint32_t replier = world.machine(8, take, false);
        world.attach();
        check(world.engine->request(replier + 1, replier, plain_envelope(0, 2, 0, 0), nullptr) == MC_MAILBOX_ENQUEUE_OK,
              "not sent");
        bool stopped = false;
        {
            const Thread other([&] { check(world.engine->spawn(8) == replier + 1, "another id"); });
            stopped = world.engine->stop(replier + 1);
        }
        check(stopped || world.engine->stop(replier + 1), "not stopped");
        check(world.engine->pending().active() == 0 && world.all_ended() == 1, "a request is left");
    });
}

// --- publications ------------------------------------------------------------------------------------------------------

namespace {

// The first two machines: each subscribes to kind 5, routing 6, with its first envelope, and counts what it gets of that.
void make_subscribers(World &world, uint32_t (&ids)[2]) {
    static mc_subscription_update_t add[2];
    for (uint32_t i = 0; i < 2; ++i) {
        add[i] = {MC_SUBSCRIPTION_ADD, i + 1, 5, 6};
        ids[i] = world.machine(8, [=](const Call &call) {
            if (call.env.kind == 5)
                return count(call);
            call.txn.subscriptions = &add[i];
            call.txn.subscriptions_len = 1;
            return MC_DISPATCH_OK;
        });
    }
}

} // namespace

// Goal: one of two subscribers stops while there is a publication, or while the other one stops: the other one gets it once, and no
// subscription is left behind.
Test(ParallelRaces, publications_meet_a_stop) {
    explore("ParallelRaces/publications_meet_a_stop", [] {
        World world;
        uint32_t ids[2];
        make_subscribers(world, ids);
        const uint32_t publisher = world.machine(8, [](const Call &call) {
            check(call.emit.publish(5, 6, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach();
        world.send(ids[0]);
        world.send(ids[1]);
        world.pump();
        check(world.engine->subscriptions().size() == 2, "not subscribed");
        const bool both_stop = choose(2) == 1;
        {
            const Thread other([&] { check(world.engine->stop(ids[0]), "not stopped"); });
            if (both_stop)
                check(world.engine->stop(ids[1]), "not stopped");
            world.send(publisher);
            world.pump();
        }
        world.pump();
        check(world.engine->lifecycle(publisher) == MC_MACHINE_RUNNING, "a publication is not rejected");
        check(both_stop || world.engine->state(ids[1]) == 1, "not once");
        check(world.engine->subscriptions().size() == (both_stop ? 0 : 1), "a subscription is left");
    });
}

// Goal: two machines subscribe to the same at once: both are subscribed, each with what it has allocated for that.
Test(ParallelRaces, two_subscribe) {
    explore("ParallelRaces/two_subscribe", [] {
        World world;
        uint32_t ids[2];
        make_subscribers(world, ids);
        world.attach();
        {
            const Thread other([&] {
                world.send(ids[0]);
                world.pump();
            });
            world.send(ids[1]);
            world.pump();
        }
        check(world.engine->subscriptions().size() == 2, "not both");
        for (const uint32_t id : ids)
            check(world.engine->subscriptions().contains(id, 5, 6), "it is not");
    });
}

// Goal: who subscribes while a transaction publishes twice gets both, or none.
Test(ParallelRaces, two_publications_are_one_transaction) {
    explore("ParallelRaces/two_publications_are_one_transaction", [] {
        World world;
        uint32_t ids[2];
        make_subscribers(world, ids);
        const uint32_t publisher = world.machine(8, [](const Call &call) {
            check(call.emit.publish(5, 6, 0, 0) && call.emit.publish(5, 6, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach();
        world.send(ids[0]);
        world.pump();
        {
            const Thread other([&] {
                world.send(ids[1]);
                world.pump();
            });
            world.send(publisher);
            world.pump();
        }
        world.pump();
        check(world.engine->state(ids[0]) == 2, "%llu", static_cast<unsigned long long>(world.engine->state(ids[0])));
        const uint64_t got = world.engine->state(ids[1]);
        check(got == 0 || got == 2, "half of it");
    });
}

// --- the ends of requests ------------------------------------------------------------------------------------------------

// Goal: a direct reply and an asker that gives up: one of them is too late, and knows.
Test(ParallelRaces, a_direct_answer_or_none) {
    explore("ParallelRaces/a_direct_answer_or_none", [] {
        World world;
        const uint32_t replier = world.machine(8, take, false);
        world.attach();
        Asker *asker = asker_slab().acquire();
        check(world.engine->ask(replier, plain_envelope(0, 2, 0, 0), *asker) == MC_MAILBOX_ENQUEUE_OK, "not sent");
        const uint64_t cap = asker->pending;
        mc_machine_reply_result_t result = MC_REPLY_FULL;
        bool withdrawn = false;
        {
            const Thread other([&] { result = world.engine->reply(replier, cap, plain_envelope(0, 3, 0, 0)); });
            withdrawn = world.engine->withdraw(*asker);
        }
        check(result == (withdrawn ? MC_REPLY_CAP_UNKNOWN : MC_REPLY_OK), "the replier does not know");
        check(asker->state == (withdrawn ? Asker::State::ended : Asker::State::answered), "the asker does not know");
        check(world.engine->pending().active() == 0 && world.all_ended() == 1, "not one end");
        asker_slab().release(asker);
    });
}

// Goal: a request times out while it is replied to, by one or the other kind of requester, or while all who ask are told that it is
// over: it ends once.
Test(ParallelRaces, a_timeout_or_a_reply) {
    explore("ParallelRaces/a_timeout_or_a_reply", [] {
        World world;
        const uint32_t requester = world.machine(8, take, false);
        const uint32_t replier = world.machine(8, take, false);
        world.attach();
        world.engine->timeout_ns.store(5, sync::relaxed);
        Asker *asker = asker_slab().acquire();
        const unsigned who = choose(3);
        uint64_t cap = 0;
        if (who == 0) {
            check(world.engine->request(requester, replier, plain_envelope(0, 2, 0, 0), &cap) == MC_MAILBOX_ENQUEUE_OK,
                  "not sent");
        } else {
            check(world.engine->ask(replier, plain_envelope(0, 2, 0, 0), *asker) == MC_MAILBOX_ENQUEUE_OK, "not sent");
            cap = asker->pending;
        }
        {
            const Thread other([&] {
                if (who == 2)
                    world.engine->end_askers();
                else
                    (void)world.engine->reply(replier, cap, plain_envelope(0, 3, 0, 0));
            });
            check(world.engine->expire_by_clock(100) == INT64_MAX, "one is left");
        }
        check(world.engine->pending().active() == 0 && world.all_ended() == 1, "not one end");
        check(world.engine->mailbox_length(requester) ==
                  (who == 0 ? world.ended[MC_PENDING_CLEANUP_COMPLETED].load(sync::relaxed) : 0),
              "a reply, and it has timed out");
        asker_slab().release(asker);
    });
}

// Goal: a request times out while a transaction replies to it: it ends once, and a reply that is too late is discarded.
Test(ParallelRaces, a_timeout_or_a_transaction) {
    explore("ParallelRaces/a_timeout_or_a_transaction", [] {
        World world;
        const bool by_itself = choose(2) == 1;
        const uint32_t requester = world.machine(8, take, false);
        const uint32_t replier = world.machine(8, [=](const Call &call) {
            check(call.emit.reply(call.env.reply_cap_id, 3, 0, 0), "not staged");
            check(by_itself || call.emit.send(requester, 4, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::fault, OnLateReply::discard);
        world.engine->timeout_ns.store(5, sync::relaxed);
        check(world.engine->request(requester, replier, plain_envelope(0, 2, 0, 0), nullptr) == MC_MAILBOX_ENQUEUE_OK,
              "not sent");
        {
            const Thread other([&] { (void)world.engine->expire_by_clock(100); });
            world.pump();
        }
        check(world.engine->pending().active() == 0 && world.all_ended() == 1, "not one end");
        check(world.engine->lifecycle(replier) == MC_MACHINE_RUNNING, "a late reply is discarded");
        const bool replied = world.ended[MC_PENDING_CLEANUP_COMPLETED].load(sync::relaxed) == 1;
        check(mail_of(world, requester) == (!replied ? 0 : by_itself ? 3 : 43), "half of it");
    });
}

// Goal: a request times out whose requester is just being spawned, and stops: it ends once.
Test(ParallelRaces, a_timeout_of_the_newcomer) {
    explore("ParallelRaces/a_timeout_of_the_newcomer", [] {
        World world;
        const uint32_t replier = world.machine(8, take, false);
        world.attach();
        world.engine->timeout_ns.store(5, sync::relaxed);
        uint64_t cap = 0;
        check(world.engine->request(replier + 1, replier, plain_envelope(0, 2, 0, 0), &cap) == MC_MAILBOX_ENQUEUE_OK,
              "not sent");
        {
            const Thread other([&] {
                check(world.engine->spawn(8) == replier + 1, "another id");
                check(world.engine->stop(replier + 1), "not stopped");
            });
            check(world.engine->expire_by_clock(100) == INT64_MAX, "one is left");
        }
        check(world.engine->pending().active() == 0 && world.all_ended() == 1, "%u ends", world.all_ended());
    });
}

// --- room ------------------------------------------------------------------------------------------------------------------

// Goal: all who wait for room are told when there never will be any.
Test(ParallelRaces, everybody_is_told) {
    explore("ParallelRaces/everybody_is_told", [] {
        World world;
        const uint32_t full = world.machine(1, take, false);
        uint32_t senders[3];
        for (uint32_t &sender : senders)
            sender = world.machine(8, [=](const Call &call) {
                check(call.emit.send(full, 1, 0, 0), "not staged");
                return MC_DISPATCH_OK;
            });
        world.attach(OnFull::retry);
        world.send(full);
        for (const uint32_t sender : senders)
            world.send(sender);
        {
            const Thread other([&] {
                if (choose(2) == 0)
                    check(world.engine->stop(full), "not stopped");
                else
                    check(world.engine->mark_faulted(full), "not marked");
            });
            world.pump();
        }
        world.pump();
        for (const uint32_t sender : senders)
            check(world.engine->lifecycle(sender) == MC_MACHINE_FAULTED, "it waits for room still");
    });
}

// Goal: who waits for room is not dispatched before there is some, whatever mail it gets meanwhile.
Test(ParallelRaces, who_waits_for_room_waits) {
    explore("ParallelRaces/who_waits_for_room_waits", [] {
        World world;
        uint32_t calls = 0;
        const uint32_t full = world.machine(1, take, false);
        const uint32_t sender = world.machine(8, [&, full](const Call &call) {
            ++calls;
            check(call.emit.send(full, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::retry);
        world.send(full);
        world.send(sender);
        world.pump();
        world.send(sender);
        world.pump();
        check(calls == 1, "%u calls", calls);
    });
}

// Goal: who waits for room, alone, is told once, and is in no list of the other one's any more: it may stop then.
Test(ParallelRaces, who_waits_alone_is_told_once) {
    explore("ParallelRaces/who_waits_alone_is_told_once", [] {
        World world;
        const uint32_t full = world.machine(2, take, false);
        const uint32_t sender = world.machine(8, [=](const Call &call) {
            check(call.emit.send(full, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::retry);
        world.send(full);
        world.send(full);
        world.send(sender);
        world.pump();
        check(world.engine->start(full), "not started");
        world.pump(1); // there is room for one: the sender is ready
        world.send(full);
        check(world.engine->stop(sender), "not stopped");
        world.pump();
        const uint32_t ids[] = {world.engine->spawn(8), world.engine->spawn(8)};
        check(world.engine->table().find(ids[0]) != world.engine->table().find(ids[1]), "two have the same memory");
    });
}

// Goal: four that wait for each other's room in a circle are found out, though two of them close it at once.
Test(ParallelRaces, four_in_a_circle) {
    explore("ParallelRaces/four_in_a_circle", [] {
        World world;
        for (uint32_t i = 0; i < 4; ++i)
            (void)world.machine(2, [=](const Call &call) {
                check(call.emit.send((i + 1) % 4 + 1, 1, 0, 0), "not staged");
                return MC_DISPATCH_OK;
            });
        world.attach(OnFull::retry);
        for (const uint32_t id : {1u, 3u, 2u, 4u})
            for (int i = 0; i < 2; ++i)
                world.send(id);
        world.pump(2); // 1 waits for 2, and 3 for 4
        {
            const Thread other([&] { world.pump(1); });
            world.pump(1);
        }
        uint32_t faulted = 0;
        for (uint32_t id = 1; id <= 4; ++id)
            faulted += world.engine->lifecycle(id) == MC_MACHINE_FAULTED;
        check(faulted == 1, "%u faulted", faulted);
    });
}

// Goal: a transaction that is put off leaves its machine's mail as it was, also when its mailbox has grown for what the machine was
// about to send to itself.
Test(ParallelRaces, what_is_put_off_stays_in_the_mail) {
    explore("ParallelRaces/what_is_put_off_stays_in_the_mail", [] {
        World world;
        std::vector<uint64_t> seen;
        const uint32_t full = world.machine(1, take, false);
        const uint32_t id = world.machine(1'000, [&](const Call &call) {
            if (call.env.kind == 1)
                for (int i = 0; i < 4; ++i)
                    check(call.emit.send(call.id, 100, 0, 0), "not staged");
            if (call.env.kind == 1)
                check(call.emit.send(full, 1, 0, 0), "not staged");
            seen.push_back(call.env.kind);
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::retry);
        world.send(full);
        for (uint64_t kind = 1; kind <= 8; ++kind)
            world.send(id, kind);
        world.pump();
        check(seen.size() == 1 && world.engine->mailbox_length(id) == 8, "it does not wait");
        check(world.engine->start(full), "not started");
        world.pump();
        check(seen.size() == 13, "%zu", seen.size());
        for (uint64_t i = 0; i < 13; ++i)
            check(seen[i] == (i < 2   ? 1
                              : i < 9 ? i
                                      : 100),
                  "%llu at %llu", static_cast<unsigned long long>(seen[i]), static_cast<unsigned long long>(i));
    });
}

// --- order -----------------------------------------------------------------------------------------------------------------

// Goal: who has sent is ready behind those that it sent to, whether it has more mail or has sent to itself.
Test(ParallelRaces, who_has_sent_is_ready_last) {
    explore("ParallelRaces/who_has_sent_is_ready_last", [] {
        for (const bool to_itself : {false, true}) {
            World world;
            std::vector<uint32_t> order;
            const uint32_t sink = world.machine(8, [&](const Call &call) {
                order.push_back(call.id);
                return MC_DISPATCH_OK;
            });
            const uint32_t sender = world.machine(8, [&](const Call &call) {
                order.push_back(call.id);
                if (call.env.kind == 1 && to_itself)
                    check(call.emit.send(call.id, 2, 0, 0), "not staged");
                if (call.env.kind == 1)
                    check(call.emit.send(sink, 1, 0, 0), "not staged");
                return MC_DISPATCH_OK;
            });
            world.attach();
            world.send(sender);
            if (!to_itself)
                world.send(sender, 2);
            world.pump();
            check(order == std::vector<uint32_t>({sender, sink, sender}), "another order");
        }
    });
}
