/* mc/inspect.h: looking at a running program.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 */
#ifndef MC_INSPECT_H
#define MC_INSPECT_H

#include "base.h"

MC_EXTERN_C_BEGIN

#define MC_FAULT_TEXT 128

/* Says whose stack an address overran: when addr lies in the guard below a microthread's stack, writes a line such as
 * `stack overflow in microthread 17 "parser" (32768 bytes)` into buf, which has MC_FAULT_TEXT bytes, ends it with a NUL
 * and returns MC_OK. When addr lies within the stack itself the line says so instead ("address on the stack of …").
 * MC_E_NOENT: addr belongs to no stack of ours; buf is untouched. MC_E_INVAL: NULL buf.
 * Async-signal-safe: it takes no lock and allocates nothing; a host's own SIGSEGV handler may call it.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_fault_describe(const void *addr, char *buf) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_INSPECT_H */
