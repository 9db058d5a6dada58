// The generator, against published values and for what a scheduler needs of it.
#include "base/prng.hpp"

#include "testing/test.hpp"

#include <mc/base.h>

#include <set>
#include <vector>

using namespace mc;
using base::Prng;

// Goal: splitmix64 and xoshiro256** are those of the papers: seeds given in one program mean the same in another.
Test(Prng, follows_the_published_sequences) {
    uint64_t seed = 1'234'567;
    for (uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
                              16408922859458223821u})
        cr_assert_eq(Prng::splitmix(seed), expected);
    Prng prng(0);
    const uint64_t state[4] = {1, 2, 3, 4};
    static_assert(sizeof prng == sizeof state);
    std::memcpy(static_cast<void *>(&prng), state, sizeof state);
    for (uint64_t expected : {11520u, 0u, 1509978240u})
        cr_assert_eq(prng.next(), expected);
    cr_assert_eq(prng.next(), 1215971899390074240u);
}

// Goal: a seed is repeatable, and near seeds have nothing in common: not a number in their first thousand.
Test(Prng, seeds_differ) {
    Prng one(5);
    Prng again(5);
    for (int i = 0; i < 1000; ++i)
        cr_assert_eq(one.next(), again.next());
    std::set<uint64_t> seen;
    for (uint64_t seed = 0; seed < 16; ++seed) {
        Prng prng(seed);
        for (int i = 0; i < 1000; ++i)
            cr_assert(seen.insert(prng.next()).second);
    }
}

// Goal: below() stays below, and no number is favoured: chi-square within what chance allows (four standard
// deviations).
Test(Prng, below_is_even) {
    Prng prng(99);
    for (uint32_t bound : {1u, 2u, 3u, 7u, 10u, 16u, 61u, 1000u}) {
        std::vector<uint32_t> counts(bound);
        const uint32_t draws = 1000 * bound;
        for (uint32_t i = 0; i < draws; ++i) {
            const uint32_t drawn = prng.below(bound);
            cr_assert_lt(drawn, bound);
            ++counts[drawn];
        }
        double chi = 0;
        for (uint32_t count : counts)
            chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
        const double freedom = bound - 1.0;
        cr_assert_leq((chi - freedom) * (chi - freedom), 16 * 2 * freedom, "bound %u: chi-square %g", bound, chi);
    }
    cr_assert_lt(prng.below(UINT32_MAX), UINT32_MAX);
}

// Goal: each bit of next() is set half of the time.
Test(Prng, bits_are_even) {
    Prng prng(3);
    int set[64] = {};
    for (int i = 0; i < 10'000; ++i) {
        const uint64_t word = prng.next();
        for (int bit = 0; bit < 64; ++bit)
            set[bit] += static_cast<int>(word >> bit & 1);
    }
    for (int bit = 0; bit < 64; ++bit)
        cr_assert(set[bit] > 4750 && set[bit] < 5250, "bit %d was set %d times of 10000", bit, set[bit]);
}
