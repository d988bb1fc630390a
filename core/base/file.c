/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: maps files for reading, and writes all output files. A regular file
 * appears complete or not at all: it is written under another name in the same
 * folder, synced, then renamed. Character devices, FIFOs and the files that are
 * standard output or error are written directly, as compilers and linkers do;
 * all other special files are refused.
 */
#include "guard.h"
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool byi_path_ends_in(const char *path, const char *suffix)
{
    const size_t n = strlen(path), k = strlen(suffix);
    return n >= k && strcmp(path + n - k, suffix) == 0;
}

static enum byoc_status map_open(int fd, const char *path, const void **data,
                                 size_t *n, struct byoc_error *err)
{
    struct stat st;
    void *map = NULL;

    if (fstat(fd, &st) != 0)
        return byi_fail(err, byi_io_status(errno), "%s: cannot read: %s", path,
                        strerror(errno));
    if (!S_ISREG(st.st_mode))
        return byi_fail(err, BYOC_EIO, "%s: found %s, expected a file", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "a special file");
    if (st.st_size > 0) {
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
            return byi_fail(err, byi_io_status(errno),
                            "%s: cannot map %lld bytes: %s", path,
                            (long long)st.st_size, strerror(errno));
    }
    *data = map;
    *n = (size_t)st.st_size;
    return BYOC_OK;
}

enum byoc_status byi_map_file(const char *path, const void **data, size_t *n,
                              struct byoc_error *err)
{
    /* Opening a FIFO must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum byoc_status status;

    if (fd < 0)
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot open: %s, expected a file that can be read",
                        path, strerror(errno));
    status = map_open(fd, path, data, n, err);
    close(fd);
    return status;
}

void byi_unmap(const void *data, size_t n)
{
    if (data)
        munmap((void *)(uintptr_t)data, n);
}

/* --- the destination of an output ----------------------------------------- */

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISSOCK(mode) ? "a socket"
                            : "a special file";
}

/* The descriptor of standard output or error if it is this file, as for
 * /dev/stdout: writing continues at its offset. Otherwise -1. */
static int standard_stream(const struct stat *st)
{
    struct stat stream;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &stream) == 0 && stream.st_dev == st->st_dev &&
            stream.st_ino == st->st_ino)
            return fd;
    return -1;
}

/* A copy of the path, which the guard frees if a later allocation fails; NULL
 * if this allocation fails. */
static char *copy_path(const char *path)
{
    const size_t n = strlen(path) + 1;
    char *copy = byi_own_try(n, 1, NULL);

    if (copy)
        memcpy(copy, path, n);
    return copy;
}

static enum byoc_status find_existing(const char *path, const struct stat *st,
                                      struct byi_destination *destination,
                                      struct byoc_error *err)
{
    destination->fd = S_ISREG(st->st_mode) ? standard_stream(st) : -1;
    destination->written_directly =
        S_ISCHR(st->st_mode) || S_ISFIFO(st->st_mode) || destination->fd >= 0;
    if (!destination->written_directly && !S_ISREG(st->st_mode))
        return byi_fail(err, BYOC_EIO,
                        "%s: cannot write: found %s, expected a file, or a "
                        "path that does not exist",
                        path, kind_of(st->st_mode));
    destination->mode = st->st_mode & 0777;
    char *resolved =
        destination->written_directly ? NULL : realpath(path, NULL);
    if (!resolved && !destination->written_directly && errno != ENOMEM)
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot resolve the path: %s", path,
                        strerror(errno));
    if (resolved || destination->written_directly)
        destination->path = copy_path(resolved ? resolved : path);
    free(resolved);
    return destination->path
               ? BYOC_OK
               : byi_fail(err, BYOC_ENOMEM, "%s: out of memory", path);
}

enum byoc_status byi_destination_find(const char *path,
                                      struct byi_destination *destination,
                                      struct byoc_error *err)
{
    struct stat st;

    *destination = (struct byi_destination){.fd = -1};
    if (stat(path, &st) == 0)
        return find_existing(path, &st, destination, err);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return byi_fail(err, BYOC_EIO,
                        "%s: cannot write: found a dangling symbolic link; "
                        "remove it, or name another path",
                        path);
    /* creating the file reports other errors */
    destination->path = copy_path(path);
    return destination->path
               ? BYOC_OK
               : byi_fail(err, BYOC_ENOMEM, "%s: out of memory", path);
}

void byi_destination_free(struct byi_destination *destination)
{
    if (destination->path)
        byi_vec_free(destination->path);
    *destination = (struct byi_destination){.fd = -1};
}

/* --- writing -------------------------------------------------------------- */

/* Create a file in the folder of `path`, and write its path to `temp`. The
 * umask applies, as it would to `path`. Returns the descriptor, or -1. */
static int open_beside(const char *path, char *temp, size_t size)
{
    int fd = -1;

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(temp, size, "%s.%ld.%u.part", path, (long)getpid(), i);
        fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    return fd;
}

/* The resources that byi_file_commit and byi_file_abort release. The guard
 * calls end_file if an allocation fails. */
struct byi_file_resources {
    FILE *stream;
    struct byi_destination destination;
    char *temp;             /* the path until the file is renamed; NULL: none */
    struct byi_temp *entry; /* of `temp`; NULL: none */
};

static int open_destination(struct byi_file_resources *resources)
{
    const struct byi_destination *destination = &resources->destination;
    const size_t size = strlen(destination->path) + 64;
    sigset_t before;
    int fd;

    if (destination->fd >= 0) {
        fflush(NULL); /* earlier output of the process comes first */
        return fcntl(destination->fd, F_DUPFD_CLOEXEC, 0);
    }
    if (destination->written_directly)
        return open(destination->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    resources->temp = malloc(size);
    if (!resources->temp)
        return -1;
    byi_temp_hold(&before);
    fd = open_beside(destination->path, resources->temp, size);
    if (fd >= 0)
        resources->entry = byi_temp_path(resources->temp);
    byi_temp_release(&before);
    if (fd >= 0 && destination->mode)
        (void)fchmod(fd, destination->mode); /* of the file that it replaces */
    if (fd < 0) {
        free(resources->temp);
        resources->temp = NULL;
    }
    return fd;
}

static void end_file(void *data)
{
    struct byi_file_resources *resources = data;

    if (resources->stream)
        fclose(resources->stream);
    if (resources->temp)
        unlink(resources->temp);
    byi_temp_done(&resources->entry);
    byi_destination_free(&resources->destination);
    free(resources->temp);
    byi_vec_free(resources);
}

static enum byoc_status open_stream(struct byi_file_resources *resources,
                                    const char *path, struct byoc_error *err)
{
    BYI_TRY(byi_destination_find(path, &resources->destination, err));
    const int fd = open_destination(resources);
    if (fd >= 0)
        resources->stream = fdopen(fd, "wb");
    if (resources->stream)
        return BYOC_OK;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return byi_fail(err, byi_io_status(why),
                    "%s: cannot create: %s, expected a path in a folder that "
                    "exists and can be written",
                    path, strerror(why));
}

enum byoc_status byi_file_create(const char *path, struct byi_file *file,
                                 struct byoc_error *err)
{
    struct byi_file_resources *resources =
        byi_own_try(1, sizeof *resources, end_file);

    *file = (struct byi_file){.stream = NULL};
    if (!resources)
        return byi_fail(err, BYOC_ENOMEM, "%s: out of memory", path);
    resources->destination.fd = -1;
    file->resources = resources;
    const enum byoc_status status = open_stream(resources, path, err);
    file->stream = resources->stream;
    if (status != BYOC_OK)
        byi_file_abort(file);
    return status;
}

/* Whether syncing failed. Files that cannot be synced count as success. */
static bool sync_fails(int fd)
{
    return fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP &&
           errno != EROFS;
}

/* Sync the folder: without this the rename may be lost. */
static bool sync_folder_fails(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool fails = fd >= 0 && sync_fails(fd);

    if (fd >= 0) /* a folder without read permission cannot be opened */
        close(fd);
    free(folder);
    return fails;
}

static bool rename_fails(const char *from,
                         const struct byi_destination *destination)
{
    return rename(from, destination->path) != 0 ||
           sync_folder_fails(destination->path);
}

enum byoc_status byi_file_commit(struct byi_file *file, struct byoc_error *err)
{
    struct byi_file_resources *resources = file->resources;
    enum byoc_status status = BYOC_OK;
    const char *why = NULL;

    /* errno may have changed since an earlier call failed */
    if (ferror(resources->stream))
        why = "an earlier write failed; is the disk full?";
    else if (fflush(resources->stream) != 0 ||
             (!resources->destination.written_directly &&
              sync_fails(fileno(resources->stream))))
        why = strerror(errno);
    if (fclose(resources->stream) != 0 && !why)
        why = strerror(errno);
    resources->stream = NULL;
    if (!why && resources->temp &&
        rename_fails(resources->temp, &resources->destination))
        why = strerror(errno);
    if (why) {
        status = byi_fail(err, BYOC_EIO, "%s: cannot write: %s",
                          resources->destination.path, why);
    } else {
        free(resources->temp);
        resources->temp = NULL;
    }
    byi_file_abort(file);
    return status;
}

void byi_file_abort(struct byi_file *file)
{
    if (file->resources)
        end_file(file->resources);
    *file = (struct byi_file){.stream = NULL};
}

enum byoc_status byi_folder_create(const char *path, struct byoc_error *err)
{
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return BYOC_OK;
    const int why = errno;
    if (why == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return BYOC_OK;
    return byi_fail(err, byi_io_status(why),
                    "%s: cannot create the folder: %s, expected a path in a "
                    "folder that exists and can be written",
                    path, strerror(why));
}

enum byoc_status byi_file_write(const char *path, const void *data, size_t n,
                                struct byoc_error *err)
{
    struct byi_file file;
    BYI_TRY(byi_file_create(path, &file, err));
    if (n)
        fwrite(data, 1, n, file.stream);
    return byi_file_commit(&file, err);
}

static enum byoc_status copy_file(const char *file, const char *path,
                                  struct byoc_error *err)
{
    const void *data;
    size_t n;

    BYI_TRY(byi_map_file(file, &data, &n, err));
    const enum byoc_status status = byi_file_write(path, data, n, err);
    byi_unmap(data, n);
    return status;
}

enum byoc_status byi_file_place(const char *file,
                                const struct byi_destination *destination,
                                struct byoc_error *err)
{
    if (destination->written_directly)
        return copy_file(file, destination->path, err);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    const bool fails =
        fd < 0 || sync_fails(fd) || rename_fails(file, destination);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return fails ? byi_fail(err, byi_io_status(why), "%s: cannot write: %s",
                            destination->path, strerror(why))
                 : BYOC_OK;
}
