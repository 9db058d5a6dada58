#include "mcrt/search.hpp"

#include "mcrt/difference.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace mc::mcrt {
namespace {

constexpr int not_understood =
    125;                          // the library's status for a variable of the simulation's that it does not understand
constexpr size_t repetitions = 3; // of what has failed

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

std::string endings_of(const Found &one, const Found &other) {
    return "in how they end:\n  the first run: " + in_words(one.result.verdict) +
           "\n  the second run: " + in_words(other.result.verdict);
}

std::string not_deterministic(const std::string &of, const std::string &where) {
    return "not deterministic: two runs of " + of + " differ " + where + "\n" + uncontrolled_source;
}

} // namespace

std::optional<std::string> difference_of(const Found &one, const Found &other) {
    const bool cut = any_timed_out(one, other);
    if (auto where = difference({one.recording, "the first run"}, {other.recording, "the second run"}, cut))
        return where;
    if (cut || same_failure(one.result.verdict, other.result.verdict))
        return std::nullopt;
    return endings_of(one, other);
}

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

std::vector<Found> Search::several(const Run &run, size_t count) {
    std::vector<Found> found;
    while (found.size() < count)
        for (Result &result : runner_.run(std::vector<Run>(std::min(runner_.places(), count - found.size()), run)))
            found.push_back(with_recording(std::move(result)));
    return found;
}

std::optional<Found> Search::check_first() {
    std::vector<Found> both = several(first_run(), 2);
    for (const Found &one : both)
        check_usable(one.result, options_.program[0]);
    if (const std::optional<std::string> where = difference_of(both[0], both[1]))
        throw Stop{status_not_deterministic, not_deterministic("seed " + std::to_string(options_.first_seed), *where)};
    if (!options_.preemptions)
        note(both[0].result, options_.first_seed);
    // A machine that is busy may let one run out of time and the other not.
    Found &worse = both[both[0].result.verdict.failed() ? 0 : 1];
    if (!worse.result.verdict.failed())
        return std::nullopt;
    return std::move(worse);
}

// Chance may let one repetition agree. One that takes all of its time is not run so often.
std::optional<std::string> Search::repeat(const Found &found) {
    const size_t times = found.result.ending.timed_out ? 1 : repetitions;
    for (const Found &again : several(found.result.run, times)) {
        if (auto where = difference_of(found, again))
            return "differ " + *where;
        if (!same_failure(found.result.verdict, again.result.verdict)) // one ran out of time
            return "differ " + endings_of(found, again);
    }
    return std::nullopt;
}

// Lower seeds that run when one fails may still fail themselves, or differ.
std::optional<Found> Search::seeds() {
    Progress progress("seed", options_.seeds);
    runner_.set_tick([&] { progress.show(runs_, signatures()); });
    for (uint64_t at = 1;;) {
        for (; !found_ && !differs_ && at < options_.seeds && runner_.has_room(); ++at)
            runner_.start(at, Run{options_.first_seed + at, options_.policy, std::nullopt});
        if (runner_.running() == 0)
            break;
        take_in(runner_.next());
        progress.show(runs_, signatures());
    }
    runner_.set_tick(nullptr);
    if (differs_)
        throw Stop{status_not_deterministic, *differs_};
    return std::move(found_);
}

// The first has been; what differs in few runs only shows in one of many. So do the second, fourth, eighth, ... and the last.
bool Search::is_run_twice(uint64_t at) const {
    return at + 1 == options_.seeds || std::has_single_bit(at + 1); // counted from 0
}

// What is lower than what is known counts; nothing that is higher runs any more.
void Search::take_in(Result result) {
    if (once_.count(result.ticket) != 0)
        return take_second(with_recording(std::move(result)));
    note(result, result.run.seed);
    if (!result.verdict.failed() && !is_run_twice(result.ticket))
        return;
    Found found = with_recording(std::move(result));
    if (!found.result.verdict.failed()) {
        const Found &first = once_.emplace(found.result.ticket, std::move(found)).first->second;
        runner_.start(first.result.ticket, first.result.run);
        return;
    }
    runner_.cancel_above(found.result.ticket);
    differs_.reset();
    found_ = std::move(found);
}

// It fails alone only where it has run out of time.
void Search::take_second(Found second) {
    const Found first = std::move(once_.extract(second.result.ticket).mapped());
    const std::optional<std::string> where = difference_of(first, second);
    if (!where && !second.result.verdict.failed())
        return;
    runner_.cancel_above(second.result.ticket);
    found_.reset();
    differs_.reset();
    if (where)
        differs_ = not_deterministic("seed " + std::to_string(second.result.run.seed), *where);
    else
        found_ = std::move(second);
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
    if (const std::optional<Enumerator::Stray> stray = enumerator->ran(std::move(ran)))
        refuse(*stray);
    return std::nullopt;
}

// Two more runs of it tell what happens, unless chance lets them agree.
void Search::refuse(const Enumerator::Stray &stray) {
    const std::string of =
        "schedule " + quoted(format(stray.schedule)) + " of seed " + std::to_string(options_.first_seed);
    const std::vector<Found> both = several(Run{options_.first_seed, "", stray.schedule}, 2);
    if (const std::optional<std::string> where = difference_of(both[0], both[1]))
        throw Stop{status_not_deterministic, not_deterministic(of, *where)};
    throw Stop{status_not_deterministic, "not deterministic: a run of " + of + " had another choice " +
                                             std::to_string(stray.choice) + " than one that began alike.\n" +
                                             uncontrolled_source};
}

} // namespace mc::mcrt
