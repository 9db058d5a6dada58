#include "base/spinlock.hpp"

#include <algorithm>

namespace mc::base {
namespace {

#if defined(MC_SYS) && MC_SYS
constexpr uint32_t longest = 1; // each is a choice
constexpr uint32_t spins = 64;
#else
constexpr uint32_t longest = 128; // some five microseconds
constexpr uint32_t spins = 8;
#endif
constexpr uint32_t yields = 64;

} // namespace

// Who loses keeps away for longer each time, without a look at the word: two that take turns at each operation would spend
// their time on sending the channel's lines to each other, where one that goes on undisturbed does a hundred operations meanwhile.
// A first meeting is chance. But the first who meets one that has had to wait for the lock itself will meet him at every operation,
// and keeps away for the longest time from the start. (He also takes the mark away; it is a hint.)
__attribute__((noinline)) void Spinlock::wait(uint32_t holder) noexcept {
    uint32_t pauses = holder == taken_after_waiting ? longest : 1;
    for (uint32_t round = 0;; ++round, pauses = std::min(2 * pauses, longest)) {
        for (uint32_t i = 0; i < pauses; ++i)
            sync::cpu_relax();
        // Look before the exchange: waiting then reads a shared line instead of pulling it back and forth.
        if (word_.load(sync::relaxed) == free && word_.exchange(taken_after_waiting, sync::acquire) == free)
            return;
        if (round >= spins + yields) // a holder of lower priority gets no processor by our yielding: sleep
            sleep();
        else if (round >= spins)
            sync::thread_yield();
    }
}

// On whichever mark the holder has set; nobody wakes us.
void Spinlock::sleep() noexcept {
    if (const uint32_t holder = word_.load(sync::relaxed); holder != free)
        (void)sync::futex_wait(word_, holder, sync::now_ns() + 50'000);
}

} // namespace mc::base
