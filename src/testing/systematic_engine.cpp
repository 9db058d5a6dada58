// See systematic_engine.hpp: virtual threads, and who runs next.
#if defined(MC_SYS)
#include "testing/systematic_engine.hpp"

#include "base/sync.hpp"

#include <algorithm>
#include <bit>
#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <sys/mman.h>

namespace mc::testing::sys {

namespace fcontext = boost::context::detail;

constinit thread_local bool running_here = false;

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr std::size_t guard_bytes = 4096;
constexpr unsigned fair_steps = 1000; // a thread that goes on for so long without cpu_relax is made to yield
constexpr unsigned fair_phases = 64;  // how much later it is made to at most
constexpr unsigned patience = 4;      // yields after which another thread's store no longer brings it back
constexpr unsigned max_idle_rounds = 3;
constexpr unsigned max_exit_calls = 4;
constexpr std::int64_t clock_start_ns = 1'000'000'000;
constexpr std::int64_t step_ns = 10, yield_ns = 1000, look_ns = 50;

thread_local Engine *engine_here = nullptr;

void *map_stack() {
    void *low = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (low == MAP_FAILED || mprotect(low, guard_bytes, PROT_NONE) != 0) {
        std::fputs("systematic twin: no memory for a virtual thread's stack\n", stderr);
        std::abort();
    }
    return low;
}

} // namespace

struct ThreadEntry {
    static void enter(fcontext::transfer_t from) {
        static_cast<VirtualThread *>(from.data)->context = from.fctx;
        Engine &engine = Engine::here();
        engine.run_thread(*engine.current_);
    }
};

Engine::Engine() : explorer_(std::make_unique<Thread>()) {
    for (unsigned i = 0; i < max_threads; ++i)
        (threads_[i] = std::make_unique<Thread>())->number = i;
    caught_here_ = reinterpret_cast<void **>(abi::__cxa_get_globals());
}

Engine::~Engine() {
    for (auto &thread : threads_)
        if (thread->stack)
            munmap(thread->stack, guard_bytes + stack_bytes);
}

Engine &Engine::here() { return *engine_here; }

void Engine::reset(const Limits &limits, Choices &choices, const std::function<void()> &body) {
    limits_ = limits;
    choices_ = &choices;
    body_ = &body;
    outcome_ = {};
    choices.begin_run(outcome_.signature);
    memory_.reset();
    data_.clear();
    log_.clear();
    steps_ = 0;
    clock_ = clock_start_ns;
    idle_rounds_ = 0;
    clock_counts_ = false;
    threads_state_ = 0;
    ended_ = {};
    ended_history_ = 0;
    preemptions_ = limits.preemptions;
    stale_ = limits.stale;
    timeouts_ = limits.timeouts;
    spurious_ = limits.spurious;
    ready_ = asleep_ = timed_ = yielded_ = patient_ = 0;
    for (auto &thread : threads_) {
        thread->state = Thread::State::absent;
        thread->epoch = 0;
        thread->history = thread->share = 0;
        thread->yields = 0;
        thread->event_count = 0;
    }
}

Outcome Engine::run(const Limits &limits, Choices &choices, const std::function<void()> &body) {
    reset(limits, choices, body);
    Thread &first = make_thread(0, nullptr, nullptr);
    first.view.clear();
    first.label = "body";
    engine_here = this;
    running_here = true;
    jump(*explorer_, first);
    running_here = false;
    outcome_.steps = steps_;
    if (outcome_.failed || limits.verbose)
        outcome_.report = report(outcome_.failed ? outcome_.what : "the run passes");
    return std::move(outcome_);
}

void Engine::fail(const std::string &what) {
    outcome_.failed = true;
    outcome_.what = what;
    leave_run();
}

void Engine::leave_run() {
    running_here = false;
    jump(*current_, *explorer_);
    __builtin_unreachable(); // nobody resumes a thread of a run that is over
}

// --- Virtual threads ------------------------------------------------------------------------------------------------

VirtualThread &Engine::make_thread(unsigned number, void (*fn)(void *), void *arg) {
    Thread &thread = *threads_[number];
    if (!thread.stack)
        thread.stack = map_stack();
    char *top = static_cast<char *>(thread.stack) + guard_bytes + stack_bytes;
    thread.context = fcontext::make_fcontext(top, stack_bytes, ThreadEntry::enter);
    thread.caught_exceptions = nullptr;
    thread.uncaught_exceptions = 0;
    thread.saved_errno = 0;
    thread.fn = fn;
    thread.arg = arg;
    thread.slot = nullptr;
    thread.label = nullptr;
    thread.stale_streak.clear();
    thread.steps_in_a_row = 0;
    thread.made_to_yield = 0;
    thread.yields = 0;
    thread.event_count = 0;
    thread.state = Thread::State::ready;
    ready_ |= bit(number);
    return thread;
}

// Caught exceptions and the count of those in flight are two words at caught_here_; see the C++ ABI's __cxa_eh_globals.
void Engine::jump(Thread &from, Thread &to) {
    auto *uncaught = reinterpret_cast<unsigned *>(caught_here_ + 1);
    from.caught_exceptions = *caught_here_;
    from.uncaught_exceptions = *uncaught;
    from.saved_errno = errno;
    *caught_here_ = to.caught_exceptions;
    *uncaught = to.uncaught_exceptions;
    errno = to.saved_errno;
    current_ = &to;
    fcontext::transfer_t back = fcontext::jump_fcontext(to.context, &from);
    static_cast<Thread *>(back.data)->context = back.fctx;
}

void Engine::run_thread(Thread &thread) {
    try {
        thread.fn ? thread.fn(thread.arg) : (*body_)();
        // As the operating system's threads: the hook may store a slot again, but not for ever.
        auto hook = sync::os::thread_exit_hook();
        for (unsigned calls = 0; hook && thread.slot && calls < max_exit_calls; ++calls) {
            void *slot = thread.slot;
            hook(slot);
            if (thread.slot == slot)
                thread.slot = nullptr;
        }
    } catch (const std::exception &error) {
        fail(std::string("an exception left a thread: ") + error.what());
    } catch (...) {
        fail("an exception left a thread");
    }
    end_thread();
}

void Engine::end_thread() {
    Thread &me = *current_;
    note_plain(Op::end, nullptr, nullptr);
    me.state = Thread::State::finished;
    ended_.join(me.view);
    ended_history_ = mixed(ended_history_, me.history);
    ready_ &= ~self();
    for (auto &other : threads_) {
        if (me.number == 0 && other->state != Thread::State::finished && other->state != Thread::State::absent)
            fail("the body has returned, but " + describe_thread(*other) + " has not ended");
        if (other->state == Thread::State::joining && other->joins == me.number)
            wake(other->number, Wakes::ready);
    }
    if (me.number == 0)
        leave_run();
    resume(next_thread(false));
    __builtin_unreachable(); // a finished thread is never a candidate
}

int Engine::thread_start(void (*fn)(void *), void *arg, const void *caller) {
    point();
    for (auto &thread : threads_) {
        if (thread->state != Thread::State::absent)
            continue;
        make_thread(thread->number, fn, arg).view = current_->view;
        note_plain(Op::start, caller, nullptr, thread->number);
        learn(*thread, current_->history);
        return static_cast<int>(thread->number);
    }
    return -1;
}

void Engine::thread_join(int number, const void *caller) {
    point();
    Thread &me = *current_, &other = *threads_[number];
    if (other.state != Thread::State::finished) {
        note_plain(Op::join_blocks, caller, nullptr, other.number);
        me.state = Thread::State::joining;
        me.joins = other.number;
        block();
    }
    me.view.join(other.view);
    other.state = Thread::State::absent;
    note_plain(Op::join, caller, nullptr, other.number);
    learn(me, other.history);
}

std::uint32_t Engine::thread_count(const void *caller) {
    point();
    std::uint32_t count = 0;
    for (auto &thread : threads_)
        count += thread->state != Thread::State::absent && thread->state != Thread::State::finished;
    current_->view.join(ended_);
    note_plain(Op::count, caller, nullptr, count);
    learn(*current_, mixed(ended_history_, count));
    return count;
}

// --- Who runs next --------------------------------------------------------------------------------------------------

void Engine::count_step() {
    clock_ += step_ns;
    if (++steps_ > limits_.steps)
        fail("no end within " + std::to_string(limits_.steps) +
             " steps: a livelock, or Exploration::max_steps is too low");
}

void Engine::point() {
    count_step();
    // Each time a step later, or a loop that keeps time with it would always be left at the same place: with the lock
    // held that the others need, say.
    if (++current_->steps_in_a_row >= fair_steps + current_->made_to_yield % fair_phases) {
        current_->steps_in_a_row = 0;
        ++current_->made_to_yield;
        yielded_ |= self();
    }
    resume(next_thread(true));
}

void Engine::yield() {
    count_step();
    clock_ +=
        yield_ns << std::min(idle_rounds_, 20u); // where nothing happens time flies, so loops until a deadline end
    yielded_ |= self();
    if (++current_->yields >= patience)
        patient_ |= self();
    resume(next_thread(true));
}

// The caller has written down what it waits for.
void Engine::block() {
    ready_ &= ~self();
    resume(next_thread(false));
}

Candidate Engine::next_thread(bool can_stay) {
    if (ready_ == 0)
        return forced();
    const bool stays = can_stay && !(yielded_ & self());
    if (stays && !choices_->may_switch())
        return {static_cast<std::uint8_t>(current_->number), Wakes::ready};
    Mask others = ready_ & ~yielded_ & ~self();
    if (stays)
        return choose_among(preemptions_ > 0 ? others : 0, true, true);
    if (others == 0) {
        if (++idle_rounds_ > max_idle_rounds && timed_ != 0)
            return forced(); // all that could run waits for a sleeper
        forgive_yields();
        others = ready_ & ~self();
    }
    return choose_among(others, can_stay && others == 0, false);
}

// All that could run has yielded: another round for everybody.
void Engine::forgive_yields() {
    yielded_ = patient_ = 0;
    for (auto &thread : threads_)
        thread->yields = 0;
}

Candidate Engine::choose_among(Mask others, bool stays, bool preempts) {
    Candidate candidates[1 + 3 * max_threads];
    unsigned n = 0;
    auto add = [&](Mask threads, Wakes how) {
        for (; threads != 0; threads &= threads - 1)
            candidates[n++] = {static_cast<std::uint8_t>(std::countr_zero(threads)), how};
    };
    if (stays)
        add(self(), Wakes::ready);
    add(others, Wakes::ready);
    if (timeouts_ > 0)
        add(timed_, Wakes::timeout);
    if (spurious_ > 0)
        add(asleep_, Wakes::spurious);
    if (n == 1)
        return candidates[0];
    const unsigned taken =
        choices_->pick_thread(candidates, n, stays, choices_->merges() ? state(stays) : 0, preemptions_);
    const Candidate next = candidates[taken];
    preemptions_ -= next.how == Wakes::ready && preempts && taken != 0;
    timeouts_ -= next.how == Wakes::timeout;
    spurious_ -= next.how == Wakes::spurious;
    return next;
}

// Nobody can run: time passes to the earliest deadline.
Candidate Engine::forced() {
    const Thread *earliest = nullptr;
    for (Mask rest = timed_; rest != 0; rest &= rest - 1) {
        const Thread &thread = *threads_[std::countr_zero(rest)];
        if (!earliest || thread.deadline < earliest->deadline)
            earliest = &thread;
    }
    if (earliest)
        return {static_cast<std::uint8_t>(earliest->number), Wakes::timeout};
    std::string what = "deadlock:";
    for (auto &thread : threads_)
        if (thread->state != Thread::State::absent && thread->state != Thread::State::finished)
            what += (what.back() == ':' ? " " : "; ") + describe_thread(*thread) + " " + describe_wait(*thread);
    fail(what);
}

void Engine::wake(unsigned number, Wakes how) {
    Thread &thread = *threads_[number];
    thread.state = Thread::State::ready;
    thread.woken = how;
    ready_ |= bit(number);
    asleep_ &= ~bit(number);
    timed_ &= ~bit(number);
    learn(thread, mixed(static_cast<std::uint64_t>(how) + 1, how == Wakes::ready ? current_->history : 0));
    idle_rounds_ = 0;
    if (how == Wakes::timeout)
        clock_ = std::max(clock_, thread.deadline);
}

void Engine::resume(Candidate next) {
    if (next.how != Wakes::ready)
        wake(next.thread, next.how);
    yielded_ &= ~bit(next.thread);
    if (next.thread == current_->number)
        return;
    threads_[next.thread]->steps_in_a_row = 0;
    jump(*current_, *threads_[next.thread]);
}

unsigned Engine::choose(unsigned n) {
    const unsigned taken = n < 2 ? 0 : choices_->pick(n);
    learn(*current_, taken);
    return taken;
}

void Engine::learn(Thread &thread, std::uint64_t fact) {
    thread.history = mixed(thread.history, fact + 1);
    threads_state_ -= thread.share;
    thread.share = mixed(thread.history, thread.number);
    threads_state_ += thread.share;
}

// Two runs with the same state here go on alike: every thread stands at the same place with the same views (its
// history says so, since what it has read is in it), all words have the same stores, and the same choices are open.
// Which operations of different threads on different words came first is not in it.
std::uint64_t Engine::state(bool stays) const {
    std::uint64_t hash = mixed(threads_state_, memory_.state());
    hash = mixed(hash, std::uint64_t{ready_} << 32 | asleep_);
    hash = mixed(hash, std::uint64_t{yielded_} << 32 | patient_ << 16 | (stays ? current_->number + 1 : 0));
    hash = mixed(hash, static_cast<std::uint64_t>(stale_) << 32 | static_cast<std::uint64_t>(timeouts_) << 16 |
                           static_cast<std::uint64_t>(spurious_));
    hash = mixed(hash, idle_rounds_);
    for (const auto &thread : threads_)
        if (thread->yields != 0)
            hash = mixed(hash, thread->yields << 8 | thread->number);
    return timed_ != 0 || clock_counts_ ? mixed(hash, static_cast<std::uint64_t>(clock_)) : hash;
}

std::int64_t Engine::now() {
    count_step();
    clock_ += look_ns;
    clock_counts_ = true;
    learn(*current_, static_cast<std::uint64_t>(clock_));
    return clock_;
}

} // namespace mc::testing::sys
#endif
