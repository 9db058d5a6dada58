/* A program that forks while its threads, executors and microthreads are in the middle of everything. In the child the
 * library says MC_E_FORKED and nothing hangs, whatever lock was held at that moment, until the child begins anew; then it
 * works like any other process. The parent goes on. */
#include "csp_program.h"

#include <pthread.h>
#include <stdatomic.h>

enum { FORKS = 40, THREADS = 3 };

static csp_writer w;
static csp_reader r;
static mc_chan_t elements;
static mc_task_t parents_task;
static atomic_int stop;

static void ignore(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code, (void)text;
}

static int32_t send_once(void *writer) { return csp_send(writer, NULL); }
static int32_t wait_for_go(void *user) {
    (void)user;
    while (!atomic_load(&stop))
        csp_sleep_until(mc_after(MC_MS));
    return 0;
}

/* What a child that has begun anew finds: nothing of its parent's, and a runtime that works. */
static void work_anew(int executors) {
    int value = 0;
    int32_t result = 0;
    mc_task_t task = 0;
    csp_writer own_w;
    csp_reader own_r, timer;
    CHECK_EQ(mc_join(parents_task, MC_FOREVER, NULL), MC_E_STALE);
    CHECK_EQ(mc_send(elements, &value), MC_E_STALE);
    CHECK_EQ(mc_chan_destroy(elements), MC_E_STALE);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK(csp_send(w, &value) < 0);
    CHECK(csp_recv(r, &value) < 0);
    csp_writer_release(w);
    csp_reader_release(r);
    if (executors > 0)
        CHECK_EQ(csp_init_runtime(executors), 0); /* it has them, and says so */
    CHECK_EQ(csp_chan(&own_w, &own_r, NULL), 1);
    for (int i = 0; i < 100; ++i) {
        CHECK_EQ(mc_spawn(0, send_once, own_w, NULL, &task), MC_OK);
        CHECK_EQ(csp_recv(own_r, NULL), 1);
        CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, 1);
    }
    timer = csp_after(MC_MS);
    CHECK_EQ(csp_recv(timer, NULL), 1);
    csp_reader_release(timer);
    csp_writer_release(own_w);
    csp_reader_release(own_r);
    csp_schedule();
    csp_shutdown_runtime();
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
}

static void grandchild(void) {
    alarm(30);
    CHECK_EQ(csp_chan(&w, &r, NULL), 0);
    csp_shutdown_runtime();
    w = NULL, r = NULL;
    work_anew(0);
    exit(5);
}

static void begin_anew(int how) {
    const int executors = how % 3;
    if (executors == 0)
        csp_shutdown_runtime();
    else
        CHECK_EQ(csp_init_runtime(executors), 1);
    if (how % 2 == 0) { /* again, in the middle of it */
        const pid_t pid = fork();
        int status = 0;
        if (pid == 0)
            grandchild();
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
    work_anew(executors);
    exit(5);
}

static void child(int how) {
    int value = 0;
    mc_task_t task = 0;
    alarm(30); /* a hang is a failure */
    CHECK_EQ(csp_try_send(w, &value), MC_E_FORKED);
    CHECK_EQ(csp_recv(r, &value), MC_E_FORKED);
    CHECK_EQ(mc_send(elements, &value), MC_E_FORKED);
    CHECK_EQ(mc_chan_destroy(elements), MC_E_FORKED);
    CHECK_EQ(mc_spawn(0, NULL, NULL, NULL, &task), MC_E_INVAL);
    CHECK_EQ(csp_run(), 0);
    CHECK(csp_after(1) == NULL);
    csp_schedule();
    csp_yield();
    csp_sleep_until(mc_after(3600 * MC_SEC));
    csp_writer_release(w);
    csp_reader_release(r);
    if (how >= 0)
        begin_anew(how);
    CHECK_EQ(csp_init_runtime(2), 0); /* not on a microthread's stack */
    csp_shutdown_runtime();
    CHECK_EQ(csp_recv(r, &value), MC_E_FORKED);
    _exit(5);
}

/* how: how the child begins anew; below 0: on a microthread's stack, where it can not */
static void fork_now(int how) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child(how);
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void *hammer(void *data) {
    (void)data;
    for (int i = 0; !atomic_load(&stop); ++i) {
        csp_writer_release(csp_writer_addref(w));
        csp_send_until(w, &i, mc_after(20 * 1000));
        mc_send_try(elements, &i);
        mc_recv_try(elements, NULL);
        csp_reader_release(csp_after(1000));
    }
    return NULL;
}

static void *fork_from_a_thread(void *data) {
    csp_yield();
    fork_now(*(int *)data);
    return NULL;
}

static void receive(void *data) {
    (void)data;
    while (csp_recv(r, NULL) == 1) {
    }
}

static int32_t fork_in_a_microthread(void *user) {
    (void)user;
    fork_now(-1);
    csp_yield();
    return 1;
}

static void fork_often(int round) {
    pthread_t forker;
    for (int i = 0; i < FORKS; ++i) {
        mc_task_t task = 0;
        int32_t result = 0;
        int how = i + round;
        fork_now(i);
        csp_sleep_until(mc_after(200 * 1000)); /* microthreads run */
        CHECK_EQ(mc_spawn(0, fork_in_a_microthread, NULL, NULL, &task), MC_OK);
        CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, 1);
        CHECK_EQ(pthread_create(&forker, NULL, fork_from_a_thread, &how), 0);
        CHECK_EQ(pthread_join(forker, NULL), 0);
    }
}

static void start_all(pthread_t *threads) {
    atomic_store(&stop, 0);
    CHECK_EQ(csp_chan(&w, &r, NULL), 1);
    CHECK_EQ(csp_spawn(receive, NULL), 1);
    for (int i = 0; i < THREADS; ++i)
        CHECK_EQ(pthread_create(&threads[i], NULL, hammer, NULL), 0);
}

static void join_all(pthread_t *threads) {
    for (int i = 0; i < THREADS; ++i)
        while (pthread_tryjoin_np(threads[i], NULL) != 0)
            csp_sleep_until(mc_after(MC_MS));
}

/* A child that would return into a send of its parent's can not begin anew. */
static void fork_in_tx(void *source, void *destination) {
    (void)source, (void)destination;
    const pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQ(csp_init_runtime(1), 0);
        csp_shutdown_runtime();
        CHECK_EQ(csp_send(w, NULL), MC_E_FORKED);
        _exit(5);
    }
    int status = 0;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static int32_t receive_once(void *reader) { return csp_recv(reader, NULL); }

static void fork_in_a_callback(void) {
    csp_writer to;
    csp_reader from;
    mc_task_t task = 0;
    CHECK_EQ(csp_chan(&to, &from, fork_in_tx), 1);
    CHECK_EQ(mc_spawn(0, receive_once, from, NULL, &task), MC_OK);
    csp_yield();
    CHECK_EQ(csp_send(to, NULL), 1); /* tx runs on this stack */
    CHECK_EQ(mc_join(task, MC_FOREVER, NULL), MC_OK);
    csp_writer_release(to);
    csp_reader_release(from);
}

int main(void) {
    if (SANITIZED || getenv("LD_PRELOAD") != NULL)
        return SKIPPED; /* checkers' own locks are not made for a fork among threads; Valgrind counts the others' as leaks */
    pthread_t threads[THREADS];
    mc_set_log_hook(ignore, NULL);
    CHECK_EQ(mc_chan_create(0, sizeof(int), 4, NULL, NULL, &elements), MC_OK);
    start_all(threads);
    CHECK_EQ(mc_spawn(0, wait_for_go, NULL, NULL, &parents_task), MC_OK);
    fork_in_a_callback();
    fork_often(0); /* in single-processor mode */
    atomic_store(&stop, 1);
    join_all(threads);
    csp_writer_release(w);
    csp_schedule();
    csp_reader_release(r);
    CHECK_EQ(mc_join(parents_task, MC_FOREVER, NULL), MC_OK);

    CHECK_EQ(csp_init_runtime(3), 1);
    start_all(threads);
    fork_often(1);
    atomic_store(&stop, 1);
    join_all(threads);
    csp_writer_release(w);
    csp_schedule();
    csp_reader_release(r);
    csp_shutdown_runtime();
    CHECK_EQ(mc_chan_destroy(elements), MC_OK);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
    return 0;
}
