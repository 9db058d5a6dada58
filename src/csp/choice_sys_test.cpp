// Alts, timers, microthreads and ends of tasks between two or three threads. Threads use prialt: where alt starts follows
// from an address, which is not the same in every run. The body's own thread owns the runtime.
#include "csp/test_explore.hpp"

using namespace mc;
using namespace mc::csp::testing;

// Goal: the owner's alt over two channels with a sender each: one message an alt, from the channel that it names.
Test(ChoiceSys, alt_with_two_peers, .timeout = 60) {
    explore("ChoiceSys/alt_with_two_peers", 0, [] {
        Chan first, second;
        const auto sender = [](const Chan &chan, int value) {
            return [&chan, value] {
                int mine = value;
                check(csp_send_until(chan.w, &mine, far()) == 1, "not sent");
            };
        };
        int sum = 0;
        {
            Thread one(sender(first, 1)), two(sender(second, 2));
            for (int i = 0; i < 2; ++i) {
                int values[2] = {};
                const csp_chanop ops[] = {receives(first.r, &values[0]), receives(second.r, &values[1])};
                const int result = csp_alt_until(ops, 2, far());
                check(result == 1 || result == 2, "%d", result);
                check(values[result - 1] == result && values[2 - result] == 0, "%d: %d %d", result, values[0],
                      values[1]);
                sum += result;
            }
        }
        check(sum == 3, "%d", sum);
    });
}

// Goal: the same where everybody may time out: as many received as sent.
Test(ChoiceSys, alt_with_two_peers_and_timeouts, .timeout = 60) {
    explore("ChoiceSys/alt_with_two_peers_and_timeouts", 2, [] {
        Chan first, second;
        int sent[2] = {};
        int result = 0;
        {
            const auto sender = [&](const Chan &chan, int value) {
                return [&sent, &chan, value] {
                    int mine = value;
                    sent[value - 1] = csp_send_until(chan.w, &mine, soon());
                };
            };
            Thread one(sender(first, 1)), two(sender(second, 2));
            int values[2] = {};
            const csp_chanop ops[] = {receives(first.r, &values[0]), receives(second.r, &values[1])};
            result = csp_alt_until(ops, 2, soon());
            check(values[0] == (result == 1 ? 1 : 0) && values[1] == (result == 2 ? 2 : 0), "%d", result);
        }
        for (int i = 0; i < 2; ++i)
            check((sent[i] == 1) == (result == i + 1), "%d: %d, but %d", i, sent[i], result);
    });
}

// Goal: two alts over the same two channels in opposite order, both ends in each: they meet once or time out, no
// deadlock of their locks.
Test(ChoiceSys, two_alts_crosswise, .timeout = 60) {
    explore("ChoiceSys/two_alts_crosswise", 1, [] {
        Chan first, second;
        int results[2] = {}, in[2] = {};
        {
            Thread thread([&] {
                int out = 5;
                const csp_chanop ops[] = {sends(second.w, &out), receives(first.r, &in[0])};
                results[0] = csp_prialt_until(ops, 2, soon());
            });
            int out = 6;
            const csp_chanop ops[] = {sends(first.w, &out), receives(second.r, &in[1])};
            results[1] = csp_prialt_until(ops, 2, soon());
        }
        const bool met = results[0] > 0;
        check(met == (results[1] > 0), "%d and %d", results[0], results[1]);
        if (met)
            check(results[0] != results[1] && in[0] == (results[0] == 2 ? 6 : 0) && in[1] == (results[1] == 2 ? 5 : 0),
                  "%d and %d", results[0], results[1]);
    });
}

// Goal: an alt of a thread on one channel against the death of another: the message or the death, the other stays.
Test(ChoiceSys, alt_against_death, .timeout = 60) {
    explore("ChoiceSys/alt_against_death", 1, [] {
        Chan messages, dying;
        int sent = 0, result = 0, value = 0;
        {
            Thread alting([&] {
                const csp_chanop ops[] = {receives(messages.r, &value), dies(dying.r)};
                result = csp_prialt_until(ops, 2, soon());
            });
            Thread releasing([w = std::exchange(dying.w, nullptr)] { csp_writer_release(w); });
            int mine = 7;
            sent = csp_send_until(messages.w, &mine, soon());
        }
        check(result == 1 || result == -2 || result == MC_E_TIMEDOUT, "%d", result);
        check((result == 1) == (sent == 1) && (result == 1) == (value == 7), "%d, %d", result, sent);
    });
}

// Goal: a timer that is released while it fires, read or not, leaves nothing behind.
Test(ChoiceSys, timer_released_while_it_fires, .timeout = 60) {
    explore("ChoiceSys/timer_released_while_it_fires", 2, [] {
        csp_reader once = csp_after(500), tick = csp_tick(700);
        {
            Thread first([=] { csp_reader_release(once); });
            Thread second([=] {
                int64_t time = 0;
                const int result = csp_try_recv(tick, &time);
                check(result == 0 || result == 1, "%d", result);
                csp_reader_release(tick);
            });
            csp_sleep_until(soon());
            csp_sleep_until(soon());
        }
        csp_schedule();
        nothing_is_left();
    });
}

// Goal: threads spawn and join while the owner runs: each result once; the handle is used up.
Test(ChoiceSys, spawn_and_join_from_threads, .timeout = 60) {
    explore("ChoiceSys/spawn_and_join_from_threads", 0, [] {
        Chan done;
        const auto spawns = [&](int32_t value) {
            return [&, value] {
                mc_task_t task = 0;
                int32_t result = 0;
                void *user = reinterpret_cast<void *>(static_cast<intptr_t>(value));
                const mc_task_fn fn = [](void *number) {
                    return static_cast<int32_t>(reinterpret_cast<intptr_t>(number));
                };
                check(mc_spawn(0, fn, user, nullptr, &task) == MC_OK, "not spawned");
                check(mc_join(task, far(), &result) == MC_OK && result == value, "%d", result);
                check(mc_join(task, MC_NOW, nullptr) == MC_E_STALE, "joined twice");
                check(csp_send_until(done.w, &result, far()) == 1, "not sent");
            };
        };
        int sum = 0;
        {
            Thread first(spawns(1)), second(spawns(10));
            for (int i = 0; i < 2; ++i) {
                int value = 0;
                check(csp_recv_until(done.r, &value, far()) == 1, "not received");
                sum += value;
            }
        }
        check(sum == 11, "%d", sum);
    });
}

// Goal: one microthread's end, joined by a thread and detached by another: one of them has the handle.
Test(ChoiceSys, join_against_detach_and_end, .timeout = 60) {
    explore("ChoiceSys/join_against_detach_and_end", 0, [] {
        mc_task_t task = 0;
        check(mc_spawn(
                  0, [](void *) -> int32_t { return 5; }, nullptr, nullptr, &task) == MC_OK,
              "not spawned");
        int32_t joined = 1, detached = 1;
        {
            Thread joins([&] {
                int32_t result = 0;
                joined = mc_join(task, far(), &result);
                check((joined == MC_OK) == (result == 5), "%d, %d", joined, result);
            });
            Thread detaches([&] { detached = mc_detach(task); });
            csp_schedule();
        }
        check((joined == MC_OK) + (detached == MC_OK) == 1, "%d and %d", joined, detached);
        check(joined == MC_OK || joined == MC_E_STALE, "%d", joined);
        check(detached == MC_OK || detached == MC_E_STALE, "%d", detached);
    });
}

// Goal: a microthread that is handed messages by a thread and by main at once gets each of them, and then the death.
Test(ChoiceSys, a_microthread_between_main_and_a_thread, .timeout = 60) {
    explore("ChoiceSys/a_microthread_between_main_and_a_thread", 0, [] {
        Chan chan, done;
        spawn([&, r = std::exchange(chan.r, nullptr)] {
            int sum = 0;
            for (int value = 0; csp_recv_until(r, &value, far()) == 1;)
                sum += value;
            csp_reader_release(r);
            check(done.send(sum) == 1, "not sent");
        });
        {
            Thread thread([w = csp_writer_addref(chan.w)] {
                int value = 1;
                check(csp_send_until(w, &value, far()) == 1, "not sent");
                csp_writer_release(w);
            });
            int value = 10, sum = 0;
            check(csp_send(chan.w, &value) == 1, "not sent");
            chan.release_writer();
            check(csp_recv_until(done.r, &sum, far()) == 1 && sum == 11, "%d", sum);
        }
        csp_schedule();
    });
}

// Goal: the owner ends while a thread wakes its microthread; the next owner runs it.
Test(ChoiceSys, the_owner_ends_while_a_thread_wakes, .timeout = 60) {
    explore("ChoiceSys/the_owner_ends_while_a_thread_wakes", 0, [] {
        static csp_writer w;
        static csp_reader r;
        static int got;
        got = 0;
        const auto receives_one = [](void *) { check(csp_recv(r, &got) == 1, "not received"); };
        int sent = 0;
        {
            Thread owner([&] {
                check(csp_chan(&w, &r, copy_int) == 1, "no channel");
                check(csp_spawn(receives_one, nullptr) == 1, "not spawned");
                Thread sender([&] {
                    int value = 7;
                    sent = csp_try_send(w, &value);
                });
                csp_yield();
            });
        }
        csp_schedule(); // the body's thread owns it now
        check(sent == 1 && got == 7, "%d, %d", sent, got);
        csp_writer_release(w);
        csp_reader_release(r);
        nothing_is_left();
    });
}
