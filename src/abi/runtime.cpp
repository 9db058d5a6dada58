// mc/runtime.h
#include <mc/runtime.h>

#include "abi/call.hpp"
#include "abi/spawn_options.hpp"
#include "fiber/overflow.hpp"
#include "sched/executor.hpp"
#include "sched/spawn.hpp"
#include "sched/switch.hpp"

namespace {

using mc::sched::SpawnRequest;
using mc::sched::ThreadContext;

} // namespace

int32_t mc_spawn(mc_runtime_t rt, mc_task_fn fn, void *user, const mc_spawn_options *options, mc_task_t *out) noexcept {
    if (fn == nullptr)
        return MC_E_INVAL;
    SpawnRequest request;
    int32_t status = mc::abi::check_runtime(rt);
    if (status == MC_OK)
        status = mc::abi::read_spawn_options(options, &request);
    if (status != MC_OK)
        return status;
    ThreadContext *thread = mc::abi::enter(&status);
    if (thread == nullptr)
        return status;
    request.returning = fn;
    request.argument = user;
    request.handle = out;
    return mc::sched::spawn(thread, mc::sched::executor_for(*thread), request);
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

int32_t mc_overflow_report(int32_t on) noexcept {
    if (mc::sched::forked())
        return MC_E_FORKED;
    ThreadContext *thread = mc::sched::current();
    const bool runs_fibers = thread != nullptr && thread->executor != nullptr;
    return mc::fiber::overflow_report(on != 0, runs_fibers ? &thread->executor->alt_stack() : nullptr);
}
