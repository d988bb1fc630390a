/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: the attributes of operators that plug-ins add, as a table and as
 * JSON.
 */
#include "custom.h"

#include <cjson/cJSON.h>

#include <string.h>

/* The IR's kind of an attribute. A tensor or bytes are an operand of the call,
 * and the attribute is a digest of their content. */
static enum byi_attr_kind kind_of(uint32_t kind)
{
    static const enum byi_attr_kind kinds[] = {
        [BYOC_ATTR_INT] = BYI_ATTR_INT,
        [BYOC_ATTR_FLOAT] = BYI_ATTR_FLOAT,
        [BYOC_ATTR_STRING] = BYI_ATTR_STRING,
        [BYOC_ATTR_INTS] = BYI_ATTR_INTS,
        [BYOC_ATTR_FLOATS] = BYI_ATTR_FLOATS,
        [BYOC_ATTR_STRINGS] = BYI_ATTR_STRINGS,
        [BYOC_ATTR_BYTES] = BYI_ATTR_STRING,
        [BYOC_ATTR_TENSOR] = BYI_ATTR_STRING,
    };
    return kinds[kind];
}

const struct byi_op *byi_custom_row(struct byi_arena *arena,
                                    const struct byoc_operator *op)
{
    struct byi_op *row = byi_arena_alloc(arena, sizeof *row);
    struct byi_attr_def *defs =
        byi_arena_calloc(arena, op->n_attrs + 1u, sizeof *defs);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        defs[i] = (struct byi_attr_def){.name = op->attrs[i].name,
                                        .kind = kind_of(op->attrs[i].kind)};
    *row = (struct byi_op){
        .name = op->name, .attrs = defs, .n_attrs = op->n_attrs};
    return row;
}

/* Read the default values (member `default_value`) of the attributes that `row`
 * declares; texts[i] is the default of attribute i. */
static enum byoc_status read_defaults(struct byi_arena *arena,
                                      const struct byi_op *row,
                                      const char *const *texts,
                                      const struct byi_attrs **attrs,
                                      struct byoc_error *err)
{
    struct byi_text object = {0};
    struct cJSON *json = NULL;
    byi_text_addf(&object, "{");
    for (uint32_t i = 0; i < row->n_attrs; i++) {
        byi_text_addf(&object, i ? ", " : "");
        byi_json_quote(&object, row->attrs[i].name);
        byi_text_addf(&object, ": %s", texts[i]);
    }
    byi_text_addf(&object, "}");
    enum byoc_status status =
        byi_json_parse(object.at, object.n, object.n + 1, &json, err);
    byi_text_free(&object);
    if (status == BYOC_OK) {
        const struct byi_json root = byi_json_root(json);
        status = byi_attrs_from_json(&root, arena, row, attrs, err);
    }
    byi_json_free(&json);
    if (status == BYOC_OK)
        return BYOC_OK;
    err->status = BYOC_EBACKEND;
    return byi_prefix(err, "default values of operator %s", row->name);
}

static const struct byi_attr *find_attr(const struct byi_attr *list, uint32_t n,
                                        const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

enum byoc_status byi_custom_attributes(struct byi_arena *arena,
                                       const struct byoc_operator *op,
                                       const struct byi_attr *list, uint32_t n,
                                       const char **text,
                                       struct byoc_error *err)
{
    const struct byi_op *row = byi_custom_row(arena, op);
    struct byi_attr_def *defs =
        byi_arena_calloc(arena, op->n_attrs + 1u, sizeof *defs);
    const char **texts =
        byi_arena_calloc(arena, op->n_attrs + 1u, sizeof *texts);
    struct byi_attr *attrs =
        byi_arena_calloc(arena, op->n_attrs + 1u, sizeof *attrs);
    struct byi_op missing = *row; /* with only the attributes not given */
    const struct byi_attrs *defaults;
    missing.attrs = defs;
    missing.n_attrs = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const char *name = op->attrs[i].name,
                   *value = op->attrs[i].default_value;
        if (find_attr(list, n, name))
            continue;
        if (!value)
            return byi_fail(err, BYOC_EPARSE,
                            "attribute '%s' is missing, expected a value, "
                            "since the operator has no default for it",
                            name);
        defs[missing.n_attrs] = row->attrs[i];
        texts[missing.n_attrs++] = byi_custom_is_tensor(op, i) ? "\"\"" : value;
    }
    BYI_TRY(read_defaults(arena, &missing, texts, &defaults, err));
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const char *name = op->attrs[i].name;
        const struct byi_attr *at = find_attr(list, n, name);
        attrs[i] = at ? *at : *byi_attr_find(defaults, name);
    }
    struct byi_text json = {0};
    byi_json_print(
        byi_attrs_to_json(arena, &(struct byi_attrs){op->n_attrs, attrs}),
        &json);
    *text = byi_arena_str(arena, json.at);
    byi_text_free(&json);
    return BYOC_OK;
}
