#include "report.hpp"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace ledger {
namespace {

constexpr int64_t every_ns = MC_SEC / 4;

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double micros(uint64_t ns) { return static_cast<double>(ns) / 1e3; }
double a_second(uint64_t transfers, int64_t ns) { return ns <= 0 ? 0 : static_cast<double>(transfers) / seconds(ns); }

// In one line, that the next one is written over.
void show_progress(void *user) {
    const Bank &bank = *static_cast<const Bank *>(user);
    const auto tally = bank.tallies().sum();
    std::fprintf(stderr,
                 "\r\33[K%" PRIu64 " transfers, %.0f a second, p50 %.0f us, p99 %.0f us, %" PRIu64 " faults, %" PRIu64
                 " dead letters",
                 tally->transfers(), a_second(tally->transfers(), mc_now() - bank.started_ns()),
                 micros(tally->percentile(500)), micros(tally->percentile(990)), Tally::total(tally->faults),
                 Tally::total(tally->dead_letters));
}

void print_faults(const Tally &tally) {
    static const char *const kinds[fault_kinds] = {"a relay faults before it has staged the message",
                                                   "a relay faults after that",
                                                   "a relay stops with the message",
                                                   "a teller stops in the middle of its transfer",
                                                   "a relay's mailbox is full",
                                                   "an answer is delayed",
                                                   "an answer is dropped"};
    for (uint32_t i = 0; i < fault_kinds; ++i)
        std::printf("fault %" PRIu64 " %s\n", tally.faults[i].get(), kinds[i]);
    std::printf("then %" PRIu64 " requests timed out\n", tally.timeouts.get());
    std::printf("then %" PRIu64 " tellers asked a relay that had ended\n", tally.tellers_lost.get());
    std::printf("then %" PRIu64 " times a teller waited for room\n", tally.waits_for_room.get());
    std::printf("then %" PRIu64 " amounts went back\n", tally.refunds.get());
    std::printf("then %" PRIu64 " transfers were undone, and count as refused\n", tally.of(Outcome::undone));
}

void print_dead_letters(const Tally &tally) {
    static const char *const reasons[dead_letter_reasons] = {"",
                                                             "to an unknown machine",
                                                             "to a machine that had stopped",
                                                             "to a machine that had faulted",
                                                             "to a mailbox that was full",
                                                             "in answer to a request that had ended"};
    for (std::size_t i = 1; i < dead_letter_reasons; ++i)
        if (tally.dead_letters[i].get() != 0)
            std::printf("dead %" PRIu64 " %s\n", tally.dead_letters[i].get(), reasons[i]);
}

} // namespace

bool run_and_report(Bank &bank, bool with_faults) {
    const bool live = isatty(STDERR_FILENO) != 0;
    const uint64_t before = bank.balances();
    bank.run(live ? show_progress : nullptr, &bank, every_ns);
    const int64_t took = mc_now() - bank.started_ns();
    const uint64_t after = bank.balances();
    if (live)
        std::fprintf(stderr, "\r\33[K");

    const auto tally = bank.tallies().sum();
    std::printf("%" PRIu64 " transfers in %.3f s, %.0f a second\n", tally->transfers(), seconds(took),
                a_second(tally->transfers(), took));
    std::printf("latency p50 %.1f p99 %.1f p99.9 %.1f max %.1f us\n", micros(tally->percentile(500)),
                micros(tally->percentile(990)), micros(tally->percentile(999)), micros(tally->longest_ns.get()));
    if (with_faults)
        print_faults(*tally);
    print_dead_letters(*tally);
    const char *const wrong = before != after ? "money was made or lost" : bank.audit();
    if (wrong != nullptr)
        std::fprintf(stderr, "ledger: %s\n", wrong);
    std::printf("balance %" PRIu64 " %" PRIu64 " transfers %" PRIu64 " %" PRIu64 " faults %" PRIu64 " dead %" PRIu64
                "\n",
                before, after, tally->of(Outcome::done), tally->of(Outcome::refused) + tally->of(Outcome::undone),
                Tally::total(tally->faults), Tally::total(tally->dead_letters));
    return wrong == nullptr;
}

} // namespace ledger
