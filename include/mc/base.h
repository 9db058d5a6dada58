/* mc/base.h: what every other header of libmcrt needs.
 *
 * Success: functions that return int32_t return MC_OK (0) or a negative MC_E_* code. Out-parameters are written on
 * success only. No function here throws.
 *
 * Each doc comment ends with a line that says
 *   Blocks: fiber (a microthread parks, its executor goes on) | thread (the calling OS thread waits) | never.
 *   Threads: any | owner (the thread that owns the single-processor runtime) | loop.
 *   Calls back: no | on which stack.
 *
 * Threads that call the library are those of the C library that it is linked with: made by pthread_create, or by what stands on that,
 * as the threads of C++, Rust, Go, the JVM and CPython are. A signal handler may call what says that it is async-signal-safe, and
 * nothing else.
 */
#ifndef MC_BASE_H
#define MC_BASE_H

#include <stdint.h>

#if defined(_WIN32)
#define MC_API
#else
#define MC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define MC_NOEXCEPT noexcept
#define MC_EXTERN_C_BEGIN extern "C" {
#define MC_EXTERN_C_END }
#else
#define MC_NOEXCEPT
#define MC_EXTERN_C_BEGIN
#define MC_EXTERN_C_END
#endif

MC_EXTERN_C_BEGIN

/* Version of the headers. The library's own is mc_abi_version(). Until 1.0 a minor version may break the ABI. */
#define MC_VERSION_MAJOR 0
#define MC_VERSION_MINOR 1

/* The status table: X(NAME, code, text). Codes run down from -100001, so that none of them equals the -(i + 1) by which
 * csp_alt says that the channel of arm i is dead. A code, once released, keeps its meaning and its value. */
#define MC_STATUS_TABLE(X)                                                                                             \
    X(INVAL, -100001, "invalid argument")                                                                              \
    X(STALE, -100002, "handle is stale, released or was never issued")                                                 \
    X(CLOSED, -100003, "closed")                                                                                       \
    X(AGAIN, -100004, "nothing is ready now")                                                                          \
    X(TIMEDOUT, -100005, "deadline passed")                                                                            \
    X(CANCELED, -100006, "canceled")                                                                                   \
    X(FULL, -100007, "full")                                                                                           \
    X(NOMEM, -100008, "out of memory, mappings or stacks")                                                             \
    X(PERM, -100009, "not permitted")                                                                                  \
    X(DEADLOCK, -100010, "deadlock: nothing is left that could end this wait")                                         \
    X(BUSY, -100011, "busy")                                                                                           \
    X(NOTSUP, -100012, "not supported here")                                                                           \
    X(FORKED, -100013, "this process is a fork of the one that owned the runtime")                                     \
    X(SHUTDOWN, -100014, "the runtime is shutting down")                                                               \
    X(VERSION, -100015, "the caller is newer than the library")                                                        \
    X(LIMIT, -100016, "a limit was reached")                                                                           \
    X(EXISTS, -100017, "exists already")                                                                               \
    X(NOENT, -100018, "not found")                                                                                     \
    X(NOROUTE, -100019, "no destination")                                                                              \
    X(OWNERDEAD, -100020, "the owner died holding it")                                                                 \
    X(CRASHED, -100021, "ended by an exception")                                                                       \
    X(IO, -100022, "input or output error")                                                                            \
    X(CONTEXT, -100023, "not allowed on this stack or from this thread")                                               \
    X(SIM, -100024, "not available in simulation")

enum {
    MC_OK = 0,
#define MC_STATUS_ENUM_(name, code, text) MC_E_##name = (code),
    MC_STATUS_TABLE(MC_STATUS_ENUM_)
#undef MC_STATUS_ENUM_
        MC_STATUS_LAST_ = -100024
};

/* The text of a status code; "ok" for MC_OK, "unknown status" for a code that is not in the table. The string is
 * static.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API const char *mc_strerror(int32_t code) MC_NOEXCEPT;

/* The name of a status code, such as "MC_E_STALE"; "MC_OK" for 0, NULL for a code that is not in the table. Static.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API const char *mc_status_name(int32_t code) MC_NOEXCEPT;

/* The library's version: major << 16 | minor. Blocks: never. Threads: any. Calls back: no. */
MC_API uint32_t mc_abi_version(void) MC_NOEXCEPT;

/* MC_OK when this library can serve a program that was built against headers of version major.minor, else MC_E_VERSION.
 * Before 1.0 that needs the same minor; from 1.0 on, the same major and a minor that is not newer than the library's.
 * Call it as mc_check_abi(MC_VERSION_MAJOR, MC_VERSION_MINOR). Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_check_abi(uint32_t major, uint32_t minor) MC_NOEXCEPT;

/* Handles: an index and a generation; 0 is none. A stale, closed or random one gets MC_E_STALE, never a crash. */
typedef uint64_t mc_runtime_t;
typedef uint64_t mc_task_t;
typedef uint64_t mc_chan_t;

/* Time: int64_t nanoseconds of the steady clock. */
#define MC_NOW INT64_MIN     /* a deadline that has always passed: do not wait */
#define MC_FOREVER INT64_MAX /* a deadline that never comes */
#define MC_MS INT64_C(1000000)
#define MC_SEC INT64_C(1000000000)

/* The steady clock (CLOCK_MONOTONIC, the one of std::chrono::steady_clock), in nanoseconds.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int64_t mc_now(void) MC_NOEXCEPT;

/* The deadline ns nanoseconds from now, saturating: never past MC_FOREVER; MC_FOREVER stays MC_FOREVER; below 0 is
 * taken as 0. Blocks: never. Threads: any. Calls back: no. */
MC_API int64_t mc_after(int64_t ns) MC_NOEXCEPT;

/* 64 random bits, from a generator of the calling thread. Makes nobody the owner of the runtime. Not for secrets.
 * (xoshiro256**, Blackman and Vigna.)
 * Blocks: never. Threads: any. Calls back: no. */
MC_API uint64_t mc_random(void) MC_NOEXCEPT;

/* A message that all models and languages share. A call that succeeds has taken it over; one that fails leaves it with
 * the caller; one that the library discards is dropped once, by drop(user, data, len) when drop is not NULL. */
typedef struct mc_msg {
    void *data;
    uint64_t len;
    void (*drop)(void *user, void *data, uint64_t len);
    void *user;
} mc_msg;

/* An allocator. alloc returns size bytes (at least 1) aligned to align (a power of two), or NULL. free gets what alloc
 * returned, with the same size and align. Both may be called from any thread, on any stack and with locks of the
 * library held: they must not call libmcrt, nor wait for a thread that may be inside it. reserved must be 0. */
typedef struct mc_allocator {
    uint32_t struct_size;
    uint32_t reserved;
    void *(*alloc)(void *user, uint64_t size, uint64_t align);
    void (*free)(void *user, void *ptr, uint64_t size, uint64_t align);
    void *user;
} mc_allocator;
#define MC_ALLOCATOR_INIT                                                                                              \
    { (uint32_t)sizeof(mc_allocator), 0, 0, 0, 0 }

/* Replaces malloc for everything that the library allocates but stacks, which are mapped. Call it before any other
 * function that allocates. MC_E_INVAL: NULL argument or member, reserved not 0. MC_E_VERSION: a struct that this
 * library does not know.
 * MC_E_BUSY: something was allocated already. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_set_allocator(const mc_allocator *allocator) MC_NOEXCEPT;

/* Levels of the log. */
enum { MC_LOG_ERROR = 0, MC_LOG_WARNING = 1, MC_LOG_INFO = 2 };

/* A log hook: code is the MC_E_* code that the text explains, or MC_OK. text is one line without its newline and dies
 * with the call. It may be called from any thread and on a microthread's stack, with no lock held. */
typedef void (*mc_log_fn)(void *user, int32_t level, int32_t code, const char *text);

/* Replaces the log, which writes errors and warnings to standard error. NULL restores that. A call of the former hook
 * may still be under way on another thread when this returns.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void mc_set_log_hook(mc_log_fn hook, void *user) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_BASE_H */
