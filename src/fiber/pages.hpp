// What stacks need from the operating system: mappings, guard pages, giving memory back. Nothing here knows of stacks.
//
// Who calls: the stack pool, any thread, on slow paths.
//
// A guard is, best first:
//   marker   MADV_GUARD_INSTALL (Linux 6.13): a fault for whoever touches the page; splits no mapping
//   protect  mprotect(PROT_NONE): two mappings more each, so only within a budget, a quarter of vm.max_map_count
//   canary   no page at all: the caller keeps a pattern
// Which of the first two the kernel does is found out once. A marker call costs about 0.7 us and a batch of 16 in one
// process_madvise about 0.4 us each, so the pool asks for guards in batches, and once in the life of a stack: they
// survive MADV_DONTNEED.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/uio.h>

namespace mc::fiber {

enum class Guard : uint8_t { marker = 1, protect = 2, canary = 3 };

using PageRange = ::iovec;

// Null: no memory. Zeroed, uses none until it is touched, never huge pages.
void *pages_map(std::size_t bytes);

// False: the system refused (a split would exceed the limit of mappings); the pages stay mapped.
bool pages_unmap(void *first, std::size_t bytes);

// How many ranges or guards a call takes at most: the pool works on small fibers' stacks, too.
constexpr uint32_t kPageBatch = 16;

// The contents are lost and the memory is the system's again; the mapping and its guards stay.
void pages_give_back(const PageRange *ranges, uint32_t count);

// Guards the pages at first, first + stride, ... The kinds used are told in `kinds`. False: no memory for page tables;
// some pages may have a guard then, and guarding them again is fine.
bool pages_guard(void *first, std::size_t stride, uint32_t count, Guard *kinds);

// A guard of kind `protect` was unmapped: its mappings may be used by others.
void pages_guard_gone(uint32_t protects);

// Tests only: the next guards are of this kind (0: whatever the kernel can do), with this budget of mappings for
// `protect` (0: the default one); and the call that comes as number `nth` from now (1 is the next one) fails as if the
// system had no memory left.
enum class PageCall : uint8_t { map, unmap, guard, protect };
void pages_force_guard(Guard kind, uint64_t budget = 0);
void pages_fail(PageCall call, uint32_t nth);

} // namespace mc::fiber
