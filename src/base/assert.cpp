#include "base/assert.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace mc::base {

void invariant_broken(const char *file, int line, const char *what, uint64_t state) noexcept {
    std::fprintf(stderr, "libmcrt: invariant broken: %s (%s:%d, state 0x%" PRIx64 ")\n", what, file, line, state);
    std::abort();
}

} // namespace mc::base
