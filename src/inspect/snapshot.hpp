// What a program may know of a running one: counters, tasks, and both as JSON. Reads what others write and disturbs nobody. Any
// thread.
#pragma once

#include "sched/report.hpp"

#include <mc/inspect.h>

#include <cstdint>

namespace mc::inspect {

void read_stats(sched::Pool &pool, mc_runtime_counters *stats) noexcept;
bool read_stats(sched::Pool &pool, uint32_t index, mc_executor_counters *stats) noexcept; // false: there is none

// Calls visit(info) for the tasks of the pool (null: of all, and for threads that wait) that have waited that long; 0: all.
template <class Visit> void for_each_task_info(const sched::Pool *pool, int64_t min_waited_ns, Visit visit) noexcept;

// See mc_inspect_json.
void write_json(sched::Pool *pool, int64_t min_waited_ns, mc_write_fn write, void *user) noexcept;

// --- how ---

bool describe(const sched::Task &task, uint64_t runtime, int64_t min_waited_ns, mc_task_info *info) noexcept;

template <class Visit> void for_each_task_info(const sched::Pool *pool, int64_t min_waited_ns, Visit visit) noexcept {
    const uint64_t runtime = pool == nullptr ? 0 : pool->handle();
    sched::for_each_task([&](const sched::Task &task) {
        mc_task_info info;
        if (describe(task, runtime, min_waited_ns, &info))
            visit(info);
    });
}

} // namespace mc::inspect
