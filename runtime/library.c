/* library.c: the one file that calls dlopen. A library is named by its
 * absolute path and nothing else: no search path, no current directory, no
 * file that anybody may rewrite. What the loader said is always passed on.
 */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the file starts as an ELF file does; what dlerror says of others is
 * not helpful. */
enum byoc_status byi_library_check(const char *path, struct byoc_error *err)
{
    if (path[0] != '/')
        return byi_fail(err, BYOC_EINVAL,
                        "%s: a relative path; libraries are loaded by "
                        "absolute path only",
                        path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return byi_fail(err, BYOC_EIO, "%s: %s", path, strerror(errno));
    struct stat st;
    char magic[4] = "";
    bool read_it = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   read(fd, magic, sizeof magic) == sizeof magic;
    close(fd);
    if (!read_it || memcmp(magic, "\177ELF", sizeof magic) != 0)
        return byi_fail(err, BYOC_EPARSE, "%s: not a shared library", path);
    if (st.st_mode & S_IWOTH)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: everybody may write to it, so it is not loaded; "
                        "try chmod o-w",
                        path);
    return BYOC_OK;
}

enum byoc_status byi_library_open(const char *path, void **handle,
                                  struct byoc_error *err)
{
    *handle = NULL;
    BYI_TRY(byi_library_check(path, err));
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle)
        return BYOC_OK;
    const char *why = dlerror();
    return byi_fail(err, BYOC_EBACKEND, "%s: the loader says: %s", path,
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
    BYI_TRY(byi_library_open(path, &handle, err));
    *symbol = byi_library_symbol(handle, name);
    if (*symbol)
        return BYOC_OK;
    byi_library_close(handle);
    return byi_fail(err, BYOC_EBACKEND, "%s: it exports no '%s'", path, name);
}

void byi_library_close(void *handle)
{
    if (handle)
        dlclose(handle);
}

bool byi_library_folder(char *path, size_t n)
{
    Dl_info info;
    if (!dladdr((const void *)&byi_library_folder, &info) || !info.dli_fname ||
        info.dli_fname[0] != '/')
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    size_t len = (size_t)(slash - info.dli_fname);
    if (len + 1 > n)
        return false;
    memcpy(path, info.dli_fname, len);
    path[len] = '\0';
    return true;
}
