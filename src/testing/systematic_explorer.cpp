// See systematic_explorer.hpp, and systematic.hpp for what tests call.
#if defined(MC_SYS)
#include "testing/systematic_explorer.hpp"

#include "testing/test.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace mc::testing {
namespace sys {

namespace {

constexpr std::size_t max_signatures = 1'000'000;
constexpr int no_limit = 1'000'000'000;
constexpr std::size_t signal_stack_bytes = 256 * 1024;
constexpr unsigned report_seconds = 10; // for a report from a process that has crashed, perhaps inside malloc

int explorations = 0; // of this process: a test may make several, and a replay names one

void write_all(const std::string &text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
        if (written < 0)
            return;
        done += static_cast<std::size_t>(written);
    }
}

std::string test_of(const Exploration &exploration) {
#if !defined(MC_TEST_FORK)
    if (*exploration.name == '\0' && criterion_current_test != nullptr)
        return std::string(criterion_current_test->category) + "/" + criterion_current_test->name;
#endif
    return exploration.name;
}

} // namespace

Replay Replay::parse(const char *text, int exploration) {
    Replay replay;
    char *rest;
    if (text == nullptr || std::strtol(text, &rest, 10) != exploration || *rest != '/')
        return replay;
    ++rest;
    if (std::strncmp(rest, "seed:", 5) == 0) {
        replay.by_seed = true;
        replay.seed = std::strtoull(rest + 5, &rest, 10);
        replay.wanted = *rest == '\0';
    } else if (*rest == 'p') {
        replay.preemptions = static_cast<int>(std::strtol(rest + 1, &rest, 10));
        replay.wanted = *rest == ':' && Choices::parse_path(rest + 1, replay.path);
    }
    if (!replay.wanted) {
        std::fprintf(stderr, "MC_SYS_REPLAY=%s: not understood\n", text);
        std::abort();
    }
    return replay;
}

Explorer::Explorer(const Exploration &exploration, const std::function<void()> &body)
    : exploration_(exploration), body_(body), number_(++explorations), test_(test_of(exploration)) {}

Explored Explorer::explore() {
    const Replay replay = Replay::parse(std::getenv("MC_SYS_REPLAY"), number_);
    CrashWatch watch(*this);
    if (replay.wanted)
        repeat(replay);
    else if (exploration_.search == Search::seeds)
        by_seeds();
    else
        exhaustively();
    explored_.distinct = signatures_.size();
    return std::move(explored_);
}

Limits Explorer::limits(int preemptions, int stale) const {
    return {preemptions, stale, exploration_.timeouts, exploration_.spurious, exploration_.max_steps, verbose_};
}

Limits Explorer::seed_limits() const { return limits(no_limit, exploration_.stale == 0 ? 0 : no_limit); }

void Explorer::repeat(const Replay &replay) {
    verbose_ = true;
    if (replay.by_seed) {
        source_ = "seed:" + std::to_string(replay.seed);
        choices_.use_seed(replay.seed);
        run(seed_limits());
    } else {
        source_ = "p" + std::to_string(replay.preemptions) + ":";
        choices_.use_path(replay.path);
        run(limits(replay.preemptions, exploration_.stale));
    }
}

void Explorer::by_seeds() {
    for (std::uint64_t i = 0; i < exploration_.seeds; ++i) {
        const std::uint64_t seed = exploration_.first_seed + i;
        source_ = "seed:" + std::to_string(seed);
        choices_.use_seed(seed);
        if (!run(seed_limits()))
            return;
    }
}

// Few preemptions first: the first failure found is then a simple one, and the runs that are made twice are few. A
// run before them all fills what is filled once in a process and would else be taken for a body that is not
// deterministic.
void Explorer::exhaustively() {
    source_ = "p0:";
    choices_.use_path({});
    if (!run(limits(0, exploration_.stale)))
        return;
    for (int preemptions = 0; preemptions <= exploration_.preemptions; ++preemptions)
        if (!search(preemptions))
            return;
}

bool Explorer::search(int preemptions) {
    source_ = "p" + std::to_string(preemptions) + ":";
    choices_.use_search(exploration_.merge_states);
    do {
        if (explored_.runs >= exploration_.max_runs) {
            explored_.complete = false;
            return false;
        }
        if (!run(limits(preemptions, exploration_.stale)))
            return false;
    } while (choices_.advance());
    return true;
}

bool Explorer::run(const Limits &limits) {
    Outcome outcome =
        exploration_.isolate ? isolation_.run(engine_, limits, choices_, body_) : engine_.run(limits, choices_, body_);
    ++explored_.runs;
    explored_.steps += outcome.steps;
    explored_.signature = outcome.signature;
    if (signatures_.size() < max_signatures)
        signatures_.insert(outcome.signature);
    if (!outcome.failed && choices_.diverged()) {
        outcome.failed = true;
        outcome.what =
            "not deterministic: with the same choices so far the body went another way than before; something "
            "survives from run to run, or it asks real time or chance";
        outcome.report = outcome.what + "\n";
    }
    if (outcome.failed)
        failed(outcome);
    else if (verbose_)
        say("replayed", outcome.report);
    if (assertion_failed_)
        _exit(exit_failed);
    return !outcome.failed;
}

void Explorer::failed(const Outcome &outcome) {
    explored_.failed = true;
    explored_.what = outcome.what;
    explored_.report = outcome.report;
    explored_.replay = replay_string();
    explored_.command = command();
    if (!exploration_.quiet || verbose_ || assertion_failed_)
        say("FAILED in run " + std::to_string(explored_.runs),
            outcome.report + "  to repeat it: " + explored_.command + "\n");
}

void Explorer::say(const std::string &headline, const std::string &report) const {
    write_all("[explore] " + test_ + ": " + headline + ": " + report);
}

std::string Explorer::replay_string() const {
    std::string text = std::to_string(number_) + "/" + source_;
    return source_.back() == ':' ? text + choices_.path() : text;
}

std::string Explorer::command() const {
    std::string text = "MC_SYS_REPLAY=" + replay_string() + " ./build/sys/" + program_name();
    return test_.empty() ? text : text + " --filter " + test_;
}

// --- Runs that end the process --------------------------------------------------------------------------------------

// The assertion's stack may be a small one: the report is written on the explorer's, in run(), which then leaves.
void Explorer::assertion_failed() {
    if (!running())
        return;
    assertion_failed_ = true;
    engine_.fail("an assertion failed (see above)");
}

void Explorer::crashed(int signal) {
    Outcome outcome;
    outcome.failed = true;
    outcome.what = std::string("the process dies of signal ") + std::to_string(signal) + " (" + strsignal(signal) + ")";
    outcome.report = engine_.report(outcome.what);
    if (isolation_.is_child()) {
        isolation_.leave_word(outcome, choices_);
        _exit(exit_failed);
    }
    ++explored_.runs;
    failed(outcome);
}

CrashWatch *CrashWatch::watching = nullptr;

CrashWatch::CrashWatch(Explorer &explorer) : explorer_(explorer), stack_(signal_stack_bytes) {
    if (watching != nullptr) {
        std::fputs("explore() inside explore()\n", stderr);
        std::abort();
    }
    watching = this;
    failure_hook = on_assertion;
    stack_t stack{};
    stack.ss_sp = stack_.data();
    stack.ss_size = stack_.size();
    sigaltstack(&stack, &stack_before_);
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    for (unsigned i = 0; i < count; ++i)
        sigaction(signals[i], &action, &before_[i]);
}

CrashWatch::~CrashWatch() {
    for (unsigned i = 0; i < count; ++i)
        sigaction(signals[i], &before_[i], nullptr);
    sigaltstack(&stack_before_, nullptr);
    failure_hook = nullptr;
    watching = nullptr;
}

void CrashWatch::on_assertion() { watching->explorer_.assertion_failed(); }

// What was there before gets the signal after us: the instruction that faulted is tried again, an abort goes on.
void CrashWatch::on_signal(int signal) {
    for (unsigned i = 0; i < count; ++i)
        sigaction(signals[i], &watching->before_[i], nullptr);
    if (!running())
        return;
    running_here = false;
    alarm(report_seconds);
    watching->explorer_.crashed(signal);
    alarm(0);
}

} // namespace sys

// --- What tests call ------------------------------------------------------------------------------------------------

Explored explore(const Exploration &exploration, const std::function<void()> &body) {
    return sys::Explorer(exploration, body).explore();
}

Explored expect_pass(const Exploration &exploration, const std::function<void()> &body) {
    Explored explored = explore(exploration, body);
    if (explored.failed)
        _exit(exit_failed); // what there is to say has been said
    return explored;
}

Explored expect_fail(Exploration exploration, const char *what, const std::function<void()> &body) {
    exploration.quiet = true;
    Explored explored = explore(exploration, body);
    cr_assert(explored.failed, "the planted bug was not found in %llu runs: %s",
              static_cast<unsigned long long>(explored.runs), what);
    cr_assert(explored.what.find(what) != std::string::npos, "found \"%s\" instead of \"%s\"", explored.what.c_str(),
              what);
    return explored;
}

void check(bool holds, const char *text, ...) {
    if (holds)
        return;
    char line[512];
    std::va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    if (sys::running())
        sys::Engine::here().fail(line);
    std::fprintf(stderr, "check failed: %s\n", line);
    std::abort();
}

unsigned choose(unsigned n) { return sys::running() ? sys::Engine::here().choose(n) : 0; }

void label(const void *word, const char *text) {
    if (sys::running())
        sys::Engine::here().label_word(word, text);
}

void label_thread(const char *text) {
    if (sys::running())
        sys::Engine::here().label_thread(text);
}

} // namespace mc::testing
#endif
