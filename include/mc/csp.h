/* mc/csp.h: microthreads and channels (CSP), and buffered channels of fixed-size elements.
 *
 * Success: csp_* functions return non-zero on success (1) and 0 or a negative number otherwise, as each says; mc_*
 * functions return MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 *
 * Single-processor mode
 * ---------------------
 * The thread whose call first needs the runtime owns it. Its own stack is one more task beside the microthreads. There
 * is one FIFO queue; its head is in turn.
 *   - A spawned child (csp_spawn), and a receiver that a sender finds waiting, joins the tail and runs at once, out of
 *     turn; who handed over keeps his place. When a task out of turn blocks, yields or ends, the head goes on.
 *   - A sender that a receiver finds waiting, and everything that a channel's death wakes (in the order in which they
 *     came, those in dead mode last), joins the tail.
 *   - With nowait, inside tx, from other threads, and into a channel of elements that has a buffer (a capacity above 0),
 *     nothing switches: the other party joins the tail.
 * A task that only ever sends to waiting receivers therefore keeps its turn: each receiver runs, waits again, and the
 * sender goes on. csp_yield gives the others theirs.
 * Threads that do not own the runtime may make every call but csp_run and csp_schedule; when they block, the thread
 * waits.
 * Microthreads run, and csp_after and csp_tick fire, while the owner is inside the library: an owner that waits
 * elsewhere (in pthread_join, say) holds them up. Deadlines of other threads' own calls do not depend on it. When the
 * owner's thread ends, the thread that makes the next call owns the runtime (addref, release, what only asks, and
 * calls inside tx aside); until then no microthread runs. That includes the end of main's thread when main returns: a
 * thread that still makes calls then owns the runtime while static destructors run.
 *
 * Many executors
 * --------------
 * Between csp_init_runtime and csp_shutdown_runtime the runtime has executors, threads of its own, and every microthread
 * may go on on another one after each call that can block (what it keeps in thread-local variables, and errno, stays
 * behind). No order holds between microthreads but what channels give. Whom a microthread wakes runs next on the same
 * executor, or is taken by an idle one; csp_spawn does not switch. A microthread that has used its quantum (4,000 calls
 * or 1 ms of one turn) gives up its turn at its next blocking call. csp_run, from any other thread, waits up to 1 ms for
 * the last microthread to end and returns 1 while one is left; csp_schedule waits until none is (for ever, when one is
 * blocked for good) or another thread has called csp_shutdown_runtime. On a microthread csp_run yields and returns 1, and
 * csp_schedule is MC_E_CONTEXT, logged. No call returns MC_E_DEADLOCK then, but mc_join of oneself.
 *
 * Endpoints
 * ---------
 * A channel has two ends, each with a count of references. An end whose count falls to 0 is dead, for good; when both
 * are, the channel is gone. The caller must hold a reference to each end that it passes, for the length of the call.
 * Using an end after its last release is a mistake that the library survives: builds with assertions return MC_E_STALE
 * and log it, release builds do the same until the memory is used for another channel, and then act on that one.
 */
#ifndef MC_CSP_H
#define MC_CSP_H

#include "base.h"

MC_EXTERN_C_BEGIN

/* --- Microthreads ------------------------------------------------------------------------------------------------ */

typedef void (*csp_entry_f)(void *);

/* Starts a microthread that calls entry(data), on a stack of MC_STACK_DEFAULT bytes, and runs it at once, out of turn
 * (from another thread than the owner: it joins the tail). It is detached. Returns 1, or 0 on failure (NULL entry, no
 * memory, after fork), which is logged. A C++ exception that leaves entry ends the microthread and is logged.
 * Blocks: never. Threads: any. Calls back: entry, on its own stack. */
MC_API int csp_spawn(csp_entry_f entry, void *data) MC_NOEXCEPT;

/* Fires due timers, then gives up the turn; with nothing but sleepers left, sleeps until the first of them or until
 * another thread wakes a task. Returns 1 while another task is runnable or a timer is pending, else 0. From a thread
 * that does not own the runtime, or inside tx: logs MC_E_CONTEXT and returns 0.
 * Blocks: fiber | thread. Threads: owner. Calls back: no. */
MC_API int csp_run(void) MC_NOEXCEPT;

/* Returns when no other task is runnable and no timer is pending; blocked tasks may remain. Tasks that are in
 * csp_schedule themselves do not count as runnable. Errors as csp_run.
 * Blocks: fiber | thread. Threads: owner. Calls back: no. */
MC_API void csp_schedule(void) MC_NOEXCEPT;

/* Gives the runtime n executors, threads of its own that run the microthreads from then on, in parallel: n from 1 to
 * 1,024, or 0 for one for each processor that the process may use (by its affinity, and by the quota of its control
 * group, rounded up). The caller must own the runtime, or nobody; afterwards it is a thread like any other. Returns 1; or
 * 0, logged, with nothing changed: MC_E_BUSY (microthreads live, or there are executors already, or another thread owns
 * the runtime), MC_E_CONTEXT (on a microthread, inside tx, with an epoch pinned), MC_E_LIMIT, MC_E_INVAL (n below 0),
 * MC_E_NOMEM, MC_E_SHUTDOWN.
 *
 * In a forked child, where every other call is MC_E_FORKED, this one and csp_shutdown_runtime begin anew, with a runtime
 * of the child's own: call one of them before the child has other threads, on a stack that is no microthread's, and not
 * within a function that the library has called (else MC_E_CONTEXT). What the parent had made stays behind: its handles
 * are stale, its endpoints' channels are dead and only good for being released, its microthreads never run, what it
 * retired (mc/epoch.h) is not freed, pins and hooks are gone, and the memory of all that is not given back.
 * Blocks: thread (until the executors' threads have been made). Threads: owner. Calls back: no. */
MC_API int csp_init_runtime(int n) MC_NOEXCEPT;

/* Stops the executors, each when the microthread that it runs next gives it up: one that never does holds this up. The
 * caller owns the runtime afterwards, in single-processor mode, with all microthreads that are left, runnable or
 * blocked, and all timers. Without executors it does nothing. Logged, with nothing changed: MC_E_CONTEXT (on a microthread,
 * inside tx), MC_E_SHUTDOWN (the process exits from a microthread's stack). In a forked child: as csp_init_runtime, but
 * the child goes on in single-processor mode.
 * Blocks: thread. Threads: any but executors. Calls back: no. */
MC_API void csp_shutdown_runtime(void) MC_NOEXCEPT;

/* Gives up the turn. From a thread that does not own the runtime, yields the processor; inside tx, does nothing.
 * Blocks: fiber. Threads: any. Calls back: no. */
MC_API void csp_yield(void) MC_NOEXCEPT;

/* Describes the calling task for logs and reports: a printf format, cut to 31 bytes. NULL clears it. Without
 * memory for its first description it has none, and MC_E_NOMEM is logged.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void csp_descr(char const *fmt, ...) MC_NOEXCEPT
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* Returns p when it does not point into the calling microthread's stack; else logs MC_E_INVAL and returns NULL. A
 * pointer into a thread's own stack is recognised too. Blocks: never. Threads: any. Calls back: no. */
MC_API void *csp_off_stack(void *p) MC_NOEXCEPT;

/* Sleeps until the steady clock reaches deadline_ns nanoseconds; at once when it has. A deadline in the past yields.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API void csp_sleep_until(int64_t deadline_ns) MC_NOEXCEPT;

/* --- Channels ---------------------------------------------------------------------------------------------------- */

/* Endpoint handles. A writer is the address of the channel (16-byte aligned), a reader that address with bit 0 set. */
typedef struct csp_tag_writer {
    char can_wait;
} *csp_writer;
typedef struct csp_tag_reader {
    char can_wait;
} *csp_reader;
typedef struct csp_tag_waiter {
    char can_wait;
} *csp_waiter;

/* Makes an unbuffered channel; stores its two ends, each with one reference. tx(src, dst) moves one message: it runs
 * once a transfer when the receiver's message pointer is not NULL, on the stack of the party that arrived second, with
 * no lock held and both parties held still. It may use and release endpoints; a blocking call in it gets MC_E_CONTEXT.
 * A NULL tx makes a channel whose messages carry nothing. A C++ exception that leaves tx is logged; the message counts
 * as transferred on both sides. Returns 1, or 0 on failure (NULL w or r, no memory, after fork), which is logged.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int csp_chan(csp_writer *w, csp_reader *r, void (*tx)(void *src, void *dst)) MC_NOEXCEPT;

/* Adds a reference; returns its argument. NULL in, NULL out. A misaligned or released handle: logged, and NULL.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API csp_writer csp_writer_addref(csp_writer w) MC_NOEXCEPT;
MC_API csp_reader csp_reader_addref(csp_reader r) MC_NOEXCEPT;

/* Releases a reference. With the last one the end is dead: everybody who waits on the other end is woken. NULL does
 * nothing. A misaligned or released handle: logged. Also allowed in a thread's or the process's last destructors.
 * Blocks: never. Threads: any. Calls back: the drop function of an mc_chan whose elements die, on the caller's stack.
 */
MC_API void csp_writer_release(csp_writer w) MC_NOEXCEPT;
MC_API void csp_reader_release(csp_reader r) MC_NOEXCEPT;

/* Closes the writing end for all who hold it, as if every reference were released; references stay with their holders.
 * Receivers get what is buffered, then the channel is dead to them; senders find it dead. Returns 1; -1 when it was
 * closed already; MC_E_INVAL for a NULL or misaligned handle; MC_E_STALE; MC_E_FORKED.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int csp_writer_close(csp_writer w) MC_NOEXCEPT;

/* Describes a channel for logs and reports: ch is either end; 31 bytes of the text are copied; NULL clears it.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void csp_chdescr(void *ch, char const *text) MC_NOEXCEPT;

/* A new reference to a reader whose writer is dead for good, the same channel for everybody: csp_wait_dead(csp_skip()) is
 * an arm that decides at once, which makes an alt one that does not wait. It makes nobody the owner of the runtime, and its
 * channel is not counted (csp__internal__channel_count). NULL without memory, or after fork (logged).
 * Blocks: never. Threads: any. Calls back: no. */
MC_API csp_reader csp_skip(void) MC_NOEXCEPT;

/* From now on, csp__internal__channel_count leaves out the channel of which ch is either end: for channels that live as long
 * as the program. NULL, a misaligned or a released handle does nothing, the latter two logged.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void csp_chuncount(void *ch) MC_NOEXCEPT;

/* Modes of a waiter. A waiter is the handle OR (mode << 1) OR 8. */
enum { csp_dead = 2, csp_ready = 3 };
#define csp_wait(h) ((csp_waiter)((uintptr_t)(h) | ((uintptr_t)csp_ready << 1) | 8u))
#define csp_wait_dead(h) ((csp_waiter)((uintptr_t)(h) | ((uintptr_t)csp_dead << 1) | 8u))

typedef struct csp_tag_chanop {
    csp_waiter waiter;
    void *message;
} csp_chanop;

/* Waits until one of count arms can go, and does it.
 *   i + 1     arm i went: its message was sent or received, or (dead mode) never: that is the negative form.
 *   -(i + 1)  the channel of arm i is dead (its other end), before or while waiting; in dead mode this is what the arm
 *             waits for. Messages are untouched.
 *   0         nowait != 0 and nothing could go at once; or all arms are disabled; or count is 0.
 *   MC_E_*    INVAL: count below 0 or over 65,535, NULL ops with a count, a waiter with bit 3 clear or mode 0 or 1 (an
 * arm
 *             whose waiter has no address, such as csp_wait(NULL), is disabled, not bad). STALE: a released endpoint.
 *             CONTEXT: it would have to wait, inside tx or on a step's stack. DEADLOCK: the owner's own stack waits and
 *             nothing is left that could wake it. NOMEM: more than 16 arms and no memory. CANCELED. FORKED.
 * Arms are looked at by index (prialt) or from a random one, cyclically (alt), and the first that decides wins; of
 * duplicate arms the lowest index is reported. Dead-mode arms match no peer. Both ends of one channel in one alt never
 * match each other. At most 16 arms never allocate, unless one discards elements of over 64 bytes
 * that their channel must drop. With nowait nothing switches.
 * A receiver whose message is NULL takes a message without tx. A sender whose message is NULL gives tx a NULL src.
 * Blocks: fiber | thread (nowait: never). Threads: any. Calls back: tx, on the caller's stack or on the other party's.
 */
MC_API int csp_alt(csp_chanop const *ops, int count, int nowait) MC_NOEXCEPT;
MC_API int csp_prialt(csp_chanop const *ops, int count, int nowait) MC_NOEXCEPT;

/* The same with a deadline (steady clock, nanoseconds): MC_E_TIMEDOUT once it has passed and nothing can go. MC_NOW is
 * nowait that says MC_E_TIMEDOUT instead of 0; MC_FOREVER is no deadline. */
MC_API int csp_alt_until(csp_chanop const *ops, int count, int64_t deadline_ns) MC_NOEXCEPT;
MC_API int csp_prialt_until(csp_chanop const *ops, int count, int64_t deadline_ns) MC_NOEXCEPT;

/* One arm: 1 done, -1 the channel is dead, 0 (try) nothing could go at once, MC_E_TIMEDOUT (until), other codes as
 * csp_alt. A NULL or misaligned handle is MC_E_INVAL.
 * Blocks: fiber | thread (try: never). Threads: any. Calls back: as csp_alt. */
MC_API int csp_send(csp_writer w, void *message) MC_NOEXCEPT;
MC_API int csp_recv(csp_reader r, void *message) MC_NOEXCEPT;
MC_API int csp_try_send(csp_writer w, void *message) MC_NOEXCEPT;
MC_API int csp_try_recv(csp_reader r, void *message) MC_NOEXCEPT;
MC_API int csp_send_until(csp_writer w, void *message, int64_t deadline_ns) MC_NOEXCEPT;
MC_API int csp_recv_until(csp_reader r, void *message, int64_t deadline_ns) MC_NOEXCEPT;

/* A reader that delivers one int64_t, the steady time at which it fired, ns nanoseconds from now, and is dead after it.
 * Below 0 counts as 0; MC_FOREVER never fires. The caller owns the reference; releasing it cancels the timer. NULL on
 * failure (logged).
 * Blocks: never. Threads: any. Calls back: no. */
MC_API csp_reader csp_after(int64_t ns) MC_NOEXCEPT;

/* A reader that delivers an int64_t, the steady time, every ns nanoseconds (at least 1). It holds one time: a reader
 * that is late gets the oldest it has not taken, and the ticks between are dropped; the beat does not drift. Else as
 * csp_after.
 */
MC_API csp_reader csp_tick(int64_t ns) MC_NOEXCEPT;

/* Channels whose end `side` (0 writer, 1 reader) is alive, for leak tests; channels that the library keeps for itself
 * and those of csp_chuncount do not count; timers (csp_after, csp_tick) count on the reader's side only. -1 for another side.
 * Without MC_NOEXCEPT, because programs declare it themselves, as `int csp__internal__channel_count(int);`.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int csp__internal__channel_count(int side);

/* --- Channels of elements ---------------------------------------------------------------------------------------- */

/* Drops one element that was accepted and will never be received; runs with no lock held, on the stack of the call that
 * discards it. */
typedef void (*mc_chan_drop_fn)(void *user, void *elem, uint64_t elem_size);

#define MC_CHAN_ELEM_MAX UINT32_C(65536)
#define MC_CHAN_CAPACITY_MAX UINT32_C(16777216)

/* Makes a channel of elements of elem_size bytes (0 to MC_CHAN_ELEM_MAX), copied by memcpy, that holds up to capacity
 * elements (0 is rendezvous; at most MC_CHAN_CAPACITY_MAX). drop may be NULL. rt: 0, see mc/runtime.h. A call that
 * sends copies the element on success and leaves it with the caller on failure.
 * MC_E_INVAL: NULL out, a size out of range. MC_E_NOMEM. MC_E_STALE: no such runtime. MC_E_FORKED.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_chan_create(mc_runtime_t rt, uint32_t elem_size, uint32_t capacity, mc_chan_drop_fn drop, void *user,
                              mc_chan_t *out) MC_NOEXCEPT;

/* Sends or receives one element. elem may be NULL when the element size is 0; on receive NULL discards the element
 * (drop is called). MC_E_CLOSED: closed; on receive only once nothing is buffered. MC_E_AGAIN (_try): it would have to
 * wait. MC_E_TIMEDOUT (_until). MC_E_STALE, also when the channel is destroyed during the call. MC_E_INVAL: NULL elem
 * where one is needed. MC_E_CONTEXT, MC_E_CANCELED, MC_E_DEADLOCK, MC_E_FORKED.
 * Blocks: fiber | thread (_try: never). Threads: any. Calls back: drop, on the caller's stack. */
MC_API int32_t mc_send(mc_chan_t ch, const void *elem) MC_NOEXCEPT;
MC_API int32_t mc_recv(mc_chan_t ch, void *elem) MC_NOEXCEPT;
MC_API int32_t mc_send_try(mc_chan_t ch, const void *elem) MC_NOEXCEPT;
MC_API int32_t mc_recv_try(mc_chan_t ch, void *elem) MC_NOEXCEPT;
MC_API int32_t mc_send_until(mc_chan_t ch, const void *elem, int64_t deadline_ns) MC_NOEXCEPT;
MC_API int32_t mc_recv_until(mc_chan_t ch, void *elem, int64_t deadline_ns) MC_NOEXCEPT;

/* Sends count elements that lie one after another, waiting as needed; stores in *sent how many went: count, or fewer
 * when the channel closed (or the wait ended otherwise) on the way; the rest is still the caller's and the next call
 * says why.
 * An error is returned only when none went. MC_E_INVAL: NULL sent, NULL elems where needed. Else as mc_send.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_send_n(mc_chan_t ch, const void *elems, uint32_t count, uint32_t *sent) MC_NOEXCEPT;

/* Receives at least one and at most max elements: waits for the first, then takes what is there without waiting; stores
 * their number in *received on MC_OK. MC_E_INVAL: max 0, NULL received, NULL elems where needed.
 * Blocks: fiber | thread. Threads: any. Calls back: no. */
MC_API int32_t mc_recv_n(mc_chan_t ch, void *elems, uint32_t max, uint32_t *received) MC_NOEXCEPT;

/* Ends sending: waiting and later senders get MC_E_CLOSED; receivers get what is buffered, then MC_E_CLOSED.
 * MC_E_CLOSED: it was closed already. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_chan_close(mc_chan_t ch) MC_NOEXCEPT;

/* Ends the channel: the handle is stale from now on, waiters get MC_E_STALE (through csp endpoints: dead), what is
 * buffered is dropped. The memory goes when the last csp endpoint is released. MC_E_STALE.
 * Blocks: never. Threads: any. Calls back: drop, on the caller's stack. */
MC_API int32_t mc_chan_destroy(mc_chan_t ch) MC_NOEXCEPT;

/* A csp endpoint of the channel, a new reference that the caller releases, so that one alt takes both kinds of channel.
 * An arm's message points to an element; NULL sends zeros, and on receive discards the element. MC_E_INVAL: NULL out.
 * MC_E_CLOSED: that end is closed. MC_E_STALE. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_chan_writer(mc_chan_t ch, csp_writer *out) MC_NOEXCEPT;
MC_API int32_t mc_chan_reader(mc_chan_t ch, csp_reader *out) MC_NOEXCEPT;

MC_EXTERN_C_END

#endif /* MC_CSP_H */
