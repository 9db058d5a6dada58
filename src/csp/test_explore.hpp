// What the systematic tests of this room share: how much is explored, and what must be left at the end. For mc/csp.h on
// two or three threads; on real threads in other builds.
//
// The runtime outlives a run, so the runs of the exhaustive search have a process each.
#pragma once

#include "csp/test_csp.hpp"
#include "testing/systematic.hpp"

namespace mc::csp::testing {

using mc::testing::check;
using mc::testing::expect_pass;
using mc::testing::Thread;

// All interleavings with up to two preemptions, fewest first, as many as there is time for; then random ones without a
// limit. `timeouts`: how many deadlines may pass although somebody could run.
inline void explore(const char *name, int timeouts, const std::function<void()> &body) {
    expect_pass({.name = name,
                 .preemptions = 2,
                 .stale = 1,
                 .timeouts = timeouts,
                 .spurious = 0,
                 .max_runs = uint64_t{1000} * mc::testing::scale(),
                 .isolate = true,
                 .real_runs = 100 * mc::testing::scale()},
                body);
    expect_pass({.name = name,
                 .search = mc::testing::Search::seeds,
                 .stale = timeouts == 0 ? 0 : 2, // a thread that spins on a stale value lets deadlines pass
                 .timeouts = timeouts,
                 .seeds = uint64_t{2000} * mc::testing::scale(),
                 .real_runs = 100 * mc::testing::scale()},
                body);
}

inline int64_t soon() { return mc_after(1000); }
inline int64_t far() { return MC_FOREVER; } // told of a deadlock, it fails

inline void nothing_is_left() {
    check(csp__internal__channel_count(0) == 0, "a writer is left");
    check(csp__internal__channel_count(1) == 0, "a reader is left");
}

} // namespace mc::csp::testing
