#include "sim/policy.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace mc::sim {
namespace {

constexpr uint32_t time_is_one_of = 32; // how seldom time jumps while tasks are runnable, at random

class RandomWalk final : public Policy {
public:
    explicit RandomWalk(uint64_t seed) noexcept : prng_(seed) {
        constexpr uint32_t favours[] = {0, 128, 208, 240}; // of 256
        favour_ = favours[prng_.below(4)];
    }

    uint32_t turn(const Turns &turns) noexcept override {
        uint32_t tasks = turns.count;
        if (turns.time && --tasks != 0 && prng_.below(time_is_one_of) == 0)
            return turns.count - 1;
        if (turns.running && tasks > 1 && prng_.below(256) < favour_)
            return 0;
        return tasks == 0 ? 0 : prng_.below(tasks);
    }

    uint32_t pick(uint64_t, uint32_t count) noexcept override { return prng_.below(count); }

private:
    base::Prng prng_;
    uint32_t favour_;
};

// Words: fresh ones get a random priority above all that were lowered. Time is one more task.
class Pct final : public Policy {
public:
    Pct(uint64_t seed, uint32_t depth) : prng_(seed) {
        const uint64_t steps = uint64_t{1} << (4 + prng_.below(11)); // 16 to 16,384
        for (uint32_t i = 1; i < depth; ++i)
            changes_.push_back(prng_.next() % steps);
        std::sort(changes_.begin(), changes_.end());
    }

    uint32_t turn(const Turns &turns) noexcept override {
        if (turns.yields && turns.running_word != nullptr)
            *turns.running_word = --lowest_;
        uint32_t best = highest(turns);
        for (; changed_ < changes_.size() && changes_[changed_] <= step_; ++changed_) {
            *turns.words[best] = --lowest_;
            best = highest(turns);
        }
        ++step_;
        if (turns.time && best == turns.count - 1)
            *turns.words[best] = --lowest_; // once, then the others have their turns
        return best;
    }

    uint32_t pick(uint64_t, uint32_t count) noexcept override { return prng_.below(count); }

private:
    uint32_t highest(const Turns &turns) noexcept {
        uint32_t best = 0;
        for (uint32_t i = 0; i < turns.count; ++i) {
            uint64_t &word = *turns.words[i];
            if (word == 0)
                word = first_fresh | (prng_.next() >> 2);
            if (word > *turns.words[best])
                best = i;
        }
        return best;
    }

    static constexpr uint64_t first_fresh = uint64_t{1} << 63;

    base::Prng prng_;
    std::vector<uint64_t> changes_;
    size_t changed_ = 0;
    uint64_t step_ = 0;
    uint64_t lowest_ = uint64_t{1} << 62;
};

class Replay final : public Policy {
public:
    explicit Replay(Schedule schedule) noexcept : schedule_(std::move(schedule)) {}

    uint32_t turn(const Turns &turns) noexcept override { return pick(turns.ordinal, turns.count); }

    uint32_t pick(uint64_t ordinal, uint32_t count) noexcept override {
        while (at_ < schedule_.size() && schedule_[at_].choice < ordinal)
            ++at_;
        if (at_ == schedule_.size() || schedule_[at_].choice != ordinal)
            return 0;
        return schedule_[at_].taken < count ? schedule_[at_].taken : 0;
    }

private:
    const Schedule schedule_;
    size_t at_ = 0;
};

} // namespace

std::unique_ptr<Policy> random_policy(uint64_t seed) { return std::make_unique<RandomWalk>(seed); }
std::unique_ptr<Policy> pct_policy(uint64_t seed, uint32_t depth) { return std::make_unique<Pct>(seed, depth); }
std::unique_ptr<Policy> replay_policy(Schedule schedule) { return std::make_unique<Replay>(std::move(schedule)); }

std::unique_ptr<Policy> policy_by_name(const char *name, uint64_t seed) {
    const std::string_view text(name);
    if (text == "random")
        return random_policy(seed);
    if (text == "mix")
        return seed % 2 == 0 ? random_policy(seed) : pct_policy(seed, 3);
    if (!text.starts_with("pct:"))
        return nullptr;
    uint32_t depth = 0;
    const std::from_chars_result read = std::from_chars(name + 4, name + text.size(), depth);
    const bool valid = read.ec == std::errc() && *read.ptr == '\0' && depth >= 1 && depth <= 100;
    return valid ? pct_policy(seed, depth) : nullptr;
}

} // namespace mc::sim
