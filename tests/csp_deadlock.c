/* A program whose main waits for what can not come hears MC_E_DEADLOCK, and goes on; one that waits for a thread does
 * not. */
#include "csp_program.h"

#include <pthread.h>

static csp_writer w;
static csp_reader r;

static void waits_too(void *data) {
    (void)data;
    int value = 0;
    CHECK_EQ(csp_recv(r, &value), 1);
    CHECK_EQ(value, 3);
    CHECK_EQ(csp_recv(r, &value), -1);
}

static void *sends_late(void *data) {
    int value = 5;
    const struct timespec time = {0, 30 * 1000 * 1000};
    nanosleep(&time, NULL);
    CHECK_EQ(csp_send(data, &value), 1);
    return NULL;
}

int main(void) {
    csp_writer other_w;
    csp_reader other_r;
    int value = 0;
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    CHECK_EQ(csp_chan(&other_w, &other_r, copy_int), 1);
    CHECK_EQ(csp_spawn(waits_too, NULL), 1);
    CHECK_EQ(csp_recv(other_r, &value), MC_E_DEADLOCK);
    CHECK_EQ(csp_send(other_w, &value), MC_E_DEADLOCK);

    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, sends_late, other_w), 0);
    CHECK_EQ(csp_recv(other_r, &value), 1);
    CHECK_EQ(value, 5);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(csp_recv(other_r, &value), MC_E_DEADLOCK);

    value = 3;
    CHECK_EQ(csp_send(w, &value), 1);
    csp_writer_release(w);
    csp_schedule();
    csp_reader_release(r);
    csp_writer_release(other_w);
    csp_reader_release(other_r);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    return 0;
}
