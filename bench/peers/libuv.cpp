// libuv's rows about time: one loop, as its users have it, whatever the number of executors.
//
// The driver (bench/run) starts it, one process a row; ../harness.hpp has the command form. A timer's user is a callback
// in the loop's thread; its lateness is the clock in the callback, less its deadline.
//
// Checked, each alternative measured beside the one taken:
//  - timer_pair: uv_timer_start and uv_timer_stop of one handle, which is part of a connection or request and lives as
//    long. A handle for each (allocated, started, closed, and freed by the loop in batches of a hundred) is the further
//    line, made.
//  - timers_1s: a timer each, all handles in one array. The loop's clock ticks in milliseconds, and deadlines are rounded
//    up to them, since a timer must not be early: that is most of the lateness. Handles that are not closed: the same.
//  - linked statically: the same.
#include "../harness.hpp"
#include "../latency.hpp"

#include <uv.h>

#include <numeric>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kArmed = 10000;
constexpr uint64_t kTimeoutMs = 3600000; // of all, as in a server; the armed ones began a millisecond after another

void not_due(uv_timer_t *) { bench::require(false, "stopping a timer"); }

class Loop {
public:
    Loop() { bench::require(uv_loop_init(&loop_) == 0, "uv_loop_init"); }
    // All handles are closed, and their memory still there.
    ~Loop() {
        run(UV_RUN_DEFAULT);
        bench::require(uv_loop_close(&loop_) == 0, "uv_loop_close");
    }
    Loop(const Loop &) = delete;
    Loop &operator=(const Loop &) = delete;

    void run(uv_run_mode mode) { uv_run(&loop_, mode); }
    uint64_t now_ms() {
        uv_update_time(&loop_);
        return uv_now(&loop_);
    }
    void init(uv_timer_t *timer) { uv_timer_init(&loop_, timer); }

private:
    uv_loop_t loop_{};
};

void close(uv_timer_t *timer, uv_close_cb closed) { uv_close(reinterpret_cast<uv_handle_t *>(timer), closed); }

void start(uv_timer_t *timer, uv_timer_cb due, uint64_t timeout_ms) {
    bench::require(uv_timer_start(timer, due, timeout_ms, 0) == 0, "uv_timer_start");
}

void make_and_close(Loop &loop, uint64_t pairs) {
    constexpr uint64_t batch = 100;
    for (uint64_t i = 0; i < pairs; ++i) {
        auto *timer = new uv_timer_t;
        loop.init(timer);
        start(timer, not_due, kTimeoutMs);
        close(timer, [](uv_handle_t *closed) { delete reinterpret_cast<uv_timer_t *>(closed); });
        if (i % batch == batch - 1)
            loop.run(UV_RUN_NOWAIT);
    }
}

double timer_pair(uint64_t pairs) {
    std::vector<uv_timer_t> armed(kArmed + 1);
    Loop loop;
    for (uint64_t i = 0; i < armed.size(); ++i) {
        loop.init(&armed[i]);
        start(&armed[i], not_due, kTimeoutMs - i);
    }
    uv_timer_t &timer = armed.back();
    const double ns = bench::time_per_operation(pairs, [&](uint64_t n) {
        for (uint64_t i = 0; i < n; ++i) {
            start(&timer, not_due, kTimeoutMs);
            uv_timer_stop(&timer);
        }
    });
    bench::further("made", bench::time_per_operation(pairs, [&](uint64_t n) { make_and_close(loop, n); }));
    for (uv_timer_t &each : armed)
        close(&each, nullptr);
    return ns;
}

struct Sleeper {
    uv_timer_t timer;
    int64_t deadline;
    int64_t late;
};

void note_lateness(uv_timer_t *timer) {
    auto &sleeper = *static_cast<Sleeper *>(timer->data);
    sleeper.late = bench::steady_now() - sleeper.deadline;
    close(timer, nullptr);
}

constexpr int64_t kSecond = 1000000000;

// Deadlines are spread evenly over the second, and dealt out in no order.
void start_sleepers(Loop &loop, std::vector<Sleeper> &sleepers, int64_t begin) {
    constexpr uint64_t coprime = 7919; // with every power of ten
    const uint64_t count = sleepers.size(), now_ms = loop.now_ms();
    for (uint64_t i = 0; i < count; ++i) {
        Sleeper &sleeper = sleepers[i];
        sleeper.deadline = begin + static_cast<int64_t>(i * coprime % count) * kSecond / static_cast<int64_t>(count);
        sleeper.late = -1;
        loop.init(&sleeper.timer);
        sleeper.timer.data = &sleeper;
        const uint64_t due_ms =
            static_cast<uint64_t>(sleeper.deadline + 999999) / 1000000; // libuv's clock is the steady one
        start(&sleeper.timer, note_lateness, due_ms - now_ms);
    }
    bench::require(bench::steady_now() < begin, "starting all timers in time");
}

void report_lateness(const std::vector<Sleeper> &sleepers) {
    std::vector<int64_t> late;
    for (const Sleeper &sleeper : sleepers)
        late.push_back(sleeper.late);
    auto ms = [&](uint64_t part) { return static_cast<double>(bench::per_mille(late, part)) / 1e6; };
    bench::require(*std::min_element(late.begin(), late.end()) >= 0, "sleeping until the deadline");
    bench::further("mean", std::accumulate(late.begin(), late.end(), 0.0) / static_cast<double>(late.size()) / 1e6);
    bench::further("p99", ms(990));
    bench::further("max", ms(1000));
}

double timers_1s(uint64_t count, uint64_t) {
    std::vector<Sleeper> sleepers(count);
    const int64_t begin = bench::steady_now() + kSecond;
    std::thread looping([&] {
        Loop loop;
        start_sleepers(loop, sleepers, begin);
    });
    bench::sleep_thread_until(begin);
    const double before = bench::cpu_seconds();
    bench::sleep_thread_until(begin + kSecond);
    const double used = bench::cpu_seconds() - before;
    looping.join();
    report_lateness(sleepers);
    return used;
}

constexpr bench::Row kRows[] = {{"timer_pair", timer_pair}, {"timers_1s", nullptr, timers_1s}};

} // namespace

int main(int argc, char **argv) {
    return bench::run_program({"libuv", uv_version_string(), kRows, sizeof kRows / sizeof kRows[0]}, argc, argv);
}
