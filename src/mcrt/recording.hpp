// A recording (mc/sim.h), read into memory. The process that wrote it is gone, or stopped writing in the middle of anything: nothing
// in it is believed before it has been looked at.
#pragma once

#include <mc/sim.h>

#include <optional>
#include <string>
#include <vector>

namespace mc::mcrt {

struct Recording {
    mc_sim_recording header{};
    std::vector<mc_sim_choice> choices; // those that are in the file
    std::vector<mc_sim_event> events;

    bool cut() const { return header.choices > choices.size(); } // there were more choices than the file has room for
};

// None: there is no file, or nothing of a recording in it. Texts in it end with 0, and the places and rooms lie in the file.
std::optional<mc_sim_recording> read_header(const std::string &path);

// *why, if there is none: in words, the path included. Events are many more bytes than choices, and not always wanted.
enum class Events { wanted, left };
std::optional<Recording> read_recording(const std::string &path, std::string *why, Events events = Events::wanted);

} // namespace mc::mcrt
