#include "sched/timer.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace mc::sched {

// Both are roots. The later one becomes the first child of the earlier one.
Timer *TimerHeap::merge(Timer *a, Timer *b) noexcept {
    if (a == nullptr || b == nullptr)
        return a == nullptr ? b : a;
    if (before(*b, *a)) {
        Timer *earlier = b;
        b = a;
        a = earlier;
    }
    b->back = a;
    b->sibling = a->child;
    if (a->child != nullptr)
        a->child->back = b;
    a->child = b;
    return a;
}

// Two passes: pairs from left to right, then the results from right to left. Iterative: a list of a million siblings is
// what a million timers armed in order leave behind.
Timer *TimerHeap::merge_children(Timer *first) noexcept {
    Timer *pairs = nullptr; // linked through sibling, last pair first
    while (first != nullptr) {
        Timer *second = first->sibling;
        Timer *rest = second == nullptr ? nullptr : second->sibling;
        first->sibling = nullptr;
        if (second != nullptr)
            second->sibling = nullptr;
        Timer *pair = merge(first, second);
        pair->sibling = pairs;
        pairs = pair;
        first = rest;
    }
    Timer *root = nullptr;
    while (pairs != nullptr) {
        Timer *next_pair = pairs->sibling;
        pairs->sibling = nullptr;
        root = merge(root, pairs);
        pairs = next_pair;
    }
    return root;
}

void TimerHeap::set_root(Timer *root) noexcept {
    root_ = root;
    if (root != nullptr)
        root->back = root; // armed, and nobody's child
}

bool TimerHeap::arm(Timer &timer) noexcept {
    base::SpinGuard guard(lock_);
    MC_INVARIANT(timer.back == nullptr, timer.deadline_ns);
    // relaxed: whoever cancels has the timer from its owner, or from a lock under which it was armed.
    timer.heap.store(this, sync::relaxed);
    // Behind everything that was due at the last look, or what it overtook would starve.
    timer.deadline_ns = std::max(timer.deadline_ns, horizon_ns_);
    return put(timer);
}

// Under the lock.
bool TimerHeap::put(Timer &timer) noexcept {
    timer.order = order_++;
    armed_.store(armed() + 1, sync::relaxed);
    const int64_t day = Calendar::day_of(timer.deadline_ns);
    if (day >= far_from_ && root_ != nullptr && later_.try_put(timer, day))
        return false;
    if (!insert(timer))
        return false;
    far_from_ = day + 1; // what the heap has of later days stays there
    publish_earliest();
    return true;
}

// At the end of a change, so that nobody sees the earliest gone before the next is known.
void TimerHeap::publish_earliest() noexcept {
    earliest_.store(root_ == nullptr ? INT64_MAX : root_->deadline_ns, sync::relaxed);
}

bool TimerHeap::insert(Timer &timer) noexcept {
    timer.child = timer.sibling = nullptr;
    set_root(merge(root_, &timer));
    if (root_ == &timer) {
        grown_ = 0;
        return true;
    }
    pair_up(++grown_);
    return false;
}

// A root that is given children one after another has them merged two by two, as a binary counter carries: when it fires
// it leaves log n trees to merge, not n. With 10^5 timers that one merge would take longer than a timer may be late.
void TimerHeap::pair_up(uint64_t armed) noexcept {
    for (; armed % 2 == 0; armed /= 2) {
        Timer *first = root_->child;
        Timer *second = first == nullptr ? nullptr : first->sibling;
        if (second == nullptr)
            return; // some have been cancelled
        Timer *rest = second->sibling;
        first->sibling = second->sibling = nullptr;
        Timer *pair = merge(first, second);
        pair->sibling = rest;
        if (rest != nullptr)
            rest->back = pair;
        pair->back = root_;
        root_->child = pair;
    }
}

void TimerHeap::remove(Timer &timer) noexcept {
    Timer *children = merge_children(timer.child);
    if (root_ == &timer) {
        set_root(children);
        grown_ = 0;
        settle();
        return publish_earliest();
    }
    if (timer.back->child == &timer)
        timer.back->child = timer.sibling;
    else
        timer.back->sibling = timer.sibling;
    if (timer.sibling != nullptr)
        timer.sibling->back = timer.back;
    if (children != nullptr)
        (void)merge(root_, children);
}

// The root has gone.
void TimerHeap::settle() noexcept {
    if (root_ != nullptr && Calendar::day_of(root_->deadline_ns) < far_from_)
        return;
    if (!later_.empty() && (root_ == nullptr || Calendar::day_of(root_->deadline_ns) >= later_.first_day()))
        pour_first_day();
    if (root_ != nullptr)
        far_from_ = Calendar::day_of(root_->deadline_ns) + 1;
}

namespace {

// Nobody may have looked at these lines since the timer was armed. What holds a timer is fetched with it, as far as firing
// touches it: of a task, the lines before and after.
void fetch(const Timer *timer) noexcept {
    constexpr int line = 64;
    const char *at = reinterpret_cast<const char *>(timer);
    for (int offset = -line; offset <= 3 * line; offset += line)
        __builtin_prefetch(at + offset, 1);
}

} // namespace

void TimerHeap::pour_first_day() noexcept {
    for (Timer *timer = later_.take(later_.first_day()); timer != nullptr;) {
        Timer *next = timer->sibling;
        if (next != nullptr)
            fetch(next); // while this one is seen to
        insert(*timer);
        timer = next;
    }
}

// One that is armed, which then it is not any more.
void TimerHeap::take(Timer &timer) noexcept {
    if (Calendar::holds(timer))
        later_.remove(timer);
    else
        remove(timer);
    timer.back = nullptr;
    armed_.store(armed() - 1, sync::relaxed);
}

bool TimerHeap::cancel(Timer &timer) noexcept {
    for (;;) {
        TimerHeap *heap = timer.heap.load(sync::relaxed);
        if (heap == nullptr)
            return false; // never armed
        base::SpinGuard guard(heap->lock_);
        if (timer.heap.load(sync::relaxed) != heap)
            continue; // moved between the look and the lock
        if (timer.back == nullptr)
            return false;
        heap->take(timer);
        return true;
    }
}

void TimerHeap::move_all_to(TimerHeap &there) noexcept {
    base::SpinGuard here_guard(lock_);
    base::SpinGuard there_guard(there.lock_);
    while (root_ != nullptr) {
        Timer &timer = *root_;
        take(timer);
        timer.heap.store(&there, sync::relaxed);
        there.put(timer);
    }
}

uint32_t TimerHeap::fire_due(int64_t now_ns) noexcept {
    if (earliest() > now_ns)
        return 0;
    lock_.lock();
    horizon_ns_ = std::max(horizon_ns_, now_ns);
    const uint64_t bound = order_; // what is armed from now on stands behind, and waits for the next call
    uint32_t fired = 0;
    while (root_ != nullptr && root_->deadline_ns <= now_ns && root_->order < bound) {
        Timer &timer = *root_;
        const Timer::Action *action = timer.action;
        const uint64_t ticket = action->ticket == nullptr ? 0 : action->ticket(timer);
        take(timer);
        lock_.unlock();
        action->fire(timer, ticket, now_ns);
        ++fired;
        lock_.lock();
    }
    lock_.unlock();
    return fired;
}

} // namespace mc::sched
