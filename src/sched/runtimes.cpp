#include "sched/runtimes.hpp"

#include "base/cpus.hpp"
#include "base/log.hpp"
#include "sched/report.hpp"
#include "sched/runtime.hpp"

#include <algorithm>
#include <cinttypes>

namespace mc::sched {
namespace {

struct Runtime : base::SlabItem<Runtime>, base::HandleItem {
    enum class State : uint32_t { created, running, closing, stopped };

    // any thread; set once
    sync::atomic<Pool *> pool{nullptr};
    // guarded by the lifecycle mutex
    State state = State::created;
    uint32_t executors = 0;
};

using State = Runtime::State;
constexpr int64_t first_pause_ns = 200'000; // between two looks of a shutdown
constexpr int64_t last_pause_ns = 10'000'000;

base::Slab<Runtime> &runtime_slab() noexcept {
    static constinit base::Slab<Runtime> slab;
    return slab;
}

Runtime *resolve(uint64_t handle) noexcept {
    return base::resolve_handle(runtime_slab(), base::HandleKind::runtime, handle);
}

sync::atomic<uint64_t> the_default{0};

// start, shutdown, destroy: they take more stack than a microthread may have, and block the thread for a while.
int32_t may_change(const ThreadContext &thread) noexcept {
    const bool own_stack = thread.executor == nullptr || thread.running == thread.executor->owner();
    return own_stack && thread.no_switch == 0 ? MC_OK : MC_E_CONTEXT;
}

bool is_default(uint64_t handle) noexcept { return handle == the_default.load(sync::relaxed); }

} // namespace

Pool *pool_at(uint32_t index) noexcept {
    Runtime *runtime = runtime_slab().at(index);
    return runtime == nullptr ? nullptr : runtime->pool.load(sync::acquire); // acquire: pairs with set_pool
}

bool adopt_default_pool(Pool &pool) noexcept {
    Runtime *runtime = runtime_slab().acquire();
    if (runtime == nullptr)
        return false;
    runtime->pool.store(&pool, sync::release);
    const uint64_t handle = base::issue_handle(runtime, base::HandleKind::runtime);
    pool.set_handle(handle);
    the_default.store(handle, sync::relaxed);
    return true;
}

uint64_t default_runtime() noexcept { return the_default.load(sync::relaxed); }

Pool *find_pool(const ThreadContext &thread, uint64_t handle) noexcept {
    if (handle == 0)
        return &pool_of(thread);
    Runtime *runtime = resolve(handle);
    return runtime == nullptr ? nullptr : runtime->pool.load(sync::acquire);
}

bool runtime_is(const Pool &pool, uint64_t handle) noexcept {
    return handle == 0 || (pool.handle() == handle && resolve(handle) != nullptr);
}

// The handles of before are stale, the pools stay where they are.
void leave_runtimes_behind() noexcept {
    runtime_slab().after_fork();
    for (uint32_t i = 0; i < runtime_slab().carved(); ++i) {
        Runtime &runtime = *runtime_slab().at(i);
        if (runtime.generation.load(sync::relaxed) % 2 == 1)
            (void)base::retire_handle(&runtime);
        runtime.pool.store(nullptr, sync::relaxed);
        runtime.state = State::created;
    }
    the_default.store(0, sync::relaxed);
}

// --- making and starting ---

int32_t create_runtime(const PoolOptions &options, uint32_t executors, uint64_t *out) noexcept {
    if (executors > Pool::max_executors)
        return MC_E_LIMIT;
    sync::lock_guard lifecycle(lifecycle_mutex());
    Runtime *runtime = runtime_slab().acquire();
    if (runtime == nullptr)
        return MC_E_NOMEM;
    Pool *pool = runtime->pool.load(sync::relaxed);
    int32_t status = MC_OK;
    if (pool != nullptr)
        status = pool->configure(options);
    else if ((pool = Pool::create(futex_drivers, options)) == nullptr)
        status = MC_E_NOMEM;
    if (status != MC_OK) {
        runtime_slab().release(runtime);
        return status;
    }
    runtime->state = State::created;
    runtime->executors = executors;
    runtime->pool.store(pool, sync::release); // release: pairs with the acquires above
    const uint64_t handle = base::issue_handle(runtime, base::HandleKind::runtime);
    pool->set_handle(handle);
    *out = handle;
    return MC_OK;
}

int32_t start_default(ThreadContext &thread, const PoolOptions &options, uint32_t executors, uint64_t *out) noexcept {
    const int32_t status = start_executors(thread, executors, &options);
    if (status == MC_OK)
        *out = default_runtime();
    return status;
}

int32_t start_runtime(const ThreadContext &thread, uint64_t handle) noexcept {
    const int32_t refused = may_change(thread);
    if (refused != MC_OK)
        return refused;
    sync::lock_guard lifecycle(lifecycle_mutex());
    Runtime *runtime = resolve(handle);
    if (runtime == nullptr)
        return MC_E_STALE;
    Pool &pool = *runtime->pool.load(sync::relaxed);
    if (is_default(handle))
        return pool.many() ? MC_OK : MC_E_PERM;
    if (runtime->state != State::created)
        return runtime->state == State::running ? MC_OK : MC_E_SHUTDOWN;
    uint32_t n = runtime->executors;
    if (n == 0)
        n = std::min(base::usable_cpus(), Pool::max_executors);
    const int32_t status = pool.start(n);
    if (status == MC_OK)
        runtime->state = State::running;
    return status;
}

int32_t add_executor(const ThreadContext &thread, uint64_t handle) noexcept {
    const int32_t refused = may_change(thread);
    if (refused != MC_OK)
        return refused;
    sync::lock_guard lifecycle(lifecycle_mutex());
    Pool *pool = find_pool(thread, handle);
    if (pool == nullptr)
        return MC_E_STALE;
    if (pool->closing())
        return MC_E_SHUTDOWN;
    return pool->many() ? pool->add_executor() : MC_E_CONTEXT;
}

// --- ending ---

namespace {

// Under the lifecycle mutex: nothing new begins. What was spawned into a runtime that was never started must run to end.
int32_t begin_closing(Runtime &runtime) noexcept {
    Pool &pool = *runtime.pool.load(sync::relaxed);
    if (runtime.state == State::created && pool.microthreads() != 0) {
        const int32_t status = pool.start(1);
        if (status != MC_OK)
            return status;
        runtime.state = State::running;
    }
    if (runtime.state == State::created)
        runtime.state = State::stopped;
    if (runtime.state == State::running)
        runtime.state = State::closing;
    pool.close();
    return MC_OK;
}

// All waits end, again and again, until nothing is left: who goes on to wait is told anew.
int32_t end_microthreads(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    int64_t pause_ns = first_pause_ns;
    for (ThreadContext *here = &thread;; here = &here_now()) {
        if (pool.microthreads() == 0)
            return MC_OK;
        pool.end_all_waits();
        const int64_t now = sync::now_ns();
        if (deadline_ns != MC_FOREVER && now >= deadline_ns)
            return MC_E_TIMEDOUT;
        const int32_t status =
            pool.wait_quiet(*here, Pool::Quiet::no_microthread, std::min(deadline_ns, now + pause_ns));
        if (status != MC_OK && status != MC_E_TIMEDOUT)
            return status;
        pause_ns = std::min(2 * pause_ns, last_pause_ns);
    }
}

// The default runtime, in single-processor mode: its owner runs what is left.
int32_t end_alone(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    if (thread.executor == nullptr || &thread.executor->pool() != &pool)
        return pool.microthreads() == 0 ? MC_OK : MC_E_CONTEXT;
    while (pool.microthreads() != 0) {
        if (deadline_ns != MC_FOREVER && sync::now_ns() >= deadline_ns)
            return MC_E_TIMEDOUT;
        pool.end_all_waits();
        (void)thread.executor->run_once(std::min(deadline_ns, sync::now_ns() + last_pause_ns));
    }
    return MC_OK;
}

int32_t shut_down_default(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    pool.close();
    const int32_t status =
        pool.many() ? end_microthreads(thread, pool, deadline_ns) : end_alone(thread, pool, deadline_ns);
    if (status == MC_E_TIMEDOUT)
        report_what_is_left(pool);
    if (status != MC_OK)
        return status;
    const int32_t stopped = stop_executors(here_now());
    pool.reopen();
    return stopped;
}

} // namespace

int32_t shutdown_runtime(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    const int32_t refused = may_change(thread);
    if (refused != MC_OK)
        return refused;
    if (handle == 0)
        handle = default_runtime();
    Runtime *runtime = nullptr;
    {
        sync::lock_guard lifecycle(lifecycle_mutex());
        runtime = resolve(handle);
        if (runtime == nullptr)
            return MC_E_STALE;
        const int32_t status = is_default(handle) ? MC_OK : begin_closing(*runtime);
        if (status != MC_OK)
            return status;
        if (runtime->state == State::stopped)
            return MC_OK;
    }
    Pool &pool = *runtime->pool.load(sync::relaxed);
    if (is_default(handle))
        return shut_down_default(thread, pool, deadline_ns);
    const int32_t status = end_microthreads(thread, pool, deadline_ns);
    if (status == MC_E_TIMEDOUT)
        report_what_is_left(pool);
    if (status != MC_OK && status != MC_E_CONTEXT) // that: another shutdown was faster
        return status;
    sync::lock_guard lifecycle(lifecycle_mutex());
    if (is_exiting())
        return MC_E_SHUTDOWN;
    if (!pool.close_blocking(deadline_ns))
        return MC_E_TIMEDOUT;
    if (resolve(handle) == runtime && runtime->state == State::closing) {
        pool.stop();
        runtime->state = State::stopped;
    }
    return MC_OK;
}

int32_t destroy_runtime(const ThreadContext &thread, uint64_t handle) noexcept {
    const int32_t refused = may_change(thread);
    if (refused != MC_OK)
        return refused;
    sync::lock_guard lifecycle(lifecycle_mutex());
    Runtime *runtime = resolve(handle);
    if (runtime == nullptr)
        return MC_E_STALE;
    if (is_default(handle))
        return MC_E_PERM;
    Pool &pool = *runtime->pool.load(sync::relaxed);
    const bool idle = runtime->state == State::stopped || runtime->state == State::created;
    pool.close(); // what is being spawned from elsewhere is counted by now, or refused
    if (!idle || pool.microthreads() != 0) {
        if (runtime->state == State::created || runtime->state == State::running)
            pool.reopen();
        base::log(MC_LOG_ERROR, MC_E_BUSY,
                  "a runtime with %" PRIu64 " microthreads was to be destroyed before it was shut down: it stays",
                  pool.microthreads());
        return MC_E_BUSY;
    }
    const bool reusable = base::retire_handle(runtime);
    pool.set_handle(0);
    pool.reopen();
    if (reusable)
        runtime_slab().release(runtime);
    return MC_OK;
}

// --- quiescence ---

namespace {

// Single-processor mode: its owner runs what there is to run, and is left with those that wait for nobody.
int32_t run_until_quiescent(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    if (thread.executor == nullptr || &thread.executor->pool() != &pool)
        return pool.microthreads() == 0 ? MC_OK : MC_E_CONTEXT;
    if (may_change(thread) != MC_OK)
        return MC_E_CONTEXT;
    while (thread.executor->run_once(deadline_ns))
        if (deadline_ns != MC_FOREVER && sync::now_ns() >= deadline_ns)
            return MC_E_TIMEDOUT;
    if (pool.microthreads() == 0 || !world_is_closed(*thread.executor))
        return MC_OK;
    report_deadlock();
    return MC_E_DEADLOCK;
}

int32_t wait_until_quiescent(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    if (thread.executor != nullptr && &thread.executor->pool() == &pool)
        return MC_E_CONTEXT;
    Task &task = *thread.running;
    task.in_quiescence.store(1, sync::relaxed);
    int32_t status = pool.wait_quiet(thread, Pool::Quiet::nothing_moves, deadline_ns);
    if (status == MC_OK && pool.microthreads() != 0 && world_is_closed_to(task)) {
        report_deadlock();
        status = MC_E_DEADLOCK;
    }
    task.in_quiescence.store(0, sync::relaxed);
    return status;
}

} // namespace

int32_t wait_quiescent(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    Pool *pool = find_pool(thread, handle);
    if (pool == nullptr)
        return MC_E_STALE;
    return pool->many() ? wait_until_quiescent(thread, *pool, deadline_ns)
                        : run_until_quiescent(thread, *pool, deadline_ns);
}

} // namespace mc::sched
