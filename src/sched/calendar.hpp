// Where the timers wait that are not among the next to fire: a calendar of days, each a list of the timers that are due in
// it, in no order. To put one in or take it out touches the timer and its neighbours; who needs the order takes a whole day
// and sorts it. (Brown's calendar queue, 1988, sorts each day.)
//
// A day is 2^day_bits nanoseconds, so its number follows from a deadline. The calendar has a year of consecutive days, and a
// list's place is its day's number modulo the year. Which days these are follows from the timers and not from a clock: the
// year begins with the first day that has any, wherever that is. What does not fit is refused; the caller keeps it elsewhere.
//
// A timer in here is its own child; the first of its day is its own predecessor.
//
// Threads: whoever has the lock that its owner has for it.
//
// Rejected: coarser calendars behind this one, whose days are dealt out among finer ones when they come (each timer is
// touched once more, and thousands at a time, which makes others late); a year that goes with the clock (arming would have
// to read it, and a calendar that nobody looks at would have to be wound).
#pragma once

#include "sched/timer_node.hpp"

#include <bit>
#include <cstdint>

namespace mc::sched {

class Calendar {
public:
#if defined(MC_SYS) && MC_SYS
    static constexpr int day_bits = 2;
    static constexpr int days = 8;
#else
    static constexpr int day_bits = 21; // 2.1 milliseconds
    static constexpr int days = 2048;   // 4.3 seconds
#endif

    static int64_t day_of(int64_t deadline_ns) noexcept { return deadline_ns >> day_bits; }
    static bool holds(const Timer &timer) noexcept { return timer.child == &timer; }

    // day: of its deadline. False: that and those of others do not fit into a year.
    [[nodiscard]] bool try_put(Timer &timer, int64_t day) noexcept;
    // Its links are left as they are.
    void remove(Timer &timer) noexcept;

    bool empty() const noexcept { return used_days_ == 0; }
    // Of one that is not empty: the first day that has any.
    [[nodiscard]] int64_t first_day() noexcept;
    // All that are due on a day that has any, linked through sibling.
    [[nodiscard]] Timer *take(int64_t day) noexcept;

private:
    static constexpr int word_bits = days < 64 ? days : 64;

    static uint64_t place_of(int64_t day) noexcept { return static_cast<uint64_t>(day) % days; }
    bool has(int64_t day) const noexcept { return first_[place_of(day)] != nullptr; }
    bool make_room(int64_t day) noexcept;
    void note_used(uint64_t place) noexcept;
    void note_empty(uint64_t place) noexcept;

    uint64_t used_days_ = 0;
    // No day before from_ and none after to_ has any, and they are less than a year apart. Neither follows when the first or
    // last ones go, so what would fit is refused now and then, until the calendar is empty.
    int64_t from_ = 0;
    int64_t to_ = 0;
    uint64_t used_[days / word_bits] = {}; // a bit for each place
    Timer *first_[days] = {};
};

inline bool Calendar::try_put(Timer &timer, int64_t day) noexcept {
    if (empty())
        from_ = to_ = day;
    else if ((day < from_ || day > to_) && !make_room(day)) [[unlikely]]
        return false;
    const uint64_t place = place_of(day);
    Timer *next = first_[place];
    timer.child = timer.back = &timer;
    timer.sibling = next;
    first_[place] = &timer;
    if (next != nullptr)
        next->back = &timer;
    else
        note_used(place);
    return true;
}

// For a day before from_ or after to_.
inline bool Calendar::make_room(int64_t day) noexcept {
    if (day < from_) {
        if (to_ - day >= days)
            return false;
        from_ = day;
        return true;
    }
    if (day - from_ >= days && day - first_day() >= days)
        return false;
    to_ = day;
    return true;
}

inline int64_t Calendar::first_day() noexcept {
    while (!has(from_)) {
        // To the next one in this word, or to the next word.
        const uint64_t bit = place_of(from_) % word_bits;
        const uint64_t rest = used_[place_of(from_) / word_bits] >> bit;
        from_ += rest != 0 ? std::countr_zero(rest) : static_cast<int64_t>(word_bits - bit);
    }
    return from_;
}

inline void Calendar::note_used(uint64_t place) noexcept {
    used_[place / word_bits] |= uint64_t{1} << place % word_bits;
    ++used_days_;
}

inline void Calendar::note_empty(uint64_t place) noexcept {
    used_[place / word_bits] &= ~(uint64_t{1} << place % word_bits);
    --used_days_;
}

inline void Calendar::remove(Timer &timer) noexcept {
    Timer *next = timer.sibling;
    const bool is_first = timer.back == &timer;
    if (next != nullptr)
        next->back = is_first ? next : timer.back;
    if (!is_first) {
        timer.back->sibling = next;
        return;
    }
    const uint64_t place = place_of(day_of(timer.deadline_ns));
    first_[place] = next;
    if (next == nullptr)
        note_empty(place);
}

inline Timer *Calendar::take(int64_t day) noexcept {
    const uint64_t place = place_of(day);
    Timer *all = first_[place];
    first_[place] = nullptr;
    note_empty(place);
    return all;
}

} // namespace mc::sched
