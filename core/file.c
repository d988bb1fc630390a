/* file.c: files mapped for reading, and files that appear complete or not at
 * all: written under another name in the same folder, then renamed.
 */
#include "guard.h"

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
            return byi_fail(err, errno == ENOMEM ? BYOC_ENOMEM : BYOC_EIO,
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

/* What a guard removes when memory runs out; byi_file.path is its last member.
 */
struct file_own {
    FILE *stream;
    char *temp;
    char path[];
};

static struct file_own *own_of(const struct byi_file *file)
{
    return (struct file_own *)(void *)(file->path -
                                       offsetof(struct file_own, path));
}

static void end_file(void *data)
{
    struct file_own *own = data;

    if (own->stream)
        fclose(own->stream);
    if (own->temp)
        unlink(own->temp);
    free(own->temp);
    byi_vec_free(own);
}

static enum byoc_status open_stream(struct file_own *own,
                                    struct byoc_error *err)
{
    const size_t size = strlen(own->path) + 64;
    char *temp = malloc(size);
    int fd = -1, error = 0;

    if (!temp)
        return byi_fail(err, BYOC_ENOMEM, "%s: out of memory", own->path);
    fd = open_beside(own->path, temp, size);
    if (fd >= 0) {
        own->temp = temp;
        own->stream = fdopen(fd, "wb");
    }
    if (own->stream)
        return BYOC_OK;
    error = errno;
    if (fd >= 0)
        close(fd);
    else
        free(temp);
    return byi_fail(err, error == ENOMEM ? BYOC_ENOMEM : BYOC_EIO,
                    "%s: cannot create: %s; expected a path in a folder "
                    "that exists and can be written",
                    own->path, strerror(error));
}

enum byoc_status byi_file_create(const char *path, struct byi_file *file,
                                 struct byoc_error *err)
{
    const size_t n = strlen(path) + 1;
    struct file_own *own = byi_own_try(1, sizeof *own + n, end_file);
    enum byoc_status status = BYOC_OK;

    *file = (struct byi_file){0};
    if (!own)
        return byi_fail(err, BYOC_ENOMEM, "%s: out of memory", path);
    memcpy(own->path, path, n);
    status = open_stream(own, err);
    *file = (struct byi_file){own->stream, own->path, own->temp};
    if (status != BYOC_OK)
        byi_file_abort(file);
    return status;
}

enum byoc_status byi_file_commit(struct byi_file *file, struct byoc_error *err)
{
    struct file_own *own = own_of(file);
    enum byoc_status status = BYOC_OK;
    bool bad = ferror(own->stream) != 0;

    errno = bad ? EIO : 0;
    bad = fclose(own->stream) != 0 || bad;
    own->stream = NULL;
    if (bad || rename(own->temp, own->path) != 0) {
        status = byi_fail(err, BYOC_EIO, "%s: cannot write: %s", own->path,
                          strerror(errno));
    } else {
        free(own->temp);
        own->temp = NULL;
    }
    byi_file_abort(file);
    return status;
}

void byi_file_abort(struct byi_file *file)
{
    if (file->path)
        end_file(own_of(file));
    *file = (struct byi_file){0};
}
