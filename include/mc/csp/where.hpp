// mc/csp/where.hpp: only the messages that satisfy a predicate. C++17.
#ifndef MC_CSP_WHERE_HPP
#define MC_CSP_WHERE_HPP

#include <mc/csp/combinator.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace csp {

namespace chan {

// w gets the messages of r for which p(message) is true.
template <class T, class P> auto where(reader<T> r, writer<T> w, P &&p) {
    return detail::once([r = std::move(r), w = std::move(w), p = std::decay_t<P>(std::forward<P>(p))]() mutable {
        csp_descr("where");
        const reader<T> in = std::move(r);
        const writer<T> out = std::move(w);
        for (detail::cell<T> message; detail::next(in, out, message);)
            if (p(*message) && !(out << std::ref(*message)))
                return;
    });
}

} // namespace chan

template <class T, class P> reader<T> spawn_where(reader<T> r, P &&p) {
    reader<T> result;
    detail::start(chan::where(std::move(r), ++result, std::forward<P>(p)));
    return result;
}
template <class T, class P> writer<T> spawn_where(writer<T> w, P &&p) {
    writer<T> result;
    detail::start(chan::where(--result, std::move(w), std::forward<P>(p)));
    return result;
}
template <class T, class P> channel<T> spawn_where(P &&p) {
    channel<T> in;
    channel<T> out;
    detail::start(chan::where(--in, ++out, std::forward<P>(p)));
    return channel<T>(++in, --out);
}

namespace chan {
using csp::spawn_where;
} // namespace chan

} // namespace csp

#endif // MC_CSP_WHERE_HPP
