// The opt-in stack overflow reporter, and the description of a fault for a host's own handler.
//
// Who calls: overflow_report, any thread; overflow_thread_*, the thread whose AltStack it is; fault_describe, anywhere,
// signal handlers included.
//
// A fault in a guard cannot be handled on the stack that has run out, so each thread that runs fibers needs an
// alternate signal stack while the reporter is on. Each such thread owns an AltStack and shows it to
// overflow_thread_begin when it starts, overflow_thread_poll now and then (one load and a compare), and
// overflow_thread_end when it stops. A thread that has an alternate stack already (a host's, Go's, ASan's) keeps it.
//
// What is not seen: a frame larger than the guard page whose function does not touch it on the way down (alloca, large
// arrays) steps over the guard. Programs with such frames are compiled with -fstack-clash-protection, as distributions'
// packages are; then every page is touched.
#pragma once

#include "base/sync.hpp"
#include "fiber/stack.hpp"

#include <cstddef>
#include <cstdint>

namespace mc::fiber {

// A thread's alternate signal stack. Owner: that thread.
struct AltStack {
    void *memory = nullptr; // null: none of ours is installed
    std::size_t bytes = 0;
    uint32_t seen = 0; // the reporter's epoch at the last look
};

// Turns the reporter on or off. self: the calling thread's, or null when it runs no fibers; it gets its alternate
// stack at once, the other threads at their next poll. MC_OK (also when it is on or off already). On: MC_E_NOMEM, no
// alternate stack. Off: MC_E_BUSY, somebody has replaced the handler since, which may call ours: it stays.
int32_t overflow_report(bool on, AltStack *self);

namespace detail {
extern sync::atomic<uint32_t> overflow_epoch; // odd: the reporter is on
void overflow_catch_up(AltStack &self);
} // namespace detail

inline void overflow_thread_poll(AltStack &self) {
    // acquire: pairs with the release in overflow_report; nothing but the number itself is read through it.
    if (self.seen != detail::overflow_epoch.load(sync::acquire)) [[unlikely]]
        detail::overflow_catch_up(self);
}
inline void overflow_thread_begin(AltStack &self) { overflow_thread_poll(self); }
void overflow_thread_end(AltStack &self);

// How the scheduler names the owner of a stack (stack_set_owner). Async-signal-safe; false: it is nobody any more.
// name: 32 bytes, NUL-terminated; empty when it has none.
using DescribeOwner = bool (*)(void *owner, uint64_t *id, char *name);
void overflow_set_describe(DescribeOwner describe);

// Around a fork, see before_fork in stack.hpp.
void overflow_lock();
void overflow_unlock();

// mc_fault_describe: MC_OK, MC_E_NOENT, MC_E_INVAL; buf has MC_FAULT_TEXT bytes. Async-signal-safe.
int32_t fault_describe(const void *addr, char *buf);

// The canary of this stack is gone: says whose, and aborts.
[[noreturn]] void overflow_abort(const Stack &stack);

} // namespace mc::fiber
