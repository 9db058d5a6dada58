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

} // namespace mc::machine
