/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: loads artifacts from a path, a file descriptor, or memory. Checks the
 * file first (artifact.c); then the loader maps it, and weights and code are
 * used where the loader mapped them.
 */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/guard.h"

/* An artifact's file: the path by which the loader finds it, and its name in
 * messages. */
struct model_file {
    char path[PATH_MAX];
    const char *name;
};

static enum byoc_status resolve_path(const char *path, struct model_file *file,
                                     struct byoc_error *err)
{
    file->name = path;
    if (realpath(path, file->path))
        return BYOC_OK;
    return byi_fail(err, byi_io_status(errno),
                    "%s: cannot open: %s, expected an artifact that can be "
                    "read",
                    path, strerror(errno));
}

/* Open the artifact with the loader, and find the struct byi_descriptor that is
 * equal to the file's. A model loaded from a file that had this path before may
 * still be in use. The loader then returns the library of that file, so the
 * second attempt opens the file by a path that is new to the loader. */
static enum byoc_status find_descriptor(const struct model_file *file,
                                        const struct byi_artifact *a,
                                        const char *symbol, void **library,
                                        const struct byi_descriptor **d,
                                        struct byoc_error *err)
{
    static enum byoc_status (*const open_by[])(
        const char *path, const char *name, void **handle,
        struct byoc_error *err) = {byi_library_open, byi_library_open_anew};
    for (size_t i = 0; i < BYI_COUNT(open_by); i++) {
        byi_library_close(*library);
        BYI_TRY(open_by[i](file->path, file->name, library, err));
        *d = byi_library_symbol(*library, symbol);
        if (*d && memcmp(*d, a->descriptor, sizeof **d) == 0)
            return BYOC_OK;
    }
    return byi_fail(err, BYOC_EPARSE,
                    "%s: found symbol %.60s %s, expected the file's "
                    "descriptor; was the file edited?",
                    file->name, symbol, *d ? "with other contents" : "missing");
}

/* Let the loader map the artifact, and compare its struct byi_descriptor with
 * the file's. The image then points to the mapped weights, which every process
 * that loads the file shares, and to the mapped code. */
static enum byoc_status map_artifact(const struct model_file *file,
                                     struct byi_artifact *a, void **library,
                                     struct byoc_error *err)
{
    struct byi_image_manifest manifest;
    BYI_BORDER(err);
    struct byi_arena *arena = byi_arena_new();
    enum byoc_status status = byi_manifest_read(
        a->image.manifest, a->image.manifest_bytes, arena, &manifest, err);
    const struct byi_descriptor *d = NULL;
    if (status == BYOC_OK)
        status = find_descriptor(file, a, manifest.symbol, library, &d, err);
    if (status == BYOC_OK && a->image.weights_bytes > 0) {
        a->image.weights = (const char *)d + d->weights;
        a->image.weights_mapped = true;
    }
    if (status == BYOC_OK && a->code_bytes > 0) {
        a->image.code = (const void *)((const char *)d + a->code);
        a->image.code_bytes = a->code_bytes;
    }
    if (status == BYOC_OK && a->units_bytes > 0) {
        a->image.units = (const void *)((const char *)d + a->units);
        a->image.units_bytes = a->units_bytes;
    }
    if (status == BYOC_OK && a->text_bytes > 0) {
        a->image.text = (const char *)d + a->text;
        a->image.text_bytes = a->text_bytes;
    }
    byi_arena_free(&arena);
    return status;
}

enum byoc_status byoc_internal_code_open(const char *path,
                                         struct byi_code_library *code,
                                         struct byoc_error *err)
{
    struct model_file file;
    *code = (struct byi_code_library){0};
    BYI_TRY(resolve_path(path, &file, err));
    BYI_TRY(byoc_internal_artifact_open(path, &code->artifact, err));
    enum byoc_status status =
        map_artifact(&file, &code->artifact, &code->library, err);
    if (status != BYOC_OK)
        byoc_internal_code_close(code);
    return status;
}

void byoc_internal_code_close(struct byi_code_library *code)
{
    byi_library_close(code->library);
    if (code->artifact.map)
        byoc_internal_artifact_close(&code->artifact);
    *code = (struct byi_code_library){0};
}

/* --- public functions ----------------------------------------------------- */

static enum byoc_status load_file(const struct model_file *file,
                                  const struct byoc_load_params *params,
                                  struct byoc_model **model,
                                  struct byoc_error *err)
{
    struct byi_artifact a;
    void *library = NULL;
    BYI_TRY(byi_artifact_open(file->path, file->name, &a, err));
    enum byoc_status status = BYOC_OK;
    if (params->verify && byoc_internal_artifact_verify(&a, err) != BYOC_OK)
        status = byi_prefix(err, "%s", file->name);
    if (status == BYOC_OK)
        status = map_artifact(file, &a, &library, err);
    if (status == BYOC_OK)
        status = byoc_internal_model_open(&a.image, params, model, err);
    if (status != BYOC_OK) {
        byi_library_close(library);
        byoc_internal_artifact_close(&a);
        return status;
    }
    (*model)->artifact = a;
    (*model)->library.handle = library;
    return BYOC_OK;
}

enum byoc_status byoc_model_load(const char *path,
                                 const struct byoc_load_params *params,
                                 struct byoc_model **model,
                                 struct byoc_error *err)
{
    struct byoc_load_params load_params;
    struct model_file file;
    *model = NULL;
    BYI_TRY(byi_load_params_read(&load_params, params, err));
    BYI_TRY(resolve_path(path, &file, err));
    return load_file(&file, &load_params, model, err);
}

/* Load the artifact from the file descriptor `fd`, and close `fd`. */
static enum byoc_status load_fd(int fd, const char *name,
                                const struct byoc_load_params *params,
                                struct byoc_model **model,
                                struct byoc_error *err)
{
    struct model_file file = {.name = name};
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", fd);
    const enum byoc_status status = load_file(&file, params, model, err);
    close(fd);
    return status;
}

enum byoc_status byoc_model_load_fd(int fd,
                                    const struct byoc_load_params *params,
                                    struct byoc_model **model,
                                    struct byoc_error *err)
{
    struct byoc_load_params load_params;
    struct stat st;
    char name[40];
    *model = NULL;
    BYI_TRY(byi_load_params_read(&load_params, params, err));
    snprintf(name, sizeof name, "file descriptor %d", fd);
    const int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (duplicate < 0)
        return byi_fail(err, errno == EBADF ? BYOC_EINVAL : BYOC_EIO,
                        "%s: cannot duplicate it: %s, expected an open file",
                        name, strerror(errno));
    if (fstat(duplicate, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(duplicate);
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found a folder, pipe or device, expected a "
                        "regular file",
                        name);
    }
    return load_fd(duplicate, name, &load_params, model, err);
}

enum byoc_status byoc_model_load_memory(const void *data, uint64_t bytes,
                                        const struct byoc_load_params *params,
                                        struct byoc_model **model,
                                        struct byoc_error *err)
{
    struct byoc_load_params load_params;
    int fd;
    *model = NULL;
    BYI_TRY(byi_load_params_read(&load_params, params, err));
    BYI_TRY(byi_memory_file(data, (size_t)bytes, &fd, err));
    return load_fd(fd, "artifact in memory", &load_params, model, err);
}
