// mc/runtime.h: several runtimes, their ends, quiescence and deadlocks, blocking calls, statistics, stacks.
#include "base/prng.hpp"
#include "base/topology.hpp"
#include "csp/test_many.hpp"

#include <mc/epoch.h>
#include <mc/inspect.h>
#include <mc/runtime.h>

#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using namespace mc;
using namespace mc::csp::testing;

namespace {

struct Options : mc_runtime_options {
    explicit Options(uint32_t count) : mc_runtime_options(MC_RUNTIME_OPTIONS_INIT) { executors = count; }
};

// A runtime that runs while it lives.
class Runtime {
public:
    explicit Runtime(uint32_t executors) : Runtime(Options(executors)) {}
    explicit Runtime(const mc_runtime_options &options) {
        cr_assert_eq(mc_runtime_create(&options, &handle_), MC_OK);
        cr_assert_eq(mc_runtime_start(handle_), MC_OK);
    }
    Runtime(const Runtime &) = delete;
    Runtime &operator=(const Runtime &) = delete;
    ~Runtime() {
        if (handle_ != 0)
            end();
    }
    void end() {
        cr_assert_eq(mc_runtime_shutdown(handle_, MC_FOREVER), MC_OK);
        cr_assert_eq(mc_runtime_destroy(handle_), MC_OK);
        cr_assert_eq(mc_runtime_start(std::exchange(handle_, 0)), MC_E_STALE);
    }
    operator mc_runtime_t() const { return handle_; }

private:
    mc_runtime_t handle_ = 0;
};

template <class Body> int32_t run_returning(void *argument) {
    const std::unique_ptr<Body> body(static_cast<Body *>(argument));
    const int32_t result = (*body)();
    bodies.fetch_sub(1, sync::release);
    return result;
}

// A joinable microthread of the runtime; the body returns its result.
template <class Body> mc_task_t start_in(mc_runtime_t rt, Body body, const char *name = nullptr, uint32_t flags = 0) {
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.name = name;
    options.flags = flags;
    mc_task_t task = 0;
    cr_assert_eq(mc_spawn(rt, run_returning<Body>, new_body(std::move(body)), &options, &task), MC_OK);
    return task;
}

int32_t result_of(mc_task_t task) {
    int32_t result = 1;
    cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
    return result;
}

int32_t wait_for_ever() {
    mc_semaphore_t semaphore = 0;
    cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
    const int32_t status = mc_semaphore_acquire(semaphore, 1, MC_FOREVER);
    cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    return status;
}

mc_runtime_counters stats_of(mc_runtime_t rt) {
    mc_runtime_counters stats = MC_RUNTIME_COUNTERS_INIT;
    cr_assert_eq(mc_runtime_stats(rt, &stats), MC_OK);
    return stats;
}

template <class Condition> void until(Condition condition) {
    const int64_t end = mc_after(20 * MC_SEC);
    while (!condition()) {
        cr_assert_lt(mc_now(), end, "it has not come about");
        cr_assert_eq(mc_sleep(MC_MS / 10), MC_OK);
    }
}

// The log's lines, as text.
class Lines {
public:
    Lines() { mc_set_log_hook(hook, this); }
    ~Lines() { mc_set_log_hook(nullptr, nullptr); }
    bool has(const std::string &text) const { return all_.find(text) != std::string::npos; }
    const char *text() const { return all_.c_str(); }

private:
    static void hook(void *user, int32_t, int32_t, const char *text) {
        static_cast<Lines *>(user)->all_ += std::string(text) + "\n";
    }
    std::string all_;
};

} // namespace

// --- life ---

// Goal: what a runtime frees is freed in that runtime, also where its own tasks have the slots of another's microthreads.
Test(Runtimes, frees_in_its_own, .timeout = 60) {
    World world;
    static sync::atomic<mc_runtime_t> freed_in;
    static mc_epoch_node node;
    std::vector<mc_task_t> before;
    for (int i = 0; i < 1000; ++i) // more than any cache keeps to itself
        before.push_back(start([] {}));
    for (const mc_task_t task : before)
        join(task);
    Runtime runtime(2);
    const auto free = [](void *, mc_epoch_node *) { freed_in.store(mc_runtime_self(), sync::release); };
    const mc_task_t retires = start_in(runtime, [&] { return mc_epoch_retire(0, &node, free, nullptr); });
    cr_assert_eq(result_of(retires), MC_OK);
    while (freed_in.load(sync::acquire) == 0)
        usleep(1000);
    cr_assert_eq(freed_in.load(sync::acquire), static_cast<mc_runtime_t>(runtime));
}

// Goal: a runtime runs its microthreads on its own executors, several at once, and the default one beside them; channels,
// mutexes and joins work across.
Test(Runtimes, several_work_together, .timeout = 60) {
    World world;
    Runtime first(1);
    Runtime second(2);
    cr_assert_neq(static_cast<mc_runtime_t>(first), static_cast<mc_runtime_t>(second));
    cr_assert_eq(mc_runtime_self(), mc_runtime_default());
    Chan there, back;
    const int rounds = scaled(500);
    const mc_task_t echo = start_in(first, [&] {
        cr_assert_eq(mc_runtime_self(), first);
        for (int i = 0; i < rounds; ++i)
            cr_assert_eq(back.send(there.receive() + 1), 1);
        return 7;
    });
    const mc_task_t caller = start_in(second, [&] {
        cr_assert_eq(mc_runtime_self(), second);
        for (int i = 0; i < rounds; ++i) {
            cr_assert_eq(there.send(i), 1);
            cr_assert_eq(back.receive(), i + 1);
        }
        return result_of(echo); // a microthread of another runtime
    });
    const mc_task_t at_home = start([&] { // alone, while the others run
        cr_assert_eq(mc_runtime_self(), mc_runtime_default());
        cr_assert_eq(result_of(start_in(first, [] { return 3; })), 3);
    });
    cr_assert_eq(result_of(caller), 7);
    join(at_home);

    mc_mutex_t mutex = 0;
    cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
    int64_t counter = 0;
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 6; ++i)
        tasks.push_back(start_in(i % 3 == 0   ? mc_runtime_default()
                                 : i % 3 == 1 ? mc_runtime_t{first}
                                              : mc_runtime_t{second},
                                 [&] {
                                     for (int n = 0; n < rounds; ++n) {
                                         cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
                                         ++counter;
                                         cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
                                     }
                                     return 0;
                                 }));
    for (const mc_task_t task : tasks)
        (void)result_of(task);
    cr_assert_eq(counter, int64_t{6} * rounds);
    cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
}

// Goal: bad options and handles get their codes and change nothing; older and newer callers' options are read.
Test(Runtimes, misuse) {
    World world;
    mc_runtime_t rt = 99;
    Options options(1);
    cr_assert_eq(mc_runtime_create(&options, nullptr), MC_E_INVAL);
    const auto refused = [&](auto change, int32_t code) {
        Options changed(1);
        change(changed);
        cr_assert_eq(mc_runtime_create(&changed, &rt), code);
        cr_assert_eq(rt, 99u);
    };
    refused([](Options &o) { o.flags = 4; }, MC_E_INVAL);
    refused([](Options &o) { o.executors = MC_EXECUTORS_MAX + 1; }, MC_E_LIMIT);
    refused([](Options &o) { o.wheel_segments = MC_WHEEL_SEGMENTS_MAX + 1; }, MC_E_INVAL);
    refused([](Options &o) { o.quantum_ns = -1; }, MC_E_INVAL);
    refused([](Options &o) { o.quantum_ns = 2 * MC_SEC; }, MC_E_INVAL);
    refused([](Options &o) { o.quantum_reductions = 1; }, MC_E_INVAL);
    refused([](Options &o) { o.stack_size = 100; }, MC_E_INVAL);
    refused([](Options &o) { o.affinity = 4; }, MC_E_INVAL);
    refused([](Options &o) { o.cores = 3; }, MC_E_INVAL);
    refused([](Options &o) { o.blocking_threads = MC_BLOCKING_THREADS_MAX + 1; }, MC_E_INVAL);
    refused([](Options &o) { o.struct_size = 2; }, MC_E_INVAL);
    struct {
        Options known{1};
        uint64_t unknown = 0;
    } newer;
    newer.known.struct_size = sizeof newer;
    newer.unknown = 1;
    cr_assert_eq(mc_runtime_create(&newer.known, &rt), MC_E_VERSION);
    newer.unknown = 0;
    cr_assert_eq(mc_runtime_create(&newer.known, &rt), MC_OK);
    cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
    options.struct_size = 12; // an older caller: the rest is 0
    cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
    cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
    const mc_task_fn nothing = [](void *) -> int32_t { return 0; };
    for (const mc_runtime_t stale : {rt, mc_runtime_t{1}, UINT64_MAX}) {
        cr_assert_eq(mc_runtime_start(stale), MC_E_STALE);
        cr_assert_eq(mc_runtime_shutdown(stale, 0), MC_E_STALE);
        cr_assert_eq(mc_runtime_destroy(stale), MC_E_STALE);
        cr_assert_eq(mc_runtime_add_executor(stale), MC_E_STALE);
        cr_assert_eq(mc_runtime_wait_quiescent(stale, MC_NOW), MC_E_STALE);
        cr_assert_eq(mc_runtime_hold(stale), MC_E_STALE);
        cr_assert_eq(mc_spawn(stale, nothing, nullptr, nullptr, nullptr), MC_E_STALE);
        mc_runtime_counters stats = MC_RUNTIME_COUNTERS_INIT;
        cr_assert_eq(mc_runtime_stats(stale, &stats), MC_E_STALE);
    }
    cr_assert_eq(mc_runtime_destroy(mc_runtime_default()), MC_E_PERM);
    cr_assert_eq(mc_runtime_start(mc_runtime_default()), MC_E_PERM);
    cr_assert_eq(mc_runtime_add_executor(0), MC_E_CONTEXT);
    cr_assert_eq(mc_runtime_release(0), MC_E_PERM);
    cr_assert_eq(mc_runtime_hold(0), MC_OK);
    cr_assert_eq(mc_runtime_release(0), MC_OK);
    {
        Runtime runtime(1);
        cr_assert_eq(mc_runtime_start(runtime), MC_OK, "again");
        (void)result_of(start_in(runtime, [&] {
            cr_assert_eq(mc_runtime_shutdown(runtime, 0), MC_E_CONTEXT);
            cr_assert_eq(mc_runtime_destroy(runtime), MC_E_CONTEXT);
            cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_NOW), MC_E_CONTEXT);
            cr_assert_eq(mc_runtime_add_executor(runtime), MC_E_CONTEXT);
            return 0;
        }));
        cr_assert_eq(mc_runtime_destroy(runtime), MC_E_BUSY);
    }
    world.expected_lines = 1;
}

// Goal: what is spawned before the start runs after it, and is ended by a shutdown without one.
Test(Runtimes, spawned_before_the_start) {
    World world;
    mc_runtime_t rt = 0;
    const Options options(2);
    for (const bool started : {true, false}) {
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        const mc_task_t task = start_in(rt, [] { return wait_for_ever(); });
        cr_assert_eq(mc_join(task, mc_after(unit), nullptr), MC_E_TIMEDOUT);
        cr_assert_eq(mc_runtime_destroy(rt), MC_E_BUSY);
        if (started)
            cr_assert_eq(mc_runtime_start(rt), MC_OK);
        cr_assert_eq(mc_runtime_shutdown(rt, MC_FOREVER), MC_OK);
        cr_assert_eq(result_of(task), MC_E_SHUTDOWN);
        cr_assert_eq(mc_runtime_start(rt), MC_E_SHUTDOWN);
        cr_assert_eq(mc_runtime_shutdown(rt, MC_FOREVER), MC_OK, "again");
        cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
    }
    world.expected_lines = 2;
}

// Goal: a shutdown ends every wait, also the next one; nothing new begins; nothing is left.
Test(Runtimes, shutdown_ends_all_waits, .timeout = 60) {
    for (const uint32_t executors : {1u, 2u, 8u}) {
        World world;
        Chan channel;
        mc_mutex_t mutex = 0;
        cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
        Runtime runtime(executors);
        sync::atomic<int> ended{0};
        sync::atomic<int> waiting{0};
        const auto waits = [&](auto wait) {
            const auto body = [&, wait] {
                waiting.fetch_add(1, sync::relaxed);
                cr_assert_eq(wait(), MC_E_SHUTDOWN);
                cr_assert_eq(wait_for_ever(), MC_E_SHUTDOWN);
                cr_assert_eq(mc_spawn(
                                 0, [](void *) -> int32_t { return 0; }, nullptr, nullptr, nullptr),
                             MC_E_SHUTDOWN);
                ended.fetch_add(1, sync::relaxed);
                return 0;
            };
            cr_assert_eq(mc_detach(start_in(runtime, body)), MC_OK);
        };
        cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
        for (int i = 0; i < 10; ++i) {
            waits([&] { return channel.receive(); });
            waits([&] { return mc_mutex_lock(mutex); });
            waits([&] { return mc_sleep(20 * MC_SEC); });
            waits([&] {
                int value = 0;
                return csp_recv_until(channel.r, &value, mc_after(20 * MC_SEC));
            });
            waits([&] {
                int value = 0;
                const csp_chanop ops[] = {receives(channel.r, &value), dies(channel.w)};
                return csp_alt(ops, 2, 0);
            });
        }
        until([&] { return waiting.load(sync::relaxed) == 50; });
        runtime.end();
        cr_assert_eq(ended.load(sync::relaxed), 50);
        cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
        cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
    }
}

// Goal: what would not stop is named, with what it waits for; the runtime stays, and ends when that has come back.
Test(Runtimes, shutdown_names_what_is_left, .timeout = 60) {
    Lines lines;
    Runtime runtime(1);
    sync::atomic<int> stop{0};
    sync::atomic<int> running{0};
    const mc_task_t hog = start_in(
        runtime,
        [&] {
            running.store(1, sync::release);
            cr_assert(hog_until([&] { return stop.load(sync::acquire) != 0; }));
            return 0;
        },
        "the hog");
    until([&] { return running.load(sync::acquire) != 0; });
    cr_assert_eq(mc_runtime_shutdown(runtime, 2 * unit), MC_E_TIMEDOUT);
    cr_assert(lines.has("\"the hog\" runs on executor 0"), "%s", lines.text());
    cr_assert_eq(mc_runtime_destroy(runtime), MC_E_BUSY);
    cr_assert_eq(mc_spawn(
                     runtime, [](void *) -> int32_t { return 0; }, nullptr, nullptr, nullptr),
                 MC_E_SHUTDOWN);
    stop.store(1, sync::release);
    cr_assert_eq(result_of(hog), 0);
    runtime.end();
}

// Goal: the default runtime gets options and executors, is shut down, and can be used again, also alone.
Test(Runtimes, the_default_one, .timeout = 60) {
    World world;
    Options options(2);
    options.flags = MC_RUNTIME_DEFAULT;
    options.stack_size = 16384;
    for (int i = 0; i < 3; ++i) {
        mc_runtime_t rt = 0;
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        cr_assert_eq(rt, mc_runtime_default());
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_E_BUSY);
        cr_assert_eq(mc_runtime_start(rt), MC_OK);
        cr_assert_eq(stats_of(0).executors, 2u);
        const mc_task_t task = start_in(0, [] { return wait_for_ever(); });
        until([&] { return stats_of(rt).microthreads == 1; });
        cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
        cr_assert_eq(result_of(task), MC_E_SHUTDOWN);
        cr_assert_eq(stats_of(0).executors, 1u);
        const mc_task_t alone = start_in(0, [] { return wait_for_ever(); }); // single-processor mode
        csp_yield();
        cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
        cr_assert_eq(result_of(alone), MC_E_SHUTDOWN);
    }
    join(start([] {}));
}

// Goal: a shutdown also ends what waited on executors that have been stopped since.
Test(Runtimes, a_shutdown_after_the_executors_stop, .timeout = 60) {
    World world;
    constexpr int count = 3;
    cr_assert_eq(csp_init_runtime(count), 1);
    sync::atomic<int> running{0};
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < count; ++i)
        tasks.push_back(start_in(0, [&] {
            running.fetch_add(1, sync::acq_rel);
            cr_assert(hog_until([&] { return running.load(sync::acquire) == count; })); // one on each executor
            return wait_for_ever();
        }));
    until([&] { return stats_of(0).sleeping == count; });
    csp_shutdown_runtime();
    cr_assert_eq(stats_of(0).executors, 1u);
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
    for (const mc_task_t task : tasks)
        cr_assert_eq(result_of(task), MC_E_SHUTDOWN);
}

// Goal: whoever shuts down in single-processor mode and is cancelled meanwhile is told, and the runtime goes on.
Test(Runtimes, a_cancelled_shutdown_takes_itself_back, .timeout = 60) {
    World world;
    mc_semaphore_t end = 0;
    cr_assert_eq(mc_semaphore_create(0, &end), MC_OK);
    const mc_task_t stubborn = start_in(0, [&] { // waits again, whoever ends its waits
        int32_t status = MC_E_SHUTDOWN;
        while (status == MC_E_SHUTDOWN)
            status = mc_semaphore_acquire(end, 1, MC_FOREVER);
        return status;
    });
    csp_yield();
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(mc_after(20 * MC_MS), &scope), MC_OK);
    cr_assert_eq(mc_scope_enter(scope), MC_OK);
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_E_CANCELED);
    cr_assert_eq(mc_scope_leave(), MC_OK);
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
    cr_assert_eq(result_of(start_in(0, [] { return 5; })), 5, "it is open");
    cr_assert_eq(mc_semaphore_release(end, 1), MC_OK);
    cr_assert_eq(result_of(stubborn), MC_OK);
    cr_assert_eq(mc_semaphore_destroy(end), MC_OK);
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
}

// Goal: a shutdown ends no wait of afterwards; one that is refused closes nothing.
Test(Runtimes, a_shutdown_ends_nothing_later, .timeout = 60) {
    World world;
    Options options(8);
    options.flags = MC_RUNTIME_DEFAULT;
    for (int i = 0; i < scaled(30); ++i) {
        mc_runtime_t rt = 0;
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        const mc_task_t task = start_in(0, [] { return wait_for_ever(); });
        cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
        cr_assert_eq(result_of(task), MC_E_SHUTDOWN);
        Chan channel;
        const mc_task_t receiver = start_in(0, [&] { return channel.receive(); });
        for (int n = 0; n < 20; ++n)
            csp_yield();
        cr_assert_eq(channel.send(i), 1);
        cr_assert_eq(result_of(receiver), i);
    }
    const mc_task_t left = start_in(0, [] { return wait_for_ever(); });
    csp_yield();
    {
        PosixThread other([] {
            cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_E_CONTEXT, "another one owns it");
            cr_assert_eq(mc_runtime_wait_quiescent(0, MC_FOREVER), MC_E_CONTEXT);
        });
    }
    cr_assert_eq(result_of(start_in(0, [] { return 5; })), 5, "it is open");
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
    cr_assert_eq(result_of(left), MC_E_SHUTDOWN);
}

// Goal: several shut the default one down at once: one does, and each is told that it is done or another's. Then it works as
// before.
Test(Runtimes, the_default_one_shut_down_by_several, .timeout = 60) {
    World world;
    Options options(2);
    options.flags = MC_RUNTIME_DEFAULT;
    const auto call = [] { return mc_blocking_call([](void *) -> int32_t { return 0; }, nullptr, nullptr); };
    for (int i = 0; i < scaled(40); ++i) {
        mc_runtime_t rt = 0;
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        cr_assert_eq(mc_detach(start_in(rt, [] { return wait_for_ever(); })), MC_OK);
        cr_assert_eq(result_of(start_in(rt, call)), MC_OK);
        std::vector<std::unique_ptr<PosixThread>> threads;
        sync::atomic<int> done{0};
        for (int n = 0; n < 3; ++n)
            threads.push_back(std::make_unique<PosixThread>([&] {
                const int32_t status = mc_runtime_shutdown(0, MC_FOREVER);
                cr_assert(status == MC_OK || status == MC_E_CONTEXT, "%d", status);
                (void)done.fetch_add(status == MC_OK, sync::relaxed);
            }));
        threads.clear();
        cr_assert_geq(done.load(sync::relaxed), 1);
        cr_assert_eq(stats_of(0).executors, 1u);
    }
    cr_assert_eq(result_of(start_in(0, call)), MC_OK);
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
}

// Goal: a shutdown without time, which the threads of blocking calls may outlast, closes nothing: the default runtime goes on.
Test(Runtimes, the_default_one_without_time, .timeout = 60) {
    World world;
    Options options(2);
    options.flags = MC_RUNTIME_DEFAULT;
    const auto call = [] { return mc_blocking_call([](void *) -> int32_t { return 0; }, nullptr, nullptr); };
    int late = 0;
    for (int i = 0; i < scaled(40); ++i) {
        mc_runtime_t rt = 0;
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        cr_assert_eq(result_of(start_in(0, call)), MC_OK);
        until([] { return stats_of(0).microthreads == 0; });
        const int32_t status = mc_runtime_shutdown(0, MC_NOW);
        cr_assert(status == MC_OK || status == MC_E_TIMEDOUT, "%d", status);
        late += status == MC_E_TIMEDOUT; // which is logged
        cr_assert_eq(result_of(start_in(0, call)), MC_OK, "it is open");
        cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
        cr_assert_eq(stats_of(0).executors, 1u);
    }
    world.expected_lines = late;
}

// Goal: several shut it down at once, and destroy it: each is told that it is done, or gone; what comes next in its place is
// not touched.
Test(Runtimes, shut_down_by_several, .timeout = 60) {
    World world;
    for (int i = 0; i < scaled(40); ++i) {
        mc_runtime_t rt = 0;
        const Options options(2);
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        cr_assert_eq(mc_runtime_start(rt), MC_OK);
        cr_assert_eq(mc_detach(start_in(rt, [] { return wait_for_ever(); })), MC_OK);
        cr_assert_eq(mc_detach(start_in(
                         rt, [] { return mc_blocking_call([](void *) -> int32_t { return 0; }, nullptr, nullptr); })),
                     MC_OK);
        std::vector<std::unique_ptr<PosixThread>> threads;
        for (int n = 0; n < 3; ++n)
            threads.push_back(std::make_unique<PosixThread>([&] {
                const int32_t status = mc_runtime_shutdown(rt, MC_FOREVER);
                cr_assert(status == MC_OK || status == MC_E_STALE, "%d", status);
                (void)mc_runtime_destroy(rt);
            }));
        Runtime next(1); // in its place, perhaps
        cr_assert_eq(result_of(start_in(next,
                                        [] {
                                            int32_t result = 0;
                                            cr_assert_eq(
                                                mc_blocking_call([](void *) -> int32_t { return 9; }, nullptr, &result),
                                                MC_OK);
                                            return result;
                                        })),
                     9);
        threads.clear();
        cr_assert_eq(mc_runtime_shutdown(rt, 0), MC_E_STALE);
    }
}

// Goal: a spawn that races the shutdown of a runtime that never ran is refused, or ends.
Test(Runtimes, spawning_races_the_end_of_one_that_never_ran, .timeout = 60) {
    World world;
    world.expected_lines = 0;
    for (int i = 0; i < scaled(100); ++i) {
        mc_runtime_t rt = 0;
        const Options options(1);
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        mc_task_t task = 0;
        int32_t status = MC_OK;
        sync::atomic<int> begun{0};
        PosixThread spawner([&] {
            begun.store(1, sync::release);
            status = mc_spawn(
                rt, [](void *) -> int32_t { return 0; }, nullptr, nullptr, &task);
        });
        while (begun.load(sync::acquire) == 0)
            sync::thread_yield();
        cr_assert_eq(mc_runtime_shutdown(rt, MC_FOREVER), MC_OK);
        spawner.join();
        if (status == MC_OK)
            cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
        else
            cr_assert_eq(status, MC_E_SHUTDOWN);
        cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
    }
}

// Goal: timers of channels that outlive the runtime in which they were made still fire.
Test(Runtimes, timers_outlive_them, .timeout = 20) {
    World world;
    csp_reader after = nullptr;
    {
        Runtime runtime(1);
        (void)result_of(start_in(runtime, [&] {
            after = csp_after(5 * unit);
            return 0;
        }));
    }
    int64_t when = 0;
    cr_assert_eq(csp_recv(after, &when), 1);
    cr_assert_gt(when, 0);
    csp_reader_release(after);
}

// Goal: runtimes that come and go, with work in them and used by each other: no slot or thread is left, handles are never the
// same.
Test(Runtimes, come_and_go, .timeout = 120) {
    World world;
    std::vector<mc_runtime_t> handles;
    base::Prng prng(4);
    for (int i = 0; i < scaled(60); ++i) {
        Options options(1 + prng.below(3));
        options.wheel_segments = 1 + prng.below(8);
        mc_runtime_t rt[2] = {};
        for (mc_runtime_t &handle : rt) {
            cr_assert_eq(mc_runtime_create(&options, &handle), MC_OK);
            cr_assert_eq(std::count(handles.begin(), handles.end(), handle), 0);
            handles.push_back(handle);
            cr_assert_eq(mc_runtime_start(handle), MC_OK);
        }
        Chan channel;
        const mc_task_t sends = start_in(rt[0], [&] { return channel.send(i); });
        const mc_task_t receives = start_in(rt[1], [&] { return channel.receive(); });
        cr_assert_eq(mc_detach(start_in(rt[0], [] { return wait_for_ever(); })), MC_OK);
        cr_assert_eq(result_of(sends), 1);
        cr_assert_eq(result_of(receives), i);
        for (const mc_runtime_t handle : rt) {
            cr_assert_eq(mc_runtime_shutdown(handle, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_runtime_destroy(handle), MC_OK);
        }
    }
}

// Goal: a thread that spawns while the runtime is shut down and destroyed is refused or its microthread ends; nothing is
// stranded.
Test(Runtimes, spawning_races_the_end, .timeout = 120) {
    World world;
    for (int i = 0; i < scaled(40); ++i) {
        const Options options(1 + static_cast<uint32_t>(i % 2));
        mc_runtime_t rt = 0;
        cr_assert_eq(mc_runtime_create(&options, &rt), MC_OK);
        cr_assert_eq(mc_runtime_start(rt), MC_OK);
        static sync::atomic<int> begun, ended;
        begun.store(0, sync::relaxed);
        ended.store(0, sync::relaxed);
        {
            PosixThread spawner([&] {
                int32_t status = MC_OK;
                while (status == MC_OK) {
                    const auto body = [](void *) -> int32_t {
                        ended.fetch_add(1, sync::relaxed);
                        return 0;
                    };
                    begun.fetch_add(1, sync::relaxed);
                    status = mc_spawn(rt, body, nullptr, nullptr, nullptr);
                }
                begun.fetch_sub(1, sync::relaxed);
                cr_assert(status == MC_E_SHUTDOWN || status == MC_E_STALE, "%d", status);
            });
            until([&] { return ended.load(sync::relaxed) > 0; });
            cr_assert_eq(mc_runtime_shutdown(rt, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_runtime_destroy(rt), MC_OK);
        }
        cr_assert_eq(begun.load(sync::relaxed), ended.load(sync::relaxed));
    }
}

// --- options ---

namespace {
sync::atomic<int> started_hooks{0}, stopped_hooks{0};
}

// Goal: hooks run on each executor's thread; executors are pinned as the policy says; more are added while it runs.
Test(Runtimes, options, .timeout = 30) {
    World world;
    base::Topology topology;
    cr_assert(topology.read_machine());
    for (const uint32_t affinity :
         {MC_AFFINITY_NONE, MC_AFFINITY_DEPTH_FIRST, MC_AFFINITY_BREADTH_FIRST, MC_AFFINITY_RANDOM}) {
        Options options(1);
        options.affinity = affinity;
        options.seed = 5;
        options.thread_start = [](void *user, uint32_t) {
            cr_assert_eq(user, &started_hooks);
            cr_assert_eq(mc_sleep(MC_MS), MC_E_CONTEXT);
            started_hooks.fetch_add(1, sync::relaxed);
        };
        options.thread_stop = [](void *, uint32_t) { stopped_hooks.fetch_add(1, sync::relaxed); };
        options.user = &started_hooks;
        started_hooks.store(0, sync::relaxed);
        stopped_hooks.store(0, sync::relaxed);
        {
            Runtime runtime(options);
            for (uint32_t i = 0; i < 3; ++i)
                cr_assert_eq(mc_runtime_add_executor(runtime), MC_OK);
            until([&] { return started_hooks.load(sync::relaxed) == 4; });
            cr_assert_eq(stats_of(runtime).executors, 4u);
            mc_executor_counters stats = MC_EXECUTOR_COUNTERS_INIT;
            uint32_t pinned = 0;
            for (uint32_t i = 0; i < 4; ++i) {
                cr_assert_eq(mc_runtime_executor_stats(runtime, i, &stats), MC_OK);
                cr_assert(stats.cpu == -1 || topology.find(stats.cpu) != nullptr);
                pinned += stats.cpu != -1;
            }
            cr_assert_eq(pinned, affinity == MC_AFFINITY_NONE ? 0u : std::min(topology.count(), 4u));
            cr_assert_eq(mc_runtime_executor_stats(runtime, 4, &stats), MC_E_NOENT);
            cr_assert_eq(mc_runtime_executor_stats(runtime, 0, nullptr), MC_E_INVAL);
        }
        cr_assert_eq(stopped_hooks.load(sync::relaxed), 4);
    }
}

namespace {
mc_local_t hook_key = 0;
mc_mutex_t hook_mutex = 0;
sync::atomic<int> hook_drops{0};
} // namespace

// Goal: what hooks leave behind ends with the executor's thread, and is nobody else's.
Test(Runtimes, what_hooks_leave_behind, .timeout = 30) {
    World world;
    cr_assert_eq(mc_local_create([](void *) { hook_drops.fetch_add(1, sync::relaxed); }, &hook_key), MC_OK);
    cr_assert_eq(mc_mutex_create(0, &hook_mutex), MC_OK);
    Options options(1);
    options.thread_start = [](void *, uint32_t) {
        cr_assert_eq(mc_local_set(hook_key, &hook_key), MC_OK);
        cr_assert_eq(mc_mutex_lock(hook_mutex), MC_OK);
    };
    {
        Runtime runtime(options);
        (void)result_of(start_in(runtime, [] {
            cr_assert_null(mc_local_get(hook_key));
            cr_assert_eq(mc_mutex_unlock(hook_mutex), MC_E_PERM);
            return 0;
        }));
    }
    cr_assert_eq(hook_drops.load(sync::relaxed), 1);
    cr_assert_eq(mc_mutex_lock(hook_mutex), MC_E_OWNERDEAD);
    cr_assert_eq(mc_mutex_consistent(hook_mutex), MC_OK);
    cr_assert_eq(mc_mutex_unlock(hook_mutex), MC_OK);
    for (int i = 0; i < 100; ++i)
        join(start([] { cr_assert_null(mc_local_get(hook_key)); }));
    cr_assert_eq(mc_mutex_destroy(hook_mutex), MC_OK);
    cr_assert_eq(mc_local_destroy(hook_key), MC_OK);
}

// Goal: counters count.
Test(Runtimes, statistics, .timeout = 30) {
    World world;
    Runtime runtime(2);
    cr_assert_eq(mc_runtime_stats(runtime, nullptr), MC_E_INVAL);
    for (int i = 0; i < 100; ++i)
        (void)result_of(start_in(runtime, [] {
            for (int n = 0; n < 10; ++n)
                csp_yield();
            return 0;
        }));
    const mc_task_t blocked = start_in(runtime, [] { return wait_for_ever(); });
    until([&] { return stats_of(runtime).sleeping == 2; });
    mc_runtime_counters stats = stats_of(runtime);
    cr_assert_eq(stats.struct_size, sizeof stats);
    cr_assert_eq(stats.spawned, 101u);
    cr_assert_eq(stats.microthreads, 1u);
    cr_assert_eq(stats.queued, 0u);
    cr_assert_geq(stats.turns, 101u);
    uint64_t turns = 0;
    for (uint32_t i = 0; i < 2; ++i) {
        mc_executor_counters one = MC_EXECUTOR_COUNTERS_INIT;
        cr_assert_eq(mc_runtime_executor_stats(runtime, i, &one), MC_OK);
        turns += one.turns;
        cr_assert_geq(one.turn_ns, 0);
        cr_assert_eq(one.load, 0u, "it sleeps");
    }
    cr_assert_eq(turns, stats.turns);
    stats.struct_size = 8; // an older caller
    stats.spawned = 77;
    cr_assert_eq(mc_runtime_stats(runtime, &stats), MC_OK);
    cr_assert_eq(stats.spawned, 77u);
    stats.struct_size = 1;
    cr_assert_eq(mc_runtime_stats(runtime, &stats), MC_E_INVAL);
    runtime.end();
    cr_assert_eq(result_of(blocked), MC_E_SHUTDOWN);
}

// --- quiescence ---

// Goal: it waits for what moves: microthreads that run, timers, blocking calls; not for those that wait for somebody.
Test(Quiescence, waits_for_all_that_moves, .timeout = 60) {
    World world;
    cr_assert_eq(mc_runtime_hold(0), MC_OK); // what waits for ever is no deadlock here
    for (const uint32_t executors : {1u, 2u, 8u}) {
        Runtime runtime(executors);
        cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
        sync::atomic<int> done{0};
        for (int i = 0; i < 20; ++i)
            cr_assert_eq(mc_detach(start_in(runtime,
                                            [&done, i] {
                                                if (i % 4 == 0)
                                                    cr_assert_eq(mc_sleep(unit * (i + 1) / 4), MC_OK);
                                                if (i % 4 == 1)
                                                    cr_assert_eq(mc_blocking_call(
                                                                     [](void *) -> int32_t {
                                                                         usleep(3000);
                                                                         return 0;
                                                                     },
                                                                     nullptr, nullptr),
                                                                 MC_OK);
                                                for (int n = 0; n < 50; ++n)
                                                    csp_yield();
                                                done.fetch_add(1, sync::acq_rel);
                                                return 0;
                                            })),
                         MC_OK);
        const mc_task_t blocked = start_in(runtime, [] { return wait_for_ever(); });
        cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
        cr_assert_eq(done.load(sync::acquire), 20);
        cr_assert_eq(stats_of(runtime).microthreads, 1u);
        const mc_task_t calls = start_in(runtime, [&done] { // nothing else moves
            return mc_blocking_call(
                [](void *user) -> int32_t {
                    usleep(20'000);
                    static_cast<sync::atomic<int> *>(user)->fetch_add(1, sync::acq_rel);
                    return 0;
                },
                &done, nullptr);
        });
        cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
        cr_assert_eq(done.load(sync::acquire), 21);
        cr_assert_eq(result_of(calls), MC_OK);
        const mc_task_t sleeper = start_in(runtime, [] { return mc_sleep(20 * MC_SEC); });
        cr_assert_eq(mc_runtime_wait_quiescent(runtime, mc_after(unit)), MC_E_TIMEDOUT);
        runtime.end();
        cr_assert_eq(result_of(blocked), MC_E_SHUTDOWN);
        cr_assert_eq(result_of(sleeper), MC_E_SHUTDOWN);
    }
    cr_assert_eq(mc_runtime_release(0), MC_OK);
}

// Goal: alone too a blocking call is waited for; a timer that is cancelled from outside is not.
Test(Quiescence, waits_for_what_only_others_end, .timeout = 60) {
    World world;
    const mc_task_t calls = start_in(0, [] {
        return mc_blocking_call(
            [](void *) -> int32_t {
                usleep(5000);
                return 0;
            },
            nullptr, nullptr);
    });
    cr_assert_eq(mc_runtime_wait_quiescent(0, MC_FOREVER), MC_OK);
    cr_assert_eq(mc_join(calls, MC_NOW, nullptr), MC_OK);
    Runtime runtime(1);
    csp_reader after = nullptr;
    (void)result_of(start_in(runtime, [&] {
        after = csp_after(1000 * MC_SEC);
        return 0;
    }));
    cr_assert_eq(mc_runtime_wait_quiescent(runtime, mc_after(unit)), MC_E_TIMEDOUT);
    PosixThread other([&] {
        usleep(3000);
        csp_reader_release(after);
    });
    cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
    other.join();
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK); // joins the threads of its blocking calls
}

// Goal: many threads wait at once, while work goes on; each returns when nothing moved at some moment.
Test(Quiescence, many_threads_wait, .timeout = 60) {
    World world;
    Runtime runtime(2);
    sync::atomic<int> ended{0};
    {
        std::vector<std::unique_ptr<PosixThread>> waiters;
        for (int i = 0; i < 8; ++i)
            waiters.push_back(std::make_unique<PosixThread>([&] {
                for (int n = 0; n < scaled(20); ++n)
                    cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
                ended.fetch_add(1, sync::release);
            }));
        while (ended.load(sync::acquire) != 8)
            (void)result_of(start_in(runtime, [] {
                csp_yield();
                return 0;
            }));
    }
}

namespace {

// A process of its own, with one thread: only there is the world closed.
void in_closed_world(const std::function<void(Lines &)> &body) {
    in_process_with_one_thread([&] {
        Lines lines;
        body(lines);
    });
}

} // namespace

// Goal: a cycle of mutexes among microthreads is a deadlock; the report names each, what it waits for, who holds it, and the
// cycle. Whoever could still act makes it none: a thread, a hold, another runtime.
Test(Quiescence, deadlock_among_many, .timeout = 60) {
    in_closed_world([](Lines &lines) {
        Runtime runtime(2);
        mc_mutex_t a = 0, b = 0;
        cr_assert_eq(mc_mutex_create(0, &a), MC_OK);
        cr_assert_eq(mc_mutex_create(0, &b), MC_OK);
        mc_semaphore_t both = 0;
        cr_assert_eq(mc_semaphore_create(0, &both), MC_OK);
        const auto locks = [&](mc_mutex_t first, mc_mutex_t second, const char *name) {
            return start_in(
                runtime,
                [&both, first, second] {
                    cr_assert_eq(mc_mutex_lock(first), MC_OK);
                    cr_assert_eq(mc_semaphore_release(both, 1), MC_OK);
                    while (mc_mutex_try_lock(second) != MC_E_AGAIN) { // until the other one has it
                        cr_assert_eq(mc_mutex_unlock(second), MC_OK);
                        csp_yield();
                    }
                    const int32_t status = mc_mutex_lock(second);
                    cr_assert_eq(mc_mutex_unlock(first), MC_OK);
                    if (status == MC_OK)
                        cr_assert_eq(mc_mutex_unlock(second), MC_OK);
                    return status;
                },
                name);
        };
        const mc_task_t one = locks(a, b, "one");
        const mc_task_t two = locks(b, a, "two");
        cr_assert_eq(mc_runtime_hold(runtime), MC_OK);
        cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK, "held");
        cr_assert_eq(mc_runtime_release(runtime), MC_OK);
        {
            Runtime other(1);
            const mc_task_t sleeper = start_in(other, [] { return mc_sleep(20 * MC_SEC); });
            until([&] { return stats_of(other).sleeping == 1; });
            cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK, "another runtime's timer may end it");
            cr_assert_eq(mc_runtime_shutdown(other, MC_FOREVER), MC_OK);
            cr_assert_eq(result_of(sleeper), MC_E_SHUTDOWN);
        }
        const int64_t end = mc_after(20 * MC_SEC);
        while (mc_runtime_wait_quiescent(runtime, end) != MC_E_DEADLOCK) // once the other one's threads are gone
            cr_assert_lt(mc_now(), end);
        cr_assert(lines.has("\"one\" waits for mutex"), "%s", lines.text());
        cr_assert(lines.has("\"two\" waits for mutex"), "%s", lines.text());
        cr_assert(lines.has("\"two\", for ") && lines.has(", held by microthread"), "%s", lines.text());
        cr_assert(lines.has("the cycle: ") && lines.has("\"one\" waits for microthread"), "%s", lines.text());
        runtime.end();
        const int32_t results[] = {result_of(one), result_of(two)};
        cr_assert(results[0] == MC_E_SHUTDOWN || results[1] == MC_E_SHUTDOWN);
    });
}

// Goal: alone: the owner runs what there is to run; what is left then waits for nobody.
Test(Quiescence, deadlock_alone, .timeout = 60) {
    in_closed_world([](Lines &lines) {
        World world;
        cr_assert_eq(mc_runtime_wait_quiescent(0, MC_FOREVER), MC_OK);
        mc_set_log_hook(nullptr, nullptr);
        Lines here;
        (void)lines;
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        cr_assert_eq(csp_chan(&w, &r, copy_int), 1);
        csp_chdescr(w, "orders");
        const mc_task_t reader = start_in(
            0,
            [&] {
                int value = 0;
                return csp_recv(r, &value);
            },
            "reader");
        const mc_task_t joins = start_in(
            0, [&] { return mc_join(reader, MC_FOREVER, nullptr); }, "joins");
        const mc_task_t sleeps = start_in(0, [] { return mc_sleep(2 * unit); });
        cr_assert_eq(mc_runtime_wait_quiescent(0, MC_FOREVER), MC_E_DEADLOCK);
        cr_assert_eq(mc_join(sleeps, MC_NOW, nullptr), MC_OK, "its time was waited for");
        cr_assert(here.has("\"reader\" waits to receive from channel \"orders\""), "%s", here.text());
        cr_assert(here.has("\"joins\" waits for the end of microthread ") && here.has("\"reader\", for "), "%s",
                  here.text());
        csp_writer_release(w);
        cr_assert_eq(result_of(joins), MC_OK);
        csp_reader_release(r);
        mc_set_log_hook(nullptr, nullptr);
        world.expected_lines = 0;
    });
}

// Goal: a blocking call that is on its way to an idle thread keeps the world open.
Test(Quiescence, blocking_calls_keep_the_world_open, .timeout = 60) {
    in_closed_world([](Lines &lines) {
        for (int i = 0; i < scaled(300); ++i) {
            const mc_task_t task =
                start_in(0, [] { return mc_blocking_call([](void *) -> int32_t { return 3; }, nullptr, nullptr); });
            int32_t result = 1;
            cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK, "%s", lines.text());
            cr_assert_eq(result, MC_OK);
        }
        cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
    });
}

// Goal: a forked child that has begun anew finds deadlocks and sees its runtimes.
Test(Quiescence, in_a_forked_child, .timeout = 60) {
    if (mc::testing::under_tsan || mc::testing::under_asan || mc::testing::under_valgrind)
        cr_skip_test("a checker has locks of its own, which may be taken in a forked child");
    in_closed_world([](Lines &) {
        Runtime runtime(2);
        const mc_task_t blocked = start_in(runtime, [] { return wait_for_ever(); });
        in_process_with_one_thread([] {
            csp_shutdown_runtime(); // begins anew
            Runtime own(1);
            const mc_task_t task = start_in(own, [] { return wait_for_ever(); });
            cr_assert_eq(mc_runtime_wait_quiescent(own, MC_FOREVER), MC_E_DEADLOCK);
            int runtimes = 0;
            const auto count = [](void *user, const char *text, uint64_t length) {
                const std::string piece(text, length);
                for (size_t at = 0; (at = piece.find("executor_stats", at)) != std::string::npos; ++at)
                    ++*static_cast<int *>(user);
            };
            cr_assert_eq(mc_inspect_json(0, 0, count, &runtimes), MC_OK);
            cr_assert_eq(runtimes, 2);
            own.end();
            cr_assert_eq(result_of(task), MC_E_SHUTDOWN);
        });
        runtime.end();
        cr_assert_eq(result_of(blocked), MC_E_SHUTDOWN);
    });
}

// Goal: a thread of the program's that the library does not know, or that runs, might act: then it is no deadlock.
Test(Quiescence, threads_keep_the_world_open, .timeout = 60) {
    in_closed_world([](Lines &) {
        Runtime runtime(1);
        const mc_task_t blocked = start_in(runtime, [] { return wait_for_ever(); });
        sync::atomic<int> stop{0};
        {
            PosixThread unknown([&] {
                while (stop.load(sync::acquire) == 0)
                    usleep(100);
            });
            cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
            stop.store(1, sync::release);
        }
        {
            mc_semaphore_t semaphore = 0;
            cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
            PosixThread known([&] { cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_OK); });
            const int64_t end = mc_after(20 * MC_SEC);
            while (mc_runtime_wait_quiescent(runtime, MC_FOREVER) != MC_E_DEADLOCK) // once the thread waits as well
                cr_assert_lt(mc_now(), end);
            cr_assert_eq(mc_semaphore_release(semaphore, 1), MC_OK);
            known.join();
            cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
        }
        { // we run, who own what runs alone
            sync::atomic<int> ended{0};
            PosixThread asks([&] {
                cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
                ended.store(1, sync::release);
            });
            while (ended.load(sync::acquire) == 0)
                usleep(100);
        }
        { // one of our own microthreads might run again when we do
            mc_semaphore_t semaphore = 0;
            cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
            const mc_task_t own = start_in(0, [&] { return mc_semaphore_acquire(semaphore, 1, MC_FOREVER); });
            csp_yield();
            cr_assert_eq(mc_runtime_wait_quiescent(runtime, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_semaphore_release(semaphore, 1), MC_OK);
            cr_assert_eq(result_of(own), MC_OK);
            cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
        }
        runtime.end();
        cr_assert_eq(result_of(blocked), MC_E_SHUTDOWN);
    });
}

// Goal: what another runtime will do keeps the world open for the owner that waits alone.
Test(Quiescence, other_runtimes_keep_the_owner_waiting, .timeout = 60) {
    in_closed_world([](Lines &) {
        Runtime runtime(1);
        mc_semaphore_t semaphore = 0;
        cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
        const mc_task_t releases = start_in(runtime, [&] {
            cr_assert_eq(mc_sleep(20 * MC_MS), MC_OK);
            return mc_semaphore_release(semaphore, 1);
        });
        cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_OK);
        cr_assert_eq(mc_join(releases, MC_FOREVER, nullptr), MC_OK);
        cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_E_DEADLOCK, "it sleeps, and so do we");
        cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    });
}

// --- blocking calls ---

// Goal: the result comes back, exceptions are stopped, other microthreads run meanwhile; alone, among many, on a thread.
Test(BlockingCalls, run_beside_the_executors, .timeout = 60) {
    World world;
    world.expected_lines = 3;
    const auto body = [&] {
        int32_t result = 0;
        int argument = 20;
        cr_assert_eq(mc_blocking_call(
                         [](void *user) -> int32_t {
                             usleep(1000);
                             return *static_cast<int *>(user) + 1;
                         },
                         &argument, &result),
                     MC_OK);
        cr_assert_eq(result, 21);
        cr_assert_eq(mc_blocking_call([](void *) -> int32_t { throw 1; }, nullptr, &result), MC_E_CRASHED);
        cr_assert_eq(mc_blocking_call(nullptr, nullptr, nullptr), MC_E_INVAL);
        cr_assert_eq(result, 21);
        return 0;
    };
    int turns = 0;
    const mc_task_t beside = start([&] {
        for (int i = 0; i < 100; ++i, ++turns)
            csp_yield();
    });
    const mc_task_t alone = start_in(0, body);
    join(alone);
    join(beside);
    cr_assert_eq(turns, 100);
    {
        PosixThread thread([&] { (void)body(); });
    }
    Runtime runtime(1);
    (void)result_of(start_in(runtime, body));
    cr_assert_eq(mc_runtime_shutdown(0, MC_FOREVER), MC_OK);
}

// Goal: with every executor and every blocking thread in native code nothing hangs: it is seen, waits with a deadline end, a
// shutdown names what is left, and all ends when that comes back.
Test(BlockingCalls, everybody_in_native_code, .timeout = 60) {
    Lines lines;
    Options options(2);
    options.blocking_threads = 2;
    Runtime runtime(options);
    static sync::atomic<int> stop;
    stop.store(0, sync::relaxed);
    const auto native = [](void *) -> int32_t {
        while (stop.load(sync::acquire) == 0)
            usleep(200);
        return 0;
    };
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 3; ++i)
        tasks.push_back(start_in(
            runtime, [&] { return mc_blocking_call(native, nullptr, nullptr); }, i == 2 ? "third" : "caller"));
    until([&] { return stats_of(runtime).blocking_running == 2 && stats_of(runtime).blocking_queued == 1; });
    for (int i = 0; i < 2; ++i)
        tasks.push_back(start_in(
            runtime, [&] { return native(nullptr); }, "native"));
    until([&] { return stats_of(runtime).queued == 0; });
    cr_assert_gt(stats_of(runtime).blocking_oldest_ns, 0);
    cr_assert_eq(mc_runtime_wait_quiescent(runtime, mc_after(unit)), MC_E_TIMEDOUT);
    cr_assert(!lines.has("native"), "%s", lines.text());
    cr_assert_eq(mc_runtime_wait_quiescent(runtime, mc_after(5 * MC_SEC / 2)), MC_E_TIMEDOUT);
    cr_assert(lines.has("has not begun or ended a turn") && lines.has("\"native\" runs on executor") &&
                  lines.has("\"third\" waits for a blocking call"),
              "%s", lines.text());
    cr_assert_eq(mc_runtime_shutdown(runtime, 2 * unit), MC_E_TIMEDOUT);
    cr_assert(lines.has("\"caller\" waits for a blocking call"), "%s", lines.text());
    cr_assert(lines.has("\"native\" runs on executor"), "%s", lines.text());
    stop.store(1, sync::release);
    runtime.end();
    for (const mc_task_t task : tasks) {
        const int32_t result = result_of(task);
        cr_assert(result == 0 || result == MC_E_SHUTDOWN, "%d", result);
    }
}

// --- stacks ---

// Goal: the stacks of all suspended microthreads, with what is on them; of no others.
Test(Stacks, each_stack, .timeout = 30) {
    World world;
    struct Found {
        std::vector<std::pair<const char *, const char *>> all;
        static void note(void *user, mc_task_t, const void *low, const void *high) {
            static_cast<Found *>(user)->all.emplace_back(static_cast<const char *>(low),
                                                         static_cast<const char *>(high));
        }
    };
    cr_assert_eq(mc_task_each_stack(0, nullptr, nullptr), MC_E_INVAL);
    const void *locals[5] = {};
    Chan channel;
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 5; ++i)
        tasks.push_back(start([&, i] {
            volatile int local = i;
            locals[i] = const_cast<int *>(&local);
            (void)channel.receive();
            cr_assert_eq(local, i);
        }));
    csp_yield();
    Found found;
    cr_assert_eq(mc_task_each_stack(0, Found::note, &found), MC_OK);
    cr_assert_eq(found.all.size(), 5u);
    for (const void *local : locals) {
        int holders = 0;
        for (const auto &[low, high] : found.all)
            holders += local >= low && local < high;
        cr_assert_eq(holders, 1);
    }
    Runtime runtime(1);
    Found none;
    cr_assert_eq(mc_task_each_stack(runtime, Found::note, &none), MC_OK);
    cr_assert(none.all.empty());
    channel.release_writer();
    for (const mc_task_t task : tasks)
        join(task);
}
