// mc/csp/count.hpp: numbers. C++17.
#ifndef MC_CSP_COUNT_HPP
#define MC_CSP_COUNT_HPP

#include <mc/csp/combinator.hpp>

#include <cmath>
#include <type_traits>
#include <utility>

namespace csp {

namespace detail {

// start, start + step, ... up to but without stop (down to it, with a step below 0). Integers do not overflow on the way.
template <class T> class counter {
    static_assert(!std::is_same_v<T, bool>, "bool does not count");

public:
    counter(T start, T stop, T step) : at_(start), start_(start), stop_(stop), step_(step), down_(step < T()) {}

    bool done() const { return down_ ? !(stop_ < at_) : !(at_ < stop_); }
    const T &operator*() const { return at_; }

    // False: that was the last before stop. With cyclic it goes on behind start, by what step went past stop.
    bool advance(bool cyclic) {
        if constexpr (std::is_integral_v<T>) {
            using U = std::make_unsigned_t<T>;
            const auto step = static_cast<U>(down_ ? U(0) - U(step_) : U(step_));
            const auto gap = static_cast<U>(down_ ? U(at_) - U(stop_) : U(stop_) - U(at_));
            if (step < gap) {
                at_ = static_cast<T>(U(at_) + U(step_));
                return true;
            }
            const auto all = static_cast<U>(down_ ? U(start_) - U(stop_) : U(stop_) - U(start_));
            const auto past = static_cast<U>(static_cast<U>(step - gap) % all);
            at_ = static_cast<T>(down_ ? U(start_) - past : U(start_) + past);
            return cyclic;
        } else {
            at_ += step_;
            if (!done())
                return true;
            if constexpr (std::is_floating_point_v<T>) {
                at_ = start_ + std::fmod(at_ - start_, stop_ - start_);
                if (done() && !std::isnan(at_)) // rounded up to stop
                    at_ = start_;
            } else {
                while (done())
                    at_ -= stop_ - start_;
            }
            return cyclic && !done();
        }
    }

private:
    T at_;
    T start_;
    T stop_;
    T step_;
    bool down_;
};

} // namespace detail

namespace chan {

// w gets start, start + step, ... as long as they are before stop. With cyclic the numbers go round: they go on at start plus
// what the step went past stop. Nothing, when start is not before stop; a step of 0 repeats start for ever.
template <class T>
auto count(writer<T> w, detail::same<T> start, detail::same<T> stop, detail::same<T> step = 1, bool cyclic = false) {
    return detail::once([w = std::move(w), start, stop, step, cyclic]() mutable {
        csp_descr("count");
        const writer<T> out = std::move(w);
        detail::counter<T> number(start, stop, step);
        if (number.done())
            return;
        while (out << *number && number.advance(cyclic)) {
        }
    });
}

// The same without an end. Integers wrap around.
template <class T> auto count_forever(writer<T> w, detail::same<T> start, detail::same<T> step = 1) {
    static_assert(!std::is_same_v<T, bool>, "bool does not count");
    return detail::once([w = std::move(w), start, step]() mutable {
        csp_descr("count_forever");
        const writer<T> out = std::move(w);
        for (T number = start; out << number;) {
            if constexpr (std::is_integral_v<T>)
                number = static_cast<T>(std::make_unsigned_t<T>(number) + std::make_unsigned_t<T>(step));
            else
                number += step;
        }
    });
}

} // namespace chan

template <class T> reader<T> spawn_count(T start, detail::same<T> stop, detail::same<T> step = 1, bool cyclic = false) {
    reader<T> result;
    detail::start(chan::count(++result, start, stop, step, cyclic));
    return result;
}
template <class T> reader<T> spawn_count_forever(T start, detail::same<T> step = 1) {
    reader<T> result;
    detail::start(chan::count_forever(++result, start, step));
    return result;
}

namespace chan {
using csp::spawn_count;
using csp::spawn_count_forever;
} // namespace chan

} // namespace csp

#endif // MC_CSP_COUNT_HPP
