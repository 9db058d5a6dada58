// Exploration of concurrent code: one body, run again and again under different interleavings. For tests.
//
// The body starts its threads through mc::sync::thread (code under test that starts threads does too) and states its
// claims with check(). In MC_SYS builds (the `sys` preset) its threads are virtual, and explore() goes through the
// interleavings, the stale values that the memory orders allow, early timeouts and spurious returns: exhaustively
// within budgets, or by seeds. In other builds the same body runs `real_runs` times on real threads. So one test
// source serves both twins:
//
//     Test(Flag, publishes_its_payload) {
//         mc::testing::expect_pass({.name = "Flag/publishes_its_payload"}, [] {
//             Flag flag; // fresh in each run
//             mc::testing::Thread reader([&] {
//                 if (flag.is_set())
//                     mc::testing::check(flag.payload() == 7, "an old payload");
//             }); // joins at the end of its scope
//             flag.set(7);
//         });
//     }
//
// What a body must keep to: nothing survives from run to run but what the first run fills for good (what does changes
// later runs, and an exhaustive search fails as "not deterministic": then isolate the runs, or explore by seeds); time,
// chance and waiting come only from mc::sync and choose(); a loop that waits calls cpu_relax or thread_yield.
//
// Callers: a test's thread; one exploration at a time. check, choose, label, Data: any thread of a body.
#pragma once

#include "base/sync.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace mc::testing {

enum class Search : std::uint8_t {
    exhaustive, // all runs within the budgets, fewest preemptions first
    seeds,      // `seeds` runs, each from a seed of its own
};

struct Exploration {
    const char *name = ""; // "Suite/test", for the command that replays a failure
    Search search = Search::exhaustive;

    // Budgets of one run.
    //  - A preemption is a switch away from a thread that could go on. By seeds: no limit.
    //  - A stale read is a load of another store than the newest. By seeds: no limit, but 0 is none.
    //  - A timeout is a deadline that passes although some thread could run.
    //  - Spurious is a futex_wait or a weak compare-exchange that ends for no reason.
    int preemptions = 2;
    int stale = 2;
    int timeouts = 1;
    int spurious = 1;

    // Exhaustive: where two orders of operations have led to the same state, go on from it once only. False to have
    // every order.
    bool merge_states = true;

    std::uint64_t max_runs =
        3'000'000; // an exhaustive search that is not complete by then ends, and passes as incomplete
    std::uint32_t max_steps = 20'000; // a run that takes more has failed

    std::uint64_t seeds = 2'000;
    std::uint64_t first_seed = 1;

    // Each run in a process of its own (a fork, some 0.3 ms): for bodies that leave something behind or may crash.
    bool isolate = false;

    unsigned real_runs = 200; // in builds without the systematic twin

    bool quiet = false; // a failure is expected: do not print it
};

struct Explored {
    bool failed = false;
    bool complete = true; // exhaustive: everything within the budgets was run
    std::uint64_t runs = 0;
    std::uint64_t steps = 0;     // of all runs
    std::uint64_t distinct = 0;  // order signatures (counted up to a million)
    std::uint64_t signature = 0; // of the last run: the order of its operations, and which stores they read

    // Of a failure.
    std::string what;    // one line
    std::string report;  // with the last operations of every thread
    std::string replay;  // the value of MC_SYS_REPLAY that repeats the run
    std::string command; // the command that does
};

// Runs until a run fails or all have been run. In builds without the systematic twin nothing comes back from a
// failure: check() aborts. With MC_SYS_REPLAY in the environment, an exploration that it names makes that one run,
// and prints all of it.
Explored explore(const Exploration &exploration, const std::function<void()> &body);

// Explores and fails the test, with the report, if a run fails.
Explored expect_pass(const Exploration &exploration, const std::function<void()> &body);

// For planted bugs: explores and fails the test unless a run fails and says `what` (a part of its line). Runs nothing
// in builds without the systematic twin.
Explored expect_fail(Exploration exploration, const char *what, const std::function<void()> &body);

// A claim of a body. Any thread and any stack; the text is a printf format.
[[gnu::format(printf, 2, 3)]] void check(bool holds, const char *text, ...);

// Any of 0 ... n - 1: a choice of the test's own.
unsigned choose(unsigned n);

// Names for reports; the text must outlive the exploration.
void label(const void *word, const char *text);
void label_thread(const char *text);

// A thread of a body, from a lambda; joins when it goes.
class Thread {
public:
    template <class Body>
    explicit Thread(Body body, const char *label = nullptr) : body_(std::move(body)), label_(label) {
        check(thread_.start(run, this), "no thread");
    }
    ~Thread() { join(); }
    void join() {
        if (thread_.joinable())
            thread_.join();
    }

private:
    static void run(void *self) {
        auto *me = static_cast<Thread *>(self);
        if (me->label_)
            label_thread(me->label_);
        me->body_();
    }

    std::function<void()> body_;
    const char *label_;
    sync::thread thread_;
};

// Plain data of a body. The systematic twin checks that accesses are ordered (TSan does in its build), which shows
// that a word's release and acquire do publish what they should.
template <class T> class Data {
public:
    Data() { sync::note_fresh(this); }
    explicit Data(T value) : value_(std::move(value)) {
        sync::note_fresh(this);
        sync::note_write(this);
    }
    Data(const Data &) = delete;
    Data &operator=(const Data &) = delete;
    const T &get() const {
        sync::note_read(this);
        return value_;
    }
    void set(T value) {
        sync::note_write(this);
        value_ = std::move(value);
    }

private:
    T value_{};
};

} // namespace mc::testing
