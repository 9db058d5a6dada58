// May whoever has put something into an executor's inbox save the wake? One word, written by the executor alone, that is read at
// every message from another executor and changes only when the executor lies down or gets up: its line stays in all
// caches, where the exchange of the wake word (wake_word.hpp) takes the line away from the executor each time.
//
// Dekker: a producer publishes (Inbox::push, a seq_cst read-modify-write), then reads the flag; the executor sets the flag
// (likewise), then looks at its inbox (seq_cst), and only then announces its sleep. Either the producer sees the flag, and
// wakes, or the executor sees what was published. Without that look it sleeps on a message; without the seq_cst on either
// side both may miss each other.
#pragma once

#include "base/sync.hpp"

#include <cstdint>

namespace mc::sched {

class AwakeFlag {
public:
    // Any thread, after it has published.
    bool must_wake() const noexcept { return may_sleep_.load(sync::seq_cst) != 0; }

    // Executor only. Before it sleeps; then it looks at what is published, once more.
    void may_sleep() noexcept { (void)sync::dekker_publish(may_sleep_, uint32_t{1}); }
    // It will look before it sleeps again.
    void stays_awake() noexcept { may_sleep_.store(0, sync::relaxed); }

private:
    sync::atomic<uint32_t> may_sleep_{1};
};

} // namespace mc::sched
