// The registries: what is registered is found, by any thread at any time, and nothing of it is ever lost.
#include "machine/registry.hpp"

#include "machine/id_table.hpp"
#include "machine/test_blob.hpp"
#include "testing/systematic.hpp"

#include <map>

#include <sys/wait.h>

using namespace mc;
using machine::find_payload_drop;
using machine::find_thunk;
using machine::register_payload_drop;
using machine::register_thunk;
using machine::Thunk;
using machine::test::Log;
using machine::test::Memory;
using testing::Thread;

namespace {

// Functions that are never called, told apart by their addresses. No more than the test has of them.
template <int number>
mc_dispatch_result_t handler(void *, uint32_t, uint64_t, const mc_machine_envelope_t *, mc_machine_dispatch_txn_t *,
                             uint64_t *fault) {
    *fault = number;
    return MC_DISPATCH_FAULT;
}
template <int number> void drop(void *box) { *static_cast<int *>(box) = number; }

mc_machine_dispatch_txn_fn made_up(uint64_t number) { return reinterpret_cast<mc_machine_dispatch_txn_fn>(number); }
uint64_t number_of(mc_machine_dispatch_txn_fn fn) { return reinterpret_cast<uint64_t>(fn); }

} // namespace

// Goal: a thunk is found with its tag; registering again replaces both; what was not registered is not found.
Test(Registry, registering_a_thunk_again_replaces_it) {
    cr_assert_null(find_thunk(7).fn);
    register_thunk(7, handler<1>, 3);
    cr_assert(find_thunk(7).fn == handler<1>);
    cr_assert_eq(find_thunk(7).next_tag, 3u);
    register_thunk(7, handler<2>, 0);
    cr_assert(find_thunk(7).fn == handler<2>);
    cr_assert_eq(find_thunk(7).next_tag, 0u);
    cr_assert_null(find_thunk(8).fn);
    cr_assert_eq(find_thunk(8).next_tag, 0u);
}

// Goal: id 0, layout 0 and null functions are ignored.
Test(Registry, nothing_is_registered_under_nothing) {
    register_thunk(0, handler<1>, 3);
    cr_assert_null(find_thunk(0).fn);
    register_thunk(7, handler<1>, 3);
    register_thunk(7, nullptr, 4);
    cr_assert(find_thunk(7).fn == handler<1>);
    cr_assert_eq(find_thunk(7).next_tag, 3u);
    register_payload_drop(0, drop<1>);
    cr_assert_null(find_payload_drop(0));
    register_payload_drop(MC_PAYLOAD_LAYOUT_OWNED_MASK, drop<1>);
    cr_assert_null(find_payload_drop(MC_PAYLOAD_LAYOUT_OWNED_MASK));
    register_payload_drop(5, drop<1>);
    register_payload_drop(5, nullptr);
    cr_assert(find_payload_drop(5) == drop<1>);
}

// Goal: a layout is the same with and without the bit that says who owns the box.
Test(Registry, layouts_have_no_owner) {
    register_payload_drop(5, drop<1>);
    cr_assert(find_payload_drop(5 | MC_PAYLOAD_LAYOUT_OWNED_MASK) == drop<1>);
    register_payload_drop(5 | MC_PAYLOAD_LAYOUT_OWNED_MASK, drop<2>);
    cr_assert(find_payload_drop(5) == drop<2>);
    cr_assert(find_payload_drop(MC_PAYLOAD_LAYOUT_ID_MASK) == nullptr);
}

// Goal: thunks and layouts of one number are two things.
Test(Registry, thunks_and_layouts_are_apart) {
    register_thunk(9, handler<1>, 0);
    cr_assert_null(find_payload_drop(9));
    register_payload_drop(9, drop<1>);
    cr_assert(find_thunk(9).fn == handler<1>);
}

// Goal: any number of ids, close together, far apart or alike in most of their bits, are those of a plain map.
Test(Registry, ids_are_those_of_a_plain_map) {
    base::Prng prng(22);
    std::map<uint64_t, uint64_t> model;
    const auto any_id = [&]() -> uint64_t {
        switch (prng.below(4)) {
        case 0:
            return prng.below(3000);
        case 1:
            return uint64_t{prng.below(3000)} << 32;
        case 2:
            return UINT64_MAX - prng.below(3000);
        default:
            return prng.next() << (8 * prng.below(8));
        }
    };
    for (uint64_t step = 1; step <= 20'000; ++step) {
        const uint64_t id = any_id();
        register_thunk(id, made_up(step), step + 1);
        if (id != 0)
            model[id] = step;
        const uint64_t other = any_id();
        const auto found = model.find(other);
        cr_assert_eq(number_of(find_thunk(other).fn), found == model.end() ? 0 : found->second);
    }
    for (const auto &[id, step] : model) {
        cr_assert_eq(number_of(find_thunk(id).fn), step);
        cr_assert_eq(find_thunk(id).next_tag, step + 1);
    }
}

// Goal: without memory a new id is not registered, which is logged; what was there is found as before, and can still be replaced.
Test(Registry, no_memory_loses_nothing) {
    Memory memory;
    memory.install();
    Log log;
    memory.allowed = 0;
    register_thunk(1, handler<1>, 1); // the very first
    cr_assert_null(find_thunk(1).fn);
    register_payload_drop(1, drop<1>);
    cr_assert_null(find_payload_drop(1));
    cr_assert_eq(log.lines, 2);
    cr_assert_eq(log.level, MC_LOG_ERROR);
    cr_assert_eq(log.code, MC_E_NOMEM);
    memory.allowed = 1;
    uint64_t id = 1;
    for (; log.lines == 2; ++id) // until the table is full
        register_thunk(id, made_up(id), id);
    --id;
    cr_assert_null(find_thunk(id).fn);
    cr_assert_gt(id, 10u);
    for (uint64_t there = 1; there < id; ++there) {
        cr_assert_eq(number_of(find_thunk(there).fn), there);
        register_thunk(there, made_up(there + 1000), 0);
        cr_assert_eq(number_of(find_thunk(there).fn), there + 1000);
    }
    memory.allowed = 1;
    register_thunk(id, made_up(id), id);
    cr_assert_eq(number_of(find_thunk(id).fn), id);
    cr_assert_eq(number_of(find_thunk(1).fn), 1001u);
    cr_assert_eq(log.lines, 3);
}

// Goal: replacing takes no memory, however often.
Test(Registry, replacing_takes_no_memory) {
    Memory memory;
    memory.install();
    register_thunk(1, handler<1>, 1);
    const uint64_t calls = memory.calls;
    for (uint64_t i = 1; i < 100'000; ++i)
        register_thunk(1, made_up(i), i);
    cr_assert_eq(memory.calls, calls);
    cr_assert_eq(number_of(find_thunk(1).fn), 99'999u);
}

// Goal: while several threads register and replace, others find each id that was registered before they looked, with a
// function and a tag that belong together and are never older than what they have seen.
Test(Registry, registering_and_finding_at_once) {
    constexpr uint64_t writers = 2, readers = 2, ids = 3000;
    const uint64_t rounds = (testing::under_valgrind ? 2 : 20) * testing::scale();
    sync::atomic<uint64_t> registered[writers] = {}; // how many of its ids a writer has been through
    sync::atomic<uint32_t> done{0};
    const auto id_of = [](uint64_t writer, uint64_t i) { return 1 + i * writers + writer; };
    const auto write = [&](uint64_t writer) {
        for (uint64_t round = 1; round <= rounds; ++round)
            for (uint64_t i = 0; i < ids; ++i) {
                register_thunk(id_of(writer, i), made_up(round), round * 1000);
                if (round == 1)
                    registered[writer].store(i + 1, sync::release); // release: pairs with the readers' acquire
            }
        done.fetch_add(1, sync::release);
    };
    const auto read = [&](uint64_t seed) {
        base::Prng prng(seed);
        std::map<uint64_t, uint64_t> seen;
        while (done.load(sync::acquire) < writers) {
            const uint64_t writer = prng.below(writers);
            const uint64_t there = registered[writer].load(sync::acquire);
            const uint64_t i = prng.below(ids);
            const Thunk thunk = find_thunk(id_of(writer, i));
            const uint64_t round = number_of(thunk.fn);
            cr_assert_eq(thunk.next_tag, round * 1000);
            cr_assert(round != 0 || i >= there, "%u of %u is lost", static_cast<unsigned>(i),
                      static_cast<unsigned>(there));
            uint64_t &before = seen[id_of(writer, i)];
            cr_assert_geq(round, before);
            before = round;
        }
    };
    {
        Thread one([&] { write(0); });
        Thread two([&] { write(1); });
        Thread three([&] { read(1); });
        Thread four([&] { read(2); });
    }
    static_assert(readers == 2);
    for (uint64_t writer = 0; writer < writers; ++writer)
        for (uint64_t i = 0; i < ids; ++i)
            cr_assert_eq(number_of(find_thunk(id_of(writer, i)).fn), rounds);
}

// Goal: a child that is forked while other threads register finds the registries open.
Test(Registry, a_forked_child_registers) {
    if (testing::under_tsan)
        cr_skip_test("it does not follow a fork of several threads");
    sync::atomic<uint32_t> stop{0};
    register_thunk(1, handler<1>, 1);
    Thread writer([&] {
        for (uint64_t id = 2; stop.load(sync::relaxed) == 0; id = id % 1'000'000 + 2)
            register_thunk(id, handler<2>, id);
    });
    for (int i = 0; i < 50; ++i) {
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) {
            alarm(20);
            register_thunk(1, handler<3>, 3);
            register_thunk(UINT64_MAX, handler<3>, 4);
            const bool found = find_thunk(1).fn == handler<3> && find_thunk(UINT64_MAX).next_tag == 4;
            _exit(found ? 0 : 1);
        }
        int status = 0;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", static_cast<unsigned>(status));
    }
    stop.store(1, sync::relaxed);
}
