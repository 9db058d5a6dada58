// The log: what a status code cannot say. Any thread; never under a lock, since the host's hook may call us back.
#pragma once

#include <mc/base.h>

namespace mc::base {

void set_log_hook(mc_log_fn call, void *user) noexcept;

// Around a fork: the child finds the hook whole and the lock free.
void log_before_fork() noexcept;
void log_after_fork() noexcept;

// One line, cut to 255 bytes. Fits a microthread's smallest stack.
__attribute__((format(printf, 3, 4))) void log(int32_t level, int32_t code, const char *format, ...) noexcept;

} // namespace mc::base
