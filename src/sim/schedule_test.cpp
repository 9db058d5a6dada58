// Schedules as text.
#include "sim/schedule.hpp"
#include "testing/test.hpp"

using namespace mc::sim;

// Goal: what is written is read back, and white space around it is no part of it.
Test(Schedule, is_read_as_written) {
    const Schedule schedules[] = {{}, {{0, 1}}, {{17, 2}, {45, 1}}, {{0, 1}, {1, 1}, {UINT64_MAX, UINT16_MAX}}};
    for (const Schedule &schedule : schedules) {
        Schedule read{{9, 9}};
        cr_assert(parse_schedule(format_schedule(schedule).c_str(), &read));
        cr_assert(read == schedule);
    }
    Schedule read;
    cr_assert(parse_schedule(" 17:2,45:1\r\n", &read));
    cr_assert(read == (Schedule{{17, 2}, {45, 1}}));
}

// Goal: what is no schedule is refused, and changes nothing.
Test(Schedule, mistakes_are_refused) {
    const char *const wrong[] = {"1",       "1:",      ":1",      "1:0",     "1:2,",
                                 ",1:2",    "1:2 3:4", "1:2;3:4", "2:1,1:1", "1:1,1:2",
                                 "1:65536", "-1:2",    "1:-2",    "1:2x",    "18446744073709551616:1",
                                 "x"};
    for (const char *text : wrong) {
        Schedule read{{9, 9}};
        cr_assert_not(parse_schedule(text, &read), "%s", text);
        cr_assert(read == (Schedule{{9, 9}}), "%s", text);
    }
}
