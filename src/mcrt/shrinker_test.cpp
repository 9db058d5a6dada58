// Short schedules from long ones: against programs of which it is known what makes them fail.
#include "mcrt/shrinker.hpp"
#include "mcrt/test_text.hpp"

#include <functional>

using namespace mc::mcrt;

namespace {

// A run of so many choices with two candidates each, whatever is taken; every third is a turn where nobody runs.
class Model final : public Trials {
public:
    using Fails = std::function<bool(const Choices &)>;
    Model(size_t length, Fails fails, size_t most_runs = 100'000)
        : length_(length), fails_(std::move(fails)), left_(most_runs) {}

    Tried one(const Schedule &schedule) {
        Choices choices;
        for (size_t i = 0; i < length_; ++i)
            choices.push_back(
                {2, 0, MC_SIM_CHOICE_TASK, static_cast<uint16_t>(i % 3 == 0 ? 0 : MC_SIM_CHOICE_RUNNING)});
        for (const auto &[choice, taken] : schedule)
            if (choice < length_ && taken < choices[choice].candidates)
                choices[choice].taken = taken;
        return {fails_(choices), choices};
    }

    std::vector<Tried> run(const std::vector<Schedule> &schedules) override {
        std::vector<Tried> tried;
        for (const Schedule &schedule : schedules) {
            if (left_ == 0)
                break;
            --left_;
            ++runs;
            tried.push_back(one(schedule));
        }
        return tried;
    }
    bool may_go_on() override { return left_ != 0; }

    size_t runs = 0;

private:
    const size_t length_;
    const Fails fails_;
    size_t left_;
};

Schedule every(size_t length, size_t step) {
    Schedule schedule;
    for (size_t i = 0; i < length; i += step)
        schedule.push_back({i, 1});
    return schedule;
}

Choices shrunk(Model &model, const Schedule &from, size_t width = 2) {
    const Tried start = model.one(from);
    cr_assert(start.fails);
    Choices choices = Shrinker(model, width).shrink(start.choices);
    cr_assert(model.one(schedule_of(choices)).fails);
    return choices;
}

bool takes(const Choices &choices, size_t at) { return choices[at].taken != 0; }

} // namespace

// Goal: what is needed is left, and nothing else, however many are tried at once.
Test(Shrinker, needed_deviations_are_left) {
    for (const size_t width : {1, 2, 5}) {
        Model model(1000, [](const Choices &choices) {
            return takes(choices, 10) && takes(choices, 500) && takes(choices, 530);
        });
        cr_assert(schedule_of(shrunk(model, every(1000, 1), width)) == Schedule({{10, 1}, {500, 1}, {530, 1}}));
        cr_assert_lt(model.runs, 2500);
    }
}

// Goal: a program that fails whatever is taken needs no schedule, and that is seen at once.
Test(Shrinker, nothing_is_needed) {
    Model model(100, [](const Choices &) { return true; });
    cr_assert(schedule_of(shrunk(model, every(100, 2))).empty());
    cr_assert_eq(model.runs, 1);
}

// Goal: one deviation that does the work of two is found, though it was not among them.
Test(Shrinker, one_in_place_of_two) {
    Model model(60,
                [](const Choices &choices) { return takes(choices, 41) || (takes(choices, 4) && takes(choices, 8)); });
    cr_assert(schedule_of(shrunk(model, {{4, 1}, {8, 1}, {20, 1}})) == Schedule({{41, 1}}));
}

// Goal: a deviation that is one only because of another before it, which shifts it, is found where it lies without that.
Test(Shrinker, what_follows_may_move) {
    Model model(200, [](const Choices &choices) {
        return takes(choices, 20) ? takes(choices, 103) && takes(choices, 150)
                                  : takes(choices, 100) && takes(choices, 147);
    });
    cr_assert(schedule_of(shrunk(model, {{20, 1}, {103, 1}, {150, 1}})) == Schedule({{100, 1}, {147, 1}}));
}

// Goal: two are found of which neither was among three.
Test(Shrinker, two_in_place_of_three) {
    Model model(40, [](const Choices &choices) {
        return (takes(choices, 8) && takes(choices, 20) && takes(choices, 25)) ||
               (takes(choices, 10) && takes(choices, 33));
    });
    cr_assert(schedule_of(shrunk(model, {{8, 1}, {20, 1}, {25, 1}})) == Schedule({{10, 1}, {33, 1}}));
}

// Goal: two are found of which only one was among three.
Test(Shrinker, one_beside_one) {
    Model model(160, [](const Choices &choices) {
        return takes(choices, 8) && (takes(choices, 44) || (takes(choices, 20) && takes(choices, 25)));
    });
    cr_assert(schedule_of(shrunk(model, {{8, 1}, {20, 1}, {25, 1}})) == Schedule({{8, 1}, {44, 1}}));
}

// Goal: of schedules that are as short one that preempts nobody is taken. 30 is a turn where nobody runs, 31 is not.
Test(Shrinker, no_preemption_where_none_is_needed) {
    Model model(60, [](const Choices &choices) { return takes(choices, 31) || takes(choices, 30); });
    const Choices choices = shrunk(model, {{31, 1}});
    cr_assert(schedule_of(choices) == Schedule({{30, 1}}));
    cr_assert_eq(preemptions_of(choices), 0);
}

// Goal: the same for one of several.
Test(Shrinker, each_preemption_is_looked_at) {
    Model model(600, [](const Choices &choices) {
        return takes(choices, 100) && (takes(choices, 301) || takes(choices, 312)) && takes(choices, 500);
    });
    const Choices choices = shrunk(model, every(600, 1));
    cr_assert_eq(schedule_of(choices).size(), 3);
    cr_assert_eq(preemptions_of(choices), 2);
    cr_assert(takes(choices, 312));
}

// Goal: pairs of which neither can go alone go together.
Test(Shrinker, pairs_that_undo_each_other) {
    Model model(600,
                [](const Choices &choices) { return takes(choices, 9) && takes(choices, 50) == takes(choices, 400); });
    cr_assert(schedule_of(shrunk(model, {{9, 1}, {50, 1}, {400, 1}})) == Schedule({{9, 1}}));
}

// Goal: when the runs are used up, what is there fails.
Test(Shrinker, no_more_runs) {
    for (size_t runs = 0; runs < 40; ++runs) {
        Model model(
            300, [](const Choices &choices) { return takes(choices, 7) && takes(choices, 200); }, runs);
        shrunk(model, every(300, 1));
        cr_assert_leq(model.runs, runs);
    }
}

// Goal: the schedule of a run is what it took, and who is preempted by it.
Test(Schedule, of_choices) {
    const Choices choices{{2, 0, MC_SIM_CHOICE_TASK, MC_SIM_CHOICE_RUNNING},
                          {3, 2, MC_SIM_CHOICE_TASK, MC_SIM_CHOICE_RUNNING | MC_SIM_CHOICE_TIME},
                          {3, 2, MC_SIM_CHOICE_TASK, MC_SIM_CHOICE_TIME},
                          {4, 1, MC_SIM_CHOICE_ARM, 0},
                          {4, 3, MC_SIM_CHOICE_PROGRAM, 0}};
    check_text(format(schedule_of(choices)), "1:2,2:2,3:1,4:3");
    cr_assert_eq(preemptions_of(choices), 1);
    check_text(format(Schedule()), "");
}
