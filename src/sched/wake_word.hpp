// How a sleeping executor is woken: one word, made for one sleeper (its executor) and any number of wakers.
//
//   running   --announce--> parked     (the executor is about to sleep and has found nothing)
//   running   --wake------> notified   (sticky: the next announce fails and the executor looks again)
//   parked    --wake------> notified   (and the waker ends the futex wait)
//   parked    --awake-----> running    (the wait ended by its deadline or by chance)
//   notified  --announce--> running    (announce returns false)
//   notified  --awake-----> running
//
// A waker first publishes its work, then exchanges the word; the executor looks for work, then announces. Both go
// through read-modify-writes of one word, so one of them is first: if the waker is, announce finds notified; if the
// executor is, the waker finds parked. A waker that only looked at the word, or published after the exchange, would
// strand its work.
#pragma once

#include "base/sync.hpp"

#include <cstdint>

namespace mc::sched {

class WakeWord {
public:
    // Executor only. False: somebody has woken us since the last time; look for work again.
    [[nodiscard]] bool announce() noexcept {
        uint32_t seen = running;
        // acq_rel: acquire pairs with wake's release (the work is visible to the look that follows), release orders our
        // last look before the announcement.
        if (word_.compare_exchange_strong(seen, parked, sync::acq_rel, sync::acquire))
            return true;
        // An exchange, not a store: another waker may have come since, and its work must be seen by the look that
        // follows.
        (void)word_.exchange(running, sync::acquire); // acquire: pairs with wake's release
        return false;
    }

    // Executor only, after a successful announce: sleeps until woken or the deadline.
    void sleep(int64_t deadline_ns) noexcept {
        while (word_.load(sync::relaxed) == parked && sync::futex_wait(word_, parked, deadline_ns)) {
        }
        (void)word_.exchange(running, sync::acquire); // acquire: pairs with wake's release
    }

    // Any thread, after it has published what the executor is to find.
    void wake() noexcept {
        if (word_.exchange(notified, sync::acq_rel) == parked)
            sync::futex_wake(word_, 1);
    }

private:
    static constexpr uint32_t running = 0, parked = 1, notified = 2;

    sync::atomic<uint32_t> word_{running};
};

} // namespace mc::sched
