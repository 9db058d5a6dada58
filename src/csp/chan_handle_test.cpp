// Channels of elements: handles that are stale, random or of another kind; destruction while others wait; their csp
// endpoints, alone and beside csp channels in one alt.
#include "csp/test_csp.hpp"

#include <algorithm>
#include <vector>

using namespace mc::csp::testing;

namespace {

mc_chan_t make(uint32_t capacity) {
    mc_chan_t chan = 0;
    cr_assert_eq(mc_chan_create(0, sizeof(int), capacity, nullptr, nullptr, &chan), MC_OK);
    return chan;
}

// Every call that takes a handle says MC_E_STALE, and writes nothing.
void expect_stale(mc_chan_t chan) {
    int value = -5;
    uint32_t done = 99;
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    cr_assert_eq(mc_send(chan, &value), MC_E_STALE, "handle %llx", static_cast<unsigned long long>(chan));
    cr_assert_eq(mc_recv(chan, &value), MC_E_STALE);
    cr_assert_eq(mc_send_try(chan, &value), MC_E_STALE);
    cr_assert_eq(mc_recv_try(chan, &value), MC_E_STALE);
    cr_assert_eq(mc_recv_try(chan, nullptr), MC_E_STALE);
    cr_assert_eq(mc_send_until(chan, &value, MC_FOREVER), MC_E_STALE);
    cr_assert_eq(mc_recv_until(chan, &value, MC_NOW), MC_E_STALE);
    cr_assert_eq(mc_send_n(chan, &value, 1, &done), MC_E_STALE);
    cr_assert_eq(mc_recv_n(chan, &value, 1, &done), MC_E_STALE);
    cr_assert_eq(mc_chan_close(chan), MC_E_STALE);
    cr_assert_eq(mc_chan_destroy(chan), MC_E_STALE);
    cr_assert_eq(mc_chan_writer(chan, &w), MC_E_STALE);
    cr_assert_eq(mc_chan_reader(chan, &r), MC_E_STALE);
    cr_assert(value == -5 && done == 99 && w == nullptr && r == nullptr);
}

} // namespace

// Goal: 0, near misses of a good handle, and a task's handle are stale.
Test(ChanHandle, of_nothing) {
    World world;
    const mc_chan_t chan = make(1);
    mc_task_t task = 0;
    cr_assert_eq(mc_spawn(
                     0, [](void *) -> int32_t { return 0; }, nullptr, nullptr, &task),
                 MC_OK);
    expect_stale(0);
    expect_stale(task);
    for (int bit = 0; bit < 64; ++bit)
        expect_stale(chan ^ (UINT64_C(1) << bit));
    cr_assert_eq(mc_join(chan, MC_NOW, nullptr), MC_E_STALE);
    cr_assert_eq(mc_detach(chan), MC_E_STALE);
    cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
    cr_assert_eq(mc_chan_close(chan), MC_OK); // nothing happened to it
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: random words find nothing.
Test(ChanHandle, random) {
    World world;
    std::vector<mc_chan_t> chans;
    for (int i = 0; i < 100; ++i)
        chans.push_back(make(1));
    for (int i = 0; i < 100'000; ++i) {
        const mc_chan_t word = mc_random() >> (i % 50);
        if (i % 1000 == 0) {
            expect_stale(word);
            if (const mc_chan_t other = (word << 32) | (chans[0] & 0xffff'ffff); other != chans[0])
                expect_stale(other);
        }
        cr_assert_eq(mc_recv_try(word, nullptr), MC_E_STALE);
        const mc_chan_t near = (word << 32) | (chans[0] & 0xf000'0000) | (word & 0xff);
        if (std::find(chans.begin(), chans.end(), near) == chans.end()) // a small word can be one of them
            cr_assert_eq(mc_chan_destroy(near), MC_E_STALE);
    }
    for (mc_chan_t chan : chans)
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: a destroyed handle is stale for good, also when its slot is in use again.
Test(ChanHandle, destroyed) {
    World world;
    const int count = mc_sim_active() != 0 ? 1'000 : 10'000;
    std::vector<mc_chan_t> old;
    for (int i = 0; i < count; ++i) {
        const mc_chan_t chan = make(0);
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
        if (i % 100 == 0)
            old.push_back(chan);
    }
    std::vector<mc_chan_t> live;
    for (int i = 0; i < count; ++i)
        live.push_back(make(0));
    for (mc_chan_t chan : old)
        expect_stale(chan);
    for (mc_chan_t chan : live)
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: a destruction wakes everybody who waits by handle with MC_E_STALE, and with "dead" who waits through endpoints.
Test(ChanHandle, destroy_wakes_who_waits) {
    World world;
    const mc_chan_t full = make(1), empty = make(0);
    int value = 1;
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    cr_assert_eq(mc_send(full, &value), MC_OK);
    cr_assert_eq(mc_chan_writer(full, &w), MC_OK);
    cr_assert_eq(mc_chan_reader(empty, &r), MC_OK);
    for (int i = 0; i < 3; ++i) {
        spawn([&] { cr_assert_eq(mc_send(full, &value), MC_E_STALE); });
        spawn([&] { cr_assert_eq(mc_recv(empty, &value), MC_E_STALE); });
        spawn([&] { cr_assert_eq(mc_recv(empty, nullptr), MC_E_STALE); });
        spawn([&] { cr_assert_eq(mc_recv_until(empty, &value, mc_after(3600 * MC_SEC)), MC_E_STALE); });
        spawn([&] { cr_assert_eq(csp_send(w, &value), -1); });
        spawn([&] {
            const csp_chanop ops[] = {receives(r, &value), dies(r)};
            cr_assert_eq(prialt(ops), -1);
        });
        spawn([&] {
            const csp_chanop op = dies(w);
            cr_assert_eq(csp_alt(&op, 1, 0), -1);
        });
    }
    cr_assert_eq(mc_chan_destroy(full), MC_OK);
    cr_assert_eq(mc_chan_destroy(empty), MC_OK);
    expect_stale(full);
    csp_schedule();
    cr_assert_eq(csp_send(w, &value), -1);
    cr_assert_eq(csp_recv(r, &value), -1);
    csp_writer_release(w);
    csp_reader_release(r);
}

// Goal: mc_send_n and mc_recv_n that a destruction interrupts: what went is told, and the next call is stale.
Test(ChanHandle, destroy_interrupts_several) {
    World world;
    const mc_chan_t chan = make(2);
    spawn([&] {
        const int out[4] = {};
        uint32_t sent = 0;
        cr_assert_eq(mc_send_n(chan, out, 4, &sent), MC_OK);
        cr_assert_eq(sent, 2u);
        cr_assert_eq(mc_send_n(chan, out, 4, &sent), MC_E_STALE);
    });
    const mc_chan_t other = make(0);
    spawn([&] {
        int in[4];
        uint32_t received = 99;
        cr_assert_eq(mc_recv_n(other, in, 4, &received), MC_E_STALE);
        cr_assert_eq(received, 99u);
    });
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    cr_assert_eq(mc_chan_destroy(other), MC_OK);
    csp_schedule();
}

// Goal: endpoints of a closed channel: no new writer, but a reader for what is buffered.
Test(ChanHandle, endpoints_of_a_closed_channel) {
    World world;
    const mc_chan_t chan = make(1);
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    int value = 4;
    cr_assert_eq(mc_chan_writer(chan, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_chan_reader(chan, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_send(chan, &value), MC_OK);
    cr_assert_eq(mc_chan_close(chan), MC_OK);
    cr_assert_eq(mc_chan_writer(chan, &w), MC_E_CLOSED);
    cr_assert_null(w);
    cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
    cr_assert_eq(csp_recv(r, &value), 1);
    cr_assert_eq(csp_recv(r, &value), -1);
    csp_reader_release(r);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: references given by mc_chan_writer and mc_chan_reader are the caller's: releasing all of them closes nothing
// while the handle lives; the handle's own count as both sides alive.
Test(ChanHandle, releasing_endpoints_leaves_the_handle_open) {
    World world;
    const mc_chan_t chan = make(1);
    int value = 6;
    for (int i = 0; i < 10; ++i) {
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        cr_assert_eq(mc_chan_writer(chan, &w), MC_OK);
        cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
        cr_assert_eq(csp_send(csp_writer_addref(w), &value), 1);
        cr_assert_eq(csp_recv(csp_reader_addref(r), &value), 1);
        for (int twice = 0; twice < 2; ++twice) {
            csp_writer_release(w);
            csp_reader_release(r);
        }
        cr_assert_eq(csp__internal__channel_count(0), 1);
        cr_assert_eq(csp__internal__channel_count(1), 1);
    }
    cr_assert_eq(mc_send_try(chan, &value), MC_OK);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: a slot serves no other channel before the last call on the destroyed one has returned, however many are made.
Test(ChanHandle, a_call_under_way_keeps_the_slot) {
    World world;
    const auto slot = [](mc_chan_t chan) { return chan & 0x0fffffff; };
    const mc_chan_t chan = make(0);
    int value = 0;
    spawn([&] { cr_assert_eq(mc_recv(chan, &value), MC_E_STALE); });
    cr_assert_eq(mc_chan_destroy(chan), MC_OK); // the waiter is woken, but has not run
    for (int i = 0; i < 5000; ++i) {            // more than the quarantine holds
        const mc_chan_t other = make(0);
        cr_assert_neq(slot(other), slot(chan));
        cr_assert_eq(mc_chan_destroy(other), MC_OK);
    }
    csp_schedule();
    bool reused = false;
    for (int i = 0; i < 10000 && !reused; ++i) {
        const mc_chan_t other = make(0);
        reused = slot(other) == slot(chan);
        cr_assert_eq(mc_chan_destroy(other), MC_OK);
    }
    cr_assert(reused, "the slot is lost");
}

// Goal: a waiter in a destroyed channel outlives the handle; the memory goes with the last endpoint, in any order.
Test(ChanHandle, endpoints_outlive_the_handle) {
    World world;
    for (int order = 0; order < 2; ++order) {
        const mc_chan_t chan = make(2);
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        int value = 4;
        cr_assert_eq(mc_chan_writer(chan, &w), MC_OK);
        cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
        cr_assert_eq(csp_send(w, &value), 1);
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
        cr_assert_eq(csp_writer_addref(w), w);
        csp_writer_release(w);
        cr_assert_eq(csp_writer_close(w), -1);
        const csp_chanop ops[] = {receives(r, &value), sends(w, &value)};
        cr_assert_eq(prialt(ops), -1);
        order == 0 ? csp_writer_release(w) : csp_reader_release(r);
        order == 0 ? csp_reader_release(r) : csp_writer_release(w);
    }
}

// Goal: one alt takes both kinds of channel, as sender and as receiver, ready, waiting and dying.
Test(ChanHandle, both_kinds_in_one_alt) {
    World world;
    for (uint32_t capacity : {0u, 1u}) {
        const mc_chan_t chan = make(capacity);
        Chan plain;
        csp_reader r = nullptr;
        csp_writer w = nullptr;
        cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
        cr_assert_eq(mc_chan_writer(chan, &w), MC_OK);
        int got = 0, got_plain = 0, message = 3;
        const csp_chanop ins[] = {receives(plain.r, &got_plain), receives(r, &got)};
        spawn([&] { cr_assert_eq(alt(ins), 2); });
        cr_assert_eq(mc_send(chan, &message), MC_OK);
        cr_assert_eq(std::exchange(got, 0), 3);
        spawn([&] { cr_assert_eq(alt(ins), 1); });
        cr_assert_eq(csp_send(plain.w, &message), 1);
        cr_assert_eq(std::exchange(got_plain, 0), 3);
        spawn([&] { cr_assert_eq(mc_send(chan, &message), MC_OK); });
        cr_assert_eq(prialt(ins), 2);
        cr_assert_eq(std::exchange(got, 0), 3);
        csp_schedule();
        const csp_chanop outs[] = {sends(plain.w, &message), sends(w, &message)};
        cr_assert_eq(prialt(outs, 1), capacity == 0 ? 0 : 2);
        spawn([&] { cr_assert_eq(prialt(outs), 2); });
        for (uint32_t i = 0; i <= capacity; ++i)
            cr_assert_eq(mc_recv(chan, &got), MC_OK);
        csp_schedule();
        spawn([&] { cr_assert_eq(alt(ins), -2); });
        cr_assert_eq(mc_chan_close(chan), MC_OK);
        csp_schedule();
        csp_reader_release(r);
        csp_writer_release(w);
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    }
}

// Goal: channels that are destroyed by a microthread while threads wait on them, over and over.
Test(ChanHandle, destroy_wakes_waiting_threads, .timeout = 30) {
    World world;
    Chan rounds;
    static mc_chan_t chan;
    const int count = 100 * static_cast<int>(mc::testing::scale());
    for (int round = 0; round < count; ++round) {
        chan = make(0);
        const auto waits = [&](bool sends_one) {
            return [&, sends_one] {
                int value = 1;
                const int32_t status = sends_one ? mc_send(chan, &value) : mc_recv(chan, &value);
                cr_assert(status == MC_E_STALE || status == MC_OK, "%d", status);
                cr_assert_eq(rounds.send(status == MC_OK), 1);
            };
        };
        PosixThread first(waits(false)), second(waits(round % 2 == 0));
        if (round % 3 == 0)
            csp_sleep_until(mc_after(round * 10'000));
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
        const int done = rounds.receive() + rounds.receive();
        cr_assert(done == 0 || done == 2, "one sent or received alone");
    }
}
