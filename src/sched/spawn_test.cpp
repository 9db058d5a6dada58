// Microthreads from birth to end: results, handles, slots and stacks. Ends that race joins are in join_sys_test.cpp.
#include "sched/test_sched.hpp"

#include "base/alloc.hpp"
#include "base/log.hpp"
#include "fiber/stack.hpp"

#include <mc/csp.h>

#include <cfenv>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

uint32_t slot_of(mc_task_t handle) { return static_cast<uint32_t>(handle) & (TaskSlab::max_items - 1); }

// Stacks that are neither free in the pool nor kept by the executor: those somebody runs on.
uint64_t live_stacks() { return fiber::stack_counters().outside - executor().stack_cache().held(); }

int many(int count) { return mc::testing::under_tsan || mc::testing::under_valgrind ? count / 50 : count; }

} // namespace

// Goal: one joiner gets the result and uses up the handle; the others are told that it is stale.
Test(Spawn, one_of_many_joiners_gets_the_result) {
    Gate gate;
    const mc_task_t task = start([&] {
        gate.acquire();
        return 17;
    });
    int got = 0;
    int stale = 0;
    const auto joins = [&] {
        int32_t result = 0;
        const int32_t status = join_until(task, MC_FOREVER, &result);
        got += status == MC_OK && result == 17;
        stale += status == MC_E_STALE;
    };
    for (int i = 0; i < 4; ++i)
        run_now(joins);
    gate.release();
    joins();
    yield();
    cr_assert_eq(got, 1);
    cr_assert_eq(stale, 4);
}

// Goal: a join that times out leaves the handle good; one that only looks does not wait; oneself can not be joined.
Test(Spawn, a_join_can_give_up) {
    Gate gate;
    mc_task_t task = 0;
    task = start([&] {
        cr_assert_eq(handle_of(*here().running), task);
        cr_assert_eq(join_until(task, MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_eq(join_until(task, MC_NOW), MC_E_DEADLOCK);
        gate.acquire();
        return 3;
    });
    cr_assert_eq(join_until(task, MC_NOW), MC_E_TIMEDOUT);
    const int64_t deadline = in_ms(2);
    cr_assert_eq(join_until(task, deadline), MC_E_TIMEDOUT);
    cr_assert_geq(sync::now_ns(), deadline);
    gate.release();
    cr_assert_eq(result_of(task), 3);
    cr_assert_eq(join_until(task, MC_NOW), MC_E_STALE);
}

// Goal: a detached microthread goes on; its joiners, and all later users of the handle, are told.
Test(Spawn, detaching_tells_the_joiners) {
    Gate gate;
    bool ended = false;
    const mc_task_t task = start([&] {
        gate.acquire();
        cr_assert_eq(handle_of(*here().running), 0u);
        ended = true;
    });
    int told = 0;
    for (int i = 0; i < 3; ++i)
        run_now([&] { told += join_until(task, in_ms(1000)) == MC_E_STALE; });
    cr_assert_eq(detach(task), MC_OK);
    cr_assert_eq(detach(task), MC_E_STALE);
    yield();
    cr_assert_eq(told, 3);
    gate.release();
    yield();
    cr_assert(ended);
    cr_assert_eq(join_until(task, MC_NOW), MC_E_STALE);
}

// Goal: slots are used again, the warmest first, and no old handle ever meets a later life.
Test(Spawn, slots_are_reused_and_handles_are_not) {
    std::vector<mc_task_t> old;
    std::set<uint32_t> slots;
    for (int life = 0; life < 2'000; ++life) {
        const mc_task_t task = start([life] { return life; });
        slots.insert(slot_of(task));
        cr_assert_eq(result_of(task), life);
        old.push_back(task);
    }
    cr_assert_leq(slots.size(), 2u);
    const mc_task_t task = start([] { return 5; });
    for (mc_task_t stale : old) {
        cr_assert_neq(stale, task);
        cr_assert_eq(join_until(stale, MC_NOW), MC_E_STALE);
        cr_assert_eq(detach(stale), MC_E_STALE);
    }
    cr_assert_eq(result_of(task), 5);
}

// Goal: a slot whose generations are used up is left alone for ever, however its last microthread was let go.
Test(Spawn, used_up_slots_are_never_reused) {
    Gate gate;
    enum { joined, detached_before, detached_after };
    for (int way : {joined, detached_before, detached_after}) {
        const mc_task_t before = start([] {});
        cr_assert_eq(result_of(before), 0);
        const uint32_t slot = slot_of(before);
        task_slab().at(slot)->generation.store(base::last_generation - 2, sync::relaxed);
        const mc_task_t last = start([&] { gate.acquire(); });
        cr_assert_eq(slot_of(last), slot);
        if (way == detached_before)
            cr_assert_eq(detach(last), MC_OK);
        gate.release();
        yield();
        yield();
        if (way == detached_after)
            cr_assert_eq(detach(last), MC_OK);
        if (way == joined)
            cr_assert_eq(result_of(last), 0);
        for (int i = 0; i < 500; ++i) {
            const mc_task_t other = start([] {});
            cr_assert_neq(slot_of(other), slot, "the slot is used again");
            cr_assert_eq(result_of(other), 0);
        }
        cr_assert_eq(join_until(last, MC_NOW), MC_E_STALE);
        cr_assert_eq(task_slab().at(slot)->generation.load(sync::relaxed), base::last_generation);
    }
}

// Goal: a hundred thousand microthreads, let go in every way, leave neither slots nor stacks behind.
Test(Spawn, a_hundred_thousand_leak_nothing, .timeout = 60) {
    const auto round = [](int i) {
        switch (i % 4) {
        case 0:
            cr_assert_eq(result_of(start([i] { return i; })), i);
            break;
        case 1: // detached before its end
            cr_assert_eq(detach(start([] { yield(); })), MC_OK);
            break;
        case 2: { // detached after its end
            const mc_task_t task = start([] {});
            yield();
            yield();
            cr_assert_eq(detach(task), MC_OK);
            break;
        }
        default: // nobody had a handle
            run_now([] { yield(); });
        }
    };
    for (int i = 0; i < 400; ++i)
        round(i);
    sleep_ms(1);
    const uint32_t tasks = task_slab().carved();
    const uint64_t stacks = live_stacks();
    const uint64_t mapped = fiber::stack_counters().bytes_mapped;
    for (int i = 0; i < many(100'000) * static_cast<int>(mc::testing::scale()); ++i)
        round(i);
    sleep_ms(1);
    cr_assert_eq(task_slab().carved(), tasks);
    cr_assert_eq(live_stacks(), stacks);
    cr_assert_eq(fiber::stack_counters().bytes_mapped, mapped);
}

// Goal: thousands at once take a slot and a stack each, and give them back.
Test(Spawn, many_at_once_give_everything_back, .timeout = 60) {
    Gate gate;
    here();
    const uint64_t before = live_stacks();
    const int count = many(5'000);
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < count; ++i)
        tasks.push_back(start([&gate] { return gate.acquire(); }));
    yield();
    cr_assert_eq(live_stacks(), before + static_cast<uint64_t>(count));
    for (int i = 0; i < count; ++i)
        gate.release();
    for (mc_task_t task : tasks)
        cr_assert_eq(result_of(task), MC_OK);
    cr_assert_eq(live_stacks(), before);
}

namespace {

struct Witness {
    uint64_t *live_at_end;
    ~Witness() { *live_at_end = live_stacks(); }
};

} // namespace

// Goal: the stack of a microthread is its own until it has switched away for good: while its last destructor runs, and
// while the joiner that its result wakes is only about to run. Then it is given back, before the joiner goes on.
Test(Spawn, a_stack_is_given_back_after_the_last_switch) {
    here();
    const uint64_t before = live_stacks();
    uint64_t at_end = 0;
    const mc_task_t task = start([&] { Witness witness{&at_end}; });
    cr_assert_eq(live_stacks(), before + 1);
    cr_assert_eq(result_of(task), MC_OK);
    cr_assert_eq(at_end, before + 1);
    cr_assert_eq(live_stacks(), before);
}

// Goal: an exception ends the microthread alone: its result says so, the log names it, its stack is unwound.
Test(Spawn, exceptions_end_the_microthread_alone) {
    static std::string logged;
    base::set_log_hook(
        [](void *, int32_t, int32_t code, const char *text) {
            cr_assert_eq(code, MC_E_CRASHED);
            logged = text;
        },
        nullptr);
    uint64_t unwound = 0;
    const mc_task_t task = start(
        [&] {
            Witness witness{&unwound};
            yield();
            throw std::runtime_error("no luck");
        },
        "thrower");
    cr_assert_eq(result_of(task), MC_E_CRASHED);
    cr_assert_gt(unwound, 0u);
    cr_assert(logged.find("thrower") != std::string::npos && logged.find("no luck") != std::string::npos, "%s",
              logged.c_str());
    cr_assert_eq(result_of(start([] { throw 1; })), MC_E_CRASHED);
    cr_assert(logged.find("not a std::exception") != std::string::npos, "%s", logged.c_str());
}

// Goal: a name is cut to what fits, and goes with the slot's life; ids go up and are never reused.
Test(Spawn, names_and_ids) {
    const std::string lengthy(100, 'n');
    uint64_t last_id = 0;
    for (const char *name : {"parser", lengthy.c_str(), static_cast<const char *>(nullptr)}) {
        const mc_task_t task = start(
            [&] {
                const Task &self = *here().running;
                const std::string cut = std::string(name == nullptr ? "" : name).substr(0, 31);
                cr_assert_str_eq(name_of(self), cut.c_str());
                cr_assert_gt(self.id, last_id);
                last_id = self.id;
            },
            name);
        cr_assert_eq(result_of(task), MC_OK);
    }
}

// Goal: a spawn that fails leaves nothing behind, and the next one works.
Test(Spawn, failures_leave_nothing) {
    here();
    cr_assert_eq(result_of(start([] {})), MC_OK);
    const uint32_t tasks = task_slab().carved();
    const uint64_t stacks = live_stacks();
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    const mc_task_fn fn = [](void *) -> int32_t { return 0; };
    for (uint64_t size : {uint64_t{1}, MC_STACK_MIN - 1, MC_STACK_MAX + 1, UINT64_MAX}) {
        options.stack_size = size;
        mc_task_t out = 99;
        cr_assert_eq(mc_spawn(0, fn, nullptr, &options, &out), MC_E_INVAL);
        cr_assert_eq(out, 99u);
    }
    cr_assert_eq(task_slab().carved(), tasks);
    cr_assert_eq(live_stacks(), stacks);
    cr_assert_eq(result_of(start([] {})), MC_OK);
    cr_assert_eq(task_slab().carved(), tasks);
}

namespace {

struct Scarce {
    static inline bool gone = false;
    static void *alloc(void *, uint64_t size, uint64_t align) {
        return gone ? nullptr : std::aligned_alloc(align, (size + align - 1) / align * align);
    }
    static void free(void *, void *ptr, uint64_t, uint64_t) { std::free(ptr); }
};

} // namespace

// Goal: without memory a spawn says so, and works again when there is some.
Test(Spawn, no_memory_is_an_answer) {
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = Scarce::alloc;
    allocator.free = Scarce::free;
    cr_assert_eq(base::set_allocator(allocator), MC_OK);
    Gate gate;
    std::vector<mc_task_t> tasks;
    tasks.reserve(1000);
    here();
    Scarce::gone = true;
    const mc_task_fn fn = [](void *argument) -> int32_t { return static_cast<Gate *>(argument)->acquire(); };
    mc_task_t task = 0;
    int32_t status = MC_OK;
    while ((status = mc_spawn(0, fn, &gate, nullptr, &task)) == MC_OK)
        tasks.push_back(task);
    cr_assert_eq(status, MC_E_NOMEM);
    Scarce::gone = false;
    cr_assert_eq(mc_spawn(0, fn, &gate, nullptr, &task), MC_OK);
    tasks.push_back(task);
    for (size_t i = 0; i < tasks.size(); ++i)
        gate.release();
    for (mc_task_t each : tasks)
        cr_assert_eq(result_of(each), MC_OK);
}

// Goal: names are apart from tasks, and may run out first: a spawn with a name says so then and loses nothing, one without goes
// on; who is to be renamed keeps its name.
Test(Spawn, no_memory_for_a_name) {
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = Scarce::alloc;
    allocator.free = Scarce::free;
    cr_assert_eq(base::set_allocator(allocator), MC_OK);
    Gate gate;
    const mc_task_fn fn = [](void *argument) -> int32_t { return static_cast<Gate *>(argument)->acquire(); };
    std::vector<mc_task_t> tasks(150);
    const auto spawn_all = [&](const mc_spawn_options *options) {
        for (size_t i = 0; i < tasks.size(); ++i)
            if (const int32_t status = mc_spawn(0, fn, &gate, options, &tasks[i]); status != MC_OK) {
                cr_assert_eq(status, MC_E_NOMEM);
                return i;
            }
        return tasks.size();
    };
    const auto end_all = [&](size_t count) {
        for (size_t i = 0; i < count; ++i)
            gate.release();
        for (size_t i = 0; i < count; ++i)
            cr_assert_eq(result_of(tasks[i]), MC_OK);
    };
    here();
    end_all(spawn_all(nullptr)); // more slots than the first 64 names
    mc_spawn_options named = MC_SPAWN_OPTIONS_INIT;
    named.name = "somebody";
    Scarce::gone = true;
    const size_t with_names = spawn_all(&named);
    cr_assert(with_names > 0 && with_names < 64, "%zu", with_names);
    csp_descr("%s", "the owner");
    cr_assert_str_eq(name_of(*here().running), "");
    end_all(with_names);
    cr_assert_eq(spawn_all(nullptr), tasks.size());
    Scarce::gone = false;
    end_all(tasks.size());
    cr_assert_eq(spawn_all(&named), tasks.size());
    end_all(tasks.size());
    csp_descr("%s", "the owner");
    cr_assert_str_eq(name_of(*here().running), "the owner");
}

// Goal: other threads spawn, join and detach; the microthreads run on the owner, and nothing is lost.
Test(Spawn, other_threads_spawn_and_join, .timeout = 60) {
    ThreadContext *owner = &here();
    const int rounds = many(5'000) * static_cast<int>(mc::testing::scale());
    sync::atomic<int> ran{0};
    const auto body = [&, owner] {
        for (int i = 0; i < rounds; ++i) {
            const mc_task_t task = start([&, owner, i] {
                cr_assert_eq(current(), owner);
                ran.fetch_add(1, sync::relaxed);
                return i;
            });
            if (i % 3 == 0)
                cr_assert_eq(detach(task), MC_OK);
            else
                cr_assert_eq(result_of(task), i);
        }
    };
    Other others[] = {Other(body), Other(body)};
    for (Other &other : others)
        other.end();
    while (ran.load(sync::relaxed) != 2 * rounds)
        yield();
}

// Goal: microthreads that wait for their first turn hold no memory for their stacks: those that end one after another share one.
Test(Spawn, what_has_not_begun_has_touched_no_stack) {
    std::set<uintptr_t> pages;
    const auto note = [&] {
        char here = 0;
        pages.insert(reinterpret_cast<uintptr_t>(&here) / fiber::kPageBytes);
    };
    fiber::stack_trim();
    std::vector<mc_task_t> tasks;
    constexpr int count = 1000;
    for (int i = 0; i < count; ++i)
        tasks.push_back(start(note));
    for (const mc_task_t task : tasks)
        cr_assert_eq(join_until(task, MC_FOREVER), MC_OK);
    // What the executor's cache held, warm; of the rest, two by turns: one ends while the next begins.
    cr_assert_leq(pages.size(), 40u);
}

// Goal: a task of whatever kind begins outside every handler of a machine, though the word that says so has had another use: the
// owner, microthreads on fresh and on used stacks, steps.
Test(Spawn, begins_in_no_handler) {
    const auto look = [] { cr_assert_null(here().running->emits_to); };
    look();
    for (int round = 0; round < 3; ++round) {
        std::vector<mc_task_t> tasks;
        for (int i = 0; i < 100; ++i)
            tasks.push_back(start(look));
        for (const mc_task_t task : tasks)
            cr_assert_eq(result_of(task), MC_OK);
        bool ran = false;
        const auto step = [](void *argument) {
            cr_assert_null(here().running->emits_to);
            *static_cast<bool *>(argument) = true;
        };
        cr_assert_eq(spawn_step(*here().executor, step, &ran), MC_OK);
        while (!ran)
            yield(here());
    }
}

// Goal: the rounding mode of a microthread is its spawner's at the spawn, also when its stack is made later; whoever goes before it
// keeps its own.
Test(Spawn, starts_with_its_spawners_rounding_mode) {
    if (mc::testing::under_valgrind)
        cr_skip_test("it rounds as it likes");
    fiber::stack_trim();
    std::vector<mc_task_t> tasks;
    const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    for (int i = 0; i < 200; ++i) {
        const int mode = modes[i % 4];
        cr_assert_eq(std::fesetround(mode), 0);
        tasks.push_back(start([mode] { cr_assert_eq(std::fegetround(), mode); }));
    }
    cr_assert_eq(std::fesetround(FE_DOWNWARD), 0); // other than the first one's
    for (const mc_task_t task : tasks) {
        cr_assert_eq(join_until(task, MC_FOREVER), MC_OK);
        cr_assert_eq(std::fegetround(), FE_DOWNWARD);
    }
    cr_assert_eq(std::fesetround(FE_TONEAREST), 0);
}
