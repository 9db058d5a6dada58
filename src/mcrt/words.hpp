// The events of a recording in words. Pure.
#pragma once

#include "mcrt/names.hpp"

#include <string>

namespace mc::mcrt {

// What its task does, without the task: "sends to channel 3 "jobs" -> worker".
std::string words_of(const mc_sim_event &event, const Names &names);
// With it: "main sends to ...".
std::string sentence_of(const mc_sim_event &event, const Names &names);

// "waits to receive from", the object left out.
const char *wait_words(int64_t wait);

// Virtual: "1.0000020", in seconds.
std::string time_words(int64_t now_ns);

} // namespace mc::mcrt
