// What a program may replace: the allocator of boxes, token boxes and mailboxes. Declared here, defined by src/abi, which
// calls __mc_alloc and __mc_free through symbols that a program's own definitions win over; the room itself calls no
// exported function. Any thread, nothing locked.
#pragma once

#include <cstddef>

namespace mc::machine {

[[nodiscard]] void *host_allocate(size_t size, size_t align) noexcept;
void host_free(void *block) noexcept;

} // namespace mc::machine
