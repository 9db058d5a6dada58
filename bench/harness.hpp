// What the C++ programs of bench/ share: the command line, the clock, the look at the process's memory.
//
// Every program of bench/, in whatever language, has the same command form, so the driver needs to know none:
//
//   PROGRAM ROW ITERATIONS EXECUTORS   runs one row, once, and ends. Standard output: the value of one operation
//                                      (nanoseconds or bytes) on the first line; "NAME VALUE" on each further line.
//                                      ITERATIONS is the number of operations of the whole run.
//   PROGRAM --version                  prints "NAME VERSION", then "build release" or "build debug".
//   PROGRAM --rows                     prints the names of its rows, one a line.
//
// Exit status: 0; 2 for a row, count or number of executors that the program does not have; 1 when the row failed.
//
// The value may also be a rate, or one of the whole run (milliseconds, CPU seconds), as the row's unit in the driver says.
//
// Invariants: a process measures one row, so no row profits or suffers from what another left behind (warm
// allocators, cached stacks, a grown heap). Each row does kWarmUp operations before the clock starts: a fixed number,
// so that the difference of two runs with different ITERATIONS is exactly the difference in operations (the driver's
// --instructions relies on it). Rows of which one run is one operation (a million microthreads, a second of timers)
// have no warm-up: a program does such a thing once.
#ifndef BENCH_HARNESS_HPP
#define BENCH_HARNESS_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace bench {

constexpr uint64_t kWarmUp = 10000;

// One of the two: run is for one executor; run_on for as many as the command says, least_executors or more.
struct Row {
    const char *name;
    double (*run)(uint64_t iterations);
    double (*run_on)(uint64_t iterations, uint64_t executors) = nullptr;
    uint64_t least_executors = 1;
};

struct Program {
    const char *name;
    const char *version;
    const Row *rows;
    int row_count;
};

[[noreturn]] inline void fail(const char *what) {
    std::fprintf(stderr, "bench: %s failed\n", what);
    std::exit(1);
}

inline void require(bool ok, const char *what) {
    if (!ok)
        fail(what);
}

// Runs pass(operations) twice, a short one to warm up and the measured one; returns nanoseconds an operation.
template <class Pass> double time_per_operation(uint64_t operations, Pass pass) {
    pass(kWarmUp);
    auto start = std::chrono::steady_clock::now();
    pass(operations);
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / static_cast<double>(operations);
}

// Nanoseconds an operation, as millions of operations a second.
inline double millions_a_second(double ns) { return 1e3 / ns; }

// Once, without a warm-up; returns nanoseconds.
template <class Pass> double time_once(Pass pass) {
    auto start = std::chrono::steady_clock::now();
    pass();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// Further lines of the output, in the order of the calls; by the main thread.
struct Further {
    const char *name;
    double value;
};
inline std::vector<Further> further_lines;
inline void further(const char *name, double value) { further_lines.push_back({name, value}); }

inline void print_result(double value) {
    std::printf("%.4f\n", value);
    for (const Further &line : further_lines)
        std::printf("%s %.4f\n", line.name, line.value);
}

// Ends the process with the result of a row whose microthreads stay blocked. It leaves without unwinding: how a runtime
// tears them down is not the row's question.
[[noreturn]] inline void report_and_leave(double value) {
    print_result(value);
    std::fflush(stdout);
    _exit(0);
}

// Of all threads of the process, user and system.
inline double cpu_seconds() {
    rusage used{};
    require(getrusage(RUSAGE_SELF, &used) == 0, "getrusage");
    auto seconds = [](timeval time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Of the thread, without the runtime. By the steady clock, in nanoseconds.
inline void sleep_thread_until(int64_t deadline) {
    constexpr int64_t second = 1000000000;
    const timespec at{deadline / second, deadline % second};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
    }
}

inline int64_t steady_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

struct Memory {
    double resident_bytes;
    double page_table_bytes;
};

inline double resident_bytes() {
    long pages = 0, resident = 0;
    FILE *statm = std::fopen("/proc/self/statm", "r");
    require(statm != nullptr && std::fscanf(statm, "%ld %ld", &pages, &resident) == 2, "reading /proc/self/statm");
    std::fclose(statm);
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// The kernel's page tables are no part of the resident set, yet a runtime with thinly spread stacks pays for them.
inline double page_table_bytes() {
    char line[256];
    long kib = -1;
    FILE *status = std::fopen("/proc/self/status", "r");
    require(status != nullptr, "opening /proc/self/status");
    while (kib < 0 && std::fgets(line, sizeof line, status) != nullptr)
        if (std::sscanf(line, "VmPTE: %ld kB", &kib) != 1)
            kib = -1;
    std::fclose(status);
    return kib < 0 ? 0 : static_cast<double>(kib) * 1024;
}

inline Memory memory_now() { return {resident_bytes(), page_table_bytes()}; }

// Ends the process with the result of a memory row. create_ns: from before the first spawn until all are blocked.
[[noreturn]] inline void report_memory(Memory before, Memory after, double create_ns, uint64_t count) {
    double n = static_cast<double>(count);
    further("page_tables", (after.page_table_bytes - before.page_table_bytes) / n);
    further("create", create_ns / n);
    report_and_leave((after.resident_bytes - before.resident_bytes) / n);
}

#if defined(NDEBUG) && defined(__OPTIMIZE__) && !defined(MC_DEBUG) && !defined(__SANITIZE_ADDRESS__) &&                \
    !defined(__SANITIZE_THREAD__)
constexpr const char *kBuild = "release";
#else
constexpr const char *kBuild = "debug";
#endif

inline uint64_t parse_count(const char *text) {
    char *end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' ? 0 : value;
}

inline int usage(const Program &program) {
    std::fprintf(stderr, "usage: PROGRAM ROW ITERATIONS EXECUTORS | --version | --rows\nrows:");
    for (int i = 0; i < program.row_count; ++i)
        std::fprintf(stderr, " %s", program.rows[i].name);
    std::fprintf(stderr, "\n");
    return 2;
}

inline int run_row(const Program &program, const Row &row, uint64_t iterations, uint64_t executors) {
    if (iterations == 0)
        return usage(program);
    if (row.run_on == nullptr ? executors != 1 : executors < row.least_executors) {
        std::fprintf(stderr, "bench: %s does not have this row for %llu executors\n", program.name,
                     static_cast<unsigned long long>(executors));
        return 2;
    }
    print_result(row.run_on == nullptr ? row.run(iterations) : row.run_on(iterations, executors));
    return 0;
}

inline int run_program(const Program &program, int argc, char **argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
        std::printf("%s %s\nbuild %s\n", program.name, program.version, kBuild);
        return 0;
    }
    if (argc == 2 && std::strcmp(argv[1], "--rows") == 0) {
        for (int i = 0; i < program.row_count; ++i)
            std::printf("%s\n", program.rows[i].name);
        return 0;
    }
    if (argc != 4)
        return usage(program);
    for (int i = 0; i < program.row_count; ++i)
        if (std::strcmp(argv[1], program.rows[i].name) == 0)
            return run_row(program, program.rows[i], parse_count(argv[2]), parse_count(argv[3]));
    return usage(program);
}

} // namespace bench

#endif // BENCH_HARNESS_HPP
