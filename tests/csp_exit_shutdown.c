/* exit() on a microthread's stack: handlers that run then, and threads that are still there, are told of the shutdown
 * instead of waiting for a runtime that nobody will own again. */
#include "csp_program.h"

#include <pthread.h>
#include <stdatomic.h>

static csp_writer w;
static csp_reader r;
static pthread_t worker;
static atomic_int stage;

static void *work(void *user) {
    (void)user;
    CHECK_EQ(csp_try_recv(r, NULL), 0); /* known to the runtime while it has an owner */
    atomic_store(&stage, 1);
    while (atomic_load(&stage) == 1)
        usleep(1000);
    CHECK_EQ(csp_recv(r, NULL), MC_E_SHUTDOWN);
    CHECK_EQ(mc_spawn(0, NULL, NULL, NULL, NULL), MC_E_INVAL);
    CHECK_EQ(csp_run(), 0);
    csp_yield();
    return NULL;
}

static void at_exit(void) {
    CHECK_EQ(csp_recv(r, NULL), MC_E_SHUTDOWN);
    atomic_store(&stage, 2);
    CHECK_EQ(pthread_join(worker, NULL), 0);
    csp_writer_release(w);
    csp_reader_release(r);
    _exit(0);
}

static void leave(void *user) {
    (void)user;
    exit(3);
}

static int program(void) {
    CHECK_EQ(csp_chan(&w, &r, NULL), 1);
    CHECK_EQ(pthread_create(&worker, NULL, work, NULL), 0);
    while (atomic_load(&stage) == 0)
        usleep(1000);
    CHECK_EQ(atexit(at_exit), 0);
    csp_spawn(leave, NULL);
    return 4;
}

int main(void) {
    if (SANITIZED || getenv("LD_PRELOAD") != NULL)
        return SKIPPED; /* checkers do not expect the stack to be another one at exit */
    CHECK_EQ(run_child(program), 0);
    return 0;
}
