// A pool: the executors of one runtime, and what they share. In single-processor mode only the first one is used, by the
// thread that owns it; start() gives each a thread of its own, stop() takes them away again.
//
// Executors are never freed, and the first `live` of the array are running: whoever looks for a victim, or for a less
// loaded one, picks an index below that. A stopped executor's heap, inbox and queues are emptied into the first one's,
// and what is sent to it later, or armed there, the first one finds too (drain_strays): who sends looks after that whether
// the executor still counts as live, and wakes the first one if it does not.
//
// Start, stop and adding: under the registry's lifecycle mutex (runtime.cpp). Everything else: any thread.
//
// Stop, in this order:
//   1. stopping is announced, and every executor woken: each stops at its next switch, with what it runs parked or
//      queued. A microthread that never gives up its executor holds this up.
//   2. the threads are joined.
//   3. many and live are withdrawn; who waits for quiet is woken, since nobody would tell him.
//   4. tasks, timers and what was handed in move to the first executor, which nobody owns until the next thread takes it
//      over.
// Races: a foreign waker that saw many before 3 has pushed before 4 takes all, or its look after the push sees what 3 has
// withdrawn (Dekker), and it wakes the first executor, which looks at strays. A timer needs no Dekker: 4 takes the heap's
// lock, and who armed after that reads live after it.
#pragma once

#include "base/topology.hpp"
#include "sched/blocking.hpp"
#include "sched/executor.hpp"
#include "sched/shared_queue.hpp"
#include "sched/thread_bed.hpp"
#include "sched/wait_list.hpp"

#include <mc/runtime.h>

#include <cstdint>

namespace mc::sched {

// How the executors of a pool share their time: a quantum ends after so many runtime calls, or that time. And where they run,
// whom they tell, and with what microthreads begin.
struct PoolOptions {
    uint32_t wheel_segments = 1; // 1 to Wheel::max_segments; see wheel.hpp for what that changes
    uint32_t quantum_reductions = 4000;
    int64_t quantum_ns = 1'000'000;
    uint64_t stack_size = MC_STACK_DEFAULT; // of who asks for none
    uint32_t blocking_threads = 64;         // of blocking calls, at most
    uint64_t seed = 0;                      // of drivers and placement; 0: from the clock
    base::PlacementPolicy placement = base::PlacementPolicy::none;
    base::CoreKind cores = base::CoreKind::any;
    void (*thread_started)(void *user, uint32_t executor) = nullptr;
    void (*thread_stops)(void *user, uint32_t executor) = nullptr;
    void *user = nullptr;
};

class Pool {
public:
#if defined(MC_SYS) && MC_SYS
    static constexpr uint32_t max_executors = 4;
#else
    static constexpr uint32_t max_executors = 1024;
#endif

    // With its first executor; null without memory. drivers stays as long as the pool.
    static Pool *create(const DriverSource &drivers = futex_drivers, const PoolOptions &options = {}) noexcept;

    // While it does not run and nothing is in it. MC_E_NOMEM: the options are as before.
    int32_t configure(const PoolOptions &options) noexcept;

    Driver *make_driver(uint32_t index) noexcept {
        const uint64_t seed = options_.seed != 0 ? options_.seed : static_cast<uint64_t>(sync::now_ns());
        return drivers_.make(drivers_.user, index, seed + index);
    }
    void destroy_driver(Driver *driver) noexcept { drivers_.destroy(drivers_.user, driver); }

    const PoolOptions &options() const noexcept { return options_; }

    Executor &first() noexcept { return *executors_[0].load(sync::relaxed); }
    bool many() const noexcept { return many_.load(sync::relaxed) != 0; }
    bool stopping() const noexcept { return stopping_.load(sync::relaxed) != 0; }

    // The live-executor array: [0, live()).
    uint32_t live() const noexcept { return live_.load(sync::acquire); } // acquire: pairs with count_live
    // An executor's thread, before it runs anything.
    void count_live(uint32_t index) noexcept;
    Executor &at(uint32_t index) noexcept { return *executors_[index].load(sync::relaxed); }

    // n executors, 1 to max_executors, each with a thread. Nobody owns the first one. MC_OK or MC_E_NOMEM (none runs).
    int32_t start(uint32_t n) noexcept;
    // One more, while they run. MC_OK, MC_E_LIMIT or MC_E_NOMEM.
    int32_t add_executor() noexcept;
    void stop() noexcept;

    // Where a foreign thread's tasks and timers go.
    Executor &any(uint64_t random) noexcept { return at(static_cast<uint32_t>(random % live())); }
    // A less loaded one among two picked at random, or null.
    Executor *lighter_than(Executor &from) noexcept;

    // A runnable task from a thread that is no executor of this pool. home: where it ran, or is to run.
    void wake_from_outside(Executor &home, Task *task) noexcept;
    // A timer was armed on this executor, by a thread that is not its own: it may have stopped meanwhile.
    void armed_from_outside(const Executor &executor) noexcept { tell_first_if_stopped(executor); }
    // The same for many that need not be pinned, on an executor.
    void inject_list(Task *first, Task *last, uint32_t count) noexcept;
    SharedQueue &injection() noexcept { return injection_; }
    ThreadBed &bed() noexcept { return bed_; }
    Reclaimer &reclaimer() noexcept { return reclaimer_; }
    // Where an executor's thread runs: -1, anywhere.
    int cpu_of(uint32_t executor) const noexcept { return placement_.cpu_of(executor); }

    // The handle of the runtime that it belongs to. Any thread.
    uint64_t handle() const noexcept { return handle_.load(sync::relaxed); }
    void set_handle(uint64_t handle) noexcept { handle_.store(handle, sync::relaxed); }

    // --- in simulation
    // Its microthreads run: as the default runtime's always do.
    bool runs_simulated() const noexcept { return runs_simulated_; }
    void start_simulated() noexcept;
    void stop_simulated() noexcept;
    void count_end_in_simulation() noexcept {
        simulated_ended_.store(simulated_ended_.load(sync::relaxed) + 1, sync::release); // see Executor::reap
    }
    // Something of it is runnable, or will be by itself; a blocking call is under way; something waits to be freed.
    bool moves_in_simulation() noexcept;

    // --- ending
    // From now on nobody begins a microthread. Its executors' threads see it before they begin another turn.
    void close() noexcept { (void)sync::dekker_publish(closing_, uint32_t{1}); }
    void reopen() noexcept { closing_.store(0, sync::release); } // release: pairs with admit_from_outside
    bool closing() const noexcept { return closing_.load(sync::relaxed) != 0; }
    // A thread from elsewhere is about to begin a microthread: counts it. False: it must not, and is not counted.
    // Dekker: it counts, then looks; who closes says so, then counts.
    [[nodiscard]] bool admit_from_outside() noexcept {
        (void)foreign_spawned_.fetch_add(1, sync::seq_cst);
        if (closing_.load(sync::seq_cst) == 0) [[likely]]
            return true;
        withdraw_from_outside();
        return false;
    }
    // By one that lives in it: it can not end meanwhile.
    void admit_although_closing() noexcept { (void)foreign_spawned_.fetch_add(1, sync::seq_cst); }
    void withdraw_from_outside() noexcept; // it was counted, and has not begun
    // What has steps on its executors, and is to be taken from it before it ends. False: it is ending. Dekker, as above.
    [[nodiscard]] bool attach_guest() noexcept {
        (void)guests_.fetch_add(1, sync::seq_cst);
        if (closing_.load(sync::seq_cst) == 0) [[likely]]
            return true;
        detach_guest();
        return false;
    }
    void detach_guest() noexcept { (void)guests_.fetch_sub(1, sync::seq_cst); }
    // It is given up: it may have steps yet, which have to run.
    void guest_leaves() noexcept {
        (void)leaving_.fetch_add(1, sync::seq_cst);
        detach_guest();
    }
    void guest_left() noexcept { (void)leaving_.fetch_sub(1, sync::release); }
    uint32_t guests() const noexcept { return guests_.load(sync::seq_cst); }
    // acquire: pairs with guest_left; what it had is free.
    uint32_t guests_leaving() const noexcept { return leaving_.load(sync::acquire); }
    bool guests_leave() const noexcept { return guests_leaving() != 0; }
    // Blocking calls are under way.
    bool calls_blocking() noexcept {
        const BlockingPool *blocking = blocking_if_used();
        return blocking != nullptr && blocking->calls() != 0;
    }
    // Where native calls that block are made; null without memory. close_blocking: once no microthread is left; false: a thread
    // has not ended by the deadline.
    BlockingPool *blocking() noexcept;
    BlockingPool *blocking_if_used() noexcept { return blocking_.load(sync::acquire); }
    bool close_blocking(int64_t deadline_ns) noexcept;
    void open_blocking() noexcept; // after it has been closed, if it has
    // Wakes every task of this pool that waits, with WakeReason::shutdown. By steps on its executors; what parks later is
    // not touched.
    void end_all_waits() noexcept;
    // After work was published: wakes a sleeper if nobody searches.
    void notify() noexcept {
        if (Executor *sleeper = bed_.work_is_available()) [[unlikely]]
            wake_up(*sleeper);
    }
    static void wake_up(Executor &sleeper) noexcept { sleeper.driver().wake(); }

    // Has anybody published work? For an executor that has announced its sleep.
    bool work_to_be_seen() noexcept;
    bool timers_armed() noexcept;

    // Microthreads that have begun and not ended. Exact when it is 0.
    uint64_t microthreads() noexcept;
    uint64_t begun() noexcept;
    uint64_t ended() noexcept;

    // What a task that is none of this pool's can wait for: that no microthread is left, or that nothing moves any more.
    enum class Quiet : uint64_t { no_microthread, nothing_moves };
    // MC_OK; or why not: a status of the wait, MC_E_CONTEXT when the executors have stopped meanwhile.
    int32_t wait_quiet(ThreadContext &thread, Quiet quiet, int64_t deadline_ns) noexcept;
    // Exact at one moment during the call: every executor sleeps, and there is nothing that would wake one but what comes
    // from outside: nothing queued, no timer armed. then(): called at that moment, with all executors held asleep.
    template <class Then> bool nothing_moves(Then then) noexcept {
        return bed_.while_all_sleep([&] {
            if (!nothing_queued())
                return false;
            then();
            return true;
        });
    }
    bool nothing_moves() noexcept {
        return nothing_moves([] {});
    }
    // An executor that lies down: tells those who wait for quiet.
    void tell_quiet() noexcept;
    // With nothing moving here: somebody is about to go on because of that, who is no thread that waits until nothing moves.
    bool tells_somebody() noexcept {
        return quiet_tasks_.load(sync::relaxed) != 0 ||
               (quiet_waiters_[static_cast<uint64_t>(Quiet::no_microthread)].load(sync::seq_cst) != 0 &&
                microthreads() == 0);
    }
    uint64_t seed_of(uint32_t executor, uint64_t otherwise) const noexcept {
        return options_.seed != 0 ? options_.seed * 0x9e3779b97f4a7c15u + executor : otherwise;
    }
    // Counted since the runtime was made; before that the pool was another's.
    uint64_t begun_before() const noexcept { return begun_before_; }
    uint64_t turns_before() const noexcept { return turns_before_; }
    uint64_t turns() noexcept;

    // What came to executors that have stopped, and in single-processor mode what was injected, goes to the first one.
    // Its thread.
    void drain_strays() noexcept;
    bool no_strays() const noexcept;

    // A clock that the sentry sets when it looks after others: free to read, late by up to its period while somebody runs
    // and somebody sleeps, else by any time. Steady nanoseconds.
    int64_t coarse_now() const noexcept { return coarse_now_.load(sync::relaxed); }
    void set_coarse_now(int64_t now) noexcept { coarse_now_.store(now, sync::relaxed); }

    Pool(const DriverSource &drivers, const PoolOptions &options, Reclaimer &reclaimer) noexcept
        : drivers_(drivers), reclaimer_(reclaimer), options_(options) {}

private:
    bool make_executors(uint32_t n) noexcept;
    bool start_thread(Executor &executor) noexcept;
    void tell_first_if_stopped(const Executor &executor) noexcept {
        if (executor.index() >= live_.load(sync::seq_cst)) // seq_cst: Dekker, with stop
            wake_up(first());
    }

    uint64_t progress() noexcept;
    bool nothing_queued() noexcept;
    bool is_quiet(Quiet quiet) noexcept {
        return quiet == Quiet::no_microthread ? microthreads() == 0 : nothing_moves();
    }
    void wake_quiet_waiters() noexcept;
    int32_t wait_until_quiet(ThreadContext &thread, Quiet quiet, int64_t deadline_ns) noexcept;
    int32_t wait_and_watch(ThreadContext &thread, int64_t deadline_ns) noexcept;
    void plan_placement() noexcept;

    // immutable
    const DriverSource &drivers_;
    Reclaimer &reclaimer_;
    // immutable while it runs or anything is in it
    uint64_t begun_before_ = 0;
    uint64_t turns_before_ = 0;
    PoolOptions options_;
    base::Placement placement_;
    // written under the lifecycle mutex, read by any thread
    sync::atomic<Executor *> executors_[max_executors] = {};
    sync::atomic<uint32_t> made_{0}; // executors that exist
    sync::atomic<uint32_t> live_{0}; // that run, or 1 in single-processor mode
    sync::atomic<uint32_t> many_{0};
    sync::atomic<uint32_t> stopping_{0};
    // any thread
    SharedQueue injection_;
    ThreadBed bed_{live_};
    sync::atomic<uint64_t> handle_{0};
    sync::atomic<uint32_t> closing_{0};
    sync::atomic<BlockingPool *> blocking_{nullptr};
    sync::atomic<uint32_t> guests_{0};
    sync::atomic<uint32_t> leaving_{0};
    sync::atomic<uint64_t> foreign_spawned_{0};
    sync::atomic<uint32_t> quiet_waiters_[2] = {}; // for each Quiet: who waits, or is about to
    sync::atomic<uint32_t> quiet_tasks_{0};        // microthreads of other pools that wait until nothing moves here
    base::Spinlock quiet_lock_;
    WaitList quiet_list_; // guarded by quiet_lock_; asks: a Quiet
    sync::atomic<int64_t> coarse_now_{0};
    sync::atomic<uint64_t> simulated_ended_{0};
    bool runs_simulated_ = false; // the simulated thread
};

} // namespace mc::sched
