// Runs of the program, several at once, each under a seed and a policy or a schedule: started, ended at their time limit, and judged.
// A run has a place of its own for what it leaves behind, which the next one there writes over.
#pragma once

#include "mcrt/process.hpp"
#include "mcrt/recording.hpp"
#include "mcrt/schedule.hpp"
#include "mcrt/scratch.hpp"
#include "mcrt/signals.hpp"
#include "mcrt/verdict.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mc::mcrt {

struct Run {
    uint64_t seed = 0;
    std::string policy; // of none: the schedule
    std::optional<Schedule> schedule;
};

struct Result {
    uint64_t ticket = 0;
    Run run;
    Verdict verdict;
    Ending ending;
    std::string output;
    std::string path; // of its recording, until the next run is started
    std::optional<mc_sim_recording> header;
    double took_s = 0;

    // All of it, or nothing when there is none. Throws Stop when there was one and it can not be read.
    Recording recording(Events events = Events::wanted) const;
};

class Runner {
public:
    Runner(const Program &program, unsigned places, double limit_s);
    ~Runner();

    size_t places() const { return jobs_.size(); }
    size_t running() const;
    bool has_room() const { return running() < places(); }
    void set_limit(double seconds) { limit_s_ = seconds; }
    double limit() const { return limit_s_; }

    // Called several times a second while something is waited for.
    void set_tick(std::function<void()> tick) { tick_ = std::move(tick); }

    // Needs room. ticket: the caller's.
    void start(uint64_t ticket, const Run &run);
    // The next to end of those that run. Throws Interrupted.
    Result next();
    void cancel_above(uint64_t ticket);

    // At most as many as there are places, at once; in their order. Nothing else runs.
    std::vector<Result> run(const std::vector<Run> &runs);

private:
    struct Job {
        uint64_t ticket = 0;
        Run run;
        std::string path;
        std::unique_ptr<Process> process; // null: the place is free
        double began = 0;
        double deadline = 0;
        bool timed_out = false;
    };

    std::map<std::string, std::string> variables(const Job &job, size_t place) const;
    void wait();
    void end_late(double now);
    Result finish(Job &job);
    void end_process(Job &job, Ending *ending);

    const Program program_;
    double limit_s_;
    std::function<void()> tick_;
    Signals signals_;
    Scratch scratch_;
    std::vector<Job> jobs_; // the last to be made and the first to go: their processes write there
};

double steady_seconds();

} // namespace mc::mcrt
