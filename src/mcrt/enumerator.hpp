// All schedules with at most so many preemptions, each once, depth first. Pure: it says which to run, and is told what choices the
// run had.
//
// A schedule is named by its deviations. Its run takes candidate 0 after the last of them, so each later choice of that run is where
// one more deviation may be made: these are its children, and every schedule is the child of exactly one, the one without its last
// deviation. What another candidate costs is known from the choice alone.
#pragma once

#include "mcrt/schedule.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace mc::mcrt {

class Enumerator {
public:
    explicit Enumerator(uint64_t preemptions) : budget_(preemptions) {}

    struct Item {
        Schedule schedule;
        uint64_t left = 0;    // preemptions that may still be added
        mc_sim_choice last{}; // what the last deviation's choice must be again
    };

    // Up to so many that may run at once, in order. Empty: what was taken has children still to be told of, or this is the end.
    std::vector<Item> take(size_t most);

    // What they were, in the order in which they were taken. Something: one did not follow its schedule, so it is no function of it.
    struct Ran {
        Item item;
        Choices choices;
    };
    struct Stray {
        Schedule schedule;
        uint64_t choice; // the first that is known to be another
    };
    std::optional<Stray> ran(std::vector<Ran> runs);

private:
    // A run, and which of its choices has been varied how far: from the last one down.
    struct Node {
        Schedule schedule;
        uint64_t left;
        uint64_t first;     // choice that may deviate
        Choices choices;    // from that one on
        uint32_t taken = 0; // of the last choice
    };

    bool next(Node &node, Item *item) const;

    const uint64_t budget_;
    bool begun_ = false;
    std::vector<Node> nodes_; // a stack
};

} // namespace mc::mcrt
