// The state word of a task: who may run it, who may wake it, and which of several wakers wins. Any thread.
//
//   63                          4  3         2..0
//   | epoch                      | CLAIMED | phase |
//
// The epoch counts the task's waits and is never reset, also when the task's slot is reused: a waker that comes late,
// for a wait that is over or for a task that is gone, finds another epoch and loses.
//
//   phase      who moves it on                        to
//   idle       spawn                                  runnable            (the slot is free, or the task is new)
//   runnable   the executor that dequeues it          running
//   running    the task, before it registers anywhere parking, epoch + 1
//              the task, yielding                     runnable
//              the task, ending                       idle
//   parking    the executor, after the switch away    parked              (keeps CLAIMED)
//              (with every lock held under which the wait is registered, a plain store does: see park_quietly)
//              the waker that holds the claim         notified
//   notified   the executor, after the switch away    runnable, and it requeues the task
//   parked     the waker that holds the claim         runnable, and it enqueues the task; or running, and it jumps
//                                                     to it
//
// A wait ends by a claim: one CAS that sets CLAIMED under the epoch, in parking or parked. Of peer, death, timer, scope
// and operation exactly one wins; it writes the wake reason, runs whatever must run with both parties held, then wakes.
// Nobody else touches the word of a claimed task but the executor that parks it.
//
// Why parking and parked are two: the task registers while another stack already runs, and a waker may come between
// "registered" and "its registers are saved". A word with one phase for both lets that waker resume a task that is
// still registering. Rejected: a suspended flag beside the word (two words, two orders, one of them wrong).
#pragma once

#include "base/assert.hpp"
#include "base/sync.hpp"

#include <cstdint>

namespace mc::sched {

enum class Phase : uint32_t { idle = 0, runnable = 1, running = 2, parking = 3, parked = 4, notified = 5 };

class TaskWord {
public:
    enum class Claim : uint32_t { lost, parking, parked }; // won: in which phase the task was
    enum class Wake : uint32_t { parker_requeues, enqueue };
    enum class Publish : uint32_t { parked, requeue };

    // The task itself. Returns the epoch of the wait that begins, which its registrations carry.
    uint64_t begin_park() noexcept {
        const uint64_t word = word_.load(sync::relaxed);
        MC_DEBUG_INVARIANT(phase_of(word) == Phase::running, word);
        const uint64_t epoch = epoch_of(word) + 1;
        // relaxed: a waker learns the epoch from a registration, and gets to that through the lock that guards it; a
        // waker of an older wait loses against the old value and against this one.
        word_.store(make(epoch, Phase::parking), sync::relaxed);
        return epoch;
    }

    // A waker, once: whoever wins must call wake() or hand_over().
    [[nodiscard]] Claim try_claim(uint64_t epoch) noexcept {
        uint64_t word = word_.load(sync::relaxed);
        for (;;) {
            const Phase phase = phase_of(word);
            if (epoch_of(word) != epoch || (word & claimed_bit) != 0 ||
                (phase != Phase::parking && phase != Phase::parked))
                return Claim::lost;
            // acquire: pairs with publish_parked's release, so that the winner may resume the task's stack.
            if (word_.compare_exchange_weak(word, word | claimed_bit, sync::acquire, sync::relaxed))
                return phase == Phase::parking ? Claim::parking : Claim::parked;
        }
    }

    // The holder of the claim. enqueue: the task is now runnable and the caller must put it into a queue.
    [[nodiscard]] Wake wake(Claim claim) noexcept {
        uint64_t word = word_.load(sync::relaxed);
        if (claim == Claim::parking) {
            // release: pairs with publish_parked's acquire; the wake reason and the message are in place.
            if (phase_of(word) == Phase::parking &&
                word_.compare_exchange_strong(word, with(word, Phase::notified), sync::release, sync::relaxed))
                return Wake::parker_requeues;
            // acquire, or the stack that publish_parked released is not ours to resume
            word = word_.load(sync::acquire);
        }
        MC_INVARIANT(phase_of(word) == Phase::parked && (word & claimed_bit) != 0, word);
        // A plain store is enough: a claimed, parked word has no other writer.
        // release: pairs with a foreign thread's acquire in finished().
        word_.store(make(epoch_of(word), Phase::runnable), sync::release);
        return Wake::enqueue;
    }

    // The holder of a claim in phase parked, about to jump to the task on this executor.
    void hand_over() noexcept {
        const uint64_t word = word_.load(sync::relaxed);
        MC_DEBUG_INVARIANT(phase_of(word) == Phase::parked && (word & claimed_bit) != 0, word);
        word_.store(make(epoch_of(word), Phase::running), sync::relaxed);
    }

    // The executor that switched away from the task, when everything is registered and every lock given back.
    [[nodiscard]] Publish publish_parked() noexcept {
        uint64_t word = word_.load(sync::relaxed);
        for (;;) {
            if (phase_of(word) == Phase::notified) {
                (void)word_.load(sync::acquire); // pairs with wake's release
                word_.store(make(epoch_of(word), Phase::runnable), sync::relaxed);
                return Publish::requeue;
            }
            MC_DEBUG_INVARIANT(phase_of(word) == Phase::parking, word);
            // release: pairs with try_claim and wake; the task's stack and context are complete.
            if (word_.compare_exchange_weak(word, with(word, Phase::parked), sync::release, sync::relaxed))
                return Publish::parked;
        }
    }

    // The executor that dequeued the task, or the task when a foreign thread's wait has ended.
    void start() noexcept { set_phase(Phase::running); }
    // As publish_parked, for a wait that is registered with nothing yet but what the locks guard that the caller holds
    // and is about to give back: nobody can have claimed it, so the read-modify-write is saved. Must come before that
    // unlock, or a claim between the two would be overwritten.
    void park_quietly(uint64_t epoch) noexcept { word_.store(make(epoch, Phase::parked), sync::release); }

    // The task, which stays in its queue (yield), or spawn.
    void make_runnable() noexcept { set_phase(Phase::runnable); }
    // The task's end.
    void retire() noexcept { set_phase(Phase::idle); }

    // A foreign thread that waits: true when its waker is through with it.
    bool finished() const noexcept {
        const Phase phase = phase_of(word_.load(sync::acquire)); // acquire: pairs with wake
        return phase == Phase::runnable || phase == Phase::notified;
    }

    // For inspection. The value changes with every wait, so two equal looks mean one uninterrupted state.
    uint64_t look() const noexcept { return word_.load(sync::acquire); }
    static bool is_parked_unclaimed(uint64_t word) noexcept {
        return phase_of(word) == Phase::parked && (word & claimed_bit) == 0;
    }
    // In parking or parked, in that wait, and nobody has ended it yet.
    static bool waits_unclaimed(uint64_t word, uint64_t epoch) noexcept {
        const Phase phase = phase_of(word);
        return epoch_of(word) == epoch && (word & claimed_bit) == 0 &&
               (phase == Phase::parking || phase == Phase::parked);
    }
    static Phase phase_of(uint64_t word) noexcept { return static_cast<Phase>(word & 7); }

    static uint64_t epoch_of(uint64_t word) noexcept { return word >> 4; }

private:
    static constexpr uint64_t claimed_bit = 8;

    static uint64_t make(uint64_t epoch, Phase phase) noexcept { return (epoch << 4) | static_cast<uint64_t>(phase); }
    static uint64_t with(uint64_t word, Phase phase) noexcept {
        return (word & ~uint64_t{7}) | static_cast<uint64_t>(phase);
    }

    // Phases without CLAIMED, in which only the caller writes the word.
    void set_phase(Phase phase) noexcept {
        const uint64_t word = word_.load(sync::relaxed);
        word_.store(make(epoch_of(word), phase), sync::relaxed);
    }

    sync::atomic<uint64_t> word_{0};
};

} // namespace mc::sched
