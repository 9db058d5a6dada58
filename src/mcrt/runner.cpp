#include "mcrt/runner.hpp"

#include "mcrt/stop.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr double tick_s = 0.1;
constexpr uint64_t most_recording_bytes = uint64_t{128} << 20;

void write_schedule(const std::string &path, const Schedule &schedule) {
    std::ofstream file(path);
    file << format(schedule) << '\n';
    if (!file.flush())
        throw Stop{status_usage, "cannot write " + path};
}

} // namespace

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Recording Result::recording(Events events) const {
    if (!header)
        return Recording{};
    std::string why;
    std::optional<Recording> read = read_recording(path, &why, events);
    if (!read)
        throw Stop{status_usage, why};
    return std::move(*read);
}

Runner::Runner(const Program &program, unsigned places, double limit_s)
    : program_(program), limit_s_(limit_s), scratch_(places * most_recording_bytes), jobs_(places) {
    for (size_t i = 0; i < jobs_.size(); ++i)
        jobs_[i].path = scratch_.file(std::to_string(i) + ".recording");
    adopt_orphans();
}

Runner::~Runner() {
    for (Job &job : jobs_)
        if (job.process != nullptr) {
            Ending ignored;
            job.process->kill_group();
            end_process(job, &ignored);
        }
}

size_t Runner::running() const {
    const auto runs = [](const Job &job) { return job.process != nullptr; };
    return static_cast<size_t>(std::count_if(jobs_.begin(), jobs_.end(), runs));
}

std::map<std::string, std::string> Runner::variables(const Job &job, size_t place) const {
    std::map<std::string, std::string> variables = program_.environment;
    variables["MCRT_SEED"] = std::to_string(job.run.seed);
    variables["MCRT_RECORD"] = job.path;
    if (job.run.schedule)
        variables["MCRT_SCHEDULE"] = "@" + scratch_.file(std::to_string(place) + ".schedule");
    else
        variables["MCRT_POLICY"] = job.run.policy;
    return variables;
}

void Runner::start(uint64_t ticket, const Run &run) {
    const auto free = std::find_if(jobs_.begin(), jobs_.end(), [](const Job &job) { return job.process == nullptr; });
    const auto place = static_cast<size_t>(free - jobs_.begin());
    Job &job = jobs_.at(place);
    job.ticket = ticket;
    job.run = run;
    job.timed_out = false;
    unlink(job.path.c_str()); // or a program that makes none would seem to have made the last one's
    if (run.schedule)
        write_schedule(scratch_.file(std::to_string(place) + ".schedule"), *run.schedule);
    job.began = steady_seconds();
    job.deadline = job.began + limit_s_;
    job.process = std::make_unique<Process>(program_, environment_with(variables(job, place)), signals_.mask_before());
}

Result Runner::next() {
    for (;;) {
        for (Job &job : jobs_) {
            pollfd ended{job.process == nullptr ? -1 : job.process->ended_file(), POLLIN, 0};
            if (job.process != nullptr && poll(&ended, 1, 0) == 1)
                return finish(job);
        }
        wait();
    }
}

void Runner::wait() {
    std::vector<pollfd> files;
    double until = steady_seconds() + tick_s;
    for (const Job &job : jobs_)
        if (job.process != nullptr) {
            files.push_back(pollfd{job.process->ended_file(), POLLIN, 0});
            files.push_back(pollfd{job.process->printed_file(), POLLIN, 0});
            if (!job.timed_out)
                until = std::min(until, job.deadline);
        }
    signals_.wait(files.data(), files.size(), std::max(until - steady_seconds(), 0.0));
    for (Job &job : jobs_)
        if (job.process != nullptr && job.process->printed_file() >= 0)
            job.process->read_printed();
    end_late(steady_seconds());
    if (tick_)
        tick_();
}

void Runner::end_late(double now) {
    for (Job &job : jobs_)
        if (job.process != nullptr && now >= job.deadline && !job.timed_out) {
            job.timed_out = true;
            job.process->kill_group();
        }
}

void Runner::end_process(Job &job, Ending *ending) {
    *ending = job.process->finish();
    std::vector<pid_t> others;
    for (const Job &other : jobs_)
        if (other.process != nullptr && &other != &job)
            others.push_back(other.process->pid());
    end_orphans("MCRT_RECORD=" + job.path, others);
}

Result Runner::finish(Job &job) {
    Result result;
    end_process(job, &result.ending);
    result.ending.timed_out = job.timed_out;
    result.ticket = job.ticket;
    result.run = std::move(job.run);
    result.output = job.process->printed();
    result.path = job.path;
    result.took_s = steady_seconds() - job.began;
    job.process.reset();
    result.header = read_header(job.path);
    result.verdict = judge(result.ending, result.header, result.output);
    return result;
}

void Runner::cancel_above(uint64_t ticket) {
    for (Job &job : jobs_)
        if (job.process != nullptr && job.ticket > ticket) {
            Ending ignored;
            job.process->kill_group();
            end_process(job, &ignored);
            job.process.reset();
        }
}

std::vector<Result> Runner::run(const std::vector<Run> &runs) {
    for (size_t i = 0; i < runs.size(); ++i)
        start(i, runs[i]);
    std::vector<Result> results(runs.size());
    while (running() != 0) {
        Result result = next();
        results[result.ticket] = std::move(result);
    }
    return results;
}

} // namespace mc::mcrt
