// For systematic tests of queues: tasks, and who has had them.
#pragma once

#include "sched/task.hpp"
#include "testing/systematic.hpp"

namespace mc::sched::testing {

using mc::testing::check;
using mc::testing::Data;

inline constexpr int most = 8;

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

// Somebody who announces that he goes to sleep, then looks into the queue, while the caller publishes into it, then looks for
// sleepers: one of the two sees the other.
template <class Queue, class Publish> void publish_beside_a_sleeper(Queue &queue, Publish publish) {
    sync::atomic<uint32_t> asleep{0};
    bool seen = false;
    mc::testing::Thread sleeper(
        [&] {
            (void)asleep.fetch_add(1, sync::seq_cst);
            seen = queue.seen_nonempty();
        },
        "sleeper");
    publish();
    const bool sees = asleep.load(sync::seq_cst) != 0;
    sleeper.join();
    mc::testing::check(seen || sees, "neither saw the other");
}

} // namespace mc::sched::testing
