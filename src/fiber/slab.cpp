#include "fiber/slab.hpp"

#include <new>

namespace mc::fiber {

namespace {

constexpr uint32_t kChunkRecords = 64;
constexpr uint32_t kChunks = 2048; // times 64 records times 64 stacks: more than the address space needs

struct Registry {
    // Any thread.
    sync::atomic<Slab *> chunks[kChunks]{};
    sync::atomic<uint32_t> chunk_count{0};
    // Guarded by lock.
    Slab *unused = nullptr; // linked by `colder`
    sync::mutex lock;
} registry;

bool grow_locked() {
    // relaxed: written under this lock only.
    const uint32_t count = registry.chunk_count.load(sync::relaxed);
    if (count == kChunks)
        return false;
    void *memory = pages_map(kChunkRecords * sizeof(Slab));
    if (memory == nullptr)
        return false;
    auto *records = static_cast<Slab *>(memory);
    for (uint32_t i = kChunkRecords; i-- != 0;) {
        auto *record = new (records + i) Slab;
        record->colder = registry.unused;
        registry.unused = record;
    }
    registry.chunks[count].store(records, sync::relaxed);
    // release: pairs with the acquire in stack_find; publishes the chunk's pointer and its records' constructors.
    registry.chunk_count.store(count + 1, sync::release);
    return true;
}

} // namespace

Slab *slab_record_take() {
    sync::lock_guard guard(registry.lock);
    if (registry.unused == nullptr && !grow_locked())
        return nullptr;
    Slab *slab = registry.unused;
    registry.unused = slab->colder;
    slab->colder = nullptr;
    return slab;
}

void slab_record_give(Slab &slab) {
    sync::lock_guard guard(registry.lock);
    slab.colder = registry.unused;
    registry.unused = &slab;
}

void slab_records_lock() { registry.lock.lock(); }
void slab_records_unlock() { registry.lock.unlock(); }

void slab_publish(Slab &slab, char *memory, uint32_t size_class) {
    const uint32_t version = slab.version.load(sync::relaxed);
    slab.version.store(version + 1, sync::relaxed);
    // release: a reader that sees these sees the odd version too (stack_find's acquire loads).
    slab.size_class.store(size_class, sync::release);
    slab.base.store(reinterpret_cast<uintptr_t>(memory), sync::release);
    slab.version.store(version + 2, sync::release);
}

void slab_withdraw(Slab &slab) {
    const uint32_t version = slab.version.load(sync::relaxed);
    slab.version.store(version + 1, sync::relaxed);
    slab.base.store(0, sync::relaxed); // who sees it has missed
    slab.version.store(version + 2, sync::release);
}

bool slab_look(const Slab &slab, uintptr_t addr, StackInfo *out) {
    // acquire: pairs with the release stores of slab_publish. If one of the loads below reads what a later change
    // wrote, the last load reads that change's odd version, or a later one.
    const uint32_t version = slab.version.load(sync::acquire);
    const uintptr_t base = slab.base.load(sync::acquire);
    const uint32_t size_class = slab.size_class.load(sync::acquire);
    if (base == 0 || addr < base || addr - base >= slab_bytes(size_class))
        return false;
    const std::size_t stride = stack_stride(size_class);
    const std::size_t index = (addr - base) / stride;
    // acquire: pairs with stack_set_owner's release.
    void *owner = slab.owner[index].load(sync::acquire);
    if (owner == nullptr || (version & 1) != 0 || slab.version.load(sync::relaxed) != version)
        return false;
    *out = {owner, reinterpret_cast<void *>(base + index * stride + kPageBytes),
            static_cast<uint32_t>(stack_bytes(size_class)), (addr - base) % stride < kPageBytes};
    return true;
}

bool stack_find(const void *addr, StackInfo *out) {
    // acquire: pairs with the release in grow_locked.
    const uint32_t chunks = registry.chunk_count.load(sync::acquire);
    for (uint32_t c = 0; c != chunks; ++c) {
        const Slab *records = registry.chunks[c].load(sync::relaxed); // ordered by the load of chunk_count
        for (uint32_t i = 0; i != kChunkRecords; ++i)
            if (slab_look(records[i], reinterpret_cast<uintptr_t>(addr), out))
                return true;
    }
    return false;
}

} // namespace mc::fiber
