// Option structs grow at their tail. A caller built against older headers passes a shorter one: the missing fields
// read as
// 0. One built against newer headers passes a longer one: that is fine as long as what we do not know is 0.
#pragma once

#include <mc/base.h>

#include <algorithm>
#include <cstring>

namespace mc::abi {

// Copies the caller's struct into *known. MC_E_INVAL: it does not even hold its own size. MC_E_VERSION.
template <class Options> int32_t read_options(const Options *given, Options *known) noexcept {
    const uint32_t size = given->struct_size;
    if (size < sizeof given->struct_size)
        return MC_E_INVAL;
    if (size > 4096) // no version of it will be that large: not a size
        return MC_E_VERSION;
    const auto *bytes = reinterpret_cast<const unsigned char *>(given);
    for (size_t i = sizeof(Options); i < size; ++i)
        if (bytes[i] != 0)
            return MC_E_VERSION;
    std::memset(static_cast<void *>(known), 0, sizeof(Options));
    std::memcpy(static_cast<void *>(known), bytes, std::min<size_t>(size, sizeof(Options)));
    return MC_OK;
}

} // namespace mc::abi
