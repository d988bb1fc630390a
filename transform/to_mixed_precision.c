/* SPDX-License-Identifier: Apache-2.0 */
/* ToMixedPrecision: compute float32 operators in float16 or bfloat16 if the
 * user requests it, as TVM's pass of this name does.
 * requires: nothing; best after Canonicalize, which makes weights constant and
 *           norms one operator
 *
 *                                          %0 = cast(%x, dtype="bfloat16");
 *   %0 = nn.conv2d(%x, const[w]);          %1 = nn.conv2d(%0, const[w']);
 *   %1 = nn.relu(%0);               ==>    %2 = nn.relu(%1);
 *   exp(%1)                                %3 = cast(%2, dtype="float32");
 *                                          exp(%3)
 *
 * The trait NARROWS in ops.def marks products, which always get operands of 16
 * bits. Operators with the trait FOLLOWS do if their operands are results of 16
 * bits, constants that the type holds, or smaller than the result, such as the
 * mask of attention. All others compute in float32: sums and exponentials,
 * whose results leave the range or the precision of 16 bits, and decisions,
 * such as comparisons. Parameters and results of functions stay float32, and so
 * do products of captured values.
 */
#include "to_mixed_precision.h"
#include "rewrite.h"
#include "transform.h"

#include "core/base/index.h"

#include <math.h>

const struct byi_context_key byi_mixed_precision_key = {"mixed precision"};

/* A constant of float32 and the same in 16 bits, by their indices. */
struct narrow_constant {
    uint32_t from, to;
};

/* The rebuild of a function. Each node of the old function has a copy of its
 * type in the new function, a copy of 16 bits, or both; the id of a copy that
 * does not exist is BYI_NO_ID. */
struct precision_pass {
    struct byi_module *m;
    struct byi_func *f; /* the new function */
    const struct byi_func *old;
    enum byoc_dtype dtype; /* of 16 bits */
    struct byi_uses uses;  /* of `old` */
    /* for each node of `old`: the ids of its copies */
    byi_id *map, *narrow;
    /* for each node of `old`: it computes in 16 bits, and its copy in `map`, if
     * any, is a cast of `narrow` */
    bool *in_16_bits;
    BYI_VEC(struct narrow_constant) constants;
    struct byi_index places; /* in `constants`, by `from` */
    struct byi_mixed_precision counts;
};

static const struct byi_node *old_node(const struct precision_pass *p,
                                       byi_id id)
{
    return &p->old->nodes.at[id];
}

static bool is_float32(const struct byi_node *node)
{
    return node->type->kind == BYI_TENSOR && node->type->dtype == BYOC_F32;
}

/* --- constants ------------------------------------------------------------ */

/* Whether the type holds a constant: no finite number becomes infinite, and a
 * single number, such as an epsilon, does not become 0. */
static bool holds(const struct byi_tensor *view, enum byoc_dtype dtype)
{
    const int64_t n = byi_elements(view->rank, view->dims);
    for (int64_t i = 0; i < n; i++) {
        const float x = byi_float_at(view->data, i);
        const float y = byi_half_to_f32(byi_f32_to_half(x, dtype), dtype);
        if ((isfinite(x) && !isfinite(y)) || (n == 1 && x != 0 && y == 0))
            return false;
    }
    return true;
}

/* Add the constant `index` in 16 bits, unless that was done. False if it would
 * exceed the module's budget of constants. */
static bool narrow_constant(struct precision_pass *p, uint32_t index,
                            const struct byi_tensor *view, uint32_t *narrow)
{
    const int64_t n = byi_elements(view->rank, view->dims);
    const struct byi_type *type =
        byi_type_tensor(p->m->arena, p->dtype, view->rank, view->dims);
    struct byi_tensor t;
    BYI_INDEX_EACH (&p->places, index, i)
        if (p->constants.at[i].from == index) {
            *narrow = p->constants.at[i].to;
            return true;
        }
    if (!byi_const_alloc(p->m, type, &t))
        return false;
    uint16_t *to = t.data;
    for (int64_t i = 0; i < n; i++)
        to[i] = byi_f32_to_half(byi_float_at(view->data, i), p->dtype);
    *narrow = byi_const_add(p->m, type, to, true);
    byi_index_add(&p->places, index, p->constants.n);
    BYI_PUSH(&p->constants, ((struct narrow_constant){index, *narrow}));
    return true;
}

/* --- operands ------------------------------------------------------------- */

static enum byoc_status emit_cast(struct precision_pass *p, byi_id x,
                                  enum byoc_dtype dtype, byi_id *id,
                                  struct byoc_error *err)
{
    const struct byi_attr to = {
        .name = "dtype", .kind = BYI_ATTR_DTYPE, .i = dtype};
    return byi_add_call(p->m, p->f, BYI_OP_CAST, &x, 1, &to, 1, NULL, id, err);
}

/* Ensure that node `id` has a copy of its type. */
static enum byoc_status widen(struct precision_pass *p, byi_id id,
                              struct byoc_error *err)
{
    if (p->map[id] != BYI_NO_ID)
        return BYOC_OK;
    return emit_cast(p, p->narrow[id], BYOC_F32, &p->map[id], err);
}

/* Ensure that node `id`, of float32, has a copy of 16 bits. */
static enum byoc_status narrow_value(struct precision_pass *p, byi_id id,
                                     struct byoc_error *err)
{
    struct byi_tensor view;
    uint32_t constant;
    if (p->narrow[id] != BYI_NO_ID)
        return BYOC_OK;
    if (byi_const_view(p->m, p->old, id, &view) &&
        narrow_constant(p, old_node(p, id)->index, &view, &constant)) {
        p->narrow[id] = byi_add_const(p->m, p->f, constant, NULL);
        return BYOC_OK;
    }
    return emit_cast(p, p->map[id], p->dtype, &p->narrow[id], err);
}

/* Whether operand i of a call is cast to 16 bits if the call is. Operands whose
 * values the type rule reads keep their types: image.resize has scales of
 * float32. */
static bool is_narrowed(const struct precision_pass *p,
                        const struct byi_node *node, uint32_t i)
{
    return is_float32(old_node(p, node->args[i])) &&
           !byi_op_reads_value(node->op, i);
}

/* --- decisions ------------------------------------------------------------ */

/* Whether a tensor has fewer elements than the result to which it is broadcast.
 */
static bool is_smaller(const struct byi_type *x, const struct byi_type *result)
{
    bool smaller = x->rank < result->rank;
    for (uint32_t i = 1; i <= x->rank && i <= result->rank; i++)
        smaller |=
            x->dims[x->rank - i] == 1 && result->dims[result->rank - i] != 1;
    return smaller;
}

/* Whether a node is a captured value. It may be a constant of the outer
 * function, which would be narrowed in each run. */
static bool is_capture(const struct precision_pass *p, byi_id id)
{
    const struct byi_func *f = p->old;
    bool found = false;
    for (uint32_t i = f->params.n - f->n_captures; i < f->params.n; i++)
        found |= f->params.at[i] == id;
    return found;
}

static bool can_narrow(const struct precision_pass *p,
                       const struct byi_node *node, byi_id arg, bool product)
{
    const struct byi_node *x = old_node(p, arg);
    struct byi_tensor view;
    if (p->in_16_bits[arg])
        return true;
    if (byi_const_view(p->m, p->old, arg, &view))
        return holds(&view, p->dtype);
    /* FakeQuantizationToInteger makes the product one of integers */
    if (x->kind == BYI_CALL_OP && x->op == BYI_OP_DEQUANTIZE)
        return false;
    if (is_capture(p, arg))
        return false;
    return product ||
           (node->type->kind == BYI_TENSOR && is_smaller(x->type, node->type));
}

/* Whether the operands of a call let it compute in 16 bits. */
static bool follows(const struct precision_pass *p, const struct byi_node *node)
{
    const bool product = byi_op_has(node->op, BYI_TRAIT_NARROWS);
    bool narrow = product;
    if (!product && !byi_op_has(node->op, BYI_TRAIT_FOLLOWS))
        return false;
    /* x x, a square, may leave the range of float16 */
    if (node->op == BYI_OP_MULTIPLY && node->args[0] == node->args[1])
        return false;
    for (uint32_t i = 0; i < node->n_args; i++) {
        if (!is_narrowed(p, node, i))
            continue;
        if (!can_narrow(p, node, node->args[i], product))
            return false;
        narrow |= p->in_16_bits[node->args[i]];
    }
    return narrow;
}

/* Whether the result of node `id` can have 16 bits: a tensor of float32, or a
 * tuple of them of which only fields are read. */
static bool has_narrow_result(const struct precision_pass *p, byi_id id)
{
    const struct byi_type *type = old_node(p, id)->type;
    if (type->kind != BYI_TUPLE)
        return is_float32(old_node(p, id));
    for (uint32_t i = 0; i < type->n_fields; i++)
        if (type->fields[i]->kind != BYI_TENSOR ||
            type->fields[i]->dtype != BYOC_F32)
            return false;
    for (uint32_t i = p->uses.first[id]; i < p->uses.first[id + 1]; i++)
        if (old_node(p, p->uses.at[i])->kind != BYI_GET)
            return false;
    return id != p->old->result;
}

/* --- the rebuild ---------------------------------------------------------- */

/* The type, which keeps its symbols, with elements of 16 bits. */
static const struct byi_type *narrow_type(const struct precision_pass *p,
                                          const struct byi_type *type)
{
    struct byi_arena *arena = p->m->arena;
    if (type->kind == BYI_TENSOR)
        return byi_type_tensor(arena, p->dtype, type->rank, type->dims);
    const struct byi_type **fields =
        byi_arena_calloc(arena, type->n_fields, sizeof *fields);
    for (uint32_t i = 0; i < type->n_fields; i++)
        fields[i] = narrow_type(p, type->fields[i]);
    return byi_type_tuple(arena, type->n_fields, fields);
}

/* Emit a call with operands of 16 bits, unless the operator does not take the
 * type. */
static enum byoc_status narrow_call(struct precision_pass *p, byi_id id,
                                    struct byoc_error *err)
{
    const struct byi_node *node = old_node(p, id);
    struct byoc_error refused;
    byi_id copy, *args = byi_args_new(p->m, node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const byi_id arg = node->args[i];
        const bool narrow = is_narrowed(p, node, i);
        BYI_TRY(narrow ? narrow_value(p, arg, err) : widen(p, arg, err));
        args[i] = narrow ? p->narrow[arg] : p->map[arg];
    }
    if (byi_add_op(p->m, p->f, node->op, args, node->n_args, node->attrs,
                   node->sources, &copy, &refused) != BYOC_OK)
        return BYOC_OK;
    p->f->nodes.at[copy].type = narrow_type(p, node->type);
    p->narrow[id] = copy;
    p->in_16_bits[id] = true;
    return BYOC_OK;
}

static enum byoc_status rebuild_node(struct precision_pass *p, byi_id id,
                                     struct byoc_error *err)
{
    const struct byi_node *node = old_node(p, id);
    const bool call = node->kind == BYI_CALL_OP && has_narrow_result(p, id) &&
                      node->op != BYI_OP_CAST;
    if (node->kind == BYI_PARAM)
        return BYOC_OK;
    if (node->kind == BYI_GET && p->in_16_bits[node->args[0]]) {
        p->in_16_bits[id] = true;
        return byi_add_get(p->m, p->f, p->narrow[node->args[0]], node->index,
                           node->sources, &p->narrow[id], err);
    }
    if (call && follows(p, node))
        BYI_TRY(narrow_call(p, id, err));
    p->counts.narrow += p->in_16_bits[id];
    p->counts.float32 += call && !p->in_16_bits[id];
    if (p->in_16_bits[id])
        return BYOC_OK;
    for (uint32_t i = 0; i < node->n_args; i++)
        BYI_TRY(widen(p, node->args[i], err));
    return byi_add_copy(p->m, p->f, p->old, id, p->map, &p->map[id], err);
}

static enum byoc_status rebuild(struct precision_pass *p,
                                struct byi_arena *scratch,
                                struct byoc_error *err)
{
    const uint32_t n = p->old->nodes.n;
    p->uses = byi_uses_of(p->old, scratch);
    p->map = byi_arena_calloc(scratch, n, sizeof *p->map);
    p->narrow = byi_arena_calloc(scratch, n, sizeof *p->narrow);
    p->in_16_bits = byi_arena_calloc(scratch, n, sizeof *p->in_16_bits);
    for (uint32_t i = 0; i < n; i++)
        p->map[i] = p->narrow[i] = BYI_NO_ID;
    p->f = byi_func_like(p->m, p->old, p->map);
    for (byi_id id = 0; id < n; id++)
        BYI_TRY(rebuild_node(p, id, err));
    BYI_TRY(widen(p, p->old->result, err));
    p->f->result = p->map[p->old->result];
    byi_sweep(p->m, p->f, scratch);
    return BYOC_OK;
}

/* --- the pass ------------------------------------------------------------- */

static enum byoc_status read_type(const char *to, enum byoc_dtype *dtype,
                                  struct byoc_error *err)
{
    static const struct {
        const char *name;
        enum byoc_dtype dtype;
    } types[] = {{"none", BYOC_NONE}, {"fp16", BYOC_F16}, {"bf16", BYOC_BF16}};
    for (size_t i = 0; i < BYI_COUNT(types); i++)
        if (strcmp(types[i].name, to) == 0) {
            *dtype = types[i].dtype;
            return BYOC_OK;
        }
    return byi_fail(err, BYOC_EINVAL,
                    "to is '%.40s', expected none, fp16 or bf16", to);
}

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    struct precision_pass p = {.m = m, .old = m->funcs.at[func]};
    struct byi_mixed_precision *counts = byi_mixed_precision_of(ctx);
    BYI_TRY(read_type(byi_option_string(ctx, "ToMixedPrecision.to"), &p.dtype,
                      err));
    if (p.dtype == BYOC_NONE)
        return BYOC_OK;
    const enum byoc_status status = rebuild(&p, scratch, err);
    byi_vec_free(p.constants.at);
    byi_index_free(&p.places);
    if (status != BYOC_OK)
        return status;
    byi_func_replace(m, func, p.f);
    if (counts) {
        counts->to = p.dtype == BYOC_F16 ? "fp16" : "bf16";
        counts->narrow += p.counts.narrow;
        counts->float32 += p.counts.float32;
    }
    return BYOC_OK;
}

static const struct byi_pass_option options[] = {
    {"to", BYI_ATTR_STRING, "none", "none, fp16 or bf16"},
    {0},
};

const struct byi_pass byi_pass_to_mixed_precision = {
    .name = "ToMixedPrecision",
    .summary = "compute float32 operators in 16 bits, if the user requests it",
    .options = options,
    .run_func = run,
};
