// tx: when it is called, with what, where it runs, what it may do and what it may not.
#include "csp/test_csp.hpp"

#include <sched.h>
#include <stdexcept>

using namespace mc::csp::testing;

namespace {

int calls = 0;
void counted(void *source, void *destination) {
    ++calls;
    copy_int(source, destination);
}

// What a tx does beside its copying, set by the test.
std::function<void()> inside;
void runs_inside(void *source, void *destination) {
    copy_int(source, destination);
    inside();
}

} // namespace

// Goal: tx runs once a transfer, whoever came first, when the receiver has a message; a null sender's message reaches
// it.
Test(Transfer, runs_once_when_the_receiver_has_a_message) {
    World world;
    Chan chan(counted);
    int value = 0;
    spawn([&] { cr_assert_eq(csp_recv(chan.r, &value), 1); });
    cr_assert_eq(chan.send(4), 1);
    cr_assert_eq(calls, 1);
    cr_assert_eq(value, 4);
    spawn([&] { cr_assert_eq(chan.send(5), 1); });
    cr_assert_eq(csp_recv(chan.r, &value), 1);
    cr_assert_eq(calls, 2);
    cr_assert_eq(value, 5);
    spawn([&] { cr_assert_eq(csp_send(chan.w, nullptr), 1); });
    cr_assert_eq(csp_recv(chan.r, &value), 1);
    cr_assert_eq(calls, 3);
    cr_assert_eq(value, from_null);
    csp_schedule();
}

// Goal: a receiver without a message takes one without tx.
Test(Transfer, a_receiver_without_a_message_takes_it_without_tx) {
    World world;
    Chan chan(counted);
    spawn([&] { cr_assert_eq(csp_recv(chan.r, nullptr), 1); });
    cr_assert_eq(chan.send(4), 1);
    spawn([&] { cr_assert_eq(chan.send(5), 1); });
    cr_assert_eq(csp_recv(chan.r, nullptr), 1);
    spawn([&] { cr_assert_eq(csp_send(chan.w, nullptr), 1); });
    const csp_chanop ops[] = {receives(chan.r)};
    cr_assert_eq(prialt(ops), 1);
    csp_schedule();
    cr_assert_eq(calls, 0);
}

// Goal: without tx messages carry nothing, and still meet.
Test(Transfer, a_channel_without_tx_carries_nothing) {
    World world;
    Chan chan(nullptr);
    int value = -5;
    spawn([&] { cr_assert_eq(csp_recv(chan.r, &value), 1); });
    cr_assert_eq(chan.send(4), 1);
    spawn([&] { cr_assert_eq(chan.send(4), 1); });
    cr_assert_eq(csp_recv(chan.r, &value), 1);
    csp_schedule();
    cr_assert_eq(value, -5);
}

// Goal: tx runs on the stack of the party that came second.
Test(Transfer, runs_on_the_stack_of_who_came_second) {
    World world;
    Chan chan(runs_inside);
    void *arrivers_stack = nullptr;
    inside = [&] { cr_assert_null(csp_off_stack(arrivers_stack)); };
    spawn([&] {
        int local = 0;
        (void)chan.receive(); // waits
        csp_yield();          // until main waits
        arrivers_stack = &local;
        (void)chan.send(2); // finds main waiting
    });
    int local = 0;
    arrivers_stack = &local;
    (void)chan.send(1);
    (void)chan.receive();
    csp_schedule();
    cr_assert_eq(world.log.count(MC_E_INVAL), 2);
    world.expected_lines = 2;
}

// Goal: inside tx nothing switches: a child and a receiver that is found join the tail, in that order; a yield does
// nothing. After tx the receiver of the message runs at once.
Test(Transfer, nothing_switches_inside) {
    World world;
    Chan chan(runs_inside), other;
    for (const char *name : {"o1", "o2", "o3"})
        spawn([&, name] {
            cr_assert_eq(other.receive(), 7);
            mark(name);
        });
    inside = [&] {
        int seven = 7;
        const csp_chanop ops[] = {sends(other.w, &seven)};
        mark("tx1");
        spawn([] { mark("child"); });
        csp_yield();
        cr_assert_eq(csp_send(other.w, &seven), 1);
        cr_assert_eq(csp_try_send(other.w, &seven), 1);
        cr_assert_eq(alt(ops), 1);
        spawn_at_tail([] { mark("spawned"); });
        csp_sleep_until(0);
        mark("tx2");
    };
    spawn([&] {
        (void)chan.receive();
        mark("r");
    });
    spawn_at_tail([] { mark("x"); });
    (void)chan.send(1);
    mark("m");
    csp_yield();
    expect_trace("tx1 tx2 r m x child o1 o2 o3 spawned ");
}

// Goal: blocking calls in tx get MC_E_CONTEXT, or log it where they cannot say so; what need not wait goes on.
Test(Transfer, may_not_block) {
    World world;
    Chan chan(runs_inside), other;
    mc_chan_t elements = 0;
    mc_task_t task = 0;
    cr_assert_eq(mc_chan_create(0, sizeof(int), 0, nullptr, nullptr, &elements), MC_OK);
    cr_assert_eq(mc_spawn(
                     0, [](void *) -> int32_t { return 3; }, nullptr, nullptr, &task),
                 MC_OK);
    inside = [&] {
        int value = 0;
        uint32_t done = 0;
        const csp_chanop ops[] = {receives(other.r, &value), dies(other.w)};
        cr_assert_eq(csp_send(other.w, &value), MC_E_CONTEXT);
        cr_assert_eq(csp_recv(other.r, &value), MC_E_CONTEXT);
        cr_assert_eq(csp_recv_until(other.r, &value, mc_after(MC_SEC)), MC_E_CONTEXT);
        cr_assert_eq(csp_recv_until(other.r, &value, MC_NOW), MC_E_TIMEDOUT);
        cr_assert_eq(csp_try_recv(other.r, &value), 0);
        cr_assert_eq(alt(ops), MC_E_CONTEXT);
        cr_assert_eq(prialt(ops), MC_E_CONTEXT);
        cr_assert_eq(prialt(ops, 1), 0);
        cr_assert_eq(csp_alt_until(ops, 2, MC_FOREVER), MC_E_CONTEXT);
        cr_assert_eq(mc_send(elements, &value), MC_E_CONTEXT);
        cr_assert_eq(mc_recv(elements, &value), MC_E_CONTEXT);
        cr_assert_eq(mc_recv_n(elements, &value, 1, &done), MC_E_CONTEXT);
        cr_assert_eq(mc_recv_try(elements, &value), MC_E_AGAIN);
        cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_E_CONTEXT);
        cr_assert_eq(mc_join(task, MC_NOW, nullptr), MC_E_TIMEDOUT);
        cr_assert_eq(world.log.total(), 0);
        csp_sleep_until(mc_after(MC_SEC));
        cr_assert_eq(world.log.count(MC_E_CONTEXT), 1);
        cr_assert_eq(csp_run(), 0);
        cr_assert_eq(world.log.count(MC_E_CONTEXT), 2);
        csp_schedule();
        cr_assert_eq(world.log.count(MC_E_CONTEXT), 3);
        mark("tx");
    };
    spawn([&] { cr_assert_eq(chan.receive(), 1); });
    cr_assert_eq(chan.send(1), 1);
    expect_trace("tx ");
    cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
    cr_assert_eq(mc_chan_destroy(elements), MC_OK);
    world.expected_lines = 3;
}

// Goal: tx may release endpoints, also the last of a channel that others wait on: they join the tail, nobody hangs.
Test(Transfer, may_release_endpoints) {
    World world;
    Chan chan(runs_inside), other, third;
    inside = [&] {
        other.release_writer();
        third.release_reader();
        third.release_writer();
        mark("tx");
    };
    spawn([&] {
        cr_assert_eq(other.receive(), -1);
        mark("o");
    });
    spawn([&] {
        cr_assert_eq(third.send(1), -1);
        mark("t");
    });
    spawn([&] { cr_assert_eq(chan.receive(), 1); });
    cr_assert_eq(chan.send(1), 1);
    mark("m");
    csp_yield();
    expect_trace("tx m o t ");
}

// Goal: tx may use the very channel that it moves a message of: no lock is held. A second transfer nests in the first.
Test(Transfer, may_use_its_own_channel) {
    World world;
    Chan chan(runs_inside);
    int depth = 0;
    for (const char *name : {"r1", "r2", "r3"})
        spawn([&, name] {
            cr_assert_gt(chan.receive(), 0);
            mark(name);
        });
    inside = [&] {
        int value = 2;
        if (++depth < 3)
            cr_assert_eq(csp_try_send(chan.w, &value), 1);
    };
    cr_assert_eq(chan.send(1), 1);
    cr_assert_eq(depth, 3);
    csp_yield();
    cr_assert_eq(trace.size(), 9u);
}

// Goal: tx may give the sender's endpoint to the receiver: channels travel through channels.
Test(Transfer, may_move_endpoints) {
    World world;
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    const auto move_writer = [](void *source, void *destination) {
        *static_cast<csp_writer *>(destination) = std::exchange(*static_cast<csp_writer *>(source), nullptr);
    };
    cr_assert_eq(csp_chan(&w, &r, move_writer), 1);
    spawn([&] {
        csp_writer reply = nullptr;
        int answer = 42;
        cr_assert_eq(csp_recv(r, &reply), 1);
        cr_assert_eq(csp_send(reply, &answer), 1);
        csp_writer_release(reply);
        csp_reader_release(r);
    });
    Chan reply;
    cr_assert_eq(csp_send(w, &reply.w), 1);
    cr_assert_null(reply.w);
    cr_assert_eq(reply.receive(), 42);
    cr_assert_eq(reply.receive(), -1);
    csp_writer_release(w);
}

// Goal: an exception that leaves tx is logged; the message counts as transferred on both sides, and all goes on.
Test(Transfer, an_exception_counts_as_transferred) {
    World world;
    Chan chan(runs_inside);
    for (int i = 0; i < 4; ++i) {
        inside = [i] { i % 2 == 0 ? throw std::runtime_error("planted") : throw i; };
        int value = 0;
        const csp_chanop ops[] = {disabled(), receives(chan.r, &value)};
        spawn([&] { cr_assert_eq(i < 2 ? csp_recv(chan.r, &value) : alt(ops) - 1, 1); });
        cr_assert_eq(chan.send(8), 1);
        cr_assert_eq(value, 8);
        spawn([&] { cr_assert_eq(chan.send(9), 1); });
        cr_assert_eq(i < 2 ? csp_recv(chan.r, &value) : alt(ops) - 1, 1);
        cr_assert_eq(value, 9);
        csp_schedule();
        world.expected_lines += 2;
        cr_assert_eq(world.log.count(MC_E_CRASHED), world.expected_lines);
    }
    inside = [] {};
    spawn([&] { cr_assert_eq(chan.receive(), 1); }); // blocking is allowed again
    cr_assert_eq(chan.send(1), 1);
}

// Goal: tx of a transfer between threads runs in the thread that came second.
Test(Transfer, runs_in_the_thread_that_came_second, .timeout = 20) {
    World world;
    Chan chan(runs_inside);
    const pthread_t owner = pthread_self();
    inside = [&] { mark(pthread_equal(pthread_self(), owner) ? "owner" : "thread"); };
    const auto send_to_one_who_waits = [&](int value) { // which is what makes the sender the second
        int code = 0;
        while ((code = csp_try_send(chan.w, &value)) == 0)
            sched_yield();
        cr_assert_eq(code, 1);
    };
    PosixThread thread([&] {
        send_to_one_who_waits(1);
        cr_assert_eq(chan.receive(), 2);
    });
    cr_assert_eq(chan.receive(), 1);
    send_to_one_who_waits(2);
    thread.join();
    expect_trace("thread owner ");
}
