#include "base/log.hpp"

#include "base/status.hpp"
#include "base/sync.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <unistd.h>

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

// Straight to the descriptor: stdio's unbuffered stderr takes 8 KiB of stack, more than a microthread may have.
void write_line(int32_t level, int32_t code, const char *text) noexcept {
    if (level > MC_LOG_WARNING)
        return;
    char line[384];
    const char *kind = level == MC_LOG_ERROR ? "error" : "warning";
    int length = code == MC_OK
                     ? std::snprintf(line, sizeof line, "libmcrt: %s: %s\n", kind, text)
                     : std::snprintf(line, sizeof line, "libmcrt: %s: %s (%s)\n", kind, text, status_text(code));
    length = std::min<int>(length, sizeof line - 1);
    const int before = errno;
    while (length > 0 && ::write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0 && errno == EINTR) {
    }
    errno = before;
}

} // namespace

void set_log_hook(mc_log_fn call, void *user) noexcept {
    sync::lock_guard guard(hook_mutex);
    hook = Hook{call, user};
}

void log_before_fork() noexcept { hook_mutex.lock(); }
void log_after_fork() noexcept { hook_mutex.unlock(); }

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
