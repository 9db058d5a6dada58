// Blocking calls under every interleaving: callers without an executor against the pool's threads, cancellation, deadlines,
// closing and threads that can not be started; then microthreads on an owner, the whole path. On real threads in other
// builds.
#include "base/alloc.hpp"
#include "sched/test_blocking.hpp"

#include <cstdlib>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::Data;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

namespace {

// One call of a thread that has no executor: the function uses its caller's memory, runs once when the call says so, and
// never otherwise.
struct Caller {
    explicit Caller(BlockingPool &used, int32_t returns = 7) : pool(used), value(returns) {}

    int32_t make(Scope *scope = nullptr, int64_t deadline_ns = MC_FOREVER) {
        Data<int> mine(0); // gone when the call has ended
        sync::atomic<uint32_t> there{1};
        int32_t result = -1;
        const int32_t status = call_on(
            loner.thread, pool,
            [&] {
                check(there.load(sync::relaxed) == 1, "the caller has left");
                mine.set(mine.get() + 1);
                runs.fetch_add(1, sync::relaxed);
                return value;
            },
            &result, scope, deadline_ns);
        check(mine.get() == (status == MC_OK), "status %d, %d runs", status, mine.get());
        check(result == (status == MC_OK ? value : -1), "status %d, result %d", status, result);
        return status;
    }
    // Also after all threads have ended.
    void check_runs(uint32_t expected) const {
        check(runs.load(sync::relaxed) == expected, "%u runs", runs.load(sync::relaxed));
    }

    BlockingPool &pool;
    const int32_t value;
    Loner loner;
    sync::atomic<uint32_t> runs{0};
};

int64_t short_ns() { return 100 * (1 + static_cast<int64_t>(choose(10))); }

void close_all(BlockingPool &pool) {
    check(pool.close(MC_FOREVER), "threads are left");
    const BlockingPool::Counts counts = pool.counts();
    check(counts.queued == 0 && counts.running == 0 && counts.threads == 0, "something is counted");
}

} // namespace

// Goal: one caller, one thread: each sees what the other did, whoever is faster, and nobody hangs; also when the thread
// lies down, or ends, between two calls. Nor does the caller get a second one when the first has yet to lie down.
Test(BlockingSys, a_call_against_its_thread, .timeout = 120) {
    expect_pass({.name = "BlockingSys/a_call_against_its_thread", .preemptions = 2, .stale = 1, .timeouts = 0}, [] {
        BlockingPool pool(1, MC_FOREVER);
        Caller caller(pool);
        check(caller.make() == MC_OK, "not run");
        close_all(pool);
        caller.check_runs(1);
    });
    expect_pass({.name = "BlockingSys/a_call_against_its_thread", .search = Search::seeds, .seeds = 6'000}, [] {
        BlockingPool pool(2, choose(2) == 0 ? MC_FOREVER : short_ns());
        Caller caller(pool);
        for (int i = 0; i < 3; ++i) {
            check(caller.make() == MC_OK, "not run");
            check(pool.counts().threads <= 1, "one is enough");
            for (unsigned pause = choose(20); pause > 0; --pause)
                sync::thread_yield();
        }
        close_all(pool);
        caller.check_runs(3);
    });
}

// Goal: a cancellation ends a call that is queued, and no other: its function runs once, or never.
Test(BlockingSys, a_call_against_a_cancellation, .timeout = 120) {
    const auto body = [] {
        BlockingPool pool(1, MC_FOREVER);
        Caller caller(pool);
        {
            Scope scope;
            Thread canceller([&] { scope.cancel(); }, "canceller");
            const int32_t status = caller.make(&scope);
            check(status == MC_OK || status == MC_E_CANCELED, "status %d", status);
            close_all(pool);
            caller.check_runs(status == MC_OK);
        }
    };
    expect_pass({.name = "BlockingSys/a_call_against_a_cancellation",
                 .preemptions = 2,
                 .stale = 0,
                 .timeouts = 0,
                 .spurious = 0},
                body);
    expect_pass({.name = "BlockingSys/a_call_against_a_cancellation", .search = Search::seeds, .seeds = 6'000}, body);
}

// Goal: the same with a deadline.
Test(BlockingSys, a_call_against_its_deadline, .timeout = 120) {
    const auto body = [] {
        BlockingPool pool(1, MC_FOREVER);
        Caller caller(pool);
        const int64_t deadline_ns = sync::now_ns() + (mc::testing::systematic ? short_ns() : 100'000);
        const int32_t status = caller.make(nullptr, deadline_ns);
        check(status == MC_OK || status == MC_E_TIMEDOUT, "status %d", status);
        check(status == MC_OK || sync::now_ns() >= deadline_ns, "too early");
        close_all(pool);
        caller.check_runs(status == MC_OK);
    };
    expect_pass({.name = "BlockingSys/a_call_against_its_deadline", .search = Search::seeds, .seeds = 6'000}, body);
}

// Goal: a call while the pool closes runs, or is refused; nobody is left waiting, and no thread is left.
Test(BlockingSys, a_call_against_closing, .timeout = 120) {
    const auto body = [] {
        BlockingPool pool(1, MC_FOREVER);
        Caller caller(pool);
        Thread closer([&] { check(pool.close(MC_FOREVER), "threads are left"); }, "closer");
        const int32_t status = caller.make();
        check(status == MC_OK || status == MC_E_SHUTDOWN, "status %d", status);
        closer.join();
        close_all(pool);
        caller.check_runs(status == MC_OK);
    };
    expect_pass(
        {.name = "BlockingSys/a_call_against_closing", .preemptions = 2, .stale = 0, .timeouts = 0, .spurious = 0},
        body);
    expect_pass({.name = "BlockingSys/a_call_against_closing", .search = Search::seeds, .seeds = 6'000}, body);
}

// Goal: two who close at once both wait until all threads have been joined.
Test(BlockingSys, two_close_at_once, .timeout = 120) {
    const auto body = [] {
        BlockingPool pool(1, MC_FOREVER);
        Caller caller(pool);
        check(caller.make() == MC_OK, "not run");
        Thread other([&] { close_all(pool); }, "other");
        close_all(pool);
    };
    expect_pass({.name = "BlockingSys/two_close_at_once", .preemptions = 1, .stale = 1, .timeouts = 0}, body);
    expect_pass({.name = "BlockingSys/two_close_at_once", .search = Search::seeds, .seeds = 3'000}, body);
}

// Goal: closing with a deadline says whether all threads are gone, and can be called again.
Test(BlockingSys, closing_with_a_deadline, .timeout = 120) {
    expect_pass({.name = "BlockingSys/closing_with_a_deadline", .search = Search::seeds, .seeds = 4'000}, [] {
        BlockingPool pool(2, MC_FOREVER);
        Caller caller(pool);
        sync::atomic<uint32_t> status{1};
        {
            Thread calls([&] { status.store(static_cast<uint32_t>(caller.make()), sync::release); }, "caller");
            if (pool.close(sync::now_ns() + short_ns()))
                check(pool.counts().threads == 0, "a thread is left");
            else
                close_all(pool);
        }
        caller.check_runs(static_cast<int32_t>(status.load(sync::acquire)) == MC_OK);
    });
}

// Goal: two callers, one of them cancelled, and a pool of one or two threads, whose threads lie down and end at any moment:
// every call ends as it should, and there are never more threads than allowed.
Test(BlockingSys, callers_share_threads, .timeout = 120) {
    const auto body = [] {
        const uint32_t most = 1 + choose(2);
        BlockingPool pool(most, choose(2) == 0 ? MC_FOREVER : short_ns());
        Caller first(pool, 1), second(pool, 2);
        Scope scope;
        int32_t status = 1;
        {
            Thread one([&] { check(first.make() == MC_OK && first.make() == MC_OK, "not run"); }, "first");
            Thread two([&] { status = second.make(&scope); }, "second");
            if (choose(2) == 0)
                scope.cancel();
            check(pool.counts().threads <= most, "too many");
        }
        check(status == MC_OK || (status == MC_E_CANCELED && scope.cancelled()), "status %d", status);
        close_all(pool);
        first.check_runs(2);
        second.check_runs(status == MC_OK);
    };
    expect_pass({.name = "BlockingSys/callers_share_threads", .search = Search::seeds, .seeds = 10'000}, body);
}

// Goal: all at once: two callers, a cancellation, a close.
Test(BlockingSys, callers_a_cancellation_and_closing, .timeout = 120) {
    const auto body = [] {
        BlockingPool pool(1 + choose(2), choose(2) == 0 ? MC_FOREVER : short_ns());
        Caller first(pool, 1), second(pool, 2);
        Scope scope;
        int32_t one_status = 1, two_status = 1;
        {
            Thread one([&] { one_status = first.make(&scope); }, "first");
            Thread two([&] { two_status = second.make(); }, "second");
            Thread canceller([&] { scope.cancel(); }, "canceller");
            check(pool.close(MC_FOREVER), "threads are left");
        }
        check(one_status == MC_OK || one_status == MC_E_CANCELED || one_status == MC_E_SHUTDOWN, "%d", one_status);
        check(two_status == MC_OK || two_status == MC_E_SHUTDOWN, "%d", two_status);
        close_all(pool);
        first.check_runs(one_status == MC_OK);
        second.check_runs(two_status == MC_OK);
    };
    expect_pass({.name = "BlockingSys/callers_a_cancellation_and_closing", .search = Search::seeds, .seeds = 10'000},
                body);
}

// --- threads that can not be started ---

namespace {

// What the next allocations get: nothing for the first `refused`.
sync::atomic<uint32_t> refused{0};

void *scarce(void *, uint64_t size, uint64_t align) {
    for (uint32_t left = refused.load(sync::relaxed); left != 0;)
        if (refused.compare_exchange_strong(left, left - 1, sync::relaxed, sync::relaxed))
            return nullptr;
    return std::aligned_alloc(align, (size + align - 1) / align * align);
}
void free_it(void *, void *ptr, uint64_t, uint64_t) { std::free(ptr); }

void expect_pass_when_memory_is_scarce(const mc::testing::Exploration &exploration, const std::function<void()> &body) {
    expect_pass(exploration, [&] {
        body();
        refused.store(0, sync::relaxed);
    });
}

void make_memory_scarce() {
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = scarce;
    allocator.free = free_it;
    check(base::set_allocator(allocator) == MC_OK, "set before");
}

} // namespace

// Goal: calls that rely on a thread which another caller is starting do not hang when that fails.
Test(BlockingSys, a_thread_that_can_not_be_started, .timeout = 120) {
    make_memory_scarce();
    const auto body = [] {
        BlockingPool pool(1, MC_FOREVER);
        Caller first(pool, 1), second(pool, 2);
        refused.store(1 + choose(2), sync::relaxed);
        int32_t one_status = 1, two_status = 1;
        {
            Thread one([&] { one_status = first.make(); }, "first");
            two_status = second.make();
        }
        check(one_status == MC_OK || one_status == MC_E_NOMEM, "%d", one_status);
        check(two_status == MC_OK || two_status == MC_E_NOMEM, "%d", two_status);
        close_all(pool);
        first.check_runs(one_status == MC_OK);
        second.check_runs(two_status == MC_OK);
    };
    expect_pass_when_memory_is_scarce({.name = "BlockingSys/a_thread_that_can_not_be_started",
                                       .preemptions = 2,
                                       .stale = 0,
                                       .timeouts = 0,
                                       .spurious = 0},
                                      body);
    expect_pass_when_memory_is_scarce(
        {.name = "BlockingSys/a_thread_that_can_not_be_started", .search = Search::seeds, .seeds = 6'000}, body);
}

// Goal: a job that was left to a thread which then can not be started is taken by one that sleeps.
Test(BlockingSys, a_sleeper_takes_what_was_left_to_a_thread_that_never_came, .timeout = 120) {
    make_memory_scarce();
    expect_pass_when_memory_is_scarce({.name = "BlockingSys/a_sleeper_takes_what_was_left_to_a_thread_that_never_came",
                                       .search = Search::seeds,
                                       .seeds = 10'000},
                                      [] {
                                          BlockingPool pool(2, MC_FOREVER);
                                          Caller first(pool, 1), second(pool, 2), third(pool, 3);
                                          check(first.make() == MC_OK, "not run");
                                          refused.store(1, sync::relaxed);
                                          {
                                              Thread one([&] { check(first.make() == MC_OK, "not run"); }, "first");
                                              Thread two([&] { check(second.make() == MC_OK, "not run"); }, "second");
                                              check(third.make() == MC_OK, "not run");
                                          }
                                          close_all(pool);
                                      });
}

// --- the whole path ---

// Goal: microthreads call, their owner sleeps meanwhile, and one of them is cancelled by another thread, or not.
Test(BlockingSys, microthreads_call, .timeout = 120) {
    expect_pass({.name = "BlockingSys/microthreads_call", .search = Search::seeds, .seeds = 1'000, .isolate = true},
                [] {
                    here();
                    Known known;
                    BlockingPool pool(1, MC_FOREVER);
                    Scope scope;
                    Data<int> value(0);
                    sync::atomic<uint32_t> runs{0};
                    const auto fn = [&] {
                        runs.fetch_add(1, sync::relaxed);
                        return 0;
                    };
                    const mc_task_t patient = start([&] {
                        const auto sets = [&] {
                            value.set(5);
                            return 0;
                        };
                        check(call(pool, sets) == MC_OK && value.get() == 5, "not run");
                    });
                    const mc_task_t cancelled = start([&] { return call(pool, fn, nullptr, &scope); });
                    {
                        Thread canceller(
                            [&] {
                                known.arrive();
                                scope.cancel();
                            },
                            "canceller");
                        known.wait_for(1);
                        check(result_of(patient) == MC_OK, "no end");
                        const int32_t status = result_of(cancelled);
                        check(status == MC_OK || status == MC_E_CANCELED, "status %d", status);
                        check(runs.load(sync::relaxed) == (status == MC_OK), "status %d", status);
                    }
                    close_all(pool);
                });
}
