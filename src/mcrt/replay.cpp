#include "mcrt/replay.hpp"

#include "mcrt/failure.hpp"
#include "mcrt/recording.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr size_t most_variable = 100'000; // bytes; the kernel takes 128 KiB

std::vector<char *> pointers(const std::vector<std::string> &texts) {
    std::vector<char *> out;
    out.reserve(texts.size() + 1);
    for (const std::string &text : texts)
        out.push_back(const_cast<char *>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

// A file without a name, which the program inherits open and finds under the path that is returned: it is gone when both are.
std::string nameless_file(const char *what, const std::string &text) {
    const int file = memfd_create(what, 0);
    if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        throw Stop{status_usage, std::string("cannot keep the ") + what + ": " + std::strerror(errno)};
    return "/proc/self/fd/" + std::to_string(file);
}

void go_to(const std::string &directory) {
    std::error_code error;
    if (std::filesystem::equivalent(directory, ".", error))
        return;
    if (chdir(directory.c_str()) == 0)
        std::fprintf(stderr, "mcrt: in %s\n", quoted(directory).c_str());
    else
        std::fprintf(stderr, "mcrt: %s: %s; running it here\n", quoted(directory).c_str(), std::strerror(errno));
}

[[noreturn]] void execute(const std::string &path, const std::vector<std::string> &arguments,
                          const std::vector<std::string> &environment) {
    execvpe(path.c_str(), pointers(arguments).data(), pointers(environment).data());
    std::fprintf(stderr, "mcrt: cannot run %s: %s\n", path.c_str(), std::strerror(errno));
    _exit(127);
}

// The variables are the program's alone: gdb may be one that runs in a simulation too.
std::vector<std::string> gdb_arguments(const Program &program, const std::map<std::string, std::string> &variables) {
    const std::vector<std::string> command = debugged_command(program);
    if (command[0] != program.path)
        std::fprintf(stderr,
                     "mcrt: %s is a script: gdb gets its interpreter, %s, in which breakpoints are pending until it "
                     "loads what has "
                     "them; \"set follow-fork-mode child\" goes on into what the script starts\n",
                     quoted(program.path).c_str(), quoted(command[0]).c_str());
    std::vector<std::string> arguments{"gdb"};
    for (const auto &[name, value] : variables) {
        arguments.emplace_back("-ex");
        arguments.push_back(std::string("set environment ").append(name).append(" ").append(value));
    }
    arguments.emplace_back("--args");
    arguments.insert(arguments.end(), command.begin(), command.end());
    return arguments;
}

// As a shell does it: what the terminal sends is the program's, and we stay to say how it ended. What ends us ends it.
int run(const Program &program, const std::map<std::string, std::string> &variables) {
    std::fflush(nullptr);
    const auto interrupt = std::signal(SIGINT, SIG_IGN);
    const auto quit = std::signal(SIGQUIT, SIG_IGN);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        throw Stop{status_usage, std::string("cannot start a process: ") + std::strerror(errno)};
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127); // it has ended before that
        std::signal(SIGINT, interrupt);
        std::signal(SIGQUIT, quit);
        execute(program.path, program.arguments, environment_with(variables));
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void say_how_it_compares(const Failure &failure, const std::string &path) {
    const std::optional<mc_sim_recording> header = read_header(path);
    if (!header) {
        std::fprintf(stderr, "mcrt: this is not the same run: it made no recording\n");
        return;
    }
    if (header->signature == failure.signature || failure.verdict.fault == Fault::timed_out)
        return;
    std::fprintf(stderr,
                 "mcrt: this is not the same run: its signature is 0x%016llx, not 0x%016llx. The program, the library "
                 "or what they "
                 "read has changed, or something that the library does not control decides what happens.\n",
                 static_cast<unsigned long long>(header->signature),
                 static_cast<unsigned long long>(failure.signature));
}

} // namespace

int replay(const ReplayOptions &options) {
    Failure failure = read_failure(options.failure);
    const std::string record = options.record.empty() ? "" : std::filesystem::absolute(options.record).string();
    const bool by_schedule = failure.by_schedule || options.schedule_only;
    if (failure.schedule.size() > most_variable)
        failure.schedule_file = nameless_file("schedule", failure.schedule + "\n");
    go_to(failure.directory);
    (void)find_program({failure.program.path}); // or say why not
    if (options.gdb && search_path("gdb").empty())
        throw Stop{status_usage, "gdb is not installed"};
    if (options.gdb)
        execute("gdb", gdb_arguments(failure.program, variables_of(failure, by_schedule, record)),
                environment_with({}));
    std::fprintf(stderr, "mcrt: seed %llu again, which failed so: %s\n", static_cast<unsigned long long>(failure.seed),
                 in_words(failure.verdict).c_str());
    const std::string path = record.empty() ? nameless_file("recording", "") : record;
    const int status = run(failure.program, variables_of(failure, by_schedule, path));
    say_how_it_compares(failure, path);
    return status;
}

} // namespace mc::mcrt
