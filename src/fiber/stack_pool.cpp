#include "fiber/stack_pool.hpp"

#include "base/assert.hpp"
#include "fiber/sanitizer.hpp"

#include <algorithm>
#include <cstring>

namespace mc::fiber {

namespace {

constexpr uint32_t kCarveBatch = kPageBatch;

struct Pool {
    sync::mutex lock;
    // Guarded by lock.
    Slab *hottest = nullptr; // slabs with a stack to hand out; a release moves its slab to the hot end
    Slab *coldest = nullptr;
    // Colder ones have no warm stack; null: none has. Where a trim begins, lest it walk past all that it has trimmed.
    Slab *coldest_warm = nullptr;
    uint64_t slabs = 0;
    uint64_t carved = 0; // stacks ever listed
    uint64_t free = 0;   // of those: in no hands
    uint64_t warm = 0;   // of those: with memory
    uint64_t outside() const { return carved - free; }
};
Pool pools[kStackClasses];

// When something is to be given back; INT64_MAX: nothing is. Set under the lock of a class that has become too warm, if
// nobody has done so before; reset by stack_trim_aged before it takes those locks, so that one of the two sees the other.
// relaxed: the locks order it.
sync::atomic<int64_t> trim_due_ns{INT64_MAX};
// How many slabs that had been used have made room: for who found none meanwhile. relaxed: it only decides whether to try again.
sync::atomic<uint64_t> slabs_unmapped{0};
constexpr uint32_t slabs_at_a_time = 1; // of each class, by one that has nothing better to do, and looks for that again
constexpr uint32_t slabs_a_release = 2; // more than a batch of released stacks fills

// How many free stacks may keep their memory: 256 or 16 MiB, or an eighth of those in use, lest a server whose number
// of connections swings a little pays a page fault for each.
uint64_t kept_stacks(const Pool &pool, uint32_t size_class) {
    const uint64_t fixed = std::min<uint64_t>(256, (uint64_t{16} << 20) / stack_bytes(size_class));
    return std::max(fixed, pool.outside() / 8);
}

void list_hottest(Pool &pool, Slab &slab) {
    slab.colder = pool.hottest;
    slab.hotter = nullptr;
    (pool.hottest == nullptr ? pool.coldest : pool.hottest->hotter) = &slab;
    pool.hottest = &slab;
    slab.listed = true;
}

// Without a warm stack.
void list_coldest(Pool &pool, Slab &slab) {
    slab.hotter = pool.coldest;
    slab.colder = nullptr;
    (pool.coldest == nullptr ? pool.hottest : pool.coldest->colder) = &slab;
    pool.coldest = &slab;
    slab.listed = true;
}

void unlist(Pool &pool, Slab &slab) {
    if (pool.coldest_warm == &slab)
        pool.coldest_warm = slab.hotter;
    (slab.hotter == nullptr ? pool.hottest : slab.hotter->colder) = slab.colder;
    (slab.colder == nullptr ? pool.coldest : slab.colder->hotter) = slab.hotter;
    slab.hotter = slab.colder = nullptr;
    slab.listed = false;
}

// The slab has a warm stack now.
void heat(Pool &pool, Slab &slab) {
    if (pool.hottest != &slab) {
        if (slab.listed)
            unlist(pool, slab);
        list_hottest(pool, slab);
    }
    if (pool.coldest_warm == nullptr)
        pool.coldest_warm = &slab;
}

// The tops of stacks 4 KiB apart, or any multiple of it, would all fall into the same few sets of the first-level
// cache. So each starts a few lines further down, within its top page.
uint32_t colour(uint32_t size_class, uint32_t index) { return size_class < 2 ? 0 : index % 16 * 64; }

// Maps a slab with nothing carved, and lists it.
Slab *grow(Pool &pool, uint32_t size_class) {
    Slab *slab = slab_record_take();
    if (slab == nullptr)
        return nullptr;
    auto *memory = static_cast<char *>(pages_map(slab_bytes(size_class)));
    if (memory == nullptr) {
        slab_record_give(*slab);
        return nullptr;
    }
    slab->memory = memory;
    slab->capacity = static_cast<uint8_t>(slab_capacity(size_class));
    slab->carved = slab->free = slab->cold = slab->protects = 0;
    slab->canaries = slab->guarded = slab->untouched = 0;
    slab_publish(*slab, memory, size_class);
    ++pool.slabs;
    list_hottest(pool, *slab);
    return slab;
}

// Makes the next few stacks of the slab free.
void carve(Pool &pool, Slab &slab) {
    const uint32_t first = slab.carved;
    const uint32_t count = std::min<uint32_t>(kCarveBatch, slab.capacity - first);
    for (uint32_t i = count; i-- != 0;) { // so that the lowest comes first
        const uint32_t index = first + i;
        slab.order[slab.free++] = static_cast<uint8_t>(index);
        slab.untouched |= uint64_t{1} << index;
#ifdef MC_VALGRIND
        slab.valgrind_numbers[index] =
            note_stack_mapped(slab.low(index), slab.low(index) + stack_bytes(slab.own_class()));
#endif
    }
    slab.cold = slab.free; // only a slab that has nothing else is carved
    slab.carved = static_cast<uint8_t>(first + count);
    pool.carved += count;
    pool.free += count;
}

// Stack `first` and `count` - 1 after it, none of which has a guard. Those for which the system has none left go without,
// for now.
void guard(Slab &slab, uint32_t first, uint32_t count) {
    Guard kinds[kPageBatch];
    if (!pages_guard(slab.low(first) - kPageBytes, stack_stride(slab.own_class()), count, kinds))
        return;
    for (uint32_t i = 0; i != count; ++i) {
        slab.protects = static_cast<uint8_t>(slab.protects + (kinds[i] == Guard::protect));
        slab.guarded |= uint64_t{kinds[i] != Guard::canary} << (first + i);
    }
}

Stack pop(Pool &pool, Slab &slab) {
    const uint32_t index = slab.order[--slab.free];
    --pool.free;
    if (slab.cold > slab.free)
        slab.cold = slab.free;
    else
        --pool.warm;
    if (slab.free == 0) {
        unlist(pool, slab);
        if (slab.has_free()) // uncarved ones: only when no slab has any that were used before
            list_coldest(pool, slab);
    }
    Stack stack = slab_stack(slab, index);
    stack.cold = (slab.untouched >> index & 1) != 0;
    slab.untouched &= ~(uint64_t{1} << index);
    return stack;
}

// The slab to take the next stack from. may_grow: map a new one if need be.
Slab *slab_to_take_from(Pool &pool, uint32_t size_class, bool may_grow) {
    Slab *slab = pool.hottest;
    if (slab == nullptr && may_grow)
        slab = grow(pool, size_class);
    if (slab != nullptr && slab->free == 0)
        carve(pool, *slab);
    return slab;
}

// Out of the pool, with all its stacks; the caller unmaps it.
void detach(Pool &pool, Slab &slab) {
    if (slab.listed)
        unlist(pool, slab);
    pool.warm -= slab.free - slab.cold;
    pool.free -= slab.free;
    pool.carved -= slab.carved;
    --pool.slabs;
}

void attach(Pool &pool, Slab &slab) {
    ++pool.slabs;
    pool.carved += slab.carved;
    pool.free += slab.free;
    pool.warm += slab.free - slab.cold;
    list_hottest(pool, slab);
}

// A few ranges to give back in one call. Neighbours become one range: the guard between them survives.
class Gift {
public:
    void add(char *first, std::size_t bytes) {
        if (count_ != 0 && end_ + kPageBytes == first) {
            ranges_[count_ - 1].iov_len += kPageBytes + bytes;
        } else {
            if (count_ == kPageBatch)
                give();
            ranges_[count_++] = {first, bytes};
        }
        end_ = first + bytes;
    }
    void give() {
        pages_give_back(ranges_, count_);
        count_ = 0;
    }

private:
    char *end_ = nullptr; // of the last range
    uint32_t count_ = 0;
    PageRange ranges_[kPageBatch];
};

// The memory of the free stacks order[from, to). A canary's page stays.
void give_back(const Slab &slab, uint32_t from, uint32_t to) {
    uint64_t set = 0;
    for (uint32_t i = from; i != to; ++i)
        set |= uint64_t{1} << slab.order[i];
    const std::size_t bytes = stack_bytes(slab.own_class());
    Gift gift;
    for (; set != 0; set &= set - 1) {
        const auto index = static_cast<uint32_t>(std::countr_zero(set));
        const std::size_t kept = (slab.canaries >> index & 1) != 0 ? kPageBytes : 0;
        if (bytes != kept)
            gift.add(slab.low(index) + kept, bytes - kept);
    }
    gift.give();
}

// Unmaps a detached slab. Refused: it goes back into the pool, without its memory.
void unmap(Pool &pool, Slab &slab) {
    const uint32_t size_class = slab.own_class();
    slab_withdraw(slab);
    note_stack_fresh(slab.memory, slab_bytes(size_class));
    if (!pages_unmap(slab.memory, slab_bytes(size_class))) {
        note_stack_dead(slab.memory, slab_bytes(size_class));
        give_back(slab, 0, slab.free);
        for (uint32_t i = 0; i != slab.free; ++i)
            slab.untouched |= uint64_t{1} << slab.order[i];
        slab.cold = slab.free;
        slab_publish(slab, slab.memory, size_class);
        sync::lock_guard guard(pool.lock);
        attach(pool, slab);
        return;
    }
    if (slab.carved != 0)
        slabs_unmapped.fetch_add(1, sync::relaxed);
    pages_guard_gone(slab.protects);
#ifdef MC_VALGRIND
    for (uint32_t i = 0; i != slab.carved; ++i)
        note_stack_unmapped(slab.valgrind_numbers[i]);
#endif
    slab_record_give(slab);
}

void unmap_all(Pool &pool, Slab *doomed) {
    while (doomed != nullptr) {
        Slab *next = doomed->colder;
        doomed->colder = nullptr;
        unmap(pool, *doomed);
        doomed = next;
    }
}

void push(Pool &pool, const Stack &stack, int64_t now_ns) {
    auto &slab = *static_cast<Slab *>(stack.slab);
    slab.released_ns = now_ns;
    MC_INVARIANT(slab.free < slab.carved, stack.index);
    slab.order[slab.free++] = static_cast<uint8_t>(stack.index);
    slab.untouched |= uint64_t{stack.cold} << stack.index;
    ++pool.free;
    ++pool.warm; // an untouched one too: so it leaves, with its slab, when the others do
    if (!slab.trimming)
        heat(pool, slab);
}

Slab *coldest_warm_slab(Pool &pool) {
    Slab *slab = pool.coldest_warm;
    while (slab != nullptr && slab->free == slab->cold)
        slab = slab->hotter;
    pool.coldest_warm = slab;
    return slab;
}

// Hidden from everybody until trim_end.
void trim_begin(Pool &pool, Slab &slab, uint8_t *upto) {
    unlist(pool, slab);
    slab.trimming = true;
    *upto = slab.free;
    pool.warm -= slab.free - slab.cold;
}

// Those released meanwhile lie on top of the ones given back.
void trim_end(Pool &pool, Slab &slab, uint8_t upto) {
    slab.trimming = false;
    for (uint32_t i = slab.cold; i != upto; ++i)
        slab.untouched |= uint64_t{1} << slab.order[i];
    slab.cold = upto;
    slab.free == upto ? list_coldest(pool, slab) : heat(pool, slab);
}

// Its memory is to go: it leaves the pool when no stack of it is in use, and enough others are free.
bool detach_if_unused(Pool &pool, Slab &slab, uint64_t keep) {
    if (!slab.wholly_free() || pool.free - slab.free < keep)
        return false;
    detach(pool, slab);
    return true;
}

// One slab's memory goes, the coldest's. False: no more than `keep` are warm, or it was used after released_by; *due is when
// it will be, INT64_MAX for the former.
bool trim_one(Pool &pool, uint64_t keep, int64_t released_by, int64_t *due) {
    uint8_t upto = 0;
    pool.lock.lock();
    Slab *slab = pool.warm > keep ? coldest_warm_slab(pool) : nullptr;
    if (slab == nullptr || slab->released_ns > released_by) {
        *due = slab == nullptr ? INT64_MAX : slab->released_ns + kStackDecayNs;
        pool.lock.unlock();
        return false;
    }
    bool doomed = detach_if_unused(pool, *slab, keep);
    if (!doomed) {
        trim_begin(pool, *slab, &upto);
        pool.lock.unlock();
        give_back(*slab, slab->cold, upto); // nobody changes these while it is hidden
        pool.lock.lock();
        trim_end(pool, *slab, upto);
        doomed = detach_if_unused(pool, *slab, keep);
    }
    pool.lock.unlock();
    if (doomed)
        unmap(pool, *slab);
    return true;
}

// At most so many slabs. False: there are no more, see trim_one.
bool trim(Pool &pool, uint64_t keep, int64_t released_by, uint32_t most, int64_t *due) {
    for (; most != 0; --most)
        if (!trim_one(pool, keep, released_by, due))
            return false;
    return true;
}

// Returns when the next is due then.
int64_t want_trim_by(int64_t due_ns) {
    int64_t seen = trim_due_ns.load(sync::relaxed);
    while (due_ns < seen)
        if (trim_due_ns.compare_exchange_weak(seen, due_ns, sync::relaxed, sync::relaxed))
            return due_ns;
    return seen;
}

uint64_t kept_now(Pool &pool, uint32_t size_class) {
    sync::lock_guard guard(pool.lock);
    return kept_stacks(pool, size_class);
}

} // namespace

Stack slab_stack(Slab &slab, uint32_t index) {
    const uint32_t size_class = slab.own_class();
    Stack stack;
    stack.set_top(slab.low(index) + stack_bytes(size_class) - colour(size_class, index));
    stack.slab = &slab;
    stack.index = index;
    stack.size_class = size_class;
    stack.canary = (slab.canaries >> index & 1) != 0;
    return stack;
}

namespace {

uint32_t take(uint32_t size_class, uint32_t want, Stack *out) {
    Pool &pool = pools[size_class];
    sync::lock_guard guard(pool.lock);
    uint32_t took = 0;
    while (took != want) {
        Slab *slab = slab_to_take_from(pool, size_class, took == 0);
        if (slab == nullptr)
            break;
        out[took++] = pop(pool, *slab);
    }
    return took;
}

// Unmaps all slabs of the class that no stack is used of. False: nobody has ever used those that there were.
bool unmap_unused(Pool &pool) {
    Slab *doomed = nullptr;
    bool used = false;
    pool.lock.lock();
    for (Slab *slab = pool.hottest, *next; slab != nullptr; slab = next) {
        next = slab->colder;
        if (!slab->wholly_free())
            continue;
        used |= slab->carved != 0;
        detach(pool, *slab);
        slab->colder = doomed;
        doomed = slab;
    }
    pool.lock.unlock();
    unmap_all(pool, doomed);
    return used;
}

} // namespace

// Where there is no room for more, what other sizes keep unused makes some.
uint32_t pool_take(uint32_t size_class, uint32_t want, Stack *out) {
    const uint64_t before = slabs_unmapped.load(sync::relaxed);
    if (const uint32_t took = take(size_class, want, out))
        return took;
    bool room = false;
    for (Pool &pool : pools)
        room |= unmap_unused(pool);
    room |= slabs_unmapped.load(sync::relaxed) != before; // by another thread that was in the same need
    return room ? take(size_class, want, out) : 0;
}

void pool_guard(Stack &stack) {
    auto &slab = *static_cast<Slab *>(stack.slab);
    const uint64_t bit = uint64_t{1} << stack.index;
    sync::lock_guard locked(pools[stack.size_class].lock);
    if ((slab.guarded & bit) == 0) {
        const uint32_t first = stack.index / kPageBatch * kPageBatch;
        const uint32_t count = std::min<uint32_t>(kPageBatch, slab.carved - first);
        const uint64_t batch = ((uint64_t{1} << count) - 1) << first;
        if ((slab.guarded & batch) == 0)
            guard(slab, first, count);
        else
            guard(slab, stack.index, 1);
    }
    if ((slab.guarded & bit) == 0) {
        slab.guarded |= bit;
        slab.canaries |= bit;
        canary_write(slab.low(stack.index));
    }
    stack.canary = (slab.canaries & bit) != 0;
}

void pool_give(uint32_t size_class, const Stack *stacks, uint32_t count) {
    Pool &pool = pools[size_class];
    const int64_t now = sync::now_ns();
    Slab *doomed = nullptr;
    pool.lock.lock();
    for (uint32_t i = 0; i != count; ++i) {
        push(pool, stacks[i], now);
        auto &slab = *static_cast<Slab *>(stacks[i].slab);
        // One whose memory has gone already was kept by this stack: there is nothing in it that a delay would save.
        if (slab.cold != 0 && !slab.trimming && detach_if_unused(pool, slab, kept_stacks(pool, size_class))) {
            slab.colder = doomed;
            doomed = &slab;
        }
    }
    const uint64_t keep = kept_stacks(pool, size_class);
    const bool too_warm = pool.warm > keep;
    if (too_warm)
        want_trim_by(now + kStackDecayNs);
    pool.lock.unlock();
    unmap_all(pool, doomed);
    int64_t due = 0;
    if (too_warm && trim_due_ns.load(sync::relaxed) <= now)
        (void)trim(pool, keep, now - kStackDecayNs, slabs_a_release, &due);
}

int64_t pool_trim_aged(int64_t now_ns) {
    const int64_t seen = trim_due_ns.load(sync::relaxed);
    if (seen > now_ns)
        return seen;
    trim_due_ns.store(INT64_MAX, sync::relaxed);
    int64_t next = INT64_MAX;
    for (uint32_t size_class = 0; size_class != kStackClasses; ++size_class) {
        Pool &pool = pools[size_class];
        int64_t due = 0;
        const bool more = trim(pool, kept_now(pool, size_class), now_ns - kStackDecayNs, slabs_at_a_time, &due);
        next = std::min(next, more ? now_ns : due);
    }
    return want_trim_by(next);
}

void pool_trim_excess() {
    if (trim_due_ns.load(sync::relaxed) == INT64_MAX)
        return;
    trim_due_ns.store(INT64_MAX, sync::relaxed);
    for (uint32_t size_class = 0; size_class != kStackClasses; ++size_class) {
        Pool &pool = pools[size_class];
        int64_t due = 0;
        (void)trim(pool, kept_now(pool, size_class), INT64_MAX, UINT32_MAX, &due);
    }
}

void stack_trim() {
    for (uint32_t size_class = 0; size_class != kStackClasses; ++size_class) {
        Pool &pool = pools[size_class];
        (void)unmap_unused(pool);
        int64_t due = 0;
        (void)trim(pool, 0, INT64_MAX, UINT32_MAX, &due);
    }
}

void pools_lock() {
    for (Pool &pool : pools)
        pool.lock.lock();
}
void pools_unlock() {
    for (Pool &pool : pools)
        pool.lock.unlock();
}

StackCounters stack_counters() {
    StackCounters sum;
    for (uint32_t size_class = 0; size_class != kStackClasses; ++size_class) {
        Pool &pool = pools[size_class];
        sync::lock_guard guard(pool.lock);
        sum.slabs += pool.slabs;
        sum.bytes_mapped += pool.slabs * slab_bytes(size_class);
        sum.carved += pool.carved;
        sum.pooled += pool.free;
        sum.pooled_warm += pool.warm;
        sum.outside += pool.outside();
    }
    return sum;
}

} // namespace mc::fiber
