// Descriptors as JSON, for people to write and read. docs/machines.md says what it looks like. Pure.
//
// What was made of a blob makes the same blob again, whatever bytes and numbers are in it: names that are no UTF-8 are written as
// {"hex": "..."}, numbers above 2^53, which other readers would round, as "0x...".
#pragma once

#include "mcrt/descriptor.hpp"

#include <string>

namespace mc::mcrt {

std::string to_json(const Descriptor &descriptor);

// Throws Stop with `path` and the line, or the key, of what is wrong: a key that nobody knows, too, and whatever is there twice.
Descriptor from_json(const std::string &text, const std::string &path);

} // namespace mc::mcrt
