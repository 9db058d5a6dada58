// Epochs with many nodes and threads: writers that replace and retire, executors, foreign calls whose pins are released
// elsewhere, all of whom may advance.
#include "base/epoch.hpp"

#include "base/prng.hpp"
#include "testing/test.hpp"

#include <memory>
#include <vector>

using namespace mc;
using base::EpochDomain;
using base::EpochNode;
using base::EpochPin;
using base::EpochReader;

namespace {

constexpr uint64_t poison = 0xDEADDEADDEADDEADu;

// Its two words belong together, from its making until it is freed. volatile: the poison is written though the memory
// goes next.
struct Item : EpochNode {
    explicit Item(uint64_t number) : serial(number), twin(~number) {}
    volatile uint64_t serial;
    volatile uint64_t twin;
};

constexpr int slots = 8, writers = 2, executors = 2, callers = 2, mailboxes = 4;

struct Traffic {
    EpochDomain domain;
    sync::atomic<Item *> shared[slots];
    uint64_t per_writer = 0;
    sync::atomic<uint32_t> writing{writers};
    sync::atomic<uint32_t> calling{callers};
    sync::atomic<EpochPin *> passed[mailboxes]; // pins that others release
    static inline sync::atomic<uint64_t> freed{0};

    static void free(EpochNode *node) {
        auto *item = static_cast<Item *>(node);
        cr_assert_eq(item->twin, ~item->serial, "freed twice, or written into");
        item->serial = poison;
        item->twin = poison;
        delete item;
        freed.fetch_add(1, sync::relaxed);
    }

    bool over() const { return writing.load(sync::acquire) == 0; }

    // Holds a few at once; they are the same at the end.
    void use(base::Prng &prng) {
        Item *held[4];
        uint64_t serials[4];
        for (int i = 0; i < 4; ++i) {
            held[i] = shared[prng.below(slots)].load(sync::acquire);
            serials[i] = held[i]->serial;
        }
        for (int i = 0; i < 4; ++i) {
            cr_assert_eq(held[i]->serial, serials[i], "freed under a reader, and used again");
            cr_assert_eq(held[i]->twin, ~serials[i], "freed under a reader");
        }
    }

    // Neither reader nor pinned: what it has taken out is its own.
    void write(uint64_t number) {
        base::Prng prng(number);
        for (uint64_t i = 0; i < per_writer; ++i) {
            auto *fresh = new Item(number * per_writer + i);
            domain.retire(shared[prng.below(slots)].exchange(fresh, sync::acq_rel), free);
            if (i % 64 == 0)
                (void)domain.advance();
            while (i % 64 == 0 && far_behind())
                sync::thread_yield();
        }
        writing.fetch_sub(1, sync::release);
    }
    bool far_behind() {
        (void)domain.advance();
        const base::EpochCounters counters = domain.counters();
        return counters.retired - counters.freed > 50'000;
    }

    // As an executor: quiescent at each switch, offline now and then.
    void execute(uint64_t number) {
        base::Prng prng(number);
        EpochReader reader;
        domain.add(reader, "executor");
        while (!over()) {
            reader.online();
            for (uint64_t turns = prng.below(200); turns > 0; --turns) {
                use(prng);
                reader.quiescent();
            }
            reader.offline();
            if (prng.below(4) == 0)
                sync::thread_yield();
            release_one(static_cast<int>(prng.below(mailboxes)));
        }
        domain.remove(reader);
    }

    // As a foreign thread: its pin is left for another to release, or it takes one back.
    void call(uint64_t number) {
        base::Prng prng(number);
        while (!over()) {
            auto pin = std::make_unique<EpochPin>(static_cast<uint32_t>(prng.below(20)));
            domain.pin(*pin, "call");
            use(prng);
            if (prng.below(2) == 0)
                domain.unpin(*pin);
            else if (EpochPin *other = passed[prng.below(mailboxes)].exchange(pin.release(), sync::acq_rel))
                release(other);
            if (prng.below(8) == 0)
                (void)domain.advance();
        }
        calling.fetch_sub(1, sync::release);
    }
    void release(EpochPin *pin) {
        domain.unpin(*pin);
        delete pin;
    }
    void release_one(int mailbox) {
        if (EpochPin *pin = passed[mailbox].exchange(nullptr, sync::acq_rel))
            release(pin);
    }
};

struct Worker {
    Traffic *traffic = nullptr;
    void (Traffic::*role)(uint64_t) = nullptr;
    uint64_t number = 0;
    sync::thread thread;
    static void run(void *arg) {
        auto &self = *static_cast<Worker *>(arg);
        (self.traffic->*self.role)(self.number);
    }
};

void start(std::vector<std::unique_ptr<Worker>> &workers, Traffic &traffic, void (Traffic::*role)(uint64_t)) {
    workers.push_back(std::make_unique<Worker>());
    Worker &worker = *workers.back();
    worker.traffic = &traffic;
    worker.role = role;
    worker.number = workers.size();
    cr_assert(worker.thread.start(Worker::run, &worker));
}

uint64_t item_count() {
    const uint64_t whole = 1'000'000u * testing::scale();
    return testing::under_valgrind ? whole / 100 : testing::under_tsan || testing::under_asan ? whole / 10 : whole;
}

} // namespace

// Goal: a million nodes, each made, found by readers and pins, taken out and retired, with everybody advancing: none is
// freed while it is held, all are in the end.
Test(Epoch, frees_a_million_under_use) {
    Traffic traffic;
    traffic.per_writer = item_count() / writers;
    for (auto &slot : traffic.shared)
        slot.store(new Item(UINT64_MAX - 1), sync::relaxed);
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < executors; ++i)
        start(workers, traffic, &Traffic::execute);
    for (int i = 0; i < callers; ++i)
        start(workers, traffic, &Traffic::call);
    for (int i = 0; i < writers; ++i)
        start(workers, traffic, &Traffic::write);
    // The last pin that is passed on may have no executor left to release it; and a writer may wait for one.
    while (traffic.calling.load(sync::acquire) != 0) {
        for (int i = 0; i < mailboxes; ++i)
            traffic.release_one(i);
        sync::thread_yield();
    }
    for (auto &worker : workers)
        worker->thread.join();
    for (int i = 0; i < mailboxes; ++i)
        traffic.release_one(i);

    const uint64_t made = traffic.per_writer * writers;
    cr_assert(traffic.domain.drain(sync::no_deadline));
    cr_assert_eq(traffic.domain.counters().retired, made);
    cr_assert_eq(traffic.domain.counters().freed, made);
    cr_assert_eq(Traffic::freed.load(sync::relaxed), made);
    for (auto &slot : traffic.shared)
        Traffic::free(slot.load(sync::relaxed));
}
