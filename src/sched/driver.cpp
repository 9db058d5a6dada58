#include "sched/driver.hpp"

#include "base/alloc.hpp"

namespace mc::sched {
namespace {

Driver *make_futex_driver(void *, uint32_t, uint64_t seed) noexcept { return base::create<FutexDriver>(seed); }
void destroy_futex_driver(void *, Driver *driver) noexcept { base::destroy(static_cast<FutexDriver *>(driver)); }

} // namespace

const DriverSource futex_drivers{make_futex_driver, destroy_futex_driver, nullptr};

} // namespace mc::sched
