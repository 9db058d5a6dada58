// The shared queue under every interleaving: pushers, takers, and those who look at it before they sleep or after they
// have closed a door. On real threads in other builds.
#include "sched/shared_queue.hpp"

#include "sched/test_ledger.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::SharedQueue;
using sched::Task;
using sched::testing::Ledger;
using sched::testing::publish_beside_a_sleeper;
using testing::check;
using testing::Thread;

namespace {

// Takes up to count; the last one's number, or that before.
int take(SharedQueue &queue, Ledger &ledger, uint32_t count, int before = -1) {
    for (Task *task = queue.take(count); task != nullptr;) {
        Task *next = task->next;
        ledger.have(task);
        before = static_cast<int>(task->id);
        task = next;
    }
    return before;
}

void push(SharedQueue &queue, Ledger &ledger, int from, int to) {
    for (int i = from; i < to; ++i)
        queue.push(ledger.fresh(i));
}

} // namespace

// Goal: what threads push comes out once each, complete, and the count is right in the end.
Test(SharedQueueSys, pushers_and_takers, .timeout = 120) {
    testing::expect_pass(
        {.name = "SharedQueueSys/pushers_and_takers", .search = testing::Search::seeds, .seeds = 10'000}, [] {
            Ledger ledger;
            SharedQueue queue;
            Thread first([&] { push(queue, ledger, 0, 2); }, "first");
            Thread second([&] { push(queue, ledger, 2, 4); }, "second");
            Thread taker([&] { take(queue, ledger, 1), take(queue, ledger, 2); }, "taker");
            take(queue, ledger, 1);
            first.join();
            second.join();
            taker.join();
            take(queue, ledger, 4);
            ledger.all_were_had(4);
            check(queue.size() == 0 && !queue.seen_nonempty(), "the count is wrong");
        });
}

// Goal: one pusher's come out in its order, also when the queue runs empty in between, singly or in a list.
Test(SharedQueueSys, in_the_order_of_the_pusher) {
    testing::expect_pass({.name = "SharedQueueSys/in_the_order_of_the_pusher"}, [] {
        Ledger ledger;
        SharedQueue queue;
        Thread pusher(
            [&] {
                push(queue, ledger, 0, 1);
                Task *first = ledger.fresh(1);
                Task *last = ledger.fresh(2);
                first->next = last;
                queue.push_list(first, last, 2);
            },
            "pusher");
        int before = -1;
        for (int i = 0; i < 2; ++i) {
            const int now = take(queue, ledger, 1, before);
            check(now == before || now == before + 1, "%d after %d", now, before);
            before = now;
        }
        pusher.join();
        check(take(queue, ledger, 3, before) == 2, "not the last");
        ledger.all_were_had(3);
    });
}

// Goal: a push, and somebody who announces that it goes to sleep, then looks: one of the two sees the other.
Test(SharedQueueSys, a_sleeper_sees_it_or_is_seen) {
    testing::expect_pass({.name = "SharedQueueSys/a_sleeper_sees_it_or_is_seen"}, [] {
        Ledger ledger;
        SharedQueue queue;
        publish_beside_a_sleeper(queue, [&] { push(queue, ledger, 0, 1); });
    });
}

// Goal: a push, and somebody who closes a door, then takes what is there: it is taken, or the pusher sees the door closed.
Test(SharedQueueSys, who_closes_takes_it_or_is_seen) {
    testing::expect_pass({.name = "SharedQueueSys/who_closes_takes_it_or_is_seen"}, [] {
        Ledger ledger;
        SharedQueue queue;
        sync::atomic<uint32_t> open{1};
        bool taken = false;
        Thread closer(
            [&] {
                (void)sync::dekker_publish(open, 0u);
                taken = queue.take(1) != nullptr;
            },
            "closer");
        push(queue, ledger, 0, 1);
        const bool sees = open.load(sync::seq_cst) == 0;
        closer.join();
        check(taken || sees, "stranded");
    });
}
