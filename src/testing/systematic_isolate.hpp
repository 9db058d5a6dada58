// Runs in a process of their own each: for bodies that leave something behind (caches, counters, a runtime's
// globals), and for those that may crash.
//
// Callers: the explorer, on the test's thread. The child inherits engine and choices, makes one run, and leaves what
// the parent needs in shared memory: the outcome and the choices that were made. Costs a fork a run (a few hundred
// microseconds).
#pragma once

#include "testing/systematic_choice.hpp"
#include "testing/systematic_engine.hpp"

namespace mc::testing::sys {

class Isolation {
public:
    Isolation() = default;
    ~Isolation();
    Isolation(const Isolation &) = delete;
    Isolation &operator=(const Isolation &) = delete;

    Outcome run(Engine &engine, const Limits &limits, Choices &choices, const std::function<void()> &body);

    // Whether this is the process of one run.
    bool is_child() const { return is_child_; }
    // The child, which is about to leave otherwise than by the end of its run.
    void leave_word(const Outcome &outcome, const Choices &choices);

private:
    struct Shared;

    Shared *shared_ = nullptr;
    bool is_child_ = false;
};

} // namespace mc::testing::sys
