// What a container is made of, so that threads seldom meet: one part while its runtime is stepped, whose lock nobody takes, and
// sixteen, each with a lock of its own, while it is attached. Which part an element is in follows from its key; attaching
// a runtime, or detaching it, makes new containers that take the elements of the old ones.
//
// The locks of parts are innermost, unless the container says otherwise: nothing else is locked under one, and nobody called
// but the allocator.
#pragma once

#include "base/alloc.hpp"
#include "base/spinlock.hpp"

#include <cstdint>
#include <new>

namespace mc::machine {

// Part is constructed without arguments, and is made of whole cache lines.
template <class Part> class Parts {
public:
    static constexpr uint32_t many = 16; // a power of two

    Parts() noexcept = default;
    ~Parts() {
        if (parts_ == &one_)
            return;
        for (Part &part : *this)
            part.~Part();
        base::deallocate_array(parts_, many);
    }
    Parts(const Parts &) = delete;
    Parts &operator=(const Parts &) = delete;

    // Several, instead of one that is empty. False: no memory.
    [[nodiscard]] bool make_many() noexcept {
        Part *parts = base::allocate_array<Part>(many);
        if (parts == nullptr)
            return false;
        for (uint32_t i = 0; i < many; ++i)
            new (&parts[i]) Part();
        parts_ = parts;
        mask_ = many - 1;
        return true;
    }

    bool shared() const noexcept { return mask_ != 0; }
    uint32_t count() const noexcept { return mask_ + 1; }
    uint32_t index_of(uint64_t key) const noexcept { return static_cast<uint32_t>(key) & mask_; }
    Part &at(uint32_t index) const noexcept { return parts_[index]; }
    Part &of(uint64_t key) const noexcept { return parts_[index_of(key)]; }
    Part *begin() const noexcept { return parts_; }
    Part *end() const noexcept { return parts_ + count(); }

private:
    Part one_;
    Part *parts_ = &one_;
    uint32_t mask_ = 0;
};

// Holds a part's lock, where there are several.
class PartGuard {
public:
    PartGuard(base::Spinlock &lock, bool shared) noexcept : lock_(shared ? &lock : nullptr) {
        if (lock_ != nullptr)
            lock_->lock();
    }
    ~PartGuard() {
        if (lock_ != nullptr)
            lock_->unlock();
    }
    PartGuard(const PartGuard &) = delete;
    PartGuard &operator=(const PartGuard &) = delete;

private:
    base::Spinlock *const lock_;
};

} // namespace mc::machine
