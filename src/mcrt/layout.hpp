// Where everything of a picture lies: lanes for tasks, rows for events, and what each lane shows when. Pure.
#pragma once

#include "mcrt/recording.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace mc::mcrt {

struct Span {
    double from;
    double to;
};

struct Hold {
    uint64_t mutex;
    Span span;
    size_t depth; // how many others the task held
};

struct Lane {
    Lane(uint64_t whose, double where, Span all) : task(whose), x(where), life(all) {}

    uint64_t task;
    double x;
    Span life;
    bool begins = false; // in the picture, not before it
    bool ends = false;
    std::vector<Span> runs;
    std::vector<Span> waits;
    std::vector<Hold> holds;
};

struct Row {
    size_t event; // its index in the recording
    double y;     // of its arrow, and of the middle of its words
};

struct Layout {
    std::vector<Lane> lanes;                   // from left to right
    std::unordered_map<uint64_t, size_t> lane; // of a task
    std::vector<Row> rows;
    double spacing = 0; // of lanes
    double top = 0;
    double bottom = 0;
    double left = 0;
    double right = 0;
    size_t events_before = 0; // that are left out, of the beginning
    size_t tasks_left_out = 0;
    uint64_t last_task = MC_SIM_CLOCK; // who ran at the end
};

Layout lay_out(const Recording &recording);

} // namespace mc::mcrt
