// Whom a pending request belongs to, and thus where its answer goes: a machine, a task that waits, or a completion
// queue. A plain value of three words, kept by whatever holds the request: an operation's extension, a row of a table of
// pending requests.
//
//   kind      the answer goes                        how
//   none      nowhere: answered, or never asked
//   machine   into a machine's mailbox               the runtime is looked up live, the reply carries the pending id
//   waker     to a task that waits at `epoch`        TaskWord::try_claim(epoch), then the result, then wake
//   token     into a completion queue, as a          the queue is looked up by its handle
//             completion with that token
//
// Threads: whoever holds it. It is no lock and decides no race.
//
// Who may end a request: its answer, its deadline, a cancel, a stop of either side. Exactly one does, in two steps:
//   1. The holder gives the owner away once. An operation's by begin_complete or accept, whose one winner takes it; a
//      row's by take(), under the lock that guards the row. Who finds none has come too late and does nothing.
//   2. The owner may be gone meanwhile, and says so. A task: the claim is lost, since the wait's own deadline or scope
//      was first; the task has gone on, and the answer is dropped. A machine or a queue: it is not found any more (or
//      the machine does not run); the answer is dropped, or a dead letter.
// A waker is not ended by the claim alone: without step 1 a late answer could claim for a wait that another answer has
// already been written for.
//
// Rejected: two words with the kind in spare bits of a pointer (a machine needs three values, and a tagged pointer hides
// its object from leak checkers). A virtual class (rows are copied as bytes when a table grows).
#pragma once

#include "base/assert.hpp"

#include <mc/op.h>

#include <cstdint>
#include <type_traits>

namespace mc::sched {

struct Task;

class Pending {
public:
    enum class Kind : uint32_t { none = 0, machine = 1, waker = 2, token = 3 };

    struct Machine {
        uint64_t runtime;    // a reference that is looked up before use: an address as a number, or a handle
        uint64_t pending_id; // what the reply answers
        uint32_t id;
    };
    struct Waker {
        Task *task; // in its slab for ever, so the claim may always be tried
        uint64_t epoch;
    };
    struct Token {
        uint64_t queue; // a handle
        uint64_t token; // the program's own word
    };

    Pending() noexcept = default;
    static Pending of_machine(uint64_t runtime, uint32_t id, uint64_t pending_id) noexcept {
        return {runtime, pending_id, Kind::machine, id};
    }
    static Pending of_waker(Task *task, uint64_t epoch) noexcept {
        return {reinterpret_cast<uintptr_t>(task), epoch, Kind::waker, 0};
    }
    static Pending of_token(uint64_t queue, uint64_t token) noexcept { return {queue, token, Kind::token, 0}; }

    Kind kind() const noexcept { return kind_; }
    Machine machine() const noexcept {
        MC_INVARIANT(kind_ == Kind::machine, kind_);
        return {first_, second_, machine_id_};
    }
    Waker waker() const noexcept {
        MC_INVARIANT(kind_ == Kind::waker, kind_);
        return {reinterpret_cast<Task *>(static_cast<uintptr_t>(first_)), second_};
    }
    Token token() const noexcept {
        MC_INVARIANT(kind_ == Kind::token, kind_);
        return {first_, second_};
    }

    // Step 1 of ending it: what was here, and from now on none. Under the lock that guards this value.
    [[nodiscard]] Pending take() noexcept {
        const Pending taken = *this;
        *this = Pending{};
        return taken;
    }

    bool operator==(const Pending &) const noexcept = default;

private:
    Pending(uint64_t first, uint64_t second, Kind kind, uint32_t machine_id) noexcept
        : first_(first), second_(second), kind_(kind), machine_id_(machine_id) {}

    // immutable until the value is taken or overwritten; unused ones are 0
    uint64_t first_ = 0;  // runtime, task or queue
    uint64_t second_ = 0; // pending id, epoch or token
    Kind kind_ = Kind::none;
    uint32_t machine_id_ = 0;
};

static_assert(sizeof(Pending) == 24 && alignof(Pending) == 8);
static_assert(std::is_trivially_copyable_v<Pending> && std::is_standard_layout_v<Pending>);
static_assert(std::has_unique_object_representations_v<Pending>);

// How a completed operation looks in a completion queue. Before finish().
inline mc_completion completion_of(const mc_op &op) noexcept { return {op.user, op.value, op.result, op.kind, op.id}; }

// How any other request of a token's owner does.
inline mc_completion completion_of(const Pending &owner, uint32_t kind, int32_t status, int64_t value,
                                   uint64_t data) noexcept {
    return {owner.token().token, value, status, kind, data};
}

} // namespace mc::sched
