#include "machine/subscriptions.hpp"

#include "base/alloc.hpp"

namespace mc::machine {
namespace {

// The finaliser of MurmurHash3 (Appleby).
uint64_t mix(uint64_t x) noexcept {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
}

template <class Item> void destroy_chain(Item *item) noexcept {
    while (item != nullptr) {
        Item *next = item->chain;
        base::destroy(item);
        item = next;
    }
}

} // namespace

uint64_t SubscriptionTable::hash_of(uint64_t kind, uint64_t routing) noexcept { return mix(mix(kind) + routing); }
uint64_t SubscriptionTable::hash_of(uint32_t machine, uint64_t topic_hash) noexcept {
    return mix(topic_hash + machine);
}

template <class Item> void SubscriptionTable::Buckets<Item>::link(Item *item, uint64_t hash) noexcept {
    if (used >= count)
        spread();
    ++used;
    Item *&place = head(hash);
    item->chain = place;
    place = item;
}

template <class Item> void SubscriptionTable::Buckets<Item>::unlink(Item *item, uint64_t hash) noexcept {
    Item **place = &head(hash);
    while (*place != item)
        place = &(*place)->chain;
    *place = item->chain;
    --used;
}

template <class Item> void SubscriptionTable::Buckets<Item>::spread() noexcept {
    const uint64_t more = count == 0 ? 16 : 2 * count;
    Item **fresh = base::allocate_array<Item *>(more);
    if (fresh == nullptr)
        return;
    for (uint64_t i = 0; i < more; ++i)
        fresh[i] = nullptr;
    auto move_chain = [&](Item *item) {
        while (item != nullptr) {
            Item *next = item->chain;
            Item *&place = fresh[hash_of(*item) & (more - 1)];
            item->chain = place;
            place = item;
            item = next;
        }
    };
    move_chain(only);
    only = nullptr;
    for (uint64_t i = 0; i < count; ++i)
        move_chain(heads[i]);
    base::deallocate_array(heads, count);
    heads = fresh;
    count = more;
}

template <class Item> void SubscriptionTable::Buckets<Item>::release() noexcept {
    destroy_chain(only);
    for (uint64_t i = 0; i < count; ++i)
        destroy_chain(heads[i]);
    base::deallocate_array(heads, count);
}

SubscriptionTable::~SubscriptionTable() {
    drop_prepared();
    members_.release();
    topics_.release();
}

const Topic *SubscriptionTable::topic(uint64_t kind, uint64_t routing) const noexcept {
    const Topic *topic = topics_.used == 0 ? nullptr : topics_.first(hash_of(kind, routing));
    while (topic != nullptr && (topic->kind != kind || topic->routing != routing))
        topic = topic->chain;
    return topic;
}

Subscription *SubscriptionTable::find(uint32_t machine, uint64_t kind, uint64_t routing) const noexcept {
    Subscription *found = size_ == 0 ? nullptr : members_.first(hash_of(machine, hash_of(kind, routing)));
    while (found != nullptr &&
           (found->machine != machine || found->topic->kind != kind || found->topic->routing != routing))
        found = found->chain;
    return found;
}

bool SubscriptionTable::prepare(uint64_t n) noexcept {
    for (uint64_t i = 0; i < n; ++i) {
        auto *member = base::create<Subscription>();
        auto *topic = base::create<Topic>();
        if (member != nullptr) {
            member->chain = prepared_;
            prepared_ = member;
        }
        if (topic != nullptr) {
            topic->chain = prepared_topics_;
            prepared_topics_ = topic;
        }
        if (member == nullptr || topic == nullptr) {
            drop_prepared();
            return false;
        }
    }
    return true;
}

void SubscriptionTable::drop_prepared() noexcept {
    destroy_chain(prepared_);
    destroy_chain(prepared_topics_);
    prepared_ = nullptr;
    prepared_topics_ = nullptr;
}

void SubscriptionTable::add(uint32_t machine, uint64_t kind, uint64_t routing,
                            base::List<Subscription, OfMachine> &of_machine) noexcept {
    if (contains(machine, kind, routing))
        return;
    auto *to = const_cast<Topic *>(topic(kind, routing));
    if (to == nullptr) {
        to = prepared_topics_;
        prepared_topics_ = to->chain;
        to->kind = kind;
        to->routing = routing;
        topics_.link(to, hash_of(*to));
    }
    Subscription *member = prepared_;
    prepared_ = member->chain;
    member->machine = machine;
    member->topic = to;
    members_.link(member, hash_of(*member));
    to->subscribers.push_back(member);
    ++to->count;
    of_machine.push_back(member);
    ++size_;
}

void SubscriptionTable::remove(uint32_t machine, uint64_t kind, uint64_t routing) noexcept {
    if (Subscription *member = find(machine, kind, routing); member != nullptr)
        remove(member);
}

void SubscriptionTable::remove(Subscription *member) noexcept {
    Topic *topic = member->topic;
    members_.unlink(member, hash_of(*member));
    base::List<Subscription, OfTopic>::remove(member);
    base::List<Subscription, OfMachine>::remove(member);
    base::destroy(member);
    --size_;
    if (--topic->count != 0)
        return;
    topics_.unlink(topic, hash_of(*topic));
    base::destroy(topic);
}

void SubscriptionTable::adopt(Topic *topic) noexcept {
    topics_.link(topic, hash_of(*topic));
    for (Subscription *member = topic->subscribers.front(); member != nullptr;
         member = topic->subscribers.after(member)) {
        members_.link(member, hash_of(*member));
        ++size_;
    }
}

void Subscriptions::take_from(Subscriptions &from) noexcept {
    for (Part &part : from.parts_)
        part.table.give_up([&](Topic *topic) { table(topic->kind, topic->routing).adopt(topic); });
}

} // namespace mc::machine
