// The twin's own tests: merging states loses nothing. Small random programs are explored with it and without; the sets
// of what they can come to must be equal.
#include "testing/systematic.hpp"

#include "testing/test.hpp"

#include <memory>
#include <set>
#include <vector>

using namespace mc;
using testing::Exploration;
using testing::Thread;

namespace {

class Dice {
public:
    explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
    unsigned below(unsigned n) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<unsigned>((state_ >> 33) % n);
    }

private:
    uint64_t state_;
};

struct Instruction {
    unsigned kind, word, value, order;
};
using Program = std::vector<std::vector<Instruction>>; // by thread
using Outcome = std::vector<uint64_t>;                 // what the threads read, and the words' last values

constexpr unsigned kinds = 10;

Program random_program(Dice &dice) {
    const unsigned threads = 2 + dice.below(2), length = threads == 2 ? 2 + dice.below(3) : 2;
    Program program(threads);
    for (auto &thread : program)
        for (unsigned i = 0; i < length; ++i)
            thread.push_back({dice.below(kinds), dice.below(2), 1 + dice.below(3), dice.below(3)});
    return program;
}

struct World {
    sync::atomic<uint32_t> words[2];
    sync::mutex mutex;
};

void step(World &world, const Instruction &does, std::vector<uint64_t> &reads) {
    constexpr sync::order loads[] = {sync::relaxed, sync::acquire, sync::seq_cst};
    constexpr sync::order stores[] = {sync::relaxed, sync::release, sync::seq_cst};
    constexpr sync::order both[] = {sync::relaxed, sync::acq_rel, sync::seq_cst};
    auto &word = world.words[does.word];
    uint32_t expected = 0;
    switch (does.kind) {
    case 0:
    case 1:
    case 2:
        reads.push_back(word.load(loads[does.order]));
        break;
    case 3:
    case 4:
        word.store(does.value, stores[does.order]);
        break;
    case 5:
        reads.push_back(word.fetch_add(does.value, both[does.order]));
        break;
    case 6:
        reads.push_back(word.compare_exchange_weak(expected, does.value, both[does.order], loads[does.order]));
        reads.push_back(expected);
        break;
    case 7:
        reads.push_back(sync::futex_wait(word, 0, sync::now_ns() + 1000 * does.value));
        break;
    case 8:
        sync::futex_wake(word, 1);
        break;
    case 9: {
        sync::lock_guard guard(world.mutex);
        reads.push_back(word.load(sync::relaxed));
        word.store(does.value + 10, sync::relaxed);
        break;
    }
    }
}

Outcome run(const Program &program) {
    World world;
    std::vector<std::vector<uint64_t>> reads(program.size());
    {
        std::vector<std::unique_ptr<Thread>> threads;
        for (size_t i = 0; i < program.size(); ++i)
            threads.push_back(std::make_unique<Thread>([&, i] {
                for (const Instruction &does : program[i])
                    step(world, does, reads[i]);
            }));
    }
    Outcome outcome;
    for (const auto &thread : reads)
        outcome.insert(outcome.end(), thread.begin(), thread.end());
    for (auto &word : world.words)
        outcome.push_back(word.load(sync::seq_cst));
    return outcome;
}

} // namespace

// Goal: with merging, fewer runs come to the same outcomes.
Test(Merge, loses_no_outcome) {
    if (!testing::systematic)
        cr_skip_test("needs the systematic twin");
    uint64_t runs[2] = {};
    for (uint64_t seed = 1; seed <= 60 * testing::scale(); ++seed) {
        Dice dice(seed);
        const Program program = random_program(dice);
        Exploration exploration{.preemptions = static_cast<int>(1 + dice.below(2)),
                                .stale = static_cast<int>(dice.below(3)),
                                .timeouts = static_cast<int>(dice.below(2)),
                                .spurious = static_cast<int>(dice.below(2))};
        std::set<Outcome> outcomes[2];
        for (const bool merges : {false, true}) {
            exploration.merge_states = merges;
            const auto explored = testing::expect_pass(exploration, [&] { outcomes[merges].insert(run(program)); });
            cr_assert(explored.complete);
            runs[merges] += explored.runs;
        }
        cr_assert(outcomes[false] == outcomes[true], "program %llu: %zu outcomes, with merging %zu",
                  static_cast<unsigned long long>(seed), outcomes[false].size(), outcomes[true].size());
    }
    cr_assert_lt(runs[true] * 2, runs[false]);
}
