// The order in which single-processor mode runs tasks, as mc/csp.h tells it, for channels and microthreads. One queue;
// its head is in turn. order_run_test.cpp has csp_run and csp_schedule, order_model_test.cpp checks random programs.
#include "csp/test_csp.hpp"

using namespace mc::csp::testing;

namespace {

// A channel of integers with this capacity, on which a microthread waits that marks what it received with r.
mc_chan_t received_once(uint32_t capacity) {
    mc_chan_t chan = 0;
    cr_assert_eq(mc_chan_create(0, sizeof(int), capacity, nullptr, nullptr, &chan), MC_OK);
    spawn([chan] {
        int value = 0;
        cr_assert_eq(mc_recv(chan, &value), MC_OK);
        mark("r");
    });
    return chan;
}

} // namespace

// Goal: a spawned child runs at once; when it ends, the head goes on.
Test(Order, spawned_child_runs_at_once) {
    World world;
    mark("m1");
    spawn([] { mark("c"); });
    mark("m2");
    expect_trace("m1 c m2 ");
}

// Goal: a child's child runs at once too; when that one ends, the head goes on, not the child who spawned it.
Test(Order, after_an_ended_grandchild_the_head_goes_on) {
    World world;
    spawn([] {
        mark("a1");
        spawn([] { mark("b"); });
        mark("a2");
    });
    mark("m");
    csp_yield();
    expect_trace("a1 b m a2 ");
}

// Goal: the same when the one out of turn yields; who handed over has kept his place, before the one who yielded.
Test(Order, after_a_yield_out_of_turn_the_head_goes_on) {
    World world;
    spawn([] {
        mark("a1");
        spawn([] {
            mark("b1");
            csp_yield();
            mark("b2");
        });
        mark("a2");
    });
    mark("m");
    csp_yield();
    expect_trace("a1 b1 m a2 b2 ");
}

// Goal: the same when the one out of turn blocks.
Test(Order, after_a_block_out_of_turn_the_head_goes_on) {
    World world;
    Chan never;
    spawn([&] {
        mark("a1");
        spawn([&] {
            mark("b1");
            (void)never.receive();
            mark("b2");
        });
        mark("a2");
    });
    mark("m");
    csp_yield();
    expect_trace("a1 b1 m a2 ");
    never.release_writer();
    csp_yield();
    expect_trace("a1 b1 m a2 b2 ");
}

// Goal: a receiver that a sender finds runs at once, before those who are queued; then the head goes on.
Test(Order, receiver_found_by_a_sender_runs_at_once) {
    World world;
    Chan chan;
    spawn([&] {
        (void)chan.receive();
        mark("r");
    });
    spawn_at_tail([] { mark("x"); });
    mark("m1");
    cr_assert_eq(chan.send(1), 1);
    mark("m2");
    expect_trace("m1 r m2 ");
    csp_yield();
    expect_trace("m1 r m2 x ");
}

// Goal: a receiver that was handed the processor and yields has its place at the tail, where it joined.
Test(Order, who_handed_over_keeps_his_place) {
    World world;
    Chan chan;
    spawn([&] {
        (void)chan.receive();
        mark("r1");
        csp_yield();
        mark("r2");
    });
    spawn_at_tail([] { mark("x"); });
    cr_assert_eq(chan.send(1), 1);
    spawn_at_tail([] { mark("y"); });
    mark("m1");
    csp_yield();
    mark("m2");
    expect_trace("r1 m1 x r2 y m2 ");
}

// Goal: one out of turn hands over in his turn: his receiver runs at once, then the head goes on, then he, in his
// place.
Test(Order, hand_over_from_out_of_turn) {
    World world;
    Chan first, second;
    spawn([&] {
        (void)second.receive();
        mark("c");
    });
    spawn([&] {
        (void)first.receive();
        mark("b1");
        (void)second.send(1);
        mark("b2");
    });
    mark("m1");
    cr_assert_eq(first.send(1), 1);
    mark("m2");
    csp_yield();
    expect_trace("m1 b1 c m2 b2 ");
}

// Goal: a sender that a receiver finds joins the tail, and the receiver goes on.
Test(Order, sender_found_by_a_receiver_joins_the_tail) {
    World world;
    Chan chan;
    spawn([&] {
        cr_assert_eq(chan.send(5), 1);
        mark("w");
    });
    spawn_at_tail([] { mark("x"); });
    cr_assert_eq(chan.receive(), 5);
    mark("m");
    csp_yield();
    expect_trace("m x w ");
}

// Goal: mc_spawn joins the tail.
Test(Order, mc_spawn_joins_the_tail) {
    World world;
    spawn_at_tail([] { mark("a"); });
    spawn_at_tail([] { mark("b"); });
    mark("m");
    csp_yield();
    expect_trace("m a b ");
}

// Goal: yields go round, main among the others.
Test(Order, yields_go_round) {
    World world;
    for (const char *name : {"a", "b", "c"})
        spawn_at_tail([name] {
            for (int i = 0; i < 3; ++i) {
                mark(name);
                csp_yield();
            }
        });
    for (int i = 0; i < 3; ++i) {
        mark("m");
        csp_yield();
    }
    expect_trace("m a b c m a b c m a b c ");
}

// Goal: what death wakes joins the tail in the order in which it came, dead-mode waiters last; the releaser goes on.
Test(Order, death_wakes_fifo_and_dead_mode_last) {
    World world;
    Chan chan;
    const auto receiver = [&](const char *name) {
        return [&chan, name] {
            cr_assert_eq(chan.receive(), -1);
            mark(name);
        };
    };
    const auto vulture = [&](const char *name) {
        return [&chan, name] {
            const csp_chanop op = dies(chan.r);
            cr_assert_eq(csp_prialt(&op, 1, 0), -1);
            mark(name);
        };
    };
    spawn(vulture("v1"));
    spawn(receiver("r1"));
    spawn(vulture("v2"));
    spawn(receiver("r2"));
    spawn(receiver("r3"));
    spawn_at_tail([] { mark("x"); });
    chan.release_writer();
    mark("m");
    csp_yield();
    expect_trace("m x r1 r2 r3 v1 v2 ");
}

// Goal: the same for senders when the reader dies.
Test(Order, death_of_the_reader_wakes_senders_fifo) {
    World world;
    Chan chan;
    for (const char *name : {"w1", "w2", "w3"})
        spawn([&chan, name] {
            cr_assert_eq(chan.send(1), -1);
            mark(name);
        });
    spawn_at_tail([] { mark("x"); });
    chan.release_reader();
    mark("m");
    csp_yield();
    expect_trace("m x w1 w2 w3 ");
}

// Goal: a close wakes both ends; those in dead mode come last, whichever end they watch.
Test(Order, close_wakes_dead_mode_of_both_ends_last) {
    World world;
    Chan chan;
    const auto vulture = [](auto handle, const char *name) {
        return [handle, name] {
            const csp_chanop op = dies(handle);
            cr_assert_eq(csp_prialt(&op, 1, 0), -1);
            mark(name);
        };
    };
    spawn(vulture(chan.w, "vw1"));
    spawn(vulture(chan.r, "vr1"));
    for (const char *name : {"w1", "w2"})
        spawn([&chan, name] {
            cr_assert_eq(chan.send(1), -1);
            mark(name);
        });
    cr_assert_eq(csp_writer_close(chan.w), 1);
    csp_yield();
    cr_assert_eq(trace.substr(0, 6), std::string("w1 w2 "), "woke %s", trace.c_str());
}

// Goal: the same of a destruction, which ends both ends at once, with elements buffered or not.
Test(Order, destroy_wakes_dead_mode_last_in_the_order_in_which_it_came) {
    World world;
    for (uint32_t buffered : {0u, 1u}) {
        mc_chan_t chan = 0;
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        const int value = 1;
        cr_assert_eq(mc_chan_create(0, sizeof(int), 1, nullptr, nullptr, &chan), MC_OK);
        cr_assert_eq(mc_chan_writer(chan, &w), MC_OK);
        cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
        const auto vulture = [](const csp_chanop &op, const char *name) {
            return [op, name] {
                cr_assert_eq(csp_prialt(&op, 1, 0), -1);
                mark(name);
            };
        };
        spawn(vulture(dies(r), "vr1"));
        spawn(vulture(dies(w), "vw1"));
        spawn(vulture(dies(r), "vr2"));
        if (buffered != 0)
            cr_assert_eq(mc_send(chan, &value), MC_OK);
        spawn([&] {
            int mine = 2;
            cr_assert_eq(buffered != 0 ? mc_send(chan, &mine) : mc_recv(chan, &mine), MC_E_STALE);
            mark("waiter");
        });
        cr_assert_eq(mc_chan_destroy(chan), MC_OK);
        csp_yield();
        expect_trace("waiter vr1 vw1 vr2 ");
        trace.clear();
        csp_writer_release(w);
        csp_reader_release(r);
    }
}

// Goal: with nowait nothing switches: the receiver joins the tail.
Test(Order, nowait_never_switches) {
    World world;
    Chan chan;
    for (const char *name : {"r1", "r2", "r3"})
        spawn([&chan, name] {
            cr_assert_eq(chan.receive(), 7);
            mark(name);
        });
    spawn_at_tail([] { mark("x"); });
    int seven = 7;
    const csp_chanop ops[] = {disabled(), sends(chan.w, &seven)};
    cr_assert_eq(csp_try_send(chan.w, &seven), 1);
    mark("m1");
    cr_assert_eq(alt(ops, 1), 2);
    mark("m2");
    cr_assert_eq(prialt(ops, 1), 2);
    mark("m3");
    csp_yield();
    expect_trace("m1 m2 m3 x r1 r2 r3 ");
}

// Goal: MC_NOW is nowait, so it does not switch either, on channels of both kinds.
Test(Order, a_deadline_of_now_never_switches) {
    World world;
    Chan chan;
    mc_chan_t elements = 0;
    cr_assert_eq(mc_chan_create(0, sizeof(int), 0, nullptr, nullptr, &elements), MC_OK);
    for (const char *name : {"r1", "r2", "r3"})
        spawn([&chan, name] {
            cr_assert_eq(chan.receive(), 7);
            mark(name);
        });
    spawn([&] {
        int value = 0;
        cr_assert_eq(mc_recv(elements, &value), MC_OK);
        mark("e");
    });
    int seven = 7;
    const csp_chanop ops[] = {disabled(), sends(chan.w, &seven)};
    cr_assert_eq(csp_send_until(chan.w, &seven, MC_NOW), 1);
    mark("m1");
    cr_assert_eq(csp_alt_until(ops, 2, MC_NOW), 2);
    mark("m2");
    cr_assert_eq(csp_prialt_until(ops, 2, MC_NOW), 2);
    mark("m3");
    cr_assert_eq(mc_send_until(elements, &seven, MC_NOW), MC_OK);
    mark("m4");
    csp_yield();
    expect_trace("m1 m2 m3 m4 r1 r2 r3 e ");
    cr_assert_eq(mc_chan_destroy(elements), MC_OK);
}

// Goal: channels of elements without a buffer hand over in the same way.
Test(Order, channels_of_elements_hand_over) {
    World world;
    const mc_chan_t chan = received_once(0);
    int one = 1;
    mark("m1");
    cr_assert_eq(mc_send(chan, &one), MC_OK); // finds r
    mark("m2");
    csp_yield();
    expect_trace("m1 r m2 ");
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}

// Goal: who sends into a buffer switches nothing: a receiver that it finds waiting joins the tail, in an alt too.
Test(Order, senders_into_a_buffer_go_on) {
    World world;
    const mc_chan_t chan = received_once(1);
    int one = 1;
    mark("m1");
    csp_writer writer = nullptr;
    cr_assert_eq(mc_chan_writer(chan, &writer), MC_OK);
    const csp_chanop ops[] = {disabled(), {csp_wait(writer), &one}};
    cr_assert_eq(csp_alt(ops, 2, 0), 2); // finds r
    csp_writer_release(writer);
    mark("m2");
    cr_assert_eq(mc_send(chan, &one), MC_OK); // fills the buffer
    mark("m3");
    spawn([&] {
        cr_assert_eq(mc_send(chan, &one), MC_OK); // waits for space
        mark("w");
    });
    int value = 0;
    cr_assert_eq(mc_recv(chan, &value), MC_OK); // lets w's element in
    mark("m4");
    csp_yield();
    expect_trace("m1 m2 m3 m4 r w ");
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
}
