/* A forked child of a process with runtimes, scopes, groups, mutexes and so on: none of it may be used; after it has begun anew
 * every handle of before is stale and never a new one's, and everything can be made again. The parent goes on as if nothing
 * had been. */
#include "csp_program.h"

#include <mc/mc.h>
#include <sys/wait.h>
#include <unistd.h>

enum { handles = 11 };

static int32_t wait_for_ever(void *user) {
    mc_semaphore_t semaphore = *(mc_semaphore_t *)user;
    return mc_semaphore_acquire(semaphore, 1, MC_FOREVER);
}

static void make_all(uint64_t made[handles]) {
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    options.executors = 2;
    CHECK(mc_runtime_create(&options, &made[0]) == MC_OK);
    CHECK(mc_runtime_start(made[0]) == MC_OK);
    CHECK(mc_scope_create(MC_FOREVER, &made[1]) == MC_OK);
    CHECK(mc_group_create(made[0], MC_FOREVER, &made[2]) == MC_OK);
    CHECK(mc_mutex_create(0, &made[3]) == MC_OK);
    CHECK(mc_semaphore_create(0, &made[4]) == MC_OK);
    CHECK(mc_waitgroup_create(1, &made[5]) == MC_OK);
    CHECK(mc_once_create(&made[6]) == MC_OK);
    CHECK(mc_cond_create(&made[7]) == MC_OK);
    CHECK(mc_rwlock_create(&made[8]) == MC_OK);
    CHECK(mc_local_create(NULL, &made[9]) == MC_OK);
    CHECK(mc_spawn(made[0], wait_for_ever, &made[4], NULL, &made[10]) == MC_OK);
}

static int32_t nothing(void *user) {
    (void)user;
    return 0;
}

static void expect(const uint64_t all[handles], int32_t code) {
    int32_t cause = 0;
    CHECK(mc_runtime_shutdown(all[0], 0) == code);
    CHECK(mc_scope_cancel(all[1], 0) == code);
    CHECK(mc_scope_cause(all[1], &cause) == code);
    CHECK(mc_group_spawn(all[2], nothing, NULL, NULL) == code);
    CHECK(mc_mutex_lock(all[3]) == code);
    CHECK(mc_mutex_unlock(all[3]) == code);
    CHECK(mc_semaphore_release(all[4], 1) == code);
    CHECK(mc_waitgroup_done(all[5]) == code);
    CHECK(mc_once_call(all[6], nothing, NULL, MC_FOREVER) == code);
    CHECK(mc_cond_signal(all[7]) == code);
    CHECK(mc_rwlock_read_lock(all[8], MC_FOREVER) == code);
    CHECK(mc_local_set(all[9], &cause) == code);
    CHECK(mc_join(all[10], MC_FOREVER, NULL) == code);
}

static void use_and_end(const uint64_t all[handles]) {
    int32_t error = 1;
    CHECK(mc_scope_enter(all[1]) == MC_OK);
    CHECK(mc_scope_leave() == MC_OK);
    CHECK(mc_group_spawn(all[2], nothing, NULL, NULL) == MC_OK);
    CHECK(mc_group_wait(all[2], MC_FOREVER, &error) == MC_OK && error == 0);
    CHECK(mc_semaphore_release(all[4], 1) == MC_OK);
    CHECK(mc_join(all[10], MC_FOREVER, &error) == MC_OK && error == MC_OK);
    CHECK(mc_mutex_lock(all[3]) == MC_OK && mc_mutex_unlock(all[3]) == MC_OK);
    CHECK(mc_waitgroup_done(all[5]) == MC_OK && mc_waitgroup_wait(all[5], MC_FOREVER) == MC_OK);
    CHECK(mc_once_call(all[6], nothing, NULL, MC_FOREVER) == MC_OK);
    CHECK(mc_cond_broadcast(all[7]) == MC_OK);
    CHECK(mc_rwlock_write_lock(all[8], MC_FOREVER) == MC_OK && mc_rwlock_write_unlock(all[8]) == MC_OK);
    CHECK(mc_local_set(all[9], &error) == MC_OK && mc_local_get(all[9]) == &error);
    CHECK(mc_group_destroy(all[2]) == MC_OK && mc_scope_destroy(all[1]) == MC_OK);
    CHECK(mc_mutex_destroy(all[3]) == MC_OK && mc_semaphore_destroy(all[4]) == MC_OK);
    CHECK(mc_waitgroup_destroy(all[5]) == MC_OK && mc_once_destroy(all[6]) == MC_OK);
    CHECK(mc_cond_destroy(all[7]) == MC_OK && mc_rwlock_destroy(all[8]) == MC_OK);
    CHECK(mc_local_destroy(all[9]) == MC_OK);
    CHECK(mc_runtime_shutdown(all[0], MC_FOREVER) == MC_OK && mc_runtime_destroy(all[0]) == MC_OK);
}

/* A log hook that says nothing: what is refused in the child is logged. */
static void hush(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code, (void)text;
}

static void child(const uint64_t before[handles]) {
    uint64_t made[handles];
    int i;
    expect(before, MC_E_FORKED);
    CHECK(mc_scope_self() == 0);
    CHECK(csp_init_runtime(2) == 1);
    expect(before, MC_E_STALE);
    make_all(made);
    for (i = 0; i < handles; ++i)
        CHECK(made[i] != before[i]);
    expect(before, MC_E_STALE);
    use_and_end(made);
    csp_shutdown_runtime();
    _exit(0);
}

int main(void) {
    uint64_t made[handles];
    int i;
    if (SANITIZED || getenv("LD_PRELOAD") != NULL)
        return SKIPPED; /* a checker has locks of its own, which may be taken in the child */
    mc_set_log_hook(hush, NULL);
    make_all(made);
    CHECK(mc_mutex_lock(made[3]) == MC_OK); /* held, entered and set across the fork */
    CHECK(mc_scope_enter(made[1]) == MC_OK);
    CHECK(mc_local_set(made[9], made) == MC_OK);
    for (i = 0; i < 20; ++i) {
        int status = -1;
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child(made);
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(mc_scope_self() == made[1] && mc_scope_leave() == MC_OK);
    CHECK(mc_mutex_unlock(made[3]) == MC_OK);
    use_and_end(made);
    return 0;
}
