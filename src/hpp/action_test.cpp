// When actions happen: once, when asked, or when they are destroyed unused; and not when an exception passes them.
#include "hpp/test_hpp.hpp"

using namespace mc::hpp::testing;

// Goal: an action that nobody has used happens at the end of its statement.
Test(HppAction, happens_when_destroyed) {
    World world;
    channel<int> ch;
    int got = 0;
    csp::spawn([&] { -ch >> got; });
    +ch << 7;
    cr_assert_eq(got, 7);
}

// Goal: asked for its truth it happens, and not again at its end.
Test(HppAction, happens_once_when_asked) {
    World world;
    channel<int> ch;
    std::vector<int> got;
    gather(--ch, got);
    {
        const csp::writer<int> w = ++ch;
        cr_assert(w << 1);
        if (w << 2)
            w << 3;
        const action kept = w << 4;
        cr_assert(bool(kept));
    }
    csp_schedule();
    cr_assert_eq(got.size(), 4U);
    cr_assert_eq(got[3], 4);
}

// Goal: false when the other end is dead, at once and while waiting; the message is destroyed.
Test(HppAction, is_false_on_a_dead_channel) {
    World world;
    csp::writer<NoDefault> w;
    csp::reader<NoDefault> r = --w;
    csp::spawn([r = std::move(r)]() mutable {
        csp_yield();
        r = {};
    });
    cr_assert_not(bool(w << NoDefault(1)));
    cr_assert_not(bool(w << NoDefault(2)));
    csp::reader<NoDefault> dead = csp::reader<NoDefault>::dead();
    NoDefault into(5);
    cr_assert_not(bool(dead >> into));
    cr_assert_eq(into.value, 5);
}

// Goal: an exception on its way past an unused action does not make it happen; one made while an exception is on its way does.
Test(HppAction, does_not_happen_when_an_exception_passes) {
    World world;
    channel<int> ch;
    std::vector<int> got;
    gather(--ch, got);
    const csp::writer<int> w = ++ch;
    struct SaysGoodbye {
        const csp::writer<int> &w;
        ~SaysGoodbye() { w << 9; }
    };
    const auto fails = []() -> csp::action { throw Boom("no action"); };
    expect_text(thrown<Boom>([&] {
                    const SaysGoodbye goodbye{w};
                    const action unused = w << 1;
                    (void)bool(fails());
                }).c_str(),
                "no action");
    cr_assert_eq(got.size(), 1U);
    cr_assert_eq(got[0], 9);
}

// Goal: moving takes the action along; what was moved from, or assigned over, does not happen.
Test(HppAction, moves_and_is_forgotten_when_assigned) {
    World world;
    channel<std::string> ch;
    std::vector<std::string> got;
    gather(--ch, got);
    const csp::writer<std::string> w = ++ch;
    {
        action first = w << std::string("forgotten, and so long that it is allocated");
        action second = w << std::string("sent, and so long that it is allocated, too");
        cr_assert_not(first.empty());
        first = std::move(second);
        action third(std::move(first));
        cr_assert(first.empty()); // NOLINT(bugprone-use-after-move): empty is what it promises
        cr_assert(got.empty());
    }
    cr_assert_eq(got.size(), 1U);
    cr_assert_eq(got[0][0], 's');
    action none;
    cr_assert(none.empty());
    cr_assert_not(bool(none));
    cr_assert_eq(csp::alt(none), 0);
}

// Goal: an arm of the C functions is an action, too; what it brings is cleaned up once, whether it went or not.
Test(HppAction, may_be_an_arm_of_c) {
    World world;
    channel<int> ch;
    static int cleaned;
    cleaned = 0;
    const auto clean = [](void *message) {
        cleaned += *static_cast<int *>(message);
        delete static_cast<int *>(message);
    };
    int got = 0;
    csp::spawn([&, r = -ch] {
        while (r >> got) {
        }
    });
    csp::writer<int> w = ++ch;
    action({csp_wait(w.internal_writer()), new int(3)}, clean);
    cr_assert_eq(got, 3);
    cr_assert_eq(cleaned, 3);
    {
        action first({csp_wait(w.internal_writer()), new int(10)}, clean);
        action second({csp_wait(w.internal_writer()), new int(20)}, clean);
        first = std::move(second);
        cr_assert_eq(cleaned, 13);
        cr_assert_eq(csp::prialt(~csp::skip, first), -1);
    }
    cr_assert_eq(cleaned, 33);
    cr_assert_eq(got, 3);
    int mine = 5;
    cr_assert(action({csp_wait(w.internal_writer()), &mine}, nullptr));
    cr_assert_eq(got, 5);
    const action::cleanup_f none = nullptr;
    cr_assert_eq(csp::alt(action({csp_wait_dead(w.internal_writer()), nullptr}, none), action(), ~csp::skip), -3);
}

// Goal: self-assignment keeps the action.
Test(HppAction, survives_assignment_to_itself) {
    World world;
    channel<int> ch;
    int got = 0;
    csp::spawn([&, r = --ch] { r >> got; });
    {
        action send = +ch << 3;
        action &same = send;
        send = std::move(same);
    }
    cr_assert_eq(got, 3);
}

// Goal: an empty endpoint's actions are empty: false at once, nothing happens.
Test(HppAction, of_an_empty_endpoint_is_empty) {
    World world;
    const csp::writer<int> w;
    const csp::reader<int> r;
    int n = 4;
    cr_assert_not(bool(w << 1));
    cr_assert_not(bool(r >> n));
    cr_assert_not(bool(~w));
    cr_assert_not(bool(~r));
    w << 2;
    cr_assert_eq(n, 4);
    cr_assert_eq(csp::prialt(w << 1, r >> n, ~w), 0);
}

// Goal: ~end waits for the death of the other end.
Test(HppAction, of_a_death_waits_for_it) {
    World world;
    channel<> ch;
    bool closed = false;
    csp::spawn([&, w = ++ch] {
        csp_yield();
        closed = true;
    });
    cr_assert_not(bool(~-ch));
    cr_assert(closed);
    channel<> other;
    closed = false;
    csp::spawn([&, r = --other] {
        csp_yield();
        closed = true;
    });
    ~+other;
    cr_assert(closed);
}

// Goal: poke channels carry signals.
Test(HppAction, pokes) {
    World world;
    channel<> ch;
    int pokes = 0;
    csp::spawn([&, r = --ch] {
        while (r >> csp::poke)
            ++pokes;
    });
    +ch << csp::poke;
    +ch << csp::poke;
    ch.release();
    csp_schedule();
    cr_assert_eq(pokes, 2);
}

// Goal: std::ref sends from where the message is, and leaves it there when nobody takes it.
Test(HppAction, from_a_reference_moves_only_when_it_goes) {
    World world;
    channel<std::unique_ptr<int>> ch;
    auto message = std::make_unique<int>(6);
    cr_assert_eq(csp::prialt(+ch << std::ref(message), ~csp::skip), -2);
    cr_assert_not_null(message.get());
    int got = 0;
    csp::spawn([&, r = --ch] { got = *r.read(); });
    cr_assert(+ch << std::ref(message));
    cr_assert_null(message.get());
    cr_assert_eq(got, 6);
    auto other = std::make_unique<int>(7);
    cr_assert_not(bool(+ch << std::ref(other)));
    cr_assert_eq(*other, 7);
}

// Goal: in a task that a scope has cancelled, actions are false instead of waiting.
Test(HppAction, is_false_when_cancelled) {
    World world;
    channel<int> ch;
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
    csp::spawn([&] {
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        int n = 0;
        cr_assert_not(bool(-ch >> n));
        cr_assert_eq(csp::alt(-ch >> n), MC_E_CANCELED);
        expect_text(thrown<csp::microthread_error>([&] { (void)(-ch).read(); }).c_str(), "reader failed: canceled");
        cr_assert_eq(mc_scope_leave(), MC_OK);
    });
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp_schedule();
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
}
