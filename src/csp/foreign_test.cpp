// Threads that do not own the runtime: they send, receive and choose like microthreads, with them and with each other.
// foreign_end_test.cpp has what happens when threads end.
#include "csp/test_csp.hpp"

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

using namespace mc::csp::testing;

namespace {

using mc::testing::scale;

// One channel, of either kind, through csp endpoints. Messages are (sender, number) pairs.
struct Message {
    int32_t sender;
    int32_t number;
};

struct Pipe {
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    mc_chan_t chan = 0;

    explicit Pipe(int capacity) { // below 0: a csp channel
        if (capacity < 0) {
            const auto tx = [](void *source, void *destination) {
                *static_cast<Message *>(destination) = *static_cast<Message *>(source);
            };
            cr_assert_eq(csp_chan(&w, &r, tx), 1);
            return;
        }
        cr_assert_eq(mc_chan_create(0, sizeof(Message), static_cast<uint32_t>(capacity), nullptr, nullptr, &chan),
                     MC_OK);
        cr_assert_eq(mc_chan_writer(chan, &w), MC_OK);
        cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
    }
    ~Pipe() {
        csp_writer_release(w);
        csp_reader_release(r);
        if (chan != 0)
            cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    }
};

// Sends one, in one of the ways there are, until it has gone.
void send_somehow(const Pipe &pipe, csp_reader idle, Message message) {
    const csp_chanop ops[] = {receives(idle), sends(pipe.w, &message)};
    for (;;) {
        int result = 0;
        switch (mc_random() % 5) {
        case 0:
            result = csp_send(pipe.w, &message);
            break;
        case 1:
            result = csp_try_send(pipe.w, &message);
            break;
        case 2:
            result = csp_send_until(pipe.w, &message, mc_after(20'000));
            break;
        case 3:
            result = alt(ops) - 1;
            break;
        default:
            result = csp_alt_until(ops, 2, mc_after(20'000));
            result = result == 2 ? 1 : result;
            break;
        }
        if (result == 1)
            return;
        cr_assert(result == 0 || result == MC_E_TIMEDOUT, "%d", result);
        csp_yield();
    }
}

// Receives one, in one of the ways there are; false: closed.
bool receive_somehow(const Pipe &pipe, csp_reader idle, Message *message) {
    const csp_chanop ops[] = {receives(idle), receives(pipe.r, message), dies(pipe.r)};
    for (;;) {
        int result = 0;
        switch (mc_random() % 5) {
        case 0:
            result = csp_recv(pipe.r, message);
            break;
        case 1:
            result = csp_try_recv(pipe.r, message);
            break;
        case 2:
            result = csp_recv_until(pipe.r, message, mc_after(20'000));
            break;
        case 3:
            result = alt(ops);
            break;
        default:
            result = csp_prialt_until(ops, 3, mc_after(20'000));
            break;
        }
        if (result == 1 || result == 2)
            return true;
        if (result < 0 && result != MC_E_TIMEDOUT) {
            cr_assert(result == -1 || result == -2 || result == -3, "%d", result);
            return false;
        }
        csp_yield();
    }
}

struct Ledger {
    std::vector<std::vector<int>> next; // [receiver][sender]: the least number that may come
    std::vector<std::vector<int>> got;  // [receiver]: how many of each sender

    Ledger(size_t receivers, size_t senders)
        : next(receivers, std::vector<int>(senders, 0)), got(receivers, std::vector<int>(senders, 0)) {}
    void take(size_t receiver, const Message &message) {
        const auto sender = static_cast<size_t>(message.sender);
        cr_assert_geq(message.number, next[receiver][sender], "out of order from %d", message.sender);
        next[receiver][sender] = message.number + 1;
        ++got[receiver][sender];
    }
};

// 4 threads and 4 microthreads send, 4 of each receive. Every message arrives once, in order between each pair.
void exchange(int capacity, int messages) {
    World world;
    Pipe pipe(capacity);
    Chan done, idle;
    constexpr size_t each = 4, parties = 2 * each;
    Ledger ledger(parties, parties);
    mc::sync::atomic<int32_t> senders_left{parties};
    const auto sender = [&](int id) {
        return [&, id] {
            for (int i = 0; i < messages; ++i)
                send_somehow(pipe, idle.r, {id, i});
            if (senders_left.fetch_sub(1, mc::sync::acq_rel) == 1)
                cr_assert_eq(csp_writer_close(pipe.w), 1);
        };
    };
    const auto receiver = [&](size_t id) {
        return [&, id] {
            for (Message message{}; receive_somehow(pipe, idle.r, &message);)
                ledger.take(id, message);
            cr_assert_eq(done.send(1), 1);
        };
    };
    std::list<PosixThread> threads;
    for (size_t i = 0; i < each; ++i) {
        threads.emplace_back(sender(static_cast<int>(i)));
        threads.emplace_back(receiver(i));
        spawn(sender(static_cast<int>(each + i)));
        spawn(receiver(each + i));
    }
    for (size_t i = 0; i < parties; ++i)
        cr_assert_eq(done.receive(), 1);
    for (PosixThread &thread : threads)
        thread.join();
    for (size_t sender_id = 0; sender_id < parties; ++sender_id) {
        int total = 0;
        for (const auto &row : ledger.got)
            total += row[sender_id];
        cr_assert_eq(total, messages, "of sender %u", static_cast<unsigned>(sender_id));
    }
}

} // namespace

// Goal: eight threads and eight microthreads exchange messages over one channel: none is lost, doubled or out of order.
Test(Foreign, exchange_over_a_csp_channel, .timeout = 30) { exchange(-1, 300 * static_cast<int>(scale())); }
Test(Foreign, exchange_over_a_rendezvous_of_elements, .timeout = 30) { exchange(0, 300 * static_cast<int>(scale())); }
Test(Foreign, exchange_over_a_buffer_of_one, .timeout = 30) { exchange(1, 300 * static_cast<int>(scale())); }
Test(Foreign, exchange_over_a_buffer, .timeout = 30) { exchange(16, 300 * static_cast<int>(scale())); }

// Goal: two threads meet without the owner, who is blocked outside the library.
Test(Foreign, threads_meet_without_the_owner, .timeout = 20) {
    World world;
    Chan ping, pong;
    PosixThread first([&] {
        for (int i = 1; i <= 500; ++i) {
            cr_assert_eq(ping.send(i), 1);
            cr_assert_eq(pong.receive(), -i - 10);
        }
    });
    PosixThread second([&] {
        for (int i = 1; i <= 500; ++i) {
            cr_assert_eq(ping.receive(), i);
            cr_assert_eq(pong.send(-i - 10), 1);
        }
    });
    first.join();
    second.join();
}

// Goal: death wakes a thread that waits, whoever brings it; a thread's release wakes microthreads and main.
Test(Foreign, death_wakes_threads_and_by_threads, .timeout = 20) {
    World world;
    for (int i = 0; i < 50; ++i) {
        Chan first, second, third;
        PosixThread thread([&] {
            cr_assert_eq(first.receive(), -1);
            const csp_chanop ops[] = {dies(second.w), receives(first.r)};
            cr_assert_eq(prialt(ops) == -1 ? -1 : prialt(ops), i % 2 == 0 ? -1 : -2);
            third.release_writer();
        });
        spawn([&] { cr_assert_eq(third.receive(), -1); });
        if (i % 2 == 0)
            second.release_reader();
        if (i % 3 == 0)
            csp_sleep_until(mc_after(200'000));
        first.release_writer();
        cr_assert_eq(third.receive(), -1);
        thread.join();
    }
}

// Goal: deadlines of threads, exact from below; a peer that comes in time ends the wait.
Test(Foreign, deadlines, .timeout = 20) {
    World world;
    Chan chan, done;
    PosixThread thread([&] {
        int value = 0;
        const csp_chanop ops[] = {receives(chan.r, &value), disabled()};
        for (int i = 0; i < 5; ++i) {
            const int64_t deadline = mc_after(3 * MC_MS);
            cr_assert_eq(csp_recv_until(chan.r, &value, deadline), MC_E_TIMEDOUT);
            cr_assert_geq(mc_now(), deadline);
            cr_assert_eq(csp_alt_until(ops, 2, deadline + MC_MS), MC_E_TIMEDOUT);
            cr_assert_geq(mc_now(), deadline + MC_MS);
        }
        cr_assert_eq(done.send(1), 1);
        cr_assert_eq(csp_recv(chan.r, &value), 1);
        cr_assert_eq(csp_recv_until(chan.r, &value, mc_after(3600 * MC_SEC)), 1);
        cr_assert_eq(value, 2);
        cr_assert_eq(done.send(1), 1);
    });
    cr_assert_eq(done.receive(), 1);
    cr_assert_eq(chan.send(1), 1);
    cr_assert_eq(chan.send(2), 1);
    cr_assert_eq(done.receive(), 1);
    thread.join();
}

// Goal: a thread's alt over many channels whose other parties are microthreads; the losing arms are gone afterwards.
Test(Foreign, alt_over_many_channels, .timeout = 20) {
    World world;
    constexpr size_t count = 20;
    const auto chans = std::make_unique<Chan[]>(count);
    Chan done;
    for (size_t i = 0; i < count; ++i)
        spawn([&, i] {
            for (int k = 0; k < 20; ++k)
                cr_assert_eq(chans[i].send(static_cast<int>(i)), 1);
        });
    PosixThread thread([&] {
        int value = -1;
        csp_chanop ops[count];
        for (size_t i = 0; i < count; ++i)
            ops[i] = receives(chans[i].r, &value);
        for (size_t i = 0; i < 20 * count; ++i) {
            const int arm = csp_alt(ops, static_cast<int>(count), 0);
            cr_assert_eq(value, arm - 1);
        }
        cr_assert_eq(csp_prialt(ops, static_cast<int>(count), 1), 0);
        cr_assert_eq(done.send(1), 1);
    });
    cr_assert_eq(done.receive(), 1);
    thread.join();
}

// Goal: bad calls from a thread get the codes that main gets.
Test(Foreign, errors_are_the_same, .timeout = 20) {
    World world;
    Chan chan;
    PosixThread thread([&] {
        csp_chanop op = receives(chan.r);
        cr_assert_eq(csp_send(nullptr, nullptr), MC_E_INVAL);
        cr_assert_eq(csp_alt(&op, -1, 0), MC_E_INVAL);
        cr_assert_eq(csp_alt(nullptr, 1, 0), MC_E_INVAL);
        cr_assert_eq(csp_alt(&op, 1, 1), 0);
        cr_assert_eq(csp_alt(&op, 0, 0), 0);
        cr_assert_eq(mc_recv(12345, nullptr), MC_E_STALE);
        cr_assert_eq(mc_join(12345, MC_FOREVER, nullptr), MC_E_STALE);
    });
    thread.join();
}
