/* SPDX-License-Identifier: Apache-2.0 */
/* SimplifyExpr: drop arithmetic and data movement without effect, and merge
 * consecutive steps.
 * requires: nothing (CanonicalizeOps first finds more: constants on the
 *           right)
 * leaves:   no match of a row or rule of the tables in this file. Elements
 *           keep their values, except that combined constants of float sums
 *           and products are rounded once (terms that cancel are not combined)
 *           and that -0 may become 0. x - x and x 0 stay: they are not 0 for
 *           every x.
 *
 *   %0 = multiply(%x, const[a]);
 *   %1 = multiply(%0, const[b]);   ==>   multiply(%x, const[a b])
 *   add(%1, const(0))
 */
#include "transform.h"

#include <math.h>
#include <string.h>

#include "rows.h"
#include "simplify.h"

/* clang-format off */
static const struct byi_row rows[] = {
    /* no effect; x + 0 turns -0 into 0, which is accepted */
    BYI_ROW("add(%x, const %zero)", "%x"),
    BYI_ROW("subtract(%x, const %zero)", "%x"),
    BYI_ROW("multiply(%x, const %one)", "%x"),
    BYI_ROW("divide(%x, const %one)", "%x"),
    BYI_ROW("power(%x, const %one)", "%x"),
    BYI_ROW_SHARED("negative(negative(%x))", "%x"),
    BYI_ROW_SHARED("logical_not(logical_not(%x))", "%x"),
    /* the second time has no effect */
    BYI_ROW_SHARED("abs(%y) with %y = abs(%x)", "%y"),
    BYI_ROW_SHARED("nn.relu(%y) with %y = nn.relu(%x)", "%y"),
    BYI_ROW_SHARED("ceil(%y) with %y = ceil(%x)", "%y"),
    BYI_ROW_SHARED("floor(%y) with %y = floor(%x)", "%y"),
    BYI_ROW_SHARED("round(%y) with %y = round(%x)", "%y"),
    BYI_ROW_SHARED("sign(%y) with %y = sign(%x)", "%y"),
    /* a known choice */
    BYI_ROW("where(%c, %x, %x)", "%x"),
    BYI_ROW("where(const %one, %x, %y)", "%x"),
    BYI_ROW("where(const %zero, %x, %y)", "%y"),
    /* movement of one part, by nothing, or once */
    BYI_ROW("concatenate(%x)", "%x"),
    BYI_ROW("nn.pad(%x, const %zero, %value...)", "%x"),
    BYI_ROW("tile(%x, const %one)", "%x"),
};
/* clang-format on */

/* --- reassociation of constants ------------------------------------------ */

/* The constant operand of a call of `op`, or BYI_NO_ID; *x is the other
 * operand. For subtract and divide, only the right operand. */
static byi_id split_const(struct byi_rewrite *rw, byi_id id, enum byi_op_id op,
                          byi_id *x)
{
    struct byi_tensor view;
    const bool ordered = op == BYI_OP_SUBTRACT || op == BYI_OP_DIVIDE;
    if (!byi_rw_is(rw, id, op))
        return BYI_NO_ID;
    for (uint32_t i = 2; i-- > (ordered ? 1 : 0);) {
        *x = byi_rw_arg(rw, id, 1 - i);
        if (byi_rw_view(rw, byi_rw_arg(rw, id, i), &view))
            return byi_rw_arg(rw, id, i);
    }
    return BYI_NO_ID;
}

/* Combine two constants in double; false: they must not be combined. */
typedef bool (*meet_fn)(double a, double b, double *out);

/* Cancelling terms are not combined: that would change the rounding of x + a.
 */
static bool meet_sum(double a, double b, double *out)
{
    *out = a + b;
    return a == 0.0 || b == 0.0 || (a < 0.0) == (b < 0.0);
}

static bool meet_product(double a, double b, double *out)
{
    *out = a * b;
    return true;
}

static bool meet_max(double a, double b, double *out)
{
    *out = a < b ? b : a;
    return a == a && b == b;
}

static bool meet_min(double a, double b, double *out)
{
    *out = b < a ? b : a;
    return a == a && b == b;
}

/* Store v as element i of `out`; false unless it is a normal number, or exact
 * for an integer type. */
static bool put(struct byi_tensor *out, int64_t i, double v)
{
    const bool is_float = byi_dtype_is_float(out->dtype);
    if (!is_float && !(fabs(v) < 2147483648.0))
        return false;
    byi_tensor_set(out, i, v);
    const double kept = byi_tensor_float(out, i);
    return !is_float ? kept == v : kept == 0.0 ? v == 0.0 : isnormal(kept);
}

/* Combine constants a and b elementwise; scalars broadcast. */
static byi_id meet(struct byi_rewrite *rw, byi_id left, byi_id right,
                   meet_fn both)
{
    struct byi_tensor a, b, out;
    if (left == BYI_NO_ID || !byi_rw_view(rw, left, &a) ||
        !byi_rw_view(rw, right, &b) || a.dtype != b.dtype ||
        (a.dtype != BYOC_F32 && a.dtype != BYOC_F64 && a.dtype != BYOC_I32 &&
         a.dtype != BYOC_I64))
        return BYI_NO_ID;
    const bool same = byi_dims_equal(a.rank, a.dims, b.rank, b.dims);
    if (!same && a.rank != 0 && b.rank != 0)
        return BYI_NO_ID;
    const bool b_large = a.rank == 0 && !same;
    const struct byi_type *type = byi_rw_tensor(rw, b_large ? right : left);
    if (!byi_rw_alloc(rw, type, &out))
        return BYI_NO_ID;
    const int64_t n = byi_elements(out.rank, out.dims);
    const int64_t na = byi_elements(a.rank, a.dims);
    const int64_t nb = byi_elements(b.rank, b.dims);
    for (int64_t i = 0; i < n; i++) {
        double v;
        if (!both(byi_tensor_float(&a, na == 1 ? 0 : i),
                  byi_tensor_float(&b, nb == 1 ? 0 : i), &v) ||
            !put(&out, i, v))
            return BYI_NO_ID;
    }
    return byi_rw_const(rw, type, &out);
}

/* Operators that reassociate: (x op a) op b  ==>  x op (a with b). Sums and
 * products of floats are rounded once instead of twice. Integer division is
 * excluded, since it truncates. */
static const struct {
    enum byi_op_id op;
    meet_fn both;
    bool floats_only;
} chains[] = {
    {BYI_OP_ADD, meet_sum, false},          {BYI_OP_SUBTRACT, meet_sum, false},
    {BYI_OP_MULTIPLY, meet_product, false}, {BYI_OP_DIVIDE, meet_product, true},
    {BYI_OP_MAXIMUM, meet_max, false},      {BYI_OP_MINIMUM, meet_min, false},
};

static byi_id merge_chain(struct byi_rewrite *rw, byi_id at)
{
    const enum byi_op_id op = byi_rw_node(rw, at)->op;
    byi_id x, inner;
    uint32_t row = 0;
    while (chains[row].op != op)
        row++;
    const byi_id right = split_const(rw, at, op, &inner);
    if (right == BYI_NO_ID || !byi_rw_once(rw, inner) ||
        (chains[row].floats_only && !byi_rw_float(rw, at)))
        return BYI_NO_ID;
    const byi_id left = split_const(rw, inner, op, &x);
    return byi_rw_op2(rw, op, x, meet(rw, left, right, chains[row].both));
}

/* multiply(add(multiply(x, a), b), c)  ==>  add(multiply(x, a c), b c) */
static byi_id distribute(struct byi_rewrite *rw, byi_id at)
{
    byi_id sum, product, x;
    const byi_id c = split_const(rw, at, BYI_OP_MULTIPLY, &sum);
    if (c == BYI_NO_ID || !byi_rw_float(rw, at) || !byi_rw_once(rw, sum))
        return BYI_NO_ID;
    const byi_id b = split_const(rw, sum, BYI_OP_ADD, &product);
    if (b == BYI_NO_ID || !byi_rw_once(rw, product))
        return BYI_NO_ID;
    const byi_id a = split_const(rw, product, BYI_OP_MULTIPLY, &x);
    const byi_id scaled =
        byi_rw_op2(rw, BYI_OP_MULTIPLY, x, meet(rw, a, c, meet_product));
    return byi_rw_op2(rw, BYI_OP_ADD, scaled, meet(rw, b, c, meet_product));
}

/* --- movement ------------------------------------------------------------ */

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

/* clang-format off */
static const struct byi_rule rules[] = {
    {BYI_OP_NONE, byi_rows_apply},
    /* arithmetic */
    {BYI_OP_CLIP, byi_merge_clips},             /* clip(clip(x))            */
    {BYI_OP_NN_RELU, byi_merge_clips},
    {BYI_OP_ADD, merge_chain},                  /* (x + a) + b              */
    {BYI_OP_SUBTRACT, merge_chain},             /* (x - a) - b              */
    {BYI_OP_MULTIPLY, merge_chain},             /* (x a) b                  */
    {BYI_OP_DIVIDE, merge_chain},               /* (x / a) / b              */
    {BYI_OP_MAXIMUM, merge_chain},              /* max(max(x, a), b)        */
    {BYI_OP_MINIMUM, merge_chain},
    {BYI_OP_MULTIPLY, distribute},              /* (x a + b) c              */
    /* movement */
    {BYI_OP_RESHAPE, byi_drop_same},
    {BYI_OP_BROADCAST_TO, byi_drop_same},
    {BYI_OP_CAST, byi_drop_same},
    {BYI_OP_SQUEEZE, byi_drop_same},
    {BYI_OP_FLATTEN, byi_drop_same},
    {BYI_OP_RESHAPE, byi_reshape_full},         /* of a constant, of full   */
    {BYI_OP_RESHAPE, byi_merge_views},          /* of another view          */
    {BYI_OP_SQUEEZE, byi_merge_views},
    {BYI_OP_EXPAND_DIMS, byi_merge_views},
    {BYI_OP_FLATTEN, byi_merge_views},
    {BYI_OP_TRANSPOSE, byi_merge_transposes},   /* of a transpose           */
    {BYI_OP_CAST, byi_merge_casts},             /* of a cast                */
    {BYI_OP_NN_PAD, byi_merge_pads},            /* of a pad                 */
    {BYI_OP_NN_CONV1D, byi_pad_into_conv},      /* of a pad                 */
    {BYI_OP_NN_CONV2D, byi_pad_into_conv},
    {BYI_OP_NN_CONV3D, byi_pad_into_conv},
    {BYI_OP_NN_AVG_POOL1D, byi_pad_into_pool},
    {BYI_OP_NN_AVG_POOL2D, byi_pad_into_pool},
    {BYI_OP_NN_AVG_POOL3D, byi_pad_into_pool},
    {BYI_OP_CONCATENATE, byi_concat_fields},    /* of what split made       */
    {BYI_OP_CONCATENATE, byi_concat_slices},    /* of slices that touch     */
    {BYI_OP_STRIDED_SLICE, slice_all},          /* of everything            */
    {BYI_OP_STRIDED_SLICE, byi_merge_slices},   /* of a slice               */
    {BYI_OP_STRIDED_SLICE, byi_slice_concat},   /* of a concatenation       */
    {BYI_OP_TAKE, take_dim},                    /* of shape_of              */
    {BYI_OP_NN_MATMUL, byi_transpose_in_product}, /* by a transpose         */
    {BYI_OP_NN_MATMUL, byi_product_of_repeated},  /* by heads in copies     */
    {BYI_OP_NONE, split_one},                   /* into one                 */
};
/* clang-format on */

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    return byi_rewrite_rows(m, func, rules, BYI_COUNT(rules), rows,
                            BYI_COUNT(rows), ctx, scratch, err);
}

const struct byi_pass byi_pass_simplify_expr = {
    .name = "SimplifyExpr",
    .summary = "drop arithmetic and data movement without effect",
    .opt_level = 1,
    .run_func = run,
};
