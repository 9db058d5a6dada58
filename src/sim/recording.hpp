// What a run leaves behind: a mapped file with a header, the choices and the events (mc/sim.h has the layout), so that it is there
// whatever the program's end. The simulated thread writes; nobody reads before the process is gone.
#pragma once

#include <mc/sim.h>

#include <cstdint>

namespace mc::sim {

class Recording {
public:
    // Makes the file, or empties it, and keeps it locked: a program that this one starts, with the same environment, does not take it.
    // False: it can not be made, or is another process's; nothing is recorded then.
    bool open(const char *path) noexcept;

    // Null when nothing is recorded.
    mc_sim_recording *header() noexcept { return header_; }
    void add(const mc_sim_choice &choice) noexcept {
        if (header_ != nullptr && header_->choices < header_->choices_room)
            choices_[header_->choices] = choice;
        if (header_ != nullptr)
            ++header_->choices;
    }
    void add(const mc_sim_event &event) noexcept {
        if (header_ != nullptr && header_->events < header_->events_room)
            events_[header_->events] = event;
        if (header_ != nullptr)
            ++header_->events;
    }
    // In a forked child: the record is its parent's.
    void forget() noexcept;

private:
    mc_sim_recording *header_ = nullptr;
    mc_sim_choice *choices_ = nullptr;
    mc_sim_event *events_ = nullptr;
    int file_ = -1;
};

} // namespace mc::sim
