#include "sched/group.hpp"

#include "sched/pool.hpp"

namespace mc::sched {

int32_t create_group(ThreadContext &thread, Pool &pool, uint64_t runtime, int64_t deadline_ns, uint64_t *out) noexcept {
    Scope *scope = Scope::create(thread.running->scope, deadline_ns);
    if (scope == nullptr)
        return MC_E_NOMEM;
    const int32_t status = create_primitive<Group>(out, [&](Group &group) {
        group.children = 0;
        group.first_error = MC_OK;
        group.scope = scope;
        group.pool = &pool;
        group.runtime = runtime;
    });
    if (status != MC_OK)
        (void)Scope::destroy(scope);
    return status;
}

int32_t spawn_in_group(ThreadContext &thread, uint64_t handle, SpawnRequest &request) noexcept {
    Group *group = lock_primitive<Group>(handle);
    if (group == nullptr)
        return MC_E_STALE;
    ++group->children; // from here on the group stays
    group->lock.unlock();
    request.group = group;
    request.runtime = group->runtime;
    request.pool = group->pool;
    const int32_t status = spawn(&thread, executor_in(*group->pool, thread), request);
    if (status != MC_OK)
        child_ended(*group, MC_OK);
    return status;
}

int32_t cancel_group(uint64_t handle, int32_t cause) noexcept {
    if (cause > MC_OK)
        return MC_E_INVAL;
    Group *group = lock_primitive<Group>(handle);
    if (group == nullptr)
        return MC_E_STALE;
    group->scope->cancel_from(group->lock, cause == MC_OK ? MC_E_CANCELED : cause);
    return MC_OK;
}

int32_t wait_for_children(ThreadContext &thread, uint64_t handle, int64_t deadline_ns, int32_t *first_error) noexcept {
    Group *group = lock_primitive<Group>(handle);
    if (group == nullptr)
        return MC_E_STALE;
    if (thread.running->group == group) { // it waits for itself
        group->lock.unlock();
        return MC_E_DEADLOCK;
    }
    int32_t error = group->first_error;
    if (group->children != 0) {
        Waiting waiting;
        const int32_t status = wait_for(thread, *group, waiting, deadline_ns, [](Group &, WaitList::Taken &) {});
        if (status != MC_OK)
            return status;
        error = static_cast<int32_t>(static_cast<uint32_t>(waiting.asks)); // as of when the last child ended
    } else {
        group->lock.unlock();
    }
    if (first_error != nullptr)
        *first_error = error;
    return MC_OK;
}

void child_ended(Group &group, int32_t result) noexcept {
    Scope *cancelled = nullptr;
    if (result < MC_OK) {
        base::SpinGuard guard(group.lock);
        if (group.first_error == MC_OK) {
            group.first_error = result;
            cancelled = group.scope;
        }
    }
    if (cancelled != nullptr)
        cancelled->cancel(result); // we still count: the scope stays
    WaitList::Taken taken;
    group.lock.lock();
    if (--group.children == 0)
        while (Waiting *waiting = group.waiting.take_first(MC_OK)) {
            waiting->asks = static_cast<uint32_t>(group.first_error);
            taken.push_back(waiting);
        }
    group.lock.unlock();
    WaitList::wake_all(taken);
}

int32_t destroy_group(uint64_t handle) noexcept {
    Group *group = lock_primitive<Group>(handle);
    if (group == nullptr)
        return MC_E_STALE;
    // The scope refuses when a child has left one below it.
    if (group->children != 0 || !group->waiting.empty() || !Scope::destroy(group->scope)) {
        group->lock.unlock();
        return MC_E_BUSY;
    }
    const bool reusable = base::retire_handle(group);
    group->lock.unlock();
    if (reusable)
        slab_of<Group>().release(group);
    return MC_OK;
}

} // namespace mc::sched
