// The simulator: virtual time, whose turn it is, and the record of a run. One for the process; the simulated thread calls it, but
// for what any thread may read (mc/sim.h). See sched/simulation.hpp for what it is asked and told.
//
// Every number that decides anything comes from a stream of the seed of its own: the schedule, the program's random numbers, and
// arms and the program's choices, which are part of the schedule. Candidates stand in the order in which they became runnable, so no
// address decides. What is told goes into the signature as it comes; tasks by their id, objects by the order of their creation.
#pragma once

#include "sim/oracles.hpp"
#include "sim/policy.hpp"
#include "sim/recording.hpp"

#include "sched/driver.hpp"
#include "sched/simulation.hpp"
#include "sched/task.hpp"

#include <mc/sim.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace mc::sim {

constexpr uint64_t usual_bound = 100'000; // steps

struct Settings {
    uint64_t seed = 0;
    std::string policy = "mix";
    bool replays = false; // schedule instead of the policy
    Schedule schedule;
    std::string record; // empty: not recorded
    int64_t delay_ns = 100 * MC_MS;
    uint32_t oracles = 0;
    uint64_t bound = usual_bound;
};

class Simulation final : public sched::Simulator {
public:
    explicit Simulation(const Settings &settings);
    void start() noexcept;

    // --- sched::Simulator
    sched::Task *choose(const sched::RunQueue &queue, sched::Task *running, sched::Turn turn,
                        int64_t next_timer_ns) noexcept override;
    uint32_t pick(uint32_t n) noexcept override { return pick(n, MC_SIM_CHOICE_ARM); }
    int64_t step() noexcept override;
    void jump_to(int64_t deadline_ns) noexcept override { pass_time(deadline_ns, passes_others_); }
    void sleep_until(int64_t deadline_ns) noexcept override { pass_time(deadline_ns, false); }
    void note_executors(uint32_t n) noexcept override { parallel_ |= n != 1; }
    bool parallel() const noexcept override { return parallel_; }
    void told(sched::SimEvent event, const sched::Task *task, const void *object, const sched::Task *peer,
              int64_t value) noexcept override;
    void told_spawn(const sched::Task *parent, sched::Task &child) noexcept override;
    void told_text(sched::SimEvent event, const sched::Task *task, const void *object,
                   const char *text) noexcept override;
    void buffered(sched::SimEvent event, const sched::Task *task, const void *channel, const void *element,
                  uint32_t bytes) noexcept override;
    uint64_t number_of(const void *object) noexcept override;
    void mutex_gone(const void *mutex) noexcept override { others_.erase(mutex); }
    void channel_gone(const void *channel, uint32_t held, bool dropped) noexcept override;
    void deadlocked(bool first, const char *line) noexcept override;
    const sched::DriverSource &drivers() noexcept override { return drivers_; }

    // --- mc/sim.h
    uint64_t seed() const noexcept { return settings_.seed; }
    uint64_t steps() const noexcept { return steps_.load(sync::relaxed); }
    uint64_t signature() const noexcept { return signature_.load(sync::relaxed); }
    uint32_t choose_for_program(const sched::Task *task, uint32_t n) noexcept;
    void note(const sched::Task *task, const char *text) noexcept;
    void add_oracles(uint32_t oracles, uint64_t bound) noexcept;
    // What mc_now returns.
    int64_t read_clock() noexcept;

    // Records, says so and aborts.
    [[noreturn]] void fail(uint32_t failure, const char *text) noexcept;

    // At exit; in a forked child.
    void end() noexcept;
    void leave_behind() noexcept;

private:
    static constexpr uint32_t most_candidates = 64; // further ones become candidates as these run

    struct Candidates {
        sched::Task *tasks[most_candidates + 1]; // null is time
        uint64_t *words[most_candidates + 1];
        uint32_t count = 0;
        bool running = false;
        bool time = false;
        void add(sched::Task *task, uint64_t *word) noexcept {
            tasks[count] = task;
            words[count++] = word;
        }
    };

    void gather(Candidates &candidates, const sched::RunQueue &queue, sched::Task *running, sched::Turn turn) noexcept;
    void count_step() noexcept;
    void add_time(Candidates &candidates, int64_t next_timer_ns) noexcept;
    bool only_yields(sched::Turn turn, int64_t next_timer_ns) noexcept;
    void note_turn(const sched::Task &next, sched::Turn turn) noexcept;
    void note_wait(const sched::Task &task) noexcept;
    void check_waits(const sched::Task *leaves) noexcept;
    sched::Task *passed_over_for_long(const sched::RunQueue &queue, const sched::Task *running) noexcept;
    sched::Task *overdue(const sched::RunQueue &queue) noexcept;
    uint32_t pick(uint32_t n, uint16_t kind) noexcept;
    void record_choice(uint32_t count, uint32_t taken, uint16_t kind, uint16_t flags) noexcept;
    void record(sched::SimEvent event, uint64_t task, uint64_t object, uint64_t peer, int64_t value,
                const char *text = nullptr) noexcept;
    void record_for_program(uint32_t event, const sched::Task *task, uint32_t value, const char *text) noexcept;
    int64_t advance(int64_t ns) noexcept;
    void note_progress() noexcept;
    void pass_time(int64_t until_ns, bool passes_others) noexcept;
    void mix(uint64_t value) noexcept;
    bool checks(uint32_t oracle) const noexcept { return (settings_.oracles & oracle) != 0; }
    Ledger &ledger_of(const void *channel) noexcept;
    void write_failure(uint32_t failure, const char *text) noexcept;
    void check_at_exit() noexcept;

    Settings settings_;
    std::unique_ptr<Policy> policy_;
    Recording recording_;
    sched::DriverSource drivers_;
    bool parallel_ = false;
    bool ended_ = false;
    uint64_t choices_ = 0;
    uint64_t time_word_ = 0;              // the policy's, of time
    uint32_t yields_ = 0;                 // in a row, with nobody waiting in between
    uint32_t deadlocks_ = 0;              // reports
    bool passes_others_ = false;          // the last choice was among tasks that could go on
    bool last_waits_ = false;             // who ran has begun to wait
    uint64_t last_ = 0;                   // the id of who ran
    const sched::Task *oldest_ = nullptr; // the first in line, and since which step
    uint64_t oldest_since_ = 0;
    std::unordered_map<const void *, Ledger> channels_;
    std::unordered_map<const void *, uint64_t> others_; // mutexes
    uint64_t numbers_ = 0;                              // of channels and mutexes
    Patience waiting_;                                  // with MC_SIM_BOUNDED_WAIT: for what others could give them
    Patience runnable_;                                 // likewise: for their turn
    // written by the simulated thread, read by any
    sync::atomic<uint64_t> steps_{0};
    sync::atomic<uint64_t> signature_{0};
};

// The process's, or null.
Simulation *simulation() noexcept;

// Makes the process a simulated one. False: the library has been used, or there is no memory.
bool begin(const Settings &settings) noexcept;

} // namespace mc::sim
