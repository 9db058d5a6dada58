// Random networks of microthreads and threads over channels of both kinds, with timeouts, closes, releases and
// destructions, checked by a ledger: every message that was accepted is received once or dropped once, and no other is;
// what one party gets from another over one channel comes in order; in the end nobody is left.
//
// A failure prints the seed; MC_TEST_SEED=n in the environment runs that one alone. MC_TEST_SCALE runs more of them.
#include "csp/test_csp.hpp"

#include <mc/sim.h>

#include <list>
#include <memory>
#include <vector>

using namespace mc::csp::testing;

namespace {

constexpr size_t max_messages = 4096; // of one sender
constexpr int max_arms = 6;

uint64_t running_seed;

#define expect(condition) cr_assert(condition, "MC_TEST_SEED=%llu", static_cast<unsigned long long>(running_seed))

// xorshift64*: one a party, so that a party's choices follow from the seed alone.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567) {}
    size_t below(size_t n) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<size_t>((state_ * 0x2545f4914f6cdd1du >> 33) % n);
    }
    bool one_in(size_t n) { return below(n) == 0; }

private:
    uint64_t state_;
};

// What became of each message. A message is sender * max_messages + number.
class Ledger {
public:
    explicit Ledger(size_t parties) : entries_(parties * max_messages) {}

    void accepted(uint64_t message) { note(message, accepted_bit); }
    void received(uint64_t message) { note(message, received_bit); }
    void dropped(uint64_t message) { note(message, dropped_bit); }
    // How many were received.
    size_t balance() const {
        size_t received = 0;
        for (const auto &entry : entries_) {
            const uint32_t bits = entry.load(mc::sync::acquire);
            expect(bits == 0 || bits == (accepted_bit | received_bit) || bits == (accepted_bit | dropped_bit));
            received += (bits & received_bit) != 0;
        }
        return received;
    }

private:
    static constexpr uint32_t accepted_bit = 1, received_bit = 2, dropped_bit = 4;

    void note(uint64_t message, uint32_t bit) {
        expect(message < entries_.size());
        expect((entries_[message].fetch_or(bit, mc::sync::acq_rel) & bit) == 0); // else twice
    }

    std::vector<mc::sync::atomic<uint32_t>> entries_;
};

void drop(void *ledger, void *elem, uint64_t size) {
    expect(size == sizeof(uint64_t));
    static_cast<Ledger *>(ledger)->dropped(*static_cast<uint64_t *>(elem));
}

void move_message(void *source, void *destination) {
    *static_cast<uint64_t *>(destination) = *static_cast<uint64_t *>(source);
}

struct Channel {
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    mc_chan_t handle = 0; // 0: a csp channel
};

// How long a call may wait.
struct Wait {
    bool nowait;
    int64_t deadline_ns;
};

class Party {
public:
    Party(size_t id, size_t parties, uint64_t seed, bool is_thread, Ledger &ledger,
          const std::vector<Channel> &channels)
        : id_(id), random_(seed * 1000 + id), is_thread_(is_thread), ledger_(ledger), channels_(channels),
          last_(channels.size(), std::vector<uint64_t>(parties, 0)) {
        for (Channel &channel : channels_) {
            csp_writer_addref(channel.w);
            csp_reader_addref(channel.r);
        }
    }
    Party(const Party &) = delete;
    Party &operator=(const Party &) = delete;

    void run(int steps) {
        for (int i = 0; i < steps; ++i)
            step();
        for (size_t i = 0; i < channels_.size(); ++i) {
            release_writer(i);
            release_reader(i);
        }
    }

private:
    void step() {
        const size_t at = random_.below(channels_.size());
        switch (random_.below(32)) {
        case 0:
            return random_.one_in(8) ? close(at) : random_.one_in(2) ? release_writer(at) : release_reader(at);
        case 1:
            return csp_yield();
        case 2:
            return csp_sleep_until(mc_after(static_cast<int64_t>(random_.below(50'000))));
        case 3:
        case 4:
            return send_several(at);
        case 5:
        case 6:
            return receive_several(at);
        default:
            return random_.one_in(2) ? choose() : random_.one_in(2) ? send(at) : receive(at);
        }
    }

    uint64_t new_message() {
        expect(next_ + 1 < max_messages);
        return id_ * max_messages + next_++;
    }
    // Only microthreads wait for ever: the test closes everything when they alone are left.
    Wait wait() {
        const size_t dice = random_.below(8);
        if (dice < 3)
            return {true, MC_NOW};
        if (dice < 7 || is_thread_)
            return {false, mc_after(static_cast<int64_t>(random_.below(100'000)))};
        return {false, MC_FOREVER};
    }

    void took(size_t channel, uint64_t message) {
        ledger_.received(message);
        uint64_t &last = last_[channel][message / max_messages];
        expect(message % max_messages >= last);
        last = message % max_messages + 1;
    }

    void send(size_t at) {
        Channel &channel = channels_[at];
        uint64_t message = new_message();
        const Wait w = wait();
        bool went = false;
        if (channel.handle != 0 && random_.one_in(2)) {
            const int32_t status = w.nowait ? mc_send_try(channel.handle, &message)
                                            : mc_send_until(channel.handle, &message, w.deadline_ns);
            went = status == MC_OK;
            expect(went || status == MC_E_AGAIN || status == MC_E_TIMEDOUT || status == MC_E_CLOSED ||
                   status == MC_E_STALE);
        } else if (channel.w != nullptr) {
            const int result =
                w.nowait ? csp_try_send(channel.w, &message) : csp_send_until(channel.w, &message, w.deadline_ns);
            went = result == 1;
            expect(went || result == 0 || result == -1 || result == MC_E_TIMEDOUT);
        }
        if (went)
            ledger_.accepted(message);
    }

    void receive(size_t at) {
        Channel &channel = channels_[at];
        uint64_t message = UINT64_MAX;
        const Wait w = wait();
        const bool discards = channel.handle != 0 && random_.one_in(10); // then drop is called
        void *place = discards ? nullptr : &message;
        bool went = false;
        if (channel.handle != 0 && random_.one_in(2)) {
            const int32_t status =
                w.nowait ? mc_recv_try(channel.handle, place) : mc_recv_until(channel.handle, place, w.deadline_ns);
            went = status == MC_OK;
            expect(went || status == MC_E_AGAIN || status == MC_E_TIMEDOUT || status == MC_E_CLOSED ||
                   status == MC_E_STALE);
        } else if (channel.r != nullptr) {
            const int result =
                w.nowait ? csp_try_recv(channel.r, place) : csp_recv_until(channel.r, place, w.deadline_ns);
            went = result == 1;
            expect(went || result == 0 || result == -1 || result == MC_E_TIMEDOUT);
        }
        if (went && !discards)
            took(at, message);
        expect(went || message == UINT64_MAX);
    }

    void send_several(size_t at) {
        uint64_t messages[5];
        if (channels_[at].handle == 0 || is_thread_)
            return; // it has no deadline
        for (uint64_t &message : messages)
            message = new_message();
        uint32_t sent = 0;
        const int32_t status = mc_send_n(channels_[at].handle, messages, 5, &sent);
        expect(status == MC_OK || status == MC_E_CLOSED || status == MC_E_STALE);
        for (uint32_t i = 0; status == MC_OK && i < sent; ++i)
            ledger_.accepted(messages[i]);
    }

    void receive_several(size_t at) {
        uint64_t messages[5];
        if (channels_[at].handle == 0 || is_thread_)
            return;
        uint32_t received = 0;
        const int32_t status = mc_recv_n(channels_[at].handle, messages, 5, &received);
        expect(status == MC_OK || status == MC_E_CLOSED || status == MC_E_STALE);
        for (uint32_t i = 0; status == MC_OK && i < received; ++i)
            took(at, messages[i]);
    }

    void choose() {
        csp_chanop ops[max_arms];
        size_t channel_of[max_arms];
        uint64_t messages[max_arms];
        bool sends_one[max_arms];
        const int count = 1 + static_cast<int>(random_.below(max_arms));
        for (int i = 0; i < count; ++i) {
            channel_of[i] = random_.below(channels_.size());
            const Channel &channel = channels_[channel_of[i]];
            sends_one[i] = random_.one_in(2);
            messages[i] = sends_one[i] ? new_message() : UINT64_MAX;
            if (random_.one_in(8))
                ops[i] = sends_one[i] ? dies(channel.w) : dies(channel.r);
            else
                ops[i] = sends_one[i] ? sends(channel.w, &messages[i]) : receives(channel.r, &messages[i]);
        }
        const Wait w = wait();
        const bool by_index = random_.one_in(2);
        const int result = w.nowait ? (by_index ? csp_prialt : csp_alt)(ops, count, 1)
                                    : (by_index ? csp_prialt_until : csp_alt_until)(ops, count, w.deadline_ns);
        expect(result == MC_E_TIMEDOUT || (result >= -count && result <= count));
        for (int i = 0; i < count; ++i) {
            if (sends_one[i] && result == i + 1)
                ledger_.accepted(messages[i]);
            else if (!sends_one[i] && result == i + 1)
                took(channel_of[i], messages[i]);
            else
                expect(sends_one[i] || messages[i] == UINT64_MAX);
        }
    }

    void close(size_t at) {
        const Channel &channel = channels_[at];
        if (channel.handle != 0 && random_.one_in(3)) {
            const int32_t status = mc_chan_destroy(channel.handle);
            expect(status == MC_OK || status == MC_E_STALE);
        } else if (channel.handle != 0 && random_.one_in(2)) {
            const int32_t status = mc_chan_close(channel.handle);
            expect(status == MC_OK || status == MC_E_CLOSED || status == MC_E_STALE);
        } else if (channel.w != nullptr) {
            const int result = csp_writer_close(channel.w);
            expect(result == 1 || result == -1);
        }
    }
    void release_writer(size_t at) { csp_writer_release(std::exchange(channels_[at].w, nullptr)); }
    void release_reader(size_t at) { csp_reader_release(std::exchange(channels_[at].r, nullptr)); }

    const size_t id_;
    Random random_;
    const bool is_thread_;
    Ledger &ledger_;
    std::vector<Channel> channels_;
    std::vector<std::vector<uint64_t>> last_; // [channel][sender]: the least number that may come
    uint64_t next_ = 0;
};

// A microthread with any of the flags.
template <class Body> void spawn_somehow(Random &random, Body body) {
    constexpr uint32_t flags[] = {0, 0, 0, MC_SPAWN_PINNED, MC_SPAWN_LOW, MC_SPAWN_HIGH};
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.flags = flags[random.below(6)];
    const mc_task_fn run = [](void *argument) -> int32_t {
        run_body<Body>(argument);
        return 0;
    };
    cr_assert_eq(mc_spawn(0, run, new_body(std::move(body)), &options, nullptr), MC_OK);
}

// Lets the executors work until nobody is left, or those who are have done nothing for a while; or stops them in the
// middle of it. What is left goes on alone.
void run_executors(Random &random, const mc::sync::atomic<size_t> &ended) {
    if (random.one_in(3)) {
        csp_sleep_until(mc_after(static_cast<int64_t>(random.below(2'000'000))));
        return csp_shutdown_runtime();
    }
    size_t before = SIZE_MAX;
    for (int idle = 0; csp_run() != 0 && idle < 10;) { // a millisecond each
        const size_t now = ended.load(mc::sync::relaxed);
        idle = now == before ? idle + 1 : 0;
        before = now;
    }
    csp_shutdown_runtime();
}

// executors: 0 is single-processor mode.
size_t network(uint64_t seed, size_t microthreads, size_t threads, int steps, int executors) {
    running_seed = seed;
    World world;
    Random random(seed);
    if (executors > 0)
        cr_assert_eq(csp_init_runtime(executors), 1);
    Ledger ledger(microthreads + threads);
    std::vector<Channel> channels(2 + random.below(8));
    for (Channel &channel : channels) {
        if (random.one_in(2)) {
            cr_assert_eq(csp_chan(&channel.w, &channel.r, move_message), 1);
            continue;
        }
        const auto capacity = static_cast<uint32_t>(random.below(5));
        cr_assert_eq(mc_chan_create(0, sizeof(uint64_t), capacity, drop, &ledger, &channel.handle), MC_OK);
        cr_assert_eq(mc_chan_writer(channel.handle, &channel.w), MC_OK);
        cr_assert_eq(mc_chan_reader(channel.handle, &channel.r), MC_OK);
    }
    std::list<Party> parties;
    std::list<PosixThread> running;
    mc::sync::atomic<size_t> threads_left{threads}, ended{0};
    for (size_t id = 0; id < microthreads + threads; ++id) {
        const bool is_thread = id >= microthreads;
        Party &party = parties.emplace_back(id, microthreads + threads, seed, is_thread, ledger, channels);
        if (!is_thread) {
            spawn_somehow(random, [&party, &ended, steps] {
                party.run(steps);
                ended.fetch_add(1, mc::sync::relaxed);
            });
            continue;
        }
        running.emplace_back([&] {
            party.run(steps);
            threads_left.fetch_sub(1, mc::sync::acq_rel);
        });
    }
    if (executors > 0)
        run_executors(random, ended);
    while (threads_left.load(mc::sync::acquire) != 0)
        csp_sleep_until(mc_after(100'000));
    for (PosixThread &thread : running)
        thread.join();
    csp_schedule(); // who is left waits for ever
    for (const Channel &channel : channels) {
        (void)csp_writer_close(channel.w);
        csp_writer_release(channel.w);
        csp_reader_release(channel.r);
        if (channel.handle != 0)
            (void)mc_chan_destroy(channel.handle);
    }
    csp_schedule();
    return ledger.balance();
}

// Executors: 0, or by turns from 1 to as many.
void networks(uint64_t count, size_t microthreads, size_t threads, int steps, int executors = 0) {
    const auto executors_of = [executors](uint64_t seed) {
        return executors == 0 ? 0 : 1 + static_cast<int>(seed % static_cast<uint64_t>(executors));
    };
    if (const char *text = std::getenv("MC_TEST_SEED")) {
        const uint64_t seed = std::strtoull(text, nullptr, 10);
        network(seed, microthreads, threads, steps, executors_of(seed));
        return;
    }
    if (mc_sim_active() != 0) { // one, for each seed another
        network(mc_sim_seed() + 1, microthreads, threads, steps / 10 + 5, executors_of(mc_sim_seed()));
        return;
    }
    size_t received = 0;
    for (uint64_t seed = 1; seed <= count * mc::testing::scale(); ++seed)
        received += network(seed, microthreads, threads, steps, executors_of(seed));
    cr_assert_gt(received, count, "next to nothing was exchanged");
}

} // namespace

// Goal: networks of microthreads alone balance; a seed's run is the same every time but for its timeouts.
Test(Network, of_microthreads_balances, .timeout = 60) { networks(200, 24, 0, 150); }

// Goal: a pair, and a crowd.
Test(Network, of_a_pair_balances, .timeout = 60) { networks(400, 2, 0, 200); }
Test(Network, of_many_microthreads_balances, .timeout = 60) { networks(10, 300, 0, 100); }

// Goal: networks on 1 to 8 executors balance, that are stopped in the middle now and then; with threads too.
Test(Network, on_executors_balances, .timeout = 120) { networks(80, 24, 0, 150, 8); }
Test(Network, of_a_crowd_on_executors_balances, .timeout = 120) { networks(8, 300, 0, 100, 8); }
Test(Network, of_executors_and_threads_balances, .timeout = 120) { networks(80, 10, 4, 150, 8); }

// Goal: networks of microthreads and threads balance, and of threads alone.
Test(Network, of_microthreads_and_threads_balances, .timeout = 60) { networks(60, 8, 4, 150); }
Test(Network, of_threads_balances, .timeout = 60) { networks(60, 0, 6, 150); }
