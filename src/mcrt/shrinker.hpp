// Makes a schedule that fails short: few deviations, and of those few preemptions. Pure: what a schedule leads to is asked.
//
// Each step tries schedules that are shorter, or as long with fewer preemptions, and goes on from the first that still fails:
//   1. the shortest beginning that fails, by halving (or finer, with more processors): what follows a failure is no part of it;
//   2. ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002): without ever smaller parts;
//   3. without each single deviation, and without each pair; those that follow may have to move, since what is no longer done is no
//      choice of the run any more, or what is done in its place is one;
//   4. all schedules of one deviation and of two, or of one beside one of those that are left, where there are not too many to try;
//   5. for each preemption, a choice where nobody is preempted.
// A run says what it took; a deviation that names no candidate is gone by that. None of this needs a failure to be monotone: what
// is kept has failed.
#pragma once

#include "mcrt/schedule.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace mc::mcrt {

struct Tried {
    bool fails = false; // in the way that is looked for
    Choices choices;
};

class Trials {
public:
    virtual ~Trials() = default;
    // At once, in order. Fewer when there is no more time or number of runs to spend; then may_go_on is false.
    virtual std::vector<Tried> run(const std::vector<Schedule> &schedules) = 0;
    virtual bool may_go_on() = 0;
};

class Shrinker {
public:
    // width: how many are worth running at once.
    Shrinker(Trials &trials, size_t width) : trials_(trials), width_(width) {}

    // choices: of a run that fails, by its schedule alone. Those of the shortest that was found.
    Choices shrink(Choices choices);

private:
    enum class Wanted { fewer, cheaper };
    using Passed = std::function<void(const Schedule &schedule, Choices choices)>;

    // A schedule of one deviation that does not fail, with what its run had to choose from.
    struct Single {
        Deviation deviation;
        Choices choices;
    };
    struct Two {
        uint64_t preemptions;
        Schedule schedule;
    };

    bool keep_first(std::vector<Tried> &tried, Wanted wanted);
    bool keep_first_of_many(const std::vector<Schedule> &schedules, Wanted wanted = Wanted::fewer,
                            const Passed &passed = nullptr);
    bool drop_everything();
    void cut_end();
    void remove_parts();
    void remove_singles();
    void remove_pairs();
    void remove_and_shift();
    void replace_all_by_one();
    void replace_all_by_two();
    void replace_all_but_one();
    static std::vector<Two> followed(const Single &single);
    std::vector<Schedule> better(std::vector<Two> twos, size_t most) const;
    void replace_preemptions();
    bool replace_preemption(const Deviation &preemption);

    Trials &trials_;
    const size_t width_;
    Choices best_;
    Schedule schedule_;           // of best_
    Choices plain_;               // what nothing deviates in, which does not fail
    std::vector<Single> singles_; // all that there are, or none
};

} // namespace mc::mcrt
