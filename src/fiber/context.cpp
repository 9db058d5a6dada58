#include "fiber/context.hpp"

#include "base/assert.hpp"

#include <cxxabi.h>

namespace mc::fiber {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;

namespace detail {

void make(Context &context, const Stack &stack, Trampoline first) {
    context = Context{};
    context.sp = make_fcontext(stack.top(), static_cast<std::size_t>(stack.top() - stack.low()), first);
#ifdef MC_FIBER_ASAN
    context.asan_bottom = stack.low();
    context.asan_size = stack.size();
#endif
#ifdef MC_FIBER_TSAN
    context.tsan_fiber = __tsan_create_fiber(0);
#endif
}

void entry_returned() { MC_INVARIANT(!"a fiber's entry returned", 0); }

} // namespace detail

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
    detail::Leaving leaving{&from, &to, from.cxa};
#ifdef MC_FIBER_ASAN
    __sanitizer_start_switch_fiber(nullptr, to.asan_bottom, to.asan_size); // null: its fake stack dies with it
#endif
#ifdef MC_FIBER_TSAN
    __tsan_release(&from);
    __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
    jump_fcontext(to.sp, &leaving);
    MC_INVARIANT(!"a fiber that had left was resumed", 0);
    __builtin_unreachable();
}

} // namespace mc::fiber
