#include "mcrt/describe.hpp"

#include "mcrt/chart.hpp"
#include "mcrt/descriptor.hpp"
#include "mcrt/descriptor_json.hpp"
#include "mcrt/descriptor_table.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace mc::mcrt {
namespace {

std::string read_file(const std::string &path) {
    if (std::filesystem::is_directory(path))
        throw Stop{status_usage, path + ": a directory"};
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw Stop{status_usage, path + ": " + std::strerror(errno)};
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string &path, const std::string &bytes) {
    if (path == "-") {
        std::fwrite(bytes.data(), 1, bytes.size(), stdout); // main looks whether it was written
        return;
    }
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    if (!file.flush())
        throw Stop{status_usage, "cannot write " + path + ": " + std::strerror(errno)};
}

// JSON begins with a brace, and no blob does.
bool is_json(const std::string &bytes) {
    const size_t first = bytes.find_first_not_of(" \t\r\n");
    return first != std::string::npos && bytes[first] == '{';
}

// An array, as C11 and C++ take it; its name is the file's.
std::string c_source(const std::string &blob, const std::string &path) {
    const std::string file = std::filesystem::path(path).filename().string();
    std::string name;
    for (const char c : std::filesystem::path(path).stem().string())
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
        name.insert(0, "_");
    std::string out = "/* Made of " + quoted(file) +
                      " by `mcrt descriptor build --c`. */\n/* clang-format off */\n#include <stdint.h>\n\n";
    out += "static const uint8_t " + name + "_descriptor[" + std::to_string(blob.size()) + "] = {";
    constexpr size_t in_a_line = 16;
    for (size_t i = 0; i < blob.size(); ++i) {
        char byte[8];
        std::snprintf(byte, sizeof byte, "%u,", static_cast<unsigned char>(blob[i]));
        out += (i % in_a_line == 0 ? "\n    " : " ") + std::string(byte);
    }
    return out + "\n};\n";
}

} // namespace

int show_descriptor(const ShowOptions &options) {
    const std::string bytes = read_file(options.file);
    const Descriptor descriptor = is_json(bytes) ? from_json(bytes, options.file) : from_blob(bytes, options.file);
    write_file("-", options.json ? to_json(descriptor) : options.dot ? chart_of(descriptor) : table_of(descriptor));
    return status_fine;
}

int build_descriptor(const BuildOptions &options) {
    const Descriptor descriptor = from_json(read_file(options.file), options.file);
    for (const Doubt &doubt : doubts_of(descriptor))
        std::fprintf(stderr, "mcrt: %s: %s\n", options.file.c_str(), doubt.text.c_str());
    const std::string blob = to_blob(descriptor);
    std::string out = options.out;
    if (out.empty())
        out = std::filesystem::path(options.file).replace_extension(options.c ? ".h" : ".mchd").string();
    if (out == options.file)
        throw Stop{status_usage, out + " would be written over itself: say where with -o"};
    write_file(out, options.c ? c_source(blob, options.file) : blob);
    return status_fine;
}

} // namespace mc::mcrt
