// Who subscribes to what: a set of (machine, kind, routing). Two hashes of chains, one of the set's members, one of topics,
// that is (kind, routing); a topic lists its subscribers in the order in which they came, a machine its subscriptions.
//
// Guarded by its part's lock. Nothing fails but prepare, which allocates the members that a commit may add; chains that could
// not be spread over more buckets for want of memory are longer, no more.
#pragma once

#include "base/list.hpp"
#include "machine/parts.hpp"

#include <cstdint>

namespace mc::machine {

struct OfMachine;
struct OfTopic;
struct Subscription;

struct Topic {
    uint64_t kind = 0;
    uint64_t routing = 0;
    uint64_t count = 0;
    Topic *chain = nullptr;
    base::List<Subscription, OfTopic> subscribers;
};

struct Subscription : base::ListNode<Subscription, OfMachine>, base::ListNode<Subscription, OfTopic> {
    uint32_t machine = 0;
    Topic *topic = nullptr;
    Subscription *chain = nullptr;
};

class SubscriptionTable {
public:
    SubscriptionTable() noexcept = default;
    SubscriptionTable(const SubscriptionTable &) = delete;
    SubscriptionTable &operator=(const SubscriptionTable &) = delete;
    ~SubscriptionTable();

    uint64_t size() const noexcept { return size_; }
    bool contains(uint32_t machine, uint64_t kind, uint64_t routing) const noexcept {
        return find(machine, kind, routing) != nullptr;
    }
    const Topic *topic(uint64_t kind, uint64_t routing) const noexcept;

    // Memory for n calls of add. False: there is none, nothing has changed. drop_prepared gives back what is left.
    [[nodiscard]] bool prepare(uint64_t n) noexcept;
    void drop_prepared() noexcept;

    // Linked into `of_machine` too, unless it is there already.
    void add(uint32_t machine, uint64_t kind, uint64_t routing,
             base::List<Subscription, OfMachine> &of_machine) noexcept;
    void remove(uint32_t machine, uint64_t kind, uint64_t routing) noexcept;
    void remove(Subscription *member) noexcept;

    static uint64_t hash_of(uint64_t kind, uint64_t routing) noexcept;

    // All topics are another table's from now on, with their subscribers: to(topic), which calls adopt there.
    template <class To> void give_up(To to) noexcept {
        members_.forget([](Subscription *) {});
        topics_.forget(to);
        size_ = 0;
    }
    void adopt(Topic *topic) noexcept;

private:
    // Chains of Items, in a power of two of buckets, or in one.
    template <class Item> struct Buckets {
        Item **heads = nullptr;
        uint64_t count = 0;
        uint64_t used = 0;
        Item *only = nullptr; // without memory for more

        Item *&head(uint64_t hash) noexcept { return heads == nullptr ? only : heads[hash & (count - 1)]; }
        Item *first(uint64_t hash) const noexcept { return heads == nullptr ? only : heads[hash & (count - 1)]; }
        void link(Item *item, uint64_t hash) noexcept;
        void unlink(Item *item, uint64_t hash) noexcept;
        void spread() noexcept;
        void release() noexcept;
        template <class Visit> void forget(Visit visit) noexcept {
            auto all = [&](Item *item) {
                while (item != nullptr) {
                    Item *next = item->chain;
                    visit(item);
                    item = next;
                }
            };
            all(only);
            only = nullptr;
            for (uint64_t i = 0; i < count; ++i) {
                all(heads[i]);
                heads[i] = nullptr;
            }
            used = 0;
        }
    };
    static uint64_t hash_of(const Topic &topic) noexcept { return hash_of(topic.kind, topic.routing); }
    static uint64_t hash_of(uint32_t machine, uint64_t topic_hash) noexcept;
    static uint64_t hash_of(const Subscription &s) noexcept { return hash_of(s.machine, hash_of(*s.topic)); }

    Subscription *find(uint32_t machine, uint64_t kind, uint64_t routing) const noexcept;

    Buckets<Subscription> members_;
    Buckets<Topic> topics_;
    uint64_t size_ = 0;
    // Chained: what prepare has allocated.
    Subscription *prepared_ = nullptr;
    Topic *prepared_topics_ = nullptr;
};

// All of a runtime's. Attached, a topic is in one of several parts; their locks come before those of machines, since a publication
// must know whom it goes to before it can lock them. What is asked in passing takes and gives back the lock by itself.
class Subscriptions {
public:
    struct alignas(64) Part {
        mutable base::Spinlock lock;
        SubscriptionTable table;
    };
    // A set of parts, one bit each.
    using Set = uint32_t;
    static constexpr Set all = (1u << Parts<Part>::many) - 1;

    // As in Pending.
    [[nodiscard]] bool make_many() noexcept { return parts_.make_many(); }
    void take_from(Subscriptions &from) noexcept;

    uint64_t size() const noexcept {
        uint64_t total = 0;
        for (const Part &part : parts_) {
            const PartGuard guard(part.lock, parts_.shared());
            total += part.table.size();
        }
        return total;
    }
    bool contains(uint32_t machine, uint64_t kind, uint64_t routing) const noexcept {
        const Part &part = parts_.of(key_of(kind, routing));
        const PartGuard guard(part.lock, parts_.shared());
        return part.table.contains(machine, kind, routing);
    }

    Set set_of(uint64_t kind, uint64_t routing) const noexcept { return 1u << parts_.index_of(key_of(kind, routing)); }
    void lock(Set set) noexcept {
        for (uint32_t i = 0; set != 0; ++i, set >>= 1)
            if ((set & 1) != 0)
                parts_.at(i).lock.lock();
    }
    void unlock(Set set) noexcept {
        for (uint32_t i = 0; set != 0; ++i, set >>= 1)
            if ((set & 1) != 0)
                parts_.at(i).lock.unlock();
    }
    // With its lock held.
    SubscriptionTable &table(uint64_t kind, uint64_t routing) noexcept {
        return parts_.of(key_of(kind, routing)).table;
    }

private:
    // Not the bits by which a table chooses its buckets.
    static uint64_t key_of(uint64_t kind, uint64_t routing) noexcept {
        return SubscriptionTable::hash_of(kind, routing) >> 48;
    }

    Parts<Part> parts_;
};

} // namespace mc::machine
