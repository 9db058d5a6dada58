// Counting: who asked how often, and how long it took. No microthreads here.
#ifndef PIPELINE_TALLY_HPP
#define PIPELINE_TALLY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pipeline {

// Requests and bytes by name.
class Talkers {
public:
    struct Talker {
        std::string name;
        uint64_t requests = 0;
        uint64_t bytes = 0;
    };

    void add(std::string_view name, uint64_t bytes) {
        auto found = by_name_.find(name);
        if (found == by_name_.end()) {
            talkers_.push_back({std::string(name), 0, 0});
            found = by_name_.emplace(talkers_.back().name, &talkers_.back()).first;
        }
        ++found->second->requests;
        found->second->bytes += bytes;
    }

    // The first n by requests; those with as many, by name, bytewise.
    std::vector<const Talker *> top(std::size_t n) const {
        std::vector<const Talker *> result;
        for (const Talker &talker : talkers_)
            result.push_back(&talker);
        n = std::min(n, result.size());
        std::partial_sort(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(n), result.end(),
                          [](const Talker *a, const Talker *b) {
                              return a->requests != b->requests ? a->requests > b->requests : a->name < b->name;
                          });
        result.resize(n);
        return result;
    }

private:
    std::deque<Talker> talkers_; // their names stay where they are
    std::unordered_map<std::string_view, Talker *> by_name_;
};

// How often there was each value, exactly: a counter for each value that occurs, short values in a table.
class Histogram {
public:
    void add(uint64_t value) {
        ++count_;
        if (value < table_size) {
            if (value >= low_.size())
                low_.resize(std::max<std::size_t>(value + 1, std::min<std::size_t>(2 * low_.size(), table_size)));
            ++low_[value];
        } else {
            ++high_[value];
        }
    }

    uint64_t count() const { return count_; }

    // The value of rank ceil(percent / 100 * count), from 1, in their order. Not of an empty one.
    uint64_t percentile(unsigned percent) const {
        const uint64_t rank = count_ / 100 * percent + (count_ % 100 * percent + 99) / 100;
        uint64_t seen = 0;
        for (std::size_t value = 0; value < low_.size(); ++value)
            if ((seen += low_[value]) >= rank)
                return value;
        const std::map<uint64_t, uint64_t> ordered(high_.begin(), high_.end());
        for (const auto &[value, times] : ordered)
            if ((seen += times) >= rank)
                return value;
        return 0;
    }

private:
    static constexpr std::size_t table_size = 65536;

    uint64_t count_ = 0;
    std::vector<uint64_t> low_;
    std::unordered_map<uint64_t, uint64_t> high_;
};

} // namespace pipeline

#endif // PIPELINE_TALLY_HPP
