// A context: a stack that can be left and resumed. Two kinds: made ones (context_make: a fiber on a Stack) and adopted
// ones (context_adopt: a thread's own stack). One is a word; what it needs while it is suspended lies on its stack.
//
// Who calls: the scheduler, on the thread that runs the contexts. A context may be resumed by another thread than the
// one that it left; whoever hands it over orders that (its task word does).
//
// Invariants
//  - A context is suspended (sp points into its stack) or runs on exactly one thread. context_switch(from, to) needs
//    `from` to be the one that runs here and `to` to be suspended.
//  - The one who resumes writes to its own stack only: the *resumed* side stores the sp of the context that it was resumed
//    by, first of all. Until then the context that was left must not be resumed by anybody, so a scheduler publishes it
//    only after context_switch has returned (or entry has begun) on the other side.
//  - C++ exception state (which exceptions are caught, how many are in flight) is per thread in the C++ runtime; here
//    it belongs to the context: it is saved on its stack, and restored, with each switch. `cxa` points at the runtime's
//    state of the thread that the context runs on. It is handed from context to context, so that nothing reads a
//    thread-local across a switch, where a compiler may have kept the address that it had on the other thread.
//  - errno is not saved: it belongs to the thread.
//  - The floating-point control words (MXCSR, x87 CW) travel with the context; a made one starts with those of its
//    maker.
//
// Rejected: a switch that swaps only the callee-saved registers: a fiber that changed its rounding mode
// would change everybody's. Passing the resumed context as the jump's word and storing the resumer in it: a store to a
// line that another thread may have just written, in place of one to our own.
#pragma once

#include "fiber/sanitizer.hpp"
#include "fiber/stack.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>

namespace mc::fiber {

// The C++ ABI's __cxa_eh_globals, which <cxxabi.h> leaves opaque.
struct ExceptionState {
    void *caught = nullptr;
    unsigned uncaught = 0;
};

struct Context {
    // Owner: the thread that the context runs on; while suspended, the one that is about to resume it.
    union {
        void *sp = nullptr;  // suspended: where; stored by the one that was resumed in its place
        ExceptionState *cxa; // running: the C++ runtime's state of this thread
    };
#ifdef MC_FIBER_ASAN
    void *fake_stack = nullptr;
    const void *asan_bottom = nullptr;
    std::size_t asan_size = 0;
#endif
#ifdef MC_FIBER_TSAN
    void *tsan_fiber = nullptr;
#endif
};

// What a made context starts with where its maker wants other control words than its own.
struct FloatingControl {
#ifdef __x86_64__
    uint32_t mxcsr;
    uint16_t x87;
    static FloatingControl now() {
        FloatingControl words;
        asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(words.mxcsr), "=m"(words.x87));
        return words;
    }
    void set() const { asm volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(mxcsr), "m"(x87)); }
#else
    static FloatingControl now() { return {}; }
    void set() const {}
#endif
    bool operator==(const FloatingControl &) const = default;
};

// Makes the calling thread's own stack a context, which runs.
void context_adopt(Context &context);

// Forgets a fiber that has left with context_exit, before its stack is released or the Context is made anew. Must not
// be called on that fiber's own stack. (Only TSan needs it; an adopted context must not be given.)
void context_destroy(Context &context);

// The fiber `from` is finished: resumes `to` and never comes back. Whoever is resumed gets &from as the previous
// context, calls context_destroy and releases the stack.
[[noreturn]] void context_exit(Context &from, Context &to);

namespace detail {

// What the side that leaves tells the side that is resumed. It lies on the stack that is left (never on a checker's fake one,
// see MC_FIBER_SWITCH_CODE), and is read before anybody can be told that this stack may go on, or be given away.
struct Leaving {
    Context *from;
    Context *to; // a new fiber learns here who it is
    ExceptionState *cxa;
};

// Both halves of the checkers' part of a switch; empty without one.
MC_FIBER_SWITCH_CODE inline void leave([[maybe_unused]] Context &from, [[maybe_unused]] Context &to) {
#ifdef MC_FIBER_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack, to.asan_bottom, to.asan_size);
#endif
#ifdef MC_FIBER_TSAN
    __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

MC_FIBER_SWITCH_CODE inline void arrive([[maybe_unused]] Context &me, [[maybe_unused]] Context &previous) {
#ifdef MC_FIBER_ASAN
    __sanitizer_finish_switch_fiber(me.fake_stack, &previous.asan_bottom, &previous.asan_size);
#endif
}

// jump_fcontext, entered without a call instruction where that can be. It leaves by an indirect jump, never by a return,
// so the return address that a call pushes on the processor's return-address predictor would stay there, and the
// suspended function's own return, a few instructions later, would be mispredicted: twenty nanoseconds a switch among
// tasks that are suspended in the same function.
#if defined(__x86_64__) && defined(__LP64__) && !defined(__CET__) && !defined(MC_FIBER_ASAN) && !defined(MC_FIBER_TSAN)
MC_FIBER_SWITCH_CODE inline boost::context::detail::transfer_t jump(void *to, void *data) {
    // A frame pointer: an unwinder finds this frame though the stack pointer has moved behind the compiler's back.
    asm volatile("" ::"r"(__builtin_frame_address(0)));
    boost::context::detail::transfer_t arrived;
    asm volatile("lea -128(%%rsp), %%rsp\n\t" // the red zone may be in use
                 "lea 1f(%%rip), %%rax\n\t"
                 "push %%rax\n\t"
                 "jmp jump_fcontext@PLT\n"
                 "1:\n\t"
                 "lea 128(%%rsp), %%rsp"
                 : "=a"(arrived.fctx), "=d"(arrived.data), "+D"(to), "+S"(data)
                 :
                 : "rcx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                   "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#ifdef __AVX512F__
                   "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",
                   "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
                   "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
    return arrived;
}
#else
MC_FIBER_SWITCH_CODE inline boost::context::detail::transfer_t jump(void *to, void *data) {
    return boost::context::detail::jump_fcontext(to, data);
}
#endif

} // namespace detail

// Suspends `from`, which runs here, and resumes `to`. Returns when somebody resumes `from`, perhaps on another thread:
// the context that did, which is suspended by then and may be published, resumed or destroyed.
MC_FIBER_SWITCH_CODE inline Context *context_switch(Context &from, Context &to) {
    detail::Leaving leaving{&from, &to, from.cxa};
    // Word by word, each way: as one load of 16 bytes it would wait until the two stores of the last switch are in the cache.
    void *const caught = from.cxa->caught;
    const unsigned uncaught = from.cxa->uncaught;
    detail::leave(from, to);
    const boost::context::detail::transfer_t arrived = detail::jump(to.sp, &leaving);
    const auto &left = *static_cast<const detail::Leaving *>(arrived.data);
    Context *previous = left.from;
    ExceptionState *const cxa = left.cxa; // it ran on this very thread until now
    from.cxa = cxa;
    previous->sp = arrived.fctx;
    detail::arrive(from, *previous);
    cxa->caught = caught;
    cxa->uncaught = uncaught;
    return previous;
}

namespace detail {

using Trampoline = void (*)(boost::context::detail::transfer_t);

void make(Context &context, const Stack &stack, Trampoline first);
void entry_returned();

// The first frame of every fiber. noexcept: an exception that the scheduler lets out of entry ends here, in
// std::terminate, with the frames that threw it still there to be looked at.
template <auto entry>
[[noreturn]] MC_FIBER_SWITCH_CODE void trampoline(boost::context::detail::transfer_t arrived) noexcept {
#if defined(__x86_64__)
    // There is no caller: debuggers and unwinders stop here instead of reading on past the end of the stack. It holds for this
    // piece of code alone, so entry is noinline: of a large function the compiler puts parts elsewhere.
    asm volatile(".cfi_undefined rip");
#elif defined(__aarch64__)
    asm volatile(".cfi_undefined x30");
#endif
    const auto &left = *static_cast<const Leaving *>(arrived.data);
    Context *previous = left.from;
    Context &self = *left.to;
    self.cxa = left.cxa;
    previous->sp = arrived.fctx;
    arrive(self, *previous); // with no fake stack of its own yet: fake_stack is null
    *self.cxa = ExceptionState{};
    entry(self, previous);
    entry_returned();
    __builtin_unreachable();
}

} // namespace detail

// Makes a fiber that runs entry(context, previous), which is noinline, on the stack when it is first switched to. entry
// must not return (it ends with context_exit) and must let no exception out: std::terminate is called. Any thread.
template <auto entry> void context_make(Context &context, const Stack &stack) {
    detail::make(context, stack, detail::trampoline<entry>);
}

} // namespace mc::fiber
