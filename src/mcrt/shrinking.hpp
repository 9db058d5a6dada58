// Makes the schedule of a failure short by running it: what the shrinker asks for, within a number of runs and a time.
#pragma once

#include "mcrt/search.hpp"

namespace mc::mcrt {

struct Shrunk {
    Found found;       // a run by its schedule alone
    bool fails = true; // in the same way
    uint64_t runs = 0;
    double took_s = 0;
    bool complete = true; // runs and time were enough for all that the shrinker tries
};

Shrunk shrink(Runner &runner, const ExploreOptions &options, const Found &found);

} // namespace mc::mcrt
