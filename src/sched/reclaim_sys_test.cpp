// Reclamation in the twin: what is retired is freed though nobody asks again, and not before its last reader is done. If
// nobody frees it, all is blocked.
#include "sched/test_pool.hpp"

#include <functional>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;
using mc::testing::check;

namespace {

struct Node : base::EpochNode {
    sync::atomic<uint32_t> freed{0};
    mc::testing::Data<int> content;

    static void free(base::EpochNode *node) noexcept {
        auto &self = *static_cast<Node *>(node);
        self.content.set(-1); // a race with who still reads
        self.freed.store(1, sync::release);
        sync::futex_wake(self.freed, 1);
    }
    void wait() {
        while (freed.load(sync::acquire) == 0)
            (void)sync::futex_wait(freed, 0, sync::no_deadline);
    }
};

void retire_from_here(Node &node) { retire(here(), &node, Node::free); }

// As explore_pool; but no sleeper wakes for no reason, which would hide that nobody woke it.
void explore_sleepers(const char *name, uint64_t seeds, const std::function<void()> &body) {
    mc::testing::expect_pass({.name = name,
                              .search = mc::testing::Search::seeds,
                              .stale = 0,
                              .timeouts = 0,
                              .spurious = 0,
                              .max_steps = 60'000,
                              .seeds = seeds * mc::testing::scale(),
                              .isolate = true,
                              .real_runs = 100},
                             body);
}

// What lies in a shared place, for readers; whoever takes it out retires it.
struct Place {
    explicit Place(Node &node) : found(&node) { node.content.set(1); }
    sync::atomic<Node *> found;

    void read() {
        Reading reading(here());
        if (Node *node = found.load(sync::acquire))
            check(node->content.get() == 1, "freed under a reader");
    }
    void take_out() {
        if (Node *node = found.exchange(nullptr, sync::acq_rel))
            retire_from_here(*node);
    }
};

} // namespace

// Goal: a foreign thread's is freed by executors that sleep, or are about to.
Test(ReclaimSys, sleepers_free_what_a_thread_retires, .timeout = 120) {
    explore_sleepers("ReclaimSys/sleepers_free_what_a_thread_retires", 600, [] {
        Node nodes[3];
        start_many(2);
        for (Node &node : nodes) {
            retire_from_here(node);
            node.wait();
            (void)sleep_until(here(), in_ns(200'000), nullptr); // all have gone to sleep, most likely
        }
        stop_many();
    });
}

// Goal: the same when it comes at any moment while the last executor lies down, the bell still ringing from before.
Test(ReclaimSys, who_lies_down_hears_the_bell, .timeout = 120) {
    explore_pool_with_one_preemption("ReclaimSys/who_lies_down_hears_the_bell", [] {
        Node first;
        Node second;
        start_many(1);
        (void)sleep_until(here(), in_ns(200'000), nullptr); // it sleeps, and no wake-up is left over
        retire_from_here(first);
        first.wait();
        retire_from_here(second);
        second.wait();
        stop_many();
    });
}

// Goal: a microthread's too, wherever it has run.
Test(ReclaimSys, what_a_microthread_retires_is_freed, .timeout = 120) {
    explore_sleepers("ReclaimSys/what_a_microthread_retires_is_freed", 400, [] {
        Node node;
        start_many(2);
        const mc_task_t task = spawn_one([&] {
            retire_from_here(node);
            return MC_OK;
        });
        check(result_of(task) == MC_OK, "not run");
        node.wait();
        stop_many();
    });
}

// Goal: nothing is freed under a reader: two microthreads and a thread read, a microthread takes out.
Test(ReclaimSys, not_under_a_reader, .timeout = 180) {
    explore_pool("ReclaimSys/not_under_a_reader", 600, [] {
        Node node;
        Place place(node);
        start_many(2);
        const auto read = [&] {
            place.read();
            yield();
            place.read();
            return MC_OK;
        };
        const mc_task_t readers[] = {spawn_one(read), spawn_one(read)};
        const mc_task_t writer = spawn_one([&] {
            place.take_out();
            return MC_OK;
        });
        place.read();
        for (const mc_task_t task : readers)
            check(result_of(task) == MC_OK, "not run");
        check(result_of(writer) == MC_OK, "not run");
        node.wait();
        stop_many();
    });
}

// Goal: nor alone, where the owner reads, and a thread reads, takes out and frees.
Test(ReclaimSys, not_under_the_owner_that_reads, .timeout = 180) {
    explore_pool("ReclaimSys/not_under_the_owner_that_reads", 600, [] {
        Node node;
        Place place(node);
        (void)here(); // owner
        mc::testing::Thread other(
            [&] {
                place.read();
                place.take_out();
                for (int i = 0; i < 3; ++i)
                    (void)advance_epoch(here());
            },
            "other");
        for (int i = 0; i < 3; ++i)
            place.read();
        other.join();
        for (int i = 0; i < 2; ++i)
            check(advance_epoch(here()) == MC_OK, "held up by nobody");
        check(node.freed.load(sync::relaxed) == 1, "not freed");
    });
}

// Goal: nor under a thread, while the owner frees.
Test(ReclaimSys, not_under_a_thread_that_reads, .timeout = 180) {
    explore_pool("ReclaimSys/not_under_a_thread_that_reads", 600, [] {
        Node node;
        Place place(node);
        (void)here(); // owner
        mc::testing::Thread other(
            [&] {
                for (int i = 0; i < 3; ++i)
                    place.read();
            },
            "other");
        place.take_out();
        for (int i = 0; i < 3; ++i)
            (void)advance_epoch(here());
        other.join();
        for (int i = 0; i < 2; ++i)
            check(advance_epoch(here()) == MC_OK, "held up by nobody");
        check(node.freed.load(sync::relaxed) == 1, "not freed");
    });
}

// Goal: the owner that waits for what only a free will do is not told of a deadlock, though the thread that has retired it
// waits too by then.
Test(ReclaimSys, a_free_is_no_deadlock, .timeout = 180) {
    struct Opens : base::EpochNode {
        Gate *gate = nullptr;
        static void free(base::EpochNode *node) noexcept { static_cast<Opens *>(node)->gate->release(); }
    };
    explore_pool_with_one_preemption("ReclaimSys/a_free_is_no_deadlock", [] {
        Gate mine;
        Gate its;
        Opens opens;
        opens.gate = &mine;
        (void)here(); // owner
        mc::testing::Thread other(
            [&] {
                retire(here(), &opens, Opens::free);
                check(its.acquire() == MC_OK, "woken for nothing");
            },
            "other");
        check(mine.acquire() == MC_OK, "a deadlock, while a free is to come");
        its.release();
        other.join();
    });
}

// Goal: the bell alone, with loads that read old values: who rings is heard.
Test(ReclaimSys, the_bell_is_heard, .timeout = 60) {
    mc::testing::expect_pass({.name = "ReclaimSys/the_bell_is_heard", .preemptions = 3, .stale = 3, .spurious = 0}, [] {
        Reclaimer reclaimer;
        base::EpochNode nodes[2];
        const auto free = [](base::EpochNode *) noexcept {};
        sync::atomic<uint32_t> woken{0};
        mc::testing::Thread retires(
            [&] {
                for (base::EpochNode &node : nodes) {
                    reclaimer.domain().retire(&node, free);
                    if (reclaimer.ring())
                        woken.fetch_add(1, sync::seq_cst);
                }
            },
            "retires");
        // An executor that goes to sleep as reclaim_before_sleep does, and lies down for good when it finds nothing.
        const uint32_t before = woken.load(sync::acquire);
        for (int i = 0; i < 2; ++i)
            (void)reclaimer.domain().advance(); // of what it was woken for
        const bool sleeps = !reclaimer.pending() && !(reclaimer.silence() && reclaimer.pending());
        retires.join();
        if (sleeps && reclaimer.pending())
            check(woken.load(sync::relaxed) != before, "asleep with something to free, and nobody woke it");
        check(reclaimer.domain().drain(sync::no_deadline), "not drained");
    });
}
