// The log hook: what a host's logger gets, and what it may do.
#include "base/log.hpp"

#include "testing/test.hpp"

#include <stdexcept>
#include <string>

using namespace mc;

namespace {

struct Lines {
    int count = 0;
    int32_t level = -1;
    int32_t code = 1;
    std::string text;

    static void write(void *user, int32_t level, int32_t code, const char *text) {
        auto *self = static_cast<Lines *>(user);
        ++self->count;
        self->level = level;
        self->code = code;
        self->text = text;
    }
};

} // namespace

// Goal: the hook gets level, code and the formatted line, without a newline.
Test(Log, hook_gets_the_line) {
    Lines lines;
    base::set_log_hook(Lines::write, &lines);
    base::log(MC_LOG_WARNING, MC_E_FULL, "%d of %s", 7, "them");
    cr_assert_eq(lines.count, 1);
    cr_assert_eq(lines.level, MC_LOG_WARNING);
    cr_assert_eq(lines.code, MC_E_FULL);
    cr_assert_str_eq(lines.text.c_str(), "7 of them");
    base::set_log_hook(nullptr, nullptr);
    base::log(MC_LOG_INFO, MC_OK, "not for anybody");
    cr_assert_eq(lines.count, 1);
}

// Goal: a long line is cut, not overrun.
Test(Log, long_lines_are_cut) {
    Lines lines;
    base::set_log_hook(Lines::write, &lines);
    base::log(MC_LOG_ERROR, MC_OK, "%s", std::string(10'000, 'x').c_str());
    cr_assert_eq(lines.text.size(), 255u);
}

// Goal: a hook that throws does not bring down the library.
Test(Log, throwing_hook_is_survived) {
    base::set_log_hook([](void *, int32_t, int32_t, const char *) { throw std::runtime_error("no"); }, nullptr);
    base::log(MC_LOG_ERROR, MC_E_IO, "a line");
}

// Goal: a hook may replace itself: no lock is held while it runs.
Test(Log, hook_may_replace_itself) {
    static Lines lines;
    base::set_log_hook(
        [](void *, int32_t, int32_t, const char *) {
            base::set_log_hook(Lines::write, &lines);
            base::log(MC_LOG_ERROR, MC_OK, "from the hook");
        },
        nullptr);
    base::log(MC_LOG_ERROR, MC_OK, "first");
    cr_assert_str_eq(lines.text.c_str(), "from the hook");
}
