// A polled machine's envelope in the hands of a program, and what is to become of it: a transaction by hand.
//
//   open   -> busy      while something is staged, by one thread at a time
//   busy   -> open
//   open   -> ended     by whoever commits, aborts, or finds it too old: one compare-exchange, so exactly one does
//
// Behind a handle, whose generation is part of the word; type-stable. It has a pin of its host's, and the
// machine is as one whose handler runs.
#pragma once

#include "base/handle.hpp"
#include "base/list.hpp"
#include "base/slab.hpp"
#include "compose/machine_host.hpp"
#include "machine/engine.hpp"

#include <mc/machine.h>

#include <cstdint>

namespace mc::compose {

class Token final : public base::SlabItem<Token>, public base::HandleItem, public base::ListNode<Token> {
public:
    using Engine = MachineHost::Engine;

    // --- any thread. MC_E_STALE: it has ended, or another thread is using it at this moment.

    // The caller's box, where there is one, is the runtime's from then on; when this fails it stays the caller's.
    static int32_t send(uint64_t handle, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept;
    static int32_t request(uint64_t handle, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                           uint64_t site, uint64_t *pending) noexcept;
    static int32_t reply(uint64_t handle, uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept;
    static int32_t publish(uint64_t handle, uint64_t kind, uint64_t routing, uint64_t payload0,
                           uint64_t payload1) noexcept;
    static int32_t subscribe(uint64_t handle, uint64_t kind, uint64_t routing, mc_subscription_op_t op) noexcept;
    static int32_t set_state(uint64_t handle, uint64_t state) noexcept;
    static int32_t commit(uint64_t handle) noexcept;
    static int32_t abort(uint64_t handle, uint64_t fault_code) noexcept;

    // --- by the host

    // A free one; null without memory.
    static Token *make() noexcept;
    static void give_back(Token *token) noexcept;
    Engine::Dispatch &dispatch() noexcept { return *dispatch_; }
    // Its envelope is in the dispatch. The caller has a pin; the token has one from then on.
    void open(MachineHost &host, machine::Machine *machine, mc_machine_polled *out) noexcept;
    int64_t opened_ns() const noexcept { return opened_ns_; }
    // By the host, while it is in its list: whoever gets true finishes it.
    bool try_end() noexcept { return change(generation.load(sync::relaxed), State::open, State::ended); }
    // MC_OK, or what became of it instead.
    int32_t finish(mc_dispatch_result_t result, uint64_t code) noexcept;

private:
    enum class State : uint64_t { ended, open, busy };

    static uint64_t make_word(uint32_t generation, State state) noexcept {
        return uint64_t{generation} << 2 | static_cast<uint64_t>(state);
    }
    bool change(uint32_t of, State from, State to) noexcept {
        uint64_t word = make_word(of, from);
        // What was staged is there; who comes later finds it as it is left. seq_cst, also where it fails: Dekker, with Host::close: who
        // closes the host finds it open again, or `use` finds the host closed.
        return word_.compare_exchange_strong(word, make_word(of, to), sync::seq_cst, sync::seq_cst);
    }

    template <class Act> static int32_t use(uint64_t handle, Act act) noexcept;
    static Token *end(uint64_t handle) noexcept;
    static void expire(uint64_t handle) noexcept;

    sync::atomic<uint64_t> word_{0}; // any thread: generation, state

    // who has it busy, or has ended it
    MachineHost *host_ = nullptr;
    machine::Machine *machine_ = nullptr;
    Engine::Dispatch *dispatch_ = nullptr; // stays
    machine::Staging<mc_subscription_update_t, 2> subscriptions_;
    mc_machine_dispatch_txn_t txn_ = {};
    int64_t opened_ns_ = 0; // immutable while it is open
};

} // namespace mc::compose
