#include "machine/registry.hpp"

#include "base/log.hpp"
#include "machine/id_table.hpp"

#include <bit>
#include <cinttypes>
#include <pthread.h>

namespace mc::machine {
namespace {

constinit IdTable<> thunks; // the function, its next tag
constinit IdTable<> drops;  // the function, 0

constinit sync::mutex registry_mutex;
bool kept_around_forks = false; // guarded by registry_mutex

// Functions as words; null is 0.
template <class Function> uint64_t word_of(Function function) noexcept {
    static_assert(sizeof(Function) == sizeof(uint64_t));
    return std::bit_cast<uint64_t>(function);
}
template <class Function> Function function_of(uint64_t word) noexcept { return std::bit_cast<Function>(word); }

bool put(IdTable<> &table, uint64_t id, IdTable<>::Value value) noexcept {
    const RegistryGuard guard;
    return table.put(id, value);
}

} // namespace

RegistryGuard::RegistryGuard() noexcept {
    registry_mutex.lock();
    // A fork while another thread holds the mutex would leave it locked in the child for ever.
    if (!kept_around_forks)
        kept_around_forks = pthread_atfork([] { registry_mutex.lock(); }, [] { registry_mutex.unlock(); },
                                           [] { registry_mutex.unlock(); }) == 0;
}

RegistryGuard::~RegistryGuard() { registry_mutex.unlock(); }

Thunk find_thunk(uint64_t id) noexcept {
    const IdTable<>::Value found = thunks.find(id);
    return {function_of<mc_machine_dispatch_txn_fn>(found.first), found.second};
}

void register_thunk(uint64_t id, mc_machine_dispatch_txn_fn fn, uint64_t next_tag) noexcept {
    if (id == 0 || fn == nullptr)
        return;
    if (!put(thunks, id, {word_of(fn), next_tag}))
        base::log(MC_LOG_ERROR, MC_E_NOMEM, "thunk %" PRIu64 " is not registered", id);
}

mc_payload_drop_fn find_payload_drop(uint64_t layout) noexcept {
    return function_of<mc_payload_drop_fn>(drops.find(mc_payload_layout_id(layout)).first);
}

void register_payload_drop(uint64_t layout, mc_payload_drop_fn drop) noexcept {
    const uint64_t id = mc_payload_layout_id(layout);
    if (id == 0 || drop == nullptr)
        return;
    if (!put(drops, id, {word_of(drop), 0}))
        base::log(MC_LOG_ERROR, MC_E_NOMEM, "the drop function of layout %" PRIu64 " is not registered", id);
}

} // namespace mc::machine
