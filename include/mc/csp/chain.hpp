// mc/csp/chain.hpp: one reader after another. C++17.
#ifndef MC_CSP_CHAIN_HPP
#define MC_CSP_CHAIN_HPP

#include <mc/csp/combinator.hpp>

#include <functional>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace csp {

namespace chan {

// w gets all messages of the first reader, then those of the second, and so on.
template <class T, class R, class = decltype(std::begin(std::declval<R &>())->read())>
auto chain(R readers, writer<T> w) {
    return detail::once([readers = std::move(readers), w = std::move(w)]() mutable {
        csp_descr("chain");
        R sources = std::move(readers);
        const writer<T> out = std::move(w);
        for (auto &source : sources) {
            const reader<T> in = std::move(source);
            detail::cell<T> message;
            int which = -2;
            while (in && out && (which = prialt(~out, detail::receive(in, message))) > 0) {
                if (message.arrived() && !(out << std::ref(*message)))
                    return;
            }
            if (which != -2) // anything but the end of this one
                return;
        }
    });
}
template <class T> auto chain(std::initializer_list<reader<T>> readers, writer<detail::same<T>> w) {
    return chain(std::vector<reader<T>>(readers), std::move(w));
}

} // namespace chan

template <class T = detail::deduced, class R> auto spawn_chain(R readers) {
    using Message = typename std::decay_t<decltype(*std::begin(readers))>::message_type;
    static_assert(std::is_same_v<T, detail::deduced> || std::is_same_v<T, Message>, "the readers are of another type");
    reader<Message> result;
    detail::start(chan::chain(std::move(readers), ++result));
    return result;
}
template <class T> reader<T> spawn_chain(std::initializer_list<reader<T>> readers) {
    return spawn_chain(std::vector<reader<T>>(readers));
}

namespace chan {
using csp::spawn_chain;
} // namespace chan

} // namespace csp

#endif // MC_CSP_CHAIN_HPP
