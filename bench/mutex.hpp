// The work of the row mutex, the same for all C++ programs: workers count to a limit under one mutex. Each program brings
// a mutex with lock() and unlock(), and the threads or microthreads that do this.
//
// One worker: lock, count, unlock, nothing else; nobody competes. Two: between its turns each computes for kStepsOutside
// steps, a few nanoseconds that the other can use. The limit is that of all together, so they compete until the end: of
// two that had half each, one that hardly ever gave way would be done early and leave the other alone with the mutex.
// How evenly they shared is the further line: the percentage of the turns of the one that had fewer.
//
// The count stands beside the mutex, where a program puts what a mutex guards; of libmcrt's, that is the handle.
#ifndef BENCH_MUTEX_HPP
#define BENCH_MUTEX_HPP

#include "harness.hpp"

#include <algorithm>
#include <mutex>

namespace bench {

constexpr int kStepsOutside = 2; // two nanoseconds each, about

template <class Mutex> struct Guarded {
    Mutex mutex{};
    uint64_t count = 0;
};

// A chain of dependent shifts, which no compiler shortens (xorshift64, Marsaglia); never 0.
template <int steps> uint64_t compute(uint64_t x) {
    for (int i = 0; i < steps; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

// Counts until the count is at the limit; returns how many turns were its own.
template <int steps_outside, class Mutex> uint64_t count_to(uint64_t limit, Guarded<Mutex> &guarded) {
    uint64_t turns = 0, x = 1;
    for (;; ++turns) {
        {
            std::lock_guard<Mutex> locked(guarded.mutex);
            if (guarded.count == limit)
                break;
            ++guarded.count;
        }
        x = compute<steps_outside>(x);
    }
    require(x != 0, "computing");
    return turns;
}

template <class Mutex> uint64_t count_alone(uint64_t limit, Guarded<Mutex> &guarded) {
    return count_to<0>(limit, guarded);
}
template <class Mutex> uint64_t count_beside_another(uint64_t limit, Guarded<Mutex> &guarded) {
    return count_to<kStepsOutside>(limit, guarded);
}

// What each of two had of all turns; returns the lesser share in percent. None lost, none counted twice.
inline double lesser_share(uint64_t turns, uint64_t one, uint64_t other) {
    require(one + other == turns, "counting each turn once");
    return 100 * static_cast<double>(std::min(one, other)) / static_cast<double>(turns);
}

} // namespace bench

#endif // BENCH_MUTEX_HPP
