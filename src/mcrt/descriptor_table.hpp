// A descriptor as text, a line for each entry; and what is doubtful about it. Pure.
#pragma once

#include "mcrt/descriptor.hpp"

#include <string>

namespace mc::mcrt {

std::string table_of(const Descriptor &descriptor);

} // namespace mc::mcrt
