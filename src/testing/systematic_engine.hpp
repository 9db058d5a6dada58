// The systematic twin's engine: runs a body whose threads are all virtual (fibers of the exploring OS thread), one at
// a time, and asks Choices at each operation who goes next and what a load reads.
//
// Callers: the explorer (run), and, through systematic_ops.hpp, the code under test.
//
// State of a virtual thread:
//
//   absent -> ready <-> { asleep (futex), at_mutex, joining } ... ready -> finished -> absent (joined)
//
// A choice point comes before each operation; the operation itself is then atomic. Switching while the running thread
// could go on is a preemption and costs from its budget; where it blocks, ends or yields, the next thread is a free
// choice.
//
// Code under test may itself switch stacks inside a virtual thread (the library's microthreads do): a virtual thread
// is wherever it was when it was left. What the C++ runtime and libc keep for an OS thread is exchanged at each
// switch: caught exceptions, errno.
//
// A run that fails is left where it stands: its stacks are not unwound, so what it held leaks.
#pragma once

#include "testing/systematic_choice.hpp"
#include "testing/systematic_memory.hpp"
#include "testing/systematic_trace.hpp"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace mc::testing::sys {

struct Limits {
    int preemptions;
    int stale;    // loads that read another store than the newest
    int timeouts; // deadlines that pass although somebody could run
    int spurious; // futex waits and weak compare-exchanges that end for no reason
    std::uint32_t steps;
    bool verbose; // print each event
};

struct Outcome {
    bool failed = false;
    std::string what;   // one line
    std::string report; // what, and the last operations of each thread
    std::uint64_t signature = 0;
    std::uint32_t steps = 0;
};

struct VirtualThread {
    enum class State : std::uint8_t { absent, ready, asleep, at_mutex, joining, finished };

    unsigned number = 0;
    State state = State::absent;
    const char *label = nullptr;

    // Its stack, kept between runs, and where on it (or on a stack of the code under test) it was left.
    void *stack = nullptr;
    void *context = nullptr;
    // What the C++ runtime and libc hold for the running thread.
    void *caught_exceptions = nullptr;
    unsigned uncaught_exceptions = 0;
    int saved_errno = 0;

    void (*fn)(void *) = nullptr;
    void *arg = nullptr;
    void *slot = nullptr;

    std::uint64_t history = 0; // a hash of what it has done and read; with the code, that is where it is
    std::uint64_t share = 0;   // its part of Engine::threads_state_
    View view;
    Stamp epoch = 0;                        // its own component of views, as it is newest
    std::vector<std::uint8_t> stale_streak; // by location: stale reads in a row
    unsigned steps_in_a_row = 0;
    unsigned made_to_yield = 0; // how often in this run
    unsigned yields = 0;        // since everybody else yielded or blocked

    // While it waits.
    const void *waits_on = nullptr;
    std::uint32_t expects = 0;
    std::int64_t deadline = 0;
    Wakes woken = Wakes::ready;
    unsigned joins = 0;

    // The last events.
    static constexpr unsigned kept_events = 32;
    Event events[kept_events];
    std::uint32_t event_count = 0;
};

class Engine {
public:
    Engine();
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    // The engine whose run is on in this OS thread.
    static Engine &here();

    Outcome run(const Limits &limits, Choices &choices, const std::function<void()> &body);

    // Ends the run, from any virtual thread and any stack, however small: the report is written by run().
    [[noreturn]] void fail(const std::string &what);
    // `what`, then where every thread stands; for a process that cannot get back to run().
    std::string report(const std::string &what);

    // The operations of systematic_ops.hpp.
    std::uint64_t load(const void *at, unsigned size, std::memory_order, const void *caller);
    void store(void *at, unsigned size, std::uint64_t value, std::memory_order, const void *caller);
    std::uint64_t rmw(void *at, unsigned size, Rmw, std::uint64_t operand, std::memory_order, const void *caller);
    bool compare_exchange(void *at, unsigned size, std::uint64_t &expected, std::uint64_t desired,
                          std::memory_order success, std::memory_order failure, bool weak, const void *caller);
    void construct(const void *at) { memory_.construct(at, now_of(*current_)); }
    void destroy(void *at, unsigned size);
    bool futex_wait(const void *word, std::uint32_t expected, std::int64_t deadline, const void *caller);
    void futex_wake(const void *word, int count, const void *caller);
    void relax(bool yields, const void *caller);
    std::int64_t now();
    void mutex_lock(const void *mutex, const void *caller);
    bool mutex_try_lock(const void *mutex, const void *caller);
    void mutex_unlock(const void *mutex, const void *caller);
    int thread_start(void (*fn)(void *), void *arg, const void *caller);
    void thread_join(int number, const void *caller);
    std::uint32_t thread_count(const void *caller);
    void *&slot() { return current_->slot; }
    void data_fresh(const void *at) { data_.erase(at); }
    void data_read(const void *at);
    void data_write(const void *at);

    // For bodies.
    unsigned choose(unsigned n);
    void label_word(const void *at, const char *label) { memory_.set_label(at, label); }
    void label_thread(const char *label) { current_->label = label; }

private:
    using Thread = VirtualThread;
    using Mask = std::uint32_t; // one bit a thread
    static Mask bit(unsigned number) { return Mask{1} << number; }
    Mask self() const { return bit(current_->number); }

    // Scheduling (systematic_engine.cpp).
    void point();
    void yield();
    void block();
    void count_step();
    Candidate next_thread(bool can_stay);
    Candidate choose_among(Mask others, bool stays, bool preempts);
    void forgive_yields();
    Candidate forced();
    void wake(unsigned number, Wakes how);
    std::uint64_t state(bool stays) const;
    void learn(Thread &thread, std::uint64_t fact);
    void resume(Candidate next);
    void jump(Thread &from, Thread &to);
    void reset(const Limits &limits, Choices &choices, const std::function<void()> &body);
    Thread &make_thread(unsigned number, void (*fn)(void *), void *arg);
    void run_thread(Thread &);
    [[noreturn]] void end_thread();
    [[noreturn]] void leave_run();
    friend struct ThreadEntry;

    // Operations (systematic_words.cpp).
    Location &use(const void *at, unsigned size);
    Moment now_of(Thread &);
    [[noreturn]] void race(const char *does, const char *to, unsigned other, const std::string &what);
    unsigned pick_stale(Location &, unsigned visible);
    unsigned pick_failing_store(Location &, std::uint64_t expected, std::memory_order failure);
    void value_changed() {
        yielded_ &= patient_;
        idle_rounds_ = 0;
    }
    // Source: the id of the store that was read.
    void note(Event event, std::uint64_t source = 0);
    void note_plain(Op op, const void *caller, const Location *location, std::uint64_t read = 0,
                    std::uint64_t wrote = 0);
    unsigned wake_sleepers(const void *word, int count);

    // Report (systematic_report.cpp).
    std::string describe_thread(const Thread &);
    std::string describe_wait(const Thread &);
    std::string describe_place(const void *at);

    // A run's.
    Limits limits_{};
    Choices *choices_ = nullptr;
    const std::function<void()> *body_ = nullptr;
    Outcome outcome_;
    Memory memory_;
    std::uint32_t steps_ = 0;
    std::int64_t clock_ = 0;
    bool clock_counts_ = false;                                     // somebody has read it
    std::uint64_t threads_state_ = 0;                               // a hash of all threads' histories
    unsigned idle_rounds_ = 0;                                      // times that all had yielded since a value changed
    int preemptions_ = 0, stale_ = 0, timeouts_ = 0, spurious_ = 0; // left
    void **caught_here_ = nullptr;                                  // the C++ runtime's words for this OS thread
    std::vector<std::pair<unsigned, Event>> log_;                   // verbose: all events, with their threads

    // Threads. Masks are disjoint views of their states, for speed.
    std::unique_ptr<Thread> explorer_; // the OS thread's own stack
    std::unique_ptr<Thread> threads_[max_threads];
    Thread *current_ = nullptr;
    View ended_; // what all that have ended had seen
    std::uint64_t ended_history_ = 0;
    Mask ready_ = 0;
    Mask asleep_ = 0;  // in futex_wait
    Mask timed_ = 0;   // of those: with a deadline
    Mask yielded_ = 0; // ready, but not to be run before somebody else has changed something
    Mask patient_ = 0; // yielded, again and again: not before everybody else has blocked or yielded too

    // Plain data: the last write, and when each thread has read it since.
    struct Access {
        Moment write;
        Stamp reads[max_threads] = {};
    };
    std::unordered_map<const void *, Access> data_;
};

} // namespace mc::testing::sys
