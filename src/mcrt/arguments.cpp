#include "mcrt/arguments.hpp"

#include "mcrt/stop.hpp"

#include <mc/base.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sched.h>
#include <set>

namespace mc::mcrt {
namespace {

constexpr uint64_t most_depth = 100;
constexpr unsigned most_jobs = 1024;
constexpr double most_seconds = 1e6;

constexpr const char *main_examples =
    "A program that uses libmcrt runs under a seed when MCRT_SEED is set: `mcrt explore` looks for a seed that fails.\n"
    "\n"
    "  mcrt explore ./app --seeds 10000     looks for a failure, and makes its schedule short\n"
    "  mcrt replay mcrt-out/failure.json    runs it again\n"
    "  mcrt descriptor show light.mchd      what a machine's descriptor says\n"
    "  mcrt COMMAND --help                  says more\n";

constexpr const char *explore_examples =
    "Options stand before PROGRAM or after it. What stands after it and is none of these, and everything behind --, is "
    "the\n"
    "program's.\n"
    "\n"
    "  mcrt explore ./app --seeds 10000                    seeds 1 to 10000\n"
    "  mcrt explore --policy pct:4 --jobs 2 ./app input    another policy; input is the program's\n"
    "  mcrt explore --seeds 50 -- ./app --seeds 7          the second --seeds is the program's\n"
    "  mcrt explore ./app --policy exhaustive:1            every schedule with at most one preemption\n"
    "  mcrt explore ./app --oracles ledger,tasks           a message or a microthread that is left is a failure\n"
    "\n"
    "A run fails that ends with another status than 0 or by a signal, that says so (mc_sim_fail), in which a deadlock "
    "is reported\n"
    "or an oracle does not hold, or that takes too long. Exit status: 0 none failed, 1 one failed, 2 the program can "
    "not be\n"
    "explored, 3 two runs of one seed differed.\n";

constexpr const char *replay_examples =
    "  mcrt replay mcrt-out/failure.json                   in the foreground\n"
    "  mcrt replay mcrt-out/failure.json --gdb             under a debugger: break, run\n"
    "  mcrt replay mcrt-out/failure.json --record again    and then: mcrt draw again\n"
    "\n"
    "Exit status: the program's; 128 and the signal's number when one ended it.\n";

constexpr const char *draw_examples =
    "  MCRT_SEED=7 MCRT_RECORD=run ./app\n"
    "  mcrt draw run                                       the message sequence as text\n"
    "  mcrt draw run --svg run.svg                         as a picture\n";

constexpr const char *descriptor_examples =
    "  mcrt descriptor build light.json      light.mchd, as a program registers it\n"
    "  mcrt descriptor show light.mchd       as a table\n"
    "  mcrt descriptor COMMAND --help        says more\n"
    "\n"
    "What the JSON looks like: docs/machines.md, or `mcrt descriptor show FILE --json`.\n";

constexpr const char *show_examples =
    "  mcrt descriptor show light.mchd                          as a table\n"
    "  mcrt descriptor show light.mchd --dot | dot -Tsvg        as a state chart\n"
    "  mcrt descriptor show light.mchd --json >light.json       as what `mcrt descriptor build` takes\n"
    "\n"
    "A descriptor says which thunk handles an event in a state, and not where that leads: a thunk is registered with\n"
    "it. The chart's edges lead to the thunks, unless FILE is JSON in which \"thunks\" tells what is \"next\", or "
    "that\n"
    "one \"stays\"; then they lead there, and their labels are: event [request site] / thunk. Dashed: fallbacks.\n"
    "\n"
    "Exit status: 0, or 2 when FILE is no descriptor; then where it fails to be one is told.\n";

constexpr const char *build_examples =
    "  mcrt descriptor build light.json                    light.mchd\n"
    "  mcrt descriptor build light.json --c                light.h, with an array light_descriptor\n"
    "  mcrt descriptor build light.json -o - | xxd\n"
    "\n"
    "What is there twice (two rows of one state, event and site; two states of one tag) is refused. Rows of states or\n"
    "events that are not listed, and rows without a thunk, are only told of.\n"
    "\n"
    "Exit status: 0, or 2 when nothing was made.\n";

// The usage line as it is written for each command; CLI11's own can not say what is told apart by us.
class Help : public CLI::Formatter {
public:
    explicit Help(std::string usage) : usage_(std::move(usage)) { column_width(28); }
    std::string make_usage(const CLI::App *, std::string) const override { return "Usage: " + usage_ + "\n"; }
    std::string make_option_opts(const CLI::Option *option) const override {
        return option->get_expected_max() == 0 ? "" : " " + option->get_type_name();
    }

private:
    const std::string usage_;
};

void set_help(CLI::App *app, const char *usage, const char *examples) {
    app->formatter(std::make_shared<Help>(usage));
    app->footer(examples);
}

// --- values ---

bool read_number(std::string_view text, uint64_t *out) {
    const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), *out);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// "NAME" or "NAME:NUMBER".
bool read_numbered(const std::string &text, const std::string &name, uint64_t *number) {
    return text == name ||
           (text.starts_with(name + ":") && read_number(std::string_view(text).substr(name.size() + 1), number));
}

std::string check_policy(const std::string &text) {
    uint64_t number = 0;
    if (text == "random" || text == "mix" || read_numbered(text, "exhaustive", &number))
        return "";
    if (text != "pct" && read_numbered(text, "pct", &number) && number >= 1 && number <= most_depth)
        return "";
    return "random, pct:D with D from 1 to 100, mix, exhaustive or exhaustive:P, not " + text;
}

// CLI11 itself takes -1 for the greatest, and 010 for 8.
std::string check_whole(const std::string &text) {
    uint64_t number = 0;
    const bool whole = read_number(text, &number) && (text.size() == 1 || text[0] != '0');
    return whole ? "" : "a whole number from 0 to 18,446,744,073,709,551,615, not " + text;
}

std::string check_finite(const std::string &text) {
    double number = 0;
    const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool finite = result.ec == std::errc() && result.ptr == text.data() + text.size() && std::isfinite(number);
    return finite ? "" : "a number of seconds, not " + text;
}

std::string check_directory(const std::string &path) { return path.empty() ? "a directory, not an empty name" : ""; }

// Without its bounds in the help: they are wide enough.
template <class Number> CLI::Validator between(Number least, Number most) {
    return CLI::Range(least, most).description("");
}

unsigned usable_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
}

void set_policy(ExploreOptions *options) {
    uint64_t preemptions = 2;
    if (read_numbered(options->policy, "exhaustive", &preemptions))
        options->preemptions = preemptions;
}

// --- commands ---

void add_explore(CLI::App *explore, ExploreOptions *options) {
    options->jobs = usable_processors();
    set_help(explore, "mcrt explore PROGRAM [ARGUMENT...] [OPTIONS]", explore_examples);
    explore->add_option("--seeds", options->seeds, "how many runs at most; 1000")
        ->type_name("N")
        ->check(check_whole, "")
        ->check(between<uint64_t>(1, UINT64_MAX));
    explore->add_option("--first-seed", options->first_seed, "where to begin; 1")
        ->type_name("N")
        ->check(check_whole, "");
    explore
        ->add_option("--policy", options->policy,
                     "random, pct:D, mix (the usual), or exhaustive[:P]: all schedules with at most P (2) preemptions")
        ->type_name("POLICY")
        ->check(check_policy, "");
    explore->add_option("--jobs", options->jobs, "how many runs at once; one for each processor")
        ->type_name("J")
        ->check(check_whole, "")
        ->check(between(1U, most_jobs));
    explore->add_option("--timeout", options->timeout_s, "real seconds that a run may take; 10")
        ->type_name("S")
        ->check(check_finite, "")
        ->check(between(0.01, most_seconds));
    explore
        ->add_option("--max-delay", options->max_delay_ms,
                     "virtual milliseconds that time may jump past runnable tasks; 100")
        ->type_name("MS")
        ->check(check_whole, "")
        ->envname("MCRT_SIM_DELAY_MS");
    explore->add_option("--oracles", options->oracles, "of ledger, fifo, tasks, wait and wait:BOUND, see mc/sim.h")
        ->type_name("LIST")
        ->envname("MCRT_ORACLES");
    explore->add_option("--out", options->out, "directory for what is found; mcrt-out")
        ->type_name("DIR")
        ->check(check_directory, "");
    explore->add_flag("--keep-output", options->keep_output, "what each run prints, in DIR/output");
    explore->add_flag_callback(
        "--no-shrink", [options] { options->shrink = false; }, "leave a failing schedule as long as it is");
    explore->add_option("--shrink-runs", options->shrink_runs, "how many runs that may take; 2000")
        ->type_name("N")
        ->check(check_whole, "");
    explore->add_option("--shrink-time", options->shrink_s, "and how many seconds; 30")
        ->type_name("S")
        ->check(check_finite, "")
        ->check(between(0.0, most_seconds));
}

void add_replay(CLI::App *replay, ReplayOptions *options) {
    set_help(replay, "mcrt replay FAILURE.json [OPTIONS]", replay_examples);
    replay->add_option("FAILURE", options->failure, "as explore wrote it")->required()->type_name("");
    replay->add_flag("--gdb", options->gdb, "under gdb; of a script, its interpreter");
    replay->add_option("--record", options->record, "keep a recording of it")->type_name("FILE");
    replay->add_flag("--schedule-only", options->schedule_only,
                     "by seed and schedule also where only seed and policy are known to fail");
}

void add_draw(CLI::App *draw, DrawOptions *options) {
    set_help(draw, "mcrt draw RECORDING [OPTIONS]", draw_examples);
    draw->add_option("RECORDING", options->recording, "as MCRT_RECORD made it")->required()->type_name("");
    draw->add_option("--svg", options->svg, "a picture; - is standard output")->type_name("FILE");
    draw->add_flag("--text", options->text, "text, the usual, also when there is a picture");
}

void add_descriptor(CLI::App *descriptor, ShowOptions *show_options, BuildOptions *build_options) {
    set_help(descriptor, "mcrt descriptor COMMAND", descriptor_examples);
    descriptor->require_subcommand(1);
    CLI::App *show = descriptor->add_subcommand("show", "Shows a descriptor.");
    set_help(show, "mcrt descriptor show FILE [OPTIONS]", show_examples);
    show->add_option("FILE", show_options->file, "the bytes of one, or JSON")->required()->type_name("");
    CLI::Option *json = show->add_flag("--json", show_options->json, "as JSON");
    show->add_flag("--dot", show_options->dot, "as a state chart, for Graphviz")->excludes(json);
    CLI::App *build = descriptor->add_subcommand("build", "Makes a descriptor of JSON.");
    set_help(build, "mcrt descriptor build FILE.json [OPTIONS]", build_examples);
    build->add_option("FILE", build_options->file, "JSON")->required()->type_name("");
    build->add_option("-o,--output", build_options->out, "what to write; - is standard output")->type_name("FILE");
    build->add_flag("--c", build_options->c, "as an array, in C");
}

// The program's part is not shown to CLI11, which would take "[a,b]" apart.
Split split_for(CLI::App *explore, const std::vector<std::string> &arguments) {
    return split(arguments, [explore](const std::string &name) {
        const CLI::Option *option = explore->get_option_no_throw(name);
        return option == nullptr ? -1 : std::min(option->get_expected_max(), 1);
    });
}

} // namespace

std::optional<Arguments> read_arguments(int argc, const char *const *argv, int *status) {
    ExploreOptions explore_options;
    ReplayOptions replay_options;
    DrawOptions draw_options;
    ShowOptions show_options;
    BuildOptions build_options;
    CLI::App app("Explores, replays and draws simulated runs of programs that use libmcrt; shows and makes descriptors "
                 "of machines.");
    set_help(&app, "mcrt COMMAND", main_examples);
    app.set_version_flag("--version",
                         "mcrt " + std::to_string(MC_VERSION_MAJOR) + "." + std::to_string(MC_VERSION_MINOR));
    app.require_subcommand(1);
    CLI::App *explore = app.add_subcommand("explore", "Looks for a seed or a schedule that fails.");
    CLI::App *replay = app.add_subcommand("replay", "Runs a failure again.");
    CLI::App *draw = app.add_subcommand("draw", "Draws a recording.");
    add_explore(explore, &explore_options);
    add_replay(replay, &replay_options);
    CLI::App *descriptor = app.add_subcommand("descriptor", "Shows and makes descriptors of machines.");
    add_draw(draw, &draw_options);
    add_descriptor(descriptor, &show_options, &build_options);

    std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    if (!arguments.empty() && arguments[0] == "explore") {
        Split parts = split_for(explore, {arguments.begin() + 1, arguments.end()});
        explore_options.program = std::move(parts.program);
        parts.own.insert(parts.own.begin(), "explore");
        arguments = std::move(parts.own);
    }
    const std::string command = arguments.empty() ? "-" : arguments[0];
    if (const std::set<std::string> commands{"explore", "replay", "draw", "descriptor"};
        !command.starts_with('-') && !commands.contains(command))
        throw Stop{status_usage, command + " is no command: explore, replay, draw or descriptor"};
    try {
        std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
        app.parse(std::move(arguments));
        if (explore->parsed() && explore_options.program.empty())
            throw CLI::RequiredError("PROGRAM");
    } catch (const CLI::ParseError &error) {
        *status = app.exit(error) == 0 ? status_fine : status_usage;
        return std::nullopt;
    }
    if (replay->parsed())
        return replay_options;
    if (draw->parsed())
        return draw_options;
    if (descriptor->got_subcommand("show"))
        return show_options;
    if (descriptor->got_subcommand("build"))
        return build_options;
    set_policy(&explore_options);
    return explore_options;
}

} // namespace mc::mcrt
