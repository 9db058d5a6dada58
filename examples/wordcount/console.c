/* console.c: everything that goes to standard error while the count runs: complaints, and how far it has come.
 *
 * Only the console microthread writes there, so a complaint never lands in the middle of the progress bar. It waits for
 * two things at once, a complaint and the next beat of a clock: csp_prialt takes both kinds of channel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wordcount.h"

enum { BAR_WIDTH = 24 };

static void draw_bar(const struct job *job, int64_t now) {
    static const char full[BAR_WIDTH + 1] = "########################";
    unsigned permille = atomic_load_explicit(&job->permille, memory_order_relaxed);
    double seconds = (double)(now - job->started) / (double)MC_SEC;
    double megabytes = (double)atomic_load_explicit(&job->bytes_read, memory_order_relaxed) / 1e6;
    unsigned long long files = atomic_load_explicit(&job->files_read, memory_order_relaxed);
    fprintf(stderr, "\r[%-*.*s] %3u%%  %llu files  %.0f MB  %.0f MB/s\033[K", BAR_WIDTH,
            (int)(permille * BAR_WIDTH / 1000), full, permille / 10, files, megabytes, megabytes / seconds);
    fflush(stderr);
}

static void say_progress(const struct job *job, int64_t now) {
    unsigned long long files = atomic_load_explicit(&job->files_read, memory_order_relaxed);
    unsigned long long bytes = atomic_load_explicit(&job->bytes_read, memory_order_relaxed);
    fprintf(stderr, "wordcount: %llu files, %llu bytes, %.0f s\n", files, bytes,
            (double)(now - job->started) / (double)MC_SEC);
}

int32_t complain(struct job *job, struct dir *dir, const char *name, const char *reason) {
    char *path = path_of(dir, name);
    size_t len = path != NULL ? strlen(path) + strlen(reason) + sizeof ": " : 0;
    char *text = path != NULL ? malloc(len) : NULL;
    if (text == NULL) {
        free(path);
        return MC_E_NOMEM;
    }
    for (char *byte = path; *byte != '\0'; byte++)
        if ((unsigned char)*byte < ' ' || *byte == 127) /* a name may hold anything, also what a terminal would obey */
            *byte = '?';
    snprintf(text, len, "%s: %s", path, reason);
    free(path);
    int32_t code = mc_send(job->complaints, &text);
    if (code != MC_OK)
        free(text);
    return code;
}

void drop_complaint(void *user, void *elem, uint64_t elem_size) {
    (void)user, (void)elem_size;
    free(*(char **)elem);
}

/* Returns how the wait for complaints ended: -1 is that nobody can send any more and all have been printed. */
static int attend(struct job *job, csp_reader complaints, csp_reader beat) {
    char *text;
    int64_t now;
    csp_chanop const arms[] = {{csp_wait(complaints), &text}, {csp_wait(beat), &now}};
    const char *erase = job->on_terminal ? "\r\033[K" : "";
    int arm;
    while ((arm = csp_prialt(arms, 2, 0)) > 0) {
        if (arm == 1) {
            fprintf(stderr, "%swordcount: %s\n", erase, text);
            free(text);
        } else if (job->on_terminal) {
            draw_bar(job, now);
        } else {
            say_progress(job, now);
        }
    }
    fputs(erase, stderr);
    return arm;
}

int32_t run_console(void *user) {
    struct job *job = user;
    csp_reader complaints = NULL;
    csp_reader beat = csp_tick(job->on_terminal ? 100 * MC_MS : 2 * MC_SEC);
    int32_t code = beat != NULL ? mc_chan_reader(job->complaints, &complaints) : MC_E_NOMEM;
    if (code == MC_OK)
        code = attend(job, complaints, beat);
    csp_reader_release(complaints);
    csp_reader_release(beat);
    return wind_up(job, code == -1 ? MC_OK : code);
}
