/* What the csp_*.c programs share: claims that end the program when they do not hold, and children that are programs of
 * their own. Plain C against libmcrt.so, as a user would write it. */
#ifndef CSP_PROGRAM_H
#define CSP_PROGRAM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <mc/mc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Under a sanitizer memory limits and exact exits mean something else. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { SKIPPED = 77 };

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(left, right)                                                                                          \
    do {                                                                                                               \
        const long long left_ = (long long)(left), right_ = (long long)(right);                                        \
        if (left_ != right_) {                                                                                         \
            fprintf(stderr, "%s:%d: not so: %s == %s: %lld, %lld\n", __FILE__, __LINE__, #left, #right, left_,         \
                    right_);                                                                                           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* A tx for messages that are ints. */
static inline void copy_int(void *source, void *destination) { *(int *)destination = *(int *)source; }

/* Microthreads that never end: one waits for a message that does not come, one sleeps, one computes. */
static inline void blocks(void *reader) {
    csp_recv(reader, NULL);
    CHECK(!"woken");
}
static inline void sleeps(void *data) {
    (void)data;
    csp_sleep_until(mc_after(3600 * MC_SEC));
}
static inline void spins(void *data) {
    (void)data;
    for (;;)
        csp_yield();
}
static inline void spawn_endless(csp_reader r, int each) {
    for (int i = 0; i < each; ++i) {
        CHECK_EQ(csp_spawn(blocks, r), 1);
        CHECK_EQ(csp_spawn(sleeps, NULL), 1);
        CHECK_EQ(csp_spawn(spins, NULL), 1);
    }
}

/* Runs a program in a child and returns its exit status; a signal counts as -1. The library must not be in use yet. */
static inline int run_child(int (*program)(void)) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        exit(program());
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
