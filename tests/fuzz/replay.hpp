// Plays a fuzz target's corpus, and random inputs after it, without libFuzzer: what a normal test run has of fuzzing. Included
// by tests/fuzz_replay*.cpp behind a target. tests/fuzz/README.md says how to fuzz.
//
//   [FILE...]      plays files; without any, the corpus and random inputs, so many times MC_TEST_SCALE
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace replay {

inline void play(const std::filesystem::path &file) {
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (!stream.good() && !stream.eof()) {
        std::fprintf(stderr, "cannot read %s\n", file.c_str());
        std::exit(1);
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
}

inline int play_corpus(const std::filesystem::path &directory) {
    int count = 0;
    if (!std::filesystem::exists(directory))
        return 0;
    for (const auto &entry : std::filesystem::directory_iterator(directory)) {
        play(entry.path());
        ++count;
    }
    return count;
}

// The input of a number, so that a failure can be repeated: FUZZ_INPUT=n plays that one alone.
inline void play_random(uint64_t number, size_t longest) {
    uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
    const auto next = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<uint8_t>(state >> 32);
    };
    std::vector<uint8_t> bytes((next() + 1u) * longest / 256);
    std::generate(bytes.begin(), bytes.end(), next);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

inline uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline uint64_t playing;
inline void say_which(int) {
    char line[64];
    const int length =
        std::snprintf(line, sizeof line, "to repeat it: FUZZ_INPUT=%llu\n", static_cast<unsigned long long>(playing));
    if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0)
        _exit(1);
}

// Main of a target with this name; `random` inputs at scale 1, none with more bytes than `longest`.
inline int run(int argc, char **argv, const char *target, uint64_t random, size_t longest = 256) {
    for (int i = 1; i < argc; ++i)
        play(argv[i]);
    if (argc > 1)
        return 0;
    if (const uint64_t number = number_of("FUZZ_INPUT", 0); number != 0) {
        play_random(number, longest);
        return 0;
    }
    const char *source = std::getenv("MCRT_SOURCE_DIR");
    const int files = source == nullptr ? 0 : play_corpus(std::string(source) + "/tests/fuzz/corpus/" + target);
    std::signal(SIGABRT, say_which);
    const uint64_t count = random * number_of("MC_TEST_SCALE", 1);
    for (playing = 1; playing <= count; ++playing)
        play_random(playing, longest);
    std::printf("%d inputs of the corpus and %llu random ones\n", files, static_cast<unsigned long long>(count));
    return 0;
}

} // namespace replay
