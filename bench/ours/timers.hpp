// Rows of libmcrt about time: timer_pair, timers_1s, hogs.
//
// ours.cpp includes it, once. Lateness is what a microthread sees: the clock when it goes on, less its deadline.
#ifndef BENCH_OURS_TIMERS_HPP
#define BENCH_OURS_TIMERS_HPP

#include "../latency.hpp"
#include "common.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

namespace ours {

// Of nanoseconds, in milliseconds.
inline double mean_ms(const std::vector<int64_t> &ns) {
    return std::accumulate(ns.begin(), ns.end(), 0.0) / static_cast<double>(ns.size()) / 1e6;
}

inline double per_mille_ms(std::vector<int64_t> &ns, uint64_t part) {
    return static_cast<double>(bench::per_mille(ns, part)) / 1e6;
}

// --- timer_pair ----------------------------------------------------------------------------------------------------
//
// What a program has: csp_after, released before it fires (the row); and a receive with a deadline that a message
// beats, an exchange of such messages beside the same without deadlines (timed_receive: what the deadline adds to a
// message).

constexpr uint64_t kArmed = 10000;
constexpr int64_t kTimeout = 3600 * MC_SEC; // of all, as in a server; the armed ones began a millisecond after another

struct ArmedTimers {
    std::vector<csp_reader> readers;

    ArmedTimers() {
        for (uint64_t i = 0; i < kArmed; ++i)
            readers.push_back(csp_after(kTimeout - static_cast<int64_t>(i) * MC_MS));
        bench::require(std::count(readers.begin(), readers.end(), nullptr) == 0, "csp_after");
    }
    ~ArmedTimers() { std::for_each(readers.begin(), readers.end(), csp_reader_release); }
    ArmedTimers(const ArmedTimers &) = delete;
    ArmedTimers &operator=(const ArmedTimers &) = delete;
};

inline int32_t start_and_stop(void *user) {
    for (uint64_t left = *static_cast<uint64_t *>(user); left > 0; --left) {
        csp_reader timer = csp_after(kTimeout);
        bench::require(timer != nullptr, "csp_after");
        csp_reader_release(timer);
    }
    return 0;
}

inline int receive_in_time(csp_reader reader, void *message) {
    return csp_recv_until(reader, message, mc_after(kTimeout));
}

inline double ns_a_message(uint64_t messages, mc_task_fn pinging, mc_task_fn returning) {
    return bench::time_per_operation(messages, [&](uint64_t n) {
        PingPong game{{}, {}, n / 2};
        mc_task_t a = spawn(pinging, &game), b = spawn(returning, &game);
        join(a);
        join(b);
    });
}

// The number of messages does not grow with that of pairs, so that --instructions counts pairs alone; it is small in the
// short runs that count them.
inline double timer_pair(uint64_t pairs) {
    const uint64_t messages = pairs < 100000 ? 4000 : 400000;
    ArmedTimers armed;
    const double ns = bench::time_per_operation(pairs, [](uint64_t n) { join(spawn(start_and_stop, &n)); });
    const double timed = ns_a_message(messages, send_pings<receive_in_time>, return_pongs<receive_in_time>);
    bench::further("timed_receive", timed - ns_a_message(messages, send_pings<csp_recv>, return_pongs<csp_recv>));
    return ns;
}

// --- timers_1s -----------------------------------------------------------------------------------------------------
//
// All microthreads are started and asleep before the second that is measured begins.

constexpr int64_t kLead = MC_SEC; // what starting them may take

struct Sleeper {
    int64_t deadline;
    int64_t late;
};

inline void sleep_once(void *user) {
    auto &sleeper = *static_cast<Sleeper *>(user);
    csp_sleep_until(sleeper.deadline);
    sleeper.late = mc_now() - sleeper.deadline;
}

// Deadlines are spread evenly over the second, and dealt out in no order.
inline int64_t spread_deadline(int64_t begin, uint64_t i, uint64_t count) {
    constexpr uint64_t coprime = 7919; // with every power of ten
    return begin + static_cast<int64_t>(i * coprime % count) * MC_SEC / static_cast<int64_t>(count);
}

inline int32_t start_sleepers(void *user) {
    for (Sleeper &sleeper : *static_cast<std::vector<Sleeper> *>(user))
        bench::require(csp_spawn(sleep_once, &sleeper) == 1, "csp_spawn");
    return 0;
}

// Returns the CPU seconds of the process within the second.
inline double cpu_of_a_second(std::vector<Sleeper> &sleepers, int64_t begin) {
    join(spawn(start_sleepers, &sleepers));
    bench::require(mc_now() < begin, "starting all microthreads in time");
    bench::sleep_thread_until(begin); // without the runtime: it is not what is measured
    const double before = bench::cpu_seconds();
    bench::sleep_thread_until(begin + MC_SEC);
    const double used = bench::cpu_seconds() - before;
    csp_schedule(); // until all have ended
    return used;
}

inline double timers_1s(uint64_t count, uint64_t executors) {
    Executors runtime(executors);
    std::vector<Sleeper> sleepers(count);
    const int64_t begin = mc_now() + kLead;
    for (uint64_t i = 0; i < count; ++i)
        sleepers[i] = {spread_deadline(begin, i, count), -1};
    const double used = cpu_of_a_second(sleepers, begin);
    std::vector<int64_t> late;
    for (const Sleeper &sleeper : sleepers)
        late.push_back(sleeper.late);
    bench::require(*std::min_element(late.begin(), late.end()) >= 0, "sleeping until the deadline");
    bench::further("mean", mean_ms(late));
    bench::further("p99", per_mille_ms(late, 990));
    bench::further("max", per_mille_ms(late, 1000));
    return used;
}

// --- hogs ----------------------------------------------------------------------------------------------------------

constexpr int64_t kTick = MC_MS;
constexpr uint64_t kFirstTicks = 100; // not measured: until every executor has a hog

// A chain of dependent shifts, which no compiler shortens (xorshift64, Marsaglia); never 0.
inline uint64_t compute(uint64_t x, uint64_t steps) {
    for (; steps > 0; --steps) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

inline uint64_t steps_a_microsecond() {
    constexpr uint64_t steps = 1000000;
    uint64_t x = 1;
    double best = 1e18;
    for (int i = 0; i < 5; ++i)
        best = std::min(best, bench::time_once([&] { x = compute(x, steps); }));
    bench::require(x != 0, "computing");
    return std::max(static_cast<uint64_t>(static_cast<double>(steps) * 1000 / best), uint64_t{1});
}

struct Hogs {
    uint64_t steps;
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> microseconds{0}; // computed by those that have ended
    std::vector<int64_t> late;
};

inline int32_t hog(void *user) {
    auto &hogs = *static_cast<Hogs *>(user);
    uint64_t x = 1, rounds = 0;
    for (; !hogs.stop.load(std::memory_order_relaxed); ++rounds) {
        x = compute(x, hogs.steps);
        mc_checkpoint();
    }
    bench::require(x != 0 && rounds != 0, "computing");
    hogs.microseconds.fetch_add(rounds, std::memory_order_relaxed);
    return 0;
}

inline int32_t tick(void *user) {
    auto &hogs = *static_cast<Hogs *>(user);
    int64_t deadline = mc_now();
    for (uint64_t i = 0; i < kFirstTicks; ++i)
        csp_sleep_until(deadline += kTick);
    for (int64_t &late : hogs.late) {
        csp_sleep_until(deadline += kTick);
        late = mc_now() - deadline;
    }
    hogs.stop.store(true, std::memory_order_relaxed);
    return 0;
}

// The 99.9th percentile of the ticker's lateness, in milliseconds. computing: processors' worth that the hogs computed.
inline double hogs(uint64_t ticks, uint64_t executors) {
    Hogs all;
    all.steps = steps_a_microsecond();
    all.late.resize(ticks);
    Executors runtime(executors);
    const double ns = bench::time_once([&] {
        std::vector<mc_task_t> tasks;
        for (uint64_t i = 0; i < executors; ++i)
            tasks.push_back(spawn(hog, &all));
        tasks.push_back(spawn(tick, &all));
        for (mc_task_t task : tasks)
            join(task);
    });
    bench::require(*std::min_element(all.late.begin(), all.late.end()) >= 0, "sleeping until the deadline");
    const double p999 = per_mille_ms(all.late, 999);
    bench::further("mean", mean_ms(all.late));
    bench::further("max", per_mille_ms(all.late, 1000));
    bench::further("computing", static_cast<double>(all.microseconds.load()) * 1000 / ns);
    return p999;
}

} // namespace ours

#endif // BENCH_OURS_TIMERS_HPP
