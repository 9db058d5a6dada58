// mc/sim.h, and what makes a process a simulated one: MCRT_SEED as the library is loaded, or mc_runtime_create.
#include <mc/sim.h>

#include "abi/call.hpp"
#include "abi/sim.hpp"
#include "base/log.hpp"
#include "sim/environment.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

using mc::sim::Settings;
using mc::sim::Simulation;

constexpr int not_understood = 125;

const char *variable(const char *name) noexcept { return secure_getenv(name); }

// Before main, or while the library is loaded; linked into a program, before its own constructors (101 is the first that programs may
// have), so that what is looked at at exit comes after its destructors.
__attribute__((constructor(101))) void begin_from_environment() noexcept {
    Settings settings;
    std::string why;
    bool seeded = false;
    if (!mc::sim::read_seed(variable, &settings, &seeded, &why)) {
        std::fprintf(stderr, "libmcrt: %s\n", why.c_str());
        std::_Exit(not_understood);
    }
    if (seeded)
        (void)mc::sim::begin(settings);
}

const mc::sched::Task *caller() noexcept {
    const mc::sched::ThreadContext *thread = mc::sched::current();
    return thread == nullptr ? nullptr : thread->running;
}

} // namespace

namespace mc::abi {

sched::ThreadContext *attach(int32_t *status) noexcept { return sched::attach(status); }

int32_t begin_simulation(uint64_t seed) noexcept {
    if (mc::sim::simulation() != nullptr)
        return MC_OK; // the environment's seed is the one
    Settings settings;
    std::string why;
    settings.seed = seed;
    if (!mc::sim::read_environment(variable, &settings, &why)) {
        base::log(MC_LOG_ERROR, MC_E_INVAL, "%s", why.c_str());
        return MC_E_INVAL;
    }
    return mc::sim::begin(settings) ? MC_OK : MC_E_BUSY;
}

} // namespace mc::abi

int32_t mc_sim_active(void) noexcept { return mc::sim::simulation() != nullptr ? 1 : 0; }

uint64_t mc_sim_seed(void) noexcept {
    const Simulation *simulation = mc::sim::simulation();
    return simulation == nullptr ? 0 : simulation->seed();
}

uint64_t mc_sim_steps(void) noexcept {
    const Simulation *simulation = mc::sim::simulation();
    return simulation == nullptr ? 0 : simulation->steps();
}

uint64_t mc_sim_signature(void) noexcept {
    const Simulation *simulation = mc::sim::simulation();
    return simulation == nullptr ? 0 : simulation->signature();
}

void mc_sim_fail(const char *text) noexcept {
    if (text == nullptr)
        text = "";
    if (Simulation *simulation = mc::sim::simulation())
        simulation->fail(MC_SIM_FAILED, text);
    std::fprintf(stderr, "libmcrt: failed: %s\n", text);
    std::abort();
}

void mc_sim_note(const char *text) noexcept {
    if (Simulation *simulation = mc::sim::simulation(); simulation != nullptr && caller() != nullptr)
        simulation->note(caller(), text == nullptr ? "" : text);
}

uint32_t mc_sim_choose(uint32_t n) noexcept {
    if (n <= 1)
        return 0;
    int32_t status = MC_OK;
    Simulation *simulation = mc::sim::simulation();
    if (simulation != nullptr && mc::abi::enter(&status) != nullptr)
        return simulation->choose_for_program(caller(), n);
    return static_cast<uint32_t>(mc_random() % std::min<uint32_t>(n, UINT16_MAX));
}

int32_t mc_sim_oracles(uint32_t oracles, uint64_t bound) noexcept {
    constexpr uint32_t all = MC_SIM_LEDGER | MC_SIM_FIFO | MC_SIM_NO_TASK_LEFT | MC_SIM_BOUNDED_WAIT;
    if ((oracles & ~all) != 0)
        return MC_E_INVAL;
    int32_t status = MC_OK;
    Simulation *simulation = mc::sim::simulation();
    if (simulation == nullptr)
        return MC_OK;
    if (mc::abi::enter(&status) != nullptr)
        simulation->add_oracles(oracles, bound);
    return status;
}
