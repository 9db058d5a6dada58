#include "machine/runtimes.hpp"

#include "base/alloc.hpp"
#include "base/sync.hpp"
#include "machine/registry.hpp"

#include <sys/mman.h>

namespace mc::machine {
namespace runtimes {

constinit sync::atomic<uint64_t> changes{0};
constinit sync::atomic<Array *> current{nullptr};

} // namespace runtimes

namespace {

using namespace runtimes;

// guarded by the registries' mutex
uint64_t used = 0;
uint64_t next_word = 0, end_of_words = 0;

// Every store between is a release, and follows the first: who reads one of them in the acquires of find sees the count
// odd, or later, when it looks again.
class Change {
public:
    Change() noexcept { changes.store(changes.load(sync::relaxed) + 1, sync::relaxed); }
    ~Change() {
        // release: pairs with find's first acquire; who sees the count even sees all of the change.
        changes.store(changes.load(sync::relaxed) + 1, sync::release);
    }
    Change(const Change &) = delete;
    Change &operator=(const Change &) = delete;
};

void put(Entry &entry, uint64_t word, Runtime runtime) noexcept {
    entry.runtime.store(runtime, sync::release); // release, both: pair with find's acquires; see Change
    entry.word.store(word, sync::release);
}

Entry &empty_entry(const Array &array, uint64_t word) noexcept {
    uint64_t at = home(word);
    while (array.entries[at & array.mask].word.load(sync::relaxed) != 0)
        ++at;
    return array.entries[at & array.mask];
}

bool grow() noexcept {
    Array *old = current.load(sync::relaxed);
    const uint64_t slots = old == nullptr ? 64 : 2 * (old->mask + 1);
    auto *array = base::create<Array>();
    Entry *entries = array == nullptr ? nullptr : base::allocate_array<Entry>(slots);
    if (entries == nullptr) {
        base::destroy(array);
        return false;
    }
    for (uint64_t i = 0; i < slots; ++i)
        new (&entries[i]) Entry();
    array->mask = slots - 1;
    array->smaller = old;
    array->entries = entries;
    for (uint64_t i = 0; old != nullptr && i <= old->mask; ++i)
        if (const uint64_t word = old->entries[i].word.load(sync::relaxed); word != 0)
            put(empty_entry(*array, word), word, old->entries[i].runtime.load(sync::relaxed));
    current.store(array, sync::release); // release: pairs with find's acquire; the array is complete
    return true;
}

// The entries behind the hole move up where they may, so that a probe never meets a gap.
void close_gap(const Array &array, uint64_t hole) noexcept {
    for (uint64_t at = hole + 1;; ++at) {
        Entry &entry = array.entries[at & array.mask];
        const uint64_t word = entry.word.load(sync::relaxed);
        if (word == 0)
            break;
        if (((at - home(word)) & array.mask) >= ((at - hole) & array.mask)) {
            put(array.entries[hole & array.mask], word, entry.runtime.load(sync::relaxed));
            hole = at;
        }
    }
    put(array.entries[hole & array.mask], 0, Runtime());
}

Runtime look(const Array &array, uint64_t word) noexcept {
    for (uint64_t at = home(word), last = at + array.mask; at != last + 1; ++at) {
        const Entry &entry = array.entries[at & array.mask];
        const uint64_t seen = entry.word.load(sync::acquire); // acquire, both: pair with put's releases; see Change
        if (seen == word)
            return entry.runtime.load(sync::acquire);
        if (seen == 0)
            break;
    }
    return Runtime();
}

// Under the registries' mutex. Null: none has the name.
Entry *entry_of(const Array *array, uint64_t word) noexcept {
    if (array == nullptr || word == 0)
        return nullptr;
    for (uint64_t at = home(word);; ++at) { // ends: half of the entries are empty
        Entry &entry = array->entries[at & array->mask];
        const uint64_t seen = entry.word.load(sync::relaxed);
        if (seen == word || seen == 0)
            return seen == 0 ? nullptr : &entry;
    }
}

} // namespace

Runtime runtimes::look_further(uint64_t word) noexcept {
    if (word == 0)
        return Runtime();
    for (;;) {
        const uint64_t before = changes.load(sync::acquire); // acquire: pairs with ~Change
        const Array *array = current.load(sync::acquire);    // acquire: pairs with grow
        const Runtime found = array == nullptr ? Runtime() : look(*array, word);
        if (before % 2 == 0 && changes.load(sync::relaxed) == before) [[likely]] // after the acquires of look
            return found;
        sync::cpu_relax();
    }
}

bool add_runtime(uint64_t word, Runtime runtime) noexcept {
    const RegistryGuard guard;
    const Array *array = current.load(sync::relaxed);
    if ((array == nullptr || 2 * (used + 1) > array->mask + 1) && !grow())
        return false;
    const Change change;
    put(empty_entry(*current.load(sync::relaxed), word), word, runtime);
    ++used;
    return true;
}

Runtime remove_runtime(uint64_t word) noexcept {
    const RegistryGuard guard;
    const Array *array = current.load(sync::relaxed);
    const Entry *entry = entry_of(array, word);
    if (entry == nullptr)
        return Runtime();
    const Runtime runtime = entry->runtime.load(sync::relaxed);
    const Change change;
    close_gap(*array, static_cast<uint64_t>(entry - array->entries));
    --used;
    return runtime;
}

bool replace_runtime(uint64_t word, Runtime from, Runtime to) noexcept {
    const RegistryGuard guard;
    Entry *entry = entry_of(current.load(sync::relaxed), word);
    if (entry == nullptr || !(entry->runtime.load(sync::relaxed) == from))
        return false;
    entry->runtime.store(to, sync::release); // release: pairs with find's acquire; whose it is is complete
    return true;
}

// Pages that may be read, and are all zeros: nobody has a reason to, but who does is not to crash.
uint64_t new_runtime_word() noexcept {
    constexpr uint64_t size = sizeof(mc_machine_runtime_t);
    constexpr uint64_t block = 4096 * size;
    const RegistryGuard guard;
    if (next_word == end_of_words) {
        void *pages = mmap(nullptr, block, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED)
            return 0;
        next_word = reinterpret_cast<uintptr_t>(pages);
        end_of_words = next_word + block;
    }
    const uint64_t word = next_word;
    next_word += size;
    return word;
}

} // namespace mc::machine
