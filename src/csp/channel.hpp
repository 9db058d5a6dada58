// A channel: two counted ends, those who wait at each, and for mc_chan a buffer. Any thread; lock_ guards what it says.
//
// Both kinds share everything but how a message moves: a csp channel calls tx, a channel of elements copies bytes.
//
// Dead: an end is closed when its last reference goes (or it is closed outright). The channel is dead to the writers
// when either end is closed, to the readers when theirs is, or when the writers' is and nothing is buffered. Who waits
// is woken when it becomes dead to him: first those who want to send or receive, in the order in which they came, then
// those in dead mode ("vultures").
//
// The slot is type-stable, so a stale handle meets a channel, whose lock works and whose generation or count says that
// it is another one. It goes back to the slab (through a quarantine) when both ends have no reference left, nobody is
// linked and nobody has it pinned; that is decided once, under the lock. Nothing of the channel is touched after that
// unlock.
//
// Rejected: a lock-free channel (an alt must claim over several at once); alive as an atomic beside the lock (then the
// last access must be ordered by hand).
#pragma once

#include "base/handle.hpp"
#include "base/list.hpp"
#include "base/slab.hpp"
#include "base/spinlock.hpp"
#include "sched/park.hpp"
#include "sched/simulation.hpp"

#include <mc/csp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mc::csp {

enum Side : uint8_t { writer_side = 0, reader_side = 1 };
constexpr Side other(Side side) noexcept { return side == writer_side ? reader_side : writer_side; }

using Transfer = void (*)(void *source, void *destination);

// One arm of a parked alt, on the waiter's stack. Linked under the channel's lock; unlinked by whoever claims the
// waiter through it, else by the waiter before its frame returns.
struct Waiter : base::ListNode<Waiter> {
    sched::Task *task = nullptr;
    uint64_t epoch = 0;
    void *message = nullptr;
    int32_t index = 0;
    Side side = writer_side;
    sched::TaskWord::Claim claim = sched::TaskWord::Claim::lost; // while somebody has claimed through it
};
using Waiters = base::List<Waiter>;

// The elements of an mc_chan, or of a timer's channel. Guarded by the channel's lock but for what is immutable.
struct Elements {
    // immutable
    uint32_t size = 0;
    uint32_t capacity = 0;
    mc_chan_drop_fn drop = nullptr;
    void *user = nullptr;
    std::byte *slots = nullptr;
    // guarded by the channel's lock
    uint32_t head = 0;
    uint32_t count = 0;

    std::byte *slot(uint32_t position) const noexcept { return slots + size_t{position} * size; }
    void push(const void *element) noexcept { // null is zeros
        uint32_t tail = head + count;
        if (tail >= capacity)
            tail -= capacity;
        ++count;
        if (element != nullptr)
            copy(slot(tail), element);
        else if (size != 0)
            std::memset(slot(tail), 0, size);
    }
    void pop(void *element) noexcept { // null leaves it behind
        if (element != nullptr)
            copy(element, slot(head));
        if (++head == capacity)
            head = 0;
        --count;
    }
    void copy(void *to, const void *from) const noexcept {
        if (size == sizeof(uint64_t)) // what most elements are: no call
            std::memcpy(to, from, sizeof(uint64_t));
        else if (size != 0)
            std::memcpy(to, from, size);
    }
};

class TimerSource;

class alignas(64) Channel : public base::SlabItem<Channel>, public base::HandleItem {
public:
    // What an arm can do now, under the lock.
    enum class Can : uint32_t { wait, meet, buffer, dead };

    // A csp channel, or one of elements, or a timer's. Each end has one reference. Null without memory; otherwise it
    // owns elements and timer (a timer brings its elements, and has the writing end).
    static Channel *create(Transfer transfer, Elements *elements, TimerSource *timer) noexcept;

    // A new reference to the reader of the one channel that is dead from the start, made at the first call. It is nobody's
    // and in no record of a simulated run. Null without memory.
    static Channel *skip() noexcept;

    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }
    base::Spinlock &spinlock() noexcept { return lock_; }

    // --- ends; any thread, without the lock
    bool add_reference(Side side) noexcept; // false: it has been released
    bool release(Side side) noexcept;       // false: it has been released
    bool close(Side side) noexcept;         // false: it was closed
    // --- by handle: false when the generation is another one
    bool close_if(uint32_t expected, Side side, bool *was_closed) noexcept;
    bool destroy_if(uint32_t expected) noexcept;

    // --- under the lock
    bool released(Side side) const noexcept { return references_[side].load(sync::relaxed) == 0; }
    bool closed(Side side) const noexcept { return (special_ & closed_bit(side)) != 0; }
    bool dead_to(Side side) const noexcept {
        if ((special_ & (closed_bit(writer_side) | closed_bit(reader_side))) == 0)
            return false;
        return side == writer_side || closed(reader_side) || buffered() == 0;
    }
    // Claims and unlinks the first who can still be claimed, or null. Who can not is about to leave for another reason.
    Waiter *claim_first(Side side) noexcept {
        Waiters &waiters = waiters_[side];
        for (Waiter *waiter = waiters.front(); waiter != nullptr; waiter = waiters.after(waiter)) {
            waiter->claim = waiter->task->word.try_claim(waiter->epoch);
            if (waiter->claim != sched::TaskWord::Claim::lost) [[likely]] {
                waiters.remove(waiter);
                return waiter;
            }
        }
        return nullptr;
    }
    // Anything but an open csp channel.
    bool special() const noexcept { return special_ != 0; }
    // Nothing is there for an arm on this side, in either mode.
    bool idle_for(Side side) const noexcept {
        return special_ == 0 && !released(side) && waiters_[other(side)].empty();
    }
    // What an arm in ready mode can do; with meet, *peer is claimed and unlinked.
    Can look(Side side, Waiter **peer) noexcept {
        if (special_ != 0) [[unlikely]]
            return look_special(side, peer);
        return (*peer = claim_first(other(side))) != nullptr ? Can::meet : Can::wait;
    }
    // What most calls on a buffered channel are: it is open, nobody waits, and there is an element, or space for one. It has
    // moved, then. False: nothing has happened.
    __attribute__((always_inline)) bool pass_buffer(Side side, void *message) noexcept {
        if (!may_pass_buffer(side))
            return false;
        move(side, message);
        return true;
    }
    bool may_pass_buffer(Side side) const noexcept {
        return special_ == elements_bit && waiters_[writer_side].empty() && waiters_[reader_side].empty() &&
               elements_->count != (side == writer_side ? elements_->capacity : 0);
    }
    void move(Side side, void *message) noexcept {
        side == writer_side ? elements_->push(message) : elements_->pop(message);
    }
    // After Can::buffer: moves an element between message and buffer. On receive a sender that waited for space may
    // get its element in: it is returned, claimed.
    // by: who does it, for the record of a simulated run; null is a timer.
    Waiter *use_buffer(Side side, void *message, const sched::Task *by) noexcept;
    // Wakes the vultures of a reader whose last element was just taken: they are moved to woken, claimed.
    void drained(Waiters &woken) noexcept;
    void link(Side side, bool dead_mode, Waiter *waiter) noexcept {
        waiter->side = side;
        (dead_mode ? vultures_ : waiters_[side]).push_back(waiter);
    }
    // Who sends into a buffer goes on: to run the receiver at each element, the sender's turn after it, would be what the
    // buffer is there to spare. Under the lock.
    bool hands_over() const noexcept { return elements_ == nullptr || elements_->capacity == 0; }
    // A message goes straight from one to the other, for the record of a simulated run.
    void note_message(const sched::Task *from, const sched::Task *to) const noexcept {
        if ((special_ & recorded_bit) != 0) [[unlikely]]
            record(sched::SimEvent::message, from, to, 0);
    }
    void pin() noexcept { ++pins_; }
    void unpin() noexcept { --pins_; }

    // Gives the lock back; frees the channel when it has just become garbage.
    void unlock_and_collect() noexcept {
        if (released(writer_side) && released(reader_side)) [[unlikely]]
            unlock_and_collect_garbage();
        else
            lock_.unlock();
    }

    // immutable while it lives
    Elements *elements() const noexcept { return elements_; }
    Transfer transfer() const noexcept { return transfer_; }

    bool set_name(const char *text) noexcept; // false: released
    void copy_name(char (&to)[32]) noexcept;

    // Channels with this end alive, the library's own excepted.
    static int count(Side side) noexcept;
    bool leave_uncounted() noexcept; // false: both ends have been released

    // In the child of a fork, while it has one thread: all channels that there are become dead ends. Their handles are
    // stale, both sides are closed and nobody waits; endpoints may still be released.
    static void leave_behind_all() noexcept;

private:
    // Bits of special_: 0 is an open csp channel, which takes the short way.
    static constexpr uint8_t closed_bit(Side side) noexcept { return static_cast<uint8_t>(1u << side); }
    static constexpr uint8_t elements_bit = 4;
    static constexpr uint8_t recorded_bit = 8; // in simulation: never the short way, which tells nothing
    static constexpr uint8_t uncounted_bit = 16;

    static Channel *acquire(Transfer transfer, Elements *elements,
                            TimerSource *timer) noexcept; // locked; no references yet
    void record(sched::SimEvent event, const sched::Task *by, const sched::Task *peer, int64_t value) const noexcept;
    uint32_t buffered() const noexcept { return elements_ == nullptr ? 0 : elements_->count; }
    Can look_special(Side side, Waiter **peer) noexcept;
    void close_locked(Side side, Waiters &woken) noexcept;
    void mark_closed(Side side) noexcept;
    bool counted(Side side) const noexcept;
    void claim_dead_on(Waiters &waiters, Waiters &woken) noexcept;
    bool drop_reference(Side side, uint32_t keep, uint32_t *left) noexcept;
    void claim_dead(Waiters &woken) noexcept;
    void unlock_and_collect_garbage() noexcept;
    bool collectable() const noexcept;
    bool stop_timer() noexcept;
    void finish_close(Side side, Waiters &woken) noexcept;
    void leave_behind() noexcept;

    base::Spinlock lock_;
    uint8_t special_ = 0;    // guarded by lock_: closed_bit of each side, elements_bit, recorded_bit, uncounted_bit
    bool collected_ = false; // guarded by lock_: the slot is, or is about to be, in the slab
    sync::atomic<uint32_t> references_[2] = {sync::atomic<uint32_t>(0), sync::atomic<uint32_t>(0)}; // any thread
    // immutable while it lives
    Transfer transfer_ = nullptr;
    Elements *elements_ = nullptr; // owned: freed with the channel; a timer's channel: the timer's
    TimerSource *timer_ = nullptr; // owned, likewise
    // guarded by lock_
    Waiters waiters_[2];
    Waiters vultures_; // of both ends
    uint32_t pins_ = 0;
    char name_[32] = {};
};

#ifdef MC_DEBUG
using ChannelSlab = base::Slab<Channel, 4096>;
#else
using ChannelSlab = base::Slab<Channel, 64>;
#endif
extern constinit ChannelSlab all_channels;
inline ChannelSlab &channel_slab() noexcept { return all_channels; }

// The handles of mc/csp.h.
inline csp_writer writer_handle(Channel *channel) noexcept { return reinterpret_cast<csp_writer>(channel); }
inline csp_reader reader_handle(Channel *channel) noexcept {
    return reinterpret_cast<csp_reader>(reinterpret_cast<uintptr_t>(channel) | 1);
}
inline Channel *channel_at(uintptr_t word) noexcept { return reinterpret_cast<Channel *>(word & ~uintptr_t{15}); }
template <class Handle> Channel *channel_of(Handle handle) noexcept {
    return channel_at(reinterpret_cast<uintptr_t>(handle));
}

// Wakes claimed waiters, in order, telling each that its arm's channel is dead.
void wake_dead(Waiters &woken) noexcept;

} // namespace mc::csp
