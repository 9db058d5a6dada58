// mc/runtime.h
#include <mc/runtime.h>

#include "abi/call.hpp"
#include "abi/sim.hpp"
#include "abi/spawn_options.hpp"
#include "base/guarded.hpp"
#include "fiber/overflow.hpp"
#include "inspect/snapshot.hpp"
#include "sched/executor.hpp"
#include "sched/report.hpp"
#include "sched/spawn.hpp"
#include "sched/switch.hpp"

#include <algorithm>
#include <cstring>

namespace {

using mc::abi::with_runtime;
using mc::sched::Pool;
using mc::sched::PoolOptions;
using mc::sched::SpawnRequest;
using mc::sched::Task;
using mc::sched::ThreadContext;

template <class Number> bool choose(Number given, Number usual, Number least, Number most, Number *out) noexcept {
    *out = given == 0 ? usual : given;
    return *out >= least && *out <= most;
}

// The runtime's options, with defaults for what is 0.
int32_t read_runtime_options(const mc_runtime_options *given, mc_runtime_options *known,
                             PoolOptions *options) noexcept {
    *known = MC_RUNTIME_OPTIONS_INIT;
    const int32_t status = given == nullptr ? MC_OK : mc::abi::read_options(given, known);
    if (status != MC_OK)
        return status;
    constexpr uint32_t all_flags = MC_RUNTIME_DEFAULT | MC_RUNTIME_OVERFLOW_REPORT;
    const bool valid =
        (known->flags & ~all_flags) == 0 && known->mode <= MC_MODE_SIMULATION && known->reserved == 0 &&
        known->affinity <= MC_AFFINITY_RANDOM && known->cores <= MC_CORES_LITTLE &&
        choose<uint32_t>(known->wheel_segments, 1, 1, MC_WHEEL_SEGMENTS_MAX, &options->wheel_segments) &&
        choose<int64_t>(known->quantum_ns, MC_MS, MC_MS / 100, MC_SEC, &options->quantum_ns) &&
        choose<uint32_t>(known->quantum_reductions, 4000, 16, 100'000'000, &options->quantum_reductions) &&
        choose<uint32_t>(known->blocking_threads, 64, 1, MC_BLOCKING_THREADS_MAX, &options->blocking_threads) &&
        choose<uint64_t>(known->stack_size, MC_STACK_DEFAULT, MC_STACK_MIN, MC_STACK_MAX, &options->stack_size);
    if (!valid)
        return MC_E_INVAL;
    options->seed = known->seed;
    options->placement = static_cast<mc::base::PlacementPolicy>(known->affinity);
    options->cores = static_cast<mc::base::CoreKind>(known->cores);
    options->thread_started = known->thread_start;
    options->thread_stops = known->thread_stop;
    options->user = known->user;
    return MC_OK;
}

// Writes as much of a struct as the caller knows; it has set struct_size.
template <class Stats> int32_t write_stats(const Stats &found, Stats *out) noexcept {
    const uint32_t size = out->struct_size;
    if (size < sizeof out->struct_size || size > 4096)
        return MC_E_INVAL;
    std::memset(static_cast<void *>(out), 0, size);
    std::memcpy(static_cast<void *>(out), &found, std::min<size_t>(size, sizeof found));
    out->struct_size = size;
    return MC_OK;
}

} // namespace

#ifndef MC_SYS
static_assert(MC_EXECUTORS_MAX == Pool::max_executors);
#endif
static_assert(MC_WHEEL_SEGMENTS_MAX == mc::sched::Wheel::max_segments);
static_assert(MC_AFFINITY_RANDOM == static_cast<int>(mc::base::PlacementPolicy::random) &&
              MC_AFFINITY_BREADTH_FIRST == static_cast<int>(mc::base::PlacementPolicy::breadth_first) &&
              MC_AFFINITY_DEPTH_FIRST == static_cast<int>(mc::base::PlacementPolicy::depth_first) &&
              MC_CORES_BIG == static_cast<int>(mc::base::CoreKind::big) &&
              MC_CORES_LITTLE == static_cast<int>(mc::base::CoreKind::little));

// --- runtimes ---

int32_t mc_runtime_create(const mc_runtime_options *options, mc_runtime_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    mc_runtime_options known;
    PoolOptions chosen;
    int32_t status = read_runtime_options(options, &known, &chosen);
    if (status == MC_OK && known.mode == MC_MODE_SIMULATION)
        status = mc::abi::begin_simulation(known.seed);
    ThreadContext *thread = status == MC_OK ? mc::abi::enter(&status) : nullptr;
    if (thread == nullptr)
        return status;
    if ((known.flags & MC_RUNTIME_OVERFLOW_REPORT) != 0)
        status = mc_overflow_report(1);
    if (status != MC_OK)
        return status;
    return (known.flags & MC_RUNTIME_DEFAULT) != 0 ? mc::sched::start_default(*thread, chosen, known.executors, out)
                                                   : mc::sched::create_runtime(chosen, known.executors, out);
}

int32_t mc_runtime_start(mc_runtime_t rt) noexcept {
    return with_runtime(rt, [=](ThreadContext &thread, Pool &pool) {
        return mc::sched::start_runtime(thread, rt != 0 ? rt : pool.handle());
    });
}

int32_t mc_runtime_shutdown(mc_runtime_t rt, int64_t timeout_ns) noexcept {
    const int64_t deadline_ns = mc_after(timeout_ns);
    return with_runtime(rt, [=](ThreadContext &thread, Pool &) {
        return mc::sched::shutdown_runtime(thread, rt != 0 ? rt : mc::sched::default_runtime(), deadline_ns);
    });
}

int32_t mc_runtime_destroy(mc_runtime_t rt) noexcept {
    return with_runtime(rt, [=](ThreadContext &thread, Pool &pool) {
        return mc::sched::destroy_runtime(thread, rt != 0 ? rt : pool.handle());
    });
}

mc_runtime_t mc_runtime_default(void) noexcept {
    int32_t status = MC_OK;
    return mc::abi::enter(&status) == nullptr ? 0 : mc::sched::default_runtime();
}

mc_runtime_t mc_runtime_self(void) noexcept {
    int32_t status = MC_OK;
    const ThreadContext *thread = mc::abi::enter(&status);
    return thread == nullptr ? 0 : mc::sched::pool_of(*thread).handle();
}

int32_t mc_runtime_add_executor(mc_runtime_t rt) noexcept {
    return with_runtime(rt, [=](ThreadContext &thread, Pool &) { return mc::sched::add_executor(thread, rt); });
}

int32_t mc_runtime_wait_quiescent(mc_runtime_t rt, int64_t deadline_ns) noexcept {
    return mc::abi::with_waiting_thread(
        deadline_ns, [=](ThreadContext &thread) { return mc::sched::wait_quiescent(thread, rt, deadline_ns); });
}

int32_t mc_runtime_hold(mc_runtime_t rt) noexcept {
    return with_runtime(rt, [](ThreadContext &, Pool &) {
        mc::sched::hold_world();
        return MC_OK;
    });
}

int32_t mc_runtime_release(mc_runtime_t rt) noexcept {
    return with_runtime(rt, [](ThreadContext &, Pool &) { return mc::sched::release_world() ? MC_OK : MC_E_PERM; });
}

int32_t mc_runtime_stats(mc_runtime_t rt, mc_runtime_counters *stats) noexcept {
    if (stats == nullptr)
        return MC_E_INVAL;
    return with_runtime(rt, [=](ThreadContext &, Pool &pool) {
        mc_runtime_counters found;
        mc::inspect::read_stats(pool, &found);
        return write_stats(found, stats);
    });
}

int32_t mc_runtime_executor_stats(mc_runtime_t rt, uint32_t executor, mc_executor_counters *stats) noexcept {
    if (stats == nullptr)
        return MC_E_INVAL;
    return with_runtime(rt, [=](ThreadContext &, Pool &pool) {
        mc_executor_counters found;
        if (!mc::inspect::read_stats(pool, executor, &found))
            return static_cast<int32_t>(MC_E_NOENT);
        return write_stats(found, stats);
    });
}

// --- microthreads ---

int32_t mc_spawn(mc_runtime_t rt, mc_task_fn fn, void *user, const mc_spawn_options *options, mc_task_t *out) noexcept {
    if (fn == nullptr)
        return MC_E_INVAL;
    SpawnRequest request;
    const int32_t status = mc::abi::read_spawn_options(options, &request);
    if (status != MC_OK)
        return status;
    request.returning = fn;
    request.argument = user;
    request.handle = out;
    request.runtime = rt;
    return with_runtime(rt, [&](ThreadContext &thread, Pool &pool) {
        request.pool = &pool;
        return mc::sched::spawn(&thread, mc::sched::executor_in(pool, thread), request);
    });
}

int32_t mc_join(mc_task_t task, int64_t deadline_ns, int32_t *result) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = mc::abi::enter(&status);
    if (thread == nullptr)
        return status;
    if (deadline_ns != MC_NOW)
        (void)mc::sched::spend(thread);
    return mc::sched::join(task, deadline_ns, result, nullptr);
}

int32_t mc_detach(mc_task_t task) noexcept {
    int32_t status = MC_OK;
    return mc::abi::enter(&status) == nullptr ? status : mc::sched::detach(task);
}

namespace {

// The calling task may have gone to another thread.
int32_t cancellation_of_caller() noexcept {
    const ThreadContext *thread = mc::sched::current();
    if (thread == nullptr || thread->running->scope == nullptr)
        return MC_OK;
    return thread->running->scope->cancelled() ? MC_E_CANCELED : MC_OK;
}

} // namespace

int32_t mc_checkpoint(void) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = mc::sched::current();
    if (thread == nullptr)
        thread = mc::abi::enter(&status);
    if (thread == nullptr)
        return status;
    if (thread->executor != nullptr && thread->no_switch == 0)
        thread->executor->checkpoint();
    return cancellation_of_caller();
}

int32_t mc_yield(void) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = mc::abi::enter(&status);
    if (thread == nullptr)
        return status;
    mc::sched::yield(*thread);
    return cancellation_of_caller();
}

int32_t mc_sleep_until(int64_t deadline_ns) noexcept {
    if (deadline_ns <= mc::sync::now_ns())
        return mc_yield();
    int32_t status = MC_OK;
    ThreadContext *thread = mc::abi::enter(&status);
    if (thread != nullptr)
        status = mc::sched::sleep_until(*thread, deadline_ns, nullptr);
    return status == MC_E_TIMEDOUT ? MC_OK : status;
}

int32_t mc_sleep(int64_t ns) noexcept { return mc_sleep_until(mc_after(ns)); }

mc_task_t mc_task_self(void) noexcept {
    const ThreadContext *thread = mc::sched::current();
    return thread == nullptr ? 0 : mc::sched::handle_of(*thread->running);
}

int32_t mc_blocking_call(int32_t (*fn)(void *user), void *user, int32_t *result) noexcept {
    if (fn == nullptr)
        return MC_E_INVAL;
    return mc::abi::with_waiting_thread(MC_FOREVER, [=](ThreadContext &thread) -> int32_t {
        if (thread.no_switch != 0)
            return MC_E_CONTEXT;
        if (thread.executor == nullptr) {
            int32_t value = 0;
            if (!mc::base::call_guarded("a blocking call", [&] { value = fn(user); }))
                return MC_E_CRASHED;
            if (result != nullptr)
                *result = value;
            return MC_OK;
        }
        if (thread.executor->simulated())
            return mc::sched::call_in_simulation(thread, fn, user, result);
        mc::sched::BlockingPool *pool = mc::sched::pool_of(thread).blocking();
        return pool == nullptr ? MC_E_NOMEM : pool->call(thread, fn, user, MC_FOREVER, nullptr, result);
    });
}

int32_t mc_task_each_stack(mc_runtime_t rt, mc_stack_fn visit, void *user) noexcept {
    if (visit == nullptr)
        return MC_E_INVAL;
    return with_runtime(rt, [=](ThreadContext &, Pool &pool) {
        mc::sched::for_each_task([&](const Task &task) {
            mc::sched::StackInUse stack;
            if (mc::sched::stack_in_use(task, pool, &stack))
                (void)mc::base::call_guarded("a visitor of stacks",
                                             [&] { visit(user, mc::sched::handle_of(task), stack.low, stack.high); });
        });
        return MC_OK;
    });
}

int32_t mc_overflow_report(int32_t on) noexcept {
    if (mc::sched::forked())
        return MC_E_FORKED;
    ThreadContext *thread = mc::sched::current();
    const bool runs_fibers = thread != nullptr && thread->executor != nullptr;
    return mc::fiber::overflow_report(on != 0, runs_fibers ? &thread->executor->alt_stack() : nullptr);
}
