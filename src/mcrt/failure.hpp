// A failure that was found: what `mcrt explore` writes down and `mcrt replay` reads, as JSON.
#pragma once

#include "mcrt/program.hpp"
#include "mcrt/verdict.hpp"

#include <cstdint>
#include <string>

namespace mc::mcrt {

struct Failure {
    Program program;
    std::string directory; // where it ran
    uint64_t seed = 0;
    std::string policy;        // that found it
    std::string schedule;      // as text
    std::string schedule_file; // that has it too, when it is too long for a command line; not written down
    bool by_schedule = false;  // seed and schedule alone fail so: checked. Else seed and policy are needed
    uint64_t signature = 0;    // of the run that is to be repeated
    Verdict verdict;           // likewise
    uint64_t choices = 0;      // likewise: how many there are
    uint64_t preemptions = 0;
    double limit_s = 0; // that the search gave each run
    std::string output; // likewise, shortened
};

// What a run of it needs in the environment. record: a file, or empty.
std::map<std::string, std::string> variables_of(const Failure &failure, bool by_schedule, const std::string &record);
// The simulation's part of them as a line for a shell: "MCRT_SEED=1 MCRT_SCHEDULE=4:1 ./app".
std::string command_of(const Failure &failure);

std::string to_json(const Failure &failure);
// Throws Stop: path can not be read, or is none.
Failure read_failure(const std::string &path);

} // namespace mc::mcrt
