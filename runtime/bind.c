/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c: specialises a region with symbolic dims for the sizes of one run. The
 * type rules of the region's steps, which are its shape functions, compute all
 * sizes from those of the inputs. The result is the region that the backend
 * would have received if the model had been compiled for these sizes.
 */
#include "internal.h"

#include "core/base/guard.h"
#include "core/base/json_write.h"
#include "region/graph.h"

#include <cjson/cJSON.h>

#include <string.h>

/* The state of binding a region's symbols to sizes. */
struct binder {
    const struct byi_graph *g;
    struct byi_arena *arena;
    const struct byi_region_consts *consts;
    const struct byi_type ***out; /* types of results, by node and result */
    /* result types of the current kernel's steps */
    const struct byi_type **steps;
    int64_t *sizes; /* indexed by symbol of the region; -1: not bound yet */
    struct byoc_error *err;
};

/* --- types ---------------------------------------------------------------- */

/* Bind the symbols of input i to the sizes in `actual`. A symbol must have the
 * same size in all inputs of a region. */
static enum byoc_status bind_input(struct binder *b, uint32_t i,
                                   const struct byi_type *actual)
{
    const struct byi_graph_node *node = &b->g->nodes[b->g->inputs[i]];
    const struct byi_type *declared = node->out[0];
    char found[128], expected[128];
    if (!byi_type_is_static(actual) || !byi_type_refines(actual, declared))
        return byi_fail(
            b->err, BYOC_ETYPE,
            "%s: found input %u of type %s %s, expected %s %s", b->g->symbol, i,
            byoc_dtype_name(actual->dtype),
            byi_dims_text(found, sizeof found, actual->rank, actual->dims),
            byoc_dtype_name(declared->dtype),
            byi_dims_text(expected, sizeof expected, declared->rank,
                          declared->dims));
    for (uint32_t d = 0; d < declared->rank; d++) {
        if (!BYI_IS_SYMBOL(declared->dims[d]))
            continue;
        int64_t *size = &b->sizes[-1 - declared->dims[d]];
        if (*size >= 0 && *size != actual->dims[d])
            return byi_fail(b->err, BYOC_ETYPE,
                            "%s: found %lld as dim %u of input %u, expected "
                            "%lld, the size of %s in an earlier dim",
                            b->g->symbol, (long long)actual->dims[d], d, i,
                            (long long)*size,
                            b->g->symbols[-1 - declared->dims[d]]);
        *size = actual->dims[d];
    }
    /* type rules check the sizes of results; inputs are checked here, since it
     * may be that no rule reads them */
    if (actual->dtype != BYOC_STRING && byi_type_bytes(actual) == UINT64_MAX)
        return byi_fail(b->err, BYOC_ELIMIT,
                        "%s: found input %u of type %s, expected fewer than "
                        "2^63 elements and 2^64 bytes",
                        b->g->symbol, i,
                        byi_type_text(found, sizeof found, actual));
    b->out[b->g->inputs[i]][0] = actual;
    return BYOC_OK;
}

/* Whether the type *inferred of a step fits the type *declared in the JSON. If
 * only a field of a tuple does not, sets both to the types of the field. */
static bool fits_step(const struct byi_type **inferred,
                      const struct byi_type **declared)
{
    const struct byi_type *actual = *inferred, *expected = *declared;
    if (expected->kind != BYI_TUPLE || actual->kind != BYI_TUPLE ||
        actual->n_fields != expected->n_fields)
        return expected->kind != BYI_TUPLE &&
               byi_type_refines(actual, expected);
    bool fit = true;
    for (uint32_t i = 0; fit && i < expected->n_fields; i++) {
        *inferred = actual->fields[i];
        *declared = expected->fields[i];
        fit = byi_type_refines(*inferred, *declared);
    }
    return fit;
}

/* Returns the type of an argument. Sets *value to the value if it is a constant
 * with data. */
static const struct byi_type *arg_type(const struct binder *b,
                                       const struct byi_graph_node *node,
                                       struct byi_graph_arg arg,
                                       const struct byi_tensor **value)
{
    if (arg.is_step) {
        const struct byi_type *type = b->steps[arg.index];
        return arg.is_field ? type->fields[arg.field] : type;
    }
    const struct byi_graph_ref ref = node->operands[arg.index].ref;
    const struct byi_graph_node *from = &b->g->nodes[ref.node];
    if (from->kind == BYI_GRAPH_CONST && from->data < b->consts->n) {
        const struct byoc_view *view = &b->consts->at[from->data];
        struct byi_tensor *t = byi_arena_calloc(b->arena, 1, sizeof *t);
        *t = (struct byi_tensor){.data = view->data,
                                 .dtype = (enum byoc_dtype)view->dtype,
                                 .rank = view->rank};
        for (uint32_t d = 0; d < t->rank; d++) /* dims may be NULL */
            t->dims[d] = view->dims[d];
        *value = view->data ? t : NULL;
    }
    return b->out[ref.node][ref.output];
}

/* Infer the type of step `at` of the kernel, and check that it equals
 * the type in the JSON except for the dims that are symbols there. */
static enum byoc_status infer_step(struct binder *b,
                                   const struct byi_graph_node *node,
                                   uint32_t at)
{
    const struct byi_graph_step *step = &node->steps[at];
    const struct byi_type **in =
        byi_arena_calloc(b->arena, step->n_args, sizeof *in);
    const struct byi_tensor **value =
        byi_arena_calloc(b->arena, step->n_args, sizeof *value);
    for (uint32_t i = 0; i < step->n_args; i++)
        in[i] = arg_type(b, node, step->args[i], &value[i]);
    struct byi_infer infer = {.arena = b->arena,
                              .op = step->op,
                              .attrs = step->attrs,
                              .n_in = step->n_args,
                              .in = in,
                              .value = value,
                              .err = b->err};
    BYI_TRY(byi_infer_type(&infer, &b->steps[at]));
    if (!byi_type_has_static_sizes(b->steps[at]))
        return byi_fail(b->err, BYOC_EUNSUPPORTED,
                        "found a result of %s whose size depends on data, "
                        "expected one that follows from the inputs' sizes",
                        step->op->name);
    char found[160], expected[160];
    const struct byi_type *inferred = b->steps[at], *declared = step->type;
    if (!fits_step(&inferred, &declared))
        return byi_fail(b->err, BYOC_ETYPE,
                        "found a result of %s of type %s, expected %s, for "
                        "which the region was compiled",
                        step->op->name,
                        byi_type_text(found, sizeof found, inferred),
                        byi_type_text(expected, sizeof expected, declared));
    return BYOC_OK;
}

/* Infer the types of steps first .. end-1. The type of an `if` comes from its
 * branches, whose steps follow it. Recurses once for each level of nested
 * `if`s, which the region's reader limits. */
static enum byoc_status infer_steps(struct binder *b,
                                    const struct byi_graph_node *node,
                                    uint32_t first, uint32_t end)
{
    for (uint32_t s = first; s < end;) {
        const struct byi_graph_branch *branch = node->steps[s].branch;
        uint32_t next = s + 1;
        for (uint32_t k = 0; k < 2 && branch[k].n; k++) {
            next = branch[k].first + branch[k].n;
            BYI_TRY(infer_steps(b, node, branch[k].first, next));
        }
        BYI_TRY(infer_step(b, node, s));
        s = next;
    }
    return BYOC_OK;
}

/* --- JSON ----------------------------------------------------------------- */

/* Replace the types of one step, `*step`, and of the steps of its branches with
 * the inferred types. *step becomes the number of the next step. Steps are
 * numbered in order: an `if`, the steps of its branches, the next step.
 * Recurses like infer_steps. */
static void replace_step_types(const struct binder *b, cJSON *json,
                               uint32_t *step)
{
    static const char *const keys[] = {"then", "else"};
    byi_json_replace(
        json, "type",
        byi_json_of_type(b->arena, b->steps[(*step)++], NULL, NULL));
    for (uint32_t k = 0; k < 2; k++) {
        cJSON *branch = cJSON_GetObjectItemCaseSensitive(json, keys[k]);
        cJSON *inner, *list = cJSON_GetObjectItemCaseSensitive(branch, "steps");
        cJSON_ArrayForEach(inner, list) replace_step_types(b, inner, step);
    }
}

static void replace_out_types(const struct binder *b, cJSON *json,
                              uint32_t node)
{
    cJSON *list = byi_json_list(b->arena);
    for (uint32_t i = 0; i < b->g->nodes[node].n_out; i++)
        byi_json_append(
            list, byi_json_of_type(b->arena, b->out[node][i], NULL, NULL));
    byi_json_replace(json, "out", list);
}

/* --- nodes ---------------------------------------------------------------- */

/* Prefix the error of a kernel with the region, and with the model's nodes that
 * the kernel came from: passes may have replaced their operators. */
static enum byoc_status name_kernel(const struct binder *b, const cJSON *json)
{
    struct byi_text text = {0};
    const cJSON *source;
    cJSON_ArrayForEach(source, cJSON_GetObjectItemCaseSensitive(json, "source"))
    {
        if (cJSON_IsString(source))
            byi_text_addf(&text, "%s%s", text.n ? ", " : ": ",
                          source->valuestring);
    }
    const enum byoc_status status =
        byi_prefix(b->err, "%s%s", b->g->symbol, text.n ? text.at : "");
    byi_text_free(&text);
    return status;
}

static enum byoc_status bind_kernel(struct binder *b, uint32_t at, cJSON *json)
{
    const struct byi_graph_node *node = &b->g->nodes[at];
    uint32_t step = 0;
    cJSON *post;
    b->steps = byi_arena_calloc(b->arena, node->n_steps, sizeof *b->steps);
    if (infer_steps(b, node, 0, node->n_steps) != BYOC_OK)
        return name_kernel(b, json);
    const struct byi_type *last = b->steps[node->last];
    for (uint32_t i = 0; i < node->n_out; i++)
        b->out[at][i] = last->kind == BYI_TUPLE ? last->fields[i] : last;
    replace_step_types(b, json, &step);
    cJSON_ArrayForEach(post, cJSON_GetObjectItemCaseSensitive(json, "post_ops"))
        replace_step_types(b, post, &step);
    return BYOC_OK;
}

static enum byoc_status bind_nodes(struct binder *b, cJSON *root)
{
    cJSON *json = cJSON_GetObjectItemCaseSensitive(root, "nodes")->child;
    for (uint32_t i = 0; i < b->g->n_nodes; i++, json = json->next) {
        const struct byi_graph_node *node = &b->g->nodes[i];
        if (node->kind == BYI_GRAPH_CONST) /* a type that outlives the graph */
            b->out[i][0] =
                byi_type_tensor(b->arena, node->out[0]->dtype,
                                node->out[0]->rank, node->out[0]->dims);
        if (node->kind == BYI_GRAPH_KERNEL)
            BYI_TRY(bind_kernel(b, i, json));
        replace_out_types(b, json, i);
    }
    return BYOC_OK;
}

static enum byoc_status bind_graph(struct binder *b, cJSON *root,
                                   uint32_t n_inputs,
                                   const struct byi_type *const *inputs,
                                   struct byi_sized *sized)
{
    const struct byi_graph *g = b->g;
    if (n_inputs != g->n_inputs)
        return byi_fail(b->err, BYOC_EINVAL, "%s: found %u inputs, expected %u",
                        g->symbol, n_inputs, g->n_inputs);
    b->out = byi_arena_calloc(b->arena, g->n_nodes, sizeof *b->out);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        b->out[i] =
            byi_arena_calloc(b->arena, g->nodes[i].n_out, sizeof *b->out[i]);
    b->sizes = byi_arena_calloc(b->arena, g->n_symbols, sizeof *b->sizes);
    memset(b->sizes, 0xff, g->n_symbols * sizeof *b->sizes);
    for (uint32_t i = 0; i < n_inputs; i++)
        BYI_TRY(bind_input(b, i, inputs[i]));
    BYI_TRY(bind_nodes(b, root));
    sized->n_outputs = g->n_outputs;
    sized->outputs =
        byi_arena_calloc(b->arena, g->n_outputs, sizeof *sized->outputs);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        sized->outputs[i] = b->out[g->outputs[i].node][g->outputs[i].output];
    return BYOC_OK;
}

enum byoc_status byoc_internal_region_bind(
    const char *json, size_t n, const struct byi_region_consts *consts,
    uint32_t n_inputs, const struct byi_type *const *inputs,
    struct byi_arena *arena, struct byi_sized *sized, struct byoc_error *err)
{
    struct byi_graph *graph = NULL;
    cJSON *root = NULL;
    *sized = (struct byi_sized){0};
    BYI_BORDER(err);
    BYI_TRY(byi_graph_read_varying(json, n, &graph, err));
    struct binder b = {
        .g = graph, .arena = arena, .consts = consts, .err = err};
    enum byoc_status status =
        byi_json_parse(json, n, BYI_GRAPH_MAX_BYTES, &root, err);
    if (status == BYOC_OK)
        status = bind_graph(&b, root, n_inputs, inputs, sized);
    if (status == BYOC_OK) {
        struct byi_text text = {0};
        byi_json_print(root, &text);
        sized->json = byi_arena_copy(arena, text.at, text.n);
        sized->json_bytes = text.n;
        byi_text_free(&text);
    }
    byi_json_free(&root);
    byi_graph_free(&graph);
    return status;
}
