/* SPDX-License-Identifier: Apache-2.0 */
/* scale_axis.c: see scale_axis.h. Scales are computed in double and rounded
 * once, when they reach a constant. A scale that would overflow there does not
 * fit.
 */
#include "scale_axis.h"
#include "rewrite.h"

#include "core/ops/layout.h"

#include <assert.h>
#include <float.h>
#include <math.h>

const struct byi_scale_limits byi_scale_limits_none = {.most = 0};
const struct byi_scale_limits byi_scale_limits_any = {.axes = ~0u,
                                                      .most = DBL_MAX};

struct byi_scale_limits byi_scale_limits_both(struct byi_scale_limits a,
                                              struct byi_scale_limits b)
{
    return (struct byi_scale_limits){
        .axes = a.axes & b.axes,
        .nonnegative = a.nonnegative || b.nonnegative,
        .least = fmax(a.least, b.least),
        .most = fmin(a.most, b.most),
    };
}

bool byi_scale_limits_fit(const struct byi_scale_limits *limits,
                          const struct byi_scale *s)
{
    const uint32_t bit = s->axis < 0 ? BYI_ALL_AXES : 1u << s->axis;
    return (limits->axes & bit) && s->most <= limits->most &&
           s->least >= limits->least && (!limits->nonnegative || s->min >= 0.0);
}

/* --- queries ------------------------------------------------------------- */

/* Returns the type of node `id`; NULL if it is not a tensor type. */
static const struct byi_type *tensor_of(const struct byi_scaling *s, byi_id id)
{
    const struct byi_type *type = byi_scale_node(s, id)->type;
    return type->kind == BYI_TENSOR ? type : NULL;
}

static double largest_finite(enum byoc_dtype dtype)
{
    return dtype == BYOC_F64 ? DBL_MAX : (double)FLT_MAX;
}

/* Returns the largest magnitude in constant `id`, cached; infinite if an
 * element is not a number. */
static double largest_of(struct byi_scaling *s, byi_id id)
{
    const uint32_t index = byi_scale_node(s, id)->index;
    struct byi_tensor t;
    double largest = DBL_MIN;
    assert(index < s->n_largest);
    if (s->largest[index] > 0.0)
        return s->largest[index];
    if (!byi_const_view(s->m, s->f, id, &t))
        return INFINITY;
    const int64_t n = byi_elements(t.rank, t.dims);
    const bool is_f32 = t.dtype == BYOC_F32;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(is_f32 ? (double)byi_float_at(t.data, i)
                                     : byi_tensor_float(&t, i));
        largest = !isfinite(v) ? INFINITY : v > largest ? v : largest;
    }
    return s->largest[index] = largest;
}

/* Operators that are linear in their first operand. */
static const struct {
    enum byi_op_id op;
    bool rows_are_out; /* axis 0 of the weights is the output channels */
} linear_ops[] = {
    {BYI_OP_NN_CONV1D, true},
    {BYI_OP_NN_CONV2D, true},
    {BYI_OP_NN_CONV3D, true},
    {BYI_OP_NN_CONV1D_TRANSPOSE, false},
    {BYI_OP_NN_CONV2D_TRANSPOSE, false},
    {BYI_OP_NN_CONV3D_TRANSPOSE, false},
    {BYI_OP_NN_DENSE, true},
    {BYI_OP_NN_MATMUL, false},
};

/* Find the channel axes of data and result. False for products of batches. */
static bool find_axes(const struct byi_scaling *s, const struct byi_node *node,
                      struct byi_weights *w)
{
    const struct byi_type *x = tensor_of(s, node->args[0]);
    w->in_axis = w->out_axis = 1;
    w->groups = 1;
    if (node->op != BYI_OP_NN_DENSE && node->op != BYI_OP_NN_MATMUL) {
        w->groups = byi_attr_int(node->attrs, "groups");
        return w->groups > 0 && w->view.rank >= 3 &&
               byi_layout_is_default(byi_op(node->op), node->attrs);
    }
    if (w->view.rank != 2 || x->rank == 0 || node->type->rank == 0)
        return false;
    w->in_axis = x->rank - 1;
    w->out_axis = node->type->rank - 1;
    if (node->op == BYI_OP_NN_DENSE)
        return true;
    w->rows_are_out = byi_attr_int(node->attrs, "transpose_b") != 0;
    if (byi_attr_int(node->attrs, "transpose_a") == 0)
        return true;
    w->in_axis = x->rank - 2;
    return x->rank >= 2;
}

static bool read_weights(const struct byi_scaling *s, byi_id id,
                         struct byi_weights *w)
{
    const struct byi_node *node = byi_scale_node(s, id);
    size_t row = 0;
    while (row < BYI_COUNT(linear_ops) && linear_ops[row].op != node->op)
        row++;
    if (node->kind != BYI_CALL_OP || row == BYI_COUNT(linear_ops) ||
        !byi_const_view(s->m, s->f, node->args[1], &w->view) ||
        !byi_dtype_is_wide(w->view.dtype))
        return false;
    w->rows_are_out = linear_ops[row].rows_are_out;
    if (!find_axes(s, node, w))
        return false;
    const int64_t rows = w->view.dims[0], columns = w->view.dims[1] * w->groups;
    const int64_t in = tensor_of(s, node->args[0])->dims[w->in_axis];
    const int64_t out = node->type->dims[w->out_axis];
    return rows % w->groups == 0 && (w->rows_are_out ? rows : columns) == out &&
           (w->rows_are_out ? columns : rows) == in;
}

struct byi_scale_limits byi_scale_weights_limits(struct byi_scaling *s,
                                                 byi_id id, bool out)
{
    struct byi_weights w;
    if (!read_weights(s, id, &w))
        return byi_scale_limits_none;
    const double largest = largest_of(s, byi_scale_node(s, id)->args[1]);
    if (!isfinite(largest))
        return byi_scale_limits_none;
    return (struct byi_scale_limits){
        .axes = BYI_ALL_AXES | 1u << (out ? w.out_axis : w.in_axis),
        .most = largest_finite(w.view.dtype) / fmax(largest, 1.0),
    };
}

enum byi_scale_how byi_scale_how(const struct byi_scaling *s, byi_id id,
                                 bool *nonnegative)
{
    const struct byi_node *node = byi_scale_node(s, id);
    struct byi_weights w;
    *nonnegative = false;
    if (node->kind != BYI_CALL_OP || !tensor_of(s, id) ||
        !byi_dtype_is_wide(node->type->dtype))
        return BYI_SCALE_BLOCKS;
    switch (node->op) {
    case BYI_OP_ABS:
    case BYI_OP_NN_RELU:
    case BYI_OP_NN_LEAKY_RELU:
    case BYI_OP_NN_PRELU:
    case BYI_OP_NN_MAX_POOL1D:
    case BYI_OP_NN_MAX_POOL2D:
    case BYI_OP_NN_MAX_POOL3D:
    case BYI_OP_NN_GLOBAL_MAX_POOL1D:
    case BYI_OP_NN_GLOBAL_MAX_POOL2D:
    case BYI_OP_NN_GLOBAL_MAX_POOL3D:
        *nonnegative = true;
        return BYI_SCALE_PASSES;
    case BYI_OP_NEGATIVE:
    case BYI_OP_COPY:
    case BYI_OP_TRANSPOSE:
    case BYI_OP_RESHAPE:
    case BYI_OP_SQUEEZE:
    case BYI_OP_EXPAND_DIMS:
    case BYI_OP_FLATTEN:
    case BYI_OP_NN_AVG_POOL1D:
    case BYI_OP_NN_AVG_POOL2D:
    case BYI_OP_NN_AVG_POOL3D:
    case BYI_OP_NN_GLOBAL_AVG_POOL1D:
    case BYI_OP_NN_GLOBAL_AVG_POOL2D:
    case BYI_OP_NN_GLOBAL_AVG_POOL3D:
        return BYI_SCALE_PASSES;
    case BYI_OP_ADD:
    case BYI_OP_SUBTRACT:
        return BYI_SCALE_ADDS;
    case BYI_OP_MULTIPLY:
    case BYI_OP_DIVIDE:
        return BYI_SCALE_PRODUCT;
    case BYI_OP_CONCATENATE:
        return BYI_SCALE_CONCATS;
    default:
        return read_weights(s, id, &w) ? BYI_SCALE_WEIGHTS : BYI_SCALE_BLOCKS;
    }
}

/* --- constant operands --------------------------------------------------- */

int byi_scale_const_arg(struct byi_scaling *s, byi_id id)
{
    const struct byi_node *node = byi_scale_node(s, id);
    const bool divide = node->op == BYI_OP_DIVIDE;
    for (int i = 1; i >= (divide ? 1 : 0); i--) {
        struct byi_tensor t;
        if (!byi_const_view(s->m, s->f, node->args[i], &t) ||
            byi_scale_node(s, node->args[1 - i])->kind == BYI_CONST ||
            !byi_type_equal(node->type,
                            byi_scale_node(s, node->args[1 - i])->type) ||
            !isfinite(largest_of(s, node->args[i])))
            continue;
        const int64_t n = byi_elements(t.rank, t.dims);
        for (int64_t k = 0; divide && k < n; k++)
            if (fabs(byi_tensor_float(&t, k)) < DBL_MIN)
                return -1;
        return i;
    }
    return -1;
}

/* Returns the axis of constant t that is axis a of the result; -1 if the rank
 * of t is too low. */
static int const_axis(const struct byi_tensor *t, const struct byi_type *type,
                      uint32_t a)
{
    const uint32_t from_back = type->rank - a;
    return from_back <= t->rank ? (int)(t->rank - from_back) : -1;
}

struct byi_scale_limits byi_scale_const_limits(struct byi_scaling *s, byi_id id)
{
    const struct byi_node *node = byi_scale_node(s, id);
    const int arg = byi_scale_const_arg(s, id);
    struct byi_tensor t;
    if (arg < 0 || !byi_const_view(s->m, s->f, node->args[arg], &t))
        return byi_scale_limits_none;
    const bool is_single = byi_elements(t.rank, t.dims) == 1;
    const double largest = largest_of(s, node->args[arg]);
    struct byi_scale_limits limits = {
        .axes = BYI_ALL_AXES,
        .most = largest_finite(t.dtype) / fmax(largest, 1.0),
    };
    for (uint32_t a = 0; a < node->type->rank; a++) {
        const int c_axis = const_axis(&t, node->type, a);
        if (is_single || (c_axis >= 0 && t.dims[c_axis] == node->type->dims[a]))
            limits.axes |= 1u << a;
    }
    return limits;
}

bool byi_scaling_is_needed(const struct byi_scaling *s)
{
    struct byi_tensor t;
    for (byi_id id = 0; id < s->f->nodes.n; id++) {
        const struct byi_node *node = byi_scale_node(s, id);
        if (node->kind == BYI_CALL_OP && byi_dtype_is_wide(node->type->dtype) &&
            (node->op == BYI_OP_MULTIPLY || node->op == BYI_OP_DIVIDE) &&
            (byi_const_view(s->m, s->f, node->args[1], &t) ||
             byi_const_view(s->m, s->f, node->args[0], &t)))
            return true;
    }
    return false;
}

/* --- scales -------------------------------------------------------------- */

struct byi_scale_sources *byi_scale_sources_join(
    struct byi_scaling *s, const struct byi_sources *node_sources,
    struct byi_scale_sources *a, struct byi_scale_sources *b)
{
    if (node_sources->n == 0 && (!a || !b || a == b))
        return a ? a : b;
    struct byi_scale_sources *t = byi_arena_alloc(s->scratch, sizeof *t);
    *t = (struct byi_scale_sources){.list = node_sources, .next = {a, b}};
    return t;
}

const struct byi_scale *byi_scale_make(struct byi_scaling *s, int axis,
                                       int64_t n, const double *values,
                                       struct byi_scale_sources *sources)
{
    struct byi_scale *scale = byi_arena_alloc(s->scratch, sizeof *scale);
    *scale = (struct byi_scale){.axis = axis,
                                .n = n,
                                .values = values,
                                .min = INFINITY,
                                .least = INFINITY,
                                .sources = sources};
    for (int64_t i = 0; i < n; i++) {
        scale->min = fmin(scale->min, values[i]);
        scale->least = fmin(scale->least, fabs(values[i]));
        scale->most = fmax(scale->most, fabs(values[i]));
        if (!isfinite(values[i]))
            return NULL;
    }
    return scale;
}

/* Returns the axis of `type` along which the constant varies; -1 if there is
 * none, -2 if there are several or the sizes differ. */
static int varying_axis(const struct byi_tensor *t, const struct byi_type *type)
{
    int axis = -1;
    for (uint32_t a = 0; a < type->rank; a++) {
        const int c_axis = const_axis(t, type, a);
        if (c_axis < 0 || t->dims[c_axis] == 1)
            continue;
        if (axis >= 0 || t->dims[c_axis] != type->dims[a])
            return -2;
        axis = (int)a;
    }
    return axis;
}

const struct byi_scale *byi_scale_of(struct byi_scaling *s, byi_id id,
                                     byi_id *x)
{
    const struct byi_node *node = byi_scale_node(s, id);
    bool nonnegative;
    struct byi_tensor t;
    if (byi_scale_how(s, id, &nonnegative) != BYI_SCALE_PRODUCT)
        return NULL;
    const int arg = byi_scale_const_arg(s, id);
    if (arg < 0 || !byi_const_view(s->m, s->f, node->args[arg], &t))
        return NULL;
    const int axis = varying_axis(&t, node->type);
    const int64_t n = byi_elements(t.rank, t.dims);
    if (axis < -1 || n < 1)
        return NULL;
    double *v = byi_arena_calloc(s->scratch, (size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        v[i] = byi_tensor_float(&t, i);
        if (node->op == BYI_OP_DIVIDE)
            v[i] = 1.0 / v[i];
    }
    *x = node->args[1 - arg];
    struct byi_scale_sources *of_const = byi_scale_sources_join(
        s, byi_scale_node(s, node->args[arg])->sources, NULL, NULL);
    return byi_scale_make(
        s, axis, n, v,
        byi_scale_sources_join(s, node->sources, of_const, NULL));
}

const struct byi_scale *byi_scale_times(struct byi_scaling *s,
                                        const struct byi_scale *a,
                                        const struct byi_scale *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->axis >= 0 && b->axis >= 0 && a->axis != b->axis)
        return NULL;
    const int64_t n = a->n > b->n ? a->n : b->n;
    double *v = byi_arena_calloc(s->scratch, (size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = a->values[a->n == 1 ? 0 : i] * b->values[b->n == 1 ? 0 : i];
    return byi_scale_make(
        s, a->axis >= 0 ? a->axis : b->axis, n, v,
        byi_scale_sources_join(s, byi_sources_none(), a->sources, b->sources));
}

const struct byi_scale *byi_scale_part(struct byi_scaling *s,
                                       const struct byi_scale *scale,
                                       int64_t first, int64_t n)
{
    assert(first + n <= scale->n);
    return byi_scale_make(s, scale->axis, n, scale->values + first,
                          scale->sources);
}

/* --- through operators --------------------------------------------------- */

/* Whether dims x[0..nx-1] and y[0..ny-1] are equal, ignoring ones. */
static bool are_equal_but_ones(const int64_t *x, uint32_t nx, const int64_t *y,
                               uint32_t ny)
{
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < nx && x[i] == 1)
            i++;
        while (k < ny && y[k] == 1)
            k++;
        if (i == nx || k == ny)
            return i == nx && k == ny;
        if (x[i++] != y[k++])
            return false;
    }
}

/* Returns the axis of a reshaped result y that is axis a of x, or -1 if there
 * is none. It has the same size, and the same axes before it or after it,
 * ignoring axes of size 1. */
static int reshaped_axis(const struct byi_type *x, const struct byi_type *y,
                         uint32_t a)
{
    if (BYI_IS_SYMBOL(x->dims[a]) || x->dims[a] <= 1)
        return -1;
    for (uint32_t b = 0; b < y->rank; b++)
        if (y->dims[b] == x->dims[a] &&
            (are_equal_but_ones(x->dims, a, y->dims, b) ||
             are_equal_but_ones(x->dims + a + 1, x->rank - a - 1,
                                y->dims + b + 1, y->rank - b - 1)))
            return (int)b;
    return -1;
}

static int transposed_axis(const struct byi_node *node, uint32_t rank,
                           uint32_t a)
{
    uint32_t n;
    const int64_t *axes = byi_attr_ints(node->attrs, "axes", &n);
    for (uint32_t i = 0; i < n; i++)
        if ((axes[i] < 0 ? axes[i] + rank : axes[i]) == (int64_t)a)
            return (int)i;
    return n ? -1 : (int)(rank - 1 - a);
}

/* Whether a window slides along axis a; true for every axis if channels are not
 * first. */
static bool is_window(const struct byi_node *node, uint32_t a)
{
    return node->op >= BYI_OP_NN_MAX_POOL1D &&
           node->op <= BYI_OP_NN_GLOBAL_LP_POOL &&
           (a > 1 || !byi_layout_is_default(byi_op(node->op), node->attrs));
}

/* Returns the axis of the result of `id` that is axis a of its operand `arg`;
 * -1 if there is none. */
static int result_axis(const struct byi_scaling *s, byi_id id, uint32_t arg,
                       uint32_t a)
{
    const struct byi_node *node = byi_scale_node(s, id);
    const struct byi_type *x = tensor_of(s, node->args[arg]), *y = node->type;
    if (node->op == BYI_OP_TRANSPOSE)
        return transposed_axis(node, x->rank, a);
    if (byi_op_has(node->op, BYI_TRAIT_VIEW))
        return reshaped_axis(x, y, a);
    if (x->rank != y->rank || is_window(node, a))
        return -1;
    return x->dims[a] == y->dims[a] ? (int)a : -1;
}

struct byi_scale_limits byi_scale_limits_to_result(
    const struct byi_scaling *s, byi_id id, uint32_t arg,
    struct byi_scale_limits limits)
{
    const struct byi_type *x = tensor_of(s, byi_scale_node(s, id)->args[arg]);
    uint32_t axes = limits.axes & BYI_ALL_AXES;
    for (uint32_t a = 0; limits.axes && a < x->rank; a++) {
        const int b = limits.axes >> a & 1 ? result_axis(s, id, arg, a) : -1;
        if (b >= 0)
            axes |= 1u << b;
    }
    limits.axes = axes;
    return limits;
}

struct byi_scale_limits byi_scale_limits_to_arg(const struct byi_scaling *s,
                                                byi_id id, uint32_t arg,
                                                struct byi_scale_limits limits)
{
    const struct byi_type *x = tensor_of(s, byi_scale_node(s, id)->args[arg]);
    uint32_t axes = limits.axes & BYI_ALL_AXES;
    for (uint32_t a = 0; limits.axes && a < x->rank; a++) {
        const int b = result_axis(s, id, arg, a);
        if (b >= 0 && limits.axes >> b & 1)
            axes |= 1u << a;
    }
    limits.axes = axes;
    return limits;
}

/* Returns the same factors along another axis. */
static const struct byi_scale *move_to_axis(struct byi_scaling *s,
                                            const struct byi_scale *scale,
                                            int axis)
{
    if (axis == scale->axis)
        return scale;
    struct byi_scale *copy = byi_arena_copy(s->scratch, scale, sizeof *scale);
    copy->axis = axis;
    return copy;
}

const struct byi_scale *byi_scale_to_result(struct byi_scaling *s, byi_id id,
                                            uint32_t arg,
                                            const struct byi_scale *scale)
{
    if (scale->axis < 0)
        return scale;
    return move_to_axis(s, scale,
                        result_axis(s, id, arg, (uint32_t)scale->axis));
}

const struct byi_scale *byi_scale_to_arg(struct byi_scaling *s, byi_id id,
                                         uint32_t arg,
                                         const struct byi_scale *scale)
{
    const struct byi_type *x = tensor_of(s, byi_scale_node(s, id)->args[arg]);
    if (scale->axis < 0)
        return scale;
    for (uint32_t a = 0; a < x->rank; a++)
        if (result_axis(s, id, arg, a) == scale->axis)
            return move_to_axis(s, scale, (int)a);
    byi_unreachable(); /* the limits had this axis */
}

/* --- absorbing scales ---------------------------------------------------- */

static double factor_at(const struct byi_scale *scale, int64_t i)
{
    return scale->values[scale->n == 1 ? 0 : i];
}

/* Multiply weights by a scale of their rows or of their columns. */
static void scale_weights(const struct byi_weights *w, struct byi_tensor *out,
                          const struct byi_scale *scale, bool rows)
{
    const struct byi_tensor *t = &w->view;
    const int64_t height = t->dims[0], width = t->dims[1];
    const int64_t inner = byi_elements(t->rank - 2, t->dims + 2);
    const int64_t in_group = height / w->groups;
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            const int64_t at = rows ? i : i / in_group * width + j;
            byi_tensor_scale(t, out, (i * width + j) * inner, inner,
                             factor_at(scale, at));
        }
}

static double edit_value(enum byi_scale_edit_kind kind, double c, double by)
{
    return kind == BYI_EDIT_TIMES  ? c * by
           : kind == BYI_EDIT_OVER ? c / by
                                   : by / c;
}

/* Apply an edit to constant t, an operand of a node with result `type`. If t
 * has one element and the scale is per channel, *out has one element per
 * channel. Returns the type of *out, or NULL if it exceeds the module's budget
 * of constants. */
static const struct byi_type *edit_const(struct byi_scaling *s,
                                         const struct byi_tensor *t,
                                         const struct byi_type *type,
                                         const struct byi_scale_edit *edit,
                                         struct byi_tensor *out)
{
    const struct byi_scale *by = edit->by;
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = t->rank;
    int c_axis = by->axis < 0 ? 0 : const_axis(t, type, (uint32_t)by->axis);
    if (c_axis < 0) {
        rank = type->rank - (uint32_t)by->axis;
        c_axis = 0;
    }
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = rank == t->rank ? t->dims[i] : 1;
    if (by->n > 1)
        dims[c_axis] = by->n;
    const struct byi_type *shape =
        byi_type_tensor(s->m->arena, t->dtype, rank, dims);
    if (!byi_const_alloc(s->m, shape, out))
        return NULL;
    const int64_t n = byi_elements(rank, dims);
    const bool is_single = byi_elements(t->rank, t->dims) == 1;
    const int64_t inner =
        by->n > 1 ? byi_elements(rank - (uint32_t)c_axis - 1, dims + c_axis + 1)
                  : 1;
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(
            out, i,
            edit_value(edit->kind, byi_tensor_float(t, is_single ? 0 : i),
                       factor_at(by, inner > 0 ? i / inner % by->n : 0)));
    return shape;
}

/* --- the rebuild --------------------------------------------------------- */

struct byi_scaling byi_scaling_begin(struct byi_module *m, uint32_t func,
                                     struct byi_arena *scratch)
{
    byi_sweep(m, m->funcs.at[func], scratch);
    struct byi_scaling s = {
        .m = m,
        .f = m->funcs.at[func],
        .scratch = scratch,
        .n_largest = m->consts.n,
    };
    s.largest = byi_arena_calloc(scratch, m->consts.n + 1, sizeof *s.largest);
    s.edits = byi_arena_calloc(scratch, s.f->nodes.n + 1, sizeof *s.edits);
    return s;
}

typedef BYI_VEC(struct byi_scale_sources *) scale_sources_vec;
typedef BYI_VEC(uint32_t) source_vec;

/* Claim the scale's sources that no other node has claimed. Returns their union
 * with `node_sources`, those of the node that claims them. */
static const struct byi_sources *collect_sources(
    struct byi_scaling *s, const struct byi_sources *node_sources,
    struct byi_scale_sources *sources)
{
    scale_sources_vec stack = {0};
    source_vec merged_ids = {0};
    for (uint32_t i = 0; i < node_sources->n; i++)
        BYI_PUSH(&merged_ids, node_sources->at[i]);
    if (sources)
        BYI_PUSH(&stack, sources);
    while (stack.n > 0) {
        struct byi_scale_sources *t = stack.at[--stack.n];
        if (t->is_claimed)
            continue;
        t->is_claimed = true;
        for (uint32_t i = 0; i < t->list->n; i++)
            BYI_PUSH(&merged_ids, t->list->at[i]);
        for (uint32_t i = 0; i < 2; i++)
            if (t->next[i])
                BYI_PUSH(&stack, t->next[i]);
    }
    const struct byi_sources *merged_sources = node_sources;
    if (merged_ids.n > node_sources->n)
        merged_sources = byi_sources_of(s->m, merged_ids.at, merged_ids.n);
    byi_vec_free(stack.at);
    byi_vec_free(merged_ids.at);
    return merged_sources;
}

/* Emit the constant that replaces operand `arg`. Returns BYI_NO_ID if it
 * exceeds the module's budget of constants. */
static byi_id emit_const(struct byi_scaling *s, struct byi_func *new_func,
                         byi_id id, const struct byi_scale_edit *edit, int arg)
{
    const struct byi_node *node = byi_scale_node(s, id);
    const struct byi_node *old = byi_scale_node(s, node->args[arg]);
    const struct byi_type *type = old->type;
    const bool weights =
        edit->kind == BYI_EDIT_WEIGHTS_OUT || edit->kind == BYI_EDIT_WEIGHTS_IN;
    struct byi_tensor t, out;
    struct byi_weights w;
    if (!byi_const_view(s->m, s->f, node->args[arg], &t))
        return BYI_NO_ID;
    if (!weights)
        type = edit_const(s, &t, node->type, edit, &out);
    else if (!byi_const_alloc(s->m, type, &out))
        type = NULL;
    if (weights && type && read_weights(s, id, &w))
        scale_weights(&w, &out, edit->by,
                      w.rows_are_out == (edit->kind == BYI_EDIT_WEIGHTS_OUT));
    if (!type)
        return BYI_NO_ID;
    return byi_add_const(s->m, new_func,
                         byi_const_add(s->m, type, out.data, true),
                         old->sources);
}

static enum byoc_status emit_edited(struct byi_scaling *s,
                                    struct byi_func *new_func, byi_id id,
                                    const byi_id *map, byi_id *out,
                                    struct byoc_error *err)
{
    const struct byi_scale_edit *edit = &s->edits[id];
    const struct byi_node *node = byi_scale_node(s, id);
    const bool weights =
        edit->kind == BYI_EDIT_WEIGHTS_OUT || edit->kind == BYI_EDIT_WEIGHTS_IN;
    const int arg = weights ? 1 : byi_scale_const_arg(s, id);
    const bool under = edit->kind == BYI_EDIT_UNDER;
    assert(node->n_args == 2 && arg >= 0);
    byi_id args[2] = {map[node->args[0]], map[node->args[1]]};
    args[arg] = emit_const(s, new_func, id, edit, arg);
    if (args[arg] == BYI_NO_ID)
        return byi_const_refuse(s->m, node->op, "scaled", err);
    BYI_TRY(byi_add_op(s->m, new_func, under ? BYI_OP_MULTIPLY : node->op, args,
                       2, under ? NULL : node->attrs,
                       collect_sources(s, node->sources, edit->by->sources),
                       out, err));
    new_func->nodes.at[*out].type = node->type; /* with its symbolic dims */
    new_func->nodes.at[*out].backend = node->backend;
    new_func->nodes.at[*out].region = node->region;
    return BYOC_OK;
}

enum byoc_status byi_scaling_end(struct byi_scaling *s, uint32_t func,
                                 struct byoc_error *err)
{
    byi_id *map = byi_arena_calloc(s->scratch, s->f->nodes.n + 1, sizeof *map);
    struct byi_func *new_func = byi_func_like(s->m, s->f, map);
    for (byi_id id = 0; id < s->f->nodes.n; id++) {
        if (byi_scale_node(s, id)->kind == BYI_PARAM)
            continue;
        if (s->edits[id].kind == BYI_EDIT_REMOVE)
            map[id] = map[s->edits[id].x];
        else if (s->edits[id].kind != BYI_EDIT_NONE)
            BYI_TRY(emit_edited(s, new_func, id, map, &map[id], err));
        else
            BYI_TRY(byi_add_copy(s->m, new_func, s->f, id, map, &map[id], err));
    }
    new_func->result = map[s->f->result];
    byi_sweep(s->m, new_func, s->scratch);
    byi_func_replace(s->m, func, new_func);
    return BYOC_OK;
}
