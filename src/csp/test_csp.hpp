// For this room's tests: microthreads and threads from lambdas, channels of ints, a trace of who ran when, the log
// caught, and a World that checks at the end that nothing is left. One World a test, made by the test's own thread.
#pragma once

#include "base/sync.hpp"
#include "testing/one_thread.hpp"
#include "testing/test.hpp"

#include <mc/mc.h>

#include <cstdint>
#include <functional>
#include <pthread.h>
#include <string>
#include <utility>

namespace mc::csp::testing {

// --- microthreads and threads ---

// Bodies that have begun and not ended. Any thread.
inline sync::atomic<int32_t> bodies{0};

template <class Body> void run_body(void *argument) {
    auto *body = static_cast<Body *>(argument);
    (*body)();
    delete body;
    bodies.fetch_sub(1, sync::release); // release: pairs with the acquire in ~World
}

template <class Body> Body *new_body(Body body) {
    bodies.fetch_add(1, sync::relaxed);
    return new Body(std::move(body));
}

// csp_spawn: runs at once.
template <class Body> void spawn(Body body) { cr_assert_eq(csp_spawn(run_body<Body>, new_body(std::move(body))), 1); }

// mc_spawn, detached: joins the tail.
template <class Body> void spawn_at_tail(Body body) {
    const mc_task_fn run = [](void *argument) -> int32_t {
        run_body<Body>(argument);
        return 0;
    };
    cr_assert_eq(mc_spawn(0, run, new_body(std::move(body)), nullptr, nullptr), MC_OK);
}

// A POSIX thread, not one of the library's: what a program would use. Joins when it goes; join it in a place where the
// microthreads that it needs can run meanwhile, or after it has ended.
class PosixThread {
public:
    template <class Body> explicit PosixThread(Body body) : body_(std::move(body)) {
        const auto run = [](void *self) -> void * {
            static_cast<PosixThread *>(self)->body_();
            return nullptr;
        };
        cr_assert_eq(pthread_create(&id_, nullptr, run, this), 0);
    }
    PosixThread(const PosixThread &) = delete;
    PosixThread &operator=(const PosixThread &) = delete;
    ~PosixThread() { join(); }
    void join() {
        if (!std::exchange(joined_, true))
            cr_assert_eq(pthread_join(id_, nullptr), 0);
    }

private:
    std::function<void()> body_;
    pthread_t id_{};
    bool joined_ = false;
};

using mc::testing::in_process_with_one_thread;

// For tests that measure: Valgrind takes milliseconds for what they expect to be done within one.
constexpr int64_t unit = (mc::testing::under_valgrind ? 10 : 1) * MC_MS;

// --- what happened ---

// Who ran when: words, a space after each. The owner's thread only.
inline std::string trace;
inline void mark(const std::string &word) { trace += word + ' '; }

#define expect_trace(text) cr_assert_str_eq(::mc::csp::testing::trace.c_str(), text)

// Catches the log while it lives, and counts lines by their code.
class Log {
public:
    Log() { mc_set_log_hook(hook, this); }
    ~Log() { mc_set_log_hook(nullptr, nullptr); }
    int count(int32_t code) const { return lines_[slot(code)].load(sync::acquire); }
    int total() const {
        int sum = 0;
        for (const auto &lines : lines_)
            sum += lines.load(sync::acquire);
        return sum;
    }

private:
    static size_t slot(int32_t code) {
        return code <= MC_E_INVAL && code >= MC_STATUS_LAST_ ? static_cast<size_t>(MC_E_INVAL - code) + 1 : 0;
    }
    static void hook(void *user, int32_t, int32_t code, const char *text) {
        cr_assert_not_null(text);
        static_cast<Log *>(user)->lines_[slot(code)].fetch_add(1, sync::acq_rel);
    }

    sync::atomic<int32_t> lines_[32] = {};
};

// At its end everything has ended: no microthread, no channel, no line in the log that was not expected.
class World {
public:
    World() { cr_assert_eq(csp_run(), 0); } // the test's thread owns the runtime from here on
    ~World() {
        csp_schedule();
        cr_assert_eq(bodies.load(sync::acquire), 0, "microthreads are left blocked");
        cr_assert_eq(csp__internal__channel_count(0), 0);
        cr_assert_eq(csp__internal__channel_count(1), 0);
        cr_assert_eq(log.total() - log.count(MC_E_DEADLOCK), expected_lines,
                     "lines in the log beside reports of deadlocks");
    }
    Log log;
    int expected_lines = 0;
};

// --- channels ---

constexpr int from_null = -77; // what arrives when the sender's message is null

inline void copy_int(void *source, void *destination) {
    *static_cast<int *>(destination) = source == nullptr ? from_null : *static_cast<int *>(source);
}

// A channel with both its ends; releases what has not been released.
struct Chan {
    csp_writer w = nullptr;
    csp_reader r = nullptr;

    explicit Chan(void (*tx)(void *, void *) = copy_int) { cr_assert_eq(csp_chan(&w, &r, tx), 1); }
    Chan(const Chan &) = delete;
    Chan &operator=(const Chan &) = delete;
    ~Chan() {
        release_writer();
        release_reader();
    }
    void release_writer() { csp_writer_release(std::exchange(w, nullptr)); }
    void release_reader() { csp_reader_release(std::exchange(r, nullptr)); }

    int send(int value) const { return csp_send(w, &value); }
    // The value, or the code, which is below it.
    int receive() const {
        int value = 0;
        const int code = csp_recv(r, &value);
        return code == 1 ? value : code;
    }
};

inline csp_chanop sends(csp_writer w, void *message = nullptr) { return {csp_wait(w), message}; }
inline csp_chanop receives(csp_reader r, void *message = nullptr) { return {csp_wait(r), message}; }
inline csp_chanop disabled() { return {csp_wait(nullptr), nullptr}; }
template <class Handle> csp_chanop dies(Handle handle) { return {csp_wait_dead(handle), nullptr}; }

template <size_t Count> int prialt(const csp_chanop (&ops)[Count], int nowait = 0) {
    return csp_prialt(ops, static_cast<int>(Count), nowait);
}
template <size_t Count> int alt(const csp_chanop (&ops)[Count], int nowait = 0) {
    return csp_alt(ops, static_cast<int>(Count), nowait);
}

} // namespace mc::csp::testing
