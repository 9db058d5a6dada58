// The task word, one operation at a time: every state and every operation that may meet it. Races are in
// task_word_sys_test.cpp.
#include "sched/task_word.hpp"

#include "testing/test.hpp"

#include <csignal>
#include <iterator>
#include <new>

using namespace mc;
using sched::Phase;
using sched::TaskWord;
using Claim = TaskWord::Claim;
using Wake = TaskWord::Wake;
using Publish = TaskWord::Publish;

namespace {

constexpr uint64_t epoch = 5;

// A word's state, apart from its epoch.
struct State {
    Phase phase;
    bool claimed;
    bool operator==(const State &) const = default;
};

// All that there are: a claim exists in parking, parked and notified only, and notified is always claimed.
constexpr State idle{Phase::idle, false};
constexpr State runnable{Phase::runnable, false};
constexpr State running{Phase::running, false};
constexpr State parking{Phase::parking, false};
constexpr State parking_claimed{Phase::parking, true};
constexpr State parked{Phase::parked, false};
constexpr State parked_claimed{Phase::parked, true};
constexpr State notified{Phase::notified, true};
constexpr State states[] = {idle, runnable, running, parking, parking_claimed, parked, parked_claimed, notified};

State state_of(const TaskWord &word) {
    const uint64_t look = word.look();
    return {TaskWord::phase_of(look), (look & 8) != 0};
}

// Brings a new word into a state at `epoch`, by the operations that lead there.
void reach(TaskWord &word, State to) {
    word.make_runnable();
    word.start();
    for (uint64_t wait = 1; wait < epoch; ++wait) {
        cr_assert_eq(word.begin_park(), wait);
        cr_assert_eq(word.publish_parked(), Publish::parked);
        cr_assert_eq(word.try_claim(wait), Claim::parked);
        cr_assert_eq(word.wake(Claim::parked), Wake::enqueue);
        word.start();
    }
    const bool waits = to.phase == Phase::parking || to.phase == Phase::parked || to.phase == Phase::notified;
    cr_assert_eq(word.begin_park(), epoch);
    if (to.claimed && to.phase != Phase::parked)
        cr_assert_eq(word.try_claim(epoch), Claim::parking);
    if (to.phase == Phase::notified)
        cr_assert_eq(word.wake(Claim::parking), Wake::parker_requeues);
    if (to.phase == Phase::parked || !waits)
        cr_assert_eq(word.publish_parked(), Publish::parked);
    if ((to.claimed && to.phase == Phase::parked) || !waits)
        cr_assert_eq(word.try_claim(epoch), Claim::parked);
    if (!waits) {
        cr_assert_eq(word.wake(Claim::parked), Wake::enqueue);
        if (to.phase != Phase::runnable)
            word.start();
        if (to.phase == Phase::idle)
            word.retire();
    }
    cr_assert(state_of(word) == to);
    cr_assert_eq(TaskWord::epoch_of(word.look()), epoch);
}

struct In : TaskWord {
    explicit In(State state) { reach(*this, state); }
};

bool is_at(const TaskWord &word, State state, uint64_t at_epoch = epoch) {
    return state_of(word) == state && TaskWord::epoch_of(word.look()) == at_epoch;
}

} // namespace

// Goal: a claim wins in parking and parked alone, under the right epoch alone, once; a lost claim changes nothing.
Test(TaskWord, only_the_first_claim_of_this_wait_wins) {
    for (State state : states)
        for (uint64_t of : {epoch - 1, epoch, epoch + 1, uint64_t{0}, UINT64_MAX >> 4}) {
            In word(state);
            const bool wins = of == epoch && (state == parking || state == parked);
            const Claim claim = word.try_claim(of);
            cr_assert_eq(claim, !wins ? Claim::lost : state == parking ? Claim::parking : Claim::parked);
            cr_assert(is_at(word, State{state.phase, state.claimed || wins}));
            cr_assert_eq(word.try_claim(of), Claim::lost);
        }
}

// Goal: what the holder of a claim may do: in parking leave the task to its parker, in parked enqueue it or run it. A
// claim won in parking may be woken after the parker has published.
Test(TaskWord, wakes_by_phase) {
    In while_parking(parking_claimed);
    cr_assert_eq(while_parking.wake(Claim::parking), Wake::parker_requeues);
    cr_assert(is_at(while_parking, notified));

    In published(parking_claimed);
    cr_assert_eq(published.publish_parked(), Publish::parked);
    cr_assert(is_at(published, parked_claimed));
    cr_assert_eq(published.wake(Claim::parking), Wake::enqueue);
    cr_assert(is_at(published, runnable));

    In while_parked(parked_claimed);
    cr_assert_eq(while_parked.wake(Claim::parked), Wake::enqueue);
    cr_assert(is_at(while_parked, runnable));

    In handed(parked_claimed);
    handed.hand_over();
    cr_assert(is_at(handed, running));
}

// Goal: what the parker gets: parked while nobody has woken, also under a claim; requeue once somebody has.
Test(TaskWord, publishes_by_phase) {
    In alone(parking);
    cr_assert_eq(alone.publish_parked(), Publish::parked);
    cr_assert(is_at(alone, parked));

    In claimed(parking_claimed);
    cr_assert_eq(claimed.publish_parked(), Publish::parked);
    cr_assert(is_at(claimed, parked_claimed));

    In woken(notified);
    cr_assert_eq(woken.publish_parked(), Publish::requeue);
    cr_assert(is_at(woken, runnable));

    In quiet(parking);
    quiet.park_quietly(epoch);
    cr_assert(is_at(quiet, parked));
}

// Goal: each wait has an epoch of its own, and nothing but a wait changes it: not running, yielding, ending, nor the
// next life of the slot.
Test(TaskWord, epochs_go_on) {
    In word(running);
    word.make_runnable();
    cr_assert(is_at(word, runnable));
    word.start();
    cr_assert(is_at(word, running));
    word.retire();
    cr_assert(is_at(word, idle));
    word.make_runnable();
    word.start();
    cr_assert_eq(word.begin_park(), epoch + 1);
    cr_assert(is_at(word, parking, epoch + 1));
    cr_assert_eq(word.try_claim(epoch), Claim::lost);
    cr_assert_eq(word.try_claim(epoch + 1), Claim::parking);
}

// Goal: a foreign thread goes on when its waker is through with it, and not before.
Test(TaskWord, finished_means_woken) {
    for (State state : states) {
        const In word(state);
        cr_assert_eq(word.finished(), state == runnable || state == notified);
        cr_assert_eq(TaskWord::is_parked_unclaimed(word.look()), state == parked);
    }
}

// Goal: every look differs from every look of an earlier wait, so that two equal looks mean one uninterrupted state.
Test(TaskWord, words_of_waits_never_repeat) {
    TaskWord word;
    word.make_runnable();
    word.start();
    uint64_t before = 0;
    for (uint64_t wait = 1; wait < 10'000; ++wait) {
        cr_assert_eq(word.begin_park(), wait);
        (void)word.publish_parked();
        cr_assert_gt(word.look(), before);
        before = word.look();
        (void)word.try_claim(wait);
        (void)word.wake(Claim::parked);
        word.start();
    }
}

// Goal: the epoch has room: 2^48 waits, a million a second for nine years, and its bits do not run into the phase.
Test(TaskWord, epochs_are_wide) {
    constexpr uint64_t far = uint64_t{1} << 48;
    uint64_t bits = far << 4 | static_cast<uint64_t>(Phase::running);
    TaskWord word;
    static_assert(sizeof word == sizeof bits);
    std::memcpy(static_cast<void *>(&word), &bits, sizeof bits);
    cr_assert_eq(word.begin_park(), far + 1);
    cr_assert_eq(word.try_claim(1), Claim::lost);
    cr_assert_eq(word.publish_parked(), Publish::parked);
    cr_assert_eq(word.try_claim(far + 1), Claim::parked);
    cr_assert_eq(word.wake(Claim::parked), Wake::enqueue);
    cr_assert(is_at(word, runnable, far + 1));
}

// Goal: a wake without a claim would run a task twice: it ends the process, in every build.
Test(TaskWord, wake_without_a_claim_aborts, .signal = SIGABRT) {
    In word(parked);
    (void)word.wake(Claim::parked);
}
Test(TaskWord, wake_of_a_running_task_aborts, .signal = SIGABRT) {
    In word(running);
    (void)word.wake(Claim::parked);
}
#ifdef MC_DEBUG
Test(TaskWord, parking_twice_aborts, .signal = SIGABRT) {
    In word(parking);
    (void)word.begin_park();
}
Test(TaskWord, hand_over_without_a_claim_aborts, .signal = SIGABRT) {
    In word(parked);
    word.hand_over();
}
Test(TaskWord, publishing_twice_aborts, .signal = SIGABRT) {
    In word(parked);
    (void)word.publish_parked();
}
#endif
