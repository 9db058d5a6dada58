// mc/csp/blackhole.hpp: messages end here. C++17.
#ifndef MC_CSP_BLACKHOLE_HPP
#define MC_CSP_BLACKHOLE_HPP

#include <mc/csp/combinator.hpp>

#include <utility>

namespace csp {

namespace chan {

// Receives the messages of r and discards them.
template <class T> auto blackhole(reader<T> r) {
    return detail::once([r = std::move(r)]() mutable {
        csp_descr("blackhole");
        const reader<T> in = std::move(r);
        while (in >> nullptr) {
        }
    });
}

} // namespace chan

template <class T = poke_t> writer<T> spawn_blackhole() {
    writer<T> result;
    detail::start(chan::blackhole(--result));
    return result;
}

namespace chan {
using csp::spawn_blackhole;
} // namespace chan

} // namespace csp

#endif // MC_CSP_BLACKHOLE_HPP
