/* SPDX-License-Identifier: Apache-2.0 */
/* simplify_movement.c: rules that merge two consecutive operators that only
 * move or copy elements. See simplify.h.
 */
#include "simplify.h"

#include <string.h>

static bool same_type(const struct byi_rewrite *rw, byi_id a, byi_id b)
{
    return byi_type_equal(byi_rw_node(rw, a)->type, byi_rw_node(rw, b)->type);
}

byi_id byi_drop_same(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    return same_type(rw, x, at) ? x : BYI_NO_ID;
}

/* --- views --------------------------------------------------------------- */

static bool is_view(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    return node->kind == BYI_CALL_OP && byi_op_has(node->op, BYI_TRAIT_VIEW) &&
           node->op != BYI_OP_COPY;
}

/* A reshape of x to the dims of `type`. Fails if a reshape cannot express them:
 * with two symbolic dims, or rank 0. */
static byi_id emit_reshape(struct byi_rewrite *rw, byi_id x,
                           const struct byi_type *type)
{
    int64_t shape[BYI_MAX_RANK];
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        const bool symbol = BYI_IS_SYMBOL(type->dims[i]);
        unknown += symbol;
        if (type->dims[i] == 0)
            return BYI_NO_ID;
        shape[i] = symbol ? -1 : type->dims[i];
    }
    if (unknown > 1)
        return BYI_NO_ID;
    return byi_rw_op2(rw, BYI_OP_RESHAPE, x,
                      byi_rw_int_vector(rw, shape, type->rank));
}

/* reshape(reshape(x))  ==>  reshape(x); squeeze(expand_dims(x))  ==>  x */
byi_id byi_merge_views(struct byi_rewrite *rw, byi_id at)
{
    const byi_id inner = byi_rw_arg(rw, at, 0);
    if (!is_view(rw, inner))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, inner, 0);
    return same_type(rw, x, at) ? x
                                : emit_reshape(rw, x, byi_rw_tensor(rw, at));
}

/* reshape(const)  ==>  const; reshape(full(s))  ==>  full(t) */
byi_id byi_reshape_full(struct byi_rewrite *rw, byi_id at)
{
    const byi_id x = byi_rw_arg(rw, at, 0);
    const struct byi_type *type = byi_rw_tensor(rw, at);
    struct byi_tensor t;
    if (!byi_type_static(type))
        return BYI_NO_ID;
    if (byi_rw_view(rw, x, &t))
        return byi_rw_const_as(rw, x, type->rank, type->dims);
    if (!byi_rw_is(rw, x, BYI_OP_FULL))
        return BYI_NO_ID;
    const byi_id shape = byi_rw_int_vector(rw, type->dims, type->rank);
    return byi_rw_again(rw, x, &shape);
}

/* --- transposes ---------------------------------------------------------- */

/* The axes of a transpose, or its default; false: not a transpose. */
static bool axes_of(const struct byi_rewrite *rw, byi_id id,
                    int64_t axes[BYI_MAX_RANK], uint32_t *rank)
{
    if (!byi_rw_is(rw, id, BYI_OP_TRANSPOSE) || !byi_rw_tensor(rw, id))
        return false;
    uint32_t n;
    const int64_t *given =
        byi_attr_ints(byi_rw_node(rw, id)->attrs, "axes", &n);
    *rank = byi_rw_tensor(rw, id)->rank;
    for (uint32_t i = 0; i < *rank; i++) {
        const int64_t axis = n ? given[i] : (int64_t)(*rank - 1 - i);
        axes[i] = axis < 0 ? axis + *rank : axis;
    }
    return true;
}

byi_id byi_merge_transposes(struct byi_rewrite *rw, byi_id at)
{
    int64_t outer[BYI_MAX_RANK], inner[BYI_MAX_RANK], both[BYI_MAX_RANK];
    uint32_t rank;
    if (!axes_of(rw, at, outer, &rank))
        return BYI_NO_ID;
    byi_id x = byi_rw_arg(rw, at, 0);
    const bool two = axes_of(rw, x, inner, &rank);
    if (two)
        x = byi_rw_arg(rw, x, 0);
    bool identity = true;
    for (uint32_t i = 0; i < rank; i++) {
        both[i] = two ? inner[outer[i]] : outer[i];
        identity = identity && both[i] == (int64_t)i;
    }
    if (identity)
        return x;
    const struct byi_attr axes = {
        .name = "axes", .kind = BYI_ATTR_INTS, .n = rank, .ints = both};
    return two ? byi_rw_call(rw, BYI_OP_TRANSPOSE, &x, 1, &axes, 1) : BYI_NO_ID;
}

/* --- casts --------------------------------------------------------------- */

/* Bits of an integer or of a float's significand, and whether it has a sign;
 * 0 for other types. */
static uint32_t bits_of(enum byoc_dtype dtype, bool *sign)
{
    *sign = byi_dtype_is_signed(dtype);
    if (dtype == BYOC_BOOL)
        return 1;
    if (byi_dtype_is_int(dtype))
        return (uint32_t)byoc_dtype_size(dtype) * 8 - *sign;
    return dtype == BYOC_BF16  ? 8
           : dtype == BYOC_F16 ? 11
           : dtype == BYOC_F32 ? 24
           : dtype == BYOC_F64 ? 53
                               : 0;
}

/* Whether the second type represents all values of the first. Integers of up to
 * 15 bits are in float16's range, those of up to 64 bits in that of others. */
static bool holds(enum byoc_dtype in, enum byoc_dtype out)
{
    bool in_sign, out_sign;
    const uint32_t in_bits = bits_of(in, &in_sign);
    const uint32_t out_bits = bits_of(out, &out_sign);
    if (in_bits == 0 || out_bits == 0 || out == BYOC_BOOL)
        return in == out;
    if (byi_dtype_is_float(in) && !byi_dtype_is_float(out))
        return false;
    if (in == BYOC_BF16 && out == BYOC_F16)
        return false;
    return in_bits <= out_bits && (!in_sign || out_sign);
}

/* cast(cast(x, wide), t)  ==>  cast(x, t), or x where that is its type */
byi_id byi_merge_casts(struct byi_rewrite *rw, byi_id at)
{
    const byi_id wide = byi_rw_arg(rw, at, 0);
    if (!byi_rw_is(rw, wide, BYI_OP_CAST))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, wide, 0);
    if (!holds(byi_rw_tensor(rw, x)->dtype, byi_rw_tensor(rw, wide)->dtype))
        return BYI_NO_ID;
    return same_type(rw, x, at) ? x : byi_rw_again(rw, at, &x);
}

/* --- pads ---------------------------------------------------------------- */

/* The pads of an nn.pad with a constant, none negative. */
static bool pads_of(const struct byi_rewrite *rw, byi_id id,
                    int64_t pads[2 * BYI_MAX_RANK], uint32_t *n)
{
    if (!byi_rw_is(rw, id, BYI_OP_NN_PAD) ||
        strcmp(byi_attr_string(byi_rw_node(rw, id)->attrs, "mode"),
               "constant") != 0 ||
        !byi_rw_ints(rw, byi_rw_arg(rw, id, 1), pads, 2 * BYI_MAX_RANK, n))
        return false;
    for (uint32_t i = 0; i < *n; i++)
        if (pads[i] < 0 || pads[i] > INT32_MAX)
            return false;
    return true;
}

/* nn.pad(nn.pad(x, p, c), q, c)  ==>  nn.pad(x, p + q, c) */
byi_id byi_merge_pads(struct byi_rewrite *rw, byi_id at)
{
    int64_t outer[2 * BYI_MAX_RANK], inner[2 * BYI_MAX_RANK];
    uint32_t n, n_inner;
    double value, inner_value;
    const byi_id pad = byi_rw_arg(rw, at, 0);
    if (!pads_of(rw, at, outer, &n) || !pads_of(rw, pad, inner, &n_inner) ||
        n != n_inner || !byi_rw_once(rw, pad) ||
        !byi_rw_splat(rw, byi_rw_arg(rw, at, 2), &value) ||
        !byi_rw_splat(rw, byi_rw_arg(rw, pad, 2), &inner_value) ||
        value != inner_value)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < n; i++)
        outer[i] += inner[i];
    const byi_id args[] = {byi_rw_arg(rw, pad, 0),
                           byi_rw_int_vector(rw, outer, n),
                           byi_rw_arg(rw, at, 2)};
    return byi_rw_again(rw, at, args);
}

/* --- slices -------------------------------------------------------------- */

/* A strided_slice with steps forward: of each axis, begin + i step. */
struct slice_match {
    const struct byi_type *x, *type;
    int64_t begin[BYI_MAX_RANK], step[BYI_MAX_RANK];
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Reads slice `id` with constant operands; axes it cuts have known sizes. */
static bool slice_of(const struct byi_rewrite *rw, byi_id id,
                     struct slice_match *s)
{
    int64_t v[5][BYI_MAX_RANK];
    uint32_t n[5];
    if (!byi_rw_is(rw, id, BYI_OP_STRIDED_SLICE))
        return false;
    for (uint32_t i = 1; i < 5; i++)
        if (!byi_rw_ints(rw, byi_rw_arg(rw, id, i), v[i], BYI_MAX_RANK, &n[i]))
            return false;
    s->x = byi_rw_tensor(rw, byi_rw_arg(rw, id, 0));
    s->type = byi_rw_tensor(rw, id);
    for (uint32_t i = 0; i < s->x->rank; i++) {
        s->begin[i] = 0;
        s->step[i] = 1;
    }
    for (uint32_t i = 0; i < n[3]; i++) {
        const int64_t axis = v[3][i] < 0 ? v[3][i] + s->x->rank : v[3][i];
        const int64_t dim = s->x->dims[axis], begin = v[1][i];
        if (BYI_IS_SYMBOL(dim) || v[4][i] < 1 || s->type->dims[axis] < 1)
            return false;
        s->begin[axis] = clamp(begin < 0 ? begin + dim : begin, 0, dim);
        s->step[axis] = s->type->dims[axis] == 1 ? 1 : v[4][i];
    }
    return true;
}

static byi_id emit_slice(struct byi_rewrite *rw, byi_id x,
                         const struct slice_match *s)
{
    int64_t begin[BYI_MAX_RANK], end[BYI_MAX_RANK], axes[BYI_MAX_RANK],
        steps[BYI_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->type->rank; i++) {
        if (BYI_IS_SYMBOL(s->type->dims[i]) || /* then it is not cut */
            (s->begin[i] == 0 && s->step[i] == 1 &&
             s->type->dims[i] == s->x->dims[i]))
            continue;
        begin[n] = s->begin[i];
        end[n] = s->begin[i] + (s->type->dims[i] - 1) * s->step[i] + 1;
        axes[n] = i;
        steps[n++] = s->step[i];
    }
    if (n == 0)
        return x;
    const byi_id args[] = {
        x, byi_rw_int_vector(rw, begin, n), byi_rw_int_vector(rw, end, n),
        byi_rw_int_vector(rw, axes, n), byi_rw_int_vector(rw, steps, n)};
    return byi_rw_call(rw, BYI_OP_STRIDED_SLICE, args, 5, NULL, 0);
}

/* A slice of a slice is one: begin b + b' s, step s s'. */
byi_id byi_merge_slices(struct byi_rewrite *rw, byi_id at)
{
    const byi_id inner = byi_rw_arg(rw, at, 0);
    struct slice_match a, b;
    if (!slice_of(rw, inner, &a) || !slice_of(rw, at, &b))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < a.x->rank; i++) {
        a.begin[i] += b.begin[i] * a.step[i];
        a.step[i] *= b.step[i];
    }
    a.type = b.type;
    return emit_slice(rw, byi_rw_arg(rw, inner, 0), &a);
}

static int64_t axis_of(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    const int64_t axis = byi_attr_int(node->attrs, "axis");
    return axis < 0 ? axis + byi_rw_tensor(rw, node->args[0])->rank : axis;
}

enum { MAX_PARTS = 64 }; /* looked through for one slice */

/* A slice that lies in one operand of a concatenation is a slice of that. */
byi_id byi_slice_concat(struct byi_rewrite *rw, byi_id at)
{
    const byi_id concat = byi_rw_arg(rw, at, 0);
    struct slice_match s;
    if (!byi_rw_is(rw, concat, BYI_OP_CONCATENATE) || !slice_of(rw, at, &s))
        return BYI_NO_ID;
    const struct byi_node *node = byi_rw_node(rw, concat);
    const int64_t axis = axis_of(rw, concat);
    if (BYI_IS_SYMBOL(s.type->dims[axis]) || node->n_args > MAX_PARTS)
        return BYI_NO_ID;
    int64_t at_dim = 0;
    const int64_t last =
        s.begin[axis] + (s.type->dims[axis] - 1) * s.step[axis];
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *part = byi_rw_tensor(rw, node->args[i]);
        const int64_t dim = part->dims[axis];
        if (BYI_IS_SYMBOL(dim))
            return BYI_NO_ID;
        if (s.begin[axis] >= at_dim && last < at_dim + dim) {
            s.begin[axis] -= at_dim;
            s.x = part;
            return emit_slice(rw, node->args[i], &s);
        }
        at_dim += dim;
    }
    return BYI_NO_ID;
}

/* --- concatenations ------------------------------------------------------ */

/* concatenate(p.0, p.1, ..) with p = split(x), every field, on one axis */
byi_id byi_concat_fields(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const struct byi_node *first = byi_rw_node(rw, node->args[0]);
    if (first->kind != BYI_GET ||
        !byi_rw_is(rw, first->args[0], BYI_OP_SPLIT) ||
        byi_rw_node(rw, first->args[0])->type->n_fields != node->n_args ||
        axis_of(rw, first->args[0]) != axis_of(rw, at))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_node *get = byi_rw_node(rw, node->args[i]);
        if (get->kind != BYI_GET || get->index != i ||
            get->args[0] != first->args[0])
            return BYI_NO_ID;
    }
    return byi_rw_arg(rw, first->args[0], 0);
}

/* Whether slice s cuts only `axis`, with step 1. */
static bool cuts_only(const struct slice_match *s, int64_t axis)
{
    for (uint32_t i = 0; i < s->x->rank; i++)
        if (s->step[i] != 1 ||
            ((int64_t)i != axis && s->x->dims[i] != s->type->dims[i]))
            return false;
    return !BYI_IS_SYMBOL(s->x->dims[axis]);
}

/* Slices of one value along one axis, each from where the one before ended,
 * are one slice. */
byi_id byi_concat_slices(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node node = *byi_rw_node(rw, at);
    const int64_t axis = axis_of(rw, at);
    struct slice_match all, s;
    if (node.n_args < 2 || !slice_of(rw, node.args[0], &all))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, node.args[0], 0);
    int64_t end = all.begin[axis];
    for (uint32_t i = 0; i < node.n_args; i++) {
        if (!slice_of(rw, node.args[i], &s) || !cuts_only(&s, axis) ||
            byi_rw_arg(rw, node.args[i], 0) != x || s.begin[axis] != end)
            return BYI_NO_ID;
        end += s.type->dims[axis];
    }
    all.type = byi_rw_tensor(rw, at);
    return emit_slice(rw, x, &all);
}
