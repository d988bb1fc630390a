/* SPDX-License-Identifier: Apache-2.0 */
/* op_generators.c: functions for each kind of operator, which choose random
 * attributes and consistent operand types, but keep those that are known. */
#include "opgen.h"

#include <string.h>

/* --- elementwise ---------------------------------------------------------- */

/* Plan all operands with the type of the first one. */
static bool like_first(struct byi_opgen *d)
{
    if (d->n && !byi_opgen_plan_random(d, 0, UINT32_MAX))
        return false;
    for (uint32_t i = 1; i < d->n; i++)
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, 0),
                           byi_opgen_rank_of(d, 0), byi_opgen_dims_of(d, 0));
    return true;
}

/* Plan operand i with a random shape that broadcasts to operand `to`. */
static void set_broadcast(struct byi_opgen *d, uint32_t i, uint32_t to)
{
    const uint32_t rank = byi_opgen_rank_of(d, to);
    int64_t dims[BYI_MAX_RANK];
    memcpy(dims, byi_opgen_dims_of(d, to), rank * sizeof *dims);
    const uint32_t kind = byi_opgen_draw_below(d, 6);
    const struct byi_pat_type *type = d->operands[i].required;
    const bool is_single = type && !type->size.any && type->size.value == 1;
    if (kind == 0 || is_single) { /* one number */
        const uint32_t r = byi_opgen_draw_chance(d, 50) ? 0 : 1;
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, to), r,
                           (const int64_t[]){1});
    } else if (kind == 1 && rank > 0) { /* the last axis */
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, to), 1, dims + rank - 1);
    } else if (kind == 2 && rank > 2) { /* channels */
        for (uint32_t k = 2; k < rank; k++)
            dims[k] = 1;
        dims[0] = 1;
        const uint32_t skip = byi_opgen_draw_below(d, 2);
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, to), rank - skip,
                           dims + skip);
    } else if (kind == 3 && rank > 0) { /* some axes of size 1 */
        for (uint32_t k = 0; k < rank; k++)
            dims[k] = byi_opgen_draw_chance(d, 40) ? 1 : dims[k];
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, to), rank, dims);
    } else {
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, to), rank, dims);
    }
}

/* Plan operands that broadcast to one of them. */
static bool broadcast(struct byi_opgen *d)
{
    uint32_t base = 0;
    while (base + 1 < d->n && !byi_opgen_is_known(d, base))
        base++;
    if (!byi_opgen_is_known(d, base))
        base = d->op->id == BYI_OP_NN_PRELU ? 0 : byi_opgen_draw_below(d, d->n);
    if (!byi_opgen_plan_random(d, base, UINT32_MAX))
        return false;
    for (uint32_t i = 0; i < d->n; i++)
        if (i != base && !byi_opgen_is_known(d, i))
            set_broadcast(d, i, base);
    if (d->op->id == BYI_OP_WHERE && !byi_opgen_is_known(d, 0))
        d->operands[0].dtype = BYOC_BOOL;
    return true;
}

static bool logic(struct byi_opgen *d)
{
    d->dtype = BYOC_BOOL;
    return broadcast(d);
}

static bool clip(struct byi_opgen *d)
{
    const double low = byi_opgen_give_float(
        d, "a_min", -0.25 * (1 + byi_opgen_draw_below(d, 4)));
    byi_opgen_give_float(d, "a_max",
                         low + 0.5 * (1 + byi_opgen_draw_below(d, 5)));
    return like_first(d);
}

static bool cast(struct byi_opgen *d)
{
    static const enum byoc_dtype to[] = {BYOC_F32, BYOC_F16, BYOC_F64, BYOC_I32,
                                         BYOC_I64, BYOC_U8,  BYOC_BOOL};
    byi_opgen_give_int(d, "dtype", to[byi_opgen_draw_below(d, BYI_COUNT(to))]);
    return like_first(d);
}

/* --- windows -------------------------------------------------------------- */

/* The number of spatial axes of an operator such as nn.conv2d. */
static uint32_t spatial_axes(const struct byi_op *op)
{
    const char *number = strpbrk(op->name, "123");
    return number ? (uint32_t)(*number - '0') : 2;
}

/* Plan operand 0 as an image with `spatial` spatial axes, (N, C, ...) or, if
 * `last`, (N, ..., C), large enough for a window. Sets *channels and
 * space[0..spatial-1]. Returns false if the operand has another rank or would
 * be too large. */
static bool plan_image(struct byi_opgen *d, uint32_t spatial, bool last,
                       int64_t *channels, int64_t *space)
{
    struct byi_slot *s = &d->operands[0];
    if (!byi_opgen_plan_random(d, 0, spatial + 2))
        return false;
    const int64_t *dims = byi_opgen_dims_of(d, 0);
    if (!s->type && d->emphasis != BYI_EMPHASIS_ONES)
        for (uint32_t i = 0; i < spatial; i++) /* leave space for windows */
            s->dims[i + (last ? 1 : 2)] += s->dims[i + (last ? 1 : 2)] ? 2 : 0;
    *channels = dims[last ? spatial + 1 : 1];
    memcpy(space, dims + (last ? 1 : 2), spatial * sizeof *space);
    return byi_opgen_fits(byi_opgen_rank_of(d, 0), dims);
}

/* Set the attributes of windows. Large images mostly have stride 1. */
static void give_windows(struct byi_opgen *d, uint32_t spatial, int64_t *size,
                         bool large)
{
    int64_t strides[3], dilation[3], padding[6];
    for (uint32_t i = 0; i < spatial; i++) {
        strides[i] = byi_opgen_draw_chance(d, large ? 10 : 35) ? 2 : 1;
        dilation[i] = byi_opgen_draw_chance(d, large ? 5 : 15) ? 2 : 1;
        padding[i] =
            size[i] / 2 && byi_opgen_draw_chance(d, 60) ? size[i] / 2 : 0;
        padding[i + spatial] = byi_opgen_draw_chance(d, 80) ? padding[i] : 0;
    }
    byi_opgen_give_ints(d, "strides", strides, spatial);
    byi_opgen_give_ints(d, "dilation", dilation, spatial);
    byi_opgen_give_ints(d, "padding", padding, 2 * spatial);
    byi_opgen_give_int(d, "ceil_mode", byi_opgen_draw_chance(d, 15));
    byi_opgen_give_int(d, "count_include_pad", byi_opgen_draw_chance(d, 40));
}

static const char *const data_layouts[] = {"", "NWC", "NHWC", "NDHWC"};
static const char *const kernel_layouts[] = {"", "WIO", "HWIO", "DHWIO"};

/* Sometimes add 15 channels and 3 positions along each spatial axis, for
 * algorithms that small images never use. Returns whether it did. */
static bool enlarge_image(struct byi_opgen *d, uint32_t spatial, bool last,
                          int64_t *channels, int64_t *space)
{
    struct byi_slot *s = &d->operands[0];
    if (s->type || d->emphasis == BYI_EMPHASIS_ONES || *channels < 1 ||
        !byi_opgen_draw_chance(d, 40))
        return false;
    int64_t dims[BYI_MAX_RANK];
    memcpy(dims, s->dims, sizeof dims);
    dims[last ? spatial + 1 : 1] += 15;
    for (uint32_t i = 0; i < spatial; i++)
        dims[i + (last ? 1 : 2)] += 3;
    if (!byi_opgen_fits(byi_opgen_rank_of(d, 0), dims))
        return false;
    memcpy(s->dims, dims, sizeof dims);
    *channels += 15;
    memcpy(space, dims + (last ? 1 : 2), spatial * sizeof *space);
    return true;
}

static bool conv(struct byi_opgen *d)
{
    const uint32_t spatial = spatial_axes(d->op);
    const bool last = !byi_opgen_pinned(d, "data_layout") &&
                      !byi_opgen_is_known(d, 1) && byi_opgen_draw_chance(d, 12);
    int64_t channels, space[3], size[3], w[5];
    if (!plan_image(d, spatial, last, &channels, space))
        return false;
    const bool large = enlarge_image(d, spatial, last, &channels, space);
    const uint32_t choice = byi_opgen_draw_below(d, 10);
    int64_t groups = choice < 6 || channels < 1 || large ? 1
                     : choice < 8                        ? channels
                     : channels % 2 == 0                 ? 2
                                                         : 1;
    groups = byi_opgen_give_int(d, "groups", groups);
    if (groups < 1 || channels % groups)
        return false;
    for (uint32_t i = 0; i < spatial; i++)
        size[i] = large ? 3 : 1 + byi_opgen_draw_below(d, 3);
    if (byi_opgen_is_known(d, 1) && byi_opgen_rank_of(d, 1) == spatial + 2)
        memcpy(size, byi_opgen_dims_of(d, 1) + 2, spatial * sizeof *size);
    give_windows(d, spatial, size, large);
    const int64_t outs =
        groups * (1 + byi_opgen_draw_below(d, groups == 1 ? 9 : 2)) +
        (groups == 1 && large ? 15 : 0);
    const bool transposed = strstr(d->op->name, "transpose") != NULL;
    const int64_t axis0 = transposed ? channels : outs;
    const int64_t axis1 = transposed ? outs / groups : channels / groups;
    if (last) {
        byi_opgen_give_string(d, "data_layout", data_layouts[spatial]);
        if (!transposed) {
            byi_opgen_give_string(d, "kernel_layout", kernel_layouts[spatial]);
            memcpy(w, size, spatial * sizeof *w);
            w[spatial] = axis1;
            w[spatial + 1] = axis0;
            byi_opgen_set_dims(d, 1, byi_opgen_dtype_of(d, 0), spatial + 2, w);
            return true;
        }
    }
    w[0] = axis0;
    w[1] = axis1;
    memcpy(w + 2, size, spatial * sizeof *w);
    byi_opgen_set_dims(d, 1, byi_opgen_dtype_of(d, 0), spatial + 2, w);
    return true;
}

static bool pool(struct byi_opgen *d)
{
    const uint32_t spatial = spatial_axes(d->op);
    const bool last = !byi_opgen_pinned(d, "layout") &&
                      byi_op_attr(d->op, "layout") &&
                      byi_opgen_draw_chance(d, 12);
    int64_t channels, space[3], size[3];
    if (!plan_image(d, spatial, last, &channels, space))
        return false;
    for (uint32_t i = 0; i < spatial; i++)
        size[i] = 1 + byi_opgen_draw_below(d, 3);
    byi_opgen_give_ints(d, "pool_size", size, spatial);
    give_windows(d, spatial, size, false);
    if (last)
        byi_opgen_give_string(d, "layout", data_layouts[spatial]);
    return true;
}

static bool global_pool(struct byi_opgen *d)
{
    int64_t channels, space[3];
    return plan_image(d, spatial_axes(d->op), false, &channels, space);
}

/* --- products ------------------------------------------------------------- */

static bool dense(struct byi_opgen *d)
{
    if (!byi_opgen_is_known(d, 0) && byi_opgen_is_known(d, 1)) {
        if (byi_opgen_rank_of(d, 1) != 2)
            return false;
        byi_opgen_set_dims(d, 0, byi_opgen_dtype_of(d, 1), 2,
                           (const int64_t[]){byi_opgen_draw_size(d),
                                             byi_opgen_dims_of(d, 1)[1]});
        return true;
    }
    if (!byi_opgen_plan_random(d, 0, 2))
        return false;
    byi_opgen_set_dims(
        d, 1, byi_opgen_dtype_of(d, 0), 2,
        (const int64_t[]){byi_opgen_draw_size(d), byi_opgen_dims_of(d, 0)[1]});
    return true;
}

/* Plan operand `i` of a matrix product to fit its operand `known`, whose type
 * is known. The flags say whether each operand is transposed. */
static void set_factor(struct byi_opgen *d, uint32_t i, uint32_t known,
                       bool transpose_i, bool transpose_known)
{
    const uint32_t rank = byi_opgen_rank_of(d, known);
    int64_t dims[BYI_MAX_RANK];
    memcpy(dims, byi_opgen_dims_of(d, known), rank * sizeof *dims);
    /* k, the reduced axis, is the last axis of operand 0 and the second-last
     * axis of operand 1, unless the operand is transposed */
    const bool known_k_last = (known == 0) != transpose_known;
    const int64_t k = dims[rank - (known_k_last ? 1 : 2)],
                  kept_size = byi_opgen_draw_size(d);
    const bool k_last = (i == 0) != transpose_i;
    dims[rank - 1] = k_last ? k : kept_size;
    dims[rank - 2] = k_last ? kept_size : k;
    uint32_t skip = 0;
    if (rank > 2 &&
        byi_opgen_draw_chance(d, 35)) /* one matrix for all batches */
        skip = rank - 2;
    else
        for (uint32_t b = 0; b + 2 < rank; b++)
            dims[b] = byi_opgen_draw_chance(d, 15) ? 1 : dims[b];
    byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, known), rank - skip,
                       dims + skip);
}

static bool matmul(struct byi_opgen *d)
{
    const bool transpose_a =
        byi_opgen_give_int(d, "transpose_a", byi_opgen_draw_chance(d, 20)) != 0;
    const bool transpose_b =
        byi_opgen_give_int(d, "transpose_b", byi_opgen_draw_chance(d, 30)) != 0;
    if (!byi_opgen_is_known(d, 0) && !byi_opgen_is_known(d, 1) &&
        !byi_opgen_plan_random(d, 0, UINT32_MAX))
        return false;
    const bool from_1 = byi_opgen_is_known(d, 1) && !byi_opgen_is_known(d, 0);
    if (byi_opgen_rank_of(d, from_1) < 2)
        return false;
    if (from_1)
        set_factor(d, 0, 1, transpose_a, transpose_b);
    else if (!byi_opgen_is_known(d, 1))
        set_factor(d, 1, 0, transpose_b, transpose_a);
    return true;
}

/* --- along axes ----------------------------------------------------------- */

/* A random axis, sometimes counted from the end. */
static int64_t draw_axis(struct byi_opgen *d, uint32_t rank)
{
    const int64_t axis = rank ? (int64_t)byi_opgen_draw_below(d, rank) : 0;
    return byi_opgen_draw_chance(d, 40) ? axis - (int64_t)rank : axis;
}

/* Set the attribute `axis`, and *axis to it, counted from the front. Returns
 * false if the pattern requires an axis that the operand does not have. */
static bool give_axis(struct byi_opgen *d, uint32_t rank, int64_t value,
                      int64_t *axis)
{
    const int64_t number = byi_opgen_give_int(d, "axis", value);
    *axis = number < 0 ? number + (int64_t)rank : number;
    return *axis >= 0 && *axis < (int64_t)rank;
}

static bool along_axis(struct byi_opgen *d)
{
    byi_opgen_give_int(d, "axis", draw_axis(d, byi_opgen_rank_of(d, 0)));
    return true;
}

static bool reduce(struct byi_opgen *d)
{
    int64_t axes[BYI_MAX_RANK];
    uint32_t n = 0;
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    for (uint32_t i = 0; i < rank; i++)
        if (byi_opgen_draw_chance(d, 45))
            axes[n++] = byi_opgen_draw_chance(d, 20)
                            ? (int64_t)i - (int64_t)rank
                            : (int64_t)i;
    const struct byi_pat_test *pin = byi_opgen_pinned(d, "axis");
    if (pin && pin->values[0].kind == BYI_ATTR_INTS)
        n = pin->values[0].n;
    byi_opgen_give_ints(d, "axis", axes, n);
    byi_opgen_give_int(d, "keepdims", byi_opgen_draw_chance(d, 50));
    byi_opgen_give_int(d, "noop_empty", 0);
    return true;
}

/* Normalisations: gamma, beta and so on have one number for each channel. */
static bool per_channel(struct byi_opgen *d)
{
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    int64_t axis = 1;
    if (byi_op_attr(d->op, "axis") &&
        !give_axis(d, rank,
                   byi_opgen_draw_chance(d, 80) ? 1 : draw_axis(d, rank),
                   &axis))
        return false;
    const int64_t channels = byi_opgen_dims_of(d, 0)[axis];
    if (byi_op_attr(d->op, "num_groups"))
        byi_opgen_give_int(
            d, "num_groups",
            channels % 2 == 0 && byi_opgen_draw_chance(d, 60) ? 2 : channels);
    for (uint32_t i = 1; i < d->n; i++)
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, 0), 1, &channels);
    byi_opgen_give_float(d, "epsilon",
                         byi_opgen_draw_chance(d, 50) ? 1e-5 : 1e-3);
    return true;
}

static bool layer_norm(struct byi_opgen *d)
{
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    int64_t axis;
    if (!give_axis(d, rank,
                   byi_opgen_draw_chance(d, 70) ? -1 : draw_axis(d, rank),
                   &axis))
        return false;
    for (uint32_t i = 1; i < d->n; i++)
        byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, 0),
                           rank - (uint32_t)axis,
                           byi_opgen_dims_of(d, 0) + axis);
    byi_opgen_give_float(d, "epsilon",
                         byi_opgen_draw_chance(d, 50) ? 1e-5 : 1e-3);
    return true;
}

static bool lrn(struct byi_opgen *d)
{
    byi_opgen_give_int(d, "size", 1 + 2 * byi_opgen_draw_below(d, 3));
    byi_opgen_give_float(d, "alpha",
                         byi_opgen_draw_chance(d, 50) ? 0.0001 : 0.5);
    byi_opgen_give_float(d, "beta", byi_opgen_draw_chance(d, 50) ? 0.75 : 0.5);
    return byi_opgen_plan_random(d, 0, 4);
}

/* --- movement ------------------------------------------------------------- */

static bool reshape(struct byi_opgen *d)
{
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    const int64_t *dims = byi_opgen_dims_of(d, 0);
    int64_t to[BYI_MAX_RANK + 1];
    uint32_t n = 0;
    if (rank >= 2 && byi_opgen_draw_chance(d, 50)) { /* join two axes */
        const uint32_t at = byi_opgen_draw_below(d, rank - 1);
        for (uint32_t i = 0; i < rank; i++)
            if (i == at + 1)
                to[n - 1] *= dims[i];
            else
                to[n++] = dims[i];
    } else if (byi_opgen_draw_chance(d, 50)) {
        to[n++] = -1;
    } else { /* add an axis */
        for (uint32_t i = 0; i < rank; i++)
            to[n++] = dims[i];
        to[n++] = 1;
    }
    byi_opgen_set_ints(d, 1, to, n);
    return n <= BYI_MAX_RANK;
}

static bool squeeze(struct byi_opgen *d)
{
    struct byi_slot *s = &d->operands[0];
    int64_t axes[BYI_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < byi_opgen_rank_of(d, 0); i++) {
        if (!s->type && s->dims[i] && byi_opgen_draw_chance(d, 40))
            s->dims[i] = 1;
        if (byi_opgen_dims_of(d, 0)[i] == 1 && byi_opgen_draw_chance(d, 80))
            axes[n++] = i;
    }
    byi_opgen_give_ints(d, "axis", axes, n);
    return n > 0 || byi_opgen_draw_chance(d, 20);
}

static bool expand_dims(struct byi_opgen *d)
{
    int64_t axes[2];
    const uint32_t n = 1 + byi_opgen_draw_below(d, 2),
                   rank = byi_opgen_rank_of(d, 0) + n;
    axes[0] = byi_opgen_draw_below(d, rank);
    if (n > 1)
        axes[1] =
            (axes[0] + 1 + byi_opgen_draw_below(d, rank - 1)) % (int64_t)rank;
    byi_opgen_give_ints(d, "axis", axes, n);
    return true;
}

static bool flatten(struct byi_opgen *d)
{
    byi_opgen_give_int(d, "axis",
                       byi_opgen_draw_below(d, byi_opgen_rank_of(d, 0) + 1));
    return true;
}

static bool transpose(struct byi_opgen *d)
{
    int64_t axes[BYI_MAX_RANK];
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    for (uint32_t i = rank; i > 1; i--) {
        const uint32_t k = byi_opgen_draw_below(d, i);
        const int64_t swapped = axes[k];
        axes[k] = axes[i - 1];
        axes[i - 1] = swapped;
    }
    byi_opgen_give_ints(d, "axes", axes, rank);
    return true;
}

static bool concatenate(struct byi_opgen *d)
{
    uint32_t base = 0;
    while (base + 1 < d->n && !byi_opgen_is_known(d, base))
        base++;
    if (!byi_opgen_plan_random(d, base, UINT32_MAX) ||
        !byi_opgen_rank_of(d, base))
        return false;
    const uint32_t rank = byi_opgen_rank_of(d, base);
    int64_t axis;
    if (!give_axis(d, rank, draw_axis(d, rank), &axis))
        return false;
    for (uint32_t i = 0; i < d->n; i++) {
        int64_t dims[BYI_MAX_RANK];
        memcpy(dims, byi_opgen_dims_of(d, base), rank * sizeof *dims);
        dims[axis] = byi_opgen_draw_size(d);
        if (i != base)
            byi_opgen_set_dims(d, i, byi_opgen_dtype_of(d, base), rank, dims);
    }
    return true;
}

static bool split(struct byi_opgen *d)
{
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    int64_t axis, sizes[3];
    if (!give_axis(d, rank, draw_axis(d, rank), &axis))
        return false;
    const int64_t size = byi_opgen_dims_of(d, 0)[axis];
    const uint32_t n = size > 2    ? 2 + byi_opgen_draw_below(d, 2)
                       : size == 2 ? 2
                                   : 1;
    int64_t remaining = size;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t n_later = (int64_t)(n - i - 1);
        sizes[i] = i + 1 == n ? remaining
                              : 1 + (int64_t)byi_opgen_draw_below(
                                        d, (uint32_t)(remaining - n_later));
        remaining -= sizes[i];
    }
    byi_opgen_give_ints(d, "sizes", sizes, n);
    return true;
}

static bool strided_slice(struct byi_opgen *d)
{
    const uint32_t rank = byi_opgen_rank_of(d, 0),
                   first = byi_opgen_draw_below(d, rank);
    const uint32_t n =
        1 + byi_opgen_draw_below(d, rank - first < 3 ? rank - first : 3);
    int64_t begin[3], end[3], axes[3], strides[3];
    for (uint32_t i = 0; i < n; i++) {
        const int64_t size = byi_opgen_dims_of(d, 0)[first + i];
        axes[i] = first + i;
        strides[i] = byi_opgen_draw_chance(d, 25) ? 2 : 1;
        begin[i] =
            size > 1 ? (int64_t)byi_opgen_draw_below(d, (uint32_t)size / 2 + 1)
                     : 0;
        end[i] =
            byi_opgen_draw_chance(d, 30) ? INT32_MAX
            : byi_opgen_draw_chance(d, 30) && size > 1 && begin[i] < size - 1
                ? -1
                : size;
    }
    byi_opgen_set_ints(d, 1, begin, n);
    byi_opgen_set_ints(d, 2, end, n);
    byi_opgen_set_ints(d, 3, axes, n);
    byi_opgen_set_ints(d, 4, strides, n);
    return true;
}

static bool take(struct byi_opgen *d)
{
    byi_opgen_give_int(d, "axis", draw_axis(d, byi_opgen_rank_of(d, 0)));
    if (byi_opgen_is_known(d, 1))
        return true;
    const struct byi_pat_type *required = d->operands[1].required;
    d->operands[1].rank = byi_opgen_draw_below(d, 3);
    for (uint32_t i = 0; i < d->operands[1].rank; i++)
        d->operands[1].dims[i] = 1 + byi_opgen_draw_below(d, 4);
    d->operands[1].dtype = byi_opgen_fit_dtype(
        d, required, byi_opgen_draw_chance(d, 70) ? BYOC_I64 : BYOC_I32);
    return true;
}

static bool gather(struct byi_opgen *d)
{
    take(d);
    byi_opgen_set_dims(d, 1, d->operands[1].dtype, byi_opgen_rank_of(d, 0),
                       byi_opgen_dims_of(d, 0));
    return true;
}

static bool tile(struct byi_opgen *d)
{
    int64_t repeats[BYI_MAX_RANK];
    for (uint32_t i = 0; i < byi_opgen_rank_of(d, 0); i++)
        repeats[i] = byi_opgen_draw_chance(d, 30) ? 2 : 1;
    byi_opgen_set_ints(d, 1, repeats, byi_opgen_rank_of(d, 0));
    return true;
}

static bool broadcast_to(struct byi_opgen *d)
{
    struct byi_slot *s = &d->operands[0];
    int64_t to[BYI_MAX_RANK];
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    memcpy(to, byi_opgen_dims_of(d, 0), rank * sizeof *to);
    for (uint32_t i = 0; i < rank && !s->type; i++)
        s->dims[i] = byi_opgen_draw_chance(d, 40) ? 1 : s->dims[i];
    byi_opgen_set_ints(d, 1, to, rank);
    return true;
}

static bool pad(struct byi_opgen *d)
{
    if (byi_opgen_rank_of(d, 0) * 2 > BYI_MAX_INTS)
        return false;
    int64_t pads[BYI_MAX_INTS];
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    for (uint32_t i = 0; i < 2 * rank; i++)
        pads[i] = byi_opgen_draw_chance(d, 40) &&
                          byi_opgen_dims_of(d, 0)[i % rank] > 1
                      ? 1
                      : 0;
    byi_opgen_give_string(
        d, "mode", byi_opgen_draw_word(d, "constant|constant|edge|reflect"));
    byi_opgen_set_ints(d, 1, pads, 2 * rank);
    byi_opgen_set_dims(d, 2, byi_opgen_dtype_of(d, 0), 0, NULL);
    return true;
}

/* depth_to_space and space_to_depth */
static bool blocks(struct byi_opgen *d)
{
    if (!byi_opgen_plan_random(d, 0, 4))
        return false;
    const int64_t size = byi_opgen_give_int(d, "block_size", 2);
    struct byi_slot *s = &d->operands[0];
    const bool to_space = d->op->id == BYI_OP_DEPTH_TO_SPACE;
    if (!s->type && to_space)
        s->dims[1] *= size * size;
    for (uint32_t i = 2; i < 4 && !s->type && !to_space; i++)
        s->dims[i] *= size;
    if (to_space)
        byi_opgen_give_string(d, "mode", byi_opgen_draw_word(d, "DCR|CRD"));
    return byi_opgen_fits(4, byi_opgen_dims_of(d, 0));
}

static bool layout_transform(struct byi_opgen *d)
{
    static const char *const pairs[][2] = {
        {"NCHW", "NHWC"}, {"NHWC", "NCHW"},   {"NCW", "NWC"},
        {"NWC", "NCW"},   {"NCDHW", "NDHWC"}, {"OIHW", "HWIO"}};
    const char *const *pair = pairs[byi_opgen_draw_below(d, BYI_COUNT(pairs))];
    byi_opgen_give_string(d, "src_layout", pair[0]);
    byi_opgen_give_string(d, "dst_layout", pair[1]);
    return byi_opgen_plan_random(d, 0, (uint32_t)strlen(pair[0]));
}

static bool resize(struct byi_opgen *d)
{
    static const char *const modes[][3] = {
        {"nearest", "asymmetric", "floor"},
        {"nearest", "half_pixel", "round_prefer_floor"},
        {"linear", "half_pixel", "round_prefer_floor"},
        {"linear", "align_corners", "round_prefer_floor"},
        {"cubic", "half_pixel", "round_prefer_floor"}};
    const char *const *mode = modes[byi_opgen_draw_below(d, BYI_COUNT(modes))];
    if (!byi_opgen_plan_random(d, 0, 3 + byi_opgen_draw_below(d, 3)))
        return false;
    int64_t sizes[BYI_MAX_RANK];
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    for (uint32_t i = 0; i < rank; i++)
        sizes[i] = byi_opgen_dims_of(d, 0)[i] *
                   (i < 2 ? 1 : 1 + byi_opgen_draw_below(d, 3));
    if (rank > 3 && byi_opgen_draw_chance(d, 30))
        sizes[rank - 1] += 1;
    byi_opgen_give_string(d, "mode", mode[0]);
    byi_opgen_give_string(d, "coordinate_transformation_mode", mode[1]);
    byi_opgen_give_string(d, "nearest_mode", mode[2]);
    byi_opgen_set_ints(d, 1, sizes, rank);
    return true;
}

/* --- quantised, sequences ------------------------------------------------- */

/* quantize and dequantize: one scale, or one for each index of an axis */
static bool quantize_or_dequantize(struct byi_opgen *d)
{
    static const enum byoc_dtype integer_types[] = {BYOC_U8, BYOC_I8, BYOC_U8,
                                                    BYOC_I8, BYOC_I32};
    const bool to_float = d->op->id == BYI_OP_DEQUANTIZE;
    const enum byoc_dtype integer =
        integer_types[byi_opgen_draw_below(d, to_float ? 5 : 4)];
    const enum byoc_dtype default_dtype = d->dtype;
    if (to_float)
        d->dtype = integer;
    if (!byi_opgen_plan_random(d, 0, UINT32_MAX))
        return false;
    d->dtype = default_dtype;
    const uint32_t rank = byi_opgen_rank_of(d, 0);
    const bool per_axis = rank > 1 && byi_opgen_draw_chance(d, 25);
    const int64_t n =
        per_axis ? byi_opgen_dims_of(d, 0)[byi_opgen_give_int(d, "axis", 1)]
                 : 1;
    byi_opgen_set_dims(d, 1, to_float ? d->dtype : byi_opgen_dtype_of(d, 0),
                       per_axis, &n);
    byi_opgen_set_dims(d, 2, to_float ? byi_opgen_dtype_of(d, 0) : integer,
                       per_axis, &n);
    return true;
}

static bool recurrent(struct byi_opgen *d)
{
    if (byi_opgen_is_known(d, 0) || d->n < 3 || !byi_opgen_plan_random(d, 0, 3))
        return false;
    const int64_t gates = d->op->id == BYI_OP_NN_RNN   ? 1
                          : d->op->id == BYI_OP_NN_GRU ? 3
                                                       : 4;
    const bool batch_first =
        byi_opgen_give_int(d, "batch_first", byi_opgen_draw_chance(d, 25)) != 0;
    const char *direction = byi_opgen_give_string(
        d, "direction",
        byi_opgen_draw_word(d, "forward|reverse|bidirectional"));
    const int64_t directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    const int64_t hidden = 1 + byi_opgen_draw_below(d, 9),
                  input = byi_opgen_dims_of(d, 0)[2];
    const int64_t batch = byi_opgen_dims_of(d, 0)[batch_first ? 0 : 1];
    const enum byoc_dtype t = byi_opgen_dtype_of(d, 0);
    byi_opgen_give_int(d, "linear_before_reset", byi_opgen_draw_chance(d, 50));
    byi_opgen_set_dims(d, 1, t, 3,
                       (const int64_t[]){directions, gates * hidden, input});
    byi_opgen_set_dims(d, 2, t, 3,
                       (const int64_t[]){directions, gates * hidden, hidden});
    byi_opgen_set_dims(d, 3, t, 2,
                       (const int64_t[]){directions, 2 * gates * hidden});
    byi_opgen_set_dims(d, 4, BYOC_I32, 1, (const int64_t[]){0});
    for (uint32_t i = 5; i < 7; i++)
        byi_opgen_set_dims(d, i, t, 3,
                           batch_first
                               ? (const int64_t[]){batch, directions, hidden}
                               : (const int64_t[]){directions, batch, hidden});
    byi_opgen_set_dims(d, 7, t, 2, (const int64_t[]){directions, 3 * hidden});
    return true;
}

/* --- the table ------------------------------------------------------------ */

/* clang-format off */
static const struct {
    enum byi_op_id op;
    int min_rank; /* of operand 0, planned before `fill`; -1: `fill` plans it */
    bool (*fill)(struct byi_opgen *d);
} generators[] = {
    {BYI_OP_CLIP, -1, clip}, {BYI_OP_CAST, -1, cast}, {BYI_OP_LOGICAL_NOT, -1, logic},
    {BYI_OP_LOGICAL_AND, -1, logic}, {BYI_OP_LOGICAL_OR, -1, logic}, {BYI_OP_LOGICAL_XOR, -1, logic},
    {BYI_OP_NN_CONV1D, -1, conv}, {BYI_OP_NN_CONV2D, -1, conv}, {BYI_OP_NN_CONV3D, -1, conv},
    {BYI_OP_NN_CONV1D_TRANSPOSE, -1, conv}, {BYI_OP_NN_CONV2D_TRANSPOSE, -1, conv}, {BYI_OP_NN_CONV3D_TRANSPOSE, -1, conv},
    {BYI_OP_NN_DENSE, -1, dense}, {BYI_OP_NN_MATMUL, -1, matmul},
    {BYI_OP_NN_MAX_POOL1D, -1, pool}, {BYI_OP_NN_MAX_POOL2D, -1, pool}, {BYI_OP_NN_MAX_POOL3D, -1, pool},
    {BYI_OP_NN_AVG_POOL1D, -1, pool}, {BYI_OP_NN_AVG_POOL2D, -1, pool}, {BYI_OP_NN_AVG_POOL3D, -1, pool},
    {BYI_OP_NN_MAX_POOL_INDICES, -1, pool}, {BYI_OP_NN_LP_POOL, -1, pool},
    {BYI_OP_NN_GLOBAL_MAX_POOL1D, -1, global_pool}, {BYI_OP_NN_GLOBAL_MAX_POOL2D, -1, global_pool},
    {BYI_OP_NN_GLOBAL_MAX_POOL3D, -1, global_pool}, {BYI_OP_NN_GLOBAL_AVG_POOL1D, -1, global_pool},
    {BYI_OP_NN_GLOBAL_AVG_POOL2D, -1, global_pool}, {BYI_OP_NN_GLOBAL_AVG_POOL3D, -1, global_pool},
    {BYI_OP_NN_GLOBAL_LP_POOL, -1, global_pool},
    {BYI_OP_NN_SOFTMAX, 1, along_axis}, {BYI_OP_NN_LOG_SOFTMAX, 1, along_axis}, {BYI_OP_NN_HARDMAX, 1, along_axis},
    {BYI_OP_LP_NORMALIZE, 1, along_axis}, {BYI_OP_CUMSUM, 1, along_axis}, {BYI_OP_ARGMAX, 1, along_axis}, {BYI_OP_ARGMIN, 1, along_axis},
    {BYI_OP_MVN, 0, reduce}, {BYI_OP_SUM, 0, reduce}, {BYI_OP_MEAN, 0, reduce}, {BYI_OP_MAX, 0, reduce}, {BYI_OP_MIN, 0, reduce},
    {BYI_OP_PROD, 0, reduce}, {BYI_OP_L1, 0, reduce}, {BYI_OP_L2, 0, reduce}, {BYI_OP_LOG_SUM, 0, reduce},
    {BYI_OP_LOG_SUM_EXP, 0, reduce}, {BYI_OP_SUM_SQUARE, 0, reduce},
    {BYI_OP_NN_BATCH_NORM, 2, per_channel}, {BYI_OP_NN_INSTANCE_NORM, 2, per_channel}, {BYI_OP_NN_GROUP_NORM, 2, per_channel},
    {BYI_OP_NN_LAYER_NORM, 1, layer_norm}, {BYI_OP_NN_LRN, -1, lrn},
    {BYI_OP_RESHAPE, 0, reshape}, {BYI_OP_SQUEEZE, 0, squeeze}, {BYI_OP_EXPAND_DIMS, 0, expand_dims}, {BYI_OP_FLATTEN, 0, flatten},
    {BYI_OP_TRANSPOSE, 0, transpose}, {BYI_OP_CONCATENATE, -1, concatenate}, {BYI_OP_SPLIT, 1, split},
    {BYI_OP_STRIDED_SLICE, 1, strided_slice}, {BYI_OP_TAKE, 1, take}, {BYI_OP_GATHER, 1, gather}, {BYI_OP_TILE, 0, tile},
    {BYI_OP_BROADCAST_TO, 0, broadcast_to}, {BYI_OP_NN_PAD, 0, pad}, {BYI_OP_DEPTH_TO_SPACE, -1, blocks},
    {BYI_OP_SPACE_TO_DEPTH, -1, blocks}, {BYI_OP_LAYOUT_TRANSFORM, -1, layout_transform}, {BYI_OP_RESIZE, -1, resize},
    {BYI_OP_QUANTIZE, -1, quantize_or_dequantize}, {BYI_OP_DEQUANTIZE, -1, quantize_or_dequantize},
    {BYI_OP_NN_RNN, -1, recurrent}, {BYI_OP_NN_GRU, -1, recurrent}, {BYI_OP_NN_LSTM, -1, recurrent},
};

/* Values of string attributes for operators without a generator. */
static const struct { const char *attr, *words; } words[] = {
    {"approximate", "none|tanh"},
};
/* clang-format on */

/* Set some attributes that the generator has not set: all that the pattern
 * requires, sometimes `alpha`, and those in `words`; the others keep their
 * defaults. */
static void give_rest(struct byi_opgen *d)
{
    for (uint32_t i = 0; i < d->op->n_attrs; i++) {
        const struct byi_attr_def *def = &d->op->attrs[i];
        if (byi_opgen_has_attr(d, def->name))
            continue;
        if (byi_opgen_pinned(d, def->name))
            byi_opgen_give_pinned(d, def);
        else if (def->kind == BYI_ATTR_FLOAT &&
                 strcmp(def->name, "alpha") == 0 &&
                 byi_opgen_draw_chance(d, 70))
            byi_opgen_give_float(d, def->name,
                                 0.05 + 0.1 * byi_opgen_draw_below(d, 9));
        for (size_t k = 0; k < BYI_COUNT(words); k++)
            if (def->kind == BYI_ATTR_STRING &&
                strcmp(words[k].attr, def->name) == 0)
                byi_opgen_give_string(d, def->name,
                                      byi_opgen_draw_word(d, words[k].words));
    }
}

bool byi_opgen_fill(struct byi_opgen *d)
{
    bool (*fill)(struct byi_opgen * d) =
        d->op->kind == BYI_BROADCAST ? broadcast : like_first;
    int min_rank = -1;
    for (size_t i = 0; i < BYI_COUNT(generators); i++)
        if (generators[i].op == d->op->id) {
            fill = generators[i].fill;
            min_rank = generators[i].min_rank;
        }
    if (min_rank >= 0 && (!byi_opgen_plan_random(d, 0, UINT32_MAX) ||
                          (int)byi_opgen_rank_of(d, 0) < min_rank))
        return false;
    const bool filled = fill(d);
    if (filled)
        give_rest(d);
    return filled;
}
