// What the machine takes for the things that libmcrt cannot do without: the limits under its rows.
//
// Who reads docs/performance.md starts it by hand; harness.hpp has the command form. ITERATIONS is how often the thing is
// done. The bare context switch, the limit that is measured beside the rows, is in peers/fcontext.cpp.
//
// Invariants: nothing here uses the library. Pages are mapped without huge pages, as stacks are.
// Rejected: limits as rows of the table (nothing is to be ahead of them), and a page fault in an array that grows (the
// allocator's share would be in it).
#include "harness.hpp"

#include <atomic>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStackStride = 9 * kPage; // a stack of 32 KiB and its guard

double atomic_exchange(uint64_t iterations) {
    std::atomic<uint32_t> word{0};
    return bench::time_per_operation(iterations, [&](uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
            word.exchange(1, std::memory_order_acq_rel);
    });
}

double system_call(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
            syscall(SYS_getppid);
    });
}

double clock_read(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
            bench::steady_now();
    });
}

// --- between two threads ---------------------------------------------------------------------------------------------

// Counts the messages: the other thread waits for odd numbers, the first one for even ones.
struct Turns {
    alignas(64) std::atomic<uint32_t> word{0};
};

void futex(Turns &turns, int operation, uint32_t value) {
    syscall(SYS_futex, &turns.word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void spin_until(Turns &turns, uint32_t value) {
    while (turns.word.load(std::memory_order_acquire) != value) {
    }
}

void sleep_until(Turns &turns, uint32_t value) {
    for (uint32_t seen; (seen = turns.word.load(std::memory_order_acquire)) != value;)
        futex(turns, FUTEX_WAIT, seen);
}

// Nanoseconds one way: ITERATIONS messages, half of them there, half back.
template <class Wait, class Pass> double to_and_fro(uint64_t iterations, Wait wait, Pass pass) {
    Turns turns;
    const uint32_t rounds = static_cast<uint32_t>(iterations / 2);
    std::thread other([&] {
        for (uint32_t i = 0; i < rounds; ++i) {
            wait(turns, 2 * i + 1);
            pass(turns, 2 * i + 2);
        }
    });
    const double took = bench::time_once([&] {
        for (uint32_t i = 0; i < rounds; ++i) {
            pass(turns, 2 * i + 1);
            wait(turns, 2 * i + 2);
        }
    });
    other.join();
    return took / (2.0 * rounds);
}

double cache_line(uint64_t iterations, uint64_t) {
    return to_and_fro(iterations, spin_until,
                      [](Turns &turns, uint32_t value) { turns.word.store(value, std::memory_order_release); });
}

double futex_wake(uint64_t iterations, uint64_t) {
    return to_and_fro(iterations, sleep_until, [](Turns &turns, uint32_t value) {
        turns.word.store(value, std::memory_order_release);
        futex(turns, FUTEX_WAKE, 1);
    });
}

// --- memory ----------------------------------------------------------------------------------------------------------

// The first write to ITERATIONS pages that lie stride apart; further: what a second round over the same pages takes.
double touch(uint64_t iterations, size_t stride) {
    const size_t bytes = iterations * stride;
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bench::require(mapped != MAP_FAILED, "mmap");
    madvise(mapped, bytes, MADV_NOHUGEPAGE);
    auto *pages = static_cast<volatile char *>(mapped);
    const auto round = [&] {
        for (size_t at = 0; at < bytes; at += stride)
            pages[at] = 1;
    };
    const double count = static_cast<double>(iterations), first = bench::time_once(round) / count;
    bench::further("again", bench::time_once(round) / count);
    return first;
}

double page_fault(uint64_t iterations) { return touch(iterations, kPage); }
double page_fault_stack(uint64_t iterations) { return touch(iterations, kStackStride); }

constexpr bench::Row kRows[] = {
    {"atomic_exchange", atomic_exchange},   {"system_call", system_call},           {"clock_read", clock_read},
    {"cache_line", nullptr, cache_line, 2}, {"futex_wake", nullptr, futex_wake, 2}, {"page_fault", page_fault},
    {"page_fault_stack", page_fault_stack},
};

} // namespace

int main(int argc, char **argv) {
    return bench::run_program({"limits", "1", kRows, sizeof kRows / sizeof *kRows}, argc, argv);
}
