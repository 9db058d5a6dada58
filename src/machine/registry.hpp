// The registries that all machines of a process share: dispatch thunks by their ids, drop functions by payload layouts, and
// (descriptor.hpp) descriptors.
//
// Callers: any thread at any time, also handlers and drop functions. To find something takes no lock and writes nothing: a
// step finds a thunk or two, and its drops, without meeting the other executors. To register takes a mutex.
//
// Registering again replaces, and cannot fail. Registering what was not there needs memory now and then: without it nothing
// is registered, the log says so (MC_E_NOMEM), and everything that was there still is; binding or dispatching that thunk
// then finds it missing, which is an error of its own. Nothing is ever forgotten otherwise.
//
// Ids and layouts of 0 and null functions are ignored, and so is a layout's bit that says who owns the box.
//
// Locks: the mutex is held around one put; the allocator is called under it, nothing else. It is taken around a fork, so a
// child finds the registries whole and open.
#pragma once

#include "base/sync.hpp"

#include <mc/machine.h>

#include <cstdint>

namespace mc::machine {

struct Thunk {
    mc_machine_dispatch_txn_fn fn; // null: there is none
    uint64_t next_tag;             // 0: the handler says it
};

Thunk find_thunk(uint64_t id) noexcept;
void register_thunk(uint64_t id, mc_machine_dispatch_txn_fn fn, uint64_t next_tag) noexcept;

mc_payload_drop_fn find_payload_drop(uint64_t layout) noexcept; // null: there is none
void register_payload_drop(uint64_t layout, mc_payload_drop_fn drop) noexcept;

// Held around what changes a registry, descriptors too. Inside, nothing is logged or called but the allocator.
class RegistryGuard {
public:
    RegistryGuard() noexcept;
    ~RegistryGuard();
    RegistryGuard(const RegistryGuard &) = delete;
    RegistryGuard &operator=(const RegistryGuard &) = delete;
};

} // namespace mc::machine
