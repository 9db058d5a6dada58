// What tests of this room share: texts are compared as strings, and said whole when they are not what they should be.
#pragma once

#include "testing/test.hpp"

#include <string>

namespace mc::mcrt {

inline void check_text(const std::string &text, const char *wanted) { cr_assert(text == wanted, "%s", text.c_str()); }

} // namespace mc::mcrt
