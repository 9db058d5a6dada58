#include "mcrt/search.hpp"

#include "mcrt/difference.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace mc::mcrt {
namespace {

constexpr int not_understood =
    125; // the library's status for a variable of the simulation's that it does not understand

Found with_recording(Result result) {
    Recording recording = result.recording();
    return Found{std::move(result), std::move(recording)};
}

bool any_timed_out(const Found &one, const Found &other) {
    return one.result.ending.timed_out || other.result.ending.timed_out;
}

std::string with_output(const std::string &text, const Result &result) {
    const std::string output = clean(result.output, Lines::keep);
    return output.empty() ? text : text + "\nIt printed:\n" + output;
}

// What no other seed would change.
void check_usable(const Result &result, const std::string &name) {
    const bool refused = !result.ending.signalled && result.ending.code == not_understood;
    if (refused && result.output.find("libmcrt: MCRT_") != std::string::npos)
        throw Stop{status_usage, with_output(name + " does not accept what it was given.", result)};
    if (!result.header)
        throw Stop{status_usage,
                   with_output(name + " made no recording: it does not use libmcrt, or not one that can simulate (" +
                                   in_words(result.verdict) + ").",
                               result)};
    if (result.header->steps == 0)
        throw Stop{status_usage, with_output(name + " uses libmcrt, but made no step in it that could be explored (" +
                                                 in_words(result.verdict) + ").",
                                             result)};
}

std::optional<std::string> difference_of(const Found &one, const Found &other) {
    const bool cut = any_timed_out(one, other);
    if (auto where = difference({one.recording, "the first run"}, {other.recording, "the second run"}, cut))
        return where;
    if (cut || same_failure(one.result.verdict, other.result.verdict))
        return std::nullopt;
    return "in how they end:\n  the first run: " + in_words(one.result.verdict) +
           "\n  the second run: " + in_words(other.result.verdict);
}

} // namespace

Search::Search(Runner &runner, const ExploreOptions &options) : runner_(runner), options_(options) {}

Run Search::first_run() const {
    if (options_.preemptions)
        return Run{options_.first_seed, "", Schedule()};
    return Run{options_.first_seed, options_.policy, std::nullopt};
}

void Search::note(const Result &result, uint64_t number) {
    ++runs_;
    if (result.header)
        signatures_.insert(result.header->signature);
    if (!options_.keep_output)
        return;
    const std::filesystem::path directory = std::filesystem::path(options_.out) / "output";
    std::error_code ignored; // the stream tells
    std::filesystem::create_directories(directory, ignored);
    std::ofstream file(directory / (std::to_string(number) + ".txt"), std::ios::binary);
    file << result.output;
    if (!file.flush())
        throw Stop{status_usage, "cannot write in " + directory.string()};
}

std::vector<Found> Search::twice(const Run &run) {
    std::vector<Found> found;
    while (found.size() < 2)
        for (Result &result : runner_.run(std::vector<Run>(std::min<size_t>(runner_.places(), 2 - found.size()), run)))
            found.push_back(with_recording(std::move(result)));
    return found;
}

std::optional<Found> Search::check_first() {
    std::vector<Found> both = twice(first_run());
    for (const Found &one : both)
        check_usable(one.result, options_.program[0]);
    if (const std::optional<std::string> where = difference_of(both[0], both[1]))
        throw Stop{status_not_deterministic, "not deterministic: two runs of seed " +
                                                 std::to_string(options_.first_seed) + " differ " + *where + "\n" +
                                                 uncontrolled_source};
    if (!options_.preemptions)
        note(both[0].result, options_.first_seed);
    // A machine that is busy may let one run out of time and the other not.
    Found &worse = both[both[0].result.verdict.failed() ? 0 : 1];
    if (!worse.result.verdict.failed())
        return std::nullopt;
    return std::move(worse);
}

std::optional<std::string> Search::repeat(const Found &found) {
    const Found again = with_recording(std::move(runner_.run({found.result.run})[0]));
    if (auto where = difference_of(found, again))
        return "differ " + *where;
    if (!same_failure(found.result.verdict, again.result.verdict)) // one ran out of time
        return "differ in how they end:\n  the first run: " + in_words(found.result.verdict) +
               "\n  the second run: " + in_words(again.result.verdict);
    return std::nullopt;
}

// Lower seeds that run when one fails may still fail themselves.
std::optional<Found> Search::seeds() {
    Progress progress("seed", options_.seeds);
    runner_.set_tick([&] { progress.show(runs_, signatures()); });
    std::optional<Found> found;
    for (uint64_t at = 1;;) {
        for (; !found && at < options_.seeds && runner_.has_room(); ++at)
            runner_.start(at, Run{options_.first_seed + at, options_.policy, std::nullopt});
        if (runner_.running() == 0)
            break;
        Result result = runner_.next();
        note(result, result.run.seed);
        progress.show(runs_, signatures());
        if (!result.verdict.failed())
            continue;
        runner_.cancel_above(result.ticket);
        found = with_recording(std::move(result));
    }
    runner_.set_tick(nullptr);
    return found;
}

std::optional<Found> Search::schedules() {
    Progress progress("schedule", options_.seeds);
    runner_.set_tick([&] { progress.show(runs_, signatures()); });
    Enumerator enumerator(options_.preemptions.value_or(0));
    std::optional<Found> found;
    std::vector<Enumerator::Item> items;
    while (!found && runs_ < options_.seeds) {
        items = enumerator.take(std::min(runner_.places(), options_.seeds - runs_));
        if (items.empty())
            break;
        found = run(items, &enumerator);
        progress.show(runs_, signatures());
    }
    complete_ = !found && !cut_ && enumerator.take(1).empty();
    runner_.set_tick(nullptr);
    return found;
}

// All at once; the first that fails counts, whichever ended first.
std::optional<Found> Search::run(const std::vector<Enumerator::Item> &items, Enumerator *enumerator) {
    std::vector<Run> runs;
    runs.reserve(items.size());
    for (const Enumerator::Item &item : items)
        runs.push_back(Run{options_.first_seed, "", item.schedule});
    std::vector<Enumerator::Ran> ran;
    for (Result &result : runner_.run(runs)) {
        note(result, runs_ + 1);
        if (result.verdict.failed())
            return with_recording(std::move(result));
        Recording recording = result.recording(Events::left);
        cut_ |= recording.cut();
        ran.push_back({items[ran.size()], std::move(recording.choices)});
    }
    if (enumerator->ran(std::move(ran)))
        return std::nullopt;
    throw Stop{status_not_deterministic, "not deterministic: a run had other choices than one that began alike.\n" +
                                             std::string(uncontrolled_source)};
}

} // namespace mc::mcrt
