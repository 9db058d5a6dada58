// mc/csp/enumerate.hpp: the elements of a container. C++17.
#ifndef MC_CSP_ENUMERATE_HPP
#define MC_CSP_ENUMERATE_HPP

#include <mc/csp/combinator.hpp>

#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace csp {

namespace detail {

template <class C>
using element_of = typename std::iterator_traits<std::decay_t<decltype(std::begin(std::declval<C &>()))>>::value_type;

// The container itself, or a copy of an array.
template <class C> auto kept(C &&c) {
    if constexpr (std::is_array_v<std::remove_reference_t<C>>)
        return std::vector<element_of<C>>(std::begin(c), std::end(c));
    else
        return std::decay_t<C>(std::forward<C>(c));
}

} // namespace detail

namespace chan {

// w gets a copy of each element of c; with cyclic, from the start again and again, unless c is empty.
template <class T, class C> auto enumerate(C &&c, writer<T> w, bool cyclic = false) {
    static_assert(std::is_copy_constructible_v<T>, "enumerate copies its messages");
    return detail::once([c = detail::kept(std::forward<C>(c)), w = std::move(w), cyclic]() mutable {
        csp_descr("enumerate");
        const writer<T> out = std::move(w);
        do {
            for (const auto &element : c)
                if (!(out << static_cast<T>(element)))
                    return;
        } while (cyclic && std::begin(c) != std::end(c));
    });
}
template <class T> auto enumerate(std::initializer_list<detail::same<T>> c, writer<T> w, bool cyclic = false) {
    return enumerate(std::vector<T>(c), std::move(w), cyclic);
}

template <class T, class C> auto cycle(C &&c, writer<T> w) { return enumerate(std::forward<C>(c), std::move(w), true); }
template <class T> auto cycle(std::initializer_list<detail::same<T>> c, writer<T> w) {
    return enumerate(std::vector<T>(c), std::move(w), true);
}

} // namespace chan

template <class T = detail::deduced, class C> auto spawn_enumerate(C &&c, bool cyclic = false) {
    using Message = std::conditional_t<std::is_same_v<T, detail::deduced>, detail::element_of<C>, T>;
    reader<Message> result;
    detail::start(chan::enumerate(std::forward<C>(c), ++result, cyclic));
    return result;
}
template <class T> reader<T> spawn_enumerate(std::initializer_list<T> c, bool cyclic = false) {
    return spawn_enumerate<T>(std::vector<T>(c), cyclic);
}
template <class T = detail::deduced, class C> auto spawn_cycle(C &&c) {
    return spawn_enumerate<T>(std::forward<C>(c), true);
}
template <class T> reader<T> spawn_cycle(std::initializer_list<T> c) {
    return spawn_enumerate<T>(std::vector<T>(c), true);
}

namespace chan {
using csp::spawn_cycle;
using csp::spawn_enumerate;
} // namespace chan

} // namespace csp

#endif // MC_CSP_ENUMERATE_HPP
