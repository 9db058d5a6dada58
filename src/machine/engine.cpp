// The two engines: for runtimes that are stepped, and for those that are attached to executors.
#include "machine/engine.hpp"

#include "machine/step.hpp"

namespace mc::machine {

AskerSlab &asker_slab() noexcept {
    static constinit AskerSlab slab;
    return slab;
}

template class Engine<Seq>;
template class Engine<Par>;
template class Dispatch<Seq>;
template class Dispatch<Par>;
template Engine<Par> *Engine<Par>::take_over(Engine<Seq> &, Host *) noexcept;
template Engine<Seq> *Engine<Seq>::take_over(Engine<Par> &, Host *) noexcept;

} // namespace mc::machine
