// pipeline: what a web server's log says, by a pipeline of microthreads (pipeline.hpp draws it).
//
//     pipeline [--executors N] [--top K] [--status CLASS] [--method METHOD] FILE
//     pipeline --generate FILE --lines N --seed S [--malformed PERCENT]
//
// The first form prints, a line each: how many lines there were, how many of them were malformed and how many the options left
// out; of the others the number and the bytes, the number by status, the exact percentiles of the time that they took, and the K
// addresses and paths with the most of them, each with its requests and bytes. The second writes such a log.
//
// Without --executors one thread runs all microthreads; with it the runtime has so many executors, 0 being one for each
// processor. The report is the same.
//
// Exit status: 0; 1 when there was no memory, or the output could not be written; 2 for a command line that is wrong, or a FILE
// that can not be read or made. Standard output gets the report or nothing.
#include "pipeline.hpp"

#include <mc/csp.hpp>

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

namespace {

constexpr uint64_t most_executors = MC_EXECUTORS_MAX;
constexpr uint64_t most_lines = 1000000000;
constexpr uint64_t most_top = 1000000;
constexpr uint64_t most_parsers = 16;

struct Options {
    const char *file = nullptr;
    bool generate = false;
    bool lines_given = false;
    bool seed_given = false;
    bool for_report = false;   // an option of the first form was given
    bool for_generate = false; // one of the second
    bool executors_given = false;
    uint64_t executors = 0;
    uint64_t top = 10;
    uint64_t lines = 0;
    uint64_t seed = 0;
    uint64_t malformed_percent = 0;
    pipeline::Filter filter;
};

int usage() {
    std::fprintf(stderr,
                 "usage: pipeline [--executors N] [--top K] [--status CLASS] [--method METHOD] FILE\n"
                 "       pipeline --generate FILE --lines N --seed S [--malformed PERCENT]\n"
                 "Reports what a web server's log says, or writes one.\n"
                 "  --executors N      0 (one a processor) to %u; without it one thread does everything\n"
                 "  --top K            0 to %u addresses and paths (default 10)\n"
                 "  --status CLASS     requests with status 1xx to 5xx only\n"
                 "  --method METHOD    requests with this method only\n"
                 "  --lines N          0 to %u\n"
                 "  --seed S           0 to 2^64 - 1\n"
                 "  --malformed PERCENT  0 to 100 (default 0)\n",
                 static_cast<unsigned>(most_executors), static_cast<unsigned>(most_top),
                 static_cast<unsigned>(most_lines));
    return 2;
}

int cannot(const char *file, int error) {
    std::fprintf(stderr, "pipeline: %s: %s\n", file, std::strerror(error));
    return 2;
}

// A whole number from 0 to most, and nothing else.
bool number(const char *text, uint64_t most, uint64_t &result) {
    char *end = nullptr;
    errno = 0;
    result = std::strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && result <= most;
}

bool status_class(const char *text, unsigned &result) {
    result = static_cast<unsigned>(*text - '0');
    return *text >= '1' && *text <= '5' && std::strcmp(text + 1, "xx") == 0;
}

bool understand(int argc, char **argv, Options &options) {
    static const option known[] = {{"executors", required_argument, nullptr, 'e'},
                                   {"top", required_argument, nullptr, 't'},
                                   {"status", required_argument, nullptr, 's'},
                                   {"method", required_argument, nullptr, 'm'},
                                   {"generate", required_argument, nullptr, 'g'},
                                   {"lines", required_argument, nullptr, 'l'},
                                   {"seed", required_argument, nullptr, 'r'},
                                   {"malformed", required_argument, nullptr, 'x'},
                                   {nullptr, 0, nullptr, 0}};
    for (int given; (given = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        bool good = true;
        switch (given) {
        case 'e':
            options.executors_given = true;
            good = number(optarg, most_executors, options.executors);
            break;
        case 't':
            good = number(optarg, most_top, options.top);
            break;
        case 's':
            good = status_class(optarg, options.filter.status_class);
            break;
        case 'm':
            options.filter.method = optarg;
            good = *optarg != '\0';
            break;
        case 'g':
            options.generate = true;
            options.file = optarg;
            break;
        case 'l':
            options.lines_given = true;
            good = number(optarg, most_lines, options.lines);
            break;
        case 'r':
            options.seed_given = true;
            good = number(optarg, UINT64_MAX, options.seed);
            break;
        case 'x':
            good = number(optarg, 100, options.malformed_percent);
            break;
        default:
            return false;
        }
        if (!good)
            return false;
        (std::strchr("etsm", given) != nullptr ? options.for_report : options.for_generate) = true;
    }
    if (options.generate)
        return optind == argc && options.lines_given && options.seed_given && !options.for_report;
    if (argc - optind != 1 || options.for_generate)
        return false;
    options.file = argv[optind];
    return true;
}

int write_log(const Options &options) {
    const int file = open(options.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return cannot(options.file, errno);
    const bool written =
        pipeline::generate(file, options.lines, options.seed, static_cast<unsigned>(options.malformed_percent));
    if (!written || close(file) != 0) {
        (void)cannot(options.file, errno);
        return 1;
    }
    return 0;
}

int report(const Options &options) {
    const int file = open(options.file, O_RDONLY | O_CLOEXEC);
    struct stat kind = {};
    if (file < 0 || fstat(file, &kind) != 0)
        return cannot(options.file, errno);
    if (S_ISDIR(kind.st_mode))
        return cannot(options.file, EISDIR);
    if (options.executors_given && !csp::init_runtime(static_cast<int>(options.executors)))
        return 1; // the log says why
    uint64_t parsers = options.executors;
    if (options.executors_given && parsers == 0)
        parsers = std::thread::hardware_concurrency();
    parsers = std::clamp<uint64_t>(parsers, 1, most_parsers);
    int status = 0;
    try {
        const pipeline::Summary summary = pipeline::summarize(file, options.filter, static_cast<unsigned>(parsers));
        pipeline::print(summary, options.top);
    } catch (const std::system_error &failure) {
        status = cannot(options.file, failure.code().value());
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pipeline: %s\n", failure.what());
        status = 1;
    }
    csp::schedule(); // a stage that failed may still be on its way out
    csp::shutdown_runtime();
    close(file);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::perror("pipeline: standard output");
        return 1;
    }
    return status;
}

} // namespace

int main(int argc, char **argv) {
    Options options;
    if (!understand(argc, argv, options))
        return usage();
    return options.generate ? write_log(options) : report(options);
}
