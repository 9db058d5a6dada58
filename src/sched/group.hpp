// A group: microthreads that belong together. They run under the group's scope, which is below the scope of the task that made
// the group; the first that ends with an error cancels the others; the group can not end before them. (Structured
// concurrency: Trio's nurseries, Go's errgroup.)
//
// Any thread. A child may spawn further children.
#pragma once

#include "sched/primitive.hpp"
#include "sched/scope.hpp"
#include "sched/spawn.hpp"

namespace mc::sched {

class Group : public Primitive<Group> {
public:
    static constexpr base::HandleKind kind = base::HandleKind::group;
    static constexpr WaitKind wait_kind = WaitKind::group;

    // guarded by lock
    uint64_t children = 0;
    int32_t first_error = MC_OK;
    // immutable while it is in use
    Scope *scope = nullptr;
    Pool *pool = nullptr; // where its children run
    uint64_t runtime = 0; // of which it was when the group was made
};

// runtime: the pool's handle, by which it was found.
int32_t create_group(ThreadContext &thread, Pool &pool, uint64_t runtime, int64_t deadline_ns, uint64_t *out) noexcept;
// As spawn; the group's scope and the group are set here.
int32_t spawn_in_group(ThreadContext &thread, uint64_t handle, SpawnRequest &request) noexcept;
int32_t cancel_group(uint64_t handle, int32_t cause) noexcept;
int32_t wait_for_children(ThreadContext &thread, uint64_t handle, int64_t deadline_ns, int32_t *first_error) noexcept;
int32_t destroy_group(uint64_t handle) noexcept;

// By a child, on its own stack, with nothing left of it but its return.
void child_ended(Group &group, int32_t result) noexcept;

} // namespace mc::sched
