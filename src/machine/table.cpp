#include "machine/table.hpp"

#include <new>

namespace mc::machine {

Places::Block *Places::add_block() noexcept {
    void *memory = base::allocate(bytes(next_size_), alignof(Block));
    if (memory == nullptr && next_size_ != least) {
        next_size_ = least; // a little may be there
        memory = base::allocate(bytes(next_size_), alignof(Block));
    }
    if (memory == nullptr)
        return nullptr;
    auto *block = new (memory) Block();
    block->size = next_size_;
    block->free = all_of(next_size_);
    with_room_.push_back(block);
    next_size_ = std::min(2 * next_size_ + 1, most);
    return block;
}

// The lowest place: machines that are made one after another lie so.
Machine *Places::make(uint32_t mailbox_bound) noexcept {
    Block *block = with_room_.front();
    if (block == nullptr)
        block = add_block();
    if (block == nullptr)
        return nullptr;
    const auto place = static_cast<uint32_t>(std::countr_zero(block->free));
    block->free &= block->free - 1;
    if (block->free == 0) {
        base::List<Block>::remove(block);
        full_.push_back(block);
    }
    auto *machine = new (block->at(place)) Machine(mailbox_bound);
    machine->place = place;
    return machine;
}

void Places::destroy(Machine *machine) noexcept {
    Block *block = block_of(machine);
    const uint32_t place = machine->place;
    machine->~Machine();
    if (block->free == 0) {
        base::List<Block>::remove(block);
        with_room_.push_back(block);
    }
    block->free |= uint64_t{1} << place;
    if (block->free != all_of(block->size) || with_room_.after(with_room_.front()) == nullptr)
        return;
    base::List<Block>::remove(block);
    release(block);
}

} // namespace mc::machine
