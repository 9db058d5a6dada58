// The status table: what programs compare against and print, so what may never change once it is released.
#include "base/status.hpp"

#include "testing/test.hpp"

#include <mc/base.h>

#include <set>
#include <string>

using namespace mc;

namespace {

struct Row {
    const char *name;
    int32_t code;
    const char *text;
};

constexpr Row rows[] = {
#define ROW(name, code, text) {"MC_E_" #name, code, text},
    MC_STATUS_TABLE(ROW)
#undef ROW
};
constexpr int row_count = sizeof rows / sizeof rows[0];

} // namespace

// Goal: the released codes keep their names and values, so that a program built against an older header still
// understands the library. A new code is a new line at the end of this list.
Test(Status, released_codes_keep_their_values) {
    constexpr Row released[] = {
        {"MC_E_INVAL", -100001, ""},    {"MC_E_STALE", -100002, ""},     {"MC_E_CLOSED", -100003, ""},
        {"MC_E_AGAIN", -100004, ""},    {"MC_E_TIMEDOUT", -100005, ""},  {"MC_E_CANCELED", -100006, ""},
        {"MC_E_FULL", -100007, ""},     {"MC_E_NOMEM", -100008, ""},     {"MC_E_PERM", -100009, ""},
        {"MC_E_DEADLOCK", -100010, ""}, {"MC_E_BUSY", -100011, ""},      {"MC_E_NOTSUP", -100012, ""},
        {"MC_E_FORKED", -100013, ""},   {"MC_E_SHUTDOWN", -100014, ""},  {"MC_E_VERSION", -100015, ""},
        {"MC_E_LIMIT", -100016, ""},    {"MC_E_EXISTS", -100017, ""},    {"MC_E_NOENT", -100018, ""},
        {"MC_E_NOROUTE", -100019, ""},  {"MC_E_OWNERDEAD", -100020, ""}, {"MC_E_CRASHED", -100021, ""},
        {"MC_E_IO", -100022, ""},       {"MC_E_CONTEXT", -100023, ""},   {"MC_E_SIM", -100024, ""},
    };
    cr_assert_eq(MC_OK, 0);
    for (const Row &row : released)
        cr_assert_str_eq(base::status_name(row.code), row.name);
    cr_assert_geq(row_count, static_cast<int>(sizeof released / sizeof released[0]));
}

// Goal: the table runs down without a gap, so that the next free code is never a guess, and knows its own end.
Test(Status, codes_run_down_without_a_gap) {
    for (int i = 0; i < row_count; ++i)
        cr_assert_eq(rows[i].code, -100001 - i);
    cr_assert_eq(rows[row_count - 1].code, MC_STATUS_LAST_);
}

// Goal: every code has a name and a text of its own; both are what the table says.
Test(Status, names_and_texts_are_distinct) {
    std::set<std::string> texts;
    std::set<std::string> names;
    for (const Row &row : rows) {
        cr_assert_str_eq(base::status_name(row.code), row.name);
        cr_assert_str_eq(base::status_text(row.code), row.text);
        cr_assert_str_eq(mc_status_name(row.code), row.name);
        cr_assert_str_eq(mc_strerror(row.code), row.text);
        texts.insert(row.text);
        names.insert(row.name);
    }
    cr_assert_eq(texts.size(), static_cast<size_t>(row_count));
    cr_assert_eq(names.size(), static_cast<size_t>(row_count));
    cr_assert_str_eq(mc_strerror(MC_OK), "ok");
    cr_assert_str_eq(mc_status_name(MC_OK), "MC_OK");
}

// Goal: a code that is not in the table gets a text anyway, and no name.
Test(Status, unknown_codes_are_survived) {
    for (int32_t code : {1, -1, INT32_MIN, INT32_MAX, -100000, MC_STATUS_LAST_ - 1}) {
        cr_assert_str_eq(mc_strerror(code), "unknown status");
        cr_assert_null(mc_status_name(code));
    }
}

// Goal: csp_alt says "arm i is dead" by -(i + 1), for any of its 65,535 arms; no code may be taken for that.
Test(Status, no_code_is_an_alts_answer) {
    for (const Row &row : rows)
        cr_assert_lt(row.code, -65'536);
}
