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
// The short way of operate_chan, see Channel::pass_buffer. False: nothing has happened.
template <Side side> __attribute__((always_inline)) inline bool pass_chan(mc_chan_t handle, void *element) noexcept {
    Channel *channel = base::resolve_handle(channel_slab(), base::HandleKind::chan, handle);
    if (channel == nullptr || element == nullptr)
        return false;
    channel->lock();
    const bool passed = channel->generation.load(sync::relaxed) == base::handle_generation(handle) &&
                        channel->pass_buffer(side, element);
    channel->unlock();
    return passed;
}

int32_t operate_chan(sched::ThreadContext &thread, mc_chan_t handle, Side side, void *element,
                     const Patience &patience) noexcept;

// Several; see mc_send_n and mc_recv_n. For a thread that has been attached.
int32_t send_many(mc_chan_t handle, const void *elements, uint32_t count, uint32_t *sent) noexcept;
int32_t receive_many(mc_chan_t handle, void *elements, uint32_t max, uint32_t *received) noexcept;

} // namespace mc::csp
