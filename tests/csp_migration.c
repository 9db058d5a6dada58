/* Microthreads that go on on other threads: what belongs to a thread and what belongs to a microthread must never be
 * mixed up, however the program was compiled. Run by the tests as they are built, and by csp_migration_matrix.sh under
 * compilers and options of its own. */
#include "csp_program.h"

#include <errno.h>
#include <stdatomic.h>

enum { TASKS = 12, ROUNDS = 300 };

static __thread int id_of_thread;
static atomic_int threads, moves;
static mc_chan_t chan;

/* What belongs to the thread sits in a function that does not block and is not inlined. */
__attribute__((noinline)) static int this_thread(void) {
    if (id_of_thread == 0)
        id_of_thread = atomic_fetch_add(&threads, 1) + 1;
    return id_of_thread;
}

/* A call that fails, and its errno, on whatever thread we are. */
__attribute__((noinline)) static int failed_close(void) {
    errno = 0;
    return close(-1) == 0 ? 0 : errno;
}

static int32_t work(void *user) {
    const mc_task_t self = mc_task_self();
    volatile double weight = 1.0 + (double)(intptr_t)user; /* registers travel with the microthread */
    double sum = 0;
    int last = this_thread();
    for (int i = 0; i < ROUNDS; i++) {
        int value = i;
        sum += weight;
        switch (i % 4) {
        case 0:
            csp_yield();
            break;
        case 1:
            CHECK_EQ(mc_send(chan, &value), MC_OK);
            break;
        case 2:
            CHECK_EQ(mc_recv(chan, &value), MC_OK);
            break;
        default:
            csp_sleep_until(mc_after(2000));
        }
        CHECK_EQ(mc_task_self(), self);
        CHECK_EQ(failed_close(), EBADF);
        if (this_thread() != last)
            atomic_fetch_add(&moves, 1);
        last = this_thread();
    }
    CHECK_EQ(sum, ROUNDS * weight);
    return (int32_t)(intptr_t)user;
}

int main(void) {
    CHECK_EQ(csp_init_runtime(3), 1);
    CHECK_EQ(mc_chan_create(0, sizeof(int), TASKS, NULL, NULL, &chan), MC_OK);
    mc_task_t tasks[TASKS];
    for (intptr_t i = 0; i < TASKS; i++)
        CHECK_EQ(mc_spawn(0, work, (void *)i, NULL, &tasks[i]), MC_OK);
    for (int i = 0; i < TASKS; i++) {
        int32_t result = -1;
        CHECK_EQ(mc_join(tasks[i], MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, i);
    }
    CHECK_EQ(mc_chan_destroy(chan), MC_OK);
    csp_shutdown_runtime();
    printf("%d microthreads moved %d times between %d threads\n", TASKS, atomic_load(&moves), atomic_load(&threads));
    return 0;
}
