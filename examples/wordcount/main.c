/* wordcount: counts the words of all files below some directories, as an example of what libmcrt is for.
 *
 *     wordcount [-j N] [DIR...]
 *
 * counts over everything that `find -L DIR... -type f` lists (DIR: the working directory when none is given). A word is a
 * maximal run of the bytes A-Z and a-z, and is counted in lower case. Standard output gets the 20 most frequent words as
 * `COUNT WORD`, two lines of speed, and last
 *
 *     total WORDS distinct N files N bytes N skipped N
 *
 * What cannot be read, or is gone by the time it is to be read, is named on standard error and does not stop the count;
 * skipped says how many files that were. -j N: N readers and N counters instead of one a processor.
 *
 * Exit status: 0 when all was counted but what was skipped; 1 when a DIR could not be read at all (the others are counted
 * nevertheless), when there was no memory, or when the output could not be written; 2 for a command line that is wrong.
 *
 * This file sets up the pipeline that wordcount.h draws, waits for it, and reports.
 */
#define _DEFAULT_SOURCE /* POSIX */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "wordcount.h"

enum { TOP = 20, MAX_WORKERS = 64, STACK = 64 * 1024 };

/* A stage of the pipeline: some microthreads that do the same, and the channel that they feed. */
struct stage {
    const char *role;
    mc_task_fn work;
    unsigned size;
    int32_t result;    /* MC_OK, or why the first that failed did */
    mc_chan_t *output; /* closed when the last of them has ended; NULL: none */
    mc_task_t members[MAX_WORKERS];
};

/* --- The job --------------------------------------------------------------------------------------------------------- */

int32_t wind_up(struct job *job, int32_t code) {
    if (code == MC_OK || code == MC_E_CLOSED)
        return MC_OK;
    mc_chan_close(job->files);
    mc_chan_close(job->chunks);
    mc_chan_close(job->tables);
    mc_chan_close(job->complaints);
    return code;
}

static int32_t open_channels(struct job *job, unsigned workers) {
    const uint32_t pointer = sizeof(void *);
    int32_t code = mc_chan_create(0, pointer, 64, drop_file, NULL, &job->files);
    if (code == MC_OK)
        code = mc_chan_create(0, pointer, 2 * workers, drop_chunk, NULL, &job->chunks);
    if (code == MC_OK)
        code = mc_chan_create(0, pointer, 4 * workers, drop_chunk, NULL, &job->spares);
    if (code == MC_OK)
        code = mc_chan_create(0, pointer, workers, drop_table, NULL, &job->tables);
    if (code == MC_OK)
        code = mc_chan_create(0, pointer, 16, drop_complaint, NULL, &job->complaints);
    return code;
}

/* What is still in a channel, its drop function frees. A handle that is 0 is only refused. */
static void destroy_channels(struct job *job) {
    mc_chan_destroy(job->files);
    mc_chan_destroy(job->chunks);
    mc_chan_destroy(job->spares);
    mc_chan_destroy(job->tables);
    mc_chan_destroy(job->complaints);
}

/* --- The crew -------------------------------------------------------------------------------------------------------- */

static int32_t start(struct job *job, struct stage *stage) {
    for (unsigned i = 0; i < stage->size && stage->result == MC_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s %u", stage->role, i + 1);
        mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
        options.name = name;
        options.stack_size = STACK; /* they call printf */
        stage->result = mc_spawn(0, stage->work, job, &options, &stage->members[i]);
    }
    return stage->result;
}

/* Waits for all members that were started, and tells the next stage that no more will come. */
static void finish(struct stage *stage) {
    for (unsigned i = 0; i < stage->size && stage->members[i] != 0; i++) {
        int32_t result = MC_OK;
        int32_t code = mc_join(stage->members[i], MC_FOREVER, &result);
        if (stage->result == MC_OK)
            stage->result = code != MC_OK ? code : result;
    }
    if (stage->output != NULL)
        mc_chan_close(*stage->output);
}

static void explain(const char *what, int32_t code) { fprintf(stderr, "wordcount: %s: %s\n", what, mc_strerror(code)); }

/* Runs the pipeline to its end; returns whether all went well. Stages are started from the last to the first: when one
 * cannot be, those behind it wait for nothing but the end, which comes to them as it always does. */
static int run(struct job *job, unsigned workers) {
    struct stage stages[] = {
        {"walker", walk, 1, MC_OK, &job->files, {0}},
        {"reader", read_files, workers, MC_OK, &job->chunks, {0}},
        {"counter", count_words, workers, MC_OK, &job->tables, {0}},
        {"merger", merge_tables, 1, MC_OK, &job->complaints, {0}},
        {"console", run_console, 1, MC_OK, NULL, {0}},
    };
    const size_t count = sizeof stages / sizeof *stages;
    int ok = 1;
    for (size_t i = count; i-- > 0 && start(job, &stages[i]) == MC_OK;)
        continue;
    for (size_t i = 0; i < count; i++)
        finish(&stages[i]);
    for (size_t i = 0; i < count; i++) {
        if (stages[i].result != MC_OK)
            explain(stages[i].role, stages[i].result);
        ok = ok && stages[i].result == MC_OK;
    }
    return ok;
}

/* --- The report ------------------------------------------------------------------------------------------------------ */

static void report(const struct job *job, double seconds) {
    const struct slot *top[TOP];
    size_t found = table_top(job->total, top, TOP);
    for (size_t i = 0; i < found; i++) {
        printf("%llu ", (unsigned long long)top[i]->count);
        slot_print(top[i], stdout);
        putchar('\n');
    }
    unsigned long long files = atomic_load(&job->files_read), bytes = atomic_load(&job->bytes_read);
    printf("%.0f files/s\n%.0f bytes/s\n", (double)files / seconds, (double)bytes / seconds);
    printf("total %llu distinct %llu files %llu bytes %llu skipped %llu\n", (unsigned long long)job->total->words,
           (unsigned long long)job->total->distinct, files, bytes,
           (unsigned long long)atomic_load(&job->files_skipped));
}

/* Every directory on the way down is open; let there be as many as may be. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A library that kept channels of ours would be wrong, and so would we, had we kept some. */
static int leaves_channels(void) {
    int writers = csp__internal__channel_count(0), readers = csp__internal__channel_count(1);
    if (writers != 0 || readers != 0)
        fprintf(stderr, "wordcount: %d writers and %d readers were never released\n", writers, readers);
    return writers != 0 || readers != 0;
}

static int count(char *const *dirs, unsigned dir_count, unsigned workers) {
    struct job job = {.dirs = dirs, .dir_count = dir_count, .on_terminal = isatty(STDERR_FILENO), .started = mc_now()};
    int failed = 1;
    csp_init_runtime(0); /* an executor for each processor; should there be none, this thread runs all */
    int32_t code = open_channels(&job, workers);
    if (code != MC_OK)
        explain("channel", code);
    else if (run(&job, workers)) {
        report(&job, (double)(mc_now() - job.started + 1) / (double)MC_SEC);
        failed = job.dirs_missing != 0;
        if (fflush(stdout) != 0 || ferror(stdout)) {
            perror("wordcount: standard output");
            failed = 1;
        }
    }
    table_free(job.total);
    destroy_channels(&job);
    csp_shutdown_runtime();
    return leaves_channels() || failed;
}

static int usage(void) {
    fprintf(stderr,
            "usage: wordcount [-j N] [DIR...]\n"
            "Counts the words of all files below DIRs, links followed. -j N: N readers and N counters, 1 to %d.\n",
            MAX_WORKERS);
    return 2;
}

int main(int argc, char **argv) {
    static char *here[] = {"."};
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    workers = workers < 1 ? 1 : workers > MAX_WORKERS ? MAX_WORKERS : workers;
    for (int option; (option = getopt(argc, argv, "j:")) != -1;) {
        char *end = NULL;
        if (option == 'j')
            workers = strtol(optarg, &end, 10);
        if (end == NULL || end == optarg || *end != '\0' || workers < 1 || workers > MAX_WORKERS)
            return usage();
    }
    raise_descriptor_limit();
    if (optind == argc)
        return count(here, 1, (unsigned)workers);
    return count(argv + optind, (unsigned)(argc - optind), (unsigned)workers);
}
