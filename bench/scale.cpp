// How libmcrt's costs grow with what a program has of something: the curves of `bench/run --scale`, one point a process.
//
//   scale CURVE ITERATIONS EXECUTORS SIZE   prints nanoseconds an operation. ITERATIONS is the number of operations, about:
//                                           with a large SIZE each microthread does its part a few times at least.
//   scale --version, scale --rows           as in harness.hpp
//
// ours/scale.hpp has the curves. They have no peers: what is asked is whether a cost has a knee, and where.
#include "ours/scale.hpp"

#include <cstdio>
#include <cstring>

namespace {

struct Curve {
    const char *name;
    double (*run)(uint64_t iterations, uint64_t executors, uint64_t size);
};

constexpr Curve kCurves[] = {
    {"yield", ours::scale::yield},         {"rendezvous", ours::scale::rendezvous},
    {"pairs", ours::scale::pairs},         {"spawn_bulk", ours::scale::spawn_bulk},
    {"skynet", ours::scale::skynet},       {"alt_waiting", ours::scale::alt_waiting},
    {"alt_ready", ours::scale::alt_ready}, {"receivers", ours::scale::receivers},
    {"senders", ours::scale::senders},
};

int usage() {
    std::fprintf(stderr, "usage: scale CURVE ITERATIONS EXECUTORS SIZE | --version | --rows\ncurves:");
    for (const Curve &curve : kCurves)
        std::fprintf(stderr, " %s", curve.name);
    std::fprintf(stderr, "\n");
    return 2;
}

const Curve *find(const char *name) {
    for (const Curve &curve : kCurves)
        if (std::strcmp(name, curve.name) == 0)
            return &curve;
    return nullptr;
}

} // namespace

int main(int argc, char **argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
        std::printf("libmcrt %u.%u\nbuild %s\n", mc_abi_version() >> 16, mc_abi_version() & 0xffff, bench::kBuild);
        return 0;
    }
    if (argc == 2 && std::strcmp(argv[1], "--rows") == 0) {
        for (const Curve &curve : kCurves)
            std::printf("%s\n", curve.name);
        return 0;
    }
    const Curve *curve = argc == 5 ? find(argv[1]) : nullptr;
    if (curve == nullptr)
        return usage();
    const uint64_t iterations = bench::parse_count(argv[2]), executors = bench::parse_count(argv[3]);
    const uint64_t size = bench::parse_count(argv[4]);
    if (iterations == 0 || executors == 0 || size == 0)
        return usage();
    bench::print_result(curve->run(iterations, executors, size));
    return 0;
}
