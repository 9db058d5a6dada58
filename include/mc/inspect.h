/* mc/inspect.h: looking at a running program.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 */
#ifndef MC_INSPECT_H
#define MC_INSPECT_H

#include "base.h"
#include "runtime.h"

MC_EXTERN_C_BEGIN

/* What a task is, and does at the moment. */
enum { MC_TASK_MICROTHREAD = 0, MC_TASK_THREAD = 1 };
enum { MC_TASK_RUNNING = 0, MC_TASK_RUNNABLE = 1, MC_TASK_WAITING = 2 };

/* What a task waits for. object of mc_task_info is the thing's address, a machine's or request's id, or 0. */
enum {
    MC_WAIT_NONE = 0,
    MC_WAIT_SLEEP = 1,
    MC_WAIT_SEND = 2,
    MC_WAIT_RECEIVE = 3,
    MC_WAIT_CHOICE = 4, /* alt */
    MC_WAIT_JOIN = 5,
    MC_WAIT_OPERATION = 6,
    MC_WAIT_MUTEX = 7,
    MC_WAIT_REQUEST = 8,
    MC_WAIT_SEMAPHORE = 9,
    MC_WAIT_WAITGROUP = 10,
    MC_WAIT_ONCE = 11,
    MC_WAIT_CONDITION = 12,
    MC_WAIT_READ_LOCK = 13,
    MC_WAIT_WRITE_LOCK = 14,
    MC_WAIT_GROUP = 15,
    MC_WAIT_QUIESCENCE = 16,
    MC_WAIT_BLOCKING_CALL = 17,
    MC_WAIT_MAILBOX = 18, /* room in the mailbox of the machine `object` */
    MC_WAIT_POLL = 19     /* mail of machine `object`, which is polled; 0: of any that is */
};

#define MC_NAME_BYTES 32

/* A task, at one moment. Fields are added at the end: struct_size says how many there are. */
typedef struct mc_task_info {
    uint32_t struct_size;
    uint32_t kind;                   /* MC_TASK_MICROTHREAD, MC_TASK_THREAD */
    uint64_t id;                     /* of a microthread, from 1; 0 of a thread */
    mc_task_t task;                  /* its handle, or 0: nobody can join it */
    mc_runtime_t runtime;            /* 0: of no runtime */
    char name[MC_NAME_BYTES];        /* csp_descr's, or that of its spawn */
    uint32_t state;                  /* MC_TASK_RUNNING, ... */
    uint32_t executor;               /* where it runs or ran last; UINT32_MAX: nowhere */
    uint32_t waits_for;              /* MC_WAIT_* of one that waits */
    uint32_t timed;                  /* 1: its wait has a deadline */
    uint64_t object;                 /* what it waits for */
    char object_name[MC_NAME_BYTES]; /* csp_chdescr's, of a channel */
    int64_t waited_ns;               /* since when; late by up to 200 microseconds */
    uint64_t holder;                 /* id of the microthread that holds what it waits for; 0: none, or a thread */
    char holder_name[MC_NAME_BYTES]; /* its name */
    uint64_t stack_bytes;            /* of a microthread: its size */
    uint64_t stack_used;             /* what is in use, of one that does not run */
    uint64_t stack_high;             /* most that was ever in use, at most: those that had the stack before count */
    uint64_t reserved[2];
} mc_task_info;

typedef void (*mc_task_info_fn)(void *user, const mc_task_info *info);

/* Calls visit for every task of the runtime (0: of all runtimes, and the threads that wait in the library) that has waited for
 * min_waited_ns or longer; with 0 for all. Disturbs nobody: tasks go on meanwhile, each is described as it was at one moment,
 * and one that begins or ends may be missed. With a time, this is the report of what is stuck, or forgotten.
 * MC_E_INVAL: NULL visit, or a time below 0. MC_E_STALE: no such runtime. Some system calls for each microthread.
 * Blocks: never. Threads: any. Calls back: visit, on the caller's stack, with no lock held. */
MC_API int32_t mc_inspect_tasks(mc_runtime_t rt, int64_t min_waited_ns, mc_task_info_fn visit, void *user) MC_NOEXCEPT;

/* The same as JSON: an object with "version", "now_ns", "runtimes" (an array of objects with the fields of mc_runtime_counters and
 * "executor_stats") and "tasks" (an array of objects with the fields of mc_task_info by their names, state, kind and waits_for as
 * lower-case words). Pieces of it go to write as they are made, in UTF-8; names that are not UTF-8 have U+FFFD in place of what is
 * wrong. MC_E_INVAL: NULL write. Else as above. Blocks: never. Threads: any. Calls back: write, on the caller's stack. */
typedef void (*mc_write_fn)(void *user, const char *text, uint64_t length);
MC_API int32_t mc_inspect_json(mc_runtime_t rt, int64_t min_waited_ns, mc_write_fn write, void *user) MC_NOEXCEPT;

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
