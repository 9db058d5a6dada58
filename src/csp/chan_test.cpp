// Channels of elements: sizes, order, back-pressure, what each call answers. chan_drop_test.cpp has what becomes of
// elements that nobody receives, chan_handle_test.cpp handles, destruction and endpoints.
#include "csp/test_csp.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace mc::csp::testing;

namespace {

mc_chan_t make(uint32_t size, uint32_t capacity) {
    mc_chan_t chan = 0;
    cr_assert_eq(mc_chan_create(0, size, capacity, nullptr, nullptr, &chan), MC_OK);
    cr_assert_neq(chan, 0u);
    return chan;
}

// An element of any size whose bytes follow from a number.
std::vector<unsigned char> element(uint32_t size, int number) {
    std::vector<unsigned char> bytes(size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<unsigned char>((static_cast<size_t>(number) * 31 + i * 7) >> (i % 3));
    return bytes;
}

} // namespace

// Goal: elements of every size come out as they went in, in order, through buffers of several sizes and by rendezvous.
Test(Elements, every_size_and_capacity) {
    World world;
    const int count = mc_sim_active() != 0 ? 8 : 30; // more than there is room for
    for (uint32_t size : {0u, 1u, 3u, 8u, 24u, 4096u, 65'536u})
        for (uint32_t capacity : {0u, 1u, 4u, 7u}) {
            const mc_chan_t chan = make(size, capacity);
            spawn([=] {
                for (int i = 0; i < count; ++i) {
                    const auto out = element(size, i);
                    cr_assert_eq(mc_send(chan, size == 0 ? nullptr : out.data()), MC_OK);
                }
            });
            auto in = element(size, -1);
            for (int i = 0; i < count; ++i) {
                cr_assert_eq(mc_recv(chan, size == 0 ? nullptr : in.data()), MC_OK);
                cr_assert(in == element(size, i), "element %d of %u bytes, capacity %u", i, size, capacity);
            }
            csp_schedule();
            cr_assert_eq(mc_recv_try(chan, in.data()), MC_E_AGAIN);
            cr_assert_eq(mc_chan_destroy(chan), MC_OK);
        }
}

// Goal: no byte beyond an element is read or written (sanitizers watch the vectors' ends).
Test(Elements, only_their_bytes_move) {
    World world;
    for (uint32_t size : {1u, 8u, 24u}) {
        const mc_chan_t chan = make(size, 2);
        auto out = element(size, 1);
        std::vector<unsigned char> in(size + 2, 0xEE);
        cr_assert_eq(mc_send(chan, out.data()), MC_OK);
        std::fill(out.begin(), out.end(), 0); // it was copied
        cr_assert_eq(mc_recv(chan, in.data() + 1), MC_OK);
        cr_assert(in.front() == 0xEE && in.back() == 0xEE);
        cr_assert(std::equal(in.begin() + 1, in.end() - 1, element(size, 1).begin()));
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    }
}

// Goal: what a creation refuses: sizes out of range, no place for the handle, a runtime that does not exist.
Test(Elements, creation_refuses) {
    World world;
    mc_chan_t chan = 77;
    cr_assert_eq(mc_chan_create(0, MC_CHAN_ELEM_MAX + 1, 1, nullptr, nullptr, &chan), MC_E_INVAL);
    cr_assert_eq(mc_chan_create(0, UINT32_MAX, 0, nullptr, nullptr, &chan), MC_E_INVAL);
    cr_assert_eq(mc_chan_create(0, 8, MC_CHAN_CAPACITY_MAX + 1, nullptr, nullptr, &chan), MC_E_INVAL);
    cr_assert_eq(mc_chan_create(0, 8, 1, nullptr, nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_chan_create(12345, 8, 1, nullptr, nullptr, &chan), MC_E_STALE);
    cr_assert_eq(chan, 77u);
    const mc_chan_t largest = make(0, MC_CHAN_CAPACITY_MAX);
    cr_assert_eq(mc_send(largest, nullptr), MC_OK);
    cr_assert_eq(mc_chan_destroy(largest), MC_OK);
}

// Goal: capacity is what can be sent without a receiver, no more and no less; _try says MC_E_AGAIN then, and when
// empty.
Test(Elements, capacity_is_exact) {
    World world;
    for (int capacity : {0, 1, 4, 100}) {
        const mc_chan_t chan = make(sizeof(int), static_cast<uint32_t>(capacity));
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < capacity; ++i)
                cr_assert_eq(mc_send_try(chan, &i), MC_OK);
            int value = -5;
            cr_assert_eq(mc_send_try(chan, &value), MC_E_AGAIN);
            cr_assert_eq(mc_send_until(chan, &value, MC_NOW), MC_E_TIMEDOUT);
            cr_assert_eq(mc_send_until(chan, &value, mc_after(MC_MS)), MC_E_TIMEDOUT);
            for (int i = 0; i < capacity; ++i) {
                cr_assert_eq(mc_recv_try(chan, &value), MC_OK);
                cr_assert_eq(value, i);
            }
            value = -5;
            cr_assert_eq(mc_recv_try(chan, &value), MC_E_AGAIN);
            cr_assert_eq(mc_recv_until(chan, &value, MC_NOW), MC_E_TIMEDOUT);
            cr_assert_eq(mc_recv_until(chan, &value, mc_after(MC_MS)), MC_E_TIMEDOUT);
            cr_assert_eq(value, -5);
        }
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    }
}

// Goal: senders who wait for space get in in their order, one for each element taken, and none overtakes them.
Test(Elements, waiting_senders_get_in_in_order) {
    World world;
    const mc_chan_t chan = make(sizeof(int), 2);
    for (int i = 0; i < 8; ++i)
        spawn([=] {
            cr_assert_eq(mc_send(chan, &i), MC_OK);
            mark(std::to_string(i));
        });
    expect_trace("0 1 ");
    int value = 0;
    cr_assert_eq(mc_recv(chan, &value), MC_OK); // lets 2 in
    cr_assert_eq(value, 0);
    const int late = 8;
    cr_assert_eq(mc_send_try(chan, &late), MC_E_AGAIN); // it is full again
    csp_yield();
    expect_trace("0 1 2 ");
    for (int i = 1; i < 8; ++i) {
        cr_assert_eq(mc_recv_try(chan, &value), MC_OK);
        cr_assert_eq(value, i);
    }
    csp_yield();
    expect_trace("0 1 2 3 4 5 6 7 ");
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: waiting receivers are served in their order.
Test(Elements, waiting_receivers_are_served_in_order) {
    World world;
    const mc_chan_t chan = make(sizeof(int), 3);
    for (int i = 0; i < 6; ++i)
        spawn([=] {
            int value = 0;
            cr_assert_eq(mc_recv(chan, &value), MC_OK);
            cr_assert_eq(value, i);
        });
    for (int i = 0; i < 6; ++i)
        cr_assert_eq(mc_send_try(chan, &i), MC_OK);
    int value = 0;
    cr_assert_eq(mc_recv_try(chan, &value), MC_E_AGAIN);
    csp_schedule();
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: after a close senders get MC_E_CLOSED, receivers what is buffered first; a second close says so; dead-mode arms
// fire when the buffer is drained, not before.
Test(Elements, close_with_elements_buffered) {
    World world;
    const mc_chan_t chan = make(sizeof(int), 4);
    csp_reader reader = nullptr;
    cr_assert_eq(mc_chan_reader(chan, &reader), MC_OK);
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(mc_send(chan, &i), MC_OK);
    spawn([&] {
        const csp_chanop op = dies(reader);
        cr_assert_eq(csp_alt(&op, 1, 0), -1);
        mark("drained");
    });
    cr_assert_eq(mc_chan_close(chan), MC_OK);
    cr_assert_eq(mc_chan_close(chan), MC_E_CLOSED);
    int value = 9;
    uint32_t sent = 99;
    cr_assert_eq(mc_send(chan, &value), MC_E_CLOSED);
    cr_assert_eq(mc_send_try(chan, &value), MC_E_CLOSED);
    cr_assert_eq(mc_send_until(chan, &value, MC_NOW), MC_E_CLOSED);
    cr_assert_eq(mc_send_n(chan, &value, 1, &sent), MC_E_CLOSED);
    cr_assert_eq(sent, 99u);
    const csp_chanop dead = dies(reader);
    for (int i = 0; i < 3; ++i) {
        csp_yield();
        expect_trace("");
        cr_assert_eq(csp_prialt(&dead, 1, 1), 0);
        cr_assert_eq(i == 1 ? mc_recv_try(chan, &value) : mc_recv(chan, &value), MC_OK);
        cr_assert_eq(value, i);
    }
    csp_yield();
    expect_trace("drained ");
    cr_assert_eq(csp_prialt(&dead, 1, 1), -1);
    cr_assert_eq(mc_recv(chan, &value), MC_E_CLOSED);
    cr_assert_eq(mc_recv_try(chan, &value), MC_E_CLOSED);
    cr_assert_eq(mc_recv_until(chan, &value, MC_NOW), MC_E_CLOSED);
    cr_assert_eq(csp_recv(reader, &value), -1);
    csp_reader_release(reader);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: a close wakes those who wait to send (their element stays theirs) and those who wait to receive.
Test(Elements, close_wakes_who_waits) {
    World world;
    const mc_chan_t full = make(sizeof(int), 1), empty = make(sizeof(int), 0);
    int value = 7;
    cr_assert_eq(mc_send(full, &value), MC_OK);
    for (int i = 0; i < 3; ++i) {
        spawn([&] {
            int mine = 8;
            cr_assert_eq(mc_send(full, &mine), MC_E_CLOSED);
            cr_assert_eq(mine, 8);
        });
        spawn([&] { cr_assert_eq(mc_send_until(full, &value, mc_after(3600 * MC_SEC)), MC_E_CLOSED); });
        spawn([&] {
            int got = -5;
            cr_assert_eq(mc_recv(empty, &got), MC_E_CLOSED);
            cr_assert_eq(got, -5);
        });
    }
    cr_assert_eq(mc_chan_close(full), MC_OK);
    cr_assert_eq(mc_chan_close(empty), MC_OK);
    csp_schedule();
    cr_assert_eq(mc_recv(full, &value), MC_OK);
    cr_assert_eq(value, 7);
    cr_assert_eq(mc_recv(full, &value), MC_E_CLOSED);
    cr_assert_eq(mc_chan_destroy(full), MC_OK);
    cr_assert_eq(mc_chan_destroy(empty), MC_OK);
}

// Goal: NULL where an element is needed is MC_E_INVAL; where elements have no bytes it is none.
Test(Elements, null_elements) {
    World world;
    const mc_chan_t chan = make(sizeof(int), 2), empty = make(0, 2);
    uint32_t done = 99;
    cr_assert_eq(mc_send(chan, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_send_try(chan, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_send_until(chan, nullptr, MC_NOW), MC_E_INVAL);
    cr_assert_eq(mc_send_n(chan, nullptr, 2, &done), MC_E_INVAL);
    cr_assert_eq(mc_send_n(chan, &done, 1, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_recv_n(chan, nullptr, 2, &done), MC_E_INVAL);
    cr_assert_eq(mc_recv_n(chan, &done, 0, &done), MC_E_INVAL);
    cr_assert_eq(mc_recv_n(chan, &done, 1, nullptr), MC_E_INVAL);
    cr_assert_eq(done, 99u);
    cr_assert_eq(mc_recv_try(chan, nullptr), MC_E_AGAIN);
    cr_assert_eq(mc_send_n(empty, nullptr, 2, &done), MC_OK);
    cr_assert_eq(std::exchange(done, 99u), 2u);
    cr_assert_eq(mc_recv_n(empty, nullptr, 9, &done), MC_OK);
    cr_assert_eq(done, 2u);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    cr_assert_eq(mc_chan_destroy(empty), MC_OK);
}

// Goal: mc_send_n and mc_recv_n: all of it across waits; what is there, without waiting for more; what went before a
// close.
Test(Elements, several_at_once) {
    World world;
    for (uint32_t capacity : {0u, 1u, 3u, 64u}) {
        const mc_chan_t chan = make(sizeof(int), capacity);
        std::vector<int> out(50);
        for (int i = 0; i < 50; ++i)
            out[static_cast<size_t>(i)] = i;
        spawn([&] {
            uint32_t sent = 0;
            cr_assert_eq(mc_send_n(chan, out.data(), 50, &sent), MC_OK);
            cr_assert_eq(sent, 50u);
            cr_assert_eq(mc_send_n(chan, out.data(), 0, &sent), MC_OK);
            cr_assert_eq(sent, 0u);
            cr_assert_eq(mc_chan_close(chan), MC_OK);
        });
        std::vector<int> in;
        for (;;) {
            int some[8];
            uint32_t received = 99;
            const int32_t status = mc_recv_n(chan, some, 8, &received);
            if (status == MC_E_CLOSED) {
                cr_assert_eq(received, 99u);
                break;
            }
            cr_assert_eq(status, MC_OK);
            cr_assert(received >= 1 && received <= 8);
            in.insert(in.end(), some, some + received);
        }
        cr_assert(in == out, "capacity %u", capacity);
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    }
}

// Goal: mc_recv_n takes what is buffered and what senders hold ready, but does not wait for more.
Test(Elements, receiving_several_does_not_wait_for_more) {
    World world;
    const mc_chan_t chan = make(sizeof(int), 2);
    for (int i = 0; i < 5; ++i)
        spawn([=] { cr_assert_eq(mc_send(chan, &i), MC_OK); });
    int in[9];
    uint32_t received = 0;
    cr_assert_eq(mc_recv_n(chan, in, 9, &received), MC_OK);
    cr_assert_eq(received, 5u);
    for (int i = 0; i < 5; ++i)
        cr_assert_eq(in[i], i);
    csp_schedule();
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: a close in the middle of mc_send_n: it says how many went, and the next call why.
Test(Elements, sending_several_is_cut_short_by_a_close) {
    World world;
    const mc_chan_t chan = make(sizeof(int), 3);
    spawn([&] {
        const int out[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        uint32_t sent = 0;
        cr_assert_eq(mc_send_n(chan, out, 8, &sent), MC_OK); // waits with its fifth
        cr_assert_eq(sent, 4u);
        cr_assert_eq(mc_send_n(chan, out + sent, 8 - sent, &sent), MC_E_CLOSED);
        cr_assert_eq(sent, 4u);
        mark("cut");
    });
    int value = -1;
    cr_assert_eq(mc_recv(chan, &value), MC_OK);
    csp_yield();
    expect_trace("");
    cr_assert_eq(mc_chan_close(chan), MC_OK);
    csp_yield();
    expect_trace("cut ");
    for (int i = 1; i < 4; ++i) {
        cr_assert_eq(mc_recv(chan, &value), MC_OK);
        cr_assert_eq(value, i);
    }
    cr_assert_eq(mc_recv(chan, &value), MC_E_CLOSED);
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}
