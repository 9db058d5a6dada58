// The end of a microthread under many interleavings: joined and detached by other threads while it ends. A process a
// run; on real threads in other builds.
#include "sched/test_sched.hpp"

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;
using mc::testing::choose;
using mc::testing::Data;
using mc::testing::expect_pass;
using mc::testing::Search;
using mc::testing::Thread;

namespace {

uint32_t slot_of(mc_task_t handle) { return static_cast<uint32_t>(handle) & (TaskSlab::max_items - 1); }

// The owner runs what there is until the threads are through.
struct Crowd {
    explicit Crowd(uint32_t size) : count(size), left(size) {}
    const uint32_t count;
    Known known;
    sync::atomic<uint32_t> left;
    Gate done;

    void enter() { known.arrive(); }
    void leave() {
        if (left.fetch_sub(1, sync::acq_rel) == 1)
            done.release();
    }
    void wait() {
        known.wait_for(count);
        check(done.acquire() == MC_OK, "a false deadlock");
    }
};

void explore(const char *name, uint64_t seeds, const std::function<void()> &body) {
    expect_pass({.name = name, .search = Search::seeds, .seeds = seeds, .isolate = true}, body);
}

} // namespace

// Goal: two threads join while the microthread ends: one has the result, complete, the other is told that it is late.
Test(JoinSys, two_threads_join, .timeout = 60) {
    const auto body = [] {
        here();
        Crowd crowd(2);
        Data<int> work(0);
        sync::atomic<uint32_t> got{0}, stale{0};
        const mc_task_t task = start([&] {
            work.set(1);
            return 9;
        });
        const auto joins = [&] {
            crowd.enter();
            int32_t result = 0;
            const int32_t status = join_until(task, MC_FOREVER, &result);
            if (status == MC_OK) {
                check(result == 9 && work.get() == 1, "joined before the end");
                got.fetch_add(1, sync::relaxed);
            } else {
                check(status == MC_E_STALE, "status %d", status);
                stale.fetch_add(1, sync::relaxed);
            }
            crowd.leave();
        };
        Thread one(joins, "one");
        Thread two(joins, "two");
        crowd.wait();
        check(got.load(sync::relaxed) == 1 && stale.load(sync::relaxed) == 1, "not one each");
        check(join_until(task, MC_NOW) == MC_E_STALE, "the handle is still good");
    };
    explore("JoinSys/two_threads_join", 1'500, body);
    expect_pass({.name = "JoinSys/two_threads_join",
                 .preemptions = 1,
                 .stale = 0,
                 .timeouts = 0,
                 .spurious = 0,
                 .isolate = true},
                body);
}

// Goal: one joins, one detaches, the microthread ends: the joiner has the result or is told, the detacher succeeds or
// is late, and exactly one of them has used the handle up. The slot then serves the next one, once.
Test(JoinSys, join_races_detach, .timeout = 60) {
    explore("JoinSys/join_races_detach", 1'500, [] {
        here();
        Crowd crowd(2);
        int32_t joined = 1;
        int32_t detached = 1;
        const mc_task_t task = start([] { return 9; });
        Thread joiner(
            [&] {
                crowd.enter();
                joined = join_until(task, MC_FOREVER);
                crowd.leave();
            },
            "joiner");
        Thread detacher(
            [&] {
                crowd.enter();
                detached = detach(task);
                crowd.leave();
            },
            "detacher");
        crowd.wait();
        check((joined == MC_OK && detached == MC_E_STALE) || (joined == MC_E_STALE && detached == MC_OK),
              "join %d, detach %d", joined, detached);
        yield(); // it has left by then
        const mc_task_t next = start([] { return 1; });
        const mc_task_t other = start([] { return 2; });
        check(slot_of(next) != slot_of(other), "one slot, two lives");
        check(join_until(task, MC_NOW) == MC_E_STALE, "the old handle meets the new life");
        int32_t result = 0;
        check(join_until(next, MC_FOREVER, &result) == MC_OK && result == 1, "the next life's result");
        check(join_until(other, MC_FOREVER, &result) == MC_OK && result == 2, "the other's result");
    });
}

// Goal: a join with a deadline races the end: a result or a timeout; after a timeout the handle is still good.
Test(JoinSys, a_deadline_races_the_end, .timeout = 60) {
    explore("JoinSys/a_deadline_races_the_end", 1'500, [] {
        here();
        Crowd crowd(1);
        Gate gate;
        const mc_task_t task = start([&] {
            check(gate.acquire() == MC_OK, "not released");
            return 9;
        });
        Thread joiner(
            [&] {
                crowd.enter();
                int32_t result = 0;
                int32_t status = join_until(task, in_ns(300 * (1 + choose(6))), &result);
                gate.release();
                if (status == MC_E_TIMEDOUT)
                    status = join_until(task, MC_FOREVER, &result);
                check(status == MC_OK && result == 9, "status %d, result %d", status, result);
                crowd.leave();
            },
            "joiner");
        crowd.wait();
    });
}

// Goal: a thread spawns, another joins through the handle that it is given, the owner runs: the joiner sees the result.
Test(JoinSys, spawned_here_joined_there, .timeout = 60) {
    explore("JoinSys/spawned_here_joined_there", 1'500, [] {
        here();
        Crowd crowd(2);
        sync::atomic<mc_task_t> handle{0};
        Thread spawner(
            [&] {
                crowd.enter();
                handle.store(start([] { return 4; }), sync::release);
                crowd.leave();
            },
            "spawner");
        Thread joiner(
            [&] {
                crowd.enter();
                mc_task_t task;
                while ((task = handle.load(sync::acquire)) == 0)
                    sync::thread_yield();
                check(result_of(task) == 4, "another result");
                crowd.leave();
            },
            "joiner");
        crowd.wait();
    });
}
