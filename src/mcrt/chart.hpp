// A descriptor as a state chart in Graphviz's language. Pure.
//
// A descriptor says which thunk handles an event in a state, not where the thunk leads: that is registered with it. So an edge
// goes to the state that a JSON file gives as the thunk's "next", back to its own where the file says that the thunk "stays", and
// otherwise to the thunk, drawn as a note.
#pragma once

#include "mcrt/descriptor.hpp"

#include <string>

namespace mc::mcrt {

std::string chart_of(const Descriptor &descriptor);

} // namespace mc::mcrt
