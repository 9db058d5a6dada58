// Machines of an attached runtime under every interleaving of a few dispatches and calls; on real threads in other builds. The
// pumps are the test's: threads that take what is ready from one list.
#include "machine/engine.hpp"
#include "machine/step.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

#include <functional>
#include <utility>
#include <vector>

using namespace mc;
using namespace mc::machine;
using testing::check;
using testing::Thread;

namespace {

using Attached = Engine<Par>;
using Envelope = mc_machine_envelope_t;
using Txn = mc_machine_dispatch_txn_t;

struct World;

struct Call {
    World &world;
    EmitContext &emit;
    uint32_t id;
    uint64_t state;
    const Envelope &env;
    Txn &txn;

    void set(uint64_t next) const {
        txn.has_next_state = 1;
        txn.next_state = next;
    }
};

constexpr uint32_t most_threads = 8;

// Who is ready, and what is to be undone at the end.
struct World final : Host {
    struct Bound {
        World *world;
        std::function<mc_dispatch_result_t(const Call &)> handler;
    };

    World() {
        stepped_ = Engine<Seq>::create(nullptr);
        check(stepped_ != nullptr, "no memory");
    }
    ~World() {
        if (engine != nullptr) {
            while (Machine *machine = take())
                Attached::forget(machine);
            Attached::end(engine);
        }
        for (Bound *bound : bound_)
            delete bound;
    }

    // Before attach.
    uint32_t machine(uint32_t room, std::function<mc_dispatch_result_t(const Call &)> handler, bool running = true) {
        const uint32_t id = stepped_->spawn(room);
        bound_.push_back(new Bound{this, std::move(handler)});
        check(stepped_->bind_function(id, call, bound_.back()), "not bound");
        if (running)
            check(stepped_->start(id), "not started");
        return id;
    }
    void attach(OnFull on_full = OnFull::fault, OnLateReply on_late = OnLateReply::fault) {
        stepped_->on_full = on_full;
        stepped_->on_late_reply = on_late;
        stepped_->hooks.context = this;
        stepped_->hooks.pending = [](void *self, mc_machine_id_t, uint64_t, uint64_t,
                                     mc_pending_cleanup_reason_t reason) {
            (void)static_cast<World *>(self)->ended[reason].fetch_add(1, sync::relaxed);
        };
        engine = Attached::take_over(*stepped_, this);
        check(engine != nullptr, "no memory");
        Engine<Seq>::end(stepped_);
    }
    void send(uint32_t dst, uint64_t kind = 1, uint64_t payload = 0) {
        check(engine->enqueue(dst, plain_envelope(0, kind, payload, 0)) == MC_MAILBOX_ENQUEUE_OK, "not sent");
    }
    // Dispatches until nothing is ready.
    void pump() {
        Attached::Dispatch dispatch(engine);
        void *&slot = slots_[sync::thread_number() % most_threads];
        while (Machine *machine = take()) {
            (void)engine->run(dispatch, machine, &slot);
            if (Machine *made = std::exchange(dispatch.ready, nullptr); made != nullptr)
                ready(made);
        }
        engine->leave(dispatch);
    }

    // --- Host
    void ready(Machine *first) noexcept override {
        const base::SpinGuard guard(lock_);
        (last_ == nullptr ? first_ : last_->next) = first;
        for (last_ = first; last_->next != nullptr;)
            last_ = last_->next;
    }
    void polled(Machine *) noexcept override {}
    bool stop_polled(Machine *) noexcept override { return false; }
    void wake(const Waker &) noexcept override {}
    int64_t now_ns() const noexcept override { return 1; }
    int64_t about_now_ns() const noexcept override { return 1; }
    uint64_t ready_length() const noexcept override { return 0; }
    void watch_timeouts() noexcept override {}
    void unused() noexcept override {}

    Attached *engine = nullptr;
    sync::atomic<uint32_t> ended[5] = {};

private:
    static mc_dispatch_result_t call(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                     uint64_t *) {
        auto &bound = *static_cast<Bound *>(context);
        auto *emit = static_cast<EmitContext *>(bound.world->slots_[sync::thread_number() % most_threads]);
        return bound.handler({*bound.world, *emit, id, state, *env, *txn});
    }
    Machine *take() noexcept {
        const base::SpinGuard guard(lock_);
        Machine *machine = first_;
        if (machine != nullptr) {
            first_ = machine->next;
            if (first_ == nullptr)
                last_ = nullptr;
        }
        return machine;
    }

    Engine<Seq> *stepped_;
    std::vector<Bound *> bound_;
    void *slots_[most_threads] = {}; // each thread's own
    base::Spinlock lock_;
    Machine *first_ = nullptr; // guarded by lock_
    Machine *last_ = nullptr;
};

testing::Exploration exploration(const char *name, int preemptions = 2) {
    testing::Exploration all{.name = name};
    all.preemptions = preemptions;
    all.stale = 0; // all data is under locks, whose orders have tests of their own
    all.timeouts = 0;
    all.spurious = 0;
    all.max_runs = 8'000;
    all.isolate = true;
    all.real_runs = 100;
    return all;
}

// The kinds of what waits in a mailbox, as digits.
uint64_t mail_of(World &world, uint32_t id) {
    Machine *machine = world.engine->table().find(id);
    uint64_t digits = 0;
    while (machine != nullptr && !machine->mail.empty()) {
        Envelope envelope;
        machine->mail.pop(&envelope);
        digits = 10 * digits + envelope.kind;
    }
    return digits;
}

} // namespace

// Goal: no message is lost between a machine that has just become empty and one that sends to it.
Test(ParallelSys, every_message_is_dispatched) {
    testing::expect_pass(exploration("ParallelSys/every_message_is_dispatched"), [] {
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
    testing::expect_pass(exploration("ParallelSys/transactions_are_atomic"), [] {
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
    testing::expect_pass(exploration("ParallelSys/a_stop_is_before_or_after"), [] {
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
    testing::expect_pass(exploration("ParallelSys/a_stop_meets_its_dispatch"), [] {
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
    testing::expect_pass(exploration("ParallelSys/one_end_of_a_request"), [] {
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
    testing::expect_pass(exploration("ParallelSys/an_asker_withdraws_or_is_answered"), [] {
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
        testing::expect_pass(
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
    testing::expect_pass(exploration("ParallelSys/two_do_not_wait_for_each_other"), [] {
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
    testing::expect_pass(exploration("ParallelSys/requests_before_their_requester"), [] {
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
