// How attached runtimes and what they are attached to end: in which order they may, and that nothing waits for what will not come.
#include "compose/test_attached.hpp"

#include <mc/runtime.h>

namespace mc::compose::test {
namespace {

mc_dispatch_result_t count(Call call) {
    call.set(call.state + 1);
    return MC_DISPATCH_OK;
}

// Whatever takes so long waits in vain.
template <class Call> void soon(Call call) {
    const int64_t began_ns = sync::now_ns();
    call();
    cr_assert_lt(sync::now_ns() - began_ns, mc::testing::under_valgrind ? 20 * MC_SEC : 900 * MC_MS);
}

mc_runtime_t new_runtime(bool started) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    options.executors = 1;
    mc_runtime_t runtime = 0;
    cr_assert_eq(mc_runtime_create(&options, &runtime), MC_OK);
    cr_assert(!started || mc_runtime_start(runtime) == MC_OK);
    return runtime;
}

} // namespace

// Goal: a drop waits for handlers that run, and not for those that will not: of a runtime that was never started, and of an owner who
// is elsewhere. What is left ends when they go on.
Test(Ends, dropped_where_nobody_runs, .timeout = 60) {
    {
        const mc_runtime_t runtime = new_runtime(false);
        World world;
        const uint32_t id = world.machine([](Call) {
            cr_assert(false, "it runs after the drop");
            return MC_DISPATCH_OK;
        });
        cr_assert_eq(mc_machine_attach(&world.rt, runtime), MC_OK);
        (void)world.send(id, 1);
        soon([&] { mc_machine_runtime_drop(&world.rt); });
        cr_assert_eq(mc_runtime_destroy(runtime), MC_E_BUSY, "a pump waits there");
        cr_assert_eq(mc_runtime_shutdown(runtime, mc_after(20 * MC_SEC)), MC_OK);
        cr_assert_eq(mc_runtime_destroy(runtime), MC_OK);
    }
    {
        World world;
        const uint32_t id = world.machine(count);
        world.attach();
        (void)world.send(id, 1);
        soon([&] { csp::testing::PosixThread foreign([&] { mc_machine_runtime_drop(&world.rt); }); });
    }
    csp_run();
}

// Goal: a hook of a direct call may drop the runtime, which waits for everybody but that call.
Test(Ends, dropped_by_a_hook, .timeout = 60) {
    struct Dropped {
        mc_machine_runtime_t rt;
        int calls = 0;
    } dropped;
    Many many(2);
    mc_machine_runtime_init(&dropped.rt);
    mc_machine_runtime_set_hooks(
        &dropped.rt,
        [](void *self, mc_machine_id_t, mc_dead_letter_reason_t, const Envelope *) {
            ++static_cast<Dropped *>(self)->calls;
            mc_machine_runtime_drop(&static_cast<Dropped *>(self)->rt);
        },
        nullptr, &dropped);
    cr_assert_eq(mc_machine_attach(&dropped.rt, 0), MC_OK);
    const Envelope envelope{};
    soon([&] {
        cr_assert_eq(mc_machine_runtime_enqueue(&dropped.rt, 77, &envelope), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    });
    cr_assert_eq(dropped.calls, 1);
}

// Goal: a runtime to which machines are attached is neither shut down nor destroyed, and goes on as before; nothing is attached to
// one that is ending.
Test(Ends, a_runtime_keeps_its_machines, .timeout = 60) {
    for (const bool started : {false, true}) {
        const mc_runtime_t runtime = new_runtime(started);
        World world;
        const uint32_t id = world.machine(count);
        cr_assert_eq(mc_machine_attach(&world.rt, runtime), MC_OK);
        cr_assert_eq(mc_runtime_shutdown(runtime, mc_after(MC_SEC)), MC_E_BUSY);
        cr_assert_eq(mc_runtime_destroy(runtime), MC_E_BUSY);
        if (started) {
            (void)world.send(id, 1);
            world.idle();
            cr_assert_eq(world.state(id), 1);
        }
        cr_assert_eq(mc_machine_detach(&world.rt), MC_OK);
        cr_assert_eq(mc_runtime_shutdown(runtime, mc_after(20 * MC_SEC)), MC_OK);
        cr_assert_eq(mc_machine_attach(&world.rt, runtime), MC_E_SHUTDOWN);
        cr_assert_eq(mc_machine_detach(&world.rt), MC_E_INVAL);
        cr_assert_eq(mc_runtime_destroy(runtime), MC_OK);
        cr_assert_eq(mc_machine_attach(&world.rt, runtime), MC_E_STALE);
    }
}

// Goal: who waits until a runtime is idle learns that it was dropped, when what it waited for will not come.
Test(Ends, dropped_while_waited_for, .timeout = 60) {
    Many many(1);
    World world;
    const uint32_t polled = world.machine(count);
    cr_assert_eq(mc_machine_bind_poll(&world.rt, polled, 0), MC_OK);
    world.attach();
    (void)world.send(polled, 1);
    int32_t status = MC_OK;
    {
        csp::testing::PosixThread waiter([&] { status = mc_machine_run_until_idle(&world.rt, MC_FOREVER); });
        cr_assert_eq(mc_sleep(5 * MC_MS), MC_OK);
        mc_machine_runtime_drop(&world.rt);
    }
    cr_assert(status == MC_OK || status == MC_E_SHUTDOWN || status == MC_E_STALE, "%d", status);
}

// Goal: a request from before the runtime was attached ends in time, though no other is made.
Test(Ends, requests_from_before, .timeout = 60) {
    Many many(1);
    World world;
    const uint32_t silent = world.machine([](Call) { return MC_DISPATCH_OK; }), asks = world.machine(count);
    uint64_t pending = 0;
    cr_assert_eq(mc_machine_set_request_timeout(&world.rt, 5 * MC_MS), MC_OK);
    const Envelope request{};
    cr_assert_eq(mc_machine_runtime_request(&world.rt, asks, silent, &request, &pending), MC_MAILBOX_ENQUEUE_OK);
    while (mc_machine_runtime_ready_len(&world.rt) != 0)
        (void)mc_machine_runtime_step_u64(world.word());
    world.attach();
    while (world.ended(MC_PENDING_CLEANUP_TIMEOUT) == 0)
        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
}

} // namespace mc::compose::test
