#include "csp/channel.hpp"

#include "base/alloc.hpp"
#include "csp/elements.hpp"
#include "csp/timer_source.hpp"
#include "sched/report.hpp"
#include "sched/runtime.hpp"
#include "sched/runtimes.hpp"

#include <cstring>
#include <new>

namespace mc::csp {
namespace {

sync::atomic<int32_t> alive[2] = {sync::atomic<int32_t>(0), sync::atomic<int32_t>(0)};

} // namespace

constinit ChannelSlab all_channels;

int Channel::count(Side side) noexcept { return alive[side].load(sync::relaxed); }

Channel *Channel::acquire(Transfer transfer, Elements *elements, TimerSource *timer) noexcept {
    Channel *channel = channel_slab().acquire();
    if (channel == nullptr)
        return nullptr;
    channel->lock(); // a stale handle may be looking at the slot
    channel->transfer_ = transfer;
    channel->elements_ = elements;
    channel->timer_ = timer;
    channel->name_[0] = '\0';
    channel->collected_ = false;
    channel->special_ = elements == nullptr ? 0 : elements_bit;
    return channel;
}

Channel *Channel::create(Transfer transfer, Elements *elements, TimerSource *timer) noexcept {
    Channel *channel = acquire(transfer, elements, timer);
    if (channel == nullptr)
        return nullptr;
    if (sched::simulator() != nullptr) [[unlikely]] {
        channel->special_ |= recorded_bit;
        channel->record(sched::SimEvent::channel, sched::current()->running, nullptr,
                        elements == nullptr ? 0 : int64_t{elements->capacity});
    }
    for (Side side : {writer_side, reader_side}) {
        channel->references_[side].store(1, sync::relaxed);
        if (channel->counted(side))
            alive[side].fetch_add(1, sync::relaxed);
    }
    channel->unlock();
    return channel;
}

// Two who come first at once make two; the one that is not kept is garbage at once.
Channel *Channel::skip() noexcept {
    static constinit sync::atomic<Channel *> kept{nullptr};
    Channel *channel = kept.load(sync::acquire); // acquire: pairs with the compare-exchange below
    if (channel != nullptr)
        return channel->add_reference(reader_side) ? channel : nullptr;
    channel = acquire(nullptr, nullptr, nullptr);
    if (channel == nullptr)
        return nullptr;
    channel->special_ = closed_bit(writer_side) | uncounted_bit;
    channel->references_[reader_side].store(2, sync::relaxed); // kept's, and the caller's
    channel->unlock();
    Channel *first = nullptr;
    // release: publishes the channel; acquire: what the first one has published, for who comes second.
    if (kept.compare_exchange_strong(first, channel, sync::acq_rel, sync::acquire))
        return channel;
    channel->release(reader_side);
    channel->release(reader_side);
    return first->add_reference(reader_side) ? first : nullptr;
}

bool Channel::counted(Side side) const noexcept {
    return (special_ & uncounted_bit) == 0 && (side == reader_side || timer_ == nullptr);
}

bool Channel::leave_uncounted() noexcept {
    base::SpinGuard guard(lock_);
    if (released(writer_side) && released(reader_side))
        return false;
    for (Side side : {writer_side, reader_side})
        if (counted(side) && !closed(side))
            alive[side].fetch_sub(1, sync::relaxed);
    special_ |= uncounted_bit;
    return true;
}

void Channel::record(sched::SimEvent event, const sched::Task *by, const sched::Task *peer,
                     int64_t value) const noexcept {
    sched::simulator()->told(event, by, this, peer, value);
}

// --- ends ---

// A count that is 0 is never written: the slot may be serving another channel at that moment.
bool Channel::add_reference(Side side) noexcept {
    uint32_t count = references_[side].load(sync::relaxed);
    do {
        if (count == 0 || count == UINT32_MAX)
            return false;
        // relaxed: the caller holds a reference already, nothing is published by another one.
    } while (!references_[side].compare_exchange_weak(count, count + 1, sync::relaxed, sync::relaxed));
    return true;
}

// Gives back one of at least `keep` + 1. False: there are not so many; *left is then how many there are.
bool Channel::drop_reference(Side side, uint32_t keep, uint32_t *left) noexcept {
    uint32_t count = references_[side].load(sync::relaxed);
    do {
        if (count <= keep) {
            *left = count;
            return false;
        }
        // release: what this holder did before comes before the close; acquire: whoever closes has seen what all did.
    } while (!references_[side].compare_exchange_weak(count, count - 1, sync::acq_rel, sync::relaxed));
    *left = count - 1;
    return true;
}

// The last reference goes under the lock, so that whoever finds both counts 0 there knows that nobody is still on his
// way.
bool Channel::release(Side side) noexcept {
    uint32_t left = 0;
    if (drop_reference(side, 1, &left))
        return true;
    Waiters woken;
    lock_.lock();
    const bool held = drop_reference(side, 0, &left);
    if (!held || left > 0) {
        lock_.unlock();
        return held;
    }
    if (!closed(side))
        close_locked(side, woken);
    finish_close(side, woken);
    return true;
}

bool Channel::close(Side side) noexcept {
    Waiters woken;
    lock_.lock();
    const bool was_open = !closed(side);
    if (was_open)
        close_locked(side, woken);
    finish_close(side, woken);
    return was_open;
}

bool Channel::close_if(uint32_t expected, Side side, bool *was_closed) noexcept {
    Waiters woken;
    lock_.lock();
    if (generation.load(sync::relaxed) != expected) {
        lock_.unlock();
        return false;
    }
    *was_closed = closed(side);
    if (!closed(side))
        close_locked(side, woken);
    finish_close(side, woken);
    return true;
}

bool Channel::destroy_if(uint32_t expected) noexcept {
    Waiters woken;
    lock_.lock();
    if (generation.load(sync::relaxed) != expected) {
        lock_.unlock();
        return false;
    }
    (void)retire_handle(this); // collectable() sees a used-up generation
    pin();                     // the two releases below would collect it under our hands
    for (Side side : {writer_side, reader_side})
        if (!closed(side))
            mark_closed(side);
    claim_dead(woken); // one death, one order
    finish_close(reader_side, woken);
    release(writer_side);
    release(reader_side);
    lock_.lock();
    unpin();
    unlock_and_collect();
    return true;
}

// Before the waiters are claimed: a racing arm that came after them would park on a dead channel for ever.
void Channel::close_locked(Side side, Waiters &woken) noexcept {
    mark_closed(side);
    claim_dead(woken);
}

void Channel::mark_closed(Side side) noexcept {
    if ((special_ & recorded_bit) != 0) [[unlikely]] {
        const bool by_clock = side == writer_side && timer_ != nullptr;
        record(sched::SimEvent::close, by_clock ? nullptr : sched::current()->running, nullptr, side);
    }
    special_ |= closed_bit(side);
    if (counted(side))
        alive[side].fetch_sub(1, sync::relaxed);
}

void Channel::claim_dead(Waiters &woken) noexcept {
    for (Side side : {reader_side, writer_side})
        if (dead_to(side))
            claim_dead_on(waiters_[side], woken);
    claim_dead_on(vultures_, woken);
}

// Who can not be claimed is about to leave for another reason, and unlinks himself.
void Channel::claim_dead_on(Waiters &waiters, Waiters &woken) noexcept {
    for (Waiter *waiter = waiters.front(); waiter != nullptr;) {
        Waiter *next = waiters.after(waiter);
        waiter->claim =
            dead_to(waiter->side) ? waiter->task->word.try_claim(waiter->epoch) : sched::TaskWord::Claim::lost;
        if (waiter->claim != sched::TaskWord::Claim::lost) {
            waiters.remove(waiter);
            woken.push_back(waiter);
        }
        waiter = next;
    }
}

void Channel::drained(Waiters &woken) noexcept {
    if (dead_to(reader_side))
        claim_dead(woken);
}

// The timer of a channel whose reading end has just closed ends, and its hold of the writing end with it. False: there is none,
// or it has ended, or it is firing and ends then.
bool Channel::stop_timer() noexcept {
    if (timer_ == nullptr || released(writer_side) || !timer_->stop())
        return false;
    mark_closed(writer_side); // those whom that concerns have been claimed with the reading end's close
    references_[writer_side].store(0, sync::relaxed);
    return true;
}

// Gives the lock back, and does what must be done without it: wakes, drops what nobody will receive.
void Channel::finish_close(Side side, Waiters &woken) noexcept {
    const bool read_no_more = elements_ != nullptr && closed(reader_side);
    if (read_no_more && (special_ & recorded_bit) != 0) [[unlikely]]
        sched::simulator()->channel_gone(this, elements_->count, elements_->drop != nullptr);
    Elements dropped;
    if (read_no_more && timer_ == nullptr)
        dropped = take_elements(*elements_);
    const bool stopped = side == reader_side && stop_timer();
    if (woken.empty() && dropped.count == 0 && dropped.slots == nullptr) {
        unlock_and_collect();
    } else {
        pin();
        lock_.unlock();
        wake_dead(woken); // before drop, which may wait for one of them
        drop_elements(dropped);
        lock_.lock();
        unpin();
        unlock_and_collect();
    }
    if (stopped)
        sched::timer_was_cancelled();
}

bool Channel::collectable() const noexcept {
    if (references_[writer_side].load(sync::relaxed) != 0 || references_[reader_side].load(sync::relaxed) != 0)
        return false;
    if (collected_ || pins_ != 0)
        return false;
    return waiters_[writer_side].empty() && waiters_[reader_side].empty() && vultures_.empty();
}

void Channel::unlock_and_collect_garbage() noexcept {
    if (!collectable()) {
        lock_.unlock();
        return;
    }
    collected_ = true;
    Elements *elements = elements_;
    TimerSource *timer = timer_;
    elements_ = nullptr;
    timer_ = nullptr;
    if (generation.load(sync::relaxed) % 2 == 1) // somebody released the handle's own references
        (void)retire_handle(this);
    const bool reusable = generation.load(sync::relaxed) != base::last_generation;
    lock_.unlock();
    if (timer != nullptr)
        base::destroy(timer); // which has the elements
    else
        free_elements(elements);
    if (reusable)
        channel_slab().release(this);
}

bool Channel::set_name(const char *text) noexcept {
    base::SpinGuard guard(lock_);
    if (released(writer_side) && released(reader_side))
        return false;
    std::strncpy(name_, text == nullptr ? "" : text, sizeof name_ - 1);
    if ((special_ & recorded_bit) != 0) [[unlikely]]
        sched::simulator()->told_text(sched::SimEvent::name_channel, sched::current()->running, this, name_);
    return true;
}

void Channel::copy_name(char (&to)[32]) noexcept {
    base::SpinGuard guard(lock_);
    std::memcpy(to, name_, sizeof to);
}

namespace {

// For reports: what a task waits for is one of our slots, which stay channels.
void name_channel(uint64_t object, char *buf) noexcept {
    char name[32];
    reinterpret_cast<Channel *>(object)->copy_name(name);
    std::memcpy(buf, name, sizeof name);
}

[[maybe_unused]] const bool named = (sched::set_channel_namer(name_channel), true);

} // namespace

// Whoever was in the middle of something is not there. Elements and timer may be half changed, so they are leaked.
void Channel::leave_behind() noexcept {
    (void)lock_.try_lock();
    for (Waiters *waiters : {&waiters_[writer_side], &waiters_[reader_side], &vultures_})
        new (waiters) Waiters();
    pins_ = 0;
    elements_ = nullptr;
    timer_ = nullptr;
    special_ = closed_bit(writer_side) | closed_bit(reader_side);
    if (generation.load(sync::relaxed) % 2 == 1)
        (void)retire_handle(this);
    lock_.unlock();
}

void Channel::leave_behind_all() noexcept {
    channel_slab().after_fork();
    for (uint32_t i = 0; i < channel_slab().carved(); ++i)
        channel_slab().at(i)->leave_behind();
    for (Side side : {writer_side, reader_side})
        alive[side].store(0, sync::relaxed);
}

// --- messages ---

Channel::Can Channel::look_special(Side side, Waiter **peer) noexcept {
    if (dead_to(side))
        return Can::dead;
    const uint32_t count = buffered();
    if (side == reader_side && count > 0)
        return Can::buffer;
    *peer = claim_first(other(side));
    if (*peer != nullptr)
        return Can::meet;
    if (side == writer_side && elements_ != nullptr && count < elements_->capacity)
        return Can::buffer;
    return Can::wait;
}

Waiter *Channel::use_buffer(Side side, void *message, const sched::Task *by) noexcept {
    sched::Simulator *recorder = (special_ & recorded_bit) != 0 ? sched::simulator() : nullptr;
    if (side == writer_side) {
        if (recorder != nullptr) [[unlikely]]
            recorder->buffered(sched::SimEvent::put, by, this, message, elements_->size);
        elements_->push(message);
        return nullptr;
    }
    if (recorder != nullptr) [[unlikely]]
        recorder->buffered(sched::SimEvent::take, by, this, elements_->slot(elements_->head), elements_->size);
    elements_->pop(message);
    Waiter *sender = claim_first(writer_side);
    if (sender != nullptr && recorder != nullptr) [[unlikely]]
        recorder->buffered(sched::SimEvent::put, sender->task, this, sender->message, elements_->size);
    if (sender != nullptr)
        elements_->push(sender->message);
    return sender;
}

void wake_dead(Waiters &woken) noexcept {
    while (Waiter *waiter = woken.pop_front()) {
        sched::Task *task = waiter->task;
        task->reason = sched::WakeReason::closed;
        task->wake_value = -(waiter->index + 1);
        sched::wake(task, waiter->claim);
    }
}

} // namespace mc::csp
