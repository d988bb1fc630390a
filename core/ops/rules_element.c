/* SPDX-License-Identifier: Apache-2.0 */
/* rules_element.c: type rules of elementwise operators, with and without
 * broadcasting, of other operators whose result has x's shape, of reductions,
 * and of quantisation.
 */
#include "rules.h"

#include <string.h>

/* Check reverse_sequence: x has a time axis and a batch axis, lengths is
 * (batch). */
static enum byoc_status check_reverse(const struct byi_infer *t)
{
    const int64_t batch = byi_attr_int(t->attrs, "batch_axis");
    const int64_t time = byi_attr_int(t->attrs, "time_axis");
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
        return byi_rule_fail(t,
                             "batch_axis is %lld and time_axis %lld, "
                             "expected 0 and 1 in either order",
                             (long long)batch, (long long)time);
    return byi_want_ints(t, 1, t->in[0]->dims[batch], "lengths");
}

static enum byoc_status check_lrn(const struct byi_infer *t)
{
    const int64_t size = byi_attr_int(t->attrs, "size");
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    if (size < 1)
        return byi_rule_fail(t, "size is %lld, expected at least 1",
                             (long long)size);
    return BYOC_OK;
}

enum byoc_status byi_rule_same(struct byi_infer *t)
{
    bool flags[BYI_MAX_RANK];
    uint32_t axis = 0;
    switch (t->op->id) {
    case BYI_OP_TRILU:
        BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
        break;
    case BYI_OP_DYN_TRILU:
        BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
        BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "k"));
        BYI_TRY(byi_want_scalar(t, 1, "k"));
        break;
    case BYI_OP_DYN_CUMSUM:
        BYI_TRY(byi_want_min_rank(t, 0, 1, "x"));
        BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "axis"));
        BYI_TRY(byi_want_scalar(t, 1, "axis"));
        break;
    case BYI_OP_CUMSUM:
        BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), t->in[0]->rank,
                              &axis));
        break;
    case BYI_OP_MVN:
        BYI_TRY(byi_want_axes(t, "axis", t->in[0]->rank, flags, &axis));
        break;
    case BYI_OP_REVERSE_SEQUENCE:
        BYI_TRY(check_reverse(t));
        break;
    case BYI_OP_NN_LRN:
        BYI_TRY(check_lrn(t));
        break;
    case BYI_OP_NN_GELU:
        BYI_TRY(byi_want_word(t, "approximate", "none|tanh"));
        break;
    default:
        break;
    }
    return byi_rule_result(t, t->in[0]);
}

/* For nn.softmax and similar operators: the result has x's type. */
enum byoc_status byi_rule_axis_same(struct byi_infer *t)
{
    uint32_t axis = 0;
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), t->in[0]->rank,
                          &axis));
    if (t->op->id == BYI_OP_LP_NORMALIZE) {
        const int64_t p = byi_attr_int(t->attrs, "p");
        if (p != 1 && p != 2)
            return byi_rule_fail(t, "p is %lld, expected 1 or 2", (long long)p);
    }
    return byi_rule_result(t, t->in[0]);
}

enum byoc_status byi_rule_to_bool(struct byi_infer *t)
{
    return byi_rule_like(t, BYOC_BOOL);
}

enum byoc_status byi_rule_cast(struct byi_infer *t)
{
    const enum byoc_dtype dtype =
        (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    const unsigned castable = BYI_VALUES | BYI_NARROW | BYI_BIT(BYOC_STRING);
    BYI_TRY(byi_want_dtype(t, 0, castable, "x"));
    if ((unsigned)dtype >= 32 || !(BYI_BIT(dtype) & castable)) {
        const char *name = byoc_dtype_name(dtype);
        return byi_rule_fail(
            t, "dtype is %s, expected a numeric type, bool or string",
            name ? name : "unknown");
    }
    BYI_TRY(byi_want_word(t, "round_mode", "up|down|nearest"));
    return byi_rule_like(t, dtype);
}

enum byoc_status byi_rule_bitcast(struct byi_infer *t)
{
    const unsigned types = BYI_NUMERIC | BYI_BIT(BYOC_F8E4M3FN) |
                           BYI_BIT(BYOC_F8E4M3FNUZ) | BYI_BIT(BYOC_F8E5M2) |
                           BYI_BIT(BYOC_F8E5M2FNUZ) | BYI_BIT(BYOC_F8E8M0);
    const enum byoc_dtype from = t->in[0]->dtype;
    const enum byoc_dtype to = (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    BYI_TRY(byi_want_dtype(t, 0, types, "x"));
    const char *name = byoc_dtype_name(to);
    if ((unsigned)to >= 32 || !(BYI_BIT(to) & types))
        return byi_rule_fail(t,
                             "dtype is %s, expected a number of 8 bits or more",
                             name ? name : "unknown");
    if (byi_dtype_bytes(from) != byi_dtype_bytes(to))
        return byi_rule_fail(t, "dtype is %s, expected as many bits as %s has",
                             name, byoc_dtype_name(from));
    return byi_rule_like(t, to);
}

/* The result of broadcasting operands 0 and 1, with this element type. */
static enum byoc_status broadcast_operands(struct byi_infer *t,
                                           enum byoc_dtype dtype)
{
    const struct byi_type *a = t->in[0], *b = t->in[1];
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank;
    BYI_TRY(
        byi_dims_broadcast(t, a->rank, a->dims, b->rank, b->dims, &rank, dims));
    return byi_rule_tensor(t, dtype, rank, dims);
}

enum byoc_status byi_rule_broadcast(struct byi_infer *t)
{
    if (t->op->id == BYI_OP_POWER) /* ONNX Pow: the exponent's type is free */
        BYI_TRY(byi_want_dtype(t, 1, BYI_NUMERIC, "b"));
    else
        BYI_TRY(byi_want_same_dtype(t, 1, 0, "b"));
    return broadcast_operands(t, t->in[0]->dtype);
}

enum byoc_status byi_rule_compare(struct byi_infer *t)
{
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "b"));
    return broadcast_operands(t, BYOC_BOOL);
}

/* The slope broadcasts to x, but x does not broadcast to the slope. */
enum byoc_status byi_rule_prelu(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *slope = t->in[1];
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "x"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "slope"));
    bool ok = slope->rank <= x->rank;
    for (uint32_t i = 0; ok && i < slope->rank; i++)
        ok = slope->dims[i] == 1 ||
             byi_dims_agree(slope->dims[i], x->dims[i + x->rank - slope->rank]);
    if (!ok) {
        char sx[256], ss[256];
        return byi_rule_fail(
            t, "slope has shape %s, expected one that broadcasts to %s",
            byi_dims_text(ss, sizeof ss, slope->rank, slope->dims),
            byi_dims_text(sx, sizeof sx, x->rank, x->dims));
    }
    return byi_rule_result(t, x);
}

enum byoc_status byi_rule_where(struct byi_infer *t)
{
    const struct byi_type *c = t->in[0], *a = t->in[1], *b = t->in[2];
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank;
    BYI_TRY(byi_want_dtype(t, 0, BYI_BOOLEAN, "condition"));
    BYI_TRY(byi_want_dtype(t, 1, BYI_ANY, "a"));
    BYI_TRY(byi_want_same_dtype(t, 2, 1, "b"));
    BYI_TRY(
        byi_dims_broadcast(t, a->rank, a->dims, b->rank, b->dims, &rank, dims));
    BYI_TRY(byi_dims_broadcast(t, rank, dims, c->rank, c->dims, &rank, dims));
    return byi_rule_tensor(t, a->dtype, rank, dims);
}

/* --- reductions --------------------------------------------------------- */

/* x without the flagged axes, or with 1 in their place. */
static enum byoc_status reduce_axes(struct byi_infer *t, const bool *flags,
                                    bool keep, enum byoc_dtype dtype)
{
    const struct byi_type *x = t->in[0];
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!flags[i])
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    return byi_rule_tensor(t, dtype, rank, dims);
}

enum byoc_status byi_rule_reduce(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    bool flags[BYI_MAX_RANK];
    uint32_t n;
    BYI_TRY(byi_want_axes(t, "axis", x->rank, flags, &n));
    if (n == 0 && !byi_attr_int(t->attrs, "noop_empty"))
        memset(flags, true, sizeof flags);
    return reduce_axes(t, flags, byi_attr_int(t->attrs, "keepdims") != 0,
                       x->dtype);
}

/* Whether `name` is a reduction over axes. */
static bool is_reduction(const char *name)
{
    const struct byi_op *op = byi_op_of_name(name, strlen(name));
    return op && op->rule == byi_rule_reduce;
}

enum byoc_status byi_rule_dyn_reduce(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const char *function = byi_attr_string(t->attrs, "function");
    const bool keep = byi_attr_int(t->attrs, "keepdims") != 0;
    int64_t axes[BYI_MAX_RANK], dims[BYI_MAX_RANK];
    bool flags[BYI_MAX_RANK], known = false;
    uint32_t n = 0;
    if (!is_reduction(function))
        return byi_rule_fail(
            t, "function is \"%.40s\", expected a reduction such as \"sum\"",
            function);
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "x"));
    BYI_TRY(byi_want_ints(t, 1, -1, "axes"));
    if (keep && BYI_IS_SYMBOL(t->in[1]->dims[0])) {
        for (uint32_t i = 0; i < x->rank; i++)
            dims[i] = byi_rule_new_symbol(t);
        return byi_rule_tensor(t, x->dtype, x->rank, dims);
    }
    BYI_TRY(byi_want_axis_operand(t, axes, &n, &known));
    if (n > x->rank)
        return byi_rule_fail(
            t, "found %u axes, expected at most %u, the rank of x", n, x->rank);
    if (known || n == 0) {
        BYI_TRY(byi_want_axis_list(t, "axes", axes, n, x->rank, flags));
        if (n == 0 && !byi_attr_int(t->attrs, "noop_empty"))
            memset(flags, true, sizeof flags);
        return reduce_axes(t, flags, keep, x->dtype);
    }
    const uint32_t rank = keep ? x->rank : x->rank - n;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = byi_rule_new_symbol(t);
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

enum byoc_status byi_rule_argreduce(struct byi_infer *t)
{
    bool flags[BYI_MAX_RANK] = {false};
    uint32_t axis = 0;
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), t->in[0]->rank,
                          &axis));
    if (t->in[0]->dims[axis] == 0)
        return byi_rule_fail(t, "axis %u has no elements, expected at least 1",
                             axis);
    flags[axis] = true;
    return reduce_axes(t, flags, byi_attr_int(t->attrs, "keepdims") != 0,
                       BYOC_I64);
}

/* --- quantisation ------------------------------------------------------- */

/* Check scale and zero point of blocks: they have x's dims, but one element for
 * every `size` elements along axis. */
static enum byoc_status check_blocks(const struct byi_infer *t, int64_t size)
{
    const struct byi_type *x = t->in[0];
    uint32_t axis = 0;
    BYI_TRY(byi_want_rank(t, 1, x->rank, "scale"));
    BYI_TRY(byi_want_rank(t, 2, x->rank, "zero point"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t expected = x->dims[i];
        if (i == axis && !BYI_IS_SYMBOL(expected))
            expected = expected / size + (expected % size != 0);
        for (uint32_t k = 1; k < 3; k++)
            if (!(i == axis && BYI_IS_SYMBOL(expected)) &&
                !byi_dims_agree(t->in[k]->dims[i], expected))
                return byi_rule_fail(
                    t, "%s has %lld elements along axis %u, expected %lld",
                    k == 1 ? "scale" : "zero point",
                    (long long)t->in[k]->dims[i], i, (long long)expected);
    }
    return BYOC_OK;
}

/* Check scale and zero point: one element, or one per position along axis. */
static enum byoc_status check_scale(const struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *scale = t->in[1], *zero = t->in[2];
    const int64_t block = byi_attr_int(t->attrs, "block_size");
    BYI_TRY(byi_want_dtype(t, 1, BYI_FLOATS, "scale"));
    if (block < 0 || block > BYI_MAX_ELEMENTS)
        return byi_rule_fail(t, "block_size is %lld, expected 0 to 2^40",
                             (long long)block);
    if (block > 0)
        return check_blocks(t, block);
    if (scale->rank > 1 || zero->rank != scale->rank ||
        (scale->rank == 1 && !byi_dims_agree(scale->dims[0], zero->dims[0]))) {
        char ss[256], sz[256];
        return byi_rule_fail(
            t,
            "scale has shape %s and zero point %s, expected two scalars or "
            "two vectors of the same length",
            byi_dims_text(ss, sizeof ss, scale->rank, scale->dims),
            byi_dims_text(sz, sizeof sz, zero->rank, zero->dims));
    }
    if (scale->rank == 0 || scale->dims[0] == 1)
        return BYOC_OK;
    uint32_t axis = 0;
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    if (!byi_dims_agree(scale->dims[0], x->dims[axis]))
        return byi_rule_fail(t,
                             "scale has %lld elements, expected 1 or %lld, the "
                             "elements of x along axis %u",
                             (long long)scale->dims[0],
                             (long long)x->dims[axis], axis);
    return BYOC_OK;
}

enum byoc_status byi_rule_quantize(struct byi_infer *t)
{
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS | BYI_BIT(BYOC_I32), "x"));
    BYI_TRY(byi_want_dtype(t, 2, BYI_INTS | BYI_NARROW, "zero point"));
    BYI_TRY(check_scale(t));
    return byi_rule_like(t, t->in[2]->dtype);
}

enum byoc_status byi_rule_lookup(struct byi_infer *t)
{
    const unsigned bytes = BYI_BIT(BYOC_I8) | BYI_BIT(BYOC_U8);
    BYI_TRY(byi_want_dtype(t, 0, bytes, "x"));
    BYI_TRY(byi_want_dtype(t, 1, bytes, "table"));
    BYI_TRY(byi_want_rank(t, 1, 1, "table"));
    if (!byi_dims_agree(t->in[1]->dims[0], 256))
        return byi_rule_fail(t, "table has %lld entries, expected 256",
                             (long long)t->in[1]->dims[0]);
    return byi_rule_like(t, t->in[1]->dtype);
}

enum byoc_status byi_rule_dequantize(struct byi_infer *t)
{
    BYI_TRY(byi_want_dtype(t, 0, BYI_INTS | BYI_NARROW, "x"));
    BYI_TRY(byi_want_same_dtype(t, 2, 0, "zero point"));
    BYI_TRY(check_scale(t));
    return byi_rule_like(t, t->in[1]->dtype);
}
