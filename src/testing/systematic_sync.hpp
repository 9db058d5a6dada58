// sync.hpp's types in MC_SYS builds: during a run they are the systematic twin's, outside one the operating system's.
// Included by base/sync.hpp alone, which documents the interface.
#pragma once

#include "testing/systematic_ops.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace mc::sync {

namespace sys = mc::testing::sys;

template <Word T> class atomic {
public:
    constexpr atomic() noexcept : atomic(T{}) {}
    constexpr atomic(T value) noexcept : word_(in(value)) {
        if (!std::is_constant_evaluated() && sys::running())
            sys::construct(this);
    }
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
    ~atomic() {
        if (sys::running())
            sys::destroy(this, sizeof(T));
    }

    T load(order o) const noexcept {
        return sys::running() ? unbits(sys::load(this, sizeof(T), o)) : out(word_.load(o));
    }
    void store(T value, order o) noexcept {
        if (sys::running())
            sys::store(this, sizeof(T), bits(value), o);
        else
            word_.store(in(value), o);
    }
    T exchange(T value, order o) noexcept {
        return sys::running() ? rmw(sys::Rmw::exchange, bits(value), o) : out(word_.exchange(in(value), o));
    }

    bool compare_exchange_strong(T &expected, T desired, order success, order failure) noexcept {
        return compare_exchange(expected, desired, success, failure, false);
    }
    bool compare_exchange_weak(T &expected, T desired, order success, order failure) noexcept {
        return compare_exchange(expected, desired, success, failure, true);
    }

    T fetch_add(T operand, order o) noexcept
        requires Integer<T>
    {
        return sys::running() ? rmw(sys::Rmw::add, bits(operand), o) : word_.fetch_add(operand, o);
    }
    T fetch_sub(T operand, order o) noexcept
        requires Integer<T>
    {
        return sys::running() ? rmw(sys::Rmw::sub, bits(operand), o) : word_.fetch_sub(operand, o);
    }
    T fetch_or(T operand, order o) noexcept
        requires Integer<T>
    {
        return sys::running() ? rmw(sys::Rmw::bit_or, bits(operand), o) : word_.fetch_or(operand, o);
    }
    T fetch_and(T operand, order o) noexcept
        requires Integer<T>
    {
        return sys::running() ? rmw(sys::Rmw::bit_and, bits(operand), o) : word_.fetch_and(operand, o);
    }
    T fetch_add(std::ptrdiff_t operand, order o) noexcept
        requires std::is_pointer_v<T>
    {
        return sys::running() ? rmw(sys::Rmw::add, scaled(operand), o) : word_.fetch_add(operand, o);
    }
    T fetch_sub(std::ptrdiff_t operand, order o) noexcept
        requires std::is_pointer_v<T>
    {
        return sys::running() ? rmw(sys::Rmw::sub, scaled(operand), o) : word_.fetch_sub(operand, o);
    }

    T read_back() noexcept {
        if (sys::running())
            return rmw(sys::Rmw::read_back, 0, seq_cst);
        Stored seen = word_.load(std::memory_order_relaxed);
        while (!word_.compare_exchange_weak(seen, seen, std::memory_order_seq_cst, std::memory_order_relaxed)) {
        }
        return out(seen);
    }

private:
    using Stored = typename detail::StoredAs<T>::type;
    static constexpr Stored in(T value) noexcept {
        if constexpr (std::is_same_v<Stored, T>)
            return value;
        else
            return std::bit_cast<Stored>(value);
    }
    static constexpr T out(Stored stored) noexcept {
        if constexpr (std::is_same_v<Stored, T>)
            return stored;
        else
            return std::bit_cast<T>(stored);
    }
    static std::uint64_t bits(T value) noexcept {
        std::uint64_t raw = 0;
        std::memcpy(&raw, &value, sizeof(T));
        return raw;
    }
    static T unbits(std::uint64_t raw) noexcept {
        typename detail::UnsignedOf<sizeof(T)>::type narrow =
            static_cast<typename detail::UnsignedOf<sizeof(T)>::type>(raw);
        return std::bit_cast<T>(narrow);
    }
    static std::uint64_t scaled(std::ptrdiff_t operand) noexcept {
        return static_cast<std::uint64_t>(operand) * sizeof(std::remove_pointer_t<T>);
    }
    T rmw(sys::Rmw kind, std::uint64_t operand, order o) noexcept {
        return unbits(sys::rmw(this, sizeof(T), kind, operand, o));
    }

    bool compare_exchange(T &expected, T desired, order success, order failure, bool weak) noexcept {
        if (sys::running()) {
            std::uint64_t raw = bits(expected);
            bool done = sys::compare_exchange(this, sizeof(T), raw, bits(desired), success, failure, weak);
            if (!done)
                expected = unbits(raw);
            return done;
        }
        Stored seen = in(expected);
        bool done = weak ? word_.compare_exchange_weak(seen, in(desired), success, failure)
                         : word_.compare_exchange_strong(seen, in(desired), success, failure);
        if (!done)
            expected = out(seen);
        return done;
    }

    std::atomic<Stored> word_; // the newest value, in both worlds
};

inline bool futex_wait(atomic<std::uint32_t> &word, std::uint32_t expected, std::int64_t deadline_ns) {
    return sys::running() ? sys::futex_wait(&word, expected, deadline_ns)
                          : os::futex_wait(&word, expected, deadline_ns);
}
inline void futex_wake(atomic<std::uint32_t> &word, int count) {
    sys::running() ? sys::futex_wake(&word, count) : os::futex_wake(&word, count);
}

inline void cpu_relax() { sys::running() ? sys::relax(false) : os::cpu_relax(); }
inline void thread_yield() { sys::running() ? sys::relax(true) : os::thread_yield(); }
inline std::int64_t now_ns() { return sys::running() ? sys::now_ns() : os::now_ns(); }
inline void set_virtual_now(std::int64_t ns) { os::set_virtual_now(ns); }
inline std::uint32_t cpu_count() { return sys::running() ? 2 : os::cpu_count(); }
inline std::uint32_t thread_number() { return os::thread_number(); }
inline std::uint32_t thread_count() { return sys::running() ? sys::thread_count() : os::thread_count(); }

class mutex {
public:
    constexpr mutex() noexcept {
        if (!std::is_constant_evaluated() && sys::running())
            sys::construct(this);
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() { sys::running() ? sys::mutex_lock(this) : mu_.lock(); }
    bool try_lock() { return sys::running() ? sys::mutex_try_lock(this) : mu_.try_lock(); }
    void unlock() { sys::running() ? sys::mutex_unlock(this) : mu_.unlock(); }

private:
    std::mutex mu_; // outside runs
};

class thread {
public:
    thread() = default;
    thread(const thread &) = delete;
    thread &operator=(const thread &) = delete;
    ~thread() {
        if (joinable())
            leaked();
    }
    bool start(void (*fn)(void *), void *arg) {
        if (joinable())
            leaked();
        fn_ = fn;
        arg_ = arg;
        if (sys::running())
            return (number_ = sys::thread_start(fn, arg)) >= 0;
        joinable_ = os::thread_start(&id_, run, this);
        return joinable_;
    }
    void join() {
        if (number_ >= 0)
            sys::thread_join(number_);
        else
            os::thread_join(id_);
        number_ = -1;
        joinable_ = false;
    }
    bool joinable() const { return joinable_ || number_ >= 0; }

private:
    static void *run(void *self) {
        static_cast<thread *>(self)->fn_(static_cast<thread *>(self)->arg_);
        return nullptr;
    }
    static void leaked() { sys::running() ? sys::thread_leaked() : os::thread_leaked(); }

    void (*fn_)(void *) = nullptr;
    void *arg_ = nullptr;
    int number_ = -1;       // a virtual thread
    pthread_t id_{};        // else a real one
    bool joinable_ = false; // of the real one
};

inline void *thread_slot() { return sys::running() ? sys::thread_slot() : os::thread_slot(); }
inline void set_thread_slot(void *slot) { sys::running() ? sys::set_thread_slot(slot) : os::set_thread_slot(slot); }

inline void note_fresh(const void *at) {
    if (sys::running())
        sys::data_fresh(at);
}
inline void note_read(const void *at) {
    if (sys::running())
        sys::data_read(at);
}
inline void note_write(const void *at) {
    if (sys::running())
        sys::data_write(at);
}

} // namespace mc::sync
