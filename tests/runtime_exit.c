/* Leaving the program with runtimes at work: from main, from a microthread, from a blocking call, by exit and by return. The
 * process ends with the status that was asked for, and soon. */
#include "csp_program.h"

#include <mc/mc.h>
#include <sys/wait.h>
#include <unistd.h>

static int how;

static int32_t hog(void *user) {
    (void)user;
    for (;;)
        (void)mc_checkpoint();
    return 0;
}

static int32_t sleeper(void *user) {
    (void)user;
    return mc_sleep(1000 * MC_SEC);
}

static int32_t native(void *user) {
    (void)user;
    for (;;)
        usleep(1000);
    return 0;
}

static int32_t leave(void *user) {
    (void)user;
    exit(30 + how);
}

static int32_t leave_by_call(void *user) { return mc_blocking_call(leave, user, NULL); }
static int32_t stay_in_call(void *user) { return mc_blocking_call(native, user, NULL); }

static int run(void) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_t rt = 0;
    options.executors = 2;
    CHECK(mc_runtime_create(&options, &rt) == MC_OK && mc_runtime_start(rt) == MC_OK);
    CHECK(mc_spawn(rt, hog, NULL, NULL, NULL) == MC_OK);
    CHECK(mc_spawn(rt, sleeper, NULL, NULL, NULL) == MC_OK);
    CHECK(mc_spawn(rt, stay_in_call, NULL, NULL, NULL) == MC_OK);
    CHECK(mc_sleep(2 * MC_MS) == MC_OK);
    switch (how) {
    case 0:
        return 30;
    case 1:
        exit(31);
    case 2:
        CHECK(mc_spawn(rt, leave, NULL, NULL, NULL) == MC_OK);
        break;
    case 3:
        CHECK(mc_spawn(rt, leave_by_call, NULL, NULL, NULL) == MC_OK);
        break;
    case 4: /* on the default one's, alone */
        CHECK(mc_spawn(0, leave, NULL, NULL, NULL) == MC_OK);
        break;
    default: /* while it is shut down */
        CHECK(mc_spawn(rt, leave, NULL, NULL, NULL) == MC_OK);
        (void)mc_runtime_shutdown(rt, 1000 * MC_SEC);
        break;
    }
    for (;;)
        (void)mc_sleep(MC_SEC);
}

int main(void) {
    for (how = 0; how < 6; ++how) {
        int status = -1;
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(60);
            return run();
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 30 + how);
    }
    return 0;
}
