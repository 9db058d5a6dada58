/* Every allocation fails once: the first, the second, and so on, from the library's first call to its last. The call that
 * meets the failure says so and changes nothing, and everything works afterwards. The allocator also checks what it is
 * given: sizes, alignments, and that each block comes back once and as it went. */
#define _GNU_SOURCE
#include <mc/mc.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

/* --- The allocator ---------------------------------------------------------------------------------------------------- */

struct header { /* before each block */
    uint64_t size, align, magic;
    void *memory;
};
enum { MAGIC = 0x600D, FREED = 0xDEAD };

static struct {
    unsigned long calls, fail_at, live; /* fail_at 0: never */
    int failed;
} heap;

static void *allocate(void *user, uint64_t size, uint64_t align) {
    CHECK(user == &heap);
    CHECK(size >= 1 && align >= 1 && (align & (align - 1)) == 0);
    if (++heap.calls == heap.fail_at) {
        heap.failed = 1;
        return NULL;
    }
    void *memory;
    uint64_t lead = sizeof(struct header) + align - 1;
    CHECK((memory = malloc(lead + size)) != NULL);
    unsigned char *block = (unsigned char *)(((uintptr_t)memory + lead) & ~(uintptr_t)(align - 1));
    struct header header = {size, align, MAGIC, memory};
    memcpy(block - sizeof header, &header, sizeof header);
    memset(block, 0xA5, size); /* nobody may count on zeros */
    heap.live++;
    return block;
}

static void release(void *user, void *block, uint64_t size, uint64_t align) {
    struct header header;
    CHECK(user == &heap && block != NULL);
    memcpy(&header, (unsigned char *)block - sizeof header, sizeof header);
    CHECK_EQ(header.magic, MAGIC);
    CHECK_EQ(header.size, size);
    CHECK_EQ(header.align, align);
    heap.live--;
    free(header.memory);
}

static void be_quiet(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code, (void)text;
}

/* --- The work ---------------------------------------------------------------------------------------------------------
 * Each step returns 1, or 0 when it met the failure and said so in its own way. */

enum { MANY_ARMS = 40 };

static int failed_cleanly(int32_t code) {
    if (code == MC_E_NOMEM) {
        CHECK(heap.failed);
        return 1;
    }
    CHECK_EQ(code, MC_OK);
    return 0;
}

static int32_t five(void *user) {
    (void)user;
    return 5;
}
static void count_up(void *user) { ++*(int *)user; }
static void copy_int(void *source, void *target) { *(int *)target = *(int *)source; }

static int step_spawn(void) {
    mc_task_t task = 0;
    int32_t result = 0;
    if (failed_cleanly(mc_spawn(0, five, NULL, NULL, &task))) {
        CHECK_EQ(task, 0);
        return 0;
    }
    CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, 5);
    return 1;
}

static int step_csp_spawn(void) {
    int ran = 0;
    if (!csp_spawn(count_up, &ran)) {
        CHECK(heap.failed && ran == 0);
        return 0;
    }
    csp_schedule();
    CHECK_EQ(ran, 1);
    return 1;
}

static void send_three(void *writer) {
    int three = 3;
    csp_send(writer, &three);
    csp_writer_release(writer);
}

static int step_csp_chan(void) {
    csp_writer w = NULL;
    csp_reader r = NULL;
    int number = 0, sender;
    if (!csp_chan(&w, &r, copy_int)) {
        CHECK(heap.failed && w == NULL && r == NULL);
        return 0;
    }
    sender = csp_spawn(send_three, w);
    if (!sender)
        csp_writer_release(w);
    CHECK_EQ(csp_recv(r, &number), sender ? 1 : -1);
    CHECK_EQ(number, sender ? 3 : 0);
    CHECK_EQ(csp_recv(r, NULL), -1);
    csp_reader_release(r);
    return sender;
}

static int step_skip(void) {
    csp_reader r = csp_skip();
    if (r == NULL) {
        CHECK(heap.failed);
        return 0;
    }
    const int code = csp_recv(r, NULL);
    csp_reader_release(r);
    if (code == -1)
        return 1;
    CHECK(heap.failed && code == MC_E_NOMEM); /* of the runtime, which csp_skip does not need */
    return 0;
}

static int step_elements(void) {
    mc_chan_t channel = 0;
    uint64_t element[3] = {1, 2, 3};
    if (failed_cleanly(mc_chan_create(0, sizeof element, 1000, NULL, NULL, &channel))) {
        CHECK_EQ(channel, 0);
        return 0;
    }
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(mc_send_try(channel, element), MC_OK); /* what was promised is there: sending never allocates */
    CHECK_EQ(mc_send_try(channel, element), MC_E_AGAIN);
    CHECK_EQ(mc_chan_destroy(channel), MC_OK);
    return 1;
}

static int step_timer(void) {
    int64_t when = 0;
    csp_reader timer = csp_after(MC_MS);
    if (timer == NULL) {
        CHECK(heap.failed);
        return 0;
    }
    CHECK_EQ(csp_recv(timer, &when), 1);
    CHECK(when != 0);
    csp_reader_release(timer);
    return 1;
}

/* An alt that has more arms than fit in the frame, both when it only looks and when it waits. */
static int step_alt(void) {
    csp_writer w[MANY_ARMS];
    csp_reader r[MANY_ARMS];
    csp_chanop ops[MANY_ARMS];
    int number = 0, made = 0, ok = 1;
    while (made < MANY_ARMS && csp_chan(&w[made], &r[made], copy_int)) {
        ops[made] = (csp_chanop){csp_wait(r[made]), &number};
        made++;
    }
    ok = made == MANY_ARMS;
    if (ok) {
        int chosen = csp_alt(ops, MANY_ARMS, 1);
        CHECK(chosen == 0 || (chosen == MC_E_NOMEM && heap.failed));
        ok = chosen == 0;
    }
    if (ok && csp_spawn(send_three, csp_writer_addref(w[MANY_ARMS - 1]))) {
        csp_yield(); /* the sender waits by now */
        int chosen = csp_prialt(ops, MANY_ARMS, 0);
        if (chosen == MC_E_NOMEM) {
            CHECK(heap.failed && number == 0);
            CHECK_EQ(csp_recv(r[MANY_ARMS - 1], &number), 1); /* the message was not lost */
            ok = 0;
        } else {
            CHECK_EQ(chosen, MANY_ARMS);
        }
        CHECK_EQ(number, 3);
    } else if (ok) {
        csp_writer_release(w[MANY_ARMS - 1]);
        ok = 0;
    }
    csp_schedule(); /* the sender, done, gives up its reference */
    for (int i = 0; i < made; i++) {
        csp_writer_release(w[i]);
        csp_reader_release(r[i]);
    }
    return ok;
}

/* Another thread than the owner. */
static void *send_from_thread(void *channel) {
    uint64_t eight = 8;
    return (void *)(intptr_t)mc_send(*(mc_chan_t *)channel, &eight);
}

static int step_thread(void) {
    mc_chan_t channel = 0;
    uint64_t element = 0;
    pthread_t thread;
    void *sent;
    if (failed_cleanly(mc_chan_create(0, 8, 1, NULL, NULL, &channel)))
        return 0;
    CHECK_EQ(pthread_create(&thread, NULL, send_from_thread, &channel), 0);
    CHECK_EQ(pthread_join(thread, &sent), 0);
    int ok = !failed_cleanly((int32_t)(intptr_t)sent);
    CHECK_EQ(mc_recv_try(channel, &element), ok ? MC_OK : MC_E_AGAIN);
    CHECK_EQ(mc_chan_destroy(channel), MC_OK);
    return ok;
}

/* Scopes, values, a group with a child. */
static int step_scopes(void) {
    mc_scope_t scope = 0;
    mc_group_t group = 0;
    mc_local_t key = 0;
    int32_t error = 1;
    int ok = !failed_cleanly(mc_scope_create(MC_FOREVER, &scope));
    if (ok) {
        ok = !failed_cleanly(mc_scope_enter(scope));
        CHECK_EQ(mc_scope_self(), ok ? scope : 0);
        if (ok && !failed_cleanly(mc_group_create(0, MC_FOREVER, &group))) {
            ok = !failed_cleanly(mc_group_spawn(group, five, NULL, NULL));
            CHECK_EQ(mc_group_wait(group, MC_FOREVER, &error), MC_OK);
            CHECK_EQ(error, 0);
            CHECK_EQ(mc_group_destroy(group), MC_OK);
        } else {
            CHECK_EQ(group, 0);
            ok = 0;
        }
        if (mc_scope_self() != 0)
            CHECK_EQ(mc_scope_leave(), MC_OK);
        CHECK_EQ(mc_scope_destroy(scope), MC_OK);
    }
    if (!ok || failed_cleanly(mc_local_create(NULL, &key)))
        return 0;
    ok = !failed_cleanly(mc_local_set(key, &scope));
    CHECK(mc_local_get(key) == (ok ? (void *)&scope : NULL));
    CHECK_EQ(mc_local_destroy(key), MC_OK);
    return ok;
}

static int step_primitives(void) {
    uint64_t made[6] = {0};
    int ok = !failed_cleanly(mc_mutex_create(0, &made[0])) && !failed_cleanly(mc_semaphore_create(0, &made[1])) &&
             !failed_cleanly(mc_waitgroup_create(0, &made[2])) && !failed_cleanly(mc_once_create(&made[3])) &&
             !failed_cleanly(mc_cond_create(&made[4])) && !failed_cleanly(mc_rwlock_create(&made[5]));
    if (ok) { /* using them allocates nothing, but for locking many at once */
        unsigned long before = heap.calls;
        CHECK_EQ(mc_mutex_lock_all(made, 1, MC_FOREVER), MC_OK);
        CHECK_EQ(mc_cond_wait(made[4], made[0], MC_NOW), MC_E_TIMEDOUT);
        CHECK_EQ(mc_mutex_unlock(made[0]), MC_OK);
        CHECK_EQ(mc_semaphore_acquire(made[1], 1, MC_NOW), MC_E_TIMEDOUT);
        CHECK_EQ(heap.calls, before);
    }
    CHECK_EQ(mc_mutex_destroy(made[0]), made[0] == 0 ? MC_E_STALE : MC_OK);
    CHECK_EQ(mc_semaphore_destroy(made[1]), made[1] == 0 ? MC_E_STALE : MC_OK);
    CHECK_EQ(mc_waitgroup_destroy(made[2]), made[2] == 0 ? MC_E_STALE : MC_OK);
    CHECK_EQ(mc_once_destroy(made[3]), made[3] == 0 ? MC_E_STALE : MC_OK);
    CHECK_EQ(mc_cond_destroy(made[4]), made[4] == 0 ? MC_E_STALE : MC_OK);
    CHECK_EQ(mc_rwlock_destroy(made[5]), made[5] == 0 ? MC_E_STALE : MC_OK);
    return ok;
}

static int32_t call_five(void *result) { return mc_blocking_call(five, NULL, (int32_t *)result); }

/* A runtime with an executor, and a blocking call in it. */
static int step_runtime(void) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_t runtime = 0;
    mc_task_t task = 0;
    int32_t result = 0, five_of_it = 0;
    options.executors = 1;
    options.wheel_segments = 4;
    if (failed_cleanly(mc_runtime_create(&options, &runtime))) {
        CHECK_EQ(runtime, 0);
        return 0;
    }
    int ok = !failed_cleanly(mc_runtime_start(runtime));
    if (ok)
        ok = !failed_cleanly(mc_spawn(runtime, call_five, &five_of_it, NULL, &task));
    if (ok) {
        CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
        ok = !failed_cleanly(result);
        CHECK_EQ(five_of_it, ok ? 5 : 0);
    }
    CHECK_EQ(mc_runtime_shutdown(runtime, MC_FOREVER), MC_OK);
    CHECK_EQ(mc_runtime_destroy(runtime), MC_OK);
    return ok;
}

enum { STEPS = 11 };

static int work(void) {
    int steps = step_skip() + step_spawn() + step_csp_spawn() + step_csp_chan() + step_elements() + step_timer() +
                step_alt() + step_thread() + step_scopes() + step_primitives() + step_runtime();
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
    return steps;
}

/* --- The tests -------------------------------------------------------------------------------------------------------- */

static void install(void) {
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = allocate;
    allocator.free = release;
    allocator.user = &heap;
    mc_set_log_hook(be_quiet, NULL);
    CHECK_EQ(mc_set_allocator(&allocator), MC_OK);
}

/* The n-th allocation of a process fails, at whatever that is: exit status 0, or 2 when there are not so many. */
static void fail_from_cold(void *n) {
    install();
    heap.fail_at = *(unsigned long *)n;
    int steps = work();
    if (!heap.failed) {
        CHECK_EQ(steps, STEPS);
        exit(2);
    }
    CHECK(steps < STEPS || heap.failed); /* a failure may also be survived */
    heap.fail_at = 0;
    CHECK_EQ(work(), STEPS);
    unsigned long live = heap.live;
    for (int i = 0; i < 20; i++)
        CHECK_EQ(work(), STEPS);
    CHECK(heap.live <= live + 8); /* caches may settle, leaks would go on */
}

/* The same once everything has been used before. */
static void fail_when_warm(void *unused) {
    (void)unused;
    install();
    CHECK_EQ(work(), STEPS);
    for (unsigned long n = 1;; n++) {
        heap.failed = 0;
        heap.fail_at = heap.calls + n;
        work();
        if (!heap.failed)
            break;
        heap.fail_at = 0;
        CHECK_EQ(work(), STEPS);
    }
}

/* Set too late. */
static void set_late(void *unused) {
    (void)unused;
    CHECK(step_spawn());
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = allocate;
    allocator.free = release;
    allocator.user = &heap;
    CHECK_EQ(mc_set_allocator(&allocator), MC_E_BUSY);
    CHECK(step_spawn());
    CHECK_EQ(heap.calls, 0);
}

int main(void) {
    unsigned long n = 1;
    int status = 0;
    for (; status == 0; n++) {
        status = in_child(fail_from_cold, &n);
        if (status == 1)
            fprintf(stderr, "when allocation %lu fails\n", n);
    }
    CHECK_EQ(status, 2);
    CHECK(n > 3); /* else the allocator was hardly used */
    CHECK_EQ(in_child(fail_when_warm, NULL), 0);
    CHECK_EQ(in_child(set_late, NULL), 0);
    return 0;
}
