#include "machine/descriptor.hpp"

#include "base/alloc.hpp"
#include "base/log.hpp"
#include "base/slab.hpp"
#include "machine/registry.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstring>

namespace mc::machine {
namespace {

struct Registered : base::SlabItem<Registered> {
    sync::atomic<const Descriptor *> descriptor{nullptr}; // any thread (atomic); written once
};

// Nothing is ever given back to it: an object's index is the order of its registration.
constinit base::Slab<Registered> registered;

uint64_t slots_for(uint32_t count) noexcept { return std::bit_ceil(2 * uint64_t{count} + 1); }

uint64_t add(const Descriptor *descriptor) noexcept {
    const RegistryGuard guard;
    Registered *place = registered.acquire();
    if (place == nullptr)
        return 0;
    place->descriptor.store(descriptor, sync::release); // release: pairs with find_descriptor; publishes what it says
    return uint64_t{place->slab_index} + 1;
}

void warn(const Blob &blob, const Descriptor::Repeats &repeats) noexcept {
    char name[64]; // the beginning, on one line: it may be any bytes
    const size_t length = std::min<uint64_t>(blob.head().name_len, sizeof name - 1);
    std::replace_copy_if(
        blob.head().name, blob.head().name + length, name,
        [](char byte) { return static_cast<unsigned char>(byte) < ' ' || byte == 0x7f; }, '?');
    name[length] = '\0';
    if (repeats.rows != 0)
        base::log(MC_LOG_WARNING, MC_OK,
                  "descriptor %s: the row of state %" PRIu64 ", event %" PRIu64 ", site %" PRIu64
                  " is there again, and never used (repeated rows: %" PRIu64 ")",
                  name, repeats.row.state_tag, repeats.row.event_kind, repeats.row.request_site_key, repeats.rows);
    if (repeats.states != 0)
        base::log(MC_LOG_WARNING, MC_OK,
                  "descriptor %s: state %" PRIu64 " is there again, and never used (repeated states: %" PRIu64 ")",
                  name, repeats.tag, repeats.states);
}

} // namespace

template <class Item>
template <class Wanted>
bool Descriptor::Index<Item>::add(const Wanted &wanted, const Item &item) noexcept {
    if (find(wanted) != nullptr)
        return false;
    uint64_t at = wanted.hash();
    while (slots[at & mask] != 0)
        ++at;
    items[count] = item;
    slots[at & mask] = ++count;
    return true;
}

Descriptor *Descriptor::create(const Blob &blob, Repeats *repeats) noexcept {
    const uint32_t rows = blob.head().rows, states = blob.head().states;
    const uint64_t row_slots = slots_for(rows), state_slots = slots_for(states);
    static_assert(sizeof(Descriptor) % alignof(Row) == 0 && sizeof(Row) % alignof(State) == 0);
    // The blob has as many bytes as that, or nearly: no overflow.
    const size_t bytes =
        sizeof(Descriptor) + rows * sizeof(Row) + states * sizeof(State) + (row_slots + state_slots) * sizeof(uint32_t);
    void *memory = base::allocate(bytes, alignof(Descriptor));
    if (memory == nullptr)
        return nullptr;
    auto *made = new (memory) Descriptor(bytes);
    made->rows_.items = reinterpret_cast<Row *>(made + 1);
    made->states_.items = reinterpret_cast<State *>(made->rows_.items + rows);
    made->rows_.slots = reinterpret_cast<uint32_t *>(made->states_.items + states);
    made->states_.slots = made->rows_.slots + row_slots;
    std::memset(made->rows_.slots, 0, (row_slots + state_slots) * sizeof(uint32_t));
    made->rows_.mask = row_slots - 1;
    made->states_.mask = state_slots - 1;
    made->fill(blob, repeats);
    return made;
}

void Descriptor::destroy(Descriptor *descriptor) noexcept {
    base::deallocate(descriptor, descriptor->bytes_, alignof(Descriptor));
}

void Descriptor::fill(const Blob &blob, Repeats *repeats) noexcept {
    blob.each_row([&](const Row &row) {
        has_sites_ = has_sites_ || row.request_site_key != 0;
        if (!rows_.add(Key{row.state_tag, row.event_kind, row.request_site_key}, row) && repeats->rows++ == 0)
            repeats->row = row;
    });
    blob.each_state([&](const mc_machine_descriptor_state &state) {
        if (!states_.add(Tag{state.tag}, State{state.tag, state.layout}) && repeats->states++ == 0)
            repeats->tag = state.tag;
    });
}

uint64_t register_descriptor(const void *bytes, uint64_t len) noexcept {
    Blob blob;
    Defect defect;
    if (!Blob::check(bytes, len, &blob, &defect)) {
        base::log(MC_LOG_ERROR, MC_E_INVAL, "descriptor: %s", defect.text);
        return 0;
    }
    Descriptor::Repeats repeats;
    Descriptor *descriptor = Descriptor::create(blob, &repeats);
    const uint64_t id = descriptor == nullptr ? 0 : add(descriptor);
    if (id == 0) {
        if (descriptor != nullptr)
            Descriptor::destroy(descriptor);
        base::log(MC_LOG_ERROR, MC_E_NOMEM, "a descriptor is not registered");
        return 0;
    }
    warn(blob, repeats);
    return id;
}

const Descriptor *find_descriptor(uint64_t id) noexcept {
    if (id == 0 || id > registered.max_items)
        return nullptr;
    const Registered *place = registered.at(static_cast<uint32_t>(id - 1));
    return place == nullptr ? nullptr : place->descriptor.load(sync::acquire); // acquire: pairs with add
}

} // namespace mc::machine
