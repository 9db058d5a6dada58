#include "fiber/context.hpp"

#include "base/assert.hpp"

#include <cxxabi.h>

namespace mc::fiber {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace {

// The first frame of every fiber. noexcept: an exception that the scheduler lets out of entry ends here, in
// std::terminate, with the frames that threw it still there to be looked at.
[[noreturn]] MC_FIBER_SWITCH_CODE void trampoline(transfer_t arrived) noexcept {
#if defined(__x86_64__)
    // There is no caller: debuggers and unwinders stop here instead of reading on past the end of the stack.
    asm volatile(".cfi_undefined rip");
#elif defined(__aarch64__)
    asm volatile(".cfi_undefined x30");
#endif
    auto *previous = static_cast<Context *>(arrived.data);
    previous->sp = arrived.fctx;
    Context &me = *previous->target;
    detail::arrive(me, *previous); // with no fake stack of its own yet: fake_stack is null
    me.cxa = previous->cxa;
    *me.cxa = ExceptionState{};
    me.entry(previous);
    MC_INVARIANT(!"a fiber's entry returned", 0);
    __builtin_unreachable();
}

} // namespace

void context_make(Context &context, const Stack &stack, void (*entry)(Context *previous)) {
    context = Context{};
    context.entry = entry;
    context.sp = make_fcontext(stack.top, static_cast<std::size_t>(stack.top - stack.low()), trampoline);
#ifdef MC_FIBER_ASAN
    context.asan_bottom = stack.low();
    context.asan_size = stack.size();
#endif
#ifdef MC_FIBER_TSAN
    context.tsan_fiber = __tsan_create_fiber(0);
#endif
}

void context_adopt(Context &context) {
    context = Context{};
    context.cxa = reinterpret_cast<ExceptionState *>(abi::__cxa_get_globals());
#ifdef MC_FIBER_TSAN
    context.tsan_fiber = __tsan_get_current_fiber();
#endif
}

MC_FIBER_SWITCH_CODE void context_destroy([[maybe_unused]] Context &context) {
#ifdef MC_FIBER_TSAN
    __tsan_acquire(&context); // pairs with context_exit: the stack changes hands
    __tsan_destroy_fiber(context.tsan_fiber);
    context.tsan_fiber = nullptr;
#endif
}

MC_FIBER_SWITCH_CODE void context_exit(Context &from, Context &to) {
    // An exception still being handled would never be freed, since its handler never ends.
    MC_DEBUG_INVARIANT(from.cxa->caught == nullptr, from.cxa->uncaught);
    from.target = &to;
#ifdef MC_FIBER_ASAN
    __sanitizer_start_switch_fiber(nullptr, to.asan_bottom, to.asan_size); // null: its fake stack dies with it
#endif
#ifdef MC_FIBER_TSAN
    __tsan_release(&from);
    __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
    jump_fcontext(to.sp, &from);
    MC_INVARIANT(!"a fiber that had left was resumed", 0);
    __builtin_unreachable();
}

} // namespace mc::fiber
