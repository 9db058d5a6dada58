// One arm: no sorting, one lock, one node.
#include "base/alloc.hpp"
#include "csp/alt.hpp"
#include "csp/elements.hpp"
#include "csp/transfer.hpp"

namespace mc::csp {
namespace {

using sched::ThreadContext;
using sched::WakeReason;

struct SingleParking : sched::Parking {
    Channel *channel = nullptr;
    Side side = writer_side;
    Waiter waiter;

    static void commit_single(Parking &parking) noexcept {
        auto &self = static_cast<SingleParking &>(parking);
        self.waiter.task = self.task;
        self.waiter.epoch = self.epoch;
        self.channel->link(self.side, false, &self.waiter);
        self.channel->unlock();
    }
};

// Under the lock, which it gives back.
int meet(ThreadContext &thread, Channel &channel, Side side, void *message, Waiter &peer, bool hand_over) noexcept {
    void *source = side == writer_side ? message : peer.message;
    void *destination = side == writer_side ? peer.message : message;
    const Transfer transfer = channel.transfer();
    if (channel.elements() != nullptr) // under the lock: a channel found by handle may be destroyed after it
        hand_element(*channel.elements(), source, destination);
    channel.unlock();
    if (transfer != nullptr && destination != nullptr)
        run_transfer(thread, transfer, source, destination);
    wake_met(thread, peer, hand_over && side == writer_side);
    return 1;
}

// Under the lock, which it gives back.
int buffered(ThreadContext &thread, Channel &channel, Side side, void *message) noexcept {
    Waiters woken;
    Waiter *sender = channel.use_buffer(side, message);
    channel.drained(woken);
    channel.unlock();
    if (sender != nullptr)
        wake_met(thread, *sender, false);
    wake_dead(woken);
    return 1;
}

// Under the lock, which it gives back.
int wait_for_peer(ThreadContext &thread, Channel &channel, Side side, void *message, const Patience &patience,
                  uint32_t generation) noexcept {
    SingleParking parking;
    parking.commit = SingleParking::commit_single;
    parking.deadline_ns = patience.deadline_ns;
    parking.scope = patience.scope;
    parking.channel = &channel;
    parking.side = side;
    parking.waiter.message = message;
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

// A receive of an element that nobody wants, on a channel that must drop it: receive it into scratch memory, then drop it.
int discard(ThreadContext &thread, Channel &channel, const Elements &view, const Patience &patience,
            uint32_t generation) noexcept {
    const size_t size = view.size == 0 ? 1 : view.size;
    void *scratch = base::allocate(size, alignof(std::max_align_t));
    if (scratch == nullptr)
        return MC_E_NOMEM;
    const int result = operate(thread, channel, reader_side, scratch, patience, generation);
    if (result == 1)
        drop_element(view, scratch);
    base::deallocate(scratch, size, alignof(std::max_align_t));
    return result;
}

} // namespace

int operate(ThreadContext &thread, Channel &channel, Side side, void *message, const Patience &patience,
            uint32_t generation) noexcept {
    channel.lock();
    if (generation != 0 ? channel.generation.load(sync::relaxed) != generation : channel.released(side)) {
        channel.unlock();
        return MC_E_STALE;
    }
    if (message == nullptr && side == reader_side && must_drop(channel)) {
        const Elements view = *channel.elements();
        channel.unlock();
        return discard(thread, channel, view, patience, generation);
    }
    Waiter *peer = nullptr;
    switch (channel.look(side, &peer)) {
    case Channel::Can::meet:
        return meet(thread, channel, side, message, *peer, !patience.nowait);
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

} // namespace mc::csp
