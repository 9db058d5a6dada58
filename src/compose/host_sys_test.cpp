// The host of attached machines in the systematic twin: pumps that rest while somebody sends, and a runtime that is dropped while
// somebody asks. On real threads in other builds.
#include "sched/test_pool.hpp"

#include <mc/csp.h>
#include <mc/machine.h>

#include <functional>

using namespace mc;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::Thread;

namespace {

using Envelope = mc_machine_envelope_t;

// A runtime whose machines count what they get in their states.
struct Counted {
    Counted() { mc_machine_runtime_init(&rt); }
    ~Counted() { mc_machine_runtime_drop(&rt); }

    uint32_t machine(bool running = true, uint32_t room = 8) {
        mc_machine_id_t id = 0;
        check(mc_machine_runtime_spawn(&rt, room, &id) == 1, "not spawned");
        mc_machine_runtime_bind_dispatch(&rt, id, count, nullptr);
        if (running)
            check(mc_machine_runtime_start(&rt, id) == 1, "not started");
        return id;
    }
    void attach() { check(mc_machine_attach(&rt, 0) == MC_OK, "not attached"); }
    void send(uint32_t dst) {
        const Envelope envelope{};
        check(mc_machine_runtime_enqueue(&rt, dst, &envelope) == MC_MAILBOX_ENQUEUE_OK, "not sent");
    }
    void idle() { check(mc_machine_run_until_idle(&rt, MC_FOREVER) == MC_OK, "not idle"); }
    uint64_t word() const { return reinterpret_cast<uintptr_t>(&rt); }

    mc_machine_runtime_t rt;

private:
    static mc_dispatch_result_t count(void *, mc_machine_id_t, uint64_t state, const Envelope *,
                                      mc_machine_dispatch_txn_t *txn, uint64_t *) {
        txn->has_next_state = 1;
        txn->next_state = state + 1;
        return MC_DISPATCH_OK;
    }
};

} // namespace

// Goal: what is sent while a pump is about to rest is dispatched before the runtime is idle.
Test(HostSys, what_is_sent_is_dispatched, .timeout = 120) {
    explore_pool("HostSys/what_is_sent_is_dispatched", 400, [] {
        start_many(1 + mc::testing::choose(2));
        {
            Counted world;
            const uint32_t ids[] = {world.machine(), world.machine()};
            world.attach();
            {
                const Thread other([&] {
                    world.send(ids[0]);
                    world.send(ids[1]);
                });
                world.send(ids[0]);
                world.send(ids[1]);
            }
            world.idle();
            for (const uint32_t id : ids)
                check(mc_machine_runtime_state(&world.rt, id) == 2, "a message waits");
        }
        stop_many();
    });
}

// Goal: the same, for a sender or a pump that stands still at any one place.
Test(HostSys, what_is_sent_while_one_stands_still, .timeout = 120) {
    explore_pool_with_one_preemption("HostSys/what_is_sent_while_one_stands_still", [] {
        start_many(1);
        {
            Counted world;
            const uint32_t id = world.machine();
            world.attach();
            const bool pump_is_about_to_rest = mc::testing::choose(2) == 1;
            world.send(id);
            while (pump_is_about_to_rest && mc_machine_runtime_state(&world.rt, id) == 0)
                sync::thread_yield();
            world.send(id);
            world.idle();
            check(mc_machine_runtime_state(&world.rt, id) == 2, "a message waits");
            world.send(id);
            world.idle();
            check(mc_machine_runtime_state(&world.rt, id) == 3, "nobody serves any more");
        }
        stop_many();
    });
}

namespace {

// wait(world's word, a machine that is not started): a call that waits for ever, unless the runtime is dropped.
template <class Wait> void meet_a_drop(const char *name, Wait wait) {
    const auto body = [=] {
        Counted world;
        const uint32_t deaf = world.machine(false, 1);
        world.attach();
        const uint64_t word = world.word();
        int32_t status = MC_OK;
        {
            const Thread waiter([&] { status = wait(word, deaf); });
            mc_machine_runtime_drop(&world.rt);
        }
        check(status == MC_E_SHUTDOWN || status == MC_E_STALE, "%d", status);
    };
    // Each of them in the middle of what it does.
    explore_where_one_stands(name, {.preemptions = 2, .real_runs = 100}, body);
}

} // namespace

// Goal: who asks while the runtime is dropped is told, wherever he is by then.
Test(HostSys, asks_meet_a_drop, .timeout = 120) {
    meet_a_drop("HostSys/asks_meet_a_drop", [](uint64_t word, uint32_t deaf) {
        return mc_machine_ask_u64(word, deaf, 1, 0, 0, MC_FOREVER, nullptr);
    });
}

// Goal: likewise who waits for room.
Test(HostSys, sends_meet_a_drop, .timeout = 120) {
    meet_a_drop("HostSys/sends_meet_a_drop", [](uint64_t word, uint32_t deaf) {
        int32_t status = MC_OK;
        for (uint32_t sent = 0; status == MC_OK && sent < 2; ++sent) // there is room for one
            status = mc_machine_send_until_u64(word, deaf, 1, 0, 0, MC_FOREVER);
        return status;
    });
}
