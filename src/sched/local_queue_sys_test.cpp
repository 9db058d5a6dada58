// The local queue under every interleaving: its owner against thieves. On real threads in other builds.
#include "sched/local_queue.hpp"

#include "sched/shared_queue.hpp"
#include "sched/test_ledger.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::LocalQueue;
using sched::SharedQueue;
using sched::Task;
using sched::testing::Ledger;
using sched::testing::most;
using sched::testing::publish_beside_a_sleeper;
using testing::check;
using testing::Thread;

namespace {

int pop_all(LocalQueue &queue, Ledger &ledger) {
    int count = 0;
    while (Task *task = queue.pop())
        count += ledger.have(task);
    return count;
}

void steal_once(LocalQueue &from, LocalQueue &mine, Ledger &ledger) {
    if (Task *task = from.steal_into(mine)) {
        ledger.have(task);
        pop_all(mine, ledger);
    }
}

} // namespace

// Goal: pushes and pops of the owner against one thief: each task is had once, complete.
Test(LocalQueueSys, owner_and_thief, .timeout = 120) {
    testing::expect_pass({.name = "LocalQueueSys/owner_and_thief", .preemptions = 3}, [] {
        Ledger ledger;
        LocalQueue queue;
        LocalQueue mine;
        Thread thief([&] { steal_once(queue, mine, ledger); }, "thief");
        for (int i = 0; i < 3; ++i)
            check(queue.push(ledger.fresh(i)), "full");
        if (Task *task = queue.pop())
            ledger.have(task);
        thief.join();
        pop_all(queue, ledger);
        ledger.all_were_had(3);
    });
}

// Goal: the ring comes round while two thieves steal: no slot is read after it was written anew.
Test(LocalQueueSys, two_thieves_while_it_comes_round, .timeout = 120) {
    testing::expect_pass(
        {.name = "LocalQueueSys/two_thieves_while_it_comes_round", .search = testing::Search::seeds, .seeds = 20'000},
        [] {
            Ledger ledger;
            LocalQueue queue;
            LocalQueue mine[2];
            Thread first([&] { steal_once(queue, mine[0], ledger); }, "first");
            Thread second([&] { steal_once(queue, mine[1], ledger); }, "second");
            for (int i = 0; i < most; ++i) {
                Task *task = ledger.fresh(i);
                while (!queue.push(task))
                    if (Task *oldest = queue.pop())
                        ledger.have(oldest);
            }
            first.join();
            second.join();
            pop_all(queue, ledger);
            ledger.all_were_had(most);
        });
}

// Goal: a full queue gives its older half away, or the thief has had some; nothing is had twice or lost.
Test(LocalQueueSys, overflow_against_a_thief, .timeout = 120) {
    if (LocalQueue::capacity != 4)
        cr_skip_test("needs the twin's small queue");
    testing::expect_pass({.name = "LocalQueueSys/overflow_against_a_thief", .preemptions = 3}, [] {
        Ledger ledger;
        LocalQueue queue;
        LocalQueue mine;
        SharedQueue injection;
        for (int i = 0; i < 4; ++i)
            check(queue.push(ledger.fresh(i)), "full");
        Thread thief([&] { steal_once(queue, mine, ledger); }, "thief");
        Task *task = ledger.fresh(4);
        while (!queue.push(task)) {
            Task *first = nullptr;
            Task *last = nullptr;
            if (const uint32_t taken = queue.take_half(&first, &last)) {
                last->next = task;
                injection.push_list(first, task, taken + 1);
                break;
            }
        }
        thief.join();
        pop_all(queue, ledger);
        for (Task *left = injection.take(8); left != nullptr; left = left->next)
            ledger.have(left);
        ledger.all_were_had(5);
    });
}

// Goal: what was stolen is stolen again from the thief: complete, and once.
Test(LocalQueueSys, stolen_twice, .timeout = 120) {
    testing::expect_pass({.name = "LocalQueueSys/stolen_twice", .search = testing::Search::seeds, .seeds = 20'000}, [] {
        Ledger ledger;
        LocalQueue queue;
        LocalQueue mine[2];
        Thread first([&] { steal_once(queue, mine[0], ledger); }, "first");
        Thread second([&] { steal_once(mine[0], mine[1], ledger); }, "second");
        for (int i = 0; i < 4; ++i)
            check(queue.push(ledger.fresh(i)), "full");
        first.join();
        second.join();
        pop_all(queue, ledger);
        ledger.all_were_had(4);
    });
}

// Goal: a push, or a theft into one's own queue, and somebody who announces that it goes to sleep: one sees the other.
Test(LocalQueueSys, a_sleeper_sees_it_or_is_seen, .timeout = 120) {
    for (const bool stolen : {false, true})
        testing::expect_pass({.name = "LocalQueueSys/a_sleeper_sees_it_or_is_seen"}, [stolen] {
            Ledger ledger;
            LocalQueue queue;
            LocalQueue others;
            for (int i = 0; stolen && i < 4; ++i)
                check(others.push(ledger.fresh(i)), "full");
            publish_beside_a_sleeper(queue, [&] {
                if (stolen)
                    check(others.steal_into(queue) != nullptr, "not stolen");
                else
                    check(queue.push(ledger.fresh(0)), "full");
            });
        });
}
