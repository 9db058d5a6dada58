// The parts of what an attached runtime has, used by several threads at once.
#include "machine/boxes.hpp"
#include "machine/pending.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using namespace mc::machine;
using mc::testing::Thread;

namespace {

const uint64_t rounds = (mc::testing::under_valgrind ? 3'000
                         : mc::testing::under_tsan   ? 30'000
                                                     : 100'000) *
                        mc::testing::scale();

} // namespace

// Goal: each hold is counted, and each that is given up.
Test(Parts, boxes_of_several, .timeout = 60) {
    constexpr uint64_t boxes_held = 4;
    Boxes boxes;
    cr_assert(boxes.make_many());
    for (uint64_t box = 1; box <= boxes_held; ++box)
        cr_assert(boxes.hold(box << 8));
    {
        sync::atomic<uint32_t> here{0};
        auto body = [&] {
            (void)here.fetch_add(1, sync::relaxed);
            while (here.load(sync::relaxed) != 2) // so that they meet
                sync::cpu_relax();
            for (uint64_t i = 0; i < 10 * rounds; ++i) {
                const uint64_t box = (i % boxes_held + 1) << 8;
                cr_assert(boxes.hold(box));
                cr_assert_not(boxes.let_go(box), "somebody holds it still");
            }
        };
        const Thread other(body);
        body();
    }
    for (uint64_t box = 1; box <= boxes_held; ++box)
        cr_assert(boxes.let_go(box << 8), "somebody is said to hold it");
    cr_assert_eq(boxes.size(), 0);
}

// Goal: one thread makes requests, and another one ends them: all are counted, and rows are used again.
Test(Parts, requests_of_several, .timeout = 60) {
    constexpr uint64_t room = 32;
    Pending pending;
    cr_assert(pending.make_many());
    sync::atomic<Row *> made[room] = {};
    Pending::Block block;
    {
        const Thread other([&] {
            for (uint64_t i = 0; i < rounds; ++i) {
                Row *row = nullptr;
                while ((row = made[i % room].exchange(nullptr, sync::acq_rel)) == nullptr)
                    sync::cpu_relax();
                pending.remove(row, MC_PENDING_CLEANUP_COMPLETED);
                pending.recycle(row);
            }
        });
        for (uint64_t i = 0; i < rounds; ++i) {
            Row *row = pending.reserve(0, &block);
            cr_assert_not_null(row);
            pending.activate(row, 0, 0);
            while (made[i % room].load(sync::acquire) != nullptr)
                sync::cpu_relax();
            made[i % room].store(row, sync::release); // release: pairs with the exchange
        }
    }
    cr_assert_eq(pending.active(), 0);
    cr_assert_eq(pending.created(), rounds);
    cr_assert_eq(pending.ended(MC_PENDING_CLEANUP_COMPLETED), rounds);
    pending.leave(&block);
}
