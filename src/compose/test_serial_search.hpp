// For serial_test.cpp: the search for a serial order of what happened.
//
// The search (Wing and Gong's, for linearisability) takes any actor's next event, as long as no event of another actor was over before
// that one began, and holds it to the model: result, hooks with their arguments, the envelope and the state that a handler
// got. When none fits it goes back. So it accepts a history exactly if there is a serial order of it.
#pragma once

#include "compose/test_serial_model.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mc::compose::test {

// Depth first, the most urgent event first; states that have failed are not looked at again.
class Search {
public:
    Search(const std::deque<Actor> &actors, uint64_t most) : actors_(actors), left_(most) {}

    // Ends where `final` agrees. False: there is no order, or it was given up.
    template <class Final> bool run(const Model &model, const Final &final) {
        uint64_t first_end = UINT64_MAX;
        std::vector<std::pair<uint64_t, uint32_t>> candidates;
        uint64_t done = 0;
        for (uint32_t i = 0; i < actors_.size(); ++i) {
            done += model.places[i].next;
            if (model.places[i].next == actors_[i].events.size())
                continue;
            const uint64_t end = actors_[i].events[model.places[i].next].end;
            first_end = std::min(first_end, end);
            candidates.push_back({end, i});
        }
        if (candidates.empty() && final(model))
            return true;
        if (done > furthest_) {
            furthest_ = done;
            stuck_.clear();
        }
        if (!failed_.empty() && failed_.count(model.hash()) != 0)
            return false;
        std::sort(candidates.begin(), candidates.end());
        for (const auto &[end, actor] : candidates) {
            const Event &event = actors_[actor].events[model.places[actor].next];
            if (event.start > first_end)
                continue;
            if (left_ == 0 || --left_ == 0)
                return false;
            Model next = model;
            if (!next.apply(actor, event)) {
                if (done == furthest_)
                    stuck_ += text(actor, event, next.why);
                continue;
            }
            if (run(next, final))
                return true;
        }
        failed_.insert(model.hash());
        return false;
    }
    bool gave_up() const { return left_ == 0; }
    // What did not fit where it came furthest.
    const std::string &stuck() const { return stuck_; }

private:
    static std::string text(uint32_t actor, const Event &e, const char *why) {
        std::string all = "  actor " + std::to_string(actor) + ", event " + std::to_string(static_cast<int>(e.what));
        for (const uint64_t word : {uint64_t{e.machine}, e.number, e.result, e.envelope.payload0, e.start, e.end})
            all += " " + std::to_string(word);
        return all + ": " + why + "\n";
    }

    const std::deque<Actor> &actors_;
    uint64_t left_;
    uint64_t furthest_ = 0;
    std::string stuck_;
    std::unordered_set<uint64_t> failed_;
};

} // namespace mc::compose::test
