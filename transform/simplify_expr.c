/* SPDX-License-Identifier: Apache-2.0 */
/* SimplifyExpr: drop arithmetic and data movement without effect, and merge
 * consecutive steps.
 * requires: nothing; best after CanonicalizeOps, which moves constants to the
 *           right
 * leaves:   no match of a row of the table in this file. Elements keep their
 *           values, except that combined constants of float sums and products
 *           are rounded once (terms that cancel are not combined), that a
 *           product is scaled instead of its operands, and that -0 may become
 *           0. x - x and x times 0 stay: they are not 0 for every x.
 *
 *   %0 = multiply(%x, const[a]);
 *   %1 = multiply(%0, const[b]);   ==>   multiply(%x, const[a b])
 *   add(%1, const(0))
 */
#include "transform.h"

#include <math.h>

#include "simplify.h"

/* --- reassociation of constants ------------------------------------------ */

/* Combine two constants in double; false: they must not be combined. */
typedef bool (*combine_fn)(double a, double b, double *out);

/* Cancelling terms are not combined: that would change the rounding of x + a.
 */
static bool combine_sum(double a, double b, double *out)
{
    *out = a + b;
    return a == 0.0 || b == 0.0 || (a < 0.0) == (b < 0.0);
}

static bool combine_product(double a, double b, double *out)
{
    *out = a * b;
    return true;
}

static bool combine_max(double a, double b, double *out)
{
    *out = a < b ? b : a;
    return a == a && b == b;
}

static bool combine_min(double a, double b, double *out)
{
    *out = b < a ? b : a;
    return a == a && b == b;
}

/* Store v as element i of `out`. False unless the stored number is v
 * (integers), or is normal or an exact 0 (floats). */
static bool put_exact(struct byi_tensor *out, int64_t i, double v)
{
    const bool is_float = byi_dtype_is_float(out->dtype);
    if (!is_float && !(fabs(v) < 2147483648.0))
        return false;
    byi_tensor_set(out, i, v);
    const double rounded = byi_tensor_float(out, i);
    return !is_float        ? rounded == v
           : rounded == 0.0 ? v == 0.0
                            : isnormal(rounded);
}

/* Emit two constants combined elementwise; scalars broadcast. Returns BYI_NO_ID
 * if one is not a constant of a supported dtype and shape, or if a result must
 * not be combined or stored. */
static byi_id combine_constants(struct byi_rewrite *rw, byi_id left,
                                byi_id right, combine_fn combine)
{
    struct byi_tensor a, b, out;
    if (left == BYI_NO_ID || !byi_rw_view(rw, left, &a) ||
        !byi_rw_view(rw, right, &b) || a.dtype != b.dtype ||
        (a.dtype != BYOC_F32 && a.dtype != BYOC_F64 && a.dtype != BYOC_I32 &&
         a.dtype != BYOC_I64))
        return BYI_NO_ID;
    const bool same_shape = byi_dims_equal(a.rank, a.dims, b.rank, b.dims);
    if (!same_shape && a.rank != 0 && b.rank != 0)
        return BYI_NO_ID;
    const bool b_is_larger = a.rank == 0 && !same_shape;
    const struct byi_type *type = byi_rw_tensor(rw, b_is_larger ? right : left);
    if (!byi_rw_alloc(rw, type, &out))
        return BYI_NO_ID;
    const int64_t n = byi_elements(out.rank, out.dims);
    const int64_t na = byi_elements(a.rank, a.dims);
    const int64_t nb = byi_elements(b.rank, b.dims);
    for (int64_t i = 0; i < n; i++) {
        double v;
        if (!combine(byi_tensor_float(&a, na == 1 ? 0 : i),
                     byi_tensor_float(&b, nb == 1 ? 0 : i), &v) ||
            !put_exact(&out, i, v))
            return BYI_NO_ID;
    }
    return byi_rw_const(rw, type, &out);
}

/* Binds `c` to the constants a and b combined. */
static bool bind_combined(struct byi_row_match *r, combine_fn combine)
{
    return byi_row_bind(r, "c",
                        combine_constants(r->rw, byi_row_value(r, "a"),
                                          byi_row_value(r, "b"), combine));
}

/* Binds `c` to the combined constants of a chain of the root's operator. */
static bool have_combined(struct byi_row_match *r)
{
    switch (byi_rw_node(r->rw, r->root)->op) {
    case BYI_OP_DIVIDE: /* not of integers, whose division truncates */
        return byi_row_is_of_floats(r) && bind_combined(r, combine_product);
    case BYI_OP_MULTIPLY:
        return bind_combined(r, combine_product);
    case BYI_OP_MAXIMUM:
        return bind_combined(r, combine_max);
    case BYI_OP_MINIMUM:
        return bind_combined(r, combine_min);
    default:
        return bind_combined(r, combine_sum);
    }
}

/* Binds `ac` and `bc` to the products of constants a and b with c. */
static bool have_products(struct byi_row_match *r)
{
    const byi_id a = byi_row_value(r, "a"), b = byi_row_value(r, "b"),
                 c = byi_row_value(r, "c");
    return byi_row_is_of_floats(r) &&
           byi_row_bind(r, "ac",
                        combine_constants(r->rw, a, c, combine_product)) &&
           byi_row_bind(r, "bc",
                        combine_constants(r->rw, b, c, combine_product));
}

/* Whether a and b, numbers that scale the operands of a product of float32, may
 * scale the product instead: their own product, which `c` is bound to, is near
 * enough to 1 that sums do not overflow without it. */
static bool have_scale(struct byi_row_match *r)
{
    double a, b;
    return byi_rw_tensor(r->rw, r->root)->dtype == BYOC_F32 &&
           byi_rw_splat(r->rw, byi_row_value(r, "a"), &a) &&
           byi_rw_splat(r->rw, byi_row_value(r, "b"), &b) &&
           fabs(a * b) >= 0x1p-16 && fabs(a * b) <= 0x1p16 &&
           bind_combined(r, combine_product);
}

/* --- movement ------------------------------------------------------------ */

/* The field of a split into one part is the operand of the split. */
static byi_id drop_single_split(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *get = byi_rw_node(rw, at);
    if (get->kind != BYI_GET || !byi_rw_is(rw, get->args[0], BYI_OP_SPLIT) ||
        byi_rw_node(rw, get->args[0])->type->n_fields != 1)
        return BYI_NO_ID;
    return byi_rw_arg(rw, get->args[0], 0);
}

/* Binds `dims` to n elements of shape_of(x) from element `first` on, as a
 * constant of `rank` axes, if these dims are static. */
static bool bind_dims(struct byi_row_match *r, int64_t first, int64_t n,
                      uint32_t rank, const int64_t *shape)
{
    const struct byi_type *x = byi_row_node(r, "x")->type;
    int64_t start = byi_attr_int(byi_row_node(r, "shape")->attrs, "start");
    if (x->kind != BYI_TENSOR)
        return false;
    start = byi_max(start < 0 ? start + x->rank : start, 0) + first;
    for (int64_t i = 0; i < n; i++)
        if (BYI_IS_SYMBOL(x->dims[start + i]))
            return false;
    return byi_row_bind(
        r, "dims",
        byi_rw_const_as(r->rw,
                        byi_rw_int_vector(r->rw, &x->dims[start], (uint32_t)n),
                        rank, shape));
}

/* Binds `dims` to element i of shape_of(x), if that dim is static. */
static bool knows_dim(struct byi_row_match *r)
{
    const int64_t n = byi_row_node(r, "shape")->type->dims[0];
    struct byi_tensor index;
    if (!byi_rw_view(r->rw, byi_row_value(r, "i"), &index) ||
        byi_elements(index.rank, index.dims) != 1)
        return false;
    const int64_t i = byi_tensor_int(&index, 0);
    return !BYI_IS_SYMBOL(n) && i >= -n && i < n &&
           bind_dims(r, i < 0 ? i + n : i, 1, index.rank, index.dims);
}

/* Binds `dims` to the slice of shape_of(x), if all its dims are static. */
static bool knows_slice(struct byi_row_match *r)
{
    const int64_t n = byi_row_node(r, "shape")->type->dims[0];
    const struct byi_type *to = byi_rw_tensor(r->rw, r->root);
    int64_t begin;
    uint32_t n_begin;
    if (BYI_IS_SYMBOL(n) || BYI_IS_SYMBOL(to->dims[0]) || to->dims[0] == 0 ||
        !byi_rw_ints(r->rw, byi_row_value(r, "begin"), &begin, 1, &n_begin))
        return false;
    begin = byi_max(begin < 0 ? begin + n : begin, 0);
    return bind_dims(r, begin, to->dims[0], 1, to->dims);
}

/* clang-format off */
#define ROW_CHAIN(op)                                                          \
    BYI_ROW_IF(op "(" op "(%x, const %a), const %b)", op "(%x, %c)",           \
               have_combined)
static const struct byi_row rows[] = {
    /* no effect; x + 0 turns -0 into 0, which is accepted */
    BYI_ROW("add(%x, const %zero)", "%x"),
    BYI_ROW("subtract(%x, const %zero)", "%x"),
    BYI_ROW("multiply(%x, const %one)", "%x"),
    BYI_ROW("divide(%x, const %one)", "%x"),
    BYI_ROW("power(%x, const %one)", "%x"),
    BYI_ROW_SHARED("negative(negative(%x))", "%x"),
    BYI_ROW_SHARED("logical_not(logical_not(%x))", "%x"),
    /* applying the operator again has no effect */
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
    BYI_ROWS_CLIPS,
    /* two constants; sums and products of floats are rounded once, not twice */
    ROW_CHAIN("add"),
    ROW_CHAIN("subtract"),
    ROW_CHAIN("multiply"),
    ROW_CHAIN("divide"),
    ROW_CHAIN("maximum"),
    ROW_CHAIN("minimum"),
    BYI_ROW_IF("multiply(add(multiply(%x, const %a), const %b), const %c)",
               "add(multiply(%x, %ac), %bc)", have_products),
    /* data movement without effect: of one part, by 0, or of the whole */
    BYI_ROW("concatenate(%x)", "%x"),
    BYI_ROW("nn.pad(%x, const %zero, %value...)", "%x"),
    BYI_ROW("tile(%x, const %one)", "%x"),
    BYI_ROW("strided_slice(%x, %begin, %end, %axes, const %one)", "%x"),
    BYI_ROW_SAME_TYPE("reshape|broadcast_to|cast|nn.flatten"),
    BYI_ROW("squeeze(%x){exact=false}", "%x"), /* an exact one checks sizes */
    BYI_ROW_RULE(BYI_ROOT_NONE, drop_single_split),
    /* two movements */
    BYI_ROWS_RESHAPE_FULL,
    BYI_ROWS_VIEWS(BYI_VIEWS),
    BYI_ROWS_TRANSPOSES,
    BYI_ROW_CASTS,
    BYI_ROW_PADS,
    BYI_ROWS_ZERO_PADS,
    BYI_ROW_SLICES,
    BYI_ROW_RULE(BYI_OP_CONCATENATE, byi_concat_fields),
    BYI_ROW_RULE(BYI_OP_CONCATENATE, byi_concat_slices),
    BYI_ROW_RULE(BYI_OP_STRIDED_SLICE, byi_slice_concat),
    BYI_ROW_SHARED_IF("take(%shape, const %i) with %shape = shape_of(%x)",
                      "%dims", knows_dim),
    BYI_ROW_SHARED_IF("strided_slice(%shape, const %begin, %end, %axes, const %one) with %shape = shape_of(%x)",
                      "%dims", knows_slice),
    BYI_ROWS_PRODUCTS,
    /* scale scores, not queries and keys: a decoder's keys are a growing cache,
     * all of which would be scaled in each run */
    BYI_ROW_SHARED_IF("nn.matmul(multiply(%q, const %a), multiply(%k, const %b))",
                      "multiply(again(%q, %k), %c)", have_scale),
};
/* clang-format on */

BYI_ROWS_PASS(simplify_expr, "SimplifyExpr", 1,
              "drop arithmetic and data movement without effect", rows)
