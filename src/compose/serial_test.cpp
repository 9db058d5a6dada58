// Random programs of attached machines, each checked for a serial order: is there one order of everything that happened, the same for
// all, in which a sequential model gives every handler the envelope and the state that it got, every call its result, and every hook
// its arguments, and ends as the runtime did? test_serial_model.hpp has
// the model, test_serial_search.hpp the search, test_serial.hpp the programs.
//
// What a handler does is a function of its machine, its state and the envelope. An envelope's payload0 is its number, which no other
// has; payload1 is how many generations of messages it may still cause, and a capability that somebody passes on.
//
// A failure prints the seed: MC_TEST_SEED=n repeats it, many times over where threads are real, which decide as they like. MC_TEST_SCALE
// runs more seeds.
#include "compose/test_serial.hpp"

namespace mc::compose::test {
namespace {

void run_all(const Shape &shape, int seeds) {
    const char *given = std::getenv("MC_TEST_SEED");
    const csp::testing::Many many(2);
    uint64_t events = 0;
    int given_up = 0;
    for (int i = 0; i < seeds; ++i) {
        const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : static_cast<uint64_t>(i) + 1;
        History history(shape, seed);
        history.play();
        const uint64_t count = history.check();
        events += count;
        given_up += count == 0;
    }
    cr_assert_leq(given_up, seeds / 50 + 1, "%s", shape.name);
    if (given == nullptr)
        cr_assert_geq(events, static_cast<uint64_t>(seeds) * 30, "%s", shape.name);
}

// Goal: states, sends, requests and replies, with room for all.
Test(Serial, plain, .timeout = 600) {
    run_all({.name = "plain", .machines = 5, .room = 200, .generations = 4, .starts = 5}, scaled(200));
}

// Goal: likewise where senders wait for room all the time, or fault for want of it.
Test(Serial, without_room, .timeout = 600) {
    run_all(
        {.name = "without_room", .rules = {.retry = true}, .machines = 6, .room = 2, .generations = 4, .starts = 12},
        scaled(150));
    run_all({.name = "without_room", .machines = 8, .room = 4, .generations = 4, .starts = 8}, scaled(150));
}

// Goal: machines that stop, fault, are stopped, marked and spawned, and handlers that call directly.
Test(Serial, stops, .timeout = 600) {
    run_all({.name = "stops", .machines = 8, .room = 20, .generations = 4, .starts = 24, .stops = true}, scaled(150));
    run_all({.name = "stops",
             .rules = {.retry = true, .discard = true, .fault_stops = true},
             .machines = 8,
             .room = 3,
             .generations = 4,
             .starts = 24,
             .stops = true},
            scaled(150));
}

// Goal: capabilities that several have, of whom one is in time.
Test(Serial, shared_capabilities, .timeout = 600) {
    run_all({.name = "shared_capabilities",
             .rules = {.discard = true},
             .machines = 5,
             .room = 100,
             .generations = 4,
             .starts = 10,
             .shares = true},
            scaled(100));
    run_all({.name = "shared_capabilities",
             .rules = {.retry = true, .discard = true},
             .machines = 6,
             .room = 3,
             .generations = 4,
             .starts = 16,
             .stops = true,
             .shares = true},
            scaled(100));
    run_all({.name = "shared_capabilities",
             .rules = {.fault_stops = true},
             .machines = 8,
             .room = 20,
             .generations = 4,
             .starts = 16,
             .stops = true,
             .shares = true},
            scaled(100));
}

// Goal: publications, and subscriptions that come and go.
Test(Serial, topics, .timeout = 600) {
    run_all({.name = "topics", .machines = 6, .room = 50, .generations = 3, .starts = 5, .topics = true}, scaled(100));
    run_all({.name = "topics",
             .rules = {.retry = true, .discard = true, .fault_stops = true},
             .machines = 8,
             .room = 3,
             .generations = 4,
             .starts = 24,
             .stops = true,
             .shares = true,
             .topics = true},
            scaled(100));
}

// Goal: askers, and machines that are polled.
Test(Serial, asked_and_polled, .timeout = 600) {
    run_all({.name = "asked_and_polled", .machines = 5, .room = 100, .generations = 3, .starts = 8, .asks = true},
            scaled(100));
    run_all({.name = "asked_and_polled",
             .rules = {.retry = true, .discard = true},
             .machines = 6,
             .room = 4,
             .generations = 4,
             .starts = 16,
             .stops = true,
             .shares = true,
             .topics = true,
             .asks = true},
            scaled(100));
}

// Goal: requests that time out.
Test(Serial, timeouts, .timeout = 600) {
    run_all({.name = "timeouts",
             .rules = {.discard = true},
             .machines = 5,
             .room = 50,
             .generations = 4,
             .starts = 16,
             .stops = true,
             .shares = true,
             .asks = true,
             .timeout_ns = 100'000},
            scaled(50));
    run_all({.name = "timeouts",
             .rules = {.discard = true},
             .machines = 5,
             .room = 50,
             .generations = 4,
             .starts = 16,
             .stops = true,
             .shares = true,
             .timeout_steps = 20},
            scaled(100));
}

// Goal: a machine that is being spawned is unknown, or takes mail, and nothing in between.
Test(Serial, spawned_just_now) {
    const csp::testing::Many many(2);
    World world;
    world.attach();
    const auto machines = static_cast<uint32_t>(scaled(3000));
    sync::atomic<uint32_t> sent{0}; // by who waits for the next one
    auto spawn = [&] {
        for (uint32_t i = 0; i < machines; ++i) {
            while (sent.load(sync::acquire) < i)
                (void)(mc_sim_active() != 0 ? mc_yield() : 0);
            mc_machine_id_t id = 0;
            cr_assert_eq(mc_machine_runtime_spawn(&world.rt, 1, &id), 1);
        }
    };
    auto send = [&] {
        for (uint32_t next = 1; next <= machines;) {
            const int result = world.send(next, 1);
            cr_assert(result == MC_MAILBOX_ENQUEUE_OK || result == MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN, "%d", result);
            next += result == MC_MAILBOX_ENQUEUE_OK;
            sent.store(next - 1, sync::release);
            if (mc_sim_active() != 0)
                (void)mc_yield();
        }
    };
    if (mc_sim_active() != 0) {
        const mc_task_t task = csp::testing::start(spawn);
        send();
        csp::testing::join(task);
    } else {
        csp::testing::PosixThread thread(spawn);
        send();
    }
    cr_assert_eq(world.dead[MC_DEAD_LETTER_STOPPED_MACHINE].load(sync::relaxed), 0);
}

} // namespace
} // namespace mc::compose::test
