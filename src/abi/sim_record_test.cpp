// What a recording says of a run: see the events of mc/sim.h.
#include "sim/test_sim.hpp"

#include <mc/mc.h>

#include <sys/resource.h>

using namespace mc;
using namespace mc::sim;
using namespace mc::sim::testing;

namespace {

// Nothing is explored.
template <class Body> Recorded straight(Body body) {
    const Recorded recorded = simulate_recorded(with_schedule({}), std::move(body));
    cr_assert(recorded.outcome.fine());
    return recorded;
}

// Which of two mutexes' events there are, in their order.
std::string locks_of(const Recorded &recorded, uint64_t task) {
    std::string locks;
    for (const mc_sim_event &event : recorded.events)
        if (event.task == task && (event.kind == MC_SIM_LOCK || event.kind == MC_SIM_UNLOCK))
            locks += event.kind == MC_SIM_LOCK ? 'L' : 'U';
    return locks;
}

} // namespace

// Goal: a condition's wait gives the mutex back, and has it again at its end.
Test(SimRecord, a_condition_gives_its_mutex_back) {
    const Recorded recorded = straight([](Outcome &said) {
        mc_mutex_t mutex = 0;
        mc_cond_t cond = 0;
        cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
        cr_assert_eq(mc_cond_create(&cond), MC_OK);
        const mc_task_t waits = go([=] {
            cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
            cr_assert_eq(mc_cond_wait(cond, mutex, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
        });
        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
        cr_assert_eq(mc_cond_signal(cond), MC_OK);
        cr_assert_eq(result_of(waits), MC_OK);
        said.say(0);
    });
    const uint64_t waits = recorded.events[recorded.find(MC_SIM_SPAWN)].peer;
    cr_assert_eq(locks_of(recorded, waits), "LULU");
}

// Goal: of several that are locked at once each is told of, of those that are given back since one can not be locked, too; and of
// one whose owner ended.
Test(SimRecord, several_mutexes_and_a_death) {
    const Recorded recorded = straight([](Outcome &) {
        mc_mutex_t mutexes[3] = {};
        for (mc_mutex_t &mutex : mutexes)
            cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
        const mc_task_t all = go([&] {
            cr_assert_eq(mc_mutex_lock_all(mutexes, 3, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_mutex_unlock_all(mutexes, 3), MC_OK);
        });
        cr_assert_eq(result_of(all), MC_OK);
        const mc_task_t dies = go([&] { return mc_mutex_lock(mutexes[2]); });
        cr_assert_eq(result_of(dies), MC_OK);
        cr_assert_eq(mc_mutex_lock(mutexes[2]), MC_E_OWNERDEAD);
        const mc_task_t some = go([&] { return mc_mutex_lock_all(mutexes, 3, mc_now() + MC_MS); });
        cr_assert_eq(result_of(some), MC_E_TIMEDOUT);
    });
    const auto spawned = [&](size_t nth) {
        size_t at = recorded.find(MC_SIM_SPAWN);
        while (nth-- > 0)
            at = recorded.find(MC_SIM_SPAWN, at + 1);
        return recorded.events[at].peer;
    };
    cr_assert_eq(locks_of(recorded, spawned(0)), "LLLUUU");
    cr_assert_eq(locks_of(recorded, spawned(1)), "LU");
    cr_assert_eq(locks_of(recorded, spawned(2)), "LLUU");
}

// Goal: mutexes that are one after another are others, also where they lie at the same place; one that is locked several times by its
// owner is locked once, and given back once.
Test(SimRecord, mutexes_by_number) {
    const Recorded recorded = straight([](Outcome &) {
        for (int i = 0; i < 2; ++i) {
            mc_mutex_t mutex = 0;
            cr_assert_eq(mc_mutex_create(MC_MUTEX_RECURSIVE, &mutex), MC_OK);
            for (int round = 0; round < 3; ++round)
                cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
            mc_sim_note("inside");
            for (int round = 0; round < 3; ++round)
                cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
            cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
        }
    });
    std::vector<std::pair<uint32_t, uint64_t>> seen;
    for (const mc_sim_event &event : recorded.events)
        if (event.kind == MC_SIM_LOCK || event.kind == MC_SIM_UNLOCK || event.kind == MC_SIM_NOTE)
            seen.emplace_back(event.kind, event.object);
    const std::vector<std::pair<uint32_t, uint64_t>> wanted{{MC_SIM_LOCK, 1}, {MC_SIM_NOTE, 0}, {MC_SIM_UNLOCK, 1},
                                                            {MC_SIM_LOCK, 2}, {MC_SIM_NOTE, 0}, {MC_SIM_UNLOCK, 2}};
    cr_assert(seen == wanted);
}

// Goal: where files may not become so large there is no recording, and no signal.
Test(SimRecord, a_small_limit) {
    const rlimit limit{1'000'000, 1'000'000};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    Recording recording;
    const std::string file = "/tmp/mcrt-sim-test-" + std::to_string(getpid());
    cr_assert_not(recording.open(file.c_str()));
    unlink(file.c_str());
}

// Goal: who goes on after its wait is told of, also when nobody ran in between.
Test(SimRecord, the_end_of_a_wait) {
    const Recorded recorded = straight([](Outcome &) { cr_assert_eq(mc_sleep(MC_MS), MC_OK); });
    const size_t wait = recorded.find(MC_SIM_WAIT);
    const size_t run = recorded.find(MC_SIM_RUN, wait);
    cr_assert_lt(run, recorded.events.size());
    cr_assert_eq(recorded.events[run].task, recorded.events[wait].task);
    cr_assert_eq(recorded.events[run].task, 0u);
}

// Goal: a jump of the clock says whether it passes those by that could go on.
Test(SimRecord, what_time_jumps_past) {
    const auto sleeps_beside_others = [](Outcome &) {
        const mc_task_t busy = go([] {
            for (int i = 0; i < 200; ++i)
                cr_assert_eq(mc_checkpoint(), MC_OK);
        });
        cr_assert_eq(mc_sleep(50 * MC_MS), MC_OK);
        cr_assert_eq(result_of(busy), MC_OK);
    };
    const Recorded quiet = straight(sleeps_beside_others); // busy ends, then time jumps
    cr_assert_eq(quiet.count(MC_SIM_TIME), 1u);
    cr_assert_eq(quiet.events[quiet.find(MC_SIM_TIME)].value, 0);
    size_t past = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Recorded recorded = simulate_recorded(with_seed(seed), sleeps_beside_others);
        for (const mc_sim_event &event : recorded.events)
            past += event.kind == MC_SIM_TIME && event.value == 1 ? 1 : 0;
    }
    cr_assert_gt(past, 3u);
}

// Goal: a timer's channel is closed by the clock, whoever runs when its time comes.
Test(SimRecord, the_clock_closes_its_channels) {
    const Recorded recorded = straight([](Outcome &) {
        csp_reader timer = csp_after(MC_MS);
        int64_t when = 0;
        cr_assert_eq(csp_recv(timer, &when), 1);
        csp_reader_release(timer);
    });
    bool closed = false;
    for (const mc_sim_event &event : recorded.events)
        if (event.kind == MC_SIM_CLOSE && event.value == 0) {
            cr_assert_eq(event.task, MC_SIM_CLOCK);
            closed = true;
        }
    cr_assert(closed);
}

// Goal: a program that a recorded one starts, with the same environment, does not take its file.
Test(SimRecord, a_file_is_one_process_s) {
    const Recorded recorded = straight([](Outcome &) {
        cr_assert_eq(mc_sleep(MC_MS), MC_OK);
        const std::string file = "/tmp/mcrt-sim-test-" + std::to_string(getppid());
        const pid_t child = fork();
        if (child == 0) { // as if it had been started anew
            Recording another;
            _exit(another.open(file.c_str()) ? 1 : 0);
        }
        int status = 0;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert_eq(status, 0);
        mc_sim_note("afterwards");
    });
    cr_assert_eq(memcmp(recorded.header.magic, MC_SIM_MAGIC, 8), 0);
    cr_assert_eq(recorded.count(MC_SIM_NOTE), 1u);
    cr_assert_eq(recorded.header.steps, recorded.outcome.steps);
}
