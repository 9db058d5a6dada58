// The lock of channels, timers and slabs: one word, an atomic exchange to take, a plain store to give back. Made of
// atomics alone, so that it may be taken on one fiber and given back on another of the same executor (a lock crosses at
// most one switch). Held briefly (to copy an element, to walk the waiters of one channel), never across a user's
// callback.
//
// Waiting spins briefly (see spinlock.cpp), then yields the processor, since on a machine with few cores the holder may have been
// preempted, then sleeps for 50 microseconds at a time.
// Rejected: a futex lock, whose unlock must be a read-modify-write (5 ns on every operation for a case that is rare).
#pragma once

#include "base/sync.hpp"

namespace mc::base {

class Spinlock {
public:
    void lock() noexcept {
        if (const uint32_t holder = take_or_holder(); holder != free) [[unlikely]]
            wait(holder);
    }
    // lock() in two halves, for who would rather wait where no registers need be saved for a call. `free`: the caller has the lock
    // now. Else somebody has it, and the caller calls wait() with this word.
    static constexpr uint32_t free = 0;
    // acquire: pairs with unlock's release; everything the last holder did is visible.
    uint32_t take_or_holder() noexcept { return word_.exchange(taken, sync::acquire); }
    void wait(uint32_t holder) noexcept;
    bool try_lock() noexcept { return word_.exchange(taken, sync::acquire) == free; }
    void unlock() noexcept { word_.store(free, sync::release); } // release: pairs with lock's acquire

private:
    static constexpr uint32_t taken = 1, taken_after_waiting = 2;

    void sleep() noexcept;

    sync::atomic<uint32_t> word_{free};
};

class SpinGuard {
public:
    explicit SpinGuard(Spinlock &lock) noexcept : lock_(lock) { lock_.lock(); }
    ~SpinGuard() { lock_.unlock(); }
    SpinGuard(const SpinGuard &) = delete;
    SpinGuard &operator=(const SpinGuard &) = delete;

private:
    Spinlock &lock_;
};

} // namespace mc::base
