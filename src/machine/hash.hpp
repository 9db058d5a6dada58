// What the tables of this room hash by. Pure.
#pragma once

#include <cstdint>

namespace mc::machine {

// The finaliser of SplitMix64: every bit of the result depends on every bit of x. (Steele, Lea, Flood.)
constexpr uint64_t mixed(uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

} // namespace mc::machine
