// Everything that synchronises threads, under one roof: atomics, futexes, a mutex, threads, the one thread-local
// pointer, the clock.
//
// Callers: every room, from any thread. No other file includes <atomic>, <mutex>, <condition_variable> or <thread>,
// so a test build can replace all of it at once: with MC_SYS=1 the names below are the systematic twin
// (testing/systematic_sync.hpp), whose threads are fibers of one OS thread, run one at a time, with a choice at every
// operation and stale values modelled. Code that keeps to this header is therefore explorable as it stands.
//
// What is deliberately missing:
//  - default memory orders and operators: an order that is not written down cannot name its partner;
//  - fences: gcc 12 refuses them under TSan. A Dekker pair is two seq_cst read-modify-writes instead: dekker_publish
//    and dekker_observe;
//  - condition variables: every wait in this library is a wait on one word, and a futex keeps the word and the wait in
//    one place;
//  - more than one thread-local: a fiber can move between threads, so each cached thread-local is a bug; one pointer is
//    easy to guard.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <type_traits>

#if defined(__SANITIZE_THREAD__)
#define MC_SYNC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MC_SYNC_TSAN 1
#endif
#endif

// Whether read-modify-writes may do without locking, see sync::unshared.
#if !defined(MC_SYNC_TSAN) && __has_include(<sys/single_threaded.h>)
#define MC_SYNC_UNSHARED 1
#include <sys/single_threaded.h>
#endif

#ifdef MC_SYNC_TSAN
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
#endif

namespace mc::sync {

using order = std::memory_order;
inline constexpr order relaxed = std::memory_order_relaxed;
inline constexpr order acquire = std::memory_order_acquire;
inline constexpr order release = std::memory_order_release;
inline constexpr order acq_rel = std::memory_order_acq_rel;
inline constexpr order seq_cst = std::memory_order_seq_cst;

// futex_wait without a deadline.
inline constexpr std::int64_t no_deadline = INT64_MAX;

// What fits one atomic word: at most 8 bytes, comparable as bits (so no padding: a compare-exchange on it would fail at
// random).
template <class T>
concept Word =
    std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) &&
    std::has_unique_object_representations_v<T>;
template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

namespace detail {

template <std::size_t size> struct UnsignedOf;
template <> struct UnsignedOf<1> {
    using type = std::uint8_t;
};
template <> struct UnsignedOf<2> {
    using type = std::uint16_t;
};
template <> struct UnsignedOf<4> {
    using type = std::uint32_t;
};
template <> struct UnsignedOf<8> {
    using type = std::uint64_t;
};

// How a T is stored: classes as an unsigned integer of their size (clang 14 calls libatomic for a class aligned to
// less), others as they are.
template <class T> struct StoredAs {
    using type = T;
};
template <class T>
    requires std::is_class_v<T>
struct StoredAs<T> {
    using type = typename UnsignedOf<sizeof(T)>::type;
};

} // namespace detail

// The operating system's side, in both twins (the systematic one falls back to it outside an exploration). Only this
// file and the twin call these.
namespace os {

bool futex_wait(const void *word, std::uint32_t expected, std::int64_t deadline_ns);
void futex_wake(const void *word, int count);
void cpu_relax();
void thread_yield();
std::int64_t now_ns();
void set_virtual_now(std::int64_t ns);
std::uint32_t thread_count();
std::uint32_t thread_number();
std::uint32_t cpu_count();
bool thread_start(pthread_t *id, void *(*fn)(void *), void *arg);
void thread_join(pthread_t id);
[[noreturn]] void thread_leaked();
// In assembly, so that no compiler keeps the slot's address, or its value, across a switch that changed the thread; and inline, since
// nearly every call of the library begins with it.
inline void *thread_slot() {
    void *slot;
    asm volatile("movq mc_thread_slot@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(slot) : : "memory");
    return slot;
}
void set_thread_slot(void *slot);
void set_thread_exit_hook(void (*hook)(void *slot));
void (*thread_exit_hook())(void *slot);

} // namespace os

// Process-wide: called at a thread's exit, on that thread, if its slot is then non-null. A hook that stores a slot
// again, or a destructor that does so after the hook has run, may get a second call or none.
inline void set_thread_exit_hook(void (*hook)(void *slot)) { os::set_thread_exit_hook(hook); }

// Tells TSan that what happened before handoff_release(p) happens before what follows handoff_acquire(p): for hand-offs
// that a fiber switch carries, which TSan cannot see. Nothing otherwise, and no substitute for an order.
#ifdef MC_SYNC_TSAN
inline void handoff_release(void *address) { __tsan_release(address); }
inline void handoff_acquire(void *address) { __tsan_acquire(address); }
#else
inline void handoff_release(void *) {}
inline void handoff_acquire(void *) {}
#endif

// True: the process has one thread, as the C library knows, which makes them, whatever the language of the host. Nobody but this
// thread can make another, and it can not while it is in the middle of an operation. Then an atomic read-modify-write is a load and a
// store: it does not lock, nor wait for all earlier stores, which is what takes 5 ns. A signal handler may come between the two: it
// calls nothing of ours but what is said to be safe there, which writes nothing (mc/base.h). Threads that this C library has not made
// (clone called by hand, another C library's in a namespace of dlmopen) are no callers of ours, as mc/base.h says; one that attaches
// all the same ends this by end_unshared.
#ifdef MC_SYNC_UNSHARED
inline bool unshared() noexcept { return __libc_single_threaded != 0; }
inline void end_unshared() noexcept {
    if (unshared())
        __libc_single_threaded = 0;
}
#else
constexpr bool unshared() noexcept { return false; }
inline void end_unshared() noexcept {}
#endif

} // namespace mc::sync

#if defined(MC_SYS) && MC_SYS
#include "testing/systematic_sync.hpp"
#else

namespace mc::sync {

// The operations while unshared(): a load and a store, and for a compare-exchange a branch between them, which the processor foresees,
// so that no operation waits for the one before. For compilers, each orders what is before and after it.
namespace plain {

inline void barrier() noexcept { asm volatile("" : : : "memory"); }

template <class T> bool compare_exchange(T *word, T &expected, T desired) noexcept {
    barrier();
    volatile T *place = word;
    const T seen = *place;
    if (seen != expected) [[unlikely]] {
        expected = seen;
        return false;
    }
    *place = desired;
    barrier();
    return true;
}
// to(value): what it becomes.
template <class T, class To> T replace(T *word, To to) noexcept {
    barrier();
    volatile T *place = word;
    const T seen = *place;
    *place = static_cast<T>(to(seen));
    barrier();
    return seen;
}
template <class T> T fetch_add(T *word, T operand) noexcept {
    return replace(word, [=](T seen) {
        using Unsigned = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(seen) + static_cast<Unsigned>(operand)));
    });
}

} // namespace plain

// std::atomic without defaults. T: an integer, an enum, a pointer, or any class that is a Word.
template <Word T> class atomic {
public:
    constexpr atomic() noexcept : word_(in(T{})) {}
    constexpr atomic(T value) noexcept : word_(in(value)) {}
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;

    T load(order o) const noexcept { return out(word_.load(o)); }
    void store(T value, order o) noexcept { word_.store(in(value), o); }
    T exchange(T value, order o) noexcept {
        if (unshared())
            return out(plain::replace(place(), [=](Stored) { return in(value); }));
        return out(word_.exchange(in(value), o));
    }

    bool compare_exchange_strong(T &expected, T desired, order success, order failure) noexcept {
        Stored seen = in(expected);
        const bool done = unshared() ? plain::compare_exchange(place(), seen, in(desired))
                                     : word_.compare_exchange_strong(seen, in(desired), success, failure);
        if (!done)
            expected = out(seen);
        return done;
    }
    bool compare_exchange_weak(T &expected, T desired, order success, order failure) noexcept {
        Stored seen = in(expected);
        const bool done = unshared() ? plain::compare_exchange(place(), seen, in(desired))
                                     : word_.compare_exchange_weak(seen, in(desired), success, failure);
        if (!done)
            expected = out(seen);
        return done;
    }

    T fetch_add(T operand, order o) noexcept
        requires Integer<T>
    {
        return unshared() ? plain::fetch_add(place(), operand) : word_.fetch_add(operand, o);
    }
    T fetch_sub(T operand, order o) noexcept
        requires Integer<T>
    {
        return unshared() ? plain::fetch_add(place(), negated(operand)) : word_.fetch_sub(operand, o);
    }
    T fetch_or(T operand, order o) noexcept
        requires Integer<T>
    {
        return unshared() ? plain::replace(place(), [=](T seen) { return seen | operand; })
                          : word_.fetch_or(operand, o);
    }
    T fetch_and(T operand, order o) noexcept
        requires Integer<T>
    {
        return unshared() ? plain::replace(place(), [=](T seen) { return seen & operand; })
                          : word_.fetch_and(operand, o);
    }
    T fetch_add(std::ptrdiff_t operand, order o) noexcept
        requires std::is_pointer_v<T>
    {
        return unshared() ? plain::replace(place(), [=](T seen) { return seen + operand; })
                          : word_.fetch_add(operand, o);
    }
    T fetch_sub(std::ptrdiff_t operand, order o) noexcept
        requires std::is_pointer_v<T>
    {
        return unshared() ? plain::replace(place(), [=](T seen) { return seen - operand; })
                          : word_.fetch_sub(operand, o);
    }

    // A read-modify-write that writes back what it read; see dekker_observe.
    T read_back() noexcept {
        if (unshared())
            return out(plain::replace(place(), [](Stored seen) { return seen; }));
        if constexpr (Integer<Stored>) {
            return out(word_.fetch_add(0, std::memory_order_seq_cst));
        } else {
            Stored seen = word_.load(std::memory_order_relaxed);
            while (!word_.compare_exchange_weak(seen, seen, std::memory_order_seq_cst, std::memory_order_relaxed)) {
            }
            return seen;
        }
    }

private:
    using Stored = typename detail::StoredAs<T>::type;
    static_assert(std::atomic<Stored>::is_always_lock_free && sizeof(std::atomic<Stored>) == sizeof(Stored));
    static constexpr T negated(T value) noexcept // without overflow
        requires Integer<T>
    {
        using Unsigned = std::make_unsigned_t<T>;
        return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(value));
    }
    Stored *place() noexcept { return reinterpret_cast<Stored *>(&word_); }
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

    std::atomic<Stored> word_; // any thread
};

// False: the deadline (CLOCK_MONOTONIC nanoseconds) has passed. True: woken, or the word differed, or for no reason:
// always re-check.
inline bool futex_wait(atomic<std::uint32_t> &word, std::uint32_t expected, std::int64_t deadline_ns) {
    return os::futex_wait(&word, expected, deadline_ns);
}
inline void futex_wake(atomic<std::uint32_t> &word, int count) { os::futex_wake(&word, count); }

inline void cpu_relax() { os::cpu_relax(); }
inline void thread_yield() { os::thread_yield(); }
inline std::int64_t now_ns() { return os::now_ns(); }
// From the first call on, now_ns() is what was said last, for the whole process. Deadlines of futex_wait are still the system's.
inline void set_virtual_now(std::int64_t ns) { os::set_virtual_now(ns); }

// How many processors this process may use; at least 1. Read once.
inline std::uint32_t cpu_count() { return os::cpu_count(); }

// How many threads the process has, whoever made them; 0 when the system does not tell. Slow. What a thread did before
// it ended happens before a count that is without it.
inline std::uint32_t thread_count() { return os::thread_count(); }
inline std::uint32_t thread_number() { return os::thread_number(); } // the system's name of the calling one

// For slow paths (growth, registries): never held across a fiber switch.
class mutex {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() { mu_.lock(); }
    bool try_lock() { return mu_.try_lock(); }
    void unlock() { mu_.unlock(); }

private:
    std::mutex mu_;
};

// A thread of ours: asynchronous signals stay blocked in it (the host's handlers must not run on our stacks). start
// once, join before destruction; the object must stay where it is while the thread runs.
class thread {
public:
    thread() = default;
    thread(const thread &) = delete;
    thread &operator=(const thread &) = delete;
    ~thread() {
        if (joinable())
            os::thread_leaked();
    }
    bool start(void (*fn)(void *), void *arg) {
        if (joinable())
            os::thread_leaked();
        fn_ = fn;
        arg_ = arg;
        joinable_ = os::thread_start(&id_, run, this);
        return joinable_;
    }
    void join() {
        os::thread_join(id_);
        joinable_ = false;
    }
    bool joinable() const { return joinable_; }

private:
    static void *run(void *self) {
        static_cast<thread *>(self)->fn_(static_cast<thread *>(self)->arg_);
        return nullptr;
    }

    // Written before the thread starts, read by it; pthread_create orders the two.
    void (*fn_)(void *) = nullptr;
    void *arg_ = nullptr;
    // Owner of the object only.
    pthread_t id_{};
    bool joinable_ = false;
};

// The one thread-local.
inline void *thread_slot() { return os::thread_slot(); }
inline void set_thread_slot(void *slot) { os::set_thread_slot(slot); }

// For the systematic twin, which checks that the accesses to a piece of plain data are ordered: put beside the
// accesses that a word's release and acquire are to order. `fresh`: new contents, which owe nothing to those before
// (memory from an allocator). Nothing here: TSan sees plain data by itself.
inline void note_fresh(const void *) {}
inline void note_read(const void *) {}
inline void note_write(const void *) {}

} // namespace mc::sync

#endif

namespace mc::sync {

// A plain word that has one owner at a time, who writes it by show_at and reads it plainly. Others may look at it, if an old value
// does for them. For the systematic twin a look is no operation: it sees the newest value.
// release, acquire: who finds a pointer finds what it points at.
template <class T> T look_at(const T &word) noexcept { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
template <class T> void show_at(T &word, T value) noexcept { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

// One side of a Dekker pair: "publish mine, then look at yours", where at least one of two threads must see the
// other's.
//   A: dekker_publish(x, 1); dekker_observe(y)      B: dekker_publish(y, 1); dekker_observe(x)
// Both are seq_cst read-modify-writes: a read-modify-write reads the newest value, and each locks its line, so neither
// can be delayed past the other (a plain store followed by a plain load can, on x86 too).
template <class T> T dekker_publish(atomic<T> &word, T value) { return word.exchange(value, seq_cst); }
template <class T> T dekker_observe(atomic<T> &word) { return word.read_back(); }

class lock_guard {
public:
    explicit lock_guard(mutex &mu) : mu_(mu) { mu_.lock(); }
    ~lock_guard() { mu_.unlock(); }
    lock_guard(const lock_guard &) = delete;
    lock_guard &operator=(const lock_guard &) = delete;

private:
    mutex &mu_;
};

} // namespace mc::sync
