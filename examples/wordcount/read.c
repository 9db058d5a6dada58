/* read.c: readers turn files into chunks, counters turn chunks into tables, the merger turns tables into one.
 *
 * A chunk holds whole words, so it does not matter which counter gets it: one huge file keeps all counters busy. To that
 * end a reader cuts a full chunk behind its last byte that is no letter, and starts the next chunk with the rest. A word
 * longer than the chunk makes the chunk grow. Small files share a chunk, with a NUL between them.
 *
 * read() blocks the executor, not just the microthread. That is what the readers are for: one waits for the disk while
 * others count.
 */
#define _DEFAULT_SOURCE /* POSIX */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wordcount.h"

/* All of it stays in the second-level cache between the read and the counting; malloc finds it without a system call. */
enum { CHUNK_TEXT = 64 * 1024 - sizeof(struct chunk) - TABLE_PAD };

/* --- Chunks ---------------------------------------------------------------------------------------------------------- */

/* An empty chunk: one that a counter is done with, or a new one. NULL: no memory. */
static struct chunk *chunk_get(struct job *job) {
    struct chunk *chunk;
    if (mc_recv_try(job->spares, &chunk) != MC_OK && (chunk = malloc(sizeof *chunk + CHUNK_TEXT + TABLE_PAD)) != NULL)
        chunk->size = CHUNK_TEXT;
    if (chunk != NULL)
        chunk->len = 0;
    return chunk;
}

static void chunk_put(struct job *job, struct chunk *chunk) {
    if (chunk->size != CHUNK_TEXT || mc_send_try(job->spares, &chunk) != MC_OK)
        free(chunk);
}

static int chunk_grow(struct chunk **chunk, size_t size) {
    struct chunk *more = realloc(*chunk, sizeof **chunk + size + TABLE_PAD);
    if (more == NULL)
        return 0;
    more->size = size;
    *chunk = more;
    return 1;
}

void drop_chunk(void *user, void *elem, uint64_t elem_size) {
    (void)user, (void)elem_size;
    free(*(struct chunk **)elem);
}

/* --- Reader ---------------------------------------------------------------------------------------------------------- */

struct reader {
    struct job *job;
    struct chunk *chunk; /* being filled; NULL when it was sent and nothing has come since */
};

/* Sends what there is. Success or not, the reader has no chunk after it. */
static int32_t ship(struct reader *r) {
    struct chunk *chunk = r->chunk;
    r->chunk = NULL;
    memset(chunk->text + chunk->len, 0, TABLE_PAD);
    int32_t code = mc_send(r->job->chunks, &chunk);
    if (code != MC_OK)
        free(chunk);
    return code;
}

/* Ships the whole words of a full chunk; what may be the start of a longer word stays, in a new chunk. */
static int32_t ship_whole_words(struct reader *r) {
    struct chunk *full = r->chunk, *next;
    size_t whole = full->len, rest;
    while (whole > 0 && is_letter(full->text[whole - 1]))
        whole--;
    rest = full->len - whole;
    if (whole == 0)
        return chunk_grow(&r->chunk, full->size * 2) ? MC_OK : MC_E_NOMEM;
    if ((next = chunk_get(r->job)) == NULL)
        return MC_E_NOMEM;
    if (rest >= next->size && !chunk_grow(&next, rest * 2)) {
        free(next);
        return MC_E_NOMEM;
    }
    memcpy(next->text, full->text + whole, rest);
    next->len = rest;
    full->len = whole;
    int32_t code = ship(r);
    r->chunk = next;
    return code;
}

/* Makes room for at least one byte. */
static int32_t make_room(struct reader *r) {
    if (r->chunk == NULL)
        return (r->chunk = chunk_get(r->job)) != NULL ? MC_OK : MC_E_NOMEM;
    return r->chunk->len < r->chunk->size ? MC_OK : ship_whole_words(r);
}

/* read(), or the negative errno. */
NEVER_INLINED static ssize_t read_some(int fd, void *into, size_t room) {
    ssize_t got;
    do
        got = read(fd, into, room);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* Reads to the end of the file, wherever that is by then. Stores 0 or the errno of a read that failed. */
static int32_t read_to_end(struct reader *r, int fd, int *error) {
    for (;;) {
        int32_t code = make_room(r);
        if (code != MC_OK)
            return code;
        struct chunk *chunk = r->chunk;
        ssize_t got = read_some(fd, chunk->text + chunk->len, chunk->size - chunk->len);
        *error = got < 0 ? (int)-got : 0;
        if (got <= 0) {
            chunk->text[chunk->len++] = '\0'; /* the file's last word ends here */
            return MC_OK;
        }
        chunk->len += (size_t)got;
        atomic_fetch_add_explicit(&r->job->bytes_read, (uint64_t)got, memory_order_relaxed);
    }
}

static int32_t read_file(struct reader *r, const struct file *file) {
    int fd = file_open(file);
    int error = fd < 0 ? -fd : 0;
    int32_t code = fd < 0 ? MC_OK : read_to_end(r, fd, &error);
    if (fd >= 0)
        close(fd);
    if (code != MC_OK)
        return code;
    if (error == 0) {
        atomic_fetch_add_explicit(&r->job->files_read, 1, memory_order_relaxed);
        return MC_OK;
    }
    atomic_fetch_add_explicit(&r->job->files_skipped, 1, memory_order_relaxed);
    return complain(r->job, file->dir, file->name, strerror(error));
}

int32_t read_files(void *user) {
    struct reader r = {.job = user};
    struct file *file;
    int32_t code;
    while ((code = mc_recv(r.job->files, &file)) == MC_OK) {
        code = read_file(&r, file);
        file_free(file);
        if (code != MC_OK)
            break;
    }
    if (code == MC_E_CLOSED && r.chunk != NULL)
        code = ship(&r);
    free(r.chunk);
    return wind_up(r.job, code);
}

/* --- Counter --------------------------------------------------------------------------------------------------------- */

void drop_table(void *user, void *elem, uint64_t elem_size) {
    (void)user, (void)elem_size;
    table_free(*(struct table **)elem);
}

int32_t count_words(void *user) {
    struct job *job = user;
    struct table *table = table_new();
    struct chunk *chunk;
    int32_t code = table != NULL ? MC_OK : MC_E_NOMEM;
    while (code == MC_OK && (code = mc_recv(job->chunks, &chunk)) == MC_OK) {
        code = table_add_text(table, chunk->text, chunk->len) ? MC_OK : MC_E_NOMEM;
        chunk_put(job, chunk);
    }
    if (code == MC_E_CLOSED && (code = mc_send(job->tables, &table)) == MC_OK)
        return MC_OK; /* the table is the merger's now */
    table_free(table);
    return wind_up(job, code);
}

/* --- Merger ---------------------------------------------------------------------------------------------------------- */

/* Adds the smaller of two tables to the larger, frees the smaller and returns the larger in *total. */
static int32_t merge(struct table **total, struct table *next) {
    if (*total == NULL || (*total)->distinct < next->distinct) {
        struct table *larger = next;
        next = *total;
        *total = larger;
    }
    int ok = next == NULL || table_merge(*total, next);
    table_free(next);
    return ok ? MC_OK : MC_E_NOMEM;
}

int32_t merge_tables(void *user) {
    struct job *job = user;
    struct table *next;
    int32_t code;
    while ((code = mc_recv(job->tables, &next)) == MC_OK)
        if ((code = merge(&job->total, next)) != MC_OK)
            break;
    return wind_up(job, code);
}
