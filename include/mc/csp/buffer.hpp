// mc/csp/buffer.hpp: a queue between two ends. C++17.
#ifndef MC_CSP_BUFFER_HPP
#define MC_CSP_BUFFER_HPP

#include <mc/csp/combinator.hpp>
#include <mc/csp/ringbuffer.hpp>

#include <cstddef>
#include <functional>
#include <utility>

namespace csp {

namespace chan {

// Holds up to `capacity` messages (0 counts as 1) between r and w. When r has closed, w still gets all that it holds.
template <class T> auto buffer(reader<T> r, writer<T> w, std::size_t capacity = detail::RingBuffer<T>::npos) {
    return detail::once([r = std::move(r), w = std::move(w), capacity]() mutable {
        csp_descr("buffer");
        const reader<T> in = std::move(r);
        const writer<T> out = std::move(w);
        detail::RingBuffer<T> held(capacity == 0 ? 1 : capacity);
        if (!in || !out)
            return;
        for (int which = 0; which != -1;) {
            bool made = detail::is_plain<T>;
            void *room = held.full() ? nullptr : held.next(); // may move what is held: before its front is looked at
            which =
                alt(room == nullptr ? ~in : detail::action_access::receive_new<T>(in.internal_reader(), room, &made),
                    held.empty() ? ~out : out << std::ref(held.front()));
            if (which == 1) {
                if (made)
                    held.push();
            } else if (which == 2) {
                held.pop();
            } else if (which != -1) {
                return;
            }
        }
        while (!held.empty() && out << std::ref(held.front()))
            held.pop();
    });
}

} // namespace chan

template <class T> reader<T> spawn_buffer(reader<T> r, std::size_t capacity = detail::RingBuffer<T>::npos) {
    reader<T> result;
    detail::start(chan::buffer(std::move(r), ++result, capacity));
    return result;
}
template <class T> writer<T> spawn_buffer(writer<T> w, std::size_t capacity = detail::RingBuffer<T>::npos) {
    writer<T> result;
    detail::start(chan::buffer(--result, std::move(w), capacity));
    return result;
}
template <class T> channel<T> spawn_buffer(std::size_t capacity = detail::RingBuffer<T>::npos) {
    channel<T> in;
    channel<T> out;
    detail::start(chan::buffer(--in, ++out, capacity));
    return channel<T>(++in, --out);
}

namespace chan {
using csp::spawn_buffer;
} // namespace chan

} // namespace csp

#endif // MC_CSP_BUFFER_HPP
