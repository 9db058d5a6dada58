#include "sim/environment.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace mc::sim {
namespace {

template <class Number> bool read_number(std::string_view text, Number *out) noexcept {
    const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), *out);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool refuse(const char *name, const char *value, const char *wanted, std::string *why) {
    *why = std::string(name) + "=" + value + " is not " + wanted;
    return false;
}

bool read_first_line(const char *path, std::string *out) {
    FILE *file = std::fopen(path, "r");
    if (file == nullptr)
        return false;
    for (int c; (c = std::fgetc(file)) != EOF && c != '\n';)
        out->push_back(static_cast<char>(c));
    std::fclose(file);
    return true;
}

bool read_schedule(const char *value, Settings *settings, std::string *why) {
    std::string text = value;
    if (*value == '@') {
        text.clear();
        if (!read_first_line(value + 1, &text))
            return refuse("MCRT_SCHEDULE", value, "a file that can be read", why);
    }
    settings->replays = true;
    return parse_schedule(text.c_str(), &settings->schedule) ||
           refuse("MCRT_SCHEDULE", value, "a schedule such as 17:2,45:1", why);
}

bool read_oracle(std::string_view name, Settings *settings) {
    if (name == "ledger")
        settings->oracles |= MC_SIM_LEDGER;
    else if (name == "fifo")
        settings->oracles |= MC_SIM_FIFO;
    else if (name == "tasks")
        settings->oracles |= MC_SIM_NO_TASK_LEFT;
    else if (name == "wait" ||
             (name.starts_with("wait:") && read_number(name.substr(5), &settings->bound) && settings->bound != 0))
        settings->oracles |= MC_SIM_BOUNDED_WAIT;
    else
        return false;
    return true;
}

bool read_oracles(const char *value, Settings *settings, std::string *why) {
    std::string_view rest = value;
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        if (!read_oracle(rest.substr(0, comma), settings))
            return refuse("MCRT_ORACLES", value, "a list of ledger, fifo, tasks, wait and wait:BOUND", why);
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return true;
}

} // namespace

bool read_environment(GetVariable get, Settings *settings, std::string *why) {
    if (const char *policy = get("MCRT_POLICY")) {
        if (policy_by_name(policy, 0) == nullptr)
            return refuse("MCRT_POLICY", policy, "random, pct:D with D from 1 to 100, or mix", why);
        settings->policy = policy;
    }
    if (const char *schedule = get("MCRT_SCHEDULE"); schedule != nullptr && !read_schedule(schedule, settings, why))
        return false;
    if (const char *record = get("MCRT_RECORD"))
        settings->record = record;
    if (const char *oracles = get("MCRT_ORACLES"); oracles != nullptr && !read_oracles(oracles, settings, why))
        return false;
    if (const char *delay = get("MCRT_SIM_DELAY_MS")) {
        constexpr int64_t most_ms = 1'000'000'000;
        int64_t ms = 0;
        if (!read_number(delay, &ms) || ms < 0 || ms > most_ms)
            return refuse("MCRT_SIM_DELAY_MS", delay, "a number of milliseconds, at most 1000000000", why);
        settings->delay_ns = ms * MC_MS;
    }
    return true;
}

bool read_seed(GetVariable get, Settings *settings, bool *seeded, std::string *why) {
    const char *seed = get("MCRT_SEED");
    *seeded = seed != nullptr;
    if (seed == nullptr)
        return true;
    if (!read_number(std::string_view(seed), &settings->seed))
        return refuse("MCRT_SEED", seed, "a number from 0 to 18446744073709551615", why);
    return read_environment(get, settings, why);
}

} // namespace mc::sim
