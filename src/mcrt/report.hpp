// What is said of a failure: on standard output, and in the files of its directory.
#pragma once

#include "mcrt/failure.hpp"
#include "mcrt/recording.hpp"

#include <string>

namespace mc::mcrt {

// failure.json, failure.txt, failure.svg, and failure.schedule when it is too long for a command line; failure->schedule_file says so
// then. False: one of them could not be written, which is said on standard error; those after it are left.
bool write_down(Failure *failure, const Recording &recording, const std::string &directory);

void print_output(const std::string &output);
// directory: where the files are; empty: there are none.
void print_sequence(const Failure &failure, const Recording &recording, const std::string &directory);
void print_commands(const Failure &failure, const std::string &directory);

} // namespace mc::mcrt
