// See systematic_memory.hpp.
#if defined(MC_SYS)
#include "testing/systematic_memory.hpp"

#include <cstring>

namespace mc::testing::sys {

Memory::Memory() : table_(1024) {}

void Memory::reset() {
    ++run_;
    used_ = 0;
    words_ = 0;
    state_ = 0;
    constructed_.clear();
}

std::uint64_t Memory::peek(const void *at, unsigned size) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, size);
    return value;
}

void Memory::poke(void *at, unsigned size, std::uint64_t value) { std::memcpy(at, &value, size); }

Memory::Slot &Memory::slot_of(const void *at) {
    const std::size_t mask = table_.size() - 1;
    std::size_t i = ((reinterpret_cast<std::uintptr_t>(at) * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (table_[i].run == run_ && table_[i].address != at)
        i = (i + 1) & mask;
    return table_[i];
}

void Memory::grow_table() {
    table_.assign(table_.size() * 2, Slot{});
    for (std::uint32_t i = 0; i < used_; ++i)
        slot_of(locations_[i].address) = {locations_[i].address, run_, i};
}

Location *Memory::known(const void *at) {
    Slot &slot = slot_of(at);
    return slot.run == run_ ? &locations_[slot.index] : nullptr;
}

Location &Memory::find_or_create(const void *at) {
    Slot *slot = &slot_of(at);
    if (slot->run == run_)
        return locations_[slot->index];
    if (2 * (used_ + 1) > table_.size()) {
        grow_table();
        slot = &slot_of(at);
    }
    if (used_ == locations_.size())
        locations_.emplace_back();
    *slot = {at, run_, used_};
    Location &location = locations_[used_];
    location.address = at;
    location.id = max_threads + used_++;
    location.share = 0;
    location.newest = 0;
    location.fresh = true;
    location.dead = false;
    location.label = nullptr;
    return location;
}

void Memory::begin_life(Location &location, unsigned size) {
    location.size = size;
    location.ordinal = words_++;
    location.born = location.newest = location.newest + 1;
    location.sequential_floor = 0;
    location.owner = -1;
    location.fresh = false;
    location.dead = false;
    std::fill(std::begin(location.used), std::end(location.used), 0);
    auto constructed = constructed_.extract(location.address);
    location.made = constructed.empty() ? Moment{} : constructed.mapped();
    location.message.clear();
    location.history = 0;
    settle(location);
    location.store(location.newest).message.clear();
    location.store(location.newest).id = 0;
}

void Memory::construct(const void *at, Moment when) {
    constructed_[at] = when;
    if (Location *location = known(at)) {
        location->fresh = true;
        location->dead = false;
        location->label = nullptr;
    }
}

void Memory::destroy(void *at, unsigned size) {
    constructed_.erase(at);
    Location *location = known(at);
    if (location == nullptr)
        return; // never used
    location->fresh = true;
    location->dead = true;
    poke(at, size, poison(size));
}

Location &Memory::word(const void *at, unsigned size) {
    Location &location = find_or_create(at);
    const std::uint64_t there = peek(at, size);
    if (location.fresh || location.size != size || location.value() != there) [[unlikely]] {
        if (location.dead && there == poison(size))
            return location; // nothing was made here since: a use after the end, which the caller reports
        begin_life(location, size);
        location.store(location.newest).value = there;
    }
    return location;
}

Location &Memory::mutex(const void *at) {
    Location &location = find_or_create(at);
    if (location.fresh || location.size != 0)
        begin_life(location, 0);
    return location;
}

unsigned Memory::visible(const Location &location, const View &view, std::memory_order order) const {
    Stamp oldest = std::max(location.born, view.at(location.id));
    if (sequential(order))
        oldest = std::max(oldest, location.sequential_floor);
    return std::min(location.newest - oldest + 1, kept_stores);
}

std::uint64_t Memory::read(Location &location, View &view, unsigned steps_back, std::memory_order order) {
    const Stamp stamp = location.newest - steps_back;
    const Store &store = location.store(stamp);
    view.raise(location.id, stamp);
    if (acquires(order))
        view.join(store.message);
    if (sequential(order))
        location.sequential_floor = std::max(location.sequential_floor, stamp);
    return store.value;
}

// The new store's message still holds that of the store which it pushes out; the caller sets it.
Store &Memory::append(Location &location, View &view, std::uint64_t value, std::memory_order order) {
    view.raise(location.id, ++location.newest);
    if (sequential(order))
        location.sequential_floor = location.newest;
    Store &store = location.store(location.newest);
    store.value = value;
    poke(const_cast<void *>(location.address), location.size, value);
    return store;
}

void Memory::write(Location &location, View &view, std::uint64_t value, std::memory_order order) {
    Store &store = append(location, view, value, order);
    if (releases(order))
        store.message = view;
    else
        store.message.clear();
}

void Memory::wrote(Location &location, std::uint64_t id) {
    location.store(location.newest).id = id;
    location.history = mixed(location.history, id);
    settle(location);
}

void Memory::settle(Location &location) {
    const Stamp floor = location.sequential_floor == 0 ? 0 : location.sequential_floor - location.born + 1;
    state_ -= location.share;
    location.share = location.history == 0 && floor == 0 ? 0 : mixed(location.history, floor);
    state_ += location.share;
}

std::uint64_t Memory::update(Location &location, View &view, std::uint64_t value, std::memory_order order) {
    const std::uint64_t before = read(location, view, 0, order);
    const View &continued = location.store(location.newest).message;
    Store &store = append(location, view, value, order);
    store.message = continued;
    if (releases(order))
        store.message.join(view);
    return before;
}

} // namespace mc::testing::sys
#endif
