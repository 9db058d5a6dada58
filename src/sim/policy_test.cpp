// Policies by themselves: tables of choices without tasks.
#include "sim/policy.hpp"
#include "testing/test.hpp"

#include <set>
#include <string>
#include <vector>

using namespace mc::sim;

namespace {

// A turn among so many tasks, of which the first runs.
struct Table {
    std::vector<uint64_t> words;
    std::vector<uint64_t *> pointers;
    explicit Table(uint32_t tasks) : words(tasks, 0) {
        for (uint64_t &word : words)
            pointers.push_back(&word);
    }
    uint32_t ask(Policy &policy, uint64_t ordinal, bool running = true, bool time = false, bool yields = false) {
        const auto count = static_cast<uint32_t>(words.size());
        const uint32_t taken = policy.turn(Turns{ordinal, count, running, time, yields, pointers.data(), pointers[0]});
        cr_assert_lt(taken, count);
        return taken;
    }
};

std::string run_of(std::unique_ptr<Policy> policy, uint32_t tasks, int turns) {
    Table table(tasks);
    std::string run;
    for (int i = 0; i < turns; ++i)
        run += static_cast<char>('0' + table.ask(*policy, static_cast<uint64_t>(i)));
    return run;
}

} // namespace

// Goal: a policy is a function of its seed: the same one takes the same, others differ.
Test(Policy, is_a_function_of_its_seed) {
    for (const char *name : {"random", "pct:3", "mix"}) {
        std::set<std::string> runs;
        for (uint64_t seed = 0; seed < 100; ++seed) {
            const std::string run = run_of(policy_by_name(name, seed), 5, 60);
            cr_assert(run == run_of(policy_by_name(name, seed), 5, 60), "%s of seed %d", name, static_cast<int>(seed));
            runs.insert(run);
        }
        cr_assert_gt(runs.size(), 30u, "%s: only %zu runs of 100 seeds", name, runs.size());
    }
}

// Goal: at random every candidate is taken sooner or later, time seldom, and how much the running task is favoured differs from seed
// to seed.
Test(Policy, random_takes_everybody) {
    std::set<int> shares;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        const auto policy = random_policy(seed);
        Table table(4);
        int taken[4] = {};
        for (uint64_t i = 0; i < 4000; ++i)
            ++taken[table.ask(*policy, i, true, true)];
        for (int count : taken)
            cr_assert_gt(count, 30);
        cr_assert_lt(taken[3], 400); // time
        shares.insert(taken[0] / 250);
        cr_assert_gt(taken[1], taken[2] / 2);
        cr_assert_lt(taken[1], taken[2] * 2);
    }
    cr_assert_geq(shares.size(), 3u);
    cr_assert_lt(random_policy(1)->pick(0, 3), 3u);
}

// Goal: where the only task is joined by time, both are taken.
Test(Policy, random_of_one_and_time) {
    int taken[2] = {};
    const auto policy = random_policy(7);
    Table table(2);
    for (uint64_t i = 0; i < 2000; ++i)
        ++taken[table.ask(*policy, i, false, true)];
    cr_assert_gt(taken[0], 1000);
    cr_assert_gt(taken[1], 10);
}

// Goal: priorities stay: one runs on until a change, of which there are depth - 1, each at a step below the guessed length.
Test(Policy, pct_changes_depth_minus_one_times) {
    for (uint32_t depth : {1u, 2u, 5u}) {
        bool reached = false;
        for (uint64_t seed = 0; seed < 50; ++seed) {
            const auto policy = pct_policy(seed, depth);
            Table table(8);
            uint32_t changes = 0;
            uint32_t before = table.ask(*policy, 0);
            for (uint64_t i = 1; i < 20'000; ++i) {
                const uint32_t now = table.ask(*policy, i);
                changes += now != before ? 1 : 0;
                before = now;
            }
            cr_assert_leq(changes, depth - 1);
            reached |= changes == depth - 1;
        }
        cr_assert(reached, "depth %u", depth);
    }
}

// Goal: who yields goes behind all others, so that two that wait for a third do not keep it away.
Test(Policy, pct_who_yields_is_the_last) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
        const auto policy = pct_policy(seed, 1);
        Table table(3);
        std::set<uint32_t> ran;
        uint64_t *running = nullptr;
        for (uint64_t i = 0; i < 3; ++i) {
            const uint32_t taken =
                policy->turn(Turns{i, 3, false, false, running != nullptr, table.pointers.data(), running});
            ran.insert(taken);
            running = table.pointers[taken];
        }
        cr_assert_eq(ran.size(), 3u, "seed %d", static_cast<int>(seed));
    }
}

// Goal: time, as a task of its own, is taken once and goes to the end: it does not run away.
Test(Policy, pct_time_has_one_turn) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
        const auto policy = pct_policy(seed, 1);
        Table table(3);
        int in_a_row = 0;
        for (uint64_t i = 0; i < 100; ++i) {
            in_a_row = table.ask(*policy, i, true, true) == 2 ? in_a_row + 1 : 0;
            cr_assert_leq(in_a_row, 1);
        }
    }
}

// Goal: of n tasks and two steps that must come in one order, depth 1 has it about every second time, whichever order: both are
// explored.
Test(Policy, pct_explores_both_orders) {
    int first = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        Table table(2);
        first += table.ask(*pct_policy(seed, 1), 0) == 0 ? 1 : 0;
    }
    cr_assert_gt(first, 60);
    cr_assert_lt(first, 140);
}

// Goal: a schedule is followed where it can be; elsewhere candidate 0 goes on.
Test(Policy, replay_follows_the_schedule) {
    const auto policy = replay_policy({{2, 1}, {3, 9}, {5, 2}});
    Table table(3);
    const uint32_t wanted[] = {0, 0, 1, 0, 0, 2, 0};
    for (uint64_t i = 0; i < 7; ++i)
        cr_assert_eq(i == 4 ? policy->pick(i, 3) : table.ask(*policy, i), wanted[i], "choice %d", static_cast<int>(i));
}

// Goal: names and their mistakes.
Test(Policy, by_name) {
    for (const char *name : {"random", "mix", "pct:1", "pct:100"})
        cr_assert(policy_by_name(name, 0) != nullptr, "%s", name);
    for (const char *name : {"", "Random", "pct", "pct:", "pct:0", "pct:101", "pct:-1", "pct:3x", "pct:99999999999"})
        cr_assert(policy_by_name(name, 0) == nullptr, "%s", name);
}
