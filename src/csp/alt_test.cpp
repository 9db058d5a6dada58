// alt and prialt: result codes, disabled and bad arms, which arm decides. alt_arms_test.cpp has duplicates, both ends
// of a channel, fairness and large counts; deadline_test.cpp the _until forms.
#include "csp/test_csp.hpp"

using namespace mc::csp::testing;

namespace {

// All four functions, as one: nowait or a deadline that has passed.
struct Form {
    const char *name;
    int (*call)(const csp_chanop *, int);
    int nothing; // what it says when nothing can go
};
const Form forms[] = {
    {"csp_alt nowait", [](const csp_chanop *ops, int count) { return csp_alt(ops, count, 1); }, 0},
    {"csp_prialt nowait", [](const csp_chanop *ops, int count) { return csp_prialt(ops, count, 1); }, 0},
    {"csp_alt_until", [](const csp_chanop *ops, int count) { return csp_alt_until(ops, count, MC_NOW); },
     MC_E_TIMEDOUT},
    {"csp_prialt_until", [](const csp_chanop *ops, int count) { return csp_prialt_until(ops, count, MC_NOW); },
     MC_E_TIMEDOUT},
};

csp_chanop raw(uintptr_t word) { return {reinterpret_cast<csp_waiter>(word), nullptr}; }
template <class Handle> uintptr_t bits(Handle handle) { return reinterpret_cast<uintptr_t>(handle); }

} // namespace

// Goal: the encodings that bindings rely on.
Test(Alt, handle_and_waiter_bits) {
    World world;
    Chan chan;
    cr_assert_eq(bits(chan.w) % 16, 0u);
    cr_assert_eq(bits(chan.r), bits(chan.w) | 1);
    cr_assert_eq(bits(csp_wait(chan.w)) & 15, 0xEu);
    cr_assert_eq(bits(csp_wait(chan.r)) & 15, 0xFu);
    cr_assert_eq(bits(csp_wait_dead(chan.w)) & 15, 0xCu);
    cr_assert_eq(bits(csp_wait_dead(chan.r)) & 15, 0xDu);
    cr_assert_eq(bits(csp_wait(chan.r)) & ~uintptr_t{15}, bits(chan.w));
    cr_assert_eq(bits(csp_wait(nullptr)), 0xEu);
    cr_assert_eq(sizeof(csp_chanop), 2 * sizeof(void *));
}

// Goal: i + 1 for the arm that went, wherever it stands, as sender and as receiver, found waiting or arriving.
Test(Alt, an_arm_that_went_is_its_index_plus_one) {
    World world;
    for (int at = 0; at < 5; ++at) {
        Chan chan, idle;
        int got = 0, message = 100 + at;
        csp_chanop ops[5];
        for (auto &op : ops)
            op = receives(idle.r);
        ops[at] = receives(chan.r, &got);
        spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); }); // waits
        cr_assert_eq(prialt(ops), at + 1);
        cr_assert_eq(got, 100 + at);
        spawn([&] { cr_assert_eq(alt(ops), at + 1); }); // waits
        got = 0;
        cr_assert_eq(csp_send(chan.w, &message), 1);
        cr_assert_eq(got, 100 + at);
        ops[at] = sends(chan.w, &message);
        spawn([&] { cr_assert_eq(alt(ops), at + 1); }); // waits
        cr_assert_eq(chan.receive(), 100 + at);
        csp_schedule();
    }
}

// Goal: -(i + 1) for a dead channel, found dead or dying while the alt waits; messages are untouched.
Test(Alt, a_dead_arm_is_the_negative_form) {
    World world;
    for (int at = 0; at < 5; ++at) {
        Chan chan, idle;
        int got = -5;
        csp_chanop ops[5];
        for (auto &op : ops)
            op = receives(idle.r, &got);
        ops[at] = receives(chan.r, &got);
        spawn([&] { cr_assert_eq(alt(ops), -(at + 1)); }); // waits
        chan.release_writer();
        cr_assert_eq(prialt(ops), -(at + 1)); // finds it dead
        for (const Form &form : forms)
            cr_assert_eq(form.call(ops, 5), -(at + 1), "%s", form.name);
        csp_schedule();
        cr_assert_eq(got, -5);
    }
}

// Goal: nothing ready and no waiting: 0, or MC_E_TIMEDOUT for the deadline forms; the peers-to-be see nothing of it.
Test(Alt, nothing_ready) {
    World world;
    Chan chan, other;
    int got = -5;
    const csp_chanop ops[] = {receives(chan.r, &got), sends(other.w, &got), disabled()};
    for (const Form &form : forms)
        for (int count = 1; count <= 3; ++count)
            cr_assert_eq(form.call(ops, count), form.nothing, "%s of %d", form.name, count);
    cr_assert_eq(csp_try_send(chan.w, &got), 0); // nobody is left waiting
    cr_assert_eq(csp_try_recv(other.r, &got), 0);
    cr_assert_eq(got, -5);
}

// Goal: no arms, or disabled ones only: 0 at once, even where it may wait.
Test(Alt, no_arms_at_all) {
    World world;
    csp_chanop ops[40];
    for (uintptr_t word = 0; word < 40; ++word)
        ops[word] = raw(word % 16); // no address: disabled, whatever the mode bits say
    for (int count : {0, 1, 2, 16, 17, 40})
        for (int nowait : {0, 1}) {
            cr_assert_eq(csp_alt(ops, count, nowait), 0);
            cr_assert_eq(csp_prialt(ops, count, nowait), 0);
        }
    cr_assert_eq(csp_alt(nullptr, 0, 0), 0);
    cr_assert_eq(csp_prialt(nullptr, 0, 1), 0);
    cr_assert_eq(csp_alt_until(ops, 3, MC_FOREVER), 0);
    cr_assert_eq(csp_prialt_until(ops, 3, mc_after(MC_SEC)), 0);
    cr_assert_eq(csp_prialt_until(nullptr, 0, MC_FOREVER), 0);
}

// Goal: disabled arms keep their index but take no part.
Test(Alt, disabled_arms_keep_their_index) {
    World world;
    Chan chan;
    int got = 0, message = 8;
    const csp_chanop ops[] = {disabled(), dies(csp_reader(nullptr)), receives(chan.r, &got), disabled()};
    for (int i = 0; i < 20; ++i) {
        spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
        cr_assert_eq(i % 2 == 0 ? alt(ops) : prialt(ops), 3);
        spawn([&] { cr_assert_eq(i % 2 == 0 ? alt(ops) : prialt(ops), 3); });
        cr_assert_eq(csp_send(chan.w, &message), 1);
    }
}

// Goal: a count out of range, or no arms where some are announced, is MC_E_INVAL.
Test(Alt, bad_counts) {
    World world;
    const csp_chanop op = disabled();
    for (const Form &form : forms) {
        for (int count : {-1, INT32_MIN, 65'536, INT32_MAX})
            cr_assert_eq(form.call(&op, count), MC_E_INVAL, "%s of %d", form.name, count);
        cr_assert_eq(form.call(nullptr, 1), MC_E_INVAL, "%s", form.name);
        cr_assert_eq(form.call(nullptr, 20), MC_E_INVAL, "%s", form.name);
    }
    cr_assert_eq(csp_alt(nullptr, 1, 0), MC_E_INVAL);
}

// Goal: a waiter with bit 3 clear or mode 0 or 1 is MC_E_INVAL, and nothing has happened, though another arm could go.
Test(Alt, bad_waiters_change_nothing) {
    World world;
    Chan chan;
    int got = -5, message = 1;
    spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
    for (uintptr_t low = 0; low < 16; ++low) {
        if ((low & 8) != 0 && (low >> 1 & 3) >= csp_dead)
            continue; // a good one
        const csp_chanop bad = raw(bits(chan.w) | low);
        const csp_chanop ops[] = {receives(chan.r, &got), disabled(), bad};
        for (const Form &form : forms) {
            cr_assert_eq(form.call(&bad, 1), MC_E_INVAL, "%s, low bits %u", form.name, unsigned(low));
            cr_assert_eq(form.call(ops, 3), MC_E_INVAL, "%s, low bits %u", form.name, unsigned(low));
        }
        cr_assert_eq(csp_alt(ops, 3, 0), MC_E_INVAL);
    }
    cr_assert_eq(got, -5);
    cr_assert_eq(chan.receive(), 1); // the sender still waits
}

// Goal: the first arm that decides wins: [ready, dead] is 1, [dead, ready] is -1, waiting or not.
Test(Alt, the_first_arm_that_decides_wins) {
    World world;
    Chan ready, dead;
    dead.release_writer();
    int message = 1, got = -5;
    for (int nowait : {0, 1}) {
        const csp_chanop ready_first[] = {receives(ready.r, &got), receives(dead.r, &got)};
        const csp_chanop dead_first[] = {receives(dead.r, &got), receives(ready.r, &got)};
        const csp_chanop vulture_first[] = {dies(dead.r), receives(ready.r, &got)};
        spawn([&] { cr_assert_eq(csp_send(ready.w, &message), 1); });
        cr_assert_eq(prialt(dead_first, nowait), -1);
        cr_assert_eq(prialt(vulture_first, nowait), -1);
        cr_assert_eq(csp_prialt_until(dead_first, 2, MC_NOW), -1);
        cr_assert_eq(got, -5);
        cr_assert_eq(prialt(ready_first, nowait), 1);
        cr_assert_eq(std::exchange(got, -5), 1);
        spawn([&] { cr_assert_eq(csp_send(ready.w, &message), 1); });
        cr_assert_eq(csp_prialt_until(ready_first, 2, MC_NOW), 1);
        cr_assert_eq(std::exchange(got, -5), 1);
        csp_schedule();
    }
}

// Goal: alt starts anywhere, so of [ready, dead] it answers with either, and with nothing else.
Test(Alt, starts_at_a_random_arm) {
    World world;
    Chan ready, dead;
    dead.release_writer();
    int message = 1, answers[2] = {};
    for (int i = 0; i < 200; ++i) {
        const csp_chanop ops[] = {receives(ready.r), receives(dead.r)};
        spawn([&] { cr_assert_eq(csp_send(ready.w, &message), 1); });
        const int result = alt(ops, i % 2);
        cr_assert(result == 1 || result == -2, "%d", result);
        ++answers[result == 1];
        if (result == -2)
            cr_assert_eq(ready.receive(), 1);
        csp_schedule();
    }
    cr_assert_gt(answers[0], 40);
    cr_assert_gt(answers[1], 40);
}

// Goal: dead-mode arms match no peer, and do not fire while the other end lives.
Test(Alt, dead_mode_matches_no_peer) {
    World world;
    Chan chan;
    int message = 1;
    spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
    const csp_chanop vultures[] = {dies(chan.r), dies(chan.w)};
    for (const Form &form : forms)
        cr_assert_eq(form.call(vultures, 2), form.nothing, "%s", form.name);
    cr_assert_eq(chan.receive(), 1);
    const csp_chanop writers[] = {disabled(), dies(chan.w)};
    spawn([&] { cr_assert_eq(prialt(writers), -2); }); // waits
    cr_assert_eq(csp_try_send(chan.w, &message), 0);
    cr_assert_eq(csp_try_recv(chan.r, &message), 0);
    csp_schedule();
    cr_assert_eq(bodies.load(mc::sync::relaxed), 1, "it fired on a living channel");
    chan.release_reader();
}

// Goal: an alt that waits on several channels leaves nothing behind on those that did not decide.
Test(Alt, losing_arms_are_gone) {
    World world;
    Chan chans[6];
    int got = 0, message = 3;
    for (int winner = 0; winner < 6; ++winner) {
        csp_chanop ops[6];
        for (int i = 0; i < 6; ++i)
            ops[i] = i % 2 == 0 ? receives(chans[i].r, &got) : sends(chans[i].w, &message);
        spawn([&] { cr_assert_eq(alt(ops), winner + 1); });
        cr_assert_eq(winner % 2 == 0 ? csp_send(chans[winner].w, &message) : csp_recv(chans[winner].r, &got), 1);
        csp_schedule();
        for (const Chan &chan : chans) {
            cr_assert_eq(csp_try_send(chan.w, &message), 0);
            cr_assert_eq(csp_try_recv(chan.r, &got), 0);
        }
    }
}
