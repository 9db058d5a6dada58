// The task word under every interleaving: one parker, two or three wakers that each want to end its wait. What stands
// for the task's stack and for the waker's message is plain data, so that a missing order is seen as a race. On real
// threads in other builds.
#include "sched/task_word.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::TaskWord;
using testing::check;
using testing::Data;
using testing::Thread;
using Claim = TaskWord::Claim;
using Wake = TaskWord::Wake;
using Publish = TaskWord::Publish;

namespace {

// A task, and what a wait of it is registered with.
struct Task {
    explicit Task(int waits) : waits_left(waits) {
        testing::label(&word, "word");
        testing::label(&done, "done");
        word.make_runnable();
    }

    TaskWord word;
    sync::atomic<uint64_t> registered{0}; // the epoch of the wait, published as by a lock; 0: none
    Data<int> frame{0};                   // the task's stack: whoever runs it writes it
    Data<int> message{0};                 // written by the holder of the claim
    int waits_left;                       // these two: by whoever runs the task
    bool has_waited = false;
    sync::atomic<uint32_t> running{0};
    sync::atomic<uint32_t> granted{0};
    sync::atomic<uint32_t> resumed{0};
    sync::atomic<uint32_t> done{0};

    // Runs the task on the calling thread, its executor, until it waits and somebody else has to resume it, or it ends.
    void run() {
        for (;;) {
            word.start();
            check(running.exchange(1, sync::relaxed) == 0, "the task runs twice at once");
            frame.set(frame.get() + 1);
            if (has_waited) {
                resumed.fetch_add(1, sync::relaxed);
                check(message.get() == 1, "woken before the message was there");
                message.set(0);
            }
            if (waits_left-- == 0) {
                running.store(0, sync::relaxed);
                word.retire();
                done.store(1, sync::release);
                return;
            }
            if (!wait())
                return;
        }
    }

    // True: woken while it was parking, so we go on with it.
    bool wait() {
        const uint64_t epoch = word.begin_park();
        has_waited = true;
        running.store(0, sync::relaxed);
        registered.store(epoch, sync::release);
        frame.set(frame.get() + 1); // the switch is still saving registers
        return word.publish_parked() == Publish::requeue;
    }

    // A waker: ends one wait, if it wins. Whoever has to enqueue the task is the executor that runs it here.
    void wake_one() {
        const uint64_t epoch = registered.load(sync::acquire);
        const Claim claim = epoch == 0 ? Claim::lost : word.try_claim(epoch);
        if (claim == Claim::lost)
            return;
        granted.fetch_add(1, sync::relaxed);
        check(message.get() == 0, "two wakers hold the claim");
        message.set(1);
        if (word.wake(claim) == Wake::enqueue)
            run();
    }
};

// Wakers try until the task is done, so every wait ends.
void race(int wakers, int waits) {
    Task task(waits);
    const auto wake = [&] {
        while (task.done.load(sync::acquire) == 0) {
            task.wake_one();
            sync::thread_yield();
        }
    };
    {
        Thread parker([&] { task.run(); }, "parker");
        Thread peer(wake, "peer");
        if (wakers > 1) {
            Thread timer(wake, "timer");
            if (wakers > 2) {
                Thread scope(wake, "scope");
            }
        }
    }
    check(task.granted.load(sync::relaxed) == static_cast<uint32_t>(waits), "not one claim a wait");
    check(task.resumed.load(sync::relaxed) == static_cast<uint32_t>(waits), "not resumed once a wait");
}

// Each waker tries once: all, or all but one, come too early or too late. Fewer steps than race().
void race_once(int wakers) {
    Task task(1);
    {
        Thread parker([&] { task.run(); }, "parker");
        Thread peer([&] { task.wake_one(); }, "peer");
        Thread timer([&] { task.wake_one(); }, "timer");
        if (wakers > 2) {
            Thread scope([&] { task.wake_one(); }, "scope");
        }
    }
    check(task.granted.load(sync::relaxed) <= 1, "two claims of one wait");
    check(task.resumed.load(sync::relaxed) == task.granted.load(sync::relaxed), "not resumed once a claim");
    check(task.done.load(sync::relaxed) == task.granted.load(sync::relaxed), "the task has not gone on");
}

} // namespace

// Goal: of two wakers at most one wins; the task goes on once, with the message, and never before it has left its
// stack.
Test(TaskWordSys, one_of_two_wakers_wins) {
    testing::expect_pass({.name = "TaskWordSys/one_of_two_wakers_wins", .preemptions = 3, .stale = 1},
                         [] { race_once(2); });
}

// Goal: the same with three.
Test(TaskWordSys, one_of_three_wakers_wins) {
    testing::expect_pass({.name = "TaskWordSys/one_of_three_wakers_wins", .stale = 1, .spurious = 0},
                         [] { race_once(3); });
}

// Goal: over several waits, a waker with the epoch of an older one never ends a newer one, and no wait is left out.
Test(TaskWordSys, waits_follow_each_other) {
    testing::expect_pass({.name = "TaskWordSys/waits_follow_each_other", .preemptions = 1, .stale = 1},
                         [] { race(2, 2); });
    testing::expect_pass(
        {.name = "TaskWordSys/waits_follow_each_other", .search = testing::Search::seeds, .seeds = 3'000},
        [] { race(3, 3); });
}

// Goal: a waker that kept the epoch of the first wait loses against the second, whichever phase that is in.
Test(TaskWordSys, stale_epochs_lose) {
    testing::expect_pass({.name = "TaskWordSys/stale_epochs_lose"}, [] {
        TaskWord word;
        word.make_runnable();
        word.start();
        const uint64_t old = word.begin_park();
        (void)word.publish_parked();
        check(word.try_claim(old) == Claim::parked, "unclaimed");
        (void)word.wake(Claim::parked);
        sync::atomic<uint32_t> won{0};
        {
            Thread late([&] { won.fetch_add(word.try_claim(old) != Claim::lost, sync::relaxed); }, "late");
            word.start();
            const uint64_t now = word.begin_park();
            check(word.publish_parked() == Publish::parked, "notified by nobody");
            check(word.try_claim(now) == Claim::parked, "the waker in time loses");
            (void)word.wake(Claim::parked);
        }
        check(won.load(sync::relaxed) == 0, "a claim with the epoch of a wait that is over");
    });
}

namespace {

struct Foreign {
    Foreign() { testing::label(&parker, "parker"); }
    TaskWord word;
    sync::atomic<uint32_t> parker{0};
    Data<int> message{0};

    // As a thread waits that has no executor.
    void wait() {
        for (;;) {
            const uint32_t seen = parker.load(sync::acquire);
            if (word.finished())
                break;
            sync::futex_wait(parker, seen, sync::no_deadline);
        }
        check(message.get() == 1, "woken before the message was there");
        message.set(2);
        word.start();
    }
    void wake(Claim claim) {
        message.set(1);
        if (word.wake(claim) == Wake::parker_requeues)
            return;
        parker.fetch_add(1, sync::release);
        sync::futex_wake(parker, 1);
    }
};

} // namespace

// Goal: a thread that waits on its parker sees the message when its word says finished, and misses no wake.
Test(TaskWordSys, foreign_threads_sleep_on_their_parker) {
    testing::expect_pass({.name = "TaskWordSys/foreign_threads_sleep_on_their_parker", .preemptions = 3}, [] {
        Foreign foreign;
        sync::atomic<uint64_t> registered{0};
        foreign.word.make_runnable();
        foreign.word.start();
        Thread waker(
            [&] {
                uint64_t epoch;
                while ((epoch = registered.load(sync::acquire)) == 0)
                    sync::thread_yield();
                const Claim claim = foreign.word.try_claim(epoch);
                check(claim != Claim::lost, "the only waker loses");
                foreign.wake(claim);
            },
            "waker");
        registered.store(foreign.word.begin_park(), sync::release);
        if (foreign.word.publish_parked() == Publish::parked)
            foreign.wait();
        else
            check(foreign.message.get() == 1, "requeued before the message was there");
    });
}
