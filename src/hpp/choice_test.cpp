// alt and prialt over actions: what they report, in every form; without waiting, and with a deadline.
#include "hpp/test_hpp.hpp"

using namespace mc::hpp::testing;

// Goal: the number of the action that went, or minus the number of the one whose channel is dead; one happens, no other.
Test(HppChoice, reports_the_one_that_went) {
    World world;
    channel<int> a;
    channel<int> b;
    int n = 0;
    csp::spawn([w = +b] { w << 5; });
    cr_assert_eq(csp::alt(-a >> n, -b >> n), 2);
    cr_assert_eq(n, 5);
    csp::spawn([&] { cr_assert_eq((-a).read(), 8); });
    cr_assert_eq(csp::prialt(+a << 8, +b << 9), 1);
    b.release();
    channel<int> c;
    csp::reader<int> r = --c;
    ++c;
    cr_assert_eq(csp::prialt(r >> n, +a << 1), -1);
    cr_assert_eq(csp::prialt(+a << 1, ~r), -2);
    cr_assert_eq(n, 5);
}

// Goal: prialt prefers what comes first, alt does not.
Test(HppChoice, prialt_goes_by_order) {
    World world;
    channel<int> a;
    channel<int> b;
    int which[3] = {};
    for (int i = 0; i < 64; ++i) {
        csp::spawn([w = +a] { w << 1; });
        csp::spawn([w = +b] { w << 2; });
        int n = 0;
        cr_assert_eq(csp::prialt(-a >> n, -b >> n), 1);
        cr_assert_eq(csp::prialt(-a >> n, -b >> n), 2);
        csp::spawn([w = +a] { w << 1; });
        csp::spawn([w = +b] { w << 2; });
        ++which[csp::alt(-a >> n, -b >> n)];
        ++which[csp::alt(-a >> n, -b >> n)];
    }
    cr_assert_eq(which[1], 64);
    cr_assert_eq(which[2], 64);
}

// Goal: alt begins anywhere: of two that are always ready, each goes sometimes.
Test(HppChoice, alt_is_fair) {
    World world;
    channel<int> a;
    channel<int> b;
    const auto feed = [](const csp::writer<int> &w) {
        return [w] {
            while (w << 1) {
            }
        };
    };
    csp::spawn(feed(++a));
    csp::spawn(feed(++b));
    int which[3] = {};
    int n = 0;
    for (int i = 0; i < 400; ++i) {
        ++which[csp::alt(-a >> n, -b >> n)];
        csp_yield();
    }
    cr_assert_gt(which[1], 100);
    cr_assert_gt(which[2], 100);
}

// Goal: arrays, std::array, pointers, vectors and action lists are alike, and few arms are as many.
Test(HppChoice, takes_every_form) {
    World world;
    channel<int> ch;
    csp::reader<int> r = -ch;
    csp::spawn([w = +ch] {
        for (int i = 1; i <= 7; ++i)
            w << i;
    });
    int n = 0;
    action array[] = {action(), r >> n};
    cr_assert_eq(csp::alt(array), 2);
    cr_assert_eq(n, 1);
    std::array<action, 2> standard{action(), r >> n};
    cr_assert_eq(csp::prialt(standard), 2);
    cr_assert_eq(n, 2);
    action others[] = {r >> n, action()};
    cr_assert_eq(csp::prialt(others, 2), 1);
    cr_assert_eq(n, 3);
    std::vector<action> list = csp::action_list(action(), action(), r >> n);
    cr_assert_eq(list.size(), 3U);
    cr_assert_eq(csp::alt(list), 3);
    cr_assert_eq(n, 4);
    cr_assert_eq(csp::prialt(csp::action_list(r >> n)), 1);
    cr_assert_eq(n, 5);
    action named = r >> n;
    cr_assert_eq(csp::alt(named, action()), 1);
    cr_assert_eq(n, 6);
    list.clear();
    for (int i = 0; i < 40; ++i)
        list.emplace_back();
    list.push_back(r >> n);
    cr_assert_eq(csp::prialt(list), 41);
    cr_assert_eq(n, 7);
    cr_assert_eq(csp::alt(std::vector<action>()), 0);
}

// Goal: what a list holds unused happens when the list goes.
Test(HppChoice, an_unused_list_happens) {
    World world;
    channel<int> ch;
    int sum = 0;
    csp::spawn([&, r = --ch] {
        for (int n = 0; r >> n;)
            sum += n;
    });
    { const auto list = csp::action_list(+ch << 1, +ch << 2); }
    ch.release();
    csp_schedule();
    cr_assert_eq(sum, 3);
}

// Goal: the actions that lost do not happen afterwards, and keep their messages to themselves.
Test(HppChoice, losers_do_not_happen) {
    World world;
    channel<NoDefault> a;
    channel<NoDefault> b;
    csp::spawn([&] { cr_assert_eq((-a).read().value, 1); });
    cr_assert_eq(csp::alt(+a << NoDefault(1), +b << NoDefault(2)), 1);
    cr_assert_eq(csp::prialt(-b >> nullptr, ~csp::skip), -2);
}

// Goal: ~skip makes a choice one that does not wait; try_ forms do the same and report 0.
Test(HppChoice, skip_and_try_do_not_wait) {
    World world;
    channel<int> ch;
    int n = 0;
    cr_assert_eq(csp::prialt(-ch >> n, ~csp::skip), -2);
    cr_assert_eq(csp::try_alt(-ch >> n, +ch << 1), 0);
    cr_assert_eq(csp::try_prialt(-ch >> n), 0);
    cr_assert_eq(csp::try_alt(csp::action_list(-ch >> n)), 0);
    cr_assert_eq(csp::try_prialt(csp::action_list(-ch >> n)), 0);
    csp::spawn([w = +ch] { w << 4; });
    cr_assert_eq(csp::try_prialt(-ch >> n), 1);
    cr_assert_eq(n, 4);
    cr_assert_not(bool(csp::skip >> csp::poke));
    const csp::reader<> copy = csp::skip;
    cr_assert_eq(csp::alt(~copy), -1);
    cr_assert(copy == csp::skip);
}

// Goal: skip is nobody's channel: it is not counted, and making it does not make its maker the runtime's owner.
Test(HppChoice, skip_is_not_counted) {
    World world;
    cr_assert_eq(csp__internal__channel_count(1), 0);
    const csp::reader<> copy = csp::skip;
    cr_assert_eq(csp__internal__channel_count(0), 0);
    cr_assert_eq(csp__internal__channel_count(1), 0);
}

// Goal: a deadline ends the wait, and not before it.
Test(HppChoice, ends_at_its_deadline) {
    World world;
    channel<int> ch;
    int n = 0;
    const auto deadline = csp::time_point(std::chrono::nanoseconds(mc_now() + 3 * MC_MS));
    cr_assert_eq(csp::alt_until(deadline, -ch >> n), MC_E_TIMEDOUT);
    cr_assert_geq(mc_now(), deadline.time_since_epoch().count());
    cr_assert_eq(csp::prialt_until(deadline, -ch >> n, +ch << 2), MC_E_TIMEDOUT);
    csp::spawn([w = +ch] { w << 4; });
    cr_assert_eq(csp::prialt_until(csp::time_point::max(), -ch >> n), 1);
    cr_assert_eq(n, 4);
    csp::spawn([w = +ch] { w << 5; });
    cr_assert_eq(csp::alt_until(csp::time_point::min(), csp::action_list(-ch >> n)), 1);
    cr_assert_eq(csp::prialt_until(csp::time_point::min(), csp::action_list(-ch >> n)), MC_E_TIMEDOUT);
}

// Goal: the arms' handles are what the C functions take.
Test(HppChoice, its_arms_are_chanops) {
    World world;
    channel<int> ch;
    int n = 0;
    csp::spawn([w = +ch] { w << 3; });
    {
        action receive = -ch >> n;
        const csp_chanop op = receive.chanop();
        cr_assert_eq(csp_alt(&op, 1, 0), 1);
        receive = action();
    }
    cr_assert_eq(n, 3);
    cr_assert_eq((~+ch).chanop().waiter, csp_wait_dead((+ch).internal_writer()));
    ch.release();
}
