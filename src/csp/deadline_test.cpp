// The _until forms: deadlines that have passed, that come, that never come; and the race between a deadline and a peer.
#include "csp/test_csp.hpp"

#include <algorithm>

using namespace mc::csp::testing;

namespace {

constexpr int64_t past[] = {MC_NOW, MC_NOW + 1, -1, 0, 1};

} // namespace

// Goal: a deadline that has passed: what can go goes, what is dead is dead, all else is MC_E_TIMEDOUT at once.
Test(Deadline, has_passed) {
    World world;
    Chan chan, dead;
    dead.release_writer();
    int value = -5, message = 3;
    for (const int64_t deadline : past) {
        const csp_chanop ops[] = {receives(chan.r, &value), disabled()};
        cr_assert_eq(csp_recv_until(chan.r, &value, deadline), MC_E_TIMEDOUT);
        cr_assert_eq(csp_send_until(chan.w, &message, deadline), MC_E_TIMEDOUT);
        cr_assert_eq(csp_alt_until(ops, 2, deadline), MC_E_TIMEDOUT);
        cr_assert_eq(csp_prialt_until(ops, 2, deadline), MC_E_TIMEDOUT);
        cr_assert_eq(csp_recv_until(dead.r, &value, deadline), -1);
        cr_assert_eq(value, -5);
        spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
        cr_assert_eq(csp_recv_until(chan.r, &value, deadline), 1);
        cr_assert_eq(std::exchange(value, -5), 3);
        spawn([&] { cr_assert_eq(csp_recv(chan.r, &value), 1); });
        cr_assert_eq(csp_send_until(chan.w, &message, deadline), 1);
        csp_schedule();
        cr_assert_eq(std::exchange(value, -5), 3);
    }
}

// Goal: a deadline that comes ends the wait, not before it has come; nobody is left waiting. On main, which others do
// not keep from sleeping, and on microthreads.
Test(Deadline, comes) {
    World world;
    Chan chan, other;
    const auto times_out = [&] {
        int value = -5;
        const csp_chanop ops[] = {receives(chan.r, &value), sends(other.w, &value), dies(chan.r)};
        const int64_t deadline = mc_after(10 * MC_MS);
        cr_assert_eq(csp_alt_until(ops, 3, deadline), MC_E_TIMEDOUT);
        cr_assert_geq(mc_now(), deadline);
        const int64_t second = mc_after(5 * MC_MS);
        cr_assert_eq(csp_recv_until(chan.r, &value, second), MC_E_TIMEDOUT);
        cr_assert_geq(mc_now(), second);
        cr_assert_eq(csp_send_until(other.w, &value, second + 5 * MC_MS), MC_E_TIMEDOUT);
        cr_assert_geq(mc_now(), second + 5 * MC_MS);
        cr_assert_eq(value, -5);
    };
    for (int i = 0; i < 3; ++i)
        spawn(times_out);
    times_out();
    csp_schedule();
    int value = 1;
    cr_assert_eq(csp_try_send(chan.w, &value), 0);
    cr_assert_eq(csp_try_recv(other.r, &value), 0);
}

// Goal: a peer that comes first ends the wait; the timer is gone with it, so nothing is pending.
Test(Deadline, a_peer_comes_first) {
    World world;
    Chan chan;
    int value = 0, message = 6;
    for (int i = 0; i < 100; ++i) {
        const csp_chanop ops[] = {disabled(), receives(chan.r, &value)};
        spawn([&] { cr_assert_eq(csp_recv_until(chan.r, &value, mc_after(3600 * MC_SEC)), 1); });
        cr_assert_eq(csp_send(chan.w, &message), 1);
        spawn([&] { cr_assert_eq(csp_alt_until(ops, 2, mc_after(3600 * MC_SEC)), 2); });
        cr_assert_eq(csp_send(chan.w, &message), 1);
        spawn([&] { cr_assert_eq(csp_send_until(chan.w, &message, mc_after(3600 * MC_SEC)), 1); });
        cr_assert_eq(chan.receive(), 6);
    }
    cr_assert_eq(csp_run(), 0);
}

// Goal: a death that comes first is told as such.
Test(Deadline, a_death_comes_first) {
    World world;
    Chan chan, idle;
    const csp_chanop ops[] = {sends(idle.w), receives(chan.r)};
    spawn([&] { cr_assert_eq(csp_alt_until(ops, 2, mc_after(3600 * MC_SEC)), -2); });
    spawn([&] { cr_assert_eq(csp_recv_until(chan.r, nullptr, mc_after(3600 * MC_SEC)), -1); });
    chan.release_writer();
    csp_schedule();
}

// Goal: MC_FOREVER, and what is too far to add up, is no deadline.
Test(Deadline, never_comes) {
    World world;
    Chan chan;
    int value = 0, message = 6;
    for (const int64_t deadline : {MC_FOREVER, MC_FOREVER - 1, mc_after(MC_FOREVER), mc_after(MC_FOREVER - 5)}) {
        spawn([&] { cr_assert_eq(csp_recv_until(chan.r, &value, deadline), 1); });
        spawn_at_tail([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
        csp_yield();
        cr_assert_eq(std::exchange(value, 0), 6);
        csp_schedule();
    }
    cr_assert_eq(mc_after(MC_FOREVER), MC_FOREVER);
}

// Goal: waits that end by their deadlines do so in the order of the deadlines, the earlier waiter first among equals.
Test(Deadline, waits_end_in_order) {
    World world;
    Chan chan;
    const int after_ms[] = {9, 3, 6, 3, 0, 9};
    for (int64_t lead = 10 * MC_MS;; lead *= 2) { // all must wait before the first deadline comes
        const int64_t start = mc_after(lead);
        trace.clear();
        for (int i = 0; i < 6; ++i)
            spawn([&, i] {
                cr_assert_eq(csp_recv_until(chan.r, nullptr, start + after_ms[i] * MC_MS), MC_E_TIMEDOUT);
                mark(std::to_string(after_ms[i]) + "abcdef"[i]);
            });
        const bool in_time = mc_now() < start;
        csp_schedule();
        if (in_time)
            break;
    }
    expect_trace("0e 3b 3d 6c 9a 9f ");
}

// Goal: a microthread that times out at about the time when a thread sends: both went or both did not, and nothing is
// received that was not sent.
Test(Deadline, races_a_sender_on_another_thread, .timeout = 30) {
    World world;
    Chan chan;
    const int rounds = 2000 * static_cast<int>(mc::testing::scale());
    int64_t sent = 0, received = 0;
    int sends_done = 0, receives_done = 0;
    PosixThread thread([&] {
        for (int i = 1; i <= rounds; ++i) {
            const int code = csp_send_until(chan.w, &i, mc_after(i % 7 * 3000));
            cr_assert(code == 1 || code == MC_E_TIMEDOUT, "%d", code);
            sent += code == 1 ? i : 0;
            sends_done += code == 1;
        }
        csp_writer_close(chan.w);
    });
    for (int last = 0, tries = 0;; ++tries) { // by tries, or it polls until the other thread has its turn
        int value = 0;
        const int code = csp_recv_until(chan.r, &value, mc_after(tries % 5 * 4000));
        if (code == -1)
            break;
        cr_assert(code == 1 || code == MC_E_TIMEDOUT, "%d", code);
        cr_assert_eq(value != 0, code == 1);
        cr_assert(code != 1 || value > std::exchange(last, value), "out of order");
        received += value;
        receives_done += code == 1;
    }
    thread.join();
    cr_assert_eq(received, sent);
    cr_assert_eq(receives_done, sends_done);
}
