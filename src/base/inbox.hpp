// A queue with many producers and one consumer that takes everything at once: a push is one CAS, taking is one
// exchange.
// Intrusive through a pointer of T that the template names. The list is a stack that take_all() turns round, so each
// producer's elements come out in the order in which they went in. A CAS-pop would suffer from ABA; taking the whole
// never compares a reused head.
#pragma once

#include "base/sync.hpp"

namespace mc::base {

template <class T, T *T::*Next> class Inbox {
public:
    // Any thread. Returns true when the inbox was empty before.
    bool push(T *element) noexcept {
        T *head = head_.load(sync::relaxed);
        do {
            element->*Next = head;
            // release: pairs with the acquire in take_all; publishes *element. The consumer is told of it through its
            // wake word, by an exchange that follows. seq_cst: Dekker, with withdraw_all, and with seen_nonempty.
        } while (!head_.compare_exchange_weak(head, element, sync::seq_cst, sync::relaxed));
        return head == nullptr;
    }

    // A hint, cheap enough for every switch; a miss is made good at the next look.
    bool maybe_nonempty() const noexcept { return head_.load(sync::relaxed) != nullptr; }

    // Consumer, after it has said (seq_cst) that it may sleep, which a producer reads (seq_cst) after its push: Dekker.
    bool seen_nonempty() const noexcept { return head_.load(sync::seq_cst) != nullptr; }

    // Consumer, of which there may be several: all elements, oldest first, linked through Next; null when there are none.
    T *take_all() noexcept {
        if (!maybe_nonempty())
            return nullptr;
        return oldest_first(head_.exchange(nullptr, sync::acquire)); // acquire: pairs with push
    }

    // The same for who has withdrawn something (seq_cst) that a producer reads (seq_cst) after its push, to learn whom to
    // tell: Dekker. Either what was pushed is had here, or the producer reads that it is withdrawn.
    T *withdraw_all() noexcept { return oldest_first(head_.exchange(nullptr, sync::seq_cst)); }

private:
    static T *oldest_first(T *head) noexcept {
        T *oldest = nullptr;
        while (head != nullptr) {
            T *next = head->*Next;
            head->*Next = oldest;
            oldest = head;
            head = next;
        }
        return oldest;
    }

    sync::atomic<T *> head_{nullptr};
};

} // namespace mc::base
