#include "mcrt/layout.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace mc::mcrt {
namespace {

constexpr size_t most_events = 400;
constexpr size_t most_lanes = 40;
constexpr double gutter = 92; // on the left, for the time
constexpr double head = 96;   // above the first row, for titles and lanes' names
constexpr double row_height = 20;
constexpr double arrow_height = 28; // of a row whose text stands above its arrow
constexpr double turn_height = 8;   // where another task goes on
constexpr double wide_lane = 176;
constexpr double narrow_lane = 142;
constexpr size_t most_wide_lanes = 7;

bool is_shown(const mc_sim_event &event) { return event.kind != MC_SIM_NAME && event.kind != MC_SIM_NAME_CHANNEL; }

// The tasks that an event shows.
template <class Visit> void for_each_task(const mc_sim_event &event, Visit visit) {
    if (event.kind != MC_SIM_TIME)
        visit(event.task);
    if (event.kind == MC_SIM_SPAWN || event.kind == MC_SIM_MESSAGE)
        visit(event.peer);
}

// Of many tasks those that did something last.
std::set<uint64_t> choose_tasks(const std::vector<mc_sim_event> &events, size_t first, size_t *left_out) {
    std::map<uint64_t, size_t> last;
    for (size_t i = first; i < events.size(); ++i)
        if (is_shown(events[i]))
            for_each_task(events[i], [&](uint64_t task) { last[task] = i; });
    std::vector<std::pair<size_t, uint64_t>> order;
    order.reserve(last.size());
    for (const auto &[task, at] : last)
        order.emplace_back(at, task);
    std::sort(order.rbegin(), order.rend());
    std::set<uint64_t> tasks;
    for (size_t i = 0; i < std::min(order.size(), most_lanes); ++i)
        tasks.insert(order[i].second);
    *left_out = order.size() - tasks.size();
    return tasks;
}

// Follows the events and notes what each lane shows until when. What began before the first row began at the top.
class Follower {
public:
    explicit Follower(Layout &layout) : layout_(layout) {}

    void event(const mc_sim_event &event, double y) {
        switch (event.kind) {
        case MC_SIM_SPAWN:
            born(event.peer, y);
            break;
        case MC_SIM_RUN:
            run(event.task, y);
            break;
        case MC_SIM_WAIT:
            wait(event.task, y);
            break;
        case MC_SIM_LOCK:
            lock(event.task, event.object, y);
            break;
        case MC_SIM_UNLOCK:
            unlock(event.task, event.object, y);
            break;
        case MC_SIM_END:
            died(event.task, y);
            break;
        case MC_SIM_TIME:
            stop(y);
            break;
        case MC_SIM_MESSAGE:
        case MC_SIM_PUT:
            break; // may be the other's doing, who finds it waiting
        default:
            seen(event.task, y);
        }
    }

    void finish(double y) {
        layout_.last_task = runner_.value_or(MC_SIM_CLOCK);
        stop(y);
        for (Lane &lane : layout_.lanes) {
            end_wait(lane.task, y);
            while (!states_[lane.task].holds.empty())
                unlock(lane.task, states_[lane.task].holds.back().mutex, y);
            if (!lane.ends)
                lane.life.to = y;
        }
    }

private:
    struct State {
        std::optional<double> waits;
        std::vector<Hold> holds;
    };

    Lane *lane(uint64_t task) {
        const auto found = layout_.lane.find(task);
        return found == layout_.lane.end() ? nullptr : &layout_.lanes[found->second];
    }

    void born(uint64_t task, double y) {
        if (Lane *found = lane(task)) {
            found->life.from = y;
            found->begins = y > layout_.top;
        }
    }

    void died(uint64_t task, double y) {
        seen(task, y);
        if (runner_ == task)
            stop(y);
        if (Lane *found = lane(task)) {
            found->life.to = y;
            found->ends = true;
        }
    }

    // One that goes on where it stopped, with nobody in between, is told of by what it does next; so is the first of all.
    void seen(uint64_t task, double y) {
        if (!runner_ && task != MC_SIM_CLOCK)
            run(task, y);
    }

    void run(uint64_t task, double y) {
        stop(y);
        end_wait(task, y);
        runner_ = task;
        since_ = y;
    }

    void stop(double y) {
        if (Lane *found = runner_ ? lane(*runner_) : nullptr; found != nullptr && y > since_)
            found->runs.push_back({since_, y});
        runner_.reset();
    }

    void wait(uint64_t task, double y) {
        seen(task, y);
        if (runner_ == task)
            stop(y);
        states_[task].waits = y;
    }

    void end_wait(uint64_t task, double y) {
        State &state = states_[task];
        if (Lane *found = lane(task); found != nullptr && state.waits && y > *state.waits)
            found->waits.push_back({*state.waits, y});
        state.waits.reset();
    }

    void lock(uint64_t task, uint64_t mutex, double y) {
        seen(task, y);
        State &state = states_[task];
        state.holds.push_back(Hold{mutex, {y, y}, state.holds.size()});
    }

    void unlock(uint64_t task, uint64_t mutex, double y) {
        std::vector<Hold> &holds = states_[task].holds;
        const auto found =
            std::find_if(holds.rbegin(), holds.rend(), [&](const Hold &hold) { return hold.mutex == mutex; });
        if (found == holds.rend())
            return;
        found->span.to = y;
        if (Lane *shown = lane(task); shown != nullptr && y > found->span.from)
            shown->holds.push_back(*found);
        holds.erase(std::next(found).base());
    }

    Layout &layout_;
    std::unordered_map<uint64_t, State> states_;
    std::optional<uint64_t> runner_;
    double since_ = 0;
};

void place_lanes(Layout &layout, const std::set<uint64_t> &tasks) {
    layout.spacing = tasks.size() <= most_wide_lanes ? wide_lane : narrow_lane;
    layout.left = gutter;
    const auto add = [&](uint64_t task) {
        const double x = gutter + 40 + static_cast<double>(layout.lanes.size()) * layout.spacing;
        layout.lane[task] = layout.lanes.size();
        layout.lanes.emplace_back(task, x, Span{layout.top, layout.top});
        layout.right = std::max(x + layout.spacing - 20, 480.0);
    };
    if (tasks.count(MC_SIM_CLOCK) != 0)
        add(MC_SIM_CLOCK); // by number it would be the last
    for (const uint64_t task : tasks)
        if (task != MC_SIM_CLOCK)
            add(task);
}

double height_of(const mc_sim_event &event) {
    if (event.kind == MC_SIM_MESSAGE || event.kind == MC_SIM_SPAWN || event.kind == MC_SIM_TIME)
        return arrow_height;
    return event.kind == MC_SIM_RUN && event.value == 0 ? turn_height : row_height;
}

bool concerns(const Layout &layout, const mc_sim_event &event) {
    bool all = true;
    for_each_task(event, [&](uint64_t task) { all &= layout.lane.count(task) != 0; });
    return all;
}

} // namespace

Layout lay_out(const Recording &recording) {
    const std::vector<mc_sim_event> &events = recording.events;
    Layout layout;
    layout.top = head;
    layout.events_before = events.size() - std::min(events.size(), most_events);
    place_lanes(layout, choose_tasks(events, layout.events_before, &layout.tasks_left_out));
    Follower follower(layout);
    double y = layout.top;
    for (size_t i = 0; i < events.size(); ++i) {
        const bool has_row = i >= layout.events_before && is_shown(events[i]) && concerns(layout, events[i]);
        const double height = has_row ? height_of(events[i]) : 0;
        const double middle = y + height - std::min(height, row_height) / 2;
        follower.event(events[i], middle);
        if (has_row)
            layout.rows.push_back(Row{i, middle});
        y += height;
    }
    layout.bottom = y + row_height;
    follower.finish(layout.bottom);
    return layout;
}

} // namespace mc::mcrt
