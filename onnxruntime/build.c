/* SPDX-License-Identifier: Apache-2.0 */
/* build.c: compiles models with byoc and loads them. Keeps artifacts in the
 * cache folder, if there is one; the name of each is a digest of everything
 * that the artifact depends on. */
#include "onnxruntime/provider.h"

#include "core/base/temp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void log_line(void *ctx, enum byoc_severity severity, const char *line)
{
    byi_ep_log(ctx,
               severity >= BYOC_ERROR     ? ORT_LOGGING_LEVEL_ERROR
               : severity >= BYOC_WARNING ? ORT_LOGGING_LEVEL_WARNING
                                          : ORT_LOGGING_LEVEL_INFO,
               "%s", line);
}

static struct byoc_load_params load_params(struct byi_ep *ep)
{
    struct byoc_load_params params = {.struct_size = sizeof params,
                                      .threads = ep->options.threads,
                                      .log = log_line,
                                      .log_ctx = ep};
    if (ep->options.pool == BYI_EP_POOL_ORT) {
        params.parallel_for = byi_ep_parallel_for;
        params.parallel_ctx = (void *)ep->ort;
    }
    return params;
}

/* The bytes of the model in one block, which the caller frees; NULL when the
 * allocation fails. */
static char *join_spans(const struct byi_ep_model *model)
{
    char *data = malloc(model->bytes), *at = data;
    for (uint32_t i = 0; data && i < model->n_spans; i++) {
        memcpy(at, model->spans[i].data, model->spans[i].n);
        at += model->spans[i].n;
    }
    return data;
}

static enum byoc_status compile_model(struct byi_ep *ep,
                                      const struct byi_ep_model *model,
                                      bool import_only,
                                      struct byoc_compiled **compiled,
                                      struct byoc_error *err)
{
    static const char *const no_passes[] = {NULL};
    struct byoc_compile_params params = {
        .struct_size = sizeof params,
        .backends = ep->options.backends,
        .threads = ep->options.threads,
        .partition_by = ep->options.partition_by,
        .passes = import_only ? no_passes : NULL};
    char *data = join_spans(model);
    if (!data)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for a model of %zu bytes", model->bytes);
    const enum byoc_status status = byoc_compile_memory(
        data, model->bytes, "model.onnx", &params, compiled, err);
    free(data);
    return status;
}

enum byoc_status byi_ep_import(struct byi_ep *ep,
                               const struct byi_ep_model *model,
                               struct byoc_error *err)
{
    struct byoc_compiled *compiled = NULL;
    const enum byoc_status status =
        compile_model(ep, model, true, &compiled, err);
    byoc_compiled_free(&compiled);
    return status;
}

/* --- artifacts ------------------------------------------------------------ */

/* Load an artifact. If another process may have written it (`untrusted`), check
 * all its hashes, and refuse it if a backend that it needs is missing. */
static enum byoc_status load_artifact(struct byi_ep *ep, const char *path,
                                      bool untrusted,
                                      struct byi_ep_build *build,
                                      struct byoc_error *err)
{
    struct byoc_load_params params = load_params(ep);
    uint64_t bytes;
    params.verify = untrusted;
    params.require_backends = untrusted;
    BYI_TRY(byoc_model_load(path, &params, &build->model, err));
    const char *ledger = byoc_model_ledger(build->model, &bytes);
    if (ledger)
        build->ledger = strndup(ledger, bytes);
    return BYOC_OK;
}

/* Load an artifact from the cache folder. Returns false if the file is missing
 * or cannot be used. */
static bool load_cached(struct byi_ep *ep, const char *path,
                        struct byi_ep_build *build)
{
    struct byoc_error err;
    if (access(path, F_OK) != 0)
        return false;
    build->cached = load_artifact(ep, path, true, build, &err) == BYOC_OK;
    if (!build->cached)
        byi_ep_log(ep, ORT_LOGGING_LEVEL_WARNING,
                   "byoc: cached artifact: %s; the model is compiled again",
                   err.text);
    return build->cached;
}

/* Write the artifact to a temporary folder and load it. The file can be removed
 * at once, since it stays mapped. */
static enum byoc_status load_through_file(struct byi_ep *ep,
                                          struct byi_arena *scratch,
                                          struct byi_ep_build *build,
                                          struct byoc_error *err)
{
    const char *base = secure_getenv("TMPDIR");
    char *folder = byi_arena_printf(scratch, "%s/byoc-ort-XXXXXX",
                                    base && *base ? base : "/tmp");
    struct byi_temp *temp = NULL;
    if (!byi_temp_folder(folder, &temp))
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot create this folder: %s; set TMPDIR to a "
                        "folder that can be written",
                        folder, strerror(errno));
    const char *path = byi_arena_printf(scratch, "%s/model.so", folder);
    enum byoc_status status = byoc_compiled_write(build->compiled, path, err);
    if (status == BYOC_OK)
        status = load_artifact(ep, path, false, build, err);
    unlink(path);
    rmdir(folder);
    byi_temp_done(&temp);
    return status;
}

/* Write the compiled model to the cache folder, and load it from there. */
static enum byoc_status load_cache_entry(struct byi_ep *ep, const char *path,
                                         struct byi_ep_build *build,
                                         struct byoc_error *err)
{
    BYI_TRY(byoc_compiled_write(build->compiled, path, err));
    return load_artifact(ep, path, false, build, err);
}

/* Write the compiled model as an artifact and load the artifact, since only
 * artifacts have fused kernels. It is written at `path` in the cache folder. If
 * `path` is NULL or cannot be written, it is in a temporary folder. If no
 * artifact can be written, for example without a C compiler, load the model
 * from memory. */
static enum byoc_status load_compiled(struct byi_ep *ep, const char *path,
                                      struct byi_arena *scratch,
                                      struct byi_ep_build *build,
                                      struct byoc_error *err)
{
    enum byoc_status status = BYOC_EIO;
    if (path) {
        status = load_cache_entry(ep, path, build, err);
        if (status == BYOC_EIO)
            byi_ep_log(ep, ORT_LOGGING_LEVEL_WARNING,
                       "byoc: %s; the artifact is not cached", err->text);
    }
    if (status == BYOC_EIO)
        status = load_through_file(ep, scratch, build, err);
    if (status == BYOC_OK) {
        byoc_compiled_free(&build->compiled);
        return BYOC_OK;
    }
    if (status != BYOC_EIO)
        return status;
    byi_ep_log(ep, ORT_LOGGING_LEVEL_WARNING,
               "byoc: %s; the model is loaded without an artifact, hence "
               "without fused kernels, and runs slower",
               err->text);
    struct byoc_load_params params = load_params(ep);
    BYI_TRY(byoc_compiled_load(build->compiled, &params, &build->model, err));
    build->ledger = strdup(byoc_compiled_ledger(build->compiled));
    return BYOC_OK;
}

/* Set the digest of *build, and its model: from the cache folder if possible,
 * otherwise compiled. */
static enum byoc_status fill_build(struct byi_ep *ep,
                                   const struct byi_ep_model *model,
                                   struct byi_arena *scratch,
                                   struct byi_ep_build *build,
                                   struct byoc_error *err)
{
    const char *path = NULL;
    char digest[65];
    byi_ep_model_digest(model, ep->options.artifact_key, false, build->digest);
    if (ep->options.cache_dir) {
        byi_ep_model_digest(model, ep->options.artifact_key, true, digest);
        path = byi_arena_printf(scratch, "%s/%s.so", ep->options.cache_dir,
                                digest);
        if (load_cached(ep, path, build))
            return BYOC_OK;
    }
    BYI_TRY(compile_model(ep, model, false, &build->compiled, err));
    const char *warnings = byoc_compiled_warnings(build->compiled);
    if (*warnings)
        byi_ep_log(ep, ORT_LOGGING_LEVEL_WARNING, "byoc: %s", warnings);
    return load_compiled(ep, path, scratch, build, err);
}

/* Free `data`, a struct byi_ep_build, and what it owns. */
static void end_build(void *data)
{
    struct byi_ep_build *build = data;
    byoc_model_free(&build->model);
    byoc_compiled_free(&build->compiled);
    free(build->ledger);
    byi_vec_free(build);
}

enum byoc_status byi_ep_build_new(struct byi_ep *ep,
                                  const struct byi_ep_model *model,
                                  struct byi_ep_build **build,
                                  struct byoc_error *err)
{
    *build = byi_own(1, sizeof **build, end_build);
    struct byi_arena *scratch = byi_arena_new();
    const enum byoc_status status = fill_build(ep, model, scratch, *build, err);
    byi_arena_free(&scratch);
    if (status != BYOC_OK)
        byi_ep_build_free(build);
    return status;
}

void byi_ep_build_free(struct byi_ep_build **build)
{
    if (*build)
        end_build(*build);
    *build = NULL;
}
