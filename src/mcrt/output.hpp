// What a run printed, bounded: how it began and how it ended. Pure.
#pragma once

#include <string>
#include <string_view>

namespace mc::mcrt {

class Output {
public:
    void add(std::string_view text);
    // With a line in between that says how much is left out.
    std::string text() const;

private:
    static constexpr size_t most_head = size_t{16} << 10;
    static constexpr size_t most_tail = size_t{48} << 10;

    std::string head_;
    std::string tail_; // up to twice what is kept of it, so that it is seldom moved
    size_t left_out_ = 0;
};

} // namespace mc::mcrt
