// Inbox, awake flag and wake word together, as an executor's send and rest use them: producers wake only a consumer that
// has said that it may sleep. A lost wake-up shows as a deadlock. On real threads in other builds.
#include "sched/awake_flag.hpp"

#include "base/inbox.hpp"
#include "sched/wake_word.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using testing::Thread;

namespace {

struct Work {
    Work *next = nullptr;
};

struct Executor {
    base::Inbox<Work, &Work::next> inbox;
    sched::AwakeFlag awake;
    sched::WakeWord word;
    Work work[2][3];

    void send(int sender, int count) {
        for (int i = 0; i < count; ++i) {
            inbox.push(&work[sender][i]);
            if (awake.must_wake())
                word.wake();
        }
    }

    int take() {
        int taken = 0;
        for (Work *piece = inbox.take_all(); piece != nullptr; piece = piece->next)
            ++taken;
        return taken;
    }

    void consume(int count) {
        awake.stays_awake();
        for (int taken = take(); taken < count; taken += take()) {
            awake.may_sleep();
            if (!inbox.seen_nonempty() && word.announce())
                word.sleep(sync::no_deadline);
            awake.stays_awake();
        }
    }
};

void exchange(int senders, int count) {
    Executor executor;
    Thread consumer([&] { executor.consume(senders * count); }, "consumer");
    Thread first([&] { executor.send(0, count); }, "first");
    if (senders == 1)
        return;
    Thread second([&] { executor.send(1, count); }, "second");
}

} // namespace

// Goal: whatever is pushed before, while or after the consumer lies down is taken, though most pushes wake nobody.
Test(AwakeFlagSys, nothing_is_slept_on) {
    testing::expect_pass({.name = "AwakeFlagSys/nothing_is_slept_on", .preemptions = 3, .stale = 1},
                         [] { exchange(1, 2); });
}

// Goal: of two producers, one that finds the consumer awake and one that does not.
Test(AwakeFlagSys, two_producers) {
    testing::expect_pass({.name = "AwakeFlagSys/two_producers", .search = testing::Search::seeds, .seeds = 20'000},
                         [] { exchange(2, 3); });
}
