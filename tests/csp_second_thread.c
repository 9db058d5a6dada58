/* A process that has one thread, where the library does without locked instructions, gets a second one in the middle of what it
 * does: microthreads that share a mutex, a buffered channel and a rendezvous go on, and the new thread joins in. Nothing is lost
 * from before, nor from then on. */
#include "csp_program.h"

#include <pthread.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define HAS_ONE_THREAD (__libc_single_threaded != 0)
#endif

enum { WORKERS = 4, ROUNDS = 20000 };

static mc_mutex_t mutex;
static mc_chan_t numbers;
static csp_writer tokens_w;
static csp_reader tokens_r;
static uint64_t count;    /* guarded by mutex */
static uint64_t received; /* by the one receiver */
static int held;

static void count_up(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        CHECK_EQ(mc_mutex_lock(mutex), MC_OK);
        ++count;
        if (i % 64 == 0)
            csp_yield(); /* the others come, and wait */
        CHECK_EQ(mc_mutex_unlock(mutex), MC_OK);
        const int64_t number = 1;
        CHECK_EQ(mc_send(numbers, &number), MC_OK);
        if (i % 8 == 0)
            CHECK_EQ(csp_send(tokens_w, NULL), 1);
    }
}

static int32_t work(void *rounds) {
    count_up(*(int *)rounds);
    return 0;
}

static void *work_beside(void *rounds) {
    count_up(*(int *)rounds);
    return NULL;
}

/* Has the mutex while the second thread is made. */
static int32_t hold(void *through) {
    CHECK_EQ(mc_mutex_lock(mutex), MC_OK);
    held = 1;
    int64_t nothing = 0;
    CHECK_EQ(mc_recv(*(mc_chan_t *)through, &nothing), MC_E_CLOSED);
    ++count;
    return mc_mutex_unlock(mutex);
}

static int32_t receive(void *user) {
    (void)user;
    int64_t number = 0;
    while (mc_recv(numbers, &number) == MC_OK)
        received += (uint64_t)number;
    return 0;
}

static int32_t take_tokens(void *tokens) {
    while (csp_recv(tokens_r, NULL) == 1)
        ++*(uint64_t *)tokens;
    return 0;
}

int main(void) {
    alarm(120);
    int rounds = ROUNDS;
    uint64_t tokens = 0;
    mc_task_t workers[WORKERS], receiver, taker;
    pthread_t thread;
    CHECK_EQ(mc_mutex_create(0, &mutex), MC_OK);
    CHECK_EQ(mc_chan_create(0, sizeof(int64_t), 16, NULL, NULL, &numbers), MC_OK);
    CHECK_EQ(csp_chan(&tokens_w, &tokens_r, NULL), 1);
    CHECK_EQ(mc_spawn(0, receive, NULL, NULL, &receiver), MC_OK);
    CHECK_EQ(mc_spawn(0, take_tokens, &tokens, NULL, &taker), MC_OK);
    for (int i = 0; i < WORKERS; ++i)
        CHECK_EQ(mc_spawn(0, work, &rounds, NULL, &workers[i]), MC_OK);
    count_up(ROUNDS / 2); /* with the others in between */
    mc_chan_t through;
    mc_task_t holder;
    CHECK_EQ(mc_chan_create(0, sizeof(int64_t), 0, NULL, NULL, &through), MC_OK);
    CHECK_EQ(mc_spawn(0, hold, &through, NULL, &holder), MC_OK);
    while (!held)
        csp_yield();
    CHECK_EQ(mc_sleep(MC_MS), MC_OK); /* the workers come, and wait for it */
    CHECK_EQ(mc_mutex_try_lock(mutex), MC_E_AGAIN);
#ifdef HAS_ONE_THREAD
    CHECK(SANITIZED || HAS_ONE_THREAD);
#endif
    CHECK_EQ(pthread_create(&thread, NULL, work_beside, &rounds), 0);
    CHECK_EQ(mc_chan_close(through), MC_OK);
    CHECK_EQ(mc_join(holder, MC_FOREVER, NULL), MC_OK);
    CHECK_EQ(mc_chan_destroy(through), MC_OK);
    count_up(ROUNDS / 2);
    for (int i = 0; i < WORKERS; ++i)
        CHECK_EQ(mc_join(workers[i], MC_FOREVER, NULL), MC_OK);
    CHECK_EQ(mc_mutex_lock(mutex), MC_OK);
    while (count != (WORKERS + 2) * ROUNDS +
                        1) { /* until the thread is through: pthread_join would keep the microthreads waiting */
        CHECK_EQ(mc_mutex_unlock(mutex), MC_OK);
        CHECK_EQ(mc_sleep(MC_MS), MC_OK);
        CHECK_EQ(mc_mutex_lock(mutex), MC_OK);
    }
    CHECK_EQ(mc_mutex_unlock(mutex), MC_OK);
    while (received != (WORKERS + 2) * ROUNDS || tokens != (WORKERS + 2) * ROUNDS / 8)
        CHECK_EQ(mc_sleep(MC_MS), MC_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(mc_chan_close(numbers), MC_OK);
    csp_writer_release(tokens_w);
    CHECK_EQ(mc_join(receiver, MC_FOREVER, NULL), MC_OK);
    CHECK_EQ(mc_join(taker, MC_FOREVER, NULL), MC_OK);
    CHECK_EQ(received, (WORKERS + 2) * ROUNDS);
    CHECK_EQ(tokens, (WORKERS + 2) * ROUNDS / 8);
    return 0;
}
