// Reclamation in the twin: what is retired is freed though nobody asks again, and not before its last reader is done. If
// nobody frees it, all is blocked.
#include "sched/test_pool.hpp"

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
    explore_pool("ReclaimSys/sleepers_free_what_a_thread_retires", 400, [] {
        Node first;
        Node second;
        start_many(2);
        retire_from_here(first);
        first.wait();
        retire_from_here(second);
        second.wait();
        stop_many();
    });
}

// Goal: a microthread's too, wherever it has run.
Test(ReclaimSys, what_a_microthread_retires_is_freed, .timeout = 120) {
    explore_pool("ReclaimSys/what_a_microthread_retires_is_freed", 400, [] {
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

// Goal: nor alone, where the owner and a thread read and the thread takes out while the owner frees.
Test(ReclaimSys, not_under_a_reader_alone, .timeout = 180) {
    explore_pool("ReclaimSys/not_under_a_reader_alone", 600, [] {
        Node node;
        Place place(node);
        (void)here(); // owner
        mc::testing::Thread other(
            [&] {
                place.read();
                place.take_out();
            },
            "other");
        for (int i = 0; i < 2; ++i) {
            place.read();
            (void)advance_epoch(here());
        }
        other.join();
        for (int i = 0; i < 2; ++i)
            check(advance_epoch(here()) == MC_OK, "held up by nobody");
        check(node.freed.load(sync::relaxed) == 1, "not freed");
    });
}
