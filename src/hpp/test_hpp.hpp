// For this room's tests: messages of every kind, and a World that checks at the end that nothing is left.
#pragma once

#include "base/sync.hpp"
#include "testing/test.hpp"

#include <mc/csp.hpp>
#include <mc/mc.h>

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mc::hpp::testing {

// What the tests use of the headers, by their short names.
using csp::action;
using csp::channel;
using csp::reader;
using csp::writer;
namespace chan = csp::chan;

// Both are kept for the comparison, unlike what c_str() of a temporary points to.
#define expect_text(actual, text, ...) cr_assert_eq(std::string(actual), std::string(text) __VA_OPT__(, ) __VA_ARGS__)

// Values that are alive, of the types below. Any thread.
inline sync::atomic<int32_t> alive{0};

struct Boom : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Counted {
    Counted() noexcept { alive.fetch_add(1, sync::relaxed); }
    Counted(const Counted &) noexcept { alive.fetch_add(1, sync::relaxed); }
    Counted(Counted &&) noexcept { alive.fetch_add(1, sync::relaxed); }
    Counted &operator=(const Counted &) = default;
    Counted &operator=(Counted &&) = default;
    ~Counted() { alive.fetch_sub(1, sync::relaxed); }
};

// Neither default-constructible nor trivial.
struct NoDefault : Counted {
    explicit NoDefault(int v) noexcept : value(v) {}
    int value;
    friend bool operator==(const NoDefault &a, const NoDefault &b) { return a.value == b.value; }
};

struct MoveOnly : Counted {
    explicit MoveOnly(int v) : value(new int(v)) {}
    std::unique_ptr<int> value;
};

// More than a cache line.
struct Big : Counted {
    explicit Big(int v) : value(v) { padding[99] = v; }
    int value;
    int padding[100] = {};
};

struct alignas(128) Aligned : Counted {
    explicit Aligned(int v) : value(v) {}
    int value;
    bool aligned() const { return reinterpret_cast<uintptr_t>(this) % 128 == 0; }
};

// Throws from its moves and copies while armed; its own copy of the value is then unchanged.
struct Throwing : Counted {
    static inline sync::atomic<int32_t> armed{0}; // so many further moves go well before one throws; 0: all

    static void arm(int32_t moves) { armed.store(moves, sync::relaxed); }
    static void count_down() {
        if (armed.load(sync::relaxed) > 0 && armed.fetch_sub(1, sync::relaxed) == 1)
            throw Boom("moving");
    }
    Throwing() = default;
    explicit Throwing(int v) : value(v) {}
    Throwing(const Throwing &other) : Counted(other), value(other.value) { count_down(); }
    Throwing(Throwing &&other) : Counted(std::move(other)), value(other.value) { // NOLINT
        count_down();
        other.value = -1;
    }
    Throwing &operator=(const Throwing &other) {
        count_down();
        value = other.value;
        return *this;
    }
    Throwing &operator=(Throwing &&other) { // NOLINT
        count_down();
        value = std::exchange(other.value, -1);
        return *this;
    }
    int value = 0;
};

// At its end everything has ended: no channel, no value, no line in the log that was not expected.
class World {
public:
    World() {
        mc_set_log_hook(hook, this);
        cr_assert_eq(csp_run(), 0); // the test's thread owns the runtime from here on
    }
    ~World() {
        csp_schedule();
        cr_assert_eq(csp__internal__channel_count(0), 0);
        cr_assert_eq(csp__internal__channel_count(1), 0);
        cr_assert_eq(alive.load(sync::relaxed), 0);
        cr_assert_eq(lines_.load(sync::acquire), expected_lines);
        mc_set_log_hook(nullptr, nullptr);
    }
    int expected_lines = 0;

private:
    static void hook(void *user, int32_t, int32_t code, const char *text) {
        if (code == MC_E_DEADLOCK)
            return;
        if (static_cast<World *>(user)->expected_lines == 0)
            std::fprintf(stderr, "log: %s\n", text);
        static_cast<World *>(user)->lines_.fetch_add(1, sync::acq_rel);
    }
    sync::atomic<int32_t> lines_{0};
};

// All that comes, up to the end.
template <class T> std::vector<T> all(const csp::reader<T> &from) {
    std::vector<T> got;
    for (auto &message : from)
        got.push_back(std::move(message));
    return got;
}

// A microthread that keeps what comes.
template <class T> void gather(csp::reader<T> from, std::vector<T> &into) {
    csp::spawn(csp::chan::sink(std::move(from), [&into](T &message) { into.push_back(std::move(message)); }));
}

// A producer of these; it ends when they are sent or nobody wants them any more.
template <class T> csp::reader<T> produce(std::vector<T> values) {
    return csp::spawn_producer<T>([values = std::move(values)](const csp::writer<T> &out) mutable {
        for (auto &value : values)
            if (!(out << std::move(value)))
                return;
    });
}

template <class E, class F> std::string thrown(F f) {
    try {
        f();
    } catch (const E &e) {
        return e.what();
    }
    return "nothing was thrown";
}

} // namespace mc::hpp::testing
