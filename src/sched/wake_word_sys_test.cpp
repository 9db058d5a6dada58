// Inbox and wake word together: producers, and a consumer that sleeps when it finds nothing. A lost wake-up shows as a
// deadlock. On real threads in other builds.
#include "sched/wake_word.hpp"

#include "base/inbox.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using testing::check;
using testing::Data;
using testing::Thread;

namespace {

struct Work {
    Work *next = nullptr;
    Data<int> content{0};
};

struct Executor {
    base::Inbox<Work, &Work::next> inbox;
    sched::WakeWord word;
    Work work[3][4];

    void send(int sender, int count) {
        for (int i = 0; i < count; ++i) {
            work[sender][i].content.set(1);
            inbox.push(&work[sender][i]);
            word.wake(); // after the push
        }
    }

    int take() {
        int taken = 0;
        Work *piece = inbox.take_all();
        while (piece != nullptr) {
            Work *next = piece->next;
            check(piece->content.get() == 1, "taken before it was complete, or twice");
            piece->content.set(2);
            ++taken;
            piece = next;
        }
        return taken;
    }

    // As an executor's idle loop: looks, and sleeps when it has found nothing; each time for at most `patience_ns`.
    void consume(int count, int64_t patience_ns) {
        for (int taken = 0; taken < count;) {
            const int now = take();
            taken += now;
            if (now == 0 && word.announce())
                word.sleep(patience_ns == sync::no_deadline ? patience_ns : sync::now_ns() + patience_ns);
        }
    }
};

// All are threads, so that any may come first without a preemption.
void exchange(int senders, int count, int64_t patience_ns) {
    Executor executor;
    Thread consumer([&] { executor.consume(senders * count, patience_ns); }, "consumer");
    Thread first([&] { executor.send(0, count); }, "first");
    if (senders == 1)
        return;
    Thread second([&] { executor.send(1, count); }, "second");
    if (senders == 2)
        return;
    Thread third([&] { executor.send(2, count); }, "third");
}

} // namespace

// Goal: one producer: whatever it pushes before or while the consumer falls asleep is taken.
Test(WakeWordSys, one_producer_is_never_missed) {
    testing::expect_pass({.name = "WakeWordSys/one_producer_is_never_missed", .preemptions = 3},
                         [] { exchange(1, 3, sync::no_deadline); });
}

// Goal: two producers, whose wakes may fall into one: neither is missed. That takes three preemptions and a stale read.
Test(WakeWordSys, two_producers_are_never_missed) {
    testing::expect_pass(
        {.name = "WakeWordSys/two_producers_are_never_missed", .preemptions = 3, .stale = 1, .spurious = 0},
        [] { exchange(2, 1, sync::no_deadline); });
    testing::expect_pass(
        {.name = "WakeWordSys/two_producers_are_never_missed", .search = testing::Search::seeds, .seeds = 20'000},
        [] { exchange(2, 2, sync::no_deadline); });
}

// Goal: three.
Test(WakeWordSys, three_producers_are_never_missed) {
    testing::expect_pass(
        {.name = "WakeWordSys/three_producers_are_never_missed", .search = testing::Search::seeds, .seeds = 20'000},
        [] { exchange(3, 2, sync::no_deadline); });
}

// Goal: a consumer whose sleep ends by a deadline, at the moment of a wake or not, goes on as well.
Test(WakeWordSys, deadlines_race_wakes) {
    testing::expect_pass({.name = "WakeWordSys/deadlines_race_wakes", .preemptions = 2, .stale = 1, .timeouts = 2},
                         [] { exchange(1, 2, 1'000'000); });
}
