// For tests of pools: starting and stopping executors, exploring with them, microthreads among many.
#pragma once

#include "sched/pool.hpp"
#include "sched/test_sched.hpp"

namespace mc::sched::testing {

inline void explore_pool(const char *name, uint64_t seeds, const std::function<void()> &body) {
    mc::testing::expect_pass({.name = name,
                              .search = mc::testing::Search::seeds,
                              .stale = 0, // loops that poll would go on with old values
                              .timeouts = 0,
                              .max_steps = 60'000,
                              .seeds = seeds * mc::testing::scale(),
                              .isolate = true,
                              .real_runs = 100},
                             body);
}

// Every run with so few preemptions, for races that need somebody to stand still while others go a long way; no seed does that.
struct Stands {
    int preemptions = 1;
    int stale = 0;
    uint64_t max_runs = 12'000;
    unsigned real_runs = 50;
};
inline void explore_where_one_stands(const char *name, const Stands &how, const std::function<void()> &body) {
    mc::testing::expect_pass({.name = name,
                              .preemptions = how.preemptions,
                              .stale = how.stale,
                              .timeouts = 0,
                              .spurious = 0,
                              .max_runs = how.max_runs,
                              .max_steps = 60'000,
                              .isolate = true,
                              .real_runs = how.real_runs},
                             body);
}
inline void explore_pool_with_one_preemption(const char *name, const std::function<void()> &body) {
    explore_where_one_stands(name, {}, body);
}

inline void start_many(uint32_t n) { mc::testing::check(start_executors(here(), n) == MC_OK, "not started"); }
inline void stop_many() { mc::testing::check(stop_executors(here()) == MC_OK, "not stopped"); }

inline bool wait_quiet(int64_t deadline_ns = MC_FOREVER) {
    return default_pool()->wait_quiet(here(), Pool::Quiet::no_microthread, deadline_ns) == MC_OK;
}

// A microthread among many: goes where new ones go, or to that executor.
template <class Body> mc_task_t spawn_one(Body body, bool pinned = false, Executor *where = nullptr) {
    mc_task_t handle = 0;
    SpawnRequest request;
    request.returning = run_body<Body>;
    request.argument = new Body(std::move(body));
    request.stack_size = MC_STACK_DEFAULT;
    request.handle = &handle;
    request.pinned = pinned;
    ThreadContext &thread = here();
    Executor &executor = where != nullptr ? *where : executor_for(thread);
    mc::testing::check(spawn(&thread, executor, request) == MC_OK, "not spawned");
    return handle;
}

// A wait that is ended step by step.
class Held {
public:
    int32_t wait() {
        HeldParking parking(commit, MC_FOREVER, nullptr);
        parking.held = this;
        parking.one_lock = true;
        return status_of(park(here(), parking));
    }
    bool waits() const { return epoch_.load(sync::acquire) != 0; }

    // Once it waits: ends the wait, but leaves it to the caller where the task goes on.
    Task *claim() {
        const TaskWord::Claim claim = task_->word.try_claim(epoch_.load(sync::acquire));
        mc::testing::check(claim != TaskWord::Claim::lost, "not claimed");
        task_->reason = WakeReason::ready;
        mc::testing::check(task_->word.wake(claim) == TaskWord::Wake::enqueue, "it had not parked");
        return task_;
    }

private:
    struct HeldParking : Parking {
        using Parking::Parking;
        Held *held;
    };
    static void commit(Parking &parking) noexcept {
        Held &held = *static_cast<HeldParking &>(parking).held;
        held.task_ = parking.task;
        held.epoch_.store(parking.epoch, sync::release); // release: pairs with waits() and claim()
    }

    sync::atomic<uint64_t> epoch_{0};
    Task *task_ = nullptr;
};

} // namespace mc::sched::testing
