// How far a search has come, on standard error: a bar on a terminal, else a line every two seconds. Nothing before the first two
// seconds are over when it is no terminal, and nothing is left of the bar at the end.
#pragma once

#include <cstdint>
#include <string>

namespace mc::mcrt {

class Progress {
public:
    // what: of which there are so many at most, "seed"
    Progress(std::string what, uint64_t most);
    ~Progress();
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    // As often as one likes.
    void show(uint64_t done, uint64_t signatures);

private:
    void draw_bar(uint64_t done, const std::string &figures);

    const std::string what_;
    const uint64_t most_;
    const bool terminal_;
    const double began_;
    double shown_ = 0; // when
    bool drawn_ = false;
};

} // namespace mc::mcrt
