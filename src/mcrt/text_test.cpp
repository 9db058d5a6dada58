// Text for readers of any kind, and what a run printed.
#include "mcrt/output.hpp"
#include "mcrt/test_text.hpp"
#include "mcrt/text.hpp"
#include "mcrt/verdict.hpp"

using namespace mc::mcrt;

namespace {

#define HOLE "\xef\xbf\xbd"

struct Case {
    const char *from;
    const char *to;
};

constexpr Case cleaned[] = {
    {"plain", "plain"},
    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"a\x1b[31mb\x07", "a" HOLE "[31mb" HOLE},
    {"line\n", "line" HOLE},
    {"\xff\xc0\xaf", HOLE HOLE HOLE},
    {"cut \xe2\x82", "cut " HOLE HOLE},
    {"\xed\xa0\x80", HOLE HOLE HOLE}, // half of a surrogate
    {"\xc2\x9b", HOLE HOLE},          // a terminal's CSI
    {"\xef\xbf\xbf", HOLE HOLE HOLE}, // XML has no U+FFFF
};

constexpr Case unnumbered[] = {
    {"took 17 of 0x7ffe12ab at -3", "took # of # at -#"},
    {"no numbers", "no numbers"},
    {"0x", "#x"},
    {"a1b22", "a#b#"},
};

constexpr Case shell[] = {
    {"./app", "./app"},     {"", "''"},           {"a b", "'a b'"},
    {"it's", "'it'\\''s'"}, {"$HOME", "'$HOME'"}, {"1:2,3:1", "1:2,3:1"},
};

} // namespace

Test(Text, clean_is_what_every_reader_takes) {
    for (const Case &one : cleaned)
        check_text(clean(one.from), one.to);
    check_text(clean("a\n\tb\r", Lines::keep), "a\n\tb" HOLE);
    check_text(utf8("\x1b\xc2\x85\xff\xed\xa0\x80"
                    "b"),
               "\x1b\xc2\x85" HOLE HOLE HOLE HOLE "b");
}

Test(Text, numbers_are_ignored) {
    for (const Case &one : unnumbered)
        check_text(without_numbers(one.from), one.to);
}

Test(Text, words_of_a_shell) {
    for (const Case &one : shell)
        check_text(quoted(one.from), one.to);
}

// Goal: cut between characters, not within one.
Test(Text, shortened_by_characters) {
    check_text(shortened("abcdef", 6), "abcdef");
    check_text(shortened("abcdef", 4), "abc\xe2\x80\xa6");
    check_text(shortened("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9\xe2\x80\xa6");
    check_text(shortened("ab", 0), "");
    check_text(shortened_inside("abcdef", 6), "abcdef");
    check_text(shortened_inside("abcdef", 5), "ab\xe2\x80\xa6"
                                              "ef");
    check_text(shortened_inside("abcdef", 4), "ab\xe2\x80\xa6"
                                              "f");
    check_text(shortened_inside("\xc3\xa9\xc3\xa8\xc3\xa7\xc3\xa6", 3), "\xc3\xa9\xe2\x80\xa6\xc3\xa6");
    check_text(shortened_inside("abc", 1), "\xe2\x80\xa6");
    check_text(shortened_inside("ab", 0), "");
    cr_assert_eq(width_of("\xc3\xa9x"), 2);
}

// Goal: lines break at blanks, or anywhere where there are none; nothing but those blanks is lost.
Test(Text, wrapped_at_blanks) {
    const auto check_lines = [](const char *text, size_t most, const char *expected) {
        std::string lines;
        for (const std::string &line : wrapped(text, most))
            lines += line + "|";
        check_text(lines, expected);
    };
    check_lines("", 3, "|");
    check_lines("abc", 3, "abc|");
    check_lines("ab cd ef", 5, "ab cd|ef|");
    check_lines("ab cd ef", 4, "ab|cd|ef|");
    check_lines("abcdefg hi", 3, "abc|def|g|hi|");
    check_lines("\xc3\xa9\xc3\xa9\xc3\xa9", 2, "\xc3\xa9\xc3\xa9|\xc3\xa9|");
    check_lines("a  b", 2, "a |b|");
    check_lines(" ab", 2, " a|b|");
}

Test(Text, counts_are_grouped) {
    check_text(counted(1, "choice"), "1 choice");
    check_text(counted(0, "choice"), "0 choices");
    check_text(grouped(999), "999");
    check_text(grouped(1000), "1,000");
    check_text(grouped(1234567), "1,234,567");
}

// Goal: however much is printed, its beginning and its end are kept, and no more.
Test(Output, is_bounded) {
    Output output;
    output.add("first");
    for (int i = 0; i < 100'000; ++i)
        output.add(" and then some more of it");
    output.add("last");
    const std::string text = output.text();
    cr_assert(text.starts_with("first"));
    cr_assert(text.ends_with("last"));
    cr_assert_lt(text.size(), size_t{200} << 10);
    cr_assert(text.find("bytes left out") != std::string::npos);
}

namespace {

mc_sim_recording header_with(uint32_t failure, const char *message) {
    mc_sim_recording header{};
    header.failure = failure;
    std::snprintf(header.message, sizeof header.message, "%s", message);
    return header;
}

} // namespace

// Goal: the time limit is more than what is recorded, that is more than a signal, and a signal or status counts where nothing is said.
Test(Verdict, of_a_run) {
    const auto fine = header_with(MC_SIM_FINE, "");
    cr_assert(judge({false, 0, false}, fine, "").fault == Fault::none);
    cr_assert(judge({false, 3, false}, fine, "").fault == Fault::exited);
    cr_assert(judge({true, 11, false}, fine, "").fault == Fault::killed);
    cr_assert(judge({true, 9, true}, header_with(MC_SIM_DEADLOCK, "x"), "").fault == Fault::timed_out);
    cr_assert(judge({false, 0, false}, header_with(MC_SIM_DEADLOCK, "x"), "").fault == Fault::deadlock);
    cr_assert(judge({true, 6, false}, header_with(MC_SIM_ORACLE, "x"), "").fault == Fault::oracle);
    cr_assert(judge({true, 6, false}, header_with(MC_SIM_FAILED, "x"), "").fault == Fault::failed);
    cr_assert(judge({false, 0, false}, std::nullopt, "").fault == Fault::none);
}

Test(Verdict, sameness) {
    const auto failed = [](const char *message) {
        return judge({true, 6, false}, header_with(MC_SIM_FAILED, message), "");
    };
    cr_assert(same_failure(failed("left 3"), failed("left 17")));
    cr_assert(!same_failure(failed("left 3"), failed("right 3")));
    const auto killed = [](int signal, const char *output) {
        return judge({true, signal, false}, std::nullopt, output);
    };
    cr_assert(same_failure(killed(11, "a"), killed(11, "b")));
    cr_assert(!same_failure(killed(11, ""), killed(6, "")));
    cr_assert(
        !same_failure(killed(6, "a.c:1: f: Assertion `x' failed.\n"), killed(6, "a.c:2: f: Assertion `y' failed.\n")));
    cr_assert(
        same_failure(killed(6, "..\na.c:1: f: Assertion `x' failed.\n"), killed(6, "a.c:1: f: Assertion `x' failed.")));
}
