// mc/epoch.h
#include <mc/epoch.h>

#include "abi/call.hpp"
#include "base/epoch.hpp"
#include "base/guarded.hpp"
#include "sched/executor.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace {

using mc::base::EpochNode;
using mc::base::EpochStall;
using mc::sched::ThreadContext;

// What an mc_epoch_node holds while it is ours.
struct Node : EpochNode {
    void (*given)(void *, mc_epoch_node *);
    void *user;
};
static_assert(sizeof(Node) <= sizeof(mc_epoch_node) && alignof(Node) == alignof(void *));
static_assert(sizeof(mc_epoch_node) == 32 && sizeof(mc_epoch_stall) == 56);
static_assert(sizeof EpochStall{}.name == sizeof mc_epoch_stall{}.name);
static_assert(static_cast<int>(EpochStall::Kind::reader) == MC_EPOCH_STALL_EXECUTOR &&
              static_cast<int>(EpochStall::Kind::pin) == MC_EPOCH_STALL_PIN &&
              static_cast<int>(EpochStall::Kind::callback) == MC_EPOCH_STALL_CALLBACK);

void free_node(EpochNode *node) noexcept {
    const Node ours = *static_cast<Node *>(node); // its memory goes with the call
    mc::base::call_guarded("what frees an epoch's node",
                           [&] { ours.given(ours.user, reinterpret_cast<mc_epoch_node *>(node)); });
}

// The context, or null with the code in *status.
ThreadContext *enter(mc_runtime_t rt, int32_t *status) noexcept {
    ThreadContext *thread = mc::abi::enter(status);
    if (thread == nullptr || mc::sched::find_pool(*thread, rt) != nullptr)
        return thread;
    *status = MC_E_STALE;
    return nullptr;
}

} // namespace

int32_t mc_epoch_pin(mc_runtime_t rt) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    if (thread != nullptr)
        mc::sched::begin_reading(*thread);
    return status;
}

int32_t mc_epoch_unpin(mc_runtime_t rt) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    return thread == nullptr ? status : mc::sched::end_reading(*thread) ? MC_OK : MC_E_INVAL;
}

int32_t mc_epoch_retire(mc_runtime_t rt, mc_epoch_node *node, void (*free)(void *user, mc_epoch_node *node),
                        void *user) noexcept {
    if (node == nullptr || free == nullptr)
        return MC_E_INVAL;
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    if (thread == nullptr)
        return status;
    auto *ours = new (node) Node();
    ours->given = free;
    ours->user = user;
    mc::sched::retire(*thread, ours, free_node);
    return MC_OK;
}

int32_t mc_epoch_advance(mc_runtime_t rt) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    return thread == nullptr ? status : mc::sched::advance_epoch(*thread);
}

int32_t mc_epoch_barrier(mc_runtime_t rt, int64_t deadline_ns) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    return thread == nullptr ? status : mc::sched::epoch_barrier(*thread, deadline_ns);
}

int32_t mc_epoch_set_hook(mc_runtime_t rt, void (*hook)(void *user, uint64_t epoch), void *user) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    if (thread != nullptr)
        mc::sched::reclaimer_for(*thread).domain().set_advance_hook(hook, user);
    return status;
}

int32_t mc_epoch_each_stall(mc_runtime_t rt, int64_t min_age_ns, void (*each)(void *user, const mc_epoch_stall *stall),
                            void *user) noexcept {
    if (each == nullptr)
        return MC_E_INVAL;
    int32_t status = MC_OK;
    ThreadContext *thread = enter(rt, &status);
    if (thread == nullptr)
        return status;
    constexpr uint32_t most = 8; // a microthread's stack may be small
    EpochStall stalls[most];
    const uint32_t count = mc::sched::reclaimer_for(*thread).domain().stalled(min_age_ns, stalls, most);
    for (uint32_t i = 0; i < count; ++i) {
        mc_epoch_stall stall{};
        stall.struct_size = sizeof stall;
        stall.kind = static_cast<uint32_t>(stalls[i].kind);
        stall.epoch = stalls[i].epoch;
        stall.age_ns = stalls[i].age_ns;
        std::memcpy(stall.name, stalls[i].name, sizeof stall.name);
        mc::base::call_guarded("what looks at stalls", [&] { each(user, &stall); });
    }
    return MC_OK;
}
