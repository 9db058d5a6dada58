/* A process that runs out of address space: spawning says MC_E_NOMEM (or 0), everything that was there before goes on, and
 * once something has ended there is room again. */
#include "csp_program.h"

#include <sys/resource.h>

enum { MOST = 1000 * 1000 };

static csp_writer w;
static csp_reader r;
static int errors;

static void count_errors(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level;
    CHECK(text != NULL);
    errors += code == MC_E_NOMEM;
}

static int32_t waits(void *user) {
    (void)user;
    int value = 0;
    return csp_recv(r, &value) == 1 ? value : -1;
}

static void waits_plainly(void *user) { (void)waits(user); }

/* Spawns until it fails; how many there are then. */
static int fill(mc_task_t *tasks, const mc_spawn_options *options) {
    int count = 0;
    for (; count < MOST; ++count) {
        mc_task_t task = 99;
        const int32_t status = mc_spawn(0, waits, NULL, options, &task);
        if (status != MC_OK) {
            CHECK_EQ(status, MC_E_NOMEM);
            CHECK_EQ(task, 99);
            return count;
        }
        tasks[count] = task;
    }
    CHECK(!"the limit has no effect");
    return 0;
}

static int out_of_address_space(void) {
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.stack_size = 1 << 20;
    mc_task_t *tasks = malloc(MOST * sizeof *tasks);
    CHECK(tasks != NULL);
    mc_set_log_hook(count_errors, NULL);
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    for (int round = 0; round < 3; ++round) {
        const int count = fill(tasks, &options);
        CHECK(count > 20);
        options.stack_size = 0;
        const int small = fill(tasks + count, &options); /* what was left between */
        options.stack_size = 1 << 20;
        CHECK_EQ(csp_spawn(waits_plainly, NULL), 0);
        CHECK_EQ(errors, round + 1);
        csp_yield(); /* they all wait now */
        for (int i = 0; i < count + small; ++i)
            CHECK_EQ(csp_send(w, &i), 1);
        for (int i = 0; i < count + small; ++i) {
            int32_t result = -1;
            CHECK_EQ(mc_join(tasks[i], MC_FOREVER, &result), MC_OK);
            CHECK_EQ(result, i);
        }
        CHECK_EQ(csp_spawn(waits_plainly, NULL), 1); /* there is room again */
        int value = 1;
        CHECK_EQ(csp_send(w, &value), 1);
    }
    csp_writer_release(w);
    csp_reader_release(r);
    free(tasks);
    return 0;
}

/* The first call of all fails for want of address space; a later one makes it good. */
static int from_the_start(void) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    const struct rlimit before = limit;
    mc_set_log_hook(count_errors, NULL);
    limit.rlim_cur = 1;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    mc_task_t task = 0;
    const int32_t status = mc_spawn(0, waits, NULL, NULL, &task);
    CHECK_EQ(status, MC_E_NOMEM);
    CHECK_EQ(csp_spawn(waits_plainly, NULL), 0);
    CHECK(errors >= 1);
    CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    CHECK_EQ(csp_spawn(waits_plainly, NULL), 1);
    int value = 1;
    CHECK_EQ(csp_send(w, &value), 1);
    csp_writer_release(w);
    csp_reader_release(r);
    return 0;
}

static int with_limit(void) {
    const struct rlimit limit = {256 << 20, 256 << 20};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    return out_of_address_space();
}

int main(void) {
    if (SANITIZED || getenv("LD_PRELOAD") != NULL)
        return SKIPPED; /* checkers need the address space themselves */
    CHECK_EQ(run_child(with_limit), 0);
    CHECK_EQ(run_child(from_the_start), 0);
    return 0;
}
