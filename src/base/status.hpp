// The status table of mc/base.h as functions.
#pragma once

#include <cstdint>

namespace mc::base {

const char *status_text(int32_t code) noexcept; // never null
const char *status_name(int32_t code) noexcept; // null for a code that is not in the table

} // namespace mc::base
