// The local queue under every interleaving: its owner against thieves. On real threads in other builds.
#include "sched/local_queue.hpp"

#include "sched/shared_queue.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::LocalQueue;
using sched::SharedQueue;
using sched::Task;
using testing::check;
using testing::Data;
using testing::Thread;

namespace {

constexpr int most = 8;

// Tasks and what must have been written before somebody has one.
struct Ledger {
    Task tasks[most];
    Data<int> content[most];
    sync::atomic<uint32_t> had{0}; // a bit for each task that somebody has had

    Task *fresh(int i) {
        tasks[i].id = static_cast<uint64_t>(i);
        content[i].set(1);
        return &tasks[i];
    }
    int have(const Task *task) {
        const auto i = static_cast<int>(task->id);
        check(content[i].get() == 1, "had before it was complete, or twice");
        content[i].set(2);
        check((had.fetch_or(1u << i, sync::relaxed) & (1u << i)) == 0, "had twice");
        return 1;
    }
    void all_were_had(int count) {
        check(had.load(sync::relaxed) == (1u << count) - 1, "%x were had", had.load(sync::relaxed));
    }
};

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

// Goal: what threads push into a shared queue comes out once each, first in, first out per thread.
Test(SharedQueueSys, pushers_and_takers, .timeout = 120) {
    testing::expect_pass(
        {.name = "SharedQueueSys/pushers_and_takers", .search = testing::Search::seeds, .seeds = 5'000}, [] {
            Ledger ledger;
            SharedQueue queue;
            for (int i = 0; i < 4; ++i)
                ledger.fresh(i);
            const auto take = [&](uint32_t count) {
                for (Task *task = queue.take(count); task != nullptr;) {
                    Task *next = task->next;
                    ledger.have(task);
                    task = next;
                }
            };
            Thread first([&] { queue.push(&ledger.tasks[0]), queue.push(&ledger.tasks[1]); }, "first");
            Thread second([&] { queue.push(&ledger.tasks[2]), queue.push(&ledger.tasks[3]); }, "second");
            Thread taker([&] { take(1), take(2); }, "taker");
            first.join();
            second.join();
            taker.join();
            take(4);
            ledger.all_were_had(4);
            check(queue.size() == 0, "the count is wrong");
        });
}
