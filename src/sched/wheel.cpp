#include "sched/wheel.hpp"

#include "base/alloc.hpp"
#include "base/assert.hpp"

#include <new>

namespace mc::sched {

void Wheel::Queue::push(Task *task) noexcept {
    task->next = nullptr;
    (head == nullptr ? head : tail->next) = task;
    tail = task;
}

Task *Wheel::Queue::pop() noexcept {
    Task *task = head;
    if (task != nullptr)
        head = task->next;
    return task;
}

Wheel::~Wheel() {
    if (ring_ != &single_)
        base::deallocate_array(ring_, segments_);
}

bool Wheel::set_segments(uint32_t segments) noexcept {
    MC_INVARIANT(size() == 0 && segments >= 1 && segments <= max_segments, segments);
    if (segments == segments_)
        return true;
    auto *ring = segments == 1 ? &single_ : base::allocate_array<Segment>(segments);
    if (ring == nullptr)
        return false;
    for (uint32_t i = 0; i < segments; ++i)
        new (&ring[i]) Segment;
    if (ring_ != &single_)
        base::deallocate_array(ring_, segments_);
    ring_ = ring;
    segments_ = segments;
    return true;
}

void Wheel::push(Task *task, uint32_t forward) noexcept {
    MC_DEBUG_INVARIANT(forward >= 1 && forward <= segments_, forward);
    base::SpinGuard guard(lock_);
    Segment &segment = at(position_ + forward);
    if (task->pinned) {
        segment.pinned.push(task);
        pinned_.store(pinned_.load(sync::relaxed) + 1, sync::relaxed); // the owner's alone: no news to a sleeper
    } else {
        segment.stealable.push(task);
        (void)sync::dekker_publish(stealable_, stealable_.load(sync::relaxed) + 1);
    }
}

// Under the lock, with this turn at its end.
void Wheel::move_on() noexcept {
    for (uint32_t forward = 1; forward <= segments_; ++forward) {
        if (at(position_ + forward).empty())
            continue;
        return turn_to(position_ + forward);
    }
}

// Under the lock.
void Wheel::turn_to(uint64_t position) noexcept {
    position_ = position;
    Segment &segment = at(position);
    turn_ = segment;
    segment = Segment{};
}

// Under the lock.
Task *Wheel::pop_stealable(Segment &segment) noexcept {
    Task *task = segment.stealable.pop();
    if (task != nullptr)
        stealable_.store(stealable_.load(sync::relaxed) - 1, sync::relaxed); // less is no news to a sleeper
    return task;
}

Task *Wheel::take() noexcept {
    if (size() == 0)
        return nullptr;
    base::SpinGuard guard(lock_);
    if (turn_.empty())
        move_on();
    return take_of_turn();
}

Task *Wheel::take_from_next() noexcept {
    if (size() == 0)
        return nullptr;
    base::SpinGuard guard(lock_);
    if (turn_.empty())
        turn_to(position_ + 1);
    return take_of_turn();
}

// Under the lock.
Task *Wheel::take_of_turn() noexcept {
    if (Task *task = pop_stealable(turn_))
        return task;
    Task *task = turn_.pinned.pop();
    if (task != nullptr)
        pinned_.store(pinned_.load(sync::relaxed) - 1, sync::relaxed);
    return task;
}

Task *Wheel::steal() noexcept {
    if (stealable_.load(sync::relaxed) == 0)
        return nullptr;
    base::SpinGuard guard(lock_);
    for (uint32_t forward = segments_ - 1; forward > 0; --forward)
        if (Task *task = pop_stealable(at(position_ + forward)))
            return task;
    if (Task *task = pop_stealable(turn_))
        return task;
    return pop_stealable(at(position_));
}

} // namespace mc::sched
