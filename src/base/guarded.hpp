// Calling a program's function from the library: no exception comes through. Any thread, no lock held.
#pragma once

#include "base/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>

namespace mc::base {

// A thread that is being cancelled or exited unwinds through us: there is no way to stop that, nor to let it pass.
[[noreturn]] inline void abort_unwinding(const char *what) noexcept {
    std::fprintf(stderr, "libmcrt: thread cancellation or exit unwound %s\n", what);
    std::abort();
}

// False: it threw, which has been logged. what: who was called, such as "tx". Inline: what is caught is out of the way, and costs
// nothing.
template <class Call> __attribute__((always_inline)) inline bool call_guarded(const char *what, Call call) noexcept {
    try {
        call();
        return true;
    } catch (::abi::__forced_unwind &) {
        abort_unwinding(what);
    } catch (const std::exception &error) {
        log(MC_LOG_ERROR, MC_E_CRASHED, "%s threw an exception: %s", what, error.what());
    } catch (...) {
        log(MC_LOG_ERROR, MC_E_CRASHED, "%s threw an exception", what);
    }
    return false;
}

} // namespace mc::base
