// Epochs under every interleaving of a few operations; on real threads in other builds.
//
// The shared pointer is read and changed with relaxed orders, and its boxes are made before the threads: so that what
// is free of races is so by the epoch's orders alone.
#include "base/epoch.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using base::EpochDomain;
using base::EpochNode;
using base::EpochPin;
using base::EpochReader;
using testing::check;
using testing::Data;
using testing::Thread;

namespace {

struct Box : EpochNode {
    Data<int> content{1};

    static void free(EpochNode *node) {
        auto *box = static_cast<Box *>(node);
        check(box->content.get() == 1, "freed twice");
        box->content.set(0);
    }
    bool freed() const { return content.get() == 0; }
};

struct World {
    EpochDomain domain;
    Box old, later, last;
    sync::atomic<Box *> shared{&old};

    World() { testing::label(&shared, "shared"); }

    // Somebody who may: what he finds is not freed.
    void use() { check(shared.load(sync::relaxed)->content.get() == 1, "freed under a reader"); }

    void replace(Box &by) { domain.retire(shared.exchange(&by, sync::relaxed), Box::free); }

    void use_pinned(uint32_t list) {
        EpochPin pin(list);
        domain.pin(pin, "pin");
        use();
        domain.unpin(pin);
    }

    // Tries as often as a box needs, and once more.
    void advance() {
        for (int i = 0; i < 3; ++i)
            (void)domain.advance();
    }

    // What most readers are tried against.
    void change() {
        replace(later);
        advance();
    }

    // Nobody reads any more.
    void finish() {
        check(domain.drain(sync::no_deadline), "a drain without a deadline ended");
        check(!shared.load(sync::relaxed)->freed(), "what is not retired was freed");
        const base::EpochCounters counters = domain.counters();
        check(counters.retired == counters.freed, "retired %u, freed %u", static_cast<unsigned>(counters.retired),
              static_cast<unsigned>(counters.freed));
    }
};

struct WorldWithReader : World {
    EpochReader reader;

    explicit WorldWithReader(bool online = true) {
        domain.add(reader, "reader");
        if (online)
            reader.online();
    }
    void finish() { // with the reader offline
        domain.remove(reader);
        World::finish();
    }
};

} // namespace

// Goal: a reader that stays online, against one who replaces, retires and advances: what it finds, it may use until it
// is quiescent.
Test(EpochSys, running_reader) {
    testing::expect_pass({.name = "EpochSys/running_reader", .preemptions = 3}, [] {
        WorldWithReader world;
        EpochReader &reader = world.reader;
        {
            Thread reading(
                [&] {
                    world.use();
                    reader.quiescent();
                    world.use();
                    reader.quiescent();
                    world.use();
                    reader.offline();
                },
                "reader");
            world.change();
        }
        world.finish();
        check(world.old.freed(), "never freed");
    });
}

// Goal: an epoch in which nothing was retired, then one in which something is: what a reader finds after it has seen an
// epoch is not freed by that epoch.
Test(EpochSys, retired_between_epochs) {
    testing::expect_pass({.name = "EpochSys/retired_between_epochs", .preemptions = 3, .stale = 1}, [] {
        WorldWithReader world;
        EpochReader &reader = world.reader;
        {
            Thread reading(
                [&] {
                    reader.quiescent();
                    world.use();
                    reader.offline();
                },
                "reader");
            (void)world.domain.advance();
            world.change();
        }
        world.finish();
    });
}

// Goal: a reader that comes online while the epoch advances, and one that goes and comes again before anybody looks.
Test(EpochSys, coming_online) {
    testing::expect_pass({.name = "EpochSys/coming_online", .preemptions = 3}, [] {
        WorldWithReader world(false);
        EpochReader &reader = world.reader;
        {
            Thread reading(
                [&] {
                    for (int i = 0; i < 2; ++i) {
                        reader.online();
                        world.use();
                        reader.offline();
                    }
                    reader.online();
                    reader.offline();
                },
                "reader");
            world.change();
        }
        world.finish();
    });
}

// Goal: what a reader used before it slept is freed after that, though nobody has seen it sleep.
Test(EpochSys, online_again) {
    testing::expect_pass({.name = "EpochSys/online_again", .preemptions = 3}, [] {
        WorldWithReader world;
        EpochReader &reader = world.reader;
        {
            Thread reading(
                [&] {
                    world.use();
                    reader.offline();
                    reader.online(); // and stays
                },
                "reader");
            world.change();
        }
        reader.offline();
        world.finish();
    });
}

// Goal: readers come and go while the epoch advances.
Test(EpochSys, added_and_removed) {
    testing::expect_pass({.name = "EpochSys/added_and_removed", .preemptions = 3, .stale = 1}, [] {
        World world;
        {
            Thread reading(
                [&] {
                    EpochReader reader;
                    world.domain.add(reader, "reader");
                    reader.online();
                    world.use();
                    reader.offline();
                    world.domain.remove(reader);
                },
                "reader");
            world.change();
        }
        world.finish();
    });
}

// Goal: a pin against one who replaces, retires and advances.
Test(EpochSys, pin) {
    testing::expect_pass({.name = "EpochSys/pin", .preemptions = 3, .stale = 2}, [] {
        World world;
        {
            Thread pinning([&] { world.use_pinned(1); }, "pinning");
            world.change();
        }
        world.finish();
    });
}

// Goal: of two pins in one list the older holds up, whichever is released first.
Test(EpochSys, two_pins) {
    testing::expect_pass({.name = "EpochSys/two_pins", .preemptions = 2, .stale = 1}, [] {
        World world;
        const auto pinning = [&] { world.use_pinned(0); };
        {
            Thread one(pinning, "one");
            Thread other(pinning, "other");
            world.change();
        }
        world.finish();
    });
}

// Goal: a pin is released on another thread than it was taken on, which alone passes it on.
Test(EpochSys, pin_released_elsewhere) {
    testing::expect_pass({.name = "EpochSys/pin_released_elsewhere", .preemptions = 2, .stale = 1}, [] {
        World world;
        EpochPin pin;
        sync::atomic<uint32_t> passed{0};
        {
            Thread taking(
                [&] {
                    world.domain.pin(pin, "pin");
                    world.use();
                    passed.store(1, sync::release);
                },
                "taking");
            Thread releasing(
                [&] {
                    while (passed.load(sync::acquire) == 0)
                        sync::thread_yield();
                    world.use();
                    world.domain.unpin(pin);
                },
                "releasing");
            world.change();
        }
        world.finish();
    });
}

// Goal: reader, retirer and advancer are three.
Test(EpochSys, reader_retirer_advancer) {
    const auto body = [] {
        WorldWithReader world;
        EpochReader &reader = world.reader;
        {
            Thread reading(
                [&] {
                    world.use();
                    reader.quiescent();
                    world.use();
                    reader.offline();
                },
                "reader");
            Thread retiring(
                [&] {
                    world.replace(world.later);
                    world.replace(world.last);
                },
                "retirer");
            world.advance();
        }
        world.finish();
        check(world.old.freed() && world.later.freed(), "never freed");
    };
    testing::expect_pass(
        {.name = "EpochSys/reader_retirer_advancer", .preemptions = 2, .stale = 1, .max_runs = 200'000}, body);
    testing::expect_pass(
        {.name = "EpochSys/reader_retirer_advancer", .search = testing::Search::seeds, .seeds = 20'000}, body);
}

// Goal: one pins while a third thread retires, in the midst of an advance: after its look at the pins, before it collects.
Test(EpochSys, pin_retirer_advancer) {
    testing::expect_pass({.name = "EpochSys/pin_retirer_advancer", .preemptions = 3, .stale = 1}, [] {
        World world;
        {
            Thread pinning([&] { world.use_pinned(1); }, "pinning"); // of the list that is looked at last
            Thread retiring([&] { world.replace(world.later); }, "retirer");
            (void)world.domain.advance();
            (void)world.domain.advance();
        }
        world.finish();
    });
}

// Goal: two advance at once: hooks come in the order of epochs, one at a time, and each box is freed once.
Test(EpochSys, two_advancers) {
    struct Seen {
        Data<uint64_t> epoch{1};
        static void hook(void *user, uint64_t epoch) {
            auto &seen = *static_cast<Seen *>(user);
            check(epoch == seen.epoch.get() + 1, "an epoch out of order");
            seen.epoch.set(epoch);
        }
    };
    testing::expect_pass({.name = "EpochSys/two_advancers", .preemptions = 4, .stale = 1}, [] {
        World world;
        Seen seen;
        world.domain.set_advance_hook(Seen::hook, &seen);
        world.replace(world.later);
        {
            Thread other([&] { world.advance(); }, "other");
            world.advance();
        }
        world.finish();
    });
}

// Goal: a drain that meets another thread's advances: when it returns, what was retired before is freed, not just on its
// way.
Test(EpochSys, drain_beside_an_advancer) {
    testing::expect_pass({.name = "EpochSys/drain_beside_an_advancer", .preemptions = 3, .stale = 1}, [] {
        World world;
        Thread other([&] { world.advance(); }, "other");
        world.replace(world.later);
        check(world.domain.drain(sync::no_deadline), "a drain without a deadline ended");
        check(world.old.freed(), "drained, and not freed");
    });
}

// Goal: a drain that meets others' retirements and a reader.
Test(EpochSys, drain_beside_a_retirer) {
    testing::expect_pass({.name = "EpochSys/drain_beside_a_retirer", .preemptions = 3, .stale = 1}, [] {
        WorldWithReader world;
        EpochReader &reader = world.reader;
        {
            Thread other(
                [&] {
                    world.domain.retire(&world.last, Box::free);
                    world.use();
                    reader.quiescent();
                    world.use();
                    reader.offline();
                },
                "other");
            world.replace(world.later);
            check(world.domain.drain(sync::no_deadline), "a drain without a deadline ended");
            check(world.old.freed(), "drained, and not freed");
        }
        world.finish();
    });
}

// Goal: whoever looks at the counters never sees more freed than retired: beside one who advances, or one who retires.
Test(EpochSys, counters_are_in_order) {
    const auto look = [](const World &world) {
        const base::EpochCounters counters = world.domain.counters();
        check(counters.freed <= counters.retired, "more freed than retired");
    };
    testing::expect_pass({.name = "EpochSys/counters_are_in_order", .preemptions = 2, .stale = 2}, [look] {
        World world;
        Thread looking([&] { look(world); }, "looking");
        world.change();
    });
    testing::expect_pass({.name = "EpochSys/counters_are_in_order", .preemptions = 2, .stale = 2}, [look] {
        World world;
        Thread retiring([&] { world.replace(world.later); }, "retirer");
        world.advance();
        look(world);
    });
}
