/* SPDX-License-Identifier: Apache-2.0 */
/* CanonicalizeOps: canonical forms, so that a pattern needs one row.
 * requires: nothing
 * leaves:   constants on the right of commutative operators, without leading
 *           axes of size 1, as (O, 1, 1) after a convolution and (N) after a
 *           matmul; no subtraction of or division by a float constant; no
 *           power 2, 1 or 1/2; clip and nn.relu instead of minimum and maximum
 *           with a scalar constant; global pooling operators instead of means
 *           and full windows; zero padding merged into convolutions and average
 *           pooling; no reshape, transpose, cast or broadcast_to without
 *           effect, and no two of a kind in a row; einsum of at most two
 *           operands
 *
 *   %0 = subtract(%x, const[c]);        %0 = add(%x, const[-c]);
 *   %1 = maximum(const(0), %0);   ==>   %1 = nn.relu(%0);
 *   mean(%1, axis=[2, 3])               nn.global_avg_pool2d(%1)
 */
#include "transform.h"

#include <math.h>
#include <string.h>

#include "rows.h"
#include "simplify.h"

#include "core/ops/layout.h"

static bool is_const(const struct byi_rewrite *rw, byi_id id)
{
    return byi_rw_node(rw, id)->kind == BYI_CONST;
}

static bool is_single(enum byoc_dtype dtype)
{
    return dtype == BYOC_F32 || dtype == BYOC_F64;
}

/* --- constant operands --------------------------------------------------- */

static byi_id const_right(struct byi_rewrite *rw, byi_id at)
{
    const byi_id a = byi_rw_arg(rw, at, 0), b = byi_rw_arg(rw, at, 1);
    if (!is_const(rw, a) || is_const(rw, b))
        return BYI_NO_ID;
    return byi_rw_again(rw, at, (byi_id[]){b, a});
}

static const enum byi_op_id convs[] = {
    BYI_OP_NN_CONV1D,           BYI_OP_NN_CONV2D,
    BYI_OP_NN_CONV3D,           BYI_OP_NN_CONV1D_TRANSPOSE,
    BYI_OP_NN_CONV2D_TRANSPOSE, BYI_OP_NN_CONV3D_TRANSPOSE,
};

static bool is_conv(const struct byi_rewrite *rw, byi_id id)
{
    for (size_t i = 0; i < BYI_COUNT(convs); i++)
        if (byi_rw_is(rw, id, convs[i]))
            return true;
    return false;
}

/* The canonical rank of a constant operand of x: a bias has a fixed rank, other
 * constants drop leading axes of size 1. */
static uint32_t const_rank(const struct byi_rewrite *rw, byi_id x,
                           const struct byi_tensor *c)
{
    const struct byi_type *type = byi_rw_tensor(rw, x);
    const int64_t n = byi_elements(c->rank, c->dims);
    uint32_t first = 0;
    while (first < c->rank && c->dims[first] == 1)
        first++;
    const uint32_t stripped = c->rank - first;
    if (!type || type->rank < 2)
        return stripped;
    const uint32_t bias = is_conv(rw, x) ? type->rank - 1
                          : byi_rw_is(rw, x, BYI_OP_NN_DENSE) ||
                                  byi_rw_is(rw, x, BYI_OP_NN_MATMUL)
                              ? 1
                              : 0;
    return bias > stripped && type->dims[type->rank - bias] == n ? bias
                                                                 : stripped;
}

/* add(nn.conv2d(..), const (1, O, 1, 1))  ==>  ... const (O, 1, 1) */
static byi_id const_shape(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0), c = byi_rw_arg(rw, at, 1);
    struct byi_tensor t;
    int64_t dims[BYI_MAX_RANK];
    if (is_const(rw, x) || !byi_rw_view(rw, c, &t))
        return BYI_NO_ID;
    const uint32_t rank = const_rank(rw, x, &t);
    if (rank == t.rank)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = t.rank + i >= rank ? t.dims[t.rank + i - rank] : 1;
    return byi_rw_again(rw, at,
                        (byi_id[]){x, byi_rw_const_as(rw, c, rank, dims)});
}

static double negate(double v)
{
    return -v;
}

static double invert(double v)
{
    return 1.0 / v;
}

/* f of every element; BYI_NO_ID if a result is not a normal number. */
static byi_id map_const(struct byi_rewrite *rw, byi_id c, double (*f)(double))
{
    struct byi_tensor in, out;
    if (!byi_rw_view(rw, c, &in) || !is_single(in.dtype))
        return BYI_NO_ID;
    const struct byi_type *type = byi_rw_tensor(rw, c);
    const int64_t n = byi_elements(in.rank, in.dims);
    if (!byi_rw_alloc(rw, type, &out))
        return BYI_NO_ID;
    for (int64_t i = 0; i < n; i++) {
        byi_tensor_set(&out, i, f(byi_tensor_float(&in, i)));
        const double made = byi_tensor_float(&out, i);
        if (made != 0.0 ? !isnormal(made) : f == invert)
            return BYI_NO_ID;
    }
    return byi_rw_const(rw, type, &out);
}

static byi_id negate_right(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    if (is_const(rw, x))
        return BYI_NO_ID;
    return byi_rw_op2(rw, BYI_OP_ADD, x,
                      map_const(rw, byi_rw_arg(rw, at, 1), negate));
}

static byi_id invert_right(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    if (is_const(rw, x))
        return BYI_NO_ID;
    return byi_rw_op2(rw, BYI_OP_MULTIPLY, x,
                      map_const(rw, byi_rw_arg(rw, at, 1), invert));
}

static bool of_floats(struct byi_row_match *r)
{
    return byi_rw_float(r->rw, r->match->root);
}

static const struct byi_row rows[] = {
    BYI_ROW_IF("power(%x, const %two)", "multiply(%x, %x)", of_floats),
    BYI_ROW_IF("power(%x, const %half)", "sqrt(%x)", of_floats),
    BYI_ROW_IF("power(%x, const %one)", "%x", of_floats),
};

/* --- clip ---------------------------------------------------------------- */

static byi_id emit_clip(struct byi_rewrite *rw, byi_id x, double lo, double hi)
{
    if (lo == 0.0 && hi == INFINITY)
        return byi_rw_op1(rw, BYI_OP_NN_RELU, x);
    const struct byi_attr attrs[] = {
        {.name = "a_min", .kind = BYI_ATTR_FLOAT, .f = lo},
        {.name = "a_max", .kind = BYI_ATTR_FLOAT, .f = hi},
    };
    return byi_rw_call(rw, BYI_OP_CLIP, &x, 1, attrs, 2);
}

static byi_id bound_to_clip(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    double bound;
    if (!byi_rw_float(rw, x) ||
        !byi_rw_splat(rw, byi_rw_arg(rw, at, 1), &bound) || isnan(bound))
        return BYI_NO_ID;
    if (byi_rw_is(rw, at, BYI_OP_MAXIMUM))
        return emit_clip(rw, x, bound, INFINITY);
    return emit_clip(rw, x, -INFINITY, bound);
}

/* The bounds of a clip or nn.relu. */
static bool bounds_of(const struct byi_rewrite *rw, byi_id id, double *lo,
                      double *hi)
{
    *lo = 0.0;
    *hi = INFINITY;
    if (byi_rw_is(rw, id, BYI_OP_NN_RELU))
        return true;
    if (!byi_rw_is(rw, id, BYI_OP_CLIP))
        return false;
    *lo = byi_attr_float(byi_rw_node(rw, id)->attrs, "a_min");
    *hi = byi_attr_float(byi_rw_node(rw, id)->attrs, "a_max");
    return *lo <= *hi;
}

/* clip(x, 0, inf) is nn.relu(x); clip(clip(x)) is one clip if the bounds
 * overlap. */
byi_id byi_merge_clips(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    double lo, hi, inner_lo, inner_hi;
    if (!byi_rw_float(rw, x) || !bounds_of(rw, at, &lo, &hi))
        return BYI_NO_ID;
    if (lo == -INFINITY && hi == INFINITY)
        return x;
    if (byi_rw_once(rw, x) && bounds_of(rw, x, &inner_lo, &inner_hi)) {
        lo = fmax(lo, inner_lo);
        hi = fmin(hi, inner_hi);
        return lo <= hi ? emit_clip(rw, byi_rw_arg(rw, x, 0), lo, hi)
                        : BYI_NO_ID;
    }
    if (lo == 0.0 && hi == INFINITY && byi_rw_is(rw, at, BYI_OP_CLIP))
        return emit_clip(rw, x, lo, hi);
    return BYI_NO_ID;
}

/* --- pooling ------------------------------------------------------------- */

/* Whether the axes are exactly the spatial ones: all but the first two. */
static bool spatial_axes(const int64_t *axes, uint32_t n, uint32_t rank)
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

/* (N, C, 1, 1) to (N, C), if at most one of N and C is symbolic. */
static byi_id drop_spatial(struct byi_rewrite *rw, byi_id id)
{
    const struct byi_type *type = byi_rw_tensor(rw, id);
    const int64_t n = type->dims[0], c = type->dims[1];
    if (n == 0 || c == 0 || (BYI_IS_SYMBOL(n) && BYI_IS_SYMBOL(c)))
        return BYI_NO_ID;
    const int64_t shape[2] = {BYI_IS_SYMBOL(n) ? -1 : n,
                              BYI_IS_SYMBOL(c) ? -1 : c};
    return byi_rw_op2(rw, BYI_OP_RESHAPE, id, byi_rw_int_vector(rw, shape, 2));
}

/* mean(x, axis=[2, 3]) of (N, C, H, W)  ==>  nn.global_avg_pool2d(x). Not for
 * rank 3, where it may belong to a layer normalisation; not for empty x, whose
 * mean is NaN but whose pooled value is 0. */
static byi_id mean_to_pool(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const struct byi_type *x = byi_rw_tensor(rw, node->args[0]);
    uint32_t n;
    const int64_t *axes = byi_attr_ints(node->attrs, "axis", &n);
    if (!x || !byi_dtype_is_float(x->dtype) || x->rank < 4 || x->rank > 5 ||
        !spatial_axes(axes, n, x->rank) ||
        byi_elements(x->rank - 2, x->dims + 2) == 0)
        return BYI_NO_ID;
    const bool keep = byi_attr_int(node->attrs, "keepdims") != 0;
    const byi_id pool = byi_rw_op1(rw,
                                   x->rank == 4 ? BYI_OP_NN_GLOBAL_AVG_POOL2D
                                                : BYI_OP_NN_GLOBAL_AVG_POOL3D,
                                   node->args[0]);
    return keep || pool == BYI_NO_ID ? pool : drop_spatial(rw, pool);
}

static bool all_are(const struct byi_attrs *attrs, const char *name,
                    int64_t value)
{
    uint32_t n;
    const int64_t *values = byi_attr_ints(attrs, name, &n);
    for (uint32_t i = 0; i < n; i++)
        if (values[i] != value)
            return false;
    return true;
}

static const struct {
    enum byi_op_id window, global;
} pools[] = {
    {BYI_OP_NN_AVG_POOL1D, BYI_OP_NN_GLOBAL_AVG_POOL1D},
    {BYI_OP_NN_AVG_POOL2D, BYI_OP_NN_GLOBAL_AVG_POOL2D},
    {BYI_OP_NN_AVG_POOL3D, BYI_OP_NN_GLOBAL_AVG_POOL3D},
    {BYI_OP_NN_MAX_POOL1D, BYI_OP_NN_GLOBAL_MAX_POOL1D},
    {BYI_OP_NN_MAX_POOL2D, BYI_OP_NN_GLOBAL_MAX_POOL2D},
    {BYI_OP_NN_MAX_POOL3D, BYI_OP_NN_GLOBAL_MAX_POOL3D},
};

static bool has_default_layout(const struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    return byi_layout_is_default(byi_op(node->op), node->attrs);
}

/* A window as large as the plane, without padding, is global pooling. */
static byi_id window_to_global(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const struct byi_type *x = byi_rw_tensor(rw, node->args[0]);
    uint32_t n;
    const int64_t *size = byi_attr_ints(node->attrs, "pool_size", &n);
    if (!x || !has_default_layout(rw, at) ||
        !all_are(node->attrs, "padding", 0) ||
        !all_are(node->attrs, "dilation", 1))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < n; i++)
        if (x->dims[2 + i] != size[i] || node->type->dims[2 + i] != 1)
            return BYI_NO_ID;
    for (size_t i = 0; i < BYI_COUNT(pools); i++)
        if (pools[i].window == node->op)
            return byi_rw_op1(rw, pools[i].global, node->args[0]);
    return BYI_NO_ID;
}

/* --- padding ------------------------------------------------------------- */

/* Zeros that nn.pad puts around the spatial axes only, begins then ends;
 * false when `id` is something else. */
static bool match_zero_pad(const struct byi_rewrite *rw, byi_id id,
                           int64_t pads[2 * BYI_MAX_RANK])
{
    int64_t all[2 * BYI_MAX_RANK];
    uint32_t n;
    if (!byi_rw_is(rw, id, BYI_OP_NN_PAD) ||
        strcmp(byi_attr_string(byi_rw_node(rw, id)->attrs, "mode"),
               "constant") != 0 ||
        !byi_rw_is_value(rw, byi_rw_arg(rw, id, 2), 0.0) ||
        !byi_rw_ints(rw, byi_rw_arg(rw, id, 1), all, BYI_COUNT(all), &n))
        return false;
    const uint32_t rank = n / 2, spatial = rank - 2;
    if (rank < 3)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t axis = i % rank;
        if (all[i] < 0 || (axis < 2 && all[i] != 0))
            return false;
        if (axis >= 2)
            pads[i / rank * spatial + axis - 2] = all[i];
    }
    return true;
}

/* Copy node `at` with operand x and other padding. */
static byi_id emit_padded(struct byi_rewrite *rw, byi_id at, byi_id x,
                          const int64_t *padding, bool include)
{
    const struct byi_node node = *byi_rw_node(rw, at);
    struct byi_attr attrs[16];
    byi_id args[2] = {x, node.n_args == 2 ? node.args[1] : BYI_NO_ID};
    if (node.attrs->n > BYI_COUNT(attrs) || node.n_args > 2)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < node.attrs->n; i++) {
        attrs[i] = node.attrs->at[i];
        if (strcmp(attrs[i].name, "padding") == 0)
            attrs[i].ints = padding;
        if (strcmp(attrs[i].name, "count_include_pad") == 0)
            attrs[i].i = include;
    }
    return byi_rw_call(rw, node.op, args, node.n_args, attrs, node.attrs->n);
}

/* nn.conv2d(nn.pad(x, zeros))  ==>  nn.conv2d(x), padded */
byi_id byi_pad_into_conv(struct byi_rewrite *rw, byi_id at)
{
    const byi_id pad = byi_rw_arg(rw, at, 0);
    int64_t pads[2 * BYI_MAX_RANK];
    uint32_t n;
    if (!has_default_layout(rw, at) || !match_zero_pad(rw, pad, pads))
        return BYI_NO_ID;
    const int64_t *own =
        byi_attr_ints(byi_rw_node(rw, at)->attrs, "padding", &n);
    for (uint32_t i = 0; i < n; i++)
        pads[i] += own[i];
    return emit_padded(rw, at, byi_rw_arg(rw, pad, 0), pads, false);
}

/* nn.avg_pool2d(nn.pad(x, zeros))  ==>  nn.avg_pool2d(x), padded, with
 * count_include_pad. Padding as wide as the window stays in nn.pad. */
byi_id byi_pad_into_pool(struct byi_rewrite *rw, byi_id at)
{
    const byi_id pad = byi_rw_arg(rw, at, 0);
    const struct byi_attrs *attrs = byi_rw_node(rw, at)->attrs;
    int64_t pads[2 * BYI_MAX_RANK];
    uint32_t n;
    if (!has_default_layout(rw, at) || !match_zero_pad(rw, pad, pads) ||
        !all_are(attrs, "padding", 0) || byi_attr_int(attrs, "ceil_mode"))
        return BYI_NO_ID;
    const int64_t *size = byi_attr_ints(attrs, "pool_size", &n);
    for (uint32_t i = 0; i < 2 * n; i++)
        if (pads[i] >= size[i % n])
            return BYI_NO_ID;
    return emit_padded(rw, at, byi_rw_arg(rw, pad, 0), pads, true);
}

static const struct byi_rule rules[] = {
    {BYI_OP_ADD, const_right},
    {BYI_OP_MULTIPLY, const_right},
    {BYI_OP_MAXIMUM, const_right},
    {BYI_OP_MINIMUM, const_right},
    {BYI_OP_EQUAL, const_right},
    {BYI_OP_NOT_EQUAL, const_right},
    {BYI_OP_LOGICAL_AND, const_right},
    {BYI_OP_LOGICAL_OR, const_right},
    {BYI_OP_LOGICAL_XOR, const_right},
    {BYI_OP_SUBTRACT, negate_right},
    {BYI_OP_DIVIDE, invert_right},
    {BYI_OP_ADD, const_shape},
    {BYI_OP_MULTIPLY, const_shape},
    {BYI_OP_NONE, byi_rows_apply},
    {BYI_OP_MAXIMUM, bound_to_clip},
    {BYI_OP_MINIMUM, bound_to_clip},
    {BYI_OP_CLIP, byi_merge_clips},
    {BYI_OP_NN_RELU, byi_merge_clips},
    {BYI_OP_MEAN, mean_to_pool},
    {BYI_OP_NN_AVG_POOL1D, window_to_global},
    {BYI_OP_NN_AVG_POOL2D, window_to_global},
    {BYI_OP_NN_AVG_POOL3D, window_to_global},
    {BYI_OP_NN_MAX_POOL1D, window_to_global},
    {BYI_OP_NN_MAX_POOL2D, window_to_global},
    {BYI_OP_NN_MAX_POOL3D, window_to_global},
    {BYI_OP_NN_CONV1D, byi_pad_into_conv},
    {BYI_OP_NN_CONV2D, byi_pad_into_conv},
    {BYI_OP_NN_CONV3D, byi_pad_into_conv},
    {BYI_OP_NN_AVG_POOL1D, byi_pad_into_pool},
    {BYI_OP_NN_AVG_POOL2D, byi_pad_into_pool},
    {BYI_OP_NN_AVG_POOL3D, byi_pad_into_pool},
    {BYI_OP_EINSUM, byi_split_einsum},
    {BYI_OP_EINSUM, byi_sum_in_einsum},
    {BYI_OP_RESHAPE, byi_drop_same},
    {BYI_OP_RESHAPE, byi_merge_views},
    {BYI_OP_BROADCAST_TO, byi_drop_same},
    {BYI_OP_CAST, byi_drop_same},
    {BYI_OP_CAST, byi_merge_casts},
    {BYI_OP_TRANSPOSE, byi_merge_transposes},
};

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    return byi_rewrite_rows(m, func, rules, BYI_COUNT(rules), rows,
                            BYI_COUNT(rows), ctx, scratch, err);
}

const struct byi_pass byi_pass_canonicalize_ops = {
    .name = "CanonicalizeOps",
    .summary = "rewrite to canonical forms, so that patterns match",
    .opt_level = 0,
    .run_func = run,
};
