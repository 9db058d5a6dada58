/* check.h: what the programs of this directory share. A program passes with status 0, fails with 1, is skipped with 77. */
#ifndef ABI_TESTS_CHECK_H
#define ABI_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, PATIENCE = 120 /* seconds until a hang is a failure; valgrind is slow */ };

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                                     \
    do {                                                                                                               \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                                    \
        if (actual_ != expected_) {                                                                                    \
            fprintf(stderr, "%s:%d: %s is %lld, not %s (%lld)\n", __FILE__, __LINE__, #actual, actual_, #expected,     \
                    expected_);                                                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Runs body(argument) in a child, so that it has the library to itself; returns the child's exit status, or 1 when a
 * signal ended it, which is said on standard error. */
static inline int in_child(void (*body)(void *), void *argument) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(PATIENCE);
        body(argument);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status))
        fprintf(stderr, "the child was ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* An environment variable that the test runner sets, such as MCRT_LIBRARY; without it the program is skipped. */
static inline const char *from_runner(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "skipped: %s is not set\n", name);
        exit(SKIPPED);
    }
    return value;
}

#endif /* ABI_TESTS_CHECK_H */
