/* SPDX-License-Identifier: Apache-2.0 */
/* read.c: reads region JSON ("byoc-graph", docs/json.md) into a graph. The
 * input may be hostile. Every count, index, name and type is checked, and
 * operands must come before their readers, so there are no cycles. Each step's
 * type must match the result of its operator's type rule.
 */
#include "region/reader.h"

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- references ---------------------------------------------------------- */

/* Read [node, output]; the node must have been read already. */
static enum byoc_status read_ref(struct region_reader *r,
                                 const struct byi_json *json,
                                 struct byi_graph_ref *ref)
{
    const cJSON *node = cJSON_IsArray(json->at) ? json->at->child : NULL;
    const cJSON *output = node ? node->next : NULL;
    if (!output || output->next)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found something that is not a reference, expected "
                        "[node, output]",
                        json->path);
    struct byi_json item = *json;
    int64_t value;
    item.at = node;
    if (r->n_read == 0)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found a reference in the first node, expected "
                        "only references to earlier nodes",
                        json->path);
    BYI_TRY(byi_json_as_int(&item, 0, r->n_read - 1, &value, r->err));
    ref->node = (uint32_t)value;
    item.at = output;
    BYI_TRY(byi_json_as_int(&item, 0, r->nodes[ref->node].n_out - 1, &value,
                            r->err));
    ref->output = (uint32_t)value;
    return BYOC_OK;
}

/* --- kernels ------------------------------------------------------------- */

/* Operands sorted by name, to find them and to detect duplicates. */
struct operand_names {
    const struct byi_graph_operand **sorted;
    uint32_t n;
};

static int compare_names(const void *a, const void *b)
{
    const struct byi_graph_operand *x =
        *(const struct byi_graph_operand *const *)a;
    const struct byi_graph_operand *y =
        *(const struct byi_graph_operand *const *)b;
    return strcmp(x->name, y->name);
}

static int compare_key(const void *key, const void *member)
{
    const struct byi_graph_operand *x =
        *(const struct byi_graph_operand *const *)member;
    return strcmp(key, x->name);
}

static enum byoc_status read_operands(struct region_reader *r,
                                      const struct byi_json *object,
                                      struct byi_graph_node *node,
                                      struct operand_names *names)
{
    struct byi_json json;
    BYI_TRY(byi_json_get(object, "operands", &json, r->err));
    if (!cJSON_IsObject(json.at))
        return byi_json_mismatch(&json, "an object", r->err);
    const uint32_t n = (uint32_t)cJSON_GetArraySize(json.at);
    if (n > BYI_MAX_ARGS)
        return byi_fail(r->err, BYOC_ELIMIT,
                        "%s: found %u operands, expected at most %d", json.path,
                        n, BYI_MAX_ARGS);
    struct byi_graph_operand *operands =
        byi_arena_calloc(r->arena, n, sizeof *operands);
    names->sorted = byi_arena_calloc(r->arena, n, sizeof *names->sorted);
    names->n = n;
    const cJSON *member = json.at->child;
    for (uint32_t i = 0; i < n; i++, member = member->next) {
        const struct byi_json item = byi_json_member(&json, member);
        operands[i].name = byi_arena_str(r->arena, member->string);
        BYI_TRY(read_ref(r, &item, &operands[i].ref));
        names->sorted[i] = &operands[i];
    }
    node->operands = operands;
    node->n_operands = n;
    qsort(names->sorted, n, sizeof *names->sorted, compare_names);
    for (uint32_t i = 1; i < n; i++)
        if (compare_names(&names->sorted[i - 1], &names->sorted[i]) == 0)
            return byi_fail(r->err, BYOC_EPARSE,
                            "%s: found operand \"%.40s\" twice, expected "
                            "distinct names",
                            json.path, names->sorted[i]->name);
    return BYOC_OK;
}

/* Check that a step in a branch is read in that branch only, and an `if` only
 * after its branches. */
static enum byoc_status check_visible(struct region_reader *r,
                                      const struct byi_json *json, int64_t step)
{
    if (r->visible[step])
        return BYOC_OK;
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s: step %u cannot be read here, expected an earlier "
                    "step of this branch or of an enclosing one",
                    json->path, (uint32_t)step);
}

/* Read [step, field]: a field of an earlier step's tuple. */
static enum byoc_status read_field(struct region_reader *r,
                                   const struct byi_json *json, uint32_t step,
                                   struct byi_graph_arg *arg)
{
    struct byi_json item = {0};
    int64_t index, field;
    if (step == 0 || cJSON_GetArraySize(json->at) != 2)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found a list that is not a field, expected [step, "
                        "field] of an earlier step",
                        json->path);
    byi_json_next(json, &item, 0);
    BYI_TRY(byi_json_as_int(&item, 0, step - 1, &index, r->err));
    BYI_TRY(check_visible(r, &item, index));
    const struct byi_type *type = r->steps[index].type;
    if (type->kind != BYI_TUPLE)
        return byi_fail(r->err, BYOC_ETYPE,
                        "%s: found a field of step %u, whose result is not a "
                        "tuple, expected a step that makes a tuple",
                        json->path, (uint32_t)index);
    byi_json_next(json, &item, 1);
    BYI_TRY(
        byi_json_as_int(&item, 0, (int64_t)type->n_fields - 1, &field, r->err));
    *arg = (struct byi_graph_arg){.is_step = true,
                                  .is_field = true,
                                  .index = (uint32_t)index,
                                  .field = (uint32_t)field};
    return BYOC_OK;
}

static enum byoc_status read_arg(struct region_reader *r,
                                 const struct byi_json *json,
                                 const struct byi_graph_node *node,
                                 uint32_t step,
                                 const struct operand_names *names,
                                 struct byi_graph_arg *arg)
{
    if (cJSON_IsArray(json->at))
        return read_field(r, json, step, arg);
    if (cJSON_IsNumber(json->at)) {
        int64_t value;
        if (step == 0)
            return byi_fail(r->err, BYOC_EPARSE,
                            "%s: found a step's number in the kernel's first "
                            "step, expected an operand's name",
                            json->path);
        BYI_TRY(byi_json_as_int(json, 0, step - 1, &value, r->err));
        BYI_TRY(check_visible(r, json, value));
        *arg =
            (struct byi_graph_arg){.is_step = true, .index = (uint32_t)value};
        return BYOC_OK;
    }
    const char *name;
    BYI_TRY(byi_json_as_string(json, &name, r->err));
    const struct byi_graph_operand **found = bsearch(
        name, names->sorted, names->n, sizeof *names->sorted, compare_key);
    if (!found)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s: found \"%.40s\", expected the name of an operand",
                        json->path, name);
    *arg = (struct byi_graph_arg){.index = (uint32_t)(*found - node->operands)};
    return BYOC_OK;
}

/* Return a new symbol. The symbols of the region's names are -1, -2, ...; new
 * ones are INT64_MIN, INT64_MIN + 1, ... */
static int64_t make_symbol(void *ctx)
{
    struct region_reader *r = ctx;
    return INT64_MIN + r->n_new_symbols++;
}

/* Check that the type at `path` matches the inferred one. A symbol in either
 * matches any size, since the type rule does not get the values of constants.
 */
static enum byoc_status check_type(struct region_reader *r, const char *path,
                                   const struct byi_type *type,
                                   const struct byi_type *inferred)
{
    if (type->kind == BYI_TUPLE && inferred->kind == BYI_TUPLE) {
        if (type->n_fields != inferred->n_fields)
            return byi_fail(r->err, BYOC_ETYPE,
                            "%s: found %" PRIu32 " fields, expected %" PRIu32
                            " for these operands",
                            path, type->n_fields, inferred->n_fields);
        for (uint32_t i = 0; i < type->n_fields; i++) {
            char field[512];
            snprintf(field, sizeof field, "%s[%" PRIu32 "]", path, i);
            enum byoc_status s =
                check_type(r, field, type->fields[i], inferred->fields[i]);
            if (s != BYOC_OK)
                return s;
        }
        return BYOC_OK;
    }
    if (byi_type_may_equal(inferred, type))
        return BYOC_OK;
    char found[160], expected[160];
    return byi_fail(r->err, BYOC_ETYPE,
                    "%s: found %s, expected %s for these operands", path,
                    byi_type_text(found, sizeof found, type),
                    byi_type_text(expected, sizeof expected, inferred));
}

/* The type rule of "tuple", a step that makes a tuple of its args. It is not in
 * the operator table. */
static enum byoc_status rule_tuple(struct byi_infer *t)
{
    t->out = byi_type_tuple(t->arena, t->n_in, t->in);
    return BYOC_OK;
}

static const struct byi_op tuple_op = {.id = BYI_OP_NONE,
                                       .name = "tuple",
                                       .min_in = 0,
                                       .max_in = BYI_MAX_ARGS,
                                       .kind = BYI_INJECTIVE,
                                       .rule = rule_tuple};

/* The type rule of "if", which selects one of two results. */
static enum byoc_status rule_if(struct byi_infer *t)
{
    const struct byi_type *cond = t->in[0];
    char text[2][160];
    if (cond->kind != BYI_TENSOR || cond->dtype != BYOC_BOOL ||
        byi_elements(cond->rank, cond->dims) != 1)
        return byi_fail(t->err, BYOC_ETYPE,
                        "if: found %s as the condition, expected one bool",
                        byi_type_text(text[0], sizeof text[0], cond));
    if (!byi_type_equal(t->in[1], t->in[2]))
        return byi_fail(t->err, BYOC_ETYPE,
                        "if: found branches with results %s and %s, expected "
                        "the same type",
                        byi_type_text(text[0], sizeof text[0], t->in[1]),
                        byi_type_text(text[1], sizeof text[1], t->in[2]));
    t->out = t->in[1];
    return BYOC_OK;
}

static const struct byi_op if_op = {.id = BYI_OP_NONE,
                                    .name = "if",
                                    .min_in = 3,
                                    .max_in = 3,
                                    .kind = BYI_OPAQUE,
                                    .rule = rule_if};

static enum byoc_status check_step(struct region_reader *r,
                                   const struct byi_graph_node *node,
                                   uint32_t at, const char *path)
{
    const struct byi_graph_step *step = &r->steps[at];
    const struct byi_type **in =
        byi_arena_calloc(r->arena, step->n_args, sizeof *in);
    const struct byi_tensor **value =
        byi_arena_calloc(r->arena, step->n_args, sizeof *value);
    for (uint32_t i = 0; i < step->n_args; i++) {
        const struct byi_graph_arg arg = step->args[i];
        const struct byi_graph_ref ref = arg.is_step
                                             ? (struct byi_graph_ref){0}
                                             : node->operands[arg.index].ref;
        in[i] = arg.is_step ? r->steps[arg.index].type
                            : r->nodes[ref.node].out[ref.output];
        if (arg.is_field)
            in[i] = in[i]->fields[arg.field];
    }
    struct byi_infer infer = {
        .arena = r->arena,
        .op = step->op,
        .attrs = step->attrs,
        .n_in = step->n_args,
        .in = in,
        .value = value,
        .new_symbol = make_symbol,
        .symbol_ctx = r,
        .err = r->err,
    };
    const struct byi_type *inferred;
    if (byi_infer_type(&infer, &inferred) != BYOC_OK)
        return byi_prefix(r->err, "%s", path);
    char type_path[512];
    snprintf(type_path, sizeof type_path, "%s.type", path);
    return check_type(r, type_path, step->type, inferred);
}

static enum byoc_status read_branches(struct region_reader *r,
                                      const struct byi_json *json,
                                      const struct byi_graph_node *node,
                                      const struct operand_names *names,
                                      struct byi_graph_step *step,
                                      struct byi_graph_arg *args);

static const struct byi_op *step_op(const char *name)
{
    if (strcmp(name, tuple_op.name) == 0)
        return &tuple_op;
    if (strcmp(name, if_op.name) == 0)
        return &if_op;
    return byi_op_of_name(name, strlen(name));
}

/* Read name, args, attrs and type of one operator; `json` is the kernel itself,
 * one of its post_ops or a step of a branch. */
static enum byoc_status read_step(struct region_reader *r,
                                  const struct byi_json *json,
                                  const struct byi_graph_node *node,
                                  const struct operand_names *names,
                                  uint32_t *out)
{
    const char *name;
    if (r->n_steps == BYI_GRAPH_MAX_STEPS)
        return byi_fail(r->err, BYOC_ELIMIT,
                        "%s: found too many steps in a kernel, expected at "
                        "most %d",
                        json->path, BYI_GRAPH_MAX_STEPS);
    const uint32_t at = *out = r->n_steps++;
    struct byi_graph_step *step = &r->steps[at];
    BYI_TRY(byi_json_string(json, "name", &name, r->err));
    step->op = step_op(name);
    if (!step->op)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.name: found \"%.40s\", expected an operator",
                        json->path, name);
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_array(json, "args", BYI_MAX_ARGS, &list, &step->n_args,
                           r->err));
    const uint32_t capacity = step->n_args + (step->op == &if_op ? 2 : 0);
    struct byi_graph_arg *args =
        byi_arena_calloc(r->arena, capacity, sizeof *args);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++)
        BYI_TRY(read_arg(r, &item, node, at, names, &args[i]));
    step->args = args;
    struct byi_json attrs;
    BYI_TRY(byi_json_get(json, "attrs", &attrs, r->err));
    BYI_TRY(
        byi_attrs_from_json(&attrs, r->arena, step->op, &step->attrs, r->err));
    BYI_TRY(byi_region_type(r, json, &step->type));
    if (step->op == &if_op)
        BYI_TRY(read_branches(r, json, node, names, step, args));
    BYI_TRY(check_step(r, node, at, json->path));
    r->visible[at] = true;
    return BYOC_OK;
}

static bool is_if(const struct byi_json *json)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(json->at, "name");
    return cJSON_IsString(name) && strcmp(name->valuestring, if_op.name) == 0;
}

/* Read a list of steps: post_ops, or those of a branch. */
static enum byoc_status read_list(struct region_reader *r,
                                  const struct byi_json *from, const char *key,
                                  const struct byi_graph_node *node,
                                  const struct operand_names *names,
                                  uint32_t *last)
{
    static const char *const keys[] = {"name", "args", "attrs",
                                       "type", "then", "else"};
    struct byi_json list, item = {0};
    uint32_t n;
    BYI_TRY(byi_json_array(from, key, BYI_GRAPH_MAX_STEPS, &list, &n, r->err));
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        BYI_TRY(byi_json_only(&item, keys, is_if(&item) ? 6 : 4, r->err));
        BYI_TRY(read_step(r, &item, node, names, last));
    }
    return BYOC_OK;
}

/* Read a branch: {"steps": [...], "result": ...} */
static enum byoc_status read_branch(struct region_reader *r,
                                    const struct byi_json *json,
                                    const struct byi_graph_node *node,
                                    const struct operand_names *names,
                                    struct byi_graph_branch *branch,
                                    struct byi_graph_arg *result)
{
    static const char *const keys[] = {"steps", "result"};
    struct byi_json item;
    uint32_t last;
    BYI_TRY(byi_json_only(json, keys, BYI_COUNT(keys), r->err));
    branch->first = r->n_steps;
    BYI_TRY(read_list(r, json, "steps", node, names, &last));
    branch->n = r->n_steps - branch->first;
    BYI_TRY(byi_json_get(json, "result", &item, r->err));
    BYI_TRY(read_arg(r, &item, node, r->n_steps, names, result));
    memset(&r->visible[branch->first], 0, branch->n * sizeof *r->visible);
    return BYOC_OK;
}

/* Read "then" and "else", whose results are operands of the `if`. The depth of
 * the recursion is at most BYI_GRAPH_MAX_IFS. */
static enum byoc_status read_branches(struct region_reader *r,
                                      const struct byi_json *json,
                                      const struct byi_graph_node *node,
                                      const struct operand_names *names,
                                      struct byi_graph_step *step,
                                      struct byi_graph_arg *args)
{
    static const char *const keys[] = {"then", "else"};
    if (step->n_args != 1)
        return byi_fail(r->err, BYOC_EPARSE,
                        "%s.args: found %u arguments of an 'if', expected 1, "
                        "the condition",
                        json->path, step->n_args);
    if (r->depth == BYI_GRAPH_MAX_IFS)
        return byi_fail(r->err, BYOC_ELIMIT,
                        "%s: found too deeply nested 'if's, expected at most "
                        "%d levels",
                        json->path, BYI_GRAPH_MAX_IFS);
    r->depth++;
    for (uint32_t i = 0; i < 2; i++) {
        struct byi_json item;
        BYI_TRY(byi_json_get(json, keys[i], &item, r->err));
        BYI_TRY(
            read_branch(r, &item, node, names, &step->branch[i], &args[1 + i]));
    }
    r->depth--;
    step->n_args = 3;
    return BYOC_OK;
}

static uint32_t count_steps(const cJSON *list);

/* Count the steps in the branches of a step. The recursion is at most as deep
 * as the JSON, whose depth byi_json_parse limits. */
static uint32_t count_in_branches(const cJSON *step)
{
    static const char *const keys[] = {"then", "else"};
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const cJSON *branch = cJSON_GetObjectItemCaseSensitive(step, keys[i]);
        n += count_steps(cJSON_GetObjectItemCaseSensitive(branch, "steps"));
    }
    return n;
}

static uint32_t count_steps(const cJSON *list)
{
    const cJSON *step = NULL;
    uint32_t n = 0;
    cJSON_ArrayForEach(step, list) n += 1 + count_in_branches(step);
    return n;
}

static enum byoc_status read_steps(struct region_reader *r,
                                   const struct byi_json *object,
                                   struct byi_graph_node *node,
                                   const struct operand_names *names)
{
    const uint32_t n =
        1 + count_in_branches(object->at) +
        count_steps(cJSON_GetObjectItemCaseSensitive(object->at, "post_ops"));
    const uint32_t capacity = n < BYI_GRAPH_MAX_STEPS ? n : BYI_GRAPH_MAX_STEPS;
    r->steps = byi_arena_calloc(r->arena, capacity, sizeof *r->steps);
    r->visible = byi_arena_calloc(r->arena, capacity, sizeof *r->visible);
    r->n_steps = r->depth = 0;
    BYI_TRY(read_step(r, object, node, names, &node->last));
    BYI_TRY(read_list(r, object, "post_ops", node, names, &node->last));
    node->steps = r->steps;
    node->n_steps = r->n_steps;
    return BYOC_OK;
}

static enum byoc_status read_sources(struct region_reader *r,
                                     const struct byi_json *object,
                                     struct byi_graph_node *node)
{
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_array(object, "source", BYI_GRAPH_MAX_NODES, &list,
                           &node->n_sources, r->err));
    const char **sources =
        byi_arena_calloc(r->arena, node->n_sources, sizeof *sources);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        const char *name;
        BYI_TRY(byi_json_as_string(&item, &name, r->err));
        sources[i] = byi_arena_str(r->arena, name);
    }
    node->sources = sources;
    return BYOC_OK;
}

static enum byoc_status check_outs(struct region_reader *r,
                                   const struct byi_graph_node *node,
                                   const struct byi_json *object)
{
    const struct byi_type *last = node->steps[node->last].type;
    const bool tuple = last->kind == BYI_TUPLE;
    bool match = node->n_out == (tuple ? last->n_fields : 1);
    for (uint32_t i = 0; match && i < node->n_out; i++)
        match = byi_type_equal(node->out[i], tuple ? last->fields[i] : last);
    if (match)
        return BYOC_OK;
    return byi_fail(r->err, BYOC_ETYPE,
                    "%s.out: found other types than those of the kernel's last "
                    "step, expected the same",
                    object->path);
}

static enum byoc_status read_kernel(struct region_reader *r,
                                    const struct byi_json *object,
                                    struct byi_graph_node *node)
{
    static const char *const keys[] = {
        "op",       "pattern", "operands", "name",  "args", "attrs", "type",
        "post_ops", "out",     "source",   "exact", "then", "else"};
    BYI_TRY(byi_json_only(object, keys,
                          BYI_COUNT(keys) - (is_if(object) ? 0 : 2), r->err));
    const char *pattern;
    BYI_TRY(byi_json_string(object, "pattern", &pattern, r->err));
    node->pattern = byi_arena_str(r->arena, pattern);
    BYI_TRY(byi_json_flag(object, "exact", &node->exact, r->err));
    struct operand_names names;
    BYI_TRY(read_operands(r, object, node, &names));
    BYI_TRY(read_steps(r, object, node, &names));
    BYI_TRY(byi_region_outs(r, object, node));
    BYI_TRY(read_sources(r, object, node));
    return check_outs(r, node, object);
}

/* --- nodes --------------------------------------------------------------- */

static enum byoc_status read_input(struct region_reader *r,
                                   const struct byi_json *object,
                                   struct byi_graph_node *node)
{
    static const char *const keys[] = {"op", "name", "out"};
    BYI_TRY(byi_json_only(object, keys, BYI_COUNT(keys), r->err));
    const char *name;
    BYI_TRY(byi_json_string(object, "name", &name, r->err));
    node->name = byi_arena_str(r->arena, name);
    return byi_region_outs(r, object, node);
}

static enum byoc_status read_const(struct region_reader *r,
                                   const struct byi_json *object,
                                   struct byi_graph_node *node)
{
    static const char *const keys[] = {"op", "data", "out"};
    BYI_TRY(byi_json_only(object, keys, BYI_COUNT(keys), r->err));
    int64_t data;
    BYI_TRY(byi_json_int(object, "data", 0, BYI_GRAPH_MAX_NODES - 1, &data,
                         r->err));
    node->data = (uint32_t)data;
    if (node->data >= r->graph->n_consts)
        r->graph->n_consts = node->data + 1;
    return byi_region_outs(r, object, node);
}

static enum byoc_status read_node(void *ctx, uint32_t index,
                                  const struct byi_json *object,
                                  const struct byi_json_items inner[2])
{
    static const struct {
        const char *name;
        enum byi_graph_node_kind kind;
        enum byoc_status (*read)(struct region_reader *,
                                 const struct byi_json *,
                                 struct byi_graph_node *);
    } kinds[] = {
        {"input", BYI_GRAPH_INPUT, read_input},
        {"const", BYI_GRAPH_CONST, read_const},
        {"kernel", BYI_GRAPH_KERNEL, read_kernel},
    };
    struct region_reader *r = ctx;
    struct byi_graph_node *node = &r->nodes[index];
    const char *op;
    (void)inner;
    r->n_read = index; /* nodes that this one may refer to */
    BYI_TRY(byi_json_string(object, "op", &op, r->err));
    for (size_t i = 0; i < BYI_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, op) != 0)
            continue;
        node->kind = kinds[i].kind;
        return kinds[i].read(r, object, node);
    }
    return byi_fail(r->err, BYOC_EPARSE,
                    "%s.op: found \"%.40s\", expected input, const or kernel",
                    object->path, op);
}

/* Read the list of inputs, which must name every input node once. */
static enum byoc_status read_inputs(struct region_reader *r,
                                    const struct byi_json *root)
{
    struct byi_json list, item = {0};
    uint32_t n, n_nodes = 0;
    BYI_TRY(
        byi_json_array(root, "inputs", BYI_GRAPH_MAX_NODES, &list, &n, r->err));
    bool *seen = byi_arena_calloc(r->arena, r->n_read, sizeof *seen);
    uint32_t *inputs = byi_arena_calloc(r->arena, n, sizeof *inputs);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        int64_t node;
        BYI_TRY(
            byi_json_as_int(&item, 0, (int64_t)r->n_read - 1, &node, r->err));
        if (r->nodes[node].kind != BYI_GRAPH_INPUT)
            return byi_fail(r->err, BYOC_EPARSE,
                            "%s: found node %lld, which is not an input, "
                            "expected an input",
                            item.path, (long long)node);
        if (seen[node])
            return byi_fail(r->err, BYOC_EPARSE,
                            "%s: found input node %lld twice, expected each "
                            "input once",
                            item.path, (long long)node);
        seen[node] = true;
        inputs[i] = (uint32_t)node;
    }
    for (uint32_t i = 0; i < r->n_read; i++)
        n_nodes += r->nodes[i].kind == BYI_GRAPH_INPUT;
    if (n_nodes != n)
        return byi_fail(r->err, BYOC_EPARSE,
                        "inputs: found %u nodes, expected all %u input nodes",
                        n, n_nodes);
    r->graph->inputs = inputs;
    r->graph->n_inputs = n;
    return BYOC_OK;
}

static enum byoc_status read_outputs(struct region_reader *r,
                                     const struct byi_json *root)
{
    struct byi_json list, item = {0};
    uint32_t n;
    BYI_TRY(byi_json_array(root, "outputs", BYI_GRAPH_MAX_OUTPUTS, &list, &n,
                           r->err));
    struct byi_graph_ref *outputs =
        byi_arena_calloc(r->arena, n, sizeof *outputs);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++)
        BYI_TRY(read_ref(r, &item, &outputs[i]));
    r->graph->outputs = outputs;
    r->graph->n_outputs = n;
    return BYOC_OK;
}

static enum byoc_status read_graph(struct region_reader *r,
                                   const struct byi_json *root,
                                   const struct byi_json_items *nodes)
{
    static const char *const keys[] = {"format", "version", "symbol",
                                       "nodes",  "inputs",  "outputs"};
    const char *text;
    BYI_TRY(byi_json_version(root, "byoc-graph", BYI_GRAPH_VERSION, r->err));
    BYI_TRY(byi_json_only(root, keys, BYI_COUNT(keys), r->err));
    BYI_TRY(byi_json_string(root, "symbol", &text, r->err));
    r->graph->symbol = byi_arena_str(r->arena, text);

    uint32_t n;
    BYI_TRY(
        byi_json_count(root, nodes, "nodes", BYI_GRAPH_MAX_NODES, &n, r->err));
    r->nodes = byi_arena_calloc(r->arena, n, sizeof *r->nodes);
    BYI_TRY(byi_json_each(root, nodes, NULL, read_node, r, r->err));
    r->graph->nodes = r->nodes;
    r->graph->n_nodes = r->n_read = n;
    BYI_TRY(read_inputs(r, root));
    return read_outputs(r, root);
}

static enum byoc_status read_text(const char *json, size_t n, bool varying,
                                  struct byi_graph **graph,
                                  struct byoc_error *err)
{
    static const char *const keys[2] = {"nodes"};
    struct cJSON *tree = NULL;
    struct byi_json_items items[2];
    BYI_TRY(byi_json_parse_around(json, n, BYI_GRAPH_MAX_BYTES, keys, items,
                                  &tree, err));
    struct byi_arena *arena = byi_arena_new();
    struct byi_graph *g = byi_arena_calloc(arena, 1, sizeof *g);
    g->arena = arena;
    struct region_reader r = {
        .arena = arena, .graph = g, .varying = varying, .err = err};
    const struct byi_json root = byi_json_root(tree);
    const enum byoc_status status = read_graph(&r, &root, &items[0]);
    g->n_symbols = r.symbols.n;
    g->symbols = r.symbols.at;
    byi_json_free(&tree);
    if (status != BYOC_OK)
        byi_graph_free(&g);
    else
        *graph = g;
    return status;
}

enum byoc_status byi_graph_read(const char *json, size_t n,
                                struct byi_graph **graph,
                                struct byoc_error *err)
{
    return read_text(json, n, false, graph, err);
}

enum byoc_status byi_graph_read_varying(const char *json, size_t n,
                                        struct byi_graph **graph,
                                        struct byoc_error *err)
{
    return read_text(json, n, true, graph, err);
}

void byi_graph_free(struct byi_graph **graph)
{
    if (!*graph)
        return;
    struct byi_arena *arena = (*graph)->arena;
    *graph = NULL;
    byi_arena_free(&arena);
}
