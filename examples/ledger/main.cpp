// ledger: runs a file of transfers between 1,000 accounts, which are machines. ledger.hpp says how, and why no money is lost.
//
//     ledger FILE.csv [--executors N] [--faults SEED]
//     ledger --generate N SEED FILE.csv
//
// FILE has the header from,to,amount, accounts from 0 to 999, and amounts from 0 on. Each account opens with 10,000; a transfer
// of more than an account has is refused. With --faults, faults are injected, chosen by the seed. The last line printed is
//
//     balance BEFORE AFTER transfers OK REFUSED faults N dead N
//
// where OK and REFUSED are together the transfers of the file: each has one outcome. One that a fault has undone counts as
// refused, since nothing has moved; a line above says how many these are. `faults` are those that were injected and have taken
// place, `dead` are dead letters.
//
// Exit status: 0; 1 when BEFORE is not AFTER, when an account has another balance than its transfers make, when there was no
// memory, or when the output could not be written; 2 for a command line or a FILE that is wrong, of which nothing has been run.
#include "ledger.hpp"
#include "report.hpp"

#include <mc/csp.h>
#include <mc/runtime.h>

#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

constexpr uint64_t most_executors = MC_EXECUTORS_MAX;

int usage(std::FILE *to) {
    std::fprintf(to,
                 "usage: ledger FILE.csv [--executors N] [--faults SEED]\n"
                 "       ledger --generate N SEED FILE.csv\n"
                 "Runs a file of transfers between 1,000 accounts of 10,000 each, or makes one.\n"
                 "  FILE.csv           the line from,to,amount, and a line for each transfer; accounts are 0 to 999\n"
                 "  --executors N      1 to %u threads; 0, and without it: one a processor\n"
                 "  --faults SEED      with faults, chosen by the seed: relays and tellers that end, full mailboxes,\n"
                 "                     answers that are late or never come\n"
                 "  --generate N SEED  N transfers, the same for the same seed\n"
                 "The last line: balance BEFORE AFTER transfers OK REFUSED faults N dead N\n",
                 static_cast<unsigned>(most_executors));
    return to == stdout ? 0 : 2;
}

// A whole number from 0 to most, and nothing else.
bool number(const char *text, uint64_t most, uint64_t *result) {
    char *end = nullptr;
    errno = 0;
    *result = std::strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *result <= most;
}

int generate(const char *lines_text, const char *seed_text, const char *path) {
    uint64_t lines = 0, seed = 0;
    if (!number(lines_text, ledger::most_lines, &lines) || !number(seed_text, UINT64_MAX, &seed))
        return usage(stderr);
    if (ledger::write_file(path, lines, seed))
        return 0;
    std::fprintf(stderr, "ledger: %s: %s\n", path, std::strerror(errno));
    return 1;
}

int run(const char *path, uint64_t executors, ledger::Faults faults) {
    std::string error;
    const auto lines = ledger::read_file(path, &error);
    if (!lines) {
        std::fprintf(stderr, "ledger: %s\n", error.c_str());
        return 2;
    }
    if (csp_init_runtime(static_cast<int>(executors)) == 0)
        return 1; // the log says why
    int status = 0;
    {
        ledger::Bank bank(*lines, faults);
        status = ledger::run_and_report(bank, faults.on) ? 0 : 1;
    }
    csp_shutdown_runtime();
    return status;
}

} // namespace

int main(int argc, char **argv) {
    static const option options[] = {{"executors", required_argument, nullptr, 'e'},
                                     {"faults", required_argument, nullptr, 'f'},
                                     {"generate", no_argument, nullptr, 'g'},
                                     {"help", no_argument, nullptr, 'h'},
                                     {nullptr, 0, nullptr, 0}};
    uint64_t executors = 0;
    ledger::Faults faults;
    bool generates = false, runs = false;
    for (int given; (given = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
        bool good = true;
        switch (given) {
        case 'e':
            good = number(optarg, most_executors, &executors);
            runs = true;
            break;
        case 'f':
            good = number(optarg, UINT64_MAX, &faults.seed);
            runs = faults.on = true;
            break;
        case 'g':
            generates = true;
            break;
        case 'h':
            return usage(stdout);
        default:
            good = false;
        }
        if (!good)
            return usage(stderr);
    }
    char **const rest = argv + optind;
    if (argc - optind != (generates ? 3 : 1) || (generates && runs))
        return usage(stderr);
    int status = 0;
    try {
        status = generates ? generate(rest[0], rest[1], rest[2]) : run(rest[0], executors, faults);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "ledger: %s\n", failure.what());
        return 1;
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::perror("ledger: standard output");
        return 1;
    }
    return status;
}
