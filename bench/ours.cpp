// libmcrt's side of the benchmark: each row written against include/mc alone, as a user would write it.
//
// The driver (bench/run) starts it, one process a row; harness.hpp has the command form. The rows here run in
// single-processor mode: the main thread owns the runtime and waits in mc_join, so that only the microthreads of the
// row take turns. Rows for two executors, and those of ours/executors.hpp for one as well, give the runtime executors first.
//
// Rejected: options that a user would not think of (other stack sizes, detached microthreads where a result is waited
// for), and calls whose results nobody looks at: receivers sum what they get, and a wrong sum fails the row.
#include "harness.hpp"
#include "ours/alt.hpp"
#include "ours/buffered.hpp"
#include "ours/common.hpp"
#include "ours/executors.hpp"
#include "ours/latency.hpp"
#include "ours/ledger.hpp"
#include "ours/machines.hpp"
#include "ours/mutex.hpp"
#include "ours/ring.hpp"
#include "ours/timers.hpp"

#include <mc/mc.h>

#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace ours;

// --- yield2, yield100 ----------------------------------------------------------------------------------------------

int32_t yield_in_turn(void *user) {
    for (uint64_t left = *static_cast<uint64_t *>(user); left > 0; --left)
        csp_yield();
    return 0;
}

void yield_among(uint64_t switches, uint64_t fibers) {
    uint64_t turns = switches / fibers;
    std::vector<mc_task_t> tasks;
    for (uint64_t i = 0; i < fibers; ++i)
        tasks.push_back(spawn(yield_in_turn, &turns));
    for (mc_task_t task : tasks)
        join(task);
}

double yield2(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { yield_among(n, 2); });
}

double yield100(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { yield_among(n, 100); });
}

// --- rendezvous ----------------------------------------------------------------------------------------------------

void exchange(uint64_t messages) {
    PingPong game{{}, {}, messages / 2};
    mc_task_t a = spawn(send_pings<csp_recv>, &game), b = spawn(return_pongs<csp_recv>, &game);
    join(a);
    join(b);
}

double rendezvous(uint64_t iterations) { return bench::time_per_operation(iterations, exchange); }

// --- sim_step ------------------------------------------------------------------------------------------------------

double sim_step(uint64_t iterations) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_t unused;
    options.mode = MC_MODE_SIMULATION;
    options.seed = 1;
    bench::require(mc_runtime_create(&options, &unused) == MC_OK, "mc_runtime_create");
    uint64_t before = 0; // of the measured pass
    const double message = bench::time_per_operation(iterations, [&](uint64_t messages) {
        before = mc_sim_steps();
        exchange(messages);
    });
    bench::further("message", message);
    return message * static_cast<double>(iterations) / static_cast<double>(mc_sim_steps() - before);
}

// --- spawn_join, memory --------------------------------------------------------------------------------------------

int32_t do_nothing(void *) { return 0; }

double spawn_join(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) {
        for (uint64_t i = 0; i < n; ++i)
            join(spawn(do_nothing, nullptr));
    });
}

struct Blocked {
    Channel channel;
    uint64_t count = 0;
};

int32_t block(void *user) {
    auto &blocked = *static_cast<Blocked *>(user);
    int64_t value = 0;
    ++blocked.count;
    csp_recv(blocked.channel.reader, &value);
    return 0;
}

double memory(uint64_t count) {
    Blocked blocked;
    bench::Memory before = bench::memory_now();
    const double ns = bench::time_once([&] {
        for (uint64_t i = 0; i < count; ++i)
            bench::require(mc_spawn(0, block, &blocked, nullptr, nullptr) == MC_OK, "mc_spawn");
        csp_schedule();
    });
    bench::Memory after = bench::memory_now();
    bench::require(blocked.count == count, "blocking all microthreads");
    bench::report_memory(before, after, ns, count);
}

constexpr bench::Row kRows[] = {{"yield2", yield2},
                                {"yield100", yield100},
                                {"rendezvous", rendezvous},
                                {"sim_step", sim_step},
                                {"stream", stream},
                                {"alt4", alt4},
                                {"prialt4", prialt4},
                                {"alt4_ready", alt4_ready},
                                {"alt64", alt64},
                                {"alt4_ack", alt4_ack},
                                {"buffered_spsc", nullptr, buffered_spsc},
                                {"buffered_mpsc4", nullptr, buffered_mpsc4},
                                {"threadring", threadring},
                                {"spawn_join", spawn_join},
                                {"memory", memory},
                                {"memory_1m", memory},
                                {"rendezvous_cross", nullptr, rendezvous_cross, 2},
                                {"skynet", nullptr, skynet},
                                {"spawn_bulk", nullptr, spawn_bulk},
                                {"mutex", nullptr, mutex},
                                {"timer_pair", timer_pair},
                                {"timers_1s", nullptr, timers_1s},
                                {"hogs", nullptr, hogs},
                                {"latency_1", nullptr, latency_1, 2},
                                {"latency_50", nullptr, latency_50, 2},
                                {"latency_95", nullptr, latency_95, 2},
                                {"idle_cpu", nullptr, idle_cpu, 2},
                                {"machine_step", machine_step},
                                {"machine_ask", machine_ask},
                                {"machine_ask_attached", machine_ask_attached},
                                {"machine_parallel", nullptr, machine_parallel},
                                {"ledger", nullptr, ledger},
                                {"machine_memory", machine_memory},
                                {"descriptor_lookup", descriptor_lookup},
                                {"pending_lookup", pending_lookup}};

// A process that has a second thread, which sleeps: then atomics are locked instructions in single-processor mode, too.
void start_second_thread() {
    std::thread([] {
        for (;;)
            pause();
    }).detach();
}

} // namespace

int main(int argc, char **argv) {
    if (std::getenv("BENCH_SECOND_THREAD") != nullptr)
        start_second_thread();
    char version[32];
    std::snprintf(version, sizeof version, "%u.%u", mc_abi_version() >> 16, mc_abi_version() & 0xffff);
    return bench::run_program({"libmcrt", version, kRows, sizeof kRows / sizeof kRows[0]}, argc, argv);
}
