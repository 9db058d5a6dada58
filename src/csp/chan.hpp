// Channels of elements by handle: mc_chan_*, mc_send, mc_recv. See mc/csp.h for what callers are promised.
#pragma once

#include "csp/alt.hpp"

#include <mc/csp.h>

#include <cstdint>

namespace mc::csp {

int32_t create_chan(uint32_t size, uint32_t capacity, mc_chan_drop_fn drop, void *user, mc_chan_t *out) noexcept;
int32_t close_chan(mc_chan_t handle) noexcept;
int32_t destroy_chan(mc_chan_t handle) noexcept;

// A new reference to one end; null with the reason in *status.
Channel *chan_end(mc_chan_t handle, Side side, int32_t *status) noexcept;

// One element. MC_OK, MC_E_AGAIN (nowait), or what kept it from happening.
int32_t operate_chan(sched::ThreadContext &thread, mc_chan_t handle, Side side, void *element,
                     const Patience &patience) noexcept;

// The short way of operate_chan, which most calls go: by a thread in the midst of a quantum, see Channel::may_pass_buffer. Where
// that does not do, what Otherwise(handle, side, element) returns, and nothing has happened before. It counts as any call.
//
// Nothing is called on it, so no register is saved for that: what calls (a wait for the lock, a copy of other than eight bytes) is a
// function of its own, which the way ends with.
using Otherwise = int32_t (*)(mc_chan_t, Side, void *) noexcept;

template <Side side>
__attribute__((noinline)) int32_t pass_bytes(sched::ThreadContext *thread, Channel *channel, void *element) noexcept {
    channel->move(side, element);
    channel->unlock();
    --thread->reductions;
    return MC_OK;
}

// With the lock.
template <Side side, Otherwise otherwise>
__attribute__((always_inline)) inline int32_t pass_locked(sched::ThreadContext *thread, Channel *channel,
                                                          mc_chan_t handle, void *element) noexcept {
    if (channel->generation.load(sync::relaxed) == base::handle_generation(handle) && channel->may_pass_buffer(side))
        [[likely]] {
        if (channel->elements()->size != sizeof(uint64_t))
            return pass_bytes<side>(thread, channel, element);
        channel->move(side, element);
        channel->unlock();
        --thread->reductions;
        return MC_OK;
    }
    channel->unlock();
    return otherwise(handle, side, element);
}

template <Side side, Otherwise otherwise>
__attribute__((noinline)) int32_t pass_after_waiting(sched::ThreadContext *thread, Channel *channel, mc_chan_t handle,
                                                     void *element, uint32_t holder) noexcept {
    channel->spinlock().wait(holder);
    return pass_locked<side, otherwise>(thread, channel, handle, element);
}

template <Side side, Otherwise otherwise>
__attribute__((always_inline)) inline int32_t pass_chan(mc_chan_t handle, void *element) noexcept {
    sched::ThreadContext *thread = sched::current();
    if (thread == nullptr || thread->executor == nullptr || thread->reductions <= 1 || element == nullptr)
        return otherwise(handle, side, element);
    Channel *channel = base::locate_handle(channel_slab(), base::HandleKind::chan, handle);
    if (channel == nullptr)
        return otherwise(handle, side, element);
    if (const uint32_t holder = channel->spinlock().take_or_holder(); holder != base::Spinlock::free) [[unlikely]]
        return pass_after_waiting<side, otherwise>(thread, channel, handle, element, holder);
    return pass_locked<side, otherwise>(thread, channel, handle, element);
}

// Several; see mc_send_n and mc_recv_n. For a thread that has been attached.
int32_t send_many(mc_chan_t handle, const void *elements, uint32_t count, uint32_t *sent) noexcept;
int32_t receive_many(mc_chan_t handle, void *elements, uint32_t max, uint32_t *received) noexcept;

} // namespace mc::csp
