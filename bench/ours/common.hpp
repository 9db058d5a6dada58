// What the rows of libmcrt's side share: a channel of integers, spawn and join that fail the row, the executors, and
// the two ends of a ping-pong.
#ifndef BENCH_OURS_COMMON_HPP
#define BENCH_OURS_COMMON_HPP

#include "../harness.hpp"

#include <mc/mc.h>

namespace ours {

inline void move_int64(void *source, void *target) {
    *static_cast<int64_t *>(target) = *static_cast<int64_t *>(source);
}

struct Channel {
    csp_writer writer = nullptr;
    csp_reader reader = nullptr;

    Channel() { bench::require(csp_chan(&writer, &reader, move_int64) == 1, "csp_chan"); }
    ~Channel() {
        csp_writer_release(writer);
        csp_reader_release(reader);
    }
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;
};

inline mc_task_t spawn(mc_task_fn fn, void *user) {
    mc_task_t task = 0;
    bench::require(mc_spawn(0, fn, user, nullptr, &task) == MC_OK, "mc_spawn");
    return task;
}

inline void join(mc_task_t task) { bench::require(mc_join(task, MC_FOREVER, nullptr) == MC_OK, "mc_join"); }

// The sum of 0 .. count - 1, which is what a stream of count messages adds up to.
inline int64_t sum_below(uint64_t count) { return static_cast<int64_t>(count * (count - 1) / 2); }

// The runtime has this many executors as long as one of these lives. By the main thread.
struct Executors {
    explicit Executors(uint64_t count) {
        bench::require(csp_init_runtime(static_cast<int>(count)) == 1, "csp_init_runtime");
    }
    ~Executors() { csp_shutdown_runtime(); }
    Executors(const Executors &) = delete;
    Executors &operator=(const Executors &) = delete;
};

struct PingPong {
    Channel ping, pong;
    uint64_t round_trips;
};

// receive: how the two wait for each other, as csp_recv.
template <int (*receive)(csp_reader, void *)> int32_t send_pings(void *user) {
    auto &game = *static_cast<PingPong *>(user);
    int64_t sum = 0;
    for (uint64_t i = 0; i < game.round_trips; ++i) {
        int64_t value = static_cast<int64_t>(i);
        csp_send(game.ping.writer, &value);
        receive(game.pong.reader, &value);
        sum += value;
    }
    bench::require(sum == sum_below(game.round_trips), "the sum of the pongs");
    return 0;
}

template <int (*receive)(csp_reader, void *)> int32_t return_pongs(void *user) {
    auto &game = *static_cast<PingPong *>(user);
    for (uint64_t i = 0; i < game.round_trips; ++i) {
        int64_t value = 0;
        receive(game.ping.reader, &value);
        csp_send(game.pong.writer, &value);
    }
    return 0;
}

} // namespace ours

#endif // BENCH_OURS_COMMON_HPP
