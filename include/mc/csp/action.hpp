// mc/csp/action.hpp: operations on channels that have not happened yet, and the choice between several. C++17.
//
// Success: a choice returns the number of the action that went, from 1; -n when the channel of action n is dead; 0 when all
// its actions are empty; an MC_E_* code, far below any -n, when the wait ended otherwise (mc/csp.h, csp_alt).
//
// An action is what `writer << message`, `reader >> variable`, `~writer` and `~reader` make. It happens when it is asked for its
// truth (true: it went), when a choice takes it, or, if nobody has used it, when it is destroyed. So
//     w << 1;                                    waits until a reader has taken it
//     if (w << 1)                                the same, and says whether one did
//     switch (alt(w << 1, r >> x, ~skip))        one of them
// An action that is destroyed because an exception passes it does not happen. Moved from or assigned to, it is forgotten. One
// that is kept happens again when it is asked or taken again; a message inside it has then been moved from.
//
// What it refers to, the endpoint and the variable, must outlive it; the message of `w << value` is inside it (on the heap
// when it has more than 64 bytes or is aligned to more than 16). `w << std::ref(value)` leaves the message where it is and
// moves from it only if a reader takes it: for messages that must not be lost when another action goes first.
//
// A message is moved once, on the stack of the party that came second. An exception that its constructor or assignment
// throws there is thrown again out of that party's call; for the other party the message has been transferred. (When who came
// second is a C caller, the other one gets it; between two C callers it is logged.) A receiver
// that waited for a value to be made (reader::read, iteration) and got none throws it too. A combinator that waited goes on.
//
// The handle of a channel here is one of mc/csp.h. Messages of trivially copyable types are plain pointers to them for C
// callers too. For other types C callers may pass pointers to objects that exist, at even addresses.
//
// Blocks: fiber | thread. Threads: any. Calls back: the constructors and assignments of messages, with no lock held; a
// blocking call in them fails with MC_E_CONTEXT.
#ifndef MC_CSP_ACTION_HPP
#define MC_CSP_ACTION_HPP

#include <mc/csp.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace csp {

// What went wrong where no return value can say it.
class microthread_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    microthread_error(const std::string &what, int32_t code)
        : std::runtime_error(what + ": " + mc_strerror(code)), code_(code) {}
    int32_t code() const noexcept { return code_; } // MC_E_*, or 0

private:
    int32_t code_ = 0;
};

// The message of channels that only signal.
struct poke_t {
    explicit operator bool() const noexcept { return false; }
};
inline poke_t poke;

using time_point = std::chrono::steady_clock::time_point;

namespace detail {

// One side of a transfer. A message pointer with its lowest bit set points to one.
struct party {
    void *object = nullptr;      // the sender's message; where the receiver wants it
    bool construct = false;      // receiver: there is only room for an object
    bool constructed = false;    // receiver: now there is one
    bool *made = nullptr;        // receiver: told the same; it does not mind when there is none
    const void *frame = nullptr; // of the call that waits
    std::exception_ptr error;    // for that call to throw

    void *message() noexcept { return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(this) | 1); }
    static party *of(void *message) noexcept {
        const auto word = reinterpret_cast<uintptr_t>(message);
        return (word & 1) == 0 ? nullptr : reinterpret_cast<party *>(word - 1);
    }
};

// Copied by bytes, and then nothing can be thrown: no party is needed.
template <class T> inline constexpr bool is_plain = std::is_trivially_copyable_v<T>;

template <class T>
inline constexpr bool moves_quietly =
    std::is_nothrow_move_constructible_v<T> && (!std::is_move_assignable_v<T> || std::is_nothrow_move_assignable_v<T>);

// The party on whose stack this runs. Its call's frame is above us on this stack; no other stack lies between, so the other
// party's is further away, or below us, which is further still.
inline party *arriving(party *a, party *b) noexcept {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    const auto distance = [here](const party *p) {
        return p == nullptr || p->frame == nullptr ? UINTPTR_MAX : reinterpret_cast<uintptr_t>(p->frame) - here;
    };
    party *nearest = distance(a) <= distance(b) ? a : b;
    return distance(nearest) == UINTPTR_MAX ? nullptr : nearest;
}

template <class T> void deliver(T &&message, party *to, void *destination) {
    using Object = std::remove_reference_t<T>;
    if (to != nullptr && to->construct) {
        ::new (to->object) Object(std::move(message));
        to->constructed = true;
        if (to->made != nullptr)
            *to->made = true;
    } else if constexpr (std::is_move_assignable_v<Object>) {
        *static_cast<Object *>(to != nullptr ? to->object : destination) = std::move(message);
    } else if (to == nullptr) { // a C receiver: there is no other way into a variable either
        ::new (destination) Object(std::move(message));
    }
}

template <class T> void move_message(void *source, party *to, void *destination) {
    if (source != nullptr)
        deliver(std::move(*static_cast<T *>(source)), to, destination);
    else if constexpr (std::is_default_constructible_v<T>)
        deliver(T(), to, destination); // a C sender without a message
    else
        throw microthread_error("a message was needed, and the sender had none");
}

// The tx of a channel of T.
template <class T> void transfer(void *source, void *destination) {
    if constexpr (is_plain<T>) {
        if constexpr (!std::is_empty_v<T>) {
            if (source == nullptr)
                std::memset(destination, 0, sizeof(T)); // a C sender without a message
            else if constexpr (std::is_copy_assignable_v<T>)
                *static_cast<T *>(destination) =
                    *static_cast<const T *>(source); // not what a derived class has behind it
            else
                std::memcpy(destination, source, sizeof(T));
        }
    } else {
        party *from = party::of(source);
        party *to = party::of(destination);
        if (from != nullptr)
            source = from->object;
        if constexpr (moves_quietly<T> && std::is_nothrow_default_constructible_v<T>) {
            move_message<T>(source, to, destination);
        } else {
            try {
                move_message<T>(source, to, destination);
            } catch (...) {
                party *arrived = arriving(from, to);
                if (arrived == nullptr)
                    throw; // two C callers: logged
                arrived->error = std::current_exception();
                if (to != nullptr && to->construct && to->made == nullptr)
                    to->error = arrived->error; // it waits for an object, and there is none
            }
        }
    }
}

// What an action owns that is more than bytes.
struct ownership {
    void (*move)(void *from, void *to); // constructs in to, destroys from
    void (*destroy)(void *object, bool on_heap) noexcept;
    void (*finish)(void *room, void *target); // receive: what came into the room goes to its target
};

template <class T> inline constexpr bool fits_inside = sizeof(T) <= 64 && alignof(T) <= alignof(std::max_align_t);

template <class T> void *allocate_room() {
    if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
        return ::operator new(sizeof(T), std::align_val_t(alignof(T)));
    else
        return ::operator new(sizeof(T));
}
template <class T> void free_room(void *room) noexcept {
    if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
        ::operator delete(room, std::align_val_t(alignof(T)));
    else
        ::operator delete(room);
}

template <class T> struct sent {
    static void move(void *from, void *to) {
        ::new (to) T(std::move(*static_cast<T *>(from)));
        static_cast<T *>(from)->~T();
    }
    static void destroy(void *object, bool on_heap) noexcept {
        static_cast<T *>(object)->~T();
        if (on_heap)
            free_room<T>(object);
    }
    static constexpr ownership functions{move, destroy, nullptr};
};

// A T is received that goes into a U: by way of a room of its own.
template <class T, class U> struct converted {
    static void move(void *, void *) {} // the room is empty until the action has gone
    static void destroy(void *room, bool on_heap) noexcept {
        if (on_heap)
            free_room<T>(room);
    }
    static void finish(void *room, void *target) {
        struct emptied {
            T *object;
            ~emptied() { object->~T(); }
        } value{std::launder(static_cast<T *>(room))};
        *static_cast<U *>(target) = std::move(*value.object);
    }
    static constexpr ownership functions{move, destroy, finish};
};

struct action_access;

} // namespace detail

class action {
public:
    using cleanup_f = void (*)(void *);

    action() noexcept = default;
    // Of an arm of mc/csp.h, whose message is as for C callers; cleanup(message) when the action is destroyed, unless it is null.
    action(csp_chanop arm, cleanup_f cleanup) noexcept : action(arm.waiter) {
        target_ = arm.message;
        if (cleanup != nullptr) {
            place_ = place::foreign;
            std::memcpy(room_, &cleanup, sizeof cleanup);
        }
    }

    // Not noexcept: a message's move constructor may throw. The other action is whole then.
    action(action &&other) { // NOLINT(performance-noexcept-move-constructor)
        take(other);
    }
    action &operator=(action &&other) { // NOLINT(performance-noexcept-move-constructor)
        if (this != &other) {
            drop();
            take(other);
        }
        return *this;
    }
    action(const action &) = delete;
    action &operator=(const action &) = delete;

    // Happens now, if it has not been used. May throw what the transfer threw (and ends the program when it is an element of a
    // container that is destroyed: use what may throw).
    ~action() noexcept(false) {
        struct dropped {
            action &self;
            ~dropped() { self.drop(); }
        } dropped{*this};
        if (active_ && std::uncaught_exceptions() == unwinding_)
            (void)run();
    }

    // Makes it happen: true when the message was sent or received; false when the channel is dead, when the action is empty,
    // and when the wait ended otherwise. For ~endpoint: always false, once the other end is dead.
    explicit operator bool() const { return run() > 0; }

    // Uses it as an arm for csp_alt; the action must stay until that has returned. Messages that need more than their pointer
    // (a conversion, a report of exceptions) are only complete when alt and prialt of this header use it.
    csp_chanop chanop() const noexcept { return use(nullptr); }

    bool empty() const noexcept { return (reinterpret_cast<uintptr_t>(waiter_) & ~uintptr_t{15}) == 0; }

private:
    friend struct detail::action_access;

    enum class place : uint8_t { elsewhere, inside, heap, foreign }; // foreign: elsewhere, with its cleanup in the room

    static constexpr std::size_t room_bytes = 64;

    csp_waiter waiter_ = nullptr;
    void *target_ = nullptr; // elsewhere: the message; with a finish: where it goes in the end
    void *heap_ = nullptr;
    const detail::ownership *owned_ = nullptr; // null: at most bytes
    mutable detail::party party_;              // of a message that is not plain
    mutable bool active_ = false;
    bool tagged_ = false; // the message is the party
    place place_ = place::elsewhere;
    int unwinding_ = 0; // exceptions on their way when it was made
    alignas(std::max_align_t) mutable unsigned char room_[room_bytes];

    explicit action(csp_waiter waiter) noexcept
        : waiter_(waiter), active_(true), unwinding_(std::uncaught_exceptions()) {}

    void *object() const noexcept { return place_ == place::inside ? room_ : place_ == place::heap ? heap_ : target_; }
    void *message() const noexcept {
        if (!tagged_)
            return object();
        if (place_ != place::elsewhere)
            party_.object = object();
        return party_.message();
    }

    void take(action &other) {
        if (other.place_ == place::inside && other.owned_ != nullptr)
            other.owned_->move(other.room_, room_);
        else if (other.place_ == place::inside || other.place_ == place::foreign)
            std::memcpy(room_, other.room_, room_bytes);
        waiter_ = std::exchange(other.waiter_, nullptr);
        target_ = other.target_;
        heap_ = other.heap_;
        owned_ = std::exchange(other.owned_, nullptr);
        party_ = other.party_;
        active_ = std::exchange(other.active_, false);
        tagged_ = std::exchange(other.tagged_, false);
        place_ = std::exchange(other.place_, place::elsewhere);
        unwinding_ = other.unwinding_;
        other.target_ = nullptr;
    }

    void drop() noexcept {
        if (place_ != place::elsewhere && owned_ != nullptr)
            owned_->destroy(object(), place_ == place::heap);
        if (place_ == place::foreign) {
            cleanup_f cleanup = nullptr;
            std::memcpy(&cleanup, room_, sizeof cleanup);
            cleanup(target_);
        }
        waiter_ = nullptr;
        owned_ = nullptr;
        active_ = false;
        place_ = place::elsewhere;
    }

    // As an arm of a call whose frame is `frame`.
    csp_chanop use(const void *frame) const noexcept {
        active_ = false;
        party_.frame = frame;
        return {waiter_, message()};
    }

    // It went.
    void settle() const {
        if (!tagged_ && owned_ == nullptr)
            return;
        if (party_.error != nullptr)
            std::rethrow_exception(std::exchange(party_.error, nullptr));
        if (owned_ != nullptr && owned_->finish != nullptr)
            owned_->finish(object(), target_);
    }

    int run() const {
        const csp_chanop arm = use(__builtin_frame_address(0));
        const auto word = reinterpret_cast<uintptr_t>(arm.waiter);
        int result = 0;
        if ((word & ~uintptr_t{15}) == 0)
            return 0;
        if ((word & 15) == 0xE) // the common two have shorter ways
            result = csp_send(reinterpret_cast<csp_writer>(word & ~uintptr_t{15}), arm.message);
        else if ((word & 15) == 0xF)
            result = csp_recv(reinterpret_cast<csp_reader>((word & ~uintptr_t{15}) | 1), arm.message);
        else
            result = csp_prialt(&arm, 1, 0);
        if (result > 0)
            settle();
        return result;
    }
};

namespace detail {

struct action_access {
    // --- making them
    template <class T, class Message> static action send(csp_writer writer, Message &&message) {
        action made(csp_wait(writer));
        made.tagged_ = !is_plain<T>;
        if constexpr (fits_inside<T>) {
            ::new (static_cast<void *>(made.room_)) T(std::forward<Message>(message));
            made.place_ = action::place::inside;
            if constexpr (!is_plain<T>)
                made.owned_ = &sent<T>::functions;
        } else {
            std::unique_ptr<void, void (*)(void *)> room(allocate_room<T>(),
                                                         [](void *unused) { free_room<T>(unused); });
            ::new (room.get()) T(std::forward<Message>(message));
            made.heap_ = room.release();
            made.place_ = action::place::heap;
            made.owned_ = &sent<T>::functions;
        }
        return made;
    }
    template <class T> static action send_from(csp_writer writer, T &message) noexcept {
        action made(csp_wait(writer));
        made.target_ = made.party_.object = std::addressof(message);
        made.tagged_ = !is_plain<T>;
        return made;
    }
    template <class T> static action receive_into(csp_reader reader, T *object) noexcept {
        action made(csp_wait(reader));
        if constexpr (is_plain<T> && std::is_empty_v<T>)
            object = nullptr; // there is nothing to copy, also when others send something by this channel
        made.target_ = made.party_.object = object;
        made.tagged_ = object != nullptr && !is_plain<T>;
        return made;
    }
    // made: set when there is an object (of a plain type: only by the result). Without it, that there is none is an error.
    template <class T> static action receive_new(csp_reader reader, void *room, bool *made = nullptr) noexcept {
        action receives = receive_into(reader, static_cast<T *>(room));
        receives.party_.construct = true;
        receives.party_.made = made;
        return receives;
    }
    template <class T, class U> static action receive_converted(csp_reader reader, U &target) {
        action made(csp_wait(reader));
        if constexpr (fits_inside<T>) {
            made.place_ = action::place::inside;
        } else {
            made.heap_ = allocate_room<T>();
            made.place_ = action::place::heap;
        }
        made.owned_ = &converted<T, U>::functions;
        made.target_ = std::addressof(target);
        made.tagged_ = !is_plain<T>;
        made.party_.construct = true;
        return made;
    }
    template <class Waiter> static action wait_for(Waiter waiter) noexcept { return action(waiter); }

    // --- choosing between them
    static csp_chanop use(const action &a, const void *frame) noexcept { return a.use(frame); }
    static void settle(const action &a) { a.settle(); }
    static int run(const action &a) { return a.run(); }
};

template <class... A> inline constexpr bool all_actions = (std::is_same_v<std::decay_t<A>, action> && ...);

// The actions of a choice: some in a row,
template <class Call, class... A, std::enable_if_t<(sizeof...(A) > 0) && all_actions<A...>, int> = 0>
int choose(Call call, const A &...actions) {
    const void *frame = __builtin_frame_address(0);
    const action *const all[] = {&actions...};
    const csp_chanop arms[] = {action_access::use(actions, frame)...};
    const int result = call(arms, static_cast<int>(sizeof...(A)));
    if (result > 0)
        action_access::settle(*all[result - 1]);
    return result;
}

// or as many as there are in an array, or a container of them.
template <class Call> int choose(Call call, const action *actions, std::size_t n) {
    constexpr std::size_t few = 16;
    const void *frame = __builtin_frame_address(0);
    if (n > static_cast<std::size_t>(INT32_MAX))
        return MC_E_INVAL;
    csp_chanop some[few] = {};
    std::vector<csp_chanop> many(n <= few ? 0 : n);
    csp_chanop *arms = n <= few ? some : many.data();
    for (std::size_t i = 0; i < n; ++i)
        arms[i] = action_access::use(actions[i], frame);
    const int result = call(arms, static_cast<int>(n));
    if (result > 0)
        action_access::settle(actions[result - 1]);
    return result;
}
template <class Call, std::size_t N> int choose(Call call, const action (&actions)[N]) {
    return choose(call, actions, N);
}
template <class Call, std::size_t N> int choose(Call call, const std::array<action, N> &actions) {
    return choose(call, actions.data(), N);
}
template <class Call> int choose(Call call, const std::vector<action> &actions) {
    return choose(call, actions.data(), actions.size());
}

struct call_alt {
    int operator()(const csp_chanop *arms, int n) const noexcept { return csp_alt(arms, n, 0); }
};
struct call_prialt {
    int operator()(const csp_chanop *arms, int n) const noexcept { return csp_prialt(arms, n, 0); }
};
struct call_try_alt {
    int operator()(const csp_chanop *arms, int n) const noexcept { return csp_alt(arms, n, 1); }
};
struct call_try_prialt {
    int operator()(const csp_chanop *arms, int n) const noexcept { return csp_prialt(arms, n, 1); }
};
struct call_alt_until {
    int64_t deadline_ns;
    int operator()(const csp_chanop *arms, int n) const noexcept { return csp_alt_until(arms, n, deadline_ns); }
};
struct call_prialt_until {
    int64_t deadline_ns;
    int operator()(const csp_chanop *arms, int n) const noexcept { return csp_prialt_until(arms, n, deadline_ns); }
};

// The calls' deadlines are nanoseconds of this clock.
inline int64_t nanoseconds(time_point when) noexcept {
    if (when == time_point::max())
        return MC_FOREVER;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

} // namespace detail

// A vector of actions, for a choice whose arms are put together at run time.
template <class... A> std::vector<action> action_list(A &&...actions) {
    static_assert(detail::all_actions<A...>, "action_list takes actions");
    std::vector<action> list;
    list.reserve(sizeof...(A));
    (list.push_back(std::move(actions)), ...);
    return list;
}

// Waits until one of the actions can go, and makes it happen: the first in their order (prialt), or the first from a random
// one on, cyclically (alt). All of them are used by that. They are given one by one, or as an array, a std::array, a
// std::vector, or a pointer and their number; so are those of the other forms.
template <class... A> auto alt(A &&...actions) -> decltype(detail::choose(detail::call_alt{}, actions...)) {
    return detail::choose(detail::call_alt{}, actions...);
}
template <class... A> auto prialt(A &&...actions) -> decltype(detail::choose(detail::call_prialt{}, actions...)) {
    return detail::choose(detail::call_prialt{}, actions...);
}

// The same without waiting: 0 when none could go at once.
template <class... A> auto try_alt(A &&...actions) -> decltype(detail::choose(detail::call_try_alt{}, actions...)) {
    return detail::choose(detail::call_try_alt{}, actions...);
}
template <class... A>
auto try_prialt(A &&...actions) -> decltype(detail::choose(detail::call_try_prialt{}, actions...)) {
    return detail::choose(detail::call_try_prialt{}, actions...);
}

// The same with a deadline: MC_E_TIMEDOUT when it has passed and none could go.
template <class... A>
auto alt_until(time_point deadline, A &&...actions)
    -> decltype(detail::choose(detail::call_alt_until{detail::nanoseconds(deadline)}, actions...)) {
    return detail::choose(detail::call_alt_until{detail::nanoseconds(deadline)}, actions...);
}
template <class... A>
auto prialt_until(time_point deadline, A &&...actions)
    -> decltype(detail::choose(detail::call_prialt_until{detail::nanoseconds(deadline)}, actions...)) {
    return detail::choose(detail::call_prialt_until{detail::nanoseconds(deadline)}, actions...);
}

} // namespace csp

#endif // MC_CSP_ACTION_HPP
