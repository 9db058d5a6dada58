// Boost.Fiber's side of the benchmark, as its own users would write it for speed.
//
// The driver (bench/run) starts it, one process a row; harness.hpp has the command form. One thread (rows for two: also
// two), the default algorithm (round_robin), the channel that the library offers for a rendezvous (unbuffered_channel). It cannot
// choose among channels, so there are no alt rows.
//
// Checked, each alternative measured beside the one taken:
//  - linked statically (the package has both): with the shared library a rendezvous takes a sixth longer, a yield
//    among 2 a quarter, a yield among 100 nearly twice as long, because it reaches its thread-local by a call.
//  - spawn_join: launch::dispatch and pooled_fixedsize_stack, as the manual advises for many short fibers;
//    launch::post costs a third more, the default stack up to a tenth.
//  - rendezvous, stream: pop(value), value_pop() and a range-for, launch::post and launch::dispatch, main as one of
//    the two parties or not: no difference beyond the noise. push copies an int64_t: there is nothing to move.
//  - memory: fixedsize_stack of 32 KiB, libmcrt's default size: malloc packs such stacks, so it touches 5,130 bytes a
//    fiber; the default (128 KiB) touches 7,140, the pooled one 9,470, the protected one runs out of the kernel's
//    65,530 mappings before 10^5. 8 and 16 KiB touch the same as 32.
//  - mutex: fibers::mutex, contended by one fiber on each of two threads, which keep to their threads (round_robin).
//    launch::post and launch::dispatch, the threads' main fibers in place of fibers of their own, and for two threads
//    work_stealing and shared_work: no difference beyond the noise.
//  - buffered_spsc and buffered_mpsc4 on two: shared_work, whose threads sleep when they have nothing (its parameter
//    suspend); without that, with work_stealing, or with the producers on one thread and the consumer on the other mpsc4 is
//    several times slower. spsc with its ends on different threads is the further line, apart.
//  - idle_cpu: threads that keep to their fibers, which sleep when they have nothing; so would shared_work with suspend.
//  - memory_1m: as memory. The default stacks would touch 2 KB more a fiber.
// Not used: BOOST_FIBERS_NO_ATOMICS, which single-threaded programs may set when they build Boost themselves; no
// distribution's package is built like that.
#include "../harness.hpp"
#include "../mutex.hpp"

#include <boost/fiber/all.hpp>
#include <boost/version.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

namespace fibers = boost::fibers;
using Channel = fibers::unbuffered_channel<int64_t>;

// The sum of 0 .. count - 1, which is what a stream of count messages adds up to.
int64_t sum_below(uint64_t count) { return static_cast<int64_t>(count * (count - 1) / 2); }

void yield_among(uint64_t switches, uint64_t count) {
    std::vector<fibers::fiber> members;
    for (uint64_t i = 0; i < count; ++i)
        members.emplace_back([turns = switches / count] {
            for (uint64_t left = turns; left > 0; --left)
                boost::this_fiber::yield();
        });
    for (fibers::fiber &member : members)
        member.join();
}

double yield2(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { yield_among(n, 2); });
}

double yield100(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { yield_among(n, 100); });
}

void send_pings(Channel &ping, Channel &pong, uint64_t round_trips) {
    int64_t value = 0, sum = 0;
    for (uint64_t i = 0; i < round_trips; ++i) {
        ping.push(static_cast<int64_t>(i));
        pong.pop(value);
        sum += value;
    }
    bench::require(sum == sum_below(round_trips), "the sum of the pongs");
}

void return_pongs(Channel &ping, Channel &pong, uint64_t round_trips) {
    int64_t value = 0;
    for (uint64_t i = 0; i < round_trips; ++i) {
        ping.pop(value);
        pong.push(value);
    }
}

double rendezvous(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t messages) {
        Channel ping, pong;
        fibers::fiber a([&] { send_pings(ping, pong, messages / 2); });
        fibers::fiber b([&] { return_pongs(ping, pong, messages / 2); });
        a.join();
        b.join();
    });
}

void produce(Channel &channel, uint64_t messages) {
    for (uint64_t i = 0; i < messages; ++i)
        channel.push(static_cast<int64_t>(i));
}

void consume(Channel &channel, uint64_t messages) {
    int64_t value = 0, sum = 0;
    for (uint64_t i = 0; i < messages; ++i) {
        channel.pop(value);
        sum += value;
    }
    bench::require(sum == sum_below(messages), "the sum of the stream");
}

double stream(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t messages) {
        Channel channel;
        fibers::fiber producer([&] { produce(channel, messages); });
        fibers::fiber consumer([&] { consume(channel, messages); });
        producer.join();
        consumer.join();
    });
}

// --- buffered ------------------------------------------------------------------------------------------------------

using Buffered = fibers::buffered_channel<int64_t>;
constexpr std::size_t kCapacity = 128; // of which the channel leaves one free

struct BufferedStream {
    Buffered channel{kCapacity};
    const uint64_t producers, messages; // messages of each

    BufferedStream(uint64_t sources, uint64_t all) : producers(sources), messages(all / sources) {}

    void produce() {
        for (uint64_t i = 0; i < messages; ++i)
            channel.push(static_cast<int64_t>(i));
    }
    void consume() {
        int64_t value = 0, sum = 0;
        for (uint64_t left = producers * messages; left > 0; --left) {
            channel.pop(value);
            sum += value;
        }
        bench::require(sum == static_cast<int64_t>(producers) * sum_below(messages), "the sum of the messages");
    }
    void run_here() {
        std::vector<fibers::fiber> all;
        all.emplace_back([this] { consume(); });
        for (uint64_t i = 0; i < producers; ++i)
            all.emplace_back([this] { produce(); });
        for (fibers::fiber &one : all)
            one.join();
    }
    void run_on_two_threads() { // the producers on one of them
        std::thread consumer([this] { fibers::fiber([this] { consume(); }).join(); });
        std::thread other([this] {
            std::vector<fibers::fiber> all;
            for (uint64_t i = 0; i < producers; ++i)
                all.emplace_back([this] { produce(); });
            for (fibers::fiber &one : all)
                one.join();
        });
        consumer.join();
        other.join();
    }
};

// Threads beside this one that share its fibers, as long as it lives.
class Helpers {
public:
    explicit Helpers(uint64_t threads) {
        fibers::use_scheduling_algorithm<fibers::algo::shared_work>(true);
        for (uint64_t i = 1; i < threads; ++i)
            threads_.emplace_back([this] {
                fibers::use_scheduling_algorithm<fibers::algo::shared_work>(true);
                std::unique_lock<fibers::mutex> locked(mutex_);
                ended_.wait(locked, [this] { return over_; });
            });
    }
    ~Helpers() {
        {
            std::lock_guard<fibers::mutex> locked(mutex_);
            over_ = true;
        }
        ended_.notify_all();
        for (std::thread &thread : threads_)
            thread.join();
    }
    Helpers(const Helpers &) = delete;
    Helpers &operator=(const Helpers &) = delete;

private:
    fibers::mutex mutex_;
    fibers::condition_variable ended_;
    bool over_ = false; // guarded by mutex_
    std::vector<std::thread> threads_;
};

double buffered_spsc(uint64_t iterations, uint64_t executors) {
    auto here = [](uint64_t messages) { BufferedStream(1, messages).run_here(); };
    auto apart = [](uint64_t messages) { BufferedStream(1, messages).run_on_two_threads(); };
    if (executors == 1)
        return bench::millions_a_second(bench::time_per_operation(iterations, here));
    bench::further("apart", bench::millions_a_second(bench::time_per_operation(iterations, apart)));
    Helpers helpers(executors);
    return bench::millions_a_second(bench::time_per_operation(iterations, here));
}

void run_mpsc4(uint64_t messages) { BufferedStream(4, messages).run_here(); }

double buffered_mpsc4(uint64_t iterations, uint64_t executors) {
    if (executors == 1)
        return bench::millions_a_second(bench::time_per_operation(iterations, run_mpsc4));
    Helpers helpers(executors);
    return bench::millions_a_second(bench::time_per_operation(iterations, run_mpsc4));
}

// --- threadring, idle_cpu ------------------------------------------------------------------------------------------

struct Ring {
    std::vector<std::unique_ptr<Channel>> channels;
    uint64_t last = 0; // where the token ended

    explicit Ring(uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
            channels.push_back(std::make_unique<Channel>());
    }
    Channel &after(uint64_t number) { return *channels[(number + 1) % channels.size()]; }

    // Until the channel before has been closed; whoever gets a 0 calls ended(number), which says whether to go on.
    template <class Ended> void pass_on(uint64_t number, Ended ended) {
        int64_t token = 0;
        while (channels[number]->pop(token) == fibers::channel_op_status::success) {
            if (token > 0)
                after(number).push(token - 1);
            else if (!ended(number))
                break;
        }
        after(number).close();
    }
};

void go_round(uint64_t hops) {
    constexpr uint64_t members = 503;
    Ring ring(members);
    std::vector<fibers::fiber> all;
    for (uint64_t i = 0; i < members; ++i)
        all.emplace_back([&ring, i] {
            ring.pass_on(i, [&ring](uint64_t number) {
                ring.last = number;
                return false;
            });
        });
    ring.channels[0]->push(static_cast<int64_t>(hops));
    for (fibers::fiber &one : all)
        one.join();
    bench::require(ring.last == hops % members, "where the token ends");
}

double threadring(uint64_t iterations) { return bench::time_per_operation(iterations, go_round); }

// The members of the ring, half on each of two threads. Ends the process.
double idle_cpu(uint64_t messages, uint64_t executors) {
    constexpr uint64_t members = 1000, tokens = 10;
    Ring ring(members);
    std::atomic<uint64_t> done{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < executors; ++t)
        threads.emplace_back([&, t] {
            std::vector<fibers::fiber> all;
            for (uint64_t i = t; i < members; i += executors)
                all.emplace_back([&ring, &done, i] {
                    ring.pass_on(i, [&done](uint64_t) {
                        ++done;
                        return true;
                    });
                });
            for (uint64_t i = t; i < tokens; i += executors)
                ring.channels[i * (members / tokens)]->push(static_cast<int64_t>(messages / tokens));
            for (fibers::fiber &one : all)
                one.join();
        });
    constexpr int64_t ms = 1000000;
    while (done.load() < tokens)
        bench::sleep_thread_until(bench::steady_now() + ms);
    bench::sleep_thread_until(bench::steady_now() + 10 * ms);
    const double before = bench::cpu_seconds();
    bench::sleep_thread_until(bench::steady_now() + 2000 * ms);
    bench::report_and_leave((bench::cpu_seconds() - before) * 1e3 / 2);
}

// --- spawn_join, memory --------------------------------------------------------------------------------------------

double spawn_join(uint64_t iterations) {
    fibers::pooled_fixedsize_stack stacks;
    return bench::time_per_operation(iterations, [&stacks](uint64_t n) {
        for (uint64_t i = 0; i < n; ++i)
            fibers::fiber(fibers::launch::dispatch, std::allocator_arg, stacks, [] {}).join();
    });
}

double memory(uint64_t count) {
    Channel channel;
    uint64_t blocked = 0;
    std::vector<fibers::fiber> members;
    members.reserve(count);
    bench::Memory before = bench::memory_now();
    const double ns = bench::time_once([&] {
        for (uint64_t i = 0; i < count; ++i)
            members.emplace_back(std::allocator_arg, fibers::fixedsize_stack(32768), [&channel, &blocked] {
                int64_t value = 0;
                ++blocked;
                channel.pop(value);
            });
        boost::this_fiber::yield(); // everybody before main in the queue runs, and blocks
    });
    bench::Memory after = bench::memory_now();
    bench::require(blocked == count, "blocking all fibers");
    bench::report_memory(before, after, ns, count);
}

double mutex_alone(uint64_t pairs) {
    return bench::time_per_operation(pairs, [](uint64_t limit) {
        bench::Guarded<fibers::mutex> guarded;
        fibers::fiber([&] {
            bench::require(bench::count_alone(limit, guarded) == limit, "counting to the limit");
        }).join();
    });
}

// A thread with a fiber each. Returns the lesser share.
double contend(uint64_t limit) {
    bench::Guarded<fibers::mutex> guarded;
    uint64_t turns[2] = {};
    auto count = [&](uint64_t *own) {
        fibers::fiber([&guarded, limit, own] { *own = bench::count_beside_another(limit, guarded); }).join();
    };
    std::thread one(count, &turns[0]), other(count, &turns[1]);
    one.join();
    other.join();
    return bench::lesser_share(limit, turns[0], turns[1]);
}

double mutex(uint64_t pairs, uint64_t executors) {
    if (executors == 1)
        return mutex_alone(pairs);
    double share = 0;
    const double ns = bench::time_per_operation(pairs, [&](uint64_t limit) { share = contend(limit); });
    bench::further("lesser_share", share);
    return ns;
}

constexpr bench::Row kRows[] = {{"yield2", yield2},
                                {"yield100", yield100},
                                {"rendezvous", rendezvous},
                                {"stream", stream},
                                {"spawn_join", spawn_join},
                                {"memory", memory},
                                {"mutex", nullptr, mutex},
                                {"memory_1m", memory},
                                {"buffered_spsc", nullptr, buffered_spsc},
                                {"buffered_mpsc4", nullptr, buffered_mpsc4},
                                {"threadring", threadring},
                                {"idle_cpu", nullptr, idle_cpu, 2}};

} // namespace

int main(int argc, char **argv) {
    char version[32];
    std::snprintf(version, sizeof version, "%d.%d", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000);
    return bench::run_program({"Boost.Fiber", version, kRows, sizeof kRows / sizeof kRows[0]}, argc, argv);
}
