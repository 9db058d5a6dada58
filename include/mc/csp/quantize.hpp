// mc/csp/quantize.hpp: amounts that come in some portions go out in others. C++17.
#ifndef MC_CSP_QUANTIZE_HPP
#define MC_CSP_QUANTIZE_HPP

#include <mc/csp/combinator.hpp>

#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace csp {

namespace detail {

template <class T> void add(T &sum, const T &more) {
    if constexpr (std::is_integral_v<T>) {
        if (more > 0 ? sum > std::numeric_limits<T>::max() - more : sum < std::numeric_limits<T>::min() - more)
            throw std::overflow_error("quantize: the sum is too large");
    }
    sum = static_cast<T>(sum + more);
}

// False: it makes no difference, to infinity for instance.
template <class T> bool subtract(T &sum, const T &portion) {
    const T left = static_cast<T>(sum - portion);
    if (!(left < sum) && T{} < portion)
        return false;
    sum = left;
    return true;
}

} // namespace detail

namespace chan {

// Adds up what comes from r, and sends it on to w in portions of the sizes that quanta delivers (of one size, in the other
// form), each when there is enough for it. A portion of 0 is sent at once. It ends when r has closed and what is left does
// not suffice for the next portion, when quanta has closed and the last portion is out, or when w has closed; then residue
// gets what was not sent, also when that is 0. Throws std::overflow_error when a sum of integers does not fit into T, and
// std::invalid_argument for a portion below 0.
template <class T> auto quantize(reader<T> r, reader<T> quanta, writer<T> w, writer<T> residue = writer<T>::dead()) {
    return detail::once(
        [r = std::move(r), quanta = std::move(quanta), w = std::move(w), residue = std::move(residue)]() mutable {
            csp_descr("quantize");
            const reader<T> in = std::move(r);
            const reader<T> sizes = std::move(quanta);
            const writer<T> out = std::move(w);
            const writer<T> rest = std::move(residue);
            T sum{};
            bool going = true;
            for (detail::cell<T> size; going && detail::next(sizes, out, size);) {
                detail::cell<T> more;
                if (*size < T{})
                    throw std::invalid_argument("quantize: a portion is below 0");
                while (going && sum < *size) {
                    going = detail::next(in, out, more);
                    if (going)
                        detail::add(sum, *more);
                }
                going = going && out << *size && detail::subtract(sum, *size);
            }
            rest << sum;
        });
}
template <class T>
auto quantize(reader<T> r, detail::same<T> quantum, writer<T> w, writer<T> residue = writer<T>::dead()) {
    if (!(T{} < quantum))
        throw std::invalid_argument("quantize: the quantum must be above 0");
    return detail::once(
        [r = std::move(r), quantum = std::move(quantum), w = std::move(w), residue = std::move(residue)]() mutable {
            csp_descr("quantize");
            const reader<T> in = std::move(r);
            const writer<T> out = std::move(w);
            const writer<T> rest = std::move(residue);
            T sum{};
            bool going = true;
            for (detail::cell<T> more; going && detail::next(in, out, more);) {
                detail::add(sum, *more);
                while (going && quantum <= sum)
                    going = out << quantum && detail::subtract(sum, quantum);
            }
            rest << sum;
        });
}

} // namespace chan

template <class T> reader<T> spawn_quantize(reader<T> r, reader<T> quanta, writer<T> residue = writer<T>::dead()) {
    reader<T> result;
    detail::start(chan::quantize(std::move(r), std::move(quanta), ++result, std::move(residue)));
    return result;
}
template <class T>
reader<T> spawn_quantize(reader<T> r, detail::same<T> quantum, writer<T> residue = writer<T>::dead()) {
    reader<T> result;
    detail::start(chan::quantize(std::move(r), std::move(quantum), ++result, std::move(residue)));
    return result;
}
template <class T> writer<T> spawn_quantize(reader<T> quanta, writer<T> w, writer<T> residue = writer<T>::dead()) {
    writer<T> result;
    detail::start(chan::quantize(--result, std::move(quanta), std::move(w), std::move(residue)));
    return result;
}
template <class T>
writer<T> spawn_quantize(detail::same<T> quantum, writer<T> w, writer<T> residue = writer<T>::dead()) {
    writer<T> result;
    detail::start(chan::quantize(--result, std::move(quantum), std::move(w), std::move(residue)));
    return result;
}

namespace chan {
using csp::spawn_quantize;
} // namespace chan

} // namespace csp

#endif // MC_CSP_QUANTIZE_HPP
