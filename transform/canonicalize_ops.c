/* SPDX-License-Identifier: Apache-2.0 */
/* CanonicalizeOps: rewrite to canonical forms, so that a pattern needs one row.
 * requires: nothing
 * leaves:   constants on the right of add, multiply, maximum, minimum, equal,
 *           not_equal and logical operators; those of add and multiply without
 *           leading axes of size 1, except that a bias has the shape (O, 1, 1)
 *           after a 2-D convolution; no subtraction of or division by a float
 *           constant whose negative or inverse is a normal number; no power 2
 *           or 1, and no power 1/2 of sums of squares; clip and nn.relu instead
 *           of minimum and maximum with a scalar constant; global pooling
 *           operators instead of means and full windows; zero padding merged
 *           into convolutions and average pooling; convolutions instead of
 *           transposed ones of stride 1 that add few positions; no reshape,
 *           transpose, cast or broadcast_to without effect, and no two
 *           consecutive ones of a kind; einsum of at most two operands
 *
 *   %0 = subtract(%x, const[c]);        %0 = add(%x, const[-c]);
 *   %1 = maximum(const(0), %0);   ==>   %1 = nn.relu(%0);
 *   mean(%1, axis=[2, 3])               nn.global_avg_pool2d(%1)
 */
#include "transform.h"

#include <math.h>
#include <string.h>

#include "simplify.h"

#include "core/ops/layout.h"

static bool is_const(const struct byi_rewrite *rw, byi_id id)
{
    return byi_rw_node(rw, id)->kind == BYI_CONST;
}

/* --- constant operands --------------------------------------------------- */

/* Whether only the left operand is a constant. */
static bool is_left(struct byi_row_match *r)
{
    return byi_rw_arg(r->rw, r->root, 0) == byi_row_value(r, "c") &&
           !is_const(r->rw, byi_row_value(r, "x"));
}

/* by the number of spatial axes */
static const enum byi_op_id convs[] = {
    BYI_OP_NN_CONV1D,           BYI_OP_NN_CONV2D,
    BYI_OP_NN_CONV3D,           BYI_OP_NN_CONV1D_TRANSPOSE,
    BYI_OP_NN_CONV2D_TRANSPOSE, BYI_OP_NN_CONV3D_TRANSPOSE,
};

static bool is_one_of(const struct byi_rewrite *rw, byi_id id,
                      const enum byi_op_id *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (byi_rw_is(rw, id, ops[i]))
            return true;
    return false;
}

static bool is_conv(const struct byi_rewrite *rw, byi_id id)
{
    return is_one_of(rw, id, convs, BYI_COUNT(convs));
}

/* Returns the canonical rank of constant c, which is an operand beside x. A
 * bias has one axis for the channels and one for each axis after it; other
 * constants have no leading axes of size 1. */
static uint32_t const_rank(const struct byi_rewrite *rw, byi_id x,
                           const struct byi_tensor *c)
{
    const struct byi_type *type = byi_rw_tensor(rw, x);
    const int64_t n = byi_elements(c->rank, c->dims);
    uint32_t first = 0;
    while (first < c->rank && c->dims[first] == 1)
        first++;
    const uint32_t rank_without_ones = c->rank - first;
    if (!type || type->rank < 2)
        return rank_without_ones;
    const uint32_t bias = is_conv(rw, x) ? type->rank - 1
                          : byi_rw_is(rw, x, BYI_OP_NN_DENSE) ||
                                  byi_rw_is(rw, x, BYI_OP_NN_MATMUL)
                              ? 1
                              : 0;
    return bias > rank_without_ones && type->dims[type->rank - bias] == n
               ? bias
               : rank_without_ones;
}

/* Binds `shaped` to constant c in its canonical shape for an operation with x.
 * False if c has that shape already. */
static bool has_other_shape(struct byi_row_match *r)
{
    const byi_id x = byi_row_value(r, "x"), c = byi_row_value(r, "c");
    struct byi_tensor t;
    int64_t dims[BYI_MAX_RANK];
    if (is_const(r->rw, x) || !byi_rw_view(r->rw, c, &t))
        return false;
    const uint32_t rank = const_rank(r->rw, x, &t);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = t.rank + i >= rank ? t.dims[t.rank + i - rank] : 1;
    return rank != t.rank &&
           byi_row_bind(r, "shaped", byi_rw_const_as(r->rw, c, rank, dims));
}

static double negate(double v)
{
    return -v;
}

static double invert(double v)
{
    return 1.0 / v;
}

/* Emit a constant with f of every element of c. Returns BYI_NO_ID if c is not a
 * float constant, or if the result exceeds the module's budget of constants.
 * Also if a result is infinite, NaN or subnormal, an inverse is 0, or a 16-bit
 * result is rounded. */
static byi_id map_const(struct byi_rewrite *rw, byi_id c, double (*f)(double))
{
    struct byi_tensor in, out;
    if (!byi_rw_view(rw, c, &in) ||
        !(byi_dtype_is_wide(in.dtype) || byi_dtype_is_half(in.dtype)))
        return BYI_NO_ID;
    const struct byi_type *type = byi_rw_tensor(rw, c);
    const int64_t n = byi_elements(in.rank, in.dims);
    if (!byi_rw_alloc(rw, type, &out))
        return BYI_NO_ID;
    for (int64_t i = 0; i < n; i++) {
        const double exact = f(byi_tensor_float(&in, i));
        byi_tensor_set(&out, i, exact);
        const double rounded = byi_tensor_float(&out, i);
        if ((rounded != 0.0 ? !isnormal(rounded) : f == invert) ||
            (byi_dtype_is_half(in.dtype) && rounded != exact))
            return BYI_NO_ID;
    }
    return byi_rw_const(rw, type, &out);
}

/* Binds `negative` to -c. */
static bool has_negative(struct byi_row_match *r)
{
    return !is_const(r->rw, byi_row_value(r, "x")) &&
           byi_row_bind(r, "negative",
                        map_const(r->rw, byi_row_value(r, "c"), negate));
}

/* Binds `inverse` to 1 / c. */
static bool has_inverse(struct byi_row_match *r)
{
    return !is_const(r->rw, byi_row_value(r, "x")) &&
           byi_row_bind(r, "inverse",
                        map_const(r->rw, byi_row_value(r, "c"), invert));
}

/* --- clip ---------------------------------------------------------------- */

static bool bind_bounds(struct byi_row_match *r, double lo, double hi)
{
    return byi_row_bind_float(r, "lo", lo) && byi_row_bind_float(r, "hi", hi);
}

/* Whether minimum or maximum has one bound for all elements. Binds `lo` and
 * `hi`. */
static bool has_bound(struct byi_row_match *r)
{
    double bound;
    if (!byi_row_is_of_floats(r) ||
        !byi_rw_splat(r->rw, byi_row_value(r, "c"), &bound) || isnan(bound))
        return false;
    return byi_rw_is(r->rw, r->root, BYI_OP_MAXIMUM)
               ? bind_bounds(r, bound, INFINITY)
               : bind_bounds(r, -INFINITY, bound);
}

/* Read the bounds of a clip or nn.relu. False if its values are not floats, or
 * if the lower bound exceeds the upper one. */
static bool read_bounds(const struct byi_rewrite *rw, byi_id id, double *lo,
                        double *hi)
{
    const struct byi_attrs *attrs = byi_rw_node(rw, id)->attrs;
    const bool clips = byi_rw_is(rw, id, BYI_OP_CLIP);
    *lo = clips ? byi_attr_float(attrs, "a_min") : 0.0;
    *hi = clips ? byi_attr_float(attrs, "a_max") : INFINITY;
    return byi_rw_is_float(rw, id) && *lo <= *hi;
}

bool byi_is_full_range(struct byi_row_match *r)
{
    double lo, hi;
    return read_bounds(r->rw, r->root, &lo, &hi) && lo == -INFINITY &&
           hi == INFINITY;
}

bool byi_has_relu_bounds(struct byi_row_match *r)
{
    double lo, hi;
    return read_bounds(r->rw, r->root, &lo, &hi) && lo == 0.0 && hi == INFINITY;
}

/* Binds `lo` and `hi` to the intersection of the ranges of both operators. */
bool byi_bounds_overlap(struct byi_row_match *r)
{
    double lo, hi, inner_lo, inner_hi;
    if (!read_bounds(r->rw, r->root, &lo, &hi) ||
        !read_bounds(r->rw, byi_row_value(r, "y"), &inner_lo, &inner_hi))
        return false;
    lo = fmax(lo, inner_lo);
    hi = fmin(hi, inner_hi);
    return lo <= hi && bind_bounds(r, lo, hi);
}

/* --- pooling ------------------------------------------------------------- */

/* Whether the axes are exactly the spatial ones: all but the first two. */
static bool are_spatial_axes(const int64_t *axes, uint32_t n, uint32_t rank)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 2 || axis >= (int64_t)rank)
            return false;
        seen |= 1u << axis;
    }
    return seen == ((1u << rank) - 1) - 3u;
}

/* Whether a mean of (N, C, H, W) or (N, C, D, H, W) is over all axes but N and
 * C. The rows exclude rank 3, where it may belong to a layer normalisation. An
 * empty x is excluded, since its mean is NaN but its pooled value is 0. */
static bool is_pooling(struct byi_row_match *r)
{
    const struct byi_type *x = byi_row_node(r, "x")->type;
    uint32_t n;
    const int64_t *axes =
        byi_attr_ints(byi_rw_node(r->rw, r->root)->attrs, "axis", &n);
    return byi_dtype_is_float(x->dtype) && are_spatial_axes(axes, n, x->rank) &&
           byi_elements(x->rank - 2, x->dims + 2) != 0;
}

/* Like is_pooling, for a mean without keepdims. Binds `shape` to (N, C), of
 * which at most one may be symbolic. */
static bool is_flat_pooling(struct byi_row_match *r)
{
    const int64_t *dims = byi_row_node(r, "x")->type->dims;
    const int64_t n = dims[0], c = dims[1];
    const int64_t shape[2] = {BYI_IS_SYMBOL(n) ? -1 : n,
                              BYI_IS_SYMBOL(c) ? -1 : c};
    return is_pooling(r) && n != 0 && c != 0 &&
           !(BYI_IS_SYMBOL(n) && BYI_IS_SYMBOL(c)) &&
           byi_row_bind_ints(r, "shape", shape, 2);
}

static bool has_default_layout(const struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    return byi_layout_is_default(byi_op(node->op), node->attrs);
}

/* Whether the window is as large as the plane. */
static bool is_global(struct byi_row_match *r)
{
    const struct byi_node *node = byi_rw_node(r->rw, r->root);
    const struct byi_type *x = byi_row_node(r, "x")->type;
    uint32_t n;
    const int64_t *size = byi_attr_ints(node->attrs, "pool_size", &n);
    for (uint32_t i = 0; i < n; i++)
        if (x->dims[2 + i] != size[i] || node->type->dims[2 + i] != 1)
            return false;
    return has_default_layout(r->rw, r->root);
}

/* --- padding ------------------------------------------------------------- */

/* Read the padding of an nn.pad, without the first two axes: begins, then ends.
 * False if the padding is not constant, is negative, or pads one of the first
 * two axes. Also false if the root has another layout than channels first. */
static bool read_zero_pads(const struct byi_row_match *r,
                           int64_t pads[2 * BYI_MAX_RANK])
{
    int64_t padding[2 * BYI_MAX_RANK];
    uint32_t n;
    if (!has_default_layout(r->rw, r->root) ||
        !byi_rw_ints(r->rw, byi_row_value(r, "pads"), padding,
                     BYI_COUNT(padding), &n))
        return false;
    const uint32_t rank = n / 2, spatial = rank - 2;
    if (rank < 3)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t axis = i % rank;
        if (padding[i] < 0 || (axis < 2 && padding[i] != 0))
            return false;
        if (axis >= 2)
            pads[i / rank * spatial + axis - 2] = padding[i];
    }
    return true;
}

/* Binds `padded` to the root with operand x and another padding. If `include`,
 * a pooling counts the padding. */
static bool bind_padded(struct byi_row_match *r, const int64_t *padding,
                        bool include)
{
    const struct byi_node node = *byi_rw_node(r->rw, r->root);
    struct byi_attr attrs[16];
    const byi_id args[] = {byi_row_value(r, "x"), byi_row_value(r, "w")};
    if (node.attrs->n > BYI_COUNT(attrs))
        return false;
    for (uint32_t i = 0; i < node.attrs->n; i++) {
        attrs[i] = node.attrs->at[i];
        if (strcmp(attrs[i].name, "padding") == 0)
            attrs[i].ints = padding;
        if (strcmp(attrs[i].name, "count_include_pad") == 0)
            attrs[i].i = include;
    }
    return byi_row_bind(
        r, "padded",
        byi_rw_call(r->rw, node.op, args, node.n_args, attrs, node.attrs->n));
}

bool byi_binds_padded_conv(struct byi_row_match *r)
{
    int64_t pads[2 * BYI_MAX_RANK];
    uint32_t n;
    const int64_t *padding =
        byi_attr_ints(byi_rw_node(r->rw, r->root)->attrs, "padding", &n);
    if (!read_zero_pads(r, pads))
        return false;
    for (uint32_t i = 0; i < n; i++)
        pads[i] += padding[i];
    return bind_padded(r, pads, false);
}

/* Sets count_include_pad in the pooling, which then counts the padding. Padding
 * as wide as the window stays in nn.pad. */
bool byi_binds_padded_pool(struct byi_row_match *r)
{
    int64_t pads[2 * BYI_MAX_RANK];
    uint32_t n;
    const int64_t *size =
        byi_attr_ints(byi_rw_node(r->rw, r->root)->attrs, "pool_size", &n);
    if (!read_zero_pads(r, pads))
        return false;
    for (uint32_t i = 0; i < 2 * n; i++)
        if (pads[i] >= size[i % n])
            return false;
    return bind_padded(r, pads, true);
}

/* --- transposed convolutions ---------------------------------------------- */

/* Returns the weights of the convolution for those of a transposed one with
 * constant w (C, O/groups, taps): (O, C/groups, taps), with the taps in reverse
 * order. */
static byi_id flip_weights(struct byi_rewrite *rw, byi_id w, int64_t groups)
{
    struct byi_tensor in, out;
    if (!byi_rw_view(rw, w, &in))
        return BYI_NO_ID;
    const int64_t c = in.dims[0] / groups, o = in.dims[1];
    int64_t dims[BYI_MAX_RANK] = {o * groups, c};
    memcpy(dims + 2, in.dims + 2, (in.rank - 2) * sizeof *dims);
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, in.dtype, in.rank, dims);
    if (!byi_rw_alloc(rw, type, &out))
        return BYI_NO_ID;
    const int64_t taps = byi_elements(in.rank - 2, in.dims + 2);
    const size_t size = byoc_dtype_size(in.dtype);
    const char *src = in.data;
    char *dst = out.data;
    for (int64_t group = 0; group < groups; group++)
        for (int64_t k = 0; k < o; k++)
            for (int64_t i = 0; i < c; i++)
                for (int64_t t = taps - 1; t >= 0; t--, dst += size)
                    memcpy(dst,
                           src + (((group * c + i) * o + k) * taps + t) *
                                     (int64_t)size,
                           size);
    return byi_rw_const(rw, type, &out);
}

/* Binds `conv` to the convolution that computes the same as a transposed one of
 * stride 1. That reads padding where the transposed one reads nothing, so it is
 * slower if there are many more results than positions of x, as at the start of
 * a generator of images. */
static bool is_conv_of_flipped(struct byi_row_match *r)
{
    const struct byi_node node = *byi_rw_node(r->rw, r->root);
    const byi_id w = byi_row_value(r, "w");
    const struct byi_type *type = byi_rw_tensor(r->rw, w);
    const int64_t *x = byi_row_node(r, "x")->type->dims;
    int64_t pads[2 * BYI_MAX_RANK];
    uint32_t n;
    const int64_t *padding = byi_attr_ints(node.attrs, "padding", &n);
    const int64_t *dilation = byi_attr_ints(node.attrs, "dilation", &n);
    if (!has_default_layout(r->rw, r->root))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t reach = dilation[i] * (type->dims[2 + i] - 1);
        pads[i] = reach - padding[i];
        pads[n + i] = reach - padding[n + i];
        const int64_t more = pads[i] + pads[n + i] - reach;
        if (pads[i] < 0 || pads[n + i] < 0 ||
            (more > 0 && (BYI_IS_SYMBOL(x[2 + i]) || more > x[2 + i] / 8)))
            return false;
    }
    const int64_t groups = byi_attr_int(node.attrs, "groups");
    const struct byi_attr attrs[] = {
        {.name = "padding", .kind = BYI_ATTR_INTS, .ints = pads, .n = 2 * n},
        {.name = "dilation", .kind = BYI_ATTR_INTS, .ints = dilation, .n = n},
        {.name = "groups", .kind = BYI_ATTR_INT, .i = groups}};
    const byi_id args[] = {byi_row_value(r, "x"),
                           flip_weights(r->rw, w, groups)};
    return byi_row_bind(
        r, "conv",
        byi_rw_call(r->rw, convs[n - 1], args, 2, attrs, BYI_COUNT(attrs)));
}

/* --- powers --------------------------------------------------------------- */

enum { MAX_STEPS = 8 }; /* operators between a square and its root */

/* Operators whose results are at least 0, or NaN. */
static const enum byi_op_id not_negative[] = {
    BYI_OP_ABS,  BYI_OP_EXP, BYI_OP_SIGMOID, BYI_OP_NN_RELU,
    BYI_OP_SQRT, BYI_OP_L1,  BYI_OP_L2,      BYI_OP_SUM_SQUARE};
/* Operators whose results are at least 0, or NaN, if their first operand is. */
static const enum byi_op_id keeps_sign[] = {
    BYI_OP_MEAN,
    BYI_OP_SUM,
    BYI_OP_RESHAPE,
    BYI_OP_SQUEEZE,
    BYI_OP_EXPAND_DIMS,
    BYI_OP_NN_GLOBAL_AVG_POOL1D,
    BYI_OP_NN_GLOBAL_AVG_POOL2D,
    BYI_OP_NN_GLOBAL_AVG_POOL3D,
};

/* Whether x is not negative, for example a sum of squares plus a constant. For
 * minus infinity a power of 1/2 is infinity and a square root is NaN. */
static bool is_not_negative(struct byi_row_match *r)
{
    const struct byi_rewrite *rw = r->rw;
    byi_id x = byi_row_value(r, "x");
    double c;
    for (int i = 0; i < MAX_STEPS && byi_row_is_of_floats(r); i++) {
        const bool scales = byi_rw_is(rw, x, BYI_OP_MULTIPLY);
        if (is_one_of(rw, x, not_negative, BYI_COUNT(not_negative)) ||
            (scales && byi_rw_arg(rw, x, 0) == byi_rw_arg(rw, x, 1)))
            return true;
        if (byi_rw_is(rw, x, BYI_OP_CLIP))
            return byi_attr_float(byi_rw_node(rw, x)->attrs, "a_min") >= 0;
        if (scales || byi_rw_is(rw, x, BYI_OP_ADD)) {
            if (!byi_rw_splat(rw, byi_rw_arg(rw, x, 1), &c) || !(c >= 0))
                return false;
        } else if (!is_one_of(rw, x, keeps_sign, BYI_COUNT(keeps_sign))) {
            return false;
        }
        x = byi_rw_arg(rw, x, 0);
    }
    return false;
}

/* clang-format off */
#define ROWS_MEAN(rank, pool)                                                  \
    BYI_ROW_IF("mean(%x: Tensor[rank=" rank "]){keepdims=true}",               \
               pool "(%x)", is_pooling),                                       \
    BYI_ROW_IF("mean(%x: Tensor[rank=" rank "]){keepdims=false}",              \
               "reshape(" pool "(%x), shape)", is_flat_pooling)
#define ROW_WINDOW(pool)                                                       \
    BYI_ROW_IF("nn." pool "(%x){padding=0, dilation=1}",                       \
               "nn.global_" pool "(%x)", is_global)

static const struct byi_row rows[] = {
    /* constants: on the right, with their canonical shape */
    BYI_ROW_IF("add|multiply|maximum|minimum|equal|not_equal|logical_and|logical_or|logical_xor(const %c, %x)", "again(%x, %c)", is_left),
    BYI_ROW_IF("subtract(%x, const %c)", "add(%x, %negative)", has_negative),
    BYI_ROW_IF("divide(%x, const %c)", "multiply(%x, %inverse)", has_inverse),
    BYI_ROW_IF("add|multiply(%x, const %c)", "again(%x, %shaped)",
               has_other_shape),
    BYI_ROW_IF("power(%x, const %two)", "multiply(%x, %x)", byi_row_is_of_floats),
    BYI_ROW_IF("power(%x, const %half)", "sqrt(%x)", is_not_negative),
    BYI_ROW_IF("power(%x, const %one)", "%x", byi_row_is_of_floats),
    /* bounds */
    BYI_ROW_IF("maximum|minimum(%x, const %c)", "clip(%x, a_min=lo, a_max=hi)",
               has_bound),
    BYI_ROWS_CLIPS,
    /* global pooling: a mean, a window as large as the plane */
    ROWS_MEAN("4", "nn.global_avg_pool2d"),
    ROWS_MEAN("5", "nn.global_avg_pool3d"),
    ROW_WINDOW("avg_pool1d"),
    ROW_WINDOW("avg_pool2d"),
    ROW_WINDOW("avg_pool3d"),
    ROW_WINDOW("max_pool1d"),
    ROW_WINDOW("max_pool2d"),
    ROW_WINDOW("max_pool3d"),
    BYI_ROWS_ZERO_PADS,
    BYI_ROW_IF("nn.conv1d_transpose|nn.conv2d_transpose|nn.conv3d_transpose(%x, const %w){strides=1, output_padding=0}",
               "%conv", is_conv_of_flipped),
    /* products of two operands */
    BYI_ROW_RULE(BYI_OP_EINSUM, byi_split_einsum),
    BYI_ROW_RULE(BYI_OP_EINSUM, byi_sum_in_einsum),
    BYI_ROW_RULE(BYI_OP_EINSUM, byi_einsum_of_one),
    BYI_ROW_RULE(BYI_OP_EINSUM, byi_einsum_of_elements),
    /* movement */
    BYI_ROW_SAME_TYPE("reshape|broadcast_to|cast"),
    BYI_ROWS_VIEWS("reshape"),
    BYI_ROW_CASTS,
    BYI_ROWS_TRANSPOSES,
};
/* clang-format on */

BYI_ROWS_PASS(canonicalize_ops, "CanonicalizeOps", 0,
              "rewrite to canonical forms, so that patterns match", rows)
