// Rows of libmcrt that need several executors, or compare one with several: rendezvous_cross, skynet, spawn_bulk.
//
// ours.cpp includes it, once. The main thread gives the runtime its executors, starts the first microthread, waits, and
// takes the executors away again; all else happens on microthreads, as in a program.
#ifndef BENCH_OURS_EXECUTORS_HPP
#define BENCH_OURS_EXECUTORS_HPP

#include "common.hpp"

#include <pthread.h>
#include <vector>

namespace ours {

// --- rendezvous_cross ----------------------------------------------------------------------------------------------
//
// Two pinned microthreads on different executors.

inline mc_task_t spawn_pinned(mc_task_fn fn, void *user) {
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.flags = MC_SPAWN_PINNED;
    mc_task_t task = 0;
    bench::require(mc_spawn(0, fn, user, &options, &task) == MC_OK, "mc_spawn, pinned");
    return task;
}

constexpr int32_t kSameExecutor = 1;

// How two get apart: a microthread that another thread spawns goes to any executor, so the first says where it is, and
// second ones are spawned until one finds itself elsewhere. Until then the first must wait, not compute.
class Apart {
public:
    void settle() { // by the first
        int64_t settled = 1;
        first_ = pthread_self();
        csp_send(settled_.writer, &settled);
    }
    bool is_same() const { return pthread_equal(first_, pthread_self()) != 0; }
    void wait_for_first() { // by the main thread
        int64_t settled = 0;
        csp_recv(settled_.reader, &settled);
    }

private:
    Channel settled_;
    pthread_t first_{};
};

// Runs fn, which returns kSameExecutor at once where it is not apart, elsewhere, to its end. By the main thread.
inline void run_apart(Apart &apart, mc_task_fn fn, void *user) {
    apart.wait_for_first();
    int32_t result = kSameExecutor;
    for (int tries = 0; result == kSameExecutor; ++tries) {
        bench::require(tries < 1000, "finding another executor");
        mc_task_t task = spawn_pinned(fn, user);
        bench::require(mc_join(task, MC_FOREVER, &result) == MC_OK, "mc_join");
    }
}

struct CrossPingPong {
    PingPong game;
    Apart apart;
};

inline int32_t ping_across(void *user) {
    auto &cross = *static_cast<CrossPingPong *>(user);
    cross.apart.settle();
    send_pings<csp_recv>(&cross.game);
    bench::require(cross.apart.is_same(), "staying on one executor");
    return 0;
}

inline int32_t return_across(void *user) {
    auto &cross = *static_cast<CrossPingPong *>(user);
    return cross.apart.is_same() ? kSameExecutor : return_pongs<csp_recv>(&cross.game);
}

inline void ping_pong_across(uint64_t messages) {
    CrossPingPong cross{{{}, {}, messages / 2}, {}};
    mc_task_t pinging = spawn_pinned(ping_across, &cross);
    run_apart(cross.apart, return_across, &cross);
    join(pinging);
}

inline double rendezvous_cross(uint64_t iterations, uint64_t executors) {
    Executors runtime(executors);
    return bench::time_per_operation(iterations, ping_pong_across);
}

// --- skynet --------------------------------------------------------------------------------------------------------
//
// Every node starts ten and sends its parent the sum of what they send it; a leaf sends its own number.
//
// Checked, each alternative measured beside the one taken: buffered channels of ten (mc_chan) take a tenth longer;
// sums in the parent's frame and mc_join take a tenth longer on one executor, and the same on two. For one executor,
// single-processor mode takes four times as long, because every leaf waits in its send; with buffered channels a
// tenth less.

struct SkynetNode {
    csp_writer parent; // a reference of its own: the parent may have everything and be gone before the send returns
    int64_t first;
    uint64_t leaves;
};

inline void skynet_node(void *user);

inline int64_t skynet_sum(const SkynetNode &node) {
    constexpr uint64_t fan_out = 10;
    Channel sums;
    SkynetNode children[fan_out];
    const uint64_t each = node.leaves / fan_out;
    for (uint64_t i = 0; i < fan_out; ++i) {
        children[i] = {csp_writer_addref(sums.writer), node.first + static_cast<int64_t>(i * each), each};
        bench::require(csp_spawn(skynet_node, &children[i]) == 1, "csp_spawn");
    }
    int64_t sum = 0;
    for (uint64_t i = 0; i < fan_out; ++i) {
        int64_t value = 0;
        bench::require(csp_recv(sums.reader, &value) == 1, "csp_recv");
        sum += value;
    }
    return sum;
}

inline void skynet_node(void *user) {
    const SkynetNode node = *static_cast<SkynetNode *>(user);
    int64_t sum = node.leaves == 1 ? node.first : skynet_sum(node);
    csp_send(node.parent, &sum);
    csp_writer_release(node.parent);
}

// leaves: a power of ten. Milliseconds for all.
inline double skynet(uint64_t leaves, uint64_t executors) {
    Executors runtime(executors);
    int64_t sum = 0;
    const double ns = bench::time_once([&] {
        Channel result;
        SkynetNode root{csp_writer_addref(result.writer), 0, leaves};
        bench::require(csp_spawn(skynet_node, &root) == 1, "csp_spawn");
        csp_recv(result.reader, &sum);
    });
    bench::require(sum == sum_below(leaves), "skynet's sum");
    return ns / 1e6;
}

// --- spawn_bulk ----------------------------------------------------------------------------------------------------
//
// Detached microthreads and a wait group, as Go's. The loop calls mc_checkpoint, as one that is so long should: it gives the
// turn up when its quantum is over (Go interrupts it), so that some thousands are outstanding and not a million. Beside it
// (`joined`) the same without, and with a handle each: one that is kept until it is joined keeps the microthread's record, so a
// million of them take memory instead of a few that are used again.

struct Bulk {
    uint64_t count;
    mc_waitgroup_t done = 0;
};

inline int32_t done_one(void *user) { return mc_waitgroup_done(static_cast<Bulk *>(user)->done); }

inline int32_t spawn_all_wait_for_all(void *user) {
    auto &bulk = *static_cast<Bulk *>(user);
    bench::require(mc_waitgroup_create(static_cast<int64_t>(bulk.count), &bulk.done) == MC_OK, "mc_waitgroup_create");
    for (uint64_t i = 0; i < bulk.count; ++i)
        bench::require(mc_spawn(0, done_one, &bulk, nullptr, nullptr) == MC_OK && mc_checkpoint() == MC_OK, "mc_spawn");
    bench::require(mc_waitgroup_wait(bulk.done, MC_FOREVER) == MC_OK, "mc_waitgroup_wait");
    bench::require(mc_waitgroup_destroy(bulk.done) == MC_OK, "mc_waitgroup_destroy");
    return 0;
}

inline int32_t return_argument(void *user) { return static_cast<int32_t>(reinterpret_cast<intptr_t>(user)); }

inline int32_t spawn_all_join_all(void *user) {
    const uint64_t count = static_cast<Bulk *>(user)->count;
    std::vector<mc_task_t> tasks(count);
    for (uint64_t i = 0; i < count; ++i)
        tasks[i] = spawn(return_argument, reinterpret_cast<void *>(static_cast<intptr_t>(i)));
    int64_t sum = 0;
    for (mc_task_t task : tasks) {
        int32_t result = 0;
        bench::require(mc_join(task, MC_FOREVER, &result) == MC_OK, "mc_join");
        sum += result;
    }
    bench::require(sum == sum_below(count), "the sum of the results");
    return 0;
}

inline double spawn_bulk(uint64_t count, uint64_t executors) {
    Executors runtime(executors);
    Bulk bulk{count};
    const auto each = [&](mc_task_fn fn) {
        return bench::time_once([&] { join(spawn(fn, &bulk)); }) / static_cast<double>(count);
    };
    const double waited = each(spawn_all_wait_for_all);
    bench::further("joined", each(spawn_all_join_all));
    return waited;
}

} // namespace ours

#endif // BENCH_OURS_EXECUTORS_HPP
