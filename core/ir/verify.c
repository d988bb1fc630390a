/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c: checks the invariants of the IR, in time linear in the module.
 * Types are inferred again and compared; sizes that depend on data may have any
 * symbol.
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* The place that is being checked: node `id` of function `f`. */
struct verifier {
    const struct byi_module *m;
    const struct byi_func *f;
    uint32_t func;           /* the index of f */
    byi_id id;               /* BYI_NO_ID: the signature of f */
    int64_t next_symbol;     /* for symbols that inference creates */
    struct byi_arena *arena; /* for inference; reset for each function */
    struct byoc_error *err;
};

/* --- messages ----------------------------------------------------------- */

/* Put "@main" or "function 7", and "%12", in front of the message. */
static enum byoc_status add_place(struct verifier *c)
{
    char name[96];

    if (c->f->name)
        snprintf(name, sizeof name, "@%.80s", c->f->name);
    else
        snprintf(name, sizeof name, "function %u", c->func);
    if (c->id == BYI_NO_ID)
        return byi_prefix(c->err, "%s", name);
    return byi_prefix(c->err, "%s, %%%u", name, c->id);
}

static enum byoc_status fail_check(struct verifier *c, const char *fmt, ...)
    BYI_PRINTF(2, 3);
static enum byoc_status fail_check(struct verifier *c, const char *fmt, ...)
{
    char text[700];

    BYI_FORMAT(text, fmt);
    byi_fail(c->err, BYOC_ETYPE, "%s", text);
    return add_place(c);
}

static enum byoc_status fail_type(struct verifier *c, const char *what,
                                  const struct byi_type *found,
                                  const struct byi_type *expected)
{
    char a[300], b[300];

    return fail_check(c, "%s is %s, expected %s", what,
                      byi_text_type_buf(c->m, found, a, sizeof a),
                      byi_text_type_buf(c->m, expected, b, sizeof b));
}

/* --- types -------------------------------------------------------------- */

/* A node's type, and the one that its rule infers. */
struct inferred_pair {
    const struct byi_type *type, *inferred;
};

/* The symbols in the module for dims that inference created, by their distance
 * below first_new. */
struct naming {
    BYI_VEC(int64_t) names; /* 0: none yet */
    BYI_VEC(struct inferred_pair) work;
    int64_t first_new;
};

static bool dim_fits(struct naming *n, int64_t dim, int64_t inferred)
{
    uint32_t i = 0;

    if (!BYI_IS_SYMBOL(inferred) || inferred > n->first_new)
        return dim == inferred;
    i = (uint32_t)(n->first_new - inferred);
    while (n->names.n <= i)
        BYI_PUSH(&n->names, 0);
    if (n->names.at[i] == 0)
        n->names.at[i] = dim;
    return BYI_IS_SYMBOL(dim) && n->names.at[i] == dim;
}

static bool tensor_fits(struct naming *n, const struct byi_type *type,
                        const struct byi_type *inferred)
{
    if (type->dtype != inferred->dtype || type->rank != inferred->rank)
        return false;
    for (uint32_t i = 0; i < type->rank; i++)
        if (!dim_fits(n, type->dims[i], inferred->dims[i]))
            return false;
    return true;
}

static bool pair_fits(struct naming *n, struct inferred_pair p)
{
    if (p.type == p.inferred)
        return true;
    if (p.type->kind != p.inferred->kind)
        return false;
    if (p.type->kind == BYI_TENSOR)
        return tensor_fits(n, p.type, p.inferred);
    if (byi_type_is_list(p.type))
        return byi_type_equal(p.type, p.inferred);
    if (p.type->n_fields != p.inferred->n_fields)
        return false;
    for (uint32_t i = 0; i < p.type->n_fields; i++)
        BYI_PUSH(&n->work, ((struct inferred_pair){p.type->fields[i],
                                                   p.inferred->fields[i]}));
    if (p.type->kind == BYI_FUNC)
        BYI_PUSH(&n->work,
                 ((struct inferred_pair){p.type->result, p.inferred->result}));
    return true;
}

bool byi_type_fits(const struct byi_type *type, const struct byi_type *inferred,
                   int64_t first_new)
{
    struct naming n = {.first_new = first_new};
    bool fits = true;

    BYI_PUSH(&n.work, ((struct inferred_pair){type, inferred}));
    while (fits && n.work.n > 0)
        fits = pair_fits(&n, n.work.at[--n.work.n]);
    byi_vec_free(n.names.at);
    byi_vec_free(n.work.at);
    return fits;
}

static enum byoc_status check_tensor(struct verifier *c,
                                     const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR)
        return BYOC_OK;
    if (type->rank > BYI_MAX_RANK)
        return fail_check(c, "its type has rank %u, expected at most %d",
                          type->rank, BYI_MAX_RANK);
    if (!byoc_dtype_name(type->dtype) || type->dtype == BYOC_NONE)
        return fail_check(
            c, "its type has element type %d, expected one of enum byoc_dtype",
            (int)type->dtype);
    for (uint32_t i = 0; i < type->rank; i++)
        if (-1 - type->dims[i] >= (int64_t)c->m->symbols.n)
            return fail_check(
                c,
                "its axis %u has symbol number %lld, expected one of "
                "the module's %u",
                i, (long long)(-1 - type->dims[i]), c->m->symbols.n);
    return BYOC_OK;
}

static enum byoc_status expect_type(struct verifier *c,
                                    const struct byi_type *inferred)
{
    const struct byi_type *type = c->f->nodes.at[c->id].type;

    if (byi_type_fits(type, inferred, -1 - (int64_t)c->m->symbols.n))
        return BYOC_OK;
    return fail_type(c, "its type", type, inferred);
}

/* The type of a function as a value must match the types of its nodes. */
static enum byoc_status check_func_type(struct verifier *c,
                                        const struct byi_func *g)
{
    const struct byi_type *type = c->f->nodes.at[c->id].type;
    uint32_t n_declared = g->params.n - g->n_captures;
    char found[300];

    if (type->kind != BYI_FUNC || type->n_fields != n_declared)
        return fail_check(
            c, "its type is %s, expected a function of %u parameter%s",
            byi_text_type_buf(c->m, type, found, sizeof found), n_declared,
            byi_plural(n_declared));
    for (uint32_t i = 0; i < n_declared; i++) {
        const struct byi_type *param = g->nodes.at[g->params.at[i]].type;
        if (!byi_type_equal(type->fields[i], param))
            return fail_type(c, "a parameter's type", type->fields[i], param);
    }
    if (!byi_type_equal(type->result, g->nodes.at[g->result].type))
        return fail_type(c, "the result's type", type->result,
                         g->nodes.at[g->result].type);
    return BYOC_OK;
}

/* --- operators ---------------------------------------------------------- */

static enum byoc_status check_attrs(struct verifier *c, const struct byi_op *op,
                                    const struct byi_attrs *attrs)
{
    if (!attrs || attrs->n != op->n_attrs)
        return fail_check(c, "%s has %u attributes, expected %u", op->name,
                          attrs ? attrs->n : 0, op->n_attrs);
    for (uint32_t i = 0; i < attrs->n; i++)
        if (!attrs->at[i].name || attrs->at[i].kind != op->attrs[i].kind ||
            strcmp(attrs->at[i].name, op->attrs[i].name) != 0)
            return fail_check(
                c,
                "%s: attribute %u is '%s' of kind %d, expected '%s' of kind %d",
                op->name, i, attrs->at[i].name ? attrs->at[i].name : "",
                (int)attrs->at[i].kind, op->attrs[i].name,
                (int)op->attrs[i].kind);
    return BYOC_OK;
}

static int64_t make_symbol(void *ctx)
{
    return ((struct verifier *)ctx)->next_symbol--;
}

static enum byoc_status check_op(struct verifier *c,
                                 const struct byi_node *node)
{
    const struct byi_op *op = byi_op(node->op);
    const struct byi_type **types =
        byi_arena_calloc(c->arena, node->n_args, sizeof *types);
    struct byi_tensor *views =
        byi_arena_calloc(c->arena, node->n_args, sizeof *views);
    const struct byi_tensor **values =
        byi_arena_calloc(c->arena, node->n_args, sizeof *values);
    struct byi_infer t = {
        .arena = c->arena,
        .op = op,
        .attrs = node->attrs,
        .n_in = node->n_args,
        .in = types,
        .value = values,
        .new_symbol = make_symbol,
        .symbol_ctx = c,
        .err = c->err,
    };
    const struct byi_type *inferred = NULL;
    char found[300];

    BYI_TRY(check_attrs(c, op, node->attrs));
    for (uint32_t i = 0; i < node->n_args; i++) {
        types[i] = c->f->nodes.at[node->args[i]].type;
        if (types[i]->kind != BYI_TENSOR && !byi_op_has(op->id, BYI_TRAIT_LIST))
            return fail_check(
                c, "%s: operand %u is %s, expected a tensor", op->name, i,
                byi_text_type_buf(c->m, types[i], found, sizeof found));
        if (byi_const_view(c->m, c->f, node->args[i], &views[i]))
            values[i] = &views[i];
    }
    c->next_symbol = -1 - (int64_t)c->m->symbols.n;
    if (byi_infer_type(&t, &inferred) != BYOC_OK)
        return add_place(c);
    return expect_type(c, inferred);
}

/* --- other nodes -------------------------------------------------------- */

static enum byoc_status check_call(struct verifier *c,
                                   const struct byi_node *node)
{
    const struct byi_type *callee = c->f->nodes.at[node->args[0]].type;
    const struct byi_type *inferred = NULL;

    if (byi_apply_type(c->m, c->arena, c->f, callee, node->args + 1,
                       node->n_args - 1, &inferred, c->err))
        return add_place(c);
    return expect_type(c, inferred);
}

static enum byoc_status check_if(struct verifier *c,
                                 const struct byi_node *node)
{
    const struct byi_node *nodes = c->f->nodes.at;
    const struct byi_type *inferred = NULL;

    c->next_symbol = -1 - (int64_t)c->m->symbols.n;
    if (byi_if_type(c->arena, nodes[node->args[0]].type,
                    nodes[node->args[1]].type, nodes[node->args[2]].type,
                    make_symbol, c, &inferred, c->err))
        return add_place(c);
    return expect_type(c, inferred);
}

static enum byoc_status check_tuple(struct verifier *c,
                                    const struct byi_node *node)
{
    const struct byi_type *type = node->type;
    char found[300];

    if (type->kind != BYI_TUPLE || type->n_fields != node->n_args)
        return fail_check(c, "its type is %s, expected a tuple of %u field%s",
                          byi_text_type_buf(c->m, type, found, sizeof found),
                          node->n_args, byi_plural(node->n_args));
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *field = c->f->nodes.at[node->args[i]].type;
        if (!byi_type_equal(type->fields[i], field))
            return fail_type(c, "a field's type", type->fields[i], field);
    }
    return BYOC_OK;
}

static enum byoc_status check_get(struct verifier *c,
                                  const struct byi_node *node)
{
    const struct byi_type *tuple = c->f->nodes.at[node->args[0]].type;
    char found[300];

    if (tuple->kind != BYI_TUPLE || node->index >= tuple->n_fields)
        return fail_check(
            c, "its operand is %s, expected a tuple with field %u",
            byi_text_type_buf(c->m, tuple, found, sizeof found), node->index);
    return expect_type(c, tuple->fields[node->index]);
}

static enum byoc_status check_param(struct verifier *c,
                                    const struct byi_node *node)
{
    if (node->index >= c->f->params.n || c->f->params.at[node->index] != c->id)
        return fail_check(c,
                          "it is parameter %u, expected the function to list "
                          "it at that position",
                          node->index);
    return BYOC_OK;
}

static enum byoc_status check_const(struct verifier *c,
                                    const struct byi_node *node)
{
    if (node->index >= c->m->consts.n)
        return fail_check(
            c, "it is constant number %u, expected one of the module's %u",
            node->index, c->m->consts.n);
    return expect_type(c, c->m->consts.at[node->index].type);
}

static enum byoc_status check_func_ref(struct verifier *c,
                                       const struct byi_node *node,
                                       const struct byi_func **g)
{
    bool nested = node->kind == BYI_FN;

    if (node->index >= c->m->funcs.n)
        return fail_check(
            c, "it is function number %u, expected one of the module's %u",
            node->index, c->m->funcs.n);
    *g = c->m->funcs.at[node->index];
    if ((*g)->dead)
        return fail_check(
            c, "it is function %u, which is removed, expected one that exists",
            node->index);
    if (!c->f->refers)
        return fail_check(
            c, "its function's mark `refers` is false, expected true");
    if (((*g)->name == NULL) != nested)
        return fail_check(
            c, "it is function %u, which is %s, expected a %s one", node->index,
            nested ? "not nested" : "nested", nested ? "nested" : "named");
    return BYOC_OK;
}

static enum byoc_status check_global(struct verifier *c,
                                     const struct byi_node *node)
{
    const struct byi_func *g = NULL;

    BYI_TRY(check_func_ref(c, node, &g));
    return check_func_type(c, g);
}

/* A function's literal of itself must have the function's own captures, since
 * the text form cannot express others. */
static enum byoc_status check_self(struct verifier *c,
                                   const struct byi_node *node)
{
    const struct byi_func *f = c->f;
    uint32_t n_declared = f->params.n - f->n_captures;

    for (uint32_t i = 0; i < node->n_args; i++)
        if (node->args[i] != f->params.at[n_declared + i])
            return fail_check(c,
                              "it is the function itself with %%%u as capture "
                              "%u, expected its own, %%%u",
                              node->args[i], i, f->params.at[n_declared + i]);
    return BYOC_OK;
}

static enum byoc_status check_fn(struct verifier *c,
                                 const struct byi_node *node)
{
    const struct byi_func *g = NULL;
    uint32_t n_declared = 0;

    BYI_TRY(check_func_ref(c, node, &g));
    if (g->n_captures != node->n_args)
        return fail_check(c, "it captures %u values, expected %u", node->n_args,
                          g->n_captures);
    n_declared = g->params.n - g->n_captures;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *found = c->f->nodes.at[node->args[i]].type;
        const struct byi_type *param =
            g->nodes.at[g->params.at[n_declared + i]].type;
        if (!byi_type_equal(found, param))
            return fail_type(c, "a captured value's type", found, param);
    }
    if (g == c->f)
        BYI_TRY(check_self(c, node));
    return check_func_type(c, g);
}

static const struct {
    uint32_t min, max; /* operands */
    enum byoc_status (*check)(struct verifier *, const struct byi_node *);
} kinds[] = {
    [BYI_PARAM] = {0, 0, check_param},
    [BYI_CONST] = {0, 0, check_const},
    [BYI_CALL_OP] = {0, BYI_MAX_ARGS, check_op},
    [BYI_CALL] = {1, BYI_MAX_ARGS + 1, check_call},
    [BYI_GLOBAL] = {0, 0, check_global},
    [BYI_FN] = {0, BYI_MAX_ARGS, check_fn},
    [BYI_MAKE_TUPLE] = {0, BYI_MAX_ARGS, check_tuple},
    [BYI_GET] = {1, 1, check_get},
    [BYI_IF] = {3, 3, check_if},
};

/* --- functions ---------------------------------------------------------- */

static enum byoc_status check_annotations(struct verifier *c,
                                          const struct byi_node *node)
{
    const struct byi_sources *s = node->sources;

    if (node->backend > c->m->backends.n)
        return fail_check(c, "its backend is number %u, expected at most %u",
                          node->backend, c->m->backends.n);
    if (!s)
        return fail_check(c, "it has no set of sources, expected an empty one");
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i] >= c->m->sources.n || (i > 0 && s->at[i - 1] >= s->at[i]))
            return fail_check(c,
                              "its source %u is number %u, expected ascending "
                              "numbers below %u",
                              i, s->at[i], c->m->sources.n);
    return BYOC_OK;
}

static enum byoc_status check_node(struct verifier *c)
{
    const struct byi_node *node = &c->f->nodes.at[c->id];

    if ((unsigned)node->kind >= BYI_COUNT(kinds))
        return fail_check(c, "its kind is %d, expected 0 to %zu",
                          (int)node->kind, BYI_COUNT(kinds) - 1);
    if (node->n_args < kinds[node->kind].min ||
        node->n_args > kinds[node->kind].max)
        return fail_check(c, "it has %u operands, expected %u to %u",
                          node->n_args, kinds[node->kind].min,
                          kinds[node->kind].max);
    for (uint32_t i = 0; i < node->n_args; i++)
        if (node->args[i] >= c->id)
            return fail_check(c, "operand %u is %%%u, expected an earlier node",
                              i, node->args[i]);
    if (!node->type)
        return fail_check(c, "it has no type, expected one");
    if (node->kind == BYI_CALL_OP &&
        (node->op <= BYI_OP_NONE || node->op >= BYI_N_OPS))
        return fail_check(c, "its operator is number %d, expected %d to %d",
                          (int)node->op, BYI_OP_NONE + 1, BYI_N_OPS - 1);
    BYI_TRY(check_tensor(c, node->type));
    BYI_TRY(check_annotations(c, node));
    return kinds[node->kind].check(c, node);
}

bool byi_sizes_depend_on_data(const struct byi_module *m,
                              const struct byi_func *f, byi_id id)
{
    struct byoc_error err;
    struct verifier c = {.m = m,
                         .f = f,
                         .id = id,
                         .next_symbol = -1 - (int64_t)m->symbols.n,
                         .arena = byi_arena_new(),
                         .err = &err};
    const int64_t first = c.next_symbol;

    const bool creates_symbols =
        check_node(&c) == BYOC_OK && c.next_symbol != first;
    byi_arena_free(&c.arena);
    return creates_symbols;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum byoc_status check_params(struct verifier *c)
{
    const struct byi_func *f = c->f;
    uint32_t n_declared = f->params.n - f->n_captures;
    const char **names = NULL;

    if (f->param_names.n != f->params.n)
        return fail_check(c,
                          "it has %u names of parameters, expected %u, one for "
                          "each parameter",
                          f->param_names.n, f->params.n);
    if (f->n_captures > f->params.n)
        return fail_check(c,
                          "it has %u captures, expected at most %u, the number "
                          "of its parameters",
                          f->n_captures, f->params.n);
    if (f->name && f->n_captures)
        return fail_check(c,
                          "it has %u captures, expected none: only functions "
                          "without a name capture values",
                          f->n_captures);
    for (uint32_t i = 0; i < f->params.n; i++) {
        if (f->params.at[i] >= f->nodes.n ||
            f->nodes.at[f->params.at[i]].kind != BYI_PARAM)
            return fail_check(c,
                              "parameter %u is %%%u, expected a parameter node",
                              i, f->params.at[i]);
        if (!f->param_names.at[i])
            return fail_check(c, "parameter %u has no name, expected one", i);
    }
    names = byi_arena_calloc(c->arena, n_declared, sizeof *names);
    if (n_declared > 0) {
        memcpy(names, f->param_names.at, n_declared * sizeof *names);
        qsort(names, n_declared, sizeof *names, compare_names);
    }
    for (uint32_t i = 1; i < n_declared; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return fail_check(
                c, "it has two parameters %%%.80s, expected different names",
                names[i]);
    return BYOC_OK;
}

/* Check the parameters and the result, on which other functions rely. */
static enum byoc_status check_signature(struct verifier *c)
{
    const struct byi_func *f = c->f;
    const struct byi_type *result = NULL;

    BYI_TRY(check_params(c));
    if (f->result >= f->nodes.n)
        return fail_check(c, "its result is %%%u, expected one of its %u nodes",
                          f->result, f->nodes.n);
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (!f->nodes.at[id].type)
            return fail_check(c, "%%%u has no type, expected one", id);
    result = f->nodes.at[f->result].type;
    if (f->result_names.n &&
        f->result_names.n != (result->kind == BYI_TUPLE ? result->n_fields : 1))
        return fail_check(c, "it has %u names for its results, expected %u",
                          f->result_names.n,
                          result->kind == BYI_TUPLE ? result->n_fields : 1);
    return BYOC_OK;
}

typedef enum byoc_status (*check_fn_t)(struct verifier *c);

static enum byoc_status check_nodes(struct verifier *c)
{
    for (c->id = 0; c->id < c->f->nodes.n; c->id++)
        BYI_TRY(check_node(c));
    return BYOC_OK;
}

static enum byoc_status check_each_func(const struct byi_module *m,
                                        check_fn_t check,
                                        struct byoc_error *err)
{
    enum byoc_status status = BYOC_OK;

    for (uint32_t i = 0; i < m->funcs.n && status == BYOC_OK; i++) {
        struct verifier c = {
            .m = m,
            .f = m->funcs.at[i],
            .func = i,
            .id = BYI_NO_ID,
            .err = err,
        };
        if (c.f->dead)
            continue;
        c.arena = byi_arena_new();
        status = check(&c);
        byi_arena_free(&c.arena);
    }
    return status;
}

/* --- the module --------------------------------------------------------- */

static enum byoc_status check_names(const struct byi_module *m,
                                    struct byoc_error *err)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        if (!f->dead && f->name && byi_func_find(m, f->name) != i)
            return byi_fail(err, BYOC_ETYPE,
                            "@%.80s is the name of two functions, expected one",
                            f->name);
    }
    return BYOC_OK;
}

/* For each function literal in function i, except one of i itself, add 1 to
 * holders[] of the literal's function. */
static void count_literals(const struct byi_module *m, uint32_t i,
                           uint32_t *holders)
{
    const struct byi_func *f = m->funcs.at[i];

    for (byi_id id = 0; f->refers && id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_FN && f->nodes.at[id].index != i)
            holders[f->nodes.at[id].index]++;
}

/* A function may contain a literal of itself (it calls itself), but not one of
 * a function that contains it, since printing would not end. Remove functions
 * that no other contains until none is left (Kahn's topological sort). */
static enum byoc_status check_nesting(const struct byi_module *m,
                                      struct byi_arena *arena,
                                      struct byoc_error *err)
{
    uint32_t *holders = byi_arena_calloc(arena, m->funcs.n, sizeof *holders);
    uint32_t *ready = byi_arena_calloc(arena, m->funcs.n, sizeof *ready);
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->funcs.n; i++)
        count_literals(m, i, holders);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (holders[i] == 0)
            ready[n++] = i;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_func *f = m->funcs.at[ready[i]];
        for (byi_id id = 0; id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if (node->kind == BYI_FN && node->index != ready[i] &&
                --holders[node->index] == 0)
                ready[n++] = node->index;
        }
    }
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (holders[i] > 0)
            return byi_fail(err, BYOC_ETYPE,
                            "found function %u inside itself, in a literal of "
                            "another function, expected no function inside "
                            "itself except to call itself",
                            i);
    return BYOC_OK;
}

enum byoc_status byi_verify(const struct byi_module *m, struct byoc_error *err)
{
    struct byi_arena *arena = NULL;
    enum byoc_status status;

    BYI_TRY(check_names(m, err));
    BYI_TRY(check_each_func(m, check_signature, err));
    BYI_TRY(check_each_func(m, check_nodes, err));
    arena = byi_arena_new();
    status = check_nesting(m, arena, err);
    byi_arena_free(&arena);
    return status;
}
