#include "sched/runtime.hpp"

#include "base/alloc.hpp"
#include "base/cpus.hpp"
#include "base/log.hpp"
#include "sched/pool.hpp"
#include "sched/runtimes.hpp"
#include "sched/spawn.hpp"
#include "sched/task_state.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>
#include <pthread.h>
#include <unistd.h>

namespace mc::sched {
namespace {

// A thread that owns no executor. Its task is on the registry's list through next and prev, since it is in no queue.
struct ForeignThread : ThreadContext {
    explicit ForeignThread(uint32_t spread) noexcept : reader(spread) { foreign_reader = &reader; }
    ForeignReader reader;
};

struct Registry {
    sync::mutex lifecycle; // executors start and stop; taken before mutex
    sync::mutex mutex;
    // guarded by mutex
    Pool *pool = nullptr;
    const DriverSource *drivers = &futex_drivers;
    PoolOptions options;
    // 1 while a thread owns the first executor, or all have threads of their own; read without the mutex by take_over
    sync::atomic<uint32_t> owned{0};
    // The last owner; 0: there was none. In simulation it alone may call, also as it ends: from destructors, and at exit.
    pid_t owner_tid = 0;
    bool simulates_many = false; // in simulation: executors have been asked for
    bool ended = false;          // an executor's thread ended on a microthread's stack: the process is exiting
    Task *foreign = nullptr;     // list
    uint32_t foreign_count = 0;
    bool hooked = false;
};

Registry registry;
sync::atomic<uint32_t> holds{0};
sync::atomic<Pool *> published{nullptr}; // registry.pool, for those who only wake or spawn
enum : uint32_t { not_forked, fork_unseen, beginning_anew };
sync::atomic<uint32_t> in_forked_child{not_forked};
bool forked_in_callback = false;  // the child returns into a call of ours that was under way
Pool *left_behind_pool = nullptr; // so that a leak checker sees what it holds

void link_foreign(Task *task) noexcept {
    task->prev = nullptr;
    task->next = registry.foreign;
    if (task->next != nullptr)
        task->next->prev = task;
    registry.foreign = task;
    ++registry.foreign_count;
}

void unlink_foreign(Task *task) noexcept {
    (task->prev == nullptr ? registry.foreign : task->prev->next) = task->next;
    if (task->next != nullptr)
        task->next->prev = task->prev;
    task->next = task->prev = nullptr;
    --registry.foreign_count;
}

// At a thread's end. It can not be waiting: it runs.
void thread_ends(void *slot) noexcept {
    auto *thread = static_cast<ThreadContext *>(slot);
    const bool on_its_own = thread->executor == nullptr || thread->running == thread->executor->owner();
    if (on_its_own && has_state(*thread->running)) // calls users, who may call us
        end_task_state(*thread->running);
    if (sync::thread_slot() != slot)
        return; // a drop has made the thread another one: the owner, or no owner any more. That one's own end sees to it.
    sync::lock_guard guard(registry.mutex);
    if (thread->executor != nullptr && thread->executor->many()) {
        registry.ended = true; // exit() was called on a microthread's stack: the others go on until the process is gone
        return;
    }
    if (thread->executor != nullptr) {
        registry.owned.store(0, sync::relaxed);
        end_all_readings(*thread);
        if (thread->running == thread->executor->owner())
            thread->executor->release_thread();
        else
            registry.ended = true; // exit() was called on a microthread's stack
        return;
    }
    end_all_readings(*thread);
    Task *task = thread->running;
    unlink_foreign(task);
    task->word.retire();
    task_slab().release(task);
    base::destroy(static_cast<ForeignThread *>(thread));
}

#ifndef MC_SYS
// What a lock guards that is taken here is whole in the child. It may find any other lock of ours taken, so until it
// begins anew it uses nothing that has one.
void before_fork() noexcept {
    fiber::before_fork();
    base::log_before_fork();
}

void parent_after_fork() noexcept {
    base::log_after_fork();
    fiber::after_fork();
}

void child_after_fork() noexcept {
    parent_after_fork();
    const auto *thread = static_cast<const ThreadContext *>(sync::thread_slot());
    forked_in_callback = thread != nullptr && thread->no_switch != 0;
    in_forked_child.store(fork_unseen, sync::relaxed);
    sync::set_thread_slot(nullptr);
}
#endif

// For the overflow report, in a signal handler: plain reads of type-stable memory.
bool describe_task(void *owner, uint64_t *id, char *name) noexcept {
    const auto *task = static_cast<const Task *>(owner);
    *id = task->id;
    const char *from = name_of(*task); // looked up once: a running task may get one, or change it, meanwhile
    std::memcpy(name, from, strnlen(from, sizeof TaskName{}.text - 1)); // the caller's is zero
    return true;
}

void hook_process() noexcept {
    if (registry.hooked)
        return;
    registry.hooked = true;
    fiber::overflow_set_describe(describe_task);
    sync::set_thread_exit_hook(thread_ends);
#ifndef MC_SYS
    pthread_atfork(before_fork, parent_after_fork, child_after_fork);
#endif
}

// known: the thread's task while it was a foreign one, or null.
ThreadContext *attach_owner(Task *known, int32_t *status) noexcept {
    if (registry.pool == nullptr) {
        Pool *pool = Pool::create(*registry.drivers, registry.options);
        if (pool != nullptr && adopt_default_pool(*pool)) { // without memory for that it is lost
            registry.pool = pool;
            published.store(pool, sync::release); // release: pairs with default_pool's acquire
        }
    }
    if (registry.pool == nullptr || !registry.pool->first().adopt_thread(known)) {
        *status = MC_E_NOMEM;
        return nullptr;
    }
    registry.owned.store(1, sync::relaxed); // relaxed: read under the mutex, or as a hint
    registry.owner_tid = gettid();
    return &registry.pool->first().thread();
}

void begin_foreign(ForeignThread &thread, Task &task) noexcept {
    std::snprintf(thread.reader.name, sizeof thread.reader.name, "thread %" PRIu32, sync::thread_number());
    task.kind = Kind::foreign;
    task.home = nullptr;
    task.set_executor(nullptr);
    task.id = 0;
    task.idle_service.store(0, sync::relaxed);
    task.quiescence_of.store(nullptr, sync::relaxed);
    thread.running = &task;
    thread.prng = base::Prng(static_cast<uint64_t>(sync::now_ns()) ^ reinterpret_cast<uintptr_t>(&thread));
    link_foreign(&task);
}

ThreadContext *attach_foreign(int32_t *status) noexcept {
    Task *task = task_slab().acquire();
    auto *thread = task == nullptr ? nullptr : base::create<ForeignThread>(task->slab_index);
    if (thread == nullptr) {
        if (task != nullptr)
            task_slab().release(task);
        *status = MC_E_NOMEM;
        return nullptr;
    }
    clear_name(*task);
    task->emits_to = nullptr;
    task->word.make_runnable();
    task->word.start();
    begin_foreign(*thread, *task);
    return thread;
}

// It waits to be told that a pool is quiet, and the pool is: it is about to go on.
bool is_about_to_be_told(const Task &task) noexcept {
    const WaitsFor waits_for = task.waits_for.load(sync::relaxed);
    return waits_for.kind() == WaitKind::quiescence && waits_for.object() != 0 && // 0: of something else than a pool
           reinterpret_cast<Pool *>(waits_for.object())->microthreads() == 0;
}

// Who waits until nothing moves in a pool with microthreads left does nothing before it knows, and will know the same.
bool waits_for_the_same(const Task &task) noexcept {
    Pool *pool = task.quiescence_of.load(sync::relaxed);
    return pool != nullptr && pool->microthreads() != 0;
}

// Under the registry's mutex. A sum over the words of all foreign threads but the caller, or false when one of them may still
// run. Words never repeat, so two equal sums with nothing running in between mean one state; see world_is_closed.
bool all_blocked(uint64_t *signature, const Task *caller = nullptr) noexcept {
    *signature = 1;
    for (const Task *task = registry.foreign; task != nullptr; task = task->next) {
        // acquire: pairs with note_service
        if (task == caller || task->idle_service.load(sync::acquire) != 0 || waits_for_the_same(*task))
            continue;
        const uint64_t word = task->word.look();
        if (!TaskWord::is_parked_unclaimed(word) || task->timed.load(sync::relaxed) != 0 || is_about_to_be_told(*task))
            return false;
        *signature = *signature * 0x9e3779b97f4a7c15u + word;
    }
    return true;
}

} // namespace

bool forked() noexcept { return in_forked_child.load(sync::acquire) != not_forked; } // acquire: pairs with begin_anew

int32_t claim_new_beginning() noexcept {
    fiber::StackInfo info;
    if (forked_in_callback || fiber::stack_find(__builtin_frame_address(0), &info))
        return MC_E_CONTEXT;
    uint32_t expected = fork_unseen;
    return in_forked_child.compare_exchange_strong(expected, beginning_anew, sync::acquire, sync::relaxed)
               ? MC_OK
               : MC_E_FORKED;
}

// The pool, its executors and their tasks stay where they are, for good: their threads are gone, and may have been in the
// middle of anything.
void begin_anew() noexcept {
    task_slab().after_fork();
    task_name_slab().after_fork();
    for_each_task([](Task &task) {
        new (&task.join_lock) base::Spinlock();
        new (&task.joiners) base::SlimList<JoinWait>();
        task.word.retire();
        if (task.generation.load(sync::relaxed) % 2 == 1)
            (void)base::retire_handle(&task);
    });
    leave_states_behind();
    leave_runtimes_behind();
    leave_reclaimer_behind();
    holds.store(0, sync::relaxed);
    new (&registry.lifecycle) sync::mutex();
    new (&registry.mutex) sync::mutex();
    left_behind_pool = registry.pool;
    registry.pool = nullptr;
    published.store(nullptr, sync::relaxed);
    registry.owned.store(0, sync::relaxed);
    registry.owner_tid = 0;
    registry.simulates_many = false;
    registry.ended = false;
    registry.foreign = nullptr;
    registry.foreign_count = 0;
    in_forked_child.store(not_forked, sync::release); // release: pairs with forked()
}

bool left_behind(const Task &task) noexcept { return TaskWord::phase_of(task.word.look()) == Phase::idle; }

int32_t set_driver_source(const DriverSource &drivers) noexcept {
    sync::lock_guard guard(registry.mutex);
    if (registry.pool != nullptr)
        return MC_E_BUSY;
    registry.drivers = &drivers;
    return MC_OK;
}

int32_t set_pool_options(const PoolOptions &options) noexcept {
    sync::lock_guard guard(registry.mutex);
    if (registry.pool != nullptr)
        return MC_E_BUSY;
    registry.options = options;
    return MC_OK;
}

Pool *default_pool() noexcept { return published.load(sync::acquire); }

Executor *default_executor() noexcept {
    Pool *pool = default_pool();
    return pool == nullptr ? nullptr : &pool->first();
}

Pool &pool_of(const ThreadContext &thread) noexcept {
    if (Pool *home = thread.running->home)
        return *home;
    return thread.executor != nullptr ? thread.executor->pool() : *default_pool();
}

Executor &executor_in(Pool &pool, ThreadContext &thread) noexcept {
    if (simulator() != nullptr)
        return pool.runs_simulated() ? default_pool()->first() : pool.first();
    const bool ours = thread.executor != nullptr && &thread.executor->pool() == &pool;
    return ours ? *thread.executor : pool.any(thread.prng.next());
}

Executor &executor_for(ThreadContext &thread) noexcept { return executor_in(pool_of(thread), thread); }

ThreadContext *attach(int32_t *status) noexcept {
    if (ThreadContext *known = current())
        return known;
    if (forked()) {
        *status = MC_E_FORKED;
        return nullptr;
    }
    sync::lock_guard guard(registry.mutex);
    hook_process();
    if (registry.ended) {
        *status = MC_E_SHUTDOWN;
        return nullptr;
    }
    if (simulator() != nullptr && registry.owner_tid != 0 && registry.owner_tid != gettid()) { // one thread, the first
        *status = MC_E_SIM;
        return nullptr;
    }
    const bool foreign = registry.owned.load(sync::relaxed) != 0;
    if (foreign)
        sync::end_unshared(); // it has, unless this is a thread that the C library has not made
    ThreadContext *thread = foreign ? attach_foreign(status) : attach_owner(nullptr, status);
    if (thread != nullptr)
        sync::set_thread_slot(thread);
    return thread;
}

void attach_service() noexcept {
    if (default_pool() == nullptr)
        return;
    int32_t status = MC_OK;
    sync::lock_guard guard(registry.mutex);
    ThreadContext *thread = registry.ended ? nullptr : attach_foreign(&status);
    if (thread == nullptr)
        return;
    thread->service = true;
    thread->running->idle_service.store(1, sync::relaxed);
    sync::set_thread_slot(thread);
}

// release: pairs with the acquire in all_blocked. It is idle after it has woken its caller; and before that, while the call is
// under way, no world is closed (BlockingPool::calls).
void note_service(bool busy) noexcept {
    if (ThreadContext *thread = current(); thread != nullptr && thread->service)
        thread->running->idle_service.store(busy ? 0 : 1, sync::release);
}

namespace {

// Under the registry's mutex: a foreign thread owns the runtime from now on.
ThreadContext *become_owner(ThreadContext *thread, int32_t *status) noexcept {
    if (registry.ended) {
        *status = MC_E_SHUTDOWN;
        return nullptr;
    }
    Task *task = thread->running;
    unlink_foreign(task); // its links are a queue's from here on
    ThreadContext *owner = attach_owner(task, status);
    if (owner == nullptr) {
        link_foreign(task);
        return nullptr;
    }
    end_all_readings(*thread);
    sync::set_thread_slot(owner);
    base::destroy(static_cast<ForeignThread *>(thread));
    return owner;
}

} // namespace

ThreadContext *take_over(ThreadContext *thread, int32_t *status) noexcept {
    // relaxed: a hint, looked at again under the mutex. Whoever knows that the owner has ended (by having joined it, say)
    // reads 0; whoever can not know it may come as if before.
    if (registry.owned.load(sync::relaxed) != 0 || thread->service)
        return thread;
    sync::lock_guard guard(registry.mutex);
    return registry.owned.load(sync::relaxed) != 0 ? thread : become_owner(thread, status);
}

namespace {

// Under the registry's mutex.
int32_t may_start(const ThreadContext &thread) noexcept {
    if (registry.ended)
        return MC_E_SHUTDOWN;
    if (thread.no_switch != 0 || thread.service ||
        (thread.executor != nullptr && thread.running != thread.executor->owner()))
        return MC_E_CONTEXT;
    const bool others = registry.owned.load(sync::relaxed) != 0 && thread.executor == nullptr;
    return registry.pool->many() || others || registry.pool->microthreads() != 0 ? MC_E_BUSY : MC_OK;
}

// Under the registry's mutex: the thread becomes a foreign one, if it owns the first executor.
int32_t give_up_ownership(ThreadContext &thread) noexcept {
    if (thread.executor == nullptr)
        return MC_OK;
    auto *foreign = base::create<ForeignThread>(thread.running->slab_index);
    if (foreign == nullptr)
        return MC_E_NOMEM;
    begin_foreign(*foreign, *registry.pool->first().give_up_thread());
    sync::set_thread_slot(foreign);
    return MC_OK;
}

} // namespace

namespace {

// The owner stays what it is; what changes is what may come between its calls.
int32_t start_simulated(const ThreadContext &thread, uint32_t n, const PoolOptions *options) noexcept {
    sync::lock_guard guard(registry.mutex);
    int32_t status = registry.simulates_many ? MC_E_BUSY : may_start(thread);
    if (status == MC_OK && options != nullptr)
        status = registry.pool->configure(*options);
    if (status == MC_OK) {
        registry.simulates_many = true;
        simulator()->note_executors(n);
    }
    return status;
}

} // namespace

int32_t start_executors(ThreadContext &thread, uint32_t n, const PoolOptions *options) noexcept {
    if (n > Pool::max_executors)
        return MC_E_LIMIT;
    if (thread.executor != nullptr && thread.executor->many())
        return MC_E_CONTEXT;
    sync::lock_guard lifecycle(registry.lifecycle);
    if (simulator() != nullptr)
        return start_simulated(thread, n, options);
    {
        sync::lock_guard guard(registry.mutex);
        if (options != nullptr)
            registry.pool->close(); // nobody reads the old ones any more, or is counted
        int32_t status = may_start(thread);
        if (status == MC_OK && options != nullptr)
            status = registry.pool->configure(*options);
        if (status == MC_OK)
            status = give_up_ownership(thread);
        registry.pool->reopen();
        if (status != MC_OK)
            return status;
        registry.owned.store(1, sync::relaxed); // nobody takes the first executor over while it gets its thread
    }
    if (n == 0) // only now: it takes more stack than a microthread may have
        n = std::min(base::usable_cpus(), Pool::max_executors);
    const int32_t status = registry.pool->start(n);
    if (status != MC_OK) {
        sync::lock_guard guard(registry.mutex);
        registry.owned.store(0, sync::relaxed); // the next call takes it over
    }
    return status;
}

namespace {

// False: on a microthread, in simulation.
bool stop_simulated(const ThreadContext &thread) noexcept {
    if (simulator() == nullptr)
        return true;
    if (thread.running != thread.executor->owner())
        return false;
    sync::lock_guard guard(registry.mutex);
    registry.simulates_many = false;
    return true;
}

} // namespace

int32_t stop_executors(ThreadContext &thread) noexcept {
    if (thread.no_switch != 0 || thread.service) // inside tx: its call under way still uses this context
        return MC_E_CONTEXT;
    if (thread.executor != nullptr)
        return thread.executor->many() || !stop_simulated(thread) ? MC_E_CONTEXT : MC_OK;
    sync::lock_guard lifecycle(registry.lifecycle);
    if (!registry.pool->many())
        return MC_OK;
    if (is_exiting()) // one of those to be joined waits for us, perhaps
        return MC_E_SHUTDOWN;
    registry.pool->stop(); // without the mutex: what still runs may need it before it ends
    registry.pool->reopen();
    sync::lock_guard guard(registry.mutex);
    registry.owned.store(0, sync::relaxed); // under the mutex, so that nobody is faster than we
    int32_t status = MC_OK;
    (void)become_owner(&thread, &status);
    return status;
}

// What an owner that has ended did happens before this: it gave up the ownership under the mutex.
bool owner_is_elsewhere() noexcept {
    sync::lock_guard guard(registry.mutex);
    return registry.owned.load(sync::relaxed) != 0 && current() == nullptr;
}

bool simulates_many() noexcept {
    sync::lock_guard guard(registry.mutex);
    return registry.simulates_many;
}

int32_t sleep_until(ThreadContext &thread, int64_t deadline_ns, Scope *scope) noexcept {
    const int32_t refused = may_block(thread);
    if (refused != MC_OK)
        return refused;
    Parking parking(nullptr, deadline_ns, scope);
    parking.waits_for = WaitsFor(WaitKind::sleep, uint64_t{0});
    return status_of(park(thread, parking));
}

bool on_own_stack(const ThreadContext *thread, const void *pointer) noexcept {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (thread != nullptr && thread->executor != nullptr && thread->running->kind != Kind::adopted) {
        fiber::StackInfo here;
        fiber::StackInfo there;
        return fiber::stack_find(__builtin_frame_address(0), &here) && fiber::stack_find(pointer, &there) &&
               here.low == there.low;
    }
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    void *low = nullptr;
    size_t size = 0;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return address - reinterpret_cast<uintptr_t>(low) < size;
}

sync::mutex &lifecycle_mutex() noexcept { return registry.lifecycle; }

bool is_exiting() noexcept {
    sync::lock_guard guard(registry.mutex);
    return registry.ended;
}

void hold_world() noexcept { (void)holds.fetch_add(1, sync::relaxed); }

bool release_world() noexcept {
    uint32_t held = holds.load(sync::relaxed);
    while (held != 0)
        if (holds.compare_exchange_weak(held, held - 1, sync::relaxed, sync::relaxed))
            return true;
    return false;
}

namespace {

// Executors' threads, of all runtimes.
uint32_t executor_threads() noexcept {
    uint32_t count = 0;
    for_each_pool([&](Pool &pool) { count += pool.many() ? pool.live() : 0; });
    return count;
}

// Every pool from this one on whose executors have threads sleeps with nothing to do, and nobody is about to be told so, while
// the ones before it are held: at one moment all do, and last() looks then, since what they did before shows by now.
template <class Last> bool all_pools_sleep(uint32_t index, Last last) noexcept {
    for (; index < pool_count(); ++index) {
        Pool *pool = pool_at(index);
        if (pool == nullptr || !pool->many())
            continue;
        bool rest = false;
        return pool->nothing_moves([&] { rest = !pool->tells_somebody() && all_pools_sleep(index + 1, last); }) && rest;
    }
    return last();
}

// Under the registry's mutex. The owner of single-processor mode is one whom nobody else's task can be waiting for: itself
// asking, and with no microthreads of its own.
bool owner_is_out_of_it(const Task &caller) noexcept {
    Pool *pool = registry.pool;
    if (pool == nullptr || pool->many() || pool->first().owner() == nullptr)
        return true;
    const Task *owner = pool->first().owner();
    return (owner == &caller || waits_for_the_same(*owner)) && pool->microthreads() == 0 &&
           pool->first().nothing_came();
}

uint32_t owning_threads() noexcept {
    return registry.pool != nullptr && !registry.pool->many() && registry.pool->first().owner() != nullptr ? 1 : 0;
}

// Under the registry's mutex, by the caller, who is about to go on: nothing is left that could end anybody's wait.
bool is_closed_to(const Task &caller, Pool &asked) noexcept {
    uint64_t first = 0;
    uint64_t second = 0;
    if (holds.load(sync::relaxed) != 0 || blocking_calls() != 0 || !all_blocked(&first, &caller))
        return false;
    if (sync::thread_count() != registry.foreign_count + owning_threads() + executor_threads() ||
        !owner_is_out_of_it(caller) || process_reclaimer()->pending() ||
        !all_pools_sleep(0, [&] { return asked.microthreads() != 0; }))
        return false;
    return all_blocked(&second, &caller) && first == second;
}

// Under the registry's mutex: those who wait for the same learn the same.
void tell_all_who_wait_for_the_same(Task &caller) noexcept {
    caller.deadlocked = true;
    for (Task *task = registry.foreign; task != nullptr; task = task->next)
        task->deadlocked |= waits_for_the_same(*task);
    Pool *pool = registry.pool;
    if (pool != nullptr && !pool->many() && pool->first().owner() != nullptr)
        pool->first().owner()->deadlocked |= waits_for_the_same(*pool->first().owner());
}

} // namespace

// Threads can not be stopped for a look, so we look twice. A task's word changes with every wait and never comes back:
// when a thread is parked in the same wait at both looks, it was parked all the time between them; when all are,
// nobody that we know ran between the looks. The count, taken in between, says that nobody else was there by then. So
// nothing comes any more, and what anybody did before shows in the inbox and the timers, which are looked at after both:
// before the count, a thread could hand something in and end unseen. One look there is enough, the one at a moment at which
// all other pools sleep: what an earlier one found, and it does not, is over.
bool world_is_closed(Executor &executor) noexcept {
    sync::lock_guard guard(registry.mutex);
    uint64_t first = 0;
    uint64_t second = 0;
    const Task *owner = executor.owner();
    if (holds.load(sync::relaxed) != 0 || blocking_calls() != 0 ||
        (owner != nullptr && owner->quiescence_of.load(sync::relaxed) != nullptr) || !all_blocked(&first))
        return false; // who waits for quiescence is told by whoever is quiet, and decides for itself
    if (sync::thread_count() != registry.foreign_count + 1 + executor_threads() ||
        (owner != nullptr && is_about_to_be_told(*owner) && TaskWord::is_parked_unclaimed(owner->word.look())) ||
        !all_pools_sleep(0, [&] { return executor.nothing_arrived(); }))
        return false;
    return all_blocked(&second) && first == second;
}

void begin_quiescence(Task &caller, Pool &pool) noexcept {
    sync::lock_guard guard(registry.mutex);
    caller.deadlocked = false;
    caller.quiescence_of.store(&pool, sync::relaxed);
}

bool end_quiescence(Task &caller, bool decides) noexcept {
    sync::lock_guard guard(registry.mutex);
    Pool &asked = *caller.quiescence_of.load(sync::relaxed);
    const bool closed = decides && (caller.deadlocked || is_closed_to(caller, asked));
    if (closed)
        tell_all_who_wait_for_the_same(caller);
    caller.quiescence_of.store(nullptr, sync::relaxed); // from here on it acts
    return closed;
}

} // namespace mc::sched
