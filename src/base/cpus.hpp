// How many processors the process may use: its affinity, and the quota of its control group. Any thread.
#pragma once

#include <cstdint>

namespace mc::base {

// At least 1. Read once: what changes later is not noticed.
uint32_t usable_cpus() noexcept;

// The same if it is known already, else 1: for callers on small stacks.
uint32_t known_cpus() noexcept;

// The quota alone, rounded up, of the control group of the calling process and those above it; UINT32_MAX without one. root
// stands before /proc and /sys, "" for the machine's own: for tests.
uint32_t quota_cpus(const char *root) noexcept;

} // namespace mc::base
