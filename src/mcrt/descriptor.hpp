// A machine's descriptor, taken apart: what its blob says, and what a JSON file may say beside. Pure.
#pragma once

#include <mc/machine.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mc::mcrt {

struct Descriptor {
    struct State {
        uint64_t tag = 0;
        uint64_t type_def = 0;
        uint64_t layout = 0;
        std::string name;
    };
    struct Event {
        uint64_t kind = 0;
        uint64_t layout = 0;
        bool two_names = false;
        std::string name;
        std::string second_name;
    };
    using Row = mc_machine_dispatch_row_t;
    struct Role {
        std::string path;
        uint64_t def = 0;
    };
    // No blob knows these.
    struct Thunk {
        uint64_t id = 0;
        std::string name;
        std::optional<uint64_t> next; // the tag of the state that it leads to
        bool stays = false;           // it leaves the machine in its state
    };

    std::string name; // any bytes, as all names here
    std::vector<State> states;
    std::vector<Event> events;
    std::vector<Row> rows;
    std::vector<Role> roles;
    std::vector<Thunk> thunks;
};

// The first with that number, or null.
const Descriptor::State *find_state(const Descriptor &descriptor, uint64_t tag);
const Descriptor::Event *find_event(const Descriptor &descriptor, uint64_t kind);
const Descriptor::Thunk *find_thunk(const Descriptor &descriptor, uint64_t id);

// What a row calls: its state's own thunk, or else the fallback; 0: nothing.
uint64_t thunk_of(const Descriptor::Row &row);

// As they are shown: clean (text.hpp), and never empty.
std::string shown_number(uint64_t number); // hexadecimal where that is shorter to read
std::string shown_state(const Descriptor &descriptor, uint64_t tag);
std::string shown_event(const Descriptor &descriptor, uint64_t kind);
std::string shown_event(const Descriptor::Event &event);
std::string shown_thunk(const Descriptor &descriptor, uint64_t id);

// What its compiler can hardly have meant.
struct Doubt {
    bool grave; // something is there twice: only the first counts
    std::string text;
};
std::vector<Doubt> doubts_of(const Descriptor &descriptor);

// A blob, read by the library; throws Stop, with `path`, when it is none. And made.
Descriptor from_blob(const std::string &bytes, const std::string &path);
std::string to_blob(const Descriptor &descriptor);

} // namespace mc::mcrt
