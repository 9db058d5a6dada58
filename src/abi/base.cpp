// mc/base.h
#include <mc/base.h>

#include "abi/call.hpp"
#include "abi/options.hpp"
#include "base/alloc.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "base/sync.hpp"
#include "sim/simulation.hpp"

const char *mc_strerror(int32_t code) noexcept { return mc::base::status_text(code); }

const char *mc_status_name(int32_t code) noexcept { return mc::base::status_name(code); }

uint32_t mc_abi_version(void) noexcept { return (MC_VERSION_MAJOR << 16) | MC_VERSION_MINOR; }

int32_t mc_check_abi(uint32_t major, uint32_t minor) noexcept {
    if (major != MC_VERSION_MAJOR)
        return MC_E_VERSION;
    const bool serves = MC_VERSION_MAJOR == 0 ? minor == MC_VERSION_MINOR : minor <= MC_VERSION_MINOR;
    return serves ? MC_OK : MC_E_VERSION;
}

// Reading it makes nobody the owner; in simulation the clock goes on for the simulated thread, and while there is none.
int64_t mc_now(void) noexcept {
    mc::sim::Simulation *simulation = mc::sim::simulation();
    const bool moves =
        simulation != nullptr && (mc::sched::current() != nullptr || mc::sched::default_pool() == nullptr);
    return moves ? simulation->read_clock() : mc::sync::now_ns();
}

int64_t mc_after(int64_t ns) noexcept {
    if (ns <= 0)
        return mc_now();
    const int64_t now = mc::sync::now_ns();
    return ns > MC_FOREVER - now ? MC_FOREVER : now + ns;
}

uint64_t mc_random(void) noexcept {
    if (mc::sched::ThreadContext *thread = mc::sched::current())
        return thread->prng.next();
    // A thread that has called nothing else yet: drawing a number makes nobody the owner of the runtime.
    static mc::sync::atomic<uint64_t> draws{0};
    const mc::sim::Simulation *simulation = mc::sim::simulation();
    const uint64_t start = simulation != nullptr ? simulation->seed() : static_cast<uint64_t>(mc::sync::now_ns());
    uint64_t seed = start ^ (draws.fetch_add(1, mc::sync::relaxed) << 40);
    return mc::base::Prng::splitmix(seed);
}

int32_t mc_set_allocator(const mc_allocator *allocator) noexcept {
    if (allocator == nullptr)
        return MC_E_INVAL;
    mc_allocator known = MC_ALLOCATOR_INIT;
    const int32_t status = mc::abi::read_options(allocator, &known);
    if (status != MC_OK)
        return status;
    if (known.alloc == nullptr || known.free == nullptr || known.reserved != 0)
        return MC_E_INVAL;
    return mc::base::set_allocator(known);
}

void mc_set_log_hook(mc_log_fn hook, void *user) noexcept { mc::base::set_log_hook(hook, user); }
