/* SPDX-License-Identifier: Apache-2.0 */
/* movement.c: kernels that copy all their data in another order: reshape and
 * similar, transpose, broadcast_to, tile, slices, blocks, concatenate and
 * split. Each kernel describes its operand as a strided view, which view.c
 * copies. */
#include "move.h"

/* reshape, squeeze, expand_dims, flatten, bitcast: the same elements in order
 */
static enum byoc_status reshape_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    (void)err;
    const size_t size = byi_dtype_bytes(call->in->dtype);
    byi_copy_bytes(call, call->out->data, call->in->data,
                   (size_t)byi_count(call->in) * size);
    return BYOC_OK;
}

/* y's axis i is x's axis axes[i] */
static enum byoc_status transpose_run(const struct byi_call *call,
                                      struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *x = call->in;
    uint32_t n;
    const int64_t *axes = byi_attr_ints(call->attrs, "axes", &n);
    int64_t strides[BYI_MAX_RANK];
    struct byi_view v = {.rank = x->rank};
    byi_dense_strides(x->rank, x->dims, strides);
    for (uint32_t i = 0; i < x->rank; i++) {
        const uint32_t from = n ? byi_axis(axes[i], x->rank) : x->rank - 1 - i;
        v.dims[i] = x->dims[from];
        v.strides[i] = strides[from];
    }
    byi_view_copy(call, &v, x->data, call->out->data,
                  byi_dtype_bytes(x->dtype));
    return BYOC_OK;
}

/* x's axes are aligned with y's last ones; an axis of size 1 repeats */
static enum byoc_status broadcast_run(const struct byi_call *call,
                                      struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *x = call->in, *y = call->out;
    int64_t strides[BYI_MAX_RANK];
    struct byi_view v = {.rank = y->rank};
    byi_dense_strides(x->rank, x->dims, strides);
    for (uint32_t i = 0; i < y->rank; i++) {
        const uint32_t lead = y->rank - x->rank;
        v.dims[i] = y->dims[i];
        v.strides[i] =
            i < lead || x->dims[i - lead] == 1 ? 0 : strides[i - lead];
    }
    byi_view_copy(call, &v, x->data, y->data, byi_dtype_bytes(x->dtype));
    return BYOC_OK;
}

/* y[.., r * size + i, ..] = x[.., i, ..] for each repetition r: an axis of y is
 * two axes of the view, (repetitions, size) */
static enum byoc_status tile_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *x = call->in, *y = call->out;
    int64_t strides[BYI_MAX_RANK];
    struct byi_view v = {.rank = 2 * x->rank};
    if (byi_count(y) == 0)
        return BYOC_OK;
    byi_dense_strides(x->rank, x->dims, strides);
    for (uint32_t i = 0; i < x->rank; i++) {
        v.dims[2 * i] = y->dims[i] / x->dims[i];
        v.dims[2 * i + 1] = x->dims[i];
        v.strides[2 * i + 1] = strides[i];
    }
    byi_view_copy(call, &v, x->data, y->data, byi_dtype_bytes(x->dtype));
    return BYOC_OK;
}

/* First position of a slice of an axis of size dim > 0 (ONNX Slice). */
static int64_t slice_begin(int64_t begin, int64_t stride, int64_t dim)
{
    if (begin < 0)
        begin = begin < -dim ? 0 : begin + dim;
    const int64_t most = stride > 0 ? dim : dim - 1;
    return byi_min(begin, most);
}

/* operands x, begin, end, axes, strides; the dims of y are the slice's lengths
 */
static enum byoc_status slice_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *x = call->in, *y = call->out;
    const size_t size = byi_dtype_bytes(x->dtype);
    const int64_t n = byi_count(&call->in[3]);
    struct byi_view v = {.rank = x->rank};
    int64_t from = 0;
    if (byi_count(y) == 0)
        return BYOC_OK;
    byi_dense_strides(x->rank, x->dims, v.strides);
    memcpy(v.dims, y->dims, y->rank * sizeof *v.dims);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t axis = byi_axis(byi_index_at(&call->in[3], i), x->rank);
        const int64_t stride = byi_index_at(&call->in[4], i);
        const int64_t begin =
            slice_begin(byi_index_at(&call->in[1], i), stride, x->dims[axis]);
        from += begin * v.strides[axis];
        /* with one position at most, the stride is unused, and may be huge */
        v.strides[axis] = v.dims[axis] > 1 ? v.strides[axis] * stride : 0;
    }
    byi_view_copy(call, &v, (const char *)x->data + from * (int64_t)size,
                  y->data, size);
    return BYOC_OK;
}

/* Dims and strides of a tensor in layout NCHW or NHWC. */
struct space_planes {
    int64_t n, c, h, w;
    int64_t sn, sc, sh, sw;
    bool channels_last;
};

static struct space_planes planes_of(const struct byi_call *call,
                                     const struct byi_tensor *t)
{
    const bool last =
        strcmp(byi_attr_string(call->attrs, "layout"), "NHWC") == 0;
    int64_t s[BYI_MAX_RANK];
    byi_dense_strides(t->rank, t->dims, s);
    const int64_t *d = t->dims;
    if (last)
        return (struct space_planes){d[0], d[3], d[1], d[2], s[0],
                                     s[3], s[1], s[2], true};
    return (struct space_planes){d[0], d[1], d[2], d[3], s[0],
                                 s[1], s[2], s[3], false};
}

/* (N, b, b, C, H, W) or (N, C, b, b, H, W) to (N, C, H, b, W, b), or to
 * (N, H, b, W, b, C) */
static enum byoc_status depth_to_space_run(const struct byi_call *call,
                                           struct byoc_error *err)
{
    (void)err;
    const struct space_planes x = planes_of(call, call->in);
    const int64_t b = byi_attr_int(call->attrs, "block_size");
    const bool depth_first =
        strcmp(byi_attr_string(call->attrs, "mode"), "DCR") == 0;
    const int64_t c = x.c / (b * b);
    const int64_t channel = x.sc * (depth_first ? 1 : b * b);
    const int64_t block = x.sc * (depth_first ? c : 1);
    const struct byi_view first = {
        .rank = 6,
        .dims = {x.n, c, x.h, b, x.w, b},
        .strides = {x.sn, channel, x.sh, b * block, x.sw, block},
    };
    const struct byi_view last = {
        .rank = 6,
        .dims = {x.n, x.h, b, x.w, b, c},
        .strides = {x.sn, x.sh, b * block, x.sw, block, channel},
    };
    byi_view_copy(call, x.channels_last ? &last : &first, call->in->data,
                  call->out->data, byi_dtype_bytes(call->in->dtype));
    return BYOC_OK;
}

/* (N, C, H, b, W, b) to (N, b, b, C, H, W), or to (N, H, W, b, b, C) */
static enum byoc_status space_to_depth_run(const struct byi_call *call,
                                           struct byoc_error *err)
{
    (void)err;
    const struct space_planes x = planes_of(call, call->in);
    const int64_t b = byi_attr_int(call->attrs, "block_size");
    const struct byi_view first = {
        .rank = 6,
        .dims = {x.n, b, b, x.c, x.h / b, x.w / b},
        .strides = {x.sn, x.sh, x.sw, x.sc, b * x.sh, b * x.sw},
    };
    const struct byi_view last = {
        .rank = 6,
        .dims = {x.n, x.h / b, x.w / b, b, b, x.c},
        .strides = {x.sn, b * x.sh, b * x.sw, x.sh, x.sw, x.sc},
    };
    byi_view_copy(call, x.channels_last ? &last : &first, call->in->data,
                  call->out->data, byi_dtype_bytes(call->in->dtype));
    return BYOC_OK;
}

/* A copy between `outer` rows of `part` bytes, and the bytes from `at` on of as
 * many rows of `whole` bytes. */
struct axis_strip {
    int64_t outer, whole, part, at;
};

/* Copy the strip from `whole` to `part` if each of its rows is one element of a
 * common size. Returns false, and copies nothing, if rows are longer. */
static bool gather_strip(const struct byi_call *call,
                         const struct axis_strip *s, const char *whole,
                         char *part)
{
    const int64_t size = s->part;
    const struct byi_view rows = {
        .rank = 1, .dims = {s->outer}, .strides = {s->whole / size}};
    if (size > 16 || (size & (size - 1)) || s->whole % size || s->at % size)
        return false;
    byi_view_copy(call, &rows, whole + s->at, part, (size_t)size);
    return true;
}

/* Copy n elements of a common size to addresses that are `step` bytes apart. */
#define SPREAD(size)                                                           \
    static void spread_##size(const char *src, int64_t n, char *dst,           \
                              int64_t step)                                    \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            memcpy(dst + i * step, src + i * size, size);                      \
    }
SPREAD(1)
SPREAD(2)
SPREAD(4)
SPREAD(8)
SPREAD(16)

/* Copy rows [first, last) of a strip. */
static void copy_strip_rows(const struct axis_strip *s, int64_t first,
                            int64_t last, char *whole, char *part, bool join)
{
    static void (*const spread[])(const char *, int64_t, char *, int64_t) = {
        [1] = spread_1, [2] = spread_2,   [4] = spread_4,
        [8] = spread_8, [16] = spread_16,
    };
    char *w = whole + first * s->whole + s->at, *p = part + first * s->part;
    if (join && s->part < (int64_t)BYI_COUNT(spread) && spread[s->part]) {
        spread[s->part](p, last - first, w, s->whole);
        return;
    }
    for (int64_t i = first; i < last; i++, w += s->whole, p += s->part)
        byi_copy_elements(join ? w : p, join ? p : w, 1, (size_t)s->part);
}

/* Copy `part` to `whole` if `join`, otherwise from `whole` to `part`. */
static void copy_strip(const struct byi_call *call, const struct axis_strip *s,
                       char *whole, char *part, bool join)
{
    const int team = byi_team(call, s->outer * s->part / 4);
    if (s->outer == 1) {
        byi_copy_bytes(call, join ? whole + s->at : part,
                       join ? part : whole + s->at, (size_t)s->part);
        return;
    }
    if (!join && gather_strip(call, s, whole, part))
        return;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++)
        copy_strip_rows(s, s->outer * i / team, s->outer * (i + 1) / team,
                        whole, part, join);
}

/* Copy from `joined` to the n tensors `parts` or, if `join`, from these to
 * `joined`. The parts divide the axis of the call's attribute among them. */
static void copy_strips(const struct byi_call *call,
                        const struct byi_tensor *joined, uint32_t n,
                        const struct byi_tensor *parts, bool join)
{
    const uint32_t axis = byi_attr_axis(call->attrs, joined->rank);
    const int64_t inner = byi_span(joined, axis + 1, joined->rank) *
                          (int64_t)byi_dtype_bytes(joined->dtype);
    struct axis_strip s = {.outer = byi_span(joined, 0, axis),
                           .whole = joined->dims[axis] * inner};
    if (byi_count(joined) == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        s.part = parts[i].dims[axis] * inner;
        if (s.part > 0 &&
            (i > 0 ||
             parts[i].data != joined->data)) /* otherwise it is in place */
            copy_strip(call, &s, joined->data, parts[i].data, join);
        s.at += s.part;
    }
}

static enum byoc_status concatenate_run(const struct byi_call *call,
                                        struct byoc_error *err)
{
    (void)err;
    copy_strips(call, call->out, call->n_in, call->in, true);
    return BYOC_OK;
}

static enum byoc_status split_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    (void)err;
    copy_strips(call, call->in, call->n_out, call->out, false);
    return BYOC_OK;
}

BYI_KERNEL_ROWS(movement, {BYI_OP_BITCAST, {reshape_run, NULL}},
                {BYI_OP_RESHAPE, {reshape_run, NULL}},
                {BYI_OP_SQUEEZE, {reshape_run, NULL}},
                {BYI_OP_EXPAND_DIMS, {reshape_run, NULL}},
                {BYI_OP_FLATTEN, {reshape_run, NULL}},
                {BYI_OP_TRANSPOSE, {transpose_run, NULL}},
                {BYI_OP_BROADCAST_TO, {broadcast_run, NULL}},
                {BYI_OP_TILE, {tile_run, NULL}},
                {BYI_OP_STRIDED_SLICE, {slice_run, NULL}},
                {BYI_OP_DEPTH_TO_SPACE, {depth_to_space_run, NULL}},
                {BYI_OP_SPACE_TO_DEPTH, {space_to_depth_run, NULL}},
                {BYI_OP_CONCATENATE, {concatenate_run, NULL}},
                {BYI_OP_SPLIT, {split_run, NULL}},
                {BYI_OP_DYN_SQUEEZE, {reshape_run, NULL}},
                {BYI_OP_DYN_EXPAND_DIMS, {reshape_run, NULL}},
                {BYI_OP_DYN_SPLIT, {split_run, NULL}})
