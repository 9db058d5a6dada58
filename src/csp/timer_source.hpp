// The sender behind csp_after and csp_tick: no microthread, just a timer that puts the time into a channel of one
// element.
// It lives as long as its channel, which frees it. It holds the channel's writing end while it is armed or firing;
// whoever takes the timer out of the heap for the last time (the firing, or the release of the reading end) gives that
// hold back.
#pragma once

#include "csp/channel.hpp"
#include "sched/executor.hpp"

#include <cstdint>

namespace mc::csp {

class TimerSource : public sched::Timer {
public:
    // The reading end's channel, armed to fire first at first_ns; period_ns 0 is once. Null without memory.
    static Channel *create(sched::Executor &executor, int64_t first_ns, int64_t period_ns) noexcept;

    explicit TimerSource(int64_t period_ns) noexcept : period_ns_(period_ns) {}

    // The channel's reading end has closed.
    void reader_closed() noexcept;

private:
    static void fire(sched::Timer &timer, uint64_t ticket, int64_t now_ns) noexcept;
    static const sched::Timer::Action action_;

    void deliver(int64_t now_ns) noexcept;
    void end() noexcept;

    // immutable
    const int64_t period_ns_;
    // who fires it: when this beat was due. The heap may have raised deadline_ns to what it had looked at already.
    int64_t beat_ns_ = 0;
    Channel *channel_ = nullptr;
};

} // namespace mc::csp
