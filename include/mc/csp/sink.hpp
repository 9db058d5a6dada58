// mc/csp/sink.hpp: messages end in a function, or in a variable. C++17.
#ifndef MC_CSP_SINK_HPP
#define MC_CSP_SINK_HPP

#include <mc/csp/combinator.hpp>

#include <type_traits>
#include <utility>

namespace csp {

namespace chan {

// Calls f(message) for each message of r.
template <class T, class F> auto sink(reader<T> r, F &&f) {
    return detail::once([r = std::move(r), f = std::decay_t<F>(std::forward<F>(f))]() mutable {
        csp_descr("sink");
        const reader<T> in = std::move(r);
        for (detail::cell<T> message; detail::next(in, message);)
            (void)detail::apply_to(f, *message);
    });
}

} // namespace chan

template <class T, class F> writer<T> spawn_sink(F &&f) {
    writer<T> result;
    detail::start(chan::sink(--result, std::forward<F>(f)));
    return result;
}

// Assigns each message to the variable, which must outlive the writer; the caller sees to it that nobody else uses it.
template <class T> writer<T> spawn_sinkhole(T &variable) {
    return spawn_sink<T>([&variable](T &&message) { variable = std::move(message); });
}

namespace chan {
using csp::spawn_sink;
using csp::spawn_sinkhole;
} // namespace chan

} // namespace csp

#endif // MC_CSP_SINK_HPP
