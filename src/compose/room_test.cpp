// Who waits for room in a mailbox: machines that keep what does not fit (RETRY), and senders with patience.
#include "compose/test_attached.hpp"

#include <mc/inspect.h>

#include <vector>

namespace mc::compose::test {
namespace {

// Machines that are let run meanwhile; where one has not come to where it waits, a test tells less.
void let_them_wait() { cr_assert_eq(mc_sleep(2 * MC_MS), MC_OK); }

// Until so many tasks wait for that, in a mailbox's list or a host's.
void until_they_wait(uint32_t waits_for, uint32_t many) {
    struct Count {
        uint32_t waits_for, seen;
    } count{waits_for, 0};
    const mc_task_info_fn note = [](void *user, const mc_task_info *info) {
        auto &of = *static_cast<Count *>(user);
        of.seen += info->state == MC_TASK_WAITING && info->waits_for == of.waits_for;
    };
    while (count.seen != many) {
        cr_assert_eq(mc_sleep(MC_MS / 10), MC_OK);
        count.seen = 0;
        cr_assert_eq(mc_inspect_tasks(0, 0, note, &count), MC_OK);
    }
}

void poll_and_commit(World &world) {
    mc_machine_polled polled = {};
    cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &polled), MC_OK);
    cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
}

uint32_t polled_machine(World &world, uint32_t cap, bool alone = false) {
    const uint32_t id = world.machine(take, cap);
    cr_assert_eq(mc_machine_bind_poll(&world.rt, id, alone ? 1 : 0), MC_OK);
    return id;
}

void join_soon(mc_task_t task) { cr_assert_eq(mc_join(task, mc_after(20 * MC_SEC), nullptr), MC_OK); }

} // namespace

// Goal: when there is room for a machine that does not use it, for whatever reason, who is behind it gets in.
Test(Room, a_turn_that_is_not_used, .timeout = 120) {
    enum { stopped, faulted, waits_elsewhere, needs_two, sends_nothing, cases };
    for (int reason = 0; reason < cases; ++reason)
        on_each([=](World &world) {
            cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
            const uint32_t full = polled_machine(world, 2), other = polled_machine(world, 1, true);
            sync::atomic<uint64_t> runs{0};
            const uint32_t first = world.machine([&, full, other](Call) {
                if (runs.fetch_add(1, sync::relaxed) != 0 && reason == sends_nothing)
                    return MC_DISPATCH_OK;
                (void)__mc_machine_emit_send(full, 1, 0, 0);
                if (reason == waits_elsewhere)
                    (void)__mc_machine_emit_send(other, 1, 0, 0);
                if (reason == needs_two)
                    (void)__mc_machine_emit_send(full, 1, 0, 0);
                return MC_DISPATCH_OK;
            });
            world.attach();
            for (const uint32_t id : {full, full, other, first})
                (void)world.send(id, 1);
            while (get(runs) == 0)
                let_them_wait();
            let_them_wait();
            const mc_task_t second = csp::testing::start(
                [&] { cr_assert_eq(mc_machine_send_until(&world.rt, full, 2, 0, 0, MC_FOREVER), MC_OK); });
            until_they_wait(MC_WAIT_MAILBOX, 1);
            if (reason == stopped)
                cr_assert_eq(mc_machine_runtime_stop(&world.rt, first), 1);
            if (reason == faulted)
                cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, first), 1);
            poll_and_commit(world);
            join_soon(second);
            cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, full), 2, "reason %d", reason);
        });
}

// Goal: with FAULT an envelope has left the mailbox when it has been polled, and there is room at once.
Test(Room, when_it_has_been_polled, .timeout = 60) {
    on_each([](World &world) {
        const uint32_t full = polled_machine(world, 1);
        world.attach();
        (void)world.send(full, 1);
        const mc_task_t sender = csp::testing::start(
            [&] { cr_assert_eq(mc_machine_send_until(&world.rt, full, 2, 0, 0, MC_FOREVER), MC_OK); });
        until_they_wait(MC_WAIT_MAILBOX, 1);
        mc_machine_polled polled = {};
        cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &polled), MC_OK);
        join_soon(sender);
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, full), 1);
        cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
        poll_and_commit(world);
    });
}

// Goal: who waits for a machine that has room is no reason to reject what that machine waits for.
Test(Room, no_circle_where_there_is_room, .timeout = 60) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        uint32_t waits = 0;
        const uint32_t full = world.machine(
            [&](Call call) {
                if (call.env.kind == 2)
                    (void)__mc_machine_emit_send(waits, 9, 0, 0);
                return MC_DISPATCH_OK;
            },
            2, false);
        const uint32_t other = world.machine(take, 1, false);
        const uint32_t goes_elsewhere = world.machine([=](Call) {
            (void)__mc_machine_emit_send(full, 1, 0, 0);
            (void)__mc_machine_emit_send(other, 1, 0, 0);
            return MC_DISPATCH_OK;
        });
        waits = world.machine(
            [=](Call call) {
                if (call.env.kind == 1)
                    (void)__mc_machine_emit_send(full, 1, 0, 0);
                call.set(call.state + 1);
                return MC_DISPATCH_OK;
            },
            1);
        world.attach();
        (void)world.send(other, 1);
        (void)world.send(full, 1);
        (void)world.send(full, 2);
        (void)world.send(goes_elsewhere, 1);
        world.idle();
        (void)world.send(waits, 1);
        world.idle();
        cr_assert_eq(mc_machine_runtime_start(&world.rt, full), 1);
        world.idle();
        cr_assert_eq(get(world.faults), 0);
        cr_assert_eq(world.state(waits), 2);
        cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, full), 0);
    });
}

// Goal: senders get in in the order in which they have come, also who comes when there has just been room.
Test(Room, first_come_first_served, .timeout = 60) {
    on_each([](World &world) {
        constexpr uint32_t senders = 6;
        const uint32_t full = polled_machine(world, 1);
        world.attach();
        (void)world.send(full, 1, 0);
        std::vector<mc_task_t> tasks;
        const auto send_from_now_on = [&](uint64_t number, uint32_t waiting) {
            tasks.push_back(csp::testing::start([&world, full, number] {
                cr_assert_eq(mc_machine_send_until(&world.rt, full, 1, number, 0, MC_FOREVER), MC_OK);
            }));
            until_they_wait(MC_WAIT_MAILBOX, waiting);
        };
        for (uint32_t number = 1; number < senders; ++number)
            send_from_now_on(number, number);
        for (uint64_t expected = 0; expected <= senders; ++expected) {
            mc_machine_polled polled = {};
            cr_assert_eq(mc_machine_poll(&world.rt, MC_FOREVER, &polled), MC_OK);
            cr_assert_eq(polled.envelope.payload0, expected);
            cr_assert_eq(mc_txn_commit(polled.token), MC_OK);
            if (expected == 0)
                send_from_now_on(senders, senders - 1); // the first has just got in
        }
        for (const mc_task_t task : tasks)
            join_soon(task);
    });
}

// Goal: who comes when there is room, and others wait while one of them has the turn, stands behind them.
Test(Room, newcomers_stand_behind) {
    World world; // in single-processor mode, so that machines run when we wait
    cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
    const uint32_t full = polled_machine(world, 1);
    uint32_t waiting[2] = {};
    for (uint32_t &id : waiting)
        id = world.machine(sends_to(full));
    world.attach();
    (void)world.send(full, 1);
    for (const uint32_t id : waiting)
        (void)world.send(id, 1);
    let_them_wait();
    poll_and_commit(world);
    cr_assert_eq(mc_machine_runtime_mailbox_len(&world.rt, full), 0);
    cr_assert_eq(mc_machine_send_until(&world.rt, full, 3, 0, 0, MC_NOW), MC_E_TIMEDOUT);
    for (const uint32_t id : waiting) {
        let_them_wait();
        cr_assert_eq(world.state(id), 1);
        poll_and_commit(world);
    }
}

// Goal: each of many that wait for one place runs about twice, not as often as there are others.
Test(Room, many_wait_for_one_place, .timeout = 60) {
    on_each([](World &world) {
        cr_assert_eq(mc_machine_set_on_full(&world.rt, MC_MACHINE_ON_FULL_RETRY), MC_OK);
        const auto senders = static_cast<uint64_t>(scaled(500));
        sync::atomic<uint64_t> runs{0}, taken{0};
        const uint32_t full = world.machine(
            [&](Call) {
                (void)taken.fetch_add(1, sync::relaxed);
                return MC_DISPATCH_OK;
            },
            1, false);
        std::vector<uint32_t> ids;
        for (uint64_t i = 0; i < senders; ++i)
            ids.push_back(world.machine(
                [&, full](Call) {
                    (void)runs.fetch_add(1, sync::relaxed);
                    (void)__mc_machine_emit_send(full, 1, 0, 0);
                    return MC_DISPATCH_OK;
                },
                1));
        world.attach();
        for (const uint32_t id : ids)
            (void)world.send(id, 1);
        world.idle();
        cr_assert_eq(mc_machine_runtime_start(&world.rt, full), 1);
        world.idle();
        cr_assert_eq(get(taken), senders);
        cr_assert_leq(get(runs), 4 * senders);
    });
}

// Goal: a report says what such a task waits for.
Test(Room, a_wait_is_told, .timeout = 60) {
    struct Seen {
        uint32_t waits_for = MC_WAIT_NONE;
        uint64_t object = 0;
    };
    const auto look = [] {
        Seen seen;
        const mc_task_info_fn note = [](void *user, const mc_task_info *info) {
            if (info->state == MC_TASK_WAITING && info->waits_for >= MC_WAIT_MAILBOX)
                *static_cast<Seen *>(user) = {info->waits_for, info->object};
        };
        while (seen.waits_for == MC_WAIT_NONE) {
            let_them_wait();
            cr_assert_eq(mc_inspect_tasks(0, 0, note, &seen), MC_OK);
        }
        return seen;
    };
    on_each([&](World &world) {
        const uint32_t full = world.machine(take, 1, false), polled = polled_machine(world, 1, true);
        world.attach();
        (void)world.send(full, 1);
        const mc_task_t sender = csp::testing::start(
            [&] { cr_assert_eq(mc_machine_send_until(&world.rt, full, 1, 0, 0, MC_FOREVER), MC_E_CLOSED); });
        Seen seen = look();
        cr_assert(seen.waits_for == MC_WAIT_MAILBOX && seen.object == full);
        cr_assert_eq(mc_machine_runtime_stop(&world.rt, full), 1);
        join_soon(sender);
        const mc_task_t poller = csp::testing::start([&] {
            mc_machine_polled out = {};
            cr_assert_eq(mc_machine_poll_one(&world.rt, polled, MC_FOREVER, &out), MC_OK);
            cr_assert_eq(mc_txn_commit(out.token), MC_OK);
        });
        seen = look();
        cr_assert(seen.waits_for == MC_WAIT_POLL && seen.object == polled);
        (void)world.send(polled, 1);
        join_soon(poller);
    });
}

} // namespace mc::compose::test
