/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: translates a fused group to values at affine indices. The walk goes
 * backwards from the result. The value of a node at an index, which is affine
 * in the loop variables, requests values of its operands. An operator that
 * moves data only rewrites the index. If an index behind a reshape needs a
 * digit of a loop variable, the loop is split there, and the walk restarts.
 * Finally place.c fuses loops, and hoists each value out of the loops that it
 * does not depend on.
 */
#include "group.h"

#include "codegen_c.h"

#include <string.h>

/* The state of byi_group_read. */
struct group_reader {
    struct byi_group *g;
    /* for each node: the values requested of it */
    BYI_VEC(uint32_t) * values_of;
    bool restart; /* a loop was split */
};

/* An affine index for every axis of a value. */
struct index {
    struct byi_affine at[BYI_MAX_RANK];
};

static const struct byi_node *node_of(const struct byi_group *g, byi_id id)
{
    return &g->f->nodes.at[id];
}

static void refuse(struct group_reader *r, const char *why)
{
    if (!r->g->refusal)
        r->g->refusal = why;
}

/* Whether the walk must end or restart. */
static bool must_stop(const struct group_reader *r)
{
    return r->restart || r->g->cut || r->g->refusal;
}

/* --- loops -------------------------------------------------------------- */

/* The index along an axis in terms of its loops. Adds a loop if the axis has
 * none. */
static struct byi_affine axis_index(struct group_reader *r, byi_id owner,
                                    uint32_t axis, int64_t dim)
{
    struct byi_group *g = r->g;
    struct byi_affine a = {0};
    int64_t stride = 1;
    if (dim == 1)
        return a;
    for (uint32_t k = g->n_loops; k-- > 0;) {
        if (g->loops[k].owner != owner || g->loops[k].axis != axis)
            continue;
        a.coef[k] = stride;
        a.base += stride * g->loops[k].from;
        stride *= g->loops[k].full;
    }
    if (stride > 1)
        return a;
    if (g->n_loops == BYI_MAX_LOOPS) {
        refuse(r, "too many loops");
        return a;
    }
    g->loops[g->n_loops] = (struct byi_loop){owner, axis, dim, 0, dim};
    a.coef[g->n_loops++] = 1;
    return a;
}

/* Split loop k so that the inner one has `inner` iterations. */
static void split_loop(struct group_reader *r, uint32_t k, int64_t inner)
{
    struct byi_group *g = r->g;
    if (inner <= 1 || g->loops[k].extent % inner != 0 ||
        g->loops[k].extent == inner || g->loops[k].extent != g->loops[k].full ||
        g->n_loops == BYI_MAX_LOOPS) {
        refuse(r, "a reshape does not follow the axes");
        return;
    }
    memmove(&g->loops[k + 1], &g->loops[k],
            (g->n_loops - k) * sizeof g->loops[0]);
    g->n_loops++;
    g->loops[k].full = g->loops[k].extent /= inner;
    g->loops[k + 1].full = g->loops[k + 1].extent = inner;
    r->restart = true;
}

/* --- index arithmetic --------------------------------------------------- */

/* Add `by` times *a to *to. */
static void add_scaled(struct byi_affine *to, const struct byi_affine *a,
                       int64_t by)
{
    to->base += a->base * by;
    for (uint32_t k = 0; k < BYI_MAX_LOOPS; k++)
        to->coef[k] += a->coef[k] * by;
}

/* The flat index of the element at index at[] of a tensor. */
static struct byi_affine flatten(const struct byi_type *type,
                                 const struct byi_affine *at)
{
    struct byi_affine flat = {0};
    int64_t stride = 1;
    for (uint32_t d = type->rank; d-- > 0;) {
        add_scaled(&flat, &at[d], stride);
        stride *= type->dims[d];
    }
    return flat;
}

/* The affine index flat / stride % dim: one digit of the flat index in the
 * mixed radix of the dims. Terms below the stride and multiples of stride * dim
 * vanish. If a loop's term also contributes to other digits, the loop is split
 * where this digit begins or ends. */
static struct byi_affine digit(struct group_reader *r,
                               const struct byi_affine *flat, int64_t stride,
                               int64_t dim)
{
    struct byi_affine out = {.base = flat->base / stride % dim};
    int64_t low = flat->base % stride, high = out.base;
    for (uint32_t k = 0; k < r->g->n_loops && !must_stop(r); k++) {
        const int64_t c = flat->coef[k], extent = r->g->loops[k].extent;
        if (c < 0 || flat->base < 0) {
            refuse(r, "a reshape of a reversed axis");
        } else if (c % (stride * dim) == 0) {
            continue;
        } else if (c % stride == 0) {
            if (c * extent > stride * dim)
                split_loop(r, k, stride * dim % c ? 0 : stride * dim / c);
            out.coef[k] = c / stride;
            high += c / stride * (extent - 1);
        } else {
            if (c * extent > stride)
                split_loop(r, k, stride % c ? 0 : stride / c);
            low += c * (extent - 1);
        }
    }
    if (!must_stop(r) && (low >= stride || high >= dim))
        refuse(r, "a reshape carries from axis to axis");
    return out;
}

/* The index of the element of a tensor at a flat index. */
static struct index unflatten(struct group_reader *r,
                              const struct byi_affine *flat,
                              const struct byi_type *type)
{
    struct index to = {0};
    int64_t stride = 1;
    for (uint32_t d = type->rank; d-- > 0 && !must_stop(r);) {
        if (type->dims[d] != 1)
            to.at[d] = digit(r, flat, stride, type->dims[d]);
        stride *= type->dims[d];
    }
    return to;
}

/* Whether two shapes are equal, ignoring axes of size 1. */
static bool have_same_axes(const struct byi_type *a, const struct byi_type *b)
{
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1)
            i++;
        while (k < b->rank && b->dims[k] == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (a->dims[i++] != b->dims[k++])
            return false;
    }
}

/* The index in an operand of type `to` that is reshaped to `from`. */
static struct index reshape(struct group_reader *r,
                            const struct byi_group_value *v,
                            const struct byi_type *from,
                            const struct byi_type *to)
{
    struct index out = {0};
    if (!have_same_axes(from, to)) {
        const struct byi_affine flat = flatten(from, v->at);
        return unflatten(r, &flat, to);
    }
    for (uint32_t i = 0, k = 0; i < from->rank; i++) {
        if (from->dims[i] == 1)
            continue;
        while (to->dims[k] == 1)
            k++;
        out.at[k++] = v->at[i];
    }
    return out;
}

/* The index in an operand of type `to` that is broadcast to `from`. */
static struct index broadcast(const struct byi_group_value *v,
                              const struct byi_type *from,
                              const struct byi_type *to)
{
    struct index out = {0};
    for (uint32_t d = 0; d < to->rank; d++)
        if (to->dims[d] != 1)
            out.at[d] = v->at[from->rank - to->rank + d];
    return out;
}

/* --- requests for values ------------------------------------------------ */

/* The value of node `id` at an index; equal requests share a value. */
static uint32_t request(struct group_reader *r, byi_id id,
                        const struct index *index)
{
    struct byi_group *g = r->g;
    const struct byi_type *type = node_of(g, id)->type;
    const size_t bytes = type->rank * sizeof index->at[0];
    for (uint32_t i = 0; i < r->values_of[id].n; i++)
        if (memcmp(g->values.at[r->values_of[id].at[i]]->at, index->at,
                   bytes) == 0)
            return r->values_of[id].at[i];
    struct byi_group_value *v = byi_arena_alloc(g->arena, sizeof *v);
    *v = (struct byi_group_value){
        .node = id, .dtype = type->dtype, .rank = type->rank};
    memcpy(v->at, index->at, bytes);
    BYI_PUSH(&g->values, v);
    const uint32_t value = g->values.n - 1;
    BYI_PUSH(&r->values_of[id], value);
    return value;
}

static void alloc_args(struct group_reader *r, struct byi_group_value *v,
                       uint32_t n)
{
    v->n_args = n;
    v->args = byi_arena_calloc(r->g->arena, n, sizeof *v->args);
}

/* Make v the same value as that of node `of` at an index. */
static void make_alias(struct group_reader *r, struct byi_group_value *v,
                       byi_id of, const struct index *index)
{
    if (must_stop(r))
        return;
    v->kind = BYI_GROUP_ALIAS;
    alloc_args(r, v, 1);
    v->args[0] = request(r, of, index);
}

/* --- operators that move data ------------------------------------------- */

static void read_view(struct group_reader *r, struct byi_group_value *v,
                      const struct byi_node *node)
{
    const struct byi_type *to = node_of(r->g, node->args[0])->type;
    const struct index index = reshape(r, v, node->type, to);
    make_alias(r, v, node->args[0], &index);
}

static void read_broadcast(struct group_reader *r, struct byi_group_value *v,
                           const struct byi_node *node)
{
    const struct byi_type *to = node_of(r->g, node->args[0])->type;
    const struct index index = broadcast(v, node->type, to);
    make_alias(r, v, node->args[0], &index);
}

static void read_transpose(struct group_reader *r, struct byi_group_value *v,
                           const struct byi_node *node)
{
    uint32_t n;
    const int64_t *axes = byi_attr_ints(node->attrs, "axes", &n);
    struct index index = {0};
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t from = n ? axes[i] : v->rank - 1 - i;
        index.at[from < 0 ? from + v->rank : from] = v->at[i];
    }
    make_alias(r, v, node->args[0], &index);
}

/* Set *t to the value of node `id`; false unless it is a constant of integers.
 */
static bool read_const_ints(const struct group_reader *r, byi_id id,
                            struct byi_tensor *t)
{
    return byi_const_view(r->g->m, r->g->f, id, t) &&
           byi_dtype_is_int(t->dtype);
}

static void read_slice(struct group_reader *r, struct byi_group_value *v,
                       const struct byi_node *node)
{
    const struct byi_type *x = node_of(r->g, node->args[0])->type;
    struct byi_tensor begin, axes, strides;
    if (!read_const_ints(r, node->args[1], &begin) ||
        !read_const_ints(r, node->args[3], &axes) ||
        !read_const_ints(r, node->args[4], &strides)) {
        refuse(r, "a slice whose begin is not constant");
        return;
    }
    struct index index = {0};
    memcpy(index.at, v->at, v->rank * sizeof index.at[0]);
    for (int64_t i = 0; i < byi_elements(axes.rank, axes.dims); i++) {
        int64_t axis = byi_tensor_int(&axes, i);
        axis += axis < 0 ? x->rank : 0;
        const int64_t dim = x->dims[axis], step = byi_tensor_int(&strides, i);
        int64_t from = byi_tensor_int(&begin, i);
        from = from < -dim ? -dim - 1 : from;
        from += from < 0 ? dim : 0;
        const int64_t top = step > 0 ? dim : dim - 1;
        from = from < 0 ? 0 : from > top ? top : from;
        struct byi_affine at = {.base = from};
        if (node->type->dims[axis] != 1)
            add_scaled(&at, &v->at[axis], step);
        index.at[axis] = at;
    }
    make_alias(r, v, node->args[0], &index);
}

/* Read a field of a split, or of a tuple that the group makes. */
static void read_get(struct group_reader *r, struct byi_group_value *v,
                     const struct byi_node *node)
{
    const struct byi_node *from = node_of(r->g, node->args[0]);
    struct index index = {0};
    memcpy(index.at, v->at, v->rank * sizeof index.at[0]);
    if (from->kind == BYI_MAKE_TUPLE) {
        make_alias(r, v, from->args[node->index], &index);
        return;
    }
    if (from->kind != BYI_CALL_OP || from->op != BYI_OP_SPLIT) {
        refuse(r, "a field of a tuple that is not a split's");
        return;
    }
    const uint32_t axis = byi_attr_axis(from->attrs, v->rank);
    for (uint32_t i = 0; i < node->index; i++)
        index.at[axis].base += from->type->fields[i]->dims[axis];
    make_alias(r, v, from->args[0], &index);
}

/* --- borders of concatenation and padding ------------------------------- */

/* Cut the loop with the largest coefficient where the index crosses a border.
 * The other loops together must add less than one iteration of this loop;
 * otherwise refuse the group. */
static void cut_at_border(struct group_reader *r, const struct byi_affine *a,
                          int64_t border)
{
    struct byi_group *g = r->g;
    uint32_t cut_loop = 0;
    int64_t rest = 0;
    for (uint32_t k = 1; k < g->n_loops; k++)
        if (a->coef[k] > a->coef[cut_loop])
            cut_loop = k;
    for (uint32_t k = 0; k < g->n_loops; k++) {
        if (a->coef[k] < 0)
            refuse(r, "a border in a reversed axis");
        if (k != cut_loop)
            rest += a->coef[k] * (g->loops[k].extent - 1);
    }
    if (must_stop(r))
        return;
    const int64_t steps = border - a->base, step = a->coef[cut_loop];
    if (g->loops[cut_loop].owner != BYI_NO_ID) {
        refuse(r, "a reduction over a border");
    } else if (rest > 0 && (steps % step != 0 || rest >= step)) {
        refuse(r, "a border across several axes");
    } else {
        g->cut = true;
        g->cut_loop = cut_loop;
        g->cut_at = (steps + step - 1) / step;
    }
}

/* Returns 1 if the index is in [from, to) in all iterations, 0 if in none.
 * Otherwise cuts a loop, and returns -1. */
static int test_range(struct group_reader *r, const struct byi_affine *a,
                      int64_t from, int64_t to)
{
    int64_t low = a->base, high = a->base;
    for (uint32_t k = 0; k < r->g->n_loops; k++) {
        const int64_t span = a->coef[k] * (r->g->loops[k].extent - 1);
        *(span < 0 ? &low : &high) += span;
    }
    if (low >= to || high < from)
        return 0;
    if (low >= from && high < to)
        return 1;
    cut_at_border(r, a, low < from ? from : to);
    return -1;
}

/* The index a - begin in an axis of size `dim`. */
static struct byi_affine relative_to(const struct byi_affine *a, int64_t begin,
                                     int64_t dim)
{
    struct byi_affine out = {0};
    if (dim == 1)
        return out;
    out = *a;
    out.base -= begin;
    return out;
}

static void read_concatenate(struct group_reader *r, struct byi_group_value *v,
                             const struct byi_node *node)
{
    const uint32_t axis = byi_attr_axis(node->attrs, v->rank);
    int64_t begin = 0;
    struct index index = {0};
    memcpy(index.at, v->at, v->rank * sizeof index.at[0]);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const int64_t dim = node_of(r->g, node->args[i])->type->dims[axis];
        const int inside =
            dim ? test_range(r, &v->at[axis], begin, begin + dim) : 0;
        if (inside < 0)
            return;
        if (inside > 0) {
            index.at[axis] = relative_to(&v->at[axis], begin, dim);
            make_alias(r, v, node->args[i], &index);
            return;
        }
        begin += dim;
    }
}

/* Read the operand inside its borders, and the padding value outside. */
static void read_pad(struct group_reader *r, struct byi_group_value *v,
                     const struct byi_node *node)
{
    const struct byi_type *x = node_of(r->g, node->args[0])->type;
    struct byi_tensor pads;
    struct index index = {0};
    if (strcmp(byi_attr_string(node->attrs, "mode"), "constant") != 0 ||
        !read_const_ints(r, node->args[1], &pads)) {
        refuse(r, "padding that is not constant");
        return;
    }
    for (uint32_t d = 0; d < v->rank; d++) {
        const int64_t begin = byi_tensor_int(&pads, d);
        const int inside = test_range(r, &v->at[d], begin, begin + x->dims[d]);
        if (inside < 0)
            return;
        if (inside == 0) {
            const struct index value = {0};
            make_alias(r, v, node->args[2], &value);
            return;
        }
        index.at[d] = relative_to(&v->at[d], begin, x->dims[d]);
    }
    make_alias(r, v, node->args[0], &index);
}

/* The operand's channels are on axis 1 ("NCHW") or on axis 3 ("NHWC"). */
static void read_depth_to_space(struct group_reader *r,
                                struct byi_group_value *v,
                                const struct byi_node *node)
{
    const struct byi_type *x = node_of(r->g, node->args[0])->type;
    const int64_t b = byi_attr_int(node->attrs, "block_size");
    const bool crd = strcmp(byi_attr_string(node->attrs, "mode"), "CRD") == 0;
    const bool channels_last =
        strcmp(byi_attr_string(node->attrs, "layout"), "NHWC") == 0;
    const uint32_t channels = channels_last ? 3 : 1,
                   high = channels_last ? 1 : 2;
    const int64_t inner = crd ? 1 : x->dims[channels] / (b * b);
    struct index index = {.at = {[0] = v->at[0]}};
    add_scaled(&index.at[channels], &v->at[channels], crd ? b * b : 1);
    for (uint32_t d = high; d < high + 2 && !must_stop(r); d++) {
        const struct byi_affine block = digit(r, &v->at[d], 1, b);
        if (x->dims[d] != 1 && !must_stop(r))
            index.at[d] = digit(r, &v->at[d], b, x->dims[d]);
        add_scaled(&index.at[channels], &block, d == high ? b * inner : inner);
    }
    make_alias(r, v, node->args[0], &index);
}

static void read_tile(struct group_reader *r, struct byi_group_value *v,
                      const struct byi_node *node)
{
    const struct byi_type *x = node_of(r->g, node->args[0])->type;
    struct index index = {0};
    for (uint32_t d = 0; d < v->rank && !must_stop(r); d++)
        if (x->dims[d] != 1)
            index.at[d] = digit(r, &v->at[d], 1, x->dims[d]);
    make_alias(r, v, node->args[0], &index);
}

/* --- computations ------------------------------------------------------- */

static void read_op(struct group_reader *r, struct byi_group_value *v,
                    const struct byi_node *node)
{
    v->kind = BYI_GROUP_OP;
    alloc_args(r, v, node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *to = node_of(r->g, node->args[i])->type;
        const struct index index = broadcast(v, node->type, to);
        v->args[i] = request(r, node->args[i], &index);
    }
}

/* Set is_reduced[d] for every axis d that the node reduces. */
static void find_reduced(const struct byi_node *node, uint32_t rank,
                         bool *is_reduced)
{
    uint32_t n;
    const int64_t *axis = byi_attr_ints(node->attrs, "axis", &n);
    for (uint32_t d = 0; d < rank; d++)
        is_reduced[d] = n == 0 && !byi_attr_int(node->attrs, "noop_empty");
    for (uint32_t i = 0; i < n; i++)
        is_reduced[axis[i] < 0 ? axis[i] + rank : axis[i]] = true;
}

static void read_reduce(struct group_reader *r, struct byi_group_value *v,
                        const struct byi_node *node)
{
    const struct byi_type *x = node_of(r->g, node->args[0])->type;
    const bool keeps = byi_attr_int(node->attrs, "keepdims") != 0;
    bool is_reduced[BYI_MAX_RANK] = {false};
    struct index index = {0};
    if (r->values_of[v->node].n > 1) {
        refuse(r, "a reduction that is read at two indices");
        return;
    }
    find_reduced(node, x->rank, is_reduced);
    for (uint32_t d = 0, out = 0; d < x->rank; d++) {
        if (is_reduced[d])
            index.at[d] = axis_index(r, v->node, d, x->dims[d]);
        else
            index.at[d] = v->at[out];
        out += keeps || !is_reduced[d];
    }
    v->kind = BYI_GROUP_REDUCE;
    alloc_args(r, v, 1);
    v->args[0] = request(r, node->args[0], &index);
}

/* --- the walk ----------------------------------------------------------- */

static const struct {
    enum byi_op_id op;
    void (*read)(struct group_reader *r, struct byi_group_value *v,
                 const struct byi_node *node);
} movements[] = {
    {BYI_OP_RESHAPE, read_view},
    {BYI_OP_SQUEEZE, read_view},
    {BYI_OP_EXPAND_DIMS, read_view},
    {BYI_OP_FLATTEN, read_view},
    {BYI_OP_COPY, read_view},
    {BYI_OP_TRANSPOSE, read_transpose},
    {BYI_OP_BROADCAST_TO, read_broadcast},
    {BYI_OP_STRIDED_SLICE, read_slice},
    {BYI_OP_CONCATENATE, read_concatenate},
    {BYI_OP_NN_PAD, read_pad},
    {BYI_OP_DEPTH_TO_SPACE, read_depth_to_space},
    {BYI_OP_TILE, read_tile},
};

static bool is_movement(enum byi_op_id op)
{
    for (uint32_t i = 0; i < BYI_COUNT(movements); i++)
        if (movements[i].op == op)
            return true;
    return op == BYI_OP_SPLIT; /* see read_get */
}

/* Whether generated C supports tensors of this type. */
static bool has_c_type(const struct byi_type *type)
{
    const uint64_t bytes =
        byi_type_is_static(type) ? byi_type_bytes(type) : UINT64_MAX;
    return bytes > 0 && bytes <= BYI_MAX_C_BYTES && byi_c_type(type->dtype);
}

/* Whether the operands of an operator broadcast as read_op() reads them: the
 * scale and zero point of qnn.quantize must be scalars, since vectors of them
 * follow an attribute. */
static bool broadcasts_operands(const struct byi_func *f,
                                const struct byi_node *node)
{
    if (node->op != BYI_OP_QUANTIZE && node->op != BYI_OP_DEQUANTIZE)
        return true;
    for (uint32_t i = 1; i < node->n_args; i++) {
        const struct byi_type *type = f->nodes.at[node->args[i]].type;
        if (byi_elements(type->rank, type->dims) != 1)
            return false;
    }
    return true;
}

bool byi_kernels_accept(const struct byi_func *f, byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct byi_reduction reduction;
    if (node->kind != BYI_CALL_OP || node->n_args == 0)
        return false;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!has_c_type(f->nodes.at[node->args[i]].type))
            return false;
    for (uint32_t i = 0;
         node->type->kind == BYI_TUPLE && i < node->type->n_fields; i++)
        if (!has_c_type(node->type->fields[i]))
            return false;
    if (node->type->kind == BYI_TENSOR && !has_c_type(node->type))
        return false;
    const enum byoc_dtype operand = f->nodes.at[node->args[0]].type->dtype;
    return is_movement(node->op) ||
           byi_reduction_find(node->op, operand, &reduction) ||
           (byi_expr_has(node, operand) && broadcasts_operands(f, node));
}

static void read_call(struct group_reader *r, struct byi_group_value *v,
                      const struct byi_node *node)
{
    for (uint32_t i = 0; i < BYI_COUNT(movements); i++)
        if (movements[i].op == node->op) {
            movements[i].read(r, v, node);
            return;
        }
    const enum byoc_dtype operand = node_of(r->g, node->args[0])->type->dtype;
    struct byi_reduction reduction;
    if (byi_reduction_find(node->op, operand, &reduction))
        read_reduce(r, v, node);
    else if (byi_expr_has(node, operand) && broadcasts_operands(r->g->f, node))
        read_op(r, v, node);
    else
        refuse(r, byi_op(node->op)->name);
}

static void read_value(struct group_reader *r, struct byi_group_value *v)
{
    const struct byi_node *node = node_of(r->g, v->node);
    struct byi_tensor t;
    switch (node->kind) {
    case BYI_PARAM:
        v->kind = BYI_GROUP_LOAD;
        v->index = node->index;
        v->offset = flatten(node->type, v->at);
        return;
    case BYI_CONST:
        v->kind = BYI_GROUP_SCALAR;
        if (!byi_const_view(r->g->m, r->g->f, v->node, &t) ||
            byi_elements(t.rank, t.dims) != 1)
            refuse(r, "a constant that is not a scalar");
        return;
    case BYI_CALL_OP:
        read_call(r, v, node);
        return;
    case BYI_GET:
        read_get(r, v, node);
        return;
    default:
        refuse(r, "it contains a call, a branch or a function");
    }
}

/* Read every value, from the result to the parameters. Operands precede their
 * readers in a function, so a node is read after all requests for it. */
static void read_values(struct group_reader *r)
{
    struct byi_group *g = r->g;
    const struct byi_type *type = node_of(g, g->f->result)->type;
    struct index index = {0};
    g->values.n = 0;
    r->restart = false;
    for (byi_id id = 0; id < g->f->nodes.n; id++)
        r->values_of[id].n = 0;
    for (uint32_t d = 0; d < type->rank; d++)
        index.at[d] = axis_index(r, BYI_NO_ID, d, type->dims[d]);
    g->store = flatten(type, index.at);
    g->result = request(r, g->f->result, &index);
    for (byi_id id = g->f->result + 1; id-- > 0 && !must_stop(r);)
        for (uint32_t i = 0; i < r->values_of[id].n && !must_stop(r); i++)
            read_value(r, g->values.at[r->values_of[id].at[i]]);
}

/* --- order -------------------------------------------------------------- */

/* Sort the values by node, since requests are in reverse order. */
static void sort_values(struct group_reader *r)
{
    struct byi_group *g = r->g;
    uint32_t n = 0;
    uint32_t *to = byi_arena_calloc(g->arena, g->values.n, sizeof *to);
    struct byi_group_value **list =
        byi_arena_calloc(g->arena, g->values.n, sizeof(void *));
    for (byi_id id = 0; id < g->f->nodes.n; id++)
        for (uint32_t i = 0; i < r->values_of[id].n; i++) {
            list[n] = g->values.at[r->values_of[id].at[i]];
            to[r->values_of[id].at[i]] = n++;
        }
    for (uint32_t i = 0; i < n; i++) {
        g->values.at[i] = list[i];
        for (uint32_t k = 0; k < list[i]->n_args; k++)
            list[i]->args[k] = to[list[i]->args[k]];
    }
    g->result = to[g->result];
}

/* Follow aliases from `value` to the value that is computed. */
static uint32_t follow_aliases(const struct byi_group *g, uint32_t value)
{
    while (g->values.at[value]->kind == BYI_GROUP_ALIAS)
        value = g->values.at[value]->args[0];
    return value;
}

/* Let all operands and the result refer to values that are computed. */
static void resolve_aliases(struct byi_group *g)
{
    for (uint32_t i = 0; i < g->values.n; i++)
        for (uint32_t k = 0; k < g->values.at[i]->n_args; k++)
            g->values.at[i]->args[k] =
                follow_aliases(g, g->values.at[i]->args[k]);
    g->result = follow_aliases(g, g->result);
}

/* --- entry points ------------------------------------------------------- */

static void check_types(struct byi_group *g)
{
    for (byi_id id = 0; id < g->f->nodes.n && !g->refusal; id++) {
        const struct byi_type *type = node_of(g, id)->type;
        if (type->kind != BYI_TENSOR)
            continue;
        const uint64_t bytes =
            byi_type_is_static(type) ? byi_type_bytes(type) : UINT64_MAX;
        if (bytes == 0 || bytes > BYI_MAX_C_BYTES)
            g->refusal = "a shape that is not static, is empty or is too large";
        else if (!byi_c_type(type->dtype))
            g->refusal = "an element type without a C type";
    }
}

static void check_form(struct byi_group *g)
{
    if (g->f->nodes.n > BYI_MAX_GROUP)
        g->refusal = "too many nodes";
    else if (g->f->n_captures)
        g->refusal = "it captures values";
    else if (node_of(g, g->f->result)->type->kind != BYI_TENSOR)
        g->refusal = "its result is a tuple";
    else
        check_types(g);
}

void byi_group_cut(const struct byi_group *g, struct byi_group_domain *first,
                   struct byi_group_domain *second)
{
    memcpy(first->loops, g->loops, sizeof first->loops);
    first->n_loops = g->n_loops;
    *second = *first;
    first->loops[g->cut_loop].extent = g->cut_at;
    second->loops[g->cut_loop].from += g->cut_at;
    second->loops[g->cut_loop].extent -= g->cut_at;
}

void byi_group_read(struct byi_group *g)
{
    struct group_reader r = {.g = g};
    check_form(g);
    if (g->refusal)
        return;
    r.values_of =
        byi_arena_calloc(g->arena, g->f->nodes.n, sizeof *r.values_of);
    do
        read_values(&r);
    while (r.restart && !g->cut && !g->refusal);
    if (!g->refusal && !g->cut) {
        sort_values(&r);
        resolve_aliases(g);
        byi_group_place(g);
    }
    for (byi_id id = 0; id < g->f->nodes.n; id++)
        byi_vec_free(r.values_of[id].at);
}
