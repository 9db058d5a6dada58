/* mc/scope.h: cancellation scopes, groups of microthreads, and task-local storage.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 *
 * A scope ends waits. While a task is inside a scope, every call of it that waits, of any model, returns MC_E_CANCELED once
 * the scope is cancelled or its deadline has come: the wait that is under way then, and each later one. A call that need not
 * wait still succeeds, and one that was granted what it waited for just before stays granted. mc_checkpoint says so too, for
 * tasks that compute. The cause can be asked for.
 *
 * Scopes form a tree: a scope is below the one that its maker was inside; what cancels a scope cancels all below it, and
 * its deadline bounds theirs.
 *
 * A group is a scope with microthreads of its own: the first that ends with an error cancels the others, and the group can
 * not end before them. (After Trio's nurseries and Go's contexts.)
 */
#ifndef MC_SCOPE_H
#define MC_SCOPE_H

#include "base.h"
#include "runtime.h"

MC_EXTERN_C_BEGIN

typedef uint64_t mc_scope_t;
typedef uint64_t mc_group_t;
typedef uint64_t mc_local_t;

/* Makes a scope, below the one that the calling task is inside (if any), with a deadline (steady nanoseconds, MC_FOREVER:
 * none). Nobody is inside it yet. It stays until mc_scope_destroy. MC_E_INVAL: NULL out. MC_E_NOMEM, MC_E_FORKED,
 * MC_E_SHUTDOWN. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_scope_create(int64_t deadline_ns, mc_scope_t *out) MC_NOEXCEPT;

/* The calling task (microthread or thread) is inside the scope from here on, until mc_scope_leave or its end. Several tasks
 * may be, and one may enter several, one after another: the innermost counts, so what shall be cancelled with an outer one
 * must be made below it. A scope that is cancelled already can be entered. MC_E_STALE, MC_E_NOMEM.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_scope_enter(mc_scope_t scope) MC_NOEXCEPT;

/* Leaves the scope that the calling task entered last. MC_E_NOENT: it has entered
 * none (a group's microthread stays inside its group).
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_scope_leave(void) MC_NOEXCEPT;

/* The scope that the calling task is inside, innermost; 0: none, or a group's. Blocks: never. Threads: any. Calls back: no. */
MC_API mc_scope_t mc_scope_self(void) MC_NOEXCEPT;

/* Cancels the scope and all below it: ends the waits that are under way inside them. cause is a negative code of the
 * caller's choice, or 0 for MC_E_CANCELED; the first cause stays. MC_OK also when it was cancelled before. MC_E_INVAL: cause
 * above 0. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_scope_cancel(mc_scope_t scope, int32_t cause) MC_NOEXCEPT;

/* Stores why the scope is cancelled: the cause, MC_E_TIMEDOUT for its deadline, 0 while it is not. MC_E_STALE, MC_E_INVAL.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_scope_cause(mc_scope_t scope, int32_t *cause) MC_NOEXCEPT;

/* Ends a scope. MC_E_BUSY: a task is inside it, or a scope is below it. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_scope_destroy(mc_scope_t scope) MC_NOEXCEPT;

/* Makes a group of microthreads of the runtime rt, whose scope is below the one that the calling task is inside, with a
 * deadline (MC_FOREVER: none). MC_E_INVAL: NULL out. MC_E_STALE: no such runtime. MC_E_NOMEM, MC_E_FORKED, MC_E_SHUTDOWN.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_group_create(mc_runtime_t rt, int64_t deadline_ns, mc_group_t *out) MC_NOEXCEPT;

/* As mc_spawn without a handle: starts a microthread of the group, inside the group's scope. A result below 0, and an
 * exception (MC_E_CRASHED), is an error: the first one cancels the group, with the error as the cause. Children may call this
 * too. MC_E_STALE: no such group. Else as mc_spawn. Blocks: never. Threads: any. Calls back: fn, on its own stack. */
MC_API int32_t mc_group_spawn(mc_group_t group, mc_task_fn fn, void *user, const mc_spawn_options *options) MC_NOEXCEPT;

/* Cancels the group's scope: as mc_scope_cancel. MC_E_INVAL, MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_group_cancel(mc_group_t group, int32_t cause) MC_NOEXCEPT;

/* Waits until no microthread of the group is left; then stores the first error (NULL: not wanted), 0 when there was none.
 * Several may wait; further children may be spawned afterwards. MC_E_TIMEDOUT: the deadline passed, the group goes on.
 * MC_E_DEADLOCK: the caller is one of the group's, or nothing is left that could end the wait. MC_E_CANCELED, MC_E_STALE,
 * MC_E_CONTEXT, MC_E_SHUTDOWN. Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_group_wait(mc_group_t group, int64_t deadline_ns, int32_t *first_error) MC_NOEXCEPT;

/* Ends a group. MC_E_BUSY: a microthread of it is left, or somebody waits for it, or a scope is below its own. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_group_destroy(mc_group_t group) MC_NOEXCEPT;

/* --- task-local storage ---
 * A value for each task, be it a microthread or a thread. It goes with the microthread from one thread to another. */

/* Makes a key. When a task ends, drop (if not NULL) is called on its stack with each value that is not NULL, which has been
 * set to NULL before; what drops set anew is dropped too, up to four rounds, and forgotten after that. MC_E_INVAL: NULL out.
 * MC_E_NOMEM. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_local_create(void (*drop)(void *value), mc_local_t *out) MC_NOEXCEPT;

/* The calling task's value; NULL: none has been set, or the key is stale. Blocks: never. Threads: any. Calls back: no. */
MC_API void *mc_local_get(mc_local_t key) MC_NOEXCEPT;

/* Sets the calling task's value; the old one is not dropped. MC_E_STALE, MC_E_NOMEM, MC_E_FORKED, MC_E_SHUTDOWN.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_local_set(mc_local_t key, void *value) MC_NOEXCEPT;

/* Ends a key; values that tasks have under it are dropped by nobody. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_local_destroy(mc_local_t key) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_SCOPE_H */
