// The systematic twin's choices: every decision of a run is asked for here, as "one of n", so that a run is a
// sequence of small numbers.
//
// Callers: the engine, on the exploring OS thread. Between runs the explorer says where the answers come from:
//  - a path: the given answers, then always 0 (stay with the thread, read the newest). advance() steps to the next
//    path in depth-first order, so repeated runs go through all of them;
//  - a seed: a generator, in one of two temperaments. A walk switches with the same probability at each point; a
//    ranking (PCT: Burckhardt et al., 2010) gives threads random priorities and lowers the running one's at a few
//    random points, which finds bugs of few, far apart orderings better. The probabilities come from the seed as well.
//
// Invariant: with the same source and a deterministic body, the same questions come in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mc::testing::sys {

// How a thread may come to run next.
enum class Wakes : std::uint8_t { ready, timeout, spurious };
struct Candidate {
    std::uint8_t thread;
    Wakes how;
};

struct Choice {
    std::uint32_t options; // 0: not known yet
    std::uint32_t taken;
    std::uint64_t before; // the order signature of the run when the question came
    std::uint64_t state;  // that of the run, where the question was which thread runs; else 0
    int left;             // budget of preemptions
};

// The choices of a run, for another process.
struct ChoiceRecord {
    static constexpr std::size_t capacity = 1 << 20;
    std::size_t count;
    std::size_t depth;
    bool diverged;
    Choice choices[capacity];
};

// States that were seen, each with the largest budget of preemptions that was left there.
class StateSet {
public:
    // False: seen before, with as large a budget.
    bool enter(std::uint64_t state, int left);

private:
    static constexpr std::size_t max_slots = std::size_t{1} << 24; // 128 MiB; beyond it, new states are not kept

    std::uint64_t &slot_of(std::uint64_t key);
    void grow();

    std::vector<std::uint64_t>
        slots_; // open addressing: the state's upper 56 bits, the budget in the lower 8; 0: empty
    std::size_t count_ = 0;
};

class Choices {
public:
    void use_path(std::vector<unsigned> path);
    // From the first path on; merging: paths that lead to a state which another has led to are not taken further.
    // What was seen in one search counts in the next.
    void use_search(bool merging);
    void use_seed(std::uint64_t seed);
    // The signature is the run's own, as it grows: by it a search notices a body that goes another way than before.
    void begin_run(const std::uint64_t &signature);

    // One of n >= 2, each as good as the others.
    unsigned pick(unsigned n);
    // One of n >= 2, where 0 is what usually happens.
    unsigned pick_unusual(unsigned n);
    // Which candidate runs; n >= 2. The first one is the running thread if that can go on (stays).
    // State: what the rest of the run depends on; wanted if merges().
    unsigned pick_thread(const Candidate *candidates, unsigned n, bool stays, std::uint64_t state,
                         int preemptions_left);
    bool merges() const { return merging_ && !merged_ && depth_ == nodes_.size(); }
    // Whether pick_thread is worth asking while the running thread can go on; asked at each point, so it is cheap.
    bool may_switch();

    // Path source: makes the next run differ; false when all have been.
    bool advance();
    // Path source: the body asked other questions than in the run before, so its runs do not depend on the choices
    // alone.
    bool diverged() const { return diverged_ || (!seeded_ && depth_ < nodes_.size()); }
    // The answers of this run so far: "12-1.0-3" is twelve zeros, a one, a three; trailing zeros are left out.
    std::string path() const;
    void save(ChoiceRecord &record) const;
    void restore(const ChoiceRecord &record);
    static bool parse_path(const char *text, std::vector<unsigned> &path);

private:
    unsigned follow(unsigned n, std::uint64_t state = 0, int left = 0);
    unsigned record(unsigned n, unsigned taken, std::uint64_t state = 0, int left = 0);
    std::uint64_t next_random();
    unsigned below(unsigned n) { return static_cast<unsigned>((next_random() >> 32) * n >> 32); }
    bool one_in(unsigned n) { return n != 0 && below(n) == 0; }
    unsigned walk(const Candidate *candidates, unsigned n, bool stays);
    unsigned ranked(const Candidate *candidates, unsigned n);

    bool seeded_ = false;
    const std::uint64_t *signature_ = nullptr;
    std::vector<Choice> nodes_;
    std::size_t depth_ = 0;
    bool diverged_ = false;
    bool merging_ = false;
    bool merged_ = false; // this run has come to a state that was seen before: it ends without further choices
    StateSet seen_;

    // Seed source.
    std::uint64_t seed_ = 0;
    std::uint64_t state_ = 0;
    unsigned switch_one_in_ = 2;
    unsigned unusual_one_in_ = 4;
    bool ranking_ = false;
    std::uint64_t points_ = 0;
    std::uint64_t demote_at_[3] = {};
    std::uint32_t rank_[16] = {}; // higher goes first
};

} // namespace mc::testing::sys
