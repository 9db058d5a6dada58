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
        // acquire: pairs with unlock's release; everything the last holder did is visible.
        if (word_.exchange(1, sync::acquire) != 0) [[unlikely]]
            lock_contended();
    }
    bool try_lock() noexcept { return word_.exchange(1, sync::acquire) == 0; }
    void unlock() noexcept { word_.store(0, sync::release); } // release: pairs with lock's acquire

private:
    void lock_contended() noexcept;

    sync::atomic<uint32_t> word_{0};
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
