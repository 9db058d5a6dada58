// The table behind the registries under every interleaving of a few operations; on real threads in other builds.
#include "machine/id_table.hpp"

#include "testing/arena.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using testing::Arena;
using testing::check;
using testing::Thread;

namespace {

using Table = machine::IdTable<2>; // grows with its second id

struct World {
    World() { Arena::reset(); }
    Table table;
    sync::mutex writers;

    void put(uint64_t id, uint64_t value) {
        sync::lock_guard guard(writers);
        check(table.put(id, {value, 10 * value}), "no memory");
    }
    // 0, or a value that was put under the id, whole.
    uint64_t find(uint64_t id) {
        const Table::Value found = table.find(id);
        check(found.second == 10 * found.first, "%llu with %llu", static_cast<unsigned long long>(found.first),
              static_cast<unsigned long long>(found.second));
        return found.first;
    }
};

} // namespace

// Goal: who finds an id that another thread has just put, in a table that is made or grows meanwhile, finds its value whole;
// and finds it again.
Test(RegistrySys, found_values_are_whole) {
    Arena::install();
    testing::expect_pass({.name = "RegistrySys/found_values_are_whole", .preemptions = 3}, [] {
        World world;
        Thread writer(
            [&] {
                world.put(1, 100);
                world.put(2, 200); // in a larger table
            },
            "writer");
        const uint64_t second = world.find(2);
        check(second == 0 || second == 200, "a value that nobody put");
        const uint64_t first = world.find(1);
        check(first == 100 || (first == 0 && second == 0), "what was there before the second is lost");
    });
}

// Goal: while a value is replaced, twice, a reader gets one of the three, never a mixture, and none that is older than one
// that it has seen.
Test(RegistrySys, replaced_values_are_not_mixed) {
    Arena::install();
    testing::expect_pass({.name = "RegistrySys/replaced_values_are_not_mixed", .preemptions = 3}, [] {
        World world;
        world.put(1, 100);
        Thread writer(
            [&] {
                world.put(1, 101);
                world.put(1, 102);
            },
            "writer");
        const uint64_t once = world.find(1);
        const uint64_t again = world.find(1);
        check(once >= 100 && again <= 102 && once <= again, "a value that is none, or an older one");
    });
}

// Goal: a value that is replaced while the table grows is the later one from then on, for readers of the old array too once
// they look again.
Test(RegistrySys, growing_keeps_what_is_replaced) {
    Arena::install();
    testing::expect_pass({.name = "RegistrySys/growing_keeps_what_is_replaced", .preemptions = 2}, [] {
        World world;
        world.put(1, 100);
        sync::atomic<uint32_t> replaced{0};
        Thread grower([&] { world.put(2, 200); }, "grower");
        Thread replacer(
            [&] {
                world.put(1, 101);
                replaced.store(1, sync::release); // release: pairs with the reader's acquire
            },
            "replacer");
        const bool is_replaced = replaced.load(sync::acquire) == 1;
        const uint64_t found = world.find(1);
        check(found == 101 || (found == 100 && !is_replaced), "a replaced value is found again");
    });
}
