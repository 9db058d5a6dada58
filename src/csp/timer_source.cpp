#include "csp/timer_source.hpp"

#include "base/alloc.hpp"
#include "sched/runtime.hpp"

#include <cstring>

namespace mc::csp {

const sched::Timer::Action TimerSource::action_{nullptr, TimerSource::fire};

Channel *TimerSource::create(sched::Executor &executor, int64_t first_ns, int64_t period_ns) noexcept {
    auto *source = base::create<TimerSource>(period_ns);
    Channel *channel = source == nullptr ? nullptr : Channel::create(nullptr, &source->elements_, source);
    if (channel == nullptr) {
        base::destroy(source);
        return nullptr;
    }
    source->channel_ = channel;
    source->action = &action_;
    source->deadline_ns = source->beat_ns_ = first_ns;
    if (first_ns != INT64_MAX) // else it never fires, and nobody waits for it
        executor.arm(*source);
    return channel;
}

void TimerSource::fire(sched::Timer &timer, uint64_t, int64_t now_ns) noexcept {
    static_cast<TimerSource &>(timer).deliver(now_ns);
}

void TimerSource::deliver(int64_t now_ns) noexcept {
    Channel &channel = *channel_;
    Waiter *peer = nullptr;
    channel.lock();
    const bool wanted = !channel.dead_to(writer_side);
    if (wanted && channel.look(writer_side, &peer) == Channel::Can::buffer)
        channel.use_buffer(writer_side, &now_ns, nullptr);
    const bool again = wanted && period_ns_ > 0;
    if (again) {
        // The beat: the next multiple of the period that is not past. Armed under the channel's lock, so that a reader
        // who closes now either finds it armed, and cancels it, or is seen closed here the next time.
        const uint64_t late = static_cast<uint64_t>(now_ns) - static_cast<uint64_t>(beat_ns_);
        const uint64_t periods = late / static_cast<uint64_t>(period_ns_) + 1;
        const int64_t left = INT64_MAX - 1 - beat_ns_;
        beat_ns_ +=
            periods > static_cast<uint64_t>(left / period_ns_) ? left : static_cast<int64_t>(periods) * period_ns_;
        deadline_ns = beat_ns_;
        // On the executor that fires it: the one that it was on may have stopped.
        sched::current()->executor->arm(*this);
    }
    if (peer != nullptr)
        channel.note_message(nullptr, peer->task);
    channel.unlock(); // armed, this may be gone from here on: a reader may cancel it and let the channel go
    if (peer != nullptr) {
        if (peer->message != nullptr)
            std::memcpy(peer->message, &now_ns, sizeof now_ns);
        sched::Task *task = peer->task;
        task->reason = sched::WakeReason::ready;
        task->wake_value = peer->index + 1;
        sched::wake(task, peer->claim);
    }
    if (!again)
        channel.release(writer_side); // and this with it, perhaps
}

} // namespace mc::csp
