// mc/csp/timer.hpp: sleeping, and readers that tell the time. C++17.
//
// Success: readers that deliver times, or only say that it is time; microthread_error when one cannot be made.
//
// Times are those of std::chrono::steady_clock (of the virtual clock, in simulation). Durations of any kind are taken, and
// those that are too long for the clock never end.
#ifndef MC_CSP_TIMER_HPP
#define MC_CSP_TIMER_HPP

#include <mc/csp/microthread.hpp>

#include <chrono>
#include <cstdint>
#include <type_traits>

namespace csp {

using clock = std::chrono::steady_clock;
using duration = clock::duration;

namespace detail {

// Rounded up, and MC_FOREVER when it is too long.
template <class Rep, class Period> int64_t nanoseconds_of(std::chrono::duration<Rep, Period> d) {
    using floating = std::chrono::duration<long double, std::nano>;
    const long double exact = floating(d).count();
    if (!(exact < 9.2e18L))
        return MC_FOREVER;
    if (exact < -9.2e18L)
        return MC_NOW;
    auto rounded = static_cast<int64_t>(exact);
    if (static_cast<long double>(rounded) < exact)
        ++rounded;
    return rounded;
}

// The library sends times as int64_t nanoseconds.
static_assert(sizeof(time_point) == sizeof(int64_t) && std::is_trivially_copyable_v<time_point> &&
                  std::is_same_v<time_point::duration::period, std::nano>,
              "the steady clock does not count nanoseconds in 64 bits");

inline csp_reader started(csp_reader timer) {
    if (timer == nullptr)
        throw microthread_error("timer creation failed");
    return timer;
}

} // namespace detail

// A reader<time_point> for those who ask when it was, that is a reader<> for those who only wait for it.
class timer_reader : public reader<time_point> {
public:
    timer_reader() noexcept = default;
    explicit timer_reader(reader<time_point> of) noexcept : reader(std::move(of)) {}

    operator reader<>() const noexcept { // NOLINT(google-explicit-constructor)
        return reader<>::adopt(csp_reader_addref(internal_reader()));
    }
    using reader::operator>>;
    action operator>>(poke_t &) const noexcept { return *this >> nullptr; }
};

// Blocks: fiber | thread.
inline void sleep_until(time_point when) { csp_sleep_until(detail::nanoseconds(when)); }
template <class Rep, class Period> void sleep(std::chrono::duration<Rep, Period> d) {
    csp_sleep_until(mc_after(detail::nanoseconds_of(d)));
}

// Delivers the time once, d from now; releasing the reader ends the timer.
template <class Rep, class Period> timer_reader after(std::chrono::duration<Rep, Period> d) {
    return timer_reader(reader<time_point>::adopt(detail::started(csp_after(detail::nanoseconds_of(d)))));
}

// Delivers the time every d, which must be above 0. It does not drift; beats that nobody takes are dropped but for one.
template <class Rep, class Period> timer_reader tick(std::chrono::duration<Rep, Period> d) {
    if (d <= d.zero())
        throw std::invalid_argument("tick: the interval must be above 0");
    return timer_reader(reader<time_point>::adopt(detail::started(csp_tick(detail::nanoseconds_of(d)))));
}

} // namespace csp

#endif // MC_CSP_TIMER_HPP
