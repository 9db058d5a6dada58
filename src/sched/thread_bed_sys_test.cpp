// The thread bed under every interleaving. The executors are threads that follow the protocol of many.cpp with one
// source of work, a counter: search, run (the last searcher has a successor woken), lie down, look again, sleep, get up.
// Pieces of work wait for each other, so that whoever is not woken shows as a deadlock. On real threads in other builds.
#include "sched/thread_bed.hpp"

#include "sched/wake_word.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

#include <memory>

using namespace mc;
using namespace mc::sched;
using testing::check;
using testing::Search;
using testing::Thread;

namespace {

constexpr uint32_t most = 3;

// A word that counts up, and whoever waits until it has come so far.
struct Counter {
    sync::atomic<uint32_t> count{0};
    void add() {
        (void)count.fetch_add(1, sync::acq_rel);
        sync::futex_wake(count, INT32_MAX);
    }
    void wait_for(uint32_t wanted) {
        for (uint32_t seen = 0; (seen = count.load(sync::acquire)) < wanted;)
            (void)sync::futex_wait(count, seen, sync::no_deadline);
    }
};

struct World {
    const uint32_t live;
    const bool timers_armed;      // somebody's, due in an age
    sync::atomic<uint32_t> count; // what the bed reads of live
    ThreadBed bed{count};
    Sleeper sleepers[most];
    WakeWord words[most];
    sync::atomic<uint32_t> work{0};
    sync::atomic<uint32_t> sent{0}; // to the first executor, which alone takes it
    sync::atomic<uint32_t> stopping{0};
    sync::atomic<uint32_t> sentries{0};
    Counter taken;         // pieces of work
    Counter done;          // likewise
    Counter asleep;        // how often somebody has lain down and found nothing
    Counter watched;       // how often a sentry has seen a piece run
    bool sends = false;    // one piece more, to the first executor
    uint32_t meet = 0;     // each piece waits until so many have been taken: that many executors must be up at once
    bool hog = false;      // each piece waits until a sentry has seen it
    bool restless = false; // all get up by themselves again and again, within a period

    explicit World(uint32_t n, bool timers = false) : live(n), timers_armed(timers), count(n) {
        for (uint32_t i = 0; i < n; ++i)
            sleepers[i].executor = name(i);
    }
    // The bed looks into no executor: a name will do.
    static Executor *name(uint32_t i) { return reinterpret_cast<Executor *>(uintptr_t{64} * (i + 1)); }
    void wake(const Executor *executor) {
        if (executor != nullptr)
            words[reinterpret_cast<uintptr_t>(executor) / 64 - 1].wake();
    }

    void notify() { wake(bed.work_is_available()); }
    void publish() {
        (void)work.fetch_add(1, sync::seq_cst);
        notify();
    }
    void send() {
        (void)sent.exchange(1, sync::acq_rel);
        words[0].wake();
    }
    void stop() {
        (void)sync::dekker_publish(stopping, 1u);
        for (uint32_t i = 0; i < live; ++i)
            words[i].wake();
    }
    bool take() {
        uint32_t seen = work.load(sync::relaxed);
        while (seen != 0)
            if (work.compare_exchange_strong(seen, seen - 1, sync::acq_rel, sync::relaxed))
                return true;
        return false;
    }

    void run(Sleeper &me, bool &got_up) {
        if (me.searching && bed.leave_search(me))
            notify();
        if (got_up) {
            got_up = false;
            wake(bed.missing_sentry(sync::now_ns()));
        }
        taken.add();
        taken.wait_for(meet);
        if (hog)
            watched.wait_for(1);
        done.add();
    }

    int64_t rest_until(const Sleeper &me) {
        if (!me.sentry)
            return restless ? sync::now_ns() + me.period_ns / 2 : sync::no_deadline;
        const int64_t soon = sync::now_ns() + me.period_ns;
        const int64_t until = bed.counts().sleeping < live ? soon : sync::no_deadline;
        return bed.announce_sentry_sleep(until) ? soon : until;
    }

    void rest(uint32_t i) {
        Sleeper &me = sleepers[i];
        bed.lie_down(me, timers_armed);
        const bool is_sentry = me.sentry; // it may become one in its sleep
        if (is_sentry)
            check(sentries.fetch_add(1, sync::relaxed) == 0, "two sentries");
        if (work.load(sync::seq_cst) == 0) {
            asleep.add();
            const int64_t until = rest_until(me);
            ThreadBed::note_sleep(me, until);
            if (words[i].announce())
                words[i].sleep(until);
        } else {
            sync::cpu_relax(); // somebody who searches is about to take it
        }
        if (is_sentry)
            (void)sentries.fetch_sub(1, sync::relaxed);
        const bool was_sentry = bed.get_up(me, sync::now_ns());
        check(!me.sentry, "up, and a sentry");
        if (was_sentry && !me.searching && taken.count.load(sync::acquire) != done.count.load(sync::acquire))
            watched.add();
    }

    void live_on(uint32_t i) {
        Sleeper &me = sleepers[i];
        bool got_up = false;
        while (stopping.load(sync::acquire) == 0) {
            const bool is_ours = i == 0 && sent.load(sync::relaxed) != 0 && sent.exchange(0, sync::acquire) != 0;
            if (is_ours || (bed.try_search(me, live) && take())) {
                run(me, got_up);
                continue;
            }
            rest(i);
            got_up = true;
        }
        if (me.searching)
            (void)bed.leave_search(me);
    }

    // Publishes so many pieces, and stops when `all` (others publish too) are done.
    void drive(uint32_t pieces, uint32_t all, bool when_all_sleep) {
        Thread first([&] { live_on(0); }, "first");
        Thread second([&] { live_on(1); }, "second");
        {
            std::unique_ptr<Thread> third;
            if (live == 3)
                third = std::make_unique<Thread>([&] { live_on(2); }, "third");
            if (when_all_sleep)
                asleep.wait_for(live);
            if (sends)
                send();
            for (uint32_t i = 0; i < pieces; ++i)
                publish();
            done.wait_for(all);
            stop();
        }
        first.join();
        second.join();
        check(bed.counts().sleeping == 0 && bed.counts().searching == 0, "somebody is still counted");
        check(work.load(sync::relaxed) == 0, "work is left");
    }
};

} // namespace

// Goal: one piece of work against two executors that go to sleep: one of them takes it.
Test(ThreadBedSys, work_is_not_stranded, .timeout = 120) {
    testing::expect_pass({.name = "ThreadBedSys/work_is_not_stranded", .timeouts = 0, .spurious = 0}, [] {
        World world(2);
        world.drive(1, 1, false);
    });
}

// Goal: two pieces that need two executors at once: a second one is woken, by the publisher or by the searcher that has
// found the first.
Test(ThreadBedSys, a_successor_is_woken, .timeout = 120) {
    const auto body = [](bool when_all_sleep) {
        World world(2);
        world.meet = 2;
        world.drive(2, 2, when_all_sleep);
    };
    testing::expect_pass({.name = "ThreadBedSys/a_successor_is_woken", .search = Search::seeds, .seeds = 15'000},
                         [&] { body(false); });
    testing::expect_pass({.name = "ThreadBedSys/a_successor_is_woken", .search = Search::seeds, .seeds = 15'000},
                         [&] { body(true); });
}

// Goal: three pieces for three executors, published by one of two threads: all are woken in the end.
Test(ThreadBedSys, three_are_woken, .timeout = 120) {
    testing::expect_pass({.name = "ThreadBedSys/three_are_woken", .search = Search::seeds, .seeds = 15'000}, [] {
        World world(3);
        world.meet = 3;
        Thread other([&] { world.publish(); }, "other");
        world.drive(2, 3, false);
    });
}

// Goal: a piece that keeps its executor is seen by a sentry within its period: when all slept for ever, when all slept
// and the sentry would sleep for an age, and when nobody had slept yet.
Test(ThreadBedSys, who_hogs_is_watched, .timeout = 120) {
    for (const bool timers : {false, true})
        for (const bool when_all_sleep : {false, true})
            testing::expect_pass({.name = "ThreadBedSys/who_hogs_is_watched", .search = Search::seeds, .seeds = 8'000},
                                 [=] {
                                     World world(2, timers);
                                     world.hog = true;
                                     world.drive(1, 1, when_all_sleep);
                                 });
}

// Goal: likewise where all get up by themselves all the time, and leave each other the watch.
Test(ThreadBedSys, the_restless_watch, .timeout = 120) {
    testing::expect_pass({.name = "ThreadBedSys/the_restless_watch", .search = Search::seeds, .seeds = 8'000}, [] {
        World world(2, true);
        world.hog = true;
        world.restless = true;
        world.drive(1, 1, true);
    });
}

// Goal: likewise for a piece that was sent to one executor, which so does not search and has no successor.
Test(ThreadBedSys, who_hogs_what_was_sent_is_watched, .timeout = 120) {
    for (const bool timers : {false, true})
        testing::expect_pass(
            {.name = "ThreadBedSys/who_hogs_what_was_sent_is_watched", .search = Search::seeds, .seeds = 8'000}, [=] {
                World world(2, timers);
                world.hog = true;
                world.sends = true;
                world.drive(0, 1, true);
            });
}

// Goal: a stop ends all sleeps, whatever they wait for.
Test(ThreadBedSys, a_stop_wakes_all, .timeout = 120) {
    testing::expect_pass({.name = "ThreadBedSys/a_stop_wakes_all", .timeouts = 0, .spurious = 0}, [] {
        World world(2, true);
        world.drive(0, 0, false);
    });
}

// Goal: of two who make work available at once, one wakes a sleeper; that one searches for both.
Test(ThreadBedSys, two_publishers_wake_one) {
    testing::expect_pass({.name = "ThreadBedSys/two_publishers_wake_one"}, [] {
        World world(2);
        world.bed.lie_down(world.sleepers[0], false);
        world.bed.lie_down(world.sleepers[1], false);
        sync::atomic<uint32_t> woken{0};
        const auto publish = [&] {
            (void)world.work.fetch_add(1, sync::seq_cst);
            if (world.bed.work_is_available() != nullptr)
                (void)woken.fetch_add(1, sync::relaxed);
        };
        Thread other(publish, "other");
        publish();
        other.join();
        check(woken.load(sync::relaxed) == 1, "%u woken", woken.load(sync::relaxed));
        check(world.bed.counts().sleeping == 1 && world.bed.counts().searching == 1, "miscounted");
    });
}

// Goal: who gets up by itself while it is woken does so once, and knows that it is counted as searching.
Test(ThreadBedSys, woken_while_getting_up) {
    testing::expect_pass({.name = "ThreadBedSys/woken_while_getting_up"}, [] {
        World world(2);
        Sleeper &me = world.sleepers[0];
        world.bed.lie_down(me, false);
        bool woken = false;
        Thread waker([&] { woken = world.bed.work_is_available() != nullptr; }, "waker");
        world.bed.get_up(me, 0);
        waker.join();
        check(me.searching == woken, "searching %d, woken %d", me.searching, woken);
        if (me.searching)
            check(world.bed.leave_search(me), "not the last");
        check(world.bed.counts().sleeping == 0 && world.bed.counts().searching == 0, "miscounted");
    });
}

// Goal: a sentry that lies down for long and somebody who gets up and finds work: one of the two sees the other. No
// clock: now is 0.
Test(ThreadBedSys, the_sentry_sees_who_is_up_or_is_woken) {
    for (const bool woken : {false, true})
        testing::expect_pass({.name = "ThreadBedSys/the_sentry_sees_who_is_up_or_is_woken"}, [woken] {
            World world(2, true);
            world.bed.lie_down(world.sleepers[1], false); // sentry, since the other one is up
            world.bed.lie_down(world.sleepers[0], false); // not
            bool short_sleep = false;
            bool told = false;
            Thread sentry([&] { short_sleep = world.bed.announce_sentry_sleep(INT64_MAX); }, "sentry");
            if (woken)
                check(world.bed.work_is_available() == World::name(0), "another one");
            world.bed.get_up(world.sleepers[0], 0);
            told = world.bed.missing_sentry(0) == World::name(1);
            sentry.join();
            check(short_sleep || told, "nobody watches");
        });
}

// Goal: the sentry gets up and finds work, while the other one lies down, to sleep for ever or not for long: that one watches, or
// is told. No clock: now is 0.
Test(ThreadBedSys, the_watch_is_left_to_who_gets_up_soon) {
    for (const int64_t until : {sentry_period_ns, INT64_MAX})
        testing::expect_pass({.name = "ThreadBedSys/the_watch_is_left_to_who_gets_up_soon"}, [until] {
            World world(2, true);
            Sleeper &me = world.sleepers[0];
            world.bed.lie_down(world.sleepers[1], false); // sentry
            bool watches = false;
            Thread other(
                [&] {
                    world.bed.lie_down(me, false);
                    watches = me.sentry;
                    if (watches)
                        (void)world.bed.announce_sentry_sleep(until);
                    ThreadBed::note_sleep(me, until);
                },
                "other");
            check(world.bed.get_up(world.sleepers[1], 0), "was not sentry");
            const bool told = world.bed.missing_sentry(0) == World::name(0);
            other.join();
            const bool up = world.bed.get_up(me, 0); // by itself, or told
            check(watches || up || told, "nobody watches");
            check(until != INT64_MAX || watches || told, "the watch was left to who sleeps for ever");
        });
}

// Goal: an executor that is new, and finds work at once, while the only other one lies down, or is sentry already and
// lies down for long: one of the two sees the other. No clock: now is 0.
Test(ThreadBedSys, who_is_new_is_watched) {
    for (const bool sentry : {false, true})
        testing::expect_pass({.name = "ThreadBedSys/who_is_new_is_watched"}, [sentry] {
            World world(2, true);
            world.count.store(1, sync::relaxed);
            Sleeper &me = world.sleepers[0];
            if (sentry)
                world.bed.lie_down(me, true);
            check(me.sentry == sentry, "the wrong one watches");
            bool watches = false;
            Thread sleeps(
                [&] {
                    if (!sentry)
                        world.bed.lie_down(me, false);
                    watches = me.sentry && world.bed.announce_sentry_sleep(INT64_MAX);
                },
                "sleeps");
            (void)world.count.fetch_add(1, sync::seq_cst);
            const bool told = world.bed.missing_sentry(0) == World::name(0);
            sleeps.join();
            check(watches || told, "nobody watches");
        });
}
