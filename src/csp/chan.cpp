#include "csp/chan.hpp"

#include "csp/elements.hpp"

namespace mc::csp {
namespace {

Channel *resolve(mc_chan_t handle) noexcept {
    return base::resolve_handle(channel_slab(), base::HandleKind::chan, handle);
}

bool lock_resolved(mc_chan_t handle, Channel **out) noexcept {
    Channel *channel = resolve(handle);
    if (channel == nullptr)
        return false;
    channel->lock();
    if (channel->generation.load(sync::relaxed) != base::handle_generation(handle)) {
        channel->unlock();
        return false;
    }
    *out = channel;
    return true;
}

int32_t to_status(int result) noexcept {
    switch (result) {
    case 1:
        return MC_OK;
    case 0:
        return MC_E_AGAIN;
    case -1:
        return MC_E_CLOSED;
    default:
        return result;
    }
}

// Bytes of one element, or 0 when the handle is stale (the operation itself will say so).
uint32_t element_size(mc_chan_t handle) noexcept {
    Channel *channel = nullptr;
    if (!lock_resolved(handle, &channel))
        return 0;
    const uint32_t size = channel->elements()->size;
    channel->unlock();
    return size;
}

void *advance(void *elements, uint32_t index, uint32_t size) noexcept {
    return elements == nullptr ? nullptr : static_cast<std::byte *>(elements) + size_t{index} * size;
}

} // namespace

int32_t create_chan(uint32_t size, uint32_t capacity, mc_chan_drop_fn drop, void *user, mc_chan_t *out) noexcept {
    if (out == nullptr || size > MC_CHAN_ELEM_MAX || capacity > MC_CHAN_CAPACITY_MAX)
        return MC_E_INVAL;
    Elements *elements = make_elements(size, capacity, drop, user);
    if (elements == nullptr)
        return MC_E_NOMEM;
    Channel *channel = Channel::create(nullptr, elements, nullptr);
    if (channel == nullptr) {
        free_elements(elements);
        return MC_E_NOMEM;
    }
    *out = base::issue_handle(channel, base::HandleKind::chan);
    return MC_OK;
}

int32_t close_chan(mc_chan_t handle) noexcept {
    Channel *channel = resolve(handle);
    bool was_closed = false;
    if (channel == nullptr || !channel->close_if(base::handle_generation(handle), writer_side, &was_closed))
        return MC_E_STALE;
    return was_closed ? MC_E_CLOSED : MC_OK;
}

int32_t destroy_chan(mc_chan_t handle) noexcept {
    Channel *channel = resolve(handle);
    return channel != nullptr && channel->destroy_if(base::handle_generation(handle)) ? MC_OK : MC_E_STALE;
}

Channel *chan_end(mc_chan_t handle, Side side, int32_t *status) noexcept {
    Channel *channel = nullptr;
    *status = MC_E_STALE;
    if (!lock_resolved(handle, &channel))
        return nullptr;
    const bool open = !channel->closed(side);
    if (open)
        channel->add_reference(side); // the handle holds one, so there is one
    channel->unlock();
    *status = open ? MC_OK : MC_E_CLOSED;
    return open ? channel : nullptr;
}

int32_t operate_chan(sched::ThreadContext &thread, mc_chan_t handle, Side side, void *element,
                     const Patience &patience) noexcept {
    Channel *channel = resolve(handle);
    if (channel == nullptr)
        return MC_E_STALE;
    // A sender's null element is a mistake unless elements have no bytes. (Stale by now: operate() says so.)
    if (element == nullptr && side == writer_side && element_size(handle) != 0)
        return MC_E_INVAL;
    return to_status(operate(thread, *channel, side, element, patience, base::handle_generation(handle)));
}

int32_t send_many(mc_chan_t handle, const void *elements, uint32_t count, uint32_t *sent) noexcept {
    const uint32_t size = element_size(handle);
    if (resolve(handle) == nullptr)
        return MC_E_STALE;
    uint32_t done = 0;
    int32_t status = MC_OK;
    for (; done < count; ++done) {
        status = operate_chan(sched::here_now(), handle, writer_side, advance(const_cast<void *>(elements), done, size),
                              Patience{});
        if (status != MC_OK)
            break;
    }
    if (done == 0 && status != MC_OK)
        return status;
    *sent = done;
    return MC_OK;
}

int32_t receive_many(mc_chan_t handle, void *elements, uint32_t max, uint32_t *received) noexcept {
    const uint32_t size = element_size(handle);
    if (elements == nullptr && size != 0)
        return MC_E_INVAL;
    uint32_t done = 0;
    Patience patience;
    for (; done < max; ++done) {
        const int32_t status =
            operate_chan(sched::here_now(), handle, reader_side, advance(elements, done, size), patience);
        if (status != MC_OK && done == 0)
            return status;
        if (status != MC_OK)
            break;
        patience.nowait = true; // the rest only if it is there
    }
    *received = done;
    return MC_OK;
}

} // namespace mc::csp
