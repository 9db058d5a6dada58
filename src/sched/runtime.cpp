#include "sched/runtime.hpp"

#include "base/alloc.hpp"
#include "base/log.hpp"

#include <cstring>
#include <new>
#include <pthread.h>

namespace mc::sched {
namespace {

// A thread that owns no executor. Its task is on the registry's list through next and prev, since it is in no queue.
struct ForeignThread : ThreadContext {};

struct Registry {
    sync::mutex mutex;
    // guarded by mutex
    Executor *executor = nullptr;
    sync::atomic<uint32_t> owned{0}; // 1 or 0; read without it by take_over
    bool ended = false;              // the owner's thread ended on a microthread's stack: the process is exiting
    Task *foreign = nullptr;         // list
    uint32_t foreign_count = 0;
    bool hooked = false;
};

Registry registry;
sync::atomic<Executor *> published{nullptr}; // registry.executor, for those who only wake or spawn
sync::atomic<uint32_t> in_forked_child{0};

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

void forget_foreign(ThreadContext *thread) noexcept {
    unlink_foreign(thread->running);
    thread->running->word.retire();
    task_slab().release(thread->running);
    base::destroy(static_cast<ForeignThread *>(thread));
}

// At a thread's end. It can not be waiting: it runs.
void thread_ends(void *slot) noexcept {
    auto *thread = static_cast<ThreadContext *>(slot);
    sync::lock_guard guard(registry.mutex);
    if (thread->executor != nullptr) {
        registry.owned.store(0, sync::relaxed);
        if (thread->running == thread->executor->owner())
            thread->executor->release_thread();
        else
            registry.ended = true; // exit() was called on a microthread's stack
        return;
    }
    forget_foreign(thread);
}

#ifndef MC_SYS
void child_after_fork() noexcept {
    // The child has one thread and may find any of our locks taken; it uses nothing of ours.
    in_forked_child.store(1, sync::relaxed);
    base::log_after_fork();
    sync::set_thread_slot(nullptr);
}
#endif

// For the overflow report, in a signal handler: plain reads of type-stable memory.
bool describe_task(void *owner, uint64_t *id, char *name) noexcept {
    const auto *task = static_cast<const Task *>(owner);
    *id = task->id;
    std::memcpy(name, task->name, sizeof task->name);
    return true;
}

void hook_process() noexcept {
    if (registry.hooked)
        return;
    registry.hooked = true;
    fiber::overflow_set_describe(describe_task);
    sync::set_thread_exit_hook(thread_ends);
#ifndef MC_SYS
    pthread_atfork(base::log_before_fork, base::log_after_fork, child_after_fork);
#endif
}

ThreadContext *attach_owner(int32_t *status) noexcept {
    if (registry.executor == nullptr) {
        registry.executor = Executor::create();
        published.store(registry.executor, sync::release); // release: pairs with default_executor's acquire
    }
    if (registry.executor == nullptr || !registry.executor->adopt_thread()) {
        *status = MC_E_NOMEM;
        return nullptr;
    }
    registry.owned.store(1, sync::relaxed); // relaxed: read under the mutex, or as a hint
    return &registry.executor->thread();
}

ThreadContext *attach_foreign(int32_t *status) noexcept {
    auto *thread = base::create<ForeignThread>();
    Task *task = thread == nullptr ? nullptr : task_slab().acquire();
    if (task == nullptr) {
        base::destroy(thread);
        *status = MC_E_NOMEM;
        return nullptr;
    }
    task->kind = Kind::foreign;
    task->executor = nullptr;
    task->id = 0;
    task->name[0] = '\0';
    task->word.make_runnable();
    task->word.start();
    thread->running = task;
    thread->prng = base::Prng(static_cast<uint64_t>(sync::now_ns()) ^ reinterpret_cast<uintptr_t>(thread));
    link_foreign(task);
    return thread;
}

// Under the registry's mutex. A sum over the words of all foreign threads, or 0 when one of them may still run. Words
// never repeat, so two equal sums with nothing running in between mean one state; see world_is_closed.
bool all_blocked(uint64_t *signature) noexcept {
    *signature = 1;
    for (const Task *task = registry.foreign; task != nullptr; task = task->next) {
        const uint64_t word = task->word.look();
        if (!TaskWord::is_parked_unclaimed(word) || task->timed.load(sync::relaxed) != 0)
            return false;
        *signature = *signature * 0x9e3779b97f4a7c15u + word;
    }
    return true;
}

} // namespace

bool forked() noexcept { return in_forked_child.load(sync::relaxed) != 0; }

Executor *default_executor() noexcept { return published.load(sync::acquire); }

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
    ThreadContext *thread = registry.owned.load(sync::relaxed) != 0 ? attach_foreign(status) : attach_owner(status);
    if (thread != nullptr)
        sync::set_thread_slot(thread);
    return thread;
}

ThreadContext *take_over(ThreadContext *thread, int32_t *status) noexcept {
    // relaxed: a hint, looked at again under the mutex. Whoever knows that the owner has ended (by having joined it, say)
    // reads 0; whoever can not know it may come as if before.
    if (registry.owned.load(sync::relaxed) != 0)
        return thread;
    sync::lock_guard guard(registry.mutex);
    if (registry.owned.load(sync::relaxed) != 0)
        return thread;
    if (registry.ended) {
        *status = MC_E_SHUTDOWN;
        return nullptr;
    }
    ThreadContext *owner = attach_owner(status);
    if (owner == nullptr)
        return nullptr;
    sync::set_thread_slot(owner);
    forget_foreign(thread);
    return owner;
}

int32_t sleep_until(ThreadContext &thread, int64_t deadline_ns, Scope *scope) noexcept {
    const int32_t refused = may_block(thread);
    if (refused != MC_OK)
        return refused;
    Parking parking(nullptr, deadline_ns, scope);
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

// Threads can not be stopped for a look, so we look twice. A task's word changes with every wait and never comes back:
// when a thread is parked in the same wait at both looks, it was parked all the time between them; when all are,
// nobody that we know ran between the looks. The count, taken in between, says that nobody else was there by then. So
// nothing comes any more, and what anybody did before shows in the inbox and the timers, which are looked at after both:
// before the count, a thread could hand something in and end unseen.
bool world_is_closed(Executor &executor) noexcept {
    sync::lock_guard guard(registry.mutex);
    uint64_t first = 0;
    uint64_t second = 0;
    if (!all_blocked(&first))
        return false;
    if (sync::thread_count() != registry.foreign_count + 1 || !executor.nothing_arrived())
        return false;
    return all_blocked(&second) && first == second;
}

} // namespace mc::sched
