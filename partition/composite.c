/* SPDX-License-Identifier: Apache-2.0 */
/* composite.c: builds a match's function: the matched operators as its body,
 * outside values as parameters, constants inside. A branch of an `if` becomes a
 * nested function, which captures the outside values that it reads.
 */
#include "composite.h"

#include <assert.h>

const char *byi_composite_op_name(const struct byi_node *node)
{
    if (node->kind == BYI_IF)
        return "if";
    return node->kind == BYI_CALL_OP ? byi_op(node->op)->name : "tuple";
}

/* A composite under construction: the body's nodes, by binding and by operator
 * of the match. */
struct composite_body {
    struct byi_module *m;
    const struct byi_match *match;
    struct byi_arena *scratch;
    struct byoc_error *err;
    byi_id operand[BYI_MATCH_MAX_OPERANDS];
    bool used[BYI_MATCH_MAX_OPERANDS];
    byi_id result[BYI_MATCH_MAX_OPS];
};

/* Returns the body's node for operand `value`. If the value is bound several
 * times, each call returns the next binding; calls after the last binding
 * return it again. */
static byi_id find_operand(struct composite_body *composite, byi_id value)
{
    const struct byi_match *match = composite->match;
    uint32_t binding = match->n_bound;
    for (uint32_t i = 0; i < match->n_bound; i++) {
        if (!byi_match_is_same(match, match->bound[i].value, value))
            continue;
        binding = i;
        if (!composite->used[i])
            break;
    }
    assert(binding < match->n_bound);
    composite->used[binding] = true;
    return composite->operand[binding];
}

bool byi_composite_embeds(const struct byi_match *match, uint32_t bound)
{
    return byi_match_node(match, match->bound[bound].value)->kind == BYI_CONST;
}

static byi_id add_operand(const struct composite_body *composite,
                          struct byi_func *body,
                          const struct byi_bound_operand *bound)
{
    const struct byi_node *node =
        byi_match_node(composite->match, bound->value);
    if (node->kind == BYI_CONST)
        return byi_add_const(composite->m, body, node->index, node->sources);
    return byi_add_param(composite->m, body,
                         byi_arena_str(composite->m->arena, bound->name),
                         node->type);
}

/* Join the names of the operators of the alternative that matched:
 * "nn.conv2d_add_nn.relu". */
static const char *join_ops(const struct composite_body *composite)
{
    const struct byi_match *match = composite->match;
    struct byi_text text = {0};
    for (uint32_t i = 0; i < match->n_ops; i++)
        byi_text_addf(
            &text, "%s%s", i ? "_" : "",
            byi_composite_op_name(byi_match_node(match, match->ops[i])));
    const char *joined = byi_arena_str(composite->m->arena, text.at);
    byi_text_free(&text);
    return joined;
}

/* Join the names of the operands that are constants: "w,b". Returns NULL if no
 * operand is a constant. */
static const char *join_consts(const struct composite_body *composite)
{
    const struct byi_match *match = composite->match;
    struct byi_text text = {0};
    for (uint32_t i = 0; i < match->n_bound; i++)
        if (byi_composite_embeds(match, i))
            byi_text_addf(&text, "%s%s", text.n ? "," : "",
                          match->bound[i].name);
    const char *joined =
        text.n ? byi_arena_str(composite->m->arena, text.at) : NULL;
    byi_text_free(&text);
    return joined;
}

/* Returns the index of operator `id` of the match, or n_ops if the match does
 * not have it. */
static uint32_t find_op(const struct byi_match *match, byi_id id)
{
    uint32_t k = 0;
    while (k < match->n_ops && match->ops[k] != id)
        k++;
    return k;
}

/* A function under construction: the composite's body, or a branch in it, whose
 * captures are the outside values that it reads. */
struct open_function {
    const struct byi_branch *branch; /* NULL: the body */
    const struct open_function *outer;
    struct byi_func *f;
    struct composite_body *composite;
    BYI_VEC(byi_id) captured; /* the match's value of each parameter */
};

/* Map a value of the match into the function: a capture, an operator's result,
 * a field of one, or an operand. */
static enum byoc_status find_arg(const struct open_function *to, byi_id value,
                                 byi_id *arg)
{
    const struct byi_match *match = to->composite->match;
    for (uint32_t i = 0; i < to->captured.n; i++)
        if (to->captured.at[i] == value) {
            *arg = to->f->params.at[i];
            return BYOC_OK;
        }
    const uint32_t op = find_op(match, value);
    if (op < match->n_ops) {
        *arg = to->composite->result[op];
        return BYOC_OK;
    }
    const struct byi_node *get = byi_match_node(match, value);
    byi_id tuple;
    if (get->kind != BYI_GET ||
        find_op(match, byi_match_arg(match, value, 0)) == match->n_ops) {
        *arg = find_operand(to->composite, value);
        return BYOC_OK;
    }
    BYI_TRY(find_arg(to, byi_match_arg(match, value, 0), &tuple));
    return byi_add_get(to->composite->m, to->f, tuple, get->index, get->sources,
                       arg, to->composite->err);
}

/* Record that the branch reads `value`, capturing it if it is outside. */
static void record_read(struct open_function *to, byi_id value)
{
    const struct byi_match *match = to->composite->match;
    while (byi_match_node(match, value)->kind == BYI_GET &&
           byi_match_within(match, value, to->branch))
        value = byi_match_arg(match, value, 0);
    if (byi_match_within(match, value, to->branch) &&
        find_op(match, value) < match->n_ops)
        return;
    for (uint32_t i = 0; i < to->captured.n; i++)
        if (to->captured.at[i] == value)
            return;
    BYI_PUSH(&to->captured, value);
}

static void record_reads(struct open_function *to)
{
    const struct byi_match *match = to->composite->match;
    for (uint32_t i = 0; i < match->n_ops; i++) {
        const byi_id op = match->ops[i];
        if (!byi_match_within(match, op, to->branch))
            continue;
        for (uint32_t a = 0; a < byi_match_node(match, op)->n_args; a++)
            record_read(to, byi_match_arg(match, op, a));
    }
    record_read(to, byi_match_arg(match, to->branch->owner, to->branch->arg));
}

static enum byoc_status add_operators(struct open_function *to);

/* Turn a finished branch into a value of the enclosing function. */
static enum byoc_status close_branch(struct open_function *to, uint32_t func,
                                     const byi_id *captures, byi_id *fn)
{
    const struct byi_match *match = to->composite->match;
    const struct byi_branch *branch = to->branch;
    BYI_TRY(add_operators(to));
    BYI_TRY(find_arg(to, byi_match_arg(match, branch->owner, branch->arg),
                     &to->f->result));
    to->f->n_captures = to->captured.n;
    to->f->attr.inner = true;
    *fn =
        byi_add_fn(to->composite->m, to->outer->f, func, captures,
                   to->captured.n, byi_match_node(match, branch->fn)->sources);
    return BYOC_OK;
}

/* Build branch `arg` of the `if` that is operator `op`. */
static enum byoc_status add_branch(const struct open_function *outer, byi_id op,
                                   uint32_t arg, byi_id *fn)
{
    const uint32_t func = byi_func_new(outer->composite->m, NULL);
    struct open_function to = {
        .branch = byi_match_branch_of(outer->composite->match, op, arg),
        .outer = outer,
        .f = outer->composite->m->funcs.at[func],
        .composite = outer->composite};
    enum byoc_status status = BYOC_OK;
    record_reads(&to);
    byi_id *captures = byi_arena_calloc(outer->composite->scratch,
                                        to.captured.n, sizeof *captures);
    for (uint32_t i = 0; i < to.captured.n && status == BYOC_OK; i++) {
        status = find_arg(outer, to.captured.at[i], &captures[i]);
        if (status == BYOC_OK)
            byi_add_param(
                outer->composite->m, to.f,
                byi_arena_printf(outer->composite->m->arena, "c%u", i),
                outer->f->nodes.at[captures[i]].type);
    }
    if (status == BYOC_OK)
        status = close_branch(&to, func, captures, fn);
    byi_vec_free(to.captured.at);
    return status;
}

/* Give the copy `id` of `node` the type of `node`, if the two differ only in
 * the symbols that each introduced for sizes unknown at compile time: both
 * compute the same. `first_new` is the first symbol that the copy introduced.
 */
static void keep_symbols(const struct open_function *to, byi_id id,
                         const struct byi_node *node, int64_t first_new)
{
    const struct byi_type **type = &to->f->nodes.at[id].type;
    if (byi_type_fits(node->type, *type, first_new))
        *type = node->type;
}

static enum byoc_status add_operator(struct open_function *to, uint32_t op)
{
    const struct byi_match *match = to->composite->match;
    const struct byi_node *node = byi_match_node(match, match->ops[op]);
    byi_id *args =
        byi_arena_calloc(to->composite->scratch, node->n_args, sizeof *args);
    byi_id *result = &to->composite->result[op];
    const int64_t first_new = -1 - (int64_t)to->composite->m->symbols.n;
    for (uint32_t a = 0; a < node->n_args; a++)
        if (node->kind == BYI_IF && a > 0)
            BYI_TRY(add_branch(to, match->ops[op], a, &args[a]));
        else
            BYI_TRY(find_arg(to, byi_match_arg(match, match->ops[op], a),
                             &args[a]));
    if (node->kind == BYI_IF)
        BYI_TRY(byi_add_if(to->composite->m, to->f, args[0], args[1], args[2],
                           node->sources, result, to->composite->err));
    else if (node->kind == BYI_CALL_OP)
        BYI_TRY(byi_add_op(to->composite->m, to->f, node->op, args,
                           node->n_args, node->attrs, node->sources, result,
                           to->composite->err));
    else
        *result = byi_add_tuple(to->composite->m, to->f, args, node->n_args,
                                node->sources);
    keep_symbols(to, *result, node, first_new);
    return BYOC_OK;
}

/* Add the operators of this function. Recurses as deep as patterns nest `if`.
 */
static enum byoc_status add_operators(struct open_function *to)
{
    const struct byi_match *match = to->composite->match;
    for (uint32_t i = 0; i < match->n_ops; i++)
        if (byi_match_branch(match, match->ops[i]) == to->branch)
            BYI_TRY(add_operator(to, i));
    return BYOC_OK;
}

enum byoc_status byi_composite_build(struct byi_module *m,
                                     const struct byi_match *match,
                                     struct byi_arena *scratch, uint32_t *func,
                                     struct byoc_error *err)
{
    struct composite_body composite = {
        .m = m, .match = match, .scratch = scratch, .err = err};
    *func = byi_func_new(m, NULL);
    struct byi_func *body = m->funcs.at[*func];
    for (uint32_t pass = 0; pass < 2; pass++) /* parameters first */
        for (uint32_t i = 0; i < match->n_bound; i++)
            if (byi_composite_embeds(match, i) == (pass == 1))
                composite.operand[i] =
                    add_operand(&composite, body, &match->bound[i]);
    BYI_TRY(add_operators(
        &(struct open_function){.f = body, .composite = &composite}));
    body->result = composite.result[match->n_ops - 1];
    body->attr.composite = byi_arena_str(m->arena, match->pattern->row->name);
    body->attr.from_pattern = join_ops(&composite);
    body->attr.operands = join_consts(&composite);
    return BYOC_OK;
}
