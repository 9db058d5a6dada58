// The environment's variables.
#include "sim/environment.hpp"
#include "testing/test.hpp"

#include <fcntl.h>
#include <map>
#include <string>
#include <unistd.h>

using namespace mc::sim;

namespace {

std::map<std::string, std::string> variables;

const char *look_up(const char *name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
}

// What is said of a value, or "" when it is understood.
std::string complaint(const char *name, const char *value) {
    Settings settings;
    bool seeded = false;
    std::string why;
    variables = {{"MCRT_SEED", "1"}};
    variables[name] = value;
    return read_seed(look_up, &settings, &seeded, &why) ? "" : why;
}

} // namespace

// Goal: all values, read.
Test(Environment, is_read) {
    Settings settings;
    bool seeded = false;
    std::string why;
    variables = {{"MCRT_SEED", "18446744073709551615"},
                 {"MCRT_POLICY", "pct:5"},
                 {"MCRT_SCHEDULE", "3:1,7:2"},
                 {"MCRT_RECORD", "/tmp/x"},
                 {"MCRT_SIM_DELAY_MS", "0"},
                 {"MCRT_ORACLES", "ledger,wait:7,tasks"}};
    cr_assert(read_seed(look_up, &settings, &seeded, &why), "%s", why.c_str());
    cr_assert(seeded);
    cr_assert_eq(settings.seed, UINT64_MAX);
    cr_assert(settings.policy == "pct:5");
    cr_assert(settings.replays);
    cr_assert(settings.schedule == (Schedule{{3, 1}, {7, 2}}));
    cr_assert(settings.record == "/tmp/x");
    cr_assert_eq(settings.delay_ns, 0);
    cr_assert_eq(settings.oracles, uint32_t{MC_SIM_LEDGER | MC_SIM_BOUNDED_WAIT | MC_SIM_NO_TASK_LEFT});
    cr_assert_eq(settings.bound, 7u);
}

// Goal: without a seed nothing is looked at, so that nothing can be wrong; with one alone, all is as usual.
Test(Environment, without_a_seed_there_is_none) {
    Settings settings;
    bool seeded = true;
    std::string why;
    variables = {{"MCRT_POLICY", "nonsense"}};
    cr_assert(read_seed(look_up, &settings, &seeded, &why));
    cr_assert_not(seeded);
    variables = {{"MCRT_SEED", "0"}};
    cr_assert(read_seed(look_up, &settings, &seeded, &why));
    cr_assert(seeded && settings.policy == "mix" && !settings.replays && settings.record.empty());
    cr_assert_eq(settings.delay_ns, 100 * MC_MS);
}

// Goal: what is not understood is named, with what was wanted.
Test(Environment, mistakes_are_named) {
    const char *const wrong[][2] = {{"MCRT_SEED", ""},
                                    {"MCRT_SEED", "-1"},
                                    {"MCRT_SEED", "18446744073709551616"},
                                    {"MCRT_SEED", "1 "},
                                    {"MCRT_POLICY", "fair"},
                                    {"MCRT_SCHEDULE", "1"},
                                    {"MCRT_SCHEDULE", "@/no/such/file"},
                                    {"MCRT_ORACLES", "fifo,"},
                                    {"MCRT_ORACLES", "wait:0"},
                                    {"MCRT_ORACLES", "all"},
                                    {"MCRT_SIM_DELAY_MS", "-1"},
                                    {"MCRT_SIM_DELAY_MS", "1000000001"}};
    for (const auto &[name, value] : wrong) {
        const std::string why = complaint(name, value);
        if (std::string(name) == "MCRT_ORACLES" && std::string(value) == "fifo,")
            cr_assert(why.empty()); // an empty end is none
        else
            cr_assert(why.starts_with(std::string(name) + "=" + value + " is not "), "%s=%s: %s", name, value,
                      why.c_str());
    }
    cr_assert(complaint("MCRT_ORACLES", "").empty());
}

// Goal: a schedule may stand in a file: its first line.
Test(Environment, a_schedule_in_a_file) {
    char path[] = "/tmp/mcrt-schedule-XXXXXX";
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    const char text[] = "4:2,9:1\n# the rest is no part of it\n";
    cr_assert_eq(write(file, text, sizeof text - 1), static_cast<ssize_t>(sizeof text - 1));
    close(file);
    variables = {{"MCRT_SEED", "1"}, {"MCRT_SCHEDULE", std::string("@") + path}};
    Settings settings;
    bool seeded = false;
    std::string why;
    cr_assert(read_seed(look_up, &settings, &seeded, &why), "%s", why.c_str());
    cr_assert(settings.schedule == (Schedule{{4, 2}, {9, 1}}));
    unlink(path);
}
