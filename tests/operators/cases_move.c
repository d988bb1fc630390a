/* SPDX-License-Identifier: Apache-2.0 */
/* cases_move.c: random calls of operators that move data, of norms, and of
 * those on 8 bits; see cases.c.
 */
#include "fuzz.h"

#include <string.h>

/* --- movement ------------------------------------------------------------- */

static void transpose(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], axes[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t k = (uint32_t)draw_int(d, 0, i);
        axes[i] = axes[k];
        axes[k] = i;
    }
    if (draw_chance(d, 85))
        draw_attr_ints(d, "perm", rank, axes);
}

static void concat(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank), n = draw_int(d, 1, 5);

    for (int64_t i = 0; i < n; i++) {
        dims[axis < 0 ? axis + rank : axis] = draw_int(d, 0, 6);
        draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    }
    draw_attr_int(d, "axis", axis);
}

/* A start or an end of a slice. */
static int64_t draw_bound(struct draw *d, bool is_int32)
{
    if (draw_chance(d, 85))
        return draw_int(d, -9, 9);
    if (draw_chance(d, 50))
        return draw_chance(d, 50) ? 100 : -100;
    return draw_chance(d, 50) ? (is_int32 ? INT32_MAX : INT64_MAX)
                              : (is_int32 ? INT32_MIN : INT64_MIN);
}

static void slice(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], start[BYI_MAX_RANK], end[BYI_MAX_RANK],
        axes[BYI_MAX_RANK], step[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const bool known = draw_chance(d, 60), is_int32 = draw_chance(d, 30);
    const bool names_axes = draw_chance(d, 80), steps = draw_chance(d, 80);
    const enum byoc_dtype dtype = is_int32 ? BYOC_I32 : BYOC_I64;
    int64_t n = 0;

    for (uint32_t i = 0; i < rank; i++) {
        if (names_axes ? draw_chance(d, 30) : n < i)
            continue;
        if (!names_axes && i && draw_chance(d, 30))
            break;
        axes[n] = draw_chance(d, 50) ? i : (int64_t)i - rank;
        step[n] = !steps               ? 1
                  : draw_chance(d, 40) ? -draw_int(d, 1, 3)
                                       : draw_int(d, 1, 3);
        start[n] = draw_bound(d, is_int32);
        end[n] = draw_bound(d, is_int32);
        /* backwards, ONNX Runtime takes the largest end for the first element
         */
        if (step[n] < 0 && end[n] > 100)
            end[n] = 2;
        n++;
    }
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_ints(d, dtype, n, start, known);
    draw_ints(d, dtype, n, end, known);
    if (names_axes)
        draw_ints(d, dtype, n, axes, draw_chance(d, 80));
    else if (steps)
        draw_nothing(d);
    if (steps)
        draw_ints(d, dtype, n, step, known);
}

/* Indices of an axis of this size, from its end as well. */
static void indices(struct draw *d, uint32_t rank, const int64_t *dims,
                    int64_t size)
{
    struct byi_tensor *t = draw_operand(
        d, draw_chance(d, 50) ? BYOC_I64 : BYOC_I32, rank, dims, ORDINARY);

    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        byi_tensor_set(t, i, (double)draw_int(d, -size, size - 1));
}

static void gather(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], at[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const bool elements = strcmp(op_now->op, "GatherElements") == 0;
    const int64_t axis = draw_axis(d, rank);
    const uint32_t a = (uint32_t)(axis < 0 ? axis + rank : axis);

    dims[a] = dims[a] ? dims[a] : 1;
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    const int64_t size = dims[a];
    if (elements) {
        dims[a] = draw_int(d, draw_chance(d, 10) ? 0 : 1, 5);
        for (uint32_t i = 0; i < rank; i++)
            if (i != a && dims[i] > 1 && draw_chance(d, 15))
                dims[i]--;
        indices(d, rank, dims, size);
    } else {
        const uint32_t ri = draw_shape(d, 0, 3, at);
        indices(d, ri, at, size);
    }
    if (axis != 0 || draw_chance(d, 50))
        draw_attr_int(d, "axis", axis);
}

/* Distinct positions, since the result for equal ones is not specified. */
static void scatter(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);
    const uint32_t a = (uint32_t)(axis < 0 ? axis + rank : axis);
    int64_t inner = 1;

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 2;
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    const int64_t size = dims[a];
    dims[a] = draw_int(d, 1, size);
    for (uint32_t i = 0; i < rank; i++)
        if (i != a && dims[i] > 1 && draw_chance(d, 15))
            dims[i]--;
    for (uint32_t i = a + 1; i < rank; i++)
        inner *= dims[i];
    const enum byoc_dtype type = draw_chance(d, 70) ? BYOC_I64 : BYOC_I32;
    struct byi_tensor *t = draw_operand(d, type, rank, dims, ORDINARY);
    const int64_t turn = draw_int(d, 0, size - 1);
    for (int64_t i = 0; i < byi_elements(rank, dims); i++) {
        const int64_t at = (i / inner % dims[a] + turn) % size;
        byi_tensor_set(t, i, (double)(draw_chance(d, 30) ? at - size : at));
    }
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_attr_int(d, "axis", axis);
}

static void pad(struct draw *d)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    int64_t dims[BYI_MAX_RANK], pads[2 * BYI_MAX_RANK], axes[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const bool with_axes = op_now->opset >= 18 && draw_chance(d, 50);
    const int64_t mode = draw_int(d, 0, op_now->opset < 19 ? 2 : 3), two = 2;

    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = mode && !dims[i] ? 3 : dims[i];
        const bool crops = mode == 0 || draw_chance(d, 30);
        const int64_t min_pad = crops ? -dims[i] / 3 : 0;
        /* ONNX Runtime refuses larger ones, or gives zeros for them */
        const int64_t left = dims[i] + 2 * min_pad;
        const int64_t max_pad = mode == 2 ? left - 1 : mode == 3 ? left : 4;
        pads[i] = draw_int(d, min_pad, max_pad);
        pads[i + rank] = draw_int(d, min_pad, max_pad);
    }
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_ints(d, BYOC_I64, 2 * (int64_t)rank, pads, draw_chance(d, 60));
    if (mode == 0 && draw_chance(d, 50))
        draw_ints(d, d->dtype, -1, &two, draw_chance(d, 50));
    else if (with_axes)
        draw_nothing(d);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = draw_chance(d, 50) ? i : (int64_t)i - rank;
    if (with_axes)
        draw_ints(d, BYOC_I64, rank, axes, draw_chance(d, 50));
    draw_attr_string(d, "mode", modes[mode]);
}

static void center_crop_pad(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], sizes[2], axes[2];
    const uint32_t rank = draw_shape(d, 2, 4, dims);

    for (uint32_t i = 0; i < 2; i++) {
        axes[i] = i ? -1 : 0;
        sizes[i] = draw_int(d, 1, 9);
    }
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    draw_ints(d, BYOC_I64, 2, sizes, draw_chance(d, 50));
    draw_attr_ints(d, "axes", 2, axes);
}

static void tile(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], times[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    for (uint32_t i = 0; i < rank; i++)
        times[i] = draw_int(d, draw_chance(d, 10) ? 0 : 1, 3);
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_ints(d, BYOC_I64, rank, times, draw_chance(d, 60));
}

static void expand(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const uint32_t rb = draw_narrower(d, rank, dims, b);

    draw_operand(d, d->dtype, rb, b, op_now->distribution);
    for (uint32_t i = 0; i < rb; i++)
        if (draw_chance(d, 20))
            dims[rank - rb + i] = 1;
    draw_ints(d, BYOC_I64, rank, dims, draw_chance(d, 60));
}

/* A shape with the elements of x: its axes split and merged; 0 keeps a size, -1
 * is computed. */
static void reshape(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], shape[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const bool allows_zero = draw_chance(d, 20);
    int64_t left = byi_elements(rank, dims);
    bool empty = left == 0, open = false;
    uint32_t n = 0;

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    while (!empty && n < rank && draw_chance(d, 50)) {
        left /= dims[n]; /* keep some first axes */
        shape[n] = allows_zero || draw_chance(d, 50) ? dims[n] : 0;
        n++;
    }
    while (!empty && n < 6 && draw_chance(d, 60)) {
        int64_t part = draw_int(d, 1, left > 6 ? 6 : left);
        while (left % part)
            part--;
        left /= part;
        shape[n++] = part;
    }
    if (!empty && (left > 1 || draw_chance(d, 40)))
        shape[n++] = left;
    for (uint32_t i = 0; i < n && !open; i++)
        if (draw_chance(d, 20)) {
            shape[i] = -1;
            open = true;
        }
    if (empty) {
        n = (uint32_t)draw_int(d, 1, 3);
        for (uint32_t i = 0; i < n; i++)
            shape[i] = i ? draw_int(d, 1, 4) : 0;
        /* without allowzero, 0 is the size of the first axis */
        if (!allows_zero && dims[0])
            shape[0] = -1;
    }
    draw_ints(d, BYOC_I64, n, shape, draw_chance(d, 60));
    if (allows_zero)
        draw_attr_int(d, "allowzero", 1);
}

static void depth_and_space(struct draw *d)
{
    const bool to_space = strcmp(op_now->op, "DepthToSpace") == 0;
    const int64_t b = draw_int(d, 1, 3), c = draw_int(d, 1, 3),
                  h = draw_int(d, 1, 4), w = draw_int(d, 1, 4);
    const int64_t k = to_space ? b * b : 1, s = to_space ? 1 : b;

    draw_operand(d, d->dtype, 4,
                 (int64_t[]){draw_int(d, 1, 2), c * k, h * s, w * s},
                 op_now->distribution);
    draw_attr_int(d, "blocksize", b);
    if (to_space)
        draw_attr_string(d, "mode", draw_chance(d, 50) ? "DCR" : "CRD");
}

static void trilu(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 2, 4, dims);
    const int64_t far = draw_chance(d, 50) ? INT32_MAX : INT32_MIN;
    const int64_t k = draw_chance(d, 6) ? far : draw_int(d, -9, 9);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    if (draw_chance(d, 70))
        draw_ints(d, BYOC_I64, -1, &k, draw_chance(d, 50));
    draw_attr_int(d, "upper", draw_int(d, 0, 1));
}

static void compress(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 3, dims);
    const int64_t axis = draw_axis(d, rank);
    const int64_t size = dims[axis < 0 ? axis + rank : axis];

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    const bool flat = draw_chance(d, 25);
    const int64_t n = flat ? byi_elements(rank, dims) : size;
    draw_operand(d, BYOC_BOOL, 1, (int64_t[]){draw_int(d, 0, n)}, ORDINARY);
    if (!flat)
        draw_attr_int(d, "axis", axis);
}

/* Squeeze, Unsqueeze: distinct axes in any order, from either end. */
static void axes_operand(struct draw *d)
{
    const bool squeezes = strcmp(op_now->op, "Squeeze") == 0;
    int64_t dims[BYI_MAX_RANK], axes[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, squeezes ? 1 : 0, 4, dims);
    const uint32_t n =
        (uint32_t)draw_int(d, 1, squeezes && rank < 3 ? rank : 3);
    const uint32_t all = squeezes ? rank : rank + n;
    uint32_t order[BYI_MAX_RANK];

    for (uint32_t i = 0; i < all; i++) {
        const uint32_t k = (uint32_t)draw_int(d, 0, i);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        axes[i] = draw_chance(d, 50) ? order[i] : (int64_t)order[i] - all;
        if (squeezes)
            dims[order[i]] = 1;
    }
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    /* without axes, a run fails if an open size is 1 */
    if (!squeezes || d->open || draw_chance(d, 85))
        draw_ints(d, BYOC_I64, n, axes, draw_chance(d, 60));
}

static void expand_dims(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);
    const int64_t axis = draw_axis(d, rank + 1);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_ints(d, BYOC_I32, -1, &axis, draw_chance(d, 60));
}

static void flatten(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_attr_int(d, "axis", draw_int(d, -(int64_t)rank, rank));
}

static void split(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);
    const int64_t sizes[] = {draw_int(d, 0, 5), draw_int(d, 0, 5)};

    dims[axis < 0 ? axis + rank : axis] = sizes[0] + sizes[1];
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    draw_ints(d, BYOC_I64, 2, sizes, draw_chance(d, 60));
    draw_attr_int(d, "axis", axis);
}

static void one_hot(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 3, dims);
    const int64_t depth = draw_int(d, 1, 7);

    const double float_depth = (double)depth;

    indices(d, rank, dims, draw_chance(d, 30) ? depth + 2 : depth);
    if (draw_chance(d, 20))
        draw_floats(d, draw_chance(d, 50) ? 1 : -1, &float_depth,
                    draw_chance(d, 50));
    else
        draw_ints(d, BYOC_I64, draw_chance(d, 50) ? 1 : -1, &depth,
                  draw_chance(d, 60));
    draw_operand(d, d->dtype, 1, (int64_t[]){2}, ORDINARY);
    draw_attr_int(d, "axis", draw_int(d, -(int64_t)rank - 1, rank));
}

/* GatherND, ScatterND: indices (n1, n2, depth), after the batch axes of both.
 * Those of ScatterND are distinct: their first axis is as long as x's. */
static void gather_nd(struct draw *d)
{
    const bool scatters = strcmp(op_now->op, "ScatterND") == 0;
    const uint32_t rank = (uint32_t)draw_int(d, 1, 5);
    const uint32_t batch = scatters || op_now->domain || draw_chance(d, 60)
                               ? 0
                               : (uint32_t)draw_int(d, 0, rank - 1);
    const int64_t depth = draw_int(d, 1, rank - batch);
    int64_t dims[5], at[8], updates[8];
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw_int(d, 1, 4);
    for (; n < batch; n++)
        at[n] = dims[n];
    const int64_t outer = draw_int(d, 0, 2);
    for (int64_t i = 0; i < outer; i++)
        at[n++] = draw_int(d, draw_chance(d, 5) ? 0 : 1, 3);
    const int64_t rows = byi_elements(n, at);
    if (scatters && dims[0] < rows)
        dims[0] = rows;
    at[n++] = depth;
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    struct byi_tensor *t = draw_operand(d, BYOC_I64, n, at, ORDINARY);
    for (int64_t i = 0; i < rows * depth; i++) {
        const int64_t size = dims[batch + i % depth];
        const int64_t k =
            scatters && i % depth == 0 ? i / depth : draw_int(d, 0, size - 1);
        byi_tensor_set(t, i, (double)(draw_chance(d, 30) ? k - size : k));
    }
    if (batch && !op_now->domain)
        draw_attr_int(d, "batch_dims", batch);
    memcpy(updates, at, (n - 1) * sizeof *at);
    for (uint32_t i = (uint32_t)depth; i < rank; i++)
        updates[n - 1 + i - depth] = dims[i];
    if (scatters)
        draw_operand(d, d->dtype, n - 1 + rank - (uint32_t)depth, updates,
                     ORDINARY);
}

static void reverse_sequence(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 2, 4, dims);
    const bool batch_first = draw_chance(d, 50);

    for (uint32_t i = 0; i < 2; i++)
        dims[i] = dims[i] ? dims[i] : 2;
    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
    struct byi_tensor *t =
        draw_operand(d, BYOC_I64, 1, &dims[batch_first ? 0 : 1], ORDINARY);
    for (int64_t i = 0; i < t->dims[0]; i++)
        byi_tensor_set(t, i, (double)draw_int(d, 1, dims[batch_first ? 1 : 0]));
    draw_attr_int(d, "batch_axis", batch_first ? 0 : 1);
    draw_attr_int(d, "time_axis", batch_first ? 1 : 0);
}

static void range(struct draw *d)
{
    const int64_t low = byi_dtype_is_signed(d->dtype) ? -9 : 0;
    const int64_t start = draw_int(d, low, 9), end = draw_int(d, low, 9);
    const int64_t step =
        low == 0 || draw_chance(d, 50) ? draw_int(d, 1, 3) : -draw_int(d, 1, 3);

    draw_ints(d, d->dtype, -1, &start, draw_chance(d, 50));
    draw_ints(d, d->dtype, -1, &end, draw_chance(d, 50));
    if (!op_now->domain || draw_chance(d, 70))
        draw_ints(d, d->dtype, -1, &step, draw_chance(d, 50));
}

static void eye_like(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];

    draw_shape(d, 2, 2, dims);
    draw_operand(d, d->dtype, 2, dims, ORDINARY);
    draw_attr_int(d, "k", draw_int(d, -9, 9));
    if (draw_chance(d, 30))
        draw_attr_int(d, "dtype", draw_chance(d, 50) ? BYOC_F32 : BYOC_I64);
}

/* --- norms ---------------------------------------------------------------- */

static void channel_norm(struct draw *d)
{
    const bool batch = strcmp(op_now->op, "BatchNormalization") == 0;
    const bool group = strcmp(op_now->op, "GroupNormalization") == 0;
    const int64_t groups = draw_int(d, 1, 3);
    int64_t dims[BYI_MAX_RANK] = {0, 1};
    const uint32_t rank = draw_shape(d, batch ? 1 : 3, 5, dims);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 2;
    if (group) {
        dims[1] *= groups;
        draw_attr_int(d, "num_groups", groups);
    }
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    for (int i = 0; i < (batch ? 3 : 2); i++)
        draw_operand(d, d->dtype, 1, &dims[1], ORDINARY);
    if (batch)
        draw_operand(d, d->dtype, 1, &dims[1], POSITIVE);
    draw_attr_float(d, "epsilon", 0.01f);
}

static void layer_norm(struct draw *d)
{
    const bool bias =
        strcmp(op_now->op, "RMSNormalization") != 0 && draw_chance(d, 60);
    int64_t dims[BYI_MAX_RANK], part[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const uint32_t axis = (uint32_t)draw_int(d, 0, rank - 1);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 2;
    draw_operand(d, d->dtype, rank, dims, ORDINARY);
    for (int i = 0; i < (bias ? 2 : 1); i++) {
        const uint32_t n_axes = rank - axis;
        const uint32_t n = draw_narrower(d, n_axes, dims + axis, part);
        const bool has_all = draw_chance(d, 70);
        draw_operand(d, d->dtype, has_all ? n_axes : n,
                     has_all ? dims + axis : part, ORDINARY);
    }
    draw_attr_int(d, "axis", draw_chance(d, 50) ? axis : (int64_t)axis - rank);
    draw_attr_float(d, "epsilon", 0.01f);
}

/* A cache (b, heads, t, h), new rows (b, heads, s, h), and where each
 * sequence's new rows start. */
static void tensor_scatter(struct draw *d)
{
    const bool circular = draw_chance(d, 50), flat = draw_chance(d, 30);
    const int64_t b = draw_int(d, 1, 3), t = draw_int(d, 2, 6);
    const int64_t s = draw_int(d, 1, t), heads = draw_int(d, 1, 3);
    const int64_t h = draw_int(d, 1, 4);
    const int64_t cache[] = {b, heads, t, h}, rows[] = {b, heads, s, h};
    const int64_t flat_cache[] = {b, t, h}, flat_rows[] = {b, s, h};
    int64_t starts[3];

    draw_operand(d, d->dtype, flat ? 3 : 4, flat ? flat_cache : cache,
                 ORDINARY);
    draw_operand(d, d->dtype, flat ? 3 : 4, flat ? flat_rows : rows, ORDINARY);
    for (int64_t i = 0; i < b; i++)
        starts[i] = draw_int(d, 0, circular ? t - 1 : t - s);
    draw_ints(d, BYOC_I64, b, starts, draw_chance(d, 50));
    draw_attr_string(d, "mode", circular ? "circular" : "linear");
    if (draw_chance(d, 50))
        draw_attr_int(d, "axis", flat ? 1 : 2);
}

static void lrn(struct draw *d)
{
    int64_t dims[4];

    for (int i = 0; i < 4; i++)
        dims[i] = draw_int(d, i ? 1 : 0, 6);
    draw_operand(d, d->dtype, 4, dims, ORDINARY);
    draw_attr_int(d, "size", 1 + 2 * draw_int(d, 0, 6));
    draw_attr_float(d, "alpha", 0.25f);
    if (draw_chance(d, 70))
        draw_attr_float(d, "bias", 1.5f);
    if (draw_chance(d, 50))
        draw_attr_float(d, "beta", (float)draw_int(d, 0, 8) / 4);
}

/* --- 8 bits --------------------------------------------------------------- */

static void quantize(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_operand(d, BYOC_F32, rank, dims, op_now->distribution);
    draw_scale(d, 0.0625f);
    if (d->dtype == BYOC_I8 || draw_chance(d, 70))
        draw_zero_point(d);
}

/* A scale for each position of an axis, or for each block of it. */
static void quantize_blocks(struct draw *d)
{
    const bool dequantizes = strcmp(op_now->op, "DequantizeLinear") == 0;
    int64_t dims[BYI_MAX_RANK], scales[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 1, 4, dims);
    const int64_t axis = draw_axis(d, rank);
    const uint32_t a = (uint32_t)(axis < 0 ? axis + rank : axis);
    const int64_t block = draw_chance(d, 70) ? draw_int(d, 1, 4) : 0;
    const bool has_zero =
        (!dequantizes && d->dtype != BYOC_U8) || draw_chance(d, 70);

    memcpy(scales, dims, sizeof dims);
    scales[a] = block ? (dims[a] + block - 1) / block : 0;
    draw_operand(d, dequantizes ? d->dtype : BYOC_F32, rank, dims,
                 dequantizes ? EXTREME : ORDINARY);
    for (int i = 0; i < (has_zero ? 2 : 1); i++)
        draw_operand(d, i ? d->dtype : BYOC_F32, block ? rank : 1,
                     block ? scales : &dims[a], i ? EXTREME : POSITIVE);
    draw_attr_int(d, "axis", axis);
    if (block || draw_chance(d, 50))
        draw_attr_int(d, "block_size", block);
}

static void dequantize(struct draw *d)
{
    draw_same(d);
    draw_scale(d, 0.03f);
    if (strcmp(op_now->op, "DequantizeLinear") != 0 || draw_chance(d, 70))
        draw_zero_point(d);
}

static void qlinear_binary(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK], b[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_operand(d, d->dtype, rank, dims, EXTREME);
    draw_scale(d, 0.02f);
    draw_zero_point(d);
    const uint32_t rb = draw_narrower(d, rank, dims, b);
    draw_operand(d, d->dtype, rb, b, EXTREME);
    draw_scale(d, 0.03f);
    draw_zero_point(d);
    draw_scale(d, 0.04f);
    draw_zero_point(d);
}

static void qlinear_unary(struct draw *d)
{
    dequantize(d);
    draw_scale(d, 0.04f);
    draw_zero_point(d);
}

static void matmul_integer(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 20), k = draw_int(d, 1, 40),
                  n = draw_int(d, 1, 36);

    const int64_t batch = draw_int(d, 1, 3);
    const uint32_t ra = (uint32_t)draw_int(d, 2, 3);
    const uint32_t rb = (uint32_t)draw_int(d, 2, 3);

    draw_operand(d, d->dtype, ra, (int64_t[]){batch, m, k, k} + (3 - ra),
                 EXTREME);
    draw_operand(d, d->dtype, rb, (int64_t[]){batch, k, n, n} + (3 - rb),
                 EXTREME);
    if (draw_chance(d, 60)) {
        if (draw_chance(d, 80))
            draw_zero_point(d);
        else
            draw_nothing(d);
        if (draw_chance(d, 80))
            draw_zero_point(d);
    }
}

/* x, scale, zero, w, scale, zero, scale, zero */
static void qlinear_product(struct draw *d)
{
    const bool conv = strcmp(op_now->op, "QLinearConv") == 0;
    const int64_t c = draw_int(d, 1, 5), n = draw_int(d, 1, 9);
    const int64_t x[] = {1, c, draw_int(d, 3, 8), draw_int(d, 3, 8)};
    const int64_t w[] = {n, c, draw_int(d, 1, 3), draw_int(d, 1, 3)};

    draw_operand(d, d->dtype, conv ? 4 : 2,
                 conv ? x : (int64_t[]){draw_int(d, 1, 9), c}, EXTREME);
    draw_scale(d, 0.02f);
    draw_zero_point(d);
    draw_operand(d, d->dtype, conv ? 4 : 2, conv ? w : (int64_t[]){c, n},
                 EXTREME);
    draw_scale(d, 0.03f);
    draw_zero_point(d);
    draw_scale(d, 0.25f);
    draw_zero_point(d);
    if (!conv)
        return;
    if (draw_chance(d, 40))
        draw_operand(d, BYOC_I32, 1, &n, ORDINARY);
    if (draw_chance(d, 50))
        draw_attr_ints(
            d, "pads", 4,
            (int64_t[]){draw_int(d, 0, w[2] - 1), draw_int(d, 0, w[3] - 1),
                        draw_int(d, 0, w[2] - 1), draw_int(d, 0, w[3] - 1)});
    if (draw_chance(d, 50))
        draw_attr_ints(d, "strides", 2,
                       (int64_t[]){draw_int(d, 1, 3), draw_int(d, 1, 3)});
}

/* A QLinearMatMul of stacks of matrices, with a scale and a zero point for each
 * column of b in each matrix. */
static void qlinear_stack(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 3), rows = draw_int(d, 1, 9),
                  k = draw_int(d, 1, 9), columns = draw_int(d, 1, 9);
    const int64_t per_column[] = {n, 1, columns};

    draw_operand(d, d->dtype, 3, (int64_t[]){n, rows, k}, EXTREME);
    draw_scale(d, 0.02f);
    draw_zero_point(d);
    draw_operand(d, d->dtype, 3, (int64_t[]){n, k, columns}, EXTREME);
    struct byi_tensor *t = draw_operand(d, BYOC_F32, 3, per_column, UNIT);
    for (int64_t i = 0; i < n * columns; i++)
        byi_tensor_set(t, i, (double)draw_int(d, 1, 31) / 512);
    draw_operand(d, d->dtype, 3, per_column, UNIT);
    draw_scale(d, 0.25f);
    draw_zero_point(d);
}

static void float_only(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? dims[i] : 1;
    draw_operand(d, BYOC_F32, rank, dims, ORDINARY);
}

#define MS "com.microsoft"
/* clang-format off */
static const struct op_case rows[] = {
    {"BatchNormalization", 15, "fh", channel_norm, ORDINARY, 1, 1e-5, NULL, false},
    {"CenterCropPad", 18, "fhiu8", center_crop_pad, ORDINARY, 1, 0, NULL, false},
    {"Compress", 11, "fhiu86bs", compress, EXTREME, 1, 0, NULL, false},
    {"Concat", 13, "fhiu86bs", concat, EXTREME, 1, 0, NULL, false},
    {"DepthToSpace", 13, "fhiu86bs", depth_and_space, EXTREME, 1, 0, NULL, false},
    {"DequantizeLinear", 21, "8", quantize_blocks, EXTREME, 1, 1e-6, NULL, false},
    {"DequantizeLinear", 13, "8", dequantize, EXTREME, 1, 1e-6, NULL, false},
    {"DynamicQuantizeLinear", 11, "-", float_only, ORDINARY, 3, 1e-6, NULL, false},
    {"Expand", 13, "fhiu86bs", expand, EXTREME, 1, 0, NULL, false},
    {"Gather", 13, "fhiu86bs", gather, EXTREME, 1, 0, NULL, false},
    {"GatherElements", 13, "fhiu86bs", gather, EXTREME, 1, 0, NULL, false},
    {"GroupNormalization", 21, "fh", channel_norm, ORDINARY, 1, 1e-4, NULL, false},
    {"InstanceNormalization", 6, "fh", channel_norm, ORDINARY, 1, 1e-4, NULL, false},
    {"LRN", 13, "fh", lrn, ORDINARY, 1, 1e-5, NULL, false},
    {"LayerNormalization", 17, "fh", layer_norm, ORDINARY, 1, 1e-4, NULL, false},
    {"LayerNormalization", 17, "fh", layer_norm, ORDINARY, 3, 1e-4, NULL, false},
    {"RMSNormalization", 23, "fh", layer_norm, ORDINARY, 1, 1e-4, NULL, false},
    {"MatMulInteger", 10, "8", matmul_integer, EXTREME, 1, 0, NULL, false},
    {"Pad", 19, "fhiu86b", pad, ORDINARY, 1, 0, NULL, false},
    {"Pad", 13, "fhiu86b", pad, ORDINARY, 1, 0, NULL, false},
    {"EyeLike", 9, "fhiu86", eye_like, ORDINARY, 1, 0, NULL, false},
    {"Flatten", 13, "fhiu86bs", flatten, EXTREME, 1, 0, NULL, false},
    {"GatherND", 13, "fhiu86bs", gather_nd, ORDINARY, 1, 0, NULL, false},
    {"Identity", 16, "fhiu86bs", draw_same, EXTREME, 1, 0, NULL, false},
    {"OneHot", 11, "fhiu86bs", one_hot, ORDINARY, 1, 0, NULL, false},
    {"QLinearConv", 10, "8", qlinear_product, EXTREME, 1, 1, NULL, false},
    {"QLinearMatMul", 10, "8", qlinear_stack, EXTREME, 1, 1, NULL, false},
    {"QLinearMatMul", 10, "8", qlinear_product, EXTREME, 1, 1, NULL, false},
    {"Range", 11, "fi6", range, ORDINARY, 1, 1e-6, NULL, false},
    {"ReverseSequence", 10, "fhiu86bs", reverse_sequence, EXTREME, 1, 0, NULL, false},
    {"ScatterND", 16, "fhiu86bs", gather_nd, ORDINARY, 1, 0, NULL, false},
    {"Shape", 15, "fhiu86bs", draw_same, ORDINARY, 1, 0, NULL, false},
    {"Size", 13, "fhiu86bs", draw_same, ORDINARY, 1, 0, NULL, false},
    {"Split", 13, "fhiu86bs", split, EXTREME, 2, 0, NULL, false},
    {"Squeeze", 13, "fhiu86bs", axes_operand, EXTREME, 1, 0, NULL, false},
    {"Unsqueeze", 13, "fhiu86bs", axes_operand, EXTREME, 1, 0, NULL, false},
    {"QuantizeLinear", 21, "8", quantize_blocks, EXTREME, 1, 0, NULL, false},
    {"QuantizeLinear", 13, "8", quantize, EXTREME, 1, 0, NULL, false},
    {"Reshape", 14, "fhiu86bs", reshape, EXTREME, 1, 0, NULL, false},
    {"ScatterElements", 16, "fhiu86bs", scatter, ORDINARY, 1, 0, NULL, false},
    {"Slice", 13, "fhiu86bs", slice, EXTREME, 1, 0, NULL, false},
    {"SpaceToDepth", 13, "fhiu86bs", depth_and_space, EXTREME, 1, 0, NULL, false},
    {"TensorScatter", 24, "fhiu8", tensor_scatter, ORDINARY, 1, 0, NULL, false},
    {"Tile", 13, "fhiu86bs", tile, EXTREME, 1, 0, NULL, false},
    {"Transpose", 13, "fhiu86bs", transpose, EXTREME, 1, 0, NULL, false},
    {"Trilu", 14, "fhiu86bs", trilu, EXTREME, 1, 0, NULL, false},
    {"ExpandDims", 1, "fhiu86bs", expand_dims, EXTREME, 1, 0, MS, false},
    {"GatherND", 1, "fhiu86bs", gather_nd, ORDINARY, 1, 0, MS, false},
    {"Pad", 1, "fh", pad, ORDINARY, 1, 0, MS, false},
    {"Range", 1, "fi6", range, ORDINARY, 1, 1e-6, MS, false},
    {"Trilu", 1, "fhiu86b", trilu, EXTREME, 1, 0, MS, false},
    {"QLinearAdd", 1, "8", qlinear_binary, EXTREME, 1, 1, MS, false},
    {"QLinearMul", 1, "8", qlinear_binary, EXTREME, 1, 1, MS, false},
    {"QLinearSigmoid", 1, "8", qlinear_unary, EXTREME, 1, 1, MS, false},
    {"QLinearLeakyRelu", 1, "8", qlinear_unary, EXTREME, 1, 1, MS, false},
};
/* clang-format on */

const struct op_table op_cases_move = {rows, BYI_COUNT(rows)};
