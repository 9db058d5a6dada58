/* Threads and microthreads in one C program: four threads make numbers, four microthreads square them, four threads add
 * them up. Two kinds of channel, one of them with a buffer; all of it ends by closing. */
#include "csp_program.h"

#include <pthread.h>

enum { THREADS = 4, NUMBERS = 2000 };

static mc_chan_t numbers;
static csp_reader squares_r;

static void *make(void *data) {
    const int first = *(int *)data;
    for (int64_t number = first; number <= THREADS * NUMBERS; number += THREADS)
        CHECK_EQ(mc_send(numbers, &number), MC_OK);
    return NULL;
}

static void move_long(void *source, void *destination) { *(int64_t *)destination = *(int64_t *)source; }

static void square(void *data) {
    csp_writer out = data;
    int64_t number = 0;
    while (mc_recv(numbers, &number) == MC_OK) {
        number *= number;
        CHECK_EQ(csp_send(out, &number), 1);
    }
    csp_writer_release(out);
}

static void *add(void *data) {
    int64_t *sum = data, number = 0;
    csp_reader in = csp_reader_addref(squares_r);
    while (csp_recv(in, &number) == 1)
        *sum += number;
    csp_reader_release(in);
    return NULL;
}

static int32_t join_makers(void *user) {
    /* Threads wait in pthread_join; a microthread must not, so this one is told by main. */
    csp_reader done = user;
    CHECK_EQ(csp_recv(done, NULL), -1);
    return mc_chan_close(numbers);
}

int main(void) {
    alarm(60);
    pthread_t makers[THREADS], adders[THREADS];
    int firsts[THREADS];
    int64_t sums[THREADS] = {0};
    csp_writer squares_w, done_w;
    csp_reader done_r;
    mc_task_t closer = 0;
    CHECK_EQ(mc_chan_create(0, sizeof(int64_t), 8, NULL, NULL, &numbers), MC_OK);
    CHECK_EQ(csp_chan(&squares_w, &squares_r, move_long), 1);
    CHECK_EQ(csp_chan(&done_w, &done_r, NULL), 1);
    CHECK_EQ(mc_spawn(0, join_makers, done_r, NULL, &closer), MC_OK);
    for (int i = 0; i < THREADS; ++i) {
        firsts[i] = i + 1;
        CHECK_EQ(csp_spawn(square, csp_writer_addref(squares_w)), 1);
        CHECK_EQ(pthread_create(&makers[i], NULL, make, &firsts[i]), 0);
        CHECK_EQ(pthread_create(&adders[i], NULL, add, &sums[i]), 0);
    }
    csp_writer_release(squares_w);
    for (int made = 0; made < THREADS;) {
        csp_sleep_until(mc_after(MC_MS)); /* the microthreads run meanwhile */
        while (made < THREADS && pthread_tryjoin_np(makers[made], NULL) == 0)
            ++made;
    }
    csp_writer_release(done_w);
    CHECK_EQ(mc_join(closer, MC_FOREVER, NULL), MC_OK);
    csp_schedule();
    int64_t sum = 0, expected = 0;
    for (int added = 0; added < THREADS;) {
        csp_sleep_until(mc_after(MC_MS));
        while (added < THREADS && pthread_tryjoin_np(adders[added], NULL) == 0)
            sum += sums[added++];
    }
    for (int64_t number = 1; number <= THREADS * NUMBERS; ++number)
        expected += number * number;
    CHECK_EQ(sum, expected);
    csp_reader_release(squares_r);
    csp_reader_release(done_r);
    CHECK_EQ(mc_chan_destroy(numbers), MC_OK);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
    return 0;
}
