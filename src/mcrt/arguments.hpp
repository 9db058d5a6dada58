// The command line. The only place that knows CLI11.
#pragma once

#include "mcrt/describe.hpp"
#include "mcrt/draw.hpp"
#include "mcrt/explore.hpp"
#include "mcrt/replay.hpp"

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mc::mcrt {

using Arguments = std::variant<ExploreOptions, ReplayOptions, DrawOptions, ShowOptions, BuildOptions>;

// None: help or a complaint has been printed, and *status is the exit status.
std::optional<Arguments> read_arguments(int argc, const char *const *argv, int *status);

// What `mcrt explore` was called with, told apart. Its own options stand before the program or after it; what stands after it and is
// none of them, and everything behind "--", is the program's. Pure.
struct Split {
    std::vector<std::string> own;
    std::vector<std::string> program; // and its arguments
};
// values: how many the option of that name takes, 0 or 1; -1: there is none.
Split split(const std::vector<std::string> &arguments, const std::function<int(const std::string &name)> &values);

} // namespace mc::mcrt
