// What an executor needs from below: a place to sleep, somebody to ask for events, a clock and chance. The executor
// that owns the driver calls park and poll; wake may come from any thread. An event loop or a simulator takes the
// place of the futex driver without a change in this room.
#pragma once

#include "base/prng.hpp"
#include "sched/wake_word.hpp"

#include <cstdint>

namespace mc::sched {

class Driver {
public:
    virtual ~Driver() = default;

    // Sleeps until wake(), an event of the driver's own, or the deadline (steady nanoseconds; INT64_MAX: none).
    // Returns at once when wake() was called since the last park. May return early without a cause.
    virtual void park(int64_t deadline_ns) noexcept = 0;

    // Collects events without sleeping.
    virtual void poll() noexcept = 0;

    // Ends the current park, or the next one. Any thread.
    virtual void wake() noexcept = 0;

    virtual int64_t now() noexcept = 0;
    virtual uint64_t random() noexcept = 0;
};

// Where executors get their drivers: one each, which lives as long as the process does, unless the executor can not be made
// after all. make: null without memory. Called by the thread that makes the executor, one at a time.
struct DriverSource {
    Driver *(*make)(void *user, uint32_t index, uint64_t seed) noexcept;
    void (*destroy)(void *user, Driver *driver) noexcept;
    void *user;
};
extern const DriverSource futex_drivers; // driver.cpp

// Sleeps on a futex; has no events of its own.
class FutexDriver final : public Driver {
public:
    explicit FutexDriver(uint64_t seed) noexcept : prng_(seed) {}

    void park(int64_t deadline_ns) noexcept override {
        if (word_.announce())
            word_.sleep(deadline_ns);
    }
    void poll() noexcept override {}
    void wake() noexcept override { word_.wake(); }
    int64_t now() noexcept override { return sync::now_ns(); }
    uint64_t random() noexcept override { return prng_.next(); }

private:
    WakeWord word_;
    base::Prng prng_; // owner executor only
};

} // namespace mc::sched
