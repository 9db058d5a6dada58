// The engine for runtimes that are stepped.
#include "machine/engine.hpp"

#include "machine/step.hpp"

namespace mc::machine {

template class Engine<Seq>;
template class Dispatch<Seq>;

} // namespace mc::machine
