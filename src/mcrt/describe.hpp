// mcrt descriptor: shows a machine's descriptor, and makes one.
#pragma once

#include <string>

namespace mc::mcrt {

struct ShowOptions {
    std::string file; // a blob, or JSON
    bool json = false;
    bool dot = false;
};

struct BuildOptions {
    std::string file; // JSON
    std::string out;  // "-" is standard output; empty: beside it, with .mchd
    bool c = false;   // as C source
};

// The exit status. Throws Stop.
int show_descriptor(const ShowOptions &options);
int build_descriptor(const BuildOptions &options);

} // namespace mc::mcrt
