// The signals that end the command: they arrive only where it waits, so that nothing is half started or half made then.
#pragma once

#include <csignal>

struct pollfd;

namespace mc::mcrt {

// One at a time, on the only thread.
class Signals {
public:
    Signals();
    ~Signals();
    Signals(const Signals &) = delete;
    Signals &operator=(const Signals &) = delete;

    // For processes that are started: how it was before.
    const sigset_t &mask_before() const { return before_; }

    // Waits, and lets signals arrive meanwhile. Throws Interrupted.
    void wait(pollfd *files, size_t count, double seconds) const;

private:
    sigset_t before_{};
};

// Ends the process as the signal would have.
[[noreturn]] void end_by(int signal);

} // namespace mc::mcrt
