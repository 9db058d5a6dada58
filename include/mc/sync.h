/* mc/sync.h: mutex, semaphore, wait group, once, condition and read-write lock, for microthreads and threads together.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 *
 * Each is a handle, made by _create and ended by _destroy, and works among all tasks and threads of the process, whatever
 * runtime they belong to. A microthread that waits parks and its executor goes on; a thread waits. Who waits is served first
 * come, first served, where nothing else is said.
 *
 * Deadlines are steady nanoseconds: MC_FOREVER waits as long as it takes, MC_NOW does not wait. What all calls that wait
 * return beside what is said there: MC_E_TIMEDOUT, the deadline passed (also MC_NOW found nothing); MC_E_CANCELED, the
 * caller's scope was cancelled (mc/scope.h); MC_E_DEADLOCK, nothing is left that could end the wait; MC_E_SHUTDOWN, its
 * runtime ends; MC_E_CONTEXT, here nothing may wait; MC_E_STALE, no such handle; MC_E_NOMEM and MC_E_FORKED, as any first
 * call. With any of these the caller has nothing, and has taken nothing from those that wait beside it.
 */
#ifndef MC_SYNC_H
#define MC_SYNC_H

#include "base.h"

MC_EXTERN_C_BEGIN

typedef uint64_t mc_mutex_t;
typedef uint64_t mc_semaphore_t;
typedef uint64_t mc_waitgroup_t;
typedef uint64_t mc_once_t;
typedef uint64_t mc_cond_t;
typedef uint64_t mc_rwlock_t;

/* --- mutex --- */

/* Flags of mc_mutex_create. FIFO: who waits gets the mutex in the order of coming, by hand-over; each lock of a contended
 * mutex costs a switch then. Without it, who runs may take a free mutex past those that wait (much faster), but one who has
 * waited for a millisecond and loses again is handed it. RECURSIVE: the owner may lock it again, and unlocks it as often. */
enum { MC_MUTEX_FIFO = 1, MC_MUTEX_RECURSIVE = 2 };

/* MC_E_INVAL: NULL out or unknown flags. MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_create(uint32_t flags, mc_mutex_t *out) MC_NOEXCEPT;

/* MC_E_BUSY: somebody owns it, or waits for it, or for a condition with it. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_destroy(mc_mutex_t mutex) MC_NOEXCEPT;

/* Locks the mutex for the calling task. MC_E_OWNERDEAD: its last owner ended without unlocking it. The caller owns it now,
 * what it guards may be half changed; each who locks it gets this until an owner has called mc_mutex_consistent.
 * MC_E_DEADLOCK: the caller owns it (and it is not recursive). Else as said above.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_lock(mc_mutex_t mutex) MC_NOEXCEPT;
MC_API int32_t mc_mutex_lock_until(mc_mutex_t mutex, int64_t deadline_ns) MC_NOEXCEPT;

/* The same without waiting: MC_E_AGAIN when another one owns it. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_try_lock(mc_mutex_t mutex) MC_NOEXCEPT;

/* Gives it back. MC_E_PERM: the caller does not own it. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_unlock(mc_mutex_t mutex) MC_NOEXCEPT;

/* Locks all of them, or none, always in the same order whatever order they are given in, so that two callers with some in
 * common do not wait for each other for ever. MC_E_INVAL: one of them twice, or NULL. MC_E_OWNERDEAD: all are locked, and one
 * or more of them want mc_mutex_consistent. Else as mc_mutex_lock, for any of them.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_lock_all(const mc_mutex_t *mutexes, uint32_t count, int64_t deadline_ns) MC_NOEXCEPT;

/* Unlocks all of them. What can not be unlocked does not keep the others: the first code that was not MC_OK is returned.
 * MC_E_INVAL: NULL. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_unlock_all(const mc_mutex_t *mutexes, uint32_t count) MC_NOEXCEPT;

/* The owner says that what the mutex guards is whole again. MC_E_INVAL: it was not in doubt. MC_E_PERM, MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_mutex_consistent(mc_mutex_t mutex) MC_NOEXCEPT;

/* --- semaphore --- */

/* With so many units, up to 2^63 - 1. MC_E_INVAL, MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_semaphore_create(uint64_t units, mc_semaphore_t *out) MC_NOEXCEPT;

/* MC_E_BUSY: somebody waits. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_semaphore_destroy(mc_semaphore_t semaphore) MC_NOEXCEPT;

/* Takes count units (at least 1), all at once. Who asks for more than there are holds up those that come later, so that it
 * is served in its turn. MC_E_INVAL: count 0. Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_semaphore_acquire(mc_semaphore_t semaphore, uint32_t count, int64_t deadline_ns) MC_NOEXCEPT;

/* Gives count units; anybody may. MC_E_LIMIT: there would be too many. MC_E_INVAL: count 0. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_semaphore_release(mc_semaphore_t semaphore, uint32_t count) MC_NOEXCEPT;

/* --- wait group --- */

/* With so many things open. MC_E_INVAL: below 0, or NULL out. MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_waitgroup_create(int64_t open, mc_waitgroup_t *out) MC_NOEXCEPT;

/* MC_E_BUSY: something is open, or somebody waits. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_waitgroup_destroy(mc_waitgroup_t group) MC_NOEXCEPT;

/* Adds to what is open (or, below 0, takes away); at 0 all who wait go on. MC_E_INVAL: it would be below 0 or too much;
 * nothing has changed. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_waitgroup_add(mc_waitgroup_t group, int64_t delta) MC_NOEXCEPT;
MC_API int32_t mc_waitgroup_done(mc_waitgroup_t group) MC_NOEXCEPT; /* adds -1 */

/* Waits until nothing is open. Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_waitgroup_wait(mc_waitgroup_t group, int64_t deadline_ns) MC_NOEXCEPT;

/* --- once --- */

/* MC_E_INVAL, MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_once_create(mc_once_t *out) MC_NOEXCEPT;

/* MC_E_BUSY: its function runs, or somebody waits for it. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_once_destroy(mc_once_t once) MC_NOEXCEPT;

/* Sees to it that fn(user) has been done once: calls it, or waits while another caller does, or returns at once. MC_OK: it
 * has been done, by a call that returned 0 or more. A caller whose own fn returned less gets that code (MC_E_CRASHED for an
 * exception); it does not count as done, and the next caller tries. MC_E_DEADLOCK: called from within fn. MC_E_INVAL: NULL fn.
 * Blocks: fiber | thread. Threads: any. Calls back: fn, on the caller's stack, with no lock held. */
MC_API int32_t mc_once_call(mc_once_t once, int32_t (*fn)(void *user), void *user, int64_t deadline_ns) MC_NOEXCEPT;

/* --- condition --- */

/* MC_E_INVAL, MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_cond_create(mc_cond_t *out) MC_NOEXCEPT;

/* MC_E_BUSY: somebody waits. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_cond_destroy(mc_cond_t cond) MC_NOEXCEPT;

/* Gives back the mutex, which the caller owns, waits for a signal, and locks the mutex again; a signal after the mutex was
 * given back is not missed. MC_OK comes after a signal only (none is made up), but what it told of may be gone again. With
 * MC_OK and with each code that ends the wait (MC_E_TIMEDOUT, MC_E_CANCELED, MC_E_DEADLOCK, MC_E_SHUTDOWN) the caller owns
 * the mutex: locking it again ends for no other reason than that it was had, but for MC_E_DEADLOCK when its owner waits for ever
 * (mc_mutex_unlock then says MC_E_PERM). MC_E_OWNERDEAD stands for any of these when the mutex wants
 * mc_mutex_consistent. MC_E_PERM: the caller does not own the mutex. MC_E_STALE: no such condition or mutex.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_cond_wait(mc_cond_t cond, mc_mutex_t mutex, int64_t deadline_ns) MC_NOEXCEPT;

/* Ends the wait of the one that waits longest, or of all. One whose wait ends otherwise does not use a signal up.
 * MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_cond_signal(mc_cond_t cond) MC_NOEXCEPT;
MC_API int32_t mc_cond_broadcast(mc_cond_t cond) MC_NOEXCEPT;

/* --- read-write lock --- */

/* MC_E_INVAL, MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_rwlock_create(mc_rwlock_t *out) MC_NOEXCEPT;

/* MC_E_BUSY: somebody has locked it or waits. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_rwlock_destroy(mc_rwlock_t lock) MC_NOEXCEPT;

/* Many may read at a time, or one may write. Who comes to read while somebody waits to write stands behind that one, so a
 * task that reads must not lock it again. It does not learn of owners that end: give it back before. MC_E_DEADLOCK: the
 * caller is the one that writes. Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_rwlock_read_lock(mc_rwlock_t lock, int64_t deadline_ns) MC_NOEXCEPT;
MC_API int32_t mc_rwlock_write_lock(mc_rwlock_t lock, int64_t deadline_ns) MC_NOEXCEPT;

/* MC_E_PERM: nobody reads; another one than the caller writes. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_rwlock_read_unlock(mc_rwlock_t lock) MC_NOEXCEPT;
MC_API int32_t mc_rwlock_write_unlock(mc_rwlock_t lock) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_SYNC_H */
