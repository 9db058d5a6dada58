// Who waits for room in a mailbox, in the systematic twin: turns and edges of waiting.
#include "machine/test_parallel.hpp"

using namespace mc;
using namespace mc::machine;
using namespace mc::machine::testing;
using mc::testing::check;
using mc::testing::Thread;

namespace {

void explore(const char *name, const std::function<void()> &body, int preemptions = 2) {
    mc::testing::expect_pass(exploration(name, preemptions), body);
}

} // namespace

// Goal: who has been let go waits for nobody: what sends to it then does not wait in a circle.
Test(RoomSys, let_go_waits_for_nobody, .timeout = 120) {
    explore("RoomSys/let_go_waits_for_nobody", [] {
        World world;
        uint32_t runs = 0, second = 0;
        const uint32_t full = world.machine(
            2,
            [&](const Call &call) {
                if (call.env.kind == 2)
                    check(call.emit.send(second, 5, 0, 0), "not staged");
                return MC_DISPATCH_OK;
            },
            false);
        const uint32_t first = world.machine(1, [&](const Call &call) {
            if (runs++ == 0)
                check(call.emit.send(full, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        second = world.machine(1, [=](const Call &call) {
            if (call.env.kind == 1)
                check(call.emit.send(full, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::retry);
        for (const uint32_t id : {full, full, first, second}) {
            world.send(id);
            world.pump();
        }
        check(world.engine->start(full), "not started");
        {
            const Thread other([&] {
                if (world.engine->mailbox_length(full) == 0) {
                    (void)world.engine->enqueue(full, plain_envelope(0, 2, 0, 0));
                    world.pump();
                }
            });
            world.pump();
        }
        world.pump();
        for (const uint32_t id : {full, first, second})
            check(world.engine->lifecycle(id) == MC_MACHINE_RUNNING, "machine %u has faulted", id);
    });
}

// Goal: whatever becomes of a machine whose turn it is, at whatever moment, a guest behind it gets in, unless it has used the turn.
Test(RoomSys, a_turn_is_passed_on, .timeout = 120) {
    explore("RoomSys/a_turn_is_passed_on", [] {
        const bool stops = mc::testing::choose(2) == 0;
        World world;
        const uint32_t full = world.machine(
            2, [](const Call &) { return MC_DISPATCH_OK; }, false);
        const uint32_t first = world.machine(1, [=](const Call &call) {
            check(call.emit.send(full, 1, 0, 0), "not staged");
            return MC_DISPATCH_OK;
        });
        world.attach(OnFull::retry);
        for (const uint32_t id : {full, full, first}) {
            world.send(id);
            world.pump();
        }
        Guest guest;
        bool waits = false;
        const Envelope envelope = plain_envelope(0, 3, 0, 0);
        check(world.engine->enqueue_or_wait(full, envelope, guest, false, &waits) == MC_MAILBOX_ENQUEUE_FULL && waits,
              "it does not wait");
        check(world.engine->start(full), "not started");
        world.pump(1);                                            // it is let go
        check(world.engine->bind_poll(full, false), "not bound"); // and what it was let go for takes no more
        {
            const Thread other([&] {
                if (stops)
                    (void)world.engine->stop(first);
                else
                    (void)world.engine->mark_faulted(first);
            });
            world.pump();
        }
        world.pump();
        check(guest.delivered || world.engine->mailbox_length(full) == 2, "the guest sleeps before an open door");
        check(guest.delivered || world.engine->leave_list(full, guest), "it was let go for nothing");
    });
}
