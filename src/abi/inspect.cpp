// mc/inspect.h
#include <mc/inspect.h>

#include "fiber/overflow.hpp"

int32_t mc_fault_describe(const void *addr, char *buf) noexcept { return mc::fiber::fault_describe(addr, buf); }
