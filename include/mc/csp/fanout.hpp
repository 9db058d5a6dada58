// mc/csp/fanout.hpp: from one input to many outputs, which come and go. C++17.
#ifndef MC_CSP_FANOUT_HPP
#define MC_CSP_FANOUT_HPP

#include <mc/csp/combinator.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace csp {

namespace chan {

// Each message goes to all outputs (at most 65,000), one after another, so that the slowest sets the pace.
//   outputs  delivers writers, which join.
//   inputs   while there are outputs, it is given the writer of a new input, and of another one when all copies of that are
//            gone. The input closes when there is no output left.
// It ends when inputs has closed and nobody holds an input, and when outputs has closed and no output is left.
template <class T> auto fanout(reader<writer<T>> outputs, writer<writer<T>> inputs) {
    static_assert(std::is_copy_constructible_v<T>, "fanout copies its messages");
    return detail::once([outputs = std::move(outputs), inputs = std::move(inputs)]() mutable {
        csp_descr("fanout");
        const reader<writer<T>> joining = std::move(outputs);
        const writer<writer<T>> offers = std::move(inputs);
        std::vector<writer<T>> outs;
        std::vector<action> arms;
        const auto broadcast = [&outs](T &message) {
            for (std::size_t i = 0; i < outs.size();) {
                const bool taken =
                    i + 1 < outs.size() ? bool(outs[i] << std::as_const(message)) : bool(outs[i] << std::ref(message));
                if (taken)
                    ++i;
                else
                    outs.erase(outs.begin() + static_cast<std::ptrdiff_t>(i));
            }
        };
        for (writer<T> joined; joining && offers && prialt(~offers, joining >> joined) > 0;) {
            if (!joined)
                continue;
            outs.push_back(std::move(joined));
            reader<T> in;
            writer<T> offered = ++in; // empty when somebody has it
            bool more = true;
            detail::cell<T> message;
            while (!outs.empty()) {
                // Deaths and joiners go before messages: one that is accepted finds every output that is there.
                const int n = static_cast<int>(outs.size());
                arms.clear();
                for (const writer<T> &out : outs)
                    arms.push_back(~out);
                arms.push_back(more ? joining >> joined : action());
                arms.push_back(offered ? offers << std::ref(offered) : action());
                arms.push_back(offered ? action() : detail::receive(in, message));
                const int which = prialt(arms);
                if (which == n + 1) {
                    if (joined)
                        outs.push_back(std::move(joined));
                } else if (which == n + 2) {
                    offered = writer<T>();
                } else if (which == n + 3) {
                    if (message.arrived())
                        broadcast(*message);
                } else if (which == -(n + 1)) {
                    more = false;
                } else if (which == -(n + 3)) {
                    in = reader<T>();
                    offered = ++in;
                } else if (which < 0 && which >= -n) {
                    outs.erase(outs.begin() + (-which - 1));
                } else {
                    return; // inputs has closed, or the wait has ended otherwise
                }
            }
        }
    });
}

} // namespace chan

template <class T> reader<writer<T>> spawn_fanout(reader<writer<T>> outputs) {
    reader<writer<T>> result;
    detail::start(chan::fanout(std::move(outputs), ++result));
    return result;
}
template <class T> writer<writer<T>> spawn_fanout(writer<writer<T>> inputs) {
    writer<writer<T>> result;
    detail::start(chan::fanout(--result, std::move(inputs)));
    return result;
}

namespace chan {
using csp::spawn_fanout;
} // namespace chan

} // namespace csp

#endif // MC_CSP_FANOUT_HPP
