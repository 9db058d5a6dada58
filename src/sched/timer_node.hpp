// A timer: what is armed, fires once and may be armed again. A base of what it belongs to (a task, a channel's sender), so that
// arming allocates nothing. See timer.hpp.
#pragma once

#include "base/sync.hpp"

#include <cstdint>

namespace mc::sched {

class TimerHeap;

struct Timer {
    // What happens: ticket is what ticket(timer) returned under the heap's lock, when the timer was taken.
    struct Action {
        uint64_t (*ticket)(Timer &);
        void (*fire)(Timer &, uint64_t ticket, int64_t now_ns);
    };

    // immutable while armed
    const Action *action = nullptr;
    // any thread: the heap that it was armed in last; changes under the locks of the old heap and the new one
    sync::atomic<TimerHeap *> heap{nullptr};
    // guarded by the heap's lock
    uint64_t order = 0;
    // What a merge looks at, side by side. immutable while armed
    int64_t deadline_ns = INT64_MAX;
    // guarded by the heap's lock; in the heap, or (calendar.hpp) in the calendar
    Timer *child = nullptr;   // the first of those that fire later; in the calendar itself
    Timer *sibling = nullptr; // the next one
    // The sibling before, or the parent of a first child. Itself: the root, or the first of its day. Null: not armed.
    Timer *back = nullptr;
};

} // namespace mc::sched
