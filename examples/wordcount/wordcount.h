/* wordcount.h: the parts of wordcount, and what they hand to each other.
 *
 * wordcount is a pipeline of microthreads. Each arrow is a channel of a few elements, so whoever is ahead waits for
 * whoever is behind and memory stays bounded. What travels is a pointer, and the receiver owns what it points to.
 *
 *     walker ──files──▶ readers ──chunks──▶ counters ──tables──▶ merger
 *       │                │   ▲                 │
 *       │                │   ╰─────spares──────╯      (empty chunks, to be filled again)
 *       ╰───complaints───┴──▶ console                 (the only one that writes to the terminal)
 *
 * The end travels the same way: when all microthreads of a stage have ended, main closes the channel that they fed, and
 * the next stage ends once it has taken what is left. One that fails calls wind_up(), which closes every channel.
 *
 * The microthreads run on all processors at once: what several of them touch is atomic or travels by channel. One that
 * has waited may go on on another thread, and errno belongs to the thread: a compiler may keep its address, so each call
 * whose errno matters sits in a function of its own, which does not wait and is not inlined.
 */
#ifndef WORDCOUNT_H
#define WORDCOUNT_H

#include <mc/mc.h>
#include <stdatomic.h>
#include <stddef.h>

#include "table.h"

#define NEVER_INLINED __attribute__((noinline))

struct dir; /* a directory on the walker's way, see walk.c */

/* A regular file that waits to be read. */
struct file {
    struct dir *dir; /* a reference; NULL: name is relative to the working directory */
    char name[];
};

/* Whole words: text[0, len) ends with a byte that is no letter. Room for size bytes and TABLE_PAD more. */
struct chunk {
    size_t len, size;
    unsigned char text[];
};

struct job {
    /* Immutable while the microthreads work. */
    char *const *dirs;
    unsigned dir_count;
    int on_terminal; /* whether stderr is one */
    int64_t started; /* mc_now() */
    mc_chan_t files, chunks, spares, tables, complaints;

    /* Any microthread. Only figures: relaxed everywhere, because nothing else is read on the strength of them. */
    atomic_uint_fast64_t files_read, files_skipped, bytes_read;
    atomic_uint permille; /* of the tree, walked; an estimate */

    /* Written by one microthread, read by main once it has joined that one. */
    unsigned dirs_missing; /* by the walker: of dirs, how many could not be read at all */
    struct table *total;   /* by the merger */
};

/* What the microthreads run, each with the job as argument. The result is MC_OK or why it gave up. */
int32_t walk(void *job);
int32_t read_files(void *job);
int32_t count_words(void *job);
int32_t merge_tables(void *job);
int32_t run_console(void *job);

/* Every microthread of the job returns through this: one that failed makes all others end soon. MC_E_CLOSED becomes
 * MC_OK, for it means that another one has failed, and has said why. */
int32_t wind_up(struct job *job, int32_t code);

/* Has the console say "wordcount: DIR/NAME: REASON". MC_E_NOMEM, or MC_E_CLOSED when the job is being wound up. */
int32_t complain(struct job *job, struct dir *dir, const char *name, const char *reason);

/* Opens a file for reading and returns its descriptor, or the negative errno. */
int file_open(const struct file *file);
void file_free(struct file *file);

/* The path of name in dir, malloc'ed; NULL when there is no memory. */
char *path_of(const struct dir *dir, const char *name);

/* What the channels do with an element that nobody received. */
void drop_file(void *user, void *elem, uint64_t elem_size);
void drop_chunk(void *user, void *elem, uint64_t elem_size);
void drop_table(void *user, void *elem, uint64_t elem_size);
void drop_complaint(void *user, void *elem, uint64_t elem_size);

#endif /* WORDCOUNT_H */
