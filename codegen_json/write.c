/* SPDX-License-Identifier: Apache-2.0 */
/* write.c: writes a region, or one composite, as JSON (docs/json.md), with one
 * pool of constants, named operands, and steps in the model's order. The same
 * module gives the same bytes.
 */
#include "codegen_json.h"

#include "core/base/json_write.h"
#include "region/graph.h"

#include <cjson/cJSON.h>

#include <string.h>

/* A value of the region: output `output` of JSON node `node`. */
struct node_ref {
    uint32_t node, output;
};

/* The state of a write. Nodes are printed one by one, each on a line. A JSON
 * tree of a large region would take many times the memory of its text.
 * Indentation would take almost as much as the text itself. */
struct region_writer {
    const struct byi_module *m;
    struct byi_arena *arena;        /* of the node being written */
    struct byi_arena *region_arena; /* of the whole region */
    struct byi_text *json;
    uint32_t n_nodes;
    BYI_VEC(uint32_t) consts;
    /* for each constant of the module: 1 + its JSON node */
    uint32_t *const_node;
    struct node_ref *refs; /* indexed by node of the function */
};

static const char *symbol_name(void *ctx, int64_t dim)
{
    return byi_symbol_name(ctx, dim);
}

static cJSON *type_json(const struct region_writer *w,
                        const struct byi_type *type)
{
    return byi_json_of_type(w->arena, type, symbol_name,
                            (void *)(uintptr_t)w->m);
}

/* The types of a node's results as a list; a tuple becomes its fields. */
static cJSON *outs_json(const struct region_writer *w,
                        const struct byi_type *type)
{
    if (type->kind == BYI_TUPLE)
        return type_json(w, type);
    cJSON *list = byi_json_list(w->arena);
    byi_json_append(list, type_json(w, type));
    return list;
}

static cJSON *pair_json(struct byi_arena *arena, struct node_ref ref)
{
    cJSON *pair = byi_json_list(arena);
    byi_json_append(pair, byi_json_number(arena, ref.node));
    byi_json_append(pair, byi_json_number(arena, ref.output));
    return pair;
}

static uint32_t add_node(struct region_writer *w, cJSON *node)
{
    byi_text_put(w->json, w->n_nodes ? ",\n" : "\n");
    byi_json_print_line(node, w->json);
    return w->n_nodes++;
}

static struct node_ref add_input(struct region_writer *w, const char *name,
                                 const struct byi_type *type)
{
    cJSON *node = byi_json_object(w->arena);
    byi_json_add(node, "op", byi_json_text(w->arena, "input"));
    byi_json_add(node, "name", byi_json_text(w->arena, name));
    byi_json_add(node, "out", outs_json(w, type));
    return (struct node_ref){add_node(w, node), 0};
}

static struct node_ref add_const(struct region_writer *w, uint32_t constant)
{
    if (w->const_node[constant])
        return (struct node_ref){w->const_node[constant] - 1, 0};
    w->const_node[constant] = w->n_nodes + 1;
    cJSON *node = byi_json_object(w->arena);
    byi_json_add(node, "op", byi_json_text(w->arena, "const"));
    byi_json_add(node, "data", byi_json_number(w->arena, w->consts.n));
    byi_json_add(node, "out", outs_json(w, w->m->consts.at[constant].type));
    BYI_PUSH(&w->consts, constant);
    return (struct node_ref){add_node(w, node), 0};
}

/* --- one composite as one kernel ------------------------------------------ */

/* The role of a node in a composite's body: operand `name`, step `index`, or a
 * field of that step. */
struct role {
    const char *name; /* NULL: a step */
    uint32_t index, field;
    bool is_field;
};

/* The steps of a composite being written. */
struct step_list {
    const struct region_writer *w;
    const char *name; /* of the composite */
    cJSON *kernel;    /* step 0 */
    uint32_t n;       /* steps so far */
    uint32_t depth;   /* nesting depth of ifs */
    struct byoc_error *err;
};

static cJSON *arg_json(struct byi_arena *arena, const struct role *role)
{
    if (role->name)
        return byi_json_text(arena, role->name);
    if (!role->is_field)
        return byi_json_number(arena, role->index);
    return pair_json(arena, (struct node_ref){role->index, role->field});
}

static cJSON *args_json(struct byi_arena *arena, const struct byi_node *node,
                        const struct role *roles)
{
    cJSON *args = byi_json_list(arena);
    const uint32_t n = node->kind == BYI_IF ? 1 : node->n_args;
    for (uint32_t i = 0; i < n; i++)
        byi_json_append(args, arg_json(arena, &roles[node->args[i]]));
    return args;
}

static void fill_step(const struct region_writer *w, cJSON *step,
                      const struct byi_node *node, const struct role *roles)
{
    static const struct byi_attrs none = {0};
    const bool op = node->kind == BYI_CALL_OP;
    byi_json_add(step, "name",
                 byi_json_text(w->arena, op ? byi_op(node->op)->name
                                         : node->kind == BYI_IF ? "if"
                                                                : "tuple"));
    byi_json_add(step, "args", args_json(w->arena, node, roles));
    byi_json_add(step, "attrs",
                 byi_attrs_to_json(w->arena, op ? node->attrs : &none));
    byi_json_add(step, "type", type_json(w, node->type));
}

/* The next of the comma-separated names in *list, or NULL; moves *list past it.
 */
static const char *next_name(struct byi_arena *arena, const char **list)
{
    if (!*list || !**list)
        return NULL;
    size_t n = strcspn(*list, ",");
    const char *name = byi_arena_strn(arena, *list, n);
    *list += n + ((*list)[n] == ',');
    return name;
}

/* Make operands of the parameters and constants of the body. This adds the
 * nodes of the constants to the graph, in the order of the body. */
static enum byoc_status add_operands(struct region_writer *w, cJSON *kernel,
                                     const struct byi_func *body,
                                     const struct node_ref *params,
                                     struct role *roles, struct byoc_error *err)
{
    cJSON *named = byi_json_add(kernel, "operands", byi_json_object(w->arena));
    const char *list = body->attr.operands;
    for (byi_id id = 0; id < body->nodes.n; id++) {
        const struct byi_node *node = &body->nodes.at[id];
        if (node->kind == BYI_PARAM) {
            roles[id].name = body->param_names.at[node->index];
            byi_json_add(named, roles[id].name,
                         pair_json(w->arena, params[node->index]));
        } else if (node->kind == BYI_CONST) {
            roles[id].name = next_name(w->arena, &list);
            if (!roles[id].name)
                return byi_fail(err, BYOC_EINVAL,
                                "composite '%s': constant %%%u: found no name "
                                "in Operands, expected one for every constant",
                                body->attr.composite, id);
            byi_json_add(named, roles[id].name,
                         pair_json(w->arena, add_const(w, node->index)));
        }
    }
    return BYOC_OK;
}

/* Whether the node is a field of an earlier step, possibly captured by a
 * branch. */
static bool is_step_field(const struct byi_node *node, const struct role *roles)
{
    return node->kind == BYI_GET && !roles[node->args[0]].name &&
           !roles[node->args[0]].is_field;
}

static enum byoc_status add_steps(struct step_list *s, const struct byi_func *f,
                                  struct role *roles, cJSON *list);

/* Write a branch: {"steps": [...], "result": ...}. Its captures have the roles
 * that `around` gives them in the enclosing body. */
static enum byoc_status add_branch(struct step_list *s,
                                   const struct byi_node *fn,
                                   const struct role *around, cJSON *json)
{
    if (fn->kind != BYI_FN)
        return byi_fail(s->err, BYOC_EINVAL,
                        "composite '%s': found a branch that is a named "
                        "function or a value, expected a function literal",
                        s->name);
    const struct byi_func *body = s->w->m->funcs.at[fn->index];
    cJSON *list = byi_json_add(json, "steps", byi_json_list(s->w->arena));
    if (body->params.n != fn->n_args)
        return byi_fail(s->err, BYOC_EINVAL,
                        "composite '%s': found a branch with %u parameters, "
                        "expected none",
                        s->name, body->params.n - fn->n_args);
    if (s->depth == BYI_GRAPH_MAX_IFS)
        return byi_fail(s->err, BYOC_EINVAL,
                        "composite '%s': found too deeply nested 'if's, "
                        "expected at most %d levels",
                        s->name, BYI_GRAPH_MAX_IFS);
    struct role *roles =
        byi_arena_calloc(s->w->arena, body->nodes.n, sizeof *roles);
    for (uint32_t i = 0; i < fn->n_args; i++)
        roles[body->params.at[i]] = around[fn->args[i]];
    s->depth++;
    BYI_TRY(add_steps(s, body, roles, list));
    s->depth--;
    byi_json_add(json, "result", arg_json(s->w->arena, &roles[body->result]));
    return BYOC_OK;
}

static enum byoc_status add_step(struct step_list *s, const struct byi_func *f,
                                 const struct byi_node *node,
                                 struct role *roles, cJSON *step)
{
    fill_step(s->w, step, node, roles);
    if (node->kind != BYI_IF)
        return BYOC_OK;
    for (uint32_t i = 1; i <= 2; i++)
        BYI_TRY(add_branch(s, &f->nodes.at[node->args[i]], roles,
                           byi_json_add(step, i == 1 ? "then" : "else",
                                        byi_json_object(s->w->arena))));
    return BYOC_OK;
}

/* Write the steps of the body: the first one is the kernel object itself, the
 * others are appended to `list`, its "post_ops". A composite contains
 * parameters, constants, operators, tuples, fields of these, and `if`s with the
 * same in their branches. The recursion is as deep as `if`s are nested, at most
 * BYI_GRAPH_MAX_IFS levels. */
static enum byoc_status add_steps(struct step_list *s, const struct byi_func *f,
                                  struct role *roles, cJSON *list)
{
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_PARAM || node->kind == BYI_FN ||
            (node->kind == BYI_CONST && s->depth == 0))
            continue;
        if (is_step_field(node, roles)) {
            roles[id] = (struct role){.index = roles[node->args[0]].index,
                                      .field = node->index,
                                      .is_field = true};
            continue;
        }
        if (node->kind != BYI_CALL_OP && node->kind != BYI_MAKE_TUPLE &&
            node->kind != BYI_IF)
            return byi_fail(s->err, BYOC_EINVAL,
                            "composite '%s': %%%u: found a node that it cannot "
                            "contain, expected parameters, operators, tuples, "
                            "'if' and, outside branches, constants",
                            s->name, id);
        cJSON *step = s->n ? byi_json_object(s->w->arena) : s->kernel;
        if (s->n)
            byi_json_append(list, step);
        roles[id].index = s->n++;
        BYI_TRY(add_step(s, f, node, roles, step));
    }
    return BYOC_OK;
}

static void add_sources(const struct region_writer *w, cJSON *kernel,
                        const struct byi_sources *sources)
{
    cJSON *list = byi_json_add(kernel, "source", byi_json_list(w->arena));
    for (uint32_t i = 0; i < sources->n; i++)
        byi_json_append(
            list,
            byi_json_text(w->arena, w->m->sources.at[sources->at[i]].name));
}

static enum byoc_status add_kernel(struct region_writer *w,
                                   const struct byi_func *body,
                                   const struct node_ref *params,
                                   const struct byi_sources *sources,
                                   struct node_ref *ref, struct byoc_error *err)
{
    struct role *roles =
        byi_arena_calloc(w->arena, body->nodes.n, sizeof *roles);
    cJSON *kernel = byi_json_object(w->arena);
    byi_json_add(kernel, "op", byi_json_text(w->arena, "kernel"));
    byi_json_add(kernel, "pattern",
                 byi_json_text(w->arena, body->attr.composite));
    if (body->attr.exact)
        byi_json_add(kernel, "exact", byi_json_bool(w->arena, true));
    enum byoc_status status = add_operands(w, kernel, body, params, roles, err);
    struct step_list steps = {
        .w = w, .name = body->attr.composite, .kernel = kernel, .err = err};
    cJSON *post_ops = byi_json_list(w->arena);
    if (status == BYOC_OK)
        status = add_steps(&steps, body, roles, post_ops);
    byi_json_add(kernel, "post_ops", post_ops);
    byi_json_add(kernel, "out",
                 outs_json(w, body->nodes.at[body->result].type));
    add_sources(w, kernel, sources);
    *ref = (struct node_ref){add_node(w, kernel), 0};
    return status;
}

/* --- whole regions -------------------------------------------------------- */

static void open_graph(struct region_writer *w, const char *symbol)
{
    w->arena = byi_arena_new();
    w->const_node = byi_arena_calloc(w->region_arena, w->m->consts.n,
                                     sizeof *w->const_node);
    byi_text_put(w->json, "{\n  \"format\": \"byoc-graph\",\n"
                          "  \"version\": 1,\n  \"symbol\": ");
    byi_json_print_line(byi_json_text(w->arena, symbol), w->json);
    byi_text_put(w->json, ",\n  \"nodes\": [");
}

static void close_graph(struct region_writer *w, uint32_t n_inputs,
                        const byi_id *inputs, uint32_t n_outputs,
                        const struct node_ref *outputs, uint32_t **consts,
                        uint32_t *n_consts)
{
    cJSON *list = byi_json_list(w->arena);
    for (uint32_t i = 0; i < n_inputs; i++)
        byi_json_append(list, byi_json_number(w->arena, inputs[i]));
    byi_text_put(w->json,
                 w->n_nodes ? "\n  ],\n  \"inputs\": " : "],\n  \"inputs\": ");
    byi_json_print_line(list, w->json);
    list = byi_json_list(w->arena);
    for (uint32_t i = 0; i < n_outputs; i++)
        byi_json_append(list, pair_json(w->arena, outputs[i]));
    byi_text_put(w->json, ",\n  \"outputs\": ");
    byi_json_print_line(list, w->json);
    byi_text_put(w->json, "\n}\n");
    *n_consts = w->consts.n;
    *consts = byi_arena_copy(w->region_arena, w->consts.at,
                             w->consts.n * sizeof *w->consts.at);
    byi_vec_free(w->consts.at);
    byi_arena_free(&w->arena);
}

static enum byoc_status add_region_node(struct region_writer *w,
                                        const struct byi_func *f, byi_id id,
                                        struct byoc_error *err)
{
    const struct byi_node *node = &f->nodes.at[id];
    switch (node->kind) {
    case BYI_PARAM:
        w->refs[id] = add_input(w, f->param_names.at[node->index], node->type);
        return BYOC_OK;
    case BYI_CONST:
        w->refs[id] = add_const(w, node->index);
        return BYOC_OK;
    case BYI_FN:
    case BYI_MAKE_TUPLE:
        return BYOC_OK; /* handled by their readers */
    case BYI_GET:
        w->refs[id] =
            (struct node_ref){w->refs[node->args[0]].node, node->index};
        return BYOC_OK;
    case BYI_CALL: {
        const struct byi_node *callee = &f->nodes.at[node->args[0]];
        const struct byi_func *body =
            callee->kind == BYI_FN ? w->m->funcs.at[callee->index] : NULL;
        if (!body || !body->attr.composite)
            break;
        struct node_ref *operands =
            byi_arena_calloc(w->arena, node->n_args, sizeof *operands);
        for (uint32_t i = 1; i < node->n_args; i++)
            operands[i - 1] = w->refs[node->args[i]];
        return add_kernel(w, body, operands, node->sources, &w->refs[id], err);
    }
    default:
        break;
    }
    return byi_fail(err, BYOC_EINVAL,
                    "@%s: %%%u: found a node that is neither a call of a "
                    "composite nor a constant, expected only these in a region",
                    f->name ? f->name : "?", id);
}

/* Set *outputs to the function's results; a tuple becomes its fields. Returns
 * their number. */
static uint32_t result_refs(const struct region_writer *w,
                            const struct byi_func *f, struct node_ref **outputs)
{
    const struct byi_node *result = &f->nodes.at[f->result];
    if (result->kind == BYI_MAKE_TUPLE) {
        *outputs =
            byi_arena_calloc(w->region_arena, result->n_args, sizeof **outputs);
        for (uint32_t i = 0; i < result->n_args; i++)
            (*outputs)[i] = w->refs[result->args[i]];
        return result->n_args;
    }
    uint32_t n = result->type->kind == BYI_TUPLE ? result->type->n_fields : 1;
    *outputs = byi_arena_calloc(w->region_arena, n, sizeof **outputs);
    for (uint32_t i = 0; i < n; i++)
        (*outputs)[i] = (struct node_ref){w->refs[f->result].node,
                                          w->refs[f->result].output + i};
    return n;
}

enum byoc_status byi_region_write(const struct byi_module *m, uint32_t func,
                                  struct byi_arena *arena,
                                  struct byi_text *json, uint32_t **consts,
                                  uint32_t *n_consts, struct byoc_error *err)
{
    const struct byi_func *f = m->funcs.at[func];
    struct region_writer w = {.m = m, .region_arena = arena, .json = json};
    w.refs = byi_arena_calloc(arena, f->nodes.n, sizeof *w.refs);
    open_graph(&w, f->name);
    enum byoc_status status = BYOC_OK;
    for (byi_id id = 0; id < f->nodes.n && status == BYOC_OK; id++) {
        status = add_region_node(&w, f, id, err);
        byi_arena_reset(w.arena);
    }
    uint32_t *inputs = byi_arena_calloc(arena, f->params.n, sizeof *inputs);
    for (uint32_t i = 0; i < f->params.n; i++)
        inputs[i] = w.refs[f->params.at[i]].node;
    struct node_ref *outputs;
    uint32_t n_outputs = result_refs(&w, f, &outputs);
    close_graph(&w, f->params.n, inputs, n_outputs, outputs, consts, n_consts);
    return status;
}

enum byoc_status byi_composite_write(const struct byi_module *m, uint32_t func,
                                     const uint32_t *const_args,
                                     struct byi_arena *arena,
                                     struct byi_text *json, uint32_t **consts,
                                     uint32_t *n_consts, struct byoc_error *err)
{
    const struct byi_func *body = m->funcs.at[func];
    struct region_writer w = {.m = m, .region_arena = arena, .json = json};
    open_graph(&w, "probe");
    uint32_t n = body->params.n, n_inputs = 0;
    struct node_ref *operands = byi_arena_calloc(arena, n, sizeof *operands);
    uint32_t *inputs = byi_arena_calloc(arena, n, sizeof *inputs);
    for (uint32_t i = 0; i < n; i++) {
        if (const_args[i] != BYI_NO_ID) {
            operands[i] = add_const(&w, const_args[i]);
            continue;
        }
        const struct byi_node *param = &body->nodes.at[body->params.at[i]];
        operands[i] = add_input(&w, body->param_names.at[i], param->type);
        inputs[n_inputs++] = operands[i].node;
    }
    struct node_ref kernel;
    enum byoc_status status =
        add_kernel(&w, body, operands, byi_sources_none(), &kernel, err);
    const struct byi_type *type = body->nodes.at[body->result].type;
    uint32_t n_outputs = type->kind == BYI_TUPLE ? type->n_fields : 1;
    struct node_ref *outputs =
        byi_arena_calloc(arena, n_outputs, sizeof *outputs);
    for (uint32_t i = 0; i < n_outputs; i++)
        outputs[i] = (struct node_ref){kernel.node, i};
    close_graph(&w, n_inputs, inputs, n_outputs, outputs, consts, n_consts);
    return status;
}
