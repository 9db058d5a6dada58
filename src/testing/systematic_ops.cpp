// See systematic_ops.hpp: the doors from sync.hpp to the engine.
#if defined(MC_SYS)
#include "base/sync.hpp" // and with it systematic_ops.hpp

#include "testing/systematic_engine.hpp"

namespace mc::testing::sys {

// Where the operation stands in the code under test, for the report.
#define MC_CALLER __builtin_return_address(0)

std::uint64_t load(const void *at, unsigned size, std::memory_order order) {
    return Engine::here().load(at, size, order, MC_CALLER);
}
void store(void *at, unsigned size, std::uint64_t value, std::memory_order order) {
    Engine::here().store(at, size, value, order, MC_CALLER);
}
std::uint64_t rmw(void *at, unsigned size, Rmw kind, std::uint64_t operand, std::memory_order order) {
    return Engine::here().rmw(at, size, kind, operand, order, MC_CALLER);
}
bool compare_exchange(void *at, unsigned size, std::uint64_t &expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure, bool weak) {
    return Engine::here().compare_exchange(at, size, expected, desired, success, failure, weak, MC_CALLER);
}
void construct(const void *at) { Engine::here().construct(at); }
void destroy(void *at, unsigned size) { Engine::here().destroy(at, size); }
bool futex_wait(const void *word, std::uint32_t expected, std::int64_t deadline_ns) {
    return Engine::here().futex_wait(word, expected, deadline_ns, MC_CALLER);
}
void futex_wake(const void *word, int count) { Engine::here().futex_wake(word, count, MC_CALLER); }
void relax(bool yields) { Engine::here().relax(yields, MC_CALLER); }
std::int64_t now_ns() { return Engine::here().now(); }
void mutex_lock(const void *mutex) { Engine::here().mutex_lock(mutex, MC_CALLER); }
bool mutex_try_lock(const void *mutex) { return Engine::here().mutex_try_lock(mutex, MC_CALLER); }
void mutex_unlock(const void *mutex) { Engine::here().mutex_unlock(mutex, MC_CALLER); }
int thread_start(void (*fn)(void *), void *arg) { return Engine::here().thread_start(fn, arg, MC_CALLER); }
std::uint32_t thread_count() { return Engine::here().thread_count(MC_CALLER); }
void thread_join(int number) { Engine::here().thread_join(number, MC_CALLER); }
void thread_leaked() { Engine::here().fail("a running sync::thread was destroyed or started again without join"); }
void *thread_slot() { return Engine::here().slot(); }
void set_thread_slot(void *slot) { Engine::here().slot() = slot; }
void data_fresh(const void *at) { Engine::here().data_fresh(at); }
void data_read(const void *at) { Engine::here().data_read(at); }
void data_write(const void *at) { Engine::here().data_write(at); }

#undef MC_CALLER

} // namespace mc::testing::sys
#endif
