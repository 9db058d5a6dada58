// What each combinator does with what passes.
#include "hpp/test_hpp.hpp"

#include <array>
#include <functional>
#include <list>
#include <map>
#include <set>

using namespace mc::hpp::testing;

namespace {

using Ints = std::vector<int>;

void expect(const Ints &got, const Ints &expected) {
    cr_assert_eq(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
        cr_assert_eq(got[i], expected[i], "element %zu", i);
}
void expect(const reader<int> &got, const Ints &expected) { expect(all(got), expected); }

// A consumer that keeps what comes.
writer<int> collect(Ints &into) {
    return csp::spawn_sink<int>([&into](int n) { into.push_back(n); });
}

} // namespace

// Goal: a buffer takes as much as it says before anybody reads, keeps the order, and empties itself when its input has closed.
Test(HppCombinator, buffer_holds) {
    World world;
    auto ch = csp::spawn_buffer<int>(3);
    for (int i = 0; i < 3; ++i)
        cr_assert(+ch << i);
    cr_assert_eq(csp::try_alt(+ch << 3), 0);
    cr_assert_eq((-ch).read(), 0);
    cr_assert(+ch << 3);
    ++ch;
    expect(-ch, {1, 2, 3});
    ch.release();
    expect(csp::spawn_buffer(produce<int>({1, 2})), {1, 2});
    Ints got;
    {
        const auto w = csp::spawn_buffer(collect(got), 2);
        w << 5;
        w << 6;
    }
    csp_schedule();
    expect(got, {5, 6});
    auto endless = csp::spawn_buffer<int>();
    Ints expected;
    for (int i = 0; i < 1000; ++i) {
        +endless << i;
        expected.push_back(i);
    }
    ++endless;
    expect(--endless, expected);
    auto one = csp::spawn_buffer<int>(0);
    cr_assert(+one << 1);
    cr_assert_eq(csp::try_alt(+one << 2), 0);
}

// Goal: map applies its function, to other types too, in each of its forms.
Test(HppCombinator, map_applies_a_function) {
    World world;
    expect(csp::spawn_map(produce<int>({1, 2, 3}), [](int n) { return n * n; }), {1, 4, 9});
    const reader<std::string> texts = csp::spawn_map(produce<int>({7}), [](int n) { return std::to_string(n); });
    expect_text(texts.read().c_str(), "7");
    const reader<double> halves = csp::spawn_map<double>(produce<int>({3}), [](int n) { return n / 2.0; });
    cr_assert_eq(halves.read(), 1.5);
    Ints got;
    {
        const writer<std::string> w =
            csp::spawn_map<std::string>(collect(got), [](const std::string &s) { return static_cast<int>(s.size()); });
        w << "four";
        const writer<int> same = csp::spawn_map(collect(got), [](int n) { return -n; });
        same << 5;
    }
    csp_schedule();
    expect(got, {4, -5});
    auto ch = csp::spawn_map<int>([n = 0](int &x) mutable { return x + ++n; });
    csp::spawn([w = ++ch] {
        w << 10;
        w << 10;
    });
    expect(--ch, {11, 12});
}

// Goal: where lets through what satisfies its predicate.
Test(HppCombinator, where_selects) {
    World world;
    const auto odd = [](int n) { return n % 2 != 0; };
    expect(csp::spawn_where(produce<int>({1, 2, 3, 4, 5}), odd), {1, 3, 5});
    Ints got;
    csp::spawn(produce<int>({1, 2, 3}).stream_to(csp::spawn_where(collect(got), odd)));
    csp_schedule();
    expect(got, {1, 3});
    auto ch = csp::spawn_where<int>(odd);
    csp::spawn(produce<int>({6, 7}).stream_to(++ch));
    expect(--ch, {7});
}

// Goal: tee copies to the side what the main output has taken, and goes on when the side has closed.
Test(HppCombinator, tee_copies) {
    World world;
    Ints side;
    expect(csp::spawn_tee(produce<int>({1, 2, 3}), collect(side)), {1, 2, 3});
    csp_schedule();
    expect(side, {1, 2, 3});
    Ints main;
    side.clear();
    csp::spawn(produce<int>({4, 5}).stream_to(csp::spawn_tee(collect(main), collect(side))));
    csp_schedule();
    expect(main, {4, 5});
    expect(side, {4, 5});
    channel<int> once;
    const auto rest = csp::spawn_tee(produce<int>({1, 2, 3}), ++once);
    cr_assert_eq(rest.read(), 1);
    cr_assert_eq((-once).read(), 1);
    once.release();
    expect(rest, {2, 3});
    expect(csp::spawn_tee(produce<int>({9}), writer<int>()), {9});
}

// Goal: a latch repeats the newest message, also when its input has closed, and has nothing before the first.
Test(HppCombinator, latch_repeats_the_newest) {
    World world;
    auto ch = csp::spawn_latch<int>();
    int n = 0;
    cr_assert_eq(csp::try_alt(-ch >> n), 0);
    for (int i = 1; i <= 3; ++i) {
        +ch << i;
        for (int k = 0; k < 3; ++k)
            cr_assert_eq((-ch).read(), i);
    }
    +ch << 4;
    +ch << 5;
    ++ch;
    for (int k = 0; k < 3; ++k)
        cr_assert_eq((-ch).read(), 5);
    ch.release();
    cr_assert_eq(csp::spawn_latch(produce<int>({8})).read(), 8);
    int last = 0;
    int reads = 0;
    {
        const auto w = csp::spawn_latch(csp::spawn_consumer<int>([&](const reader<int> &r) {
            while (reads++ < 5 && r >> last) {
            }
        }));
        w << 6;
    }
    csp_schedule();
    cr_assert_eq(last, 6);
}

// Goal: a killswitch cuts the connection when its guard goes, even with messages waiting.
Test(HppCombinator, killswitch_cuts) {
    World world;
    channel<> guard;
    channel<int> ch;
    const auto r = csp::spawn_killswitch(--ch, -guard);
    csp::spawn([w = +ch] { w << 1; });
    cr_assert_eq(r.read(), 1);
    csp_yield(); // it waits for the next
    csp::spawn([w = +ch] { cr_assert(w << 2); });
    ++guard;
    int n = 0;
    cr_assert_not(bool(r >> n));
    cr_assert_not(bool(+ch << 3));
    guard.release();
    channel<> other;
    expect(csp::spawn_killswitch(produce<int>({1, 2}), -other), {1, 2});
    Ints got;
    csp::spawn(produce<int>({3}).stream_to(csp::spawn_killswitch(collect(got), -other)));
    csp_schedule();
    expect(got, {3});
    auto both = csp::spawn_killswitch<int>(-other);
    csp::spawn(produce<int>({4}).stream_to(++both));
    expect(--both, {4});
}

// Goal: fanout gives each message to every output there is; outputs join and leave; the input closes with the last of them,
// and is offered anew.
Test(HppCombinator, fanout_gives_to_all) {
    World world;
    channel<writer<int>> inputs;
    Ints a;
    Ints b;
    {
        const auto outputs = csp::spawn_fanout(++inputs);
        outputs << collect(a);
        writer<int> in = (-inputs).read();
        in << 1;
        outputs << collect(b);
        in << 2;
        in = {};
        in = (-inputs).read(); // another input, because the first has gone
        in << 3;
    }
    csp_schedule();
    expect(a, {1, 2, 3});
    expect(b, {2, 3});
    inputs.release();
    csp_schedule();

    channel<writer<int>> more;
    const auto entrances = csp::spawn_fanout(--more);
    channel<int> out;
    csp::spawn([&] { +more << ++out; });
    writer<int> in = entrances.read();
    csp::spawn([in] { in << 7; });
    cr_assert_eq((-out).read(), 7);
    out.release(); // the last output
    cr_assert_not(bool(in << 8));
    channel<int> next;
    csp::spawn([&] { +more << ++next; });
    in = entrances.read();
    csp::spawn([in] { in << 9; });
    cr_assert_eq((-next).read(), 9);
}

// Goal: chain goes through its readers one by one.
Test(HppCombinator, chain_goes_on_with_the_next) {
    World world;
    expect(csp::spawn_chain({produce<int>({1, 2}), produce<int>({}), produce<int>({3})}), {1, 2, 3});
    std::vector<reader<int>> readers;
    readers.push_back(produce<int>({4}));
    readers.emplace_back();
    readers.push_back(produce<int>({5}));
    expect(csp::spawn_chain<int>(std::move(readers)), {4, 5});
    expect(csp::spawn_chain(std::list<reader<int>>{produce<int>({6})}), {6});
    expect(csp::spawn_chain(std::vector<reader<int>>()), {});
    channel<int> out;
    csp::spawn(chan::chain({produce<int>({7}), produce<int>({8})}, ++out));
    expect(--out, {7, 8});
}

// Goal: quantize sends portions, and the rest at its end.
Test(HppCombinator, quantize_sends_portions) {
    World world;
    int rest = -1;
    const auto residue = [&] { return csp::spawn_sinkhole(rest); };
    expect(csp::spawn_quantize(produce<int>({1, 4, 5, 1}), 3, residue()), {3, 3, 3});
    csp_schedule();
    cr_assert_eq(rest, 2);
    expect(csp::spawn_quantize(produce<int>({10}), produce<int>({1, 0, 2, 3, 100}), residue()), {1, 0, 2, 3});
    csp_schedule();
    cr_assert_eq(rest, 4);
    expect(csp::spawn_quantize(produce<int>({10, 10}), produce<int>({1, 2}), residue()), {1, 2});
    csp_schedule();
    cr_assert_eq(rest, 7);
    Ints got;
    csp::spawn(produce<int>({5}).stream_to(csp::spawn_quantize(2, collect(got), residue())));
    csp_schedule();
    expect(got, {2, 2});
    cr_assert_eq(rest, 1);
    got.clear();
    csp::spawn(produce<int>({5, 5}).stream_to(csp::spawn_quantize(produce<int>({7, 2}), collect(got), residue())));
    csp_schedule();
    expect(got, {7, 2});
    cr_assert_eq(rest, 1);
    const reader<double> doubles = csp::spawn_quantize(produce<double>({0.75, 0.5}), 1);
    cr_assert_eq(doubles.read(), 1.0);
    expect_text(thrown<std::invalid_argument>([] { (void)csp::spawn_quantize(produce<int>({1}), 0); }).c_str(),
                "quantize: the quantum must be above 0");
}

// Goal: enumerate gives the elements of any container, cycle gives them again and again.
Test(HppCombinator, enumerate_gives_elements) {
    World world;
    expect(csp::spawn_enumerate(Ints{1, 2}), {1, 2});
    expect(csp::spawn_enumerate({3, 4}), {3, 4});
    const int array[] = {5, 6};
    expect(csp::spawn_enumerate(array), {5, 6});
    const std::set<int> set{8, 7};
    expect(csp::spawn_enumerate<int>(set), {7, 8});
    const reader<long> longs = csp::spawn_enumerate<long>(Ints{9});
    cr_assert_eq(longs.read(), 9);
    const reader<std::string> texts = csp::spawn_enumerate<std::string>(std::vector<const char *>{"text"});
    expect_text(texts.read().c_str(), "text");
    const auto round = csp::spawn_cycle({1, 2});
    for (int i = 0; i < 5; ++i)
        cr_assert_eq(round.read(), i % 2 + 1);
    cr_assert_eq(csp::spawn_enumerate(Ints{3}, true).read(), 3);
    expect(csp::spawn_cycle(Ints()), {});
    channel<int> out;
    csp::spawn(chan::cycle({4}, +out));
    csp::spawn(chan::enumerate({5}, +out));
    ++out;
    cr_assert_gt((-out).read(), 3);
}

// Goal: count counts up, down, around, and stops at the ends of its type; count_forever goes on behind them.
Test(HppCombinator, count_counts) {
    World world;
    expect(csp::spawn_count(0, 5), {0, 1, 2, 3, 4});
    expect(csp::spawn_count(0, 6, 4), {0, 4});
    expect(csp::spawn_count(5, 0, -2), {5, 3, 1});
    expect(csp::spawn_count(5, 5), {});
    expect(csp::spawn_count(5, 4, 1, true), {});
    expect(csp::spawn_count(INT32_MAX - 3, INT32_MAX, 2), {INT32_MAX - 3, INT32_MAX - 1});
    expect(csp::spawn_count(INT32_MIN, INT32_MAX, INT32_MAX), {INT32_MIN, -1, INT32_MAX - 1});
    const auto round = csp::spawn_count(10, 15, 2, true);
    for (const int n : {10, 12, 14, 11, 13, 10, 12})
        cr_assert_eq(round.read(), n);
    const auto wide = csp::spawn_count(0, 3, 7, true);
    for (const int n : {0, 1, 2, 0, 1})
        cr_assert_eq(wide.read(), n);
    const auto down = csp::spawn_count(5, 0, -2, true);
    for (const int n : {5, 3, 1, 4, 2, 5})
        cr_assert_eq(down.read(), n);
    const auto bytes = csp::spawn_count_forever<uint8_t>(254);
    for (const int n : {254, 255, 0, 1})
        cr_assert_eq(bytes.read(), n);
    const auto wraps = csp::spawn_count_forever(INT32_MAX, 2);
    cr_assert_eq(wraps.read(), INT32_MAX);
    cr_assert_eq(wraps.read(), INT32_MIN + 1);
    const auto quarters = csp::spawn_count(0.0, 1.0, 0.25);
    cr_assert_eq(all(quarters).size(), 4U);
    const auto around = csp::spawn_count(0.0, 1.0, 0.75, true);
    for (const double n : {0.0, 0.75, 0.5, 0.25, 0.0})
        cr_assert_eq(around.read(), n);
    channel<int> out;
    csp::spawn(chan::count(++out, 1, 3));
    expect(--out, {1, 2});
    const auto still = csp::spawn_count(1, 2, 0);
    for (int i = 0; i < 5; ++i)
        cr_assert_eq(still.read(), 1);
}

// Goal: sinks take everything: into a function, a variable, or nothing; mute and deaf only hold their end.
Test(HppCombinator, ends_hold_or_take) {
    World world;
    int last = 0;
    Ints got;
    {
        const auto w = csp::spawn_sinkhole(last);
        w << 1;
        w << 2;
        const auto f = csp::spawn_sink<int>([&](int n) { got.push_back(n); });
        f << 3;
        const auto nothing = csp::spawn_blackhole<std::string>();
        cr_assert(nothing << "gone");
    }
    csp_schedule();
    cr_assert_eq(last, 2);
    expect(got, {3});
    const auto deaf = csp::spawn_deaf<int>();
    cr_assert_eq(csp::try_alt(deaf << 1), 0);
    const auto mute = csp::spawn_mute<int>();
    int n = 0;
    cr_assert_eq(csp::try_alt(mute >> n), 0);
    cr_assert_eq(csp::try_alt(~mute), 0);
    cr_assert_eq(csp::try_alt(~deaf), 0);
}

// Goal: calls are answered, by a server with one pair of channels, for several clients, and by one whose requests bring their
// own.
Test(HppCombinator, rpc_answers) {
    World world;
    channel<std::tuple<int, int>> requests;
    channel<int> replies;
    csp::spawn(chan::rpc_server(--requests, ++replies, [](int a, int b) { return a * b; }));
    const auto multiply = chan::rpc_client(++requests, --replies);
    cr_assert_eq(multiply(6, 7), 42);
    Ints got;
    for (int i = 1; i <= 4; ++i)
        csp::spawn([&, i, multiply] { got.push_back(multiply(i, 10)); });
    csp_schedule();
    std::sort(got.begin(), got.end());
    expect(got, {10, 20, 30, 40});

    channel<std::tuple<std::string>> notes;
    channel<> done;
    std::string noted;
    csp::spawn(chan::rpc_server(--notes, ++done, [&](const std::string &s) { noted += s; }));
    const auto note = chan::rpc_client(++notes, --done);
    (void)note("x");
    (void)note("y");
    expect_text(noted.c_str(), "xy");

    channel<std::pair<std::tuple<int>, writer<std::string>>> calls;
    csp::spawn(chan::rpc_server(--calls, [](int n) { return std::to_string(n); }));
    const auto text = chan::rpc_client(++calls);
    expect_text(text(12).c_str(), "12");
    expect_text(text.call(std::make_tuple(13)).c_str(), "13");
    expect_text(text(std::make_tuple(14)).c_str(), "14");
    channel<std::pair<std::tuple<std::string>, writer<int>>> lengths;
    csp::spawn(chan::rpc_server(--lengths, [](const std::string &s) { return int(s.size()); }));
    cr_assert_eq(chan::rpc_client(++lengths)("four"), 4);
}

// Goal: a combinator may be called where it is const: inside a lambda that is not mutable, by std::function.
Test(HppCombinator, may_be_called_as_a_const_one) {
    World world;
    const auto run = [](auto combinator) { csp::spawn([combinator = std::move(combinator)] { combinator(); }); };
    {
        channel<int> a;
        channel<int> b;
        run(chan::buffer(--a, ++b, 2));
        +a << 1;
    }
    channel<int> source;
    channel<int> mapped;
    channel<int> even;
    channel<int> side;
    run(chan::count(++source, 0, 4));
    run(chan::map(--source, ++mapped, [](int n) { return n + 1; }));
    run(chan::where(--mapped, ++even, [](int n) { return n % 2 == 0; }));
    channel<int> out;
    run(chan::tee(--even, ++out, ++side));
    Ints copies;
    run(chan::sink(--side, [&](int n) { copies.push_back(n); }));
    expect(--out, {2, 4});
    expect(copies, {2, 4});
    channel<int> streamed;
    run(csp::spawn_count(0, 2).stream_to(++streamed));
    expect(--streamed, {0, 1});
    const auto discard = [&run](auto make) {
        channel<int> end;
        run(make(++end));
        --end;
    };
    discard([](writer<int> w) { return chan::count_forever(std::move(w), 1); });
    discard([](writer<int> w) { return chan::cycle(Ints{1}, std::move(w)); });
    discard([](writer<int> w) { return chan::chain(std::vector<reader<int>>(), std::move(w)); });
    discard([](writer<int> w) { return chan::mute(std::move(w)); });
    discard([](writer<int> w) { return chan::latch(csp::spawn_mute<int>(), std::move(w)); });
    discard([](writer<int> w) { return chan::killswitch(csp::spawn_mute<int>(), std::move(w), reader<>::dead()); });
    discard([](writer<int> w) { return chan::quantize(csp::spawn_mute<int>(), 3, std::move(w)); });
    discard([](writer<int> w) { return chan::quantize(csp::spawn_mute<int>(), csp::spawn_mute<int>(), std::move(w)); });
    run(chan::deaf(reader<int>::dead()));
    run(chan::blackhole(reader<int>::dead()));
    run(chan::fanout(reader<writer<int>>::dead(), writer<writer<int>>::dead()));
    run(chan::rpc_server(reader<std::tuple<int>>::dead(), writer<int>::dead(), [](int n) { return n; }));
    run(chan::rpc_server(reader<std::pair<std::tuple<int>, writer<int>>>::dead(), [](int n) { return n; }));
    reader<int> r;
    const std::function<void()> erased = chan::enumerate(Ints{7}, ++r);
    csp::spawn(std::cref(erased));
    cr_assert_eq(r.read(), 7);
    r = {};
    csp_schedule(); // until it has returned: the function goes
}

// Goal: messages' types may be named first.
Test(HppCombinator, takes_the_type_of_messages_first) {
    World world;
    const std::array<short, 2> numbers = {1, 2};
    reader<int> r;
    csp::spawn(chan::enumerate<int>(numbers, ++r));
    expect(r, {1, 2});
    reader<int> again;
    csp::spawn(chan::cycle<int>(numbers, ++again));
    cr_assert_eq(again.read(), 1);
    reader<int> chained;
    csp::spawn(chan::chain<int>(std::vector<reader<int>>{csp::spawn_count(0, 2)}, ++chained));
    expect(chained, {0, 1});
}

// Goal: a chain of combinators is a program.
Test(HppCombinator, compose) {
    World world;
    auto r = csp::spawn_producer<int>([](const writer<int> &w) {
        for (int i = 0; i < 10; ++i)
            w << i;
    });
    r = csp::spawn_where(std::move(r), [](int n) { return n % 3 == 0; });
    r = csp::spawn_map(std::move(r), [](int n) { return n + 100; });
    r = csp::spawn_buffer(std::move(r), 16);
    expect(r, {100, 103, 106, 109});
}

// Goal: elements of containers that hand out proxies are messages of their own.
Test(HppCombinator, enumerate_copies_out_of_proxies) {
    World world;
    const reader<bool> bits = csp::spawn_enumerate(std::vector<bool>{true, false});
    cr_assert(bits.read());
    cr_assert_not(bits.read());
}
