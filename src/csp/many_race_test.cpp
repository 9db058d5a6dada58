// Many executors and other threads at once: ledgers that must balance, timers that race, threads that come and go.
#include "csp/test_many.hpp"

#include <memory>
#include <vector>

using namespace mc::csp::testing;
using mc::sync::atomic;
using mc::sync::relaxed;

namespace {

// A message that carries who sent it and his how-manyeth it is.
struct Numbered {
    int sender;
    int number;
};
void copy_numbered(void *source, void *destination) {
    *static_cast<Numbered *>(destination) = *static_cast<Numbered *>(source);
}

constexpr int senders = 6;

// What each receiver has had from each sender rises: first in, first out per pair.
void receive_in_order(csp_reader r, atomic<int64_t> &sum) {
    int last[senders] = {};
    Numbered message{};
    while (csp_recv(r, &message) == 1) {
        cr_assert_gt(message.number, last[message.sender]);
        last[message.sender] = message.number;
        sum.fetch_add(message.number, relaxed);
    }
    csp_reader_release(r);
}

} // namespace

// Goal: what many send is received once each and in order per pair, by microthreads and foreign threads, on any number
// of executors.
Test(ManyRace, messages_balance, .timeout = 120) {
    World world;
    const int each = scaled(4000);
    for (int n : executor_counts) {
        const Many many(n);
        atomic<int64_t> sum{0};
        Chan chan(copy_numbered);
        for (int i = 0; i < 4; ++i)
            start([&sum, r = csp_reader_addref(chan.r)] { receive_in_order(r, sum); });
        PosixThread receiver([&sum, r = csp_reader_addref(chan.r)] { receive_in_order(r, sum); });
        const auto send_all = [each](csp_writer w, int self) {
            for (int k = 1; k <= each; ++k) {
                Numbered message{self, k};
                cr_assert_eq(csp_send(w, &message), 1);
            }
            csp_writer_release(w);
        };
        for (int i = 0; i < senders - 1; ++i)
            start([=, w = csp_writer_addref(chan.w)] { send_all(w, i); });
        PosixThread sender([=, w = csp_writer_addref(chan.w)] { send_all(w, senders - 1); });
        chan.release_writer();
        chan.release_reader();
        sender.join();
        receiver.join();
        csp_schedule();
        cr_assert_eq(sum.load(relaxed), int64_t{senders} * each * (each + 1) / 2);
    }
}

// Goal: alts over several channels, each message once, with closing at the end.
Test(ManyRace, alts_balance, .timeout = 120) {
    World world;
    const int each = scaled(2000);
    for (int n : {2, 8}) {
        const Many many(n);
        constexpr int channels = 4;
        atomic<int64_t> sum{0};
        std::vector<std::unique_ptr<Chan>> chans;
        for (int i = 0; i < channels; ++i)
            chans.push_back(std::make_unique<Chan>());
        const auto select = [&chans, &sum] {
            csp_reader r[channels];
            for (int i = 0; i < channels; ++i)
                r[i] = csp_reader_addref(chans[static_cast<size_t>(i)]->r);
            for (int alive = channels; alive > 0;) {
                int value[channels] = {};
                csp_chanop ops[channels];
                for (int i = 0; i < channels; ++i)
                    ops[i] = {csp_wait(r[i]), &value[i]};
                const int went = csp_alt(ops, channels, 0);
                cr_assert_neq(went, 0);
                if (went > 0) {
                    sum.fetch_add(value[went - 1], relaxed);
                } else {
                    csp_reader_release(std::exchange(r[-went - 1], nullptr));
                    --alive;
                }
            }
        };
        std::vector<mc_task_t> tasks;
        for (int i = 0; i < 3; ++i)
            tasks.push_back(start(select));
        for (int i = 0; i < channels; ++i)
            for (int k = 0; k < 2; ++k)
                tasks.push_back(start([each, w = csp_writer_addref(chans[static_cast<size_t>(i)]->w)] {
                    for (int value = 1; value <= each; ++value)
                        cr_assert_eq(csp_send(w, &value), 1);
                    csp_writer_release(w);
                }));
        for (auto &chan : chans)
            chan->release_writer();
        for (mc_task_t task : tasks)
            join(task);
        cr_assert_eq(sum.load(relaxed), int64_t{channels} * 2 * each * (each + 1) / 2);
    }
}

// Goal: deadlines that race their wakes: each wait ends once, by one or the other, and no message is lost: what a timed
// receive did not take, the next one does.
Test(ManyRace, deadlines_race_wakes, .timeout = 120) {
    World world;
    for (int n : {1, 2, 8}) {
        const Many many(n);
        const int rounds = scaled(2000);
        std::vector<mc_task_t> tasks;
        atomic<int> late{0};
        for (int pair = 0; pair < 4; ++pair) {
            auto chan = std::make_shared<Chan>();
            tasks.push_back(start([=, &late] {
                for (int expected = 0; expected < rounds;) {
                    int value = -1;
                    const int code = csp_recv_until(chan->r, &value, mc_after(20'000));
                    if (code == MC_E_TIMEDOUT) {
                        late.fetch_add(1, relaxed);
                        continue;
                    }
                    cr_assert_eq(code, 1);
                    cr_assert_eq(value, expected++);
                }
            }));
            tasks.push_back(start([=] {
                for (int k = 0; k < rounds; ++k) {
                    if (k % 8 == 0)
                        csp_sleep_until(mc_after(15'000 + k % 3 * 5'000));
                    cr_assert_eq(chan->send(k), 1);
                }
            }));
        }
        for (mc_task_t task : tasks)
            join(task);
    }
}

// Goal: csp_after and csp_tick timers are armed, fire and are released from any microthread and any thread at once.
Test(ManyRace, timers_from_anywhere, .timeout = 120) {
    World world;
    for (int n : {1, 2, 8}) {
        const Many many(n);
        const auto churn = [] {
            for (int k = 0; k < scaled(400); ++k) {
                csp_reader once = csp_after(k % 4 * 30'000);
                csp_reader tick = csp_tick(20'000);
                int64_t time = 0;
                if (k % 3 != 0)
                    cr_assert_eq(csp_recv(tick, &time), 1);
                if (k % 5 == 0)
                    cr_assert_eq(csp_recv(once, &time), 1);
                csp_reader_release(once); // armed, firing or fired
                csp_reader_release(tick);
            }
        };
        std::vector<mc_task_t> tasks;
        for (int i = 0; i < 4; ++i)
            tasks.push_back(start(churn));
        PosixThread thread(churn);
        thread.join();
        for (mc_task_t task : tasks)
            join(task);
    }
}

// Goal: 64 short-lived threads at once use every kind of call and end while others wait for what they hold; endpoints
// released by their thread-local destructors count.
Test(ManyRace, short_lived_threads, .timeout = 120) {
    World world;
    struct ReleasesAtExit {
        csp_writer w = nullptr;
        ~ReleasesAtExit() { csp_writer_release(w); }
    };
    const int rounds = mc::testing::under_valgrind ? 1 : 4;
    for (int n : {1, 2, 8}) {
        const Many many(n);
        for (int round = 0; round < rounds; ++round) {
            Chan ends;
            Chan data;
            mc_task_t waits_for_death = start([&, r = csp_reader_addref(ends.r)] {
                int value = 0;
                cr_assert_eq(csp_recv(r, &value), -1); // dead when the last thread is gone
                csp_reader_release(r);
            });
            mc_task_t sums = start([&, r = csp_reader_addref(data.r)] {
                int value = 0;
                int count = 0;
                while (csp_recv(r, &value) == 1)
                    ++count;
                cr_assert_eq(count, 64);
                csp_reader_release(r);
            });
            std::vector<std::unique_ptr<PosixThread>> threads;
            for (int i = 0; i < 64; ++i)
                threads.push_back(std::make_unique<PosixThread>([&, w = csp_writer_addref(ends.w)] {
                    thread_local ReleasesAtExit late;
                    late.w = w;
                    join(start([] { csp_yield(); }));
                    int value = 0;
                    Chan own;
                    cr_assert_eq(csp_try_recv(own.r, &value), 0);
                    cr_assert_eq(csp_recv_until(own.r, &value, mc_after(10'000)), MC_E_TIMEDOUT);
                    csp_chanop ops[] = {{csp_wait(own.r), &value}, {csp_wait(data.w), &value}};
                    cr_assert_eq(csp_alt(ops, 2, 0), 2);
                    csp_sleep_until(mc_after(10'000));
                }));
            ends.release_writer();
            threads.clear(); // joins
            data.release_writer();
            join(waits_for_death);
            join(sums);
        }
    }
}

// Goal: a foreign waker and the end of the executors: whatever the moment, the microthread that it wakes goes on.
Test(ManyRace, wakes_while_executors_stop, .timeout = 120) {
    World world;
    for (int k = 0; k < scaled(400); ++k) {
        Chan chan;
        atomic<int> got{0};
        cr_assert_eq(csp_init_runtime(k % 3 + 1), 1);
        for (int i = 0; i < 3; ++i)
            start([&] { got.fetch_add(chan.receive(), relaxed); }, i == 0 ? MC_SPAWN_PINNED : 0);
        PosixThread waker([&] {
            for (int i = 0; i < 3; ++i)
                cr_assert_eq(csp_send_until(chan.w, &k, MC_FOREVER), 1);
        });
        if (k % 2 == 0)
            csp_yield();
        csp_shutdown_runtime();
        while (bodies.load(mc::sync::acquire) != 0)
            csp_run();
        waker.join();
        cr_assert_eq(got.load(relaxed), 3 * k);
    }
}

// Goal: a thread that waits for the last microthread goes on when the executors stop with one left.
Test(ManyRace, who_waits_for_quiet_is_told_of_the_stop) {
    World world;
    for (int k = 0; k < scaled(100); ++k) {
        Chan chan;
        cr_assert_eq(csp_init_runtime(2), 1);
        start([&] { cr_assert_eq(chan.receive(), k); });
        PosixThread waits([] { csp_schedule(); });
        if (k % 2 == 0)
            csp_sleep_until(mc_after(50'000));
        csp_shutdown_runtime();
        cr_assert_eq(chan.send(k), 1);
        csp_schedule();
        waits.join();
    }
    world.expected_lines = world.log.count(MC_E_CONTEXT); // where it came after the stop
}

// Goal: microthreads are spawned and joined across executors and threads in numbers, and every handle ends once.
Test(ManyRace, a_million_handles, .timeout = 300) {
    World world;
    const Many many(4);
    const int per_spawner = scaled(mc::testing::under_tsan ? 60'000 : 120'000);
    const auto churn = [per_spawner] {
        mc_task_t last = 0;
        for (int i = 0; i < per_spawner; ++i) {
            mc_task_t task = 0;
            cr_assert_eq(
                mc_spawn(
                    0, [](void *user) -> int32_t { return static_cast<int32_t>(reinterpret_cast<intptr_t>(user)); },
                    reinterpret_cast<void *>(intptr_t{i}), nullptr, &task),
                MC_OK);
            if (last != 0) { // stale by now: never a crash, never another's
                cr_assert_eq(mc_join(last, MC_NOW, nullptr), MC_E_STALE);
            }
            int32_t result = -1;
            cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
            cr_assert_eq(result, i);
            last = task;
        }
    };
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 7; ++i)
        tasks.push_back(start(churn));
    PosixThread thread([] {
        for (int i = 0; i < scaled(5000); ++i)
            join(start([] {}));
    });
    thread.join();
    for (mc_task_t task : tasks)
        join(task);
}
