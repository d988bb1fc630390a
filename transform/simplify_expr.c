/* SimplifyExpr: arithmetic and movement that changes nothing.
 * requires: nothing (CanonicalizeOps first finds more: constants on the
 *           right)
 * leaves:   no x + 0, x - 0, x * 1, x / 1; no operator twice where once is
 *           the same; no two constant factors in a row; no concatenation or
 *           split of one, no slice, pad or tile that takes or adds nothing; no
 *           `where` that is decided; no dim of a known size taken out of
 *           shape_of
 *
 *   %0 = multiply(%x, const[a]);
 *   %1 = multiply(%0, const[b]);   ==>   multiply(%x, const[a b])
 *   add(%1, const(0))
 */
#include "transform.h"

#include <math.h>
#include <string.h>

#include "rewrite.h"

/* --- arithmetic ---------------------------------------------------------- */

/* Operand `side` when the other one is `neutral`. Addition of 0 turns -0 to
 * 0; nothing here depends on that sign. */
static byi_id drop_neutral(struct byi_rewrite *rw, byi_id at, double neutral,
                           bool either)
{
    if (byi_rw_is_value(rw, byi_rw_arg(rw, at, 1), neutral))
        return byi_rw_arg(rw, at, 0);
    if (either && byi_rw_is_value(rw, byi_rw_arg(rw, at, 0), neutral))
        return byi_rw_arg(rw, at, 1);
    return BYI_NO_ID;
}

static byi_id add_zero(struct byi_rewrite *rw, byi_id at)
{
    return drop_neutral(rw, at, 0.0, true);
}

static byi_id subtract_zero(struct byi_rewrite *rw, byi_id at)
{
    return drop_neutral(rw, at, 0.0, false);
}

static byi_id multiply_one(struct byi_rewrite *rw, byi_id at)
{
    return drop_neutral(rw, at, 1.0, true);
}

static byi_id divide_one(struct byi_rewrite *rw, byi_id at)
{
    return drop_neutral(rw, at, 1.0, false);
}

/* negative(negative(x)), logical_not(logical_not(x))  ==>  x */
static byi_id undo_twice(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    return byi_rw_is(rw, x, byi_rw_node(rw, at)->op) ? byi_rw_arg(rw, x, 0)
                                                     : BYI_NO_ID;
}

/* abs(abs(x)), nn.relu(nn.relu(x)), ...  ==>  once */
static byi_id drop_second(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    return byi_rw_is(rw, x, byi_rw_node(rw, at)->op) ? x : BYI_NO_ID;
}

/* The constant factor of a product, or BYI_NO_ID; *x is the other one. */
static byi_id split_product(struct byi_rewrite *rw, byi_id id, byi_id *x)
{
    struct byi_tensor view;
    if (!byi_rw_is(rw, id, BYI_OP_MULTIPLY))
        return BYI_NO_ID;
    for (uint32_t i = 2; i-- > 0;) {
        *x = byi_rw_arg(rw, id, 1 - i);
        if (byi_rw_view(rw, byi_rw_arg(rw, id, i), &view))
            return byi_rw_arg(rw, id, i);
    }
    return BYI_NO_ID;
}

/* Element by element a b in double; scalars broadcast. False when something
 * is not a normal number. */
static bool multiply_into(const struct byi_tensor *a,
                          const struct byi_tensor *b, struct byi_tensor *out)
{
    const int64_t n = byi_elements(out->rank, out->dims);
    const int64_t na = byi_elements(a->rank, a->dims);
    const int64_t nb = byi_elements(b->rank, b->dims);
    for (int64_t i = 0; i < n; i++) {
        const double v = byi_tensor_float(a, na == 1 ? 0 : i) *
                         byi_tensor_float(b, nb == 1 ? 0 : i);
        byi_tensor_set(out, i, v);
        const double kept = byi_tensor_float(out, i);
        if (kept == 0.0 ? v != 0.0 : !isnormal(kept))
            return false;
    }
    return true;
}

/* multiply(multiply(x, const[a]), const[b])  ==>  multiply(x, const[a b]) */
static byi_id merge_factors(struct byi_rewrite *rw, byi_id at)
{
    byi_id x, inner;
    const byi_id right = split_product(rw, at, &inner);
    if (right == BYI_NO_ID || !byi_rw_once(rw, inner))
        return BYI_NO_ID;
    const byi_id left = split_product(rw, inner, &x);
    struct byi_tensor a, b, out;
    if (left == BYI_NO_ID || !byi_rw_view(rw, left, &a) ||
        !byi_rw_view(rw, right, &b) ||
        (a.dtype != BYOC_F32 && a.dtype != BYOC_F64))
        return BYI_NO_ID;
    const bool same = byi_dims_equal(a.rank, a.dims, b.rank, b.dims);
    const bool b_large = a.rank == 0 && !same;
    if (!same && a.rank != 0 && b.rank != 0)
        return BYI_NO_ID;
    const struct byi_type *type = byi_rw_tensor(rw, b_large ? right : left);
    if (!byi_rw_alloc(rw, type, &out) || !multiply_into(&a, &b, &out))
        return BYI_NO_ID;
    return byi_rw_op2(rw, BYI_OP_MULTIPLY, x, byi_rw_const(rw, type, &out));
}

/* where(const all the same, a, b)  ==>  a or b; where(c, a, a)  ==>  a */
static byi_id decide_where(struct byi_rewrite *rw, byi_id at)
{
    const byi_id a = byi_rw_arg(rw, at, 1), b = byi_rw_arg(rw, at, 2);
    double c;
    if (a == b)
        return a;
    if (!byi_rw_splat(rw, byi_rw_arg(rw, at, 0), &c))
        return BYI_NO_ID;
    return c != 0.0 ? a : b;
}

/* --- movement ------------------------------------------------------------ */

static byi_id concat_one(struct byi_rewrite *rw, byi_id at)
{
    return byi_rw_node(rw, at)->n_args == 1 ? byi_rw_arg(rw, at, 0) : BYI_NO_ID;
}

/* A projection of a split into one part. */
static byi_id split_one(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *get = byi_rw_node(rw, at);
    if (get->kind != BYI_GET || !byi_rw_is(rw, get->args[0], BYI_OP_SPLIT) ||
        byi_rw_node(rw, get->args[0])->type->n_fields != 1)
        return BYI_NO_ID;
    return byi_rw_arg(rw, get->args[0], 0);
}

/* A slice with steps of 1 whose result is as large as its operand. */
static byi_id slice_all(struct byi_rewrite *rw, byi_id at)
{
    int64_t step[BYI_MAX_RANK];
    uint32_t n;
    if (!byi_rw_ints(rw, byi_rw_arg(rw, at, 4), step, BYI_MAX_RANK, &n))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < n; i++)
        if (step[i] != 1)
            return BYI_NO_ID;
    return byi_rw_arg(rw, at, 0);
}

static byi_id pad_nothing(struct byi_rewrite *rw, byi_id at)
{
    return byi_rw_is_value(rw, byi_rw_arg(rw, at, 1), 0.0)
               ? byi_rw_arg(rw, at, 0)
               : BYI_NO_ID;
}

static byi_id tile_once(struct byi_rewrite *rw, byi_id at)
{
    return byi_rw_is_value(rw, byi_rw_arg(rw, at, 1), 1.0)
               ? byi_rw_arg(rw, at, 0)
               : BYI_NO_ID;
}

/* take(shape_of(x), const i), where dim i of x is known  ==>  const */
static byi_id take_dim(struct byi_rewrite *rw, byi_id at)
{
    const byi_id shape = byi_rw_arg(rw, at, 0);
    struct byi_tensor index;
    if (!byi_rw_is(rw, shape, BYI_OP_SHAPE_OF) ||
        !byi_rw_view(rw, byi_rw_arg(rw, at, 1), &index) ||
        byi_elements(index.rank, index.dims) != 1)
        return BYI_NO_ID;
    const struct byi_node *node = byi_rw_node(rw, shape);
    const struct byi_type *x = byi_rw_tensor(rw, node->args[0]);
    const struct byi_type *dims = byi_rw_tensor(rw, shape);
    int64_t start = byi_attr_int(node->attrs, "start");
    int64_t i = byi_tensor_int(&index, 0);
    if (!x || !dims || BYI_IS_SYMBOL(dims->dims[0]) || i < -dims->dims[0] ||
        i >= dims->dims[0])
        return BYI_NO_ID;
    start = start < 0 ? start + x->rank : start;
    i += (i < 0 ? dims->dims[0] : 0) + (start < 0 ? 0 : start);
    if (BYI_IS_SYMBOL(x->dims[i]))
        return BYI_NO_ID;
    const byi_id vector = byi_rw_int_vector(rw, &x->dims[i], 1);
    return byi_rw_const_as(rw, vector, index.rank, index.dims);
}

static const struct byi_rule rules[] = {
    {BYI_OP_ADD, add_zero},           {BYI_OP_SUBTRACT, subtract_zero},
    {BYI_OP_MULTIPLY, multiply_one},  {BYI_OP_DIVIDE, divide_one},
    {BYI_OP_NEGATIVE, undo_twice},    {BYI_OP_LOGICAL_NOT, undo_twice},
    {BYI_OP_ABS, drop_second},        {BYI_OP_NN_RELU, drop_second},
    {BYI_OP_CEIL, drop_second},       {BYI_OP_FLOOR, drop_second},
    {BYI_OP_ROUND, drop_second},      {BYI_OP_SIGN, drop_second},
    {BYI_OP_MULTIPLY, merge_factors}, {BYI_OP_WHERE, decide_where},
    {BYI_OP_CONCATENATE, concat_one}, {BYI_OP_STRIDED_SLICE, slice_all},
    {BYI_OP_NN_PAD, pad_nothing},     {BYI_OP_TILE, tile_once},
    {BYI_OP_TAKE, take_dim},          {BYI_OP_NONE, split_one},
};

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    return byi_rewrite(m, func, rules, BYI_COUNT(rules), ctx, scratch, NULL,
                       err);
}

const struct byi_pass byi_pass_simplify_expr = {
    .name = "SimplifyExpr",
    .summary = "drop arithmetic and movement that change nothing",
    .opt_level = 1,
    .run_func = run,
};
