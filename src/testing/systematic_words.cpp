// See systematic_engine.hpp: what the operations of virtual threads do. Each asks for a choice point first and is
// atomic after it.
#if defined(MC_SYS)
#include "testing/systematic_engine.hpp"

#include <bit>

namespace mc::testing::sys {

namespace {

constexpr unsigned max_stale_streak = 3; // after so many stale loads in a row of one word, a thread reads the newest

std::uint64_t narrowed(std::uint64_t value, unsigned size) {
    return size == 8 ? value : value & ((std::uint64_t{1} << (8 * size)) - 1);
}

std::uint64_t applied(Rmw kind, std::uint64_t value, std::uint64_t operand) {
    switch (kind) {
    case Rmw::exchange:
        return operand;
    case Rmw::add:
        return value + operand;
    case Rmw::sub:
        return value - operand;
    case Rmw::bit_or:
        return value | operand;
    case Rmw::bit_and:
        return value & operand;
    case Rmw::read_back:
        return value;
    }
    return value;
}

constexpr Op op_of(Rmw kind) {
    return static_cast<Op>(static_cast<unsigned>(Op::exchange) + static_cast<unsigned>(kind));
}
static_assert(op_of(Rmw::read_back) == Op::read_back);

} // namespace

// --- Words ----------------------------------------------------------------------------------------------------------

Location &Engine::use(const void *at, unsigned size) {
    Location &location = memory_.word(at, size);
    if (location.dead) [[unlikely]]
        fail("a word is used after its destruction: " + describe_word(location.ordinal, location.label));
    Thread &me = *current_;
    if (!location.made.seen_in(me.view)) [[unlikely]]
        race("uses", "has constructed", static_cast<unsigned>(location.made.thread),
             describe_word(location.ordinal, location.label));
    location.used[me.number] = now_of(me).stamp;
    return location;
}

void Engine::destroy(void *at, unsigned size) {
    if (const Location *location = memory_.known(at); location != nullptr && !location->fresh)
        for (unsigned user = 0; user < max_threads; ++user)
            if (current_->view.at(user) < location->used[user])
                race("destroys", "has used", user, describe_word(location->ordinal, location->label));
    memory_.destroy(at, size);
}

// A new moment of the thread, which others see when they see what it publishes from now on.
Moment Engine::now_of(Thread &thread) {
    thread.view.raise(thread.number, ++thread.epoch);
    return {static_cast<int>(thread.number), thread.epoch};
}

void Engine::race(const char *does, const char *to, unsigned other, const std::string &what) {
    fail("data race: " + describe_thread(*current_) + " " + does + " what " + describe_thread(*threads_[other]) + " " +
         to + ", and nothing orders the two: " + what);
}

// How many stores back a load goes. A loop that waits for a word ends, since it sees the newest store at last.
unsigned Engine::pick_stale(Location &location, unsigned visible) {
    auto &streaks = current_->stale_streak;
    if (location.id >= streaks.size())
        streaks.resize(location.id + 1);
    std::uint8_t &streak = streaks[location.id];
    const unsigned back = streak < max_stale_streak ? choices_->pick_unusual(visible) : 0;
    streak = back == 0 ? 0 : static_cast<std::uint8_t>(streak + 1);
    stale_ -= back != 0;
    return back;
}

std::uint64_t Engine::load(const void *at, unsigned size, std::memory_order order, const void *caller) {
    point();
    if (order == std::memory_order_release || order == std::memory_order_acq_rel)
        fail("a load with a release order");
    Location &location = use(at, size);
    const unsigned visible = memory_.visible(location, current_->view, order);
    const unsigned back = visible > 1 && stale_ > 0 ? pick_stale(location, visible) : 0;
    const std::uint64_t value = memory_.read(location, current_->view, back, order);
    note({.word = location.ordinal,
          .op = Op::load,
          .order = order,
          .back = static_cast<std::uint8_t>(back),
          .stamp = location.newest - location.born - back,
          .read = value,
          .label = location.label,
          .caller = caller},
         location.store(location.newest - back).id);
    if (sequential(order))
        memory_.settle(location);
    return value;
}

void Engine::store(void *at, unsigned size, std::uint64_t value, std::memory_order order, const void *caller) {
    point();
    if (order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_consume)
        fail("a store with an acquire order");
    Location &location = use(at, size);
    if (location.value() != value)
        value_changed();
    memory_.write(location, current_->view, value, order);
    note({.word = location.ordinal,
          .op = Op::store,
          .order = order,
          .stamp = location.newest - location.born,
          .wrote = value,
          .label = location.label,
          .caller = caller});
    memory_.wrote(location, current_->history);
}

std::uint64_t Engine::rmw(void *at, unsigned size, Rmw kind, std::uint64_t operand, std::memory_order order,
                          const void *caller) {
    point();
    Location &location = use(at, size);
    const std::uint64_t before = location.value();
    const std::uint64_t after = narrowed(applied(kind, before, operand), size);
    if (after != before)
        value_changed();
    const std::uint64_t source = location.store(location.newest).id;
    memory_.update(location, current_->view, after, order);
    note({.word = location.ordinal,
          .op = op_of(kind),
          .order = order,
          .stamp = location.newest - location.born,
          .read = before,
          .wrote = after,
          .label = location.label,
          .caller = caller},
         source);
    memory_.wrote(location, current_->history);
    return before;
}

// A compare-exchange that fails is only a load, so it may fail on an old store; one that succeeds needs the newest.
unsigned Engine::pick_failing_store(Location &location, std::uint64_t expected, std::memory_order failure) {
    const unsigned visible = memory_.visible(location, current_->view, failure);
    if (visible == 1 || stale_ == 0)
        return 0;
    unsigned backs[kept_stores], n = 1;
    for (unsigned back = 1; back < visible; ++back)
        if (location.store(location.newest - back).value != expected)
            backs[n++] = back;
    if (n == 1)
        return 0;
    const unsigned taken = pick_stale(location, n);
    return taken == 0 ? 0 : backs[taken];
}

bool Engine::compare_exchange(void *at, unsigned size, std::uint64_t &expected, std::uint64_t desired,
                              std::memory_order success, std::memory_order failure, bool weak, const void *caller) {
    point();
    if (failure == std::memory_order_release || failure == std::memory_order_acq_rel)
        fail("a compare-exchange with a release order for its failure");
    Location &location = use(at, size);
    const std::uint64_t wanted = expected;
    const unsigned back = pick_failing_store(location, wanted, failure);
    Event event{.word = location.ordinal,
                .back = static_cast<std::uint8_t>(back),
                .stamp = location.newest - location.born - back,
                .label = location.label,
                .caller = caller};
    const std::uint64_t source = location.store(location.newest - back).id;
    bool swaps = back == 0 && location.value() == wanted;
    if (swaps && weak && spurious_ > 0 && choices_->pick_unusual(2) == 1) {
        --spurious_;
        swaps = false;
    }
    if (swaps) {
        if (desired != wanted)
            value_changed();
        event.read = memory_.update(location, current_->view, desired, success);
        ++event.stamp;
    } else {
        event.read = expected = memory_.read(location, current_->view, back, failure);
    }
    event.op = swaps ? Op::swap : expected == wanted ? Op::swap_spurious : Op::swap_fail;
    event.order = swaps ? success : failure;
    event.wrote = swaps ? desired : wanted;
    note(event, source);
    if (swaps)
        memory_.wrote(location, current_->history);
    else
        memory_.settle(location);
    return swaps;
}

// --- Futexes --------------------------------------------------------------------------------------------------------

// The kernel compares under the word's lock, so with the newest store, and a wake is a barrier for whom it wakes.
bool Engine::futex_wait(const void *word, std::uint32_t expected, std::int64_t deadline, const void *caller) {
    point();
    Thread &me = *current_;
    Location &location = use(word, sizeof(std::uint32_t));
    me.view.raise(location.id, location.newest);
    learn(me, location.store(location.newest).id);
    if (location.value() != expected) {
        note_plain(Op::sleep_differs, caller, &location, location.value(), expected);
        return true;
    }
    if (deadline <= clock_) {
        note_plain(Op::sleep_late, caller, &location, static_cast<std::uint64_t>(deadline), expected);
        return false;
    }
    note_plain(Op::sleep, caller, &location, static_cast<std::uint64_t>(deadline), expected);
    me.state = Thread::State::asleep;
    me.waits_on = word;
    me.expects = expected;
    me.deadline = deadline;
    asleep_ |= self();
    if (deadline != INT64_MAX)
        timed_ |= self();
    block();
    constexpr Op ends[] = {Op::woken, Op::timed_out, Op::woken_spuriously};
    note_plain(ends[static_cast<unsigned>(me.woken)], caller, memory_.known(word));
    return me.woken != Wakes::timeout;
}

// The word may be gone already (its waiter has left): only its address counts.
void Engine::futex_wake(const void *word, int count, const void *caller) {
    point();
    const unsigned woken = wake_sleepers(word, count);
    note_plain(Op::wake, caller, memory_.known(word), static_cast<std::uint64_t>(count), woken);
}

unsigned Engine::wake_sleepers(const void *word, int count) {
    Mask waiting = 0;
    for (Mask rest = asleep_; rest != 0; rest &= rest - 1)
        if (threads_[std::countr_zero(rest)]->waits_on == word)
            waiting |= rest & -rest;
    unsigned woken = 0;
    for (; waiting != 0 && static_cast<int>(woken) < count; ++woken) {
        const unsigned sleepers = static_cast<unsigned>(std::popcount(waiting));
        Mask chosen = waiting; // which of several is the kernel's affair
        if (static_cast<int>(sleepers + woken) > count)
            for (unsigned skip = choices_->pick(sleepers); skip != 0; --skip)
                chosen &= chosen - 1;
        const unsigned number = static_cast<unsigned>(std::countr_zero(chosen));
        waiting &= ~bit(number);
        wake(number, Wakes::ready);
        threads_[number]->view.join(current_->view);
        learn(*current_, number);
    }
    return woken;
}

void Engine::relax(bool yields, const void *caller) {
    note_plain(yields ? Op::yield : Op::relax, caller, nullptr);
    yield();
}

// --- Mutexes --------------------------------------------------------------------------------------------------------

void Engine::mutex_lock(const void *mutex, const void *caller) {
    point();
    Thread &me = *current_;
    for (;;) {
        Location &location = memory_.mutex(mutex);
        if (location.owner == static_cast<int>(me.number))
            fail("a thread locks a mutex that it holds: " + describe_word(location.ordinal, location.label));
        if (location.owner < 0) {
            location.owner = static_cast<int>(me.number);
            me.view.join(location.message);
            note_plain(Op::lock, caller, &location);
            learn(me, location.history);
            memory_.wrote(location, me.history);
            return;
        }
        note_plain(Op::lock_blocks, caller, &location);
        me.state = Thread::State::at_mutex;
        me.waits_on = mutex;
        block();
    }
}

bool Engine::mutex_try_lock(const void *mutex, const void *caller) {
    point();
    Location &location = memory_.mutex(mutex);
    const bool free = location.owner < 0;
    if (free) {
        location.owner = static_cast<int>(current_->number);
        current_->view.join(location.message);
    }
    note_plain(free ? Op::try_lock : Op::try_lock_fails, caller, &location);
    learn(*current_, location.history);
    if (free)
        memory_.wrote(location, current_->history);
    return free;
}

void Engine::mutex_unlock(const void *mutex, const void *caller) {
    point();
    Location &location = memory_.mutex(mutex);
    if (location.owner != static_cast<int>(current_->number))
        fail("a thread unlocks a mutex that it does not hold: " + describe_word(location.ordinal, location.label));
    location.owner = -1;
    location.message = current_->view;
    value_changed();
    note_plain(Op::unlock, caller, &location);
    memory_.wrote(location, current_->history);
    for (auto &thread : threads_)
        if (thread->state == Thread::State::at_mutex && thread->waits_on == mutex)
            wake(thread->number, Wakes::ready); // it tries again when it runs
}

// --- Plain data -----------------------------------------------------------------------------------------------------

void Engine::data_read(const void *at) {
    Thread &me = *current_;
    Access &access = data_[at];
    if (!access.write.seen_in(me.view))
        race("reads", "has written", static_cast<unsigned>(access.write.thread), "plain data");
    access.reads[me.number] = now_of(me).stamp;
}

void Engine::data_write(const void *at) {
    Thread &me = *current_;
    Access &access = data_[at];
    if (!access.write.seen_in(me.view))
        race("writes", "has written", static_cast<unsigned>(access.write.thread), "plain data");
    for (unsigned reader = 0; reader < max_threads; ++reader)
        if (me.view.at(reader) < access.reads[reader])
            race("writes", "has read", reader, "plain data");
    access = {now_of(me), {}};
}

// --- The record -----------------------------------------------------------------------------------------------------

void Engine::note(Event event, std::uint64_t source) {
    Thread &me = *current_;
    learn(me, mixed(mixed(static_cast<std::uint64_t>(event.op) << 1 | (event.back != 0), event.read), source));
    event.step = steps_;
    outcome_.signature = mixed(outcome_.signature, me.number | static_cast<std::uint64_t>(event.op) << 4 |
                                                       static_cast<std::uint64_t>(event.word) << 12 |
                                                       static_cast<std::uint64_t>(event.stamp) << 44);
    me.events[me.event_count++ % Thread::kept_events] = event;
    if (limits_.verbose)
        log_.emplace_back(me.number, event);
}

void Engine::note_plain(Op op, const void *caller, const Location *location, std::uint64_t read, std::uint64_t wrote) {
    note({.word = location ? location->ordinal : no_word,
          .op = op,
          .read = read,
          .wrote = wrote,
          .label = location ? location->label : nullptr,
          .caller = caller});
}

} // namespace mc::testing::sys
#endif
