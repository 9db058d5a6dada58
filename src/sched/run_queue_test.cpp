// The run queue of single-processor mode against a model: a sequence of tasks whose first is in turn.
#include "sched/run_queue.hpp"

#include "base/prng.hpp"
#include "testing/test.hpp"

#include <algorithm>
#include <deque>
#include <vector>

using namespace mc;
using sched::RunQueue;
using sched::Task;

namespace {

// Walks the ring without changing it.
std::vector<const Task *> contents(const RunQueue &queue) {
    std::vector<const Task *> out;
    const Task *task = queue.head();
    if (task == nullptr)
        return out;
    do {
        cr_assert_eq(task->next->prev, task);
        out.push_back(task);
        task = task->next;
    } while (task != queue.head());
    return out;
}

} // namespace

// Goal: a task joins the tail; the head stays in turn until it gives up or leaves.
Test(RunQueue, is_first_in_first_out) {
    RunQueue queue;
    std::vector<Task> tasks(4);
    cr_assert(queue.empty());
    cr_assert_null(queue.head());
    for (Task &task : tasks)
        queue.push_tail(&task);
    cr_assert(!queue.empty());
    for (Task &task : tasks) {
        cr_assert_eq(queue.head(), &task);
        queue.give_up_turn(&task);
    }
    for (Task &task : tasks) {
        cr_assert_eq(queue.head(), &task);
        cr_assert_eq(queue.holds_only(&task), &task == &tasks.back());
        queue.remove(&task);
        cr_assert_null(task.next);
    }
    cr_assert(queue.empty());
}

// Goal: who runs out of turn gives up no turn: the head stays in turn.
Test(RunQueue, out_of_turn_keeps_the_turn) {
    RunQueue queue;
    std::vector<Task> tasks(3);
    for (Task &task : tasks)
        queue.push_tail(&task);
    queue.give_up_turn(&tasks[2]);
    cr_assert_eq(queue.head(), &tasks[0]);
    queue.remove(&tasks[1]);
    cr_assert_eq(queue.head(), &tasks[0]);
    queue.give_up_turn(&tasks[0]);
    cr_assert_eq(queue.head(), &tasks[2]);
}

// Goal: others_to_run counts neither the asker nor those that only wait for the queue to be empty.
Test(RunQueue, idlers_do_not_count) {
    RunQueue queue;
    std::vector<Task> tasks(3);
    cr_assert(!queue.others_to_run(&tasks[0]));
    queue.push_tail(&tasks[0]);
    cr_assert(!queue.others_to_run(&tasks[0]));
    cr_assert(queue.others_to_run(nullptr));
    queue.push_tail(&tasks[1]);
    cr_assert(queue.others_to_run(&tasks[0]));
    tasks[1].in_schedule = true;
    cr_assert(!queue.others_to_run(&tasks[0]));
    queue.push_tail(&tasks[2]);
    cr_assert(queue.others_to_run(&tasks[0]));
    cr_assert(queue.others_to_run(&tasks[2])); // tasks[0]
}

// Goal: a long random history of joining, leaving and yielding.
Test(RunQueue, random_history_matches_a_model) {
    base::Prng prng(23);
    RunQueue queue;
    std::vector<Task> tasks(12);
    std::deque<const Task *> model;
    for (int step = 0; step < 100'000; ++step) {
        Task *task = &tasks[prng.below(12)];
        const auto at = std::find(model.begin(), model.end(), task);
        if (at == model.end()) {
            queue.push_tail(task);
            model.push_back(task);
        } else if (prng.below(2) == 0) {
            queue.remove(task);
            model.erase(at);
        } else {
            queue.give_up_turn(task);
            if (at == model.begin()) {
                model.pop_front();
                model.push_back(task);
            }
        }
        const std::vector<const Task *> now = contents(queue);
        cr_assert(std::equal(now.begin(), now.end(), model.begin(), model.end()));
        cr_assert_eq(queue.holds_only(task), model.size() == 1 && model.front() == task);
        cr_assert_eq(queue.others_to_run(task), !model.empty() && !queue.holds_only(task));
    }
}
