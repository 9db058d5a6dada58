// How combinators end: when either side closes, and when a callable throws; and that nothing is left then.
#include "hpp/test_hpp.hpp"

#include <cmath>

using namespace mc::hpp::testing;

namespace {

// A combinator between two fresh channels, and whether it has ended.
struct Run {
    channel<int> in;
    channel<int> out;
    bool ended = false;
    std::string threw;

    template <class Make> explicit Run(Make make) {
        csp::spawn([this, run = make(--in, ++out)]() mutable {
            threw = thrown<Boom>([&] { run(); });
            ended = true;
        });
    }
    void expect_ended(const char *how = "nothing was thrown") {
        csp_schedule();
        cr_assert(ended);
        expect_text(threw.c_str(), how);
        int n = 0;
        if (+in)
            cr_assert_eq(csp::try_alt(+in << 1), -1, "its input is closed");
        if (-out)
            cr_assert_eq(csp::try_alt(-out >> n), -1, "its output is closed");
    }
};

const auto same = [](int n) { return n; };
const auto any = [](int) { return true; };

// Calls check(name, make) for each combinator with one input and one output of ints.
template <class Check> void each(Check check) {
    check("buffer", [](reader<int> r, writer<int> w) { return chan::buffer(std::move(r), std::move(w)); });
    check("buffer 1", [](reader<int> r, writer<int> w) { return chan::buffer(std::move(r), std::move(w), 1); });
    check("map", [](reader<int> r, writer<int> w) { return chan::map(std::move(r), std::move(w), same); });
    check("where", [](reader<int> r, writer<int> w) { return chan::where(std::move(r), std::move(w), any); });
    check("tee", [](reader<int> r, writer<int> w) {
        return chan::tee(std::move(r), std::move(w), csp::spawn_blackhole<int>());
    });
    check("killswitch",
          [](reader<int> r, writer<int> w) { return chan::killswitch(std::move(r), std::move(w), csp::spawn_mute()); });
    check("chain", [](reader<int> r, writer<int> w) { return chan::chain({std::move(r)}, std::move(w)); });
    check("quantize", [](reader<int> r, writer<int> w) { return chan::quantize(std::move(r), 1, std::move(w)); });
    check("stream", [](reader<int> r, writer<int> w) { return r.stream_to(std::move(w)); });
}

} // namespace

// Goal: when the input closes, what was accepted still comes out, and then the output closes.
Test(HppCombinatorEnd, an_input_that_closes_empties_it) {
    World world;
    each([](const char *name, auto make) {
        Run run(make);
        csp::spawn([w = ++run.in] {
            for (int i = 1; i <= 3; ++i)
                w << 1;
        });
        int sum = 0;
        for (const int n : -run.out)
            sum += n;
        cr_assert_eq(sum, 3, "%s", name);
        run.expect_ended();
    });
}

// Goal: when the output closes, the input closes, whether the combinator waits for a message or to get rid of one.
Test(HppCombinatorEnd, an_output_that_closes_closes_the_input) {
    World world;
    each([](const char *, auto make) {
        Run idle(make);
        --idle.out;
        idle.expect_ended();
        Run busy(make);
        cr_assert(+busy.in << 1);
        csp_yield();
        --busy.out;
        busy.expect_ended();
    });
}

// Goal: a message that nobody has accepted stays with its sender when the output has closed.
Test(HppCombinatorEnd, a_closed_output_takes_nothing) {
    World world;
    each([](const char *name, auto make) {
        channel<int> in;
        channel<int> out;
        auto run = make(--in, ++out);
        --out;
        bool taken = true;
        csp::spawn([&, w = ++in] { taken = bool(w << 1); });
        run();
        csp_schedule();
        if (std::string(name).rfind("buffer", 0) != 0) // which takes what it has room for, or sees the end, as it comes
            cr_assert_not(taken, "%s", name);
    });
}

// Goal: what a callable throws comes out, and both ends close.
Test(HppCombinatorEnd, exceptions_come_out) {
    World world;
    const auto check = [](auto make) {
        Run run(make);
        csp::spawn([w = +run.in] { w << 5; });
        run.expect_ended("five");
    };
    const auto fails = [](int n) {
        if (n == 5)
            throw Boom("five");
        return n;
    };
    check([&](reader<int> r, writer<int> w) { return chan::map(std::move(r), std::move(w), fails); });
    check([&](reader<int> r, writer<int> w) { return chan::where(std::move(r), std::move(w), fails); });
    check([&](reader<int> r, writer<int>) { return chan::sink(std::move(r), fails); });
    channel<std::tuple<int>> requests;
    channel<int> replies;
    auto ended = csp::spawn(chan::rpc_server(--requests, ++replies, fails));
    const auto client = chan::rpc_client(++requests, --replies);
    cr_assert_eq(client(4), 4);
    std::string told;
    csp::spawn([&] { told = thrown<csp::microthread_error>([&] { client(5); }); });
    expect_text(thrown<Boom>([&] { csp::join(std::move(ended)); }).c_str(), "five");
    csp_schedule();
    expect_text(told.c_str(), "reader exhausted");
    expect_text(thrown<csp::microthread_error>([&] { client(4); }).c_str(), "call failed: there is no server");
}

// Goal: and from a spawned combinator it goes to the global handler.
Test(HppCombinatorEnd, exceptions_of_spawned_ones_go_to_the_handler) {
    World world;
    std::vector<std::string> told;
    csp::global_exception_handler = csp::spawn_consumer<std::exception_ptr>([&](const reader<std::exception_ptr> &r) {
        for (const auto &exception : r)
            told.push_back(thrown<Boom>([&] { std::rethrow_exception(exception); }));
    });
    const auto r = csp::spawn_map(produce<int>({1, 2}), [](int n) {
        if (n == 2)
            throw Boom("two");
        return n;
    });
    cr_assert_eq(all(r).size(), 1U);
    csp_schedule();
    cr_assert_eq(told.size(), 1U);
    expect_text(told[0].c_str(), "two");
    csp::global_exception_handler = {};
}

// Goal: a message whose move throws inside a combinator ends it with that exception, in whatever step it was.
Test(HppCombinatorEnd, a_throwing_message_ends_it) {
    World world;
    const auto check = [](auto make) {
        for (int moves = 1; moves <= 4; ++moves) {
            Throwing::arm(0);
            channel<Throwing> in;
            channel<Throwing> out;
            auto ended = csp::spawn(make(--in, ++out));
            int threw = 0;
            csp::spawn([&, w = ++in] {
                Throwing message(1);
                threw += thrown<Boom>([&] { w << std::ref(message); }) == "moving" ? 1 : 0;
            });
            Throwing::arm(moves);
            csp::spawn([&, r = --out] {
                Throwing got;
                threw += thrown<Boom>([&] { r >> got; }) == "moving" ? 1 : 0;
            });
            threw += thrown<Boom>([&] { csp::join(std::move(ended)); }) == "moving" ? 1 : 0;
            csp_schedule();
            cr_assert(threw >= 1 || Throwing::armed.load(mc::sync::relaxed) > 0, "the exception is not lost");
        }
        Throwing::arm(0);
    };
    using R = reader<Throwing>;
    using W = writer<Throwing>;
    check([](R r, W w) { return chan::buffer(std::move(r), std::move(w)); });
    check([](R r, W w) { return chan::map(std::move(r), std::move(w), [](Throwing &t) { return std::move(t); }); });
    check([](R r, W w) { return chan::where(std::move(r), std::move(w), [](const Throwing &) { return true; }); });
    check([](R r, W w) { return chan::tee(std::move(r), std::move(w), csp::spawn_blackhole<Throwing>()); });
    check([](R r, W w) { return chan::latch(std::move(r), std::move(w)); });
    check([](R r, W w) { return chan::killswitch(std::move(r), std::move(w), csp::spawn_mute()); });
    check([](R r, W w) { return chan::chain({std::move(r)}, std::move(w)); });
}

// Goal: a cancelled scope ends a combinator that waits.
Test(HppCombinatorEnd, cancellation_ends_it) {
    World world;
    each([](const char *, auto make) {
        mc_scope_t scope = 0;
        cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
        channel<int> in;
        channel<int> out;
        csp::spawn([&, run = make(--in, ++out)]() mutable {
            cr_assert_eq(mc_scope_enter(scope), MC_OK);
            run();
            cr_assert_eq(mc_scope_leave(), MC_OK);
        });
        cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
        csp_schedule();
        cr_assert_eq(csp::try_alt(+in << 1), -1);
        cr_assert_eq(mc_scope_destroy(scope), MC_OK);
    });
}

// Goal: a combinator that is made and never run closes its ends when it goes; one that has run is done.
Test(HppCombinatorEnd, unused_ones_close_their_ends) {
    World world;
    channel<int> in;
    channel<int> out;
    {
        const auto unused = chan::map(--in, ++out, same);
        cr_assert_eq(csp::try_alt(+in << 1), 0);
    }
    cr_assert_eq(csp::try_alt(+in << 1), -1);
    auto twice = chan::count(writer<int>(), 0, 3);
    twice();
    twice();
}

// Goal: latch, mute, deaf and fanout end when the side that they serve is gone.
Test(HppCombinatorEnd, the_holders_end) {
    World world;
    {
        const auto mute = csp::spawn_mute();
        const auto deaf = csp::spawn_deaf();
        const auto hole = csp::spawn_blackhole();
        auto latch = csp::spawn_latch<int>();
        +latch << 1;
        auto silent = csp::spawn_latch<int>();
        ++silent;
        int n = 0;
        cr_assert_not(bool(-silent >> n)); // nothing to repeat
        channel<writer<int>> inputs;
        const auto outputs = csp::spawn_fanout(++inputs);
        const auto no_outputs = csp::spawn_fanout(reader<writer<int>>::dead());
        writer<int> none;
        cr_assert_not(bool(no_outputs >> none));
        --inputs;
        cr_assert_not(bool(outputs << csp::spawn_blackhole<int>()));
    }
    csp_schedule(); // World sees that no channel is left
}

// Goal: a sender whose message throws ends neither the combinator that waits for it nor what that holds.
Test(HppCombinatorEnd, a_sender_that_throws_is_alone) {
    World world;
    const auto check = [](const char *name, auto make) {
        channel<Throwing> in;
        channel<Throwing> out;
        auto ended = csp::spawn(make(--in, ++out));
        csp::spawn([&, w = ++in] {
            w << Throwing(1);
            csp_yield();
            Throwing message(2);
            Throwing::arm(1);
            expect_text(thrown<Boom>([&] { w << std::ref(message); }), "moving", "%s", name);
            w << Throwing(3);
        });
        std::vector<int> got;
        for (const auto &message : -out) {
            got.push_back(message.value);
            csp_yield(); // it waits for the next before that is sent
            csp_yield();
        }
        csp::join(std::move(ended));
        cr_assert_eq(got.size(), 2U, "%s", name);
        cr_assert_eq(got[1], 3, "%s", name);
    };
    using R = reader<Throwing>;
    using W = writer<Throwing>;
    check("buffer", [](R r, W w) { return chan::buffer(std::move(r), std::move(w)); });
    check("where",
          [](R r, W w) { return chan::where(std::move(r), std::move(w), [](const Throwing &) { return true; }); });
    check("killswitch", [](R r, W w) { return chan::killswitch(std::move(r), std::move(w), csp::spawn_mute()); });
    check("chain", [](R r, W w) { return chan::chain({std::move(r)}, std::move(w)); });
    check("stream", [](R r, W w) { return r.stream_to(std::move(w)); });
    check("sink", [](R r, W w) {
        return chan::sink(std::move(r), [w = std::move(w)](Throwing &message) { w << std::move(message); });
    });
}

// Goal: a call whose request is thrown away fails; a sum that is too large is an error; infinity ends.
Test(HppCombinatorEnd, bad_input_ends_with_an_error) {
    World world;
    channel<std::pair<std::tuple<int>, writer<int>>> calls;
    csp::spawn(chan::blackhole(--calls));
    expect_text(thrown<csp::microthread_error>([&] { chan::rpc_client(++calls)(3); }), "reader exhausted");
    channel<int> portions;
    auto ended = csp::spawn(chan::quantize(produce<int>({INT32_MAX - 1, 5}), INT32_MAX, ++portions));
    cr_assert_eq(all(--portions).size(), 0U);
    expect_text(thrown<std::overflow_error>([&] { csp::join(std::move(ended)); }), "quantize: the sum is too large");
    channel<int> negative;
    ended = csp::spawn(chan::quantize(produce<int>({4}), produce<int>({-1}), ++negative));
    cr_assert_eq(all(--negative).size(), 0U);
    expect_text(thrown<std::invalid_argument>([&] { csp::join(std::move(ended)); }), "quantize: a portion is below 0");
    channel<std::tuple<int>> requests;
    expect_text(thrown<csp::microthread_error>([&] { chan::rpc_client(++requests, reader<int>())(3); }),
                "call failed: there is no server");
    cr_assert_eq(all(csp::spawn_quantize(produce<double>({HUGE_VAL}), 1)).size(), 1U);
    cr_assert_eq(all(csp::spawn_quantize(produce<double>({NAN, 1}), 1)).size(), 0U);
}
