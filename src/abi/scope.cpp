// mc/scope.h
#include <mc/scope.h>

#include "abi/call.hpp"
#include "abi/spawn_options.hpp"
#include "sched/group.hpp"
#include "sched/task_state.hpp"

#include <mc/runtime.h>

namespace {

using mc::abi::with_task;
using mc::sched::Task;
using mc::sched::ThreadContext;

} // namespace

int32_t mc_scope_create(int64_t deadline_ns, mc_scope_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_task([=](Task &task) { return mc::sched::create_scope(task, deadline_ns, out); });
}

int32_t mc_scope_enter(mc_scope_t scope) noexcept {
    return with_task([=](Task &task) { return mc::sched::enter_scope(task, scope); });
}

int32_t mc_scope_leave(void) noexcept {
    return with_task([](Task &task) { return mc::sched::leave_scope(task); });
}

mc_scope_t mc_scope_self(void) noexcept {
    const ThreadContext *thread = mc::sched::current();
    return thread == nullptr ? 0 : mc::sched::current_scope(*thread->running);
}

int32_t mc_scope_cancel(mc_scope_t scope, int32_t cause) noexcept {
    return with_task([=](Task &) { return mc::sched::cancel_scope(scope, cause); });
}

int32_t mc_scope_cause(mc_scope_t scope, int32_t *cause) noexcept {
    if (cause == nullptr)
        return MC_E_INVAL;
    return with_task([=](Task &) { return mc::sched::scope_cause(scope, cause); });
}

int32_t mc_scope_destroy(mc_scope_t scope) noexcept {
    return with_task([=](Task &) { return mc::sched::destroy_scope(scope); });
}

int32_t mc_group_create(mc_runtime_t rt, int64_t deadline_ns, mc_group_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return mc::abi::with_runtime(rt, [=](ThreadContext &thread, mc::sched::Pool &pool) {
        return mc::sched::create_group(thread, pool, rt != 0 ? rt : pool.handle(), deadline_ns, out);
    });
}

int32_t mc_group_spawn(mc_group_t group, mc_task_fn fn, void *user, const mc_spawn_options *options) noexcept {
    if (fn == nullptr)
        return MC_E_INVAL;
    mc::sched::SpawnRequest request;
    int32_t status = mc::abi::read_spawn_options(options, &request);
    ThreadContext *thread = status == MC_OK ? mc::abi::enter(&status) : nullptr;
    if (thread == nullptr)
        return status;
    request.returning = fn;
    request.argument = user;
    return mc::sched::spawn_in_group(*thread, group, request);
}

int32_t mc_group_cancel(mc_group_t group, int32_t cause) noexcept {
    return with_task([=](Task &) { return mc::sched::cancel_group(group, cause); });
}

int32_t mc_group_wait(mc_group_t group, int64_t deadline_ns, int32_t *first_error) noexcept {
    return mc::abi::with_waiting_thread(deadline_ns, [=](ThreadContext &thread) {
        return mc::sched::wait_for_children(thread, group, deadline_ns, first_error);
    });
}

int32_t mc_group_destroy(mc_group_t group) noexcept {
    return with_task([=](Task &) { return mc::sched::destroy_group(group); });
}

int32_t mc_local_create(void (*drop)(void *value), mc_local_t *out) noexcept {
    if (out == nullptr)
        return MC_E_INVAL;
    return with_task([=](Task &) { return mc::sched::create_local(drop, out); });
}

void *mc_local_get(mc_local_t key) noexcept {
    const ThreadContext *thread = mc::sched::current();
    return thread == nullptr ? nullptr : mc::sched::get_local(*thread->running, key);
}

int32_t mc_local_set(mc_local_t key, void *value) noexcept {
    return with_task([=](Task &task) { return mc::sched::set_local(task, key, value); });
}

int32_t mc_local_destroy(mc_local_t key) noexcept {
    return with_task([=](Task &) { return mc::sched::delete_local(key); });
}
