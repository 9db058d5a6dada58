/* close_race: workers share out the parts of a large sum and send what they have into one channel. The last of them closes it,
 * so that main, which adds up whatever comes, knows when it has everything.
 *
 * The total must be that of all parts. */
#include <mc/mc.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 3, NUMBERS_EACH = 1000 };

struct job {
    mc_chan_t parts;
    atomic_int working;
};

struct share {
    struct job *job;
    int64_t first;
};

static int32_t work(void *user) {
    const struct share *share = user;
    struct job *job = share->job;
    int64_t part = 0;
    csp_descr("worker");
    mc_sleep((int64_t)(mc_random() % (uint64_t)(2 * MC_MS))); /* reads its numbers from somewhere */
    for (int64_t i = 0; i < NUMBERS_EACH; ++i)
        part += share->first + i;
#ifdef FIXED
    /* Counted as done when its part is in the channel: who sees that nobody else works knows that all parts are. */
    mc_send(job->parts, &part);
    const int others = atomic_fetch_sub(&job->working, 1) - 1;
#else
    /* Counted as done with its part still in hand: another one may now be the last, and close before this one sends. */
    const int others = atomic_fetch_sub(&job->working, 1) - 1;
    mc_send(job->parts, &part);
#endif
    return others == 0 ? mc_chan_close(job->parts) : MC_OK;
}

int main(void) {
    const int64_t numbers = (int64_t)WORKERS * NUMBERS_EACH;
    struct job job = {.working = WORKERS};
    struct share shares[WORKERS];
    mc_task_t workers[WORKERS];
    int64_t total = 0;
    if (!csp_init_runtime(0) || mc_chan_create(0, sizeof(int64_t), 0, NULL, NULL, &job.parts) != MC_OK)
        return 2;
    for (int i = 0; i < WORKERS; ++i) {
        shares[i] = (struct share){&job, (int64_t)i * NUMBERS_EACH};
        if (mc_spawn(0, work, &shares[i], NULL, &workers[i]) != MC_OK)
            return 2;
    }
    for (int64_t part; mc_recv(job.parts, &part) == MC_OK;)
        total += part;
    for (int i = 0; i < WORKERS; ++i)
        mc_join(workers[i], MC_FOREVER, NULL);
    if (total != numbers * (numbers - 1) / 2)
        mc_sim_fail("a part of the sum is missing: the channel was closed before it was sent");
    mc_chan_destroy(job.parts);
    csp_shutdown_runtime();
    puts("the sum is complete");
    return 0;
}
