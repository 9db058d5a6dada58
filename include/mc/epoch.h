/* mc/epoch.h: freeing what other threads may still be reading.
 *
 * A structure that many threads read without a lock can not free what it unlinks: somebody may have just found it. So who
 * unlinks a node *retires* it, and who reads *pins* while he reads. The runtime frees a retired node when everybody who
 * could have found it has unpinned. Its executors do that now and then, and before they sleep.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only. Where a call takes an
 * mc_runtime_t, 0 means the runtime of the calling task, else the default one. Everywhere: MC_E_STALE for another
 * runtime; MC_E_FORKED, MC_E_SHUTDOWN and MC_E_NOMEM as for any first call.
 *
 * The scheme is that of epochs (Fraser, Practical lock-freedom, 2004), with executors as quiescent-state readers
 * (McKenney and Slingwine, Read-copy update, 1998): on a microthread of a runtime with executors a pin costs a few
 * instructions, and touches no memory that others write.
 */
#ifndef MC_EPOCH_H
#define MC_EPOCH_H

#include "base.h"

MC_EXTERN_C_BEGIN

/* Lies in what is retired, anywhere in it. Needs no initialisation, and is nobody's until then; from mc_epoch_retire until
 * `free` is called it is the library's. */
typedef struct mc_epoch_node {
    void *reserved[4];
} mc_epoch_node;

/* From here on until the unpinning what the caller finds stays as it is. Pins nest. They belong to the task (or thread)
 * that took them: with one held every call that would block is MC_E_CONTEXT, and nothing gives up the turn. Short, then: a
 * reader holds up the freeing of everything that is retired meanwhile. A microthread that ends without unpinning is
 * unpinned, and the log told.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_epoch_pin(mc_runtime_t rt) MC_NOEXCEPT;

/* MC_E_INVAL: the caller holds no pin.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_epoch_unpin(mc_runtime_t rt) MC_NOEXCEPT;

/* Has free(user, node) called, once, when nobody who has pinned can still read the node. The caller has unlinked it:
 * nobody who begins to look now can find it. With or without a pin, and from within a free too. `free` is called on an
 * executor's own stack (64 KiB), or on that of whoever calls mc_epoch_advance or mc_epoch_barrier; with no lock held; calls
 * that would block are MC_E_CONTEXT there, and a pin is ended with the call, which the log is told. One that retires its node
 * again, always, keeps an executor busy. What is left at the process's end is not freed: see mc_epoch_barrier. In
 * single-processor mode nothing is freed while the owner does not run the runtime.
 * MC_E_INVAL: NULL node or free.
 * Blocks: never. Threads: any. Calls back: free, later. */
MC_API int32_t mc_epoch_retire(mc_runtime_t rt, mc_epoch_node *node, void (*free)(void *user, mc_epoch_node *node),
                               void *user) MC_NOEXCEPT;

/* Frees what is safe by now, and begins to count for what has been retired since: what is retired now is freed by the
 * second call from now that returns MC_OK. Programs need not call it; it is for tests, and for who wants to choose the
 * moment. MC_E_AGAIN: a reader holds it up, or another thread is at it. MC_E_CONTEXT: with a pin held, inside tx or a free.
 * Blocks: never. Threads: any. Calls back: free and the hook, on the caller's stack. */
MC_API int32_t mc_epoch_advance(mc_runtime_t rt) MC_NOEXCEPT;

/* Waits until everything is freed whose retirement happened before the call: before what `free` needs goes away (a
 * library that is unloaded, a pool of memory), and before the end of a program that wants nothing left over.
 * MC_E_TIMEDOUT: the deadline has passed (steady clock; MC_NOW only tries). MC_E_CONTEXT as above. MC_E_CANCELED.
 * Blocks: fiber | thread. Threads: any. Calls back: free and the hook, on the caller's stack. */
MC_API int32_t mc_epoch_barrier(mc_runtime_t rt, int64_t deadline_ns) MC_NOEXCEPT;

/* Has hook(user, epoch) called after each advance, epochs in order, where `free` is called; NULL removes it. A call of the
 * former hook may still be under way: mc_epoch_barrier outlasts it.
 * Blocks: never. Threads: any. Calls back: hook, later. */
MC_API int32_t mc_epoch_set_hook(mc_runtime_t rt, void (*hook)(void *user, uint64_t epoch), void *user) MC_NOEXCEPT;

/* What holds up the freeing. EXECUTOR: one whose microthread has been running since without a call that could switch; in
 * single-processor mode, one that a task of the owner's has pinned. PIN: another thread of the program's that has pinned.
 * CALLBACK: a hook or a free that has not returned. */
enum { MC_EPOCH_STALL_EXECUTOR = 0, MC_EPOCH_STALL_PIN = 1, MC_EPOCH_STALL_CALLBACK = 2 };

/* Given to a callback, for its time; from later libraries perhaps longer than this. */
typedef struct mc_epoch_stall {
    uint32_t struct_size;
    uint32_t kind;  /* MC_EPOCH_STALL_* */
    uint64_t epoch; /* which it has seen */
    int64_t age_ns; /* since an advance first failed for it; of a CALLBACK, since the advance that it belongs to */
    char name[32];  /* such as "executor 3" or "thread 4711" (the system's number) */
} mc_epoch_stall;

/* Calls each(user, stall) for everything that has held up the freeing for min_age_ns or more, counted from the first advance
 * that failed for it; for the first 8 of them. The log is told by itself of what holds it up for a second
 * (MC_LOG_WARNING, MC_E_BUSY). MC_E_INVAL: NULL each.
 * Blocks: never. Threads: any. Calls back: each, on the caller's stack. */
MC_API int32_t mc_epoch_each_stall(mc_runtime_t rt, int64_t min_age_ns,
                                   void (*each)(void *user, const mc_epoch_stall *stall), void *user) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_EPOCH_H */
