// Ends as counted values: copies, moves, death, iteration, streams, buffers.
#include "hpp/test_hpp.hpp"

using namespace mc::hpp::testing;

namespace {
int writers() { return csp__internal__channel_count(0); }
int readers() { return csp__internal__channel_count(1); }

template <class Side> struct Service {
    csp::incoming<Side, int> requests;
    csp::outgoing<Side, std::string> replies;
    csp::outgoing<Side> done;
};
} // namespace

// Goal: an end lives as long as a copy of it does.
Test(HppEndpoint, is_counted) {
    World world;
    writer<int> w;
    reader<int> r;
    csp::make_channel(w, r);
    cr_assert_eq(writers(), 1);
    cr_assert_eq(readers(), 1);
    {
        writer<int> copy = w;
        cr_assert(copy == w);
        w = {};
        cr_assert(copy != w);
        cr_assert_not(bool(w));
        cr_assert_eq(writers(), 1);
        w = copy;
        w = std::as_const(w);
        copy = std::move(w);
        cr_assert_not(bool(w)); // NOLINT(bugprone-use-after-move)
        cr_assert_eq(writers(), 1);
    }
    cr_assert_eq(writers(), 0);
    int n = 0;
    cr_assert_eq(csp::alt(r >> n), -1);
    reader<int> other = r;
    reader<int> third(std::move(other));
    swap(third, r);
    std::swap(third, r);
    r = std::move(third);
    cr_assert_eq(readers(), 1);
    r = {};
    cr_assert_eq(readers(), 0);
}

// Goal: ++ch and --ch take the ends out, +ch and -ch leave them in.
Test(HppEndpoint, of_a_channel) {
    World world;
    channel<int> ch;
    cr_assert((+ch).internal_writer() != nullptr);
    const writer<int> w = ++ch;
    cr_assert_not(bool(+ch));
    cr_assert(bool(-ch));
    const channel<int> copy = ch;
    ch = channel<int>(w, --ch);
    cr_assert(+ch == w);
    cr_assert(-copy == -ch);
    cr_assert_eq(writers(), 1);
    channel<int> moved = std::move(ch);
    cr_assert(+moved == w);
    moved.release();
    cr_assert_not(bool(-moved));
    cr_assert_eq(writers(), 1);
    cr_assert_eq(readers(), 1);
}

// Goal: an empty endpoint gets a channel; one that has one already keeps it, and the caller is told.
Test(HppEndpoint, gets_a_channel_of_its_own) {
    World world;
    writer<int> w;
    reader<int> r = --w;
    csp::spawn([=] { w << 4; });
    cr_assert_eq(r.read(), 4);
    expect_text(thrown<csp::microthread_error>([&] { --w; }).c_str(), "writer is attached to a channel already");
    expect_text(thrown<csp::microthread_error>([&] { ++r; }).c_str(), "reader is attached to a channel already");
    reader<int> other;
    w = ++other;
    csp::spawn([=] { w << 5; });
    cr_assert_eq(other.read(), 5);
}

// Goal: dead ends are dead.
Test(HppEndpoint, may_be_dead_from_the_start) {
    World world;
    const auto w = writer<std::string>::dead();
    const auto r = reader<std::string>::dead();
    cr_assert(bool(w));
    cr_assert_eq(csp::prialt(w << "text"), -1);
    cr_assert_eq(csp::prialt(~r), -1);
    expect_text(thrown<csp::microthread_error>([&] { (void)r.read(); }).c_str(), "reader exhausted");
    expect_text(thrown<csp::microthread_error>([&] { (void)reader<int>().read(); }).c_str(), "reader exhausted");
}

// Goal: iteration gives every message, in order, and ends with the channel.
Test(HppEndpoint, iterates) {
    World world;
    int expected = 0;
    for (const int n : produce<int>({0, 1, 2, 3}))
        cr_assert_eq(n, expected++);
    cr_assert_eq(expected, 4);
    const auto r = produce<int>({5, 6, 7});
    auto at = r.begin();
    cr_assert_eq(*at++, 5);
    cr_assert_eq(*at, 6);
    auto copy = at;
    cr_assert_eq(*copy, 6);
    ++at;
    cr_assert_eq(*at, 7);
    cr_assert(++at == r.end());
    const auto words = produce<std::string>({"a", "bc"});
    const std::vector<std::string> got(words.begin(), words.end());
    cr_assert_eq(got.size(), 2U);
    cr_assert_eq(words.begin(), words.end());
    cr_assert(reader<int>().begin() == reader<int>().end());
    for (const auto &w : produce<std::string>({"xyz"}))
        cr_assert_eq(w.size(), 3U);
    auto pointers = csp::spawn_producer<MoveOnly>([](const writer<MoveOnly> &w) {
        w << MoveOnly(1);
        w << MoveOnly(2);
    });
    int sum = 0;
    for (MoveOnly &n : pointers)
        sum += *MoveOnly(std::move(n)).value;
    cr_assert_eq(sum, 3);
}

// Goal: a close ends the channel for all copies of the writer; what is buffered still comes.
Test(HppEndpoint, writers_close_for_all_copies) {
    World world;
    channel<int> ch;
    const writer<int> copy = +ch;
    bool told = false;
    csp::spawn([&, r = -ch] {
        int n = 0;
        told = !(r >> n);
    });
    cr_assert((+ch).close());
    csp_schedule();
    cr_assert(told);
    cr_assert_not(copy.close());
    cr_assert_not(bool(copy << 1));
    cr_assert_not(writer<int>().close());
    auto buffered = csp::make_buffered<int>(2);
    +buffered << 4;
    cr_assert((+buffered).close());
    const auto got = all(-buffered);
    cr_assert_eq(got.size(), 1U);
    cr_assert_eq(got[0], 4);
}

// Goal: iterators can be made of the reader itself.
Test(HppEndpoint, iterators_are_made_of_readers) {
    World world;
    const auto r = produce<int>({1, 2});
    int sum = 0;
    for (reader<int>::iterator at(r), end; at != end; ++at)
        sum += *at;
    cr_assert_eq(sum, 3);
}

// Goal: leaving an iteration leaves the rest with the sender.
Test(HppEndpoint, iteration_may_be_left) {
    World world;
    const auto r = produce<int>({1, 2, 3});
    for (const int n : r)
        if (n == 2)
            break;
    cr_assert_eq(r.read(), 3);
}

// Goal: a stream forwards everything, and stops when either side does.
Test(HppEndpoint, streams_to_another) {
    World world;
    channel<int> out;
    csp::spawn(produce<int>({1, 2, 3}).stream_to(++out));
    cr_assert_eq(all(--out).size(), 3U);
    channel<double> doubles;
    csp::spawn(produce<int>({4}).stream_to(++doubles));
    cr_assert_eq((--doubles).read(), 4.0);
    channel<int> endless;
    bool ended = false;
    csp::spawn([&, w = ++endless] {
        while (w << 1) {
        }
        ended = true;
    });
    channel<int> cut;
    csp::spawn((--endless).stream_to(++cut));
    cr_assert_eq((-cut).read(), 1);
    cut.release();
    csp_schedule();
    cr_assert(ended);
    channel<MoveOnly> unique;
    csp::spawn(csp::spawn_producer<MoveOnly>([](const writer<MoveOnly> &w) { w << MoveOnly(4); }).stream_to(++unique));
    cr_assert_eq(*(--unique).read().value, 4);
}

// Goal: a buffered channel holds what it says, gives it out after its writers are gone, and is gone with its ends.
Test(HppEndpoint, may_have_a_buffer) {
    World world;
    auto ch = csp::make_buffered<int>(3);
    cr_assert(+ch << 1);
    cr_assert(+ch << 2);
    cr_assert_eq(csp::try_alt(+ch << 3), 1);
    cr_assert_eq(csp::try_alt(+ch << 4), 0);
    reader<int> r = --ch;
    ++ch;
    cr_assert_eq(all(r).size(), 3U);
    r = {};
    cr_assert_eq(writers(), 0);
    cr_assert_eq(readers(), 0);
    auto meets = csp::make_buffered<int>(0);
    cr_assert_eq(csp::try_alt(+meets << 4), 0);
    expect_text(thrown<csp::microthread_error>([&] { (void)csp::make_buffered<int>(UINT32_MAX); }).c_str(),
                "channel creation failed: invalid argument");
}

// Goal: a description reaches the report of who waits.
Test(HppEndpoint, has_a_description) {
    World world;
    channel<int> ch;
    (+ch).descr("orders");
    csp::spawn([r = -ch] {
        int n = 0;
        r >> n;
    });
    bool found = false;
    const mc_task_info_fn look = [](void *user, const mc_task_info *info) {
        *static_cast<bool *>(user) |= std::string(info->object_name) == "orders";
    };
    cr_assert_geq(mc_inspect_tasks(0, 0, look, &found), 0);
    cr_assert(found);
    ch.release();
    csp_schedule();
}

// Goal: one declaration serves both sides.
Test(HppEndpoint, of_an_interface_has_two_sides) {
    World world;
    Service<csp::ClientSide> client;
    Service<csp::ServerSide> server;
    static_assert(std::is_same_v<decltype(client.requests), writer<int>>);
    static_assert(std::is_same_v<decltype(server.done), writer<>>);
    server.requests = --client.requests;
    server.replies = ++client.replies;
    csp::spawn([server = std::move(server)] { server.replies << std::to_string(server.requests.read()); });
    client.requests << 12;
    expect_text(client.replies.read().c_str(), "12");
}
