// mc/epoch.h: pins, frees, who holds them up; alone and with executors.
#include "base/prng.hpp"
#include "csp/test_many.hpp"

#include <mc/epoch.h>

#include <cstring>
#include <memory>
#include <sched.h>
#include <stdexcept>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace mc;
using namespace mc::csp::testing;

namespace {

// Counts its frees; freed twice or under a reader shows.
struct Node {
    sync::atomic<int> *freed = nullptr;
    mc_epoch_node links{};
    uint64_t canary = alive;

    static constexpr uint64_t alive = 0x600d600d600d600d;
    static constexpr uint64_t dead = 0xdeaddeaddeaddead;

    explicit Node(sync::atomic<int> &count) : freed(&count) {}
    static void free(void *user, mc_epoch_node *node) {
        auto *self = static_cast<Node *>(user);
        cr_assert_eq(static_cast<void *>(node), static_cast<void *>(&self->links));
        cr_assert_eq(self->canary, alive);
        self->canary = dead;
        sync::atomic<int> *freed = self->freed;
        delete self;
        freed->fetch_add(1, sync::acq_rel);
    }
    void retire() { cr_assert_eq(mc_epoch_retire(0, &links, free, this), MC_OK); }
};

void retire_one(sync::atomic<int> &freed) { (new Node(freed))->retire(); }

template <class Condition> void wait_until(Condition condition) {
    const int64_t end = mc_after(20 * MC_SEC);
    while (!condition()) {
        cr_assert_lt(mc_now(), end, "it has not come about");
        csp_sleep_until(mc_after(MC_MS / 10));
    }
}

void pin() { cr_assert_eq(mc_epoch_pin(0), MC_OK); }
void unpin() { cr_assert_eq(mc_epoch_unpin(0), MC_OK); }
void barrier() { cr_assert_eq(mc_epoch_barrier(0, MC_FOREVER), MC_OK); }

struct Stalls {
    std::vector<mc_epoch_stall> all;
    explicit Stalls(int64_t min_age_ns = 0) {
        const auto note = [](void *user, const mc_epoch_stall *stall) {
            cr_assert_eq(stall->struct_size, sizeof *stall);
            static_cast<Stalls *>(user)->all.push_back(*stall);
        };
        cr_assert_eq(mc_epoch_each_stall(0, min_age_ns, note, this), MC_OK);
    }
};

// A thread that holds a pin while it lives; it may sleep then, but not in a call of ours.
class Pinned {
public:
    explicit Pinned(bool spins = true)
        : thread_([this, spins] {
              pin();
              held_.store(1, sync::release);
              while (held_.load(sync::acquire) != 2)
                  (void)(spins ? sched_yield() : usleep(50'000));
              unpin();
          }) {
        while (held_.load(sync::acquire) == 0)
            sync::thread_yield();
    }
    ~Pinned() { held_.store(2, sync::release); }

private:
    sync::atomic<int> held_{0};
    PosixThread thread_;
};

} // namespace

// Goal: what is retired is freed by the second advance, and not while a thread holds a pin that is older.
Test(EpochApi, a_pin_holds_up_the_free, .timeout = 20) {
    World world;
    sync::atomic<int> freed{0};
    {
        Pinned other;
        retire_one(freed);
        (void)mc_epoch_advance(0);
        cr_assert_eq(mc_epoch_advance(0), MC_E_AGAIN);
        cr_assert_eq(mc_epoch_advance(0), MC_E_AGAIN);
        cr_assert_eq(mc_epoch_barrier(0, MC_NOW), MC_E_TIMEDOUT);
        cr_assert_eq(mc_epoch_barrier(0, mc_after(MC_MS)), MC_E_TIMEDOUT);
        cr_assert_eq(freed.load(sync::acquire), 0);
    }
    cr_assert_eq(mc_epoch_advance(0), MC_OK);
    (void)mc_epoch_advance(0);
    cr_assert_eq(freed.load(sync::acquire), 1);
}

// Goal: executors free by themselves what a thread or a microthread has retired, asleep or at work.
Test(EpochApi, executors_free_by_themselves, .timeout = 120) {
    World world;
    for (const int n : executor_counts) {
        if (mc::testing::under_valgrind && n > 3)
            break; // it runs one thread at a time, and not in turn: of many that never wait some do not get on
        Many many(n);
        sync::atomic<int> freed{0};
        int retired = 0;
        for (int i = 0; i < 20; ++i) {
            retire_one(freed);
            ++retired;
            if (i % 2 == 0)
                wait_until([&] { return freed.load(sync::acquire) == retired; });
        }
        join(start([&] { retire_one(freed); }));
        wait_until([&] { return freed.load(sync::acquire) == retired + 1; });
        if (mc::testing::under_valgrind)
            continue; // it runs one thread at a time, and not in turn: of those that never wait some do not get on
        sync::atomic<int> stop{0};
        std::vector<mc_task_t> busy;
        for (int i = 0; i < 2 * n; ++i)
            busy.push_back(start([&] {
                while (stop.load(sync::acquire) == 0)
                    csp_yield();
            }));
        retire_one(freed);
        wait_until([&] { return freed.load(sync::acquire) == retired + 2; });
        stop.store(1, sync::release);
        for (const mc_task_t task : busy)
            join(task);
    }
}

// Goal: alone the owner frees them while it waits, and while its microthreads work.
Test(EpochApi, the_owner_frees_while_it_runs, .timeout = 20) {
    World world;
    sync::atomic<int> freed{0};
    retire_one(freed);
    wait_until([&] { return freed.load(sync::acquire) == 1; });
    PosixThread thread([&] { retire_one(freed); });
    wait_until([&] { return freed.load(sync::acquire) == 2; });
    retire_one(freed);
    spawn_at_tail([&] {
        while (freed.load(sync::acquire) != 3)
            csp_yield();
    });
    csp_schedule();
    thread.join();
}

// Goal: the owner that runs the queue, with sleepers alone in it, frees what is retired meanwhile, again and again.
Test(EpochApi, the_owner_frees_while_it_schedules, .timeout = 20) {
    World world;
    sync::atomic<int> freed{0};
    sync::atomic<int> late{0};
    spawn_at_tail([] { csp_sleep_until(mc_after(3 * MC_SEC)); });
    PosixThread thread([&] {
        for (int i = 1; i <= 3; ++i) {
            retire_one(freed);
            const int64_t end = mc_after(800 * MC_MS);
            while (freed.load(sync::acquire) != i && mc_now() < end)
                usleep(1000);
            late.fetch_add(freed.load(sync::acquire) != i, sync::relaxed);
            usleep(5000);
        }
    });
    csp_schedule();
    cr_assert_eq(late.load(sync::acquire), 0);
    cr_assert_eq(freed.load(sync::acquire), 3);
}

// Goal: a free that leaves something pinned is told of, and holds up nobody.
Test(EpochApi, a_free_that_pins, .timeout = 20) {
    World world;
    mc_epoch_node node;
    const auto pins = [](void *, mc_epoch_node *) { pin(); };
    cr_assert_eq(mc_epoch_retire(0, &node, pins, nullptr), MC_OK);
    barrier();
    cr_assert_eq(mc_epoch_retire(0, &node, pins, nullptr), MC_OK);
    wait_until([&] { return world.log.count(MC_E_CONTEXT) == 2; });
    {
        Many many(2);
        cr_assert_eq(mc_epoch_retire(0, &node, pins, nullptr), MC_OK);
        wait_until([&] { return world.log.count(MC_E_CONTEXT) == 3; });
        Chan chan;
        const mc_task_t task = start([&] { cr_assert_eq(chan.receive(), 5); });
        cr_assert_eq(chan.send(5), 1);
        join(task);
    }
    cr_assert_eq(mc_epoch_unpin(0), MC_E_INVAL);
    cr_assert_eq(world.log.count(MC_E_CONTEXT), 3);
    world.expected_lines = 3;
}

// Goal: executors that run nothing but short microthreads, one after another, free what those retire.
Test(EpochApi, short_microthreads_do_not_keep_it_up, .timeout = 60) {
    World world;
    Many many(2);
    sync::atomic<int> freed{0}, retired{0};
    int spawned = 0;
    for (const int64_t end = mc_after(200 * unit); mc_now() < end;) {
        ++spawned; // by one who may be far ahead of them
        spawn([&] {
            retire_one(freed);
            retired.fetch_add(1, sync::relaxed);
        });
        for (int i = 0; i < 200; ++i)
            sync::cpu_relax();
    }
    const int already = retired.load(sync::relaxed);
    cr_assert_gt(freed.load(sync::acquire), already / 4, "%d retired", already);
    csp_schedule();
    barrier();
    cr_assert_eq(freed.load(sync::acquire), spawned);
}

// Goal: what a log hook starts, when it is told who holds up the freeing, runs at once, not after the next pause.
Test(EpochApi, what_the_log_hook_starts_runs, .timeout = 20) {
    World world;
    Many many(2);
    static sync::atomic<int64_t> told_ns{0}, ran_ns{0};
    sync::atomic<int> freed{0};
    mc_set_log_hook(
        [](void *, int32_t, int32_t code, const char *) {
            int64_t never = 0;
            if (code == MC_E_BUSY && told_ns.compare_exchange_strong(never, mc_now(), sync::acq_rel, sync::relaxed))
                (void)start([] { ran_ns.store(mc_now(), sync::release); }, MC_SPAWN_PINNED);
        },
        nullptr);
    {
        Pinned other(false);
        retire_one(freed);
        wait_until([&] { return ran_ns.load(sync::acquire) != 0; });
    }
    mc_set_log_hook(nullptr, nullptr);
    cr_assert_lt(ran_ns.load(sync::acquire) - told_ns.load(sync::acquire), 500 * MC_MS);
    barrier();
}

// Goal: the owner that is held up while it waits tries again by itself.
Test(EpochApi, the_owner_tries_again, .timeout = 20) {
    World world;
    Chan chan;
    static csp_writer w;
    w = chan.w;
    sync::atomic<int> held{0};
    PosixThread thread([&] {
        pin();
        held.store(1, sync::release);
        const int64_t until = sync::now_ns() + 20 * MC_MS; // under a pin nothing waits
        while (sync::now_ns() < until)
            sync::thread_yield();
        unpin();
    });
    while (held.load(sync::acquire) == 0)
        sync::thread_yield();
    mc_epoch_node node;
    const auto send = [](void *, mc_epoch_node *) {
        spawn_at_tail([] {
            int value = 7;
            cr_assert_eq(csp_send(w, &value), 1);
        });
    };
    cr_assert_eq(mc_epoch_retire(0, &node, send, nullptr), MC_OK);
    int value = 0;
    cr_assert_eq(csp_recv_until(chan.r, &value, mc_after(15 * MC_SEC)), 1);
    csp_schedule();
}

// Goal: while something holds them up, executors with nothing else to do sleep more and more.
Test(EpochApi, held_up_executors_sleep, .timeout = 20) {
    if (mc::testing::under_valgrind)
        return;
    World world;
    Many many(3);
    sync::atomic<int> freed{0};
    {
        Pinned other(false);
        retire_one(freed);
        csp_sleep_until(mc_after(100 * MC_MS));
        rusage before, after;
        cr_assert_eq(getrusage(RUSAGE_SELF, &before), 0);
        csp_sleep_until(mc_after(1000 * MC_MS));
        cr_assert_eq(getrusage(RUSAGE_SELF, &after), 0);
        cr_assert_lt(after.ru_nvcsw - before.ru_nvcsw, 100, "waits of all threads in a second");
        cr_assert_eq(freed.load(sync::acquire), 0);
    }
    barrier();
    world.expected_lines = world.log.count(MC_E_BUSY);
}

// Goal: so do executors that sleep when what held them up is gone, without a word from it.
Test(EpochApi, executors_try_again, .timeout = 20) {
    World world;
    Many many(2);
    sync::atomic<int> freed{0};
    std::unique_ptr<Pinned> other(new Pinned());
    retire_one(freed);
    csp_sleep_until(mc_after(100 * unit)); // longer than a sentry's period
    cr_assert_eq(freed.load(sync::acquire), 0);
    other.reset();
    const int64_t end = sync::now_ns() + 10 * MC_SEC;
    while (freed.load(sync::acquire) == 0 && sync::now_ns() < end) // no call, which could wake them
        sync::thread_yield();
    cr_assert_eq(freed.load(sync::acquire), 1);
    world.expected_lines = world.log.count(MC_E_BUSY);
}

// Goal: a free may do what a program does where nothing may block: send, spawn, retire; and the one who waits for that
// is not told of a deadlock.
Test(EpochApi, frees_call_back, .timeout = 20) {
    World world;
    Chan chan, silent;
    static csp_writer w;
    static csp_reader nobodys;
    static int value;
    nobodys = silent.r;
    struct Sends {
        mc_epoch_node links{};
        int left = 3;
        static void free(void *user, mc_epoch_node *node) {
            auto *self = static_cast<Sends *>(user);
            cr_assert_eq(csp_recv(nobodys, &value), MC_E_CONTEXT);
            cr_assert_eq(mc_epoch_barrier(0, MC_FOREVER), MC_E_CONTEXT);
            cr_assert_eq(mc_epoch_advance(0), MC_E_CONTEXT);
            if (--self->left > 0) {
                cr_assert_eq(mc_epoch_retire(0, node, free, self), MC_OK);
                return;
            }
            spawn_at_tail([] { cr_assert_eq(csp_send(w, &value), 1); });
        }
    } sends;
    w = chan.w;
    value = 41;
    cr_assert_eq(mc_epoch_retire(0, &sends.links, Sends::free, &sends), MC_OK);
    cr_assert_eq(chan.receive(), 41);
    cr_assert_eq(sends.left, 0);
    sends.left = 3;
    csp_schedule(); // the sender ends
    {
        Many many(2);
        PosixThread([&] { cr_assert_eq(mc_epoch_retire(0, &sends.links, Sends::free, &sends), MC_OK); }).join();
        cr_assert_eq(chan.receive(), 41);
    }
}

// Goal: with a pin held nothing blocks and nothing gives up the turn, on whatever kind of stack.
Test(EpochApi, nothing_waits_with_a_pin, .timeout = 20) {
    World world;
    Chan chan;
    const auto refused = [&] {
        pin();
        pin();
        int message = 0;
        cr_assert_eq(csp_recv(chan.r, &message), MC_E_CONTEXT);
        cr_assert_eq(csp_send_until(chan.w, &message, mc_after(3600 * MC_SEC)), MC_E_CONTEXT);
        cr_assert_eq(csp_try_recv(chan.r, &message), 0);
        cr_assert_eq(mc_epoch_advance(0), MC_E_CONTEXT);
        unpin();
        cr_assert_eq(csp_recv(chan.r, &message), MC_E_CONTEXT);
        unpin();
        cr_assert_eq(mc_epoch_unpin(0), MC_E_INVAL);
        cr_assert_eq(csp_recv_until(chan.r, &message, mc_after(1)), MC_E_TIMEDOUT);
    };
    refused();
    PosixThread(refused).join();
    join(start(refused));
    Many many(2);
    refused();
    join(start(refused));
}

// Goal: a quantum does not end under a pin, and a yield does nothing.
Test(EpochApi, a_turn_lasts_under_a_pin, .timeout = 20) {
    World world;
    Many many(1);
    sync::atomic<int> other{0};
    const mc_task_t reader = start([&] {
        const mc_task_t task = start([&] { other.store(1, sync::release); });
        mc_chan_t elements = 0;
        cr_assert_eq(mc_chan_create(0, 4, 1, nullptr, nullptr, &elements), MC_OK);
        pin();
        for (uint32_t i = 0; i < 20'000; ++i) {
            cr_assert_eq(mc_send(elements, &i), MC_OK);
            cr_assert_eq(mc_recv(elements, nullptr), MC_OK);
            csp_yield();
            cr_assert_eq(mc_checkpoint(), MC_OK);
        }
        cr_assert_eq(other.load(sync::acquire), 0);
        unpin();
        join(task);
        cr_assert_eq(mc_chan_destroy(elements), MC_OK);
    });
    join(reader);
}

// Goal: who ends with a pin is unpinned, and a microthread that does so is told of.
Test(EpochApi, who_ends_is_unpinned, .timeout = 20) {
    World world;
    sync::atomic<int> freed{0};
    PosixThread([] { pin(); }).join();
    retire_one(freed);
    barrier();
    join(start([] {
        pin();
        pin();
    }));
    cr_assert_eq(world.log.count(MC_E_CONTEXT), 1);
    retire_one(freed);
    barrier();
    cr_assert_eq(mc_epoch_unpin(0), MC_E_INVAL);
    {
        Many many(2);
        join(start([] { pin(); }));
        retire_one(freed);
        barrier();
    }
    cr_assert_eq(world.log.count(MC_E_CONTEXT), 2);
    cr_assert_eq(freed.load(sync::acquire), 3);
    world.expected_lines = 2;
}

// Goal: a barrier outlasts all frees of what was retired before it, called from a thread, a microthread, the owner.
Test(EpochApi, barriers_outlast_the_frees, .timeout = 60) {
    World world;
    sync::atomic<int> freed{0};
    int retired = 0;
    const auto some = [&] {
        for (int i = 0; i < 100; ++i, ++retired)
            retire_one(freed);
        barrier();
        cr_assert_eq(freed.load(sync::acquire), retired);
    };
    some();
    join(start(some));
    PosixThread([&] {
        for (int i = 0; i < 10; ++i)
            some();
    }).join();
    for (const int n : executor_counts) {
        Many many(n);
        some();
        join(start(some));
    }
    some();
}

// Goal: what is left at a stop is freed afterwards, once, whether the executors had got to it or not.
Test(EpochApi, starts_and_stops_lose_nothing, .timeout = 60) {
    World world;
    sync::atomic<int> freed{0};
    int retired = 0;
    for (int i = 0; i < scaled(300); ++i) {
        cr_assert_eq(csp_init_runtime(1 + i % 3), 1);
        for (int k = 0; k < i % 5; ++k, ++retired)
            retire_one(freed);
        const mc_task_t task = start([&] {
            retire_one(freed);
            csp_yield();
            retire_one(freed);
        });
        retired += 2;
        join(task);
        sync::atomic<int> stop{0};
        for (int k = 0; k < 3; ++k)
            (void)start([&] {
                while (stop.load(sync::acquire) == 0) {
                    csp_yield();
                    if (mc::testing::under_valgrind) // which would keep the other threads away for seconds
                        sync::thread_yield();
                }
            });
        csp_sleep_until(mc_after(MC_MS / 5));
        retire_one(freed); // while executors work that are about to stop
        ++retired;
        csp_shutdown_runtime();
        stop.store(1, sync::release);
        csp_schedule();
        if (i % 7 == 0)
            csp_run();
    }
    barrier();
    cr_assert_eq(freed.load(sync::acquire), retired);
}

// Goal: who holds up the freeing is named: an executor whose microthread computes, a thread that has pinned; the log is
// told of it.
Test(EpochApi, who_stalls_is_named, .timeout = 60) {
    World world;
    Many many(2);
    sync::atomic<int> freed{0}, stop{0}, began{0};
    cr_assert_eq(Stalls().all.size(), 0u);
    const mc_task_t hog = start([&] {
        began.store(1, sync::release);
        while (stop.load(sync::acquire) == 0) // no call of the library's
            sync::cpu_relax();
    });
    wait_until([&] { return began.load(sync::acquire) == 1; });
    for (int i = 0; i < 3; ++i) // until it is the hog that the next one waits for
        (void)mc_epoch_advance(0);
    retire_one(freed);
    wait_until([&] { return Stalls().all.size() == 1; });
    mc_epoch_stall stall = Stalls().all[0];
    cr_assert_eq(stall.kind, MC_EPOCH_STALL_EXECUTOR);
    cr_assert_eq(std::strncmp(stall.name, "executor ", 9), 0, "%s", stall.name);
    cr_assert_eq(Stalls(3600 * MC_SEC).all.size(), 0u);
    wait_until([&] { return world.log.count(MC_E_BUSY) >= 1; });
    cr_assert_geq(Stalls(MC_SEC).all.size(), 1u);
    cr_assert_eq(freed.load(sync::acquire), 0);
    stop.store(1, sync::release);
    join(hog);
    barrier();
    cr_assert_eq(freed.load(sync::acquire), 1);

    {
        Pinned thread;
        (void)mc_epoch_advance(0);
        wait_until([&] {
            (void)mc_epoch_advance(0);
            const Stalls stalls;
            for (const mc_epoch_stall &each : stalls.all)
                if (each.kind == MC_EPOCH_STALL_PIN) {
                    stall = each;
                    return true;
                }
            return false;
        });
        cr_assert_eq(std::strncmp(stall.name, "thread ", 7), 0, "%s", stall.name);
    }
    world.expected_lines = world.log.count(MC_E_BUSY);
}

// Goal: the hook is told of each epoch, in order, until it is removed; what it or a free throws goes to the log.
Test(EpochApi, hooks, .timeout = 20) {
    World world;
    static std::vector<uint64_t> epochs;
    cr_assert_eq(mc_epoch_set_hook(
                     0,
                     [](void *user, uint64_t epoch) { static_cast<std::vector<uint64_t> *>(user)->push_back(epoch); },
                     &epochs),
                 MC_OK);
    for (int i = 0; i < 5; ++i)
        cr_assert_eq(mc_epoch_advance(0), MC_OK);
    cr_assert_eq(epochs.size(), 5u);
    for (size_t i = 1; i < 5; ++i)
        cr_assert_eq(epochs[i], epochs[0] + i);
    cr_assert_eq(mc_epoch_set_hook(
                     0, [](void *, uint64_t) { throw std::runtime_error("hook"); }, nullptr),
                 MC_OK);
    mc_epoch_node node;
    cr_assert_eq(mc_epoch_retire(
                     0, &node, [](void *, mc_epoch_node *) { throw 1; }, nullptr),
                 MC_OK);
    cr_assert_eq(mc_epoch_advance(0), MC_OK);
    cr_assert_eq(mc_epoch_set_hook(0, nullptr, nullptr), MC_OK);
    cr_assert_eq(mc_epoch_advance(0), MC_OK);
    cr_assert_eq(epochs.size(), 5u);
    cr_assert_eq(world.log.count(MC_E_CRASHED), 2);
    world.expected_lines = 2;
}

// Goal: bad input is refused.
Test(EpochApi, bad_input, .timeout = 20) {
    World world;
    mc_epoch_node node;
    const auto free = [](void *, mc_epoch_node *) {};
    const auto each = [](void *, const mc_epoch_stall *) {};
    cr_assert_eq(mc_epoch_retire(0, nullptr, free, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_epoch_retire(0, &node, nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_epoch_retire(77, &node, free, nullptr), MC_E_STALE);
    cr_assert_eq(mc_epoch_pin(77), MC_E_STALE);
    cr_assert_eq(mc_epoch_unpin(77), MC_E_STALE);
    cr_assert_eq(mc_epoch_unpin(0), MC_E_INVAL);
    cr_assert_eq(mc_epoch_advance(77), MC_E_STALE);
    cr_assert_eq(mc_epoch_barrier(77, MC_NOW), MC_E_STALE);
    cr_assert_eq(mc_epoch_set_hook(77, nullptr, nullptr), MC_E_STALE);
    cr_assert_eq(mc_epoch_each_stall(0, 0, nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_epoch_each_stall(77, 0, each, nullptr), MC_E_STALE);
}

// Goal: a table that microthreads and threads read without a lock while others replace what is in it: nobody meets what
// is freed, and in the end all is freed.
Test(EpochApi, a_table_read_without_locks, .timeout = 120) {
    World world;
    constexpr int slots = 16;
    const int rounds = scaled(100'000);
    sync::atomic<int> freed{0};
    sync::atomic<int> made{0};
    sync::atomic<Node *> table[slots];
    for (auto &slot : table) {
        slot.store(new Node(freed), sync::release);
        made.fetch_add(1, sync::relaxed);
    }
    {
        Many many(3);
        const auto work = [&](uint64_t seed) {
            base::Prng prng(seed);
            for (int i = 0; i < rounds; ++i) {
                auto &slot = table[prng.below(slots)];
                if (prng.below(4) == 0) {
                    made.fetch_add(1, sync::relaxed);
                    slot.exchange(new Node(freed), sync::acq_rel)->retire();
                } else {
                    pin();
                    const Node *node = slot.load(sync::acquire);
                    cr_assert_eq(node->canary, Node::alive);
                    unpin();
                }
                if (i % 64 == 0)
                    csp_yield();
            }
        };
        std::vector<mc_task_t> tasks;
        for (uint64_t i = 0; i < 6; ++i)
            tasks.push_back(start([&work, i] { work(i); }));
        PosixThread thread([&] { work(100); });
        work(200);
        for (const mc_task_t task : tasks)
            join(task);
        thread.join();
        for (auto &slot : table)
            slot.load(sync::acquire)->retire();
        barrier();
    }
    cr_assert_eq(freed.load(sync::acquire), made.load(sync::acquire));
}

// Goal: a million handles made and destroyed while others use them: each use meets its channel or is stale.
Test(EpochApi, a_million_handles, .timeout = 240) {
    World world;
    constexpr int slots = 64;
    constexpr int makers = 4;
    const int each = scaled(250'000);
    sync::atomic<uint64_t> handles[slots] = {};
    sync::atomic<int> making{makers};
    {
        Many many(3);
        const auto make = [&](uint64_t seed) {
            base::Prng prng(seed);
            for (int i = 0; i < each; ++i) {
                mc_chan_t chan = 0;
                uint64_t tag = seed << 32 | static_cast<uint32_t>(i);
                cr_assert_eq(mc_chan_create(0, sizeof tag, 2, nullptr, nullptr, &chan), MC_OK);
                cr_assert_eq(mc_send(chan, &tag), MC_OK);
                const uint64_t before = handles[prng.below(slots)].exchange(chan, sync::acq_rel);
                if (before != 0)
                    cr_assert_eq(mc_chan_destroy(before), MC_OK, "somebody else has destroyed it");
            }
            making.fetch_sub(1, sync::acq_rel);
        };
        const auto use = [&](uint64_t seed) {
            base::Prng prng(seed);
            uint64_t last = 0;
            const int most = mc::testing::under_valgrind ? 1000 : INT32_MAX; // there they would keep the makers away
            for (int i = 0; i < most && making.load(sync::acquire) != 0; ++i) {
                const uint64_t handle = prng.below(8) == 0 ? last : handles[prng.below(slots)].load(sync::acquire);
                last = handle;
                uint64_t tag = 0;
                const int32_t got = mc_recv_try(handle, &tag);
                cr_assert(got == MC_OK || got == MC_E_AGAIN || got == MC_E_STALE || got == MC_E_CLOSED, "%d", got);
                if (got == MC_OK) {
                    const int32_t put = mc_send_try(handle, &tag);
                    cr_assert(put == MC_OK || put == MC_E_STALE || put == MC_E_CLOSED || put == MC_E_AGAIN, "%d", put);
                }
                csp_yield();
            }
        };
        std::vector<mc_task_t> tasks;
        for (uint64_t i = 1; i < makers; ++i)
            tasks.push_back(start([&make, i] { make(i); }));
        for (uint64_t i = 10; i < 13; ++i)
            tasks.push_back(start([&use, i] { use(i); }));
        PosixThread user([&] { use(20); });
        make(makers);
        for (const mc_task_t task : tasks)
            join(task);
        user.join();
        for (auto &handle : handles)
            if (handle.load(sync::acquire) != 0)
                cr_assert_eq(mc_chan_destroy(handle.load(sync::acquire)), MC_OK);
    }
}
