// A recording as a picture: SVG by itself, a lane for each task, time downwards. Pure.
#pragma once

#include "mcrt/recording.hpp"

#include <string>

namespace mc::mcrt {

// wrong: how the run failed, in words; empty: it did not.
std::string picture_of(const Recording &recording, const std::string &wrong);

} // namespace mc::mcrt
