// The program that is explored or replayed: where it lies, its arguments, and its environment, in which the simulation's variables
// are the command's.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mc::mcrt {

struct Program {
    std::string path;                   // what is executed; absolute, or relative to the working directory
    std::vector<std::string> arguments; // as it was called, itself first
    // Of the simulation, for every run: oracles, delay. And what decides which libraries are loaded, if it is set.
    std::map<std::string, std::string> environment;
};

// As a shell finds it. Throws Stop.
Program find_program(const std::vector<std::string> &arguments);

// What a debugger is given to start: the program with its arguments; of a script the interpreter that its first line names, as the
// kernel starts it. Throws Stop when it is neither.
std::vector<std::string> debugged_command(const Program &program);

// Where in PATH; empty: nowhere.
std::string search_path(const std::string &name);

// "NAME=value": the command's own environment without the simulation's variables, and with these.
std::vector<std::string> environment_with(const std::map<std::string, std::string> &variables);

// Loader variables that are set, for the record.
std::map<std::string, std::string> loader_environment();

} // namespace mc::mcrt
