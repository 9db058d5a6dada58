#include "mcrt/signals.hpp"

#include "mcrt/stop.hpp"

#include <cstdlib>
#include <iterator>
#include <poll.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile std::sig_atomic_t arrived = 0;

void note(int signal) { arrived = signal; }

// One that was ignored as the command began stays so: nohup, or a shell's background.
void handle(int signal) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN)
        return;
    action.sa_handler = note;
    action.sa_flags = 0; // or the wait would go on
    sigaction(signal, &action, nullptr);
}

} // namespace

Signals::Signals() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : ending)
        sigaddset(&blocked, signal);
    sigprocmask(SIG_BLOCK, &blocked, &before_);
    for (const int signal : ending)
        handle(signal);
    std::signal(SIGPIPE,
                SIG_IGN); // what reads the report may stop reading: there is still something to end and to remove
}

Signals::~Signals() {
    std::signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::wait(pollfd *files, size_t count, double seconds) const {
    const auto whole = static_cast<time_t>(seconds);
    const timespec limit{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    (void)ppoll(files, count, &limit, &before_);
    if (arrived != 0)
        throw Interrupted{arrived};
}

void end_by(int signal) {
    std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    raise(signal);
    _exit(128 + signal);
}

} // namespace mc::mcrt
