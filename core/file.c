/* file.c: files mapped for reading, and files that appear complete or not at
 * all: written under another name in the same folder, then renamed.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum byoc_status map_open(int fd, const char *path, const void **data,
                                 size_t *n, struct byoc_error *err)
{
    struct stat st;
    void *map = NULL;

    if (fstat(fd, &st) != 0)
        return byi_fail(err, BYOC_EIO, "%s: cannot read: %s", path,
                        strerror(errno));
    if (!S_ISREG(st.st_mode))
        return byi_fail(err, BYOC_EIO, "%s: found %s, expected a file", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "a special file");
    if (st.st_size > 0) {
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
            return byi_fail(err, BYOC_EIO, "%s: cannot map %lld bytes: %s",
                            path, (long long)st.st_size, strerror(errno));
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
        return byi_fail(err, BYOC_EIO,
                        "%s: cannot open: %s; expected a file that can be "
                        "read",
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

/* A new file beside `path`; the umask applies, as it would to `path`. */
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

enum byoc_status byi_file_create(const char *path, struct byi_file *file,
                                 struct byoc_error *err)
{
    size_t size = strlen(path) + 64;
    int fd = -1;

    *file = (struct byi_file){.path = strdup(path), .temp = malloc(size)};
    if (!file->path || !file->temp) {
        byi_file_abort(file);
        return byi_fail(err, BYOC_ENOMEM, "%s: out of memory", path);
    }
    fd = open_beside(path, file->temp, size);
    if (fd >= 0)
        file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
            unlink(file->temp);
        }
        free(file->temp);
        file->temp = NULL;
        byi_file_abort(file);
        return byi_fail(err, BYOC_EIO,
                        "%s: cannot create: %s; expected a path in a folder "
                        "that exists and can be written",
                        path, strerror(error));
    }
    return BYOC_OK;
}

enum byoc_status byi_file_commit(struct byi_file *file, struct byoc_error *err)
{
    enum byoc_status status = BYOC_OK;
    bool bad = ferror(file->stream) != 0;

    errno = bad ? EIO : 0;
    bad = fclose(file->stream) != 0 || bad;
    file->stream = NULL;
    if (bad || rename(file->temp, file->path) != 0) {
        status = byi_fail(err, BYOC_EIO, "%s: cannot write: %s", file->path,
                          strerror(errno));
        byi_file_abort(file);
        return status;
    }
    free(file->temp);
    file->temp = NULL;
    byi_file_abort(file);
    return BYOC_OK;
}

void byi_file_abort(struct byi_file *file)
{
    if (file->stream)
        fclose(file->stream);
    if (file->temp)
        unlink(file->temp);
    free(file->temp);
    free(file->path);
    *file = (struct byi_file){0};
}
