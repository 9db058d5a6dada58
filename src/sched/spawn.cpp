#include "sched/spawn.hpp"

#include "base/guarded.hpp"
#include "sched/group.hpp"
#include "sched/primitive.hpp"
#include "sched/runtimes.hpp"
#include "sched/simulation.hpp"
#include "sched/switch.hpp"
#include "sched/task_state.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace mc::sched {
namespace {

constexpr uint64_t simulated_stack_bytes = 65'536; // the simulator runs there, and may have to say what is wrong

sync::atomic<uint64_t> next_id{1};

void log_crash(const Task &task, const char *what) noexcept {
    base::log(MC_LOG_ERROR, MC_E_CRASHED, "microthread %" PRIu64 " \"%s\" ended by an exception: %s", task.id,
              name_of(task), what);
}

int32_t run_body(Task &task, const TaskBody &body) noexcept {
    try {
        if (task.returns)
            return body.returning(body.argument);
        body.plain(body.argument);
        return MC_OK;
    } catch (abi::__forced_unwind &) {
        char what[80];
        std::snprintf(what, sizeof what, "microthread %" PRIu64 " \"%s\"", task.id, name_of(task));
        base::abort_unwinding(what);
    } catch (const std::exception &error) {
        log_crash(task, error.what());
    } catch (...) {
        log_crash(task, "not a std::exception");
    }
    return MC_E_CRASHED;
}

// Claims every joiner, under the lock, onto a list of its own; wake_joiners then wakes them without it.
void claim_joiners(Task &task, base::List<JoinWait> &claimed, int32_t value) noexcept {
    for (JoinWait *wait = task.joiners.front(); wait != nullptr;) {
        JoinWait *next = task.joiners.after(wait);
        wait->claim = wait->task->word.try_claim(wait->epoch);
        if (wait->claim != TaskWord::Claim::lost) {
            wait->task->reason = WakeReason::ready;
            wait->task->wake_value = value;
            task.joiners.remove(wait);
            claimed.push_back(wait);
        }
        wait = next;
    }
}

void wake_joiners(base::List<JoinWait> &claimed) noexcept {
    while (JoinWait *wait = claimed.pop_front())
        wake(wait->task, wait->claim);
}

bool has_handle(const Task &task) noexcept { return task.generation.load(sync::relaxed) % 2 == 1; }

// On the task's own stack, its last act but the switch away.
void publish_result(Task &task, int32_t result) noexcept {
    if (!task.ever_joinable)
        return; // nobody ever had its handle
    base::List<JoinWait> claimed;
    task.join_lock.lock();
    task.result = result;
    task.ended |= end_result;
    claim_joiners(task, claimed, MC_OK);
    task.join_lock.unlock();
    wake_joiners(claimed);
}

void end_forgotten_readings(const Task &task) noexcept {
    base::log(MC_LOG_ERROR, MC_E_CONTEXT, "microthread %" PRIu64 " \"%s\" ended with an epoch pinned", task.id,
              name_of(task));
    end_all_readings(task.executor->thread());
}

__attribute__((noinline)) void fiber_entry(fiber::Context &self, fiber::Context *previous) noexcept {
    auto &task = static_cast<Task &>(self);
    Executor::arrive_new(previous);
    const TaskBody body = task.body;
    task.body.quantum_of = nullptr;
    const int32_t result = run_body(task, body);
    if (forked() || left_behind(task)) {
        std::fprintf(stderr, "libmcrt: a microthread returned in a forked child; call _exit or exec there\n");
        std::abort();
    }
    if (task.executor->thread().reading != 0)
        end_forgotten_readings(task);
    if (has_state(task)) [[unlikely]] {
        end_task_state(task);
        end_all_readings(task.executor->thread()); // of drops
    }
    if (Simulator *simulation = simulator()) [[unlikely]]
        simulation->told(SimEvent::end, &task, nullptr, nullptr, result);
    publish_result(task, result);
    if (task.group != nullptr) [[unlikely]]
        child_ended(*std::exchange(task.group, nullptr), result);
    task.executor->finish_running();
}

void free_slot(Task &task, TaskSlab::Cache *cache) noexcept {
    if (cache != nullptr)
        task_slab().release(*cache, &task);
    else
        task_slab().release(&task);
}

// Under join_lock: nobody can join the task from now on. False: its slot must not be used again.
bool disown(Task &task) noexcept {
    task.ended |= end_unowned;
    return retire_handle(&task);
}

Task *resolve(mc_task_t handle) noexcept { return resolve_handle(task_slab(), base::HandleKind::task, handle); }

// Locks the task behind the handle; null when it is stale.
Task *lock_resolved(mc_task_t handle) noexcept {
    Task *task = resolve(handle);
    if (task == nullptr)
        return nullptr;
    task->join_lock.lock();
    if (task->generation.load(sync::relaxed) == base::handle_generation(handle))
        return task;
    task->join_lock.unlock();
    return nullptr;
}

// Under join_lock, which it gives back: the handle is used up.
void consume(Task &task) noexcept {
    const bool reusable = disown(task);
    const bool left = (task.ended & end_left) != 0;
    task.join_lock.unlock();
    if (left && reusable)
        free_slot(task, nullptr);
}

struct JoinParking : Parking {
    using Parking::Parking;
    Task *joined = nullptr;
    JoinWait wait;

    static void commit_join(Parking &parking) noexcept {
        auto &self = static_cast<JoinParking &>(parking);
        self.wait.task = self.task;
        self.wait.epoch = self.epoch;
        Task *task = self.joined;
        task->joiners.push_back(&self.wait);
        task->join_lock.unlock(); // nothing of the waiter's frame is touched from here on
    }
};

// Under the task's join_lock, which it gives back. MC_OK: woken by the end, look again.
int32_t wait_for_end(ThreadContext &thread, Task &task, int64_t deadline_ns, Scope *scope,
                     bool may_be_cancelled) noexcept {
    JoinParking parking(JoinParking::commit_join, deadline_ns, scope);
    parking.waits_for = WaitsFor(WaitKind::join, &task);
    parking.joined = &task;
    parking.one_lock = true;
    parking.may_be_cancelled = may_be_cancelled;
    const WakeReason reason = park(thread, parking);
    if (reason == WakeReason::ready)
        return parking.task->wake_value;
    base::SpinGuard guard(task.join_lock);
    if (parking.wait.linked())
        task.joiners.remove(&parking.wait);
    return status_of(reason);
}

int32_t join_task(mc_task_t handle, int64_t deadline_ns, int32_t *result, Scope *scope,
                  bool may_be_cancelled) noexcept {
    for (;;) {
        ThreadContext &thread = here_now(); // another thread's after a wait, perhaps
        Task *task = lock_resolved(handle);
        if (task == nullptr)
            return MC_E_STALE;
        if ((task->ended & end_result) != 0) {
            if (result != nullptr)
                *result = task->result;
            consume(*task);
            return MC_OK;
        }
        const bool late = deadline_ns != MC_FOREVER && deadline_ns <= sync::now_ns();
        int32_t refused = late ? MC_E_TIMEDOUT : may_block(thread);
        if (task == thread.running)
            refused = MC_E_DEADLOCK;
        if (refused != MC_OK) {
            task->join_lock.unlock();
            return refused;
        }
        const int32_t status = wait_for_end(thread, *task, deadline_ns, scope, may_be_cancelled);
        if (status != MC_OK)
            return status;
    }
}

} // namespace

void make_context(Task &task) noexcept { fiber::context_make<fiber_entry>(task.context(), task.stack); }

uint64_t take_task_ids(uint64_t count) noexcept { return next_id.fetch_add(count, sync::relaxed); }

// After the switch away from the task for good: its stack is given back, nobody runs on it.
void task_left(Task &task, TaskSlab::Cache *cache) noexcept {
    bool last = true;
    if (task.ever_joinable) {
        base::SpinGuard guard(task.join_lock);
        task.ended |= end_left;
        // reusable: retire_handle said so when it was disowned
        last = (task.ended & end_unowned) != 0 && task.generation.load(sync::relaxed) != base::last_generation;
    }
    if (last)
        free_slot(task, cache);
}

int32_t spawn(ThreadContext *thread, Executor &executor, const SpawnRequest &request) noexcept {
    const bool here = thread != nullptr && thread->executor == &executor;
    const bool admitted = !here || executor.simulated(); // there the executor counts for no pool
    Pool &pool = request.pool != nullptr ? *request.pool : executor.pool();
    // Our own are counted when they begin: the caller, who lives, keeps the count above 0.
    if (request.native)
        pool.admit_although_closing();
    else if (admitted ? !pool.admit_from_outside() : pool.closing())
        return MC_E_SHUTDOWN;
    if (!runtime_is(pool, request.runtime)) { // it was destroyed before we were admitted
        if (admitted)
            pool.withdraw_from_outside();
        return MC_E_STALE;
    }
    Task *task = here ? task_slab().acquire(executor.task_cache()) : task_slab().acquire();
    if (task == nullptr) {
        if (admitted)
            pool.withdraw_from_outside();
        return MC_E_NOMEM;
    }
    int32_t status = MC_OK;
    uint64_t stack_size = request.stack_size != 0 ? request.stack_size : pool.options().stack_size;
    if (simulator() != nullptr) [[unlikely]]
        stack_size = std::max(stack_size, simulated_stack_bytes);
    if (!set_name(*task, request.name) || (request.group != nullptr && !begin_inside(*task, *request.group->scope)))
        status = MC_E_NOMEM;
    else
        status = here ? executor.stack_cache().reserve(stack_size, &task->stack)
                      : fiber::stack_reserve(stack_size, &task->stack);
    if (status != MC_OK) {
        leave_all_scopes(*task);
        free_slot(*task, here ? &executor.task_cache() : nullptr);
        if (admitted)
            pool.withdraw_from_outside();
        return status;
    }
    task->group = request.group;
    if (task->stack.cold) {
        task->sp = nullptr; // see Executor::begin
        task->control = fiber::FloatingControl::now();
    } else {
        fiber::stack_set_owner(task->stack, task);
        make_context(*task);
        task->emits_to = nullptr; // one that was left behind in a handler
    }
    task->kind = Kind::fiber;
    task->set_executor(&executor);
    task->home = &pool;
    task->for_simulator = 0;
    task->returns = request.returning != nullptr;
    if (task->returns)
        task->body.returning = request.returning;
    else
        task->body.plain = request.plain;
    task->body.argument = request.argument;
    task->id = here ? executor.take_id() : take_task_ids(1);
    task->in_schedule = false;
    task->pinned = request.pinned;
    task->native = request.native;
    task->priority = request.priority;
    task->reductions = executor.quantum_of(*task);
    task->ever_joinable = request.handle != nullptr;
    task->ended = task->ever_joinable ? end_none : end_unowned;
    if (request.handle != nullptr)
        *request.handle = issue_handle(task, base::HandleKind::task);
    if (!admitted)
        executor.count_begun();
    if (Simulator *simulation = simulator()) [[unlikely]]
        simulation->told_spawn(thread->running, *task);
    if (!here || !request.run_at_once || thread->no_switch != 0) {
        task->word.make_runnable();
        executor.enqueue(task);
    } else {
        executor.run_new(task);
    }
    if (thread != nullptr)
        let_others(*thread);
    return MC_OK;
}

int32_t spawn_step(Executor &executor, void (*run)(void *), void *argument, bool pinned) noexcept {
    const bool here = current() == &executor.thread();
    Task *task = here ? task_slab().acquire(executor.task_cache()) : task_slab().acquire();
    if (task == nullptr)
        return MC_E_NOMEM;
    task->kind = Kind::step;
    task->home = nullptr;
    task->pinned = pinned;
    task->set_executor(&executor);
    task->body.plain = run;
    task->body.argument = argument;
    task->emits_to = nullptr;
    task->id = here ? executor.take_id() : take_task_ids(1);
    clear_name(*task);
    task->word.make_runnable();
    executor.enqueue(task);
    return MC_OK;
}

Task *make_step(void (*run)(void *), void *argument, const char *name) noexcept {
    Task *task = task_slab().acquire();
    if (task == nullptr)
        return nullptr;
    if (!set_name(*task, name)) {
        task_slab().release(task);
        return nullptr;
    }
    task->kind = Kind::step;
    task->kept = true;
    task->emits_to = nullptr;
    task->home = nullptr;
    task->pinned = false;
    task->body.plain = run;
    task->body.argument = argument;
    task->id = take_task_ids(1);
    return task;
}

// Here, if this is one of the pool's executors.
void queue_step(Pool &pool, Task *step) noexcept {
    ThreadContext *thread = current();
    Executor *here = thread == nullptr ? nullptr : thread->executor;
    Executor &executor = here != nullptr && (&here->pool() == &pool || here->simulated()) ? *here : pool.first();
    step->set_executor(&executor);
    step->word.make_runnable();
    executor.enqueue(step);
}

void drop_step(Task *step) noexcept {
    if (step == nullptr)
        return;
    step->kept = false;
    step->word.retire();
    task_slab().release(step);
}

int32_t join(mc_task_t handle, int64_t deadline_ns, int32_t *result, Scope *scope) noexcept {
    return join_task(handle, deadline_ns, result, scope, true);
}

namespace {

// The caller's, or its own when the caller has been told of a deadlock and has gone on.
struct NativeCall {
    NativeCall(int32_t (*of)(void *), void *with) noexcept : fn(of), user(with) {}

    int32_t (*fn)(void *);
    void *user;
    int32_t value = 0;
    bool returned = false; // else it threw
    bool abandoned = false;

    static int32_t run(void *argument) {
        struct End {
            NativeCall *call;
            ~End() {
                if (call->abandoned)
                    base::destroy(call);
            }
        } end{static_cast<NativeCall *>(argument)};
        end.call->value = end.call->fn(end.call->user);
        end.call->returned = true;
        return MC_OK;
    }
};

// It has ended.
int32_t take_result(NativeCall *call, int32_t *result) noexcept {
    const bool returned = call->returned;
    if (returned && result != nullptr)
        *result = call->value;
    base::destroy(call);
    return returned ? MC_OK : MC_E_CRASHED;
}

} // namespace

// By a microthread with a stack for native code. Like a call on a thread, it can not be left once it has begun, and a runtime that
// ends waits for it.
int32_t call_in_simulation(ThreadContext &thread, int32_t (*fn)(void *), void *user, int32_t *result) noexcept {
    const int32_t refused = refuse_to_begin(thread, MC_FOREVER, nullptr);
    if (refused != MC_OK)
        return refused;
    auto *call = base::create<NativeCall>(fn, user);
    if (call == nullptr)
        return MC_E_NOMEM;
    mc_task_t handle = 0;
    SpawnRequest request;
    request.returning = NativeCall::run;
    request.argument = call;
    request.native = true;
    request.stack_size = uint64_t{1} << 20;
    request.name = "blocking call";
    request.pool = &pool_of(thread);
    request.handle = &handle;
    int32_t status = spawn(&thread, *thread.executor, request);
    if (status != MC_OK) {
        base::destroy(call);
        return status;
    }
    do
        status = join_task(handle, MC_FOREVER, nullptr, nullptr, false);
    while (status == MC_E_SHUTDOWN);
    if (status == MC_OK)
        return take_result(call, result);
    call->abandoned = true;
    (void)detach(handle);
    return status;
}

int32_t detach(mc_task_t handle) noexcept {
    Task *task = lock_resolved(handle);
    if (task == nullptr)
        return MC_E_STALE;
    base::List<JoinWait> claimed;
    claim_joiners(*task, claimed, MC_E_STALE);
    consume(*task);
    wake_joiners(claimed);
    return MC_OK;
}

mc_task_t handle_of(const Task &task) noexcept {
    if (!has_handle(task))
        return 0;
    return base::make_handle(task.generation.load(sync::relaxed), base::HandleKind::task, task.slab_index);
}

TaskNameSlab &task_name_slab() noexcept {
    static constinit TaskNameSlab slab;
    return slab;
}

bool set_name(Task &task, const char *name) noexcept {
    if (name == nullptr || *name == '\0') {
        clear_name(task);
        return true;
    }
    const uint32_t slot = task.name_slot.load(sync::relaxed); // ours, or written before the task was ours
    TaskName *place = slot != 0 ? task_name_slab().at(slot - 1) : task_name_slab().acquire();
    if (place == nullptr)
        return false;
    const size_t length = strnlen(name, sizeof place->text - 1);
    std::memcpy(place->text, name, length);
    place->text[length] = '\0';
    if (slot == 0)
        task.name_slot.store(place->slab_index + 1, sync::release); // release: pairs with name_of
    return true;
}

void clear_name(Task &task) noexcept {
    if (const uint32_t slot = task.name_slot.load(sync::relaxed))
        if (char &first = task_name_slab().at(slot - 1)->text[0]; first != '\0') // those of others lie beside it
            first = '\0';
}

} // namespace mc::sched
