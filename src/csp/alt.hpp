// Sending, receiving and choosing. See mc/csp.h for what callers are promised.
//
// The protocol, for one arm or many: lock the channels in the order of their addresses (their slots never move or go,
// so that holds even against a caller who uses an end after its last release); look at the arms in order, and the first
// that decides wins (a claimed peer, the buffer, a dead channel). Give the locks back; move the message; wake the peer.
// When none decides: park, registering with all channels while the locks are still held; whoever claims us unlinks the
// one arm that it came through, and we unlink the rest.
#pragma once

#include "base/alloc.hpp"
#include "csp/channel.hpp"
#include "sched/runtime.hpp"

#include <mc/csp.h>

#include <cstdint>

namespace mc::csp {

// How long an operation may wait.
struct Patience {
    bool nowait = false; // nothing switches either
    int64_t deadline_ns = INT64_MAX;
    sched::Scope *scope = nullptr;

    // A call that would not wait does not hand the processor over either, nor give up its turn.
    bool may_wait() const noexcept { return !nowait && deadline_ns != MC_NOW; }
};

// What an operation that can not go now does: 1 it may wait; else the result that it returns at once.
inline int refusal(const sched::ThreadContext &thread, const Patience &patience) noexcept {
    if (patience.nowait)
        return 0;
    if (patience.deadline_ns != MC_FOREVER && patience.deadline_ns <= sync::now_ns())
        return MC_E_TIMEDOUT;
    const int32_t status = sched::may_block(thread);
    return status == MC_OK ? 1 : status;
}

// Where an element goes that is received only to be dropped: small ones on the stack, so that nothing is allocated.
class Scratch {
public:
    explicit Scratch(size_t size) noexcept : size_(size) {
        if (size_ > sizeof small_)
            large_ = base::allocate(size_, alignof(std::max_align_t));
    }
    ~Scratch() { base::deallocate(large_, size_, alignof(std::max_align_t)); }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    void *get() noexcept { return size_ > sizeof small_ ? large_ : small_; } // null without memory

private:
    const size_t size_;
    void *large_ = nullptr;
    alignas(std::max_align_t) std::byte small_[64];
};

// A caller's mistake that is always worth a line: logs it. MC_E_STALE.
int report_released() noexcept;

// Under the lock: an element of this channel that nobody wants has to be dropped. (One without bytes is received all
// the same when the message is null.)
inline bool must_drop(const Channel &channel) noexcept {
    const Elements *elements = channel.elements();
    return elements != nullptr && elements->drop != nullptr && elements->size != 0;
}

// One arm. generation != 0: the channel was found by handle, and must still be of that generation.
// 1, -1 (dead), 0 (nowait), or an MC_E_* code.
int operate(sched::ThreadContext &thread, Channel &channel, Side side, void *message, const Patience &patience,
            uint32_t generation) noexcept;

// The same for callers who hold a reference and wait as long as it takes.
int send_one(sched::ThreadContext &thread, Channel &channel, void *message) noexcept;
int receive_one(sched::ThreadContext &thread, Channel &channel, void *message) noexcept;

// Many arms. As csp_alt; random: from a random arm on.
int alt(sched::ThreadContext &thread, const csp_chanop *ops, int count, bool random, const Patience &patience) noexcept;

} // namespace mc::csp
