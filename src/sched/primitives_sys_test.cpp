// Semaphore, wait group, once, condition, read-write lock, groups and the tree of scopes under seeded interleavings; a
// process a run, since handles come from slabs. On real threads in other builds. A lost wake-up shows as a run in which nobody
// can go on.
#include "sched/condition.hpp"
#include "sched/group.hpp"
#include "sched/mutex.hpp"
#include "sched/pool.hpp"
#include "sched/semaphore.hpp"
#include "sched/test_sched.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

namespace {

void explore(const char *name, const std::function<void()> &body) {
    expect_pass({.name = name,
                 .search = Search::seeds,
                 .stale = 1,
                 .timeouts = 2,
                 .spurious = 0,
                 .seeds = uint64_t{1'500} * mc::testing::scale(),
                 .isolate = true,
                 .real_runs = 50},
                body);
}

struct Setting {
    Loner a, b, c, d;
    Setting() {
        uint32_t index = 1;
        for (Loner *loner : {&a, &b, &c, &d})
            loner->task.slab_index = index++;
    }
};

template <class Create> uint64_t made(Create create) {
    uint64_t handle = 0;
    check(create(&handle) == MC_OK, "not made");
    return handle;
}

} // namespace

// Goal: the head asks for more than there is and gives up: those behind it are served with what is there.
Test(PrimitivesSys, a_semaphores_head_gives_up, .timeout = 60) {
    explore("PrimitivesSys/a_semaphores_head_gives_up", [] {
        Setting setting;
        Scope scope;
        const uint64_t semaphore = made([](uint64_t *out) { return create_semaphore(0, out); });
        setting.a.task.scope = &scope;
        const uint32_t more = 2 * static_cast<uint32_t>(choose(2)); // 0: never enough for the head
        int had = 0;
        {
            Thread head(
                [&] {
                    const int32_t status = acquire_units(setting.a.thread, semaphore, 3, MC_FOREVER);
                    check(status == MC_OK || status == MC_E_CANCELED, "status %d", status);
                    if (status == MC_OK)
                        check(release_units(semaphore, 3) == MC_OK, "not released");
                },
                "head");
            Thread behind([&] { had = acquire_units(setting.b.thread, semaphore, 1, MC_FOREVER) == MC_OK; }, "behind");
            Thread canceller([&] { scope.cancel(); }, "canceller");
            check(release_units(semaphore, 1) == MC_OK, "not released");
            check(release_units(semaphore, more) == MC_OK, "not released");
        }
        check(had == 1, "not served");
        check(acquire_units(setting.c.thread, semaphore, more, MC_NOW) == MC_OK, "units are lost");
        check(acquire_units(setting.c.thread, semaphore, 1, MC_NOW) == MC_E_TIMEDOUT, "too many units");
        check(destroy_primitive<Semaphore>(semaphore) == MC_OK, "not free");
    });
}

// Goal: deadlines race releases: units are conserved.
Test(PrimitivesSys, semaphore_units_are_conserved, .timeout = 60) {
    explore("PrimitivesSys/semaphore_units_are_conserved", [] {
        Setting setting;
        const uint64_t semaphore = made([](uint64_t *out) { return create_semaphore(1, out); });
        const auto use = [&](Loner &who, uint32_t count) {
            if (acquire_units(who.thread, semaphore, count, sync::now_ns() + int64_t{200} * (1 + choose(4))) == MC_OK)
                check(release_units(semaphore, count) == MC_OK, "not released");
        };
        {
            Thread one([&] { use(setting.a, 2); }, "one");
            Thread two([&] { use(setting.b, 1); }, "two");
            Thread three([&] { use(setting.c, 2); }, "three");
            check(release_units(semaphore, 1) == MC_OK, "not released");
        }
        check(acquire_units(setting.d.thread, semaphore, 2, MC_NOW) == MC_OK, "units are lost");
        check(destroy_primitive<Semaphore>(semaphore) == MC_OK, "not free");
    });
}

// Goal: a signal is used up by a waiter that still waits, or by nobody; with two signals for two waiters, of which one may be
// late, nobody who was not late is left.
Test(PrimitivesSys, conditions_lose_no_signal, .timeout = 60) {
    explore("PrimitivesSys/conditions_lose_no_signal", [] {
        Setting setting;
        const uint64_t mutex = made([](uint64_t *out) { return create_mutex(Mutex::barging, out); });
        const uint64_t condition = made(create_condition);
        int places = 0;
        const auto lock = [&](Loner &who) {
            const As as(who);
            check(mutex_at(mutex)->lock(who.thread, mutex, MC_FOREVER) == MC_OK, "not locked");
        };
        const auto unlock = [&](Loner &who) {
            check(mutex_at(mutex)->unlock(who.thread, mutex) == MC_OK, "not owned");
        };
        const auto take = [&](Loner &who, int64_t deadline_ns) {
            const As as(who);
            int32_t status = MC_OK;
            lock(who);
            while (places == 0 && status == MC_OK)
                status = wait_for_condition(who.thread, condition, mutex, deadline_ns);
            if (status == MC_OK)
                --places;
            unlock(who);
        };
        {
            Thread patient([&] { take(setting.a, MC_FOREVER); }, "patient");
            Thread hasty([&] { take(setting.b, sync::now_ns() + 400); }, "hasty");
            for (int i = 0; i < 2; ++i) {
                lock(setting.c);
                ++places;
                unlock(setting.c);
                check(signal_condition(condition, false) == MC_OK, "not signalled");
            }
        }
        check(places >= 0 && places <= 1, "%d places", places);
        check(destroy_primitive<Condition>(condition) == MC_OK, "somebody waits");
        check(destroy_mutex(mutex) == MC_OK, "somebody owns it");
    });
}

// Goal: one signal, which a waiter that gives up passes on if it has it: another one, that waits for ever, is not left.
Test(PrimitivesSys, who_gives_up_uses_no_signal, .timeout = 60) {
    explore("PrimitivesSys/who_gives_up_uses_no_signal", [] {
        Setting setting;
        const uint64_t mutex = made([](uint64_t *out) { return create_mutex(Mutex::barging, out); });
        const uint64_t condition = made(create_condition);
        bool ready = false;
        const auto locked = [&](Loner &who, const auto &body) {
            const As as(who);
            check(mutex_at(mutex)->lock(who.thread, mutex, MC_FOREVER) == MC_OK, "not locked");
            body();
            check(mutex_at(mutex)->unlock(who.thread, mutex) == MC_OK, "not owned");
        };
        const auto wait = [&](Loner &who, int64_t deadline_ns) {
            return wait_for_condition(who.thread, condition, mutex, deadline_ns);
        };
        {
            Thread hasty(
                [&] {
                    int32_t status = MC_OK;
                    locked(setting.a, [&] { status = wait(setting.a, sync::now_ns() + 300); });
                    if (status == MC_OK)
                        check(signal_condition(condition, false) == MC_OK, "not passed on");
                },
                "hasty");
            Thread patient(
                [&] {
                    locked(setting.b, [&] {
                        while (!ready)
                            check(wait(setting.b, MC_FOREVER) == MC_OK, "why else");
                    });
                },
                "patient");
            locked(setting.c, [&] { ready = true; });
            Condition *held = lock_primitive<Condition>(condition); // the hasty one gives up, and can not leave
            for (int i = 0; i < 30 && TaskWord::is_parked_unclaimed(setting.a.task.word.look()); ++i)
                sync::cpu_relax();
            held->lock.unlock();
            check(signal_condition(condition, false) == MC_OK, "not signalled");
        }
        check(destroy_primitive<Condition>(condition) == MC_OK, "somebody waits");
    });
}

// Goal: a writer that gives up lets the readers behind it in.
Test(PrimitivesSys, rwlock_writers_that_give_up, .timeout = 60) {
    explore("PrimitivesSys/rwlock_writers_that_give_up", [] {
        Setting setting;
        const uint64_t rwlock = made(create_rwlock);
        int writers = 0;
        int readers = 0;
        check(lock_shared(setting.a.thread, rwlock, MC_FOREVER) == MC_OK, "not locked");
        {
            Thread writer(
                [&] {
                    if (lock_exclusive(setting.b.thread, rwlock, sync::now_ns() + 300) != MC_OK)
                        return;
                    check(++writers == 1 && readers == 0, "not alone");
                    sync::cpu_relax();
                    --writers;
                    check(unlock_exclusive(setting.b.thread, rwlock) == MC_OK, "not locked");
                },
                "writer");
            Thread reader(
                [&] {
                    check(lock_shared(setting.c.thread, rwlock, MC_FOREVER) == MC_OK, "not locked");
                    ++readers;
                    check(writers == 0, "not alone");
                    sync::cpu_relax();
                    --readers;
                    check(unlock_shared(rwlock) == MC_OK, "not locked");
                },
                "reader");
            if (choose(2) == 0) // while the first reader stays: the writer gives up, and the second one goes on
                check(lock_shared(setting.d.thread, rwlock, MC_FOREVER) == MC_OK && unlock_shared(rwlock) == MC_OK,
                      "the third reader");
            check(unlock_shared(rwlock) == MC_OK, "not locked");
        }
        check(destroy_primitive<RwLock>(rwlock) == MC_OK, "not free");
    });
}

namespace {

struct Attempts {
    sync::atomic<int> count{0};
    static int32_t fail_once(void *user) {
        return static_cast<Attempts *>(user)->count.fetch_add(1, sync::acq_rel) == 0 ? MC_E_IO : MC_OK;
    }
};

} // namespace

// Goal: the first attempt fails: exactly one more is made, and all the others learn that it is done.
Test(PrimitivesSys, once_after_a_failure, .timeout = 60) {
    explore("PrimitivesSys/once_after_a_failure", [] {
        Setting setting;
        Attempts attempts;
        const uint64_t once = made(create_once);
        sync::atomic<int> failed{0};
        const auto call = [&](Loner &who) {
            const As as(who);
            const int32_t status = run_once(who.thread, once, Attempts::fail_once, &attempts, MC_FOREVER);
            failed.fetch_add(status != MC_OK, sync::relaxed);
        };
        {
            Thread one([&] { call(setting.a); }, "one");
            Thread two([&] { call(setting.b); }, "two");
            Thread three([&] { call(setting.c); }, "three");
        }
        check(failed.load(sync::relaxed) == 1 && attempts.count.load(sync::relaxed) == 2, "%d failed",
              failed.load(sync::relaxed));
        check(destroy_primitive<Once>(once) == MC_OK, "not free");
    });
}

// Goal: the last one that is done ends all waits, and the group may be destroyed by whom it woke.
Test(PrimitivesSys, wait_groups_open, .timeout = 60) {
    explore("PrimitivesSys/wait_groups_open", [] {
        Setting setting;
        const uint64_t group = made([](uint64_t *out) { return create_wait_group(2, out); });
        Thread waiter(
            [&] {
                check(wait_for_group(setting.a.thread, group, MC_FOREVER) == MC_OK, "not opened");
                check(destroy_primitive<WaitGroup>(group) == MC_OK, "not free");
            },
            "waiter");
        Thread one([&] { check(add_to_wait_group(group, -1) == MC_OK, "one"); }, "one");
        Thread two([&] { check(add_to_wait_group(group, -1) == MC_OK, "two"); }, "two");
    });
}

// Goal: scopes that come and go below one that is being cancelled: each learns of it or was there before, none is touched after
// its end.
Test(PrimitivesSys, scopes_come_and_go_below_a_cancelled_one, .timeout = 60) {
    explore("PrimitivesSys/scopes_come_and_go_below_a_cancelled_one", [] {
        Setting setting;
        Scope *root = Scope::create(nullptr, MC_FOREVER);
        root->add_inside();
        Scope *strangers[2] = {}; // in the places of those that have ended
        {
            Thread maker(
                [&] {
                    for (int i = 0; i < 2; ++i) {
                        Scope *child = Scope::create(root, MC_FOREVER);
                        Scope *grandchild = Scope::create(child, MC_FOREVER);
                        const bool seen = child->cancelled();
                        check(!seen || root->cancelled(), "from below");
                        check(!Scope::destroy(child), "one is below it");
                        check(Scope::destroy(grandchild), "not free");
                        strangers[i] = Scope::create(nullptr, MC_FOREVER);
                        check(Scope::destroy(child), "not free");
                    }
                },
                "maker");
            Thread waiter(
                [&] {
                    Scope *child = Scope::create(root, MC_FOREVER);
                    setting.a.task.scope = child;
                    check(sleep_until(setting.a.thread, MC_FOREVER, nullptr) == MC_E_CANCELED, "why else");
                    setting.a.task.scope = nullptr;
                    check(Scope::destroy(child), "not free");
                },
                "waiter");
            root->cancel(MC_E_IO);
        }
        check(root->cause() == MC_E_IO, "the cause");
        for (Scope *stranger : strangers)
            check(!stranger->cancelled() && Scope::destroy(stranger), "another's scope is cancelled");
        root->remove_inside();
        check(Scope::destroy(root), "not free");
    });
}

// Goal: children that end with errors at once: one is the first, the group is cancelled, its waiter is woken once and may
// destroy it.
Test(PrimitivesSys, the_last_child_wakes_the_waiter, .timeout = 60) {
    explore("PrimitivesSys/the_last_child_wakes_the_waiter", [] {
        Setting setting;
        uint64_t handle = 0;
        Pool *pool = Pool::create();
        check(pool != nullptr && create_group(setting.a.thread, *pool, 0, MC_FOREVER, &handle) == MC_OK, "not made");
        Group *group = lock_primitive<Group>(handle);
        group->children = 2;
        group->lock.unlock();
        Scope *successor = nullptr; // in the place of the group's scope
        {
            Thread waiter(
                [&] {
                    int32_t error = 0;
                    check(wait_for_children(setting.b.thread, handle, MC_FOREVER, &error) == MC_OK, "no end");
                    check(error == MC_E_IO || error == MC_E_CLOSED, "error %d", error);
                    check(destroy_group(handle) == MC_OK, "not free");
                    successor = Scope::create(nullptr, MC_FOREVER);
                },
                "waiter");
            Thread one([&] { child_ended(*group, MC_E_IO); }, "one");
            Thread two([&] { child_ended(*group, MC_E_CLOSED); }, "two");
        }
        check(!successor->cancelled(), "another's scope is cancelled");
        check(Scope::destroy(successor), "not free");
    });
}

// Goal: a child begins while the group ends: the group is still there for it, or it does not begin.
Test(PrimitivesSys, a_group_ends_while_a_child_begins, .timeout = 60) {
    explore("PrimitivesSys/a_group_ends_while_a_child_begins", [] {
        Setting setting;
        uint64_t handle = 0;
        Pool *pool = Pool::create(); // nobody runs what is started there
        check(pool != nullptr && create_group(setting.a.thread, *pool, 0, MC_FOREVER, &handle) == MC_OK, "not made");
        int32_t begun = 1;
        Thread spawner(
            [&] {
                SpawnRequest request;
                request.returning = [](void *) -> int32_t { return MC_OK; };
                request.stack_size = MC_STACK_DEFAULT;
                begun = spawn_in_group(setting.b.thread, handle, request);
            },
            "spawner");
        const int32_t ended = destroy_group(handle);
        spawner.join();
        check(ended == MC_OK ? begun == MC_E_STALE : begun == MC_OK, "ended: %d, begun: %d", ended, begun);
    });
}

// Goal: a group that is cancelled while it ends: its own scope is cancelled, or the handle is stale; never the scope that comes
// after it.
Test(PrimitivesSys, a_group_is_cancelled_and_ends, .timeout = 60) {
    explore("PrimitivesSys/a_group_is_cancelled_and_ends", [] {
        Setting setting;
        uint64_t handle = 0;
        Pool *pool = Pool::create();
        check(pool != nullptr && create_group(setting.a.thread, *pool, 0, MC_FOREVER, &handle) == MC_OK, "not made");
        Thread canceller(
            [&] {
                const int32_t status = cancel_group(handle, MC_E_IO);
                check(status == MC_OK || status == MC_E_STALE, "status %d", status);
            },
            "canceller");
        while (destroy_group(handle) != MC_OK)
            sync::thread_yield();
        Scope *successor = Scope::create(nullptr, MC_FOREVER);
        canceller.join();
        check(!successor->cancelled(), "another's scope is cancelled");
        check(Scope::destroy(successor), "not free");
    });
}

// Goal: what is destroyed, with another one made in its place, while somebody uses it: he has had it, or his handle is stale;
// never the other one.
Test(PrimitivesSys, a_stale_handle_reaches_no_successor, .timeout = 60) {
    explore("PrimitivesSys/a_stale_handle_reaches_no_successor", [] {
        Setting setting;
        const auto one_unit = [](uint64_t *out) { return create_semaphore(1, out); };
        const uint64_t semaphore = made(one_unit);
        Thread late(
            [&] {
                const int32_t status = acquire_units(setting.a.thread, semaphore, 1, MC_FOREVER);
                check(status == MC_OK || status == MC_E_STALE, "status %d", status);
            },
            "late");
        check(destroy_primitive<Semaphore>(semaphore) == MC_OK, "not free");
        const uint64_t next = made(one_unit);
        late.join();
        check(acquire_units(setting.b.thread, next, 1, MC_NOW) == MC_OK, "another's unit is gone");
    });
    explore("PrimitivesSys/a_stale_handle_reaches_no_successor", [] {
        Setting setting;
        const auto scope_of = [](Loner &who) {
            return made([&](uint64_t *out) { return create_scope(who.task, MC_FOREVER, out); });
        };
        const uint64_t scope = scope_of(setting.b);
        Thread late(
            [&] {
                const int32_t status = enter_scope(setting.a.task, scope);
                check(status == MC_OK || status == MC_E_STALE, "status %d", status);
                if (status == MC_OK)
                    check(current_scope(setting.a.task) == scope && leave_scope(setting.a.task) == MC_OK, "another's");
            },
            "late");
        if (destroy_scope(scope) == MC_OK) // else somebody is inside
            (void)scope_of(setting.b);
    });
}

// Goal: among the owner, two microthreads and another thread, through the executor's switches, inbox and sleep: the mutex
// excludes and is free at the end, a condition's signals are not lost.
Test(PrimitivesSys, mutex_and_condition_on_an_executor, .timeout = 60) {
    for (const uint32_t policy : {Mutex::barging, Mutex::fifo})
        explore("PrimitivesSys/mutex_and_condition_on_an_executor", [policy] {
            here();
            Known known;
            const uint64_t mutex = made([=](uint64_t *out) { return create_mutex(policy, out); });
            const uint64_t condition = made(create_condition);
            int inside = 0;
            int places = 0;
            const auto use = [&] {
                check(mutex_at(mutex)->lock(here(), mutex, MC_FOREVER) == MC_OK, "not locked");
                check(inside++ == 0, "two own it");
                sync::cpu_relax();
                ++places;
                check(inside-- == 1, "two own it");
                check(signal_condition(condition, false) == MC_OK, "not signalled");
                check(mutex_at(mutex)->unlock(here(), mutex) == MC_OK, "not owned");
            };
            const auto take = [&] {
                check(mutex_at(mutex)->lock(here(), mutex, MC_FOREVER) == MC_OK, "not locked");
                while (places == 0)
                    check(wait_for_condition(here(), condition, mutex, MC_FOREVER) == MC_OK, "not signalled");
                check(inside == 0, "somebody owns it");
                --places;
                check(mutex_at(mutex)->unlock(here(), mutex) == MC_OK, "not owned");
            };
            const mc_task_t one = start([&] { use(); });
            const mc_task_t two = start([&] { take(); });
            {
                Thread other(
                    [&] {
                        known.arrive();
                        use();
                        take();
                    },
                    "other");
                known.wait_for(1);
                check(join_until(one, MC_FOREVER) == MC_OK && join_until(two, MC_FOREVER) == MC_OK, "no end");
            }
            check(places == 0, "%d places", places);
            check(destroy_primitive<Condition>(condition) == MC_OK, "somebody waits");
            check(destroy_mutex(mutex) == MC_OK, "somebody owns it");
        });
}
