// Tokens, machines that are polled, and the alarms of a host in the systematic twin: who ends a token, what comes between two looks, and a
// runtime that is dropped in the middle. On real threads in other builds.
#include "sched/test_pool.hpp"

#include <mc/bridge.h>
#include <mc/csp.h>
#include <mc/machine.h>

#include <functional>

using namespace mc;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::Thread;

namespace {

using Envelope = mc_machine_envelope_t;

// Two threads, one of which stands still in the middle of what it does, or both.
void explore(const char *name, const std::function<void()> &body, int preemptions = 2) {
    // With more stale looks the search is long.
    explore_where_one_stands(name, {.preemptions = preemptions, .stale = 1, .max_runs = 6'000, .real_runs = 100}, body);
}

// Or for so long that whoever checks it finds out.
template <class Done> void wait_until(Done done) {
    const int64_t end = mc_after((mc::testing::systematic ? 20 : 10'000) * MC_MS); // real machines may be slow
    while (!done() && mc_now() < end)
        check(mc_sleep(MC_MS) == MC_OK, "no sleep");
}

// A runtime with a machine that is polled, and one that takes mail and never runs.
struct Polled {
    Polled() {
        mc_machine_runtime_init(&rt);
        id = machine();
        check(mc_machine_runtime_start(&rt, id) == 1, "not started");
        check(mc_machine_bind_poll(&rt, id, 0) == MC_OK, "not bound");
        sink = machine();
        check(mc_machine_attach(&rt, 0) == MC_OK, "not attached");
    }
    ~Polled() { mc_machine_runtime_drop(&rt); }
    Polled(const Polled &) = delete;
    Polled &operator=(const Polled &) = delete;

    void send(uint32_t dst, uint64_t payload0 = 0, uint64_t payload1 = 0) {
        check(mc_machine_runtime_send_u64(word(), dst, 1, payload0, payload1) == MC_MAILBOX_ENQUEUE_OK, "not sent");
    }
    void request() {
        const Envelope envelope{};
        check(mc_machine_runtime_request(&rt, id, sink, &envelope, nullptr) == MC_MAILBOX_ENQUEUE_OK, "not sent");
    }
    mc_txn_t poll() {
        mc_machine_polled polled;
        check(mc_machine_poll_u64(word(), MC_NOW, &polled) == MC_OK, "not polled");
        return polled.token;
    }
    void idle() { check(mc_machine_run_until_idle(&rt, MC_FOREVER) == MC_OK, "not idle"); }
    uint64_t word() const { return reinterpret_cast<uintptr_t>(&rt); }

    mc_machine_runtime_t rt;
    uint32_t id, sink;

private:
    uint32_t machine() {
        mc_machine_id_t made = 0;
        check(mc_machine_runtime_spawn(&rt, 8, &made) == 1, "not spawned");
        return made;
    }
};

} // namespace

// --- who ends a token ------------------------------------------------------------------------------------------------------

// Goal: of two that commit or abort a token, one does, and the other one is told.
Test(TokenSys, ends_once, .timeout = 120) {
    explore("TokenSys/ends_once", [] {
        Polled world;
        world.send(world.id);
        const mc_txn_t token = world.poll();
        const bool aborts = choose(2) == 1;
        int32_t theirs = MC_OK, ours = MC_OK;
        {
            const Thread other([&] { theirs = mc_txn_commit(token); });
            ours = aborts ? mc_txn_abort(token, 7) : mc_txn_commit(token);
        }
        check((theirs == MC_OK) != (ours == MC_OK), "%d and %d", theirs, ours);
        check((theirs == MC_OK ? ours : theirs) == MC_E_STALE, "it is not told");
        check(mc_machine_runtime_lifecycle(&world.rt, world.id) ==
                  (aborts && ours == MC_OK ? MC_MACHINE_FAULTED : MC_MACHINE_RUNNING),
              "it has ended otherwise");
        world.idle();
    });
}

// Goal: what was staged happens with the commit, also when somebody commits in the middle of it; what was refused does not.
Test(TokenSys, what_is_staged_is_committed, .timeout = 120) {
    explore("TokenSys/what_is_staged_is_committed", [] {
        Polled world;
        world.send(world.id);
        const mc_txn_t token = world.poll();
        int32_t staged = MC_OK, committed = MC_OK;
        {
            const Thread other([&] { staged = mc_txn_request(token, world.sink, 1, 0, 0, 0, nullptr); });
            committed = mc_txn_commit(token);
        }
        check(committed == MC_OK || staged == MC_OK, "%d and %d", committed, staged);
        check(mc_txn_commit(token) == (committed == MC_OK ? MC_E_STALE : MC_OK), "it is in use still");
        check(mc_machine_runtime_mailbox_len(&world.rt, world.sink) == (staged == MC_OK ? 1 : 0), "%d and %d",
              committed, staged);
        world.idle();
    });
}

// --- a drop in the middle --------------------------------------------------------------------------------------------------

// Goal: a token that is opened while the runtime is dropped expires: the drop waits for it, and the token is not used.
Test(TokenSys, polls_meet_a_drop, .timeout = 120) {
    explore(
        "TokenSys/polls_meet_a_drop",
        [] {
            Polled world;
            world.send(world.id);
            mc_machine_polled polled{};
            int32_t status = MC_OK;
            {
                const Thread other([&] { mc_machine_runtime_drop(&world.rt); });
                status = mc_machine_poll_u64(world.word(), MC_NOW, &polled);
            }
            check(status == MC_OK || status == MC_E_SHUTDOWN || status == MC_E_STALE, "%d", status);
            check(mc_txn_commit(polled.token) == MC_E_STALE, "it is open");
        },
        1);
}

// Goal: likewise a token that is being used at that moment, which who drops the runtime leaves alone.
Test(TokenSys, uses_meet_a_drop, .timeout = 120) {
    explore(
        "TokenSys/uses_meet_a_drop",
        [] {
            Polled world;
            world.send(world.id);
            const mc_txn_t token = world.poll();
            int32_t status = MC_OK;
            {
                const Thread other([&] { mc_machine_runtime_drop(&world.rt); });
                status = mc_txn_request(token, world.sink, 1, 0, 0, 0, nullptr);
            }
            check(status == MC_OK || status == MC_E_STALE, "%d", status);
            check(mc_txn_commit(token) == MC_E_STALE, "it is open");
        },
        1);
}

// Goal: a runtime that is dropped by somebody who may not wait ends at once, though its alarm, which is for later, is just being set.
Test(TokenSys, an_alarm_meets_a_drop, .timeout = 120) {
    explore_pool_with_one_preemption("TokenSys/an_alarm_meets_a_drop", [] {
        start_many(1);
        const uint64_t before = __mc_alloc_live_blocks();
        {
            Polled world;
            world.send(world.sink, reinterpret_cast<uintptr_t>(__mc_alloc(8, 8)), MC_PAYLOAD_LAYOUT_OWNED_MASK);
            const bool of_tokens = choose(2) == 1;
            if (of_tokens) {
                world.send(world.id);
                (void)world.poll();
                check(mc_machine_set_token_timeout(&world.rt, 3600 * MC_SEC) == MC_OK, "not set");
            } else {
                world.request();
                check(mc_machine_set_request_timeout(&world.rt, 3600 * MC_SEC) == MC_OK, "not set");
            }
            sync::thread_yield(); // the host looks, and stands still in the middle of it
            sched::ThreadContext &thread = here();
            ++thread.no_switch; // as within a callback that may not wait
            mc_machine_runtime_drop(&world.rt);
            --thread.no_switch;
        }
        wait_until([=] { return __mc_alloc_live_blocks() == before; });
        check(__mc_alloc_live_blocks() == before, "it waits for its alarm");
        stop_many();
    });
}

// --- what comes between two looks --------------------------------------------------------------------------------------------

// Goal: a token that is opened while the host finds that there is none expires all the same.
Test(TokenSys, a_token_between_two_looks, .timeout = 120) {
    explore(
        "TokenSys/a_token_between_two_looks",
        [] {
            Polled world;
            world.send(world.id);
            check(mc_machine_set_token_timeout(&world.rt, MC_MS) == MC_OK, "not set");
            {
                const Thread other([&] { (void)world.poll(); });
                world.idle(); // not before it has expired
            }
            check(mc_machine_runtime_lifecycle(&world.rt, world.id) == MC_MACHINE_FAULTED, "it has not expired");
        },
        1);
}

// Goal: a request that is made while the host finds that there is none times out all the same.
Test(TokenSys, a_request_between_two_looks, .timeout = 120) {
    explore(
        "TokenSys/a_request_between_two_looks",
        [] {
            Polled world;
            check(mc_machine_set_request_timeout(&world.rt, MC_MS) == MC_OK, "not set");
            {
                const Thread other([&] { world.request(); });
                for (int i = 0; i < 5; ++i)
                    check(mc_sleep(MC_MS) == MC_OK, "no sleep"); // the host looks meanwhile
            }
            wait_until([&] { return mc_machine_runtime_pending_len(&world.rt) == 0; });
            check(mc_machine_runtime_pending_len(&world.rt) == 0, "it has not timed out");
        },
        1);
}

// --- machines that wait to be polled -----------------------------------------------------------------------------------------

namespace {

mc_dispatch_result_t count(void *, mc_machine_id_t, uint64_t state, const Envelope *, mc_machine_dispatch_txn_t *txn,
                           uint64_t *) {
    txn->has_next_state = 1;
    txn->next_state = state + 1;
    return MC_DISPATCH_OK;
}

} // namespace

// Goal: a machine that waits to be polled, or is about to, and is bound to a handler then, has been dispatched when the runtime is idle.
Test(TokenSys, bound_otherwise_while_it_waits, .timeout = 120) {
    explore(
        "TokenSys/bound_otherwise_while_it_waits",
        [] {
            Polled world;
            const bool waits_already = choose(2) == 0;
            if (waits_already)
                world.send(world.id);
            {
                const Thread other([&] { mc_machine_runtime_bind_dispatch(&world.rt, world.id, count, nullptr); });
                if (!waits_already)
                    world.send(world.id);
                else
                    world.idle();
                check(!waits_already || mc_machine_runtime_state(&world.rt, world.id) == 1,
                      "it is ready, and that is idle");
            }
            world.idle();
            check(mc_machine_runtime_state(&world.rt, world.id) == 1, "it is not dispatched");
            mc_machine_polled none;
            check(mc_machine_poll(&world.rt, MC_NOW, &none) == MC_E_TIMEDOUT, "it is polled");
        },
        1);
}
