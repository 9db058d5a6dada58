// mc/csp/mute.hpp: a writer that never writes. C++17.
#ifndef MC_CSP_MUTE_HPP
#define MC_CSP_MUTE_HPP

#include <mc/csp/combinator.hpp>

#include <utility>

namespace csp {

namespace chan {

// Holds w, and sends nothing, until its reader is gone.
template <class T> auto mute(writer<T> w) {
    return detail::once([w = std::move(w)]() mutable {
        csp_descr("mute");
        const writer<T> out = std::move(w);
        (void)prialt(~out);
    });
}

} // namespace chan

template <class T = poke_t> reader<T> spawn_mute() {
    reader<T> result;
    detail::start(chan::mute(++result));
    return result;
}

namespace chan {
using csp::spawn_mute;
} // namespace chan

} // namespace csp

#endif // MC_CSP_MUTE_HPP
