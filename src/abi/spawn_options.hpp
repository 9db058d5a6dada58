// Reading mc_spawn_options.
#pragma once

#include "abi/options.hpp"
#include "sched/spawn.hpp"

#include <mc/runtime.h>

namespace mc::abi {

inline int32_t read_spawn_options(const mc_spawn_options *options, sched::SpawnRequest *request) noexcept {
    if (options == nullptr)
        return MC_OK;
    mc_spawn_options known = MC_SPAWN_OPTIONS_INIT;
    const int32_t status = read_options(options, &known);
    if (status != MC_OK)
        return status;
    constexpr uint32_t all_flags = MC_SPAWN_PINNED | MC_SPAWN_LOW | MC_SPAWN_HIGH;
    if ((known.flags & ~all_flags) != 0 ||
        (known.flags & (MC_SPAWN_LOW | MC_SPAWN_HIGH)) == (MC_SPAWN_LOW | MC_SPAWN_HIGH))
        return MC_E_INVAL;
    request->pinned = (known.flags & MC_SPAWN_PINNED) != 0;
    if ((known.flags & MC_SPAWN_LOW) != 0)
        request->priority = sched::Priority::low;
    if ((known.flags & MC_SPAWN_HIGH) != 0)
        request->priority = sched::Priority::high;
    request->stack_size = known.stack_size;
    request->name = known.name;
    return MC_OK;
}

} // namespace mc::abi
