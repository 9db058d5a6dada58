// All schedules within a bound on preemptions, each once: against programs whose schedules are known by counting.
#include "mcrt/enumerator.hpp"

#include "testing/test.hpp"

#include <functional>
#include <set>
#include <string>

using namespace mc::mcrt;

namespace {

constexpr uint16_t running = MC_SIM_CHOICE_RUNNING;

// A program: what it does, given how each choice is decided.
using Decide = std::function<uint32_t(uint16_t candidates, uint16_t kind, uint16_t flags)>;
using Body = std::function<std::string(const Decide &)>; // says what has happened

// Under a schedule.
std::pair<Choices, std::string> run(const Body &body, const Schedule &schedule) {
    Choices choices;
    std::string what = body([&](uint16_t candidates, uint16_t kind, uint16_t flags) -> uint32_t {
        uint16_t taken = 0;
        for (const Deviation &one : schedule)
            if (one.choice == choices.size() && one.taken < candidates)
                taken = one.taken;
        choices.push_back(mc_sim_choice{candidates, taken, kind, flags});
        return taken;
    });
    return {choices, what};
}

struct Explored {
    uint64_t runs = 0;
    std::set<std::string> seen;
};

Explored explore(const Body &body, uint64_t preemptions, size_t at_once) {
    Enumerator enumerator(preemptions);
    Explored explored;
    for (;;) {
        const std::vector<Enumerator::Item> items = enumerator.take(at_once);
        if (items.empty())
            return explored;
        std::vector<Enumerator::Ran> ran;
        for (const Enumerator::Item &item : items) {
            auto [choices, what] = run(body, item.schedule);
            cr_assert(preemptions_of(choices) <= preemptions);
            cr_assert(schedule_of(choices) == item.schedule);
            ++explored.runs;
            explored.seen.insert(what);
            ran.push_back({item, std::move(choices)});
        }
        cr_assert(!enumerator.ran(std::move(ran)));
    }
}

// Tasks that make so many steps each; before each step but a task's first another may go on.
std::string interleave(std::vector<int> left, const Decide &decide) {
    std::string order;
    size_t current = 0;
    bool fresh = true; // it has just been chosen
    for (;;) {
        std::vector<size_t> candidates;
        if (left[current] > 0)
            candidates.push_back(current);
        for (size_t i = 0; i < left.size(); ++i)
            if (i != current && left[i] > 0)
                candidates.push_back(i);
        if (candidates.empty())
            return order;
        if (!fresh && candidates.size() > 1)
            current = candidates[decide(static_cast<uint16_t>(candidates.size()), MC_SIM_CHOICE_TASK,
                                        left[current] > 0 ? running : 0)];
        else
            current = candidates[0];
        fresh = false;
        order += static_cast<char>('a' + current);
        --left[current];
    }
}

Body tasks(const std::vector<int> &steps) {
    return [steps](const Decide &decide) { return interleave(steps, decide); };
}

} // namespace

// Goal: with 0 preemptions two tasks have one order, the first then the second: who goes first is no choice here.
Test(Enumerator, nothing_is_free_when_nobody_may_be_preempted) {
    const Explored explored = explore(tasks({3, 3}), 0, 1);
    cr_assert_eq(explored.runs, 1);
    cr_assert(explored.seen.count("aaabbb") == 1);
}

// Goal: one preemption of two tasks with three steps each. a may be left after its first or second step; then b may run to its end
// (nobody is preempted by what follows), but not be left. So aaabbb, abbbaa, aabbba; and, a done, b can not be preempted.
Test(Enumerator, one_preemption_is_counted_by_hand) {
    const Explored explored = explore(tasks({3, 3}), 1, 1);
    cr_assert_eq(explored.runs, 3);
    cr_assert(explored.seen == std::set<std::string>({"aaabbb", "abbbaa", "aabbba"}));
}

// Goal: without a bound that matters, every order of the steps that begins with a's first, each once: 5 over 2.
Test(Enumerator, no_order_is_missed) {
    for (const size_t at_once : {1, 2, 3, 7}) {
        const Explored explored = explore(tasks({3, 3}), 100, at_once);
        cr_assert_eq(explored.runs, 10, "%zu at once", at_once);
        cr_assert_eq(explored.seen.size(), 10);
    }
}

// Goal: three tasks of two steps: all orders that begin with a are 5! / (1! 2! 2!).
Test(Enumerator, three_tasks) {
    const Explored explored = explore(tasks({2, 2, 2}), 100, 2);
    cr_assert_eq(explored.runs, 30);
    cr_assert_eq(explored.seen.size(), 30);
}

// Goal: arms and the program's own choices cost nothing, nor do turns where nobody runs; time that jumps past who runs does.
Test(Enumerator, only_preemptions_cost) {
    const Body free = [](const Decide &decide) {
        return std::to_string(decide(3, MC_SIM_CHOICE_ARM, 0)) + std::to_string(decide(2, MC_SIM_CHOICE_PROGRAM, 0)) +
               std::to_string(decide(2, MC_SIM_CHOICE_TASK, 0)) +
               std::to_string(decide(2, MC_SIM_CHOICE_TASK, MC_SIM_CHOICE_TIME));
    };
    cr_assert_eq(explore(free, 0, 1).seen.size(), 24);
    const Body jump = [](const Decide &decide) {
        return std::to_string(decide(2, MC_SIM_CHOICE_TASK, running | MC_SIM_CHOICE_TIME)) +
               std::to_string(decide(2, MC_SIM_CHOICE_TASK, running));
    };
    cr_assert_eq(explore(jump, 0, 1).runs, 1);
    cr_assert_eq(explore(jump, 1, 1).runs, 3);
    cr_assert_eq(explore(jump, 2, 1).runs, 4);
}

// Goal: what is chosen may change what there is to choose.
Test(Enumerator, choices_that_depend_on_choices) {
    const Body body = [](const Decide &decide) {
        std::string what;
        for (uint32_t more = 3; more > 0;)
            what += std::to_string(more = decide(static_cast<uint16_t>(more + 1), MC_SIM_CHOICE_PROGRAM, 0) % more);
        return what;
    };
    const Explored explored = explore(body, 0, 2);
    cr_assert_geq(explored.runs, explored.seen.size());
    // From 3: 0; 1 then 0 twice (0 and 1 mod 1); 2 then 0, or 1 then 0 twice, or 0 (2 mod 2); and 0 (3 mod 3).
    cr_assert_eq(explored.runs, 1 + 2 + (1 + 2 + 1) + 1);
}

// Goal: a run that does not follow its schedule is noticed: that its last deviation is missing, or that it deviates by itself.
Test(Enumerator, a_run_that_does_as_it_likes_is_noticed) {
    Enumerator enumerator(2);
    cr_assert(!enumerator.ran({{enumerator.take(1)[0], {{2, 0, 0, running}, {2, 0, 0, running}}}}));
    const Enumerator::Item item = enumerator.take(1)[0];
    cr_assert(item.schedule == Schedule({{1, 1}}));
    cr_assert(Enumerator(enumerator).ran({{item, {{2, 0, 0, running}}}}));
    cr_assert(Enumerator(enumerator).ran({{item, {{2, 0, 0, running}, {3, 1, 0, running}}}}));
    const auto stray =
        Enumerator(enumerator).ran({{item, {{2, 0, 0, running}, {2, 1, 0, running}, {2, 0, 0, 0}, {2, 1, 0, 0}}}});
    cr_assert(stray.has_value() && stray->choice == 3 && stray->schedule == item.schedule);
    cr_assert(!enumerator.ran({{item, {{2, 0, 0, running}, {2, 1, 0, running}, {2, 0, 0, 0}}}}));
}
