// Every combinator with an int, a std::string, a type that may throw, and a move-only one where it does not copy; each with its
// free form and each of its spawn forms.
#include "hpp/test_hpp.hpp"

#include <optional>

using namespace mc::hpp::testing;

namespace {

template <class T> struct Kind;
template <> struct Kind<int> {
    static int make(int n) { return n; }
    static int value(int n) { return n; }
};
template <> struct Kind<std::string> {
    static std::string make(int n) { return std::to_string(n) + std::string(40, '.'); }
    static int value(const std::string &s) { return std::stoi(s); }
};
template <> struct Kind<Throwing> {
    static Throwing make(int n) { return Throwing(n); }
    static int value(const Throwing &t) { return t.value; }
};
template <> struct Kind<MoveOnly> {
    static MoveOnly make(int n) { return MoveOnly(n); }
    static int value(const MoveOnly &m) { return *m.value; }
};

template <class T> reader<T> source(int n) {
    return csp::spawn_producer<T>([n](const writer<T> &w) {
        for (int i = 0; i < n; ++i)
            if (!(w << Kind<T>::make(i)))
                return;
    });
}

// Expects 0, 1, ... n - 1.
template <class T> void expect(const reader<T> &r, int n) {
    int next = 0;
    for (const T &message : r)
        cr_assert_eq(Kind<T>::value(message), next++);
    cr_assert_eq(next, n);
}

template <class T> writer<T> expecting(int n, bool &complete) {
    return csp::spawn_consumer<T>([n, &complete](const reader<T> &r) {
        expect(r, n);
        complete = true;
    });
}

// form(reader, writer) is the combinator; before(writer) gives a new writer, after(reader) a new reader, around() a channel.
template <class T, class Form> void free_form(Form form) {
    channel<T> out;
    csp::spawn(form(source<T>(5), ++out));
    expect(--out, 5);
}
template <class T, class Before> void before(Before make) {
    bool complete = false;
    csp::spawn(source<T>(5).stream_to(make(expecting<T>(5, complete))));
    csp_schedule();
    cr_assert(complete);
}
template <class T> void around(channel<T> ch) {
    csp::spawn(source<T>(5).stream_to(++ch));
    expect(--ch, 5);
}

const auto same = [](auto &&message) { return std::forward<decltype(message)>(message); };
const auto any = [](const auto &) { return true; };

template <class T> void without_copies() {
    const auto guard = [] { return csp::spawn_mute(); };
    free_form<T>([](auto r, auto w) { return chan::buffer(r, w, 2); });
    before<T>([](auto w) { return csp::spawn_buffer(w, 2); });
    expect(csp::spawn_buffer(source<T>(5), 2), 5);
    around(csp::spawn_buffer<T>(2));

    free_form<T>([](auto r, auto w) { return chan::map(r, w, same); });
    before<T>([](auto w) { return csp::spawn_map<T>(w, same); });
    expect(csp::spawn_map<T>(source<T>(5), same), 5);
    around(csp::spawn_map<T>(same));

    free_form<T>([](auto r, auto w) { return chan::where(r, w, any); });
    before<T>([](auto w) { return csp::spawn_where(w, any); });
    expect(csp::spawn_where(source<T>(5), any), 5);
    around(csp::spawn_where<T>(any));

    free_form<T>([&](auto r, auto w) { return chan::killswitch(r, w, guard()); });
    before<T>([&](auto w) { return csp::spawn_killswitch(w, guard()); });
    expect(csp::spawn_killswitch(source<T>(5), guard()), 5);
    around(csp::spawn_killswitch<T>(guard()));

    free_form<T>([](auto r, auto w) { return chan::chain({r}, w); });
    free_form<T>([](auto r, auto w) { return chan::chain(std::vector<reader<T>>{r}, w); });
    expect(csp::spawn_chain({source<T>(5)}), 5);
    expect(csp::spawn_chain<T>(std::vector<reader<T>>{source<T>(5)}), 5);

    int sum = 0;
    csp::spawn(chan::sink(source<T>(5), [&](T message) { sum += Kind<T>::value(message); }));
    csp_schedule();
    cr_assert_eq(sum, 10);
    csp::spawn(source<T>(5).stream_to(csp::spawn_sink<T>([&](T &&message) { sum -= Kind<T>::value(message); })));
    csp_schedule();
    cr_assert_eq(sum, 0);
    T last = Kind<T>::make(0);
    csp::spawn(source<T>(5).stream_to(csp::spawn_sinkhole<T>(last)));
    csp_schedule();
    cr_assert_eq(Kind<T>::value(last), 4);

    csp::spawn(chan::blackhole(source<T>(5)));
    csp::spawn(source<T>(5).stream_to(csp::spawn_blackhole<T>()));
    csp_schedule();
    {
        channel<T> ch;
        csp::spawn(chan::mute(++ch));
        channel<T> unheard;
        csp::spawn(chan::deaf(--unheard));
        const auto muted = csp::spawn_mute<T>();
        const auto deaf = csp::spawn_deaf<T>();
        cr_assert_eq(csp::try_alt(deaf << Kind<T>::make(1)), 0);
    }
    csp_schedule();

    channel<std::tuple<T>> requests;
    channel<T> replies;
    csp::spawn(chan::rpc_server(--requests, ++replies, same));
    cr_assert_eq(Kind<T>::value(chan::rpc_client(++requests, --replies)(Kind<T>::make(3))), 3);
    channel<std::pair<std::tuple<T>, writer<T>>> calls;
    csp::spawn(chan::rpc_server(--calls, same));
    cr_assert_eq(Kind<T>::value(chan::rpc_client(++calls)(Kind<T>::make(4))), 4);
    csp_schedule();
}

template <class T> void with_copies() {
    const auto hole = [] { return csp::spawn_blackhole<T>(); };
    free_form<T>([&](auto r, auto w) { return chan::tee(r, w, hole()); });
    before<T>([&](auto w) { return csp::spawn_tee(w, hole()); });
    expect(csp::spawn_tee(source<T>(5), hole()), 5);

    channel<T> ch;
    csp::spawn(chan::latch(source<T>(1), ++ch));
    cr_assert_eq(Kind<T>::value((-ch).read()), 0);
    ch.release();
    cr_assert_eq(Kind<T>::value(csp::spawn_latch(source<T>(1)).read()), 0);
    auto both = csp::spawn_latch<T>();
    +both << Kind<T>::make(6);
    cr_assert_eq(Kind<T>::value((-both).read()), 6);
    both.release();
    bool complete = false;
    csp::spawn(source<T>(1).stream_to(csp::spawn_latch(
        csp::spawn_consumer<T>([&](const reader<T> &r) { complete = Kind<T>::value(r.read()) == 0; }))));
    csp_schedule();
    cr_assert(complete);

    std::vector<T> values;
    for (int i = 0; i < 5; ++i)
        values.push_back(Kind<T>::make(i));
    channel<T> listed;
    csp::spawn(chan::enumerate(values, ++listed));
    expect(--listed, 5);
    expect(csp::spawn_enumerate<T>(values), 5);
    expect(csp::spawn_enumerate({Kind<T>::make(0), Kind<T>::make(1)}), 2);
    const auto round = csp::spawn_cycle<T>(values);
    for (int i = 0; i < 12; ++i)
        cr_assert_eq(Kind<T>::value(round.read()), i % 5);
    cr_assert_eq(Kind<T>::value(csp::spawn_cycle({Kind<T>::make(7)}).read()), 7);

    channel<writer<T>> inputs;
    channel<writer<T>> outputs;
    csp::spawn(chan::fanout(--outputs, ++inputs));
    bool first = false;
    bool second = false;
    +outputs << expecting<T>(5, first);
    +outputs << expecting<T>(5, second);
    csp::spawn(source<T>(5).stream_to((-inputs).read()));
    csp_schedule();
    outputs.release();
    inputs.release();
    csp_schedule();
    cr_assert(first);
    cr_assert(second);
}

} // namespace

// Goal: an int passes through every combinator.
Test(HppCombinatorTypes, an_int) {
    World world;
    without_copies<int>();
    with_copies<int>();
}

// Goal: a std::string, too.
Test(HppCombinatorTypes, a_string) {
    World world;
    without_copies<std::string>();
    with_copies<std::string>();
}

// Goal: and a type that may throw.
Test(HppCombinatorTypes, a_throwing_type) {
    World world;
    without_copies<Throwing>();
    with_copies<Throwing>();
}

// Goal: and a move-only one through those that do not copy.
Test(HppCombinatorTypes, a_move_only_type) {
    World world;
    without_copies<MoveOnly>();
}

// Goal: the spawn forms are found in csp::chan as well.
Test(HppCombinatorTypes, names_are_in_both_namespaces) {
    World world;
    expect(csp::chan::spawn_buffer(csp::chan::spawn_count(0, 5)), 5);
    expect(csp::chan::spawn_map(csp::chan::spawn_where(source<int>(5), any), same), 5);
}
