// std::mutex between threads, which is pthread_mutex_t: the row mutex alone. It schedules nothing; who waits sleeps.
//
// The driver (bench/run) starts it, one process a row; ../harness.hpp has the command form, ../mutex.hpp the work.
//
// Checked, each alternative measured beside the one taken:
//  - alone: main, in a process that has one thread, as libmcrt's is: the C library locks without a locked instruction then. With a
//    second thread, which main waits for, it takes twice that: the further line `beside_a_thread`.
//  - contended: two threads beside main, which sleeps.
#include "../harness.hpp"
#include "../mutex.hpp"

#include <gnu/libc-version.h>
#include <thread>

namespace {

double count_alone(uint64_t pairs) {
    return bench::time_per_operation(pairs, [](uint64_t limit) {
        bench::Guarded<std::mutex> guarded;
        bench::require(bench::count_alone(limit, guarded) == limit, "counting to the limit");
    });
}

double alone(uint64_t pairs) {
    const double ns = count_alone(pairs);
    double beside = 0;
    std::thread([&] { beside = count_alone(pairs); }).join();
    bench::further("beside_a_thread", beside);
    return ns;
}

// Returns the lesser share.
double contend(uint64_t limit) {
    bench::Guarded<std::mutex> guarded;
    uint64_t turns[2] = {};
    std::thread one([&] { turns[0] = bench::count_beside_another(limit, guarded); });
    std::thread other([&] { turns[1] = bench::count_beside_another(limit, guarded); });
    one.join();
    other.join();
    return bench::lesser_share(limit, turns[0], turns[1]);
}

double mutex(uint64_t pairs, uint64_t executors) {
    if (executors == 1)
        return alone(pairs);
    double share = 0;
    const double ns = bench::time_per_operation(pairs, [&](uint64_t limit) { share = contend(limit); });
    bench::further("lesser_share", share);
    return ns;
}

constexpr bench::Row kRows[] = {{"mutex", nullptr, mutex}};

} // namespace

int main(int argc, char **argv) {
    char version[32];
    std::snprintf(version, sizeof version, "glibc %s", gnu_get_libc_version());
    return bench::run_program({"std::mutex", version, kRows, 1}, argc, argv);
}
