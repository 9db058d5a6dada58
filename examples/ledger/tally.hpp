// What is counted: each thread has a tally of its own, which it alone writes; whoever looks adds them up.
#pragma once

#include "faults.hpp"

#include <mc/machine.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ledger {

// undone: a fault came in between, and nothing has moved.
enum class Outcome : uint8_t { none, done, refused, undone };
constexpr std::size_t outcome_kinds = 4;

// Durations by log-linear buckets: 32 to each power of two, so a percentile is 3 % too long at most.
struct Buckets {
    static constexpr unsigned bits = 5;
    static constexpr uint64_t each = uint64_t{1} << bits;
    static constexpr unsigned longest = 40; // 2^40 ns, 18 minutes
    static constexpr std::size_t count = (longest - bits + 1) * each;

    static std::size_t of(uint64_t ns) {
        if (ns < each)
            return static_cast<std::size_t>(ns);
        const unsigned power = 63U - static_cast<unsigned>(__builtin_clzll(ns));
        return power >= longest ? count - 1 : (power - bits) * each + static_cast<std::size_t>(ns >> (power - bits));
    }
    // The longest that is in it.
    static uint64_t top(std::size_t bucket) {
        if (bucket < each)
            return bucket;
        const auto shift = static_cast<unsigned>(bucket / each - 1);
        return ((bucket % each + each + 1) << shift) - 1;
    }
};

// A counter that one thread writes and others read: no order is needed, and no locked instruction.
class Count {
public:
    void add(uint64_t n = 1) { value_.store(get() + n, std::memory_order_relaxed); }
    void raise(uint64_t to) {
        if (to > get())
            value_.store(to, std::memory_order_relaxed);
    }
    uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> value_{0};
};

constexpr std::size_t dead_letter_reasons = MC_DEAD_LETTER_REPLY_CAP_UNKNOWN + 1;

struct Tally {
    std::array<Count, outcome_kinds> outcomes;
    std::array<Count, fault_kinds> faults;
    std::array<Count, dead_letter_reasons> dead_letters;
    // What came of the faults.
    Count timeouts, tellers_lost, waits_for_room, refunds;
    std::array<Count, Buckets::count> latencies;
    Count longest_ns;

    void add(const Tally &other) {
        auto sum = [](auto &to, const auto &from) {
            for (std::size_t i = 0; i < from.size(); ++i)
                to[i].add(from[i].get());
        };
        sum(outcomes, other.outcomes);
        sum(faults, other.faults);
        sum(dead_letters, other.dead_letters);
        sum(latencies, other.latencies);
        timeouts.add(other.timeouts.get());
        tellers_lost.add(other.tellers_lost.get());
        waits_for_room.add(other.waits_for_room.get());
        refunds.add(other.refunds.get());
        longest_ns.raise(other.longest_ns.get());
    }
    void count(Outcome outcome) { outcomes[static_cast<std::size_t>(outcome)].add(); }
    void count(Fault fault) { faults[static_cast<std::size_t>(fault)].add(); }
    void count_latency(uint64_t ns) {
        latencies[Buckets::of(ns)].add();
        longest_ns.raise(ns);
    }

    uint64_t of(Outcome outcome) const { return outcomes[static_cast<std::size_t>(outcome)].get(); }
    uint64_t transfers() const { return total(outcomes); }
    // So that this part of the transfers took no longer; parts are of 1,000.
    uint64_t percentile(uint64_t per_mille) const {
        const uint64_t rank = (transfers() * per_mille + 999) / 1000;
        uint64_t seen = 0;
        for (std::size_t i = 0; i < latencies.size(); ++i)
            if ((seen += latencies[i].get()) >= rank)
                return Buckets::top(i) < longest_ns.get() ? Buckets::top(i) : longest_ns.get();
        return longest_ns.get();
    }

    template <class Counts> static uint64_t total(const Counts &counts) {
        uint64_t sum = 0;
        for (const Count &count : counts)
            sum += count.get();
        return sum;
    }
};

// A process has one.
class Tallies {
public:
    Tally &mine() {
        static thread_local Tally *tally = nullptr;
        if (tally == nullptr)
            tally = join();
        return *tally;
    }
    std::unique_ptr<Tally> sum() const {
        auto total = std::make_unique<Tally>();
        const std::lock_guard guard(mutex_);
        for (const std::unique_ptr<Tally> &tally : tallies_)
            total->add(*tally);
        return total;
    }

private:
    Tally *join() {
        const std::lock_guard guard(mutex_);
        return tallies_.emplace_back(std::make_unique<Tally>()).get();
    }

    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Tally>> tallies_; // guarded by mutex_
};

} // namespace ledger
