// One arm: no sorting, one lock, one node.
#include "base/log.hpp"
#include "csp/alt.hpp"
#include "csp/elements.hpp"
#include "csp/transfer.hpp"

namespace mc::csp {
namespace {

using sched::ThreadContext;
using sched::WakeReason;

struct SingleParking : sched::Parking {
    Channel &channel;
    const Side side;
    Waiter waiter;

    SingleParking(Channel &c, Side s, void *message, const Patience &patience) noexcept
        : Parking(commit_single, patience.deadline_ns, patience.scope), channel(c), side(s) {
        one_lock = true;
        waits_for = sched::WaitsFor(s == writer_side ? sched::WaitKind::send : sched::WaitKind::receive, &c);
        waiter.message = message;
    }

    static void commit_single(Parking &parking) noexcept {
        auto &self = static_cast<SingleParking &>(parking);
        self.waiter.task = self.task;
        self.waiter.epoch = self.epoch;
        Channel &channel = self.channel;
        channel.link(self.side, false, &self.waiter);
        channel.unlock(); // nothing of the waiter's frame is touched from here on
    }
};

// Under the lock, which it gives back.
inline int meet(ThreadContext &thread, Channel &channel, Side side, void *message, Waiter &peer,
                bool hand_over) noexcept {
    void *source = side == writer_side ? message : peer.message;
    void *destination = side == writer_side ? peer.message : message;
    const Transfer transfer = channel.transfer();
    channel.note_message(side == writer_side ? thread.running : peer.task,
                         side == writer_side ? peer.task : thread.running);
    hand_over = hand_over && side == writer_side && channel.hands_over();
    if (channel.elements() != nullptr) // under the lock: a channel found by handle may be destroyed after it
        hand_element(*channel.elements(), source, destination);
    channel.unlock();
    if (transfer != nullptr && destination != nullptr)
        run_transfer(thread, transfer, source, destination);
    wake_met(thread, peer, hand_over);
    return 1;
}

// Under the lock, which it gives back.
inline int buffered(ThreadContext &thread, Channel &channel, Side side, void *message) noexcept {
    Waiters woken;
    Waiter *sender = channel.use_buffer(side, message, thread.running);
    channel.drained(woken);
    channel.unlock();
    if (sender != nullptr)
        wake_met(thread, *sender, false);
    wake_dead(woken);
    return 1;
}

// Under the lock, which it gives back.
inline int wait_for_peer(ThreadContext &thread, Channel &channel, Side side, void *message, const Patience &patience,
                         uint32_t generation) noexcept {
    SingleParking parking(channel, side, message, patience);
    if (generation != 0)
        channel.pin(); // a caller with a handle holds no reference
    const WakeReason reason = park(thread, parking);
    const bool decided = reason == WakeReason::ready || reason == WakeReason::closed;
    const int result = decided ? parking.task->wake_value : sched::status_of(reason);
    if (decided && generation == 0)
        return result; // whoever decided has unlinked us
    channel.lock();
    if (parking.waiter.linked())
        Waiters::remove(&parking.waiter);
    const bool destroyed = generation != 0 && channel.generation.load(sync::relaxed) != generation;
    if (generation != 0)
        channel.unpin();
    channel.unlock_and_collect();
    return destroyed && reason == WakeReason::closed ? MC_E_STALE : result;
}

// A receive of an element that nobody wants, on a channel that must drop it: receive it into scratch memory, then drop
// it.
__attribute__((noinline)) int discard(ThreadContext &thread, Channel &channel, const Elements &view,
                                      const Patience &patience, uint32_t generation) noexcept {
    Scratch scratch(view.size);
    if (scratch.get() == nullptr)
        return MC_E_NOMEM;
    const int result = operate(thread, channel, reader_side, scratch.get(), patience, generation);
    if (result == 1)
        drop_element(view, scratch.get());
    return result;
}

// Under the lock: is it still the channel, and the end, that the caller means?
inline bool lives(const Channel &channel, Side side, uint32_t generation) noexcept {
    return generation != 0 ? channel.generation.load(sync::relaxed) == generation : !channel.released(side);
}

// Under the lock, which it gives back: whatever is not an open csp channel.
template <Side side>
__attribute__((noinline)) int operate_locked(ThreadContext &thread, Channel &channel, void *message,
                                             const Patience &patience, uint32_t generation) noexcept {
    if (!lives(channel, side, generation)) {
        channel.unlock();
        return generation != 0 ? MC_E_STALE : report_released();
    }
    if (message == nullptr && side == reader_side && must_drop(channel)) {
        const Elements view = *channel.elements();
        channel.unlock();
        return discard(thread, channel, view, patience, generation);
    }
    Waiter *peer = nullptr;
    switch (channel.look(side, &peer)) {
    case Channel::Can::meet:
        return meet(thread, channel, side, message, *peer, patience.may_wait());
    case Channel::Can::buffer:
        return buffered(thread, channel, side, message);
    case Channel::Can::dead:
        channel.unlock();
        return -1;
    case Channel::Can::wait:
        break;
    }
    const int refused = refusal(thread, patience);
    if (refused <= 0) {
        channel.unlock();
        return refused;
    }
    return wait_for_peer(thread, channel, side, message, patience, generation);
}

// A csp channel, by a caller who holds a reference and waits without a deadline: what most calls are.
template <Side side> inline int operate_plain(ThreadContext &thread, Channel &channel, void *message) noexcept {
    channel.lock();
    if (channel.special() || channel.released(side) || thread.no_switch != 0 || thread.running->scope != nullptr)
        [[unlikely]] {
        if (message != nullptr && !channel.released(side) && channel.pass_buffer(side, message)) {
            channel.unlock();
            return 1;
        }
        return operate_locked<side>(thread, channel, message, Patience{}, 0);
    }
    if (Waiter *peer = channel.claim_first(other(side))) {
        channel.unlock();
        void *source = side == writer_side ? message : peer->message;
        void *destination = side == writer_side ? peer->message : message;
        if (destination != nullptr && channel.transfer() != nullptr)
            run_transfer(thread, channel.transfer(), source, destination);
        sched::Task *task = peer->task;
        const sched::TaskWord::Claim claim = peer->claim;
        task->reason = WakeReason::ready;
        task->wake_value = peer->index + 1;
        if constexpr (side == writer_side)
            sched::wake_handing_over(thread, task, claim);
        else
            sched::wake_from(&thread, task, claim);
        return 1;
    }
    SingleParking parking(channel, side, message, Patience{});
    const WakeReason reason = sched::leave(thread, parking);
    if (reason == WakeReason::ready || reason == WakeReason::closed) [[likely]]
        return parking.task->wake_value; // whoever decided has unlinked us
    channel.lock();
    Waiters::remove(&parking.waiter);
    channel.unlock_and_collect();
    return sched::status_of(reason);
}

} // namespace

int report_released() noexcept {
    base::log(MC_LOG_ERROR, MC_E_STALE, "an endpoint was used after its last release");
    return MC_E_STALE;
}

int send_one(ThreadContext &thread, Channel &channel, void *message) noexcept {
    return operate_plain<writer_side>(thread, channel, message);
}

int receive_one(ThreadContext &thread, Channel &channel, void *message) noexcept {
    return operate_plain<reader_side>(thread, channel, message);
}

int operate(ThreadContext &thread, Channel &channel, Side side, void *message, const Patience &patience,
            uint32_t generation) noexcept {
    channel.lock();
    // Here, before the call: operate_locked saves many registers.
    if (message != nullptr && lives(channel, side, generation) && channel.pass_buffer(side, message)) {
        channel.unlock();
        return 1;
    }
    return side == writer_side ? operate_locked<writer_side>(thread, channel, message, patience, generation)
                               : operate_locked<reader_side>(thread, channel, message, patience, generation);
}

} // namespace mc::csp
