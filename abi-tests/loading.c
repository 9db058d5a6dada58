/* The library can be loaded at run time, in every mode; every name of symbols.txt resolves; it stays loaded when closed;
 * and neither loading nor using it changes anything of the process: no signal disposition or mask, no alternate stack, no
 * thread, no descriptor, nothing in the environment. This program is not linked with the library. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <mc/mc.h>
#include <signal.h>
#include <string.h>

#include "check.h"

extern char **environ;

/* --- What is used --------------------------------------------------------------------------------------------------- */

static struct {
    __typeof__(&mc_spawn) spawn;
    __typeof__(&mc_join) join;
    __typeof__(&mc_after) after;
    __typeof__(&mc_overflow_report) overflow_report;
    __typeof__(&csp_chan) chan;
    __typeof__(&csp_send) send;
    __typeof__(&csp_recv) recv;
    __typeof__(&csp_sleep_until) sleep_until;
    __typeof__(&csp_writer_release) writer_release;
    __typeof__(&csp_reader_release) reader_release;
    __typeof__(&csp__internal__channel_count) channel_count;
} lib;

static void *resolve(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL)
        fprintf(stderr, "%s: %s\n", name, dlerror());
    CHECK(symbol != NULL);
    return symbol;
}

/* POSIX wants a function's address to survive void *; ISO C has no cast for it. */
#define RESOLVE(library, member, name)                                                                                 \
    do {                                                                                                               \
        void *symbol_ = resolve(library, name);                                                                        \
        memcpy(&lib.member, &symbol_, sizeof symbol_);                                                                 \
    } while (0)

static void bind_all(void *library) {
    RESOLVE(library, spawn, "mc_spawn");
    RESOLVE(library, join, "mc_join");
    RESOLVE(library, after, "mc_after");
    RESOLVE(library, overflow_report, "mc_overflow_report");
    RESOLVE(library, chan, "csp_chan");
    RESOLVE(library, send, "csp_send");
    RESOLVE(library, recv, "csp_recv");
    RESOLVE(library, sleep_until, "csp_sleep_until");
    RESOLVE(library, writer_release, "csp_writer_release");
    RESOLVE(library, reader_release, "csp_reader_release");
    RESOLVE(library, channel_count, "csp__internal__channel_count");
}

static void copy_int(void *source, void *target) { *(int *)target = *(int *)source; }

static int32_t send_seven(void *user) {
    int seven = 7;
    lib.sleep_until(lib.after(MC_MS));
    int sent = lib.send(user, &seven);
    lib.writer_release(user);
    return sent;
}

static void use(void) {
    csp_writer writer;
    csp_reader reader;
    mc_task_t task;
    int number = 0;
    int32_t result = 0;
    CHECK_EQ(lib.chan(&writer, &reader, copy_int), 1);
    CHECK_EQ(lib.spawn(0, send_seven, writer, NULL, &task), MC_OK);
    CHECK_EQ(lib.recv(reader, &number), 1);
    CHECK_EQ(number, 7);
    CHECK_EQ(lib.recv(reader, &number), -1);
    CHECK_EQ(lib.join(task, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, 1);
    lib.reader_release(reader);
    CHECK_EQ(lib.channel_count(0) + lib.channel_count(1), 0);
}

/* --- What must stay as it is ------------------------------------------------------------------------------------------ */

struct snapshot {
    struct sigaction actions[64];
    sigset_t mask;
    stack_t alternate;
    int threads, descriptors;
    size_t environment;
    unsigned long environment_sum;
};

static int entries(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void take(struct snapshot *s) {
    memset(s, 0, sizeof *s);
    for (int signal = 1; signal < 64; signal++)
        sigaction(signal, NULL, &s->actions[signal]); /* the two that libc keeps for itself fail, and stay zero */
    CHECK(sigprocmask(SIG_SETMASK, NULL, &s->mask) == 0);
    CHECK(sigaltstack(NULL, &s->alternate) == 0);
    s->threads = entries("/proc/self/task");
    s->descriptors = entries("/proc/self/fd");
    for (char **variable = environ; *variable != NULL; variable++, s->environment++)
        for (const char *c = *variable; *c != '\0'; c++)
            s->environment_sum = s->environment_sum * 31 + (unsigned char)*c;
}

enum { RESTORER = 0x04000000 }; /* SA_RESTORER, which libc sets with every action that it puts back */

static void same_actions(const struct snapshot *before, const struct snapshot *after) {
    for (int signal = 1; signal < 64; signal++) {
        CHECK(before->actions[signal].sa_handler == after->actions[signal].sa_handler);
        CHECK_EQ(before->actions[signal].sa_flags & ~RESTORER, after->actions[signal].sa_flags & ~RESTORER);
        for (int blocked = 1; blocked < 64; blocked++) /* not memcmp: libc fills a part of its sets only */
            CHECK_EQ(sigismember(&before->actions[signal].sa_mask, blocked),
                     sigismember(&after->actions[signal].sa_mask, blocked));
    }
}

static void same(const struct snapshot *before, const struct snapshot *after) {
    same_actions(before, after);
    for (int signal = 1; signal < 64; signal++)
        CHECK_EQ(sigismember(&before->mask, signal), sigismember(&after->mask, signal));
    CHECK(before->alternate.ss_sp == after->alternate.ss_sp && before->alternate.ss_flags == after->alternate.ss_flags);
    CHECK_EQ(before->threads, after->threads);
    CHECK_EQ(before->descriptors, after->descriptors);
    CHECK_EQ(before->environment, after->environment);
    CHECK_EQ(before->environment_sum, after->environment_sum);
}

/* --- The tests -------------------------------------------------------------------------------------------------------- */

static int is_libmcrt(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size, (void)user;
    return strstr(info->dlpi_name, "libmcrt") != NULL;
}

/* symbols.txt: NAME@NODE, a line each. */
static void resolve_all(void *library) {
    char path[4096], line[256];
    int count = 0;
    snprintf(path, sizeof path, "%s/abi-tests/symbols.txt", from_runner("MCRT_SOURCE_DIR"));
    FILE *list = fopen(path, "r");
    CHECK(list != NULL);
    while (fgets(line, sizeof line, list) != NULL) {
        char *node = strchr(line, '@');
        CHECK(node != NULL);
        *node++ = '\0';
        node[strcspn(node, "\n")] = '\0';
        CHECK(dlvsym(library, line, node) == resolve(library, line));
        count++;
    }
    fclose(list);
    CHECK(count > 50);
}

static void in_mode(void *mode) {
    const char *path = from_runner("MCRT_LIBRARY");
    struct snapshot before, loaded, used;
    take(&before);
    void *library = dlopen(path, *(int *)mode);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    take(&loaded);
    same(&before, &loaded);

    bind_all(library);
    resolve_all(library);
    CHECK((dlsym(RTLD_DEFAULT, "mc_spawn") != NULL) == ((*(int *)mode & RTLD_GLOBAL) != 0));
    use();
    take(&used);
    same(&before, &used);

    /* It stays: threads and destructors of the host may still run its code. */
    void *spawn = resolve(library, "mc_spawn");
    CHECK_EQ(dlclose(library), 0);
    use();
    void *again = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    CHECK(again != NULL);
    CHECK(resolve(again, "mc_spawn") == spawn);
    use();
    CHECK_EQ(dlclose(again), 0);
    again = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    CHECK(again != NULL);
    use();
    CHECK_EQ(dlclose(again), 0);
}

/* Two handlers come and go by request; what was there before is there again. */
static void overflow_report(void *unused) {
    (void)unused;
    struct snapshot before, after;
    void *library = dlopen(from_runner("MCRT_LIBRARY"), RTLD_NOW);
    CHECK(library != NULL);
    bind_all(library);
    take(&before);
    CHECK_EQ(lib.overflow_report(1), MC_OK);
    take(&after);
    CHECK(before.actions[SIGSEGV].sa_handler != after.actions[SIGSEGV].sa_handler);
    CHECK(before.actions[SIGBUS].sa_handler != after.actions[SIGBUS].sa_handler);
    use();
    CHECK_EQ(lib.overflow_report(0), MC_OK);
    take(&after);
    same_actions(&before, &after);
}

int main(void) {
    static int modes[] = {RTLD_NOW | RTLD_LOCAL, RTLD_NOW | RTLD_GLOBAL, RTLD_LAZY | RTLD_LOCAL,
                          RTLD_LAZY | RTLD_GLOBAL};
    from_runner("MCRT_LIBRARY");
    CHECK(dl_iterate_phdr(is_libmcrt, NULL) == 0); /* linked in, it would be loaded before anything is looked at */
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        CHECK_EQ(in_child(in_mode, &modes[i]), 0);
    CHECK_EQ(in_child(overflow_report, NULL), 0);
    return 0;
}
