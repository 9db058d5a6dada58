// See systematic.hpp: exploration in builds without the systematic twin, a loop over real threads. The other builds'
// is in systematic_explorer.cpp.
#if !defined(MC_SYS)
#include "testing/systematic.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace mc::testing {

// A thread of its own for each run, so that the body's thread begins and ends as a virtual one does: with an empty
// slot, and with the exit hook.
Explored explore(const Exploration &exploration, const std::function<void()> &body) {
    Explored explored;
    for (; explored.runs < exploration.real_runs; ++explored.runs) {
        sync::thread thread;
        auto run = [](void *at) { (*static_cast<const std::function<void()> *>(at))(); };
        check(thread.start(run, const_cast<std::function<void()> *>(&body)), "no thread");
        thread.join();
    }
    return explored;
}

Explored expect_pass(const Exploration &exploration, const std::function<void()> &body) {
    return explore(exploration, body);
}

Explored expect_fail(Exploration, const char *, const std::function<void()> &) { return {}; }

void check(bool holds, const char *text, ...) {
    if (holds)
        return;
    std::va_list arguments;
    va_start(arguments, text);
    std::fputs("check failed: ", stderr);
    std::vfprintf(stderr, text, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    std::abort();
}

unsigned choose(unsigned n) {
    static sync::atomic<std::uint64_t> state{0};
    std::uint64_t z = state.fetch_add(0x9E3779B97F4A7C15u, sync::relaxed); // any number will do
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return n < 2 ? 0 : static_cast<unsigned>((z >> 32) % n);
}

void label(const void *, const char *) {}
void label_thread(const char *) {}

} // namespace mc::testing
#endif
