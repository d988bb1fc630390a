/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c: reads the manifest of an image (docs/artifact.md): the model's
 * inputs and outputs, its backends, and the hashes of the other sections.
 */
#include "plan.h"

#include <cjson/cJSON.h>

#include <string.h>

enum {
    MAX_MANIFEST = 64 << 20,
    MAX_IO = 1 << 20,
    MAX_BACKENDS = 256,
    MAX_WARM = 1024,
    MAX_METADATA = 65536,
    MAX_WARM_DIMS = 64
};

/* The state of reading a manifest. */
struct manifest_reader {
    struct byi_arena *arena;
    struct byoc_error *err;
};

static enum byoc_status get_string(struct manifest_reader *r,
                                   const struct byi_json *at, const char *key,
                                   const char **out)
{
    BYI_TRY(byi_json_string(at, key, out, r->err));
    *out = byi_arena_str(r->arena, *out);
    return BYOC_OK;
}

static enum byoc_status read_io(struct manifest_reader *r,
                                const struct byi_json *at,
                                struct byi_image_io *io)
{
    static const char *const keys[] = {"name", "dtype", "shape", "of"};
    const char *dtype;
    BYI_TRY(byi_json_only(at, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(get_string(r, at, "name", &io->name));
    BYI_TRY(byi_json_string(at, "dtype", &dtype, r->err));
    if (byi_list_kind(dtype) != BYI_TENSOR)
        return byi_list_type_read(at, r->arena, &io->list, r->err);
    io->dtype = byi_dtype_of_name(dtype, strlen(dtype));
    if (io->dtype == BYOC_NONE)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.dtype: found \"%.40s\", expected an element type",
                        at->path, dtype);
    struct byi_json shape, item = {0};
    BYI_TRY(
        byi_json_array(at, "shape", BYI_MAX_RANK, &shape, &io->rank, r->err));
    io->dims = byi_arena_calloc(r->arena, io->rank + 1u, sizeof *io->dims);
    io->dim_names =
        byi_arena_calloc(r->arena, io->rank + 1u, sizeof *io->dim_names);
    for (uint32_t i = 0; byi_json_next(&shape, &item, i); i++) {
        const char *name;
        if (byi_json_as_string(&item, &name, NULL) == BYOC_OK) {
            io->dims[i] = -1;
            io->dim_names[i] = byi_arena_str(r->arena, name);
            continue;
        }
        BYI_TRY(
            byi_json_as_int(&item, 0, INT64_C(1) << 40, &io->dims[i], r->err));
    }
    return BYOC_OK;
}

static enum byoc_status read_ios(struct manifest_reader *r,
                                 const struct byi_json *root, const char *key,
                                 struct byi_image_io **ios, uint32_t *n)
{
    struct byi_json array, item = {0};
    BYI_TRY(byi_json_array(root, key, MAX_IO, &array, n, r->err));
    *ios = byi_arena_calloc(r->arena, *n + 1u, sizeof **ios);
    for (uint32_t i = 0; byi_json_next(&array, &item, i); i++)
        BYI_TRY(read_io(r, &item, &(*ios)[i]));
    return BYOC_OK;
}

static enum byoc_status read_backends(struct manifest_reader *r,
                                      const struct byi_json *root,
                                      struct byi_image_manifest *manifest)
{
    static const char *const keys[] = {"name", "version", "compat",
                                       "operators"};
    struct byi_json array, item = {0};
    BYI_TRY(byi_json_array(root, "backends", MAX_BACKENDS, &array,
                           &manifest->n_backends, r->err));
    manifest->backends = byi_arena_calloc(r->arena, manifest->n_backends + 1u,
                                          sizeof *manifest->backends);
    for (uint32_t i = 0; byi_json_next(&array, &item, i); i++) {
        struct byi_image_backend *v = &manifest->backends[i];
        BYI_TRY(byi_json_only(&item, keys, BYI_COUNT(keys), r->err));
        BYI_TRY(get_string(r, &item, "name", &v->name));
        BYI_TRY(get_string(r, &item, "version", &v->version));
        BYI_TRY(get_string(r, &item, "compat", &v->compat));
        struct byi_json operators;
        BYI_TRY(byi_json_opt(&item, "operators", &operators, r->err));
        v->operators = operators.at && cJSON_IsTrue(operators.at);
    }
    return BYOC_OK;
}

/* Read a list such as [{"key": "producer_name", "value": "pytorch"}]. */
static enum byoc_status read_metadata(struct manifest_reader *r,
                                      const struct byi_json *root,
                                      struct byi_image_manifest *manifest)
{
    static const char *const keys[] = {"key", "value"};
    struct byi_json array, item = {0};
    BYI_TRY(byi_json_opt(root, "metadata", &array, r->err));
    if (!array.at)
        return BYOC_OK;
    BYI_TRY(byi_json_array(root, "metadata", MAX_METADATA, &array,
                           &manifest->n_metadata, r->err));
    manifest->metadata = byi_arena_calloc(r->arena, manifest->n_metadata + 1u,
                                          sizeof *manifest->metadata);
    for (uint32_t i = 0; byi_json_next(&array, &item, i); i++) {
        struct byoc_metadata *m = &manifest->metadata[i];
        BYI_TRY(byi_json_only(&item, keys, BYI_COUNT(keys), r->err));
        BYI_TRY(get_string(r, &item, "key", &m->key));
        BYI_TRY(get_string(r, &item, "value", &m->value));
    }
    return BYOC_OK;
}

/* Read sizes such as {"batch": 1, "sequence": 16}. */
static enum byoc_status read_warm_set(struct manifest_reader *r,
                                      const struct byi_json *json,
                                      struct byi_warm_set *set)
{
    const cJSON *member = NULL;
    const int n = cJSON_GetArraySize(json->at);
    if (!cJSON_IsObject(json->at))
        return byi_json_mismatch(json, "an object of sizes by name", r->err);
    if (n > MAX_WARM_DIMS)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found %d sizes, expected at most %d", json->path,
                        n, MAX_WARM_DIMS);
    struct byoc_dim *dims =
        byi_arena_calloc(r->arena, (size_t)n + 1, sizeof *dims);
    cJSON_ArrayForEach(member, json->at)
    {
        dims[set->n].name = byi_arena_str(r->arena, member->string);
        BYI_TRY(byi_json_int(json, member->string, 0, INT64_C(1) << 40,
                             &dims[set->n].size, r->err));
        set->n++;
    }
    set->dims = dims;
    return BYOC_OK;
}

static enum byoc_status read_warm(struct manifest_reader *r,
                                  const struct byi_json *root,
                                  struct byi_warm *warm)
{
    struct byi_json array, item = {0};
    BYI_TRY(byi_json_opt(root, "warm", &array, r->err));
    if (!array.at)
        return BYOC_OK;
    BYI_TRY(byi_json_array(root, "warm", MAX_WARM, &array, &warm->n, r->err));
    struct byi_warm_set *sets =
        byi_arena_calloc(r->arena, warm->n + 1u, sizeof *sets);
    for (uint32_t i = 0; byi_json_next(&array, &item, i); i++)
        BYI_TRY(read_warm_set(r, &item, &sets[i]));
    warm->at = sets;
    return BYOC_OK;
}

static enum byoc_status read_hashes(struct manifest_reader *r,
                                    const struct byi_json *root,
                                    struct byi_image_manifest *manifest)
{
    static const char *const keys[] = {"plan", "ledger", "blobs", "weights"};
    struct byi_json hashes;
    BYI_TRY(byi_json_opt(root, "hashes", &hashes, r->err));
    if (!hashes.at)
        return BYOC_OK;
    BYI_TRY(byi_json_only(&hashes, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(get_string(r, &hashes, "plan", &manifest->plan_hash));
    BYI_TRY(get_string(r, &hashes, "ledger", &manifest->ledger_hash));
    BYI_TRY(get_string(r, &hashes, "blobs", &manifest->blobs_hash));
    return get_string(r, &hashes, "weights", &manifest->weights_hash);
}

static enum byoc_status check_symbol(struct manifest_reader *r,
                                     const char *symbol)
{
    static const char prefix[] = "byoc_model_";
    size_t n = strlen(prefix);
    if (strncmp(symbol, prefix, n) == 0 &&
        strspn(symbol + n, "0123456789abcdef") == 16 && symbol[n + 16] == '\0')
        return BYOC_OK;
    return byi_fail(r->err, BYOC_EPARSE,
                    "symbol: found \"%.60s\", expected %s and 16 hexadecimal "
                    "digits",
                    symbol, prefix);
}

static enum byoc_status read_root(struct manifest_reader *r,
                                  const struct byi_json *root,
                                  struct byi_image_manifest *manifest)
{
    static const char *const keys[] = {
        "format", "version", "byoc",     "name", "isa",
        "inputs", "outputs", "backends", "warm", "kernels",
        "hashes", "symbol",  "metadata"};
    /* check the version first, since other versions may have other keys */
    BYI_TRY(byi_json_version(root, "byoc-model", BYI_ARTIFACT_VERSION, r->err));
    BYI_TRY(byi_json_only(root, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(get_string(r, root, "byoc", &manifest->byoc));
    BYI_TRY(get_string(r, root, "name", &manifest->name));
    BYI_TRY(get_string(r, root, "isa", &manifest->isa));
    BYI_TRY(get_string(r, root, "symbol", &manifest->symbol));
    BYI_TRY(check_symbol(r, manifest->symbol));
    BYI_TRY(
        read_ios(r, root, "inputs", &manifest->inputs, &manifest->n_inputs));
    BYI_TRY(
        read_ios(r, root, "outputs", &manifest->outputs, &manifest->n_outputs));
    BYI_TRY(read_backends(r, root, manifest));
    BYI_TRY(read_warm(r, root, &manifest->warm));
    BYI_TRY(read_metadata(r, root, manifest));
    return read_hashes(r, root, manifest);
}

enum byoc_status byi_manifest_read(const char *text, size_t n,
                                   struct byi_arena *arena,
                                   struct byi_image_manifest *manifest,
                                   struct byoc_error *err)
{
    struct cJSON *json = NULL;
    *manifest = (struct byi_image_manifest){0};
    if (byi_json_parse(text, n, MAX_MANIFEST, &json, err) != BYOC_OK)
        return byi_prefix(err, "manifest");
    struct manifest_reader r = {arena, err};
    struct byi_json root = byi_json_root(json);
    enum byoc_status status = read_root(&r, &root, manifest);
    byi_json_free(&json);
    return status == BYOC_OK ? BYOC_OK : byi_prefix(err, "manifest");
}
