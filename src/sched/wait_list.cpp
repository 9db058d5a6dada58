#include "sched/wait_list.hpp"

namespace mc::sched {
namespace {

struct ListParking : Parking {
    explicit ListParking(const Parking &parking) noexcept : Parking(commit_list, parking.deadline_ns, parking.scope) {
        one_lock = true;
        may_be_cancelled = parking.may_be_cancelled;
        waits_for = parking.waits_for;
    }

    base::List<Waiting> *list = nullptr;
    base::Spinlock *lock = nullptr;
    Waiting *waiting = nullptr;
    WaitList::At at = WaitList::At::back;

    static void commit_list(Parking &parking) noexcept {
        auto &self = static_cast<ListParking &>(parking);
        self.waiting->task = self.task;
        self.waiting->epoch = self.epoch;
        base::Spinlock *lock = self.lock;
        self.at == WaitList::At::front ? self.list->push_front(self.waiting) : self.list->push_back(self.waiting);
        lock->unlock(); // nothing of the waiter's frame is touched from here on
    }
};

} // namespace

WakeReason WaitList::wait(ThreadContext &thread, base::Spinlock &lock, Waiting &waiting, At at,
                          const Parking &parking) noexcept {
    ListParking here(parking);
    here.list = &list_;
    here.lock = &lock;
    here.waiting = &waiting;
    here.at = at;
    const WakeReason reason = park(thread, here);
    if (reason == WakeReason::ready)
        return reason;
    lock.lock();
    if (waiting.linked())
        base::List<Waiting>::remove(&waiting);
    return reason;
}

bool WaitList::try_take(Waiting &waiting, int32_t value) noexcept {
    waiting.claim = waiting.task->word.try_claim(waiting.epoch);
    if (waiting.claim == TaskWord::Claim::lost)
        return false;
    waiting.task->reason = WakeReason::ready;
    waiting.task->wake_value = value;
    base::List<Waiting>::remove(&waiting);
    return true;
}

Waiting *WaitList::take_first(int32_t value) noexcept {
    for (Waiting *waiting = list_.front(); waiting != nullptr;) {
        Waiting *next = list_.after(waiting);
        if (try_take(*waiting, value))
            return waiting;
        waiting = next;
    }
    return nullptr;
}

} // namespace mc::sched
