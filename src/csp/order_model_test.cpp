// Random programs for single-processor mode against a model of its order. The model is the text of mc/csp.h as a few
// lists of numbers: it predicts which task does what with what result, step by step, and the library must do exactly
// that.
//
// A program: straight-line scripts, one a task, main's being the first; channels without messages; some scripts are
// spawned by others. A failure prints the seed; MC_TEST_SEED=n in the environment runs that one alone.
#include "csp/test_csp.hpp"

#include <algorithm>
#include <deque>
#include <vector>

using namespace mc::csp::testing;

namespace {

struct Arm {
    size_t chan;
    bool reader;
    bool dead_mode;
};

struct Step {
    enum Kind { yield, run, spawn, spawn_tail, prialt, close } kind;
    size_t target;         // spawn: the script; close: the channel
    std::vector<Arm> arms; // prialt
    bool nowait;
};

using Script = std::vector<Step>;

struct Program {
    size_t chans;
    std::vector<Script> scripts; // [0] is main's
};

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    size_t below(size_t n) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<size_t>((state_ >> 11) % n);
    }
    bool one_in(size_t n) { return below(n) == 0; }

private:
    uint64_t state_;
};

Step random_step(Random &random, const Program &program, size_t &next_script, size_t scripts) {
    Step step{Step::yield, 0, {}, random.one_in(4)};
    const size_t dice = random.below(20);
    if (dice < 3)
        step.kind = random.one_in(2) ? Step::yield : Step::run;
    else if (dice < 6 && next_script < scripts) {
        step.kind = random.one_in(3) ? Step::spawn_tail : Step::spawn;
        step.target = next_script++;
    } else if (dice == 6 && random.one_in(4)) {
        step.kind = Step::close;
        step.target = random.below(program.chans);
    } else {
        step.kind = Step::prialt;
        const size_t arms = random.one_in(3) ? 2 + random.below(3) : 1;
        const size_t sides =
            random.below(16); // of one channel an alt has one end: which of both dies first is not told
        for (size_t i = 0; i < arms; ++i) {
            const size_t chan = random.below(program.chans);
            step.arms.push_back({chan, (sides >> chan & 1) != 0, arms > 1 && random.one_in(5)});
        }
    }
    return step;
}

Program random_program(uint64_t seed) {
    Random random(seed);
    const size_t scripts = 2 + random.below(8);
    Program program{1 + random.below(4), std::vector<Script>(scripts)};
    size_t next_script = 1;
    for (Script &script : program.scripts)
        for (size_t i = 4 + random.below(12); i > 0; --i)
            script.push_back(random_step(random, program, next_script, scripts));
    program.scripts[0].resize(program.scripts[0].size() + 10,
                              Step{Step::run, 0, {}, false}); // the others go on a while
    return program;
}

// One line of a run: this task's step has returned this result to it.
struct Event {
    size_t task;
    size_t step;
    int result;
    bool operator==(const Event &other) const {
        return task == other.task && step == other.step && result == other.result;
    }
};

// --- the model ---

class Model {
public:
    explicit Model(const Program &program)
        : program_(program), tasks_(program.scripts.size()), chans_(program.chans), queue_{0} {}

    // Until main has ended its script.
    std::vector<Event> run() {
        while (!over_)
            step();
        return events_;
    }

private:
    struct Task {
        size_t at = 0;
        enum { nothing, a_result, the_turn } comes_back_with = nothing; // from the call at `at`
        int result = 0;
    };
    struct Waiting {
        size_t task;
        size_t arm;
        bool dead_mode;
        bool reader;
    };
    struct Chan {
        bool closed = false;
        std::deque<Waiting> waiters; // of both ends and modes, in the order in which they came
    };

    bool others() const { return queue_.size() > 1; }

    // The running task returns from a call, or begins the next one.
    void step() {
        Task &task = tasks_[running_];
        const Script &script = program_.scripts[running_];
        if (task.comes_back_with != Task::nothing) {
            const bool asks = task.comes_back_with == Task::the_turn && script[task.at].kind == Step::run;
            events_.push_back({running_, task.at, asks ? others() : task.result});
            task.comes_back_with = Task::nothing;
            ++task.at;
        } else if (task.at == script.size()) {
            over_ = running_ == 0;
            leave_queue();
        } else {
            begin(task, script[task.at]);
        }
    }

    void begin(Task &task, const Step &step) {
        task.comes_back_with = Task::a_result;
        task.result = 1;
        switch (step.kind) {
        case Step::yield:
        case Step::run:
            task.comes_back_with = Task::the_turn;
            task.result = 0;
            if (queue_.front() == running_) { // in turn: becomes the tail
                queue_.pop_front();
                queue_.push_back(running_);
            }
            running_ = queue_.front();
            break;
        case Step::spawn:
        case Step::spawn_tail:
            queue_.push_back(step.target);
            if (step.kind == Step::spawn)
                running_ = step.target;
            break;
        case Step::close:
            task.result = chans_[step.target].closed ? -1 : 1;
            close(chans_[step.target]);
            break;
        default:
            prialt(task, step);
        }
    }

    // The running task ends or blocks: the head goes on.
    void leave_queue() {
        queue_.erase(std::find(queue_.begin(), queue_.end(), running_));
        if (queue_.empty() && !over_)
            wake({0, 0, false, false}, MC_E_DEADLOCK);
        running_ = over_ ? 0 : queue_.front();
    }

    void wake(Waiting waiting, int result) {
        for (Chan &chan : chans_)
            std::erase_if(chan.waiters, [&](const Waiting &other) { return other.task == waiting.task; });
        tasks_[waiting.task].comes_back_with = Task::a_result;
        tasks_[waiting.task].result = result;
        queue_.push_back(waiting.task);
    }

    void close(Chan &chan) {
        chan.closed = true;
        for (bool dead_mode : {false, true})
            for (;;) {
                const auto next = std::find_if(chan.waiters.begin(), chan.waiters.end(),
                                               [&](const Waiting &waiting) { return waiting.dead_mode == dead_mode; });
                if (next == chan.waiters.end())
                    break;
                wake(*next, -static_cast<int>(next->arm) - 1);
            }
    }

    void prialt(Task &task, const Step &step) {
        for (size_t i = 0; i < step.arms.size(); ++i) {
            const Arm &arm = step.arms[i];
            Chan &chan = chans_[arm.chan];
            task.result = static_cast<int>(i) + 1;
            if (chan.closed) {
                task.result = -task.result;
                return;
            }
            const auto peer = std::find_if(chan.waiters.begin(), chan.waiters.end(), [&](const Waiting &waiting) {
                return !waiting.dead_mode && waiting.reader != arm.reader;
            });
            if (arm.dead_mode || peer == chan.waiters.end())
                continue;
            const size_t found = peer->task;
            wake(*peer, static_cast<int>(peer->arm) + 1);
            if (!arm.reader && !step.nowait)
                running_ = found; // a receiver that a sender finds runs at once
            return;
        }
        task.result = 0;
        if (step.nowait)
            return;
        task.comes_back_with = Task::nothing;
        for (size_t i = 0; i < step.arms.size(); ++i)
            chans_[step.arms[i].chan].waiters.push_back({running_, i, step.arms[i].dead_mode, step.arms[i].reader});
        leave_queue();
    }

    const Program &program_;
    std::vector<Task> tasks_;
    std::vector<Chan> chans_;
    std::deque<size_t> queue_; // the head is in turn; who runs stays in it
    size_t running_ = 0;
    bool over_ = false;
    std::vector<Event> events_;
};

// --- the library ---

class Library {
public:
    explicit Library(const Program &program) : program_(program), w_(program.chans), r_(program.chans) {
        for (size_t i = 0; i < program.chans; ++i)
            cr_assert_eq(csp_chan(&w_[i], &r_[i], nullptr), 1);
    }

    std::vector<Event> run() {
        play(0);
        over_ = true; // what the others do from here on is not compared
        for (size_t i = 0; i < program_.chans; ++i)
            (void)csp_writer_close(w_[i]);
        csp_schedule();
        for (size_t i = 0; i < program_.chans; ++i) {
            csp_writer_release(w_[i]);
            csp_reader_release(r_[i]);
        }
        return events_;
    }

private:
    void play(size_t task) {
        const Script &script = program_.scripts[task];
        for (size_t i = 0; i < script.size() && !over_; ++i) {
            const int result = call(script[i]);
            if (!over_)
                events_.push_back({task, i, result});
        }
    }

    int call(const Step &step) {
        switch (step.kind) {
        case Step::yield:
            csp_yield();
            return 0;
        case Step::run:
            return csp_run();
        case Step::spawn:
            spawn([this, target = step.target] { play(target); });
            return 1;
        case Step::spawn_tail:
            spawn_at_tail([this, target = step.target] { play(target); });
            return 1;
        case Step::close:
            return csp_writer_close(w_[step.target]);
        default:
            return choose(step);
        }
    }

    // One arm through the calls for one arm, several through prialt.
    int choose(const Step &step) {
        const Arm &first = step.arms[0];
        if (step.arms.size() == 1 && first.reader)
            return step.nowait ? csp_try_recv(r_[first.chan], nullptr) : csp_recv(r_[first.chan], nullptr);
        if (step.arms.size() == 1)
            return step.nowait ? csp_try_send(w_[first.chan], nullptr) : csp_send(w_[first.chan], nullptr);
        csp_chanop ops[5];
        for (size_t i = 0; i < step.arms.size(); ++i) {
            const Arm &arm = step.arms[i];
            if (arm.dead_mode)
                ops[i] = arm.reader ? dies(r_[arm.chan]) : dies(w_[arm.chan]);
            else
                ops[i] = arm.reader ? receives(r_[arm.chan]) : sends(w_[arm.chan]);
        }
        return csp_prialt(ops, static_cast<int>(step.arms.size()), step.nowait);
    }

    const Program &program_;
    std::vector<csp_writer> w_;
    std::vector<csp_reader> r_;
    std::vector<Event> events_;
    bool over_ = false;
};

void compare(uint64_t seed) {
    const Program program = random_program(seed);
    const std::vector<Event> expected = Model(program).run(), happened = Library(program).run();
    size_t at = 0;
    while (at < expected.size() && at < happened.size() && expected[at] == happened[at])
        ++at;
    if (at == expected.size() && at == happened.size())
        return;
    const Event none{99, 99, 0};
    const Event &wanted = at < expected.size() ? expected[at] : none, &got = at < happened.size() ? happened[at] : none;
    cr_assert_fail("MC_TEST_SEED=%llu: event %zu of %zu: task %zu step %zu gave %d, but task %zu step %zu gave %d",
                   static_cast<unsigned long long>(seed), at, expected.size(), wanted.task, wanted.step, wanted.result,
                   got.task, got.step, got.result);
}

} // namespace

// Goal: thousands of random programs run in exactly the order that mc/csp.h tells, each call with the result that it
// tells.
Test(OrderModel, random_programs_run_as_predicted, .timeout = 60) {
    in_process_with_one_thread([] {
        World world;
        if (const char *seed = std::getenv("MC_TEST_SEED"))
            return compare(std::strtoull(seed, nullptr, 10));
        // Many end in a deadlock, and under TSan each of those takes several milliseconds to be sure.
        const uint64_t programs = (mc::testing::under_tsan ? 200 : 4000) * uint64_t{mc::testing::scale()};
        for (uint64_t seed = 1; seed <= programs; ++seed)
            compare(seed);
    });
}
