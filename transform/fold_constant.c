/* SPDX-License-Identifier: Apache-2.0 */
/* FoldConstant: evaluate operators on constants at compile time.
 * requires: nothing
 * leaves:   no operator whose operands are all constants, unless it is random,
 *           reads strings, has a result of data-dependent or too large size,
 *           or its kernel fails; no shape_of of a static shape; no `if` with a
 *           constant condition, which the taken branch replaces; no field of a
 *           tuple that is made in the same function; no call of a small
 *           function that evaluates to constants
 *
 *   %0 = transpose(const[w]);
 *   %1 = nn.dense(%x, %0);      ==>   %0 = nn.dense(%x, const[w']);
 *   %2 = shape_of(%1);
 *   (%1, %2)                          (%0, const([1, 10]))
 */
#include "transform.h"

#include "rewrite.h"

/* Largest result in bytes. */
#define LARGEST_RESULT ((uint64_t)64 << 20)
/* A result of more bytes must not be much larger than the operands. */
#define LARGE_RESULT ((uint64_t)1 << 20)
enum {
    MAX_OPERANDS = 64,
    MAX_BODY = 64 /* nodes of a function that is evaluated */
};

/* Whether a result of `out` bytes should replace its call. It must be within
 * the limit, and not much larger than the operands, `in` bytes (as for
 * broadcast_to, tile, full). */
static bool is_worth_keeping(uint64_t in, uint64_t out)
{
    return out <= LARGEST_RESULT && (out <= LARGE_RESULT || out / 4 <= in);
}

/* List the result types of a call. Returns their number, or 0 if one of them is
 * not static or there are more than MAX_OPERANDS. */
static uint32_t result_types(const struct byi_type *type,
                             const struct byi_type *out[MAX_OPERANDS])
{
    const uint32_t n = type->kind == BYI_TUPLE ? type->n_fields : 1;
    if (n > MAX_OPERANDS)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = type->kind == BYI_TUPLE ? type->fields[i] : type;
        if (!byi_type_is_static(out[i]))
            return 0;
    }
    return n;
}

static byi_id emit_results(struct byi_rewrite *rw, byi_id at, uint32_t n,
                           const struct byi_type *const *types,
                           const struct byi_tensor *values)
{
    const struct byi_node call = *byi_rw_node(rw, at);
    byi_id ids[MAX_OPERANDS];
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = byi_rw_const(rw, types[i], &values[i]);
        byi_rw_merge(rw, ids[i], at);
        for (uint32_t k = 0; k < call.n_args; k++)
            byi_rw_merge(rw, ids[i], call.args[k]);
    }
    if (call.type->kind != BYI_TUPLE)
        return ids[0];
    return byi_add_tuple(rw->m, rw->f, ids, n, NULL);
}

static byi_id compute_call(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node call = *byi_rw_node(rw, at);
    struct byi_tensor in[MAX_OPERANDS] = {0}, out[MAX_OPERANDS] = {0};
    const struct byi_type *types[MAX_OPERANDS];
    uint64_t in_bytes = 0, out_bytes = 0;
    for (uint32_t i = 0; i < call.n_args; i++) {
        if (!byi_rw_view(rw, call.args[i], &in[i]) ||
            in[i].dtype == BYOC_STRING)
            return BYI_NO_ID;
        in_bytes += byi_tensor_bytes(&in[i]);
    }
    const uint32_t n = result_types(call.type, types);
    for (uint32_t i = 0; i < n; i++)
        out_bytes += byi_type_bytes(types[i]);
    if (n == 0 || !is_worth_keeping(in_bytes, out_bytes))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < n; i++)
        if (!byi_rw_alloc(rw, types[i], &out[i]))
            return BYI_NO_ID;
    /* If the kernel fails, the call stays; the run then reports the error. */
    if (rw->ctx->eval(byi_op(call.op), call.attrs, call.n_args, in, n, out,
                      NULL) != BYOC_OK)
        return BYI_NO_ID;
    return emit_results(rw, at, n, types, out);
}

static byi_id fold_call(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *call = byi_rw_node(rw, at);
    if (call->kind != BYI_CALL_OP || !rw->ctx->eval ||
        byi_op_has(call->op, BYI_TRAIT_RANDOM) || call->n_args > MAX_OPERANDS)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < call->n_args; i++)
        if (byi_rw_node(rw, call->args[i])->kind != BYI_CONST)
            return BYI_NO_ID;
    return compute_call(rw, at);
}

/* shape_of(%x: (N, 3, 8, 8)), start=1  ==>  const([3, 8, 8]) */
static byi_id fold_shape_of(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *call = byi_rw_node(rw, at);
    const struct byi_type *x = byi_rw_tensor(rw, call->args[0]);
    const int64_t rank = x ? (int64_t)x->rank : 0;
    int64_t start = byi_attr_int(call->attrs, "start");
    int64_t end = byi_attr_int(call->attrs, "end");
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    if (!x)
        return BYI_NO_ID;
    for (int64_t i = start; i < end; i++)
        if (BYI_IS_SYMBOL(x->dims[i]))
            return BYI_NO_ID;
    return byi_rw_int_vector(rw, x->dims + start, (uint32_t)(end - start));
}

/* arange_like(%x: (2, 3)), axis=1  ==>  const([0, 1, 2]) */
static byi_id fold_arange_like(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_type *y = byi_rw_tensor(rw, at);

    if (!y || BYI_IS_SYMBOL(y->dims[0]) || y->dims[0] > BYI_MAX_KNOWN)
        return BYI_NO_ID;
    int64_t *numbers =
        byi_arena_calloc(rw->m->arena, (size_t)y->dims[0] + 1, sizeof *numbers);
    for (int64_t i = 0; i < y->dims[0]; i++)
        numbers[i] = i;
    return byi_rw_int_vector(rw, numbers, (uint32_t)y->dims[0]);
}

static byi_id fold_size_of(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_type *x = byi_rw_tensor(rw, byi_rw_arg(rw, at, 0));
    const int64_t n = x ? byi_elements(x->rank, x->dims) : -1;
    if (n < 0)
        return BYI_NO_ID;
    const byi_id vector = byi_rw_int_vector(rw, &n, 1);
    return byi_rw_const_as(rw, vector, 0, NULL);
}

static byi_id fold_get(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *get = byi_rw_node(rw, at);
    if (get->kind != BYI_GET ||
        byi_rw_node(rw, get->args[0])->kind != BYI_MAKE_TUPLE)
        return BYI_NO_ID;
    return byi_rw_arg(rw, get->args[0], get->index);
}

/* --- functions ----------------------------------------------------------- */

enum { BODY_RULES = 5, RULES = BODY_RULES + 2 };
/* The rules of the pass. The first BODY_RULES apply to the nodes of an inlined
 * body. */
static const struct byi_rule rules[RULES + 1];

/* Simplify a copied node by the rules above. */
static byi_id fold_copy(struct byi_rewrite *rw, byi_id id)
{
    for (size_t i = 0; i < BODY_RULES; i++) {
        const struct byi_node *node = byi_rw_node(rw, id);
        if (rules[i].op != BYI_OP_NONE &&
            (node->kind != BYI_CALL_OP || node->op != rules[i].op))
            continue;
        const byi_id out = rules[i].apply(rw, id);
        if (out == BYI_NO_ID || !byi_type_equal(byi_rw_node(rw, out)->type,
                                                byi_rw_node(rw, id)->type))
            continue;
        if (out > id) /* a new node, not one that the copy read */
            byi_rw_merge(rw, out, id);
        return out;
    }
    return id;
}

/* Inline the body of a function in place of its call, and fold it. Returns the
 * node of its result, or BYI_NO_ID if a node does not type-check here. */
static byi_id inline_body(struct byi_rewrite *rw, const struct byi_func *body,
                          const byi_id *args)
{
    byi_id *map = byi_arena_calloc(rw->scratch, body->nodes.n + 1, sizeof *map);
    for (uint32_t i = 0; i < body->params.n; i++)
        map[body->params.at[i]] = args[i];
    for (byi_id id = 0; id < body->nodes.n; id++) {
        if (body->nodes.at[id].kind == BYI_PARAM)
            continue;
        if (byi_add_copy(rw->m, rw->f, body, id, map, &map[id], NULL) !=
            BYOC_OK)
            return BYI_NO_ID;
        map[id] = fold_copy(rw, map[id]);
    }
    return map[body->result];
}

/* Inline a branch, which is a function literal whose parameters are its
 * captures. Returns BYI_NO_ID if the branch is another function. */
static byi_id inline_branch(struct byi_rewrite *rw, byi_id branch)
{
    const struct byi_node fn = *byi_rw_node(rw, branch);
    if (fn.kind != BYI_FN)
        return BYI_NO_ID;
    const struct byi_func *body = rw->m->funcs.at[fn.index];
    if (body->params.n != fn.n_args || body == rw->old)
        return BYI_NO_ID;
    return inline_body(rw, body, fn.args);
}

/* Whether a function may be evaluated: it is small and calls only operators. */
static bool is_evaluable(const struct byi_func *f)
{
    if (f->nodes.n > MAX_BODY || f->attr.compiler || f->attr.composite ||
        f->attr.primitive)
        return false;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const enum byi_node_kind kind = f->nodes.at[id].kind;
        if (kind != BYI_PARAM && kind != BYI_CONST && kind != BYI_CALL_OP &&
            kind != BYI_MAKE_TUPLE && kind != BYI_GET)
            return false;
    }
    return true;
}

/* Whether the node is a constant or a tuple of constants. */
static bool is_value(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    if (node->kind == BYI_MAKE_TUPLE) {
        for (uint32_t i = 0; i < node->n_args; i++)
            if (byi_rw_node(rw, node->args[i])->kind != BYI_CONST)
                return false;
        return true;
    }
    return node->kind == BYI_CONST;
}

/* @f(const) or fn(..){..}(const)  ==>  const, if the whole body folds */
static byi_id fold_apply(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node call = *byi_rw_node(rw, at);
    if (call.kind != BYI_CALL || call.n_args > MAX_OPERANDS)
        return BYI_NO_ID;
    const struct byi_node callee = *byi_rw_node(rw, call.args[0]);
    if (callee.kind != BYI_GLOBAL && callee.kind != BYI_FN)
        return BYI_NO_ID;
    const uint32_t captures = callee.kind == BYI_FN ? callee.n_args : 0;
    const struct byi_func *body = rw->m->funcs.at[callee.index];
    byi_id args[2 * MAX_OPERANDS];
    if (captures > MAX_OPERANDS || body == rw->old || !is_evaluable(body) ||
        body->params.n != call.n_args - 1 + captures)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < body->params.n; i++) {
        args[i] = i + 1 < call.n_args ? call.args[i + 1]
                                      : callee.args[i + 1 - call.n_args];
        if (!is_value(rw, args[i]))
            return BYI_NO_ID;
    }
    const byi_id out = inline_body(rw, body, args);
    return out != BYI_NO_ID && is_value(rw, out) ? out : BYI_NO_ID;
}

static byi_id fold_if(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    struct byi_tensor cond;
    if (node->kind != BYI_IF || !byi_rw_view(rw, node->args[0], &cond) ||
        byi_elements(cond.rank, cond.dims) != 1)
        return BYI_NO_ID;
    const byi_id branch = node->args[byi_tensor_int(&cond, 0) != 0 ? 1 : 2];
    const byi_id body = inline_branch(rw, branch);
    if (body != BYI_NO_ID)
        return body;
    byi_id id = BYI_NO_ID;
    if (byi_add_apply(rw->m, rw->f, branch, NULL, 0, NULL, &id, NULL) !=
        BYOC_OK)
        return BYI_NO_ID;
    return id;
}

static const struct byi_rule rules[RULES + 1] = {
    {BYI_OP_SHAPE_OF, fold_shape_of},
    {BYI_OP_SIZE_OF, fold_size_of},
    {BYI_OP_ARANGE_LIKE, fold_arange_like},
    {BYI_OP_NONE, fold_call},
    {BYI_OP_NONE, fold_get},
    {BYI_OP_NONE, fold_if},
    {BYI_OP_NONE, fold_apply},
    {0},
};

const struct byi_pass byi_pass_fold_constant = {
    .name = "FoldConstant",
    .summary = "evaluate operators on constants",
    .opt_level = 1,
    .data = rules,
    .run_func = byi_rules_run,
};
