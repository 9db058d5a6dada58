// See systematic_choice.hpp.
#if defined(MC_SYS)
#include "testing/systematic_choice.hpp"

#include <algorithm>
#include <cstdlib>

namespace mc::testing::sys {

std::uint64_t &StateSet::slot_of(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (key >> 8) & mask;
    while (slots_[i] != 0 && slots_[i] >> 8 != key >> 8)
        i = (i + 1) & mask;
    return slots_[i];
}

void StateSet::grow() {
    std::vector<std::uint64_t> old(slots_.empty() ? 4096 : slots_.size() * 2);
    old.swap(slots_);
    for (std::uint64_t key : old)
        if (key != 0)
            slot_of(key) = key;
}

bool StateSet::enter(std::uint64_t state, int left) {
    if (2 * (count_ + 1) > slots_.size() && slots_.size() < max_slots)
        grow();
    const std::uint64_t key = (state | std::uint64_t{1} << 63) & ~std::uint64_t{255};
    std::uint64_t &slot = slot_of(key);
    const std::uint64_t budget = static_cast<std::uint64_t>(std::min(left, 255));
    if (slot != 0 && (slot & 255) >= budget)
        return false;
    if (slot == 0 && 2 * ++count_ > max_slots) {
        --count_;
        return true;
    }
    slot = key | budget;
    return true;
}

void Choices::use_path(std::vector<unsigned> path) {
    seeded_ = merging_ = false;
    nodes_.clear();
    for (unsigned taken : path)
        nodes_.push_back({0, taken, 0, 0, 0});
}

void Choices::use_search(bool merging) {
    use_path({});
    merging_ = merging;
}

void Choices::use_seed(std::uint64_t seed) {
    seeded_ = true;
    merging_ = false;
    seed_ = seed;
    nodes_.clear();
}

void Choices::begin_run(const std::uint64_t &signature) {
    signature_ = &signature;
    depth_ = 0;
    diverged_ = false;
    merged_ = false;
    if (!seeded_)
        return;
    nodes_.clear();
    state_ = seed_;
    switch_one_in_ = 2u << below(4);
    unusual_one_in_ = below(5) == 0 ? 0 : 2u << below(4);
    ranking_ = below(4) == 0;
    points_ = 0;
    for (std::uint32_t &rank : rank_)
        rank = 1000 + below(1'000'000);
    const unsigned length = 8u << below(9); // as if the run had so many points
    for (std::uint64_t &point : demote_at_)
        point = below(length);
}

// splitmix64 (Steele, Lea, Flood; public domain).
std::uint64_t Choices::next_random() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

unsigned Choices::record(unsigned n, unsigned taken, std::uint64_t state, int left) {
    nodes_.push_back({n, taken, *signature_, state, left});
    return taken;
}

unsigned Choices::follow(unsigned n, std::uint64_t state, int left) {
    if (merged_)
        return 0;
    if (depth_ == nodes_.size()) {
        merged_ = merging_ && state != 0 && !seen_.enter(state, left);
        if (merged_)
            return 0;
        ++depth_;
        return record(n, 0, state, left);
    }
    Choice &node = nodes_[depth_++];
    if (node.options == 0)
        node = {n, node.taken, *signature_, 0, 0};
    if (node.options != n || node.taken >= n || node.before != *signature_) {
        diverged_ = true;
        return 0;
    }
    return node.taken;
}

unsigned Choices::pick(unsigned n) { return seeded_ ? record(n, below(n)) : follow(n); }

unsigned Choices::pick_unusual(unsigned n) {
    if (!seeded_)
        return follow(n);
    return record(n, one_in(unusual_one_in_) ? 1 + below(n - 1) : 0);
}

bool Choices::may_switch() {
    if (!seeded_)
        return true;
    ++points_;
    return ranking_ || one_in(switch_one_in_);
}

unsigned Choices::pick_thread(const Candidate *candidates, unsigned n, bool stays, std::uint64_t state, int left) {
    if (!seeded_)
        return follow(n, state, left);
    return record(n, ranking_ ? ranked(candidates, n) : walk(candidates, n, stays));
}

// may_switch() has thrown the dice already, so staying is not among the answers, unless what came up is a rare thing.
unsigned Choices::walk(const Candidate *candidates, unsigned n, bool stays) {
    const unsigned first = stays ? 1 : 0;
    const unsigned taken = first + below(n - first);
    const bool rare = candidates[taken].how != Wakes::ready;
    return rare && candidates[0].how == Wakes::ready && !one_in(4) ? 0 : taken;
}

unsigned Choices::ranked(const Candidate *candidates, unsigned n) {
    unsigned best = 0;
    for (unsigned i = 1; i < n; ++i) {
        if (candidates[i].how != Wakes::ready) {
            if (one_in(32))
                return i;
        } else if (rank_[candidates[i].thread] > rank_[candidates[best].thread]) {
            best = i;
        }
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
        if (demote_at_[i] < points_) {
            demote_at_[i] = ~std::uint64_t{0};
            rank_[candidates[best].thread] = i; // below all that have their first rank
        }
    }
    return best;
}

bool Choices::advance() {
    while (!nodes_.empty() && nodes_.back().taken + 1 >= nodes_.back().options)
        nodes_.pop_back();
    if (nodes_.empty())
        return false;
    ++nodes_.back().taken;
    return true;
}

std::string Choices::path() const {
    std::string text;
    unsigned zeros = 0;
    const std::size_t length = seeded_ ? nodes_.size() : depth_;
    for (std::size_t i = 0; i < length && i < nodes_.size(); ++i) {
        if (nodes_[i].taken == 0) {
            ++zeros;
            continue;
        }
        text += (text.empty() ? "" : ".") + std::to_string(zeros) + "-" + std::to_string(nodes_[i].taken);
        zeros = 0;
    }
    return text;
}

void Choices::save(ChoiceRecord &record) const {
    record.count = std::min(nodes_.size(), ChoiceRecord::capacity);
    record.depth = depth_;
    record.diverged = diverged_;
    std::copy_n(nodes_.begin(), record.count, record.choices);
}

// The other process has seen states that this one has not.
void Choices::restore(const ChoiceRecord &record) {
    for (std::size_t i = nodes_.size(); merging_ && i < record.count; ++i)
        if (record.choices[i].state != 0)
            seen_.enter(record.choices[i].state, record.choices[i].left);
    nodes_.assign(record.choices, record.choices + record.count);
    depth_ = record.depth;
    diverged_ = record.diverged;
}

bool Choices::parse_path(const char *text, std::vector<unsigned> &path) {
    path.clear();
    while (*text != '\0') {
        char *end;
        unsigned long zeros = std::strtoul(text, &end, 10);
        if (end == text || *end != '-' || zeros > 10'000'000)
            return false;
        text = end + 1;
        unsigned long taken = std::strtoul(text, &end, 10);
        if (end == text || (*end != '.' && *end != '\0') || taken > 1'000'000)
            return false;
        path.insert(path.end(), zeros, 0);
        path.push_back(static_cast<unsigned>(taken));
        text = *end == '.' ? end + 1 : end;
    }
    return true;
}

} // namespace mc::testing::sys
#endif
