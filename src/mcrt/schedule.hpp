// Schedules (mc/sim.h): which choices of a run took something else than candidate 0. Pure.
#pragma once

#include <mc/sim.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mc::mcrt {

struct Deviation {
    uint64_t choice;
    uint16_t taken; // 1 or more
    bool operator==(const Deviation &) const = default;
};

// In the order of the choices.
using Schedule = std::vector<Deviation>;
using Choices = std::vector<mc_sim_choice>;

Schedule schedule_of(const Choices &choices);
std::string format(const Schedule &schedule); // "17:2,45:1"

// Whether it costs a preemption to take that candidate: another than the task that runs and could go on, or time's jump past it.
inline bool preempts(const mc_sim_choice &choice, uint32_t taken) {
    return choice.kind == MC_SIM_CHOICE_TASK && (choice.flags & MC_SIM_CHOICE_RUNNING) != 0 && taken != 0;
}
uint64_t preemptions_of(const Choices &choices);

bool same(const mc_sim_choice &one, const mc_sim_choice &other);
bool same(const Choices &one, const Choices &other);

// Whether the event is a deviation's doing: another task goes on though the one that ran could have, or time passes those that could
// go on. Of a choice that is not recorded nothing more is known than that.
bool deviates(const mc_sim_event &event, const Choices &choices);

} // namespace mc::mcrt
