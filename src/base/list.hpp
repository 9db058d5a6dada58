// Intrusive FIFO list: the element holds its links, so linking never allocates and unlinking needs no search. Not
// synchronised: the owner of the list says what guards it. An element knows whether it is linked (next is not null).
#pragma once

#include "base/assert.hpp"

namespace mc::base {

// T derives from ListNode<T>. Tag lets one T be on several lists: derive once per tag.
template <class T, class Tag = void> struct ListNode {
    ListNode *next = nullptr;
    ListNode *prev = nullptr;
    bool linked() const noexcept { return next != nullptr; }
};

// Circular, around a sentinel: no branch on first or last.
template <class T, class Tag = void> class List {
    using Node = ListNode<T, Tag>;

public:
    constexpr List() noexcept { sentinel_.next = sentinel_.prev = &sentinel_; }
    List(const List &) = delete;
    List &operator=(const List &) = delete;

    bool empty() const noexcept { return sentinel_.next == &sentinel_; }
    T *front() const noexcept { return empty() ? nullptr : cast(sentinel_.next); }

    // The element after this one, or null at the end.
    T *after(T *element) const noexcept {
        Node *next = static_cast<Node *>(element)->next;
        return next == &sentinel_ ? nullptr : cast(next);
    }

    void push_back(T *element) noexcept { link(element, sentinel_.prev, &sentinel_); }

    void push_front(T *element) noexcept { link(element, &sentinel_, sentinel_.next); }

    static void remove(T *element) noexcept {
        Node *node = element;
        MC_DEBUG_INVARIANT(node->linked(), reinterpret_cast<uintptr_t>(node));
        node->prev->next = node->next;
        node->next->prev = node->prev;
        node->next = node->prev = nullptr;
    }

    T *pop_front() noexcept {
        T *element = front();
        if (element != nullptr)
            remove(element);
        return element;
    }

private:
    static void link(Node *node, Node *prev, Node *next) noexcept {
        MC_DEBUG_INVARIANT(!node->linked(), reinterpret_cast<uintptr_t>(node));
        node->prev = prev;
        node->next = next;
        prev->next = node;
        next->prev = node;
    }
    static T *cast(Node *node) noexcept { return static_cast<T *>(node); }

    Node sentinel_;
};

// The same in one word, for what is nearly always empty and is there a million times: circular, without a sentinel.
template <class T, class Tag = void> class SlimList {
    using Node = ListNode<T, Tag>;

public:
    constexpr SlimList() noexcept = default;
    SlimList(const SlimList &) = delete;
    SlimList &operator=(const SlimList &) = delete;

    bool empty() const noexcept { return first_ == nullptr; }
    T *front() const noexcept { return cast(first_); }

    // The element after this one, or null at the end.
    T *after(T *element) const noexcept {
        Node *next = static_cast<Node *>(element)->next;
        return next == first_ ? nullptr : cast(next);
    }

    void push_back(T *element) noexcept {
        Node *node = element;
        MC_DEBUG_INVARIANT(!node->linked(), reinterpret_cast<uintptr_t>(node));
        if (first_ == nullptr) {
            first_ = node->next = node->prev = node;
            return;
        }
        node->prev = first_->prev;
        node->next = first_;
        node->prev->next = node;
        first_->prev = node;
    }

    void remove(T *element) noexcept {
        Node *node = element;
        MC_DEBUG_INVARIANT(node->linked(), reinterpret_cast<uintptr_t>(node));
        node->prev->next = node->next;
        node->next->prev = node->prev;
        if (first_ == node)
            first_ = node->next == node ? nullptr : node->next;
        node->next = node->prev = nullptr;
    }

private:
    static T *cast(Node *node) noexcept { return static_cast<T *>(node); }

    Node *first_ = nullptr;
};

} // namespace mc::base
