/* SPDX-License-Identifier: Apache-2.0 */
/* library.c: opens libraries, and visits the loaded ones. A library must have
 * an absolute path, so that neither a search path nor the current directory
 * decides which file is opened. It must not be writable by all users. Errors
 * include the loader's message. */
#include "internal.h"

#include "core/base/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *open_locked(const char *path)
{
    byi_loader_lock();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    byi_loader_unlock();
    return handle;
}

static void close_locked(void *handle)
{
    byi_loader_lock();
    dlclose(handle);
    byi_loader_unlock();
}

int byi_library_walk(int (*visit)(struct dl_phdr_info *info, size_t size,
                                  void *ctx),
                     void *ctx)
{
    byi_loader_lock();
    const int last = dl_iterate_phdr(visit, ctx);
    byi_loader_unlock();
    return last;
}

/* Also checks that the file starts like an ELF file, since dlerror's message
 * for another file does not say so. */
enum byoc_status byi_library_check(const char *path, const char *name,
                                   struct byoc_error *err)
{
    if (path[0] != '/')
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found a relative path, expected an absolute one",
                        name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return byi_fail(
            err, byi_io_status(errno),
            "%s: cannot open it: %s, expected a library that can be read", name,
            strerror(errno));
    struct stat st;
    char magic[4] = "";
    bool is_read = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   read(fd, magic, sizeof magic) == sizeof magic;
    close(fd);
    if (!is_read || memcmp(magic, "\177ELF", sizeof magic) != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: not a shared library, expected an ELF file", name);
    if (st.st_mode & S_IWOTH)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: everybody may write to it, so it is not loaded; "
                        "try chmod o-w",
                        name);
    return BYOC_OK;
}

enum byoc_status byi_library_open(const char *path, const char *name,
                                  void **handle, struct byoc_error *err)
{
    *handle = NULL;
    BYI_TRY(byi_library_check(path, name, err));
    *handle = open_locked(path);
    if (*handle)
        return BYOC_OK;
    const char *why = dlerror();
    return byi_fail(err, BYOC_EBACKEND, "%s: the loader says: %s", name,
                    why ? why : "nothing");
}

void *byi_library_symbol(void *handle, const char *name)
{
    dlerror();
    return dlsym(handle, name);
}

enum byoc_status byoc_internal_library_find(const char *path, const char *name,
                                            void **symbol,
                                            struct byoc_error *err)
{
    void *handle;
    BYI_TRY(byi_library_open(path, path, &handle, err));
    *symbol = byi_library_symbol(handle, name);
    if (*symbol)
        return BYOC_OK;
    byi_library_close(handle);
    return byi_fail(err, BYOC_EBACKEND,
                    "%s: it exports no '%s', expected a function of that name",
                    path, name);
}

void byi_library_close(void *handle)
{
    if (handle)
        close_locked(handle);
}

/* --- libraries in memory -------------------------------------------------- */

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        const ssize_t n_written = write(fd, data, n);
        if (n_written < 0 && errno == EINTR)
            continue;
        if (n_written <= 0)
            return false;
        data += n_written;
        n -= (size_t)n_written;
    }
    return true;
}

enum byoc_status byi_memory_file(const void *data, size_t n, int *fd,
                                 struct byoc_error *err)
{
    *fd = memfd_create("byoc", MFD_CLOEXEC);
    if (*fd >= 0 && fchmod(*fd, 0600) == 0 && write_all(*fd, data, n))
        return BYOC_OK;
    const int why = errno;
    if (*fd >= 0)
        close(*fd);
    return byi_fail(
        err, why == ENOMEM || why == ENOSPC ? BYOC_ENOMEM : BYOC_EIO,
        "cannot put a library of %zu bytes into memory: %s; free memory", n,
        strerror(why));
}

/* The loader identifies a library by the paths it was opened by, and keeps them
 * as long as the library is loaded: if a file was renamed to such a path, or
 * the number of a closed descriptor is used again, it returns the old library.
 * So each call here spells /proc/self/fd/N in another way: it writes the bits
 * of a counter before N, "./" for 0 and "../fd/" for 1. */
static void *open_anew(int fd)
{
    static atomic_ullong calls = 1; /* 0 spells it in the usual way */
    char path[24 + 64 * 6 + 12] = "/proc/self/fd/";
    size_t n = strlen(path);
    for (unsigned long long i = atomic_fetch_add(&calls, 1); i > 0; i >>= 1)
        n += (size_t)snprintf(path + n, sizeof path - n, "%s",
                              i & 1 ? "../fd/" : "./");
    snprintf(path + n, sizeof path - n, "%d", fd);
    return open_locked(path);
}

enum byoc_status byi_library_open_anew(const char *path, const char *name,
                                       void **handle, struct byoc_error *err)
{
    *handle = NULL;
    BYI_TRY(byi_library_check(path, name, err));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot open it: %s; try again", name,
                        strerror(errno));
    *handle = open_anew(fd);
    const char *why = *handle ? NULL : dlerror();
    close(fd);
    if (*handle)
        return BYOC_OK;
    return byi_fail(err, BYOC_EBACKEND, "%s: the loader says: %s", name,
                    why ? why : "nothing");
}

enum byoc_status byoc_internal_library_map(const void *data, size_t n,
                                           struct byi_memory_library *library,
                                           struct byoc_error *err)
{
    int fd;
    *library = (struct byi_memory_library){0};
    BYI_TRY(byi_memory_file(data, n, &fd, err));
    library->handle = open_anew(fd);
    const char *why = library->handle ? NULL : dlerror();
    close(fd);
    if (library->handle)
        return BYOC_OK;
    return byi_fail(err, BYOC_EBACKEND, "the loader says: %s",
                    why ? why : "nothing");
}

byi_unit_fn byoc_internal_library_function(
    const struct byi_memory_library *library, const char *name)
{
    void *symbol = byi_library_symbol(library->handle, name);
    byi_unit_fn function;
    memcpy(&function, &symbol, sizeof function); /* POSIX: data to function */
    return function;
}

void byoc_internal_library_unmap(struct byi_memory_library *library)
{
    if (!library->handle)
        return;
    close_locked(library->handle);
    *library = (struct byi_memory_library){0};
}

bool byi_library_find_folder(char *path, size_t n)
{
    Dl_info info;
    if (!dladdr((const void *)&byi_library_find_folder, &info) ||
        !info.dli_fname || info.dli_fname[0] != '/')
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    size_t len = (size_t)(slash - info.dli_fname);
    if (len + 1 > n)
        return false;
    memcpy(path, info.dli_fname, len);
    path[len] = '\0';
    return true;
}
