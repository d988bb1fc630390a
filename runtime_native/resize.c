/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: image.resize: ONNX Resize of opset 18, for any rank.
 * core/ops/resample.c lists the taps of every axis; one step resizes two
 * adjacent axes together, row by row (resample.inc); more axes need several
 * steps. Rows are float32; float64 has plain loops, and integers are converted
 * to float32, except for mode nearest, which only copies. */
#include "move.h"

#include "core/ops/resample.h"

/* A call of image.resize or dyn.resize. */
struct resize_call {
    struct byi_resample r;
    bool nearest;
    size_t element_bytes; /* bytes of an element of the buffers */
    char *buffers[2],
        *rows;          /* results of steps, in turn; rows of all threads */
    uint64_t row_bytes; /* bytes of the rows of a thread */
    uint64_t bytes;     /* bytes of scratch so far       */
};

/* Elements of the largest buffer between two steps, in which the axes up to a
 * step have y's dims and the axes after it x's. The first step on floats reads
 * x itself and the last one writes y. */
static int64_t max_buffer_elements(const struct byi_resample *r)
{
    const uint32_t rank = r->x->rank;
    const bool direct = byi_dtype_is_float(r->x->dtype);
    int64_t most = direct ? 0 : byi_max(byi_count(r->x), byi_count(r->y));
    for (uint32_t i = 0; i + direct < rank; i++)
        most = byi_max(most,
                       byi_span(r->y, 0, i + 1) * byi_span(r->x, i + 1, rank));
    return most;
}

/* Bytes of the memory for a thread's rows: one resized row for each tap of an
 * axis, or one input row. */
static uint64_t max_row_bytes(const struct byi_resample *r)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i + 1 < r->x->rank; i++) {
        const struct byi_taps *high = &r->axes[i], *wide = &r->axes[i + 1];
        const int64_t inner = byi_span(r->x, i + 2, r->x->rank);
        const int64_t rows = high->n * (wide->out * inner + 2);
        const int64_t floats = byi_max(wide->in * inner, rows);
        if ((uint64_t)floats * sizeof(float) > most)
            most = (uint64_t)floats * sizeof(float);
    }
    return byi_align_bytes(most);
}

/* Describe the call from types and attributes. The lists of taps are filled
 * later. */
static struct resize_call describe(const struct byi_call *call)
{
    const char *mode = byi_attr_string(call->attrs, "mode");
    const bool dynamic = call->op->id == BYI_OP_DYN_RESIZE;
    struct resize_call s = {
        .r = {.op = call->op->id,
              .attrs = call->attrs,
              .x = call->in,
              .y = call->out,
              .target = &call->in[1],
              .roi = dynamic ? &call->in[2] : NULL},
        .nearest = mode[0] == 'n',
        .element_bytes =
            call->in->dtype == BYOC_F64 ? sizeof(double) : sizeof(float),
    };
    s.bytes = byi_align_bytes(byi_resample_plan(&s.r, call->scratch));
    for (int i = 0; i < 2 && (!s.nearest || s.r.x->dtype == BYOC_F32); i++)
        s.buffers[i] = byi_take_bytes(call->scratch, &s.bytes,
                                      (uint64_t)max_buffer_elements(&s.r) *
                                          s.element_bytes);
    s.row_bytes = max_row_bytes(&s.r);
    s.rows =
        byi_take_bytes(call->scratch, &s.bytes, s.row_bytes * call->threads);
    return s;
}

static uint64_t resize_scratch_f32(const struct byi_call *call)
{
    struct byi_call without_scratch = *call;
    without_scratch.scratch = NULL;
    return describe(&without_scratch).bytes;
}

/* --- nearest, for every type but float32 ---------------------------------- */

/* Compute one row of y, along the last axis, from the row `src` of x. `src` is
 * NULL if the whole row lies outside of the image. */
static void nearest_row(const struct byi_taps *a, const bool *outside,
                        const char *src, char *dst, const char *value,
                        size_t size)
{
    const int64_t bytes = (int64_t)size;
    if (!src) {
        byi_fill(dst, value, a->out, size);
        return;
    }
    for (int64_t j = 0; j < a->out; j++)
        byi_copy_element(dst + j * bytes,
                         outside[j] ? value : src + a->first[j] * bytes, size);
}

/* Compute rows [first, last) of y. A row that has the same source as the
 * previous row is copied from that row. */
static void nearest_rows(const struct byi_resample *r, const char *value,
                         int64_t first, int64_t last)
{
    const uint32_t outer = r->x->rank - 1;
    const size_t size = byi_dtype_bytes(r->x->dtype);
    const int64_t bytes = r->axes[outer].out * (int64_t)size;
    int64_t strides[BYI_MAX_RANK], at[BYI_MAX_RANK], unused_offset = 0;
    const char *previous = NULL;
    byi_dense_strides(r->x->rank, r->x->dims, strides);
    byi_seek(outer, r->y->dims, strides, first, at);
    for (int64_t row = first; row < last; row++) {
        const char *src = r->x->data;
        char *dst = (char *)r->y->data + row * bytes;
        for (uint32_t i = 0; i < outer && src; i++)
            src = r->outside[i][at[i]] ? NULL
                                       : src + r->axes[i].first[at[i]] *
                                                   strides[i] * (int64_t)size;
        if (src && src == previous)
            memcpy(dst, dst - bytes, (size_t)bytes);
        else if (src && r->is_identity[outer])
            memcpy(dst, src, (size_t)bytes);
        else
            nearest_row(&r->axes[outer], r->outside[outer], src, dst, value,
                        size);
        previous = src;
        byi_advance_position(outer, r->y->dims, strides, at, &unused_offset);
    }
}

static void run_nearest(const struct byi_call *call,
                        const struct byi_resample *r, const char *value)
{
    const int64_t rows = byi_span(r->y, 0, r->y->rank - 1);
    const int64_t parts = byi_min(rows, byi_team(call, byi_count(r->y)));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t p = 0; p < parts; p++)
        nearest_rows(r, value, rows * p / parts, rows * (p + 1) / parts);
}

/* --- steps ---------------------------------------------------------------- */

static int64_t rows_of(const struct byi_planes *p)
{
    return p->planes * p->high.out;
}

static void run_step_f32(const struct byi_call *call,
                         const struct resize_call *s,
                         const struct byi_planes *p, const void *x, void *y)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t rows = rows_of(p);
    const int64_t work =
        rows * p->wide.out * p->inner * byi_max(1, p->high.n + p->wide.n);
    const int64_t parts = byi_min(rows, byi_team(call, work));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t i = 0; i < parts; i++)
        simd->resample(p, x, y, rows * i / parts, rows * (i + 1) / parts,
                       (float *)(void *)(s->rows + (uint64_t)i * s->row_bytes));
}

/* Resize one axis of float64: x (outer, in, inner) to y (outer, out, inner). */
static void resize_axis_f64(const struct byi_taps *a, int64_t outer,
                            int64_t inner, const double *x, double *y)
{
    const double *weight = (const double *)(const void *)a->weight;
    for (int64_t l = 0; l < outer * a->out; l++) {
        const int64_t j = l % a->out;
        const double *from = x + (l / a->out * a->in + a->first[j]) * inner;
        for (int64_t i = 0; i < inner; i++)
            y[l * inner + i] = 0;
        for (int64_t t = 0; t < a->n; t++) {
            const double w =
                weight ? weight[j * a->stride_j + t * a->stride_t] : 1;
            for (int64_t i = 0; i < inner && w != 0; i++)
                y[l * inner + i] += w * from[t * inner + i];
        }
    }
}

/* Resize every axis that changes; `from` is x, or the buffer with x converted.
 * Returns the address of the result: `to` (a buffer if `to` is NULL), or `from`
 * if no axis changes. */
static const void *run_steps(const struct byi_call *call,
                             const struct resize_call *s, const void *from,
                             void *to)
{
    struct byi_planes steps[BYI_MAX_RANK];
    const bool f64 = s->element_bytes == sizeof(double);
    const uint32_t n = byi_resample_steps(&s->r, f64 ? 1 : 2, steps);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_planes *p = &steps[i];
        char *const next = s->buffers[from == s->buffers[0]];
        void *into = i + 1 == n && to ? to : next;
        if (f64 && p->high.n)
            resize_axis_f64(&p->high, p->planes, p->inner, from, into);
        else if (f64)
            resize_axis_f64(&p->wide, p->planes, p->inner, from, into);
        else
            run_step_f32(call, s, p, from, into);
        from = into;
    }
    return from;
}

/* Write `value` to the positions that lie outside of the input on any axis. */
static void extrapolate(const struct byi_resample *r, const char *value)
{
    const size_t size = byi_dtype_bytes(r->y->dtype);
    const int64_t n = byi_count(r->y);
    int64_t zeros[BYI_MAX_RANK] = {0}, at[BYI_MAX_RANK] = {0},
            unused_offset = 0;
    for (int64_t j = 0; j < n; j++) {
        bool outside = false;
        for (uint32_t i = 0; i < r->y->rank; i++)
            outside = outside || r->outside[i][at[i]];
        if (outside)
            byi_copy_element((char *)r->y->data + j * (int64_t)size, value,
                             size);
        byi_advance_position(r->y->rank, r->y->dims, zeros, at, &unused_offset);
    }
}

/* Round a value to the nearest integer if they differ only by a rounding error,
 * so that truncation gives the same result on all instruction sets. */
static double snap_to_integer(double value)
{
    const double whole = nearbyint(value);
    return fabs(value - whole) <= 1e-6 * (1 + fabs(whole)) ? whole : value;
}

static void resize_by_steps(const struct byi_call *call,
                            const struct resize_call *s)
{
    const struct byi_resample *r = &s->r;
    const int64_t n = byi_count(r->y);
    if (byi_dtype_is_float(r->x->dtype)) {
        const void *at = run_steps(call, s, r->x->data, r->y->data);
        if (at != r->y->data)
            memcpy(r->y->data, at, (size_t)n * s->element_bytes);
        return;
    }
    /* integers are resized as float32, and truncated as by a C cast */
    float *buffer = (float *)(void *)s->buffers[0];
    const int64_t n_in = byi_count(r->x);
    for (int64_t i = 0; i < n_in; i++)
        buffer[i] = (float)byi_tensor_float(r->x, i);
    const float *result = run_steps(call, s, buffer, NULL);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(call->out, i, snap_to_integer((double)result[i]));
}

static enum byoc_status resize_any(const struct byi_call *call,
                                   struct byoc_error *err)
{
    struct resize_call s = describe(call);
    uint64_t memory[2] = {0, 0}; /* one element, of any type */
    struct byi_tensor value = {.data = memory, .dtype = s.r.y->dtype};
    if (byi_count(s.r.y) == 0)
        return BYOC_OK;
    BYI_TRY(byi_resample_fill(&s.r, err));
    if (s.r.any_outside)
        byi_tensor_set(&value, 0,
                       byi_attr_float(call->attrs, "extrapolation_value"));
    if (s.nearest && s.r.x->dtype != BYOC_F32) {
        run_nearest(call, &s.r, value.data);
        return BYOC_OK;
    }
    resize_by_steps(call, &s);
    if (s.r.any_outside)
        extrapolate(&s.r, value.data);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(resize, resize_any, resize_scratch_f32)

BYI_KERNEL_ROWS(resize, {BYI_OP_RESIZE, {resize_run, resize_scratch}},
                {BYI_OP_DYN_RESIZE, {resize_run, resize_scratch}})
