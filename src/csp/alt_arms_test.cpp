// alt and prialt with arms that have something to do with each other: duplicates, both ends of one channel; fairness
// and priority; more arms than fit on the stack.
#include "csp/test_csp.hpp"

#include <algorithm>
#include <memory>
#include <vector>

using namespace mc::csp::testing;

namespace {

// A channel of empty elements, full of them: always ready to receive from.
csp_reader full(uint32_t count, mc_chan_t *handle) {
    cr_assert_eq(mc_chan_create(0, 0, count, nullptr, nullptr, handle), MC_OK);
    for (uint32_t i = 0; i < count; ++i)
        cr_assert_eq(mc_send_try(*handle, nullptr), MC_OK);
    csp_reader reader = nullptr;
    cr_assert_eq(mc_chan_reader(*handle, &reader), MC_OK);
    return reader;
}

// Arms 0, 2, 3, 5 are the same; the others are idle.
struct Duplicates {
    Chan chan, idle;
    int got[6];
    csp_chanop ops[6];

    Duplicates() {
        for (int i = 0; i < 6; ++i) {
            got[i] = -5;
            ops[i] = i == 1 || i == 4 ? receives(idle.r, &got[i]) : receives(chan.r, &got[i]);
        }
    }
    // The lowest's message got it, no other.
    void check(int lowest, int value) {
        for (int i = 0; i < 6; ++i)
            cr_assert_eq(std::exchange(got[i], -5), i == lowest ? value : -5, "arm %d", i);
    }
};

} // namespace

// Goal: of duplicates the lowest index is reported, and its message used, when they are ready; wherever alt starts.
Test(AltArms, duplicates_that_are_ready) {
    World world;
    Duplicates arms;
    int message = 9;
    for (int i = 0; i < 200; ++i) {
        spawn([&] { cr_assert_eq(csp_send(arms.chan.w, &message), 1); });
        cr_assert_eq(i % 2 == 0 ? alt(arms.ops) : prialt(arms.ops, 1), 1);
        arms.check(0, 9);
        arms.ops[0] = i == 100 ? disabled() : arms.ops[0];
        if (i == 100) {
            spawn([&] { cr_assert_eq(csp_send(arms.chan.w, &message), 1); });
            cr_assert_eq(alt(arms.ops), 3);
            arms.check(2, 9);
            arms.ops[0] = receives(arms.chan.r, &arms.got[0]);
        }
    }
}

// Goal: the same when the arms have to wait.
Test(AltArms, duplicates_that_wait) {
    World world;
    Duplicates arms;
    int message = 9;
    for (int i = 0; i < 200; ++i) {
        spawn([&] { cr_assert_eq(i % 2 == 0 ? alt(arms.ops) : prialt(arms.ops), 1); });
        cr_assert_eq(csp_send(arms.chan.w, &message), 1);
        arms.check(0, 9);
        cr_assert_eq(csp_try_send(arms.chan.w, &message), 0); // no arm is left behind
    }
}

// Goal: the same when the channel is dead, and when it dies while they wait, in ready and in dead mode.
Test(AltArms, duplicates_that_die) {
    World world;
    for (int i = 0; i < 200; ++i) {
        Duplicates arms;
        if (i % 4 >= 2)
            for (int arm : {0, 2, 3, 5})
                arms.ops[arm] = dies(arms.chan.r);
        spawn([&] { cr_assert_eq(i % 2 == 0 ? alt(arms.ops) : prialt(arms.ops), -1); });
        arms.chan.release_writer();
        csp_yield();
        cr_assert_eq(alt(arms.ops), -1);
        cr_assert_eq(alt(arms.ops, 1), -1);
        arms.ops[0] = disabled();
        cr_assert_eq(alt(arms.ops), -3);
        arms.check(-1, 0);
    }
}

// Goal: both ends of one channel in one alt never meet; another party meets either.
Test(AltArms, both_ends_of_one_channel_do_not_meet) {
    World world;
    Chan chan;
    int out = 5, in = 0, given = 6;
    for (int i = 0; i < 40; ++i) {
        const bool writer_first = i % 2 == 0;
        csp_chanop ops[] = {sends(chan.w, &out), receives(chan.r, &in)};
        if (!writer_first)
            std::swap(ops[0], ops[1]);
        cr_assert_eq(alt(ops, 1), 0);
        cr_assert_eq(prialt(ops, 1), 0);
        int result = 0;
        spawn([&] { result = i % 4 < 2 ? alt(ops) : prialt(ops); });
        cr_assert_eq(result, 0, "it met itself");
        if (i % 8 < 4) {
            cr_assert_eq(chan.receive(), 5);
            csp_yield();
            cr_assert_eq(result, writer_first ? 1 : 2);
        } else {
            cr_assert_eq(csp_send(chan.w, &given), 1);
            cr_assert_eq(result, writer_first ? 2 : 1);
            cr_assert_eq(std::exchange(in, 0), 6);
        }
    }
}

// Goal: two alts that both hold both ends meet each other, once.
Test(AltArms, two_alts_with_both_ends_meet_once) {
    World world;
    Chan chan;
    int out[2] = {5, 6}, in[2] = {};
    const csp_chanop waiting[] = {sends(chan.w, &out[0]), receives(chan.r, &in[0])};
    const csp_chanop arriving[] = {sends(chan.w, &out[1]), receives(chan.r, &in[1])};
    spawn([&] { cr_assert_eq(prialt(waiting), 2); });
    cr_assert_eq(prialt(arriving), 1);
    cr_assert_eq(in[0], 6);
    cr_assert_eq(in[1], 0);
    cr_assert_eq(prialt(arriving, 1), 0);
}

// Goal: the same of a rendezvous of elements; with a buffer, both ends use it, one after the other.
Test(AltArms, both_ends_of_a_channel_of_elements) {
    World world;
    for (uint32_t capacity : {0u, 1u}) {
        mc_chan_t handle = 0;
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        cr_assert_eq(mc_chan_create(0, sizeof(int), capacity, nullptr, nullptr, &handle), MC_OK);
        cr_assert_eq(mc_chan_writer(handle, &w), MC_OK);
        cr_assert_eq(mc_chan_reader(handle, &r), MC_OK);
        int out = 5, in = 0;
        const csp_chanop ops[] = {sends(w, &out), receives(r, &in)};
        cr_assert_eq(prialt(ops, 1), capacity == 0 ? 0 : 1);
        cr_assert_eq(prialt(ops, 1), capacity == 0 ? 0 : 2);
        cr_assert_eq(in, capacity == 0 ? 0 : 5);
        csp_writer_release(w);
        csp_reader_release(r);
        cr_assert_eq(mc_chan_destroy(handle), MC_OK);
    }
}

// Goal: alt treats four ready arms alike. Chi-square with 3 degrees of freedom: above 30 once in 700,000 runs.
Test(AltArms, alt_is_fair) {
    World world;
    constexpr int rounds = 8000;
    mc_chan_t handles[4];
    csp_chanop ops[4];
    csp_reader readers[4];
    int wins[4] = {};
    for (int i = 0; i < 4; ++i) {
        readers[i] = full(rounds, &handles[i]);
        ops[i] = receives(readers[i]);
    }
    for (int i = 0; i < rounds; ++i)
        ++wins[alt(ops, i % 2) - 1];
    double chi_square = 0;
    for (int count : wins)
        chi_square += (count - rounds / 4.0) * (count - rounds / 4.0) / (rounds / 4.0);
    cr_assert_lt(chi_square, 30.0, "%d %d %d %d", wins[0], wins[1], wins[2], wins[3]);
    for (int i = 0; i < 4; ++i) {
        csp_reader_release(readers[i]);
        cr_assert_eq(mc_chan_destroy(handles[i]), MC_OK);
    }
}

// Goal: prialt takes the lowest arm that is ready, always.
Test(AltArms, prialt_goes_by_index) {
    World world;
    mc_chan_t handles[4];
    csp_chanop ops[4];
    csp_reader readers[4];
    for (int i = 0; i < 4; ++i) {
        readers[i] = full(50, &handles[i]);
        ops[i] = receives(readers[i]);
    }
    for (int i = 0; i < 200; ++i)
        cr_assert_eq(prialt(ops, i % 2), i / 50 + 1);
    cr_assert_eq(prialt(ops, 1), 0);
    for (int i = 0; i < 4; ++i) {
        csp_reader_release(readers[i]);
        cr_assert_eq(mc_chan_destroy(handles[i]), MC_OK);
    }
}

namespace {

// `count` channels, one alt over all of them.
void many_arms(int count) {
    const auto arms = static_cast<size_t>(count);
    const auto chans = std::make_unique<Chan[]>(arms);
    std::vector<csp_chanop> ops(arms);
    int got = -5, message = 4;
    // In an order that is not that of creation: the locks have to be sorted.
    for (size_t i = 0; i < arms; ++i)
        ops[i] = receives(chans[(i * 7 + 3) % arms].r, &got);
    if (arms % 7 == 0) // not coprime
        for (size_t i = 0; i < arms; ++i)
            ops[i] = receives(chans[arms - 1 - i].r, &got);
    const auto writer_of = [&](size_t arm) {
        const auto at = reinterpret_cast<uintptr_t>(ops[arm].waiter) & ~uintptr_t{15};
        return reinterpret_cast<csp_writer>(at);
    };
    cr_assert_eq(csp_prialt(ops.data(), count, 1), 0);
    cr_assert_eq(csp_alt_until(ops.data(), count, MC_NOW), MC_E_TIMEDOUT);
    for (size_t winner : {size_t{0}, arms / 2, arms - 1}) {
        spawn([&] { cr_assert_eq(csp_alt(ops.data(), count, 0), static_cast<int>(winner) + 1); });
        cr_assert_eq(csp_send(writer_of(winner), &message), 1);
        cr_assert_eq(std::exchange(got, -5), 4);
        spawn([&] { cr_assert_eq(csp_send(writer_of(winner), &message), 1); });
        cr_assert_eq(csp_prialt(ops.data(), count, 0), static_cast<int>(winner) + 1);
        csp_schedule();
    }
    spawn([&] { cr_assert_eq(csp_alt(ops.data(), count, 0), -count); });
    csp_writer_close(writer_of(arms - 1));
    csp_schedule();
    cr_assert_eq(csp_prialt(ops.data(), count, 1), -count);
}

} // namespace

// Goal: the largest alt that fits on the stack, the smallest that does not, and far beyond, up to the limit.
Test(AltArms, many_arms, .timeout = 30) {
    World world;
    for (int count : {16, 17, 100, 1024})
        many_arms(count);
    many_arms(65'535);
}

// Goal: many arms that are all the same, or all disabled but one.
Test(AltArms, many_arms_that_are_the_same) {
    World world;
    Chan chan;
    int got = 0, message = 4;
    std::vector<csp_chanop> ops(1000, receives(chan.r, &got));
    for (int round = 0; round < 20; ++round) {
        spawn([&] { cr_assert_eq(csp_alt(ops.data(), 1000, 0), 1); });
        cr_assert_eq(csp_send(chan.w, &message), 1);
        spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
        cr_assert_eq(csp_alt(ops.data(), 1000, 0), 1);
    }
    std::fill(ops.begin(), ops.end(), disabled());
    ops[777] = receives(chan.r, &got);
    spawn([&] { cr_assert_eq(csp_alt(ops.data(), 1000, 0), 778); });
    cr_assert_eq(csp_send(chan.w, &message), 1);
}
