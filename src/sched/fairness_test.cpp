// Who gets how much, on real threads: microthreads that compute and microthreads that wake each other all the time have one
// quantum a turn of the wheel each. Counted in calls, of which a quantum has so many: time does not decide, since the
// quantum's time is made endless.
#include "sched/test_pool.hpp"

#include <algorithm>
#include <vector>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

constexpr uint32_t quantum = 100;
constexpr uint32_t hogs = 10;
constexpr uint32_t talkers = 10;

void reductions_alone(uint32_t segments) {
    PoolOptions options;
    options.wheel_segments = segments;
    options.quantum_reductions = quantum;
    options.quantum_ns = 3600 * MC_SEC;
    cr_assert_eq(set_pool_options(options), MC_OK);
}

void spend_one() { (void)spend(&here()); } // as the calls of the rooms above do

// Ten hogs and ten talkers, until all of them together have made so many calls, or each so many.
class Crowd {
public:
    Crowd(uint64_t together, uint64_t each, bool pinned = false) : together_(together), each_(each) {
        for (uint32_t i = 0; i < hogs; ++i)
            tasks_.push_back(spawn_one([this, i] { hog(i); }, pinned));
        for (uint32_t i = 0; i < talkers; ++i)
            tasks_.push_back(spawn_one([this, i] { talk(i); }, pinned && i % 4 < 2));
        for (const mc_task_t task : tasks_)
            cr_assert_eq(result_of(task), MC_OK);
    }

    struct Spread {
        uint64_t least, sum, most;
    };
    Spread hogs_had() const { return spread(0, hogs); }
    Spread talkers_had() const { return spread(hogs, hogs + talkers); }

private:
    // Nobody counts before all are there.
    void arrive() {
        (void)arrived_.fetch_add(1, sync::relaxed);
        while (arrived_.load(sync::relaxed) != hogs + talkers)
            yield();
    }
    bool count(uint32_t who) {
        const uint64_t calls = calls_[who].load(sync::relaxed) + 1;
        calls_[who].store(calls, sync::relaxed);
        if (calls == each_)
            (void)content_.fetch_add(1, sync::relaxed);
        return all_.fetch_add(1, sync::relaxed) < together_ && content_.load(sync::relaxed) != hogs + talkers;
    }
    // Every other one waits once, for a few turns, in the midst of a quantum: it has that one and no more to make up for.
    void hog(uint32_t i) {
        Gate &pause = pauses_[i / 2];
        arrive();
        for (uint64_t calls = 1; count(i); ++calls) {
            here().executor->checkpoint();
            if (i % 2 == 0 && calls == 6 * uint64_t{quantum})
                pause.release();
            else if (i % 2 == 1 && calls == 3 * uint64_t{quantum} + quantum / 2)
                cr_assert_eq(pause.acquire(), MC_OK);
        }
        pause.release();
    }
    // Two talk to each other: each waits for the other's word.
    void talk(uint32_t i) {
        Gate &mine = words_[i];
        Gate &other = words_[i ^ 1];
        for (uint32_t k = 0; k < i * 7; ++k) // the two are out of step
            spend_one();
        for (arrive(); count(hogs + i);) {
            spend_one();
            other.release();
            cr_assert_eq(mine.acquire(), MC_OK);
        }
        other.release(1);
    }
    Spread spread(uint32_t from, uint32_t to) const {
        Spread all{UINT64_MAX, 0, 0};
        for (uint32_t i = from; i < to; ++i) {
            const uint64_t calls = calls_[i].load(sync::relaxed);
            all = {std::min(all.least, calls), all.sum + calls, std::max(all.most, calls)};
        }
        return all;
    }

    const uint64_t together_;
    const uint64_t each_;
    std::vector<mc_task_t> tasks_;
    Gate words_[talkers];
    Gate pauses_[hogs / 2];
    sync::atomic<uint32_t> arrived_{0};
    sync::atomic<uint32_t> content_{0}; // have made their own number of calls
    sync::atomic<uint64_t> all_{0};
    sync::atomic<uint64_t> calls_[hogs + talkers] = {};
};

Crowd::Spread among(const Crowd::Spread &a, const Crowd::Spread &b) {
    return {std::min(a.least, b.least), a.sum + b.sum, std::max(a.most, b.most)};
}

void equal_shares(uint32_t segments, bool pinned) {
    reductions_alone(segments);
    start_many(1);
    const Crowd crowd(400'000, UINT64_MAX, pinned); // 200 turns
    stop_many();
    const Crowd::Spread all = among(crowd.hogs_had(), crowd.talkers_had());
    const uint64_t fair = all.sum / (hogs + talkers);
    cr_assert_geq(all.least, fair * 9 / 10);
    cr_assert_leq(all.most, fair * 11 / 10);
}

// Which executor gets how much of a processor is not ours to say, so this asks for some quanta each, and gives up late.
void nobody_forgotten(uint32_t segments) {
    reductions_alone(segments);
    start_many(2);
    constexpr uint64_t some = uint64_t{20} * quantum;
    const Crowd crowd(mc::testing::under_valgrind ? UINT64_MAX : 20'000 * some, some);
    stop_many();
    cr_assert_geq(crowd.hogs_had().least, some);
    cr_assert_geq(crowd.talkers_had().least, some);
}

} // namespace

// Goal: on one executor everybody has the same: it is one wheel.
Test(Fairness, one_executor) { equal_shares(1, false); }
Test(Fairness, one_executor_eight_segments) { equal_shares(8, false); }

// Goal: so have those that are pinned, among themselves and beside others.
Test(Fairness, one_executor_pinned) { equal_shares(1, true); }

// Goal: on two executors, between which they move, nobody is forgotten. (Shares are not equal there: a turn of one's wheel
// is longer than one of the other's.)
Test(Fairness, two_executors, .timeout = 120) { nobody_forgotten(1); }
Test(Fairness, two_executors_eight_segments, .timeout = 120) { nobody_forgotten(8); }

// Goal: what one microthread spawns beyond what its executor's ring holds has its turns before the next quantum of the one that
// spawns, so no more than two quanta of it are ever outstanding.
Test(Fairness, who_spawns_does_not_run_ahead) {
    PoolOptions options;
    options.quantum_reductions = 1000;
    options.quantum_ns = 3600 * MC_SEC;
    cr_assert_eq(set_pool_options(options), MC_OK);
    start_many(1);
    constexpr int64_t count = 20'000;
    int64_t begun = 0; // one executor: they take turns
    int64_t most = 0;
    const mc_task_t spawner = spawn_one([&] {
        for (int64_t i = 0; i < count; ++i) {
            cr_assert_eq(detach(spawn_one([&] { ++begun; })), MC_OK);
            most = std::max(most, i + 1 - begun);
            here().executor->checkpoint();
        }
    });
    cr_assert_eq(result_of(spawner), MC_OK);
    stop_many();
    cr_assert_eq(begun, count);
    cr_assert_gt(most, 256, "no more than a ring holds: this shows nothing");
    cr_assert_leq(most, 2000);
}

// Goal: options are refused once there is a pool.
Test(Fairness, options_come_first) {
    reductions_alone(Wheel::max_segments);
    here();
    cr_assert_eq(default_pool()->options().wheel_segments, Wheel::max_segments);
    cr_assert_eq(set_pool_options({}), MC_E_BUSY);
    cr_assert_eq(default_pool()->options().quantum_reductions, quantum);
}
