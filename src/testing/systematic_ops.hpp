// The systematic twin's operations, as base/sync.hpp calls them in MC_SYS builds. Each is one step of the virtual
// thread that calls it, and one place where the explorer may let another thread go first.
//
// Threads: the one OS thread that explores, while a run is on (running() is true there and then). Elsewhere, and
// outside runs, sync.hpp goes to the operating system instead, so ordinary tests work in MC_SYS builds too.
//
// Words are passed as raw bits: the address names the location, the newest value always stands in memory as well.
#pragma once

#include <cstdint> // std::memory_order comes from sync.hpp, which includes this file

namespace mc::testing::sys {

enum class Rmw : std::uint8_t { exchange, add, sub, bit_or, bit_and, read_back };

extern constinit thread_local bool running_here;
inline bool running() { return running_here; }

std::uint64_t load(const void *at, unsigned size, std::memory_order order);
void store(void *at, unsigned size, std::uint64_t value, std::memory_order order);
std::uint64_t rmw(void *at, unsigned size, Rmw kind, std::uint64_t operand, std::memory_order order);
bool compare_exchange(void *at, unsigned size, std::uint64_t &expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure, bool weak);

// A word begins or ends its life. Not steps. destroy() overwrites it, so that a later use is noticed.
void construct(const void *at);
void destroy(void *at, unsigned size);

bool futex_wait(const void *word, std::uint32_t expected, std::int64_t deadline_ns);
void futex_wake(const void *word, int count);
void relax(bool yields);
std::int64_t now_ns();

void mutex_lock(const void *mutex);
bool mutex_try_lock(const void *mutex);
void mutex_unlock(const void *mutex);

int thread_start(void (*fn)(void *), void *arg); // the new thread's number; negative: too many
void thread_join(int number);
std::uint32_t thread_count();
void thread_leaked();
void *thread_slot();
void set_thread_slot(void *slot);

// Plain memory, checked for races; not steps.
void data_fresh(const void *at);
void data_read(const void *at);
void data_write(const void *at);

} // namespace mc::testing::sys
