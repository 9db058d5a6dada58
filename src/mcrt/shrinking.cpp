#include "mcrt/shrinking.hpp"

#include "mcrt/progress.hpp"
#include "mcrt/shrinker.hpp"

#include <algorithm>

namespace mc::mcrt {
namespace {

class ScheduleTrials final : public Trials {
public:
    ScheduleTrials(Runner &runner, const ExploreOptions &options, const Found &wanted)
        : runner_(runner), options_(options), wanted_(wanted.result.verdict), seed_(wanted.result.run.seed),
          began_(steady_seconds()), progress_("shrinking run", options.shrink_runs) {
        runner_.set_tick([this] { show(); });
    }
    ~ScheduleTrials() override { runner_.set_tick(nullptr); }
    ScheduleTrials(const ScheduleTrials &) = delete;
    ScheduleTrials &operator=(const ScheduleTrials &) = delete;

    bool may_go_on() override {
        ended_ |= runs_ >= options_.shrink_runs || took() >= options_.shrink_s;
        return !ended_;
    }

    std::vector<Tried> run(const std::vector<Schedule> &schedules) override {
        std::vector<Tried> tried;
        while (tried.size() < schedules.size() && may_go_on()) {
            const size_t count =
                std::min({schedules.size() - tried.size(), runner_.places(), options_.shrink_runs - runs_});
            std::vector<Run> runs;
            for (size_t i = 0; i < count; ++i)
                runs.push_back(Run{seed_, "", schedules[tried.size() + i]});
            for (const Result &result : runner_.run(runs))
                tried.push_back(Tried{note(result), result.recording(Events::left).choices});
            show();
        }
        return tried;
    }

    // One more, whatever is left.
    Found confirm(const Schedule &schedule, bool *fails) {
        Result result = std::move(runner_.run({Run{seed_, "", schedule}})[0]);
        *fails = note(result);
        Recording recording = result.recording();
        return Found{std::move(result), std::move(recording)};
    }

    uint64_t runs() const { return runs_; }
    double took() const { return steady_seconds() - began_; }
    bool ended() const { return ended_; }

private:
    bool note(const Result &result) {
        ++runs_;
        if (result.header)
            signatures_.insert(result.header->signature);
        return same_failure(result.verdict, wanted_);
    }
    void show() { progress_.show(runs_, signatures_.size()); }

    Runner &runner_;
    const ExploreOptions &options_;
    const Verdict wanted_;
    const uint64_t seed_;
    const double began_;
    Progress progress_;
    uint64_t runs_ = 0;
    bool ended_ = false;
    std::unordered_set<uint64_t> signatures_;
};

// Other schedules may run for ever, and each of them would take all of the time limit. A failure that is one has to.
double limit_for_trials(const Runner &runner, const Found &found) {
    if (found.result.verdict.fault == Fault::timed_out)
        return runner.limit();
    return std::min(runner.limit(), std::max(1.0, 20 * found.result.took_s));
}

} // namespace

Shrunk shrink(Runner &runner, const ExploreOptions &options, const Found &found) {
    const double limit = runner.limit();
    runner.set_limit(limit_for_trials(runner, found));
    ScheduleTrials trials(runner, options, found);
    bool fails = false;
    Found best = trials.confirm(schedule_of(found.recording.choices), &fails);
    if (fails && options.shrink) {
        const Choices choices = Shrinker(trials, runner.places()).shrink(best.recording.choices);
        bool still_fails = false;
        Found shorter = trials.confirm(schedule_of(choices), &still_fails);
        if (still_fails)
            best = std::move(shorter);
    }
    runner.set_limit(limit);
    return Shrunk{std::move(best), fails, trials.runs(), trials.took(), !trials.ended()};
}

} // namespace mc::mcrt
