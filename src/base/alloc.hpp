// The allocator hook: every allocation of the library but stacks goes through allocate(). Any thread.
#pragma once

#include <mc/base.h>

#include <cstddef>
#include <new>
#include <utility>

namespace mc::base {

// Installs the host's allocator; MC_E_BUSY once anything was allocated or another one was set.
int32_t set_allocator(const mc_allocator &allocator) noexcept;

// size > 0, align a power of two. Null when there is no memory.
[[nodiscard]] void *allocate(size_t size, size_t align) noexcept;
void deallocate(void *ptr, size_t size, size_t align) noexcept; // ptr may be null

template <class T> [[nodiscard]] T *allocate_array(size_t count) noexcept {
    return static_cast<T *>(allocate(count * sizeof(T), alignof(T)));
}
template <class T> void deallocate_array(T *ptr, size_t count) noexcept {
    deallocate(ptr, count * sizeof(T), alignof(T));
}

template <class T, class... Args> [[nodiscard]] T *create(Args &&...args) noexcept {
    void *memory = allocate(sizeof(T), alignof(T));
    return memory == nullptr ? nullptr : new (memory) T(std::forward<Args>(args)...);
}
template <class T> void destroy(T *object) noexcept {
    if (object == nullptr)
        return;
    object->~T();
    deallocate(object, sizeof(T), alignof(T));
}

} // namespace mc::base
