// The row ledger: the example of that name, a program of its own, on a file that it generates. Built beside this one.
#ifndef BENCH_OURS_LEDGER_HPP
#define BENCH_OURS_LEDGER_HPP

#include "../harness.hpp"

#include <climits>
#include <cstdlib>
#include <string>

namespace ours {

inline std::string ledger_program() {
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    bench::require(length > 0 && length < PATH_MAX, "reading /proc/self/exe");
    const std::string path(self, static_cast<size_t>(length));
    return path.substr(0, path.rfind('/')) + "/../examples/ledger";
}

// Empty, and gone with its object.
struct LedgerFile {
    std::string path;

    LedgerFile() {
        const char *directory = std::getenv("TMPDIR");
        path = std::string(directory != nullptr ? directory : "/tmp") + "/ledger.XXXXXX";
        const int file = mkstemp(path.data());
        bench::require(file >= 0, "mkstemp");
        close(file);
    }
    ~LedgerFile() { unlink(path.c_str()); }
    LedgerFile(const LedgerFile &) = delete;
    LedgerFile &operator=(const LedgerFile &) = delete;
};

// Million transfers a second, as the program counts them: without reading the file.
inline double ledger(uint64_t transfers, uint64_t executors) {
    const LedgerFile file;
    const std::string program = "'" + ledger_program() + "' ", name = "'" + file.path + "'";
    const std::string generate = program + "--generate " + std::to_string(transfers) + " 1 " + name + " > /dev/null";
    bench::require(std::system(generate.c_str()) == 0, "examples/ledger --generate");
    FILE *output = popen((program + name + " --executors " + std::to_string(executors)).c_str(), "r");
    bench::require(output != nullptr, "popen");
    unsigned long long done = 0;
    double took = 0;
    const int found = std::fscanf(output, "%llu transfers in %lf s", &done, &took);
    while (std::fgetc(output) != EOF) {
    }
    bench::require(pclose(output) == 0 && found == 2 && done == transfers && took > 0, "examples/ledger");
    return static_cast<double>(done) / took / 1e6;
}

} // namespace ours

#endif // BENCH_OURS_LEDGER_HPP
