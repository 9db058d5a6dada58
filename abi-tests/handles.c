/* A million handles that were made up, that are nearly right or that are stale get MC_E_STALE from every call, never a
 * crash, and leave what is alive alone. csp endpoints are pointers: of them only what can be seen to be wrong is tried.
 *
 * ABI_HANDLES sets another number than a million (50,000 under Valgrind), ABI_SEED another seed. */
#define _DEFAULT_SOURCE
#include <mc/bridge.h>
#include <mc/mc.h>
#include <string.h>

#include "check.h"

enum { STALE = 4096 };

static uint64_t state; /* splitmix64: the same handles again for the same seed, unlike mc_random */
static uint64_t next_random(void) {
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static unsigned logged;
static void count_log(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code;
    CHECK(text != NULL && strchr(text, '\n') == NULL);
    logged++;
}

static int32_t nothing(void *user) {
    (void)user;
    return 0;
}
static void nothing_at_all(void *user) { (void)user; }

/* --- Calls with a handle that is none --------------------------------------------------------------------------------- */

static void refuse_task(mc_task_t task, int64_t deadline) {
    int32_t result = 123;
    CHECK_EQ(mc_join(task, deadline, &result), MC_E_STALE);
    CHECK_EQ(result, 123);
    CHECK_EQ(mc_detach(task), MC_E_STALE);
}

static void refuse_channel(mc_chan_t channel) {
    uint64_t element = 5;
    uint32_t done = 77;
    csp_writer writer = NULL;
    csp_reader reader = NULL;
    CHECK_EQ(mc_send_try(channel, &element), MC_E_STALE);
    CHECK_EQ(mc_recv_try(channel, &element), MC_E_STALE);
    CHECK_EQ(mc_send(channel, &element), MC_E_STALE);
    CHECK_EQ(mc_recv(channel, &element), MC_E_STALE);
    CHECK_EQ(mc_send_until(channel, &element, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_recv_until(channel, &element, MC_NOW), MC_E_STALE);
    CHECK_EQ(mc_send_n(channel, &element, 1, &done), MC_E_STALE);
    CHECK_EQ(mc_recv_n(channel, &element, 1, &done), MC_E_STALE);
    CHECK_EQ(mc_chan_writer(channel, &writer), MC_E_STALE);
    CHECK_EQ(mc_chan_reader(channel, &reader), MC_E_STALE);
    CHECK_EQ(mc_chan_close(channel), MC_E_STALE);
    CHECK_EQ(mc_chan_destroy(channel), MC_E_STALE);
    CHECK(element == 5 && done == 77 && writer == NULL && reader == NULL);
}

static void refuse_runtime(mc_runtime_t runtime) {
    uint64_t out = 99;
    CHECK_EQ(mc_spawn(runtime, nothing, NULL, NULL, &out), MC_E_STALE);
    CHECK_EQ(mc_chan_create(runtime, 8, 1, NULL, NULL, &out), MC_E_STALE);
    CHECK_EQ(out, 99);
}

static void refuse_runtime_calls(mc_runtime_t runtime) {
    mc_runtime_counters stats = MC_RUNTIME_COUNTERS_INIT;
    mc_executor_counters one = MC_EXECUTOR_COUNTERS_INIT;
    mc_group_t group = 99;
    CHECK_EQ(mc_runtime_start(runtime), MC_E_STALE);
    CHECK_EQ(mc_runtime_shutdown(runtime, 0), MC_E_STALE);
    CHECK_EQ(mc_runtime_destroy(runtime), MC_E_STALE);
    CHECK_EQ(mc_runtime_add_executor(runtime), MC_E_STALE);
    CHECK_EQ(mc_runtime_wait_quiescent(runtime, MC_NOW), MC_E_STALE);
    CHECK_EQ(mc_runtime_hold(runtime), MC_E_STALE);
    CHECK_EQ(mc_runtime_release(runtime), MC_E_STALE);
    CHECK_EQ(mc_runtime_stats(runtime, &stats), MC_E_STALE);
    CHECK_EQ(mc_runtime_executor_stats(runtime, 0, &one), MC_E_STALE);
    CHECK_EQ(mc_group_create(runtime, MC_FOREVER, &group), MC_E_STALE);
    CHECK(group == 99 && stats.spawned == 0 && one.turns == 0);
}

static void refuse_scope_or_group(uint64_t handle) {
    int32_t out = 99;
    CHECK_EQ(mc_scope_enter(handle), MC_E_STALE);
    CHECK_EQ(mc_scope_cancel(handle, 0), MC_E_STALE);
    CHECK_EQ(mc_scope_cause(handle, &out), MC_E_STALE);
    CHECK_EQ(mc_scope_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_group_spawn(handle, nothing, NULL, NULL), MC_E_STALE);
    CHECK_EQ(mc_group_cancel(handle, 0), MC_E_STALE);
    CHECK_EQ(mc_group_wait(handle, MC_FOREVER, &out), MC_E_STALE);
    CHECK_EQ(mc_group_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_local_set(handle, &out), MC_E_STALE);
    CHECK(mc_local_get(handle) == NULL);
    CHECK_EQ(mc_local_destroy(handle), MC_E_STALE);
    CHECK_EQ(out, 99);
}

static void refuse_primitive(uint64_t handle) {
    CHECK_EQ(mc_mutex_lock(handle), MC_E_STALE);
    CHECK_EQ(mc_mutex_try_lock(handle), MC_E_STALE);
    CHECK_EQ(mc_mutex_unlock(handle), MC_E_STALE);
    CHECK_EQ(mc_mutex_consistent(handle), MC_E_STALE);
    CHECK_EQ(mc_mutex_lock_all(&handle, 1, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_mutex_unlock_all(&handle, 1), MC_E_STALE);
    CHECK_EQ(mc_mutex_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_semaphore_acquire(handle, 1, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_semaphore_release(handle, 1), MC_E_STALE);
    CHECK_EQ(mc_semaphore_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_waitgroup_add(handle, 1), MC_E_STALE);
    CHECK_EQ(mc_waitgroup_wait(handle, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_waitgroup_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_once_call(handle, nothing, NULL, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_once_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_cond_wait(handle, handle, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_cond_signal(handle), MC_E_STALE);
    CHECK_EQ(mc_cond_broadcast(handle), MC_E_STALE);
    CHECK_EQ(mc_cond_destroy(handle), MC_E_STALE);
    CHECK_EQ(mc_rwlock_read_lock(handle, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_rwlock_write_lock(handle, MC_FOREVER), MC_E_STALE);
    CHECK_EQ(mc_rwlock_read_unlock(handle), MC_E_STALE);
    CHECK_EQ(mc_rwlock_write_unlock(handle), MC_E_STALE);
    CHECK_EQ(mc_rwlock_destroy(handle), MC_E_STALE);
}

/* --- One alive of each kind, and one that has been ---------------------------------------------------------------------- */

enum { KINDS = 10 };
static uint64_t living[KINDS], departed[KINDS];

static void make_each(uint64_t made[KINDS]) {
    mc_runtime_t kept = 0;
    CHECK_EQ(mc_runtime_create(NULL, &kept), MC_OK);
    made[0] = kept;
    CHECK_EQ(mc_scope_create(MC_FOREVER, &made[1]), MC_OK);
    CHECK_EQ(mc_group_create(0, MC_FOREVER, &made[2]), MC_OK);
    CHECK_EQ(mc_local_create(NULL, &made[3]), MC_OK);
    CHECK_EQ(mc_mutex_create(0, &made[4]), MC_OK);
    CHECK_EQ(mc_semaphore_create(1, &made[5]), MC_OK);
    CHECK_EQ(mc_waitgroup_create(0, &made[6]), MC_OK);
    CHECK_EQ(mc_once_create(&made[7]), MC_OK);
    CHECK_EQ(mc_cond_create(&made[8]), MC_OK);
    CHECK_EQ(mc_rwlock_create(&made[9]), MC_OK);
}

static void end_each(const uint64_t made[KINDS]) {
    CHECK_EQ(mc_runtime_destroy(made[0]), MC_OK);
    CHECK_EQ(mc_scope_destroy(made[1]), MC_OK);
    CHECK_EQ(mc_group_destroy(made[2]), MC_OK);
    CHECK_EQ(mc_local_destroy(made[3]), MC_OK);
    CHECK_EQ(mc_mutex_destroy(made[4]), MC_OK);
    CHECK_EQ(mc_semaphore_destroy(made[5]), MC_OK);
    CHECK_EQ(mc_waitgroup_destroy(made[6]), MC_OK);
    CHECK_EQ(mc_once_destroy(made[7]), MC_OK);
    CHECK_EQ(mc_cond_destroy(made[8]), MC_OK);
    CHECK_EQ(mc_rwlock_destroy(made[9]), MC_OK);
}

static int is_alive(uint64_t handle) {
    for (int i = 0; i < KINDS; i++)
        if (handle == living[i])
            return 1;
    return handle == 0;
}

/* A live one's neighbour, one of another kind, of another generation, one that is gone, or anything. */
static uint64_t invent_any(void) {
    uint64_t r = next_random(), near = living[r >> 32 & 7], handle;
    switch (r % 5) {
    case 0:
        handle = next_random();
        break;
    case 1:
        handle = near ^ UINT64_C(1) << (r >> 8 & 63);
        break;
    case 2:
        handle = (near & UINT32_MAX) | next_random() << 32;
        break;
    case 3:
        handle = (near & ~(uint64_t)UINT32_MAX) | (next_random() & UINT32_MAX);
        break;
    default:
        handle = departed[r >> 8 & 7];
    }
    return is_alive(handle) ? UINT64_MAX : handle;
}

static void try_each(unsigned long many) {
    make_each(departed);
    end_each(departed);
    make_each(living);
    for (unsigned long i = 0; i < many; i++) {
        refuse_runtime_calls(invent_any());
        refuse_scope_or_group(invent_any());
        refuse_primitive(invent_any());
    }
    for (int i = 1; i < KINDS; i++) /* of the wrong kind */
        refuse_runtime_calls(living[i]);
    for (int i = 4; i < KINDS; i++)
        refuse_scope_or_group(living[i]);
    for (int i = 0; i < 4; i++)
        refuse_primitive(living[i]);
    end_each(living);
}

/* --- A million of them ------------------------------------------------------------------------------------------------ */

struct live {
    mc_task_t task, gone_tasks[STALE];
    mc_chan_t channel, gone_channels[STALE];
};

/* One task and one channel are alive; thousands have been. */
static void populate(struct live *live) {
    for (int i = 0; i < STALE; i++) {
        CHECK_EQ(mc_spawn(0, nothing, NULL, NULL, &live->gone_tasks[i]), MC_OK);
        CHECK_EQ(mc_join(live->gone_tasks[i], MC_FOREVER, NULL), MC_OK);
        CHECK_EQ(mc_chan_create(0, 8, (uint32_t)i % 3, NULL, NULL, &live->gone_channels[i]), MC_OK);
        CHECK_EQ(mc_chan_destroy(live->gone_channels[i]), MC_OK);
    }
    CHECK_EQ(mc_spawn(0, nothing, NULL, NULL, &live->task), MC_OK);
    CHECK_EQ(mc_chan_create(0, 8, 1, NULL, NULL, &live->channel), MC_OK);
}

/* A handle that is not live: random, small, of few bits, one or two bits off, of another generation, or stale. */
static uint64_t invent(uint64_t live, const uint64_t *gone) {
    uint64_t r = next_random(), handle;
    switch (r % 8) {
    case 0:
        handle = next_random();
        break;
    case 1:
        handle = next_random() & 0xffff;
        break;
    case 2:
        handle = next_random() & next_random() & next_random();
        break;
    case 3:
        handle = live ^ UINT64_C(1) << (r >> 8 & 63);
        break;
    case 4:
        handle = live ^ UINT64_C(1) << (r >> 8 & 63) ^ UINT64_C(1) << (r >> 16 & 63);
        break;
    case 5:
        handle = (live & UINT32_MAX) | next_random() << 32;
        break;
    case 6:
        handle = (live & ~(uint64_t)UINT32_MAX) | (next_random() & UINT32_MAX);
        break;
    default:
        handle = gone[r >> 8 & (STALE - 1)];
    }
    return handle == live ? 0 : handle;
}

static void try_many(struct live *live, unsigned long many) {
    for (unsigned long i = 0; i < many; i++) {
        refuse_task(invent(live->task, live->gone_tasks), i % 2 ? MC_NOW : MC_FOREVER);
        refuse_channel(invent(live->channel, live->gone_channels));
        uint64_t runtime = next_random() >> next_random() % 64;
        if (runtime != 0)
            refuse_runtime(runtime);
    }
    uint64_t element = 41;
    CHECK_EQ(mc_send(live->channel, &element), MC_OK);
    element = 0;
    CHECK_EQ(mc_recv(live->channel, &element), MC_OK);
    CHECK_EQ(element, 41);
    CHECK_EQ(mc_join(live->task, MC_FOREVER, NULL), MC_OK);
    refuse_task(live->task, MC_FOREVER);
    CHECK_EQ(mc_chan_destroy(live->channel), MC_OK);
    refuse_channel(live->channel);
}

/* --- csp endpoints ---------------------------------------------------------------------------------------------------- */

static void refuse_writer(csp_writer w) {
    CHECK_EQ(csp_send(w, NULL), MC_E_INVAL);
    CHECK_EQ(csp_try_send(w, NULL), MC_E_INVAL);
    CHECK_EQ(csp_send_until(w, NULL, MC_FOREVER), MC_E_INVAL);
    CHECK_EQ(csp_writer_close(w), MC_E_INVAL);
    CHECK(csp_writer_addref(w) == NULL);
    csp_writer_release(w);
}

static void refuse_reader(csp_reader r) {
    CHECK_EQ(csp_recv(r, NULL), MC_E_INVAL);
    CHECK_EQ(csp_try_recv(r, NULL), MC_E_INVAL);
    CHECK_EQ(csp_recv_until(r, NULL, MC_FOREVER), MC_E_INVAL);
    CHECK(csp_reader_addref(r) == NULL);
    csp_reader_release(r);
}

static void refuse_arms(csp_writer w, csp_reader r) {
    csp_chanop op = {csp_wait(w), NULL};
    for (int nowait = 0; nowait < 2; nowait++) {
        CHECK_EQ(csp_alt(&op, -1, nowait), MC_E_INVAL);
        CHECK_EQ(csp_alt(&op, 65536, nowait), MC_E_INVAL);
        CHECK_EQ(csp_alt(NULL, 1, nowait), MC_E_INVAL);
        CHECK_EQ(csp_alt(NULL, 0, nowait), 0);
        CHECK_EQ(csp_prialt(&op, 0, nowait), 0);
        for (unsigned low = 0; low < 16; low++) { /* bit 0: side, bits 1 and 2: mode, bit 3: a waiter */
            if ((low & 8) != 0 && (low >> 1 & 3) >= csp_dead)
                continue;
            op.waiter = (csp_waiter)((uintptr_t)w | low);
            CHECK_EQ(csp_alt(&op, 1, nowait), MC_E_INVAL);
            CHECK_EQ(csp_prialt(&op, 1, nowait), MC_E_INVAL);
        }
        csp_chanop off[2] = {{csp_wait((csp_writer)NULL), NULL}, {csp_wait_dead((csp_reader)1), NULL}};
        CHECK_EQ(csp_alt(off, 2, nowait), 0);
    }
    op.waiter = csp_wait(r);
    CHECK_EQ(csp_alt(&op, 1, 1), 0);
    CHECK_EQ(csp_alt_until(&op, 1, MC_NOW), MC_E_TIMEDOUT);
}

static void endpoints(void) {
    csp_writer w;
    csp_reader r;
    CHECK_EQ(csp_chan(&w, &r, NULL), 1);
    CHECK((uintptr_t)w % 16 == 0 && (uintptr_t)r == (uintptr_t)w + 1);

    unsigned before = logged;
    CHECK(csp_writer_addref(NULL) == NULL && csp_reader_addref(NULL) == NULL);
    csp_writer_release(NULL);
    csp_reader_release(NULL);
    CHECK_EQ(logged, before);
    CHECK_EQ(csp_send(NULL, NULL), MC_E_INVAL);
    CHECK_EQ(csp_recv(NULL, NULL), MC_E_INVAL);
    CHECK_EQ(csp_writer_close(NULL), MC_E_INVAL);
    CHECK_EQ(csp_chan(NULL, &r, NULL), 0);
    CHECK_EQ(csp_chan(&w, NULL, NULL), 0);
    CHECK_EQ(csp_spawn(NULL, NULL), 0);

    before = logged;
    for (uintptr_t off = 1; off < 16; off++)
        refuse_writer((csp_writer)((uintptr_t)w + off)); /* one off is the reader: the wrong end */
    for (uintptr_t off = 0; off < 16; off++)
        if (off != 1)
            refuse_reader((csp_reader)((uintptr_t)w + off));
    CHECK_EQ(logged - before, 2 * 30); /* addref and release log, having no code to return */
    refuse_arms(w, r);

    CHECK_EQ(csp_try_send(w, NULL), 0); /* all that left it alone */
    csp_writer_release(w);
    CHECK_EQ(csp_recv(r, NULL), -1);
    csp_reader_release(r);
}

/* --- Machines: tokens, and words of runtimes --------------------------------------------------------------------------- */

static void refuse_token(mc_txn_t txn) {
    uint64_t pending = 99;
    CHECK_EQ(mc_txn_send(txn, 1, 1, 0, 0), MC_E_STALE);
    CHECK_EQ(mc_txn_request(txn, 1, 1, 0, 0, 0, &pending), MC_E_STALE);
    CHECK_EQ(mc_txn_reply(txn, 1, 1, 0, 0), MC_E_STALE);
    CHECK_EQ(mc_txn_publish(txn, 1, 1, 0, 0), MC_E_STALE);
    CHECK_EQ(mc_txn_subscribe(txn, 1, 1), MC_E_STALE);
    CHECK_EQ(mc_txn_unsubscribe(txn, 1, 1), MC_E_STALE);
    CHECK_EQ(mc_txn_set_state(txn, 1), MC_E_STALE);
    CHECK_EQ(mc_txn_commit(txn), MC_E_STALE);
    CHECK_EQ(mc_txn_abort(txn, 9), MC_E_STALE);
    CHECK_EQ(pending, 99);
}

static void refuse_machines(uint64_t rt, int64_t deadline) {
    mc_machine_envelope_t reply;
    mc_machine_polled polled;
    uint32_t count = 99;
    CHECK_EQ(mc_machine_attach_u64(rt, 0), MC_E_STALE);
    CHECK_EQ(mc_machine_detach_u64(rt), MC_E_STALE);
    CHECK_EQ(mc_machine_run_until_idle_u64(rt, deadline), MC_E_STALE);
    CHECK_EQ(mc_machine_ask_u64(rt, 1, 1, 0, 0, deadline, &reply), MC_E_STALE);
    CHECK_EQ(mc_machine_send_until_u64(rt, 1, 1, 0, 0, deadline), MC_E_STALE);
    CHECK_EQ(mc_machine_poll_u64(rt, deadline, &polled), MC_E_STALE);
    CHECK_EQ(mc_machine_poll_one_u64(rt, 1, deadline, &polled), MC_E_STALE);
    CHECK_EQ(mc_machine_poll_batch_u64(rt, deadline, &polled, 1, &count), MC_E_STALE);
    CHECK_EQ(mc_machine_bind_poll_u64(rt, 1, 0), MC_E_STALE);
    CHECK_EQ(mc_machine_set_on_full_u64(rt, 0), MC_E_STALE);
    CHECK_EQ(mc_machine_set_on_late_reply_u64(rt, 0), MC_E_STALE);
    CHECK_EQ(mc_machine_set_request_timeout_u64(rt, 5), MC_E_STALE);
    CHECK_EQ(mc_machine_set_token_timeout_u64(rt, 5), MC_E_STALE);
    CHECK_EQ(count, 99);
}

static uint64_t poll_next(uint64_t rt, uint64_t machine) {
    mc_machine_polled polled;
    CHECK_EQ(__mc_machine_runtime_send_u64(rt, machine, 1, 0, 0), MC_MAILBOX_ENQUEUE_OK);
    CHECK_EQ(mc_machine_poll_u64(rt, MC_NOW, &polled), MC_OK);
    return polled.token;
}

static void try_machines(unsigned long many) {
    static uint64_t gone_tokens[STALE], gone_words[STALE];
    const uint64_t rt = __mc_machine_runtime_new(), machine = __mc_machine_runtime_spawn_u64(rt, 4);
    CHECK_EQ(mc_machine_bind_poll_u64(rt, machine, 0), MC_OK);
    CHECK_EQ(__mc_machine_runtime_start_u64(rt, machine), 1);
    CHECK_EQ(mc_machine_attach_u64(rt, 0), MC_OK);
    for (unsigned i = 0; i < STALE; i++) {
        gone_tokens[i] = poll_next(rt, machine);
        CHECK_EQ(mc_txn_commit(gone_tokens[i]), MC_OK);
        gone_words[i] = __mc_machine_runtime_new();
        __mc_machine_runtime_free(gone_words[i]);
    }
    const mc_txn_t token = poll_next(rt, machine);
    for (unsigned long i = 0; i < many; i++) {
        uint64_t word = invent(rt, gone_words);
        refuse_token(invent(token, gone_tokens));
        if (word != rt)
            refuse_machines(word, i % 2 ? MC_NOW : MC_FOREVER);
    }
    CHECK_EQ(mc_txn_set_state(token, 7), MC_OK); /* all that left it alone */
    CHECK_EQ(mc_txn_commit(token), MC_OK);
    CHECK_EQ(mc_machine_runtime_state((const mc_machine_runtime_t *)(uintptr_t)rt, (mc_machine_id_t)machine), 7);
    __mc_machine_runtime_free(rt);
    refuse_machines(rt, MC_FOREVER);
    refuse_token(token);
}

static unsigned long how_many(void) {
    const char *asked = getenv("ABI_HANDLES"), *preloaded = getenv("LD_PRELOAD");
    if (asked != NULL)
        return strtoul(asked, NULL, 0);
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL ? 50000 : 1000000;
}

int main(void) {
    static struct live live;
    const char *seed = getenv("ABI_SEED");
    state = seed != NULL ? strtoull(seed, NULL, 0) : 1;
    mc_set_log_hook(count_log, NULL);
    CHECK_EQ(mc_spawn(0, NULL, NULL, NULL, NULL), MC_E_INVAL);
    CHECK_EQ(csp_spawn(nothing_at_all, NULL), 1);
    csp_schedule();
    refuse_task(0, MC_FOREVER);
    refuse_channel(0);
    populate(&live);
    try_many(&live, how_many());
    try_each(how_many() / 10);
    try_machines(how_many() / 10);
    endpoints();
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
    CHECK_EQ(csp__internal__channel_count(2), -1);
    return 0;
}
