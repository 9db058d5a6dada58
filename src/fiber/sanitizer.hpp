// Which of the memory checkers this build talks to, and the calls that tell them about fibers and stacks.
//
// Used by context.hpp and stack.cpp only; every call is empty in a build without its checker.
//
// What each one must be told, or it reports nonsense:
//  - AddressSanitizer: both sides of every switch (its idea of the stack's bounds, and the fake stack of
//    use-after-return), and which parts of a stack are dead: a stack's shadow keeps the red zones of frames that never
//    returned, so it is cleaned when the stack is handed out, and poisoned while it lies in a pool.
//  - ThreadSanitizer: every switch, and the birth and death of each fiber. Switches are announced with no_sync: they
//    order nothing, so what one fiber hands to the next has to be ordered by a real hand-off or an annotation
//    (sync::handoff_release, sync::handoff_acquire), as it would have to be between two executors. The exception is
//    the end of a fiber: context_exit releases, context_destroy acquires, because the stack itself changes hands there.
//    gcc 12's TSan dies above 8,128 threads and fibers together.
//  - Valgrind (MC_VALGRIND): where each stack begins and ends, or it takes a switch for a huge allocation on one stack;
//    and which are free, as above.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define MC_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MC_FIBER_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define MC_FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MC_FIBER_TSAN 1
#endif
#endif

#ifdef MC_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef MC_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef MC_VALGRIND
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>
#endif

// The code that runs between the two halves of a switch belongs to no TSan fiber in particular, and touches the
// Context of both; instrumented, each such access would look like a race. And what it hands over lies in its frame, which
// must be on the stack itself: ASan's fake one is gone when the resumed side of a fiber's end reads it.
#if defined(MC_FIBER_TSAN)
#define MC_FIBER_SWITCH_CODE __attribute__((no_sanitize("thread"))) // and so never inlined
#elif defined(MC_FIBER_ASAN)
#define MC_FIBER_SWITCH_CODE __attribute__((no_sanitize("address"))) // likewise
#else
#define MC_FIBER_SWITCH_CODE
#endif

namespace mc::fiber {

// The stack [low, low + size) is free: an access to it is a bug.
inline void note_stack_dead([[maybe_unused]] void *low, [[maybe_unused]] std::size_t size) {
#ifdef MC_FIBER_ASAN
    __asan_poison_memory_region(low, size);
#endif
#ifdef MC_VALGRIND
    VALGRIND_MAKE_MEM_NOACCESS(low, size);
#endif
}

// The stack [low, low + size) is about to be used, or unmapped.
inline void note_stack_fresh([[maybe_unused]] void *low, [[maybe_unused]] std::size_t size) {
#ifdef MC_FIBER_ASAN
    __asan_unpoison_memory_region(low, size);
#endif
#ifdef MC_VALGRIND
    VALGRIND_MAKE_MEM_UNDEFINED(low, size);
#endif
}

// Returns Valgrind's number for the stack.
inline unsigned note_stack_mapped([[maybe_unused]] void *low, [[maybe_unused]] void *end) {
#ifdef MC_VALGRIND
    return VALGRIND_STACK_REGISTER(low, end);
#else
    return 0;
#endif
}

inline void note_stack_unmapped([[maybe_unused]] unsigned number) {
#ifdef MC_VALGRIND
    VALGRIND_STACK_DEREGISTER(number);
#endif
}

} // namespace mc::fiber
