// Blocking calls on real threads: what a caller gets, in which order, on how many threads, and how the pool closes. The
// races are in blocking_sys_test.cpp.
#include "base/alloc.hpp"
#include "sched/task_state.hpp"
#include "sched/test_blocking.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <time.h>
#include <vector>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

template <class Condition> void until(Condition condition) {
    while (!condition())
        sleep_ms(1);
}

void nap_ms(long ms) {
    const timespec time{0, ms * 1'000'000};
    nanosleep(&time, nullptr);
}

// A call of a microthread's, which blocks its thread of the pool until it is let go; it returns 9.
class Occupied {
public:
    explicit Occupied(BlockingPool &pool)
        : caller_(start([&pool, this] {
              int32_t result = 0;
              const int32_t status = call(
                  pool,
                  [this] {
                      began_.raise();
                      let_go_.wait();
                      return 9;
                  },
                  &result);
              return status == MC_OK ? result : status;
          })) {
        until([this] { return began_.up(); });
    }
    void let_go() { let_go_.raise(); }
    int32_t end() {
        let_go();
        return result_of(caller_);
    }

private:
    Flag began_;
    Flag let_go_;
    mc_task_t caller_;
};

bool is_in_state(BlockingPool &pool, uint32_t queued, uint32_t running) {
    const BlockingPool::Counts counts = pool.counts();
    return counts.queued == queued && counts.running == running;
}

} // namespace

// --- a call ---

// Goal: the caller gets what its function returns, and sees what it did; others run meanwhile, on the caller's executor.
Test(Blocking, a_call_returns_what_its_function_does) {
    BlockingPool pool(2);
    here();
    pthread_t ran_on = pthread_self();
    Flag other_ran;
    run_now([&] {
        int32_t result = 0;
        cr_assert_eq(call(
                         pool,
                         [&] {
                             other_ran.wait();
                             ran_on = pthread_self();
                             return -77;
                         },
                         &result),
                     MC_OK);
        cr_assert_eq(result, -77);
        cr_assert_not(pthread_equal(ran_on, pthread_self()));
    });
    const mc_task_t other = start([&] { other_ran.raise(); });
    cr_assert_eq(result_of(other), MC_OK);
    cr_assert_eq(call(pool, [] { return 1; }), MC_OK); // the owner's own stack, and no result wanted
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: a function that throws ends its call with MC_E_CRASHED, and neither its thread nor the result.
Test(Blocking, an_exception_is_a_crash) {
    BlockingPool pool(1);
    int32_t result = 5;
    cr_assert_eq(call(
                     pool, []() -> int32_t { throw std::runtime_error("broken"); }, &result),
                 MC_E_CRASHED);
    cr_assert_eq(call(
                     pool, []() -> int32_t { throw 3; }, &result),
                 MC_E_CRASHED);
    cr_assert_eq(result, 5);
    cr_assert_eq(call(
                     pool, [] { return 6; }, &result),
                 MC_OK);
    cr_assert_eq(result, 6);
    cr_assert_eq(pool.counts().threads, 1u);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: errno is as before, whether a thread is started for the call or not, and whatever the function does to its own.
Test(Blocking, errno_is_untouched) {
    BlockingPool pool(1);
    here();
    for (int i = 0; i < 2; ++i) {
        errno = 1000 + i;
        cr_assert_eq(call(pool,
                          [] {
                              errno = EBADF;
                              return 0;
                          }),
                     MC_OK);
        cr_assert_eq(errno, 1000 + i);
    }
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: asynchronous signals stay blocked on the pool's threads: the program's handlers do not run there.
Test(Blocking, signals_are_blocked) {
    BlockingPool pool(1);
    int32_t blocked = 0;
    cr_assert_eq(call(
                     pool,
                     [] {
                         sigset_t mask;
                         pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                         return sigismember(&mask, SIGUSR1) & sigismember(&mask, SIGINT);
                     },
                     &blocked),
                 MC_OK);
    cr_assert_eq(blocked, 1);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: a caller with a small stack may be the one for whom a thread is started.
Test(Blocking, a_small_stack_is_enough) {
    if (mc::testing::under_asan || mc::testing::under_tsan)
        cr_skip_test("their own calls take more");
    BlockingPool pool(1);
    const mc_task_t task = [&] {
        const auto body = [&pool] { return call(pool, [] { return 0; }); };
        mc_task_t handle = 0;
        SpawnRequest request;
        request.returning = run_body<decltype(body)>;
        request.argument = new auto(body);
        request.stack_size = 2 * MC_STACK_MIN;
        request.handle = &handle;
        ThreadContext &thread = here();
        cr_assert_eq(spawn(&thread, executor(), request), MC_OK);
        return handle;
    }();
    cr_assert_eq(result_of(task), MC_OK);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: where nothing may block, a call is refused; so is one whose deadline has passed or whose scope was cancelled. The
// function does not run.
Test(Blocking, what_can_not_wait_is_refused) {
    BlockingPool pool(1);
    ThreadContext &thread = here();
    int ran = 0;
    const auto fn = [&] { return ++ran; };
    ++thread.no_switch;
    cr_assert_eq(call(pool, fn), MC_E_CONTEXT);
    --thread.no_switch;
    cr_assert_eq(call(pool, fn, nullptr, nullptr, in_ns(-1)), MC_E_TIMEDOUT);
    Scope scope;
    scope.cancel();
    cr_assert_eq(call(pool, fn, nullptr, &scope), MC_E_CANCELED);
    cr_assert_eq(ran, 0);
    cr_assert_eq(pool.counts().threads, 0u);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: a thread that owns no executor may call, too, and be cancelled or be too late while it is queued.
Test(Blocking, a_foreign_thread_may_call) {
    BlockingPool pool(1);
    here();
    Other simple([&] {
        int32_t result = 0;
        cr_assert_eq(call(
                         pool, [] { return 3; }, &result),
                     MC_OK);
        cr_assert_eq(result, 3);
    });
    simple.end();
    Occupied occupied(pool);
    Scope scope;
    Other cancelled([&] {
        cr_assert_eq(call(
                         pool, [] { return 3; }, nullptr, &scope),
                     MC_E_CANCELED);
    });
    Other late([&] {
        cr_assert_eq(call(
                         pool, [] { return 3; }, nullptr, nullptr, in_ms(5)),
                     MC_E_TIMEDOUT);
    });
    late.end();
    until([&] { return is_in_state(pool, 1, 1); });
    scope.cancel();
    cancelled.end();
    cr_assert_eq(occupied.end(), 9);
    cr_assert(pool.close(MC_FOREVER));
}

// --- its function and the runtime ---

// Goal: a function may spawn and join, as any thread may.
Test(Blocking, a_function_may_use_the_runtime) {
    BlockingPool pool(2);
    here();
    int32_t result = 0;
    cr_assert_eq(call(
                     pool, [] { return result_of(start([] { return 12; })); }, &result),
                 MC_OK);
    cr_assert_eq(result, 12);
    start_many(2);
    cr_assert_eq(call(
                     pool, [] { return result_of(spawn_one([] { return 13; })); }, &result),
                 MC_OK);
    cr_assert_eq(result, 13);
    stop_many();
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: what a function leaves behind ends with it: the next one on its thread is in no scope, and has no epoch pinned.
Test(Blocking, what_a_function_leaves_ends_with_it) {
    BlockingPool pool(1);
    static int dropped = 0;
    uint64_t scope = 0;
    uint64_t key = 0;
    cr_assert_eq(create_scope(*here().running, MC_FOREVER, &scope), MC_OK);
    cr_assert_eq(create_local([](void *) { ++dropped; }, &key), MC_OK);
    cr_assert_eq(call(pool,
                      [&] {
                          Task &task = *here().running;
                          begin_reading(here());
                          cr_assert_eq(set_local(task, key, &dropped), MC_OK);
                          return enter_scope(task, scope);
                      }),
                 MC_OK);
    cr_assert_eq(dropped, 1);                  // before its caller goes on
    cr_assert_eq(destroy_scope(scope), MC_OK); // nobody is inside it
    int32_t inside = 1;
    cr_assert_eq(call(
                     pool,
                     [&] {
                         ThreadContext &thread = here();
                         return static_cast<int32_t>(thread.running->scope != nullptr || thread.no_switch != 0);
                     },
                     &inside),
                 MC_OK);
    cr_assert_eq(inside, 0);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: a call under way keeps the world open. A thread that has nothing to do does not for long: it ends.
Test(Blocking, only_calls_under_way_keep_the_world_open) {
    in_process_with_one_thread([] {
        BlockingPool pool(2, MC_MS);
        const mc_task_t caller = start([&] {
            return call(pool, [] {
                nap_ms(50);
                return 0;
            });
        });
        cr_assert_eq(result_of(caller), MC_OK);
        Gate never;
        cr_assert_eq(never.acquire(), MC_E_DEADLOCK);
        cr_assert(pool.close(MC_FOREVER));
    });
}

// --- cancellation ---

// Goal: a call that is still queued is cancelled at once, or ends at its deadline, and its function never runs.
Test(Blocking, a_queued_call_can_be_cancelled) {
    BlockingPool pool(1);
    Occupied occupied(pool);
    Scope scope;
    int ran = 0;
    const mc_task_t cancelled = start([&] {
        return call(
            pool, [&] { return ++ran; }, nullptr, &scope);
    });
    const mc_task_t late = start([&] {
        return call(
            pool, [&] { return ++ran; }, nullptr, nullptr, in_ms(5));
    });
    const mc_task_t patient = start([&] { return call(pool, [&] { return ++ran; }); });
    until([&] { return is_in_state(pool, 2, 1); });
    cr_assert_eq(result_of(late), MC_E_TIMEDOUT);
    scope.cancel();
    cr_assert_eq(result_of(cancelled), MC_E_CANCELED);
    cr_assert(is_in_state(pool, 1, 1));
    cr_assert_eq(ran, 0);
    cr_assert_eq(occupied.end(), 9);
    cr_assert_eq(result_of(patient), MC_OK);
    cr_assert_eq(ran, 1);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: the task's own scope cancels it as well.
Test(Blocking, the_scope_of_the_task_counts) {
    BlockingPool pool(1);
    Occupied occupied(pool);
    uint64_t scope = 0;
    cr_assert_eq(create_scope(*here().running, MC_FOREVER, &scope), MC_OK);
    const mc_task_t cancelled = start([&] {
        cr_assert_eq(enter_scope(*here().running, scope), MC_OK);
        return call(pool, [] { return 0; });
    });
    until([&] { return is_in_state(pool, 1, 1); });
    cr_assert_eq(cancel_scope(scope, MC_OK), MC_OK);
    cr_assert_eq(result_of(cancelled), MC_E_CANCELED);
    cr_assert_eq(destroy_scope(scope), MC_OK);
    cr_assert_eq(occupied.end(), 9);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: once its function runs a call ends when that returns, with its result, whatever is cancelled and however late; and
// its caller sleeps until then.
Test(Blocking, a_running_call_can_not_be_cancelled) {
    BlockingPool pool(1);
    here();
    Scope scope;
    Flag began, go_on;
    sync::atomic<uint32_t> ended{0};
    const auto body = [&] {
        began.raise();
        go_on.wait();
        return 4;
    };
    uint64_t own = 0;
    cr_assert_eq(create_scope(*here().running, MC_FOREVER, &own), MC_OK);
    const mc_task_t caller = start([&] {
        cr_assert_eq(enter_scope(*here().running, own), MC_OK);
        int32_t result = 0;
        const auto waits = [] { return TaskWord::epoch_of(here().running->word.look()); };
        const uint64_t before = waits();
        const int32_t status = call(pool, body, &result, &scope, in_ms(300));
        ended.store(1, sync::release);
        cr_assert_leq(waits() - before, 2u);
        return status == MC_OK ? result : status;
    });
    until([&] { return began.up(); });
    scope.cancel();
    sleep_ms(10);
    cr_assert_eq(cancel_scope(own, MC_OK), MC_OK);
    sleep_ms(350);
    cr_assert_eq(ended.load(sync::acquire), 0u);
    go_on.raise();
    cr_assert_eq(result_of(caller), 4);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: the same on two executors, where a caller whose wait has ended may go on on the other one, and waits again there.
Test(Blocking, a_caller_may_wait_again_elsewhere) {
    constexpr uint32_t count = 8;
    BlockingPool pool(count);
    start_many(2);
    Scope scope;
    Flag go_on;
    sync::atomic<uint32_t> began{0};
    std::vector<mc_task_t> callers;
    callers.reserve(count);
    for (uint32_t i = 0; i < count; ++i)
        callers.push_back(spawn_one([&] {
            const auto body = [&] {
                (void)began.fetch_add(1, sync::release);
                go_on.wait();
                return 0;
            };
            return call(pool, body, nullptr, &scope);
        }));
    until([&] { return began.load(sync::acquire) == count; });
    sleep_ms(5);
    scope.cancel();
    sleep_ms(5);
    go_on.raise();
    for (const mc_task_t caller : callers)
        cr_assert_eq(result_of(caller), MC_OK);
    stop_many();
    cr_assert(pool.close(MC_FOREVER));
}

// --- many calls ---

// Goal: with one thread, calls run in the order in which they were made.
Test(Blocking, first_come_first_served) {
    BlockingPool pool(1);
    Occupied occupied(pool);
    constexpr int count = 20;
    std::vector<int> order;
    std::vector<mc_task_t> callers;
    callers.reserve(count);
    for (int i = 0; i < count; ++i)
        callers.push_back(start([&pool, &order, i] {
            return call(pool, [&order, i] {
                order.push_back(i);
                return 0;
            });
        }));
    until([&] { return is_in_state(pool, count, 1); });
    cr_assert_eq(occupied.end(), 9);
    for (const mc_task_t caller : callers)
        cr_assert_eq(result_of(caller), MC_OK);
    for (int i = 0; i < count; ++i)
        cr_assert_eq(order.at(static_cast<size_t>(i)), i);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: more calls than threads: as many threads are used as there may be, never more, and all calls run.
Test(Blocking, the_number_of_threads_is_bounded) {
    constexpr uint32_t most = 3;
    BlockingPool pool(most);
    here();
    sync::atomic<uint32_t> now{0};
    sync::atomic<uint32_t> ran{0};
    Flag go_on;
    std::vector<mc_task_t> callers;
    callers.reserve(30);
    for (int i = 0; i < 30; ++i)
        callers.push_back(start([&] {
            return call(pool, [&] {
                cr_assert_leq(now.fetch_add(1, sync::relaxed) + 1, most);
                go_on.wait();
                (void)now.fetch_sub(1, sync::relaxed);
                (void)ran.fetch_add(1, sync::relaxed);
                return 0;
            });
        }));
    until([&] { return now.load(sync::relaxed) == most; });
    cr_assert(is_in_state(pool, 30 - most, most));
    cr_assert_eq(pool.counts().threads, most);
    go_on.raise();
    for (const mc_task_t caller : callers)
        cr_assert_eq(result_of(caller), MC_OK);
    cr_assert_eq(ran.load(sync::relaxed), 30u);
    cr_assert_eq(pool.counts().threads, most);
    cr_assert(is_in_state(pool, 0, 0));
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: one call after another is served by one thread, though it has not lain down yet when the next one comes.
Test(Blocking, a_thread_is_used_again) {
    BlockingPool pool(8);
    here();
    pthread_t first = pthread_self();
    for (int i = 0; i < 200; ++i) {
        pthread_t ran_on = first;
        cr_assert_eq(call(pool,
                          [&] {
                              ran_on = pthread_self();
                              return 0;
                          }),
                     MC_OK);
        if (i == 0)
            first = ran_on;
        cr_assert(pthread_equal(ran_on, first));
    }
    cr_assert_eq(pool.counts().threads, 1u);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: threads that have nothing to do end, and others come when there is work again.
Test(Blocking, idle_threads_end) {
    BlockingPool pool(4, MC_MS);
    here();
    for (int round = 0; round < 5; ++round) {
        std::vector<mc_task_t> callers;
        callers.reserve(4);
        sync::atomic<uint32_t> here_too{0};
        for (int i = 0; i < 4; ++i)
            callers.push_back(start([&] {
                return call(pool, [&] {
                    (void)here_too.fetch_add(1, sync::relaxed);
                    while (here_too.load(sync::relaxed) < 4)
                        nap_ms(1);
                    return 0;
                });
            }));
        for (const mc_task_t caller : callers)
            cr_assert_eq(result_of(caller), MC_OK);
        until([&] { return pool.counts().threads == 0; });
    }
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: a thousand calls of a hundred microthreads on two executors, each with its own result.
Test(Blocking, many_calls_from_many_executors) {
    BlockingPool pool(4);
    start_many(2);
    sync::atomic<uint32_t> ran{0};
    std::vector<mc_task_t> callers;
    callers.reserve(100);
    for (int32_t i = 0; i < 100; ++i)
        callers.push_back(spawn_one([&pool, &ran, i] {
            for (int32_t k = 0; k < 10; ++k) {
                int32_t result = -1;
                const auto body = [&] {
                    (void)ran.fetch_add(1, sync::relaxed);
                    return 100 * i + k;
                };
                cr_assert_eq(call(pool, body, &result), MC_OK);
                cr_assert_eq(result, 100 * i + k);
            }
        }));
    for (const mc_task_t caller : callers)
        cr_assert_eq(result_of(caller), MC_OK);
    cr_assert_eq(ran.load(sync::relaxed), 1000u);
    cr_assert_leq(pool.counts().threads, 4u);
    stop_many();
    cr_assert(pool.close(MC_FOREVER));
}

// --- seeing and closing ---

// Goal: jobs are named with their tasks and the times since when they run or are queued, running ones first.
Test(Blocking, jobs_are_named) {
    BlockingPool pool(1);
    const int64_t before_ns = sync::now_ns();
    Occupied occupied(pool);
    const int64_t queued_after_ns = sync::now_ns();
    const mc_task_t queued = start([&] { return call(pool, [] { return 0; }); }, "queued");
    until([&] { return is_in_state(pool, 1, 1); });
    std::vector<BlockingPool::JobSeen> seen;
    pool.for_each_job([&](const BlockingPool::JobSeen &job) { seen.push_back(job); });
    cr_assert_eq(seen.size(), 2u);
    cr_assert(seen[0].running && !seen[1].running);
    cr_assert(before_ns <= seen[0].since_ns && seen[0].since_ns <= queued_after_ns);
    cr_assert(queued_after_ns <= seen[1].since_ns && seen[1].since_ns <= sync::now_ns());
    cr_assert_str_eq(name_of(*seen[1].task), "queued");
    until([&] { return TaskWord::is_parked_unclaimed(seen[1].task->word.look()); });
    const WaitsFor waits_for = seen[1].task->waits_for.load(sync::relaxed);
    cr_assert(waits_for.kind() == WaitKind::blocking_call);
    cr_assert_eq(waits_for.object(), reinterpret_cast<uintptr_t>(seen[1].fn));
    cr_assert_eq(occupied.end(), 9);
    cr_assert_eq(result_of(queued), MC_OK);
    pool.for_each_job([&](const BlockingPool::JobSeen &) { cr_assert_fail("none is left"); });
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: closing waits no longer than told for jobs that run, which are named then; when they have ended it succeeds, and
// their callers have their results. Queued calls end at once, unrun, and so does every later one.
Test(Blocking, closing_names_what_does_not_end) {
    BlockingPool pool(1);
    Occupied occupied(pool);
    int ran = 0;
    std::vector<mc_task_t> queued;
    queued.reserve(3);
    for (int i = 0; i < 3; ++i)
        queued.push_back(start([&] { return call(pool, [&] { return ++ran; }); }));
    until([&] { return is_in_state(pool, 3, 1); });
    const int64_t deadline_ns = in_ms(20);
    cr_assert_not(pool.close(deadline_ns));
    cr_assert_geq(sync::now_ns(), deadline_ns);
    for (const mc_task_t caller : queued)
        cr_assert_eq(result_of(caller), MC_E_SHUTDOWN);
    cr_assert_eq(call(pool, [&] { return ++ran; }), MC_E_SHUTDOWN);
    int named = 0;
    pool.for_each_job([&](const BlockingPool::JobSeen &job) {
        cr_assert(job.running);
        ++named;
    });
    cr_assert_eq(named, 1);
    cr_assert_not(pool.close(0), "a deadline long past");
    occupied.let_go();
    cr_assert(pool.close(MC_FOREVER));
    cr_assert_eq(pool.counts().threads, 0u);
    cr_assert_eq(occupied.end(), 9);
    cr_assert_eq(call(pool, [&] { return ++ran; }), MC_E_SHUTDOWN);
    cr_assert_eq(ran, 0);
    cr_assert(pool.close(0), "again");
}

// Goal: one that could not be closed in time takes calls again; the thread that was busy goes on.
Test(Blocking, a_late_close_is_taken_back) {
    BlockingPool pool(1);
    Occupied occupied(pool);
    cr_assert_not(pool.close(0));
    pool.reopen();
    const mc_task_t queued = start([&] { return call(pool, [] { return 0; }); });
    until([&] { return is_in_state(pool, 1, 1); });
    occupied.let_go();
    cr_assert_eq(result_of(queued), MC_OK);
    cr_assert_eq(occupied.end(), 9);
    cr_assert(pool.close(MC_FOREVER));
    pool.reopen();
    pool.reopen();
    cr_assert_eq(call(pool, [] { return 0; }), MC_OK);
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: a pool that was never used closes, and one whose threads sleep does without waiting for them to have slept enough.
Test(Blocking, idle_pools_close_at_once) {
    BlockingPool unused(4);
    cr_assert(unused.close(MC_FOREVER));
    BlockingPool pool(4, MC_FOREVER);
    here();
    for (int i = 0; i < 4; ++i)
        run_now([&] { cr_assert_eq(call(pool, [] { return 0; }), MC_OK); });
    until([&] { return is_in_state(pool, 0, 0); });
    cr_assert(pool.close(MC_FOREVER));
}

// --- memory ---

namespace {

sync::atomic<uint32_t> no_memory{0};
sync::atomic<uint32_t> allocations{0};

void *allocate_unless_told(void *, uint64_t size, uint64_t align) {
    (void)allocations.fetch_add(1, sync::relaxed);
    return no_memory.load(sync::relaxed) != 0 ? nullptr : std::aligned_alloc(align, (size + align - 1) / align * align);
}
void free_it(void *, void *ptr, uint64_t, uint64_t) { std::free(ptr); }

void use_our_allocator() {
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = allocate_unless_told;
    allocator.free = free_it;
    cr_assert_eq(base::set_allocator(allocator), MC_OK);
}

} // namespace

// Goal: threads that end are joined by those that end later, and their memory is used again.
Test(Blocking, threads_that_ended_are_joined) {
    use_our_allocator();
    BlockingPool pool(1, MC_MS);
    here();
    const uint32_t threads = sync::thread_count();
    const uint32_t before = allocations.load(sync::relaxed);
    for (int i = 0; i < 10; ++i) {
        cr_assert_eq(call(pool, [] { return 0; }), MC_OK);
        until([&] { return sync::thread_count() == threads; });
    }
    cr_assert_leq(allocations.load(sync::relaxed) - before, 2u + 10u); // each is known, by a context of its own
    cr_assert(pool.close(MC_FOREVER));
}

// Goal: without a thread, and without memory for one, a call fails; with one it waits for that. Afterwards all is as before.
Test(Blocking, no_thread_is_no_memory) {
    use_our_allocator();
    BlockingPool pool(2);
    here();
    int ran = 0;
    no_memory.store(1, sync::relaxed);
    cr_assert_eq(call(pool, [&] { return ++ran; }), MC_E_NOMEM);
    cr_assert(is_in_state(pool, 0, 0));
    cr_assert_eq(pool.counts().threads, 0u);
    cr_assert_eq(ran, 0);
    no_memory.store(0, sync::relaxed);
    Occupied occupied(pool);
    const mc_task_t waits = start([&] { return call(pool, [&] { return ++ran; }); });
    no_memory.store(1, sync::relaxed);
    until([&] { return is_in_state(pool, 1, 1); });
    cr_assert_eq(pool.counts().threads, 1u);
    cr_assert_eq(occupied.end(), 9);
    cr_assert_eq(result_of(waits), MC_OK);
    no_memory.store(0, sync::relaxed);
    cr_assert_eq(ran, 1);
    cr_assert(pool.close(MC_FOREVER));
}
