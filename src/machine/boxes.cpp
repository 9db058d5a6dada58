#include "machine/boxes.hpp"

#include "base/guarded.hpp"
#include "machine/host.hpp"
#include "machine/registry.hpp"

namespace mc::machine {

void drop_box(uint64_t word0, uint64_t layout) noexcept {
    void *box = reinterpret_cast<void *>(static_cast<uintptr_t>(word0));
    if (const mc_payload_drop_fn drop = layout == 0 ? nullptr : find_payload_drop(layout); drop != nullptr)
        (void)base::call_guarded("a drop function of a payload", [=] { drop(box); });
    host_free(box);
}

bool Boxes::prepare_for(const Boxes &from) noexcept {
    uint64_t boxes[Parts<Part>::many] = {};
    for (const Part &part : from.parts_)
        part.counts.for_each([&](uint64_t box, uint64_t) { ++boxes[parts_.index_of(key_of(box))]; });
    for (uint32_t i = 0; i < parts_.count(); ++i)
        if (!parts_.at(i).counts.reserve(boxes[i]))
            return false;
    return true;
}

void Boxes::take_from(Boxes &from) noexcept {
    for (Part &part : from.parts_) {
        part.counts.for_each([&](uint64_t box, uint64_t count) { part_of(box).counts.insert(box, count); });
        part.counts.clear();
    }
}

} // namespace mc::machine
