#include "mcrt/sequence.hpp"

#include "mcrt/names.hpp"
#include "mcrt/schedule.hpp"
#include "mcrt/text.hpp"
#include "mcrt/words.hpp"

#include <algorithm>
#include <sstream>

namespace mc::mcrt {
namespace {

constexpr size_t most_task_width = 24;

// Who goes on is seen from what it does next; names are used from the start.
bool matters(const mc_sim_event &event) {
    switch (event.kind) {
    case MC_SIM_RUN:
        return event.value != 0;
    case MC_SIM_NAME:
    case MC_SIM_NAME_CHANNEL:
        return false;
    default:
        return true;
    }
}

std::string padded(const std::string &text, size_t width, bool right) {
    const size_t used = width_of(text);
    const std::string fill(used < width ? width - used : 0, ' ');
    return right ? fill + text : text + fill;
}

class Table {
public:
    Table(const Recording &recording, const Names &names) : choices_(recording.choices), names_(names) {
        for (const mc_sim_event &event : recording.events)
            if (matters(event))
                tasks_ = std::max(tasks_, width_of(task(event.task)));
    }

    std::string heading() const { return "   event        time  " + padded("task", tasks_, false) + "  what"; }

    std::string line(size_t number, const mc_sim_event &event) const {
        const bool starred = deviates(event, choices_);
        std::string text = starred ? "* " : "  ";
        text += padded(std::to_string(number), 6, true) + "  " + padded(time_words(event.now_ns), 10, true) + "  ";
        text += padded(task(event.task), tasks_, false) + "  " + words_of(event, names_);
        if (starred && event.choice != 0)
            text += " (choice " + std::to_string(event.choice - 1) + ")";
        return text;
    }

private:
    std::string task(uint64_t id) const { return shortened(names_.task(id), most_task_width); }

    const Choices &choices_;
    const Names &names_;
    size_t tasks_ = 4;
};

void add_end(const Recording &recording, const std::string &wrong, std::vector<std::string> *lines) {
    if (recording.header.events > recording.events.size())
        lines->push_back("  ... and " + counted(recording.header.events - recording.events.size(), "event") +
                         " for which the recording had no room");
    std::istringstream message(clean(wrong, Lines::keep));
    const char *before = "! ";
    for (std::string line; std::getline(message, line); before = "  ")
        lines->push_back(before + line);
}

} // namespace

std::vector<std::string> sequence_of(const Recording &recording, const std::string &wrong, size_t most) {
    const Names names(recording);
    const Table table(recording, names);
    std::vector<std::string> lines{table.heading()};
    auto left_out = static_cast<size_t>(std::count_if(recording.events.begin(), recording.events.end(), matters));
    left_out -= std::min(left_out, most);
    if (left_out != 0)
        lines.push_back("  ... after " + counted(left_out, "event") + " that only the recording has");
    for (size_t i = 0; i < recording.events.size(); ++i) {
        if (!matters(recording.events[i]))
            continue;
        if (left_out == 0)
            lines.push_back(table.line(i, recording.events[i]));
        else
            --left_out;
    }
    add_end(recording, wrong, &lines);
    return lines;
}

} // namespace mc::mcrt
