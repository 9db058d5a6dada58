// The message sequence of a recording as text: a line for each event that matters, and how it ended. Pure.
#pragma once

#include "mcrt/recording.hpp"

#include <string>
#include <vector>

namespace mc::mcrt {

// Columns: event, time, task, what; a star before each deviation (schedule.hpp), with the number of its choice. The first line names
// the columns. The last say how the run failed, if it did. At most so many events, the last ones.
std::vector<std::string> sequence_of(const Recording &recording, const std::string &wrong, size_t most = SIZE_MAX);

} // namespace mc::mcrt
