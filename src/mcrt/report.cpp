#include "mcrt/report.hpp"

#include "mcrt/picture.hpp"
#include "mcrt/sequence.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace mc::mcrt {
namespace {

constexpr size_t most_written_events = 100'000;
constexpr size_t most_output_lines = 20;
constexpr size_t most_sequence_lines = 40;
constexpr size_t most_line = 200;
constexpr size_t most_schedule = 2000; // characters in a command that somebody is to copy

bool write_file(const std::string &path, const std::string &text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (file.flush())
        return true;
    std::fprintf(stderr, "mcrt: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
}

std::vector<std::string> lines_of(const std::string &text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);)
        lines.push_back(std::move(line));
    return lines;
}

std::string joined(const std::vector<std::string> &lines) {
    std::string text;
    for (const std::string &line : lines)
        text += line + "\n";
    return text;
}

void print_last(const std::vector<std::string> &lines, size_t most, const char *indent) {
    for (size_t i = lines.size() - std::min(lines.size(), most); i < lines.size(); ++i)
        std::printf("%s%s\n", indent, shortened(lines[i], most_line).c_str());
}

} // namespace

bool write_down(Failure *failure, const Recording &recording, const std::string &directory) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    const std::string base = directory + "/failure";
    const std::string schedule_file = base + ".schedule";
    std::filesystem::remove(schedule_file, error); // of a longer one, before this
    if (failure->schedule.size() > most_schedule) {
        if (!write_file(schedule_file, failure->schedule + "\n"))
            return false;
        failure->schedule_file = schedule_file;
    }
    return write_file(base + ".json", to_json(*failure)) &&
           write_file(base + ".txt", joined(sequence_of(recording, in_words(failure->verdict), most_written_events))) &&
           write_file(base + ".svg", picture_of(recording, in_words(failure->verdict)));
}

void print_output(const std::string &output) {
    const std::vector<std::string> lines = lines_of(clean(output, Lines::keep));
    if (lines.empty())
        return;
    std::printf("\nIt printed%s:\n", lines.size() > most_output_lines ? ", at last" : "");
    print_last(lines, most_output_lines, "  ");
}

void print_sequence(const Failure &failure, const Recording &recording, const std::string &directory) {
    const std::vector<std::string> lines = sequence_of(recording, in_words(failure.verdict));
    const bool cut = lines.size() > most_sequence_lines + 1;
    std::string about = cut ? "its end; " : "";
    if (!directory.empty())
        about += (cut ? "all of it: " : "") + quoted(directory + "/failure.txt") +
                 ", as a picture: " + quoted(directory + "/failure.svg") + "; ";
    std::printf("\nThe message sequence (%s* marks deviations):\n", about.c_str());
    std::printf("%s\n", lines[0].c_str());
    print_last({lines.begin() + 1, lines.end()}, most_sequence_lines, "");
}

void print_commands(const Failure &failure, const std::string &directory) {
    std::printf("\nTo run it again:\n");
    if (!directory.empty())
        std::printf("  mcrt replay %s\n", quoted(directory + "/failure.json").c_str());
    std::printf("  %s\n", command_of(failure).c_str());
}

} // namespace mc::mcrt
