// The allocator hook: a host's allocator gets everything or nothing, and what it returns goes back to it.
#include "base/alloc.hpp"

#include "base/sync.hpp"
#include "testing/test.hpp"

#include <cstdlib>
#include <map>

using namespace mc;

namespace {

// A host's allocator that remembers what it gave out.
struct Ledger {
    struct Block {
        uint64_t size;
        uint64_t align;
    };
    std::map<void *, Block> live;
    int calls = 0;
    bool fails = false;

    static void *alloc(void *user, uint64_t size, uint64_t align) {
        auto *self = static_cast<Ledger *>(user);
        ++self->calls;
        if (self->fails)
            return nullptr;
        void *ptr = std::aligned_alloc(align, (size + align - 1) / align * align);
        self->live[ptr] = Block{size, align};
        return ptr;
    }
    static void free(void *user, void *ptr, uint64_t size, uint64_t align) {
        auto *self = static_cast<Ledger *>(user);
        const auto found = self->live.find(ptr);
        cr_assert(found != self->live.end(), "the host gets back what it did not give");
        cr_assert_eq(found->second.size, size);
        cr_assert_eq(found->second.align, align);
        self->live.erase(found);
        std::free(ptr);
    }
    mc_allocator hook() {
        mc_allocator allocator = MC_ALLOCATOR_INIT;
        allocator.alloc = alloc;
        allocator.free = free;
        allocator.user = this;
        return allocator;
    }
};

struct Counted {
    static inline int alive = 0;
    explicit Counted(int v) : value(v) { ++alive; }
    ~Counted() { --alive; }
    int value;
    alignas(64) char line[64];
};

} // namespace

// Goal: every allocation goes to the host with its size and alignment, and goes back with the same.
Test(Alloc, host_allocator_gets_everything) {
    Ledger ledger;
    cr_assert_eq(base::set_allocator(ledger.hook()), MC_OK);
    void *plain = base::allocate(24, 8);
    void *aligned = base::allocate(100, 4096);
    cr_assert_eq(reinterpret_cast<uintptr_t>(aligned) % 4096, 0u);
    auto *array = base::allocate_array<uint64_t>(1000);
    auto *object = base::create<Counted>(7);
    cr_assert_eq(ledger.live.size(), 4u);
    cr_assert_eq(object->value, 7);
    base::deallocate(plain, 24, 8);
    base::deallocate(aligned, 100, 4096);
    base::deallocate_array(array, 1000);
    base::destroy(object);
    cr_assert_eq(ledger.live.size(), 0u);
    cr_assert_eq(ledger.calls, 4);
}

// Goal: once memory has been given out, another allocator would free what it did not give: it is refused.
Test(Alloc, set_after_the_first_allocation_is_busy) {
    Ledger ledger;
    void *before = base::allocate(1, 1);
    cr_assert_eq(base::set_allocator(ledger.hook()), MC_E_BUSY);
    void *after = base::allocate(1, 1);
    base::deallocate(before, 1, 1);
    base::deallocate(after, 1, 1);
    cr_assert_eq(ledger.calls, 0);
}

// Goal: the first of two allocators stays.
Test(Alloc, second_allocator_is_busy) {
    Ledger first;
    Ledger second;
    cr_assert_eq(base::set_allocator(first.hook()), MC_OK);
    cr_assert_eq(base::set_allocator(second.hook()), MC_E_BUSY);
    base::deallocate(base::allocate(8, 8), 8, 8);
    cr_assert_eq(first.calls, 1);
    cr_assert_eq(second.calls, 0);
}

// Goal: a host without memory is an answer, not a crash; nothing is constructed in it.
Test(Alloc, failing_host_gives_null) {
    Ledger ledger;
    ledger.fails = true;
    cr_assert_eq(base::set_allocator(ledger.hook()), MC_OK);
    cr_assert_null(base::allocate(8, 8));
    cr_assert_null(base::allocate_array<int>(3));
    cr_assert_null(base::create<Counted>(1));
    cr_assert_eq(Counted::alive, 0);
    base::deallocate(nullptr, 8, 8); // what failed may be given back all the same
    base::destroy<Counted>(nullptr);
}

// Goal: without a host, memory is aligned as asked, and objects end with their destructors.
Test(Alloc, plain_memory_is_aligned) {
    for (size_t align = 1; align <= 1u << 16; align *= 2) {
        void *ptr = base::allocate(3 * align, align);
        cr_assert_eq(reinterpret_cast<uintptr_t>(ptr) % align, 0u);
        std::memset(ptr, 0xa5, 3 * align);
        base::deallocate(ptr, 3 * align, align);
    }
    auto *object = base::create<Counted>(7);
    cr_assert_eq(reinterpret_cast<uintptr_t>(object) % 64, 0u);
    cr_assert_eq(Counted::alive, 1);
    base::destroy(object);
    cr_assert_eq(Counted::alive, 0);
}

namespace {

struct Race {
    sync::atomic<uint32_t> ready{0};
    sync::atomic<uint32_t> from_host{0};
    sync::atomic<uint32_t> freed{0};
    sync::atomic<int32_t> status{1};

    static void *alloc(void *user, uint64_t size, uint64_t) {
        static_cast<Race *>(user)->from_host.fetch_add(1, sync::relaxed);
        return std::malloc(size);
    }
    static void free(void *user, void *ptr, uint64_t, uint64_t) {
        static_cast<Race *>(user)->freed.fetch_add(1, sync::relaxed);
        std::free(ptr);
    }
    void start_together() {
        ready.fetch_add(1, sync::relaxed);
        while (ready.load(sync::relaxed) != 3)
            sync::cpu_relax();
    }
};

} // namespace

// Goal: setting the allocator while others allocate for the first time either wins, and serves all, or is refused.
Test(Alloc, setting_races_the_first_allocations) {
    static Race race;
    const auto allocates = [](void *) {
        race.start_together();
        for (int i = 0; i < 100; ++i)
            base::deallocate(base::allocate(16, 8), 16, 8);
    };
    sync::thread setter;
    sync::thread users[2];
    cr_assert(setter.start(
        [](void *) {
            mc_allocator allocator = MC_ALLOCATOR_INIT;
            allocator.alloc = Race::alloc;
            allocator.free = Race::free;
            allocator.user = &race;
            race.start_together();
            race.status.store(base::set_allocator(allocator), sync::relaxed);
        },
        nullptr));
    for (sync::thread &user : users)
        cr_assert(user.start(allocates, nullptr));
    setter.join();
    for (sync::thread &user : users)
        user.join();
    const int32_t status = race.status.load(sync::relaxed);
    cr_assert(status == MC_OK || status == MC_E_BUSY);
    cr_assert_eq(race.from_host.load(sync::relaxed), status == MC_OK ? 200u : 0u);
    cr_assert_eq(race.freed.load(sync::relaxed), race.from_host.load(sync::relaxed));
}
