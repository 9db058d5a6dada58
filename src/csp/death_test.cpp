// Death: an end goes when its last reference goes, or when it is closed; everybody who waits on the other end is told.
#include "csp/test_csp.hpp"

#include <vector>

using namespace mc::csp::testing;

// Goal: a channel that is dead already: every operation on the other end says so, at once, and again.
Test(Death, before) {
    World world;
    for (bool writer_dies : {true, false}) {
        Chan chan;
        int message = 5;
        writer_dies ? chan.release_writer() : chan.release_reader();
        for (int round = 0; round < 2; ++round) {
            if (writer_dies) {
                cr_assert_eq(csp_recv(chan.r, &message), -1);
                cr_assert_eq(csp_try_recv(chan.r, &message), -1);
                cr_assert_eq(csp_recv_until(chan.r, &message, MC_NOW), -1);
                cr_assert_eq(csp_recv_until(chan.r, &message, MC_FOREVER), -1);
            } else {
                cr_assert_eq(csp_send(chan.w, &message), -1);
                cr_assert_eq(csp_try_send(chan.w, &message), -1);
                cr_assert_eq(csp_send_until(chan.w, &message, MC_NOW), -1);
                cr_assert_eq(csp_send_until(chan.w, &message, MC_FOREVER), -1);
            }
            const csp_chanop ready = writer_dies ? receives(chan.r, &message) : sends(chan.w, &message);
            const csp_chanop dead = writer_dies ? dies(chan.r) : dies(chan.w);
            for (const csp_chanop &op : {ready, dead})
                for (int nowait : {0, 1}) {
                    cr_assert_eq(csp_alt(&op, 1, nowait), -1);
                    cr_assert_eq(csp_prialt(&op, 1, nowait), -1);
                }
        }
        cr_assert_eq(message, 5);
    }
}

// Goal: several who wait on an end, alone and in alts, in both modes, are all told when the other end goes.
Test(Death, while_waiting) {
    World world;
    for (bool writer_dies : {true, false}) {
        Chan chan, idle;
        int told = 0, message = 5;
        for (int i = 0; i < 4; ++i) {
            spawn([&] {
                cr_assert_eq(writer_dies ? csp_recv(chan.r, &message) : csp_send(chan.w, &message), -1);
                ++told;
            });
            spawn([&] {
                const csp_chanop ops[] = {receives(idle.r, &message), disabled(),
                                          writer_dies ? receives(chan.r, &message) : sends(chan.w, &message)};
                cr_assert_eq(alt(ops), -3);
                ++told;
            });
            spawn([&] {
                const csp_chanop ops[] = {writer_dies ? dies(chan.r) : dies(chan.w), receives(idle.r, &message)};
                cr_assert_eq(prialt(ops), -1);
                ++told;
            });
        }
        writer_dies ? chan.release_writer() : chan.release_reader();
        cr_assert_eq(told, 0);
        csp_yield();
        cr_assert_eq(told, 12);
        cr_assert_eq(message, 5);
        cr_assert_eq(csp_try_send(idle.w, &message), 0); // the alts' other arms are gone
    }
}

// Goal: a channel lives as long as one reference of each end does.
Test(Death, only_with_the_last_reference) {
    World world;
    Chan chan;
    int message = 1;
    std::vector<csp_writer> more;
    for (int i = 0; i < 10; ++i)
        more.push_back(csp_writer_addref(chan.w));
    spawn([&] {
        for (int i = 0; i < 11; ++i)
            cr_assert_eq(chan.receive(), 1);
        cr_assert_eq(chan.receive(), -1);
        mark("dead");
    });
    for (csp_writer writer : more) {
        cr_assert_eq(csp_send(writer, &message), 1);
        csp_writer_release(writer);
    }
    cr_assert_eq(csp_send(chan.w, &message), 1);
    csp_yield();
    expect_trace("");
    chan.release_writer();
    csp_yield();
    expect_trace("dead ");
}

// Goal: the two ends go one after the other, in either order; the count of each follows.
Test(Death, closes_in_two_phases) {
    World world;
    for (bool writer_first : {true, false}) {
        Chan chan;
        cr_assert_eq(csp__internal__channel_count(0), 1);
        cr_assert_eq(csp__internal__channel_count(1), 1);
        writer_first ? chan.release_writer() : chan.release_reader();
        cr_assert_eq(csp__internal__channel_count(0), writer_first ? 0 : 1);
        cr_assert_eq(csp__internal__channel_count(1), writer_first ? 1 : 0);
        const csp_writer w = csp_writer_addref(chan.w); // what is left can still be counted up
        const csp_reader r = csp_reader_addref(chan.r);
        writer_first ? chan.release_reader() : chan.release_writer();
        cr_assert_eq(csp__internal__channel_count(0) + csp__internal__channel_count(1), 1);
        csp_writer_release(w);
        csp_reader_release(r);
        cr_assert_eq(csp__internal__channel_count(0) + csp__internal__channel_count(1), 0);
    }
    cr_assert_eq(csp__internal__channel_count(2), -1);
    cr_assert_eq(csp__internal__channel_count(-1), -1);
}

// Goal: csp_writer_close ends the writing end for all who hold it, waiting or not; their references stay good.
Test(Death, close) {
    World world;
    Chan chan;
    int message = 5;
    const csp_writer other = csp_writer_addref(chan.w);
    spawn([&] {
        cr_assert_eq(csp_send(other, &message), -1);
        mark("w");
    });
    spawn([&] {
        const csp_chanop ops[] = {disabled(), dies(chan.w)};
        cr_assert_eq(prialt(ops), -2);
        mark("vw");
    });
    spawn([&] {
        const csp_chanop op = dies(chan.r);
        cr_assert_eq(csp_alt(&op, 1, 0), -1);
        mark("vr");
    });
    cr_assert_eq(csp_writer_close(chan.w), 1);
    cr_assert_eq(csp__internal__channel_count(0), 0);
    cr_assert_eq(csp__internal__channel_count(1), 1);
    csp_schedule();
    cr_assert_eq(trace.size(), std::string("w vw vr ").size());
    cr_assert_eq(csp_writer_close(other), -1);
    cr_assert_eq(csp_send(other, &message), -1);
    cr_assert_eq(csp_try_send(chan.w, &message), -1);
    cr_assert_eq(chan.receive(), -1);
    csp_writer_release(csp_writer_addref(other));
    csp_writer_release(other);
    cr_assert_eq(csp_writer_close(chan.w), -1);
    chan.release_reader();
    cr_assert_eq(csp_writer_close(chan.w), -1);
}

// Goal: a close of a channel whose reader has gone is still the first close.
Test(Death, close_after_the_reader_has_gone) {
    World world;
    Chan chan;
    chan.release_reader();
    cr_assert_eq(csp_writer_close(chan.w), 1);
    cr_assert_eq(csp_writer_close(chan.w), -1);
}

// Goal: csp_writer_close of the writing end of a channel of elements: what is buffered comes first.
Test(Death, close_of_a_channel_with_a_buffer) {
    World world;
    mc_chan_t handle = 0;
    csp_writer w = nullptr;
    cr_assert_eq(mc_chan_create(0, sizeof(int), 4, nullptr, nullptr, &handle), MC_OK);
    cr_assert_eq(mc_chan_writer(handle, &w), MC_OK);
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(csp_send(w, &i), 1);
    cr_assert_eq(csp_writer_close(w), 1);
    cr_assert_eq(mc_chan_close(handle), MC_E_CLOSED);
    int value = -1;
    cr_assert_eq(csp_send(w, &value), -1);
    cr_assert_eq(mc_send(handle, &value), MC_E_CLOSED);
    for (int i = 0; i < 3; ++i) {
        cr_assert_eq(mc_recv(handle, &value), MC_OK);
        cr_assert_eq(value, i);
    }
    cr_assert_eq(mc_recv(handle, &value), MC_E_CLOSED);
    csp_writer_release(w);
    cr_assert_eq(mc_chan_destroy(handle), MC_OK);
}

// Goal: a dead-mode arm reports its own index among channels that live.
Test(Death, dead_mode_says_which) {
    World world;
    for (int at = 0; at < 20; ++at) {
        Chan chans[20];
        csp_chanop ops[20];
        for (int i = 0; i < 20; ++i)
            ops[i] = i % 2 == 0 ? dies(chans[i].r) : dies(chans[i].w);
        int result = 0;
        spawn([&] { result = at % 3 == 0 ? alt(ops) : prialt(ops); });
        at % 2 == 0 ? chans[at].release_writer() : chans[at].release_reader();
        csp_yield();
        cr_assert_eq(result, -(at + 1));
    }
}

// Goal: of channels that die one after the other before the waiter runs, the first counts; nothing is lost or done
// twice.
Test(Death, the_first_death_counts) {
    World world;
    Chan first, second, third;
    const csp_chanop ops[] = {dies(first.r), receives(second.r), dies(third.w)};
    spawn([&] {
        cr_assert_eq(alt(ops), -3);
        cr_assert_eq(prialt(ops), -1);
        mark("done");
    });
    third.release_reader();
    second.release_writer();
    first.release_writer();
    csp_yield();
    expect_trace("done ");
}

// Goal: a microthread that releases the end which another waits for, in the middle of an alt over both: a cascade.
Test(Death, cascades) {
    World world;
    constexpr int length = 200;
    std::vector<Chan> links(length);
    int ended = 0;
    for (int i = 0; i < length - 1; ++i)
        spawn([&, i] { // waits for its left neighbour to die, then dies itself
            cr_assert_eq(links[static_cast<size_t>(i)].receive(), -1);
            links[static_cast<size_t>(i)].release_reader();
            links[static_cast<size_t>(i) + 1].release_writer();
            ++ended;
        });
    links[0].release_writer();
    csp_schedule();
    cr_assert_eq(ended, length - 1);
    cr_assert_eq(links[length - 1].receive(), -1);
}

// Goal: a sender who is left without a reader while he waits keeps his message.
Test(Death, leaves_the_message_with_the_sender) {
    World world;
    Chan chan;
    spawn([&] {
        int message = 31;
        cr_assert_eq(csp_send(chan.w, &message), -1);
        cr_assert_eq(message, 31);
    });
    chan.release_reader();
    csp_yield();
}
