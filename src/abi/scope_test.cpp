// mc/scope.h: cancellation scopes, groups, task-local storage; alone, among many, and with threads.
#include "base/prng.hpp"
#include "csp/test_many.hpp"

#include <mc/scope.h>
#include <mc/sync.h>

#include <memory>
#include <stdexcept>
#include <vector>

using namespace mc;
using namespace mc::csp::testing;

namespace {

mc_scope_t new_scope(int64_t deadline_ns = MC_FOREVER) {
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(deadline_ns, &scope), MC_OK);
    return scope;
}

struct Inside {
    explicit Inside(mc_scope_t scope) { cr_assert_eq(mc_scope_enter(scope), MC_OK); }
    ~Inside() { cr_assert_eq(mc_scope_leave(), MC_OK); }
};

int32_t cause_of(mc_scope_t scope) {
    int32_t cause = 1;
    cr_assert_eq(mc_scope_cause(scope, &cause), MC_OK);
    return cause;
}

void end(mc_scope_t scope) { cr_assert_eq(mc_scope_destroy(scope), MC_OK); }

// Whoever waits here does so until it is cancelled.
int32_t wait_for_ever() {
    mc_semaphore_t semaphore = 0;
    cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
    const int32_t status = mc_semaphore_acquire(semaphore, 1, MC_FOREVER);
    cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    return status;
}

template <class Body> void spawn_in(mc_group_t group, Body body) {
    const mc_task_fn run = [](void *argument) -> int32_t {
        const std::unique_ptr<Body> owned(static_cast<Body *>(argument));
        const int32_t result = (*owned)();
        bodies.fetch_sub(1, sync::release);
        return result;
    };
    cr_assert_eq(mc_group_spawn(group, run, new_body(std::move(body)), nullptr), MC_OK);
}

struct Group {
    mc_group_t handle = 0;
    explicit Group(int64_t deadline_ns = MC_FOREVER) { cr_assert_eq(mc_group_create(0, deadline_ns, &handle), MC_OK); }
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;
    ~Group() { cr_assert_eq(mc_group_destroy(handle), MC_OK); }
    int32_t wait() const {
        int32_t error = 1;
        cr_assert_eq(mc_group_wait(handle, MC_FOREVER, &error), MC_OK);
        return error;
    }
};

} // namespace

// --- scopes ---

// Goal: bad calls get their codes and change nothing.
Test(ScopeApi, misuse) {
    World world;
    mc_scope_t scope = 9;
    int32_t cause = 9;
    cr_assert_eq(mc_scope_create(MC_FOREVER, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_scope_enter(0), MC_E_STALE);
    cr_assert_eq(mc_scope_leave(), MC_E_NOENT);
    cr_assert_eq(mc_scope_cancel(0, 0), MC_E_STALE);
    cr_assert_eq(mc_scope_cause(0, &cause), MC_E_STALE);
    cr_assert_eq(mc_scope_destroy(1), MC_E_STALE);
    cr_assert_eq(mc_scope_self(), 0u);
    scope = new_scope();
    cr_assert_eq(mc_scope_cause(scope, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_scope_cancel(scope, 1), MC_E_INVAL);
    cr_assert_eq(cause_of(scope), 0);
    {
        Inside inside(scope);
        cr_assert_eq(mc_scope_self(), scope);
        cr_assert_eq(mc_scope_destroy(scope), MC_E_BUSY);
        const mc_scope_t below = new_scope();
        {
            Inside deeper(below);
            cr_assert_eq(mc_scope_self(), below);
        }
        cr_assert_eq(mc_scope_self(), scope);
        cr_assert_eq(mc_scope_destroy(scope), MC_E_BUSY);
        end(below);
    }
    end(scope);
    cr_assert_eq(cause, 9);
    cr_assert_eq(mc_scope_enter(scope), MC_E_STALE);
    cr_assert_eq(mc_scope_cause(scope, &cause), MC_E_STALE);
}

// Goal: every call that waits honours the scope, before it waits and while it does: channels, alt, timers, join, primitives.
Test(ScopeApi, every_wait_is_cancelled) {
    World world;
    Chan channel;
    mc_chan_t chan = 0;
    mc_mutex_t mutex = 0;
    mc_semaphore_t semaphore = 0;
    mc_waitgroup_t group = 0;
    mc_rwlock_t lock = 0;
    mc_cond_t condition = 0;
    mc_once_t once = 0;
    cr_assert_eq(mc_chan_create(0, 4, 0, nullptr, nullptr, &chan), MC_OK);
    cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
    cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
    cr_assert_eq(mc_waitgroup_create(1, &group), MC_OK);
    cr_assert_eq(mc_rwlock_create(&lock), MC_OK);
    cr_assert_eq(mc_cond_create(&condition), MC_OK);
    cr_assert_eq(mc_once_create(&once), MC_OK);
    cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
    cr_assert_eq(mc_rwlock_write_lock(lock, MC_FOREVER), MC_OK);
    bool stop = false;
    const mc_task_t blocked = start([&] {
        while (!stop)
            csp_yield();
    });
    static bool *stop_once = nullptr;
    stop_once = &stop;
    spawn([&] {
        const auto body = [](void *) -> int32_t {
            while (!*stop_once)
                csp_yield();
            return MC_OK;
        };
        cr_assert_eq(mc_once_call(once, body, nullptr, MC_FOREVER), MC_OK);
    });
    const std::function<int32_t()> waits[] = {
        [&] {
            int value = 0;
            return csp_send(channel.w, &value);
        },
        [&] {
            int value = 0;
            return csp_recv_until(channel.r, &value, mc_after(20 * MC_SEC));
        },
        [&] {
            int value = 0;
            const csp_chanop ops[] = {receives(channel.r, &value), dies(channel.w)};
            return csp_alt(ops, 2, 0);
        },
        [&] {
            int value = 0;
            return mc_recv(chan, &value);
        },
        [&] {
            int value = 0;
            return mc_send_until(chan, &value, mc_after(20 * MC_SEC));
        },
        [&] { return mc_join(blocked, MC_FOREVER, nullptr); },
        [&] { return mc_mutex_lock(mutex); },
        [&] { return mc_semaphore_acquire(semaphore, 1, MC_FOREVER); },
        [&] { return mc_waitgroup_wait(group, MC_FOREVER); },
        [&] { return mc_rwlock_read_lock(lock, MC_FOREVER); },
        [&] { return mc_rwlock_write_lock(lock, mc_after(20 * MC_SEC)); },
        [&] {
            const auto body = [](void *) -> int32_t { return MC_OK; };
            return mc_once_call(once, body, nullptr, MC_FOREVER);
        },
        [&] { return mc_sleep(20 * MC_SEC); },
        [&] {
            mc_mutex_t own = 0;
            cr_assert_eq(mc_mutex_create(0, &own), MC_OK);
            cr_assert_eq(mc_mutex_lock(own), MC_OK);
            const int32_t status = mc_cond_wait(condition, own, MC_FOREVER);
            cr_assert_eq(mc_mutex_unlock(own), MC_OK);
            cr_assert_eq(mc_mutex_destroy(own), MC_OK);
            return status;
        },
    };
    int index = 0;
    for (const auto &wait : waits) {
        const mc_scope_t scope = new_scope();
        int32_t status = 1;
        spawn([&] {
            Inside inside(scope);
            status = wait();
            cr_assert_eq(wait(), MC_E_CANCELED, "a later wait");
        });
        cr_assert_eq(status, 1, "wait %d did not wait", index);
        cr_assert_eq(mc_scope_cancel(scope, MC_E_IO), MC_OK);
        for (int i = 0; status == 1 && i < 10; ++i)
            csp_yield();
        cr_assert_eq(status, MC_E_CANCELED, "wait %d: %d", index, status);
        csp_yield();
        csp_yield();
        cr_assert_eq(cause_of(scope), MC_E_IO);
        end(scope);
        ++index;
    }
    cr_assert_eq(mc_scope_self(), 0u);
    stop = true;
    join(blocked);
    csp_schedule();
    cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
    cr_assert_eq(mc_rwlock_write_unlock(lock), MC_OK);
    cr_assert_eq(mc_waitgroup_done(group), MC_OK);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
    cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    cr_assert_eq(mc_waitgroup_destroy(group), MC_OK);
    cr_assert_eq(mc_rwlock_destroy(lock), MC_OK);
    cr_assert_eq(mc_cond_destroy(condition), MC_OK);
    cr_assert_eq(mc_once_destroy(once), MC_OK);
}

// Goal: the deadline ends waits with MC_E_CANCELED and the cause MC_E_TIMEDOUT; an earlier one of the call's own says
// MC_E_TIMEDOUT and does not cancel; on microthreads, on the owner and on threads.
Test(ScopeApi, deadlines, .timeout = 20) {
    World world;
    const auto body = [] {
        const int64_t began = mc_now();
        const mc_scope_t scope = new_scope(began + 60 * unit);
        {
            Inside inside(scope);
            cr_assert_eq(mc_sleep(unit), MC_OK);
            cr_assert_eq(cause_of(scope), 0);
            cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
            cr_assert_geq(mc_now() - began, 60 * unit);
            cr_assert_eq(cause_of(scope), MC_E_TIMEDOUT);
            cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
            cr_assert_eq(mc_checkpoint(), MC_E_CANCELED);
        }
        cr_assert_eq(mc_checkpoint(), MC_OK);
        cr_assert_eq(mc_scope_cancel(scope, MC_E_IO), MC_OK);
        cr_assert_eq(cause_of(scope), MC_E_TIMEDOUT, "the first cause stays");
        end(scope);
        const mc_scope_t past = new_scope(mc_now() - 1);
        cr_assert_eq(cause_of(past), MC_E_TIMEDOUT, "also when nobody ever waited");
        cr_assert_eq(mc_scope_cancel(past, MC_E_IO), MC_OK);
        cr_assert_eq(cause_of(past), MC_E_TIMEDOUT, "and then it is the first cause");
        Inside inside(past);
        cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
        cr_assert_eq(mc_scope_leave(), MC_OK);
        end(past);
        cr_assert_eq(mc_scope_enter(new_scope()), MC_OK); // for Inside to leave
    };
    body();
    join(start(body));
    { PosixThread thread(body); }
    Many many(2);
    join(start(body));
}

// Goal: what cancels a scope cancels those below it, however deep, and no others; the deadline of one bounds those below.
Test(ScopeApi, trees) {
    World world;
    const mc_scope_t root = new_scope();
    std::vector<mc_scope_t> chain;
    mc_scope_t beside = 0;
    int ended = 0;
    {
        Inside inside(root);
        beside = new_scope();
    }
    spawn([&] {
        cr_assert_eq(mc_scope_enter(root), MC_OK);
        for (int i = 0; i < 1000; ++i) {
            chain.push_back(new_scope());
            cr_assert_eq(mc_scope_enter(chain.back()), MC_OK);
        }
        cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
        ++ended;
        for (int i = 0; i < 1000; ++i)
            cr_assert_eq(mc_scope_leave(), MC_OK);
        cr_assert_eq(wait_for_ever(), MC_E_CANCELED, "the root is cancelled as well");
        cr_assert_eq(mc_scope_leave(), MC_OK);
        cr_assert_eq(mc_semaphore_acquire(0, 1, MC_FOREVER), MC_E_STALE);
    });
    spawn([&] {
        Inside inside(beside);
        cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
        ended += 10;
    });
    spawn([&] {
        Inside inside(chain[500]);
        cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
        ended += 100;
    });
    cr_assert_eq(mc_scope_cancel(chain[400], MC_E_IO), MC_OK);
    csp_yield();
    cr_assert_eq(ended, 100 + 1);
    cr_assert_eq(cause_of(chain[999]), MC_E_IO);
    cr_assert_eq(cause_of(chain[399]), 0);
    cr_assert_eq(mc_scope_cancel(root, MC_E_CLOSED), MC_OK);
    csp_schedule();
    cr_assert_eq(ended, 111);
    cr_assert_eq(cause_of(chain[399]), MC_E_CLOSED);
    cr_assert_eq(cause_of(chain[999]), MC_E_IO);
    {
        Inside inside(root);
        const mc_scope_t late = new_scope();
        cr_assert_eq(cause_of(late), MC_E_CLOSED, "made below one that is cancelled");
        end(late);
    }
    while (!chain.empty()) {
        end(chain.back());
        chain.pop_back();
    }
    end(beside);
    end(root);
    const mc_scope_t short_one = new_scope(mc_after(unit));
    Inside inside(short_one);
    const mc_scope_t below = new_scope(MC_FOREVER);
    {
        Inside deeper(below);
        cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
        cr_assert_eq(cause_of(below), MC_E_TIMEDOUT);
    }
    end(below);
    cr_assert_eq(mc_scope_leave(), MC_OK);
    end(short_one);
    cr_assert_eq(mc_scope_enter(new_scope()), MC_OK);
}

// Goal: a task that ends inside scopes has left them.
Test(ScopeApi, the_end_leaves) {
    World world;
    const mc_scope_t outer = new_scope();
    const mc_scope_t inner = new_scope();
    join(start([&] {
        cr_assert_eq(mc_scope_enter(outer), MC_OK);
        cr_assert_eq(mc_scope_enter(inner), MC_OK);
    }));
    {
        PosixThread thread([&] { cr_assert_eq(mc_scope_enter(outer), MC_OK); });
    }
    end(inner);
    end(outer);
}

// Goal: a thread keeps its scopes, its values and its mutexes when it gives the runtime executors, and takes it back.
Test(ScopeApi, a_thread_stays_who_it_is) {
    World world;
    const mc_scope_t scope = new_scope();
    mc_mutex_t mutex = 0;
    mc_local_t key = 0;
    int value = 0;
    cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
    cr_assert_eq(mc_local_create(nullptr, &key), MC_OK);
    cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
    cr_assert_eq(mc_local_set(key, &value), MC_OK);
    Inside inside(scope);
    for (int i = 0; i < 3; ++i) {
        Many many(2);
        cr_assert_eq(mc_local_get(key), &value);
        cr_assert_eq(mc_scope_self(), scope);
        cr_assert_eq(mc_mutex_lock(mutex), MC_E_DEADLOCK);
        join(start([&] { cr_assert_eq(mc_mutex_try_lock(mutex), MC_E_AGAIN); }));
    }
    cr_assert_eq(mc_local_get(key), &value);
    cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
    cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
    cr_assert_eq(mc_local_destroy(key), MC_OK);
}

// Goal: waits, cancellations and releases at random on several executors: everybody ends, no release is lost.
Test(ScopeApi, random_cancellations, .timeout = 120) {
    for (const int executors : {1, 2, 8}) {
        World world;
        Many many(executors);
        for (int round = 0; round < scaled(60); ++round) {
            constexpr int waiters = 8;
            mc_semaphore_t semaphore = 0;
            cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
            const mc_scope_t root = new_scope();
            mc_scope_t scopes[waiters];
            {
                Inside inside(root);
                for (mc_scope_t &scope : scopes)
                    scope = new_scope();
            }
            sync::atomic<int> had{0}, cancelled{0};
            std::vector<mc_task_t> tasks;
            for (int i = 0; i < waiters; ++i)
                tasks.push_back(start([&, i] {
                    Inside inside(scopes[i]);
                    const int32_t status = mc_semaphore_acquire(semaphore, 1, MC_FOREVER);
                    cr_assert(status == MC_OK || status == MC_E_CANCELED);
                    (status == MC_OK ? had : cancelled).fetch_add(1, sync::acq_rel);
                }));
            base::Prng prng(static_cast<uint64_t>(round));
            int released = 0;
            for (int i = 0; i < waiters; ++i) {
                if (prng.below(2) == 0) {
                    cr_assert_eq(mc_scope_cancel(scopes[prng.below(waiters)], 0), MC_OK);
                } else {
                    cr_assert_eq(mc_semaphore_release(semaphore, 1), MC_OK);
                    ++released;
                }
            }
            if (prng.below(2) == 0)
                csp_yield();
            cr_assert_eq(mc_scope_cancel(root, 0), MC_OK);
            for (const mc_task_t task : tasks)
                join(task);
            int left = 0;
            while (mc_semaphore_acquire(semaphore, 1, MC_NOW) == MC_OK)
                ++left;
            cr_assert_eq(had.load(sync::acquire) + left, released);
            cr_assert_eq(had.load(sync::acquire) + cancelled.load(sync::acquire), waiters);
            for (const mc_scope_t scope : scopes)
                end(scope);
            end(root);
            cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
        }
    }
}

// --- groups ---

// Goal: the first error cancels the others and is what the waiter learns; the group ends with its last child.
Test(GroupApi, the_first_error_cancels_the_rest, .timeout = 20) {
    for (const int executors : {0, 1, 2, 8}) {
        World world;
        std::unique_ptr<Many> many;
        if (executors > 0)
            many = std::make_unique<Many>(executors);
        Group group;
        sync::atomic<int> cancelled{0};
        mc_semaphore_t waiting = 0;
        cr_assert_eq(mc_semaphore_create(0, &waiting), MC_OK);
        for (int i = 0; i < 8; ++i)
            spawn_in(group.handle, [&] {
                cr_assert_eq(mc_semaphore_release(waiting, 1), MC_OK);
                cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
                cancelled.fetch_add(1, sync::acq_rel);
                return MC_E_CLOSED; // not the first
            });
        cr_assert_eq(mc_semaphore_acquire(waiting, 8, MC_FOREVER), MC_OK);
        cr_assert_eq(mc_group_destroy(group.handle), MC_E_BUSY);
        cr_assert_eq(mc_group_wait(group.handle, mc_after(unit), nullptr), MC_E_TIMEDOUT);
        spawn_in(group.handle, [] { return MC_E_IO; });
        cr_assert_eq(group.wait(), MC_E_IO);
        cr_assert_eq(cancelled.load(sync::acquire), 8);
        cr_assert_eq(group.wait(), MC_E_IO, "asked again");
        spawn_in(group.handle, [] { return wait_for_ever(); }); // cancelled from its start
        cr_assert_eq(group.wait(), MC_E_IO);
        cr_assert_eq(mc_semaphore_destroy(waiting), MC_OK);
    }
}

// Goal: children that end well cancel nobody; children spawn children; an exception is an error; cancelling ends all.
Test(GroupApi, ends, .timeout = 20) {
    World world;
    {
        Group group;
        cr_assert_eq(group.wait(), 0, "an empty group");
        int depth = 0;
        std::function<int32_t()> child = [&]() -> int32_t {
            if (++depth < 5)
                spawn_in(group.handle, child);
            cr_assert_eq(mc_group_wait(group.handle, MC_FOREVER, nullptr), MC_E_DEADLOCK);
            return depth;
        };
        spawn_in(group.handle, child);
        cr_assert_eq(group.wait(), 0);
        cr_assert_eq(depth, 5);
    }
    {
        world.expected_lines = 1;
        Group group;
        spawn_in(group.handle, [] { return wait_for_ever(); });
        const auto crash = [](void *) -> int32_t { throw std::runtime_error("planted"); };
        cr_assert_eq(mc_group_spawn(group.handle, crash, nullptr, nullptr), MC_OK);
        cr_assert_eq(group.wait(), MC_E_CRASHED);
    }
    {
        Group group;
        spawn_in(group.handle, [] { return wait_for_ever(); });
        cr_assert_eq(mc_group_cancel(group.handle, 1), MC_E_INVAL);
        cr_assert_eq(mc_group_cancel(group.handle, 0), MC_OK);
        cr_assert_eq(group.wait(), MC_E_CANCELED);
    }
    {
        Group group(mc_after(2 * unit));
        spawn_in(group.handle, [] { return wait_for_ever() == MC_E_CANCELED ? MC_OK : MC_E_IO; });
        cr_assert_eq(group.wait(), 0);
    }
}

// Goal: a group is cancelled with the scope that its maker was inside, and stays as long as its children.
Test(GroupApi, nests_in_scopes) {
    World world;
    const mc_scope_t scope = new_scope();
    mc_group_t group = 0;
    {
        Inside inside(scope);
        cr_assert_eq(mc_group_create(0, MC_FOREVER, &group), MC_OK);
    }
    cr_assert_eq(mc_scope_destroy(scope), MC_E_BUSY);
    bool below_ended = false;
    spawn_in(group, [&] {
        cr_assert_eq(mc_scope_self(), 0u, "the group's has no handle");
        cr_assert_eq(mc_scope_leave(), MC_E_NOENT, "nor can it be left");
        const mc_scope_t below = new_scope();
        {
            Inside inside(below);
            cr_assert_eq(wait_for_ever(), MC_E_CANCELED);
        }
        below_ended = true;
        return static_cast<int32_t>(mc_scope_destroy(below));
    });
    csp_yield();
    cr_assert_eq(mc_scope_cancel(scope, MC_E_IO), MC_OK);
    int32_t error = 1;
    cr_assert_eq(mc_group_wait(group, MC_FOREVER, &error), MC_OK);
    cr_assert_eq(error, 0);
    cr_assert(below_ended);
    cr_assert_eq(mc_group_destroy(group), MC_OK);
    end(scope);
    cr_assert_eq(mc_group_destroy(group), MC_E_STALE);
    cr_assert_eq(mc_group_cancel(group, 0), MC_E_STALE);
    cr_assert_eq(mc_group_wait(group, MC_FOREVER, &error), MC_E_STALE);
    cr_assert_eq(mc_group_spawn(
                     group, [](void *) -> int32_t { return 0; }, nullptr, nullptr),
                 MC_E_STALE);
    cr_assert_eq(mc_group_spawn(group, nullptr, nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_group_create(0, MC_FOREVER, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_group_create(5, MC_FOREVER, &group), MC_E_STALE);
}

// --- task-local storage ---

namespace {
sync::atomic<int> dropped{0};
mc_local_t resetting_key = 0;
} // namespace

// Goal: each task has its own value, which goes with it, and is dropped at its end, on its own stack, also when it crashes.
Test(LocalApi, values_are_a_tasks_own, .timeout = 20) {
    World world;
    mc_local_t key = 0;
    mc_local_t plain = 0;
    cr_assert_eq(mc_local_create(nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(
        mc_local_create([](void *value) { dropped.fetch_add(*static_cast<int *>(value), sync::acq_rel); }, &key),
        MC_OK);
    cr_assert_eq(mc_local_create(nullptr, &plain), MC_OK);
    static int values[64];
    const auto body = [&](int i) {
        values[i] = 1;
        cr_assert_null(mc_local_get(key));
        cr_assert_eq(mc_local_set(key, &values[i]), MC_OK);
        cr_assert_eq(mc_local_set(plain, &values[63 - i]), MC_OK);
        for (int turn = 0; turn < 5; ++turn) {
            csp_yield();
            cr_assert_eq(mc_local_get(key), &values[i]);
            cr_assert_eq(mc_local_get(plain), &values[63 - i]);
        }
    };
    {
        Many many(2);
        std::vector<mc_task_t> tasks;
        for (int i = 0; i < 32; ++i)
            tasks.push_back(start([&, i] { body(i); }));
        PosixThread thread([&] { body(32); });
        for (const mc_task_t task : tasks)
            join(task);
    }
    cr_assert_eq(dropped.load(sync::acquire), 33);
    cr_assert_eq(mc_local_set(key, &values[0]), MC_OK);
    cr_assert_eq(mc_local_set(key, nullptr), MC_OK);
    cr_assert_null(mc_local_get(key));
    cr_assert_eq(mc_local_destroy(key), MC_OK);
    cr_assert_eq(mc_local_destroy(key), MC_E_STALE);
    cr_assert_eq(mc_local_set(key, &values[0]), MC_E_STALE);
    cr_assert_null(mc_local_get(key));
    cr_assert_eq(mc_local_destroy(plain), MC_OK);
}

// Goal: many keys; keys that come and go do not let a task's table grow; what a drop sets anew is dropped, up to four times.
Test(LocalApi, many_keys_and_drops_that_set) {
    World world;
    dropped.store(0, sync::relaxed);
    join(start([] {
        static int value = 0;
        std::vector<mc_local_t> keys(100);
        for (mc_local_t &key : keys) {
            cr_assert_eq(mc_local_create(nullptr, &key), MC_OK);
            cr_assert_eq(mc_local_set(key, &value), MC_OK);
        }
        for (const mc_local_t key : keys) {
            cr_assert_eq(mc_local_get(key), &value);
            cr_assert_eq(mc_local_destroy(key), MC_OK);
        }
        for (int i = 0; i < 10'000; ++i) {
            mc_local_t key = 0;
            cr_assert_eq(mc_local_create(nullptr, &key), MC_OK);
            cr_assert_null(mc_local_get(key));
            cr_assert_eq(mc_local_set(key, &value), MC_OK);
            cr_assert_eq(mc_local_destroy(key), MC_OK);
        }
    }));
    const auto reset = [](void *value) {
        dropped.fetch_add(1, sync::relaxed);
        cr_assert_null(mc_local_get(resetting_key));
        cr_assert_eq(mc_local_set(resetting_key, value), MC_OK);
        csp_yield(); // it may wait
    };
    cr_assert_eq(mc_local_create(reset, &resetting_key), MC_OK);
    join(start([] { cr_assert_eq(mc_local_set(resetting_key, &resetting_key), MC_OK); }));
    cr_assert_eq(dropped.load(sync::relaxed), 4);
    cr_assert_eq(mc_local_destroy(resetting_key), MC_OK);
}

namespace {
mc_local_t calling_key = 0;
sync::atomic<int> drops_that_called{0};
} // namespace

// Goal: a thread whose drops call the library when nobody owns the runtime any more becomes the owner in the middle of its end,
// and that ends as well.
Test(LocalApi, drops_that_take_the_runtime_over, .timeout = 20) {
    cr_assert_eq(csp_run(), 0);
    const auto drop = [](void *) {
        cr_assert_eq(csp_run(), 0); // owns it from here on
        drops_that_called.fetch_add(1, sync::acq_rel);
    };
    cr_assert_eq(mc_local_create(drop, &calling_key), MC_OK);
    for (int i = 1; i <= 3; ++i) {
        sync::atomic<int> step{0};
        PosixThread heir([&] {
            cr_assert_eq(mc_local_set(calling_key, &calling_key), MC_OK); // known, while another one owns it
            step.store(1, sync::release);
            while (step.load(sync::acquire) != 2)
                sync::thread_yield();
        });
        if (i == 1) {
            // The first owner is this thread, which does not end: hand it to one that does.
            cr_assert_eq(csp_init_runtime(1), 1);
            while (step.load(sync::acquire) != 1)
                sync::thread_yield();
            PosixThread owner([] { csp_shutdown_runtime(); });
            owner.join();
        }
        while (step.load(sync::acquire) != 1)
            sync::thread_yield();
        step.store(2, sync::release);
        heir.join();
        cr_assert_eq(drops_that_called.load(sync::acquire), i);
        PosixThread owner([] { cr_assert_eq(csp_run(), 0); });
        owner.join();
    }
    cr_assert_eq(mc_local_destroy(calling_key), MC_OK);
}
