/* Programs that end with executors running, microthreads of every kind on them, and nothing shut down: from main, by
 * exit() on a microthread, by _exit. */
#include "csp_program.h"

static csp_writer w;
static csp_reader r;

static void blocks(void *data) {
    csp_recv(data, NULL);
    CHECK(!"woken");
}
static void sleeps(void *data) {
    (void)data;
    csp_sleep_until(mc_after(3600 * MC_SEC));
}
static void yields(void *data) {
    (void)data;
    for (;;)
        csp_yield();
}
static void exits(void *data) { exit(*(int *)data); }

static void make_a_world(int n) {
    CHECK_EQ(csp_init_runtime(n), 1);
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    for (int i = 0; i < 4; ++i) {
        CHECK_EQ(csp_spawn(blocks, r), 1);
        CHECK_EQ(csp_spawn(sleeps, NULL), 1);
        CHECK_EQ(csp_spawn(yields, NULL), 1);
    }
    csp_sleep_until(mc_after(2 * MC_MS));
}

static int ends(int n, int way) {
    static int seven = 7;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        make_a_world(n);
        if (way == 0)
            exit(7); /* as a return from main */
        if (way == 1)
            _exit(7);
        CHECK_EQ(csp_spawn(exits, &seven), 1);
        csp_schedule();
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(void) {
    for (int n = 1; n <= 4; n += 3)
        for (int way = 0; way < 3; way++)
            for (int i = 0; i < 5; i++)
                CHECK_EQ(ends(n, way), 7);
    return 0;
}
