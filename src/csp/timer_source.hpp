// The sender behind csp_after and csp_tick: no microthread, just a timer that puts the time into a channel of one
// element.
// It lives as long as its channel, which frees it, and is the channel's buffer too: one allocation. It holds the channel's
// writing end, which nobody else ever gets, while it is armed or firing; whoever takes the timer out of the heap for the last
// time (the firing, or the close of the reading end) gives that hold back.
#pragma once

#include "csp/channel.hpp"
#include "sched/executor.hpp"

#include <cstdint>

namespace mc::csp {

class TimerSource : public sched::Timer {
public:
    // The reading end's channel, armed to fire first at first_ns; period_ns 0 is once. Null without memory.
    static Channel *create(sched::Executor &executor, int64_t first_ns, int64_t period_ns) noexcept;

    explicit TimerSource(int64_t period_ns) noexcept : period_ns_(period_ns) {
        elements_.size = sizeof time_;
        elements_.capacity = 1;
        elements_.slots = reinterpret_cast<std::byte *>(&time_);
    }

    // Under the channel's lock, whose reading end is closed. False: it is firing, and will find that out.
    bool stop() noexcept { return deadline_ns == INT64_MAX || sched::TimerHeap::cancel(*this); }

private:
    static void fire(sched::Timer &timer, uint64_t ticket, int64_t now_ns) noexcept;
    static const sched::Timer::Action action_;

    void deliver(int64_t now_ns) noexcept;

    // immutable
    const int64_t period_ns_;
    // guarded by the channel's lock
    Elements elements_;
    int64_t time_ = 0; // the element
    // who fires it: when this beat was due. The heap may have raised deadline_ns to what it had looked at already.
    int64_t beat_ns_ = 0;
    Channel *channel_ = nullptr;
};

} // namespace mc::csp
