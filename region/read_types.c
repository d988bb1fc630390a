/* SPDX-License-Identifier: Apache-2.0 */
/* read_types.c: reads the types of region JSON. */
#include "region/reader.h"

#include <cjson/cJSON.h>

#include <string.h>

static enum byoc_status read_tensor(struct region_reader *r,
                                    const struct byi_json *json,
                                    const struct byi_type **type)
{
    static const char *const keys[] = {"dtype", "shape"};
    BYI_TRY(byi_json_only(json, keys, BYI_COUNT(keys), r->err));
    const char *name;
    BYI_TRY(byi_json_string(json, "dtype", &name, r->err));
    const enum byoc_dtype dtype = byi_dtype_of_name(name, strlen(name));
    if (dtype == BYOC_NONE)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.dtype: found \"%.40s\", expected an element type",
                        json->path, name);
    struct byi_json shape, item = {0};
    uint32_t rank;
    BYI_TRY(byi_json_array(json, "shape", BYI_MAX_RANK, &shape, &rank, r->err));
    int64_t dims[BYI_MAX_RANK];
    for (uint32_t i = 0; byi_json_next(&shape, &item, i); i++)
        if (r->varying && byi_json_as_string(&item, &name, NULL) == BYOC_OK)
            dims[i] =
                -1 - (int64_t)byi_name_intern(&r->symbols, r->arena, name);
        else
            BYI_TRY(byi_json_as_int(&item, 0, INT64_MAX, &dims[i], r->err));
    *type = byi_type_tensor(r->arena, dtype, rank, dims);
    if (byi_type_is_static(*type) && byi_type_bytes(*type) == UINT64_MAX &&
        dtype != BYOC_STRING) {
        char found[160];
        return byi_fail(r->err, BYOC_ELIMIT,
                        "%s: found a tensor of type %s, expected fewer than "
                        "2^63 elements and 2^64 bytes",
                        json->path, byi_type_text(found, sizeof found, *type));
    }
    return BYOC_OK;
}

static enum byoc_status read_tensors(struct region_reader *r,
                                     const struct byi_json *list, uint32_t n,
                                     const struct byi_type ***types)
{
    *types = byi_arena_calloc(r->arena, n, sizeof **types);
    struct byi_json item = {0};
    for (uint32_t i = 0; byi_json_next(list, &item, i); i++)
        BYI_TRY(read_tensor(r, &item, &(*types)[i]));
    return BYOC_OK;
}

/* Read "type": a tensor, or a list of tensors for a tuple. */
enum byoc_status byi_region_type(struct region_reader *r,
                                 const struct byi_json *object,
                                 const struct byi_type **type)
{
    struct byi_json json;
    BYI_TRY(byi_json_get(object, "type", &json, r->err));
    if (!cJSON_IsArray(json.at))
        return read_tensor(r, &json, type);
    uint32_t n;
    const struct byi_type **fields;
    BYI_TRY(byi_json_array(object, "type", BYI_GRAPH_MAX_OUTPUTS, &json, &n,
                           r->err));
    BYI_TRY(read_tensors(r, &json, n, &fields));
    *type = byi_type_tuple(r->arena, n, fields);
    return BYOC_OK;
}

enum byoc_status byi_region_outs(struct region_reader *r,
                                 const struct byi_json *object,
                                 struct byi_graph_node *node)
{
    struct byi_json json;
    const struct byi_type **types;
    BYI_TRY(byi_json_array(object, "out", BYI_GRAPH_MAX_OUTPUTS, &json,
                           &node->n_out, r->err));
    if (node->n_out == 0 ||
        (node->kind != BYI_GRAPH_KERNEL && node->n_out != 1))
        return byi_fail(r->err, BYOC_EPARSE, "%s: found %u types, expected %s",
                        json.path, node->n_out,
                        node->kind == BYI_GRAPH_KERNEL ? "at least 1" : "1");
    BYI_TRY(read_tensors(r, &json, node->n_out, &types));
    node->out = types;
    return BYOC_OK;
}
