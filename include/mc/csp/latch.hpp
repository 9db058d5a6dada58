// mc/csp/latch.hpp: the newest message, again and again. C++17.
#ifndef MC_CSP_LATCH_HPP
#define MC_CSP_LATCH_HPP

#include <mc/csp/combinator.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace csp {

namespace chan {

// w gets the newest message of r, as often as it asks, from the first one on; also after r has closed.
template <class T> auto latch(reader<T> r, writer<T> w) {
    static_assert(std::is_copy_constructible_v<T>, "latch copies its messages");
    return detail::once([r = std::move(r), w = std::move(w)]() mutable {
        csp_descr("latch");
        reader<T> in = std::move(r);
        const writer<T> out = std::move(w);
        detail::cell<T> newest;
        detail::cell<T> coming;
        detail::cell<T> leaving;
        if (!detail::next(in, out, newest))
            return;
        leaving.emplace(std::as_const(*newest));
        for (;;) {
            switch (prialt(in ? detail::receive(in, coming) : action(), out << std::ref(*leaving))) {
            case 1:
                if (!coming.arrived())
                    break;
                newest.emplace(std::move(*coming));
                leaving.emplace(std::as_const(*newest));
                break;
            case 2:
                leaving.emplace(std::as_const(*newest));
                break;
            case -1:
                in = reader<T>();
                break;
            default:
                return;
            }
        }
    });
}

} // namespace chan

template <class T> reader<T> spawn_latch(reader<T> r) {
    reader<T> result;
    detail::start(chan::latch(std::move(r), ++result));
    return result;
}
template <class T> writer<T> spawn_latch(writer<T> w) {
    writer<T> result;
    detail::start(chan::latch(--result, std::move(w)));
    return result;
}
template <class T> channel<T> spawn_latch() {
    channel<T> in;
    channel<T> out;
    detail::start(chan::latch(--in, ++out));
    return channel<T>(++in, --out);
}

namespace chan {
using csp::spawn_latch;
} // namespace chan

} // namespace csp

#endif // MC_CSP_LATCH_HPP
