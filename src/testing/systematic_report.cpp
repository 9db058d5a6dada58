// See systematic_engine.hpp: what a run that failed says of its threads.
#if defined(MC_SYS)
#include "testing/systematic_engine.hpp"

#include <algorithm>

namespace mc::testing::sys {

namespace {

constexpr unsigned shown_events = 16;

std::string line(const std::string &prefix, const Event &event) {
    std::string step = std::to_string(event.step);
    return prefix + std::string(step.size() < 6 ? 6 - step.size() : 0, ' ') + step + "  " + describe(event) + "\n";
}

} // namespace

std::string Engine::describe_thread(const Thread &thread) {
    return "thread " + std::to_string(thread.number) + (thread.label ? std::string(" '") + thread.label + "'" : "");
}

std::string Engine::describe_place(const void *at) {
    const Location *location = memory_.known(at);
    return location ? describe_word(location->ordinal, location->label) : "an unknown word";
}

std::string Engine::describe_wait(const Thread &thread) {
    switch (thread.state) {
    case Thread::State::absent:
        return "has ended and was joined";
    case Thread::State::ready:
        return &thread == current_ ? "runs" : "could run";
    case Thread::State::finished:
        return "has ended";
    case Thread::State::joining:
        return "waits to join " + describe_thread(*threads_[thread.joins]);
    case Thread::State::at_mutex: {
        const Location *location = memory_.known(thread.waits_on);
        return "waits for mutex " + describe_place(thread.waits_on) + ", held by " +
               (location && location->owner >= 0 ? describe_thread(*threads_[location->owner]) : "nobody");
    }
    case Thread::State::asleep: {
        Location *location = memory_.known(thread.waits_on);
        const bool alive = location && !location->dead && location->size == sizeof(std::uint32_t);
        return "sleeps in futex_wait on " + describe_place(thread.waits_on) + " while it is " +
               describe_value(thread.expects) + (alive ? " (it is " + describe_value(location->value()) + ")" : "") +
               (thread.deadline == INT64_MAX ? ", without a deadline" : "");
    }
    }
    return "";
}

std::string Engine::report(const std::string &what) {
    std::string text = what + "\n";
    for (const auto &[number, event] : log_)
        text += line("  thread " + std::to_string(number), event);
    for (const auto &thread : threads_) {
        if (thread->state == Thread::State::absent && thread->event_count == 0)
            continue;
        text += "  " + describe_thread(*thread) + ": " + describe_wait(*thread) + "\n";
        if (limits_.verbose)
            continue;
        const std::uint32_t shown = std::min(thread->event_count, shown_events);
        for (std::uint32_t i = thread->event_count - shown; i < thread->event_count; ++i)
            text += line("  ", thread->events[i % Thread::kept_events]);
    }
    return text;
}

} // namespace mc::testing::sys
#endif
