// The test runner under the sanitizers and Valgrind: forks a process for each test, kills it at its deadline, judges
// how it ended. Criterion's does not start under ThreadSanitizer, and judges a test before its process has exited, so
// that a leak which is found at exit fails nothing there.
//
// Called by nobody: it has main(). The parent has one thread and never runs a test, so that what a child inherits is
// clean. Children lead a process group each, so that a kill also gets what a test forked, and die with the parent.
//
//   mc_test_csp [--filter 'Suite/test*'] [--timeout SECONDS] [-j N] [--list] [--verbose]
//
// Its options and its lines are Criterion's, so that one reader understands both.
#if defined(MC_TEST_FORK)

#include "testing/test.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <fnmatch.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace mc::testing {
namespace {

// A test's own timeout is meant for a plain build and a scale of 1.
double timeout_factor() { return (under_valgrind ? 10 : under_tsan ? 4 : under_asan ? 2 : 1) * scale(); }

struct Settings {
    const char *filter = "*";
    double timeout = 1e9; // at most this, for any test
    unsigned jobs = 1;
    bool list = false;
    bool verbose = false;
};

struct Counts {
    unsigned tested = 0, passing = 0, failing = 0, crashing = 0; // a crash counts as failing too
};

struct Child {
    pid_t pid;
    const Case *test;
    double started;
    double deadline;
    bool killed;
};

// How a test ended; `reason` is empty for a pass.
struct Verdict {
    enum Kind { passed, skipped, failed, crashed } kind;
    std::string reason;
};

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

[[noreturn]] void usage(int status) {
    std::fprintf(status == 0 ? stdout : stderr,
                 "options: --filter 'Suite/test*'  --timeout SECONDS  -j N  --list  --verbose\n");
    std::exit(status);
}

// The value of option `name` at argv[i], given as "name value", "name=value" or, for short options, "namevalue".
const char *option_value(char **argv, int &i, const char *name) {
    const std::size_t length = std::strlen(name);
    if (std::strncmp(argv[i], name, length) != 0)
        return nullptr;
    const char *rest = argv[i] + length;
    if (*rest == '=')
        return rest + 1;
    if (*rest != '\0')
        return name[1] == '-' ? nullptr : rest;
    if (argv[i + 1] == nullptr)
        usage(2);
    return argv[++i];
}

Settings parse(char **argv) {
    Settings settings;
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        settings.jobs = static_cast<unsigned>(CPU_COUNT(&cpus));
    for (int i = 1; argv[i] != nullptr; ++i) {
        if (const char *filter = option_value(argv, i, "--filter"))
            settings.filter = filter;
        else if (const char *timeout = option_value(argv, i, "--timeout"))
            settings.timeout = std::strtod(timeout, nullptr);
        else if (const char *jobs = option_value(argv, i, "-j"))
            settings.jobs = static_cast<unsigned>(std::strtoul(jobs, nullptr, 10));
        else if (std::strcmp(argv[i], "--list") == 0)
            settings.list = true;
        else if (std::strcmp(argv[i], "--verbose") == 0)
            settings.verbose = true;
        else
            usage(std::strcmp(argv[i], "--help") == 0 ? 0 : 2);
    }
    if (settings.timeout <= 0)
        usage(2);
    settings.jobs = std::max(settings.jobs, 1U);
    return settings;
}

std::string full_name(const Case &test) { return std::string(test.suite) + "/" + test.name; }

[[gnu::format(printf, 3, 4)]] void say(const char *tag, const Case &test, const char *format, ...) {
    char text[128];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    std::printf("[%s] %s::%s%s\n", tag, test.suite, test.name, text);
}

std::vector<const Case *> chosen(const char *filter) {
    std::vector<const Case *> tests;
    for (const Case *test = first_case; test != nullptr; test = test->next)
        if (fnmatch(filter, full_name(*test).c_str(), FNM_EXTMATCH) == 0)
            tests.push_back(test);
    std::sort(tests.begin(), tests.end(), [](const Case *a, const Case *b) { return full_name(*a) < full_name(*b); });
    return tests;
}

// Blocked by the runner, which waits for it; what a test is given is as usual.
sigset_t child_ends() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

[[noreturn]] void run_in_child(const Case &test) {
    setpgid(0, 0);
    const sigset_t unblocked = child_ends();
    sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        if (test.options.init != nullptr)
            test.options.init();
        test.run();
        if (test.options.fini != nullptr)
            test.options.fini();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: exception: %s\n", full_name(test).c_str(), error.what());
        _exit(exit_failed);
    } catch (...) {
        std::fprintf(stderr, "%s: exception of an unknown type\n", full_name(test).c_str());
        _exit(exit_failed);
    }
    std::exit(0); // not _exit: the sanitizers' and Valgrind's last checks run at exit
}

Child start(const Case &test, const Settings &settings) {
    const double timeout = std::min(test.options.timeout, settings.timeout);
    if (settings.verbose)
        say("RUN ", test, "%s", "");
    std::fflush(nullptr); // or the child writes it once more
    const pid_t pid = fork();
    if (pid == 0)
        run_in_child(test);
    if (pid < 0) {
        std::perror("fork");
        std::exit(2);
    }
    setpgid(pid, pid); // both sides do it, so that whoever comes first does
    const double started = now();
    return Child{pid, &test, started, started + timeout * timeout_factor(), false};
}

Verdict judge(const Child &child, int status) {
    const Options &expected = child.test->options;
    if (child.killed)
        return {Verdict::failed, "timed out"};
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == expected.signal)
            return {Verdict::passed, ""};
        return {Verdict::crashed, "killed by signal " + std::to_string(WTERMSIG(status))};
    }
    if (WEXITSTATUS(status) == exit_skipped)
        return {Verdict::skipped, "skipped"};
    if (expected.signal != 0)
        return {Verdict::failed, "did not die by signal " + std::to_string(expected.signal)};
    if (WEXITSTATUS(status) != expected.exit_code)
        return {Verdict::failed, "exit status " + std::to_string(WEXITSTATUS(status))};
    return {Verdict::passed, ""};
}

void record(const Child &child, const Verdict &verdict, const Settings &settings, Counts &counts) {
    const double took = now() - child.started;
    counts.tested += verdict.kind != Verdict::skipped;
    switch (verdict.kind) {
    case Verdict::skipped:
        say("SKIP", *child.test, ": %s", verdict.reason.c_str());
        return;
    case Verdict::passed:
        ++counts.passing;
        if (settings.verbose)
            say("PASS", *child.test, ": (%.2fs)", took);
        return;
    case Verdict::crashed:
        ++counts.crashing;
        [[fallthrough]];
    case Verdict::failed:
        ++counts.failing;
        say("FAIL", *child.test, ": %s (%.2fs)", verdict.reason.c_str(), took);
    }
}

void kill_overdue(std::vector<Child> &children) {
    for (Child &child : children) {
        if (child.killed || now() < child.deadline)
            continue;
        child.killed = true;
        kill(-child.pid, SIGKILL);
        kill(child.pid, SIGKILL); // in case neither side has made the group yet
    }
}

// Waits for one child to end, or for a few milliseconds.
void reap(std::vector<Child> &children, const Settings &settings, Counts &counts) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
        // One that ended since we looked has left its signal pending, so that the pause ends at once.
        const sigset_t awaited = child_ends();
        const timespec pause{0, 20'000'000};
        (void)sigtimedwait(&awaited, nullptr, &pause);
        kill_overdue(children);
        return;
    }
    const auto at = std::find_if(children.begin(), children.end(), [pid](const Child &c) { return c.pid == pid; });
    if (at == children.end())
        return;
    kill(-pid, SIGKILL); // what the test forked and left behind
    record(*at, judge(*at, status), settings, counts);
    children.erase(at);
}

Counts run_all(const std::vector<const Case *> &tests, const Settings &settings) {
    Counts counts;
    std::vector<Child> children;
    std::size_t next = 0;
    const sigset_t blocked = child_ends();
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    while (next < tests.size() || !children.empty()) {
        if (next < tests.size() && tests[next]->options.disabled) {
            say("SKIP", *tests[next++], ": %s", "disabled");
        } else if (next < tests.size() && children.size() < settings.jobs) {
            children.push_back(start(*tests[next++], settings));
        } else {
            reap(children, settings, counts);
        }
    }
    return counts;
}

} // namespace
} // namespace mc::testing

int main(int, char **argv) {
    using namespace mc::testing;
    const Settings settings = parse(argv);
    const auto tests = chosen(settings.filter);
    if (settings.list) {
        for (const Case *test : tests)
            std::printf("%s\n", full_name(*test).c_str());
        return 0;
    }
    const Counts counts = run_all(tests, settings);
    std::printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: %u \n", counts.tested,
                counts.passing, counts.failing, counts.crashing);
    return counts.failing == 0 ? 0 : 1;
}

#endif // MC_TEST_FORK
