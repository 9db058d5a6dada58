// Microthreads' ends: mc_join, mc_detach, mc_task_self, results, exceptions.
#include "csp/test_csp.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace mc::csp::testing;

namespace {

// A microthread with a handle; body returns its result.
template <class Body> mc_task_t start(Body body) {
    const mc_task_fn run = [](void *argument) -> int32_t {
        const std::unique_ptr<Body> own(static_cast<Body *>(argument)); // also when an exception leaves it
        return (*own)();
    };
    mc_task_t task = 0;
    cr_assert_eq(mc_spawn(0, run, new Body(std::move(body)), nullptr, &task), MC_OK);
    cr_assert_neq(task, 0u);
    return task;
}

} // namespace

// Goal: the result, whatever it is, before and after the end; then the handle is used up.
Test(Join, gives_the_result_once) {
    World world;
    for (const int32_t value : {0, 1, -1, INT32_MIN, INT32_MAX, static_cast<int32_t>(MC_E_CRASHED)})
        for (bool ended_before : {false, true}) {
            const mc_task_t task = start([=] { return value; });
            int32_t result = 77;
            cr_assert_eq(mc_join(task, MC_NOW, &result), MC_E_TIMEDOUT);
            cr_assert_eq(result, 77);
            if (ended_before)
                csp_schedule();
            cr_assert_eq(mc_join(task, ended_before ? MC_NOW : MC_FOREVER, &result), MC_OK);
            cr_assert_eq(result, value);
            cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_E_STALE);
            cr_assert_eq(mc_detach(task), MC_E_STALE);
        }
    const mc_task_t task = start([] { return 5; });
    cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
}

// Goal: a deadline that passes leaves the handle good.
Test(Join, times_out) {
    World world;
    Chan chan;
    const mc_task_t task = start([&] { return chan.receive(); });
    int32_t result = 77;
    for (int i = 0; i < 3; ++i) {
        const int64_t deadline = mc_after(3 * MC_MS);
        cr_assert_eq(mc_join(task, deadline, &result), MC_E_TIMEDOUT);
        cr_assert_geq(mc_now(), deadline);
        cr_assert_eq(mc_join(task, 0, &result), MC_E_TIMEDOUT);
    }
    spawn([=] { cr_assert_eq(mc_join(task, mc_after(3 * MC_MS), nullptr), MC_E_TIMEDOUT); });
    csp_schedule();
    cr_assert_eq(result, 77);
    cr_assert_eq(chan.send(6), 1);
    cr_assert_eq(mc_join(task, MC_NOW, &result), MC_OK);
    cr_assert_eq(result, 6);
}

// Goal: of many who wait one gets the result, the others MC_E_STALE.
Test(Join, many_wait) {
    World world;
    Chan chan;
    const mc_task_t task = start([&] { return chan.receive(); });
    int joined = 0, stale = 0;
    for (int i = 0; i < 20; ++i)
        spawn([&, i] {
            int32_t result = 77;
            const int32_t status = mc_join(task, i % 2 == 0 ? MC_FOREVER : mc_after(3600 * MC_SEC), &result);
            cr_assert_eq(result, status == MC_OK ? 9 : 77);
            joined += status == MC_OK;
            stale += status == MC_E_STALE;
        });
    csp_yield();
    cr_assert_eq(chan.send(9), 1);
    csp_schedule();
    cr_assert_eq(joined, 1);
    cr_assert_eq(stale, 19);
}

// Goal: a detach ends the waits of those who joined, with MC_E_STALE; the microthread goes on.
Test(Join, detach) {
    World world;
    Chan chan;
    bool ended = false;
    const mc_task_t task = start([&] {
        ended = chan.receive() == 2;
        return 0;
    });
    for (int i = 0; i < 3; ++i)
        spawn([=] { cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_E_STALE); });
    csp_yield();
    cr_assert_eq(mc_detach(task), MC_OK);
    cr_assert_eq(mc_detach(task), MC_E_STALE);
    cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_E_STALE);
    csp_schedule();
    cr_assert_not(ended);
    cr_assert_eq(chan.send(2), 1);
    cr_assert(ended);
    const mc_task_t over = start([] { return 1; });
    csp_schedule();
    cr_assert_eq(mc_detach(over), MC_OK);
}

// Goal: who joins himself hears MC_E_DEADLOCK at once, with any deadline; others can still join him.
Test(Join, oneself) {
    World world;
    const mc_task_t task = start([] {
        cr_assert_eq(mc_join(mc_task_self(), MC_FOREVER, nullptr), MC_E_DEADLOCK);
        cr_assert_eq(mc_join(mc_task_self(), mc_after(MC_SEC), nullptr), MC_E_DEADLOCK);
        return 3;
    });
    int32_t result = 0;
    cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
    cr_assert_eq(result, 3);
}

// Goal: mc_task_self is the handle that the spawner got, and 0 on a stack that is no microthread's.
Test(Join, self) {
    World world;
    cr_assert_eq(mc_task_self(), 0u);
    mc_task_t self = 0;
    const mc_task_t task = start([&] {
        self = mc_task_self();
        return 0;
    });
    cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
    cr_assert_eq(self, task);
    PosixThread thread([] { cr_assert_eq(mc_task_self(), 0u); });
    thread.join();
}

// Goal: a microthread detaches itself.
Test(Join, detaches_itself) {
    World world;
    const mc_task_t task = start([] {
        cr_assert_eq(mc_detach(mc_task_self()), MC_OK);
        csp_yield();
        return 0;
    });
    csp_schedule();
    cr_assert_eq(mc_join(task, MC_NOW, nullptr), MC_E_STALE);
}

// Goal: an exception ends the microthread with MC_E_CRASHED, logged; from csp_spawn it is logged; the rest goes on.
Test(Join, exceptions) {
    World world;
    for (int kind = 0; kind < 3; ++kind) {
        const mc_task_t task = start([=]() -> int32_t {
            csp_yield();
            if (kind == 0)
                throw std::runtime_error("planted");
            if (kind == 1)
                throw kind;
            throw std::string("planted");
        });
        int32_t result = 0;
        cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
        cr_assert_eq(result, MC_E_CRASHED);
        cr_assert_eq(world.log.count(MC_E_CRASHED), ++world.expected_lines);
        cr_assert_eq(csp_spawn([](void *) { throw 1; }, nullptr), 1);
        cr_assert_eq(world.log.count(MC_E_CRASHED), ++world.expected_lines);
    }
    Chan chan;
    spawn([&] { cr_assert_eq(chan.receive(), 5); });
    cr_assert_eq(chan.send(5), 1);
}

// Goal: exceptions that are caught within a microthread, across switches, are its own.
Test(Join, exceptions_stay_on_their_stack) {
    World world;
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 20; ++i)
        tasks.push_back(start([=]() -> int32_t {
            try {
                throw i;
            } catch (int caught) {
                for (int yields = 0; yields < 5; ++yields)
                    csp_yield();
                try {
                    throw;
                } catch (int again) {
                    return again == caught ? caught : -1;
                }
            }
        }));
    for (int i = 0; i < 20; ++i) {
        int32_t result = -1;
        cr_assert_eq(mc_join(tasks[static_cast<size_t>(i)], MC_FOREVER, &result), MC_OK);
        cr_assert_eq(result, i);
    }
}

// Goal: stack sizes and names; what options are refused.
Test(Join, spawn_options) {
    World world;
    const mc_task_fn nothing = [](void *) -> int32_t { return 0; };
    mc_task_t task = 88;
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    cr_assert_eq(mc_spawn(0, nullptr, nullptr, nullptr, &task), MC_E_INVAL);
    cr_assert_eq(mc_spawn(999, nothing, nullptr, nullptr, &task), MC_E_STALE);
    cr_assert_eq(csp_spawn(nullptr, nullptr), 0);
    cr_assert_eq(world.log.count(MC_E_INVAL), 1);
    world.expected_lines = 1;
    for (const uint64_t size : {UINT64_C(1), MC_STACK_MIN - 1, MC_STACK_MAX + 1, UINT64_MAX}) {
        options.stack_size = size;
        cr_assert_eq(mc_spawn(0, nothing, nullptr, &options, &task), MC_E_INVAL);
    }
    options.stack_size = 0;
    options.flags = 8; // unknown
    cr_assert_eq(mc_spawn(0, nothing, nullptr, &options, &task), MC_E_INVAL);
    options.flags = MC_SPAWN_LOW | MC_SPAWN_HIGH;
    cr_assert_eq(mc_spawn(0, nothing, nullptr, &options, &task), MC_E_INVAL);
    cr_assert_eq(task, 88u);
    options.flags = 0;
    options.name = "a name that is much longer than thirty-one bytes are";
    for (const uint64_t size : {UINT64_C(0), UINT64_C(65'536), UINT64_C(100'001), MC_STACK_MAX}) {
        options.stack_size = size;
        cr_assert_eq(mc_spawn(0, nothing, nullptr, &options, &task), MC_OK);
        cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
    }
}

// Goal: options of a newer header: a tail of zeros is taken, one with something set is not; one too short is refused.
Test(Join, spawn_options_of_other_versions) {
    World world;
    const mc_task_fn nothing = [](void *) -> int32_t { return 0; };
    struct Newer {
        mc_spawn_options known;
        uint64_t tail;
    } newer{MC_SPAWN_OPTIONS_INIT, 0};
    newer.known.struct_size = sizeof(Newer);
    mc_task_t task = 0;
    cr_assert_eq(mc_spawn(0, nothing, nullptr, &newer.known, &task), MC_OK);
    cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
    newer.tail = 1;
    cr_assert_eq(mc_spawn(0, nothing, nullptr, &newer.known, &task), MC_E_VERSION);
}

// Goal: ten thousand microthreads, alive at once and one after the other; handles do not come back.
Test(Join, thousands, .timeout = 30) {
    World world;
    constexpr int count = mc::testing::under_tsan ? 2000 : 10'000;
    Chan gate;
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < count; ++i)
        tasks.push_back(start([&, i] {
            (void)gate.receive();
            return i;
        }));
    csp_yield();
    gate.release_writer();
    for (int i = 0; i < count; ++i) {
        int32_t result = -1;
        cr_assert_eq(mc_join(tasks[static_cast<size_t>(i)], MC_FOREVER, &result), MC_OK);
        cr_assert_eq(result, i);
    }
    for (int i = 0; i < count; ++i)
        cr_assert_eq(mc_join(start([] { return 0; }), MC_FOREVER, nullptr), MC_OK);
    for (mc_task_t task : tasks)
        cr_assert_eq(mc_join(task, MC_NOW, nullptr), MC_E_STALE);
}

// Goal: threads join too; main joins what a thread spawned.
Test(Join, across_threads, .timeout = 20) {
    World world;
    Chan gate, handles, gave_up;
    mc_task_t from_thread = 0;
    const mc_task_t task = start([&] { return gate.receive(); });
    PosixThread thread([&] {
        int32_t result = 0;
        cr_assert_eq(mc_join(task, mc_after(MC_MS), &result), MC_E_TIMEDOUT);
        cr_assert_eq(gave_up.send(1), 1);
        cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
        cr_assert_eq(result, 7);
        from_thread = start([] { return 8; });
        cr_assert_eq(handles.send(1), 1);
    });
    cr_assert_eq(gave_up.receive(), 1);
    csp_sleep_until(mc_after(10 * MC_MS)); // so that the second join most likely waits
    cr_assert_eq(gate.send(7), 1);
    cr_assert_eq(handles.receive(), 1);
    int32_t result = 0;
    cr_assert_eq(mc_join(from_thread, MC_FOREVER, &result), MC_OK);
    cr_assert_eq(result, 8);
    thread.join();
}
