// For this room's tests: the calling thread in the runtime, microthreads and threads from lambdas, and the simplest
// thing that can be waited for.
#pragma once

#include "sched/spawn.hpp"
#include "sched/switch.hpp"
#include "testing/one_thread.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

#include <mc/runtime.h>
#include <memory>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace mc::sched::testing {

// The calling thread's context; the first thread that asks owns the runtime.
inline ThreadContext &here() {
    int32_t status = MC_OK;
    ThreadContext *thread = attach(&status);
    cr_assert_not_null(thread, "attach: %d", status);
    return *thread;
}

inline Executor &executor() { return *default_executor(); }
inline int64_t in_ns(int64_t ns) { return sync::now_ns() + ns; }
// Valgrind takes milliseconds for what a test expects to be done within one or two.
inline int64_t in_ms(int64_t ms) { return in_ns(ms * (mc::testing::under_valgrind ? 20 : 1) * MC_MS); }

inline void yield() {
    ThreadContext &thread = here();
    if (thread.executor != nullptr)
        thread.executor->yield();
    else
        sync::thread_yield();
}

inline void sleep_ms(int64_t ms) { cr_assert_eq(sleep_until(here(), in_ms(ms), nullptr), MC_E_TIMEDOUT); }

// --- microthreads ---

template <class Body> int32_t run_body(void *argument) {
    const std::unique_ptr<Body> body(static_cast<Body *>(argument)); // also when it throws
    int32_t result = MC_OK;
    if constexpr (std::is_void_v<decltype((*body)())>)
        (*body)();
    else
        result = (*body)();
    return result;
}

// A detached microthread from a lambda, out of turn or at the tail.
template <class Body> void run_now(Body body) {
    SpawnRequest request;
    request.returning = run_body<Body>;
    request.argument = new Body(std::move(body));
    request.stack_size = MC_STACK_DEFAULT;
    request.run_at_once = true;
    ThreadContext &thread = here();
    cr_assert_eq(spawn(&thread, executor(), request), MC_OK);
}

// A microthread with a handle, at the tail; the lambda's value, if any, is the result.
template <class Body> mc_task_t start(Body body, const char *name = nullptr) {
    mc_task_t handle = 0;
    SpawnRequest request;
    request.returning = run_body<Body>;
    request.argument = new Body(std::move(body));
    request.stack_size = MC_STACK_DEFAULT;
    request.name = name;
    request.handle = &handle;
    ThreadContext &thread = here();
    cr_assert_eq(spawn(&thread, executor(), request), MC_OK);
    cr_assert_neq(handle, 0u);
    return handle;
}

inline int32_t join_until(mc_task_t task, int64_t deadline_ns, int32_t *result = nullptr, Scope *scope = nullptr) {
    (void)here(); // attached
    return join(task, deadline_ns, result, scope);
}

inline int32_t result_of(mc_task_t task) {
    int32_t result = 0;
    cr_assert_eq(join_until(task, MC_FOREVER, &result), MC_OK);
    return result;
}

// --- threads ---

// Another OS thread. end() waits for it so that our microthreads can run meanwhile.
class Other {
public:
    template <class Body>
    explicit Other(Body body)
        : thread_([this, body]() mutable {
              body();
              ended_.store(1, sync::release); // release: pairs with the acquire in ended()
          }) {}

    bool ended() const { return ended_.load(sync::acquire) != 0; }
    void end() {
        while (!ended())
            yield();
        thread_.join();
    }

private:
    sync::atomic<uint32_t> ended_{0};
    mc::testing::Thread thread_;
};

using mc::testing::in_process_with_one_thread;

// A thread that waits without a runtime: its context and task are the test's own, so that nothing survives it. For the
// systematic tests of what needs no executor.
struct Loner {
    Task task;
    ThreadContext thread;
    Loner() {
        task.kind = Kind::foreign;
        task.word.make_runnable();
        task.word.start();
        thread.running = &task;
    }
};

// While it lives the calling thread is this one, also for code that asks who calls.
class As {
public:
    explicit As(Loner &who) : before_(sync::thread_slot()) { sync::set_thread_slot(&who.thread); }
    ~As() { sync::set_thread_slot(before_); }
    As(const As &) = delete;
    As &operator=(const As &) = delete;

private:
    void *before_;
};

// Threads that the runtime knows before the owner goes on.
struct Known {
    sync::atomic<uint32_t> count{0};
    void arrive() {
        here();
        count.fetch_add(1, sync::release); // release: pairs with the acquire in wait_for
    }
    void wait_for(uint32_t wanted) {
        while (count.load(sync::acquire) != wanted)
            sync::thread_yield();
    }
};

// --- something to wait for ---

// A counting semaphore, made of park and wake as everything that blocks is. Any thread. A release is given to the first
// waiter that can still be claimed, or kept.
class Gate {
public:
    // one_lock: its waits without deadline and scope park quietly (see park.hpp), or like all others.
    explicit Gate(bool one_lock = true) : one_lock_(one_lock) {}

    // MC_OK, or why the wait ended; value is the releaser's.
    int32_t acquire(int64_t deadline_ns = MC_FOREVER, Scope *scope = nullptr, int32_t *value = nullptr) {
        return acquire_on(here(), deadline_ns, scope, value);
    }
    int32_t acquire_on(ThreadContext &thread, int64_t deadline_ns, Scope *scope, int32_t *value = nullptr) {
        lock_.lock();
        if (kept_ > 0) {
            --kept_;
            lock_.unlock();
            return MC_OK;
        }
        Waiting waiting(commit, deadline_ns, scope);
        waiting.gate = this;
        waiting.one_lock = one_lock_;
        const WakeReason reason = park(thread, waiting);
        if (reason == WakeReason::ready) {
            if (value != nullptr)
                *value = waiting.task->wake_value;
            return MC_OK;
        }
        base::SpinGuard guard(lock_);
        if (waiting.node.linked())
            base::List<Node>::remove(&waiting.node);
        return status_of(reason);
    }

    void release(int32_t value = 0) {
        lock_.lock();
        Node *node = claim_first();
        if (node == nullptr)
            ++kept_;
        lock_.unlock();
        if (node == nullptr)
            return;
        node->task->reason = WakeReason::ready;
        node->task->wake_value = value;
        wake(node->task, node->claim);
    }

    // As release, but the waiter, if there is one, runs at once where that is possible.
    bool hand_over(int32_t value = 0) {
        lock_.lock();
        Node *node = claim_first();
        lock_.unlock();
        if (node == nullptr)
            return false;
        node->task->reason = WakeReason::ready;
        node->task->wake_value = value;
        wake_handing_over(here(), node->task, node->claim);
        return true;
    }

    bool has_waiters() {
        base::SpinGuard guard(lock_);
        return !waiters_.empty();
    }
    int kept() {
        base::SpinGuard guard(lock_);
        return kept_;
    }

private:
    struct Node : base::ListNode<Node> {
        Task *task = nullptr;
        uint64_t epoch = 0;
        TaskWord::Claim claim = TaskWord::Claim::lost;
    };
    struct Waiting : Parking {
        using Parking::Parking;
        Gate *gate = nullptr;
        Node node;
    };

    static void commit(Parking &parking) noexcept {
        auto &self = static_cast<Waiting &>(parking);
        self.node.task = self.task;
        self.node.epoch = self.epoch;
        Gate &gate = *self.gate;
        gate.waiters_.push_back(&self.node);
        gate.lock_.unlock(); // nothing of the waiter's frame is touched from here on
    }

    // Under the lock. Who can not be claimed has timed out, or was cancelled, and unlinks itself.
    Node *claim_first() {
        for (Node *node = waiters_.front(); node != nullptr; node = waiters_.after(node)) {
            node->claim = node->task->word.try_claim(node->epoch);
            if (node->claim == TaskWord::Claim::lost)
                continue;
            waiters_.remove(node);
            return node;
        }
        return nullptr;
    }

    const bool one_lock_;
    base::Spinlock lock_;
    // guarded by lock_
    base::List<Node> waiters_;
    int kept_ = 0;
};

} // namespace mc::sched::testing
