// Rows of libmcrt about the latency of a message from one executor to another: latency_1, latency_50, latency_95.
//
// ours.cpp includes it, once. ../latency.hpp has the work. Two pinned microthreads on different executors; the sender
// calls mc_checkpoint while it waits for the next time, as a microthread that computes for long should.
#ifndef BENCH_OURS_LATENCY_HPP
#define BENCH_OURS_LATENCY_HPP

#include "../latency.hpp"
#include "buffered.hpp"
#include "executors.hpp"

namespace ours {

struct Delayed {
    bench::Arrivals arrivals;
    Buffered channel{bench::kLatencyCapacity};
    Apart apart;

    Delayed(uint64_t messages, double load) : arrivals(messages, load) {}
};

inline int32_t receive_here(void *user) {
    auto &delayed = *static_cast<Delayed *>(user);
    delayed.apart.settle();
    delayed.arrivals.receive_all([&] { return delayed.channel.receive(); });
    bench::require(delayed.apart.is_same(), "staying on one executor");
    return 0;
}

inline int32_t send_from_elsewhere(void *user) {
    auto &delayed = *static_cast<Delayed *>(user);
    if (delayed.apart.is_same())
        return kSameExecutor;
    delayed.arrivals.send_all(mc_checkpoint, [&](int64_t time) { delayed.channel.send(time); });
    return 0;
}

inline double latency(uint64_t messages, uint64_t executors, double load) {
    Executors runtime(executors);
    Delayed delayed(messages, load);
    mc_task_t receiver = spawn_pinned(receive_here, &delayed);
    run_apart(delayed.apart, send_from_elsewhere, &delayed);
    join(receiver);
    return delayed.arrivals.report();
}

inline double latency_1(uint64_t messages, uint64_t executors) { return latency(messages, executors, 0.01); }
inline double latency_50(uint64_t messages, uint64_t executors) { return latency(messages, executors, 0.50); }
inline double latency_95(uint64_t messages, uint64_t executors) { return latency(messages, executors, 0.95); }

} // namespace ours

#endif // BENCH_OURS_LATENCY_HPP
