// sieve: the first N primes, by a chain of microthreads in which each prime has one that lets through what it does not divide.
//
//     sieve [--executors N] [N]
//
// prints the first N primes (1,000 by default, at most 5,000), one a line. Without --executors one thread runs all
// microthreads; with it the runtime has so many executors, 0 being one for each processor.
//
// Exit status: 0; 1 when there was no memory, when the output could not be written, or when something was left behind; 2
// for a command line that is wrong.
#include <mc/csp.hpp>

#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace {

constexpr long default_primes = 1000;
constexpr long most_primes = 5000; // a microthread each, and a number passes all of them
constexpr long most_executors = MC_EXECUTORS_MAX;

// The head of the chain counts; what comes out of its end has no divisor among the primes so far, and is the next one. When the
// end is given up, every link sees the one behind it gone, and ends.
void print_primes(long count) {
    csp::reader<int> candidates;
    for (long found = 0; found < count; ++found) {
        candidates = found == 0 ? csp::spawn_count_forever(2) : std::move(candidates);
        const int prime = candidates.read();
        std::printf("%d\n", prime);
        candidates = csp::spawn_where(std::move(candidates), [prime](int number) { return number % prime != 0; });
    }
}

// Whether all microthreads have ended and all channels are gone.
bool nothing_is_left() {
    csp::schedule();
    const int writers = csp__internal__channel_count(0);
    const int readers = csp__internal__channel_count(1);
    if (writers != 0 || readers != 0)
        std::fprintf(stderr, "sieve: %d writers and %d readers were never released\n", writers, readers);
    return writers == 0 && readers == 0;
}

// A whole number from 0 to most, and nothing else.
bool number(const char *text, long most, long &result) {
    char *end = nullptr;
    errno = 0;
    result = std::strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && result <= most;
}

int usage() {
    std::fprintf(stderr,
                 "usage: sieve [--executors N] [N]\n"
                 "Prints the first N primes, 0 to %ld (default %ld). --executors N: 0 (one a processor) to %ld.\n",
                 most_primes, default_primes, most_executors);
    return 2;
}

} // namespace

int main(int argc, char **argv) {
    static const option options[] = {{"executors", required_argument, nullptr, 'e'}, {nullptr, 0, nullptr, 0}};
    long executors = -1; // none of its own
    long primes = default_primes;
    for (int given; (given = getopt_long(argc, argv, "", options, nullptr)) != -1;)
        if (given != 'e' || !number(optarg, most_executors, executors))
            return usage();
    if (argc - optind > 1 || (optind < argc && !number(argv[optind], most_primes, primes)))
        return usage();
    try {
        if (executors >= 0 && !csp::init_runtime(static_cast<int>(executors)))
            return 1; // the log says why
        print_primes(primes);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "sieve: %s\n", failure.what());
        return 1;
    }
    const bool clean = nothing_is_left();
    csp::shutdown_runtime();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::perror("sieve: standard output");
        return 1;
    }
    return clean ? 0 : 1;
}
