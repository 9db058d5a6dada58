// Reclamation in a process: who reads, and who frees; one domain for all runtimes, since what one retires another may read.
// The scheme is base/epoch.hpp's.
//
// Readers: an executor among many is a quiescent-state reader. It is quiescent at each poll, so at least every 61st switch,
// and offline while it sleeps. Alone it is offline but while a task reads: its owner may be away for any time. A foreign
// thread pins. All three are behind Reading, under which nothing switches, so that a reader never parks.
//
// Freeing: an executor that polls and finds something retired gets a step of its own to run (the only stack on which
// anybody's `free` may be called); at most one every 100 microseconds among all. One that is about to sleep tries, and if
// it is held up, sleeps for a while only and tries again. So while something is retired, somebody is about to look:
//  - what an executor retires, it finds itself before it sleeps;
//  - a foreign thread rings the first executor. Ring and sleep are a Dekker on `rung_`: the first executor silences the
//    bell before it looks a last time. Whoever rings after that wakes it; whoever rang before is seen by that look.
#pragma once

#include "base/epoch.hpp"

#include <cstdint>

namespace mc::sched {

struct ThreadContext;

class Reclaimer {
public:
    static constexpr int64_t period_ns = 100'000;
    static constexpr int64_t first_pause_ns = 1'000'000; // of a sleeper that is held up; doubles
    static constexpr int64_t last_pause_ns = 1'000'000'000;
    static constexpr int64_t report_after_ns = 1'000'000'000;

    base::EpochDomain &domain() noexcept { return domain_; }

    // Any thread: is there something to free? A hint.
    bool pending() const noexcept { return domain_.pending(); }
    // Any thread: true for one caller in each period.
    bool claim_turn(int64_t now) noexcept;
    // A foreign thread, after it has retired: must the first executor be woken?
    bool ring() noexcept { return rung_.exchange(1, sync::acq_rel) == 0; }
    // The first executor, before it sleeps with nothing pending. True: it was rung; look at pending() again.
    // relaxed: who rings after this look finds the bell silent, and wakes.
    bool silence() noexcept { return rung_.load(sync::relaxed) != 0 && rung_.exchange(0, sync::acq_rel) != 0; }

    // The calling thread is no reader, or has just been quiescent. False: held up, or another thread is at it.
    bool advance() noexcept;

private:
    void report_stall() noexcept;

    base::EpochDomain domain_;
    sync::atomic<int64_t> next_turn_ns_{0};
    sync::atomic<uint32_t> rung_{0};
    sync::atomic<int64_t> reported_ns_{0};
};

// The process's; null without memory. A forked child that begins anew gets another one.
Reclaimer *process_reclaimer() noexcept;
void leave_reclaimer_behind() noexcept;

// What a thread that owns no executor pins with; part of its context.
struct ForeignReader {
    explicit ForeignReader(uint32_t spread) noexcept : pin(spread) {}
    base::EpochPin pin;
    char name[32] = {};
};

// The task that runs on the thread reads from here on. Nested; nothing may switch until the end.
void begin_reading(ThreadContext &thread) noexcept;
bool end_reading(ThreadContext &thread) noexcept; // false: none had begun
void end_all_readings(ThreadContext &thread) noexcept;

class Reading {
public:
    explicit Reading(ThreadContext &thread) noexcept : thread_(thread) { begin_reading(thread); }
    ~Reading() { (void)end_reading(thread_); }
    Reading(const Reading &) = delete;
    Reading &operator=(const Reading &) = delete;

private:
    ThreadContext &thread_;
};

// For a thread that has been attached. See mc/epoch.h.
void retire(ThreadContext &thread, base::EpochNode *node, void (*free)(base::EpochNode *)) noexcept;
int32_t advance_epoch(ThreadContext &thread) noexcept;
int32_t epoch_barrier(ThreadContext &thread, int64_t deadline_ns) noexcept;
Reclaimer &reclaimer_for(ThreadContext &thread) noexcept;

} // namespace mc::sched
