// What the environment says of a simulation; mc/sim.h and docs/simulation.md tell the variables.
#pragma once

#include "sim/simulation.hpp"

#include <string>

namespace mc::sim {

// Fills in what the environment has, of MCRT_POLICY, MCRT_SCHEDULE, MCRT_RECORD, MCRT_ORACLES and MCRT_SIM_DELAY_MS. False, with a line
// that says why: a value that is not understood. get: getenv, or a test's.
using GetVariable = const char *(*)(const char *name);
bool read_environment(GetVariable get, Settings *settings, std::string *why);

// Also MCRT_SEED. *seeded: there is one; without, nothing else is looked at.
bool read_seed(GetVariable get, Settings *settings, bool *seeded, std::string *why);

} // namespace mc::sim
