// How libmcrt's costs grow: with microthreads, with executors, with the arms of a choice, with those who wait on one channel.
//
// scale.cpp includes it, once. Where there is no word of executors, single-processor mode. Microthreads are made ready
// first and wait at a gate, so that what is measured is neither their making nor their end; then main opens the gate and
// csp_schedule returns when all have done their part and wait again. Whoever waits at the end is left: the process ends.
#ifndef BENCH_OURS_SCALE_HPP
#define BENCH_OURS_SCALE_HPP

#include "alt.hpp"
#include "common.hpp"
#include "executors.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace ours::scale {

// A channel on which nobody ever sends: who receives goes on when it is opened.
class Gate {
public:
    void pass() {
        int64_t unused = 0;
        csp_recv(channel_.reader, &unused);
    }
    void open() { csp_writer_close(channel_.writer); }

private:
    Channel channel_;
};

struct Gates {
    Gate start, end;
};

// Nanoseconds from the opening until all that can run has run. All are at the gate when it opens.
inline double time_from(Gate &gate) {
    csp_schedule();
    return bench::time_once([&] {
        gate.open();
        csp_schedule();
    });
}

// How often each of size does its part, for about this many operations in all: often enough that opening is not seen.
inline uint64_t turns_of_each(uint64_t iterations, uint64_t size) { return std::max<uint64_t>(iterations / size, 10); }

inline double a_turn(double ns, uint64_t turns, uint64_t size) {
    return ns / static_cast<double>(turns) / static_cast<double>(size);
}

// --- microthreads --------------------------------------------------------------------------------------------------

struct Yielding {
    Gates gates;
    uint64_t turns;
};

inline int32_t yield_between_gates(void *user) {
    auto &yielding = *static_cast<Yielding *>(user);
    yielding.gates.start.pass();
    for (uint64_t left = yielding.turns; left > 0; --left)
        csp_yield();
    yielding.gates.end.pass();
    return 0;
}

// Nanoseconds a switch, with size microthreads in turn.
inline double yield(uint64_t iterations, uint64_t, uint64_t size) {
    Yielding yielding{{}, turns_of_each(iterations, size)};
    for (uint64_t i = 0; i < size; ++i)
        spawn(yield_between_gates, &yielding);
    bench::report_and_leave(a_turn(time_from(yielding.gates.start), yielding.turns, size));
}

struct Pair {
    PingPong game;
    Gates *gates = nullptr;

    explicit Pair(uint64_t round_trips) : game{{}, {}, round_trips} {}
};

inline int32_t ping_between_gates(void *user) {
    auto &pair = *static_cast<Pair *>(user);
    pair.gates->start.pass();
    send_pings<csp_recv>(&pair.game);
    pair.gates->end.pass();
    return 0;
}

inline int32_t pong_until_gate(void *user) {
    auto &pair = *static_cast<Pair *>(user);
    return_pongs<csp_recv>(&pair.game);
    pair.gates->end.pass();
    return 0;
}

// Nanoseconds a message, with size microthreads that are pairs with channels of their own.
inline double rendezvous(uint64_t iterations, uint64_t, uint64_t size) {
    Gates gates;
    const uint64_t round_trips = turns_of_each(iterations / 2, size / 2);
    std::vector<std::unique_ptr<Pair>> pairs;
    for (uint64_t i = 0; i < size / 2; ++i) {
        pairs.push_back(std::make_unique<Pair>(round_trips));
        pairs.back()->gates = &gates;
        spawn(ping_between_gates, pairs.back().get());
        spawn(pong_until_gate, pairs.back().get());
    }
    bench::report_and_leave(a_turn(time_from(gates.start), 2 * round_trips, size / 2));
}

// --- executors -----------------------------------------------------------------------------------------------------

// Nanoseconds a message of all together, of size pairs that go where the runtime puts them.
inline double pairs(uint64_t iterations, uint64_t executors, uint64_t size) {
    Executors runtime(executors);
    return bench::time_per_operation(iterations, [size](uint64_t messages) {
        std::vector<std::unique_ptr<PingPong>> games;
        std::vector<mc_task_t> tasks;
        for (uint64_t i = 0; i < size; ++i) {
            games.push_back(std::unique_ptr<PingPong>(new PingPong{{}, {}, messages / 2 / size}));
            tasks.push_back(spawn(send_pings<csp_recv>, games.back().get()));
            tasks.push_back(spawn(return_pongs<csp_recv>, games.back().get()));
        }
        for (mc_task_t task : tasks)
            join(task);
    });
}

// Nanoseconds a microthread, of size.
inline double spawn_bulk(uint64_t, uint64_t executors, uint64_t size) { return ours::spawn_bulk(size, executors); }

// Nanoseconds a leaf, of size.
inline double skynet(uint64_t, uint64_t executors, uint64_t size) {
    return ours::skynet(size, executors) * 1e6 / static_cast<double>(size);
}

// --- arms ----------------------------------------------------------------------------------------------------------

struct Wide {
    std::vector<Stream> from;
    Channel acknowledgement;
    uint64_t messages; // of all together

    Wide(uint64_t size, uint64_t all) : from(size), messages(all) {}
    std::vector<csp_chanop> arms(int64_t *value) const {
        std::vector<csp_chanop> arms;
        for (const Stream &stream : from)
            arms.push_back({csp_wait(stream.channel.reader), value});
        return arms;
    }
};

inline int32_t send_wide_in_turn(void *user) {
    auto &wide = *static_cast<Wide *>(user);
    for (uint64_t i = 0; i < wide.messages; ++i) {
        int64_t value = static_cast<int64_t>(i);
        csp_send(wide.from[i % wide.from.size()].channel.writer, &value);
        csp_recv(wide.acknowledgement.reader, &value);
    }
    return 0;
}

inline int32_t acknowledge_wide(void *user) {
    auto &wide = *static_cast<Wide *>(user);
    int64_t value = 0, sum = 0;
    const std::vector<csp_chanop> arms = wide.arms(&value);
    for (uint64_t i = 0; i < wide.messages; ++i) {
        csp_alt(arms.data(), static_cast<int>(arms.size()), 0);
        sum += value;
        csp_send(wide.acknowledgement.writer, &value);
    }
    bench::require(sum == sum_below(wide.messages), "the sum of the messages");
    return 0;
}

// Nanoseconds a message with its acknowledgement: each choice among size waits, as in alt4_ack.
inline double alt_waiting(uint64_t iterations, uint64_t, uint64_t size) {
    return bench::time_per_operation(std::max<uint64_t>(iterations / size, bench::kWarmUp), [size](uint64_t messages) {
        Wide wide(size, messages);
        mc_task_t producer = spawn(send_wide_in_turn, &wide), consumer = spawn(acknowledge_wide, &wide);
        join(producer);
        join(consumer);
    });
}

inline int32_t choose_wide(void *user) {
    auto &wide = *static_cast<Wide *>(user);
    int64_t value = 0, sum = 0;
    const std::vector<csp_chanop> arms = wide.arms(&value);
    for (uint64_t i = 0; i < wide.messages; ++i) {
        csp_alt(arms.data(), static_cast<int>(arms.size()), 0);
        sum += value;
        csp_yield();
    }
    bench::require(sum == static_cast<int64_t>(arms.size()) * sum_below(wide.messages / arms.size()),
                   "the sum of the messages");
    return 0;
}

// Nanoseconds a message, with a yield: each choice among size finds a sender, as in alt4_ready.
inline double alt_ready(uint64_t iterations, uint64_t, uint64_t size) {
    return bench::time_per_operation(iterations / size * size, [size](uint64_t messages) {
        const uint64_t each = std::max<uint64_t>(messages / size, 1);
        Wide wide(size, each * size);
        std::vector<mc_task_t> tasks;
        for (Stream &stream : wide.from) {
            stream.messages = each;
            tasks.push_back(spawn(produce, &stream));
        }
        tasks.push_back(spawn(choose_wide, &wide));
        for (mc_task_t task : tasks)
            join(task);
    });
}

// --- waiters -------------------------------------------------------------------------------------------------------

struct Crowd {
    Channel channel;
    Gates gates;
    uint64_t messages = 0;
};

inline int send_one(Crowd &crowd) {
    int64_t value = 0;
    return csp_send(crowd.channel.writer, &value);
}
inline int receive_one(Crowd &crowd) {
    int64_t value = 0;
    return csp_recv(crowd.channel.reader, &value);
}

// One of the crowd.
template <int (*act)(Crowd &)> int32_t act_for_ever(void *user) {
    auto &crowd = *static_cast<Crowd *>(user);
    while (act(crowd) == 1) {
    }
    return 0;
}

// The one that serves the crowd.
template <int (*act)(Crowd &)> int32_t act_on_crowd(void *user) {
    auto &crowd = *static_cast<Crowd *>(user);
    crowd.gates.start.pass();
    for (uint64_t left = crowd.messages; left > 0; --left)
        act(crowd);
    crowd.gates.end.pass();
    return 0;
}

inline double serve(mc_task_fn one, mc_task_fn each, uint64_t iterations, uint64_t size) {
    Crowd crowd;
    crowd.messages = iterations;
    for (uint64_t i = 0; i < size; ++i)
        spawn(each, &crowd);
    spawn(one, &crowd);
    bench::report_and_leave(a_turn(time_from(crowd.gates.start), iterations, 1));
}

// Nanoseconds a message, of one microthread to size that wait in a receive on the same channel, or from size that wait in a
// send; with the waking of the one that was served, which waits again.
inline double receivers(uint64_t iterations, uint64_t, uint64_t size) {
    return serve(act_on_crowd<send_one>, act_for_ever<receive_one>, iterations, size);
}
inline double senders(uint64_t iterations, uint64_t, uint64_t size) {
    return serve(act_on_crowd<receive_one>, act_for_ever<send_one>, iterations, size);
}

} // namespace ours::scale

#endif // BENCH_OURS_SCALE_HPP
