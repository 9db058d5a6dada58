/* walk.c: finds the files, in the order and with the rules of `find -L DIR... -type f`.
 *
 * One microthread walks. It has no recursion, so that its stack is small however deep the tree: the way from the root to
 * where it stands is a chain of struct dir, each with the entries that are still to be visited.
 *
 * Everything is opened relative to its directory's descriptor: paths have a length limit, trees have none. Therefore a
 * file that is on its way to a reader holds its directory, and the last to let go of a directory closes it.
 */
#define _DEFAULT_SOURCE /* POSIX, and DT_* */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wordcount.h"

struct dir {
    /* Immutable once entered. */
    struct dir *parent; /* a reference; NULL at the top */
    int fd;
    dev_t dev;
    ino_t ino;

    /* Walker only. */
    char *entries;  /* one after another: a DT_* byte, the name, a NUL */
    size_t at, len; /* in entries: the next to visit, the end */
    double share;   /* of the tree, that one of the entries stands for */

    /* Any microthread (atomic). */
    atomic_uint refs; /* the walker while it is here or below, each file and each directory in it */

    char name[];
};

struct walk {
    struct job *job;
    struct dir *here; /* NULL: above all DIRs, in the working directory */
    double done;      /* 0 to 1, how much of the tree lies behind us */
};

/* --- References ------------------------------------------------------------------------------------------------------ */

static struct dir *dir_hold(struct dir *dir) {
    if (dir != NULL)
        atomic_fetch_add_explicit(&dir->refs, 1, memory_order_relaxed); /* the caller holds one already */
    return dir;
}

static void dir_release(struct dir *dir) {
    /* acq_rel: the release pairs with the acquire of whoever lets go last, so that every use comes before the close. */
    while (dir != NULL && atomic_fetch_sub_explicit(&dir->refs, 1, memory_order_acq_rel) == 1) {
        struct dir *parent = dir->parent;
        if (dir->fd >= 0)
            close(dir->fd);
        free(dir->entries);
        free(dir);
        dir = parent;
    }
}

void file_free(struct file *file) {
    dir_release(file->dir);
    free(file);
}

void drop_file(void *user, void *elem, uint64_t elem_size) {
    (void)user, (void)elem_size;
    file_free(*(struct file **)elem);
}

static int fd_of(const struct dir *dir) { return dir == NULL ? AT_FDCWD : dir->fd; }

/* O_NONBLOCK: what was a file when it was listed may be a pipe by now, and opening it would wait for a writer. */
NEVER_INLINED int file_open(const struct file *file) {
    struct stat st;
    int fd = openat(fd_of(file->dir), file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return -ESTALE;
}

char *path_of(const struct dir *dir, const char *name) {
    size_t len = strlen(name);
    for (const struct dir *d = dir; d != NULL; d = d->parent)
        len += strlen(d->name) + 1;
    char *path = malloc(len + 1), *end = path + len;
    if (path == NULL)
        return NULL;
    *end = '\0';
    for (;; name = dir->name, dir = dir->parent) { /* from the end; a DIR given with a slash gets no second one */
        size_t part = strlen(name);
        memcpy(end -= part, name, part);
        if (dir == NULL)
            break;
        if (dir->name[strlen(dir->name) - 1] != '/')
            *--end = '/';
    }
    memmove(path, end, (size_t)(path + len - end) + 1);
    return path;
}

/* --- Visiting -------------------------------------------------------------------------------------------------------- */

static void advance(struct walk *w, double share) {
    w->done += share;
    atomic_store_explicit(&w->job->permille, (unsigned)(w->done * 1000), memory_order_relaxed);
}

static double share_of_entry(const struct walk *w) {
    return w->here != NULL ? w->here->share : 1.0 / w->job->dir_count;
}

/* Names what could not be visited. */
static int32_t refuse(struct walk *w, const char *name, const char *reason) {
    if (w->here == NULL)
        w->job->dirs_missing++;
    advance(w, share_of_entry(w));
    return complain(w->job, w->here, name, reason);
}

static int32_t hand_over(struct walk *w, const char *name) {
    struct file *file = malloc(sizeof *file + strlen(name) + 1);
    if (file == NULL)
        return MC_E_NOMEM;
    file->dir = dir_hold(w->here);
    strcpy(file->name, name);
    int32_t code = mc_send(w->job->files, &file);
    if (code != MC_OK)
        file_free(file); /* a send that fails leaves the element with the sender */
    advance(w, share_of_entry(w));
    return code;
}

/* Reads all entries of dir at once: then their number is known, and the stream need not stay open on the way down.
 * Returns 0 or an errno; on an error in the middle what was read stays. */
NEVER_INLINED static int list(struct dir *dir, size_t *count) {
    size_t room = 0;
    int fd = dup(dir->fd);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    int error = stream != NULL ? 0 : errno;
    while (error == 0) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        size_t need = dir->len + strlen(entry->d_name) + 2;
        if (need > room) {
            char *more = realloc(dir->entries, room = need * 2);
            if (more == NULL) {
                error = ENOMEM;
                break;
            }
            dir->entries = more;
        }
        dir->entries[dir->len] = (char)entry->d_type;
        strcpy(dir->entries + dir->len + 1, entry->d_name);
        dir->len = need;
        ++*count;
    }
    if (stream != NULL)
        closedir(stream);
    else if (fd >= 0)
        close(fd);
    return error;
}

/* A symbolic link can lead back to a directory that we are in. */
static int is_loop(const struct dir *dir) {
    for (const struct dir *above = dir->parent; above != NULL; above = above->parent)
        if (above->dev == dir->dev && above->ino == dir->ino)
            return 1;
    return 0;
}

/* Opens dir, and says which one it is. Returns 0 or an errno. */
NEVER_INLINED static int open_dir(struct dir *dir) {
    struct stat st;
    dir->fd = openat(fd_of(dir->parent), dir->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
    if (dir->fd < 0 || fstat(dir->fd, &st) != 0)
        return errno;
    dir->dev = st.st_dev;
    dir->ino = st.st_ino;
    return 0;
}

static int32_t enter(struct walk *w, const char *name) {
    size_t count = 0;
    double share = share_of_entry(w);
    struct dir *dir = calloc(1, sizeof *dir + strlen(name) + 1);
    if (dir == NULL)
        return MC_E_NOMEM;
    strcpy(dir->name, name);
    dir->parent = dir_hold(w->here);
    atomic_init(&dir->refs, 1);
    int error = open_dir(dir);
    if (error == 0) {
        if (is_loop(dir)) {
            dir_release(dir);
            return refuse(w, name, "leads back to a directory above it, not entered");
        }
        error = list(dir, &count);
    }
    if (error == ENOMEM || (error != 0 && count == 0)) {
        dir_release(dir);
        return error == ENOMEM ? MC_E_NOMEM : refuse(w, name, strerror(error));
    }
    dir->share = count != 0 ? share / (double)count : 0;
    if (count == 0)
        advance(w, share);
    w->here = dir;
    return error == 0 ? MC_OK : complain(w->job, dir->parent, name, strerror(error));
}

static void leave(struct walk *w) {
    struct dir *dir = w->here;
    w->here = dir->parent;
    dir_release(dir);
}

/* What the entry is, links followed: DT_REG, DT_DIR, or DT_UNKNOWN and an errno, 0 when it is something else. */
NEVER_INLINED static unsigned char type_of(const struct walk *w, const char *name, unsigned char type, int *error) {
    struct stat st;
    *error = 0;
    if (type == DT_REG || type == DT_DIR || (type != DT_LNK && type != DT_UNKNOWN))
        return type == DT_REG || type == DT_DIR ? type : DT_UNKNOWN;
    if (fstatat(fd_of(w->here), name, &st, 0) != 0) {
        *error = errno;
        return DT_UNKNOWN;
    }
    return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

static int32_t visit(struct walk *w, const char *name, unsigned char type) {
    int error;
    switch (type_of(w, name, type, &error)) {
    case DT_REG:
        return hand_over(w, name);
    case DT_DIR:
        return enter(w, name);
    default:
        /* A link that leads nowhere is no error, as little as a socket is; but a DIR that was asked for is. */
        if (error != 0 && (error != ENOENT || w->here == NULL))
            return refuse(w, name, strerror(error));
        advance(w, share_of_entry(w));
        return MC_OK;
    }
}

static int32_t walk_from(struct walk *w, const char *dir) {
    int32_t code = visit(w, dir, DT_UNKNOWN);
    while (code == MC_OK && w->here != NULL) {
        struct dir *here = w->here;
        if (here->at == here->len) {
            leave(w);
            continue;
        }
        const char *entry = here->entries + here->at;
        here->at += strlen(entry + 1) + 2;
        code = visit(w, entry + 1, (unsigned char)entry[0]);
    }
    while (w->here != NULL)
        leave(w);
    return code;
}

int32_t walk(void *user) {
    struct job *job = user;
    struct walk w = {.job = job};
    int32_t code = MC_OK;
    for (unsigned i = 0; i < job->dir_count && code == MC_OK; i++)
        code = walk_from(&w, job->dirs[i]);
    return wind_up(job, code);
}
