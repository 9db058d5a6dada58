// The work of the rows latency_*, the same for all C++ programs: messages from one executor to another, sent at times
// that do not depend on how fast they are received, and percentiles of how long each took. Each program brings the
// channel and the two microthreads; those in other languages repeat what stands here.
//
// Arrivals are a Poisson process with a fixed seed: the gaps are exponential, so at 95 % messages come in bursts and
// queue. A message carries the time at which it was due, not the one at which it was sent, and its latency counts from
// then: a sender that is held up makes every message late that it should have sent meanwhile, as callers would find
// (otherwise the worst moments are those that nobody looks at).
//
// The receiver works for kWork by the clock. Rejected: a number of steps measured beforehand, because at a load of 95 %
// an error of 2 % in it, or a processor that changes its speed, doubles the queue that is measured.
#ifndef BENCH_LATENCY_HPP
#define BENCH_LATENCY_HPP

#include "harness.hpp"
#include "mutex.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bench {

constexpr int64_t kWork = 10000;           // nanoseconds that the receiver works for each message
constexpr int64_t kLatencyLead = 50000000; // from the moment when both ends are there to the start
constexpr uint32_t kLatencyCapacity = 65536;

// The least value that this part of a thousand of all does not exceed. Sorts.
inline int64_t per_mille(std::vector<int64_t> &values, uint64_t part) {
    std::sort(values.begin(), values.end());
    return values[(values.size() * part + 999) / 1000 - 1];
}

// splitmix64 (Steele, Lea, Flood), which is easily repeated in any language.
class Random {
public:
    double below_one() {
        uint64_t z = state_ += 0x9E3779B97F4A7C15;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    }

private:
    uint64_t state_ = 1;
};

class Arrivals {
public:
    // messages are measured; a tenth as many before them, in the same stream, are not. load: part of the time that the
    // receiver works.
    Arrivals(uint64_t messages, double load) : unmeasured_(messages / 10), offsets_(messages + messages / 10) {
        Random random;
        double t = 0;
        for (int64_t &offset : offsets_)
            offset = static_cast<int64_t>(t -= std::log1p(-random.below_one()) * static_cast<double>(kWork) / load);
        late_.reserve(offsets_.size());
    }

    // By the sender: calls send(time) for each message when it is due, and pause() over and over until then.
    template <class Pause, class Send> void send_all(Pause pause, Send send) {
        start_ = steady_now() + kLatencyLead;
        await(start_, pause);
        cpu_before_ = cpu_seconds();
        for (int64_t offset : offsets_) {
            await(start_ + offset, pause);
            send(start_ + offset);
        }
    }

    // By the receiver: calls receive() for the time in each message, and works.
    template <class Receive> void receive_all(Receive receive) {
        int64_t sum = 0;
        uint64_t x = 1;
        for (uint64_t i = 0; i < offsets_.size(); ++i) {
            const int64_t due = receive();
            const int64_t now = steady_now();
            late_.push_back(now - due);
            sum += due - start_; // set before the first message was sent
            while (steady_now() < now + kWork)
                x = compute<64>(x);
        }
        require(x != 0, "computing");
        processors_ = (cpu_seconds() - cpu_before_) * 1e9 / static_cast<double>(steady_now() - start_);
        int64_t expected = 0;
        for (int64_t offset : offsets_)
            expected += offset;
        require(sum == expected, "the sum of the times");
    }

    // The 99th percentile in microseconds; the others are further lines.
    double report() {
        std::vector<int64_t> late(late_.begin() + static_cast<std::ptrdiff_t>(unmeasured_), late_.end());
        auto us = [&](uint64_t part) { return static_cast<double>(per_mille(late, part)) / 1e3; };
        require(*std::min_element(late.begin(), late.end()) >= 0, "receiving after sending");
        further("p50", us(500));
        further("p999", us(999));
        further("max", us(1000));
        further("processors", processors_);
        return us(990);
    }

private:
    template <class Pause> static void await(int64_t time, Pause pause) {
        while (steady_now() < time)
            pause();
    }

    const uint64_t unmeasured_;
    std::vector<int64_t> offsets_;
    std::vector<int64_t> late_;
    int64_t start_ = 0;
    double cpu_before_ = 0;
    double processors_ = 0; // that the process used from start to end
};

} // namespace bench

#endif // BENCH_LATENCY_HPP
