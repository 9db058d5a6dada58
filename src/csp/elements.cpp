#include "csp/elements.hpp"

#include "base/alloc.hpp"
#include "base/guarded.hpp"

#include <algorithm>
#include <cstring>

namespace mc::csp {
namespace {

size_t slot_bytes(const Elements &elements) noexcept { return size_t{elements.capacity} * elements.size; }

} // namespace

Elements *make_elements(uint32_t size, uint32_t capacity, mc_chan_drop_fn drop, void *user) noexcept {
    if (size != 0 && capacity > SIZE_MAX / size)
        return nullptr;
    auto *elements = base::create<Elements>();
    if (elements == nullptr)
        return nullptr;
    elements->size = size;
    elements->capacity = capacity;
    elements->drop = drop;
    elements->user = user;
    if (slot_bytes(*elements) != 0) {
        elements->slots = static_cast<std::byte *>(base::allocate(slot_bytes(*elements), alignof(std::max_align_t)));
        if (elements->slots == nullptr) {
            base::destroy(elements);
            return nullptr;
        }
    }
    return elements;
}

void free_elements(Elements *elements) noexcept {
    if (elements == nullptr)
        return;
    base::deallocate(elements->slots, slot_bytes(*elements), alignof(std::max_align_t));
    base::destroy(elements);
}

Elements take_elements(Elements &elements) noexcept {
    const Elements taken = elements;
    elements.slots = nullptr;
    elements.head = elements.count = 0;
    return taken;
}

void drop_elements(Elements &taken) noexcept {
    for (; taken.count > 0; taken.pop(nullptr))
        drop_element(taken, taken.slot(taken.head));
    base::deallocate(taken.slots, slot_bytes(taken), alignof(std::max_align_t));
    taken.slots = nullptr;
}

void drop_element(const Elements &elements, void *element) noexcept {
    if (elements.drop == nullptr)
        return;
    base::call_guarded("the drop function of a channel", [&] { elements.drop(elements.user, element, elements.size); });
}

void hand_element(const Elements &elements, void *source, void *destination) noexcept {
    if (destination == nullptr)
        return;
    if (source != nullptr)
        elements.copy(destination, source);
    else if (elements.size != 0)
        std::memset(destination, 0, elements.size);
}

} // namespace mc::csp
