// Invariants: what the library promises itself. A broken one aborts, in release builds too, with the place and the
// state; a caller's mistake never comes here, it gets a status code.
#pragma once

#include <cstdint>

namespace mc::base {

// Writes "libmcrt: invariant broken: ..." to standard error and aborts. state is whatever number tells most about it.
[[noreturn]] void invariant_broken(const char *file, int line, const char *what, uint64_t state) noexcept;

} // namespace mc::base

#define MC_INVARIANT(condition, state)                                                                                 \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0))                                                                         \
            ::mc::base::invariant_broken(__FILE__, __LINE__, #condition, static_cast<uint64_t>(state));                \
    } while (0)

// Costs too much for a release build; checked in every other one.
#ifdef MC_DEBUG
#define MC_DEBUG_INVARIANT(condition, state) MC_INVARIANT(condition, state)
#else
#define MC_DEBUG_INVARIANT(condition, state)                                                                           \
    do {                                                                                                               \
    } while (0)
#endif
