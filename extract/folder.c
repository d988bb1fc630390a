/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c: writes an extracted program and its tensors to a folder. */
#include "extract.h"

#include "core/base/temp.h"
#include "interp/interp.h"
#include "npy/npy.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH_BYTES = 4096 };

static enum byoc_status write_text(const char *folder, const char *name,
                                   const struct byi_text *text,
                                   struct byoc_error *err)
{
    char path[MAX_PATH_BYTES + 40];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return byi_file_write(path, text->at, text->n, err);
}

/* Write tensor i of n to PREFIX_i.npy. */
static enum byoc_status write_tensors(const char *folder, const char *prefix,
                                      const struct byi_tensor *t, uint32_t n,
                                      struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        char path[MAX_PATH_BYTES + 40];
        snprintf(path, sizeof path, "%s/%s_%u.npy", folder, prefix, i);
        BYI_TRY(byi_npy_write(path, &t[i], err));
    }
    return BYOC_OK;
}

/* Write region.ir and region.consts. */
static enum byoc_status write_module(const struct byi_extract *x,
                                     const char *folder, struct byoc_error *err)
{
    char path[MAX_PATH_BYTES + 40];
    struct byi_file consts;
    struct byi_text text = {0};
    snprintf(path, sizeof path, "%s/region.consts", folder);
    BYI_TRY(byi_file_create(path, &consts, err));
    byi_print_module(x->m, &text, consts.stream);
    enum byoc_status status = byi_file_commit(&consts, err);
    if (status == BYOC_OK)
        status = write_text(folder, "region.ir", &text, err);
    byi_text_free(&text);
    return status;
}

static enum byoc_status write_outputs(const struct byi_extract *x,
                                      const char *folder,
                                      struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor *out =
        byi_arena_calloc(arena, BYI_EXTRACT_MAX_IO, sizeof *out);
    uint32_t n = 0;
    enum byoc_status status =
        byi_interp_run(x->m, byi_func_find(x->m, "main"), x->in, x->n_in, arena,
                       out, BYI_EXTRACT_MAX_IO, &n, err);
    if (status == BYOC_OK)
        status = write_tensors(folder, "output", out, n, err);
    byi_arena_free(&arena);
    return status;
}

static void add_readme(const struct byi_extract *x, struct byi_text *out)
{
    const char *backend = x->backend ? x->backend : "BACKEND";
    byi_text_addf(
        out,
        "A region of a model, as a separate program: region.ir with its\n"
        "constants in region.consts, its inputs in a run, and the outputs "
        "that\n"
        "native kernels compute from them.\n\n"
        "    byoc run region.ir --data .                    # runs it\n"
        "    byoc compare region.ir --data . --native       # expected: same\n"
        "    byoc compare region.ir --data . --backend %s\n"
        "    byoc partition region.ir --backend %s          # its regions\n",
        backend, backend);
}

static enum byoc_status fill_folder(const struct byi_extract *x,
                                    const char *folder, struct byoc_error *err)
{
    struct byi_text readme = {0};
    BYI_TRY(write_module(x, folder, err));
    BYI_TRY(write_tensors(folder, "input", x->in, x->n_in, err));
    BYI_TRY(write_outputs(x, folder, err));
    if (x->json) {
        BYI_TRY(write_text(folder, "region.json", x->json, err));
        BYI_TRY(write_tensors(folder, "const", x->consts, x->n_consts, err));
    }
    add_readme(x, &readme);
    const enum byoc_status status =
        write_text(folder, "README.md", &readme, err);
    byi_text_free(&readme);
    return status;
}

void byi_folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[2 * MAX_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path); /* fails for "." and ".." */
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

enum byoc_status byi_extract_write(const struct byi_extract *x,
                                   const char *folder, struct byoc_error *err)
{
    char unfinished[MAX_PATH_BYTES];
    struct stat st;
    struct byi_temp *entry = NULL;
    if (stat(folder, &st) == 0)
        return byi_fail(err, BYOC_EIO,
                        "%s: found an existing file or folder, expected the "
                        "name of a new one",
                        folder);
    const int n = snprintf(unfinished, sizeof unfinished, "%s.XXXXXX", folder);
    if (n < 0 || n >= (int)sizeof unfinished ||
        !byi_temp_folder(unfinished, &entry))
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot create the folder: %s", folder,
                        strerror(errno));
    chmod(unfinished, 0755);
    enum byoc_status status = fill_folder(x, unfinished, err);
    if (status == BYOC_OK && rename(unfinished, folder) != 0)
        status = byi_fail(err, byi_io_status(errno),
                          "%s: cannot rename the finished folder: %s", folder,
                          strerror(errno));
    if (status != BYOC_OK)
        byi_folder_remove(unfinished);
    byi_temp_done(&entry);
    return status;
}
