#include "base/spinlock.hpp"

namespace mc::base {

__attribute__((noinline)) void Spinlock::lock_contended() noexcept {
    for (uint32_t round = 0;; ++round) {
        // Look before the exchange: waiting then reads a shared line instead of pulling it back and forth.
        if (word_.load(sync::relaxed) == 0 && word_.exchange(1, sync::acquire) == 0)
            return;
        if (round < 64)
            sync::cpu_relax();
        else if (round < 128)
            sync::thread_yield();
        else // a holder of lower priority gets no processor by our yielding: sleep
            (void)sync::futex_wait(word_, 1, sync::now_ns() + 50'000);
    }
}

} // namespace mc::base
