// How the command ends early: one of these is thrown, so that on the way out everything that was started is ended, and everything
// that was made for the time being is removed. main.cpp catches them.
#pragma once

#include <string>

namespace mc::mcrt {

// Exit statuses of `mcrt explore`; `mcrt draw` has the first and the third.
inline constexpr int status_fine = 0;
inline constexpr int status_failed = 1;            // a seed, or a schedule
inline constexpr int status_usage = 2;             // wrong arguments, or a program that can not be run
inline constexpr int status_not_deterministic = 3; // two runs that should have been the same one were not

// text: what is wrong, in one line or more, without the command's name.
struct Stop {
    int status;
    std::string text;
};

// By SIGINT or one of its like.
struct Interrupted {
    int signal;
};

} // namespace mc::mcrt
