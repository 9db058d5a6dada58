// mc/csp/combinator.hpp: what the combinators share. C++17.
//
// A combinator, csp::chan::X(ends..., how), is a callable that moves messages between its ends until one of them closes; it can
// be called once, also as a const one, and closes its ends when it returns. csp::spawn_X runs it in a microthread: given the
// reader it returns a new reader behind it, given the writer a new writer before it, given neither a channel around it.
//
// All of them: stop when either side has closed; let out what their callables throw, which is then the microthread's exception
// (mc/csp/spawn.hpp); deliver every message that they have accepted, unless the other side has closed meanwhile. Messages are
// moved; a combinator that must copy them says so when it is compiled. Where the death of the output and a message come
// together, the death goes first, and the message stays with its sender.
#ifndef MC_CSP_COMBINATOR_HPP
#define MC_CSP_COMBINATOR_HPP

#include <mc/csp/microthread.hpp>

#include <type_traits>
#include <utility>

namespace csp {

namespace detail {

// A parameter that takes no part in deduction.
template <class T> struct same_as_is {
    using type = T;
};
template <class T> using same = typename same_as_is<T>::type;

struct deduced {};

// What f makes of a message that it may move from; f may also insist on a variable.
template <class F, class T> decltype(auto) apply_to(F &f, T &message) {
    if constexpr (std::is_invocable_v<F &, T &&>)
        return f(std::move(message));
    else
        return f(message);
}
template <class F, class T>
using applied = std::decay_t<decltype(detail::apply_to(std::declval<std::decay_t<F> &>(), std::declval<T &>()))>;

// Into an empty cell. When it has gone, the cell knows whether the message has arrived(): if its move has thrown, the sender was
// told, and for a combinator that waited nothing has come.
template <class T> action receive(const reader<T> &from, cell<T> &into) noexcept {
    into.reset();
    return action_access::receive_new<T>(from.internal_reader(), into.room(), into.made());
}

// The next message, unless the input has closed.
template <class T> bool next(const reader<T> &in, cell<T> &message) {
    while (action_access::run(receive(in, message)) > 0)
        if (message.arrived())
            return true;
    return false;
}

// The next message, unless the output has closed before there is one. Empty ends are closed ones.
template <class T, class U> bool next(const reader<T> &in, const writer<U> &out, cell<T> &message) {
    while (in && out && prialt(~out, receive(in, message)) > 0)
        if (message.arrived())
            return true;
    return false;
}

} // namespace detail

} // namespace csp

#endif // MC_CSP_COMBINATOR_HPP
