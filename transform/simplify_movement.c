/* SPDX-License-Identifier: Apache-2.0 */
/* simplify_movement.c: conditions of rows, and rules, that merge two
 * consecutive operators that only move or copy elements. See simplify.h.
 */
#include "simplify.h"

/* --- views --------------------------------------------------------------- */

/* Binds `shape`, with which a reshape has the type of the root. False if two
 * dims are symbolic, or if a dim is 0, which in a shape means a dim of x. */
bool byi_binds_shape(struct byi_row_match *r)
{
    const struct byi_type *type = byi_rw_tensor(r->rw, r->root);
    int64_t shape[BYI_MAX_RANK];
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        const bool symbol = BYI_IS_SYMBOL(type->dims[i]);
        unknown += symbol;
        if (type->dims[i] == 0)
            return false;
        shape[i] = symbol ? -1 : type->dims[i];
    }
    return unknown <= 1 && byi_row_bind_ints(r, "shape", shape, type->rank);
}

/* Binds `const` to constant x with the shape of the root. */
bool byi_binds_const(struct byi_row_match *r)
{
    const struct byi_type *type = byi_rw_tensor(r->rw, r->root);
    return byi_type_is_static(type) &&
           byi_row_bind(r, "const",
                        byi_rw_const_as(r->rw, byi_row_value(r, "x"),
                                        type->rank, type->dims));
}

/* Binds `full` to the full with the shape of the root. */
bool byi_binds_full(struct byi_row_match *r)
{
    const struct byi_type *type = byi_rw_tensor(r->rw, r->root);
    if (!byi_type_is_static(type))
        return false;
    const byi_id shape = byi_rw_int_vector(r->rw, type->dims, type->rank);
    return byi_row_bind(r, "full",
                        byi_rw_call_like(r->rw, byi_row_value(r, "y"), &shape));
}

/* --- transposes ---------------------------------------------------------- */

/* Read the axes of a transpose, counted from 0, or its default. Returns the
 * rank.
 */
static uint32_t read_transpose_axes(const struct byi_rewrite *rw, byi_id id,
                                    int64_t axes[BYI_MAX_RANK])
{
    uint32_t n;
    const int64_t *list = byi_attr_ints(byi_rw_node(rw, id)->attrs, "axes", &n);
    const uint32_t rank = byi_rw_tensor(rw, id)->rank;
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = byi_axis(n ? list[i] : (int64_t)(rank - 1 - i), rank);
    return rank;
}

bool byi_is_identity_transpose(struct byi_row_match *r)
{
    int64_t axes[BYI_MAX_RANK];
    const uint32_t rank = read_transpose_axes(r->rw, r->root, axes);
    for (uint32_t i = 0; i < rank; i++)
        if (axes[i] != (int64_t)i)
            return false;
    return true;
}

/* Binds `axes` to the axes of both transposes as one. */
bool byi_binds_axes(struct byi_row_match *r)
{
    int64_t outer[BYI_MAX_RANK], inner[BYI_MAX_RANK], composed[BYI_MAX_RANK];
    const uint32_t rank =
        read_transpose_axes(r->rw, byi_row_value(r, "y"), inner);
    read_transpose_axes(r->rw, r->root, outer);
    for (uint32_t i = 0; i < rank; i++)
        composed[i] = inner[outer[i]];
    return byi_row_bind_ints(r, "axes", composed, rank);
}

/* --- casts --------------------------------------------------------------- */

/* Returns the bits of an integer, without the sign, or of a float's
 * significand; 0 for other types. *sign: whether there is a sign. */
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

/* Whether `out` represents all values of `in`. Integers of up to 15 bits are in
 * float16's range, those of up to 64 bits in the range of the wider floats. */
static bool is_exact_in(enum byoc_dtype in, enum byoc_dtype out)
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

bool byi_is_lossless_cast(struct byi_row_match *r)
{
    return is_exact_in(byi_rw_tensor(r->rw, byi_row_value(r, "x"))->dtype,
                       byi_rw_tensor(r->rw, byi_row_value(r, "y"))->dtype);
}

/* --- pads ---------------------------------------------------------------- */

/* Read the pads of that name; false unless they are constant, from 0 to
 * INT32_MAX. */
static bool read_pads(const struct byi_row_match *r, const char *name,
                      int64_t pads[2 * BYI_MAX_RANK], uint32_t *n)
{
    if (!byi_rw_ints(r->rw, byi_row_value(r, name), pads, 2 * BYI_MAX_RANK, n))
        return false;
    for (uint32_t i = 0; i < *n; i++)
        if (pads[i] < 0 || pads[i] > INT32_MAX)
            return false;
    return true;
}

/* Binds `sum` to the pads of both nn.pad added, if they pad with one value. */
bool byi_binds_sum_of_pads(struct byi_row_match *r)
{
    int64_t outer[2 * BYI_MAX_RANK], inner[2 * BYI_MAX_RANK];
    uint32_t n, n_inner;
    double value;
    if (!read_pads(r, "outer", outer, &n) ||
        !read_pads(r, "inner", inner, &n_inner) || n != n_inner ||
        !byi_rw_splat(r->rw, byi_row_value(r, "value"), &value) ||
        !byi_rw_is_value(r->rw, byi_row_value(r, "same"), value))
        return false;
    for (uint32_t i = 0; i < n; i++)
        outer[i] += inner[i];
    return byi_row_bind_ints(r, "sum", outer, n);
}

/* --- slices -------------------------------------------------------------- */

/* A strided_slice with positive steps: element i of each axis is element begin
 * + i * step of x. */
struct slice_match {
    const struct byi_type *x, *type;
    int64_t begin[BYI_MAX_RANK], step[BYI_MAX_RANK];
};

/* Read slice `id`. False unless its operands are constant, its steps positive,
 * and the axes that it cuts static. */
static bool read_slice(const struct byi_rewrite *rw, byi_id id,
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
        s->begin[axis] = byi_clamp(begin < 0 ? begin + dim : begin, 0, dim);
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
        /* read_slice ensures that a symbolic axis is not cut */
        if (BYI_IS_SYMBOL(s->type->dims[i]) ||
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

/* Binds `slice` to one slice with the effect of both. A slice (begin b', step
 * s') of a slice (b, s) begins at b + b' s and has step s s'. */
bool byi_binds_slice(struct byi_row_match *r)
{
    struct slice_match a, b;
    if (!read_slice(r->rw, byi_row_value(r, "y"), &a) ||
        !read_slice(r->rw, r->root, &b))
        return false;
    for (uint32_t i = 0; i < a.x->rank; i++) {
        a.begin[i] += b.begin[i] * a.step[i];
        a.step[i] *= b.step[i];
    }
    a.type = b.type;
    return byi_row_bind(r, "slice",
                        emit_slice(r->rw, byi_row_value(r, "x"), &a));
}

static int64_t axis_of(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    return byi_attr_axis(node->attrs, byi_rw_tensor(rw, node->args[0])->rank);
}

enum { MAX_PARTS = 64 }; /* operands to look through for one slice */

/* A slice that lies in one operand of a concatenation is a slice of that
 * operand. */
byi_id byi_slice_concat(struct byi_rewrite *rw, byi_id at)
{
    const byi_id concat = byi_rw_arg(rw, at, 0);
    struct slice_match s;
    if (!byi_rw_is(rw, concat, BYI_OP_CONCATENATE) || !read_slice(rw, at, &s))
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

/* concatenate(p.0, p.1, ..) with p = split(x)  ==>  x, if it joins all fields
 * of p in order, along the axis of the split */
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

/* Slices of one value along one axis, each of which begins where the previous
 * one ends, are one slice. */
byi_id byi_concat_slices(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node node = *byi_rw_node(rw, at);
    const int64_t axis = axis_of(rw, at);
    struct slice_match joined, s;
    if (node.n_args < 2 || !read_slice(rw, node.args[0], &joined))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, node.args[0], 0);
    int64_t end = joined.begin[axis];
    for (uint32_t i = 0; i < node.n_args; i++) {
        if (!read_slice(rw, node.args[i], &s) || !cuts_only(&s, axis) ||
            byi_rw_arg(rw, node.args[i], 0) != x || s.begin[axis] != end)
            return BYI_NO_ID;
        end += s.type->dims[axis];
    }
    joined.type = byi_rw_tensor(rw, at);
    return emit_slice(rw, x, &joined);
}
