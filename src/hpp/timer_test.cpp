// Sleeping, and readers that tell the time.
#include "hpp/test_hpp.hpp"

using namespace mc::hpp::testing;
using namespace std::chrono_literals;

// Goal: sleeping takes the time that it is told, in any unit, and too long is for ever.
Test(HppTimer, sleeps) {
    World world;
    int64_t before = mc_now();
    csp::sleep(2ms);
    cr_assert_geq(mc_now() - before, 2 * MC_MS);
    before = mc_now();
    csp::sleep(std::chrono::duration<double, std::milli>(1.5));
    cr_assert_geq(mc_now() - before, MC_MS + MC_MS / 2);
    csp::sleep(-5s);
    csp::sleep_until(csp::time_point::min());
    before = mc_now();
    csp::sleep_until(csp::time_point(std::chrono::nanoseconds(before + MC_MS)));
    cr_assert_geq(mc_now(), before + MC_MS);
    cr_assert_eq(csp::detail::nanoseconds_of(std::chrono::hours::max()), MC_FOREVER);
    cr_assert_eq(csp::detail::nanoseconds_of(1us), 1000);
    cr_assert_eq(csp::detail::nanoseconds_of(std::chrono::duration<double, std::nano>(0.5)), 1);
}

// Goal: after delivers once; it is an arm like any other, and costs nothing when it loses.
Test(HppTimer, after_delivers_once) {
    World world;
    const int64_t before = mc_now();
    const auto timer = csp::after(2ms);
    csp::time_point when;
    cr_assert(timer >> when);
    cr_assert_geq(when.time_since_epoch().count(), before + 2 * MC_MS);
    cr_assert_not(bool(timer >> when));
    csp::channel<int> ch;
    int n = 0;
    cr_assert_eq(csp::alt(-ch >> n, csp::after(1ms) >> when), 2);
    csp::spawn([w = +ch] { w << 3; });
    cr_assert_eq(csp::alt(-ch >> n, csp::after(1h) >> when), 1);
}

// Goal: who does not ask when it was reads a poke, or takes it for a reader of pokes.
Test(HppTimer, may_only_say_that_it_is_time) {
    World world;
    const csp::clock::time_point before = csp::clock::now();
    auto timeout = csp::after(2ms);
    cr_assert(timeout >> csp::poke);
    cr_assert_geq((csp::clock::now() - before).count(), csp::clock::duration(2ms).count());
    timeout = csp::after(1h);
    timeout = {};
    channel<int> ch;
    int n = 0;
    cr_assert_eq(csp::alt(-ch >> n, csp::after(1ms) >> csp::poke), 2);
    const reader<> pokes = csp::after(1ms);
    struct {
        csp::poke_t poke;
        unsigned char behind[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    } room;
    cr_assert(pokes >> room.poke); // the time that comes is not written anywhere
    cr_assert_eq(room.behind[0], 1);
    cr_assert_eq(room.behind[7], 8);
    cr_assert_not(bool(pokes >> csp::poke));
    reader<> beat = csp::tick(1ms);
    (void)beat.read();
    for (const auto &poked : beat) {
        (void)poked;
        break;
    }
    channel<> cut;
    csp::spawn(chan::killswitch(std::move(beat), ++cut, csp::after(20ms))); // its writer goes with the time
    cr_assert(-cut >> csp::poke);
    const reader<csp::time_point> when = csp::after(0ms);
    csp::clock::time_point at;
    cr_assert(when >> at);
    csp::sleep_until(csp::clock::now() + 1ms);
}

// Goal: tick delivers again and again, at its beat.
Test(HppTimer, tick_delivers_at_its_beat) {
    World world;
    const auto ticks = csp::tick(1ms);
    const csp::time_point first = ticks.read();
    csp::time_point last = first;
    for (int i = 0; i < 5; ++i) {
        const csp::time_point next = ticks.read();
        cr_assert_gt((next - last).count(), 0);
        last = next;
    }
    cr_assert_geq((last - first).count(), 4 * MC_MS);
    expect_text(thrown<std::invalid_argument>([] { (void)csp::tick(0s); }).c_str(),
                "tick: the interval must be above 0");
}
