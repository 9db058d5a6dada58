/* Signals stay the program's: the library installs no handler unasked, none of its threads takes an asynchronous signal, and
 * no call of it changes errno. */
#define _GNU_SOURCE
#include "csp_program.h"

#include <dirent.h>
#include <errno.h>
#include <mc/mc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t taken;
static pthread_t taker;

static void take(int number) {
    (void)number;
    taken = pthread_equal(pthread_self(), taker) ? 1 : 2;
}

static int32_t linger(void *user) {
    (void)user;
    usleep(50000);
    return 0;
}

static int32_t call(void *user) {
    (void)user;
    return mc_blocking_call(linger, NULL, NULL);
}

/* Every thread but this one blocks what may come from outside. Returns how many there are. */
static int look_at_masks(void) {
    int others = 0;
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    CHECK(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        char path[320];
        char line[256];
        unsigned long long blocked = 0;
        FILE *file;
        if (entry->d_name[0] == '.' || atol(entry->d_name) == (long)syscall(SYS_gettid))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue; /* it has ended */
        while (fgets(line, sizeof line, file) != NULL)
            (void)sscanf(line, "SigBlk: %llx", &blocked);
        fclose(file);
        if (SANITIZED && (blocked >> (SIGSEGV - 1) & 1) != 0)
            continue; /* the checker's own */
        CHECK((blocked >> (SIGINT - 1) & 1) != 0 && (blocked >> (SIGUSR1 - 1) & 1) != 0);
        CHECK((blocked >> (SIGTERM - 1) & 1) != 0 && (blocked >> (SIGCHLD - 1) & 1) != 0);
        CHECK((blocked >> (SIGSEGV - 1) & 1) == 0); /* what a thread does to itself is its own */
        ++others;
    }
    closedir(directory);
    return others;
}

static void note_dispositions(struct sigaction all[NSIG]) {
    int i;
    memset(all, 0, sizeof(struct sigaction) * NSIG);
    for (i = 1; i < NSIG; ++i)
        (void)sigaction(i, NULL, &all[i]);
}

int main(void) {
    static struct sigaction before[NSIG], after[NSIG];
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    struct sigaction action;
    mc_runtime_t rt = 0;
    mc_task_t task = 0;
    int i;

    note_dispositions(before);
    options.executors = 2;
    errno = 1234;
    CHECK(mc_runtime_create(&options, &rt) == MC_OK && mc_runtime_start(rt) == MC_OK);
    CHECK(csp_init_runtime(2) == 1);
    CHECK(mc_spawn(rt, call, NULL, NULL, &task) == MC_OK);
    CHECK(mc_sleep(5 * MC_MS) == MC_OK);
    CHECK(errno == 1234);
    CHECK(look_at_masks() >= 4);
    note_dispositions(after);
    for (i = 1; i < NSIG; ++i)
        CHECK(before[i].sa_handler == after[i].sa_handler && before[i].sa_flags == after[i].sa_flags);

    memset(&action, 0, sizeof action);
    action.sa_handler = take;
    taker = pthread_self();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (i = 0; i < 50; ++i) { /* to the process, while the library waits on its threads and on ours */
        taken = 0;
        CHECK(kill(getpid(), SIGUSR1) == 0);
        CHECK(mc_sleep(MC_MS / 5) == MC_OK);
        while (taken == 0)
            CHECK(mc_sleep(MC_MS / 5) == MC_OK);
        CHECK(taken == 1);
    }
    errno = 4321;
    CHECK(mc_join(task, MC_FOREVER, NULL) == MC_OK);
    CHECK(mc_runtime_wait_quiescent(rt, MC_FOREVER) == MC_OK);
    CHECK(mc_runtime_shutdown(rt, MC_FOREVER) == MC_OK && mc_runtime_destroy(rt) == MC_OK);
    csp_shutdown_runtime();
    CHECK(errno == 4321);
    return 0;
}
