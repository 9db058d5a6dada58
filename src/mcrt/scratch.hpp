// A directory for the time being: recordings of the runs that are under way. In memory where there is room, since each run writes
// one; gone with the object.
#pragma once

#include <cstdint>
#include <string>

namespace mc::mcrt {

class Scratch {
public:
    // bytes: that will be needed at most. Throws Stop when there is no place.
    explicit Scratch(uint64_t bytes);
    ~Scratch();
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;

    std::string file(const std::string &name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

} // namespace mc::mcrt
