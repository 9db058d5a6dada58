// What the systematic twin remembers of a run, for its order signature and its report. Filled by the engine, one
// event an operation.
#pragma once

#include "testing/systematic_memory.hpp"

#include <cstdint>
#include <string>

namespace mc::testing::sys {

enum class Op : std::uint8_t {
    load,
    store,
    exchange,
    add,
    sub,
    bit_or,
    bit_and,
    read_back,
    swap,      // a compare-exchange that succeeded
    swap_fail, // one that found another value
    swap_spurious,
    sleep, // futex_wait, going to sleep
    sleep_differs,
    sleep_late,
    woken,
    timed_out,
    woken_spuriously,
    wake,
    lock,
    lock_blocks,
    try_lock,
    try_lock_fails,
    unlock,
    relax,
    yield,
    start,
    join,
    join_blocks,
    end,
    count,
};

inline constexpr std::uint32_t no_word = ~std::uint32_t{0};

struct Event {
    std::uint32_t step = 0;
    std::uint32_t word = no_word; // ordinal of the location
    Op op = Op::load;
    std::memory_order order = std::memory_order_relaxed;
    std::uint8_t back = 0; // a load: how many newer stores there were
    std::uint8_t size = 0;
    Stamp stamp = 0;         // which store of the word's life was read or written
    std::uint64_t read = 0;  // or the deadline, the count, the thread number
    std::uint64_t wrote = 0; // or what was expected
    const char *label = nullptr;
    const void *caller = nullptr;
};

std::string program_name();
std::string describe_word(std::uint32_t ordinal, const char *label);
std::string describe_value(std::uint64_t value);
// One line, without the thread.
std::string describe(const Event &event);

} // namespace mc::testing::sys
