/* SPDX-License-Identifier: Apache-2.0 */
/* list_ops.c: `byoc opt --list-ops`: prints the operators of the IR with their
 * attributes, from the table core/ops/ops.def.
 */
#include "cli.h"

#include <cjson/cJSON.h>

static const char *const attr_kinds[] = {
    [BYI_ATTR_INT] = "int",       [BYI_ATTR_FLOAT] = "float",
    [BYI_ATTR_BOOL] = "bool",     [BYI_ATTR_STRING] = "string",
    [BYI_ATTR_DTYPE] = "dtype",   [BYI_ATTR_INTS] = "ints",
    [BYI_ATTR_FLOATS] = "floats", [BYI_ATTR_STRINGS] = "strings",
};

static const char *const op_kinds[] = {
    [BYI_ELEMWISE] = "elementwise",    [BYI_BROADCAST] = "broadcast",
    [BYI_INJECTIVE] = "injective",     [BYI_REDUCE] = "reduction",
    [BYI_OUT_FUSABLE] = "out-fusable", [BYI_OPAQUE] = "opaque",
};

static const char *const layouts[] = {
    [BYI_LAYOUT_FIXED] = "fixed",       [BYI_LAYOUT_SENSITIVE] = "sensitive",
    [BYI_LAYOUT_AGNOSTIC] = "agnostic", [BYI_LAYOUT_BROADCAST] = "broadcast",
    [BYI_LAYOUT_AXIS] = "axis",         [BYI_LAYOUT_REDUCE] = "reduce",
    [BYI_LAYOUT_JOIN] = "join",         [BYI_LAYOUT_PERM] = "perm",
};

static const struct {
    enum byi_op_trait bit;
    const char *name;
} traits[] = {
    {BYI_TRAIT_COMMUTES, "commutes"},
    {BYI_TRAIT_VIEW, "view"},
    {BYI_TRAIT_RANDOM, "random"},
    {BYI_TRAIT_LIST, "list"},
    {BYI_TRAIT_FOLDABLE, "foldable"},
    {BYI_TRAIT_DISCONTINUOUS, "discontinuous"},
    {BYI_TRAIT_WIDENS, "widens"},
    {BYI_TRAIT_HIDES_NAN, "hides_nan"},
    {BYI_TRAIT_NARROWS, "narrows"},
    {BYI_TRAIT_FOLLOWS, "follows"},
};

static void print_op(const struct byi_op *op)
{
    printf("%s: ", op->name);
    if (op->max_in == BYI_MAX_ARGS)
        printf("%u or more operands", op->min_in);
    else if (op->min_in == op->max_in)
        printf("%u operand%s", op->min_in, byi_plural(op->min_in));
    else
        printf("%u to %u operands", op->min_in, op->max_in);
    printf(", %s\n    %s\n", op_kinds[op->kind], op->doc);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const struct byi_attr_def *a = &op->attrs[i];
        printf("    %s.%s: %s%s%s\n", op->name, a->name, attr_kinds[a->kind],
               a->default_text ? " = " : ", required",
               a->default_text ? a->default_text : "");
    }
}

static cJSON *json_of_attr(const struct byi_attr_def *a)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", a->name);
    cJSON_AddStringToObject(json, "kind", attr_kinds[a->kind]);
    cJSON_AddBoolToObject(json, "required", !a->default_text);
    if (a->default_text) {
        /* default values are written as in JSON, except for types and
         * infinities */
        cJSON *value = cJSON_Parse(a->default_text);
        cJSON_AddItemToObject(json, "default",
                              value ? value
                                    : cJSON_CreateString(a->default_text));
    }
    return json;
}

static cJSON *json_of_op(const struct byi_op *op)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", op->name);
    cJSON_AddStringToObject(json, "doc", op->doc);
    cJSON_AddStringToObject(json, "kind", op_kinds[op->kind]);
    cJSON_AddStringToObject(json, "layout", layouts[op->layout]);
    cJSON_AddNumberToObject(json, "min_operands", op->min_in);
    if (op->max_in < BYI_MAX_ARGS)
        cJSON_AddNumberToObject(json, "max_operands", op->max_in);
    if (op->n_out)
        cJSON_AddNumberToObject(json, "results", op->n_out);
    cJSON *list = cJSON_AddArrayToObject(json, "traits");
    for (size_t i = 0; i < BYI_COUNT(traits); i++)
        if (op->traits & traits[i].bit)
            cJSON_AddItemToArray(list, cJSON_CreateString(traits[i].name));
    list = cJSON_AddArrayToObject(json, "error_bound");
    for (int i = 0; i < 2; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(op->ulps[i]));
    list = cJSON_AddArrayToObject(json, "attributes");
    for (uint32_t i = 0; i < op->n_attrs; i++)
        cJSON_AddItemToArray(list, json_of_attr(&op->attrs[i]));
    return json;
}

void byi_list_ops(bool json)
{
    cJSON *root = json ? cJSON_CreateArray() : NULL;
    for (int id = BYI_OP_NONE + 1; id < BYI_N_OPS; id++)
        if (json)
            cJSON_AddItemToArray(root, json_of_op(byi_op((enum byi_op_id)id)));
        else
            print_op(byi_op((enum byi_op_id)id));
    if (!json)
        return;
    struct byi_text text = {0};
    byi_json_print(root, &text);
    fputs(text.at, stdout);
    byi_text_free(&text);
    cJSON_Delete(root);
}
