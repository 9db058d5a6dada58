// Rows of libmcrt about buffered channels: buffered_spsc and buffered_mpsc4, each on one executor and on two.
//
// ours.cpp includes it, once. On one, single-processor mode. On two, they go where the runtime puts them, as a program's would.
#ifndef BENCH_OURS_BUFFERED_HPP
#define BENCH_OURS_BUFFERED_HPP

#include "common.hpp"
#include "executors.hpp"

namespace ours {

constexpr uint32_t kCapacity = 128;

class Buffered {
public:
    explicit Buffered(uint32_t capacity) {
        bench::require(mc_chan_create(0, sizeof(int64_t), capacity, nullptr, nullptr, &handle_) == MC_OK,
                       "mc_chan_create");
    }
    ~Buffered() { mc_chan_destroy(handle_); }
    Buffered(const Buffered &) = delete;
    Buffered &operator=(const Buffered &) = delete;

    void send(int64_t value) { bench::require(mc_send(handle_, &value) == MC_OK, "mc_send"); }
    int64_t receive() {
        int64_t value = 0;
        bench::require(mc_recv(handle_, &value) == MC_OK, "mc_recv");
        return value;
    }

private:
    mc_chan_t handle_ = 0;
};

struct BufferedStream {
    Buffered channel{kCapacity};
    const uint64_t producers;
    const uint64_t messages; // of each producer
    Apart apart;             // where they are to be

    BufferedStream(uint64_t sources, uint64_t all) : producers(sources), messages(all / sources) {}
};

inline int32_t produce_buffered(void *user) {
    auto &stream = *static_cast<BufferedStream *>(user);
    for (uint64_t i = 0; i < stream.messages; ++i)
        stream.channel.send(static_cast<int64_t>(i));
    return 0;
}

inline int32_t consume_buffered(void *user) {
    auto &stream = *static_cast<BufferedStream *>(user);
    int64_t sum = 0;
    for (uint64_t left = stream.producers * stream.messages; left > 0; --left)
        sum += stream.channel.receive();
    bench::require(sum == static_cast<int64_t>(stream.producers) * sum_below(stream.messages),
                   "the sum of the messages");
    return 0;
}

inline int32_t consume_here(void *user) {
    static_cast<BufferedStream *>(user)->apart.settle();
    return consume_buffered(user);
}

inline int32_t produce_elsewhere(void *user) {
    return static_cast<BufferedStream *>(user)->apart.is_same() ? kSameExecutor : produce_buffered(user);
}

inline void buffer_across(uint64_t messages) {
    BufferedStream stream(1, messages);
    mc_task_t consumer = spawn_pinned(consume_here, &stream);
    run_apart(stream.apart, produce_elsewhere, &stream);
    join(consumer);
}

inline void buffer_among(uint64_t producers, uint64_t messages) {
    BufferedStream stream(producers, messages);
    mc_task_t consumer = spawn(consume_buffered, &stream);
    std::vector<mc_task_t> tasks;
    for (uint64_t i = 0; i < producers; ++i)
        tasks.push_back(spawn(produce_buffered, &stream));
    for (mc_task_t task : tasks)
        join(task);
    join(consumer);
}

template <class Pass> double millions_a_second(uint64_t iterations, uint64_t executors, Pass pass) {
    if (executors == 1)
        return bench::millions_a_second(bench::time_per_operation(iterations, pass));
    Executors runtime(executors);
    return bench::millions_a_second(bench::time_per_operation(iterations, pass));
}

// On two, the ends go where the runtime puts them; kept on different executors they are the further line, apart.
inline double buffered_spsc(uint64_t iterations, uint64_t executors) {
    if (executors > 1)
        bench::further("apart", millions_a_second(iterations / 4, executors, buffer_across));
    return millions_a_second(iterations, executors, [](uint64_t messages) { buffer_among(1, messages); });
}

inline double buffered_mpsc4(uint64_t iterations, uint64_t executors) {
    return millions_a_second(iterations, executors, [](uint64_t messages) { buffer_among(4, messages); });
}

} // namespace ours

#endif // BENCH_OURS_BUFFERED_HPP
