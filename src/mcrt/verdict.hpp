// What is to be said of a run: that it was fine, or how it failed; and whether two failures are the same one. Pure.
#pragma once

#include <mc/sim.h>

#include <optional>
#include <string>
#include <string_view>

namespace mc::mcrt {

// How a process ended.
struct Ending {
    bool signalled = false;
    int code = 0; // its status, or the signal
    bool timed_out = false;
};

enum class Fault { none, exited, killed, failed, deadlock, oracle, timed_out };

struct Verdict {
    Fault fault = Fault::none;
    int code = 0;
    std::string message; // what is recorded; or what the program said of it, if it is known how to find that

    bool failed() const { return fault != Fault::none; }
};

Verdict judge(const Ending &ending, const std::optional<mc_sim_recording> &header, std::string_view output);

// Numbers in messages do not count, nor does the status with which a program ends that has reported what is wrong.
bool same_failure(const Verdict &one, const Verdict &other);

// "mc_sim_fail: the balance is below 0", "killed by signal 11 (Segmentation fault)".
std::string in_words(const Verdict &verdict);
// One word, for machines: "failed", "deadlock", ...
const char *name_of(Fault fault);

} // namespace mc::mcrt
