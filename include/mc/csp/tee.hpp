// mc/csp/tee.hpp: a copy of what passes. C++17.
#ifndef MC_CSP_TEE_HPP
#define MC_CSP_TEE_HPP

#include <mc/csp/combinator.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace csp {

namespace chan {

// w gets the messages of r, and then w2 a copy of each that w has taken. It goes on without w2 when that has closed.
template <class T> auto tee(reader<T> r, writer<T> w, writer<T> w2) {
    static_assert(std::is_copy_constructible_v<T>, "tee copies its messages");
    return detail::once([r = std::move(r), w = std::move(w), w2 = std::move(w2)]() mutable {
        csp_descr("tee");
        const reader<T> in = std::move(r);
        const writer<T> out = std::move(w);
        writer<T> side = std::move(w2);
        detail::cell<T> copy;
        for (detail::cell<T> message; detail::next(in, out, message);) {
            if (side)
                copy.emplace(std::as_const(*message));
            if (!(out << std::ref(*message)))
                return;
            if (side && !(side << std::ref(*copy)))
                side = writer<T>();
        }
    });
}

} // namespace chan

template <class T> reader<T> spawn_tee(reader<T> r, writer<T> w2) {
    reader<T> result;
    detail::start(chan::tee(std::move(r), ++result, std::move(w2)));
    return result;
}
template <class T> writer<T> spawn_tee(writer<T> w, writer<T> w2) {
    writer<T> result;
    detail::start(chan::tee(--result, std::move(w), std::move(w2)));
    return result;
}

namespace chan {
using csp::spawn_tee;
} // namespace chan

} // namespace csp

#endif // MC_CSP_TEE_HPP
