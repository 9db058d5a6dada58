// The pool of free stacks, one part for each size. Internal to stack.cpp.
//
// Who calls: any thread, in batches where it can: each call takes the class's lock once.
//
// Memory goes back by itself. A part may keep kept_stacks() free stacks whose memory it holds, "warm" ones, for good. Of
// those past that, the slabs into which nothing was released for kStackDecayNs lose it, the longest unused first:
//  - a slab with no stack in use is unmapped;
//  - otherwise the memory of its free stacks is given back.
// The calls are made with the lock released, by whoever releases stacks later, and by executors that have nothing else to
// do (stack_trim_aged), a slab at a time. Where nobody will be there for that (stack_trim_excess) there is no delay; nor for
// the last stack of a slab whose other stacks have lost their memory.
//
// The delay is what makes it cheap: a page given back costs two microseconds while both processors run (it must leave
// their translation caches), and most are wanted again soon, or their slab's other stacks end meanwhile and all go in
// one call. As in allocators that purge by decay (jemalloc's dirty_decay_ms, mimalloc's purge_delay).
//
// Locks: a class's lock, then the registry's (slab.cpp).
#pragma once

#include "fiber/slab.hpp"

namespace mc::fiber {

// Takes 1 to want stacks of the class into out; how many it took, 0: no memory.
uint32_t pool_take(uint32_t size_class, uint32_t want, Stack *out);

// Gives a cold stack its guard, if it has none, and some of its neighbours theirs: a call for a few of them costs little more
// than one for it alone.
void pool_guard(Stack &stack);

// Takes back stacks of one class.
void pool_give(uint32_t size_class, const Stack *stacks, uint32_t count);

// As stack_trim_aged and stack_trim_excess.
int64_t pool_trim_aged(int64_t now_ns);
void pool_trim_excess();

// Around a fork, see fiber::before_fork.
void pools_lock();
void pools_unlock();

// A slab's stack as its users see it.
Stack slab_stack(Slab &slab, uint32_t index);

// The canary of a stack that has no other guard.
void canary_write(void *low);
bool canary_intact(const void *low);

} // namespace mc::fiber
