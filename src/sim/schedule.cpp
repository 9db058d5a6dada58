#include "sim/schedule.hpp"

#include <charconv>
#include <cstring>

namespace mc::sim {
namespace {

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

template <class Number> bool read(const char *&at, const char *end, Number *out) noexcept {
    const std::from_chars_result result = std::from_chars(at, end, *out);
    at = result.ptr;
    return result.ec == std::errc();
}

} // namespace

bool parse_schedule(const char *text, Schedule *out) {
    const char *at = text;
    const char *end = text + std::strlen(text);
    while (at < end && is_space(*at))
        ++at;
    while (end > at && is_space(end[-1]))
        --end;
    Schedule schedule;
    while (at < end) {
        Deviation one{0, 0};
        if (!read(at, end, &one.choice) || at == end || *at++ != ':' || !read(at, end, &one.taken) || one.taken == 0)
            return false;
        if (!schedule.empty() && schedule.back().choice >= one.choice)
            return false;
        schedule.push_back(one);
        if (at < end && (*at++ != ',' || at == end))
            return false;
    }
    *out = std::move(schedule);
    return true;
}

std::string format_schedule(const Schedule &schedule) {
    std::string text;
    for (const Deviation &one : schedule) {
        text += text.empty() ? "" : ",";
        text += std::to_string(one.choice) + ":" + std::to_string(one.taken);
    }
    return text;
}

} // namespace mc::sim
