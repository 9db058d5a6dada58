/* A program that forks while its threads and microthreads are in the middle of everything. In the child the library says
 * MC_E_FORKED and nothing hangs, whatever lock was held at that moment; the parent goes on. */
#include "csp_program.h"

#include <pthread.h>
#include <stdatomic.h>

enum { FORKS = 60, THREADS = 3 };

static csp_writer w;
static csp_reader r;
static mc_chan_t elements;
static atomic_int stop;

static void ignore(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code, (void)text;
}

static void child(void) {
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
    _exit(5);
}

static void fork_now(void) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child();
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
    (void)data;
    csp_yield();
    fork_now();
    return NULL;
}

static void receive(void *data) {
    (void)data;
    while (csp_recv(r, NULL) == 1) {
    }
}

static int32_t fork_in_a_microthread(void *user) {
    (void)user;
    fork_now();
    csp_yield();
    return 1;
}

int main(void) {
    if (SANITIZED || getenv("LD_PRELOAD") != NULL)
        return SKIPPED; /* checkers' own locks are not made for a fork among threads; Valgrind counts the others' as leaks */
    pthread_t threads[THREADS], forker;
    mc_set_log_hook(ignore, NULL);
    CHECK_EQ(csp_chan(&w, &r, NULL), 1);
    CHECK_EQ(mc_chan_create(0, sizeof(int), 4, NULL, NULL, &elements), MC_OK);
    CHECK_EQ(csp_spawn(receive, NULL), 1);
    for (int i = 0; i < THREADS; ++i)
        CHECK_EQ(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < FORKS; ++i) {
        mc_task_t task = 0;
        int32_t result = 0;
        fork_now();
        csp_sleep_until(mc_after(200 * 1000)); /* microthreads run */
        CHECK_EQ(mc_spawn(0, fork_in_a_microthread, NULL, NULL, &task), MC_OK);
        CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, 1);
        CHECK_EQ(pthread_create(&forker, NULL, fork_from_a_thread, NULL), 0);
        CHECK_EQ(pthread_join(forker, NULL), 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; ++i)
        while (pthread_tryjoin_np(threads[i], NULL) != 0)
            csp_sleep_until(mc_after(MC_MS));
    csp_writer_release(w);
    csp_schedule();
    csp_reader_release(r);
    CHECK_EQ(mc_chan_destroy(elements), MC_OK);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
    return 0;
}
