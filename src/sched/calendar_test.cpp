// The calendar beside a set. That timers fire in order is in timer_test.cpp.
#include "sched/calendar.hpp"

#include "base/prng.hpp"
#include "sched/timer.hpp"
#include "testing/test.hpp"

#include <map>
#include <set>
#include <vector>

using namespace mc;
using sched::Calendar;
using sched::Timer;

namespace {

int64_t start_of(int64_t day) { return day * (int64_t{1} << Calendar::day_bits); }

bool put(Calendar &calendar, Timer &timer, int64_t day) {
    timer.deadline_ns = start_of(day);
    return calendar.try_put(timer, day);
}

std::set<Timer *> taken(Calendar &calendar, int64_t day) {
    std::set<Timer *> timers;
    for (Timer *timer = calendar.take(day); timer != nullptr; timer = timer->sibling)
        cr_assert(timers.insert(timer).second);
    return timers;
}

} // namespace

// Goal: a day is what its name says, before the beginning of time too.
Test(Calendar, days_follow_from_deadlines) {
    for (const int64_t day : {int64_t{-3}, int64_t{0}, int64_t{1}, int64_t{Calendar::days}}) {
        cr_assert_eq(Calendar::day_of(start_of(day)), day);
        cr_assert_eq(Calendar::day_of(start_of(day) - 1), day - 1);
        cr_assert_eq(Calendar::day_of(start_of(day + 1) - 1), day);
    }
}

// Goal: it takes what fits into a year with the rest, on either side, wherever its days are; it begins anew when it is empty.
Test(Calendar, has_a_year_anywhere) {
    for (const int64_t day : {int64_t{-1000}, int64_t{0}, int64_t{5}, int64_t{1} << 40}) {
        Calendar calendar;
        Timer first, later, last, refused;
        cr_assert(put(calendar, first, day));
        cr_assert_not(put(calendar, refused, day + Calendar::days));
        cr_assert_not(put(calendar, refused, day - Calendar::days));
        cr_assert(put(calendar, last, day + Calendar::days - 1));
        cr_assert_not(put(calendar, refused, day - 1));
        cr_assert(put(calendar, later, day + 1));
        calendar.remove(first);
        cr_assert(put(calendar, first, day + Calendar::days), "the year begins a day later");
        cr_assert_eq(calendar.first_day(), day + 1);
        cr_assert_eq(taken(calendar, day + 1).size(), 1u);
        cr_assert_eq(calendar.first_day(), day + Calendar::days - 1);
        calendar.remove(last);
        calendar.remove(first);
        cr_assert(calendar.empty());
        cr_assert(put(calendar, first, day - 7 * Calendar::days));
        calendar.remove(first);
        cr_assert(put(calendar, first, day + Calendar::days));
        cr_assert(put(calendar, last, day + 1), "earlier ones may come later");
        cr_assert_eq(calendar.first_day(), day + 1);
    }
}

// Goal: whatever is put in and taken out, each day has its own, and the first day is known.
Test(Calendar, random_history_matches_a_map) {
    for (uint64_t seed = 1; seed <= 20 * testing::scale(); ++seed) {
        base::Prng prng(seed);
        Calendar calendar;
        std::map<int64_t, std::set<Timer *>> model;
        std::vector<Timer> timers(64);
        std::set<Timer *> in;
        int64_t base = -3 * Calendar::days;
        for (int step = 0; step < 5'000; ++step) {
            Timer &timer = timers[prng.below(64)];
            base += prng.below(16) == 0 ? prng.below(Calendar::days / 4) : 0;
            if (in.count(&timer) == 0) {
                const int64_t day = base + prng.below(prng.below(2) == 0 ? 8 : Calendar::days + 8);
                const bool fits = model.empty() || (day - model.begin()->first < Calendar::days &&
                                                    model.rbegin()->first - day < Calendar::days);
                const bool put_in = put(calendar, timer, day);
                cr_assert(fits || !put_in);
                cr_assert(put_in || !fits || day < model.begin()->first,
                          "it may still make room for a last day that is gone");
                if (put_in) {
                    cr_assert(Calendar::holds(timer));
                    model[day].insert(&timer);
                    in.insert(&timer);
                }
            } else if (prng.below(8) == 0) {
                const int64_t day = calendar.first_day();
                cr_assert_eq(day, model.begin()->first);
                const std::set<Timer *> all = taken(calendar, day);
                cr_assert(all == model.begin()->second);
                for (Timer *each : all)
                    in.erase(each);
                model.erase(model.begin());
            } else {
                const int64_t day = Calendar::day_of(timer.deadline_ns);
                calendar.remove(timer);
                in.erase(&timer);
                model[day].erase(&timer);
                if (model[day].empty())
                    model.erase(day);
            }
            cr_assert_eq(calendar.empty(), model.empty());
            if (!model.empty() && prng.below(4) == 0)
                cr_assert_eq(calendar.first_day(), model.begin()->first);
        }
    }
}
