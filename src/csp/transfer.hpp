// What follows once an arm is decided: the locks are given back, the message moves, the peer is woken.
#pragma once

#include "csp/channel.hpp"
#include "sched/switch.hpp"

namespace mc::csp {

// Runs tx with both parties held: we run, the peer is claimed. No lock held.
void run_transfer(sched::ThreadContext &thread, Transfer transfer, void *source, void *destination) noexcept;

inline void wake_met(sched::ThreadContext &thread, Waiter &peer, bool hand_over) noexcept {
    sched::Task *task = peer.task;
    const sched::TaskWord::Claim claim = peer.claim;
    task->reason = sched::WakeReason::ready;
    task->wake_value = peer.index + 1; // the peer's frame may be gone once it is woken
    if (hand_over)
        sched::wake_handing_over(thread, task, claim);
    else
        sched::wake_from(&thread, task, claim);
}

} // namespace mc::csp
