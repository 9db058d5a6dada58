// What a simulated run is checked for (mc_sim_oracles): pure bookkeeping of what was told, which says what is wrong in words, or
// nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

namespace mc::sim {

// Messages in buffers: what goes in comes out unchanged and in order, and somebody takes it. One for each channel.
class Ledger {
public:
    explicit Ledger(uint64_t number) noexcept : number_(number) {}

    uint64_t number() const noexcept { return number_; }
    void set_name(const char *name) { name_ = name; }
    std::string called() const; // "channel 3 "jobs""

    // digest: of the bytes. Returns which message it is, from 1.
    uint64_t put(uint64_t digest, bool by_clock);
    // wrong: when it is not the one that was to come.
    uint64_t take(uint64_t digest, std::optional<std::string> *wrong);
    // The channel is gone with so many in it.
    std::optional<std::string> gone(uint32_t held, bool dropped);
    // At exit: what nobody has taken.
    std::optional<std::string> left() const;

private:
    const uint64_t number_;
    std::string name_;
    std::deque<uint64_t> digests_;
    uint64_t puts_ = 0;
    uint64_t takes_ = 0;
    bool clock_ = false; // of a timer: nobody need take the times
};

// Who waits since when, in steps. Runnable tasks and those whose wait somebody else could end and does not.
class Patience {
public:
    // The step at which it began, now or before.
    uint64_t begins(const void *task, uint64_t step) { return since_.try_emplace(task, step).first->second; }
    void ends(const void *task) { since_.erase(task); }
    // The one that has waited for longest, of those that have for longer than bound, or null. No two may begin at one step.
    const void *overdue(uint64_t step, uint64_t bound) const noexcept;

private:
    std::unordered_map<const void *, uint64_t> since_;
};

uint64_t digest_of(const void *bytes, uint32_t size) noexcept; // null is zeros

} // namespace mc::sim
