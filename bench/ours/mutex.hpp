// The row mutex of libmcrt, on one executor and on two; ../mutex.hpp has the work.
//
// ours.cpp includes it, once. On one, single-processor mode; on two, pinned microthreads on different executors. The
// mutex is the default one, which barges; two that contend for a FIFO one are the further line fifo.
//
// Checked: how the two are kept apart is that of rendezvous_cross; each call's status is looked at, as a program would.
#ifndef BENCH_OURS_MUTEX_HPP
#define BENCH_OURS_MUTEX_HPP

#include "../mutex.hpp"
#include "executors.hpp"

#include <mc/mc.h>

namespace ours {

template <uint32_t flags> class Mutex {
public:
    Mutex() { bench::require(mc_mutex_create(flags, &handle_) == MC_OK, "mc_mutex_create"); }
    ~Mutex() { mc_mutex_destroy(handle_); }
    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;

    void lock() { bench::require(mc_mutex_lock(handle_) == MC_OK, "mc_mutex_lock"); }
    void unlock() { bench::require(mc_mutex_unlock(handle_) == MC_OK, "mc_mutex_unlock"); }

private:
    mc_mutex_t handle_ = 0;
};

// --- one -----------------------------------------------------------------------------------------------------------

struct CountingAlone {
    bench::Guarded<Mutex<0>> guarded;
    uint64_t limit;
};

inline int32_t count_alone(void *user) {
    auto &counting = *static_cast<CountingAlone *>(user);
    bench::require(bench::count_alone(counting.limit, counting.guarded) == counting.limit, "counting to the limit");
    return 0;
}

inline double mutex_alone(uint64_t pairs) {
    return bench::time_per_operation(pairs, [](uint64_t limit) {
        CountingAlone counting{{}, limit};
        join(spawn(count_alone, &counting));
    });
}

// --- two -----------------------------------------------------------------------------------------------------------

template <uint32_t flags> struct Contention {
    const uint64_t limit;
    bench::Guarded<Mutex<flags>> guarded;
    uint64_t turns[2] = {};
    Channel start; // carries the word that the second one is elsewhere
    Apart apart;

    explicit Contention(uint64_t pairs) : limit(pairs) {}
};

template <uint32_t flags> int32_t count_here(void *user) {
    auto &contention = *static_cast<Contention<flags> *>(user);
    int64_t word = 0;
    contention.apart.settle();
    csp_recv(contention.start.reader, &word);
    contention.turns[0] = bench::count_beside_another(contention.limit, contention.guarded);
    return 0;
}

template <uint32_t flags> int32_t count_elsewhere(void *user) {
    auto &contention = *static_cast<Contention<flags> *>(user);
    if (contention.apart.is_same())
        return kSameExecutor;
    int64_t word = 1;
    csp_send(contention.start.writer, &word);
    contention.turns[1] = bench::count_beside_another(contention.limit, contention.guarded);
    return 0;
}

// Returns the lesser share.
template <uint32_t flags> double contend(uint64_t pairs) {
    Contention<flags> contention(pairs);
    mc_task_t here = spawn_pinned(count_here<flags>, &contention);
    run_apart(contention.apart, count_elsewhere<flags>, &contention);
    join(here);
    return bench::lesser_share(pairs, contention.turns[0], contention.turns[1]);
}

inline double mutex_contended(uint64_t pairs) {
    constexpr uint64_t fifo_pairs = 50000; // each a switch, or a wake of the other executor
    double share = 0;
    const double ns = bench::time_per_operation(pairs, [&](uint64_t n) { share = contend<0>(n); });
    bench::further("lesser_share", share);
    bench::further("fifo", bench::time_per_operation(fifo_pairs, contend<MC_MUTEX_FIFO>));
    return ns;
}

inline double mutex(uint64_t pairs, uint64_t executors) {
    if (executors == 1)
        return mutex_alone(pairs);
    Executors runtime(executors);
    return mutex_contended(pairs);
}

} // namespace ours

#endif // BENCH_OURS_MUTEX_HPP
