// Pseudo-random numbers: xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64 (Steele, Lea and Flood,
// 2014).
// One instance has one user at a time. Not for secrets.
#pragma once

#include <cstdint>

namespace mc::base {

class Prng {
public:
    explicit Prng(uint64_t seed) noexcept {
        for (uint64_t &word : state_)
            word = splitmix(seed);
    }

    uint64_t next() noexcept {
        const uint64_t result = rotate(state_[1] * 5, 7) * 9;
        const uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    // Uniform in [0, bound), bound > 0. (Lemire's multiply-shift; its bias below 2^-32 does not matter to a scheduler.)
    uint32_t below(uint32_t bound) noexcept { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }

    static uint64_t splitmix(uint64_t &state) noexcept {
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

private:
    static uint64_t rotate(uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }

    uint64_t state_[4];
};

} // namespace mc::base
