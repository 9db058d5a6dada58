#include "base/log.hpp"

#include "base/status.hpp"
#include "base/sync.hpp"

#include <cstdarg>
#include <cstdio>

namespace mc::base {
namespace {

struct Hook {
    mc_log_fn call = nullptr;
    void *user = nullptr;
};

sync::mutex hook_mutex;
Hook hook; // guarded by hook_mutex

Hook current_hook() noexcept {
    sync::lock_guard guard(hook_mutex);
    return hook;
}

void write_line(int32_t level, int32_t code, const char *text) noexcept {
    if (level > MC_LOG_WARNING)
        return;
    const char *kind = level == MC_LOG_ERROR ? "error" : "warning";
    if (code == MC_OK)
        std::fprintf(stderr, "libmcrt: %s: %s\n", kind, text);
    else
        std::fprintf(stderr, "libmcrt: %s: %s (%s)\n", kind, text, status_text(code));
}

} // namespace

void set_log_hook(mc_log_fn call, void *user) noexcept {
    sync::lock_guard guard(hook_mutex);
    hook = Hook{call, user};
}

void log(int32_t level, int32_t code, const char *format, ...) noexcept {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const Hook now = current_hook();
    if (now.call == nullptr)
        return write_line(level, code, text);
    try {
        now.call(now.user, level, code, text);
    } catch (...) {
        write_line(MC_LOG_WARNING, MC_OK, "the log hook threw an exception");
    }
}

} // namespace mc::base
