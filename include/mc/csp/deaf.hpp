// mc/csp/deaf.hpp: a reader that never reads. C++17.
#ifndef MC_CSP_DEAF_HPP
#define MC_CSP_DEAF_HPP

#include <mc/csp/combinator.hpp>

#include <utility>

namespace csp {

namespace chan {

// Holds r, and receives nothing, until its writer is gone.
template <class T> auto deaf(reader<T> r) {
    return detail::once([r = std::move(r)]() mutable {
        csp_descr("deaf");
        const reader<T> in = std::move(r);
        (void)prialt(~in);
    });
}

} // namespace chan

template <class T = poke_t> writer<T> spawn_deaf() {
    writer<T> result;
    detail::start(chan::deaf(--result));
    return result;
}

namespace chan {
using csp::spawn_deaf;
} // namespace chan

} // namespace csp

#endif // MC_CSP_DEAF_HPP
