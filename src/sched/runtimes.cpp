#include "sched/runtimes.hpp"

#include "base/cpus.hpp"
#include "base/log.hpp"
#include "sched/primitive.hpp"
#include "sched/report.hpp"
#include "sched/runtime.hpp"

#include <algorithm>
#include <cinttypes>

namespace mc::sched {
namespace {

struct Runtime : base::SlabItem<Runtime>, base::HandleItem {
    enum class State : uint32_t { created, running, closing, stopping, stopped };

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
sync::atomic<uint32_t> stops_default{0}; // somebody does

// start, shutdown, destroy: they take more stack than a microthread may have, and block the thread for a while.
int32_t may_change(const ThreadContext &thread) noexcept {
    const bool own_stack = thread.executor == nullptr || thread.running == thread.executor->owner();
    return own_stack && thread.no_switch == 0 ? MC_OK : MC_E_CONTEXT;
}

bool is_default(uint64_t handle) noexcept { return handle == the_default.load(sync::relaxed); }

} // namespace

uint32_t pool_count() noexcept { return runtime_slab().carved(); }

Pool *pool_at(uint32_t index) noexcept {
    Runtime *runtime = runtime_slab().at(index);
    return runtime == nullptr ? nullptr : runtime->pool.load(sync::acquire); // acquire: pairs with create_runtime
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
    stops_default.store(0, sync::relaxed);
}

// An executor that is the only pool's tells, when it next lies down, whoever waits.
void timer_was_cancelled() noexcept {
    const ThreadContext *thread = current();
    if (thread != nullptr && thread->executor != nullptr && pool_count() <= 1)
        return;
    for_each_pool([](Pool &pool) { pool.tell_quiet(); });
}

// --- making and starting ---

int32_t create_runtime(const PoolOptions &options, uint32_t executors, uint64_t *out) noexcept {
    if (executors > Pool::max_executors)
        return MC_E_LIMIT;
    Runtime *runtime = runtime_slab().acquire();
    if (runtime == nullptr)
        return MC_E_NOMEM;
    Pool *pool = runtime->pool.load(sync::relaxed);
    int32_t status = MC_OK;
    if (pool != nullptr) {
        status = pool->configure(options);
    } else {
        pool = Pool::create(futex_drivers, options);
        status = pool == nullptr ? MC_E_NOMEM : MC_OK;
    }
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
    if (Simulator *simulation = simulator()) {
        simulation->note_executors(n);
        runtime->state = State::running;
        pool.start_simulated();
        return MC_OK;
    }
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
    if (Simulator *simulation = simulator()) {
        if (is_default(pool->handle()) ? !simulates_many() : !pool->runs_simulated())
            return MC_E_CONTEXT;
        simulation->note_executors(2);
        return MC_OK;
    }
    return pool->many() ? pool->add_executor() : MC_E_CONTEXT;
}

// --- ending ---

namespace {

// Under the lifecycle mutex: nothing new begins. What was spawned into a runtime that was never started must run to end.
int32_t begin_closing(Runtime &runtime) noexcept {
    Pool &pool = *runtime.pool.load(sync::relaxed);
    const bool was_open = runtime.state == State::created || runtime.state == State::running;
    pool.close(); // before the counts: what is admitted is counted
    // Of one that was closed before they are guests that find that out.
    if (const uint32_t guests = pool.guests(); was_open && guests != 0) {
        pool.reopen();
        base::log(MC_LOG_ERROR, MC_E_BUSY,
                  "a runtime to which %" PRIu32 " of machines are attached was to be shut down: it stays", guests);
        return MC_E_BUSY;
    }
    if (runtime.state == State::created && (pool.microthreads() != 0 || pool.guests_leave())) {
        int32_t status = MC_OK;
        if (simulator() != nullptr)
            pool.start_simulated();
        else
            status = pool.start(1);
        if (status != MC_OK) {
            pool.reopen();
            return status;
        }
        runtime.state = State::running;
    }
    if (runtime.state == State::created)
        runtime.state = State::stopped;
    if (runtime.state == State::running)
        runtime.state = State::closing;
    return MC_OK;
}

// The default runtime in single-processor mode, or any in simulation: the owner runs what is left.
int32_t end_alone(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    while (pool.microthreads() != 0 || pool.guests_leave()) {
        if (deadline_ns != MC_FOREVER && sync::now_ns() >= deadline_ns)
            return MC_E_TIMEDOUT;
        pool.end_all_waits();
        const int64_t pause_ends_ns = std::min(deadline_ns, sync::now_ns() + first_pause_ns);
        // They run, and what only a blocking call will end goes on.
        const int32_t status = sleep_until(thread, pause_ends_ns, nullptr);
        if (status != MC_E_TIMEDOUT)
            return status;
    }
    return MC_OK;
}

// All waits end, again and again, until nothing is left: who goes on to wait is told anew.
// Somebody else may be faster, and the pool another runtime's by then.
int32_t end_microthreads(ThreadContext &thread, Pool &pool, uint64_t handle, int64_t deadline_ns) noexcept {
    if (simulator() != nullptr)
        return end_alone(thread, pool, deadline_ns);
    int64_t pause_ns = first_pause_ns;
    for (ThreadContext *here = &thread;; here = &here_now()) {
        const bool none = pool.microthreads() == 0;
        if (!runtime_is(pool, handle) || !pool.closing() || (none && !pool.guests_leave()))
            return MC_OK;
        pool.end_all_waits();
        const int64_t now = sync::now_ns();
        if (deadline_ns != MC_FOREVER && now >= deadline_ns)
            return MC_E_TIMEDOUT;
        const int64_t until = std::min(deadline_ns, now + pause_ns);
        const int32_t status =
            none ? sleep_until(*here, until, nullptr) : pool.wait_quiet(*here, Pool::Quiet::no_microthread, until);
        if (status != MC_OK && status != MC_E_TIMEDOUT)
            return status;
        pause_ns = std::min(2 * pause_ns, last_pause_ns);
    }
}

// Nothing is left in it. One at a time; those that wait find it reopened, or stop it again.
int32_t stop_default(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    for (ThreadContext *here = &thread; stops_default.exchange(1, sync::acquire) != 0; here = &here_now()) {
        if (deadline_ns != MC_FOREVER && sync::now_ns() >= deadline_ns)
            return MC_E_TIMEDOUT;
        const int32_t status = sleep_until(*here, sync::now_ns() + first_pause_ns, nullptr);
        if (status != MC_E_TIMEDOUT)
            return status;
    }
    int32_t status = MC_OK;
    if (pool.closing()) { // else another shutdown was faster
        const bool closed = pool.close_blocking(deadline_ns);
        pool.open_blocking(); // before it is reopened; until then nobody is left to call there
        status = closed ? stop_executors(here_now()) : MC_E_TIMEDOUT;
        if (!closed)
            base::log(MC_LOG_ERROR, status, "a thread of the default runtime's blocking calls has not ended in time");
        pool.reopen();
    }
    stops_default.store(0, sync::release); // release: pairs with the acquire of the next one
    return status;
}

// It stays closed only when it could not be ended in time: then a shutdown is still to come.
int32_t shut_down_default(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    const bool alone = !pool.many();
    if (alone && (thread.executor == nullptr || &thread.executor->pool() != &pool))
        return MC_E_CONTEXT;
    pool.close();
    const int32_t status =
        alone ? end_alone(thread, pool, deadline_ns) : end_microthreads(thread, pool, pool.handle(), deadline_ns);
    if (status == MC_E_TIMEDOUT) {
        report_what_is_left(pool);
        return status;
    }
    if (status == MC_OK)
        return stop_default(here_now(), pool, deadline_ns);
    pool.reopen();
    return status;
}

// Nothing is left in it. True: it is the caller's to stop; nobody else is at it.
bool begin_stopping(Runtime &runtime, uint64_t handle) noexcept {
    sync::lock_guard lifecycle(lifecycle_mutex());
    if (resolve(handle) != &runtime || runtime.state != State::closing)
        return false;
    runtime.state = State::stopping;
    return true;
}

bool is_stopped(Runtime &runtime, uint64_t handle) noexcept {
    sync::lock_guard lifecycle(lifecycle_mutex());
    return resolve(handle) != &runtime || runtime.state == State::stopped;
}

int32_t stop_runtime(Runtime &runtime, int64_t deadline_ns) noexcept {
    Pool &pool = *runtime.pool.load(sync::relaxed);
    const bool closed = pool.close_blocking(deadline_ns); // the end of a thread may call us
    sync::lock_guard lifecycle(lifecycle_mutex());
    if (!closed || is_exiting()) {
        runtime.state = State::closing;
        if (closed)
            return MC_E_SHUTDOWN;
        base::log(MC_LOG_ERROR, MC_E_TIMEDOUT, "a thread of a runtime's blocking calls has not ended in time");
        return MC_E_TIMEDOUT;
    }
    if (simulator() != nullptr)
        pool.stop_simulated();
    else
        pool.stop();
    runtime.state = State::stopped;
    return MC_OK;
}

// Another one stops it.
int32_t wait_until_stopped(ThreadContext &thread, Runtime &runtime, uint64_t handle, int64_t deadline_ns) noexcept {
    for (ThreadContext *here = &thread; !is_stopped(runtime, handle); here = &here_now()) {
        if (deadline_ns != MC_FOREVER && sync::now_ns() >= deadline_ns)
            return MC_E_TIMEDOUT;
        const int32_t status = sleep_until(*here, sync::now_ns() + first_pause_ns, nullptr);
        if (status != MC_E_TIMEDOUT)
            return status;
    }
    return MC_OK;
}

} // namespace

int32_t shutdown_runtime(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    const int32_t refused = thread.service ? MC_E_CONTEXT : may_change(thread);
    if (refused != MC_OK)
        return refused;
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
    const int32_t status = end_microthreads(thread, pool, handle, deadline_ns);
    if (status == MC_E_TIMEDOUT)
        report_what_is_left(pool);
    if (status != MC_OK && status != MC_E_CONTEXT) // that: another shutdown was faster
        return status;
    return begin_stopping(*runtime, handle) ? stop_runtime(*runtime, deadline_ns)
                                            : wait_until_stopped(here_now(), *runtime, handle, deadline_ns);
}

namespace {

// Nothing is in it: a stopped one was empty when it was closed for good. Into one that was never started somebody may be
// spawning, and be counted for a moment before he is refused.
bool is_empty(Pool &pool, State state) noexcept {
    for (int looks = 0; state == State::created && pool.microthreads() != 0; ++looks) {
        if (looks == 100)
            return false;
        sync::thread_yield();
    }
    return pool.guests() == 0 && !pool.guests_leave();
}

} // namespace

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
    if (idle)
        pool.close();
    if (!idle || !is_empty(pool, runtime->state)) {
        if (runtime->state == State::created)
            pool.reopen();
        base::log(MC_LOG_ERROR, MC_E_BUSY,
                  "a runtime with %" PRIu64 " microthreads, and %" PRIu32
                  " of machines, was to be destroyed before it was shut down: it stays",
                  pool.microthreads(), pool.guests() + pool.guests_leaving());
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
    Executor &executor = *thread.executor;
    for (;;) {
        if (!executor.run_until_idle(deadline_ns))
            return MC_E_TIMEDOUT;
        if (!pool.calls_blocking())
            break;
        const int32_t status = sleep_until(thread, std::min(deadline_ns, sync::now_ns() + first_pause_ns), nullptr);
        if (status != MC_E_TIMEDOUT)
            return status;
    }
    if (pool.microthreads() == 0 || !executor.runs_alone() || !world_is_closed(executor))
        return MC_OK;
    report_deadlock();
    return MC_E_DEADLOCK;
}

// What ends the wait while it is not parked, since others run.
int32_t refuse_to_wait_on(const ThreadContext &thread, int64_t deadline_ns) noexcept {
    const Task &caller = *thread.running;
    if (caller.kind == Kind::fiber && caller.home->closing())
        return MC_E_SHUTDOWN;
    return refuse_to_begin(thread, deadline_ns, nullptr);
}

// In simulation, by any task but the runtime's own: the others run.
int32_t wait_simulated(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    Task &caller = *thread.running;
    if (thread.no_switch != 0 || caller.home == &pool)
        return MC_E_CONTEXT;
    if (!pool.runs_simulated() && !is_default(pool.handle())) // nothing of it moves before it is started
        return pool.microthreads() == 0 ? MC_OK : MC_E_CONTEXT;
    Executor &executor = *thread.executor;
    caller.quiescence_of.store(&pool, sync::relaxed); // it does not move, for others who wait so
    int32_t status = MC_OK;
    while (status == MC_OK && pool.moves_in_simulation()) {
        status = refuse_to_wait_on(thread, deadline_ns);
        if (status == MC_OK)
            status = executor.wait_for_others(WaitsFor(WaitKind::quiescence, &pool), deadline_ns);
    }
    caller.quiescence_of.store(nullptr, sync::relaxed);
    if (status != MC_OK)
        return status;
    if (pool.microthreads() == 0 || caller.kind == Kind::fiber || !executor.runs_alone())
        return MC_OK;
    report_deadlock();
    return MC_E_DEADLOCK;
}

int32_t wait_until_quiescent(ThreadContext &thread, Pool &pool, int64_t deadline_ns) noexcept {
    if (thread.executor != nullptr && &thread.executor->pool() == &pool)
        return MC_E_CONTEXT;
    Task &task = *thread.running;
    begin_quiescence(task, pool);
    const int32_t status = pool.wait_quiet(thread, Pool::Quiet::nothing_moves, deadline_ns);
    const bool decides = status == MC_OK && pool.microthreads() != 0 && task.kind != Kind::fiber;
    if (!end_quiescence(task, decides))
        return status;
    report_deadlock();
    return MC_E_DEADLOCK;
}

} // namespace

int32_t wait_quiescent(ThreadContext &thread, uint64_t handle, int64_t deadline_ns) noexcept {
    Pool *pool = find_pool(thread, handle);
    if (pool == nullptr)
        return MC_E_STALE;
    if (simulator() != nullptr)
        return wait_simulated(thread, *pool, deadline_ns);
    return pool->many() ? wait_until_quiescent(thread, *pool, deadline_ns)
                        : run_until_quiescent(thread, *pool, deadline_ns);
}

} // namespace mc::sched
