// Messages of every kind, moved once, to variables, conversions and bare room; what throws, and who gets to know.
#include "hpp/test_hpp.hpp"

using namespace mc::hpp::testing;

namespace {

// Sends one message to each kind of receiver, with either party first.
template <class T> void passes(T (*make)(int), int (*value)(const T &)) {
    for (const bool receiver_first : {true, false}) {
        channel<T> ch;
        const auto with = [&](auto send, auto receive) {
            if (receiver_first) {
                csp::spawn(receive);
                send();
            } else {
                csp::spawn(send);
                receive();
            }
        };
        with([&] { cr_assert(+ch << make(1)); }, [&] { cr_assert_eq(value((-ch).read()), 1); });
        T kept = make(2);
        with([&] { cr_assert(+ch << std::ref(kept)); },
             [&] {
                 T got = make(0);
                 cr_assert(-ch >> got);
                 cr_assert_eq(value(got), 2);
             });
        with([&] { cr_assert_eq(csp::alt(+ch << make(3)), 1); },
             [&] {
                 csp::detail::cell<T> got;
                 cr_assert_eq(csp::alt(-ch >> got.room()), 1);
                 got.filled();
                 cr_assert_eq(value(*got), 3);
             });
        with([&] { cr_assert(+ch << make(4)); },
             [&] {
                 T got = make(0);
                 cr_assert_eq(csp::prialt(-ch >> &got), 1);
                 cr_assert_eq(value(got), 4);
             });
        with([&] { cr_assert(+ch << make(5)); }, [&] { cr_assert(-ch >> nullptr); });
        with([&] { cr_assert(+ch << make(6)); }, [&] { cr_assert(-ch >> static_cast<void *>(nullptr)); });
        csp_schedule();
    }
}

} // namespace

// Goal: every kind of message reaches every kind of receiver, whoever waits, and none is left over.
Test(HppMessage, of_every_kind_passes) {
    World world;
    passes<int>([](int n) { return n; }, [](const int &n) { return n; });
    passes<std::string>([](int n) { return std::string(static_cast<size_t>(n) * 20 + 1, 'x'); },
                        [](const std::string &s) { return static_cast<int>(s.size() / 20); });
    passes<std::string>([](int n) { return std::string(static_cast<size_t>(n), 'x'); },
                        [](const std::string &s) { return static_cast<int>(s.size()); });
    passes<NoDefault>([](int n) { return NoDefault(n); }, [](const NoDefault &n) { return n.value; });
    passes<MoveOnly>([](int n) { return MoveOnly(n); }, [](const MoveOnly &n) { return *n.value; });
    passes<Big>([](int n) { return Big(n); }, [](const Big &n) { return n.padding[99]; });
    passes<Throwing>([](int n) { return Throwing(n); }, [](const Throwing &n) { return n.value; });
    passes<Aligned>([](int n) { return Aligned(n); },
                    [](const Aligned &n) {
                        cr_assert(n.aligned());
                        return n.value;
                    });
    struct Fixed { // trivially copyable, but not assignable
        const int n;
    };
    channel<Fixed> ch;
    csp::spawn([&] { +ch << Fixed{4}; });
    cr_assert_eq((-ch).read().n, 4);
    ch.release();
    struct alignas(64) Line {
        char bytes[64];
    };
    channel<Line> lines;
    csp::spawn([&] { +lines << Line{"in one line"}; });
    cr_assert_eq(std::strcmp((-lines).read().bytes, "in one line"), 0);
    lines.release();
}

// Goal: a message goes into whatever it can be assigned to.
Test(HppMessage, converts_at_the_receiver) {
    World world;
    channel<int> ints;
    channel<std::string> strings;
    csp::spawn([w = ++ints] {
        w << 3;
        w << 4;
    });
    csp::spawn([w = ++strings] {
        w << "from a literal";
        w << std::string("moved");
    });
    double d = 0;
    cr_assert(-ints >> d);
    cr_assert_eq(d, 3.0);
    long l = 0;
    cr_assert_eq(csp::alt(-ints >> l), 1);
    cr_assert_eq(l, 4);
    std::optional<std::string> maybe;
    cr_assert(-strings >> maybe);
    expect_text(maybe->c_str(), "from a literal");
    cr_assert_eq(csp::prialt(csp::action(), -strings >> maybe), 2);
    expect_text(maybe->c_str(), "moved");
    cr_assert_not(bool(-strings >> maybe));
    expect_text(maybe->c_str(), "moved");

    channel<Big> bigs;
    struct FromBig {
        int value = 0;
        FromBig &operator=(Big &&big) {
            value = big.value;
            return *this;
        }
    } from;
    csp::spawn([w = ++bigs] { w << Big(6); });
    cr_assert(-bigs >> from);
    cr_assert_eq(from.value, 6);
}

// Goal: pointers are messages too, and a reader of void * tells its variable from room.
Test(HppMessage, may_be_a_pointer) {
    World world;
    int target = 0;
    channel<void *> pointers;
    csp::spawn([&, w = ++pointers] { w << static_cast<void *>(&target); });
    void *got = nullptr;
    cr_assert(-pointers >> got);
    cr_assert_eq(got, &target);
    pointers.release();
    channel<int *> ints;
    csp::spawn([&, w = ++ints] { w << &target; });
    int *other = nullptr;
    cr_assert(-ints >> other);
    cr_assert_eq(other, &target);
}

// Goal: what a move throws comes out of the call of who came second: here the sender's; the message counts as sent.
Test(HppMessage, that_throws_tells_a_sender_who_came_second) {
    World world;
    channel<Throwing> ch;
    bool received = false;
    csp::spawn([&] {
        Throwing into(3);
        received = bool(-ch >> into);
        cr_assert_eq(into.value, 3);
    });
    const Throwing message(4);
    Throwing from(5);
    Throwing::arm(1);
    expect_text(thrown<Boom>([&] { (void)bool(+ch << std::ref(from)); }).c_str(), "moving");
    cr_assert(received);
    csp::spawn([&] { received = !(-ch >> from); });
    Throwing::arm(2); // the copy into the action goes well
    expect_text(thrown<Boom>([&] { +ch << message; }).c_str(), "moving");
    cr_assert_not(received);
    cr_assert_eq(message.value, 4);
}

// Goal: and here the receiver's.
Test(HppMessage, that_throws_tells_a_receiver_who_came_second) {
    World world;
    channel<Throwing> ch;
    bool sent = false;
    const auto send = [&] {
        Throwing from(5);
        sent = bool(+ch << std::ref(from));
    };
    for (int how = 0; how < 4; ++how) {
        sent = false;
        csp::spawn(send);
        Throwing into(1);
        Throwing::arm(1);
        expect_text(thrown<Boom>([&] {
                        if (how == 0)
                            (void)bool(-ch >> into);
                        else if (how == 1)
                            (void)csp::alt(csp::action(), -ch >> into);
                        else if (how == 2)
                            -ch >> into;
                        else
                            (void)(-ch).read();
                    }).c_str(),
                    "moving", "%d", how);
        csp_schedule();
        cr_assert(sent);
        cr_assert_eq(into.value, 1);
    }
}

// Goal: a receiver that waits for an object that cannot be made gets the exception as well: it has nothing to return.
Test(HppMessage, that_throws_tells_a_reader_that_waits_for_a_value) {
    World world;
    channel<Throwing> ch;
    std::string told;
    csp::spawn([&] { told = thrown<Boom>([&] { (void)(-ch).read(); }); });
    Throwing from(5);
    Throwing::arm(1);
    expect_text(thrown<Boom>([&] { +ch << std::ref(from); }).c_str(), "moving");
    csp_schedule();
    expect_text(told.c_str(), "moving");
    csp::spawn([&] {
        told = thrown<Boom>([&] {
            for (auto &message : -ch)
                (void)message;
        });
    });
    Throwing::arm(1);
    expect_text(thrown<Boom>([&] { +ch << std::ref(from); }).c_str(), "moving");
    csp_schedule();
    expect_text(told.c_str(), "moving");
}

// Goal: an action whose message throws when it is moved is whole where it was.
Test(HppMessage, that_throws_leaves_an_action_where_it_was) {
    World world;
    channel<Throwing> ch;
    csp::spawn([&, r = --ch] { cr_assert_eq(r.read().value, 8); });
    csp::action send = +ch << Throwing(8);
    Throwing::arm(1);
    expect_text(thrown<Boom>([&] { const csp::action other(std::move(send)); }).c_str(), "moving");
    cr_assert(bool(send)); // NOLINT(bugprone-use-after-move): it was not
}

// Goal: C callers take part: their messages are pointers to objects.
Test(HppMessage, may_come_from_c) {
    World world;
    channel<int> ints;
    channel<std::string> strings;
    csp::spawn([&, w = ++ints] {
        int n = 5;
        cr_assert_eq(csp_send(w.internal_writer(), &n), 1);
        cr_assert_eq(csp_send(w.internal_writer(), nullptr), 1);
    });
    cr_assert_eq((-ints).read(), 5);
    cr_assert_eq((-ints).read(), 0);
    csp::spawn([&, w = ++strings] {
        std::string s = "from C";
        cr_assert_eq(csp_send(w.internal_writer(), &s), 1);
        cr_assert(s.empty());
        cr_assert_eq(csp_send(w.internal_writer(), nullptr), 1);
        cr_assert(w << "to C");
    });
    expect_text((-strings).read().c_str(), "from C");
    std::string s = "something";
    cr_assert(-strings >> s);
    cr_assert(s.empty());
    cr_assert_eq(csp_recv((-strings).internal_reader(), &s), 1);
    expect_text(s.c_str(), "to C");
}

// Goal: a C sender without a message cannot make an object that has no default: the receiver is told.
Test(HppMessage, must_be_there_when_there_is_no_default) {
    World world;
    channel<NoDefault> ch;
    csp::spawn([&] { cr_assert_eq(csp_send((+ch).internal_writer(), nullptr), 1); });
    expect_text(thrown<csp::microthread_error>([&] { (void)(-ch).read(); }).c_str(),
                "a message was needed, and the sender had none");
    std::string told;
    csp::spawn([&] { told = thrown<csp::microthread_error>([&] { (void)(-ch).read(); }); });
    cr_assert_eq(csp_send((+ch).internal_writer(), nullptr), 1);
    csp_schedule();
    expect_text(told.c_str(), "a message was needed, and the sender had none");
}

// Goal: constructors and assignments of messages run outside of locks and may use the channel; they may not wait.
Test(HppMessage, may_use_channels_while_it_moves) {
    World world;
    static int32_t waiting = 0;
    struct Nosy : Counted {
        csp::writer<int> other;
        Nosy() = default;
        explicit Nosy(csp::writer<int> w) : other(std::move(w)) {}
        Nosy(Nosy &&) = default;
        Nosy &operator=(Nosy &&from) noexcept {
            other = std::move(from.other);
            waiting = csp::alt(other << 1);
            other = {};
            return *this;
        }
    };
    channel<int> ints;
    channel<Nosy> ch;
    csp::spawn([&, w = ++ints] { +ch << Nosy(w); });
    Nosy got;
    cr_assert(-ch >> got);
    cr_assert_eq(waiting, MC_E_CONTEXT);
}

// Goal: a derived object that a base is received into keeps what is its own.
Test(HppMessage, leaves_a_derived_object_its_own) {
    World world;
    struct Base {
        int a;
        char b;
    };
    struct Derived : Base {
        char c;
    };
    channel<Base> ch;
    csp::spawn([&] { +ch << Base{1, 'b'}; });
    Derived into{{0, 'x'}, 'c'};
    cr_assert(-ch >> static_cast<Base &>(into));
    cr_assert_eq(into.b, 'b');
    cr_assert_eq(into.c, 'c');
}
