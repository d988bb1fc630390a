/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.c: builds JSON from cJSON's nodes in an arena. */
#include "json_write.h"

#include <math.h>
#include <stdio.h>

#include <cjson/cJSON.h>

/* 2^53: a double represents all integers up to this one */
static const double max_integer = 9007199254740992.0;

static cJSON *new_node(struct byi_arena *arena, int type)
{
    cJSON *node = byi_arena_calloc(arena, 1, sizeof *node);

    node->type = type;
    return node;
}

struct cJSON *byi_json_object(struct byi_arena *arena)
{
    return new_node(arena, cJSON_Object);
}

struct cJSON *byi_json_list(struct byi_arena *arena)
{
    return new_node(arena, cJSON_Array);
}

struct cJSON *byi_json_text(struct byi_arena *arena, const char *text)
{
    cJSON *node = new_node(arena, cJSON_String);

    node->valuestring = byi_arena_str(arena, text);
    return node;
}

struct cJSON *byi_json_number(struct byi_arena *arena, double value)
{
    cJSON *node = new_node(arena, cJSON_Number);

    node->valuedouble = value;
    return node;
}

struct cJSON *byi_json_bool(struct byi_arena *arena, bool value)
{
    return new_node(arena, value ? cJSON_True : cJSON_False);
}

struct cJSON *byi_json_append(struct cJSON *list, struct cJSON *item)
{
    if (!list->child) {
        list->child = item->prev = item;
        return item;
    }
    item->prev = list->child->prev; /* the first item's prev is the last item */
    item->prev->next = item;
    list->child->prev = item;
    return item;
}

struct cJSON *byi_json_add(struct cJSON *object, const char *key,
                           struct cJSON *item)
{
    item->string = (char *)(uintptr_t)key;
    return byi_json_append(object, item);
}

void byi_json_replace(struct cJSON *object, const char *key,
                      const struct cJSON *item)
{
    cJSON *old = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!old)
        return;
    if (!(old->type & cJSON_IsReference)) {
        cJSON_Delete(old->child);
        cJSON_free(old->valuestring);
    }
    old->child = item->child;
    old->valuestring = item->valuestring;
    old->valuedouble = item->valuedouble;
    old->type = item->type | cJSON_IsReference; /* cJSON must not free these */
}

struct cJSON *byi_json_integer(struct byi_arena *arena, int64_t value)
{
    char text[32];

    if (fabs((double)value) <= max_integer)
        return byi_json_number(arena, (double)value);
    snprintf(text, sizeof text, "%lld", (long long)value);
    return byi_json_text(arena, text);
}

struct cJSON *byi_json_of_type(struct byi_arena *arena,
                               const struct byi_type *type,
                               const char *(*symbol)(void *, int64_t),
                               void *ctx)
{
    cJSON *object, *shape = byi_json_list(arena);

    if (type->kind != BYI_TENSOR) {
        for (uint32_t i = 0; i < type->n_fields; i++)
            byi_json_append(
                shape, byi_json_of_type(arena, type->fields[i], symbol, ctx));
        return shape;
    }
    object = byi_json_object(arena);
    byi_json_add(object, "dtype",
                 byi_json_text(arena, byoc_dtype_name(type->dtype)));
    byi_json_add(object, "shape", shape);
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t dim = type->dims[i];
        byi_json_append(shape, BYI_IS_SYMBOL(dim)
                                   ? byi_json_text(arena, symbol(ctx, dim))
                                   : byi_json_integer(arena, dim));
    }
    return object;
}
