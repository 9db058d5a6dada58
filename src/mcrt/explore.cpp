#include "mcrt/explore.hpp"

#include "mcrt/difference.hpp"
#include "mcrt/report.hpp"
#include "mcrt/search.hpp"
#include "mcrt/shrinking.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <cstdio>
#include <filesystem>
#include <limits>

namespace mc::mcrt {
namespace {

constexpr size_t most_output = size_t{8} << 10; // in failure.json

Program program_of(const ExploreOptions &options) {
    Program program = find_program(options.program);
    if (!options.oracles.empty())
        program.environment["MCRT_ORACLES"] = options.oracles;
    if (options.max_delay_ms)
        program.environment["MCRT_SIM_DELAY_MS"] = std::to_string(*options.max_delay_ms);
    return program;
}

std::string search_in_words(const Search &search, const ExploreOptions &options, double took_s) {
    const auto rate = static_cast<uint64_t>(static_cast<double>(search.runs()) / std::max(took_s, 0.001));
    return counted(search.runs(), options.preemptions ? "schedule" : "seed") + ", " +
           counted(search.signatures(), "distinct signature") + ", " + seconds(took_s) + ", " + grouped(rate) + "/s";
}

void say_none_failed(const Search &search, const ExploreOptions &options, double took_s) {
    const std::string figures = search_in_words(search, options, took_s);
    if (!options.preemptions) {
        std::printf("no seed failed: %s\n", figures.c_str());
        return;
    }
    const std::string bound = "with at most " + counted(*options.preemptions, "preemption");
    if (search.complete())
        std::printf("no schedule failed: these are all %s schedules of seed %s %s (%s)\n",
                    grouped(search.runs()).c_str(), std::to_string(options.first_seed).c_str(), bound.c_str(),
                    figures.c_str());
    else
        std::printf("no schedule failed, but there are more %s (%s); --seeds says how many to run\n", bound.c_str(),
                    figures.c_str());
}

std::string deviations_in_words(const Choices &choices) {
    return counted(schedule_of(choices).size(), "deviation") + " (" + counted(preemptions_of(choices), "preemption") +
           ")";
}

void say_shrunk(const Found &found, const Shrunk &shrunk, const ExploreOptions &options) {
    const Choices &choices = shrunk.found.recording.choices;
    if (schedule_of(choices).empty()) {
        std::printf("It fails also where every choice takes candidate 0.\n");
        return;
    }
    if (!options.shrink) {
        std::printf("Its schedule has %s in %s.\n", deviations_in_words(choices).c_str(),
                    counted(choices.size(), "choice").c_str());
        return;
    }
    std::printf("Its schedule is down from %s in %s to %s in %s, by %s in %s%s.\n",
                deviations_in_words(found.recording.choices).c_str(),
                counted(found.recording.choices.size(), "choice").c_str(), deviations_in_words(choices).c_str(),
                counted(choices.size(), "choice").c_str(), counted(shrunk.runs, "run").c_str(),
                seconds(shrunk.took_s).c_str(),
                shrunk.complete ? "" : "; more of them might make it shorter (--shrink-runs, --shrink-time)");
}

std::string shortened_output(const std::string &output) {
    return output.size() <= most_output ? output : output.substr(output.size() - most_output);
}

Failure failure_of(const Program &program, const ExploreOptions &options, const Found &found, bool by_schedule) {
    Failure failure;
    failure.program = program;
    std::error_code error;
    failure.program.path = std::filesystem::absolute(program.path, error).lexically_normal().string();
    failure.program.environment.merge(loader_environment());
    failure.directory = std::filesystem::current_path(error).string();
    failure.seed = found.result.run.seed;
    failure.policy = options.policy;
    failure.schedule = format(schedule_of(found.recording.choices));
    failure.by_schedule = by_schedule;
    failure.signature = found.recording.header.signature;
    failure.verdict = found.result.verdict;
    failure.choices = found.recording.header.choices;
    failure.preemptions = preemptions_of(found.recording.choices);
    failure.limit_s = options.timeout_s;
    failure.output = shortened_output(found.result.output);
    return failure;
}

void say_found(const Found &found, const Search &search, const ExploreOptions &options, double took_s) {
    const std::optional<Schedule> &schedule = found.result.run.schedule;
    const std::string who = schedule ? "schedule " + quoted(format(*schedule)) + " of seed " : "seed ";
    std::printf("%s failed: %s\n(%s)\n", (who + std::to_string(found.result.run.seed)).c_str(),
                in_words(found.result.verdict).c_str(), search_in_words(search, options, took_s).c_str());
    std::fflush(stdout); // what follows takes its time, and may be interrupted
}

// As it is, before it is made short: whoever interrupts that has it. It is written over then. False: it can not be written.
bool keep(const Program &program, const ExploreOptions &options, const Found &found) {
    Failure failure = failure_of(program, options, found, options.preemptions.has_value());
    return write_down(&failure, found.recording, options.out);
}

// The shortest run that is known to fail so, written down and printed.
void report(const Program &program, const ExploreOptions &options, const Found &found, bool by_schedule) {
    Failure failure = failure_of(program, options, found, by_schedule);
    const bool written = !options.out.empty() && write_down(&failure, found.recording, options.out);
    const std::string directory = written ? options.out : "";
    print_output(found.result.output);
    print_sequence(failure, found.recording, directory);
    print_commands(failure, directory);
}

int report_unstable(const Program &program, const ExploreOptions &options, const Found &found,
                    const std::string &where) {
    std::printf("It does not fail so each time: two runs of seed %s %s\n",
                std::to_string(found.result.run.seed).c_str(), where.c_str());
    report(program, options, found, options.preemptions.has_value());
    if (found.result.ending.timed_out) {
        std::fflush(stdout);
        std::fprintf(stderr, "mcrt: the machine may have been busy: --timeout gives each run more time\n");
        return status_failed;
    }
    std::fflush(stdout);
    std::fprintf(stderr, "mcrt: not deterministic: %s\n", uncontrolled_source);
    return status_not_deterministic;
}

// The policy has a part in a failure only where the choices are others.
std::optional<std::string> difference_by_schedule(const Found &found, const Found &by_schedule) {
    const bool alike = same(found.recording.choices, by_schedule.recording.choices) && !found.recording.cut();
    return alike ? difference_of(found, by_schedule) : std::nullopt;
}

int report_stable(Runner &runner, const Program &program, const ExploreOptions &options, const Found &found) {
    const Shrunk shrunk = shrink(runner, options, found);
    if (shrunk.fails) {
        say_shrunk(found, shrunk, options);
        report(program, options, shrunk.found, true);
        return status_failed;
    }
    if (const std::optional<std::string> where = difference_by_schedule(found, shrunk.found))
        return report_unstable(program, options, found, "differ " + *where);
    std::printf("Its schedule alone does not fail so; the seed with its policy does.\n");
    report(program, options, found, false);
    return status_failed;
}

void warn_of_bytes(const Program &program) {
    for (const std::string &argument : program.arguments)
        if (utf8(argument) != argument)
            std::fprintf(stderr, "mcrt: %s is no UTF-8: failure.json can not keep it, only the line for a shell can\n",
                         quoted(argument).c_str());
}

// Whoever interrupts it is told how far it has come.
std::optional<Found> look(Search &search, const ExploreOptions &options, double began) try {
    if (std::optional<Found> found = search.check_first())
        return found;
    return options.preemptions ? search.schedules() : search.seeds();
} catch (const Interrupted &) {
    std::fprintf(stderr, "mcrt: interrupted: %s\n", search_in_words(search, options, steady_seconds() - began).c_str());
    throw;
}

} // namespace

int explore(const ExploreOptions &options) {
    const double began = steady_seconds();
    const Program program = program_of(options);
    warn_of_bytes(program);
    Runner runner(program, options.jobs, options.timeout_s);
    Search search(runner, options);
    const std::optional<Found> found = look(search, options, began);
    const double took_s = steady_seconds() - began;
    if (!found) {
        say_none_failed(search, options, took_s);
        return status_fine;
    }
    say_found(*found, search, options, took_s);
    ExploreOptions rest = options;
    if (!keep(program, options, *found))
        rest.out.clear(); // it is said once
    if (const std::optional<std::string> where = search.repeat(*found))
        return report_unstable(program, rest, *found, *where);
    return report_stable(runner, program, rest, *found);
}

} // namespace mc::mcrt
