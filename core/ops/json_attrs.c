/* SPDX-License-Identifier: Apache-2.0 */
/* json_attrs.c: reads and writes attributes of operators as JSON. */
#include "ops.h"

#include "core/base/json_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { MAX_LIST = 65536 };

/* --- reading ------------------------------------------------------------ */

static enum byoc_status read_float(const struct byi_json *item, double *out,
                                   struct byoc_error *err)
{
    static const char *const names[] = {"inf", "-inf", "nan"};
    static const double values[] = {INFINITY, -INFINITY, NAN};

    if (cJSON_IsNumber(item->at) && isfinite(item->at->valuedouble)) {
        *out = item->at->valuedouble;
        return BYOC_OK;
    }
    for (size_t i = 0; cJSON_IsString(item->at) && i < 3; i++)
        if (strcmp(item->at->valuestring, names[i]) == 0) {
            *out = values[i];
            return BYOC_OK;
        }
    return byi_json_mismatch(item, "a number, \"inf\", \"-inf\" or \"nan\"",
                             err);
}

/* Read an integer: a JSON number, or a string of its decimal digits, which the
 * writer uses beyond 2^53, where a double is inexact. */
static enum byoc_status read_int(const struct byi_json *item, int64_t *out,
                                 struct byoc_error *err)
{
    const char *text = NULL;
    char canonical[32];
    long long value = 0;

    if (!cJSON_IsString(item->at))
        return byi_json_as_int(item, INT64_MIN, INT64_MAX, out, err);
    text = item->at->valuestring;
    value = strtoll(text, NULL, 10);
    snprintf(canonical, sizeof canonical, "%lld", value);
    if (strcmp(text, canonical) != 0)
        return byi_json_mismatch(
            item, "an integer or a string of its decimal digits", err);
    *out = value;
    return BYOC_OK;
}

static enum byoc_status read_dtype(const struct byi_json *item, int64_t *out,
                                   struct byoc_error *err)
{
    const char *name = NULL;

    BYI_TRY(byi_json_as_string(item, &name, err));
    *out = byi_dtype_of_name(name, strlen(name));
    if (*out == BYOC_NONE)
        return byi_json_mismatch(
            item, "the name of a dtype, such as \"float32\"", err);
    return BYOC_OK;
}

static enum byoc_status read_list(const struct byi_json *list,
                                  struct byi_arena *arena,
                                  struct byi_attr *attr, struct byoc_error *err)
{
    struct byi_json item = {0};
    int64_t *ints = NULL;
    double *floats = NULL;
    const char **strings = NULL;
    uint32_t n = 0;

    if (!cJSON_IsArray(list->at))
        return byi_json_mismatch(list, "an array", err);
    n = (uint32_t)cJSON_GetArraySize(list->at);
    if (n > MAX_LIST)
        return byi_fail(err, BYOC_ELIMIT,
                        "%s: found %u items, expected at most %d",
                        byi_json_path(list), n, MAX_LIST);
    attr->n = n;
    if (attr->kind == BYI_ATTR_INTS)
        attr->ints = ints = byi_arena_calloc(arena, n, sizeof *ints);
    else if (attr->kind == BYI_ATTR_FLOATS)
        attr->floats = floats = byi_arena_calloc(arena, n, sizeof *floats);
    else
        attr->strings = strings = byi_arena_calloc(arena, n, sizeof *strings);
    for (uint32_t i = 0; byi_json_next(list, &item, i); i++) {
        if (ints)
            BYI_TRY(read_int(&item, &ints[i], err));
        else if (floats)
            BYI_TRY(read_float(&item, &floats[i], err));
        else
            BYI_TRY(byi_json_as_string(&item, &strings[i], err));
    }
    return BYOC_OK;
}

/* Read a value of the kind attr->kind. */
static enum byoc_status read_attr(const struct byi_json *item,
                                  struct byi_arena *arena,
                                  struct byi_attr *attr, struct byoc_error *err)
{
    switch (attr->kind) {
    case BYI_ATTR_INT:
        return read_int(item, &attr->i, err);
    case BYI_ATTR_FLOAT:
        return read_float(item, &attr->f, err);
    case BYI_ATTR_BOOL:
        if (!cJSON_IsBool(item->at))
            return byi_json_mismatch(item, "true or false", err);
        attr->i = cJSON_IsTrue(item->at);
        return BYOC_OK;
    case BYI_ATTR_STRING:
        return byi_json_as_string(item, &attr->s, err);
    case BYI_ATTR_DTYPE:
        return read_dtype(item, &attr->i, err);
    case BYI_ATTR_INTS:
    case BYI_ATTR_FLOATS:
    case BYI_ATTR_STRINGS:
        return read_list(item, arena, attr, err);
    }
    byi_unreachable();
}

enum byoc_status byi_attrs_from_json(const struct byi_json *object,
                                     struct byi_arena *arena,
                                     const struct byi_op *op,
                                     const struct byi_attrs **attrs,
                                     struct byoc_error *err)
{
    enum { MAX_ATTRS = 64 };
    struct byi_attr list[MAX_ATTRS];
    const cJSON *member = NULL;
    char names[400];
    uint32_t n = 0;

    if (!cJSON_IsObject(object->at))
        return byi_json_mismatch(object, "an object", err);
    cJSON_ArrayForEach(member, object->at)
    {
        struct byi_json item = byi_json_member(object, member);
        const struct byi_attr_def *def = byi_op_attr(op, member->string);
        if (!def)
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found an attribute that %s does not have, "
                            "expected %s",
                            item.path, op->name,
                            byi_op_attrs_text(names, sizeof names, op));
        if (n == MAX_ATTRS)
            return byi_fail(err, BYOC_ELIMIT,
                            "%s: found more than %d attributes, expected each "
                            "attribute of %s at most once",
                            byi_json_path(object), MAX_ATTRS, op->name);
        list[n] = (struct byi_attr){.name = def->name, .kind = def->kind};
        BYI_TRY(read_attr(&item, arena, &list[n++], err));
    }
    if (byi_attrs_make(arena, op, list, n, attrs, err) != BYOC_OK)
        return byi_prefix(err, "%s", byi_json_path(object));
    return BYOC_OK;
}

/* --- writing ------------------------------------------------------------ */

static cJSON *write_float(struct byi_arena *arena, double value)
{
    char text[32];

    if (isfinite(value))
        return byi_json_number(arena, value);
    return byi_json_text(arena, byi_float_text(text, value, false));
}

static cJSON *write_list(struct byi_arena *arena, const struct byi_attr *attr)
{
    cJSON *list = byi_json_list(arena);

    for (uint32_t i = 0; i < attr->n; i++) {
        if (attr->kind == BYI_ATTR_INTS)
            byi_json_append(list, byi_json_integer(arena, attr->ints[i]));
        else if (attr->kind == BYI_ATTR_FLOATS)
            byi_json_append(list, write_float(arena, attr->floats[i]));
        else
            byi_json_append(list, byi_json_text(arena, attr->strings[i]));
    }
    return list;
}

static cJSON *write_attr(struct byi_arena *arena, const struct byi_attr *attr)
{
    switch (attr->kind) {
    case BYI_ATTR_INT:
        return byi_json_integer(arena, attr->i);
    case BYI_ATTR_FLOAT:
        return write_float(arena, attr->f);
    case BYI_ATTR_BOOL:
        return byi_json_bool(arena, attr->i != 0);
    case BYI_ATTR_STRING:
        return byi_json_text(arena, attr->s);
    case BYI_ATTR_DTYPE:
        return byi_json_text(arena, byoc_dtype_name((enum byoc_dtype)attr->i));
    case BYI_ATTR_INTS:
    case BYI_ATTR_FLOATS:
    case BYI_ATTR_STRINGS:
        return write_list(arena, attr);
    }
    byi_unreachable();
}

struct cJSON *byi_attrs_to_json(struct byi_arena *arena,
                                const struct byi_attrs *attrs)
{
    cJSON *object = byi_json_object(arena);

    for (uint32_t i = 0; i < attrs->n; i++)
        byi_json_add(object, attrs->at[i].name,
                     write_attr(arena, &attrs->at[i]));
    return object;
}
