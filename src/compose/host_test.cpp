// The host of attached machines on real threads: what it promises whatever handlers do.
#include "compose/test_attached.hpp"

namespace mc::compose::test {
namespace {

// Goal: a machine that a handler makes ready does not wait until that handler returns, while another executor has nothing to do.
Test(Host, a_machine_behind_a_long_handler, .timeout = 60) {
    const Many many(2);
    World world;
    sync::atomic<uint64_t> ran{0};
    const uint32_t behind = world.machine([&](Call) {
        ran.store(1, sync::release);
        return MC_DISPATCH_OK;
    });
    const uint32_t hog = world.machine([&](Call) {
        cr_assert_eq(world.send(behind, 1), MC_MAILBOX_ENQUEUE_OK); // into the queue that this handler's pump serves
        cr_assert(csp::testing::hog_until([&] { return get(ran) != 0; }), "it waits behind the handler");
        return MC_DISPATCH_OK;
    });
    world.attach();
    for (int round = 0; round < 5; ++round) {
        ran.store(0, sync::release);
        cr_assert_eq(world.send(hog, 1), MC_MAILBOX_ENQUEUE_OK);
        world.idle();
    }
}

// Goal: when a runtime has been dropped no handler of it runs any more.
Test(Host, a_drop_waits_for_handlers, .timeout = 60) {
    const Many many(2);
    for (int round = 0; round < 5; ++round) {
        World world;
        sync::atomic<uint64_t> begun{0}, inside{0};
        const uint32_t id = world.machine([&](Call) {
            inside.store(1, sync::release);
            begun.store(1, sync::release);
            const int64_t end = mc_now() + (round == 0 ? 1'200 : 10) * MC_MS; // longer than a drop waits for calls
            (void)csp::testing::hog_until([=] { return mc_now() >= end; });
            inside.store(0, sync::release);
            return MC_DISPATCH_OK;
        });
        world.attach();
        cr_assert_eq(world.send(id, 1), MC_MAILBOX_ENQUEUE_OK);
        while (get(begun) == 0)
            cr_assert_eq(mc_sleep(MC_MS / 10), MC_OK);
        mc_machine_runtime_drop(&world.rt);
        cr_assert_eq(get(inside), 0, "a handler runs still");
    }
}

} // namespace
} // namespace mc::compose::test
