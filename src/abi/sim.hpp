// The rest of the surface on simulation: see sim.cpp.
#pragma once

#include <cstdint>

namespace mc::abi {

// MC_OK also when the process is simulated already. MC_E_BUSY: the library has been used. MC_E_INVAL: the environment.
int32_t begin_simulation(uint64_t seed) noexcept;

} // namespace mc::abi
