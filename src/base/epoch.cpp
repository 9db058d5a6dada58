#include "base/epoch.hpp"

#include "base/guarded.hpp"

#include <algorithm>

namespace mc::base {

// --- Readers and pins -----------------------------------------------------------------------------------------------

void EpochDomain::add(EpochReader &reader, const char *name) noexcept {
    SpinGuard guard(lock_);
    MC_INVARIANT(!reader.linked() && reader.is_offline(), epoch_.load(sync::relaxed));
    reader.domain_ = this;
    reader.name_ = name;
    readers_.push_back(&reader);
}

void EpochDomain::remove(EpochReader &reader) noexcept {
    SpinGuard guard(lock_);
    MC_INVARIANT(reader.linked() && reader.domain_ == this && reader.is_offline(), epoch_.load(sync::relaxed));
    List<EpochReader>::remove(&reader);
}

void EpochDomain::pin(EpochPin &pin, const char *name) noexcept {
    PinList &list = list_of(pin);
    SpinGuard guard(list.lock);
    MC_INVARIANT(!pin.linked(), pin.epoch_);
    pin.name_ = name;
    // Under the lock: after the last look at this list, and so at least the epoch of that look.
    // acquire: pairs with publish's release; what was unlinked before is not found any more.
    pin.epoch_ = epoch_.load(sync::acquire);
    list.pins.push_back(&pin);
}

void EpochDomain::unpin(EpochPin &pin) noexcept {
    PinList &list = list_of(pin);
    SpinGuard guard(list.lock); // orders what was read under the pin before the look that no longer finds it
    MC_INVARIANT(pin.linked(), pin.epoch_);
    List<EpochPin>::remove(&pin);
}

// Whose turn it is, under the domain's lock.
bool EpochReader::holds_up(uint64_t epoch) noexcept {
    uint64_t seen = seen_.load(sync::acquire); // acquire: pairs with the releases in quiescent, offline and online
    // Dekker, with online: it may be about to come. The word of one that is online is only read, so it stays where it
    // is.
    if (seen == is_off)
        seen = sync::dekker_observe(seen_);
    return seen != is_off && seen != epoch;
}

bool EpochDomain::reader_holds_up(uint64_t epoch) noexcept {
    SpinGuard guard(lock_);
    for (EpochReader *reader = readers_.front(); reader != nullptr; reader = readers_.after(reader))
        if (reader->holds_up(epoch))
            return true;
    return false;
}

bool EpochDomain::pin_holds_up(uint64_t epoch) noexcept {
    for (PinList &list : pin_lists_) {
        SpinGuard guard(list.lock);
        const EpochPin *oldest = list.pins.front();
        if (oldest != nullptr && oldest->epoch_ != epoch)
            return true;
    }
    return false;
}

// --- Retiring and advancing -----------------------------------------------------------------------------------------

void EpochDomain::retire(EpochNode *node, void (*free)(EpochNode *)) noexcept {
    node->free = free;
    (void)retired_count_.fetch_add(1, sync::relaxed); // before the push, so that no node is freed but not retired
    (void)retired_.push(node);                        // releases the unlinking to the turn that collects
}

bool EpochDomain::advance() noexcept {
    if (!turn_.try_lock())
        return false;
    const bool advanced = take_turn();
    turn_.unlock();
    return advanced;
}

bool EpochDomain::take_turn() noexcept {
    const uint64_t epoch = epoch_.load(sync::relaxed); // the last turn stored it
    if (reader_holds_up(epoch) || pin_holds_up(epoch)) {
        SpinGuard guard(lock_);
        if (held_up_ns_ == 0)
            held_up_ns_ = sync::now_ns();
        return false;
    }
    EpochNode *safe = waiting_;
    // Before the new epoch is published: who sees that must see the unlinking of all that waits for it.
    waiting_ = retired_.take_all();
    const Callback callback = publish(epoch + 1);
    if (callback.hook != nullptr)
        call_guarded("the hook of an epoch", [&] { callback.hook(callback.user, epoch + 1); });
    free_all(safe);
    return true;
}

EpochDomain::Callback EpochDomain::publish(uint64_t epoch) noexcept {
    SpinGuard guard(lock_);
    advanced_ns_ = sync::now_ns();
    held_up_ns_ = 0;
    calling_back_ = true;
    // release: pairs with the acquires in quiescent, online and pin; publishes the unlinking of what waits.
    epoch_.store(epoch, sync::release);
    return callback_;
}

void EpochDomain::free_all(EpochNode *node) noexcept {
    while (node != nullptr) {
        EpochNode *next = node->next; // before the node goes
        node->free(node);
        (void)freed_count_.fetch_add(1, sync::release); // release: pairs with counters()
        node = next;
    }
    SpinGuard guard(lock_);
    calling_back_ = false;
}

namespace {

// Others have to get on: makes way for them, then sleeps for 100 microseconds at a time.
void wait_for_readers(uint32_t round, int64_t deadline_ns) noexcept {
    if (round < 64)
        return sync::thread_yield();
    sync::atomic<uint32_t> nobody_wakes{0};
    (void)sync::futex_wait(nobody_wakes, 0, std::min(deadline_ns, sync::now_ns() + 100'000));
}

} // namespace

// The first advance of our own collects everything that was retired before the call, unless an earlier turn has. The
// second comes after an advance that has freed it: that or another thread's, whose turn is over when we have ours.
bool EpochDomain::try_drain(uint32_t *advances) noexcept {
    if (!turn_.try_lock())
        return false;
    // Nothing is left: in a turn, so that no other thread is still freeing.
    bool done = nothing_left();
    if (!done && take_turn())
        done = ++*advances == 2 || nothing_left();
    turn_.unlock();
    return done;
}

bool EpochDomain::drain(int64_t deadline_ns) noexcept {
    uint32_t advances = 0;
    for (uint32_t round = 0; !try_drain(&advances); ++round) {
        if (sync::now_ns() >= deadline_ns)
            return false;
        wait_for_readers(round, deadline_ns);
    }
    return true;
}

void EpochDomain::set_advance_hook(Hook hook, void *user) noexcept {
    SpinGuard guard(lock_);
    callback_ = {hook, user};
}

// --- What is told of it ---------------------------------------------------------------------------------------------

// The caller's array, as it fills.
struct EpochDomain::Stalls {
    EpochStall *out;
    uint32_t capacity;
    int64_t min_age_ns;
    uint32_t count = 0;

    void add(EpochStall::Kind kind, const char *name, uint64_t epoch, int64_t age_ns) noexcept {
        if (count == capacity || age_ns < min_age_ns)
            return;
        EpochStall &stall = out[count++];
        stall = {.kind = kind, .epoch = epoch, .age_ns = age_ns};
        for (size_t i = 0; i + 1 < sizeof stall.name && name[i] != 0; ++i)
            stall.name[i] = name[i];
    }
};

uint32_t EpochDomain::stalled(int64_t min_age_ns, EpochStall *out, uint32_t capacity) noexcept {
    SpinGuard guard(lock_); // the epoch stays
    const uint64_t epoch = epoch_.load(sync::relaxed);
    const int64_t now = sync::now_ns();
    Stalls stalls{.out = out, .capacity = capacity, .min_age_ns = min_age_ns};
    if (calling_back_)
        stalls.add(EpochStall::Kind::callback, "hook or free", epoch, now - advanced_ns_);
    if (held_up_ns_ == 0)
        return stalls.count;
    const int64_t age_ns = now - held_up_ns_;
    for (EpochReader *reader = readers_.front(); reader != nullptr; reader = readers_.after(reader)) {
        const uint64_t seen = reader->seen_.load(sync::relaxed);
        if (seen != EpochReader::is_off && seen != epoch)
            stalls.add(EpochStall::Kind::reader, reader->name_, seen, age_ns);
    }
    for (PinList &list : pin_lists_) {
        SpinGuard pins_guard(list.lock);
        for (EpochPin *pin = list.pins.front(); pin != nullptr && pin->epoch_ != epoch; pin = list.pins.after(pin))
            stalls.add(EpochStall::Kind::pin, pin->name_, pin->epoch_, age_ns);
    }
    return stalls.count;
}

EpochCounters EpochDomain::counters() const noexcept {
    EpochCounters now;
    now.epoch = epoch_.load(sync::relaxed);
    // acquire: pairs with free_all's release. What is counted as freed is counted as retired then.
    now.freed = freed_count_.load(sync::acquire);
    now.retired = retired_count_.load(sync::relaxed);
    return now;
}

} // namespace mc::base
