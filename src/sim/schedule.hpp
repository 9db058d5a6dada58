// A schedule: which choices of a run take something else than candidate 0. Written "17:2,45:1"; see mc/sim.h. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mc::sim {

struct Deviation {
    uint64_t choice;
    uint16_t taken; // 1 or more
    bool operator==(const Deviation &) const = default;
};

// In the order of the choices, each once.
using Schedule = std::vector<Deviation>;

// False: not a schedule. White space at the ends is no part of it; nothing is the empty one.
bool parse_schedule(const char *text, Schedule *out);
std::string format_schedule(const Schedule &schedule);

} // namespace mc::sim
