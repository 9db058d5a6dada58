// The search for a run that fails: seed by seed, or schedule by schedule. What it finds does not depend on how many run at once and
// which of them ends first: the lowest seed.
#pragma once

#include "mcrt/enumerator.hpp"
#include "mcrt/explore.hpp"
#include "mcrt/progress.hpp"
#include "mcrt/runner.hpp"

#include <optional>
#include <string>
#include <unordered_set>

namespace mc::mcrt {

struct Found {
    Result result;
    Recording recording;
};

class Search {
public:
    Search(Runner &runner, const ExploreOptions &options);

    // Runs the first seed twice. Throws Stop when the program can not be explored: it can not be run, does not use the library, or does
    // another thing the second time. Something, if it fails.
    std::optional<Found> check_first();
    // The rest of them.
    std::optional<Found> seeds();
    // All schedules, the first included.
    std::optional<Found> schedules();

    // Runs it again. How the second run differs, in words; none: it fails in the same way.
    std::optional<std::string> repeat(const Found &found);

    uint64_t runs() const { return runs_; }
    uint64_t signatures() const { return signatures_.size(); }
    bool complete() const { return complete_; } // schedules: there are no more

private:
    Run first_run() const;
    void note(const Result &result, uint64_t number);
    std::vector<Found> twice(const Run &run);
    std::optional<Found> run(const std::vector<Enumerator::Item> &items, Enumerator *enumerator);

    Runner &runner_;
    const ExploreOptions &options_;
    uint64_t runs_ = 0;
    bool complete_ = false;
    bool cut_ = false; // a run had more choices than its recording has room for: what follows from them is not known
    std::unordered_set<uint64_t> signatures_;
};

} // namespace mc::mcrt
