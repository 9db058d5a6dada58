#include "mcrt/program.hpp"

#include "mcrt/stop.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr std::string_view simulation_variables[] = {"MCRT_SEED",   "MCRT_POLICY",  "MCRT_SCHEDULE",
                                                     "MCRT_RECORD", "MCRT_ORACLES", "MCRT_SIM_DELAY_MS"};
constexpr const char *loader_variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD"};

// What keeps it from being executed, as errno; 0: nothing is known.
int obstacle(const std::string &path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    return access(path.c_str(), X_OK) == 0 ? 0 : errno;
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
