// Another driver in the place of the futex one: sleeps in ppoll on a descriptor, as an event loop does, and has an event of
// its own. Nothing of the executors knows of it.
#include "sched/test_pool.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

// Counts what executors ask of their drivers. An event: whoever writes to the descriptor has the gate released by the
// executor that polls next, or that it wakes.
struct Counts {
    sync::atomic<int> made{0}, parks{0}, polls{0}, wakes{0}, events{0};
};
Counts counts;
Gate *gate_of_events = nullptr;

class PollDriver final : public Driver {
public:
    explicit PollDriver(uint64_t seed) noexcept
        : wakes_(eventfd(0, EFD_NONBLOCK)), events_(eventfd(0, EFD_NONBLOCK)), prng_(seed) {}
    ~PollDriver() override {
        close(wakes_);
        close(events_);
    }

    void park(int64_t deadline_ns) noexcept override {
        counts.parks.fetch_add(1, sync::relaxed);
        pollfd watched[] = {{wakes_, POLLIN, 0}, {events_, POLLIN, 0}};
        const int64_t left = std::max<int64_t>(deadline_ns - now(), 0);
        const timespec timeout{left / MC_SEC, left % MC_SEC};
        (void)ppoll(watched, 2, deadline_ns == INT64_MAX ? nullptr : &timeout, nullptr);
        (void)take(wakes_);
    }
    void poll() noexcept override {
        counts.polls.fetch_add(1, sync::relaxed);
        if (!take(events_))
            return;
        counts.events.fetch_add(1, sync::relaxed);
        gate_of_events->release();
    }
    void wake() noexcept override {
        counts.wakes.fetch_add(1, sync::relaxed);
        put(wakes_);
    }
    int64_t now() noexcept override { return sync::now_ns(); }
    uint64_t random() noexcept override { return prng_.next(); }

    void raise_event() const noexcept { put(events_); }

private:
    static void put(int descriptor) noexcept {
        const uint64_t one = 1;
        (void)!write(descriptor, &one, sizeof one);
    }
    static bool take(int descriptor) noexcept {
        uint64_t count = 0;
        return read(descriptor, &count, sizeof count) == sizeof count;
    }

    const int wakes_;
    const int events_;
    base::Prng prng_;
};

Driver *make(void *user, uint32_t index, uint64_t seed) noexcept {
    cr_assert_eq(user, &counts);
    cr_assert_eq(counts.made.fetch_add(1, sync::relaxed), static_cast<int>(index));
    return new PollDriver(seed);
}
void destroy(void *, Driver *driver) noexcept { delete driver; }
const DriverSource poll_drivers{make, destroy, &counts};

// What executors do for a living: wakes among them and from outside, timers, joins, sleep.
void work() {
    Gate there;
    Gate back;
    std::vector<mc_task_t> tasks;
    for (int i = 0; i < 4; ++i)
        tasks.push_back(spawn_one([&] {
            for (int k = 0; k < 50; ++k) {
                if (there.acquire() != MC_OK)
                    return MC_E_INVAL;
                if (sleep_until(here(), in_ns(20'000), nullptr) != MC_E_TIMEDOUT)
                    return MC_E_IO;
                back.release();
            }
            return MC_OK;
        }));
    for (int i = 0; i < 200; ++i) {
        there.release();
        cr_assert_eq(back.acquire(), MC_OK);
    }
    for (const mc_task_t task : tasks)
        cr_assert_eq(result_of(task), MC_OK);
}

} // namespace

// Goal: a driver of another kind takes the place of the futex one, alone and among many: sleep, wakes, deadlines, events.
Test(Driver, another_one_takes_its_place, .timeout = 60) {
    cr_assert_eq(set_driver_source(poll_drivers), MC_OK);
    (void)here();
    cr_assert_eq(set_driver_source(futex_drivers), MC_E_BUSY);
    cr_assert_eq(counts.made.load(sync::relaxed), 1);
    Gate events;
    gate_of_events = &events;
    work(); // alone
    start_many(3);
    cr_assert_eq(counts.made.load(sync::relaxed), 3);
    work();
    const mc_task_t waiter = spawn_one([&] { return events.acquire(); });
    static_cast<PollDriver &>(default_pool()->at(1).driver()).raise_event(); // while all sleep, or are about to
    cr_assert_eq(result_of(waiter), MC_OK);
    stop_many();
    work();
    cr_assert_eq(counts.events.load(sync::relaxed), 1);
    cr_assert_gt(counts.parks.load(sync::relaxed), 0);
    cr_assert_gt(counts.polls.load(sync::relaxed), 0);
    cr_assert_gt(counts.wakes.load(sync::relaxed), 0);
}

// Goal: an executor whose driver can not be made is an executor that can not be made.
Test(Driver, none_without_memory, .timeout = 20) {
    static const DriverSource none{[](void *, uint32_t index, uint64_t seed) noexcept -> Driver * {
                                       return index == 2 ? nullptr : new PollDriver(seed);
                                   },
                                   destroy, nullptr};
    cr_assert_eq(set_driver_source(none), MC_OK);
    cr_assert_eq(start_executors(here(), 3), MC_E_NOMEM);
    start_many(2);
    stop_many();
}
