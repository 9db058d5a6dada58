// mc/csp/map.hpp: each message becomes another. C++17.
#ifndef MC_CSP_MAP_HPP
#define MC_CSP_MAP_HPP

#include <mc/csp/combinator.hpp>

#include <type_traits>
#include <utility>

namespace csp {

namespace chan {

// w gets f(message) for each message of r.
template <class A, class B, class F> auto map(reader<A> r, writer<B> w, F &&f) {
    return detail::once([r = std::move(r), w = std::move(w), f = std::decay_t<F>(std::forward<F>(f))]() mutable {
        csp_descr("map");
        const reader<A> in = std::move(r);
        const writer<B> out = std::move(w);
        for (detail::cell<A> message; detail::next(in, out, message);)
            if (!(out << static_cast<B>(detail::apply_to(f, *message))))
                return;
    });
}

} // namespace chan

// The type of the new end may be given: spawn_map<To>(reader, f), spawn_map<From>(writer, f). Without it, a reader is of what f
// returns, and a writer of what w is.
template <class To = detail::deduced, class A, class F> auto spawn_map(reader<A> r, F &&f) {
    using B = typename std::conditional_t<std::is_same_v<To, detail::deduced>,
                                          detail::same_as_is<detail::applied<F, A>>, detail::same_as_is<To>>::type;
    reader<B> result;
    detail::start(chan::map(std::move(r), ++result, std::forward<F>(f)));
    return result;
}
template <class From = detail::deduced, class B, class F> auto spawn_map(writer<B> w, F &&f) {
    using A = std::conditional_t<std::is_same_v<From, detail::deduced>, B, From>;
    writer<A> result;
    detail::start(chan::map(--result, std::move(w), std::forward<F>(f)));
    return result;
}
template <class T, class F> channel<T> spawn_map(F &&f) {
    channel<T> in;
    channel<T> out;
    detail::start(chan::map(--in, ++out, std::forward<F>(f)));
    return channel<T>(++in, --out);
}

namespace chan {
using csp::spawn_map;
} // namespace chan

} // namespace csp

#endif // MC_CSP_MAP_HPP
