// Where two recordings part that should be of one run. Pure.
#pragma once

#include "mcrt/recording.hpp"

#include <optional>
#include <string>

namespace mc::mcrt {

// In words, of some lines, which call the runs by the names that they are given; none: they are the same. cut: one of them was ended
// from outside, so that it stops anywhere; what comes after that is no difference.
struct Compared {
    const Recording &recording;
    std::string name; // "the first run"
};
std::optional<std::string> difference(const Compared &one, const Compared &other, bool cut);

// What it means, in a line.
extern const char *const uncontrolled_source;

} // namespace mc::mcrt
