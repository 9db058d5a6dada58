// Epochs: what holds them up and what does not, drains, what is told of them, and many threads at once. Small cases
// with every interleaving are in epoch_sys_test.cpp.
#include "base/epoch.hpp"

#include "testing/test.hpp"

#include <csignal>
#include <memory>
#include <vector>

using namespace mc;
using base::EpochDomain;
using base::EpochNode;
using base::EpochPin;
using base::EpochReader;
using base::EpochStall;

namespace {

constinit EpochDomain constant_domain; // made before any code runs

struct Item : EpochNode {
    int freed = 0;
    static void free(EpochNode *node) { ++static_cast<Item *>(node)->freed; }
};

// A reader that is online, and goes by itself.
struct Online : EpochReader {
    Online(EpochDomain &in, const char *name) : domain(in) {
        domain.add(*this, name);
        online();
    }
    ~Online() {
        offline();
        domain.remove(*this);
    }
    EpochDomain &domain;
};

void advance_often(EpochDomain &domain) {
    for (int i = 0; i < 10; ++i)
        (void)domain.advance();
}

constexpr int64_t millisecond = 1'000'000;

} // namespace

// Goal: what is retired is not freed before its reader has been quiescent since; then it is, once.
Test(Epoch, waits_for_a_reader) {
    EpochDomain domain;
    Online reader(domain, "reader");
    Item item;
    domain.retire(&item, Item::free);
    advance_often(domain);
    cr_assert_eq(item.freed, 0);
    reader.quiescent();
    advance_often(domain);
    cr_assert_eq(item.freed, 1);
    reader.quiescent();
    advance_often(domain);
    cr_assert_eq(item.freed, 1);
}

// Goal: it waits for the slowest of several, and it does not matter who was first.
Test(Epoch, waits_for_each_reader) {
    for (int slowest = 0; slowest < 3; ++slowest) {
        EpochDomain domain;
        Online readers[3]{{domain, "a"}, {domain, "b"}, {domain, "c"}};
        Item item;
        domain.retire(&item, Item::free);
        (void)domain.advance();
        for (int i = 0; i < 3; ++i)
            if (i != slowest)
                readers[i].quiescent();
        advance_often(domain);
        cr_assert_eq(item.freed, 0);
        readers[slowest].quiescent();
        (void)domain.advance();
        cr_assert_eq(item.freed, 1);
    }
}

// Goal: what is retired while an epoch is under way waits for the next: who has seen the one may have found it since.
Test(Epoch, waits_for_a_whole_epoch) {
    EpochDomain domain;
    Online reader(domain, "reader");
    cr_assert(domain.advance());
    reader.quiescent();
    Item item;
    domain.retire(&item, Item::free); // after the reader has seen the epoch
    cr_assert(domain.advance());
    cr_assert_eq(item.freed, 0);
    cr_assert(!domain.advance());
    cr_assert_eq(item.freed, 0);
    reader.quiescent();
    cr_assert(domain.advance());
    cr_assert_eq(item.freed, 1);
}

// Goal: a reader that is offline holds up nothing, and one that has come online again does.
Test(Epoch, offline_readers_hold_up_nothing) {
    EpochDomain domain;
    Online reader(domain, "reader");
    reader.offline();
    cr_assert(reader.is_offline());
    Item first;
    domain.retire(&first, Item::free);
    advance_often(domain);
    cr_assert_eq(first.freed, 1);
    reader.online();
    cr_assert(!reader.is_offline());
    Item second;
    domain.retire(&second, Item::free);
    advance_often(domain);
    cr_assert_eq(second.freed, 0);
    reader.offline();
    advance_often(domain);
    cr_assert_eq(second.freed, 1);
}

// Goal: with no reader, it takes two advances, and the domain that was made before any code ran works.
Test(Epoch, without_readers) {
    Item item;
    constant_domain.retire(&item, Item::free);
    cr_assert(constant_domain.advance());
    cr_assert_eq(item.freed, 0);
    cr_assert(constant_domain.advance());
    cr_assert_eq(item.freed, 1);
}

// Goal: a pin holds up what was retired since it was taken, until it is released, on whatever thread; in each list.
Test(Epoch, pins_hold_up_until_released_elsewhere) {
    for (uint32_t spread = 0; spread < 20; ++spread) {
        EpochDomain domain;
        struct Passed {
            EpochDomain *domain;
            EpochPin pin;
        } passed{&domain, EpochPin(spread)};
        domain.pin(passed.pin, "call");
        Item item;
        domain.retire(&item, Item::free);
        advance_often(domain);
        cr_assert_eq(item.freed, 0);

        sync::thread thread;
        cr_assert(thread.start(
            [](void *arg) {
                auto *mine = static_cast<Passed *>(arg);
                mine->domain->unpin(mine->pin);
            },
            &passed));
        thread.join();
        advance_often(domain);
        cr_assert_eq(item.freed, 1);
    }
}

// Goal: of several pins in one list each holds up, in whatever order they go.
Test(Epoch, pins_hold_up_one_by_one) {
    for (int first = 0; first < 2; ++first) {
        EpochDomain domain;
        EpochPin pins[2];
        domain.pin(pins[0], "older");
        Item item;
        domain.retire(&item, Item::free);
        cr_assert(domain.advance());
        domain.pin(pins[1], "younger"); // it may not find the item any more
        domain.unpin(pins[first]);
        advance_often(domain);
        cr_assert_eq(item.freed, first == 0 ? 1 : 0);
        domain.unpin(pins[1 - first]);
        advance_often(domain);
        cr_assert_eq(item.freed, 1);
    }
}

namespace {

// Each free retires the next one.
struct Chained : EpochNode {
    EpochDomain *domain = nullptr;
    Chained *after = nullptr;
    bool freed = false;
    static void free(EpochNode *node) {
        auto *self = static_cast<Chained *>(node);
        self->freed = true;
        EpochReader within; // no lock is held
        self->domain->add(within, "within");
        self->domain->remove(within);
        cr_assert(!self->domain->advance(), "it is our turn already");
        if (self->after != nullptr)
            self->domain->retire(self->after, free);
    }
};

} // namespace

// Goal: what is called to free may retire, and use the domain; that too is freed, an epoch later.
Test(Epoch, retire_within_a_free) {
    EpochDomain domain;
    Chained chain[5];
    for (int i = 0; i < 5; ++i) {
        chain[i].domain = &domain;
        chain[i].after = i < 4 ? &chain[i + 1] : nullptr;
    }
    domain.retire(&chain[0], Chained::free);
    for (int i = 0; i < 5; ++i) {
        cr_assert(!chain[i].freed);
        cr_assert(domain.advance());
        cr_assert(domain.advance());
        cr_assert(chain[i].freed);
    }
    cr_assert_eq(domain.counters().retired, 5);
    cr_assert_eq(domain.counters().freed, 5);
}

// Goal: a drain frees everything that was retired before it; one that finds nothing to free waits for nobody.
Test(Epoch, drains) {
    EpochDomain domain;
    cr_assert(domain.drain(0));
    Item items[100];
    for (Item &item : items) {
        domain.retire(&item, Item::free);
        if (&item - items == 50)
            cr_assert(domain.advance());
    }
    cr_assert(domain.drain(sync::no_deadline));
    for (const Item &item : items)
        cr_assert_eq(item.freed, 1);
    Online reader(domain, "reader");
    cr_assert(domain.advance());
    cr_assert(!domain.advance(), "the reader holds it up");
    cr_assert(domain.drain(0));
}

// Goal: a drain that is held up ends at its deadline, says so, and has freed nothing too early; the next one may do it.
Test(Epoch, drain_ends_at_its_deadline) {
    EpochDomain domain;
    Online reader(domain, "reader");
    Item item;
    domain.retire(&item, Item::free);
    const int64_t deadline = sync::now_ns() + 20 * millisecond;
    cr_assert(!domain.drain(deadline));
    cr_assert_geq(sync::now_ns(), deadline);
    cr_assert_eq(item.freed, 0);
    cr_assert(!domain.drain(0), "a deadline that has passed");
    reader.offline();
    cr_assert(domain.drain(sync::no_deadline));
    cr_assert_eq(item.freed, 1);
}

// Goal: a drain waits for a reader on another thread that is quiescent now and then.
Test(Epoch, drain_waits_for_another_thread) {
    struct Reading {
        EpochDomain domain;
        sync::atomic<uint32_t> online{0};
        sync::atomic<uint32_t> drained{0};
        static void run(void *arg) {
            auto &self = *static_cast<Reading *>(arg);
            Online reader(self.domain, "reader");
            self.online.store(1, sync::release);
            while (self.drained.load(sync::acquire) == 0) {
                sync::thread_yield();
                reader.quiescent();
            }
        }
    } reading;
    sync::thread thread;
    cr_assert(thread.start(Reading::run, &reading));
    while (reading.online.load(sync::acquire) == 0)
        sync::thread_yield();
    for (int i = 0; i < 20; ++i) {
        Item item;
        reading.domain.retire(&item, Item::free);
        cr_assert(reading.domain.drain(sync::no_deadline));
        cr_assert_eq(item.freed, 1);
    }
    reading.drained.store(1, sync::release);
    thread.join();
}

// Goal: the hook is called with each epoch, in order, until it is taken away.
Test(Epoch, hook_is_told_of_each_epoch) {
    EpochDomain domain;
    std::vector<uint64_t> told;
    domain.set_advance_hook(
        [](void *user, uint64_t epoch) { static_cast<std::vector<uint64_t> *>(user)->push_back(epoch); }, &told);
    const uint64_t first = domain.counters().epoch;
    for (int i = 0; i < 5; ++i)
        cr_assert(domain.advance());
    {
        Online reader(domain, "reader");
        cr_assert(domain.advance());
        cr_assert(!domain.advance());
    }
    cr_assert_eq(told.size(), 6);
    for (size_t i = 0; i < told.size(); ++i)
        cr_assert_eq(told[i], first + i + 1);
    cr_assert_eq(domain.counters().epoch, told.back());
    domain.set_advance_hook(nullptr, nullptr);
    cr_assert(domain.advance());
    cr_assert_eq(told.size(), 6);
}

// Goal: who holds up the epoch is named, from the first advance on that fails: readers and pins that have not moved
// since the last one, and nobody else.
Test(Epoch, stalled_are_named) {
    EpochDomain domain;
    Online stuck(domain, "executor 1, which has a name that is too long");
    Online moving(domain, "executor 2");
    Online asleep(domain, "executor 3");
    EpochPin pin(3), late(3);
    asleep.offline();
    domain.pin(pin, "foreign call");
    EpochStall stalls[8];
    cr_assert_eq(domain.stalled(0, stalls, 8), 0, "all have seen this epoch");

    cr_assert(domain.advance());
    moving.quiescent();
    domain.pin(late, "late call");
    cr_assert_eq(domain.stalled(0, stalls, 8), 0, "nobody waits for them");
    cr_assert(!domain.advance());
    cr_assert_eq(domain.stalled(60'000 * millisecond, stalls, 8), 0, "not for so long");
    const int64_t until = sync::now_ns() + 2 * millisecond;
    while (sync::now_ns() < until)
        sync::thread_yield();
    cr_assert_eq(domain.stalled(2 * millisecond, stalls, 8), 2);
    cr_assert(stalls[0].kind == EpochStall::Kind::reader);
    cr_assert_str_eq(stalls[0].name, "executor 1, which has a name th");
    cr_assert(stalls[1].kind == EpochStall::Kind::pin);
    cr_assert_str_eq(stalls[1].name, "foreign call");
    for (int i = 0; i < 2; ++i) {
        cr_assert_eq(stalls[i].epoch + 1, domain.counters().epoch);
        cr_assert_geq(stalls[i].age_ns, 2 * millisecond);
    }
    cr_assert_eq(domain.stalled(0, stalls, 1), 1, "no more than there is room for");
    cr_assert_eq(domain.stalled(0, stalls, 8), 2);
    stuck.quiescent();
    domain.unpin(pin);
    cr_assert_eq(domain.stalled(0, stalls, 8), 0);
    cr_assert(domain.advance());
    cr_assert_eq(domain.stalled(0, stalls, 8), 0, "nobody has waited for them since");
    domain.unpin(late);
}

namespace {

struct Looking : EpochNode {
    EpochDomain *domain = nullptr;
    uint32_t found = 0;
    EpochStall stall;
    static void free(EpochNode *node) {
        auto *self = static_cast<Looking *>(node);
        self->found = self->domain->stalled(0, &self->stall, 1);
    }
};

} // namespace

// Goal: a free that takes long is what holds up the epoch, while it lasts.
Test(Epoch, long_frees_are_named) {
    EpochDomain domain;
    Looking looking;
    looking.domain = &domain;
    domain.retire(&looking, Looking::free);
    advance_often(domain);
    cr_assert_eq(looking.found, 1);
    cr_assert(looking.stall.kind == EpochStall::Kind::callback);
    cr_assert_str_eq(looking.stall.name, "hook or free");
    cr_assert_eq(domain.stalled(0, &looking.stall, 1), 0);
}

// Goal: a reader that would leave while it may hold something is a broken promise.
Test(Epoch, online_readers_do_not_leave, .signal = SIGABRT) {
    EpochDomain domain;
    EpochReader reader;
    domain.add(reader, "reader");
    reader.online();
    domain.remove(reader);
}

// Goal: nor does a pin that is held end.
Test(Epoch, pins_do_not_end_while_held, .signal = SIGABRT) {
    EpochDomain domain;
    EpochPin pin;
    domain.pin(pin, "pin");
}
