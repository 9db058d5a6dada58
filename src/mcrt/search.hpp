// The search for a run that fails: seed by seed, or schedule by schedule. What it finds does not depend on how many run at once and
// which of them ends first: the lowest seed.
#pragma once

#include "mcrt/enumerator.hpp"
#include "mcrt/explore.hpp"
#include "mcrt/progress.hpp"
#include "mcrt/runner.hpp"

#include <map>
#include <optional>
#include <string>
#include <unordered_set>

namespace mc::mcrt {

struct Found {
    Result result;
    Recording recording;
};

// Both runs of one seed or schedule: where they part, in words; none: nowhere, or one was ended by its time limit.
std::optional<std::string> difference_of(const Found &one, const Found &other);

class Search {
public:
    Search(Runner &runner, const ExploreOptions &options);

    // Runs the first seed twice. Throws Stop when the program can not be explored: it can not be run, does not use the library, or does
    // another thing the second time. Something, if it fails.
    std::optional<Found> check_first();
    // The rest of them; some are run twice. Throws Stop when one of those does another thing the second time.
    std::optional<Found> seeds();
    // All schedules, the first included.
    std::optional<Found> schedules();

    // Runs it again, a few times. How one of them differs, in words; none: each fails in the same way.
    std::optional<std::string> repeat(const Found &found);

    uint64_t runs() const { return runs_; }
    uint64_t signatures() const { return signatures_.size(); }
    bool complete() const { return complete_; } // schedules: there are no more

private:
    Run first_run() const;
    void note(const Result &result, uint64_t number);
    std::vector<Found> several(const Run &run, size_t count);
    bool is_run_twice(uint64_t at) const;
    void take_in(Result result);
    void take_second(Found second);
    [[noreturn]] void refuse(const Enumerator::Stray &stray);
    std::optional<Found> run(const std::vector<Enumerator::Item> &items, Enumerator *enumerator);

    Runner &runner_;
    const ExploreOptions &options_;
    uint64_t runs_ = 0;
    bool complete_ = false;
    std::map<uint64_t, Found> once_;     // seeds: what has run once, and is to run again; by ticket
    std::optional<Found> found_;         // seeds: the lowest that fails
    std::optional<std::string> differs_; // seeds: the lowest whose runs differ, and how; at most one of the two
    bool cut_ = false; // a run had more choices than its recording has room for: what follows from them is not known
    std::unordered_set<uint64_t> signatures_;
};

} // namespace mc::mcrt
