// The systematic twin's explorer: decides which runs there are, keeps count, and says how to repeat one that failed.
//
// Callers: explore() (systematic.hpp), on the test's thread.
#pragma once

#include "testing/systematic.hpp"
#include "testing/systematic_engine.hpp"
#include "testing/systematic_isolate.hpp"

#include <csignal>
#include <string>
#include <unordered_set>
#include <vector>

namespace mc::testing::sys {

// A run to repeat, as MC_SYS_REPLAY names it:
//
//   <number of the exploration in its test>/seed:<seed>
//   <number of the exploration in its test>/p<budget of preemptions>:<path>
//
// where the path is that of Choices::path().
struct Replay {
    bool wanted = false; // there is one, and it names this exploration
    bool by_seed = false;
    std::uint64_t seed = 0;
    int preemptions = 0;
    std::vector<unsigned> path;

    static Replay parse(const char *text, int exploration);
};

class Explorer {
public:
    Explorer(const Exploration &exploration, const std::function<void()> &body);
    Explorer(const Explorer &) = delete;
    Explorer &operator=(const Explorer &) = delete;

    Explored explore();

    // A failed cr_assert, on whatever stack; ends the process if a run is on.
    void assertion_failed();
    // The process is about to die of a signal, which was raised inside a run.
    void crashed(int signal);

private:
    void repeat(const Replay &replay);
    void by_seeds();
    void exhaustively();
    // False: stop.
    bool search(int preemptions);
    bool run(const Limits &limits);
    void failed(const Outcome &outcome);
    void say(const std::string &headline, const std::string &report) const;
    std::string replay_string() const;
    std::string command() const;
    Limits limits(int preemptions, int stale) const;
    Limits seed_limits() const;

    // Immutable.
    const Exploration &exploration_;
    const std::function<void()> &body_;
    const int number_; // of the exploration in its process
    const std::string test_;

    Engine engine_;
    Choices choices_;
    Isolation isolation_;
    Explored explored_;
    std::unordered_set<std::uint64_t> signatures_;
    std::string source_; // of the choices: "seed:5", or "p2:" (to which the path is added)
    bool verbose_ = false;
    bool assertion_failed_ = false;
};

// While one lives, a process that dies inside a run says first how to repeat the run.
class CrashWatch {
public:
    explicit CrashWatch(Explorer &explorer);
    ~CrashWatch();
    CrashWatch(const CrashWatch &) = delete;
    CrashWatch &operator=(const CrashWatch &) = delete;

private:
    static constexpr int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    static constexpr unsigned count = sizeof signals / sizeof *signals;
    static void on_signal(int signal);
    static void on_assertion();
    static CrashWatch *watching;

    Explorer &explorer_;
    struct sigaction before_[count];
    stack_t stack_before_;
    std::vector<char> stack_;
};

} // namespace mc::testing::sys
