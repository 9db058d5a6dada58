// The state word of an operation (mc_op in mc/op.h): where it is between its initiator and its destination, who may
// end it, and when its memory goes back. Any thread, as each transition says.
//
//   63          16  9..15   8       7    6             5..3        2..0
//   | generation  | 0     | WRITING | BELL | CANCEL_LINKED | first cause | phase |
//
// The generation counts the operation's lives: a cancel, ring or completion that is meant for an earlier one finds
// another generation and does nothing. CANCEL_REQ of an operation is a first cause other than none.
//
//   phase       transition         who                                  to
//   idle        submit             the initiator, then it pushes the op submitted
//   submitted   request_cancel     anybody                              submitted, cause
//               accept             the destination, which took it out   active; with a cause: completing, WRITING
//   active      request_cancel     anybody, who then pushes the cancel  active, cause, CANCEL_LINKED
//               ring               a producer; if it was clear it       active, BELL
//                                  pushes the bell
//               begin_complete     any that may end it; one wins        completing, WRITING
//   completing  settle             the winner, the result is written    completing, - WRITING
//   (or active) unlink_cancel      the destination, done with a cancel  same phase, - CANCEL_LINKED
//               clear_bell         the source, which took the bell out  same phase, - BELL
//   completing  finish             who touches the op last              done
//   done        reuse              the initiator                        idle, generation + 1, nothing else
//
// Exactly one completes: completing is entered by one CAS, from active or by the destination's accept.
// Exactly one delivers, and not before everybody has let go: WRITING, CANCEL_LINKED and BELL are three holds on the
// memory. None is set in completing, so the last of them to go, by a read-modify-write of the one word, goes once; who
// clears it is told to deliver. After the delivery nobody but the initiator touches the operation.
// So a cancel link or a bell that waits in a queue is always that of an operation whose memory is there, and what was
// rung before the completion is read before it. Who was told to push and finds the queue closed lets go himself.
//
// An operation that is passed on from queue to queue stays submitted; only who works on it accepts. A cancel does not
// reach into a queue: it waits for the operation to arrive.
//
// Callers of request_cancel, ring and begin_complete see to it that the memory is an operation during the call (they are
// the initiator, the destination, or hold something that the delivery waits for). The generation guards against its
// reuse, not against its end.
//
// Rejected: a fetch_or for CANCEL_REQ (the cause and the link would need a second step, in which the operation may be
// delivered and gone). A flag beside the word for the bell (ring and completion would not exclude each other). Writing
// the result before the CAS to completing (two that race for it would both write).
#pragma once

#include "base/assert.hpp"
#include "base/sync.hpp"

#include <mc/op.h>

#include <cstdint>
#include <type_traits>

namespace mc::sched {

enum class OpPhase : uint32_t {
    idle = MC_OP_PHASE_IDLE,
    submitted = MC_OP_PHASE_SUBMITTED,
    active = MC_OP_PHASE_ACTIVE,
    completing = MC_OP_PHASE_COMPLETING,
    done = MC_OP_PHASE_DONE
};

enum class OpCause : uint32_t {
    none = MC_OP_CAUSE_NONE,
    cancel = MC_OP_CAUSE_CANCEL,
    deadline = MC_OP_CAUSE_DEADLINE,
    close = MC_OP_CAUSE_CLOSE,
    shutdown = MC_OP_CAUSE_SHUTDOWN
};

// The result of an operation that ends for a cause.
inline int32_t status_of(OpCause cause) noexcept {
    switch (cause) {
    case OpCause::none:
        return MC_OK;
    case OpCause::cancel:
        return MC_E_CANCELED;
    case OpCause::deadline:
        return MC_E_TIMEDOUT;
    case OpCause::close:
        return MC_E_CLOSED;
    case OpCause::shutdown:
        return MC_E_SHUTDOWN;
    }
    MC_INVARIANT(false, cause);
    return MC_E_CANCELED;
}

class OpWord {
public:
    enum class Accept : uint32_t { runs, completes };
    enum class Cancel : uint32_t { too_late, already, on_arrival, push };
    enum class Ring : uint32_t { ended, rung, push };
    enum class Release : uint32_t { held, deliver };

    // The initiator, before it pushes the operation. False: it is not idle, and nothing has changed.
    [[nodiscard]] bool submit() noexcept {
        const uint64_t word = word_.load(sync::relaxed);
        if (phase_of(word) != OpPhase::idle)
            return false;
        // relaxed: the push publishes the operation with its word. A plain store is enough: nobody else changes the
        // word of an idle operation.
        word_.store(with(word, OpPhase::submitted), sync::relaxed);
        return true;
    }

    // The destination, once it has taken the operation out of its queue and knows the route. runs: work on it.
    // completes: a cancel came first; the caller has won the completion, as by begin_complete.
    [[nodiscard]] Accept accept() noexcept {
        uint64_t word = word_.load(sync::relaxed);
        for (;;) {
            MC_INVARIANT(phase_of(word) == OpPhase::submitted, word);
            const bool cancelled = cause_of(word) != OpCause::none;
            const uint64_t accepted = cancelled ? won(word) : with(word, OpPhase::active);
            // acq_rel: release pairs with request_cancel's acquire, which then reads the destination that routing has
            // filled in; acquire pairs with its release, why it cancels is visible.
            if (word_.compare_exchange_weak(word, accepted, sync::acq_rel, sync::relaxed))
                return cancelled ? Accept::completes : Accept::runs;
        }
    }

    // Anybody. push: the cancel link is the caller's to push to the destination; until unlink_cancel the operation is
    // not delivered. on_arrival: accept will see it. already: an earlier cause stands. too_late: it completes, has
    // completed, was not submitted, or is another one.
    [[nodiscard]] Cancel request_cancel(uint64_t generation, OpCause cause) noexcept {
        MC_DEBUG_INVARIANT(cause != OpCause::none, cause);
        uint64_t word = word_.load(sync::relaxed);
        for (;;) {
            const OpPhase phase = phase_of(word);
            if (generation_of(word) != generation || (phase != OpPhase::submitted && phase != OpPhase::active))
                return Cancel::too_late;
            if (cause_of(word) != OpCause::none)
                return Cancel::already;
            const bool links = phase == OpPhase::active;
            // The cause and the link in one: between two steps the operation could be delivered.
            const uint64_t requested = word | of(cause) | (links ? cancel_linked : 0);
            // acq_rel: acquire pairs with accept's release, release with the acquire in accept and begin_complete.
            if (word_.compare_exchange_weak(word, requested, sync::acq_rel, sync::relaxed))
                return links ? Cancel::push : Cancel::on_arrival;
        }
    }

    // Whoever may end it: the destination's work, an abort for a cancel, a deadline's timer. True: the caller alone
    // writes the result and then calls settle(). cause() no longer changes.
    [[nodiscard]] bool begin_complete(uint64_t generation) noexcept {
        uint64_t word = word_.load(sync::relaxed);
        for (;;) {
            if (generation_of(word) != generation || phase_of(word) != OpPhase::active)
                return false;
            // acquire: pairs with request_cancel's release; why it was cancelled is visible.
            if (word_.compare_exchange_weak(word, won(word), sync::acquire, sync::relaxed))
                return true;
        }
    }

    // The winner of the completion, when the result is written.
    [[nodiscard]] Release settle() noexcept { return let_go(writing); }

    // The destination, as the last thing that it does with a cancel that it has taken out of its queue.
    [[nodiscard]] Release unlink_cancel() noexcept { return let_go(cancel_linked); }

    // The source, after it has taken the bell out of its queue and before it reads what was rung for: a producer that
    // comes later pushes again. Cleared after the reading, the bell would swallow what came between.
    // deliver: the caller has the completion too; it may read first.
    [[nodiscard]] Release clear_bell() noexcept { return let_go(bell); }

    // A producer, after it has put something where the source will look. push: the bell link is the caller's to push
    // to the source. rung: it is in the queue already, and its taker will see this. ended: only the completion follows.
    [[nodiscard]] Ring ring(uint64_t generation) noexcept {
        uint64_t word = word_.load(sync::relaxed);
        for (;;) {
            if (generation_of(word) != generation || phase_of(word) != OpPhase::active)
                return Ring::ended;
            // Written also when the bell is set: a look alone could be older than the source's clear, and what was put
            // there would lie unread.
            // acq_rel: release pairs with clear_bell's acquire, which publishes what was put there; acquire pairs with
            // its release, the bell link is out of its queue.
            if (word_.compare_exchange_weak(word, word | bell, sync::acq_rel, sync::relaxed))
                return (word & bell) != 0 ? Ring::rung : Ring::push;
        }
    }

    // Who was told to deliver, or to whom it was handed, as the last touch of the operation that is not the
    // initiator's.
    void finish() noexcept {
        const uint64_t word = word_.load(sync::relaxed);
        MC_INVARIANT(is_deliverable(word), word);
        // release: pairs with the acquire in is_done and reuse. A plain store is enough: nobody else changes the word
        // of a deliverable operation.
        word_.store(with(word, OpPhase::done), sync::release);
    }

    // The initiator, also when it only polls.
    bool is_done() const noexcept {
        return phase_of(word_.load(sync::acquire)) == OpPhase::done; // acquire: pairs with finish
    }

    // The initiator: makes a done operation idle again. True: it is idle. False: it is under way; nothing has changed.
    [[nodiscard]] bool reuse() noexcept {
        const uint64_t word = word_.load(sync::acquire); // acquire: pairs with finish, as in is_done
        if (phase_of(word) != OpPhase::done)
            return phase_of(word) == OpPhase::idle;
        // relaxed: as in submit
        word_.store((generation_of(word) + 1) << generation_shift, sync::relaxed);
        return true;
    }

    // Those for whom they stand still: the generation for all who hold the operation, the cause once it completes.
    uint64_t generation() const noexcept { return generation_of(word_.load(sync::relaxed)); }
    OpCause cause() const noexcept { return cause_of(word_.load(sync::relaxed)); }

    // For inspection: out of date at once.
    uint64_t look() const noexcept { return word_.load(sync::relaxed); }
    static OpPhase phase_of(uint64_t word) noexcept { return static_cast<OpPhase>(word & phase_mask); }
    static OpCause cause_of(uint64_t word) noexcept { return static_cast<OpCause>((word >> cause_shift) & cause_mask); }
    static bool is_cancel_linked(uint64_t word) noexcept { return (word & cancel_linked) != 0; }
    static bool is_rung(uint64_t word) noexcept { return (word & bell) != 0; }
    static uint64_t generation_of(uint64_t word) noexcept { return word >> generation_shift; }
    static bool is_deliverable(uint64_t word) noexcept {
        return phase_of(word) == OpPhase::completing && (word & holds) == 0;
    }

private:
    static constexpr uint64_t phase_mask = 7, cause_mask = 7;
    static constexpr unsigned cause_shift = 3, generation_shift = 16;
    static constexpr uint64_t cancel_linked = 1 << 6, bell = 1 << 7, writing = 1 << 8;
    static constexpr uint64_t holds = cancel_linked | bell | writing;
    static_assert(MC_OP_PHASE_DONE <= phase_mask && MC_OP_CAUSE_SHUTDOWN <= cause_mask);

    static uint64_t of(OpCause cause) noexcept { return static_cast<uint64_t>(cause) << cause_shift; }
    static uint64_t with(uint64_t word, OpPhase phase) noexcept {
        return (word & ~phase_mask) | static_cast<uint64_t>(phase);
    }
    static uint64_t won(uint64_t word) noexcept { return with(word, OpPhase::completing) | writing; }

    // Lets one hold go; deliver: it was the last.
    Release let_go(uint64_t hold) noexcept {
        // acq_rel: the three pair with each other, so that who delivers comes after all that the others did with the
        // operation, the result first; and clear_bell with ring.
        const uint64_t before = word_.fetch_and(~hold, sync::acq_rel);
        MC_INVARIANT((before & hold) != 0, before);
        return is_deliverable(before & ~hold) ? Release::deliver : Release::held;
    }

    sync::atomic<uint64_t> word_{0}; // any thread
};

// An mc_op's word is a plain integer, as C has it; its address is an OpWord's.
static_assert(sizeof(sync::atomic<uint64_t>) == sizeof(uint64_t) &&
              alignof(sync::atomic<uint64_t>) == alignof(uint64_t));
static_assert(sizeof(OpWord) == sizeof(mc_op::word) && std::is_standard_layout_v<OpWord>);
static_assert(sizeof(mc_op) == 128 && alignof(mc_op) == 8 && std::is_standard_layout_v<mc_op>);
static_assert(sizeof(mc_completion) == 32 && alignof(mc_completion) == 8);

// Through void *, which warns of no aliasing: both are accessed as one and the same integer.
inline OpWord &word_of(mc_op &op) noexcept { return *static_cast<OpWord *>(static_cast<void *>(&op.word)); }

} // namespace mc::sched
