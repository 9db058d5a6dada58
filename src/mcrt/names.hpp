// What tasks, channels and mutexes of a recording are called: by the last name that each was given, and by number where that says
// not which. Pure.
#pragma once

#include "mcrt/recording.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>

namespace mc::mcrt {

class Names {
public:
    explicit Names(const Recording &recording);

    // "worker"; "worker#2" when there are several; "task#2" without a name; "main"; "the clock".
    std::string task(uint64_t id) const;
    // The name alone, for one who shows the number elsewhere.
    std::string bare(uint64_t id) const;
    // "channel 3 "jobs"", "timer 4", "mutex 5".
    std::string object(uint64_t number) const;
    // "jobs", "channel 3".
    std::string short_object(uint64_t number) const;

private:
    struct Object {
        const char *kind = "object";
        std::string name;
    };

    void learn(const mc_sim_event &event);

    std::unordered_map<uint64_t, std::string> tasks_;
    std::unordered_map<std::string, uint32_t> called_; // how many tasks have it
    std::unordered_map<uint64_t, Object> objects_;
};

} // namespace mc::mcrt
