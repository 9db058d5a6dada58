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

} // namespace mc::mcrt
