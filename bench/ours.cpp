// libmcrt's side of the benchmark: each row written against include/mc alone, as a user would write it.
//
// The driver (bench/run) starts it, one process a row; harness.hpp has the command form. The rows here run in
// single-processor mode: the main thread owns the runtime and waits in mc_join, so that only the microthreads of the
// row take turns. The rows of ours/executors.hpp and ours/timers.hpp give the runtime executors first, but timer_pair; that of
// ours/mutex.hpp does for two.
//
// Rejected: options that a user would not think of (other stack sizes, detached microthreads where a result is waited
// for), and calls whose results nobody looks at: receivers sum what they get, and a wrong sum fails the row.
#include "harness.hpp"
#include "ours/common.hpp"
#include "ours/executors.hpp"
#include "ours/mutex.hpp"
#include "ours/timers.hpp"

#include <mc/mc.h>

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

// --- rendezvous, stream --------------------------------------------------------------------------------------------

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

struct Stream {
    Channel channel;
    uint64_t messages;
};

int32_t produce(void *user) {
    auto &stream = *static_cast<Stream *>(user);
    for (uint64_t i = 0; i < stream.messages; ++i) {
        int64_t value = static_cast<int64_t>(i);
        csp_send(stream.channel.writer, &value);
    }
    return 0;
}

int32_t consume(void *user) {
    auto &stream = *static_cast<Stream *>(user);
    int64_t value = 0, sum = 0;
    for (uint64_t i = 0; i < stream.messages; ++i) {
        csp_recv(stream.channel.reader, &value);
        sum += value;
    }
    bench::require(sum == sum_below(stream.messages), "the sum of the stream");
    return 0;
}

double stream(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t messages) {
        Stream one{{}, messages};
        mc_task_t producer = spawn(produce, &one), consumer = spawn(consume, &one);
        join(producer);
        join(consumer);
    });
}

// --- alt4, prialt4, alt4_ready --------------------------------------------------------------------------------------

using Alt = int (*)(csp_chanop const *, int, int);

struct Merge {
    Stream from[4];
    Alt alt;
    bool yields; // after each choice, so that the next one finds senders waiting
};

int32_t consume_any(void *user) {
    auto &merge = *static_cast<Merge *>(user);
    int64_t value = 0, sum = 0;
    csp_chanop arms[4];
    for (int i = 0; i < 4; ++i)
        arms[i] = {csp_wait(merge.from[i].channel.reader), &value};
    for (uint64_t i = 0; i < 4 * merge.from[0].messages; ++i) {
        merge.alt(arms, 4, 0);
        sum += value;
        if (merge.yields)
            csp_yield();
    }
    bench::require(sum == 4 * sum_below(merge.from[0].messages), "the sum of the merged streams");
    return 0;
}

void merge_four(uint64_t messages, Alt alt, bool yields) {
    uint64_t each = messages / 4;
    Merge merge{{{{}, each}, {{}, each}, {{}, each}, {{}, each}}, alt, yields};
    mc_task_t tasks[5];
    for (int i = 0; i < 4; ++i)
        tasks[i] = spawn(produce, &merge.from[i]);
    tasks[4] = spawn(consume_any, &merge);
    for (mc_task_t task : tasks)
        join(task);
}

double alt4(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge_four(n, csp_alt, false); });
}

double prialt4(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge_four(n, csp_prialt, false); });
}

double alt4_ready(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { merge_four(n, csp_alt, true); });
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
    for (uint64_t i = 0; i < count; ++i)
        bench::require(mc_spawn(0, block, &blocked, nullptr, nullptr) == MC_OK, "mc_spawn");
    csp_schedule();
    bench::Memory after = bench::memory_now();
    bench::require(blocked.count == count, "blocking all microthreads");
    bench::report_memory(before, after, count);
}

constexpr bench::Row kRows[] = {{"yield2", yield2},
                                {"yield100", yield100},
                                {"rendezvous", rendezvous},
                                {"sim_step", sim_step},
                                {"stream", stream},
                                {"alt4", alt4},
                                {"prialt4", prialt4},
                                {"alt4_ready", alt4_ready},
                                {"spawn_join", spawn_join},
                                {"memory", memory},
                                {"rendezvous_cross", nullptr, rendezvous_cross, 2},
                                {"skynet", nullptr, skynet},
                                {"spawn_bulk", nullptr, spawn_bulk},
                                {"mutex", nullptr, mutex},
                                {"timer_pair", timer_pair},
                                {"timers_1s", nullptr, timers_1s},
                                {"hogs", nullptr, hogs}};

} // namespace

int main(int argc, char **argv) {
    char version[32];
    std::snprintf(version, sizeof version, "%u.%u", mc_abi_version() >> 16, mc_abi_version() & 0xffff);
    return bench::run_program({"libmcrt", version, kRows, sizeof kRows / sizeof kRows[0]}, argc, argv);
}
