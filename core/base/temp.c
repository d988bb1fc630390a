/* SPDX-License-Identifier: Apache-2.0 */
/* temp.c: creates temporary files and child processes, and lists them, so that
 * an interrupt leaves none behind. The list has a fixed size and is changed by
 * single atomic operations only, so that a signal handler may read it at any
 * moment.
 */
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An entry of the list: a path, or a child process. */
struct byi_temp {
    /* a forked child inherits the list, but does not own its entries */
    pid_t owner;
    pid_t child; /* as for kill(); 0: a path                         */
    char path[]; /* a file, or a folder with all that is in it       */
};

enum { MAX_TEMPS = 256 };
static _Atomic(struct byi_temp *) temps[MAX_TEMPS];

/* Put the entry on the list; frees it and returns NULL if the list is full. */
static struct byi_temp *add_entry(struct byi_temp *temp)
{
    for (size_t i = 0; temp && i < MAX_TEMPS; i++) {
        struct byi_temp *empty = NULL;
        if (atomic_compare_exchange_strong(&temps[i], &empty, temp))
            return temp;
    }
    free(temp);
    return NULL;
}

struct byi_temp *byi_temp_path(const char *path)
{
    char folder[4096] = "";
    struct byi_temp *temp;
    size_t n;

    if (path[0] != '/' && !getcwd(folder, sizeof folder - 1))
        return NULL;
    if (*folder)
        strcat(folder, "/");
    n = strlen(folder) + strlen(path) + 1;
    temp = byi_alloc(1, sizeof *temp + n);
    if (!temp)
        return NULL;
    temp->owner = getpid();
    snprintf(temp->path, n, "%s%s", folder, path);
    return add_entry(temp);
}

struct byi_temp *byi_temp_child(pid_t child)
{
    struct byi_temp *temp = byi_alloc(1, sizeof *temp + 1);

    if (!temp)
        return NULL;
    temp->owner = getpid();
    temp->child = child;
    return add_entry(temp);
}

void byi_temp_done(struct byi_temp **temp)
{
    struct byi_temp *t = *temp;

    *temp = NULL;
    for (size_t i = 0; t && i < MAX_TEMPS; i++) {
        struct byi_temp *expected = t;
        if (atomic_compare_exchange_strong(&temps[i], &expected, NULL)) {
            free(t);
            return;
        }
    }
    /* not found: byi_temp_clear removed the entry from the list, but did not
     * free it, since a signal handler cannot */
}

void byi_temp_hold(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void byi_temp_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool byi_temp_folder(char *name, struct byi_temp **temp)
{
    sigset_t before;

    byi_temp_hold(&before);
    const bool created = mkdtemp(name) != NULL;
    const int why = errno;
    *temp = created ? byi_temp_path(name) : NULL;
    byi_temp_release(&before);
    errno = why;
    return created;
}

pid_t byi_temp_fork(bool group, struct byi_temp **temp)
{
    sigset_t before;

    *temp = NULL;
    byi_temp_hold(&before);
    const pid_t child = fork();
    if (group && child >= 0)
        setpgid(child, 0); /* both processes do, since either may run first */
    if (child > 0)
        *temp = byi_temp_child(group ? -child : child);
    byi_temp_release(&before);
    return child;
}

/* --- in a signal handler: system calls only ------------------------------- */

struct temp_entry { /* getdents64(2) */
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Remove the content of a temporary folder: files, and folders nested at most
 * `depth` deep. */
static void empty_folder(int folder, int depth)
{
    _Alignas(struct temp_entry) char list[2048];
    long n;

    while ((n = syscall(SYS_getdents64, folder, list, sizeof list)) > 0)
        for (long at = 0; at < n;) {
            const struct temp_entry *e = (const struct temp_entry *)(list + at);
            at += e->length;
            if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0 ||
                unlinkat(folder, e->name, 0) == 0 || depth == 0)
                continue;
            int inner = openat(folder, e->name,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (inner < 0)
                continue;
            empty_folder(inner, depth - 1);
            close(inner);
            unlinkat(folder, e->name, AT_REMOVEDIR);
        }
}

static void remove_path(const char *path)
{
    enum { DEPTH = 2 };
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder < 0) {
        unlink(path);
        return;
    }
    empty_folder(folder, DEPTH);
    close(folder);
    rmdir(path);
}

/* Ask a child to end, and kill it after half a second: compilers remove their
 * own files when asked. */
static void end_child(pid_t child)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    kill(child, SIGTERM);
    for (int i = 0; i < 250; i++) {
        if (kill(child, 0) != 0)
            return;
        waitpid(child, NULL, WNOHANG);
        nanosleep(&moment, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

void byi_temp_clear(void)
{
    const int before = errno;
    const pid_t self = getpid();

    for (int children = 1; children >= 0; children--)
        for (size_t i = 0; i < MAX_TEMPS; i++) {
            struct byi_temp *t = atomic_load(&temps[i]);
            if (!t || t->owner != self || (t->child != 0) != children ||
                !atomic_compare_exchange_strong(&temps[i], &t, NULL))
                continue;
            if (children)
                end_child(t->child);
            else
                remove_path(t->path);
        }
    errno = before;
}
