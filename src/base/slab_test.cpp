// Slabs: addresses, reuse, memory that runs out. Handles are in handle_test.cpp, races in slab_sys_test.cpp.
#include "base/slab.hpp"

#include "base/prng.hpp"
#include "testing/test.hpp"

#include <cstdlib>
#include <deque>
#include <set>
#include <vector>

using namespace mc;
using base::Slab;
using base::SlabItem;

namespace {

struct Node : SlabItem<Node> {
    static inline int constructed = 0;
    static inline int destroyed = 0;
    Node() { ++constructed; }
    ~Node() { ++destroyed; }
    uint64_t value = 0;
};

struct alignas(64) Wide : SlabItem<Wide> {
    char bytes[100] = {};
};

// The host's memory, which can be made to run out.
struct Memory {
    static inline int64_t left = INT64_MAX; // blocks
    static inline int64_t blocks = 0;

    static void *alloc(void *, uint64_t size, uint64_t align) {
        if (left == 0)
            return nullptr;
        --left;
        ++blocks;
        return std::aligned_alloc(align, (size + align - 1) / align * align);
    }
    static void free(void *, void *ptr, uint64_t, uint64_t) { std::free(ptr); }
    static void use() {
        mc_allocator allocator = MC_ALLOCATOR_INIT;
        allocator.alloc = alloc;
        allocator.free = free;
        cr_assert_eq(base::set_allocator(allocator), MC_OK);
    }
};

} // namespace

// Goal: an index gives its object's address, over all borders between chunks, and the addresses stay: stale handles
// rely on that.
Test(Slab, index_gives_the_address) {
    static Slab<Node> slab;
    std::vector<Node *> nodes;
    constexpr uint32_t count = 200'000; // the growing chunks, and the first three of the largest size
    for (uint32_t i = 0; i < count; ++i) {
        cr_assert_null(slab.at(i));
        nodes.push_back(slab.acquire());
        cr_assert_eq(nodes[i]->slab_index, i);
        cr_assert_eq(slab.carved(), i + 1);
    }
    std::set<Node *> distinct(nodes.begin(), nodes.end());
    cr_assert_eq(distinct.size(), count);
    for (uint32_t i = 0; i < count; ++i)
        cr_assert_eq(slab.at(i), nodes[i]);
    for (uint32_t beyond : {count, count + 1, slab.max_items - 1, slab.max_items, UINT32_MAX})
        cr_assert_null(slab.at(beyond));
}

// Goal: objects keep their type's alignment, also in the middle of a chunk.
Test(Slab, objects_are_aligned) {
    static Slab<Wide> slab;
    for (int i = 0; i < 1000; ++i)
        cr_assert_eq(reinterpret_cast<uintptr_t>(slab.acquire()) % 64, 0u);
}

// Goal: constructed once, when carved, and never destroyed: a free object is still an object, and a reused one comes as
// it was left.
Test(Slab, objects_live_for_ever) {
    static Slab<Node> slab;
    Node *node = slab.acquire();
    node->value = 42;
    slab.release(node);
    cr_assert_eq(slab.at(node->slab_index)->value, 42u);
    cr_assert_eq(slab.acquire(), node);
    cr_assert_eq(node->value, 42u);
    cr_assert_eq(Node::constructed, 1);
    cr_assert_eq(Node::destroyed, 0);
}

// Goal: without a quarantine, the warmest object is reused first, and nothing is carved while any is free.
Test(Slab, reuses_last_in_first_out) {
    static Slab<Node> slab;
    Node *nodes[10];
    for (Node *&node : nodes)
        node = slab.acquire();
    for (Node *node : nodes)
        slab.release(node);
    for (int i = 9; i >= 0; --i)
        cr_assert_eq(slab.acquire(), nodes[i]);
    cr_assert_eq(slab.carved(), 10u);
}

// Goal: with a quarantine of four, an object is reused only while more than four are free, the longest free one first.
Test(Slab, quarantine_reuses_the_oldest) {
    static Slab<Node, 4> slab;
    std::deque<Node *> free;
    std::vector<Node *> used;
    base::Prng prng(1);
    uint32_t carved = 0;
    for (int step = 0; step < 100'000; ++step) {
        if (!used.empty() && prng.below(2) == 0) {
            const size_t at = prng.below(static_cast<uint32_t>(used.size()));
            free.push_back(used[at]);
            slab.release(used[at]);
            used.erase(used.begin() + static_cast<ptrdiff_t>(at));
            continue;
        }
        Node *node = slab.acquire();
        if (free.size() > 4) {
            cr_assert_eq(node, free.front());
            free.pop_front();
        } else {
            cr_assert_eq(node->slab_index, carved++);
        }
        used.push_back(node);
    }
    cr_assert_eq(slab.carved(), carved);
}

// Goal: a cache takes from its own without touching the slab, refills by what is free, spills by halves, and flush
// gives all back.
Test(Slab, cache_works_in_batches) {
    static Slab<Node> slab;
    Slab<Node>::Cache mine;
    Slab<Node>::Cache other;
    Node *nodes[200];
    for (Node *&node : nodes)
        node = slab.acquire(mine);
    cr_assert_eq(slab.carved(), 200u, "an untouched object costs memory: carve one at a time");
    for (int i = 0; i < 63; ++i)
        slab.release(mine, nodes[i]);
    cr_assert_neq(slab.acquire(other), nodes[62]); // all 63 are still mine
    cr_assert_eq(slab.carved(), 201u);
    for (int i = 63; i < 200; ++i)
        slab.release(mine, nodes[i]);
    std::set<Node *> taken;
    while (slab.carved() == 201)
        taken.insert(slab.acquire(other));
    cr_assert_geq(taken.size(), 136u); // mine kept fewer than two batches
    slab.flush(mine);
    const size_t before = taken.size();
    while (slab.carved() <= 202)
        taken.insert(slab.acquire(other));
    cr_assert_eq(taken.size() - before, 200u - (before - 1) + 1);
}

// Goal: what a cache has, it gives last in, first out, and a flush of an empty one does nothing.
Test(Slab, cache_reuses_the_warmest) {
    static Slab<Node> slab;
    Slab<Node>::Cache cache;
    slab.flush(cache);
    Node *first = slab.acquire(cache);
    Node *second = slab.acquire(cache);
    slab.release(cache, first);
    slab.release(cache, second);
    cr_assert_eq(slab.acquire(cache), second);
    cr_assert_eq(slab.acquire(cache), first);
}

// Goal: without memory acquire says so, keeps what it has, and works again when there is some.
Test(Slab, runs_out_of_memory_and_recovers) {
    Memory::use();
    static Slab<Node> slab;
    Slab<Node>::Cache cache;
    Memory::left = 1; // the first chunk: 64 objects
    std::vector<Node *> nodes;
    while (Node *node = slab.acquire())
        nodes.push_back(node);
    cr_assert_eq(nodes.size(), 64u);
    cr_assert_null(slab.acquire());
    cr_assert_null(slab.acquire(cache));
    cr_assert_eq(slab.carved(), 64u);
    slab.release(nodes[3]);
    cr_assert_eq(slab.acquire(cache), nodes[3]);
    Memory::left = 1;
    cr_assert_eq(slab.acquire()->slab_index, 64u);
    cr_assert_eq(slab.at(63), nodes[63]);
}

// Goal: without memory an object out of quarantine is better than none.
Test(Slab, quarantine_gives_way_without_memory) {
    Memory::use();
    static Slab<Node, 16> slab;
    Memory::left = 1;
    Node *nodes[64];
    for (Node *&node : nodes)
        node = slab.acquire();
    slab.release(nodes[5]);
    slab.release(nodes[6]);
    cr_assert_eq(slab.acquire(), nodes[5]);
    cr_assert_eq(slab.acquire(), nodes[6]);
    cr_assert_null(slab.acquire());
}

namespace {

// Gives the same block again and again, so that a slab can be filled to its very end: its objects lie on top of each
// other, which only this test can bear.
struct Endless {
    static inline void *block = nullptr;
    static void *alloc(void *, uint64_t size, uint64_t) {
        if (block == nullptr)
            block = std::aligned_alloc(4096, 65'536 * sizeof(SlabItem<Node>) * 4);
        cr_assert_leq(size, 65'536 * sizeof(SlabItem<Node>) * 4);
        return block;
    }
    static void free(void *, void *, uint64_t, uint64_t) {}
};

struct Tiny : SlabItem<Tiny> {};

} // namespace

// Goal: the 2^28 objects that an index can name are all there are; the next acquire fails. Takes 2^28 steps, so only in
// long runs.
Test(Slab, ends_with_its_last_index, .timeout = 300) {
    if (mc::testing::scale() == 1 || mc::testing::under_tsan || mc::testing::under_asan || mc::testing::under_valgrind)
        return;
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = Endless::alloc;
    allocator.free = Endless::free;
    cr_assert_eq(base::set_allocator(allocator), MC_OK);
    static Slab<Tiny> slab;
    for (uint32_t i = 0; i < slab.max_items; ++i)
        cr_assert(slab.acquire() != nullptr);
    cr_assert_null(slab.acquire());
    cr_assert_not_null(slab.at(slab.max_items - 1));
    cr_assert_null(slab.at(slab.max_items));
}

namespace {

struct Owned : SlabItem<Owned> {
    sync::atomic<uint32_t> owners{0};
};

struct Shared {
    Slab<Owned> slab;
    sync::atomic<uint32_t> number{0};
    int rounds = 0;

    static void run(void *self) {
        auto &me = *static_cast<Shared *>(self);
        base::Prng prng(me.number.fetch_add(1, sync::relaxed));
        Slab<Owned>::Cache cache;
        const bool cached = prng.below(2) == 0;
        std::vector<Owned *> held;
        for (int i = 0; i < me.rounds; ++i) {
            if (held.size() < 100 && (held.empty() || prng.below(2) == 0)) {
                Owned *item = cached ? me.slab.acquire(cache) : me.slab.acquire();
                cr_assert_eq(item->owners.fetch_add(1, sync::relaxed), 0u, "an object has two owners");
                cr_assert_eq(me.slab.at(item->slab_index), item);
                held.push_back(item);
            } else {
                Owned *item = held.back();
                held.pop_back();
                item->owners.store(0, sync::relaxed);
                cached ? me.slab.release(cache, item) : me.slab.release(item);
            }
        }
        for (Owned *item : held) {
            item->owners.store(0, sync::relaxed);
            me.slab.release(item);
        }
        me.slab.flush(cache);
    }
};

} // namespace

// Goal: four threads, with caches and without: no object has two owners, and none is lost.
Test(Slab, threads_share_it) {
    static Shared shared;
    shared.rounds = 100'000 * static_cast<int>(mc::testing::scale());
    sync::thread threads[4];
    for (sync::thread &thread : threads)
        cr_assert(thread.start(Shared::run, &shared));
    for (sync::thread &thread : threads)
        thread.join();
    const uint32_t carved = shared.slab.carved();
    cr_assert_leq(carved, 4u * (100 + 64));
    std::set<Owned *> all;
    for (uint32_t i = 0; i < carved; ++i)
        all.insert(shared.slab.acquire());
    cr_assert_eq(all.size(), carved);
    cr_assert_eq(shared.slab.carved(), carved, "an object was lost");
}
