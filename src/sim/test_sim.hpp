// For tests of simulation: a body that runs simulated in a child of its own, and what became of it. A process is simulated or not for
// all of its life, so each run is a process.
#pragma once

#include "sim/simulation.hpp"
#include "testing/test.hpp"

#include <mc/csp.h>
#include <mc/runtime.h>

#include <algorithm>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mc::sim::testing {

// What a run leaves for the test that asked for it: shared with the child.
struct Outcome {
    uint64_t signature = 0;
    uint64_t steps = 0;
    int64_t now_ns = 0;
    int status = 0; // as waitpid gives it
    int64_t said[64] = {};
    uint32_t said_count = 0;

    void say(int64_t value) {
        cr_assert_lt(said_count, 64u);
        said[said_count++] = value;
    }
    bool fine() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
    bool aborted() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT; }
    std::vector<int64_t> all_said() const { return {said, said + said_count}; }
};

inline Settings with_seed(uint64_t seed, const char *policy = "mix") {
    Settings settings;
    settings.seed = seed;
    settings.policy = policy;
    return settings;
}

inline Settings with_schedule(const Schedule &schedule, uint64_t seed = 0) {
    Settings settings = with_seed(seed);
    settings.replays = true;
    settings.schedule = schedule;
    return settings;
}

// Runs body(outcome) simulated, in a child. What the child writes to standard error is thrown away when quiet.
template <class Body> Outcome simulate(const Settings &settings, Body body, bool quiet = false) {
    void *memory = mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    auto *shared = new (memory) Outcome();
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        if (quiet)
            (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        cr_assert(begin(settings), "the process could not be simulated");
        body(*shared);
        simulation()->end();
        shared->signature = simulation()->signature();
        shared->steps = simulation()->steps();
        shared->now_ns = sync::now_ns();
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    shared->status = status;
    const Outcome outcome = *shared;
    munmap(memory, sizeof(Outcome));
    return outcome;
}

// What a run has recorded.
struct Recorded {
    Outcome outcome;
    mc_sim_recording header;
    std::vector<mc_sim_choice> choices;
    std::vector<mc_sim_event> events;

    size_t count(uint32_t kind) const {
        return static_cast<size_t>(
            std::count_if(events.begin(), events.end(), [=](const mc_sim_event &event) { return event.kind == kind; }));
    }
    // The first of that kind at or after from; the events' number when there is none.
    size_t find(uint32_t kind, size_t from = 0) const {
        while (from < events.size() && events[from].kind != kind)
            ++from;
        return from;
    }
};

template <class Item> std::vector<Item> read_items(int file, uint64_t count, uint64_t at) {
    std::vector<Item> items(count);
    const auto bytes = static_cast<ssize_t>(count * sizeof(Item));
    cr_assert_eq(pread(file, items.data(), static_cast<size_t>(bytes), static_cast<off_t>(at)), bytes);
    return items;
}

template <class Body> Recorded simulate_recorded(Settings settings, Body body, bool quiet = false) {
    settings.record = "/tmp/mcrt-sim-test-" + std::to_string(getpid());
    Recorded recorded{};
    recorded.outcome = simulate(settings, std::move(body), quiet);
    const int file = open(settings.record.c_str(), O_RDONLY | O_CLOEXEC);
    cr_assert_geq(file, 0);
    recorded.header = read_items<mc_sim_recording>(file, 1, 0)[0];
    recorded.choices = read_items<mc_sim_choice>(file, recorded.header.choices, recorded.header.choices_at);
    recorded.events = read_items<mc_sim_event>(file, recorded.header.events, recorded.header.events_at);
    close(file);
    unlink(settings.record.c_str());
    return recorded;
}

template <class Body> Outcome simulate(uint64_t seed, Body body, bool quiet = false) {
    return simulate(with_seed(seed), std::move(body), quiet);
}

// The first seed of [0, seeds) under which the body's process does not end well, or seeds.
template <class Body> uint64_t first_failing(uint64_t seeds, Body body, const char *policy = "mix") {
    for (uint64_t seed = 0; seed < seeds; ++seed)
        if (!simulate(with_seed(seed, policy), body, true).fine())
            return seed;
    return seeds;
}

// --- microthreads from lambdas ---

template <class Body> int32_t run_and_free(void *argument) {
    const std::unique_ptr<Body> body(static_cast<Body *>(argument));
    if constexpr (std::is_void_v<decltype((*body)())>)
        return (*body)(), MC_OK;
    else
        return (*body)();
}

template <class Body> mc_task_t go(Body body, const char *name = nullptr, mc_runtime_t rt = 0) {
    mc_task_t task = 0;
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.name = name;
    cr_assert_eq(mc_spawn(rt, run_and_free<Body>, new Body(std::move(body)), &options, &task), MC_OK);
    return task;
}

inline int32_t result_of(mc_task_t task) {
    int32_t result = 0;
    const int32_t status = mc_join(task, MC_FOREVER, &result);
    return status == MC_OK ? result : status;
}

inline mc_chan_t channel(uint32_t capacity = 0) {
    mc_chan_t made = 0;
    cr_assert_eq(mc_chan_create(0, sizeof(int64_t), capacity, nullptr, nullptr, &made), MC_OK);
    return made;
}

inline int32_t send(mc_chan_t to, int64_t value) { return mc_send(to, &value); }
inline int64_t receive(mc_chan_t from) {
    int64_t value = -1;
    const int32_t status = mc_recv(from, &value);
    return status == MC_OK ? value : status;
}

} // namespace mc::sim::testing
