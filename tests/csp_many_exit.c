/* Programs that end with executors running, microthreads of every kind on them, and nothing shut down: each ends at once
 * with the status that was asked for. */
#include "csp_program.h"

static int executors;

static void make_a_world(void) {
    static csp_writer w;
    static csp_reader r;
    CHECK_EQ(csp_init_runtime(executors), 1);
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    spawn_endless(r, 4);
    csp_sleep_until(mc_after(2 * MC_MS));
}

static int returns_from_main(void) {
    make_a_world();
    return 10;
}

static int leaves_at_once(void) {
    make_a_world();
    _exit(11);
}

static void exits(void *data) {
    (void)data;
    exit(12);
}

static int exits_in_a_microthread(void) {
    make_a_world();
    CHECK_EQ(csp_spawn(exits, NULL), 1);
    csp_schedule();
    return 1;
}

/* The handler runs on the thread of an executor, which it can not wait for. */
static int shuts_down_in_a_microthreads_exit(void) {
    atexit(csp_shutdown_runtime);
    return exits_in_a_microthread();
}

static int shuts_down_in_mains_exit(void) {
    CHECK_EQ(csp_init_runtime(executors), 1);
    CHECK_EQ(csp_spawn(sleeps, NULL), 1);
    atexit(csp_shutdown_runtime);
    return 14;
}

static void quiet(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code, (void)text;
}

int main(void) {
    mc_set_log_hook(quiet, NULL); /* what is refused while a program exits is logged */
    for (int round = 0; round < 10; round++) {
        executors = round % 2 == 0 ? 1 : 4;
        CHECK_EQ(run_child(returns_from_main), 10);
        CHECK_EQ(run_child(leaves_at_once), 11);
        CHECK_EQ(run_child(exits_in_a_microthread), 12);
        CHECK_EQ(run_child(shuts_down_in_a_microthreads_exit), 12);
        CHECK_EQ(run_child(shuts_down_in_mains_exit), 14);
    }
    return 0;
}
