// mc/csp/endpoint.hpp: the ends of channels as counted values. C++17.
//
// Success: operations are actions (mc/csp/action.hpp), true when they went. What cannot return says so by microthread_error.
//
// A writer<T> or reader<T> holds one reference to its end of a channel, or is empty. Copies add references; when the last one
// of an end is gone, the end is dead, and all who wait at the other end are told. An empty endpoint's actions are empty too.
// A channel<T> is a pair of ends; ++ch and --ch move its writer and reader out, +ch and -ch refer to them.
//
// T may be any object type that can be moved or copied; it needs no default constructor. A combinator keeps some messages on its
// microthread's stack, which has 32 KiB: send what is larger than a kilobyte by pointer.
//
// Threads: any; one endpoint object is not to be changed by one thread while another uses it, copies are independent.
#ifndef MC_CSP_ENDPOINT_HPP
#define MC_CSP_ENDPOINT_HPP

#include <mc/csp/action.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace csp {

template <class T = poke_t> class writer;
template <class T = poke_t> class reader;
template <class T = poke_t> class channel;

namespace detail {

// A callable that may be called once, also as a const one: in a lambda that is not mutable, say.
template <class F> class once {
public:
    explicit once(F f) : f_(std::move(f)) {}
    void operator()() const { f_(); }

private:
    mutable F f_;
};

// A reference to an end of a channel, or none.
template <class Handle, Handle (*add_reference)(Handle), void (*release)(Handle)> class counted {
public:
    counted() noexcept = default;
    explicit counted(Handle handle) noexcept : handle_(handle) {} // takes the reference over
    counted(const counted &other) noexcept : handle_(add_reference(other.handle_)) {}
    counted(counted &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~counted() { release(handle_); }
    counted &operator=(counted other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    void swap(counted &other) noexcept { std::swap(handle_, other.handle_); }
    Handle get() const noexcept { return handle_; }

private:
    Handle handle_ = nullptr;
};

struct shared_t {};

// The same for the writer of exceptions. One of them, global_exception_handler, is for all threads at once, and its channels are
// not counted by csp__internal__channel_count. It is what it was before or after an exchange, and empty only when it is told so:
// an exception between the two moves of a swap would end the program.
class exchangeable {
public:
    constexpr exchangeable() noexcept = default;
    constexpr explicit exchangeable(shared_t) noexcept : shared_(true) {}
    explicit exchangeable(csp_writer handle) noexcept : handle_(handle) {}
    exchangeable(const exchangeable &other) noexcept : handle_(other.reference()) {}
    exchangeable(exchangeable &&other) noexcept : handle_(other.exchange(nullptr)) {}
    ~exchangeable() { csp_writer_release(handle_); }
    exchangeable &operator=(exchangeable other) noexcept {
        swap(other);
        return *this;
    }
    void swap(exchangeable &other) noexcept {
        if (this == &other) // so they are not both shared
            return;
        if (other.shared_)
            handle_ = other.exchange(handle_);
        else
            other.handle_ = exchange(other.handle_);
    }
    csp_writer get() const noexcept { // of the shared one: until somebody exchanges it
        const auto guard = lock();
        return handle_;
    }

private:
    static inline std::mutex mutex_;
    csp_writer handle_ = nullptr; // guarded by mutex_, when shared
    bool shared_ = false;         // immutable

    std::unique_lock<std::mutex> lock() const noexcept {
        return shared_ ? std::unique_lock<std::mutex>(mutex_) : std::unique_lock<std::mutex>();
    }
    csp_writer reference() const noexcept {
        const auto guard = lock();
        return csp_writer_addref(handle_);
    }
    csp_writer exchange(csp_writer handle) noexcept {
        if (shared_)
            csp_chuncount(handle);
        const auto guard = lock();
        return std::exchange(handle_, handle);
    }
};

template <class T> struct writer_handle {
    using type = counted<csp_writer, csp_writer_addref, csp_writer_release>;
};
template <> struct writer_handle<std::exception_ptr> {
    using type = exchangeable;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // gcc does not see that full_ says whether there is a value
#endif

// Room for one T, which may be in it.
template <class T> class cell {
public:
    cell() noexcept {}
    ~cell() { reset(); }
    cell(const cell &) = delete;
    cell &operator=(const cell &) = delete;

    T &operator*() noexcept { return value_; }
    void *room() noexcept { return std::addressof(value_); } // while it is empty
    void filled() noexcept { full_ = true; }                 // something has been constructed in the room
    bool *made() noexcept { return &full_; }                 // for who does that
    // After a receive that went: false when the message's move has thrown, which the sender knows.
    bool arrived() noexcept {
        full_ = full_ || is_plain<T>;
        return full_;
    }
    template <class... A> void emplace(A &&...arguments) {
        reset();
        ::new (room()) T(std::forward<A>(arguments)...);
        full_ = true;
    }
    void reset() noexcept {
        if (std::exchange(full_, false))
            value_.~T();
    }

    // Waits for a message. As csp_recv.
    int receive(csp_reader from) {
        reset();
        int result = 0;
        if constexpr (is_plain<T>) {
            result = csp_recv(from, std::is_empty_v<T> ? nullptr : room());
            full_ = result > 0;
        } else {
            party receiving;
            receiving.object = room();
            receiving.construct = true;
            receiving.frame = __builtin_frame_address(0);
            result = csp_recv(from, receiving.message());
            full_ = receiving.constructed;
            if (receiving.error != nullptr)
                std::rethrow_exception(receiving.error);
        }
        return result;
    }

private:
    union {
        T value_;
    };
    bool full_ = false;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// An input iterator over the messages of a source until that has ended. The element is the iterator's own: it may be moved
// from. A source is like a pointer, null at the end; it has the handle to read from, and ended() once it is.
template <class T, class Source> class message_iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T *;
    using reference = T &;

    message_iterator() = default;
    explicit message_iterator(Source source) : source_(std::move(source)) {
        if (source_)
            ++*this;
    }
    T &operator*() const { return *element_; }
    T *operator->() const { return std::addressof(*element_); }
    // Throws microthread_error when the wait ends before a message comes, or the channel dies.
    message_iterator &operator++() {
        cell<T> message;
        element_.reset();
        const int result = message.receive(source_.internal_reader());
        if (result > 0) {
            element_.emplace(std::move(*message));
            return *this;
        }
        const Source ended = std::exchange(source_, Source());
        if (result < -1)
            throw microthread_error("reader failed", result);
        ended.ended();
        return *this;
    }
    class former {
    public:
        explicit former(T &&element) : element_(std::move(element)) {}
        T &operator*() { return element_; }

    private:
        T element_;
    };
    former operator++(int) {
        former before(std::move(*element_));
        ++*this;
        return before;
    }
    friend bool operator==(const message_iterator &a, const message_iterator &b) { return a.source_ == b.source_; }
    friend bool operator!=(const message_iterator &a, const message_iterator &b) { return !(a == b); }

private:
    Source source_;
    mutable std::optional<T> element_;
};

// A reader as such a source.
template <class T> class read_source {
public:
    read_source() = default;
    read_source(reader<T> from) : from_(std::move(from)) {} // NOLINT: an iterator is made of one
    explicit operator bool() const noexcept { return bool(from_); }
    csp_reader internal_reader() const noexcept { return from_.internal_reader(); }
    void ended() const noexcept {}
    friend bool operator==(const read_source &a, const read_source &b) noexcept { return a.from_ == b.from_; }

private:
    reader<T> from_;
};

} // namespace detail

template <class T> class writer {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> && std::is_same_v<T, std::remove_cv_t<T>>,
                  "messages are objects, not const, no arrays");

public:
    using message_type = T;

    // Takes over a reference to an end of a channel whose messages are T's: one that this header made, or one of elements
    // (mc_chan_writer) when T is trivially copyable and of that size.
    static writer adopt(csp_writer handle) noexcept { return writer(handle); }
    // Of a channel whose reader is dead.
    static writer dead();

    writer() noexcept = default;
    constexpr explicit writer(detail::shared_t shared) noexcept : handle_(shared) {} // global_exception_handler
    void swap(writer &other) noexcept { handle_.swap(other.handle_); }
    friend void swap(writer &a, writer &b) noexcept { a.swap(b); }

    friend bool operator==(const writer &a, const writer &b) noexcept { return a.handle_.get() == b.handle_.get(); }
    friend bool operator!=(const writer &a, const writer &b) noexcept { return !(a == b); }
    explicit operator bool() const noexcept { return handle_.get() != nullptr; }

    // Closes the end for all who hold it, as if every copy were gone; readers still get what is buffered. True: it was open.
    bool close() const noexcept { return csp_writer_close(handle_.get()) > 0; }

    // For logs and reports: 31 bytes of it are kept.
    void descr(const char *text) const noexcept { csp_chdescr(handle_.get(), text); }

    // Sends a copy, or what is moved in.
    action operator<<(const T &message) const { return detail::action_access::send<T>(handle_.get(), message); }
    action operator<<(T &&message) const { return detail::action_access::send<T>(handle_.get(), std::move(message)); }
    // Sends from where the message is: it has been moved from when the action has gone, and not otherwise.
    action operator<<(std::reference_wrapper<T> message) const noexcept {
        return detail::action_access::send_from<T>(handle_.get(), message.get());
    }
    // Waits for the death of the reader.
    action operator~() const noexcept { return detail::action_access::wait_for(csp_wait_dead(handle_.get())); }

    csp_writer internal_writer() const noexcept { return handle_.get(); }

private:
    explicit writer(csp_writer handle) noexcept : handle_(handle) {}

    typename detail::writer_handle<T>::type handle_;
};

template <class T> class reader {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> && std::is_same_v<T, std::remove_cv_t<T>>,
                  "messages are objects, not const, no arrays");

public:
    using message_type = T;

    // As writer::adopt.
    static reader adopt(csp_reader handle) noexcept { return reader(handle); }
    // Of a channel whose writer is dead.
    static reader dead();

    reader() noexcept = default;
    void swap(reader &other) noexcept { handle_.swap(other.handle_); }
    friend void swap(reader &a, reader &b) noexcept { a.swap(b); }

    friend bool operator==(const reader &a, const reader &b) noexcept { return a.handle_.get() == b.handle_.get(); }
    friend bool operator!=(const reader &a, const reader &b) noexcept { return !(a == b); }
    explicit operator bool() const noexcept { return handle_.get() != nullptr; }

    void descr(const char *text) const noexcept { csp_chdescr(handle_.get(), text); }

    // Receives into a variable: a T, or what a T can be assigned to.
    template <class U,
              std::enable_if_t<std::is_assignable_v<U &, T &&> && std::is_same_v<U, std::remove_cv_t<U>>, int> = 0>
    action operator>>(U &variable) const {
        if constexpr (std::is_same_v<T, U>)
            return detail::action_access::receive_into<T>(handle_.get(), std::addressof(variable));
        else
            return detail::action_access::receive_converted<T, U>(handle_.get(), variable);
    }
    // The same by pointer; null discards the message.
    template <class U,
              std::enable_if_t<std::is_same_v<T, U> && (std::is_move_assignable_v<T> || detail::is_plain<T>), int> = 0>
    action operator>>(U *variable) const noexcept {
        return detail::action_access::receive_into<T>(handle_.get(), variable);
    }
    // Constructs the message in room for a T; null discards it.
    template <class U, std::enable_if_t<std::is_void_v<U> && !std::is_assignable_v<void *&, T &&>, int> = 0>
    action operator>>(U *room) const noexcept {
        return detail::action_access::receive_new<T>(handle_.get(), room);
    }
    action operator>>(std::nullptr_t) const noexcept {
        return detail::action_access::receive_into<T>(handle_.get(), nullptr);
    }
    // Waits for the death of the writer (and, of a buffer, until it is empty).
    action operator~() const noexcept { return detail::action_access::wait_for(csp_wait_dead(handle_.get())); }

    // Receives one message and returns it; throws microthread_error when none comes.
    T read() const {
        if (!*this)
            throw microthread_error("reader exhausted");
        detail::cell<T> message;
        const int result = message.receive(handle_.get());
        if (result > 0)
            return std::move(*message);
        if (result == -1)
            throw microthread_error("reader exhausted");
        throw microthread_error("reader failed", result);
    }

    // What forwards everything to out until either side closes. A message that was taken when out closes is gone.
    template <class U> auto stream_to(writer<U> out) const {
        return detail::once([in = *this, out = std::move(out)]() mutable {
            const reader source = std::move(in);
            const writer<U> sink = std::move(out);
            detail::cell<T> message;
            while (source && sink &&
                   prialt(~sink, detail::action_access::receive_new<T>(source.internal_reader(), message.room(),
                                                                       message.made())) > 0) {
                if (!message.arrived())
                    continue;
                if constexpr (std::is_same_v<T, U>) {
                    if (!(sink << std::ref(*message)))
                        return;
                } else if (!(sink << static_cast<U>(std::move(*message)))) {
                    return;
                }
                message.reset();
            }
        });
    }

    using iterator = detail::message_iterator<T, detail::read_source<T>>;
    iterator begin() const { return iterator(detail::read_source<T>(*this)); }
    iterator end() const { return iterator(); }

    csp_reader internal_reader() const noexcept { return handle_.get(); }

private:
    explicit reader(csp_reader handle) noexcept : handle_(handle) {}

    detail::counted<csp_reader, csp_reader_addref, csp_reader_release> handle_;
};

template <class T> class channel {
public:
    using message_type = T;

    // A new channel, without a buffer. Throws microthread_error when it cannot be made.
    channel() {
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        if (csp_chan(&w, &r, &detail::transfer<T>) == 0)
            throw microthread_error("channel creation failed");
        writer_ = writer<T>::adopt(w);
        reader_ = reader<T>::adopt(r);
    }
    channel(writer<T> w, reader<T> r) noexcept : writer_(std::move(w)), reader_(std::move(r)) {}

    void release() noexcept {
        writer_ = writer<T>();
        reader_ = reader<T>();
    }

    const writer<T> &operator+() const noexcept { return writer_; }
    writer<T> &operator+() noexcept { return writer_; }
    const reader<T> &operator-() const noexcept { return reader_; }
    reader<T> &operator-() noexcept { return reader_; }

    writer<T> operator++() noexcept { return std::move(writer_); }
    reader<T> operator--() noexcept { return std::move(reader_); }

private:
    writer<T> writer_;
    reader<T> reader_;
};

template <class T> writer<T> writer<T>::dead() { return ++channel<T>(); }
template <class T> reader<T> reader<T>::dead() { return --channel<T>(); }

template <class T> void make_channel(writer<T> &w, reader<T> &r) {
    channel<T> made;
    w = ++made;
    r = --made;
}

// A new channel for an empty endpoint; the other one is returned.
template <class T> reader<T> operator--(writer<T> &w) {
    if (w)
        throw microthread_error("writer is attached to a channel already");
    reader<T> other;
    make_channel(w, other);
    return other;
}
template <class T> writer<T> operator++(reader<T> &r) {
    if (r)
        throw microthread_error("reader is attached to a channel already");
    writer<T> other;
    make_channel(other, r);
    return other;
}

// A channel that holds up to `capacity` messages (at most MC_CHAN_CAPACITY_MAX; 0 is rendezvous) of a trivially copyable type
// in the library's own buffer; spawn_buffer does it for any type. When the writers are gone, readers still get what it holds.
template <class T> channel<T> make_buffered(uint32_t capacity) {
    static_assert(std::is_trivially_copyable_v<T>, "the elements are copied by bytes: spawn_buffer takes any type");
    mc_chan_t handle = 0;
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    int32_t status = mc_chan_create(0, sizeof(T), capacity, nullptr, nullptr, &handle);
    if (status != MC_OK)
        throw microthread_error("channel creation failed", status);
    if ((status = mc_chan_writer(handle, &w)) != MC_OK || (status = mc_chan_reader(handle, &r)) != MC_OK) {
        csp_writer_release(w);
        (void)mc_chan_destroy(handle);
        throw microthread_error("channel creation failed", status);
    }
    csp_writer_release(w); // the handle's own references: from here on, it lives as long as its ends
    csp_reader_release(r);
    return channel<T>(writer<T>::adopt(w), reader<T>::adopt(r));
}

// A reader whose writer is dead: with ~skip as its last action, a prialt does not wait.
inline const reader<> skip = reader<>::adopt(csp_skip());

// Where the exceptions go that nobody joins for (mc/csp/spawn.hpp); empty at first. Any thread may assign to it, and swap
// it, while others use it; what is done with its present channel (an action, descr, close) is for a handler that is not
// replaced meanwhile. Its channels are not counted by csp__internal__channel_count.
inline writer<std::exception_ptr> global_exception_handler{detail::shared_t{}};

struct ClientSide {};
struct ServerSide {};

namespace detail {
template <class Side, class T> struct endpoints;
template <class T> struct endpoints<ClientSide, T> {
    using incoming = writer<T>;
    using outgoing = reader<T>;
};
template <class T> struct endpoints<ServerSide, T> {
    using incoming = reader<T>;
    using outgoing = writer<T>;
};
} // namespace detail

// One declaration of an interface for both of its sides: what comes in to the server is what a client writes.
template <class Side, class T = poke_t> using incoming = typename detail::endpoints<Side, T>::incoming;
template <class Side, class T = poke_t> using outgoing = typename detail::endpoints<Side, T>::outgoing;

} // namespace csp

// Two moves would leave the handler empty between them.
template <> inline void std::swap(csp::writer<std::exception_ptr> &a, csp::writer<std::exception_ptr> &b) noexcept {
    a.swap(b);
}

#endif // MC_CSP_ENDPOINT_HPP
