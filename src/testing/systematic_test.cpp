// The twin's own tests: that exploration finds planted concurrency bugs, that it does not find bugs in the right
// versions, and that a failing run can be repeated. The right versions run in every build (there on real threads);
// the planted bugs only in MC_SYS builds, where expect_fail() explores.
#include "testing/systematic.hpp"

#include "testing/test.hpp"

#include <stdexcept>
#include <string>

using namespace mc;
using testing::check;
using testing::Data;
using testing::expect_fail;
using testing::expect_pass;
using testing::Thread;

// --- Memory orders --------------------------------------------------------------------------------------------------

namespace {

// Store buffering: each stores its own word, then reads the other's.
void store_buffering(sync::order stores, sync::order loads) {
    sync::atomic<int> x{0}, y{0};
    testing::label(&x, "x");
    testing::label(&y, "y");
    int left = 1, right = 1;
    {
        Thread one([&] { x.store(1, stores), left = y.load(loads); }, "left");
        Thread two([&] { y.store(1, stores), right = x.load(loads); }, "right");
    }
    check(left != 0 || right != 0, "both read 0");
}

void dekker() {
    sync::atomic<int> x{0}, y{0};
    int left = 1, right = 1;
    {
        Thread one([&] { sync::dekker_publish(x, 1), left = sync::dekker_observe(y); });
        Thread two([&] { sync::dekker_publish(y, 1), right = sync::dekker_observe(x); });
    }
    check(left != 0 || right != 0, "both read 0");
}

void message_passing(sync::order publishes, sync::order looks) {
    sync::atomic<int> payload{0}, ready{0};
    Thread reader([&] {
        if (ready.load(looks) != 0)
            check(payload.load(sync::relaxed) == 7, "an old payload");
    });
    payload.store(7, sync::relaxed);
    ready.store(1, publishes);
}

void plain_message_passing(sync::order publishes, sync::order looks) {
    Data<int> payload;
    sync::atomic<int> ready{0};
    Thread reader([&] {
        if (ready.load(looks) != 0)
            check(payload.get() == 7, "an old payload");
    });
    payload.set(7);
    ready.store(1, publishes);
}

// Two writers, and two readers that see their stores in opposite orders.
void independent_reads(sync::order stores, sync::order loads) {
    sync::atomic<int> x{0}, y{0};
    int x_first = 0, y_first = 0;
    {
        Thread write_x([&] { x.store(1, stores); });
        Thread write_y([&] { y.store(1, stores); });
        Thread read_xy([&] { x_first = x.load(loads) == 1 && y.load(loads) == 0; });
        Thread read_yx([&] { y_first = y.load(loads) == 1 && x.load(loads) == 0; });
    }
    check(x_first == 0 || y_first == 0, "the two orders disagree");
}

// The payload's publication is carried on by another thread's relaxed read-modify-write; a relaxed store would break
// it.
void release_sequence(bool carried_on) {
    sync::atomic<int> payload{0}, ready{0};
    Thread middle([&] {
        if (carried_on)
            ready.fetch_add(1, sync::relaxed);
        else if (ready.load(sync::relaxed) == 1)
            ready.store(2, sync::relaxed);
    });
    Thread reader([&] {
        if (ready.load(sync::acquire) == 2)
            check(payload.load(sync::relaxed) == 7, "an old payload");
    });
    payload.store(7, sync::relaxed);
    if (carried_on)
        ready.fetch_add(1, sync::release);
    else
        ready.store(1, sync::release);
}

// What one thread learns, it passes on with its own publication.
void transitivity(sync::order looks) {
    sync::atomic<int> payload{0}, first{0}, second{0};
    Thread middle([&] {
        if (first.load(looks) != 0)
            second.store(1, sync::release);
    });
    Thread reader([&] {
        if (second.load(sync::acquire) != 0)
            check(payload.load(sync::relaxed) == 7, "an old payload");
    });
    payload.store(7, sync::relaxed);
    first.store(1, sync::release);
}

} // namespace

// Goal: the oldest bug of all, which no interleaving alone shows: it needs a store that is delayed.
Test(Twin, store_buffering_needs_seq_cst) {
    expect_fail({}, "both read 0", [] { store_buffering(sync::release, sync::acquire); });
    expect_fail({}, "both read 0", [] { store_buffering(sync::relaxed, sync::seq_cst); });
    expect_fail({}, "both read 0", [] { store_buffering(sync::seq_cst, sync::acquire); });
    const auto explored = expect_pass({}, [] { store_buffering(sync::seq_cst, sync::seq_cst); });
    cr_assert(explored.complete);
    expect_pass({}, dekker);
}

// Goal: a payload needs both a release and an acquire.
Test(Twin, message_passing_needs_release_and_acquire) {
    expect_fail({}, "an old payload", [] { message_passing(sync::relaxed, sync::acquire); });
    expect_fail({}, "an old payload", [] { message_passing(sync::release, sync::relaxed); });
    expect_pass({}, [] { message_passing(sync::release, sync::acquire); });
}

// Goal: the same for plain data, whose old values the twin cannot show, but whose lack of order it can.
Test(Twin, unordered_plain_data_is_found) {
    expect_fail({}, "data race", [] { plain_message_passing(sync::relaxed, sync::acquire); });
    expect_fail({}, "data race", [] { plain_message_passing(sync::release, sync::relaxed); });
    expect_fail({}, "data race", [] {
        Data<int> counter(0);
        Thread reader([&] { counter.get(); });
        counter.set(1);
    });
    expect_pass({}, [] { plain_message_passing(sync::release, sync::acquire); });
}

// Goal: only seq_cst gives all readers one order of independent stores.
Test(Twin, independent_reads_need_seq_cst) {
    const testing::Exploration one_preemption{.preemptions = 1};
    expect_fail(one_preemption, "orders disagree", [] { independent_reads(sync::release, sync::acquire); });
    expect_fail(one_preemption, "orders disagree", [] { independent_reads(sync::seq_cst, sync::acquire); });
    expect_pass(one_preemption, [] { independent_reads(sync::seq_cst, sync::seq_cst); });
}

// Goal: read-modify-writes carry a release on, plain stores do not.
Test(Twin, release_sequence_goes_through_rmw) {
    expect_pass({}, [] { release_sequence(true); });
    expect_fail({}, "an old payload", [] { release_sequence(false); });
}

// Goal: publications are transitive.
Test(Twin, publications_are_transitive) {
    expect_pass({}, [] { transitivity(sync::acquire); });
    expect_fail({}, "an old payload", [] { transitivity(sync::relaxed); });
}

// Goal: one word is coherent whatever the orders: nobody sees its values go back, or a store before a load of its own.
Test(Twin, a_word_never_goes_back) {
    expect_pass({.preemptions = 3, .stale = 4}, [] {
        sync::atomic<int> word{0};
        Thread reader([&] {
            int last = 0;
            for (int i = 0; i < 3; ++i) {
                const int now = word.load(sync::relaxed);
                check(now >= last, "%d after %d", now, last);
                last = now;
            }
        });
        for (int value = 1; value <= 3; ++value) {
            word.store(value, sync::relaxed);
            check(word.load(sync::relaxed) == value, "not its own store");
        }
    });
}

// --- Waiting --------------------------------------------------------------------------------------------------------

namespace {

struct Event {
    sync::atomic<uint32_t> word{0};
    sync::atomic<uint32_t> set{0};
    Event() {
        testing::label(&word, "word");
        testing::label(&set, "set");
    }
};

// The word that the sleeper compares is read before the condition is checked; or, planted, after it.
void wait_for(Event &event, bool reads_first) {
    for (;;) {
        uint32_t seen = event.word.load(sync::acquire);
        if (event.set.load(sync::acquire) != 0)
            return;
        if (!reads_first)
            seen = event.word.load(sync::acquire);
        sync::futex_wait(event.word, seen, sync::no_deadline);
    }
}

void signal(Event &event, bool wakes) {
    event.set.store(1, sync::release);
    event.word.fetch_add(1, sync::release);
    if (wakes)
        sync::futex_wake(event.word, 1);
}

void waiting(bool reads_first, bool wakes) {
    Event event;
    Thread waiter([&] { wait_for(event, reads_first); }, "waiter");
    signal(event, wakes);
}

} // namespace

// Goal: the two classic lost wake-ups are deadlocks that name who sleeps where.
Test(Twin, lost_wake_ups_are_found) {
    expect_fail({}, "'waiter' sleeps in futex_wait on word", [] { waiting(false, true); });
    expect_fail({}, "'waiter' sleeps in futex_wait on word", [] { waiting(true, false); });
    const auto explored = expect_pass({}, [] { waiting(true, true); });
    cr_assert(explored.complete);
}

// Goal: a deadline passes when nobody else can move, and the clock has then reached it.
Test(Twin, deadlines_pass) {
    expect_pass({.real_runs = 5}, [] {
        sync::atomic<uint32_t> word{0};
        const int64_t deadline = sync::now_ns() + 5'000'000;
        while (sync::futex_wait(word, 0, deadline)) {
        }
        check(sync::now_ns() >= deadline, "too early");
        check(!sync::futex_wait(word, 0, deadline), "a deadline that has passed");
    });
}

// Goal: a deadline may pass before the wake that was about to come.
Test(Twin, a_timeout_may_come_first) {
    auto body = [] {
        sync::atomic<uint32_t> word{0};
        bool woken = true;
        {
            Thread sleeper([&] { woken = sync::futex_wait(word, 0, sync::now_ns() + 1'000'000'000); });
            word.store(1, sync::release);
            sync::futex_wake(word, 1);
        }
        check(woken, "timed out");
    };
    expect_fail({}, "timed out", body);
    expect_pass({.timeouts = 0}, body);
}

// Goal: loops that wait end, whichever thread they wait for; a sleeper that all others wait for times out.
Test(Twin, waiting_loops_end) {
    expect_pass({}, [] {
        sync::atomic<int> turn{0};
        auto take_turn = [&](int mine) {
            while (turn.load(sync::acquire) != mine)
                sync::cpu_relax();
            turn.store(mine + 1, sync::release);
        };
        Thread third([&] { take_turn(2); });
        Thread second([&] { take_turn(1); });
        take_turn(0);
    });
    expect_pass({.timeouts = 0, .real_runs = 5}, [] {
        sync::atomic<uint32_t> word{0}, done{0};
        Thread sleeper([&] {
            while (sync::futex_wait(word, 0, sync::now_ns() + 2'000'000)) {
            }
            done.store(1, sync::release);
        });
        while (done.load(sync::acquire) == 0)
            sync::thread_yield();
    });
}

// Goal: a loop that polls under a lock, whatever its length, does not keep others from the lock for ever.
Test(Twin, polling_loops_do_not_keep_others_away) {
    for (int length = 3; length <= 20; ++length)
        expect_pass({.preemptions = 0, .stale = 0, .spurious = 0, .max_steps = 100'000, .real_runs = 0}, [length] {
            sync::atomic<uint32_t> lock{0};
            sync::atomic<uint32_t> done{0};
            Thread other([&] {
                while (lock.load(sync::relaxed) != 0 || lock.exchange(1, sync::acquire) != 0)
                    sync::thread_yield();
                done.store(1, sync::relaxed);
                lock.store(0, sync::release);
            });
            for (bool seen = false; !seen;) {
                if (lock.exchange(1, sync::acquire) != 0)
                    continue;
                for (int i = 3; i < length; ++i)
                    (void)done.load(sync::relaxed);
                seen = done.load(sync::relaxed) != 0;
                lock.store(0, sync::release);
            }
        });
}

// Goal: threads that wait for each other in loops are found.
Test(Twin, a_livelock_is_found) {
    expect_fail({.max_steps = 2000}, "livelock", [] {
        sync::atomic<int> word{0};
        Thread other([&] {
            while (word.load(sync::acquire) == 0)
                sync::cpu_relax();
        });
        while (word.load(sync::acquire) == 0)
            sync::cpu_relax();
    });
}

// Goal: a deadlock of two mutexes names the threads, the mutexes and their holders.
Test(Twin, a_deadlock_of_mutexes_is_found) {
    auto body = [](bool same_order) {
        sync::mutex a, b;
        testing::label(&a, "a");
        testing::label(&b, "b");
        Thread other(
            [&, same_order] {
                sync::lock_guard first(same_order ? a : b);
                sync::lock_guard second(same_order ? b : a);
            },
            "other");
        sync::lock_guard first(a);
        sync::lock_guard second(b);
    };
    auto explored = expect_fail({}, "deadlock", [&] { body(false); });
    if (testing::systematic) {
        cr_assert(explored.what.find("thread 0 'body' waits for mutex word") != std::string::npos, "%s",
                  explored.what.c_str());
        cr_assert(explored.what.find("'b', held by thread 1 'other'") != std::string::npos, "%s",
                  explored.what.c_str());
    }
    expect_pass({}, [&] {
        sync::mutex a;
        int value = 0;
        {
            Thread other([&] {
                sync::lock_guard guard(a);
                ++value;
            });
            sync::lock_guard guard(a);
            ++value;
        }
        check(value == 2, "lost");
    });
}
