#include "sched/task_state.hpp"

#include "base/alloc.hpp"
#include "base/guarded.hpp"
#include "sched/condition.hpp"
#include "sched/group.hpp"
#include "sched/mutex.hpp"
#include "sched/scope.hpp"
#include "sched/semaphore.hpp"

#include <algorithm>
#include <utility>

namespace mc::sched {

// A task has few: they are looked for one after another.
struct Locals {
    struct Slot {
        uint64_t key;
        void *value;
    };
    Slot *slots = nullptr;
    uint32_t count = 0;
    uint32_t capacity = 0;
};

namespace {

constexpr int drop_rounds = 4; // as PTHREAD_DESTRUCTOR_ITERATIONS: a drop may set values anew

Locals::Slot *find(const Locals *locals, uint64_t key) noexcept {
    if (locals == nullptr)
        return nullptr;
    Locals::Slot *end = locals->slots + locals->count;
    Locals::Slot *slot =
        std::find_if(locals->slots, end, [=](const Locals::Slot &candidate) { return candidate.key == key; });
    return slot == end ? nullptr : slot;
}

// Room for one more. A slot whose key is gone is used again.
Locals::Slot *add_slot(Task &task) noexcept {
    if (task.locals == nullptr)
        task.locals = base::create<Locals>();
    Locals *locals = task.locals;
    if (locals == nullptr)
        return nullptr;
    for (uint32_t i = 0; i < locals->count; ++i)
        if (base::resolve_handle(slab_of<LocalKey>(), LocalKey::kind, locals->slots[i].key) == nullptr)
            return &locals->slots[i];
    if (locals->count == locals->capacity) {
        const uint32_t capacity = locals->capacity == 0 ? 4 : 2 * locals->capacity;
        auto *slots = base::allocate_array<Locals::Slot>(capacity);
        if (slots == nullptr)
            return nullptr;
        std::copy(locals->slots, locals->slots + locals->count, slots);
        base::deallocate_array(locals->slots, locals->capacity);
        locals->slots = slots;
        locals->capacity = capacity;
    }
    return &locals->slots[locals->count++];
}

void drop_value(Locals::Slot &slot) noexcept {
    void *value = std::exchange(slot.value, nullptr);
    if (value == nullptr)
        return;
    LocalKey *key = lock_primitive<LocalKey>(slot.key);
    if (key == nullptr)
        return;
    void (*drop)(void *) = key->drop;
    key->lock.unlock();
    if (drop != nullptr)
        (void)base::call_guarded("a drop of task-local storage", [&] { drop(value); });
}

// A drop may set values, and with that move the slots.
void drop_locals(Task &task) noexcept {
    for (int round = 0; round < drop_rounds; ++round)
        for (uint32_t i = 0; i < task.locals->count; ++i)
            drop_value(task.locals->slots[i]);
    Locals *locals = std::exchange(task.locals, nullptr);
    base::deallocate_array(locals->slots, locals->capacity);
    base::destroy(locals);
}

} // namespace

int32_t create_local(void (*drop)(void *), uint64_t *out) noexcept {
    return create_primitive<LocalKey>(out, [=](LocalKey &key) { key.drop = drop; });
}

int32_t delete_local(uint64_t handle) noexcept {
    LocalKey *key = lock_primitive<LocalKey>(handle);
    if (key == nullptr)
        return MC_E_STALE;
    const bool reusable = base::retire_handle(key);
    key->lock.unlock();
    if (reusable)
        slab_of<LocalKey>().release(key);
    return MC_OK;
}

int32_t set_local(Task &task, uint64_t handle, void *value) noexcept {
    if (base::resolve_handle(slab_of<LocalKey>(), LocalKey::kind, handle) == nullptr)
        return MC_E_STALE;
    Locals::Slot *slot = find(task.locals, handle);
    if (slot == nullptr && value == nullptr)
        return MC_OK;
    if (slot == nullptr)
        slot = add_slot(task);
    if (slot == nullptr)
        return MC_E_NOMEM;
    *slot = {handle, value};
    return MC_OK;
}

void *get_local(const Task &task, uint64_t handle) noexcept {
    const Locals::Slot *slot = find(task.locals, handle);
    if (slot == nullptr || base::resolve_handle(slab_of<LocalKey>(), LocalKey::kind, handle) == nullptr)
        return nullptr;
    return slot->value;
}

void end_task_state(Task &task) noexcept {
    if (task.locals != nullptr)
        drop_locals(task);
    Mutex::release_held(task);
    leave_all_scopes(task);
}

void leave_states_behind() noexcept {
    for_each_task([](Task &task) {
        task.scope = nullptr;
        task.entries = nullptr;
        task.group = nullptr;
        task.locals = nullptr;
        task.held.store(nullptr, sync::relaxed);
        task.idle_service.store(0, sync::relaxed);
        task.quiescence_of.store(nullptr, sync::relaxed);
    });
    leave_behind(scope_slab());
    leave_behind(mutex_slab());
    leave_behind<Group>();
    leave_behind<Semaphore>();
    leave_behind<WaitGroup>();
    leave_behind<Once>();
    leave_behind<Condition>();
    leave_behind<RwLock>();
    leave_behind<LocalKey>();
}

} // namespace mc::sched
