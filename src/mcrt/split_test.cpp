// Whose argument is whose on the command line of `mcrt explore`.
#include "mcrt/arguments.hpp"
#include "mcrt/test_text.hpp"

#include <iterator>
#include <sstream>

using namespace mc::mcrt;

namespace {

std::string joined(const std::vector<std::string> &words) {
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

std::vector<std::string> words_of(const char *line) {
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

// --seeds takes a value, --flag and -h none, others are unknown.
int values(const std::string &name) { return name == "--seeds" ? 1 : name == "--flag" || name == "-h" ? 0 : -1; }

struct Case {
    const char *line;
    const char *own;
    const char *program;
};

constexpr Case cases[] = {
    {"./app --seeds 5", "--seeds 5", "./app"},
    {"--seeds 5 ./app", "--seeds 5", "./app"},
    {"--seeds=5 ./app x", "--seeds=5", "./app x"},
    {"./app x --seeds 5 y --flag z", "--seeds 5 --flag", "./app x y z"},
    {"--seeds 5 ./app --verbose -v", "--seeds 5", "./app --verbose -v"},
    {"--seeds 5 -- ./app --seeds 6", "--seeds 5", "./app --seeds 6"},
    {"./app --seeds 5 -- --flag --", "--seeds 5", "./app --flag --"},
    {"./app --flag=yes --other=1", "--flag=yes", "./app --other=1"},
    {"-h ./app", "-h", "./app"},               // before it, a short one is ours
    {"./app -h", "", "./app -h"},              // after it, it is not
    {"--other 5 ./app", "--other", "5 ./app"}, // the parser complains
    {"--seeds --flag ./app", "--seeds --flag", "./app"},
    {"./app --seeds", "--seeds", "./app"}, // likewise
    {"./app -", "", "./app -"},
    {"--", "", ""},
    {"", "", ""},
};

} // namespace

// Goal: each line is told apart as the help says.
Test(Split, tells_ours_from_the_programs) {
    for (const Case &one : cases) {
        const mc::mcrt::Split parts = mc::mcrt::split(words_of(one.line), values);
        check_text(joined(parts.own), one.own);
        check_text(joined(parts.program), one.program);
    }
}

// Goal: an argument that is empty, or looks like a list, stays what it is.
Test(Split, leaves_arguments_alone) {
    const mc::mcrt::Split parts = mc::mcrt::split({"./app", "", "[a,b]", "a b"}, values);
    cr_assert(parts.program == std::vector<std::string>({"./app", "", "[a,b]", "a b"}));
}
