// What the fuzz targets share: the bytes of an input as choices, and what must be so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fuzz {

inline int steps = 0; // of the input that is played, for who reads a failure

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s (step %d)\n", __FILE__, __LINE__, #condition, fuzz::steps);        \
            std::abort();                                                                                              \
        }                                                                                                              \
    } while (0)

// Bytes that run out: from then on every choice is the first.
class Input {
public:
    Input() = default;
    Input(const uint8_t *data, size_t size) : at_(data), left_(size) {}
    bool empty() const { return left_ == 0; }
    unsigned below(unsigned n) {
        if (left_ == 0)
            return 0;
        --left_;
        return *at_++ % n;
    }

private:
    const uint8_t *at_ = nullptr;
    size_t left_ = 0;
};

} // namespace fuzz
