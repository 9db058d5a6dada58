#include "mcrt/difference.hpp"

#include "mcrt/names.hpp"
#include "mcrt/schedule.hpp"
#include "mcrt/text.hpp"
#include "mcrt/words.hpp"

#include <algorithm>
#include <cstring>

namespace mc::mcrt {
namespace {

using mcrt::same;

bool same(const mc_sim_event &one, const mc_sim_event &other) {
    return one.kind == other.kind && one.choice == other.choice && one.now_ns == other.now_ns &&
           one.task == other.task && one.object == other.object && one.peer == other.peer && one.value == other.value &&
           std::strcmp(one.text, other.text) == 0;
}

// The first element that differs; the length of the shorter one when none does.
template <class Element> size_t parting(const std::vector<Element> &one, const std::vector<Element> &other) {
    const size_t most = std::min(one.size(), other.size());
    for (size_t i = 0; i < most; ++i)
        if (!same(one[i], other[i]))
            return i;
    return most;
}

// Time is told where nothing else tells the two apart.
std::string event_in(const Compared &run, size_t at, bool with_time) {
    const std::vector<mc_sim_event> &events = run.recording.events;
    const std::string before = "  " + run.name + ": ";
    if (at >= events.size())
        return before + "it had ended";
    const Names names(run.recording);
    return before + sentence_of(events[at], names) + (with_time ? ", at " + time_words(events[at].now_ns) : "");
}

std::string events_part(const Compared &one, const Compared &other, size_t at) {
    const bool with_time = event_in({one.recording, ""}, at, false) == event_in({other.recording, ""}, at, false);
    return "at event " + std::to_string(at) + ":\n" + event_in(one, at, with_time) + "\n" +
           event_in(other, at, with_time);
}

std::string choice_in(const Compared &run, size_t at) {
    const Choices &choices = run.recording.choices;
    if (at >= choices.size())
        return "  " + run.name + ": it had ended";
    return "  " + run.name + ": candidate " + std::to_string(choices[at].taken) + " of " +
           std::to_string(choices[at].candidates);
}

std::string choices_part(const Compared &one, const Compared &other, size_t at) {
    return "at choice " + std::to_string(at) + ":\n" + choice_in(one, at) + "\n" + choice_in(other, at);
}

} // namespace

const char *const uncontrolled_source =
    "Something that the library does not control decides what the program does: a clock, random numbers, a file, an "
    "address, or a\n"
    "thread of its own. Take time from mc_now and chance from mc_random or mc_sim_choose, and a seed is a run again.";

std::optional<std::string> difference(const Compared &one, const Compared &other, bool cut) {
    const Recording &first = one.recording;
    const Recording &second = other.recording;
    if (!cut && first.header.signature == second.header.signature)
        return std::nullopt;
    const size_t event = parting(first.events, second.events);
    const size_t choice = parting(first.choices, second.choices);
    const bool events_differ = event < std::min(first.events.size(), second.events.size());
    const bool choices_differ = choice < std::min(first.choices.size(), second.choices.size());
    if (events_differ || (!cut && first.events.size() != second.events.size()))
        return events_part(one, other, event);
    if (choices_differ || (!cut && first.choices.size() != second.choices.size()))
        return choices_part(one, other, choice);
    if (cut)
        return std::nullopt;
    return "after all that is recorded of them (" + counted(first.events.size(), "event") + ")";
}

} // namespace mc::mcrt
