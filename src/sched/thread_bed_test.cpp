// The thread bed's two tables, row by row, by one thread. The executors are only named here: nothing of them is used.
#include "sched/thread_bed.hpp"

#include "testing/test.hpp"

using namespace mc::sched;

namespace {

struct Bed {
    static constexpr uint32_t live = 3;
    mc::sync::atomic<uint32_t> count{live};
    ThreadBed bed{count};
    Sleeper sleepers[live];

    Bed() {
        for (uint32_t i = 0; i < live; ++i)
            sleepers[i].executor = name(i);
    }
    static Executor *name(uint32_t i) { return reinterpret_cast<Executor *>(uintptr_t{64} * (i + 1)); }
    void lie_down(uint32_t i, bool timers = false) { bed.lie_down(sleepers[i], timers); }
    void expect(uint32_t sleeping, uint32_t searching) {
        cr_assert_eq(bed.counts().sleeping, sleeping);
        cr_assert_eq(bed.counts().searching, searching);
    }
};

} // namespace

// Goal: work that becomes available wakes one sleeper, the one that lay down last, and nobody while one searches.
Test(ThreadBed, work_wakes_one) {
    Bed bed;
    cr_assert_null(bed.bed.work_is_available());
    bed.lie_down(0);
    bed.lie_down(1);
    bed.expect(2, 0);
    cr_assert_eq(bed.bed.work_is_available(), Bed::name(1));
    bed.expect(1, 1);
    cr_assert_null(bed.bed.work_is_available());
    bed.bed.get_up(bed.sleepers[1], 0);
    cr_assert(bed.sleepers[1].searching);
    bed.expect(1, 1);
    cr_assert(bed.bed.leave_search(bed.sleepers[1])); // the last: a successor is due
    bed.expect(1, 0);
    cr_assert_eq(bed.bed.work_is_available(), Bed::name(0));
}

// Goal: who gets up by itself does not search; who searches and lies down counts as neither.
Test(ThreadBed, getting_up_by_oneself) {
    Bed bed;
    cr_assert(bed.bed.try_search(bed.sleepers[0], Bed::live));
    bed.expect(0, 1);
    bed.lie_down(0);
    bed.expect(1, 0);
    bed.bed.get_up(bed.sleepers[0], 0);
    cr_assert_not(bed.sleepers[0].searching);
    bed.expect(0, 0);
}

// Goal: at most half of those awake, rounded up, search.
Test(ThreadBed, half_of_those_awake_search) {
    Bed bed;
    cr_assert(bed.bed.try_search(bed.sleepers[0], Bed::live));
    cr_assert(bed.bed.try_search(bed.sleepers[0], Bed::live)); // it does already
    cr_assert(bed.bed.try_search(bed.sleepers[1], Bed::live));
    cr_assert_not(bed.bed.try_search(bed.sleepers[2], Bed::live));
    cr_assert_not(bed.bed.leave_search(bed.sleepers[0])); // not the last
    bed.lie_down(0);
    cr_assert_not(bed.bed.try_search(bed.sleepers[2], Bed::live));
}

// Goal: the sentry's table.
Test(ThreadBed, who_is_sentry) {
    for (const bool timers : {false, true}) {
        Bed bed;
        bed.lie_down(0, timers); // others awake
        cr_assert(bed.sleepers[0].sentry);
        bed.lie_down(1, timers); // there is one
        cr_assert_not(bed.sleepers[1].sentry);
        bed.bed.get_up(bed.sleepers[0], 0);
        cr_assert_not(bed.sleepers[0].sentry);
        bed.lie_down(2, timers); // another one is
        cr_assert(bed.sleepers[2].sentry);
        bed.bed.get_up(bed.sleepers[2], 0);
        bed.lie_down(2, timers);
        bed.bed.get_up(bed.sleepers[2], 0);
        bed.lie_down(0, timers);
        bed.bed.get_up(bed.sleepers[0], 0);
        bed.bed.get_up(bed.sleepers[1], 0);
    }
    for (const bool timers : {false, true}) {
        Bed bed;
        bed.lie_down(0);
        bed.lie_down(1);
        bed.bed.get_up(bed.sleepers[0], 0); // the sentry
        cr_assert_eq(bed.bed.work_is_available(), Bed::name(1));
        bed.bed.get_up(bed.sleepers[1], 0);
        cr_assert(bed.bed.leave_search(bed.sleepers[1]));
        Sleeper alone;
        alone.executor = Bed::name(9);
        mc::sync::atomic<uint32_t> one{1};
        ThreadBed empty{one};
        empty.lie_down(alone, timers); // nobody else
        cr_assert_eq(alone.sentry, timers);
    }
}

// Goal: who slept and found work has a sleeper woken when nobody is sentry, or the sentry when that sleeps for long.
Test(ThreadBed, a_sentry_is_missing) {
    Bed bed;
    cr_assert_null(bed.bed.missing_sentry(0)); // nobody sleeps
    bed.lie_down(0);                           // sentry
    cr_assert_null(bed.bed.missing_sentry(0)); // not known yet until when: it looks again itself
    cr_assert(bed.bed.announce_sentry_sleep(sentry_period_ns));
    cr_assert_null(bed.bed.missing_sentry(0));
    bed.lie_down(1);
    bed.lie_down(2);
    cr_assert_not(bed.bed.announce_sentry_sleep(INT64_MAX));
    cr_assert_eq(bed.bed.missing_sentry(0), Bed::name(0));
    bed.bed.get_up(bed.sleepers[0], 0);
    cr_assert_eq(bed.bed.missing_sentry(0), Bed::name(2)); // any sleeper
}

// Goal: a sentry that gets up leaves the watch to the sleeper that lay down last, if it is known that this one gets up soon.
Test(ThreadBed, the_watch_is_left_to_who_gets_up_soon) {
    constexpr int64_t now = 1'000'000'000;
    struct {
        bool told;
        int64_t until;
        bool inherits;
    } const rows[] = {{false, 0, false},
                      {true, now - 1, true}, // it is getting up
                      {true, now + sentry_period_ns, true},
                      {true, now + sentry_period_ns + 1, false},
                      {true, INT64_MAX, false}};
    for (const auto &row : rows) {
        Bed bed;
        bed.lie_down(0); // sentry
        bed.lie_down(1);
        ThreadBed::note_sleep(bed.sleepers[1], now); // an earlier sleep says nothing
        cr_assert_not(bed.bed.get_up(bed.sleepers[1], now));
        bed.lie_down(2);
        bed.lie_down(1);
        if (row.told)
            ThreadBed::note_sleep(bed.sleepers[1], row.until);
        cr_assert(bed.bed.get_up(bed.sleepers[0], now));
        cr_assert_not(bed.sleepers[0].sentry);
        cr_assert_eq(bed.sleepers[1].sentry, row.inherits);
        cr_assert_eq(bed.bed.missing_sentry(now) == nullptr, row.inherits);
        bed.lie_down(0);
        cr_assert_eq(bed.sleepers[0].sentry, !row.inherits, "there is one, or not");
        cr_assert_eq(bed.bed.get_up(bed.sleepers[1], now), row.inherits);
    }
}
