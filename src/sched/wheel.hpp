// The scheduling wheel: where a task that has used up its quantum waits for the next one. It has 1 to 64 segments; the
// wheel stands at one of them, runs what was in it when it was turned to, one quantum each, and moves on to the next that
// is not empty.
//
//   push   puts a task so many segments forward. A whole turn forward is the segment at which the wheel stands: behind
//          what this turn still has to run there, so the task runs again one turn later.
//   take   the owner: the next of this turn. What thieves took of it is not made up for by what waits for the next turn.
//   steal  from the segment furthest away, the oldest first; from the one at which the wheel stands last.
//
// Position: segments passed, empty ones too, so a wheel that has come round since position p stands at p + segments or
// further. What goes a whole turn forward runs in the order of the pushes, with any number of segments: executors put
// nothing nearer, so all of theirs is in one segment at a time.
//
// A pinned task goes beside the others of its segment and runs after them in the same turn: thieves do not see it.
//
// One lock guards it all, and one count says whether there is something to steal: published by a sequentially consistent
// exchange, the pusher's half of the Dekker with an executor that goes to sleep, see thread_bed.hpp.
//
// Threads: take, position and set_segments, the owner; the rest, any.
//
// Rejected: a shared queue for each segment. The wheel is used once a quantum, so its lock is not contended; and who goes
// to sleep would have to look at all of them, while a segment's turn moved from one to another, in neither, is missed.
#pragma once

#include "base/spinlock.hpp"
#include "sched/task.hpp"

#include <cstdint>

namespace mc::sched {

class Wheel {
public:
    static constexpr uint32_t max_segments = 64;

    Wheel() noexcept = default;
    ~Wheel();
    Wheel(const Wheel &) = delete;
    Wheel &operator=(const Wheel &) = delete;

    // While it is empty and nobody else uses it; without it there is one. False: no memory, and nothing has changed.
    [[nodiscard]] bool set_segments(uint32_t segments) noexcept;
    uint32_t segments() const noexcept { return segments_; }

    // forward: 1 to segments().
    void push(Task *task, uint32_t forward) noexcept;
    // It has used up its quantum.
    void push(Task *task) noexcept { push(task, segments_); }
    // Null: empty, or thieves were faster.
    [[nodiscard]] Task *take() noexcept;
    // The same between turns of other work: when this turn of the segment is over the wheel moves on by one segment only, and
    // null says that nothing was there. So what is on the wheel of N segments waits for N turns of other work, if there is.
    [[nodiscard]] Task *take_from_next() noexcept;
    // Not a pinned one. Null: there is none.
    [[nodiscard]] Task *steal() noexcept;

    uint64_t position() const noexcept { return position_; }
    // Hints, cheap enough for every look.
    uint64_t size() const noexcept { return stealable_.load(sync::relaxed) + pinned_.load(sync::relaxed); }
    // Somebody who has announced that it goes to sleep: the other half of the Dekker with push.
    bool seen_nonempty() const noexcept { return stealable_.load(sync::seq_cst) != 0; }

private:
    // Linked through Task::next.
    struct Queue {
        Task *head = nullptr;
        Task *tail = nullptr;
        void push(Task *task) noexcept;
        Task *pop() noexcept;
    };
    struct Segment {
        Queue stealable;
        Queue pinned;
        bool empty() const noexcept { return stealable.head == nullptr && pinned.head == nullptr; }
    };

    Segment &at(uint64_t position) noexcept { return ring_[position % segments_]; }
    void move_on() noexcept;
    void turn_to(uint64_t position) noexcept;
    Task *take_of_turn() noexcept;
    Task *pop_stealable(Segment &segment) noexcept;

    // immutable after set_segments
    Segment single_; // so that one segment needs no memory of its own
    Segment *ring_ = &single_;
    uint32_t segments_ = 1;

    base::Spinlock lock_;
    // guarded by lock_, and written by the owner, who reads it without
    uint64_t position_ = 0;
    // guarded by lock_
    Segment turn_; // what this turn still has to run
    // written under lock_, read by any thread
    sync::atomic<uint64_t> stealable_{0};
    sync::atomic<uint64_t> pinned_{0};
};

} // namespace mc::sched
