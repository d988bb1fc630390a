/* SPDX-License-Identifier: Apache-2.0 */
/* recompose_norm.c: recognises layer normalisation in its arithmetic.
 *
 *   (x - mean) / sqrt(variance + eps)   nn.layer_norm(x, const[1], const[0])
 *   ... times gamma, plus beta          nn.layer_norm(x, gamma, beta)
 *
 * with a mean over the last axes that keeps them as axes of size 1, and
 * variance = mean((x - mean)^2). The patterns are in recompose.h.
 */
#include "recompose.h"

/* Returns the first axis (negative, counted from the end) of a reduction over
 * the last axes with keepdims; 0 for other reductions. */
static int64_t first_of_last_axes(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    const struct byi_type *type = byi_rw_tensor(rw, node->args[0]);
    uint32_t n, seen = 0;
    const int64_t *axes = byi_attr_ints(node->attrs, "axis", &n);
    if (!type || n == 0 || n > type->rank ||
        !byi_attr_int(node->attrs, "keepdims"))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + type->rank : axes[i];
        if (axis < 0 || axis >= (int64_t)type->rank)
            return 0;
        seen |= 1u << ((int64_t)type->rank - 1 - axis);
    }
    return seen == (1u << n) - 1 ? -(int64_t)n : 0;
}

/* Give `id` the shape of the normalised axes of x. Returns `id` if it has that
 * shape, a constant with the same elements if `id` is a constant of another
 * shape, otherwise BYI_NO_ID. */
static byi_id shape_parameter(struct byi_rewrite *rw, byi_id id,
                              const struct byi_type *x, int64_t axis)
{
    const uint32_t rank = (uint32_t)-axis;
    const int64_t *dims = x->dims + (x->rank - rank);
    const struct byi_type *type = byi_rw_tensor(rw, id);
    if (!type || type->dtype != x->dtype || type->rank > x->rank)
        return BYI_NO_ID;
    if (byi_dims_equal(type->rank, type->dims, rank, dims))
        return id;
    /* (1, 1, D): the normalised axes must be equal */
    if (type->rank < rank ||
        !byi_dims_equal(rank, type->dims + (type->rank - rank), rank, dims))
        return BYI_NO_ID;
    return byi_rw_const_as(rw, id, rank, dims);
}

/* Emit a constant with the shape of the normalised axes of x, filled with
 * `value`. Returns BYI_NO_ID if the shape is symbolic or too large. */
static byi_id fill_parameter(struct byi_rewrite *rw, const struct byi_type *x,
                             int64_t axis, double value)
{
    const uint32_t rank = (uint32_t)-axis;
    const struct byi_type *type = byi_type_tensor(rw->m->arena, x->dtype, rank,
                                                  x->dims + (x->rank - rank));
    struct byi_tensor t;
    if (!byi_type_is_static(type) || !byi_rw_alloc(rw, type, &t))
        return BYI_NO_ID;
    const int64_t n = byi_elements(t.rank, t.dims);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(&t, i, value);
    return byi_rw_const(rw, type, &t);
}

/* Read axis and epsilon of the means of a match, or of its nn.layer_norm. */
static bool read_attributes(const struct byi_row_match *r, int64_t *axis,
                            double *epsilon)
{
    const byi_id value = byi_row_value(r, "epsilon");
    *axis = 0;
    for (uint32_t i = 0; i < r->match->n_ops; i++) {
        const byi_id id = r->match->ops[i];
        const struct byi_node *node = byi_rw_node(r->rw, id);
        if (node->op == BYI_OP_NN_LAYER_NORM) {
            *axis = byi_attr_int(node->attrs, "axis");
            *axis -= *axis < 0 ? 0 : (int64_t)node->type->rank;
            *epsilon = byi_attr_float(node->attrs, "epsilon");
            return true;
        }
        if (node->op != BYI_OP_MEAN)
            continue;
        const int64_t norm_axis = first_of_last_axes(r->rw, id);
        if (norm_axis == 0 || (*axis != 0 && norm_axis != *axis))
            return false;
        *axis = norm_axis;
    }
    return byi_rw_splat(r->rw, value, epsilon) && *epsilon >= 0.0;
}

/* Backends expect all three operands: a missing gamma is 1, a missing beta 0.
 */
bool byi_is_norm(struct byi_row_match *r)
{
    static const char *const names[] = {"gamma", "beta"};
    const struct byi_type *x = byi_rw_tensor(r->rw, byi_row_value(r, "x"));
    int64_t axis;
    double epsilon;
    if (!read_attributes(r, &axis, &epsilon))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const byi_id value = byi_row_value(r, names[i]);
        if (!byi_row_bind(r, names[i],
                          value == BYI_NO_ID
                              ? fill_parameter(r->rw, x, axis, i ? 0.0 : 1.0)
                              : shape_parameter(r->rw, value, x, axis)))
            return false;
    }
    return byi_row_bind_int(r, "axis", axis) &&
           byi_row_bind_float(r, "epsilon", epsilon);
}
