// What an engine that is attached to executors asks of above, and how its callers keep it from ending meanwhile.
#pragma once

#include "base/sync.hpp"
#include "machine/asker.hpp"
#include "machine/policy.hpp"
#include "machine/table.hpp"

#include <cstdint>

namespace mc::machine {

template <class Sync> class Engine;

// Type-stable, and used again for another runtime: so a caller that has found it by a word looks whether it is still that
// word's once it has a hold on it (pin).
class Host {
public:
    // --- any thread

    // The engine, which stays until unpin. Null: the word's runtime is gone.
    Engine<Par> *pin(uint64_t word) noexcept {
        // acquire: pairs with open's release; acq_rel with close: who comes after it finds the mark.
        const uint64_t before = uses_.fetch_add(1, sync::acq_rel);
        if ((before & closed) == 0 && word_.load(sync::relaxed) == word) [[likely]]
            return engine_;
        unpin();
        return nullptr;
    }
    void unpin() noexcept {
        // release: what was done is done; acquire: the last one sees all of it.
        if (uses_.fetch_sub(1, sync::acq_rel) == (closed | 1)) [[unlikely]]
            unused();
    }

    // --- by the engine; no lock held, but for now_ns and about_now_ns

    // These machines are ready, in this order; linked through `next`. Each is the host's until it gives it to Engine::run.
    virtual void ready(Machine *first) noexcept = 0;
    // The same for machines that are polled: each is the host's until it gives it to Engine::begin_polled.
    virtual void polled(Machine *first) noexcept = 0;
    // A machine that waits to be polled is not to be polled any more: it goes to Engine::give_back. Where somebody has just polled
    // it, or it is only about to wait, that one finds out. It may be another machine by now, which waits anew then. alone: its
    // id, if it was polled alone; 0: it was not.
    virtual void stop_polled(Machine *machine, uint32_t alone) noexcept = 0;
    virtual void wake(const Waker &waker) noexcept = 0;
    // About now, in steady nanoseconds; cheap.
    virtual int64_t now_ns() const noexcept = 0;
    virtual int64_t about_now_ns() const noexcept = 0; // cheaper, and late by some dispatches
    virtual uint64_t ready_length() const noexcept = 0;
    // A request that may time out has been made.
    virtual void watch_timeouts() noexcept = 0;

protected:
    Host() noexcept = default;
    ~Host() = default;

    static constexpr uint64_t closed = uint64_t{1} << 63;

    void open(uint64_t word, Engine<Par> *engine) noexcept {
        engine_ = engine;
        word_.store(word, sync::relaxed);
        // A subtraction: somebody who has found this host for another word may be about to see that it is not.
        (void)uses_.fetch_sub(closed, sync::release); // release: pairs with pin
    }
    // Nobody gets in any more; the caller, who has a pin, gives that up next, and whoever is last calls unused.
    void close() noexcept { (void)uses_.fetch_add(closed, sync::seq_cst); } // seq_cst: Dekker, with has_been_closed
    // The same if the caller's pin is the only one. False: it is not.
    bool close_alone() noexcept {
        uint64_t one = 1;
        return uses_.compare_exchange_strong(one, closed | 1, sync::acq_rel, sync::relaxed);
    }
    void reopen() noexcept { (void)uses_.fetch_sub(closed, sync::release); } // it was closed, and the caller has a pin
    bool is_last_out_but(uint32_t others) const noexcept { return uses_.load(sync::relaxed) == (closed | 1) + others; }
    bool is_closed() const noexcept { return (uses_.load(sync::relaxed) & closed) != 0; }
    // By who has just made something free, seq_cst, that whoever closes it looks for afterwards, likewise: one of the two sees it.
    bool has_been_closed() const noexcept { return (uses_.load(sync::seq_cst) & closed) != 0; }

    // It is closed, and nobody is in it. May be called anew by those who look in late; only the first call counts.
    virtual void unused() noexcept = 0;

    Engine<Par> *engine_ = nullptr;       // immutable while it is open
    sync::atomic<uint64_t> word_{0};      // likewise
    sync::atomic<uint64_t> uses_{closed}; // any thread
};

// What becomes of a transaction whose receiver is full, or whose reply comes too late. The numbers are those of mc/machine.h.
enum class OnFull : uint32_t { fault = 0, retry = 1 };
enum class OnLateReply : uint32_t { fault = 0, discard = 1 };

} // namespace mc::machine
