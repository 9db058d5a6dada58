// mc/csp/ringbuffer.hpp: a queue in one piece of memory, bounded or growing. C++17.
//
// It allocates as it fills. Not for several threads at once.
#ifndef MC_CSP_RINGBUFFER_HPP
#define MC_CSP_RINGBUFFER_HPP

#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace csp {
namespace detail {

template <class T> class RingBuffer {
public:
    using value_type = T;
    static constexpr std::size_t npos = static_cast<std::size_t>(-1);

    // npos: no bound. A bound of 0 is full from the start.
    RingBuffer(std::size_t capacity = npos) noexcept : capacity_(capacity) {} // NOLINT(google-explicit-constructor)
    ~RingBuffer() {
        clear();
        deallocate(slots_, size_);
    }
    RingBuffer(const RingBuffer &) = delete;
    RingBuffer &operator=(const RingBuffer &) = delete;
    RingBuffer(RingBuffer &&other) noexcept
        : capacity_(other.capacity_), size_(std::exchange(other.size_, 0)), front_(std::exchange(other.front_, 0)),
          count_(std::exchange(other.count_, 0)), slots_(std::exchange(other.slots_, nullptr)) {}
    RingBuffer &operator=(RingBuffer &&other) noexcept {
        RingBuffer taken(std::move(other));
        std::swap(capacity_, taken.capacity_);
        std::swap(size_, taken.size_);
        std::swap(front_, taken.front_);
        std::swap(count_, taken.count_);
        std::swap(slots_, taken.slots_);
        return *this;
    }

    std::size_t count() const noexcept { return count_; }
    std::size_t size() const noexcept { return count_; }
    std::size_t capacity() const noexcept { return capacity_; }
    bool empty() const noexcept { return count_ == 0; }
    bool full() const noexcept { return count_ == capacity_; }

    T &front() const noexcept { return *slot(0); } // not of an empty one
    T &operator[](std::size_t i) const noexcept { return *slot(i); }

    // Room behind the last element, for one that push() then counts. Throws std::length_error when it is full.
    void *next() {
        if (full())
            throw std::length_error("ring buffer is full");
        if (count_ == size_)
            grow();
        return slots_ + ((front_ + count_) & (size_ - 1));
    }
    void push() noexcept { ++count_; } // what was constructed in next()
    void push(T element) { emplace(std::move(element)); }
    template <class... A> void emplace(A &&...arguments) {
        if (count_ == size_ && !full()) { // the arguments may be elements, which are about to be moved
            T element(std::forward<A>(arguments)...);
            ::new (next()) T(std::move(element));
        } else {
            ::new (next()) T(std::forward<A>(arguments)...);
        }
        push();
    }

    // The first one; not of an empty one.
    void pop() noexcept {
        slot(0)->~T();
        front_ = (front_ + 1) & (size_ - 1);
        --count_;
    }

    // The first one that is equal; the last one takes its place, unless it was the first. False: there is none.
    bool remove(const T &element) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (!(*slot(i) == element))
                continue;
            if (i == 0) {
                pop();
                return true;
            }
            if (i != count_ - 1)
                *slot(i) = std::move(*slot(count_ - 1));
            slot(count_ - 1)->~T();
            --count_;
            return true;
        }
        return false;
    }

    void clear() noexcept {
        while (!empty())
            pop();
    }

    class iterator {
    public:
        using iterator_category = std::random_access_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = T *;
        using reference = T &;

        iterator() = default;
        iterator(const RingBuffer *buffer, std::size_t index)
            : buffer_(buffer), index_(static_cast<difference_type>(index)) {}
        reference operator*() const { return (*buffer_)[static_cast<std::size_t>(index_)]; }
        pointer operator->() const { return std::addressof(**this); }
        reference operator[](difference_type n) const { return *(*this + n); }
        iterator &operator++() { return *this += 1; }
        iterator &operator--() { return *this -= 1; }
        iterator operator++(int) {
            iterator before = *this;
            ++*this;
            return before;
        }
        iterator operator--(int) {
            iterator before = *this;
            --*this;
            return before;
        }
        iterator &operator+=(difference_type n) {
            index_ += n;
            return *this;
        }
        iterator &operator-=(difference_type n) { return *this += -n; }
        friend iterator operator+(iterator i, difference_type n) { return i += n; }
        friend iterator operator+(difference_type n, iterator i) { return i += n; }
        friend iterator operator-(iterator i, difference_type n) { return i -= n; }
        friend difference_type operator-(const iterator &a, const iterator &b) { return a.index_ - b.index_; }
        friend bool operator==(const iterator &a, const iterator &b) { return a.index_ == b.index_; }
        friend bool operator!=(const iterator &a, const iterator &b) { return a.index_ != b.index_; }
        friend bool operator<(const iterator &a, const iterator &b) { return a.index_ < b.index_; }
        friend bool operator>(const iterator &a, const iterator &b) { return a.index_ > b.index_; }
        friend bool operator<=(const iterator &a, const iterator &b) { return a.index_ <= b.index_; }
        friend bool operator>=(const iterator &a, const iterator &b) { return a.index_ >= b.index_; }

    private:
        const RingBuffer *buffer_ = nullptr;
        difference_type index_ = 0;
    };

    iterator begin() const noexcept { return iterator(this, 0); }
    iterator end() const noexcept { return iterator(this, count_); }

private:
    std::size_t capacity_;
    std::size_t size_ = 0; // slots: 0 or a power of two
    std::size_t front_ = 0;
    std::size_t count_ = 0;
    T *slots_ = nullptr;

    T *slot(std::size_t i) const noexcept { return slots_ + ((front_ + i) & (size_ - 1)); }

    static void deallocate(T *slots, std::size_t n) noexcept {
        if (slots != nullptr)
            std::allocator<T>().deallocate(slots, n);
    }

    // An element whose move throws leaves the buffer as it was, but for what has been moved from already when it cannot copy.
    void grow() {
        const std::size_t size = size_ == 0 ? 4 : size_ * 2;
        T *slots = std::allocator<T>().allocate(size);
        std::size_t moved = 0;
        try {
            for (; moved < count_; ++moved)
                ::new (static_cast<void *>(slots + moved)) T(std::move_if_noexcept(*slot(moved)));
        } catch (...) {
            while (moved > 0)
                slots[--moved].~T();
            deallocate(slots, size);
            throw;
        }
        const std::size_t kept = count_;
        clear();
        deallocate(slots_, size_);
        slots_ = slots;
        size_ = size;
        front_ = 0;
        count_ = kept;
    }
};

} // namespace detail
} // namespace csp

#endif // MC_CSP_RINGBUFFER_HPP
