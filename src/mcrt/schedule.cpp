#include "mcrt/schedule.hpp"

#include <algorithm>

namespace mc::mcrt {

Schedule schedule_of(const Choices &choices) {
    Schedule schedule;
    for (size_t i = 0; i < choices.size(); ++i)
        if (choices[i].taken != 0)
            schedule.push_back(Deviation{i, choices[i].taken});
    return schedule;
}

std::string format(const Schedule &schedule) {
    std::string text;
    for (const Deviation &one : schedule) {
        text += text.empty() ? "" : ",";
        text += std::to_string(one.choice) + ":" + std::to_string(one.taken);
    }
    return text;
}

uint64_t preemptions_of(const Choices &choices) {
    return static_cast<uint64_t>(std::count_if(choices.begin(), choices.end(),
                                               [](const auto &choice) { return preempts(choice, choice.taken); }));
}

bool same(const mc_sim_choice &one, const mc_sim_choice &other) {
    return one.candidates == other.candidates && one.taken == other.taken && one.kind == other.kind &&
           one.flags == other.flags;
}

bool same(const Choices &one, const Choices &other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const auto &left, const auto &right) { return same(left, right); });
}

bool deviates(const mc_sim_event &event, const Choices &choices) {
    if ((event.kind != MC_SIM_RUN && event.kind != MC_SIM_TIME) || event.value == 0)
        return false;
    return event.choice > choices.size() || (event.choice != 0 && choices[event.choice - 1].taken != 0);
}

} // namespace mc::mcrt
