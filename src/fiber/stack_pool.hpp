// The pool of free stacks, one part for each size. Internal to stack.cpp.
//
// Who calls: any thread, in batches where it can: each call takes the class's lock once.
//
// Memory goes back by itself. A part may keep kept_stacks() free stacks whose memory it holds, "warm" ones. Past that
//  - a slab with no stack in use is unmapped;
//  - otherwise the memory of free stacks is given back, the longest unused slabs first, once a quarter more than that
//    is warm (so that the system is called for many at a time). The calls are made with the lock released.
//
// Locks: a class's lock, then the registry's (slab.cpp).
#pragma once

#include "fiber/slab.hpp"

namespace mc::fiber {

// Takes 1 to want stacks of the class into out; how many it took, 0: no memory.
uint32_t pool_take(uint32_t size_class, uint32_t want, Stack *out);

// Takes back stacks of one class.
void pool_give(uint32_t size_class, const Stack *stacks, uint32_t count);

// Around a fork, see fiber::before_fork.
void pools_lock();
void pools_unlock();

// A slab's stack as its users see it.
Stack slab_stack(Slab &slab, uint32_t index);

// The canary of a stack that has no other guard.
void canary_write(void *low);
bool canary_intact(const void *low);

} // namespace mc::fiber
