// Who subscribes to what: a set of (machine, kind, routing). Two hashes of chains, one of the set's members, one of topics,
// that is (kind, routing); a topic lists its subscribers in the order in which they came, a machine its subscriptions.
//
// Guarded as the runtime is. Nothing fails but prepare, which allocates the members that a commit may add; chains that could
// not be spread over more buckets for want of memory are longer, no more.
#pragma once

#include "base/list.hpp"

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

class Subscriptions {
public:
    Subscriptions() noexcept = default;
    Subscriptions(const Subscriptions &) = delete;
    Subscriptions &operator=(const Subscriptions &) = delete;
    ~Subscriptions();

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
    };
    static uint64_t hash_of(uint64_t kind, uint64_t routing) noexcept;
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

} // namespace mc::machine
