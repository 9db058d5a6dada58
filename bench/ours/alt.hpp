// Rows of libmcrt about streams and the choice among them: stream, alt4, prialt4, alt4_ready, alt64, alt4_ack.
//
// ours.cpp includes it, once. All in single-processor mode.
#ifndef BENCH_OURS_ALT_HPP
#define BENCH_OURS_ALT_HPP

#include "common.hpp"

namespace ours {

// --- stream --------------------------------------------------------------------------------------------------------

struct Stream {
    Channel channel;
    uint64_t messages = 0;
};

inline int32_t produce(void *user) {
    auto &stream = *static_cast<Stream *>(user);
    for (uint64_t i = 0; i < stream.messages; ++i) {
        int64_t value = static_cast<int64_t>(i);
        csp_send(stream.channel.writer, &value);
    }
    return 0;
}

inline int32_t consume(void *user) {
    auto &stream = *static_cast<Stream *>(user);
    int64_t value = 0, sum = 0;
    for (uint64_t i = 0; i < stream.messages; ++i) {
        csp_recv(stream.channel.reader, &value);
        sum += value;
    }
    bench::require(sum == sum_below(stream.messages), "the sum of the stream");
    return 0;
}

inline double stream(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t messages) {
        Stream one{{}, messages};
        mc_task_t producer = spawn(produce, &one), consumer = spawn(consume, &one);
        join(producer);
        join(consumer);
    });
}

// --- alt4, prialt4, alt4_ready, alt64 ------------------------------------------------------------------------------

using Alt = int (*)(csp_chanop const *, int, int);

template <int count> struct Merge {
    Stream from[count];
    Alt alt;
    bool yields; // after each choice, so that the next one finds senders waiting
};

template <int count> int32_t consume_any(void *user) {
    auto &merge = *static_cast<Merge<count> *>(user);
    int64_t value = 0, sum = 0;
    csp_chanop arms[count];
    for (int i = 0; i < count; ++i)
        arms[i] = {csp_wait(merge.from[i].channel.reader), &value};
    for (uint64_t i = 0; i < count * merge.from[0].messages; ++i) {
        merge.alt(arms, count, 0);
        sum += value;
        if (merge.yields)
            csp_yield();
    }
    bench::require(sum == count * sum_below(merge.from[0].messages), "the sum of the merged streams");
    return 0;
}

template <int count> void merge(uint64_t messages, Alt alt, bool yields) {
    Merge<count> merge{{}, alt, yields};
    mc_task_t tasks[count + 1];
    for (int i = 0; i < count; ++i) {
        merge.from[i].messages = messages / count;
        tasks[i] = spawn(produce, &merge.from[i]);
    }
    tasks[count] = spawn(consume_any<count>, &merge);
    for (mc_task_t task : tasks)
        join(task);
}

inline double alt4(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge<4>(n, csp_alt, false); });
}

inline double prialt4(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge<4>(n, csp_prialt, false); });
}

inline double alt4_ready(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge<4>(n, csp_alt, true); });
}

// Nanoseconds a message and channel.
inline double alt64(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge<64>(n, csp_alt, false); }) / 64;
}

// --- alt4_ack ------------------------------------------------------------------------------------------------------

struct Acknowledged {
    Channel to[4];
    Channel acknowledgement;
    uint64_t messages;
};

inline int32_t send_in_turn(void *user) {
    auto &work = *static_cast<Acknowledged *>(user);
    int64_t sum = 0;
    for (uint64_t i = 0; i < work.messages; ++i) {
        int64_t value = static_cast<int64_t>(i);
        csp_send(work.to[i % 4].writer, &value);
        csp_recv(work.acknowledgement.reader, &value);
        sum += value;
    }
    bench::require(sum == sum_below(work.messages), "the sum of the acknowledgements");
    return 0;
}

inline int32_t acknowledge(void *user) {
    auto &work = *static_cast<Acknowledged *>(user);
    int64_t value = 0, sum = 0;
    csp_chanop arms[4];
    for (int i = 0; i < 4; ++i)
        arms[i] = {csp_wait(work.to[i].reader), &value};
    for (uint64_t i = 0; i < work.messages; ++i) {
        csp_alt(arms, 4, 0);
        sum += value;
        csp_send(work.acknowledgement.writer, &value);
    }
    bench::require(sum == sum_below(work.messages), "the sum of the messages");
    return 0;
}

inline double alt4_ack(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t messages) {
        Acknowledged work{{}, {}, messages};
        mc_task_t producer = spawn(send_in_turn, &work), consumer = spawn(acknowledge, &work);
        join(producer);
        join(consumer);
    });
}

} // namespace ours

#endif // BENCH_OURS_ALT_HPP
