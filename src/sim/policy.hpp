// Policies: what is taken at each choice of a simulated run. They see how many candidates there are and what kind of choice it is,
// and keep a word for each task; they know nothing of tasks. Pure: a policy is a function of its seed and of what it was asked.
#pragma once

#include "sim/schedule.hpp"

#include "base/prng.hpp"

#include <cstdint>
#include <memory>

namespace mc::sim {

// A choice of whose turn it is. Candidate 0 is the running task when `running`, the last one lets time jump when `time`.
struct Turns {
    uint64_t ordinal; // of this choice among all of the run
    uint32_t count;   // 1 or more
    bool running;
    bool time;
    bool yields;            // the running task is no candidate, though it could run: it gives way
    uint64_t *const *words; // one for each candidate, the policy's own; 0 when the task was made
    uint64_t *running_word; // of the task that runs, or ran until now; may be null
};

class Policy {
public:
    virtual ~Policy() = default;
    virtual uint32_t turn(const Turns &turns) noexcept = 0;               // below turns.count
    virtual uint32_t pick(uint64_t ordinal, uint32_t count) noexcept = 0; // an arm, or what the program asks
};

// Everybody can be next. Switching at every call finds other bugs than switching seldom, so how much the running task is favoured
// is the seed's too.
std::unique_ptr<Policy> random_policy(uint64_t seed);

// Priorities, of which the highest runs; at depth - 1 random steps the running task's becomes the lowest. A bug that needs depth
// orderings between steps is found with a probability of at least 1 / (n k^(depth - 1)) with n tasks and k steps (Burckhardt,
// Kothari, Musuvathi and Nagarakatte, A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, ASPLOS 2010). What k is
// is not known beforehand: each seed guesses a power of two. Who yields goes to the end of all: what waits by asking again and
// again would keep the processor for ever.
std::unique_ptr<Policy> pct_policy(uint64_t seed, uint32_t depth);

// Follows a schedule.
std::unique_ptr<Policy> replay_policy(Schedule schedule);

// By name: "random", "pct:D" with D from 1 to 100, "mix". Null: no such policy.
std::unique_ptr<Policy> policy_by_name(const char *name, uint64_t seed);

} // namespace mc::sim
