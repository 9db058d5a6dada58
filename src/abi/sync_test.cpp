// mc/sync.h: mutex, semaphore, wait group, once, condition, read-write lock; alone, among many, and with threads.
#include "base/prng.hpp"
#include "csp/test_many.hpp"

#include <mc/runtime.h>
#include <mc/scope.h>
#include <mc/sync.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

using namespace mc;
using namespace mc::csp::testing;

namespace {

// A primitive's handle, destroyed at the end.
template <int32_t (*Destroy)(uint64_t)> struct Owned {
    uint64_t handle = 0;
    Owned() = default;
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    ~Owned() { cr_assert_eq(Destroy(handle), MC_OK); }
    operator uint64_t() const { return handle; }
};
struct Mutex : Owned<mc_mutex_destroy> {
    explicit Mutex(uint32_t flags = 0) { cr_assert_eq(mc_mutex_create(flags, &handle), MC_OK); }
    void lock() const { cr_assert_eq(mc_mutex_lock(handle), MC_OK); }
    void unlock() const { cr_assert_eq(mc_mutex_unlock(handle), MC_OK); }
};
struct Semaphore : Owned<mc_semaphore_destroy> {
    explicit Semaphore(uint64_t units = 0) { cr_assert_eq(mc_semaphore_create(units, &handle), MC_OK); }
    void acquire(uint32_t count = 1) const { cr_assert_eq(mc_semaphore_acquire(handle, count, MC_FOREVER), MC_OK); }
    void release(uint32_t count = 1) const { cr_assert_eq(mc_semaphore_release(handle, count), MC_OK); }
};
struct WaitGroup : Owned<mc_waitgroup_destroy> {
    explicit WaitGroup(int64_t open = 0) { cr_assert_eq(mc_waitgroup_create(open, &handle), MC_OK); }
    void done() const { cr_assert_eq(mc_waitgroup_done(handle), MC_OK); }
    void wait() const { cr_assert_eq(mc_waitgroup_wait(handle, MC_FOREVER), MC_OK); }
};
struct Once : Owned<mc_once_destroy> {
    Once() { cr_assert_eq(mc_once_create(&handle), MC_OK); }
};
struct Condition : Owned<mc_cond_destroy> {
    Condition() { cr_assert_eq(mc_cond_create(&handle), MC_OK); }
};
struct RwLock : Owned<mc_rwlock_destroy> {
    RwLock() { cr_assert_eq(mc_rwlock_create(&handle), MC_OK); }
};
struct Scope : Owned<mc_scope_destroy> {
    explicit Scope(int64_t deadline_ns = MC_FOREVER) { cr_assert_eq(mc_scope_create(deadline_ns, &handle), MC_OK); }
};
struct Inside {
    explicit Inside(mc_scope_t scope) { cr_assert_eq(mc_scope_enter(scope), MC_OK); }
    ~Inside() { cr_assert_eq(mc_scope_leave(), MC_OK); }
};

void pause_for(int64_t ns) { csp_sleep_until(mc_after(ns)); }

constexpr uint32_t policies[] = {0, MC_MUTEX_FIFO, MC_MUTEX_RECURSIVE, MC_MUTEX_FIFO | MC_MUTEX_RECURSIVE};

// Runs the body as microthreads on so many executors (0: alone) and as POSIX threads beside them.
void run_everywhere(int executors, int microthreads, int threads, const std::function<void(int)> &body) {
    World world;
    {
        std::unique_ptr<Many> many;
        if (executors > 0)
            many = std::make_unique<Many>(executors);
        std::vector<std::unique_ptr<PosixThread>> others;
        std::vector<mc_task_t> tasks;
        for (int i = 0; i < microthreads; ++i)
            tasks.push_back(start([&body, i] { body(i); }));
        sync::atomic<int> running{threads};
        for (int i = 0; i < threads; ++i)
            others.push_back(std::make_unique<PosixThread>([&, i] {
                body(microthreads + i);
                running.fetch_sub(1, sync::release);
            }));
        for (const mc_task_t task : tasks)
            join(task);
        while (running.load(sync::acquire) != 0)
            pause_for(MC_MS / 5);
    }
}

} // namespace

// --- mutex ---

// Goal: one owner at a time, among microthreads alone and on several executors, and threads beside them, under both policies.
Test(MutexApi, excludes, .timeout = 60) {
    for (const uint32_t flags : policies)
        for (const int executors : {0, 1, 2, 8}) {
            int64_t counter = 0;
            uint64_t mutex = 0;
            cr_assert_eq(mc_mutex_create(flags, &mutex), MC_OK);
            const int rounds = scaled(400);
            run_everywhere(executors, 6, 2, [&](int who) {
                for (int i = 0; i < rounds; ++i) {
                    cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
                    const int64_t before = counter;
                    if ((i + who) % 16 == 0)
                        csp_yield();
                    counter = before + 1;
                    cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
                }
            });
            cr_assert_eq(counter, int64_t{8} * rounds, "flags %u, %d executors", flags, executors);
            cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
        }
}

// Goal: bad calls get their codes and change nothing.
Test(MutexApi, misuse) {
    World world;
    mc_mutex_t handle = 77;
    cr_assert_eq(mc_mutex_create(4, &handle), MC_E_INVAL);
    cr_assert_eq(mc_mutex_create(0, nullptr), MC_E_INVAL);
    cr_assert_eq(handle, 77u);
    cr_assert_eq(mc_mutex_lock(0), MC_E_STALE);
    cr_assert_eq(mc_mutex_unlock(12345), MC_E_STALE);
    cr_assert_eq(mc_mutex_lock_all(nullptr, 1, MC_FOREVER), MC_E_INVAL);
    {
        Mutex mutex;
        cr_assert_eq(mc_mutex_unlock(mutex), MC_E_PERM);
        cr_assert_eq(mc_mutex_consistent(mutex), MC_E_PERM);
        mutex.lock();
        cr_assert_eq(mc_mutex_lock(mutex), MC_E_DEADLOCK);
        cr_assert_eq(mc_mutex_try_lock(mutex), MC_E_DEADLOCK);
        cr_assert_eq(mc_mutex_consistent(mutex), MC_E_INVAL);
        cr_assert_eq(mc_mutex_destroy(mutex), MC_E_BUSY);
        join(start([&] {
            cr_assert_eq(mc_mutex_unlock(mutex), MC_E_PERM);
            cr_assert_eq(mc_mutex_try_lock(mutex), MC_E_AGAIN);
            cr_assert_eq(mc_mutex_lock_until(mutex, mc_after(unit)), MC_E_TIMEDOUT);
        }));
        mutex.unlock();
        handle = mutex;
    }
    cr_assert_eq(mc_mutex_lock(handle), MC_E_STALE);
    cr_assert_eq(mc_mutex_unlock(handle), MC_E_STALE);
    cr_assert_eq(mc_mutex_destroy(handle), MC_E_STALE);
    Mutex next; // in the same slot
    next.lock();
    cr_assert_eq(mc_mutex_unlock(handle), MC_E_STALE);
    next.unlock();
}

// Goal: one that tries, in vain or not, never lets others go on, however often it does.
Test(MutexApi, try_lock_never_switches) {
    World world;
    const Many one_executor(1);
    Mutex mine, others;
    join(start([&] {
        others.lock();
        sync::atomic<bool> switched = false;
        const mc_task_t trier = start([&] {
            const mc_task_t other = start([&] { switched.store(true, sync::relaxed); });
            for (int i = 0; i < 100'000; ++i) { // many quanta
                cr_assert_eq(mc_mutex_try_lock(others), MC_E_AGAIN);
                cr_assert_eq(mc_mutex_try_lock(mine), MC_OK);
                mine.unlock();
                cr_assert(!switched.load(sync::relaxed), "in round %d", i);
            }
            join(other);
        });
        join(trier);
        others.unlock();
    }));
}

// Goal: a recursive mutex is given back when it has been unlocked as often as it was locked.
Test(MutexApi, recursion) {
    World world;
    Mutex mutex(MC_MUTEX_RECURSIVE);
    for (int i = 0; i < 3; ++i)
        mutex.lock();
    for (int i = 0; i < 3; ++i) {
        join(start([&] { cr_assert_eq(mc_mutex_try_lock(mutex), MC_E_AGAIN); }));
        mutex.unlock();
    }
    join(start([&] {
        cr_assert_eq(mc_mutex_try_lock(mutex), MC_OK);
        mutex.unlock();
    }));
    cr_assert_eq(mc_mutex_unlock(mutex), MC_E_PERM);
}

// Goal: FIFO hands over in the order of coming, and nobody gets in between.
Test(MutexApi, fifo_hands_over_in_order) {
    World world;
    Mutex mutex(MC_MUTEX_FIFO);
    mutex.lock();
    for (int i = 0; i < 5; ++i)
        spawn([&, i] {
            mutex.lock();
            mark(std::to_string(i));
            mutex.unlock();
        });
    mutex.unlock();
    cr_assert_eq(mc_mutex_try_lock(mutex), MC_E_AGAIN, "it belongs to the first that waits");
    csp_schedule();
    expect_trace("0 1 2 3 4 ");
}

// Goal: barging: the one that runs takes the free mutex past one that was woken; but one that has waited for a millisecond and
// loses again is handed it.
Test(MutexApi, barging_starves_nobody) {
    World world;
    Mutex mutex;
    bool had = false;
    mutex.lock();
    const int64_t began = mc_now(); // before the other one waits
    spawn([&] {
        mutex.lock();
        had = true;
        mutex.unlock();
    });
    mutex.unlock();
    cr_assert_eq(mc_mutex_try_lock(mutex), MC_OK, "barging");
    int rounds = 0;
    for (; !had && rounds < 1'000'000; ++rounds) { // always locked again before the other one runs
        csp_yield();
        mutex.unlock();
        if (mc_mutex_try_lock(mutex) == MC_E_AGAIN)
            csp_yield(), mutex.lock();
    }
    mutex.unlock();
    cr_assert(had);
    cr_assert_geq(mc_now() - began, MC_MS, "it was handed over before its time, after %d rounds", rounds);
    csp_schedule();
}

// Goal: one that is woken to try again still counts as waiting.
Test(MutexApi, stays_for_those_that_come_back) {
    World world;
    mc_mutex_t mutex = 0;
    cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
    cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
    spawn([&] {
        cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
        cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
    });
    cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
    cr_assert_eq(mc_mutex_destroy(mutex), MC_E_BUSY);
    csp_schedule();
    cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
}

// Goal: a recursive owner that ends deep down is found out by those that wait; one that locks again what is in doubt hears so.
Test(MutexApi, the_recursive_owner_dies) {
    World world;
    Mutex mutex(MC_MUTEX_RECURSIVE);
    spawn([&] {
        for (int i = 0; i < 3; ++i)
            mutex.lock();
        csp_yield();
    });
    join(start([&] {
        cr_assert_eq(mc_mutex_lock(mutex), MC_E_OWNERDEAD);
        cr_assert_eq(mc_mutex_lock(mutex), MC_E_OWNERDEAD);
        cr_assert_eq(mc_mutex_consistent(mutex), MC_OK);
        mutex.lock();
        for (int i = 0; i < 3; ++i)
            mutex.unlock();
    }));
}

// Goal: one that was woken and comes too late still goes before those that came after it.
Test(MutexApi, a_loser_keeps_its_place) {
    World world;
    Mutex mutex;
    mutex.lock();
    for (const char *name : {"first", "second"})
        spawn([&mutex, name] {
            mutex.lock();
            mark(name);
            mutex.unlock();
        });
    mutex.unlock();
    cr_assert_eq(mc_mutex_try_lock(mutex), MC_OK, "barging");
    csp_yield();
    mutex.unlock();
    csp_schedule();
    expect_trace("first second ");
}

// Goal: when an owner ends, microthread or thread, the next one learns of it, each until somebody says that all is well.
Test(MutexApi, the_owner_dies, .timeout = 20) {
    World world;
    for (const uint32_t flags : policies) {
        Mutex mutex(flags);
        Mutex other(flags);
        join(start([&] {
            mutex.lock();
            other.lock();
        }));
        cr_assert_eq(mc_mutex_lock(mutex), MC_E_OWNERDEAD);
        mutex.unlock();
        cr_assert_eq(mc_mutex_try_lock(mutex), MC_E_OWNERDEAD);
        cr_assert_eq(mc_mutex_consistent(mutex), MC_OK);
        mutex.unlock();
        mutex.lock();
        mutex.unlock();
        const mc_mutex_t both[] = {other, mutex};
        cr_assert_eq(mc_mutex_lock_all(both, 2, MC_FOREVER), MC_E_OWNERDEAD);
        cr_assert_eq(mc_mutex_consistent(other), MC_OK);
        cr_assert_eq(mc_mutex_unlock_all(both, 2), MC_OK);
        {
            Semaphore locked;
            PosixThread thread([&] {
                mutex.lock();
                locked.release();
                pause_for(5 * unit);
            });
            locked.acquire();
            cr_assert_eq(mc_mutex_lock(mutex), MC_E_OWNERDEAD, "waiting while the thread ended");
            cr_assert_eq(mc_mutex_consistent(mutex), MC_OK);
            mutex.unlock();
        }
    }
}

// Goal: an owner that ends by an exception leaves the mutex to one that waits.
Test(MutexApi, the_owner_crashes) {
    World world;
    world.expected_lines = 1;
    Mutex mutex;
    int32_t got = 1;
    mc_task_t task = 0;
    const auto crash = [](void *handle) -> int32_t {
        cr_assert_eq(mc_mutex_lock(*static_cast<mc_mutex_t *>(handle)), MC_OK);
        csp_yield();
        throw std::runtime_error("planted");
    };
    cr_assert_eq(mc_spawn(0, crash, &mutex.handle, nullptr, &task), MC_OK);
    csp_yield();
    spawn([&] {
        got = mc_mutex_lock(mutex);
        mutex.unlock();
    });
    int32_t result = 0;
    cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
    cr_assert_eq(result, MC_E_CRASHED);
    csp_schedule();
    cr_assert_eq(got, MC_E_OWNERDEAD);
}

// Goal: all or none, whatever the order in which they are given; duplicates are refused; a deadline unlocks what was had.
Test(MutexApi, locks_all, .timeout = 60) {
    World world;
    {
        Many many(2);
        std::vector<std::unique_ptr<Mutex>> forks;
        for (int i = 0; i < 5; ++i)
            forks.push_back(std::make_unique<Mutex>());
        std::vector<mc_task_t> philosophers;
        int meals[5] = {};
        for (int i = 0; i < 5; ++i)
            philosophers.push_back(start([&, i] {
                const mc_mutex_t both[] = {*forks[static_cast<size_t>(i)], *forks[static_cast<size_t>((i + 1) % 5)]};
                for (int meal = 0; meal < scaled(300); ++meal) {
                    cr_assert_eq(mc_mutex_lock_all(both, 2, MC_FOREVER), MC_OK);
                    ++meals[i];
                    if (meal % 7 == 0)
                        csp_yield();
                    cr_assert_eq(mc_mutex_unlock_all(both, 2), MC_OK);
                }
            }));
        for (const mc_task_t task : philosophers)
            join(task);
        for (const int count : meals)
            cr_assert_eq(count, scaled(300));
    }
    Mutex a, b, c;
    const mc_mutex_t twice[] = {a, b, a};
    cr_assert_eq(mc_mutex_lock_all(twice, 3, MC_FOREVER), MC_E_INVAL);
    mc_mutex_t gone = 0;
    {
        std::vector<std::unique_ptr<Mutex>> others; // one that would be locked last: its slot comes after theirs
        while (static_cast<uint32_t>(gone) <= static_cast<uint32_t>(std::max({a.handle, b.handle, c.handle}))) {
            others.push_back(std::make_unique<Mutex>());
            gone = *others.back();
        }
    }
    const mc_mutex_t stale[] = {a, gone, b};
    cr_assert_eq(mc_mutex_lock_all(stale, 3, MC_FOREVER), MC_E_STALE);
    cr_assert_eq(mc_mutex_unlock(a), MC_E_PERM, "it was given back");
    cr_assert_eq(mc_mutex_unlock(b), MC_E_PERM);
    {
        Scope scope;
        Inside inside(scope);
        cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
        const mc_task_t holder = start([&] {
            b.lock();
            csp_yield();
            csp_yield();
            b.unlock();
        });
        csp_yield();
        const mc_mutex_t both[] = {b, a};
        cr_assert_eq(mc_mutex_lock_all(both, 2, MC_FOREVER), MC_E_CANCELED);
        cr_assert_eq(mc_mutex_unlock(a), MC_E_PERM);
        cr_assert_eq(mc_scope_leave(), MC_OK);
        join(holder);
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
    }
    b.lock();
    join(start([&] {
        const mc_mutex_t all[] = {c, a, b};
        cr_assert_eq(mc_mutex_lock_all(all, 3, mc_after(unit)), MC_E_TIMEDOUT);
        cr_assert_eq(mc_mutex_lock_all(all, 3, MC_NOW), MC_E_TIMEDOUT);
        a.lock();
        c.lock();
        cr_assert_eq(mc_mutex_unlock_all(all, 3), MC_E_PERM, "b is another's");
    }));
    b.unlock();
    cr_assert_eq(mc_mutex_lock_all(nullptr, 0, MC_FOREVER), MC_OK);
    std::vector<std::unique_ptr<Mutex>> hundred;
    std::vector<mc_mutex_t> handles;
    for (int i = 0; i < 100; ++i) {
        hundred.push_back(std::make_unique<Mutex>());
        handles.insert(handles.begin(), *hundred.back());
    }
    cr_assert_eq(mc_mutex_lock_all(handles.data(), 100, MC_FOREVER), MC_OK);
    cr_assert_eq(mc_mutex_unlock_all(handles.data(), 100), MC_OK);
}

// Goal: a waiter that is cancelled, or times out, goes on without it and takes nothing from those behind it.
Test(MutexApi, cancelled_waiters_swallow_nothing) {
    for (const uint32_t flags : policies) {
        World world;
        trace.clear();
        Mutex mutex(flags);
        Scope scope;
        mutex.lock();
        spawn([&] {
            Inside inside(scope);
            cr_assert_eq(mc_mutex_lock(mutex), MC_E_CANCELED);
            mark("cancelled");
        });
        spawn([&] {
            cr_assert_eq(mc_mutex_lock_until(mutex, mc_after(20 * unit)), MC_E_TIMEDOUT);
            mark("late");
        });
        spawn([&] {
            mutex.lock();
            mark("last");
            mutex.unlock();
        });
        cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
        while (trace.find("late") == std::string::npos)
            pause_for(unit);
        mutex.unlock();
        csp_schedule();
        expect_trace("cancelled late last ");
    }
}

// Goal: what nothing can end is a deadlock, for the owner alone, who has got nothing then; the others stay blocked.
Test(MutexApi, deadlock_of_the_owner) {
    in_process_with_one_thread([] {
        World world;
        Mutex a, b;
        Condition condition;
        a.lock();
        cr_assert_eq(mc_cond_wait(condition, a, MC_FOREVER), MC_E_DEADLOCK);
        const mc_task_t task = start([&] {
            b.lock();
            a.lock();
            a.unlock();
            b.unlock();
        });
        csp_yield();
        cr_assert_eq(mc_mutex_lock(b), MC_E_DEADLOCK);
        a.unlock();
        join(task);
    });
}

// Goal: locks, deadlines and cancellations at random: mutual exclusion, and everybody ends.
Test(MutexApi, random_use, .timeout = 120) {
    for (const uint32_t flags : policies)
        for (const int executors : {0, 1, 2, 3, 8}) {
            mc_mutex_t mutexes[3];
            for (mc_mutex_t &mutex : mutexes)
                cr_assert_eq(mc_mutex_create(flags, &mutex), MC_OK);
            int inside[3] = {};
            sync::atomic<int> taken{0};
            run_everywhere(executors, 8, 2, [&](int who) {
                base::Prng prng(static_cast<uint64_t>(who) * 977 + flags);
                for (int i = 0; i < scaled(300); ++i) {
                    const uint32_t at = prng.below(3);
                    mc_scope_t scope = 0;
                    cr_assert_eq(
                        mc_scope_create(prng.below(4) == 0 ? mc_after(prng.below(50'000)) : MC_FOREVER, &scope), MC_OK);
                    cr_assert_eq(mc_scope_enter(scope), MC_OK);
                    const int64_t deadline = prng.below(3) == 0 ? mc_after(prng.below(50'000)) : MC_FOREVER;
                    const int32_t status = mc_mutex_lock_until(mutexes[at], deadline);
                    if (status == MC_OK) {
                        cr_assert_eq(inside[at]++, 0);
                        if (prng.below(4) == 0)
                            csp_yield();
                        cr_assert_eq(inside[at]--, 1);
                        cr_assert_eq(mc_mutex_unlock(mutexes[at]), MC_OK);
                        taken.fetch_add(1, sync::relaxed);
                    } else {
                        cr_assert(status == MC_E_TIMEDOUT || status == MC_E_CANCELED, "%d", status);
                    }
                    cr_assert_eq(mc_scope_leave(), MC_OK);
                    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
                }
            });
            cr_assert_gt(taken.load(sync::relaxed), 0);
            for (const mc_mutex_t mutex : mutexes)
                cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
        }
}

// --- semaphore ---

// Goal: units are conserved, and never more are out than there are.
Test(SemaphoreApi, conserves_units, .timeout = 60) {
    for (const int executors : {0, 1, 2, 8}) {
        mc_semaphore_t semaphore = 0;
        cr_assert_eq(mc_semaphore_create(3, &semaphore), MC_OK);
        sync::atomic<int> out{0};
        run_everywhere(executors, 8, 2, [&](int who) {
            base::Prng prng(static_cast<uint64_t>(who));
            for (int i = 0; i < scaled(200); ++i) {
                const uint32_t count = 1 + prng.below(3);
                const int64_t deadline = prng.below(4) == 0 ? mc_after(prng.below(20'000)) : MC_FOREVER;
                const int32_t status = mc_semaphore_acquire(semaphore, count, deadline);
                if (status == MC_E_TIMEDOUT)
                    continue;
                cr_assert_eq(status, MC_OK);
                const int units = static_cast<int>(count);
                cr_assert_leq(out.fetch_add(units, sync::acq_rel) + units, 3);
                if (prng.below(2) == 0)
                    csp_yield();
                out.fetch_sub(units, sync::acq_rel);
                cr_assert_eq(mc_semaphore_release(semaphore, count), MC_OK);
            }
        });
        cr_assert_eq(mc_semaphore_acquire(semaphore, 3, MC_NOW), MC_OK, "some are lost");
        cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_NOW), MC_E_TIMEDOUT);
        cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    }
}

// Goal: who asks for many is served in its turn; when it gives up, those behind it go on with what is there.
Test(SemaphoreApi, one_that_asks_for_many_comes_to_its_turn) {
    World world;
    Semaphore semaphore(1);
    Scope scope;
    const auto asks = [&](uint32_t count, const char *name) {
        spawn([&semaphore, count, name] {
            semaphore.acquire(count);
            mark(name);
        });
    };
    asks(3, "three");
    asks(1, "one");
    cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_NOW), MC_E_TIMEDOUT, "past those that wait");
    semaphore.release();
    csp_yield();
    expect_trace("");
    semaphore.release();
    csp_yield();
    expect_trace("three ");
    semaphore.release();
    csp_yield();
    expect_trace("three one ");

    spawn([&] {
        Inside inside(scope);
        cr_assert_eq(mc_semaphore_acquire(semaphore, 5, MC_FOREVER), MC_E_CANCELED);
        mark("gone");
    });
    asks(2, "two");
    semaphore.release(2);
    csp_yield();
    expect_trace("three one ");
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp_schedule();
    expect_trace("three one gone two ");
}

// Goal: bad calls get their codes and change nothing.
Test(SemaphoreApi, misuse) {
    World world;
    mc_semaphore_t handle = 5;
    cr_assert_eq(mc_semaphore_create(UINT64_MAX, &handle), MC_E_INVAL);
    cr_assert_eq(mc_semaphore_create(0, nullptr), MC_E_INVAL);
    {
        Semaphore semaphore(INT64_MAX);
        cr_assert_eq(mc_semaphore_release(semaphore, 1), MC_E_LIMIT);
        cr_assert_eq(mc_semaphore_release(semaphore, 0), MC_E_INVAL);
        cr_assert_eq(mc_semaphore_acquire(semaphore, 0, MC_FOREVER), MC_E_INVAL);
        handle = semaphore;
    }
    cr_assert_eq(mc_semaphore_acquire(handle, 1, MC_FOREVER), MC_E_STALE);
    cr_assert_eq(mc_semaphore_release(handle, 1), MC_E_STALE);
    cr_assert_eq(mc_mutex_lock(handle), MC_E_STALE, "another kind's");
}

// --- wait group ---

// Goal: who waits goes on when nothing is open, all of them, and it can be used again.
Test(WaitGroupApi, opens_when_all_is_done, .timeout = 30) {
    for (const int executors : {0, 1, 2, 8}) {
        mc_waitgroup_t group = 0;
        cr_assert_eq(mc_waitgroup_create(0, &group), MC_OK);
        sync::atomic<int> done{0};
        for (int round = 1; round <= 3; ++round) {
            cr_assert_eq(mc_waitgroup_add(group, 4), MC_OK);
            run_everywhere(executors, 6, 2, [&](int who) {
                if (who < 4) {
                    csp_yield();
                    done.fetch_add(1, sync::acq_rel);
                    cr_assert_eq(mc_waitgroup_done(group), MC_OK);
                } else {
                    cr_assert_eq(mc_waitgroup_wait(group, MC_FOREVER), MC_OK);
                    cr_assert_eq(done.load(sync::acquire), 4 * round);
                }
            });
        }
        cr_assert_eq(mc_waitgroup_destroy(group), MC_OK);
    }
}

// Goal: bad calls get their codes and change nothing.
Test(WaitGroupApi, misuse) {
    World world;
    mc_waitgroup_t group = 0;
    cr_assert_eq(mc_waitgroup_create(-1, &group), MC_E_INVAL);
    cr_assert_eq(mc_waitgroup_create(INT64_MAX, &group), MC_OK);
    cr_assert_eq(mc_waitgroup_add(group, 1), MC_E_INVAL);
    cr_assert_eq(mc_waitgroup_add(group, -INT64_MAX), MC_OK);
    cr_assert_eq(mc_waitgroup_done(group), MC_E_INVAL);
    cr_assert_eq(mc_waitgroup_wait(group, MC_NOW), MC_OK);
    cr_assert_eq(mc_waitgroup_add(group, 1), MC_OK);
    cr_assert_eq(mc_waitgroup_wait(group, MC_NOW), MC_E_TIMEDOUT);
    cr_assert_eq(mc_waitgroup_destroy(group), MC_E_BUSY);
    cr_assert_eq(mc_waitgroup_done(group), MC_OK);
    cr_assert_eq(mc_waitgroup_destroy(group), MC_OK);
    cr_assert_eq(mc_waitgroup_wait(group, MC_FOREVER), MC_E_STALE);
}

// --- once ---

// Goal: done once, whoever calls; a failure is the caller's own and the next one tries.
Test(OnceApi, runs_until_it_succeeds, .timeout = 30) {
    for (const int executors : {0, 1, 2, 8}) {
        mc_once_t once = 0;
        cr_assert_eq(mc_once_create(&once), MC_OK);
        struct State {
            sync::atomic<int> calls{0}, inside{0};
        } state;
        sync::atomic<int> failures{0};
        const auto attempt = [](void *user) -> int32_t {
            auto &s = *static_cast<State *>(user);
            cr_assert_eq(s.inside.fetch_add(1, sync::acq_rel), 0);
            csp_yield();
            s.inside.fetch_sub(1, sync::acq_rel);
            return s.calls.fetch_add(1, sync::acq_rel) < 3 ? MC_E_IO : 7;
        };
        run_everywhere(executors, 8, 2, [&](int) {
            const int32_t status = mc_once_call(once, attempt, &state, MC_FOREVER);
            cr_assert(status == MC_OK || status == MC_E_IO);
            failures.fetch_add(status != MC_OK, sync::relaxed);
        });
        cr_assert_eq(state.calls.load(sync::relaxed), 4);
        cr_assert_eq(failures.load(sync::relaxed), 3);
        cr_assert_eq(mc_once_call(once, attempt, &state, MC_NOW), MC_OK);
        cr_assert_eq(mc_once_destroy(once), MC_OK);
    }
}

namespace {
mc_once_t recursive_once = 0;
}

// Goal: an exception does not count as done; within the function the same once is a deadlock; deadlines hold.
Test(OnceApi, misuse) {
    World world;
    world.expected_lines = 1;
    Once once;
    cr_assert_eq(mc_once_call(once, nullptr, nullptr, MC_FOREVER), MC_E_INVAL);
    const auto throws = [](void *) -> int32_t { throw std::runtime_error("planted"); };
    cr_assert_eq(mc_once_call(once, throws, nullptr, MC_FOREVER), MC_E_CRASHED);
    recursive_once = once;
    const auto recurses = [](void *) -> int32_t {
        const auto again = [](void *) -> int32_t { return MC_OK; };
        cr_assert_eq(mc_once_call(recursive_once, again, nullptr, MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_eq(mc_once_destroy(recursive_once), MC_E_BUSY);
        csp_yield();
        csp_yield();
        return MC_OK;
    };
    const mc_task_t task = start([&] { cr_assert_eq(mc_once_call(once, recurses, nullptr, MC_FOREVER), MC_OK); });
    csp_yield();
    cr_assert_eq(mc_once_call(once, throws, nullptr, MC_NOW), MC_E_TIMEDOUT);
    join(task);
    cr_assert_eq(mc_once_call(once, throws, nullptr, MC_NOW), MC_OK);
}

// --- condition ---

// Goal: a queue of one place, made of a mutex and two conditions: nothing is lost, and everybody ends.
Test(ConditionApi, bounded_buffer, .timeout = 60) {
    for (const int executors : {0, 1, 2, 8}) {
        uint64_t mutex = 0, not_full = 0, not_empty = 0;
        cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
        cr_assert_eq(mc_cond_create(&not_full), MC_OK);
        cr_assert_eq(mc_cond_create(&not_empty), MC_OK);
        int held = 0;
        int64_t sum = 0;
        const int rounds = scaled(200);
        run_everywhere(executors, 6, 2, [&](int who) {
            for (int i = 1; i <= rounds; ++i) {
                cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
                if (who % 2 == 0) {
                    while (held != 0)
                        cr_assert_eq(mc_cond_wait(not_full, mutex, MC_FOREVER), MC_OK);
                    held = i;
                    cr_assert_eq(mc_cond_signal(not_empty), MC_OK);
                } else {
                    while (held == 0)
                        cr_assert_eq(mc_cond_wait(not_empty, mutex, MC_FOREVER), MC_OK);
                    sum += held;
                    held = 0;
                    cr_assert_eq(mc_cond_signal(not_full), MC_OK);
                }
                cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
            }
        });
        cr_assert_eq(sum, int64_t{4} * rounds * (rounds + 1) / 2);
        cr_assert_eq(mc_cond_destroy(not_full), MC_OK);
        cr_assert_eq(mc_cond_destroy(not_empty), MC_OK);
        cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
    }
}

// Goal: whatever ends the wait, the mutex is owned again; a signal is used up by one that still waits.
Test(ConditionApi, ends_of_waits) {
    World world;
    Mutex mutex(MC_MUTEX_RECURSIVE);
    Condition condition;
    Scope scope;
    const auto waits = [&](int32_t expected, int64_t deadline_ns, const char *name) {
        spawn([&, expected, deadline_ns, name] {
            mutex.lock();
            mutex.lock(); // all of it is given back
            const int32_t status = mc_cond_wait(condition, mutex, deadline_ns);
            cr_assert_eq(status, expected, "%s: %d", name, status);
            mark(name);
            mutex.unlock();
            mutex.unlock();
            cr_assert_eq(mc_mutex_unlock(mutex), MC_E_PERM);
        });
    };
    cr_assert_eq(mc_cond_wait(condition, mutex, MC_FOREVER), MC_E_PERM);
    cr_assert_eq(mc_cond_wait(condition, 0, MC_FOREVER), MC_E_STALE);
    mutex.lock();
    cr_assert_eq(mc_cond_wait(0, mutex, MC_FOREVER), MC_E_STALE);
    cr_assert_eq(mc_cond_wait(condition, mutex, MC_NOW), MC_E_TIMEDOUT);
    mutex.unlock();
    cr_assert_eq(mc_cond_signal(condition), MC_OK, "nobody waits: lost, as it must be");
    {
        Inside inside(scope);
        spawn([&] {
            Inside here(scope);
            mutex.lock();
            cr_assert_eq(mc_cond_wait(condition, mutex, MC_FOREVER), MC_E_CANCELED);
            mark("cancelled");
            mutex.unlock();
        });
    }
    waits(MC_E_TIMEDOUT, mc_after(20 * unit), "late");
    waits(MC_OK, MC_FOREVER, "first");
    waits(MC_OK, MC_FOREVER, "second");
    waits(MC_OK, MC_FOREVER, "third");
    cr_assert_eq(mc_cond_destroy(condition), MC_E_BUSY);
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    while (trace.find("late") == std::string::npos)
        pause_for(unit);
    expect_trace("cancelled late ");
    cr_assert_eq(mc_cond_signal(condition), MC_OK);
    csp_yield();
    expect_trace("cancelled late first ");
    cr_assert_eq(mc_cond_broadcast(condition), MC_OK);
    csp_schedule();
    expect_trace("cancelled late first second third ");
}

// Goal: while somebody waits for a condition with it, the mutex stays; and when the runtime ends meanwhile, the waiter owns the
// mutex all the same, though another one had it.
Test(ConditionApi, the_mutex_is_owned_whatever_ends_the_wait, .timeout = 20) {
    World world;
    Mutex mutex;
    Condition condition;
    mc_runtime_t rt = 0;
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    options.executors = 2;
    cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
    cr_assert_eq(mc_runtime_start(rt), MC_OK);
    struct State {
        mc_mutex_t mutex;
        mc_cond_t condition;
        sync::atomic<int> inside{0}, waits{0};
    } state{mutex, condition, {}, {}};
    const auto waits = [](void *user) -> int32_t {
        auto &s = *static_cast<State *>(user);
        cr_assert_eq(mc_mutex_lock(s.mutex), MC_OK);
        s.waits.fetch_add(1, sync::acq_rel);
        const int32_t status = mc_cond_wait(s.condition, s.mutex, MC_FOREVER);
        cr_assert_eq(s.inside.fetch_add(1, sync::acq_rel), 0);
        s.inside.fetch_sub(1, sync::acq_rel);
        cr_assert_eq(mc_mutex_unlock(s.mutex), MC_OK);
        return status;
    };
    mc_task_t tasks[4] = {};
    for (mc_task_t &task : tasks)
        cr_assert_eq(mc_spawn(rt, waits, &state, nullptr, &task), MC_OK);
    while (state.waits.load(sync::acquire) != 4)
        pause_for(MC_MS / 5);
    mutex.lock(); // all four have given it back
    mutex.unlock();
    cr_assert_eq(mc_mutex_destroy(mutex), MC_E_BUSY);
    const auto holds = [](void *user) -> int32_t {
        auto &s = *static_cast<State *>(user);
        cr_assert_eq(mc_mutex_lock(s.mutex), MC_OK);
        cr_assert_eq(s.inside.fetch_add(1, sync::acq_rel), 0);
        cr_assert_eq(mc_cond_signal(s.condition), MC_OK);
        s.waits.store(0, sync::release);
        for (int i = 0; i < 5; ++i)
            (void)mc_sleep(unit); // ended by the shutdown, while the one that was signalled comes back
        for (int i = 0; i < 1000; ++i)
            csp_yield();
        s.inside.fetch_sub(1, sync::acq_rel);
        cr_assert_eq(mc_mutex_unlock(s.mutex), MC_OK);
        return 0;
    };
    mc_task_t holder = 0;
    cr_assert_eq(mc_spawn(rt, holds, &state, nullptr, &holder), MC_OK);
    while (state.waits.load(sync::acquire) != 0)
        pause_for(MC_MS / 5);
    cr_assert_eq(mc_runtime_shutdown(rt, MC_FOREVER), MC_OK);
    int signalled = 0;
    for (const mc_task_t task : tasks) {
        int32_t result = 1;
        cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
        signalled += result == MC_OK;
        cr_assert(result == MC_OK || result == MC_E_SHUTDOWN, "%d", result);
    }
    cr_assert_eq(signalled, 1);
    cr_assert_eq(mc_join(holder, MC_FOREVER, nullptr), MC_OK);
    cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
}

// Goal: one that was cancelled waits for the mutex all the same: it goes on as its owner.
Test(ConditionApi, a_cancelled_waiter_owns_the_mutex) {
    World world;
    Mutex mutex;
    Condition condition;
    Scope scope;
    spawn([&] {
        Inside inside(scope);
        mutex.lock();
        cr_assert_eq(mc_cond_wait(condition, mutex, MC_FOREVER), MC_E_CANCELED);
        mark("owns");
        mutex.unlock();
    });
    mutex.lock();
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp_yield();
    csp_yield();
    expect_trace("");
    mutex.unlock();
    csp_schedule();
    expect_trace("owns ");
}

// Goal: a waiter that finds the owner dead when it locks again learns that, and owns the mutex.
Test(ConditionApi, the_owner_dies_meanwhile) {
    World world;
    Mutex mutex;
    Condition condition;
    int32_t status = 1;
    spawn([&] {
        mutex.lock();
        status = mc_cond_wait(condition, mutex, MC_FOREVER);
        cr_assert_eq(mc_mutex_consistent(mutex), MC_OK);
        mutex.unlock();
    });
    join(start([&] {
        mutex.lock();
        cr_assert_eq(mc_cond_signal(condition), MC_OK);
    }));
    csp_schedule();
    cr_assert_eq(status, MC_E_OWNERDEAD);
}

// --- read-write lock ---

// Goal: one writer or many readers, and both make progress.
Test(RwLockApi, excludes, .timeout = 60) {
    for (const int executors : {0, 1, 2, 8}) {
        mc_rwlock_t lock = 0;
        cr_assert_eq(mc_rwlock_create(&lock), MC_OK);
        sync::atomic<int> readers{0}, writers{0};
        int64_t value = 0;
        run_everywhere(executors, 8, 2, [&](int who) {
            base::Prng prng(static_cast<uint64_t>(who) + 1);
            for (int i = 0; i < scaled(200); ++i) {
                const int64_t deadline = prng.below(4) == 0 ? mc_after(prng.below(20'000)) : MC_FOREVER;
                const bool writes = prng.below(4) == 0;
                const int32_t status =
                    writes ? mc_rwlock_write_lock(lock, deadline) : mc_rwlock_read_lock(lock, deadline);
                if (status == MC_E_TIMEDOUT)
                    continue;
                cr_assert_eq(status, MC_OK);
                cr_assert_eq((writes ? writers : readers).fetch_add(1, sync::acq_rel) != 0 && writes, false);
                const int64_t before = value;
                if (prng.below(2) == 0)
                    csp_yield();
                cr_assert_eq(value, before);
                if (writes) {
                    cr_assert_eq(readers.load(sync::acquire), 0);
                    value = before + 1;
                } else {
                    cr_assert_eq(writers.load(sync::acquire), 0);
                }
                (writes ? writers : readers).fetch_sub(1, sync::acq_rel);
                cr_assert_eq(writes ? mc_rwlock_write_unlock(lock) : mc_rwlock_read_unlock(lock), MC_OK);
            }
        });
        cr_assert_eq(mc_rwlock_destroy(lock), MC_OK);
    }
}

// Goal: first come, first served: readers that come later stand behind a writer; when that one gives up they go on.
Test(RwLockApi, in_order) {
    World world;
    RwLock lock;
    Scope scope;
    const auto reads = [&](const char *name) {
        spawn([&lock, name] {
            cr_assert_eq(mc_rwlock_read_lock(lock, MC_FOREVER), MC_OK);
            mark(name);
            cr_assert_eq(mc_rwlock_read_unlock(lock), MC_OK);
        });
    };
    cr_assert_eq(mc_rwlock_read_lock(lock, MC_FOREVER), MC_OK);
    reads("r1");
    expect_trace("r1 ");
    spawn([&] {
        Inside inside(scope);
        cr_assert_eq(mc_rwlock_write_lock(lock, MC_FOREVER), MC_E_CANCELED);
        mark("w1");
    });
    reads("r2");
    reads("r3");
    expect_trace("r1 ");
    cr_assert_eq(mc_rwlock_read_lock(lock, MC_NOW), MC_E_TIMEDOUT);
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp_schedule();
    expect_trace("r1 w1 r2 r3 ");
    spawn([&] {
        cr_assert_eq(mc_rwlock_write_lock(lock, MC_FOREVER), MC_OK);
        mark("w2");
        cr_assert_eq(mc_rwlock_write_lock(lock, MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_eq(mc_rwlock_read_lock(lock, MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_eq(mc_rwlock_destroy(lock), MC_E_BUSY);
        csp_yield();
        cr_assert_eq(mc_rwlock_write_unlock(lock), MC_OK);
    });
    reads("r4");
    cr_assert_eq(mc_rwlock_read_unlock(lock), MC_OK);
    cr_assert_eq(mc_rwlock_write_unlock(lock), MC_E_PERM);
    csp_schedule();
    expect_trace("r1 w1 r2 r3 w2 r4 ");
    cr_assert_eq(mc_rwlock_read_unlock(lock), MC_E_PERM);
}

// --- all of them ---

// Goal: within a callback nothing waits.
Test(SyncApi, nothing_waits_in_callbacks) {
    World world;
    static mc_mutex_t mutex;
    static mc_semaphore_t semaphore;
    static mc_rwlock_t lock;
    static mc_waitgroup_t waitgroup;
    static mc_cond_t condition;
    static mc_once_t once;
    static mc_group_t group;
    cr_assert_eq(mc_waitgroup_create(1, &waitgroup), MC_OK);
    cr_assert_eq(mc_cond_create(&condition), MC_OK);
    cr_assert_eq(mc_once_create(&once), MC_OK);
    cr_assert_eq(mc_group_create(0, MC_FOREVER, &group), MC_OK);
    cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
    cr_assert_eq(mc_semaphore_create(1, &semaphore), MC_OK);
    cr_assert_eq(mc_rwlock_create(&lock), MC_OK);
    const auto tx = [](void *, void *) {
        cr_assert_eq(mc_mutex_lock(mutex), MC_E_CONTEXT);
        cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_OK, "it need not wait");
        cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_E_CONTEXT);
        cr_assert_eq(mc_rwlock_write_lock(lock, MC_FOREVER), MC_E_CONTEXT);
        cr_assert_eq(mc_waitgroup_wait(waitgroup, MC_FOREVER), MC_E_CONTEXT);
        cr_assert_eq(mc_group_wait(group, MC_FOREVER, nullptr), MC_E_CONTEXT);
        cr_assert_eq(mc_sleep(MC_SEC), MC_E_CONTEXT);
        cr_assert_eq(mc_blocking_call([](void *) -> int32_t { return 0; }, nullptr, nullptr), MC_E_CONTEXT);
        const auto waits = [](void *) -> int32_t {
            mc_mutex_t own = 0;
            cr_assert_eq(mc_mutex_create(0, &own), MC_OK);
            cr_assert_eq(mc_mutex_lock(own), MC_OK);
            cr_assert_eq(mc_cond_wait(condition, own, MC_FOREVER), MC_E_CONTEXT);
            cr_assert_eq(mc_mutex_unlock(own), MC_OK);
            cr_assert_eq(mc_mutex_destroy(own), MC_OK);
            return MC_OK;
        };
        cr_assert_eq(mc_once_call(once, waits, nullptr, MC_FOREVER), MC_OK);
    };
    {
        Chan channel(tx);
        spawn([&] {
            cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
            cr_assert_eq(mc_rwlock_write_lock(lock, MC_FOREVER), MC_OK);
            int value = 0;
            cr_assert_eq(mc_group_spawn(
                             group, [](void *) -> int32_t { return 0; }, nullptr, nullptr),
                         MC_OK);
            cr_assert_eq(csp_recv(channel.r, &value), 1);
            cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
            cr_assert_eq(mc_rwlock_write_unlock(lock), MC_OK);
        });
        cr_assert_eq(channel.send(1), 1);
        csp_schedule();
    }
    cr_assert_eq(mc_waitgroup_done(waitgroup), MC_OK);
    cr_assert_eq(mc_waitgroup_destroy(waitgroup), MC_OK);
    cr_assert_eq(mc_cond_destroy(condition), MC_OK);
    cr_assert_eq(mc_once_destroy(once), MC_OK);
    cr_assert_eq(mc_group_destroy(group), MC_OK);
    cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
    cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    cr_assert_eq(mc_rwlock_destroy(lock), MC_OK);
}

// Goal: a primitive may be destroyed by the one that it has just let go on.
Test(SyncApi, destroyed_by_whom_it_woke, .timeout = 60) {
    World world;
    Many many(2);
    for (int i = 0; i < scaled(300); ++i) {
        mc_semaphore_t semaphore = 0;
        mc_waitgroup_t group = 0;
        cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
        cr_assert_eq(mc_waitgroup_create(1, &group), MC_OK);
        const mc_task_t first = start([&] {
            cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
        });
        const mc_task_t second = start([&] {
            cr_assert_eq(mc_waitgroup_wait(group, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_waitgroup_destroy(group), MC_OK);
        });
        cr_assert_eq(mc_semaphore_release(semaphore, 1), MC_OK);
        cr_assert_eq(mc_waitgroup_done(group), MC_OK);
        join(first);
        join(second);
    }
}
