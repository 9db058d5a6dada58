#include "mcrt/enumerator.hpp"

#include <algorithm>

namespace mc::mcrt {
namespace {

// Its last deviation was made where it was to be made, or there was none.
bool follows(const Enumerator::Item &item, const Choices &choices) {
    if (item.schedule.empty())
        return true;
    const Deviation &last = item.schedule.back();
    mc_sim_choice wanted = item.last;
    wanted.taken = last.taken;
    return last.choice < choices.size() && same(choices[last.choice], wanted);
}

uint64_t after_last(const Schedule &schedule) { return schedule.empty() ? 0 : schedule.back().choice + 1; }

} // namespace

std::vector<Enumerator::Item> Enumerator::take(size_t most) {
    std::vector<Item> items;
    if (!begun_) {
        begun_ = true;
        items.push_back(Item{{}, budget_, {}});
        return items;
    }
    Item item;
    while (items.size() < most && !nodes_.empty()) {
        if (next(nodes_.back(), &item))
            items.push_back(std::move(item));
        else
            nodes_.pop_back();
    }
    return items;
}

// The next candidate of the last choice that has one that can be afforded; choices that have none are done with.
bool Enumerator::next(Node &node, Item *item) const {
    for (; !node.choices.empty(); node.choices.pop_back(), node.taken = 0) {
        const mc_sim_choice &choice = node.choices.back();
        const uint64_t cost = preempts(choice, 1) ? 1 : 0;
        if (node.taken + 1 >= choice.candidates || cost > node.left)
            continue;
        ++node.taken;
        *item = Item{node.schedule, node.left - cost, choice};
        item->schedule.push_back(Deviation{node.first + node.choices.size() - 1, static_cast<uint16_t>(node.taken)});
        return true;
    }
    return false;
}

std::optional<Enumerator::Stray> Enumerator::ran(std::vector<Ran> runs) {
    std::reverse(runs.begin(), runs.end()); // the first one's children are the next
    for (Ran &run : runs) {
        if (!follows(run.item, run.choices))
            return Stray{run.item.schedule, run.item.schedule.back().choice};
        const uint64_t first = after_last(run.item.schedule);
        Choices rest(run.choices.begin() + static_cast<std::ptrdiff_t>(first), run.choices.end());
        const auto deviates = [](const mc_sim_choice &choice) { return choice.taken != 0; };
        if (const auto other = std::find_if(rest.begin(), rest.end(), deviates); other != rest.end())
            return Stray{run.item.schedule, first + static_cast<uint64_t>(other - rest.begin())};
        nodes_.push_back(Node{std::move(run.item.schedule), run.item.left, first, std::move(rest)});
    }
    return std::nullopt;
}

} // namespace mc::mcrt
