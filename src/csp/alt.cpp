#include "csp/alt.hpp"

#include "base/alloc.hpp"
#include "csp/elements.hpp"
#include "csp/transfer.hpp"

#include <algorithm>

namespace mc::csp {
namespace {

using sched::ThreadContext;
using sched::WakeReason;

constexpr int max_arms = 65'535;

// The word of an arm: see mc/csp.h.
struct Word {
    uintptr_t bits;

    explicit Word(const csp_chanop &op) noexcept : bits(reinterpret_cast<uintptr_t>(op.waiter)) {}
    bool disabled() const noexcept { return (bits & ~uintptr_t{15}) == 0; }
    bool valid() const noexcept { return (bits & 12) == 12; } // bit 3, and mode 2 or 3
    bool dead_mode() const noexcept { return (bits & 2) == 0; }
    Side side() const noexcept { return static_cast<Side>(bits & 1); }
    Channel &channel() const noexcept { return *channel_at(bits); }
};

// The distinct channels of an alt, in the order of their addresses: what it locks.
struct LockSet {
    Channel **channels;
    uint32_t count = 0;

    void lock() const noexcept {
        for (uint32_t i = 0; i < count; ++i)
            channels[i]->lock();
    }
    void unlock() const noexcept {
        for (uint32_t i = 0; i < count; ++i)
            channels[i]->unlock();
    }
};

// Everything about one call, on the caller's stack (its arrays too, up to the number of arms that never allocates).
struct Alt {
    ThreadContext &thread;
    const csp_chanop *ops;
    int count;
    int enabled = 0;
    LockSet locks;
    Waiter *waiters;          // room for count; each is constructed when it is linked
    bool ordered = true;      // the arms' channels came in the order in which they are locked, each once
    bool may_discard = false; // an arm receives what nobody wants
};

// False: a word that is neither disabled nor valid.
bool decode(Alt &alt) noexcept {
    const Channel *last = nullptr;
    for (int i = 0; i < alt.count; ++i) {
        const Word word(alt.ops[i]);
        if (word.disabled())
            continue;
        if (!word.valid())
            return false;
        Channel *channel = &word.channel();
        alt.ordered = alt.ordered && last < channel;
        alt.may_discard = alt.may_discard || alt.ops[i].message == nullptr;
        alt.locks.channels[alt.enabled++] = channel;
        last = channel;
    }
    alt.locks.count = static_cast<uint32_t>(alt.enabled);
    return true;
}

// When decode did not find them so.
__attribute__((noinline)) void order_locks(Alt &alt) noexcept {
    Channel **first = alt.locks.channels;
    Channel **last = first + alt.enabled;
    if (alt.enabled <= 16) { // insertion: most alts are short
        for (Channel **at = first + 1; at < last; ++at)
            for (Channel **back = at; back > first && back[0] < back[-1]; --back)
                std::swap(back[0], back[-1]);
    } else {
        std::sort(first, last);
    }
    alt.locks.count = static_cast<uint32_t>(std::unique(first, last) - first);
}

// Duplicate arms: the lowest index is the one that is meant.
int lowest_duplicate(const Alt &alt, int index) noexcept {
    if (alt.ordered)
        return index; // no channel is there twice
    for (int i = 0; i < index; ++i)
        if (alt.ops[i].waiter == alt.ops[index].waiter)
            return i;
    return index;
}

// Under the locks, which it gives back. Arm `index` met a peer.
int meet(Alt &alt, int index, Waiter &peer, bool hand_over) noexcept {
    const Word word(alt.ops[index]);
    void *message = alt.ops[index].message;
    void *source = word.side() == writer_side ? message : peer.message;
    void *destination = word.side() == writer_side ? peer.message : message;
    const Transfer transfer = word.channel().transfer();
    const sched::Task *self = alt.thread.running;
    word.channel().note_message(word.side() == writer_side ? self : peer.task,
                                word.side() == writer_side ? peer.task : self);
    hand_over = hand_over && word.side() == writer_side && word.channel().hands_over();
    if (word.channel().elements() != nullptr)
        hand_element(*word.channel().elements(), source, destination);
    alt.locks.unlock();
    if (transfer != nullptr && destination != nullptr)
        run_transfer(alt.thread, transfer, source, destination);
    wake_met(alt.thread, peer, hand_over);
    return index + 1;
}

// Under the locks, which it gives back. Arm `index` uses the buffer.
int use_buffer(Alt &alt, int index) noexcept {
    const Word word(alt.ops[index]);
    Waiters woken;
    Waiter *sender = word.channel().use_buffer(word.side(), alt.ops[index].message, alt.thread.running);
    word.channel().drained(woken);
    alt.locks.unlock();
    if (sender != nullptr)
        wake_met(alt.thread, *sender, false);
    wake_dead(woken);
    return index + 1;
}

int give_up(const Alt &alt, int result) noexcept {
    alt.locks.unlock();
    return result;
}

// Under the locks: this arm receives what nobody wants, and its channel must drop it.
bool discards(const csp_chanop &op) noexcept {
    const Word word(op);
    return op.message == nullptr && !word.disabled() && !word.dead_mode() && word.side() == reader_side &&
           must_drop(word.channel());
}

// Under the locks. True: arm *index decides, and *result is the alt's; the locks are given back.
__attribute__((noinline)) bool decide_arm(Alt &alt, int index, bool hand_over, int *result) noexcept {
    const Word word(alt.ops[index]);
    Channel &channel = word.channel();
    if (channel.released(word.side())) {
        alt.locks.unlock();
        *result = report_released();
        return true;
    }
    if (word.dead_mode()) {
        if (!channel.dead_to(word.side()))
            return false;
        *result = give_up(alt, -(lowest_duplicate(alt, index) + 1));
        return true;
    }
    Waiter *peer = nullptr;
    switch (channel.look(word.side(), &peer)) {
    case Channel::Can::wait:
        return false;
    case Channel::Can::dead:
        *result = give_up(alt, -(lowest_duplicate(alt, index) + 1));
        return true;
    case Channel::Can::meet:
        *result = meet(alt, lowest_duplicate(alt, index), *peer, hand_over);
        return true;
    case Channel::Can::buffer:
        *result = use_buffer(alt, lowest_duplicate(alt, index));
        return true;
    }
    __builtin_unreachable();
}

inline bool try_arm(Alt &alt, int index, bool hand_over, int *result) noexcept {
    const Word word(alt.ops[index]);
    if (word.disabled() || word.channel().idle_for(word.side()))
        return false;
    return decide_arm(alt, index, hand_over, result);
}

// The first arm that a random choice looks at, alone: under load it is ready as a rule, and then no other channel is locked.
// It is the one that the scan would begin with. (A choice by priority can not do so: an arm before it may become ready.)
// True: it decides, and *result is the alt's. Else nothing has happened.
bool try_alone(Alt &alt, int index, bool hand_over, int *result) noexcept {
    const Word word(alt.ops[index]);
    if (word.disabled() || word.dead_mode() || alt.may_discard)
        return false;
    index = lowest_duplicate(alt, index);
    Channel *channel = &word.channel();
    channel->lock();
    if (channel->special()) {
        const bool passed =
            !channel->released(word.side()) && channel->pass_buffer(word.side(), alt.ops[index].message);
        channel->unlock();
        *result = index + 1;
        return passed;
    }
    Waiter *peer = channel->released(word.side()) ? nullptr : channel->claim_first(other(word.side()));
    if (peer == nullptr) {
        channel->unlock();
        return false;
    }
    alt.locks.channels[0] = channel; // all that is locked; the alt ends here
    alt.locks.count = 1;
    *result = meet(alt, index, *peer, hand_over);
    return true;
}

struct AltParking : sched::Parking {
    using Parking::Parking;
    Alt *alt = nullptr;

    // In the order of the arms, so that of duplicates the lowest is found first.
    static void commit_alt(Parking &parking) noexcept {
        auto &self = static_cast<AltParking &>(parking);
        const Alt &alt = *self.alt;
        for (int i = 0; i < alt.count; ++i) {
            const Word word(alt.ops[i]);
            if (word.disabled())
                continue;
            void *message = alt.ops[i].message; // before the waiter is constructed: then nothing is stored twice
            Waiter &waiter = *new (&alt.waiters[i]) Waiter();
            waiter.task = self.task;
            waiter.epoch = self.epoch;
            waiter.message = message;
            waiter.index = i;
            word.channel().link(word.side(), word.dead_mode(), &waiter);
        }
        alt.locks.unlock();
    }
};

// Unlinks every arm but the one (if any) that the claim came through, whose claimer has unlinked it.
void unlink_arms(const Alt &alt, int claimed) noexcept {
    for (int i = 0; i < alt.count; ++i) {
        const Word word(alt.ops[i]);
        if (word.disabled() || i == claimed)
            continue;
        Channel &channel = word.channel();
        channel.lock();
        Waiters::remove(&alt.waiters[i]);
        channel.unlock_and_collect();
    }
}

// Under the locks, which it gives back.
int wait_for_arm(Alt &alt, const Patience &patience) noexcept {
    AltParking parking(AltParking::commit_alt, patience.deadline_ns, patience.scope);
    parking.alt = &alt;
    parking.waits_for = sched::WaitsFor(sched::WaitKind::choice, &alt);
    const WakeReason reason = park(alt.thread, parking);
    if (reason != WakeReason::ready && reason != WakeReason::closed) {
        unlink_arms(alt, -1);
        return sched::status_of(reason);
    }
    const int result = parking.task->wake_value;
    unlink_arms(alt, (result > 0 ? result : -result) - 1);
    return result;
}

// Bytes of the largest element that an arm would receive only to drop it, or 0. Under the locks.
size_t discarded_bytes(const Alt &alt) noexcept {
    size_t bytes = 0;
    for (int i = 0; i < alt.count; ++i)
        if (discards(alt.ops[i]))
            bytes = std::max<size_t>(bytes, Word(alt.ops[i]).channel().elements()->size);
    return bytes;
}

int run_discarding(const Alt &alt, size_t bytes, bool random, const Patience &patience) noexcept;

int first_arm(const Alt &alt) noexcept {
    const auto arms = static_cast<uint32_t>(alt.count);
    if (sched::Simulator *simulation = sched::simulator()) [[unlikely]]
        return static_cast<int>(simulation->pick(arms));
    return static_cast<int>(alt.thread.prng.below(arms));
}

int run(Alt &alt, bool random, const Patience &patience) noexcept {
    if (!decode(alt))
        return MC_E_INVAL;
    if (alt.enabled == 0)
        return 0;
    const int start = random ? first_arm(alt) : 0;
    const bool hand_over = patience.may_wait();
    int result = 0;
    if (random && try_alone(alt, start, hand_over, &result))
        return result;
    if (!alt.ordered)
        order_locks(alt);
    alt.locks.lock();
    if (alt.may_discard) {
        if (const size_t bytes = discarded_bytes(alt)) {
            alt.locks.unlock();
            return run_discarding(alt, bytes, random, patience);
        }
    }
    for (int i = start; i < alt.count; ++i)
        if (try_arm(alt, i, hand_over, &result))
            return result;
    for (int i = 0; i < start; ++i)
        if (try_arm(alt, i, hand_over, &result))
            return result;
    const int refused = refusal(alt.thread, patience);
    return refused <= 0 ? give_up(alt, refused) : wait_for_arm(alt, patience);
}

template <int Arms>
__attribute__((noinline)) int run_inline(ThreadContext &thread, const csp_chanop *ops, int count, bool random,
                                         const Patience &patience) noexcept {
    Channel *channels[Arms];
    alignas(Waiter) std::byte waiters[Arms * sizeof(Waiter)]; // constructed when they are linked
    Alt alt{thread, ops, count, 0, {channels}, reinterpret_cast<Waiter *>(waiters)};
    return run(alt, random, patience);
}

__attribute__((noinline)) int run_large(ThreadContext &thread, const csp_chanop *ops, int count, bool random,
                                        const Patience &patience) noexcept {
    const auto arms = static_cast<size_t>(count);
    auto *channels = base::allocate_array<Channel *>(arms);
    auto *waiters = base::allocate_array<Waiter>(arms);
    int result = MC_E_NOMEM;
    if (channels != nullptr && waiters != nullptr) {
        Alt alt{thread, ops, count, 0, {channels}, waiters};
        result = run(alt, random, patience);
    }
    base::deallocate_array(waiters, arms);
    base::deallocate_array(channels, arms);
    return result;
}

int run_sized(ThreadContext &thread, const csp_chanop *ops, int count, bool random, const Patience &patience) noexcept {
    if (count <= 4)
        return run_inline<4>(thread, ops, count, random, patience);
    if (count <= 16)
        return run_inline<16>(thread, ops, count, random, patience);
    return run_large(thread, ops, count, random, patience);
}

// Drops the scratch element that arm `op` received.
void drop_received(const csp_chanop &op, void *element) noexcept {
    Channel &channel = Word(op).channel();
    channel.lock();
    const Elements view = channel.elements() == nullptr ? Elements{} : *channel.elements();
    channel.unlock();
    drop_element(view, element);
}

// Some arms receive elements that nobody wants but their channel must drop: they get one scratch element of `bytes`,
// since only one arm goes. The ops are copied with it in their place, and the alt begins anew.
int run_discarding(const Alt &alt, size_t bytes, bool random, const Patience &patience) noexcept {
    constexpr int few = 16;
    const auto arms = static_cast<size_t>(alt.count);
    Scratch scratch(bytes);
    csp_chanop inline_copies[few];
    csp_chanop *copies = alt.count <= few ? inline_copies : base::allocate_array<csp_chanop>(arms);
    int result = MC_E_NOMEM;
    if (copies != nullptr && scratch.get() != nullptr) {
        alt.locks.lock();
        for (int i = 0; i < alt.count; ++i)
            copies[i] = csp_chanop{alt.ops[i].waiter, discards(alt.ops[i]) ? scratch.get() : alt.ops[i].message};
        alt.locks.unlock();
        result = run_sized(alt.thread, copies, alt.count, random, patience);
        if (result > 0 && copies[result - 1].message == scratch.get())
            drop_received(alt.ops[result - 1], scratch.get());
    }
    if (copies != inline_copies)
        base::deallocate_array(copies, arms);
    return result;
}

} // namespace

int alt(ThreadContext &thread, const csp_chanop *ops, int count, bool random, const Patience &patience) noexcept {
    if (count < 0 || count > max_arms || (count > 0 && ops == nullptr))
        return MC_E_INVAL;
    if (count == 1) {
        const Word word(*ops);
        if (!word.disabled() && word.valid() && !word.dead_mode())
            return operate(thread, word.channel(), word.side(), ops->message, patience, 0);
    }
    return run_sized(thread, ops, count, random, patience);
}

} // namespace mc::csp
