// mc/csp/killswitch.hpp: a connection that somebody else can cut. C++17.
#ifndef MC_CSP_KILLSWITCH_HPP
#define MC_CSP_KILLSWITCH_HPP

#include <mc/csp/combinator.hpp>

#include <functional>
#include <utility>

namespace csp {

namespace chan {

// w gets the messages of r until the writer of keepalive is gone, which comes before any message. Nothing is read from it.
template <class T> auto killswitch(reader<T> r, writer<T> w, reader<> keepalive) {
    return detail::once([r = std::move(r), w = std::move(w), keepalive = std::move(keepalive)]() mutable {
        csp_descr("killswitch");
        const reader<T> in = std::move(r);
        const writer<T> out = std::move(w);
        const reader<> alive = std::move(keepalive);
        detail::cell<T> message;
        while (in && out && prialt(~alive, ~out, detail::receive(in, message)) > 0) {
            if (!message.arrived())
                continue;
            if (prialt(~alive, out << std::ref(*message)) <= 0)
                return;
        }
    });
}

} // namespace chan

template <class T> reader<T> spawn_killswitch(reader<T> r, reader<> keepalive) {
    reader<T> result;
    detail::start(chan::killswitch(std::move(r), ++result, std::move(keepalive)));
    return result;
}
template <class T> writer<T> spawn_killswitch(writer<T> w, reader<> keepalive) {
    writer<T> result;
    detail::start(chan::killswitch(--result, std::move(w), std::move(keepalive)));
    return result;
}
template <class T> channel<T> spawn_killswitch(reader<> keepalive) {
    channel<T> in;
    channel<T> out;
    detail::start(chan::killswitch(--in, ++out, std::move(keepalive)));
    return channel<T>(++in, --out);
}

namespace chan {
using csp::spawn_killswitch;
} // namespace chan

} // namespace csp

#endif // MC_CSP_KILLSWITCH_HPP
