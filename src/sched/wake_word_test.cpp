// How an executor sleeps, one operation at a time and with real threads. wake_word_sys_test.cpp has the races.
#include "sched/wake_word.hpp"

#include "testing/test.hpp"

using namespace mc;
using sched::WakeWord;

// Goal: a wake is kept for the next announcement, once.
Test(WakeWord, a_wake_before_sleeping_is_kept) {
    WakeWord word;
    word.wake();
    word.wake();
    cr_assert(!word.announce());
    cr_assert(word.announce());
    word.sleep(sync::now_ns()); // nobody wakes: the deadline ends it
    cr_assert(word.announce());
    word.wake();
    word.sleep(sync::no_deadline); // returns at once
    cr_assert(word.announce());
}

// Goal: the deadline ends a sleep, not before its time.
Test(WakeWord, deadlines_are_kept) {
    WakeWord word;
    for (int64_t wait_ns : {int64_t{0}, int64_t{1'000}, int64_t{1'000'000}, int64_t{20'000'000}}) {
        const int64_t deadline = sync::now_ns() + wait_ns;
        cr_assert(word.announce());
        word.sleep(deadline);
        cr_assert_geq(sync::now_ns(), deadline);
    }
}

namespace {

struct Pair {
    WakeWord mine[2];
    sync::atomic<uint32_t> turn{0};
    uint32_t rounds = 0;
};

// Waits for its turn, asleep; passes it on.
void play(Pair &pair, uint32_t me) {
    for (uint32_t round = 0; round < pair.rounds; ++round) {
        while (pair.turn.load(sync::acquire) % 2 != me)
            if (pair.mine[me].announce())
                pair.mine[me].sleep(sync::no_deadline);
        pair.turn.fetch_add(1, sync::release);
        pair.mine[1 - me].wake();
    }
}

} // namespace

// Goal: two threads that wake each other in turn never both sleep.
Test(WakeWord, two_threads_wake_each_other) {
    static Pair pair;
    pair.rounds = 20'000 * mc::testing::scale();
    sync::thread other;
    cr_assert(other.start([](void *) { play(pair, 1); }, nullptr));
    play(pair, 0);
    other.join();
    cr_assert_eq(pair.turn.load(sync::relaxed), 2 * pair.rounds);
}
