// mcrt explore: runs a program under many seeds, or all schedules with few preemptions, until one fails; makes that one's schedule
// short, writes it down and draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mc::mcrt {

struct ExploreOptions {
    std::vector<std::string> program; // and its arguments
    uint64_t seeds = 1000;            // or, when all schedules are asked for, the most runs
    uint64_t first_seed = 1;
    std::string policy = "mix";
    std::optional<uint64_t> preemptions; // all schedules with so many at most, in place of a policy
    unsigned jobs = 1;
    double timeout_s = 10;
    std::optional<uint64_t> max_delay_ms;
    std::string oracles;
    std::string out = "mcrt-out";
    bool keep_output = false;
    bool shrink = true;
    uint64_t shrink_runs = 2000;
    double shrink_s = 30;
};

// The exit status. Throws Stop and Interrupted.
int explore(const ExploreOptions &options);

} // namespace mc::mcrt
