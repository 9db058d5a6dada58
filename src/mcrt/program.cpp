#include "mcrt/program.hpp"

#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr std::string_view simulation_variables[] = {"MCRT_SEED",   "MCRT_POLICY",  "MCRT_SCHEDULE",
                                                     "MCRT_RECORD", "MCRT_ORACLES", "MCRT_SIM_DELAY_MS"};
constexpr const char *loader_variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD"};

constexpr size_t most_of_first_line = 256; // as Linux reads it
constexpr int most_interpreters = 5;

// What keeps it from being executed, as errno; 0: nothing is known.
int obstacle(const std::string &path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string beginning_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(most_of_first_line, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return bytes;
}

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// Of a file that begins so: the interpreter and, as Linux has it, all the rest of the line as one argument. Empty: it names none.
std::vector<std::string> interpreter_of(std::string_view begins) {
    if (!begins.starts_with("#!"))
        return {};
    const std::string_view line = trimmed(begins.substr(2, begins.find_first_of(std::string_view("\n\0", 2)) - 2));
    if (line.empty())
        return {};
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    std::vector<std::string> words{std::string(line.substr(0, end))};
    if (const std::string_view rest = trimmed(line.substr(end)); !rest.empty())
        words.emplace_back(rest);
    return words;
}

bool is_of_simulation(std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    return std::find(std::begin(simulation_variables), std::end(simulation_variables), name) !=
           std::end(simulation_variables);
}

} // namespace

std::string search_path(const std::string &name) {
    const char *path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
    for (;;) {
        const size_t end = std::min(rest.find(':'), rest.size());
        std::string found = std::string(end == 0 ? "." : rest.substr(0, end)) + "/" + name;
        if (obstacle(found) == 0)
            return found;
        if (end == rest.size())
            return "";
        rest.remove_prefix(end + 1);
    }
}

Program find_program(const std::vector<std::string> &arguments) {
    const std::string &name = arguments.at(0);
    if (name.find('/') == std::string::npos) {
        if (std::string found = search_path(name); !found.empty())
            return Program{std::move(found), arguments, {}};
        throw Stop{status_usage,
                   "cannot run " + name + ": not found in PATH (a program in this directory is ./" + name + ")"};
    }
    if (const int error = obstacle(name))
        throw Stop{status_usage, "cannot run " + name + ": " + std::strerror(error)};
    return Program{name, arguments, {}};
}

std::vector<std::string> debugged_command(const Program &program) {
    std::vector<std::string> command = program.arguments;
    command.at(0) = program.path;
    for (int depth = 0; depth < most_interpreters; ++depth) { // one may be a script itself
        const std::string path = command[0];
        const std::string begins = beginning_of(path);
        if (begins.empty() || begins.starts_with("\x7f"
                                                 "ELF")) // empty: not to be read, and gdb says more of that
            return command;
        const std::vector<std::string> interpreter = interpreter_of(begins);
        if (interpreter.empty())
            throw Stop{status_usage,
                       "gdb cannot debug " + quoted(path) +
                           ": it is no program, and no script whose first line is #! and its interpreter"};
        if (const int error = obstacle(interpreter[0]))
            throw Stop{status_usage, "cannot run " + quoted(path) + ": its interpreter " + interpreter[0] + ": " +
                                         std::strerror(error)};
        command.insert(command.begin(), interpreter.begin(), interpreter.end());
    }
    throw Stop{status_usage, "cannot run " + quoted(program.path) + ": its interpreter is a script, and so on"};
}

std::vector<std::string> environment_with(const std::map<std::string, std::string> &variables) {
    std::vector<std::string> all;
    for (char **one = environ; *one != nullptr; ++one) {
        const std::string name(*one, std::strcspn(*one, "="));
        if (!is_of_simulation(name) && variables.count(name) == 0)
            all.emplace_back(*one);
    }
    for (const auto &[name, value] : variables)
        all.push_back(std::string(name).append("=").append(value));
    return all;
}

std::map<std::string, std::string> loader_environment() {
    std::map<std::string, std::string> set;
    for (const char *name : loader_variables)
        if (const char *value = std::getenv(name))
            set[name] = value;
    return set;
}

} // namespace mc::mcrt
