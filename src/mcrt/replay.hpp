// mcrt replay: runs a failure again that `mcrt explore` wrote down, in the foreground, or under a debugger.
#pragma once

#include <string>

namespace mc::mcrt {

struct ReplayOptions {
    std::string failure; // its file
    std::string record;  // where to record it; empty: for the comparison only
    bool gdb = false;
    bool schedule_only = false; // also where the file says that only the seed's policy fails so
};

// The program's status; 128 and the signal's number when one ended it. Throws Stop.
int replay(const ReplayOptions &options);

} // namespace mc::mcrt
