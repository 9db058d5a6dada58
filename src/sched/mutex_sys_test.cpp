// The mutex under every interleaving within bounds: threads without an executor, so that nothing survives a run; on real
// threads in other builds. A lost wake-up shows as a run in which nobody can go on.
#include "sched/mutex.hpp"
#include "sched/test_sched.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::Data;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

namespace {

constexpr uint64_t handle = (uint64_t{1} << 32) | (uint64_t{6} << 28);
constexpr uint64_t next_handle = (uint64_t{3} << 32) | (uint64_t{6} << 28);

// Threads with identities, and one mutex that they use.
struct Setting {
    Loner a, b, c;
    Mutex mutex;
    int inside = 0;
    Data<int> taken{0}; // also shows that what an owner writes is there for the next one
    explicit Setting(uint32_t policy) {
        a.task.slab_index = 1;
        b.task.slab_index = 2;
        c.task.slab_index = 3;
        mutex.generation.store(1, sync::relaxed);
        mutex.begin(policy, handle);
    }

    // What is between lock and unlock excludes.
    void use(Loner &who, int32_t status) {
        if (status != MC_OK && status != MC_E_OWNERDEAD)
            return;
        check(inside++ == 0, "two own it");
        taken.set(taken.get() + 1);
        sync::cpu_relax(); // a choice
        check(inside-- == 1, "two own it");
        if (status == MC_E_OWNERDEAD)
            check(mutex.consistent(who.thread, handle) == MC_OK, "not in doubt");
        check(mutex.unlock(who.thread, handle) == MC_OK, "not owned");
    }
    int32_t lock_and_use(Loner &who, int64_t deadline_ns = MC_FOREVER) {
        const As as(who);
        const int32_t status = mutex.lock(who.thread, handle, deadline_ns);
        use(who, status);
        return status;
    }
    void must_use(Loner &who) { check(lock_and_use(who) == MC_OK, "not locked"); }
    // At the end it is free, and says nothing of waiters once it was used again.
    void expect_free() {
        must_use(a);
        bool reusable = false;
        check(mutex.end(handle, &reusable) == MC_OK, "not free");
    }
};

mc::testing::Exploration options(const char *name, int preemptions) {
    return {.name = name, .preemptions = preemptions, .stale = 1, .timeouts = 2, .spurious = 0};
}

void explore(const char *name, int preemptions, const std::function<void(Setting &)> &body) {
    for (const uint32_t policy : {Mutex::barging, Mutex::fifo}) {
        const auto run = [&] {
            Setting setting(policy);
            body(setting);
            setting.expect_free();
        };
        expect_pass(options(name, preemptions), run);
        mc::testing::Exploration seeds = options(name, 0);
        seeds.search = Search::seeds;
        seeds.seeds = uint64_t{3'000} * mc::testing::scale();
        expect_pass(seeds, run);
    }
}

} // namespace

// Goal: two lock it twice each: they exclude each other, and nobody is left asleep.
Test(MutexSys, two_exclude, .timeout = 120) {
    explore("MutexSys/two_exclude", 2, [](Setting &setting) {
        {
            Thread one([&] { setting.must_use(setting.a), setting.must_use(setting.a); }, "one");
            Thread two([&] { setting.must_use(setting.b), setting.must_use(setting.b); }, "two");
        }
        check(setting.taken.get() == 4, "taken %d times", setting.taken.get());
    });
}

// Goal: three, of which two wait at a time: each unlock wakes one, and the last waiter is not forgotten.
Test(MutexSys, three_exclude, .timeout = 120) {
    explore("MutexSys/three_exclude", 1, [](Setting &setting) {
        {
            Thread one([&] { setting.must_use(setting.a); }, "one");
            Thread two([&] { setting.must_use(setting.b); }, "two");
            Thread three([&] { setting.must_use(setting.c), setting.must_use(setting.c); }, "three");
        }
        check(setting.taken.get() == 4, "taken %d times", setting.taken.get());
    });
}

// Goal: a waiter that is cancelled has it or not, and one behind it gets it in either case.
Test(MutexSys, a_cancelled_waiter_swallows_nothing, .timeout = 120) {
    explore("MutexSys/a_cancelled_waiter_swallows_nothing", 1, [](Setting &setting) {
        Scope scope;
        setting.b.task.scope = &scope;
        check(setting.mutex.lock(setting.a.thread, handle, MC_FOREVER) == MC_OK, "not locked");
        {
            Thread cancelled(
                [&] {
                    const int32_t status = setting.lock_and_use(setting.b);
                    check(status == MC_OK || status == MC_E_CANCELED, "status %d", status);
                },
                "cancelled");
            Thread patient([&] { setting.must_use(setting.c); }, "patient");
            Thread canceller([&] { scope.cancel(); }, "canceller");
            check(setting.mutex.unlock(setting.a.thread, handle) == MC_OK, "not owned");
        }
    });
}

// Goal: a deadline that races a hand-over: it is had or not, and it is free at the end.
Test(MutexSys, a_deadline_races_the_unlock, .timeout = 120) {
    explore("MutexSys/a_deadline_races_the_unlock", 2, [](Setting &setting) {
        check(setting.mutex.lock(setting.a.thread, handle, MC_FOREVER) == MC_OK, "not locked");
        Thread late(
            [&] {
                const int32_t status = setting.lock_and_use(setting.b, sync::now_ns() + 300);
                check(status == MC_OK || status == MC_E_TIMEDOUT, "status %d", status);
            },
            "late");
        check(setting.mutex.unlock(setting.a.thread, handle) == MC_OK, "not owned");
    });
}

// Goal: who does not wait is refused at once: between the call and its answer lie a few operations, and no pause, which takes a
// microsecond of the twin's time.
Test(MutexSys, a_refusal_neither_pauses_nor_waits) {
    if (!mc::testing::systematic)
        return; // real time says nothing of what was done
    for (const uint32_t policy : {Mutex::barging, Mutex::fifo})
        expect_pass(options("MutexSys/a_refusal_neither_pauses_nor_waits", 2), [policy] {
            Setting setting(policy);
            check(setting.mutex.lock(setting.a.thread, handle, MC_FOREVER) == MC_OK, "not locked");
            {
                const As as(setting.b);
                const int64_t began_ns = sync::now_ns();
                const int32_t status = setting.mutex.lock(setting.b.thread, handle, MC_NOW);
                const int64_t took_ns = sync::now_ns() - began_ns;
                check(status == MC_E_TIMEDOUT, "status %d", status);
                check(took_ns < 500, "%lld ns", static_cast<long long>(took_ns));
            }
            check(setting.mutex.unlock(setting.a.thread, handle) == MC_OK, "not owned");
        });
}

// Goal: an owner that ends while others come: one learns of it, the others do not, and all end.
Test(MutexSys, the_owner_dies, .timeout = 120) {
    explore("MutexSys/the_owner_dies", 1, [](Setting &setting) {
        sync::atomic<int> told{0};
        check(setting.mutex.lock(setting.a.thread, handle, MC_FOREVER) == MC_OK, "not locked");
        {
            Thread one([&] { told.fetch_add(setting.lock_and_use(setting.b) == MC_E_OWNERDEAD, sync::relaxed); },
                       "one");
            Thread two([&] { told.fetch_add(setting.lock_and_use(setting.c) == MC_E_OWNERDEAD, sync::relaxed); },
                       "two");
            Mutex::release_held(setting.a.task);
        }
        check(told.load(sync::relaxed) == 1 && setting.taken.get() == 2, "told %d, taken %d times",
              told.load(sync::relaxed), setting.taken.get());
    });
}

// Goal: a mutex that is destroyed, and another one in its place, while somebody locks the first: it gets that one, or is told
// that its handle is stale; never the other one.
Test(MutexSys, a_stale_handle_locks_no_successor, .timeout = 120) {
    for (const uint32_t policy : {Mutex::barging, Mutex::fifo})
        expect_pass(options("MutexSys/a_stale_handle_locks_no_successor", 3), [policy] {
            Setting setting(policy);
            bool replaced = false;
            {
                Thread late(
                    [&] {
                        const int32_t status = setting.lock_and_use(setting.b);
                        check(status == MC_OK || status == MC_E_STALE, "status %d", status);
                    },
                    "late");
                bool reusable = false;
                replaced = setting.mutex.end(handle, &reusable) == MC_OK;
                if (replaced) {
                    setting.mutex.generation.store(3, sync::relaxed);
                    setting.mutex.begin(policy, next_handle);
                }
            }
            const uint64_t live = replaced ? next_handle : handle;
            check(setting.mutex.lock(setting.c.thread, live, MC_NOW) == MC_OK, "somebody owns the successor");
            check(setting.mutex.unlock(setting.c.thread, live) == MC_OK, "not owned");
        });
}
