// mc/csp.h: channels of elements.
#include <mc/csp.h>

#include "abi/call.hpp"
#include "csp/chan.hpp"
#include "sched/switch.hpp"

namespace {

using mc::abi::enter;
using mc::csp::Patience;
using mc::csp::Side;
using mc::sched::ThreadContext;

__attribute__((noinline)) int32_t operate(mc_chan_t ch, Side side, void *element, const Patience &patience) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    return mc::csp::operate_chan(*mc::sched::begin_call(thread, patience.may_wait()), ch, side, element, patience);
}

// Out of line, so that who takes the short way builds no Patience.
__attribute__((noinline)) int32_t operate_patiently(mc_chan_t ch, Side side, void *element) noexcept {
    return operate(ch, side, element, Patience{});
}

// A sender's element is only read.
void *readable(const void *element) noexcept { return const_cast<void *>(element); }

int32_t send(mc_chan_t ch, const void *element, const Patience &patience) noexcept {
    return operate(ch, mc::csp::writer_side, readable(element), patience);
}

int32_t receive(mc_chan_t ch, void *element, const Patience &patience) noexcept {
    return operate(ch, mc::csp::reader_side, element, patience);
}

} // namespace

int32_t mc_chan_create(mc_runtime_t rt, uint32_t elem_size, uint32_t capacity, mc_chan_drop_fn drop, void *user,
                       mc_chan_t *out) noexcept {
    return mc::abi::with_runtime(rt, [=](ThreadContext &, mc::sched::Pool &) {
        return mc::csp::create_chan(elem_size, capacity, drop, user, out);
    });
}

int32_t mc_send(mc_chan_t ch, const void *elem) noexcept {
    return mc::csp::pass_chan<mc::csp::writer_side, operate_patiently>(ch, readable(elem));
}
int32_t mc_recv(mc_chan_t ch, void *elem) noexcept {
    return mc::csp::pass_chan<mc::csp::reader_side, operate_patiently>(ch, elem);
}
int32_t mc_send_try(mc_chan_t ch, const void *elem) noexcept { return send(ch, elem, {true}); }
int32_t mc_recv_try(mc_chan_t ch, void *elem) noexcept { return receive(ch, elem, {true}); }
int32_t mc_send_until(mc_chan_t ch, const void *elem, int64_t deadline_ns) noexcept {
    return send(ch, elem, {false, deadline_ns});
}
int32_t mc_recv_until(mc_chan_t ch, void *elem, int64_t deadline_ns) noexcept {
    return receive(ch, elem, {false, deadline_ns});
}

int32_t mc_send_n(mc_chan_t ch, const void *elems, uint32_t count, uint32_t *sent) noexcept {
    if (sent == nullptr)
        return MC_E_INVAL;
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    (void)mc::sched::begin_call(thread, true);
    return mc::csp::send_many(ch, elems, count, sent);
}

int32_t mc_recv_n(mc_chan_t ch, void *elems, uint32_t max, uint32_t *received) noexcept {
    if (received == nullptr || max == 0)
        return MC_E_INVAL;
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    (void)mc::sched::begin_call(thread, true);
    return mc::csp::receive_many(ch, elems, max, received);
}

int32_t mc_chan_close(mc_chan_t ch) noexcept {
    return mc::abi::with_task([=](mc::sched::Task &) { return mc::csp::close_chan(ch); });
}

int32_t mc_chan_destroy(mc_chan_t ch) noexcept {
    return mc::abi::with_task([=](mc::sched::Task &) { return mc::csp::destroy_chan(ch); });
}

int32_t mc_chan_writer(mc_chan_t ch, csp_writer *out) noexcept {
    int32_t status = MC_OK;
    if (out == nullptr)
        return MC_E_INVAL;
    if (enter(&status) == nullptr)
        return status;
    mc::csp::Channel *channel = mc::csp::chan_end(ch, mc::csp::writer_side, &status);
    if (channel != nullptr)
        *out = mc::csp::writer_handle(channel);
    return status;
}

int32_t mc_chan_reader(mc_chan_t ch, csp_reader *out) noexcept {
    int32_t status = MC_OK;
    if (out == nullptr)
        return MC_E_INVAL;
    if (enter(&status) == nullptr)
        return status;
    mc::csp::Channel *channel = mc::csp::chan_end(ch, mc::csp::reader_side, &status);
    if (channel != nullptr)
        *out = mc::csp::reader_handle(channel);
    return status;
}
