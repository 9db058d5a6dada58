// Epoch-based reclamation: what has been unlinked from a shared structure is freed once nobody can still hold it. One
// domain per runtime.
//
// Who calls what:
//  - Executors are *readers*: each registers an EpochReader of its own, calls quiescent() where it holds nothing of the
//    structures (at each switch or poll), offline() before it sleeps and online() after.
//  - Foreign threads and tasks *pin*: an EpochPin lies in the task, or on the stack of a foreign call. It belongs to
//    nobody's thread: it may be taken on one and released on another, if the one happens before the other.
//  - Any thread retires what it has unlinked, and any thread advances the epoch, which frees what has become safe.
//
// A reader's word (only its owner stores to it):
//
//   offline   --online-----> seen g     (g: the epoch as the owner finds it)
//   seen g    --quiescent--> seen g'
//   seen g    --offline----> offline
//
// Nodes on their way:
//
//   retire --> retired_ --collected, then epoch g is published--> waiting_ --all have seen g--> freed
//
// The epoch moves from g to g + 1 when every reader is offline or has seen g, and every pin was taken at g. Only then
// are the waiting nodes taken to be freed, and the retired ones collected. So:
//  1. Whoever sees epoch g (acquire) sees all unlinking of what was collected before g was published (release), and so
//     finds none of it any more. What he found before, he held before he stored "seen g" (release).
//  2. The advancing side reads that (acquire) before it frees: each node is freed after all use of it.
// A node needs no stamp: it waits for one whole epoch, whichever that is.
//
// Going online is a race with the advancing side, which does not wait for readers that are offline. Both use
// read-modify-writes of the reader's word: the reader exchanges, the advancing side reads an "offline" again by
// dekker_observe. One is first. The exchange: then the reader is seen. The look: then the reader sees what the
// advancing side saw when it looked, the unlinking of everything that waits.
//
// Pinning is the same race, and is decided by a lock: the pin reads the epoch while it holds the lock of its list, and
// the advancing side looks at the list under that lock. A pin that comes after the look at g finds epoch g, or a later
// one; one that comes before it is seen. There are several lists, so that foreign threads do not all meet at one lock;
// an EpochPin keeps to one. A list is in the order of epochs, so the advancing side looks at its first pin alone.
//
// Advancing is one thread's turn at a time, taken with try_lock alone: who finds it taken has nothing to do. It lasts
// until the hook and the frees have returned, so hooks come in the order of epochs, and who takes the turn knows that
// the frees of earlier turns are done. Hook and frees may retire, register, pin and release; an advance or a drain
// from within finds the turn taken.
//
// Rejected:
//  - stamping each node with its epoch on retirement: a stamp that is read too early frees too early, so retiring would
//    need a lock or a pin;
//  - a pin count per parity of the epoch: increment, look again and decrement are three read-modify-writes of words
//    that all share, and a count has no names;
//  - the Dekker of online() on the epoch's word: each executor that wakes would pull it out of all others' caches;
//  - hazard pointers: a store and a full barrier for each pointer that is read.
//
// Lock ranks: a domain's lock, then those of the lists of pins. Nothing is called under any of them.
#pragma once

#include "base/inbox.hpp"
#include "base/list.hpp"
#include "base/spinlock.hpp"

#include <cstdint>

namespace mc::base {

class EpochDomain;

// The head of what is retired. It is the retirer's until then, the domain's until `free` is called with it.
struct EpochNode {
    EpochNode *next = nullptr;
    void (*free)(EpochNode *) = nullptr;
};

// Lies in its owner, an executor, and is added to a domain, offline. All but adding and removing is the owner's.
class EpochReader : public ListNode<EpochReader> {
public:
    EpochReader() = default;
    EpochReader(const EpochReader &) = delete;
    EpochReader &operator=(const EpochReader &) = delete;
    ~EpochReader() { MC_INVARIANT(!linked(), seen_.load(sync::relaxed)); }

    // Online only: the owner holds nothing that it has found before.
    void quiescent() noexcept;
    // As quiescent(); and it finds nothing more until it is online again. The epoch does not wait for it.
    void offline() noexcept;
    void online() noexcept;
    bool is_offline() const noexcept { return seen_.load(sync::relaxed) == is_off; }

private:
    friend class EpochDomain;
    static constexpr uint64_t is_off = 0; // epochs begin at 1

    bool holds_up(uint64_t epoch) noexcept;

    // immutable while it is added
    EpochDomain *domain_ = nullptr;
    const char *name_ = "";
    // any thread (atomic); stored by the owner
    sync::atomic<uint64_t> seen_{is_off};
};

// Held by a task or a foreign call while it reads. Not nested: one object, one pin.
class EpochPin : public ListNode<EpochPin> {
public:
    // spread: any number, such as a thread's or a task's; pins of different numbers meet at different locks.
    explicit EpochPin(uint32_t spread = 0) noexcept : spread_(spread) {}
    EpochPin(const EpochPin &) = delete;
    EpochPin &operator=(const EpochPin &) = delete;
    ~EpochPin() { MC_INVARIANT(!linked(), epoch_); }

private:
    friend class EpochDomain;

    // immutable
    const uint32_t spread_;
    // guarded by the list's lock
    uint64_t epoch_ = 0;
    const char *name_ = "";
};

// What holds up the epoch.
struct EpochStall {
    enum class Kind : uint8_t {
        reader,   // an advance was tried, and has found that it was not quiescent since the last one
        pin,      // likewise, that it was taken before that
        callback, // the hook, or what is called to free
    };
    Kind kind = Kind::reader;
    char name[32] = {}; // of the reader or pin, cut off if it is longer
    uint64_t epoch = 0; // which it has seen
    int64_t age_ns = 0; // since that try; of a callback, since the advance that it belongs to
};

struct EpochCounters {
    uint64_t epoch = 0;
    uint64_t retired = 0;
    uint64_t freed = 0;
};

// Before it is destroyed: no reader, no pin, and a drain that has returned true, or the nodes are leaked.
class EpochDomain {
public:
    using Hook = void (*)(void *user, uint64_t epoch);

    constexpr EpochDomain() noexcept = default;
    EpochDomain(const EpochDomain &) = delete;
    EpochDomain &operator=(const EpochDomain &) = delete;

    // Any thread. The reader is offline in both; `name` outlives its stay.
    void add(EpochReader &reader, const char *name) noexcept;
    void remove(EpochReader &reader) noexcept;

    // Any thread. `name` outlives the pin.
    void pin(EpochPin &pin, const char *name) noexcept;
    void unpin(EpochPin &pin) noexcept;

    // Any thread, also from within a free; no pin and no reader is needed. The node can no longer be found by anybody
    // who begins to look now. `free` is called once, on whatever thread advances the epoch then, with no lock held.
    void retire(EpochNode *node, void (*free)(EpochNode *)) noexcept;

    // Any thread that may call the hook and the frees. False: something holds the epoch up, or another thread is
    // advancing it.
    bool advance() noexcept;

    // Advances until everything whose retirement happens before the call is freed; false at the deadline. The caller
    // waits for all readers and pins, so it is none itself: an executor goes offline first.
    [[nodiscard]] bool drain(int64_t deadline_ns) noexcept;

    // The same in steps, for a caller that waits between them in its own way. True: all is freed. To begin with, *advances
    // is 0; the caller is no reader, or has just been quiescent.
    [[nodiscard]] bool try_drain(uint32_t *advances) noexcept;

    // Something is retired and not freed. A hint, but for a caller to whom the last retirement, or the last free, happens
    // before.
    bool pending() const noexcept { return freed_count_.load(sync::relaxed) != retired_count_.load(sync::relaxed); }

    // Called after each advance with the new epoch, with no lock held, on the thread that advances. A call of the
    // former hook may still be under way; a drain outlasts it.
    void set_advance_hook(Hook hook, void *user) noexcept;

    // Who has held up the epoch for min_age_ns or more. Returns how many it has written, at most capacity. Readers and
    // pins that have seen this epoch are not named, however old: they hold up nothing.
    uint32_t stalled(int64_t min_age_ns, EpochStall *out, uint32_t capacity) noexcept;

    // Of about now; freed is never more than retired.
    EpochCounters counters() const noexcept;

private:
    friend class EpochReader;
#if defined(MC_SYS) && MC_SYS
    static constexpr uint32_t pin_lists = 2;
#else
    static constexpr uint32_t pin_lists = 8;
#endif
    struct alignas(64) PinList {
        Spinlock lock;
        List<EpochPin> pins; // guarded by lock
    };
    struct Callback {
        Hook hook = nullptr;
        void *user = nullptr;
    };
    struct Stalls;

    bool take_turn() noexcept;
    bool reader_holds_up(uint64_t epoch) noexcept;
    bool pin_holds_up(uint64_t epoch) noexcept;
    Callback publish(uint64_t epoch) noexcept;
    void free_all(EpochNode *node) noexcept;
    bool nothing_left() const noexcept { return waiting_ == nullptr && !retired_.maybe_nonempty(); }
    PinList &list_of(const EpochPin &pin) noexcept { return pin_lists_[pin.spread_ % pin_lists]; }

    // any thread (atomic); read by each executor at each switch, so nothing that is written often lies beside it
    alignas(64) sync::atomic<uint64_t> epoch_{1}; // stored by whose turn it is, under lock_
    // any thread (atomic)
    alignas(64) Inbox<EpochNode, &EpochNode::next> retired_;
    sync::atomic<uint64_t> retired_count_{0};
    sync::atomic<uint64_t> freed_count_{0};
    // whose turn it is
    alignas(64) Spinlock turn_; // try_lock alone
    EpochNode *waiting_ = nullptr;
    // guarded by lock_
    Spinlock lock_;
    List<EpochReader> readers_;
    Callback callback_;
    bool calling_back_ = false;
    int64_t advanced_ns_ = 0; // when the epoch last advanced
    int64_t held_up_ns_ = 0;  // when an advance first failed since; 0: none has
    // each list has its lock
    PinList pin_lists_[pin_lists];
};

inline void EpochReader::quiescent() noexcept {
    MC_DEBUG_INVARIANT(!is_offline(), 0); // or the epoch would be seen without online()'s Dekker
    // A hint: seen already, nothing to say. This is all that most calls do.
    if (domain_->epoch_.load(sync::relaxed) == seen_.load(sync::relaxed)) [[likely]]
        return;
    // acquire: pairs with publish's release; what was unlinked before is not found any more.
    const uint64_t epoch = domain_->epoch_.load(sync::acquire);
    // release: pairs with the acquire in holds_up; what the owner has read is read before it is freed.
    seen_.store(epoch, sync::release);
}

inline void EpochReader::offline() noexcept {
    seen_.store(is_off, sync::release); // release: pairs with the acquire in holds_up, as in quiescent
}

inline void EpochReader::online() noexcept {
    MC_DEBUG_INVARIANT(is_offline(), seen_.load(sync::relaxed));
    // acquire: pairs with publish's release, as in quiescent. An epoch that is no longer the newest only holds up more.
    const uint64_t epoch = domain_->epoch_.load(sync::acquire);
    // Dekker, with holds_up: acquires what it saw if its look was first. What the owner read before it went offline is
    // released by offline(): the exchange continues that release.
    (void)sync::dekker_publish(seen_, epoch);
}

} // namespace mc::base
