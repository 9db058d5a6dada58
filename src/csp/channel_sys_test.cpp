// One channel, two or three threads: a send or receive against a timeout, a death, a close, a destruction. The body's own
// thread owns the runtime.
#include "csp/test_explore.hpp"

using namespace mc;
using namespace mc::csp::testing;

// Goal: a sender and a receiver that may both time out: both went, or both did not.
Test(ChannelSys, send_against_two_timeouts, .timeout = 60) {
    explore("ChannelSys/send_against_two_timeouts", 1, [] {
        Chan chan;
        int received = 0, sent = 0;
        {
            Thread thread([&] {
                int value = 7;
                sent = csp_send_until(chan.w, &value, soon());
            });
            int value = 0;
            received = csp_recv_until(chan.r, &value, soon());
            check((received == 1) == (value == 7), "a message without a result");
        }
        check(sent == received, "one went alone: %d, %d", sent, received);
        check(sent == 1 || sent == MC_E_TIMEDOUT, "%d", sent);
        check(csp_try_send(chan.w, &sent) == 0, "a waiter is left behind");
    });
}

// Goal: two threads meet without the owner, under the same conditions.
Test(ChannelSys, threads_against_timeouts, .timeout = 60) {
    explore("ChannelSys/threads_against_timeouts", 1, [] {
        Chan chan;
        int received = 0, sent = 0, value = 0;
        {
            Thread sender([&] {
                int mine = 7;
                sent = csp_send_until(chan.w, &mine, soon());
            });
            Thread receiver([&] { received = csp_recv_until(chan.r, &value, soon()); });
        }
        check(sent == received && (value == 7) == (sent == 1), "one went alone: %d, %d", sent, received);
    });
}

// Goal: two senders who each send once and go: the owner gets both messages, then hears of the death.
Test(ChannelSys, messages_then_death, .timeout = 60) {
    explore("ChannelSys/messages_then_death", 0, [] {
        Chan chan;
        int sum = 0;
        const auto sends = [&](int value) {
            return [w = csp_writer_addref(chan.w), value] {
                int mine = value;
                check(csp_send_until(w, &mine, far()) == 1, "not sent");
                csp_writer_release(w);
            };
        };
        {
            Thread first(sends(1)), second(sends(10));
            chan.release_writer();
            for (int value = 0, result; (result = csp_recv_until(chan.r, &value, far())) != -1;) {
                check(result == 1, "%d", result);
                sum += value;
            }
        }
        check(sum == 11, "%d", sum);
        chan.release_reader();
        nothing_is_left();
    });
}

// Goal: a death against a waiter's timeout: the waiter hears of one, the channel is gone afterwards.
Test(ChannelSys, death_against_timeout, .timeout = 60) {
    explore("ChannelSys/death_against_timeout", 1, [] {
        Chan chan;
        {
            Thread thread([w = std::exchange(chan.w, nullptr)] { csp_writer_release(w); });
            const int result = csp_recv_until(chan.r, nullptr, soon());
            check(result == -1 || result == MC_E_TIMEDOUT, "%d", result);
            chan.release_reader();
        }
        nothing_is_left();
    });
}

// Goal: the two ends go at the same time, from two threads, with a vulture on the owner's microthread.
Test(ChannelSys, both_ends_go_at_once, .timeout = 60) {
    explore("ChannelSys/both_ends_go_at_once", 0, [] {
        Chan chan;
        {
            Thread first([w = std::exchange(chan.w, nullptr)] { csp_writer_release(w); });
            Thread second([r = std::exchange(chan.r, nullptr)] { csp_reader_release(r); });
        }
        nothing_is_left();
    });
}

// Goal: a close against a send: sent is received, and what is not received was not sent.
Test(ChannelSys, close_against_send, .timeout = 60) {
    explore("ChannelSys/close_against_send", 0, [] {
        Chan chan;
        int sent = 0, received = 0;
        {
            Thread sender([&] {
                int value = 7;
                sent = csp_send_until(chan.w, &value, far());
            });
            Thread closer([&] { check(csp_writer_close(chan.w) == 1, "closed before"); });
            received = csp_recv_until(chan.r, nullptr, far());
        }
        check(sent == received && (sent == 1 || sent == -1), "%d, %d", sent, received);
    });
}

namespace {

int drops;

// A sender, a receiver, and the owner who destroys. What was accepted is received or dropped.
void destruction(uint32_t capacity) {
    mc_chan_t chan = 0;
    drops = 0;
    const auto drop = [](void *, void *, uint64_t) { ++drops; };
    check(mc_chan_create(0, sizeof(int), capacity, drop, nullptr, &chan) == MC_OK, "not made");
    int32_t sent = 0, received = 0;
    {
        Thread sender([&] {
            const int value = 7;
            sent = mc_send_until(chan, &value, far());
        });
        Thread receiver([&] {
            int value = 0;
            received = mc_recv_until(chan, &value, far());
            check((received == MC_OK) == (value == 7), "a message without a result");
        });
        check(mc_chan_destroy(chan) == MC_OK, "not destroyed");
    }
    check(sent == MC_OK || sent == MC_E_STALE, "sent: %d", sent);
    check(received == MC_OK || received == MC_E_STALE, "received: %d", received);
    check((sent == MC_OK) == (received == MC_OK) + drops, "sent %d, received %d, dropped %d", sent, received, drops);
    nothing_is_left();
}

} // namespace

// Goal: a destruction against a sender and a receiver, by rendezvous and through a buffer.
Test(ChannelSys, destroy_against_rendezvous, .timeout = 60) {
    explore("ChannelSys/destroy_against_rendezvous", 0, [] { destruction(0); });
}
Test(ChannelSys, destroy_against_buffer, .timeout = 60) {
    explore("ChannelSys/destroy_against_buffer", 0, [] { destruction(1); });
}

// Goal: a buffer of one between two senders and the owner: both get in, in some order, and the close comes last.
Test(ChannelSys, buffer_of_one, .timeout = 60) {
    explore("ChannelSys/buffer_of_one", 0, [] {
        mc_chan_t chan = 0;
        check(mc_chan_create(0, sizeof(int), 1, nullptr, nullptr, &chan) == MC_OK, "not made");
        {
            const auto sends = [&](int value) {
                return [&, value] { check(mc_send_until(chan, &value, far()) == MC_OK, "not sent"); };
            };
            Thread first(sends(1)), second(sends(10));
            int one = 0, other = 0;
            check(mc_recv_until(chan, &one, far()) == MC_OK, "not received");
            check(mc_recv_until(chan, &other, far()) == MC_OK, "not received");
            check(one + other == 11, "%d and %d", one, other);
        }
        check(mc_recv_try(chan, nullptr) == MC_E_AGAIN, "a third message");
        check(mc_chan_destroy(chan) == MC_OK, "not destroyed");
    });
}

// Goal: longer exchanges under random schedules: two threads and a microthread send, main and a microthread receive,
// with timeouts and nowait calls between; the ledger balances.
Test(ChannelSys, exchanges, .timeout = 60) {
    expect_pass(
        {.name = "ChannelSys/exchanges",
         .search = mc::testing::Search::seeds,
         .timeouts = 3,
         .spurious = 2,
         .max_steps = 100'000,
         .seeds = uint64_t{1500} * mc::testing::scale(),
         .real_runs = 300 * mc::testing::scale()},
        [] {
            Chan chan;
            int sent[3] = {}, received = 0, values = 0;
            const auto sends = [&](int id) {
                return [&, id, w = csp_writer_addref(chan.w)] {
                    for (int i = 1; i <= 4; ++i) {
                        const int result = i % 2 == 0 ? csp_send_until(w, &i, soon()) : csp_send_until(w, &i, far());
                        sent[id] += result == 1 ? i : 0;
                    }
                    csp_writer_release(w);
                };
            };
            spawn([&] {
                for (int value = 0; csp_recv_until(chan.r, &value, far()) == 1;)
                    values += value, ++received;
            });
            {
                Thread first(sends(0)), second(sends(1));
                spawn(sends(2));
                chan.release_writer();
                for (int value = 0, result = 0; result != -1;) {
                    result = received % 2 == 0 ? csp_recv_until(chan.r, &value, soon()) : csp_try_recv(chan.r, &value);
                    if (result == 1)
                        values += value, ++received;
                    else
                        csp_yield();
                }
            }
            csp_schedule();
            check(values == sent[0] + sent[1] + sent[2], "sent %d, received %d", sent[0] + sent[1] + sent[2], values);
        });
}
