// Rows of libmcrt about rings of microthreads and channels: threadring and idle_cpu.
//
// ours.cpp includes it, once. threadring runs in single-processor mode; idle_cpu gives the runtime its executors.
#ifndef BENCH_OURS_RING_HPP
#define BENCH_OURS_RING_HPP

#include "common.hpp"

#include <vector>

namespace ours {

struct Ring {
    std::vector<Channel> channels;
    Channel done; // carries the number of a microthread that has got a 0

    explicit Ring(uint64_t count) : channels(count) {}
};

struct Member {
    Ring *ring;
    uint64_t number;

    csp_reader mine() const { return ring->channels[number].reader; }
    csp_writer next() const { return ring->channels[(number + 1) % ring->channels.size()].writer; }
};

inline std::vector<Member> members_of(Ring &ring) {
    std::vector<Member> members;
    for (uint64_t i = 0; i < ring.channels.size(); ++i)
        members.push_back({&ring, i});
    return members;
}

// --- threadring ----------------------------------------------------------------------------------------------------
//
// A token goes round and counts down; whoever gets the 0 ends the ring, by closing the channel after it.

constexpr uint64_t kRing = 503;

inline int32_t pass_on(void *user) {
    auto &member = *static_cast<Member *>(user);
    int64_t token = 0;
    while (csp_recv(member.mine(), &token) == 1) {
        if (token == 0) {
            int64_t number = static_cast<int64_t>(member.number);
            csp_writer_close(member.next());
            csp_send(member.ring->done.writer, &number);
            return 0;
        }
        --token;
        csp_send(member.next(), &token);
    }
    csp_writer_close(member.next());
    return 0;
}

inline void go_round(uint64_t hops) {
    Ring ring(kRing);
    std::vector<Member> members = members_of(ring);
    std::vector<mc_task_t> tasks;
    for (Member &member : members)
        tasks.push_back(spawn(pass_on, &member));
    int64_t token = static_cast<int64_t>(hops), last = 0;
    csp_send(ring.channels[0].writer, &token);
    csp_recv(ring.done.reader, &last);
    for (mc_task_t task : tasks)
        join(task);
    bench::require(last == static_cast<int64_t>(hops % kRing), "where the token ends");
}

inline double threadring(uint64_t iterations) { return bench::time_per_operation(iterations, go_round); }

// --- idle_cpu ------------------------------------------------------------------------------------------------------
//
// Ten tokens go round until each has counted down; then all wait, and the processor time that this takes is measured.

constexpr uint64_t kIdle = 1000, kTokens = 10;
constexpr int64_t kSettle = 10 * MC_MS, kQuiet = 2 * MC_SEC;

inline int32_t pass_on_for_ever(void *user) {
    auto &member = *static_cast<Member *>(user);
    int64_t token = 0;
    while (csp_recv(member.mine(), &token) == 1) {
        const bool ends = token == 0;
        token = ends ? static_cast<int64_t>(member.number) : token - 1;
        csp_send(ends ? member.ring->done.writer : member.next(), &token);
    }
    return 0;
}

// Milliseconds of processor time a second.
inline double idle_cpu(uint64_t messages, uint64_t executors) {
    Executors runtime(executors);
    Ring ring(kIdle);
    std::vector<Member> members = members_of(ring);
    for (Member &member : members)
        spawn(pass_on_for_ever, &member);
    for (uint64_t i = 0; i < kTokens; ++i) {
        int64_t token = static_cast<int64_t>(messages / kTokens);
        csp_send(ring.channels[i * (kIdle / kTokens)].writer, &token);
    }
    for (uint64_t i = 0; i < kTokens; ++i) {
        int64_t last = 0;
        csp_recv(ring.done.reader, &last);
        bench::require(static_cast<uint64_t>(last) % (kIdle / kTokens) == messages / kTokens % (kIdle / kTokens),
                       "where a token ends");
    }
    bench::sleep_thread_until(mc_after(kSettle));
    const double before = bench::cpu_seconds();
    bench::sleep_thread_until(mc_after(kQuiet));
    bench::report_and_leave((bench::cpu_seconds() - before) * 1e3 * MC_SEC / kQuiet);
}

} // namespace ours

#endif // BENCH_OURS_RING_HPP
