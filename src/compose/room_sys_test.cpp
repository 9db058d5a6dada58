// Senders with patience, and polls, beside others, in the systematic twin.
#include "sched/test_pool.hpp"

#include <mc/bridge.h>
#include <mc/csp.h>
#include <mc/machine.h>

#include <functional>

using namespace mc;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::Thread;

namespace {

// A polled machine of an attached runtime, with so much mail.
struct Polled {
    Polled(uint32_t mails, uint32_t cap, uint32_t on_full) {
        mc_machine_runtime_init(&rt);
        check(mc_machine_runtime_spawn(&rt, cap, &id) == 1, "not spawned");
        check(mc_machine_set_on_full(&rt, on_full) == MC_OK && mc_machine_bind_poll(&rt, id, 0) == MC_OK, "not bound");
        check(mc_machine_runtime_start(&rt, id) == 1 && mc_machine_attach(&rt, 0) == MC_OK, "not attached");
        const mc_machine_envelope_t envelope{};
        for (; mails != 0; --mails)
            check(mc_machine_runtime_enqueue(&rt, id, &envelope) == MC_MAILBOX_ENQUEUE_OK, "not sent");
    }
    Polled(const Polled &) = delete;
    Polled &operator=(const Polled &) = delete;
    ~Polled() { mc_machine_runtime_drop(&rt); }
    uint64_t word() const { return reinterpret_cast<uintptr_t>(&rt); }

    mc_machine_runtime_t rt;
    mc_machine_id_t id = 0;
};

} // namespace

// Goal: a token that is opened while its runtime is dropped expires: one of the two finds the other.
Test(RoomHostSys, a_poll_meets_a_drop, .timeout = 300) {
    explore_where_one_stands("RoomHostSys/a_poll_meets_a_drop", {.stale = 1, .max_runs = 8'000, .real_runs = 100}, [] {
        Polled world(1, 4, MC_MACHINE_ON_FULL_FAULT);
        mc_machine_polled polled = {};
        int32_t status = MC_OK;
        {
            const Thread dropper([&] { mc_machine_runtime_drop(&world.rt); });
            status = mc_machine_poll_u64(world.word(), MC_NOW, &polled);
        }
        check(status == MC_OK || status == MC_E_SHUTDOWN || status == MC_E_STALE || status == MC_E_TIMEDOUT, "%d",
              status);
        check(status != MC_OK || mc_txn_commit(polled.token) == MC_E_STALE, "the token is open after the drop");
    });
}

// Goal: a sender without patience that comes in between takes nobody's turn with it.
Test(RoomHostSys, no_patience, .timeout = 300) {
    explore_where_one_stands("RoomHostSys/no_patience", {.preemptions = 2, .max_runs = 8'000, .real_runs = 100}, [] {
        Polled world(2, 2, MC_MACHINE_ON_FULL_RETRY);
        mc_machine_polled polled = {};
        check(mc_machine_poll_u64(world.word(), MC_NOW, &polled) == MC_OK, "not polled");
        int32_t at_once = 0, later = 0;
        {
            const Thread patient(
                [&] { later = mc_machine_send_until_u64(world.word(), world.id, 3, 0, 0, mc_after(MC_SEC)); });
            const Thread server([&] { check(mc_txn_commit(polled.token) == MC_OK, "not committed"); });
            at_once = mc_machine_send_until_u64(world.word(), world.id, 2, 0, 0, MC_NOW);
        }
        check(at_once == MC_OK || later == MC_OK, "there was room, and neither got in: %d, %d", at_once, later);
    });
}
