/* Sixty-four threads that are not the library's, round after round: each talks with a microthread over channels of both
 * kinds and leaves its endpoints to the destructors of thread-specific data, which run after everything else of the
 * thread is gone. The microthreads see the ends die, and no channel stays. */
#define _GNU_SOURCE
#include <mc/mc.h>
#include <pthread.h>

#include "check.h"

enum { THREADS = 64, ROUNDS = 8, MESSAGES = 20 };

static pthread_key_t writer_key, reader_key;
static mc_chan_t pool; /* of numbers, any thread to any microthread */

static void release_writer(void *writer) { csp_writer_release(writer); }
static void release_reader(void *reader) { csp_reader_release(reader); }
static void copy_int(void *source, void *target) { *(int *)target = *(int *)source; }

struct visit {
    /* The thread's ends. */
    csp_writer question;
    csp_reader answer;
    /* The microthread's. */
    csp_reader asked;
    csp_writer reply;
    pthread_t thread;
    mc_task_t task;
};

/* Answers each question with its successor until the thread is gone. */
static int32_t serve(void *user) {
    struct visit *visit = user;
    int number, served = 0, received;
    while ((received = csp_recv(visit->asked, &number)) == 1) {
        number++;
        CHECK_EQ(csp_send(visit->reply, &number), 1);
        served++;
    }
    CHECK_EQ(received, -1);
    CHECK_EQ(csp_send(visit->reply, &number), -1);
    csp_reader_release(visit->asked);
    csp_writer_release(visit->reply);
    return served;
}

static int32_t answer_at_once(void *user) {
    (void)user;
    return 11;
}

static void *visitor(void *user) {
    struct visit *visit = user;
    CHECK_EQ(pthread_setspecific(writer_key, visit->question), 0);
    CHECK_EQ(pthread_setspecific(reader_key, visit->answer), 0);
    for (int i = 0; i < MESSAGES; i++) {
        int number = i, answer = 0;
        CHECK_EQ(csp_send(visit->question, &number), 1);
        CHECK_EQ(csp_recv(visit->answer, &answer), 1);
        CHECK_EQ(answer, i + 1);
        CHECK_EQ(mc_send(pool, &number), MC_OK);
    }

    /* What only the owner may do is refused; what anybody may do works. */
    CHECK_EQ(csp_run(), 0);
    CHECK_EQ(mc_task_self(), 0);
    mc_task_t task;
    int32_t result = 0;
    CHECK_EQ(mc_spawn(0, answer_at_once, NULL, NULL, &task), MC_OK);
    CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, 11);
    int64_t then = mc_now();
    csp_sleep_until(mc_after(MC_MS));
    CHECK(mc_now() - then >= MC_MS);
    return NULL; /* the destructors release both ends */
}

static int32_t drain(void *sum) {
    int number;
    int32_t received = 0;
    for (; mc_recv(pool, &number) == MC_OK; received++)
        *(int *)sum += number;
    return received;
}

static void be_quiet(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)text;
    CHECK_EQ(code, MC_E_CONTEXT); /* csp_run of another thread */
}

static void play_round(void) {
    static struct visit visits[THREADS];
    mc_task_t drainer;
    int32_t result;
    int sum = 0;
    CHECK_EQ(mc_chan_create(0, sizeof(int), 4, NULL, NULL, &pool), MC_OK);
    CHECK_EQ(mc_spawn(0, drain, &sum, NULL, &drainer), MC_OK);
    for (int i = 0; i < THREADS; i++) {
        struct visit *visit = &visits[i];
        CHECK_EQ(csp_chan(&visit->question, &visit->asked, copy_int), 1);
        CHECK_EQ(csp_chan(&visit->reply, &visit->answer, copy_int), 1);
        CHECK_EQ(mc_spawn(0, serve, visit, NULL, &visit->task), MC_OK);
        CHECK_EQ(pthread_create(&visit->thread, NULL, visitor, visit), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(mc_join(visits[i].task, MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, MESSAGES);
        CHECK_EQ(pthread_join(visits[i].thread, NULL), 0);
    }
    CHECK_EQ(mc_chan_close(pool), MC_OK);
    CHECK_EQ(mc_join(drainer, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, THREADS * MESSAGES);
    CHECK_EQ(sum, THREADS * (MESSAGES * (MESSAGES - 1) / 2));
    CHECK_EQ(mc_chan_destroy(pool), MC_OK);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
}

int main(void) {
    alarm(PATIENCE);
    mc_set_log_hook(be_quiet, NULL);
    CHECK_EQ(pthread_key_create(&writer_key, release_writer), 0);
    CHECK_EQ(pthread_key_create(&reader_key, release_reader), 0);
    for (int i = 0; i < ROUNDS; i++)
        play_round();
    return 0;
}
