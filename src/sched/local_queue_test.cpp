// The queues of an executor, by one thread: what their owner and their thieves are promised.
#include "sched/local_queue.hpp"
#include "sched/shared_queue.hpp"

#include "testing/test.hpp"

#include <memory>

using namespace mc::sched;

namespace {

constexpr uint32_t capacity = LocalQueue::capacity;

struct Tasks {
    std::unique_ptr<Task[]> tasks{new Task[2 * capacity]};
    Task *operator[](size_t i) { return &tasks[i]; }
};

} // namespace

// Goal: first in, first out, also after the ring has come round many times; full at its capacity, empty at the end.
Test(LocalQueue, is_first_in_first_out) {
    LocalQueue queue;
    Tasks tasks;
    for (int round = 0; round < 10; ++round) {
        for (size_t i = 0; i < capacity; ++i)
            cr_assert(queue.push(tasks[i]));
        cr_assert_not(queue.push(tasks[capacity]));
        cr_assert_eq(queue.size(), capacity);
        cr_assert(queue.seen_nonempty());
        for (size_t i = 0; i < capacity; ++i)
            cr_assert_eq(queue.pop(), tasks[i]);
        cr_assert_null(queue.pop());
        cr_assert_not(queue.seen_nonempty());
    }
}

// Goal: a thief gets the older half, rounded up, oldest first.
Test(LocalQueue, the_older_half_is_stolen) {
    Tasks tasks;
    for (const size_t there : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{capacity}}) {
        LocalQueue queue;
        LocalQueue mine;
        for (size_t i = 0; i < there; ++i)
            cr_assert(queue.push(tasks[i]));
        const size_t half = (there + 1) / 2;
        cr_assert_eq(queue.steal_into(mine), tasks[0]);
        for (size_t i = 1; i < half; ++i)
            cr_assert_eq(mine.pop(), tasks[i]);
        cr_assert_null(mine.pop());
        cr_assert_eq(queue.size(), there - half);
        for (size_t i = half; i < there; ++i)
            cr_assert_eq(queue.pop(), tasks[i]);
        cr_assert_null(queue.steal_into(mine));
    }
}

// Goal: a full queue gives its older half as a list; one that is not full gives nothing.
Test(LocalQueue, a_full_one_gives_half_away) {
    LocalQueue queue;
    Tasks tasks;
    Task *first = nullptr;
    Task *last = nullptr;
    for (size_t i = 0; i < capacity; ++i) {
        cr_assert_eq(queue.take_half(&first, &last), 0u);
        cr_assert(queue.push(tasks[i]));
    }
    cr_assert_eq(queue.take_half(&first, &last), capacity / 2);
    size_t count = 0;
    for (Task *task = first; task != nullptr; task = task->next)
        cr_assert_eq(task, tasks[count++]);
    cr_assert_eq(count, size_t{capacity} / 2);
    cr_assert_eq(last, tasks[capacity / 2 - 1]);
    cr_assert_eq(queue.pop(), tasks[capacity / 2]);
}

// Goal: a shared queue gives the oldest, as many as are asked for.
Test(SharedQueue, gives_the_oldest) {
    SharedQueue queue;
    Tasks tasks;
    cr_assert_null(queue.take(1));
    for (size_t i = 0; i < 5; ++i)
        queue.push(tasks[i]);
    cr_assert_eq(queue.size(), 5u);
    Task *two = queue.take(2);
    cr_assert_eq(two, tasks[0]);
    cr_assert_eq(two->next, tasks[1]);
    cr_assert_null(two->next->next);
    cr_assert_eq(queue.size(), 3u);
    cr_assert_eq(queue.take(9), tasks[2]);
    cr_assert_null(queue.take(1));
    cr_assert_not(queue.seen_nonempty());
}
