// See systematic_isolate.hpp.
#if defined(MC_SYS)
#include "testing/systematic_isolate.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mc::testing::sys {

struct Isolation::Shared {
    bool written; // by the child, when the rest is complete
    bool failed;
    std::uint64_t signature;
    std::uint32_t steps;
    char what[1024];
    char report[1 << 16];
    ChoiceRecord choices;
};

namespace {

template <std::size_t size> void copy_text(char (&to)[size], const std::string &text) {
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}

[[noreturn]] void give_up(const char *what) {
    std::perror(what);
    std::abort();
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            give_up("systematic twin: waitpid");
    return status;
}

} // namespace

Isolation::~Isolation() {
    if (shared_)
        munmap(shared_, sizeof(Shared));
}

void Isolation::leave_word(const Outcome &outcome, const Choices &choices) {
    shared_->failed = outcome.failed;
    shared_->signature = outcome.signature;
    shared_->steps = outcome.steps;
    copy_text(shared_->what, outcome.what);
    copy_text(shared_->report, outcome.report);
    choices.save(shared_->choices);
    shared_->written = true;
}

Outcome Isolation::run(Engine &engine, const Limits &limits, Choices &choices, const std::function<void()> &body) {
    if (!shared_) {
        void *memory =
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            give_up("systematic twin: mmap");
        shared_ = static_cast<Shared *>(memory);
    }
    shared_->written = false;
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0)
        give_up("systematic twin: fork");
    if (child == 0) {
        is_child_ = true;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        leave_word(engine.run(limits, choices, body), choices);
        _exit(0);
    }
    const int status = wait_for(child);
    Outcome outcome;
    outcome.failed = shared_->failed;
    outcome.what = shared_->what;
    if (!shared_->written) {
        outcome.failed = true;
        outcome.what = "the process of the run ended with status " + std::to_string(status) + " and without a word";
        outcome.report = outcome.what + "\n";
        return outcome;
    }
    choices.restore(shared_->choices);
    outcome.report = shared_->report;
    outcome.signature = shared_->signature;
    outcome.steps = shared_->steps;
    return outcome;
}

} // namespace mc::testing::sys
#endif
