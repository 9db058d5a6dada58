#include "mcrt/shrinker.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mc::mcrt {
namespace {

constexpr size_t most_for_pairs = 16;     // deviations, so 120 runs
constexpr size_t most_replacements = 400; // schedules, in each of the last steps
constexpr size_t most_twos = 1'200;       // schedules of two deviations
constexpr size_t most_for_shifts = 32;    // deviations
constexpr int64_t farthest_shift = 4;

Schedule beginning(const Schedule &schedule, size_t length) {
    return {schedule.begin(), schedule.begin() + static_cast<std::ptrdiff_t>(length)};
}

Schedule without(const Schedule &schedule, size_t begin, size_t end) {
    Schedule rest = beginning(schedule, begin);
    rest.insert(rest.end(), schedule.begin() + static_cast<std::ptrdiff_t>(end), schedule.end());
    return rest;
}

Schedule shifted(Schedule schedule, size_t begin, int64_t by) {
    for (size_t i = begin; i < schedule.size(); ++i)
        schedule[i].choice += static_cast<uint64_t>(by);
    return schedule;
}

Schedule with(Schedule schedule, const Deviation &added) {
    const auto later = [](const Deviation &one, const Deviation &other) { return one.choice < other.choice; };
    schedule.insert(std::upper_bound(schedule.begin(), schedule.end(), added, later), added);
    return schedule;
}

// The smallest first.
template <class Visit> void for_each_alternative(const Choices &choices, size_t at, Visit visit) {
    for (uint32_t taken = 1; taken < choices[at].candidates; ++taken)
        visit(Deviation{at, static_cast<uint16_t>(taken)}, preempts(choices[at], taken));
}

} // namespace

Choices Shrinker::shrink(Choices choices) {
    best_ = std::move(choices);
    schedule_ = schedule_of(best_);
    if (drop_everything())
        return best_;
    cut_end();
    remove_parts();
    remove_singles();
    remove_pairs();
    remove_and_shift();
    replace_all_by_one();
    replace_all_by_two();
    replace_all_but_one();
    replace_preemptions();
    return best_;
}

// The first that fails and is better: as a run that took less than it was told may be better than what was asked for, it is what it
// took that counts.
bool Shrinker::keep_first(std::vector<Tried> &tried, Wanted wanted) {
    for (Tried &one : tried) {
        Schedule took = schedule_of(one.choices);
        const bool fewer = took.size() < schedule_.size();
        const bool cheaper = wanted == Wanted::cheaper && took.size() == schedule_.size() &&
                             preemptions_of(one.choices) < preemptions_of(best_);
        if (!one.fails || !(fewer || cheaper))
            continue;
        best_ = std::move(one.choices);
        schedule_ = std::move(took);
        return true;
    }
    return false;
}

// So many at a time as are worth running at once; passed: called with those of which none is kept.
bool Shrinker::keep_first_of_many(const std::vector<Schedule> &schedules, Wanted wanted, const Passed &passed) {
    for (size_t at = 0; at < schedules.size() && trials_.may_go_on(); at += width_) {
        const auto begin = schedules.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = schedules.begin() + static_cast<std::ptrdiff_t>(std::min(at + width_, schedules.size()));
        std::vector<Tried> tried = trials_.run({begin, end});
        if (keep_first(tried, wanted))
            return true;
        for (size_t i = 0; passed && i < tried.size(); ++i)
            passed(begin[static_cast<std::ptrdiff_t>(i)], std::move(tried[i].choices));
    }
    return false;
}

bool Shrinker::drop_everything() {
    if (schedule_.empty() || !trials_.may_go_on())
        return true;
    std::vector<Tried> tried = trials_.run({Schedule()});
    if (tried.empty())
        return true;
    if (tried[0].fails)
        best_ = std::move(tried[0].choices);
    else
        plain_ = std::move(tried[0].choices);
    return tried[0].fails;
}

// Between a beginning that does not fail and one that does, width_ more that divide what lies between.
void Shrinker::cut_end() {
    const Schedule whole = schedule_;
    for (size_t passes = 0, fails = whole.size(); fails - passes > 1 && trials_.may_go_on();) {
        const size_t parts = std::min(width_ + 1, fails - passes);
        std::vector<size_t> lengths;
        std::vector<Schedule> schedules;
        for (size_t i = 1; i < parts; ++i) {
            lengths.push_back(passes + (fails - passes) * i / parts);
            schedules.push_back(beginning(whole, lengths.back()));
        }
        std::vector<Tried> tried = trials_.run(schedules);
        size_t i = 0;
        for (; i < tried.size() && !tried[i].fails; ++i)
            passes = lengths[i];
        if (i == tried.size())
            continue;
        fails = lengths[i];
        best_ = std::move(tried[i].choices);
        schedule_ = schedule_of(best_);
    }
}

void Shrinker::remove_parts() {
    for (size_t parts = 2; schedule_.size() > 1 && trials_.may_go_on();) {
        const size_t size = schedule_.size();
        parts = std::min(parts, size);
        std::vector<Schedule> schedules;
        for (size_t i = parts; i-- > 0;)
            schedules.push_back(without(schedule_, size * i / parts, size * (i + 1) / parts));
        if (keep_first_of_many(schedules))
            parts = std::max<size_t>(parts - 1, 2);
        else if (parts == size)
            return;
        else
            parts *= 2;
    }
}

void Shrinker::remove_singles() {
    std::vector<Schedule> schedules;
    do {
        schedules.clear();
        for (size_t i = schedule_.size(); i-- > 0;)
            schedules.push_back(without(schedule_, i, i + 1));
    } while (keep_first_of_many(schedules));
}

void Shrinker::remove_pairs() {
    std::vector<Schedule> schedules;
    do {
        schedules.clear();
        for (size_t i = 0; i < schedule_.size() && schedule_.size() <= most_for_pairs; ++i)
            for (size_t j = i + 1; j < schedule_.size(); ++j)
                schedules.push_back(without(without(schedule_, j, j + 1), i, i + 1));
    } while (keep_first_of_many(schedules));
}

// The first of what follows must stay behind what is before it.
void Shrinker::remove_and_shift() {
    std::vector<Schedule> schedules;
    do {
        schedules.clear();
        for (size_t i = 0; i + 1 < schedule_.size() && schedule_.size() <= most_for_shifts; ++i) {
            const uint64_t room = schedule_[i + 1].choice - (i == 0 ? 0 : schedule_[i - 1].choice + 1);
            for (int64_t by = 1; by <= farthest_shift; ++by) {
                if (static_cast<uint64_t>(by) <= room)
                    schedules.push_back(shifted(without(schedule_, i, i + 1), i, -by));
                schedules.push_back(shifted(without(schedule_, i, i + 1), i, by));
            }
        }
    } while (keep_first_of_many(schedules));
}

// Those that preempt nobody first.
void Shrinker::replace_all_by_one() {
    if (schedule_.size() < 2)
        return;
    std::vector<Schedule> schedules;
    for (const bool wanted : {false, true})
        for (size_t i = 0; i < plain_.size() && schedules.size() <= most_replacements; ++i)
            for_each_alternative(plain_, i, [&](const Deviation &one, bool preemption) {
                if (preemption == wanted)
                    schedules.push_back({one});
            });
    if (schedules.size() <= most_replacements)
        (void)keep_first_of_many(schedules, Wanted::fewer, [this](const Schedule &schedule, Choices choices) {
            if (schedule[0].choice < choices.size())
                singles_.push_back({schedule[0], std::move(choices)});
        });
}

// What may follow one is seen in the run of that one.
std::vector<Shrinker::Two> Shrinker::followed(const Single &single) {
    std::vector<Two> twos;
    const uint64_t first = preempts(single.choices[single.deviation.choice], single.deviation.taken) ? 1 : 0;
    for (size_t at = single.deviation.choice + 1; at < single.choices.size(); ++at)
        for_each_alternative(single.choices, at, [&](const Deviation &one, bool preemption) {
            twos.push_back({first + (preemption ? 1 : 0), {single.deviation, one}});
        });
    return twos;
}

// Those that are better than what there is, with the fewest preemptions first; not all where they are too many.
std::vector<Schedule> Shrinker::better(std::vector<Two> twos, size_t most) const {
    const auto cheaper = [](const Two &one, const Two &other) { return one.preemptions < other.preemptions; };
    std::stable_sort(twos.begin(), twos.end(), cheaper);
    std::vector<Schedule> schedules;
    for (Two &two : twos)
        if (schedule_.size() > 2 || two.preemptions < preemptions_of(best_))
            schedules.push_back(std::move(two.schedule));
    schedules.resize(std::min(schedules.size(), most));
    return schedules;
}

void Shrinker::replace_all_by_two() {
    if (schedule_.size() < 2)
        return;
    std::vector<Two> twos;
    for (const Single &single : singles_) {
        std::vector<Two> more = followed(single);
        std::move(more.begin(), more.end(), std::back_inserter(twos));
    }
    (void)keep_first_of_many(better(std::move(twos), most_twos), Wanted::cheaper);
}

void Shrinker::replace_all_but_one() {
    for (size_t i = 0; schedule_.size() > 2 && i < schedule_.size() && trials_.may_go_on(); ++i) {
        std::vector<Tried> alone = trials_.run({{schedule_[i]}});
        if (alone.empty() || schedule_[i].choice >= alone[0].choices.size())
            return;
        if (keep_first_of_many(better(followed({schedule_[i], std::move(alone[0].choices)}), most_replacements)))
            return;
    }
}

void Shrinker::replace_preemptions() {
    for (bool again = true; again;) {
        again = false;
        for (const Deviation &one : Schedule(schedule_))
            if (preempts(best_[one.choice], one.taken) && replace_preemption(one)) {
                again = true; // the others may be other choices now
                break;
            }
    }
}

// By those that are near, before it and after it.
bool Shrinker::replace_preemption(const Deviation &preemption) {
    const auto found = std::find(schedule_.begin(), schedule_.end(), preemption);
    const auto at = static_cast<size_t>(found - schedule_.begin());
    const Schedule rest = without(schedule_, at, at + 1);
    std::vector<Schedule> schedules;
    const auto add = [&](size_t choice) {
        if (best_[choice].taken == 0)
            for_each_alternative(best_, choice, [&](const Deviation &one, bool preempting) {
                if (!preempting)
                    schedules.push_back(with(rest, one));
            });
    };
    for (size_t distance = 1; distance <= best_.size() && schedules.size() < most_replacements; ++distance) {
        if (distance <= preemption.choice)
            add(preemption.choice - distance);
        if (preemption.choice + distance < best_.size())
            add(preemption.choice + distance);
    }
    return keep_first_of_many(schedules, Wanted::cheaper);
}

} // namespace mc::mcrt
