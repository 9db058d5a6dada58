// Which transfers have a fault, and which one: a function of the seed and the line, whatever the schedule.
#pragma once

#include <cstdint>

namespace ledger {

enum class Fault : uint32_t {
    relay_faults_before, // it has staged the message
    relay_faults_after,  // that: the message is taken back
    relay_stops,
    teller_stops,
    mailbox_full,
    answer_delayed, // perhaps for longer than the teller waits
    answer_dropped,
    none
};
constexpr uint32_t fault_kinds = static_cast<uint32_t>(Fault::none);

struct Faults {
    static constexpr uint64_t one_in = 32; // transfers, any fault

    bool on = false;
    uint64_t seed = 0;

    // SplitMix64's finalizer (Steele, Lea and Flood, 2014).
    uint64_t random(uint64_t line) const {
        uint64_t z = seed * 0xd1342543de82ef95 + (line + 1) * 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    Fault of(uint64_t line) const {
        const uint64_t drawn = random(line);
        return drawn % one_in != 0 ? Fault::none : static_cast<Fault>((drawn >> 8) % fault_kinds);
    }
    // Of a line that has a fault: something of two kinds, and a part of 256.
    bool second_kind(uint64_t line) const { return (random(line) >> 32 & 1) != 0; }
    int64_t of_256(uint64_t line) const { return static_cast<int64_t>(random(line) >> 40 & 255); }
};

} // namespace ledger
